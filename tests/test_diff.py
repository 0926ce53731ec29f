"""A comparison of two logs says which offsets differ, and from where on damage kept it from comparing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from helpers.made_partitions import entry

from seglog_format.cli.main import FINDINGS, UNREADABLE, run

if TYPE_CHECKING:
    from pathlib import Path


def diff(capsys: pytest.CaptureFixture[str], *arguments: object, status: int) -> str:
    assert run(["diff", *map(str, arguments)]) == status
    return capsys.readouterr().out


def json_lines(capsys: pytest.CaptureFixture[str], *arguments: object, status: int) -> list[dict[str, Any]]:
    return [json.loads(line) for line in diff(capsys, *arguments, "--json", status=status).splitlines()]


@pytest.mark.parametrize("is_first", [True, False])
def test_diff_goes_on_after_damage_and_says_what_was_not_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], *, is_first: bool
) -> None:
    whole = entry(0, 5) + entry(5, 5) + entry(10, 5)
    broken = bytearray(entry(0, 5) + entry(5, 5) + entry(10, 5, time=2000))
    broken[len(entry(0, 5)) + 70] ^= 1
    for name, data in (("a.log", whole), ("b.log", broken)):
        (tmp_path / name).write_bytes(data)
    paths = (tmp_path / "b.log", tmp_path / "a.log") if is_first else (tmp_path / "a.log", tmp_path / "b.log")
    out = diff(capsys, *paths, status=UNREADABLE)
    assert out.endswith(": 5 records the same, 5 differences at 10 to 14; not compared: 5 offsets, 5 to 9\n")
    last = json_lines(capsys, *paths, status=UNREADABLE)[-1]
    assert last["notCompared"] == [{"firstOffset": 5, "nextOffset": 10, "offsetCount": 5}]
    (tmp_path / "b.log").write_bytes(broken[: 2 * len(entry(0, 5))])
    out = diff(capsys, *paths, status=UNREADABLE)
    assert out.endswith(": 5 records the same, 0 differences; not compared: from offset 5 on\n")
    assert json_lines(capsys, *paths, status=UNREADABLE)[-1]["notComparedFrom"] == 5


def test_diff_names_ranges_and_the_leaders_of_what_differs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.log").write_bytes(entry(0, 5) + entry(5, 5) + entry(10, 5) + entry(15))
    (tmp_path / "b.log").write_bytes(entry(0, 5) + entry(5, 5, time=2000, epoch=7) + entry(10, 5))
    out = diff(capsys, tmp_path / "a.log", tmp_path / "b.log", "--count", 1, status=FINDINGS).splitlines()
    assert out[0] == "a.log offset 5: timestamp differ (leader epoch 0 against 7)"
    assert out[-1] == "a.log: 10 records the same, 6 differences at 5 to 9, 15"
    (difference, *_) = json_lines(capsys, tmp_path / "a.log", tmp_path / "b.log", status=FINDINGS)
    assert difference["leaderEpochs"] == [0, 7]


def test_diff_of_many_ranges_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.log").write_bytes(b"".join(entry(offset) for offset in range(30)))
    (tmp_path / "b.log").write_bytes(b"".join(entry(offset, time=1000 + offset % 2) for offset in range(30)))
    out = diff(capsys, tmp_path / "a.log", tmp_path / "b.log", status=FINDINGS).splitlines()
    assert out[-1] == "a.log: 15 records the same, 15 differences at 1, 3, 5, 7, 9, 11, 13, 15, more"

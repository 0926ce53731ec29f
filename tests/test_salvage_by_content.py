"""Salvage where names of logs do not say what is in them: every intact record is kept, and kept once."""

from __future__ import annotations

import json
import warnings
from typing import TYPE_CHECKING, Any

import pytest
from helpers.made_partitions import entry, make, numbered
from hypothesis import given
from hypothesis import strategies as st

from seglog_format import open_partition, salvage, verify
from seglog_format.cli.main import run
from seglog_format.requirements import Severity

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("no_fsync")


def at(offsets: Iterable[int]) -> bytes:
    return b"".join(map(entry, offsets))


def flipped(data: bytes, position: int) -> bytes:
    return data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :]


SIZE = len(entry(0))


def kept(directory: Path) -> list[int]:
    with warnings.catch_warnings(), open_partition(directory) as log:
        warnings.simplefilter("ignore")
        return [record.offset for record in log.records()]


def bases(directory: Path) -> list[int]:
    return sorted(int(path.stem) for path in directory.glob("*.log"))


@pytest.mark.parametrize(
    ("files", "offsets", "begins"),
    [
        pytest.param(
            {"0.log": at(range(50, 80)), "50.log": at(range(30))}, [*range(30), *range(50, 80)], [0, 50], id="exchanged"
        ),
        pytest.param({"0.log": at(range(100)), "1.log": b""}, range(100), [0], id="empty-inside"),
        pytest.param({"0.log": at(range(100)), "10.log": at(range(10, 30))}, range(100), [0], id="copy-inside"),
        pytest.param(
            {"0.log": flipped(at(range(100)), 50 * SIZE + 65), "10.log": at(range(10, 70))},
            range(100),
            [0, 50],
            id="a-copy-fills-damage",
        ),
        pytest.param(
            {"0.log": at([*range(10), *range(20, 30)]), "10.log": at(range(10, 20)), "30.log": at([30])},
            range(31),
            [0, 10, 30],
            id="interleaved",
        ),
        pytest.param(
            {"0.log": at(range(30)), "30.log": at(range(30, 60)), "0.log.swap": b""},
            range(60),
            [0, 30],
            id="empty-swap",
        ),
        pytest.param(
            {"0.log": at(range(30)), "30.log": at(range(30, 60)), "0.log.swap": at(range(0, 30, 2))},
            range(60),
            [0, 1, 30],
            id="poorer-swap",
        ),
        pytest.param(
            {"7.log": at(range(5)), "40.log": b""}, range(5), [0, 40], id="an-empty-last-log-keeps-the-log-end"
        ),
    ],
)
def test_every_intact_record_is_kept_once(
    files: dict[str, bytes], offsets: Iterable[int], begins: list[int], tmp_path: Path
) -> None:
    source, target = make(tmp_path, files), tmp_path / "new" / "orders-0"
    before = {path.name: path.read_bytes() for path in source.iterdir()}
    planned = [(one.log.name, one.names, one.damaged) for one in salvage(source, target).segments()]
    done = salvage(source, target).apply()
    assert [(one.log.name, one.names, one.damaged) for one in done] == planned
    assert kept(target) == list(offsets)
    assert bases(target) == begins
    assert not [one for one in verify(target) if one.severity is Severity.ERROR]
    assert all(damage.missing is None for one in done for damage in one.damaged)
    assert {path.name: path.read_bytes() for path in source.iterdir()} == before


def test_what_is_kept_elsewhere_is_named_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = make(tmp_path, {"0.log": at(range(100)), "10.log": at(range(10, 30))})
    assert run(["salvage", str(source), "--output", str(tmp_path / "new"), "--json"]) == 1
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["batches"] for one in found] == [100, 0]
    assert found[1]["damaged"][0]["reason"] == "offsets 10 to 29 are kept from another log"
    assert found[1]["missing"] == []


def test_offsets_that_no_log_holds_are_missing(tmp_path: Path) -> None:
    damaged = flipped(flipped(at(range(100)), 50 * SIZE + 65), 80 * SIZE + 65)
    source = make(tmp_path, {"0.log": damaged, "10.log": at(range(10, 70))})
    done = salvage(source, tmp_path / "new").apply()
    assert [tuple(one) for segment in done for one in segment.missing] == [(80, 81)]


@pytest.mark.parametrize("changed", [0, 5, 9])
def test_a_single_changed_offset_is_no_wrong_name(changed: int, tmp_path: Path) -> None:
    entries = [entry(offset) for offset in range(10, 20)]
    entries[changed] = (3).to_bytes(8, "big") + entries[changed][8:]
    source = make(tmp_path, {"10.log": b"".join(entries), "20.log": at([20])})
    done = salvage(source, tmp_path / "new").apply()
    assert kept(tmp_path / "new") == [offset for offset in range(10, 21) if offset != 10 + changed]
    assert [damage.requirements for damage in done[0].damaged] == [("SEG-LOG-008",)]


@given(data=st.data())
def test_names_and_order_of_logs_do_not_matter(data: Any, tmp_path_factory: pytest.TempPathFactory) -> None:  # noqa: ANN401 - of hypothesis
    borders = sorted(data.draw(st.sets(st.integers(1, 38), min_size=1, max_size=5)))
    pieces = [at(range(*ends)) for ends in zip([0, *borders], [*borders, 40], strict=True)]
    numbers = data.draw(st.lists(st.integers(0, 60), min_size=len(pieces), max_size=len(pieces), unique=True))
    root = tmp_path_factory.mktemp("salvage")
    source = make(root, {f"{number}.log": piece for number, piece in zip(numbers, pieces, strict=True)})
    salvage(source, root / "new").apply()
    whole = {
        offset
        for piece, ends in zip(pieces, zip([0, *borders], [*borders, 40], strict=True), strict=True)
        if len(piece) > SIZE
        for offset in range(*ends)
    }
    assert whole <= set(kept(root / "new"))
    assert numbered("0.log") in {path.name for path in (root / "new").iterdir()} or 0 not in whole

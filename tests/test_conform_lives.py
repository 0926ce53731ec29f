"""Operations on whole logs: what a power cut may leave, disks that fail, and how such answers are judged."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import pytest
from seglog_conformance.cases import Case, load_cases
from seglog_conformance.compare import compare
from seglog_conformance.features import EVERYTHING
from seglog_conformance.reference import Reference
from seglog_conformance.reference.disk import Disk
from seglog_conformance.verdicts import Verdict

from seglog_format.storage import files
from seglog_format.storage.files import write_file

if TYPE_CHECKING:
    from pathlib import Path

POWER_CUTS = (
    "recovery/truncate-power-cuts",
    "recovery/recover-power-cuts",
    "recovery/recover-power-cuts-in-an-undone-replacement",
    "decisions/retain-power-cuts",
    "decisions/write-no-hole",
)


def left(disk: Disk) -> set[tuple[tuple[str, bytes], ...]]:
    return {tuple(sorted(state)) for state in disk.left_now()}


def test_a_file_is_there_once_it_and_its_name_are_synced(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    handle = disk.create(tmp_path / "a")
    handle.write(b"one")
    assert left(disk) == {(), (("a", b""),), (("a", b"one"),)}
    disk.fsync_directory(tmp_path)
    assert left(disk) == {(("a", b""),), (("a", b"one"),)}
    handle.fsync()
    assert left(disk) == {(("a", b"one"),)}
    handle.close()


def test_of_changes_that_wait_each_may_be_there_alone(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(name.encode())
    disk = Disk(tmp_path)
    disk.rename(tmp_path / "a", tmp_path / "c")
    disk.remove(tmp_path / "b")
    both, neither = (("c", b"a"),), (("a", b"a"), ("b", b"b"))
    assert left(disk) == {both, neither, (("b", b"b"), ("c", b"a")), (("a", b"a"),)}
    disk.fsync_directory(tmp_path)
    assert left(disk) == {both}


def test_states_are_noted_at_every_change(tmp_path: Path) -> None:
    disk = Disk(tmp_path, keeps_states=True)
    write_file(disk, tmp_path / "a", b"12")
    assert {tuple(sorted(state)) for state in disk.states} == {(), (("a", b""),), (("a", b"12"),)}


@pytest.mark.parametrize("operation", ["write", "fsync"])
def test_a_disk_fails_when_it_is_told_to(operation: str, tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    disk.failing = operation
    with pytest.raises(OSError, match=r".*") as caught:
        write_file(disk, tmp_path / "a", b"1234")
    assert caught.value.errno == errno.EIO
    assert (tmp_path / "a").read_bytes() == (b"12" if operation == "write" else b"1234")


def cases() -> dict[str, Case]:
    return {case.id: case for case in load_cases()}


@pytest.mark.parametrize("name", POWER_CUTS)
def test_names_that_are_not_synced_in_time_are_told(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    case = cases()[name]
    answer = Reference().answer(case.request_with(1))
    assert compare(case, answer, EVERYTHING).verdict is Verdict.PASS
    if name == "decisions/write-no-hole":
        monkeypatch.setattr(Disk, "synced", lambda *_: None)
    else:
        monkeypatch.setattr(files.Settle, "apply", lambda *_: None)
    answer = Reference().answer(case.request_with(1))
    assert compare(case, answer, EVERYTHING).verdict is Verdict.DIFFER


def test_a_power_cut_that_cannot_happen_is_no_fault() -> None:
    case = cases()["recovery/truncate-power-cuts"]
    answer = {"ok": True, "nextOffset": "4", "outcomes": ["0 1 2"]}
    assert compare(case, answer, EVERYTHING).verdict is Verdict.PASS
    found = compare(case, {**answer, "outcomes": ["0 1 2", "0 2"]}, EVERYTHING)
    assert found.verdict is Verdict.DIFFER
    assert [difference.found for difference in found.differences] == ["0 2"]

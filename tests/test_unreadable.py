"""Files and ranges that the disk refuses, met by commands in a process of their own (SEG-PDR-022)."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from helpers.made_partitions import ONE, checkpoint, content, entry, log_sizes, make
from helpers.refusing_disk import seglog, seglog_without_rights

if TYPE_CHECKING:
    from pathlib import Path

COUNT = 300
LOG = f"{0:020}.log"
REFUSED_BY_DISK = "Input/output error"

RANGES = [
    pytest.param([(10 * ONE + 20, 10 * ONE + 60)], {10}, id="in one batch"),
    pytest.param([(10 * ONE - 5, 12 * ONE + 5)], {9, 10, 11, 12}, id="over several batches"),
    pytest.param([(0, 1), (100 * ONE + 3, 100 * ONE + 4)], {0, 100}, id="first bytes of two batches"),
    pytest.param([(COUNT * ONE - 1, COUNT * ONE)], {COUNT - 1}, id="the last byte"),
    pytest.param([(50 * ONE, 250 * ONE)], set(range(50, 250)), id="most of it"),
]


@pytest.fixture
def partition(tmp_path: Path) -> Path:
    """Two segments; a batch of the second is damaged. A partition beside it is whole, another one damaged."""
    first = b"".join(entry(number) for number in range(COUNT))
    second = bytearray(b"".join(entry(COUNT + number) for number in range(5)))
    second[2 * ONE + 70] ^= 1
    path = make(tmp_path, {"0.log": first, f"{COUNT}.log": bytes(second)})
    checkpoint(path, "recovery-point-offset-checkpoint", 0)
    for name in ("whole-0", "zzz-0"):
        shutil.copytree(path, path.parent / name)
    whole = path.parent / "whole-0" / f"{COUNT:020}.log"
    whole.write_bytes(whole.read_bytes()[: 2 * ONE])
    return path


@pytest.mark.req("SEG-PDR-022")
@pytest.mark.parametrize(("ranges", "lost"), RANGES)
def test_verify_goes_on_behind_what_the_disk_refuses(
    partition: Path, ranges: list[tuple[int, int]], lost: set[int]
) -> None:
    engine = "columnar" if len(lost) == 4 else "reference"
    refused = tuple((f"logs/orders-0/{LOG}", start, end) for start, end in ranges)
    answer = seglog("verify", "--json", "--severity", "error", "--engine", engine, partition.parent, refused=refused)
    found = [(line["file"], line["position"], line["requirement"]) for line in answer.lines if "requirement" in line]
    assert answer.status == 3, answer.err
    assert [position for file, position, rule in found if rule == "SEG-PDR-022"] == [start for start, _ in ranges]
    assert {file for file, _, rule in found if rule == "SEG-BAT-003"} == {
        f"{name}/{COUNT:020}.log" for name in ("orders-0", "zzz-0")
    }


@pytest.mark.req("SEG-PDR-022")
@pytest.mark.parametrize(("ranges", "lost"), RANGES)
def test_salvage_copies_everything_around_what_the_disk_refuses(
    partition: Path, tmp_path: Path, ranges: list[tuple[int, int]], lost: set[int]
) -> None:
    refused = tuple((f"logs/orders-0/{LOG}", start, end) for start, end in ranges)
    answer = seglog("salvage", "--json", partition.parent, "-o", tmp_path / "out", refused=refused)
    assert answer.status == 3, answer.err
    kept = b"".join(entry(number) for number in range(COUNT) if number not in lost)
    assert (tmp_path / "out" / "orders-0" / LOG).read_bytes() == kept
    (reported,) = (line for line in answer.lines if line["file"] == f"orders-0/{LOG}")
    damaged = reported["damaged"]
    assert {
        number
        for one in damaged
        for number in range(one["position"] // ONE, -(-(one["position"] + one["bytes"]) // ONE))
    } == lost
    assert all(one["requirements"] == ["SEG-PDR-022"] for one in damaged)
    assert all(REFUSED_BY_DISK in one["reason"] for one in damaged)
    assert (tmp_path / "out" / "whole-0" / LOG).read_bytes() == (partition.parent / "whole-0" / LOG).read_bytes()
    assert log_sizes(tmp_path / "out" / "zzz-0") == {0: COUNT * ONE, COUNT: 4 * ONE}


@pytest.mark.req("SEG-PDR-022")
@pytest.mark.parametrize("which", [0, 10 * ONE + 20, COUNT * ONE - 1])
def test_recovery_leaves_a_partition_alone_that_cannot_be_read(partition: Path, which: int) -> None:
    refused = ((f"logs/orders-0/{LOG}", which, which + 1),)
    before = content(partition)
    answer = seglog("recover", "--write", partition.parent, refused=refused)
    assert answer.status == 3
    assert REFUSED_BY_DISK in answer.err
    assert content(partition) == before
    assert log_sizes(partition.parent / "zzz-0") == {0: COUNT * ONE, COUNT: 2 * ONE}


@pytest.mark.req("SEG-PDR-022")
def test_an_index_that_the_disk_refuses_is_a_finding(partition: Path) -> None:
    assert seglog("index", "--rebuild", "--write", partition).status in {0, 1}
    index = f"{0:020}.index"
    refused = ((index, 8, 16),)
    answer = seglog("verify", "--json", partition, refused=refused)
    assert answer.status == 3
    reported = {(line["file"], line["position"], line["requirement"]) for line in answer.lines if "requirement" in line}
    assert (index, 8, "SEG-PDR-022") in reported
    assert "SEG-BAT-003" in {requirement for _, _, requirement in reported}


@pytest.mark.req("SEG-PDR-022")
@pytest.mark.parametrize("name", [LOG, "leader-epoch-checkpoint", f"{COUNT:020}.snapshot", f"{COUNT:020}.index"])
def test_a_file_that_may_not_be_read(partition: Path, tmp_path: Path, name: str) -> None:
    path = partition / name
    path.touch()
    before = content(partition)
    path.chmod(0)
    verified = seglog_without_rights("verify", "--json", partition.parent)
    recovered = seglog_without_rights("recover", "--write", partition.parent)
    salvaged = seglog_without_rights("salvage", "--json", partition.parent, "-o", tmp_path / "out")
    path.chmod(0o600)
    found = {(line["file"], line["requirement"]) for line in verified.lines if "requirement" in line}
    assert verified.status == recovered.status == 3
    assert {(f"orders-0/{name}", "SEG-PDR-022"), (f"zzz-0/{COUNT:020}.log", "SEG-BAT-003")} <= found
    assert "Permission denied" in recovered.err
    assert content(partition) == before
    assert log_sizes(partition.parent / "zzz-0") == {0: COUNT * ONE, COUNT: 2 * ONE}
    assert salvaged.status in {1, 3}
    kept = {0: COUNT * ONE, COUNT: 4 * ONE} if name != LOG else {COUNT: 4 * ONE}
    assert log_sizes(tmp_path / "out" / "orders-0") == kept


@pytest.mark.req("SEG-PDR-022")
def test_a_partition_directory_that_may_not_be_read(partition: Path) -> None:
    partition.chmod(0)
    answer = seglog_without_rights("verify", "--json", partition.parent)
    partition.chmod(0o700)
    found = {(line["file"], line["requirement"]) for line in answer.lines if "requirement" in line}
    assert answer.status == 3
    assert {("orders-0", "SEG-PDR-022"), (f"zzz-0/{COUNT:020}.log", "SEG-BAT-003")} <= found

"""Chapter 71, what recovery scans and keeps: against brokers' own recoveries, and on logs written out by hand."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any

import pytest
from helpers.batches import batch, patched, record
from helpers.index_files import example
from helpers.made_logs import (
    ABORT,
    CONTROL,
    TRANSACTIONAL,
    Entry,
    MadeLog,
    checkpoint,
    data_batch,
    empty_control_batch,
    marker,
    plain_message,
    wrapped_messages,
)
from helpers.messages import message
from helpers.planned import only_plan
from helpers.support import FIXTURES, authentic, authentic_expected, authentic_names
from helpers.walking import each_of

from proofs.unpacking import unpack_archive
from seglog_format import recover, verify
from seglog_format.log.listing import list_partition
from seglog_format.recovery.plan import plan_for_partition, plan_recovery
from seglog_format.recovery.segment_scan import scan_segment
from seglog_format.types import LogSegment

if TYPE_CHECKING:
    from pathlib import Path

    from seglog_format.recovery.plan import PartitionRecovery
    from seglog_format.recovery.segment_scan import SegmentScan
    from seglog_format.types import RecoveryPlan

CRASHES = [name for name in authentic_names() if "/crash-" in name]


def recovered(directory: Path, plan: RecoveryPlan) -> dict[str, str]:
    """SHA-256 of each log that a plan leaves, cut as it says."""
    ends = {cut.base_offset: cut.position for cut in plan.cuts}
    return {
        path.name: hashlib.sha256(path.read_bytes()[: ends.get(int(path.stem))]).hexdigest()
        for path in directory.glob("*.log")
        if int(path.stem) not in plan.dropped
    }


def kept_by_broker(lines: list[dict[str, Any]], partition: str) -> dict[str, str]:
    prefix = f"after/{partition}/"
    files = [line for line in lines if line["type"] == "file" and line["file"].startswith(prefix)]
    return {line["file"].removeprefix(prefix): line["sha256"] for line in files if line["file"].endswith(".log")}


def end_by_broker(lines: list[dict[str, Any]], partition: str) -> int:
    logs = [line for line in lines if line["file"].startswith(f"after/{partition}/") and line["file"].endswith(".log")]
    return max(line["nextOffset"] for line in logs if line["type"] == "batch")


@pytest.mark.req("SEG-RCV-001", "SEG-RCV-002", "SEG-RCV-003", "SEG-RCV-004", "SEG-CKP-011")
@each_of("name", CRASHES)
def test_the_plan_is_what_the_broker_did(name: str) -> None:
    lines = authentic_expected(name)
    found = only_plan(authentic(name) / "before")
    assert recovered(found.path, found.plan) == kept_by_broker(lines, found.path.name)
    assert found.plan.log_end_offset == end_by_broker(lines, found.path.name)
    assert not found.plan.remarks
    assert not found.has_clean_shutdown


@pytest.mark.req("SEG-RCV-001")
@each_of("name", CRASHES)
def test_what_was_recovered_and_closed_is_left_alone(name: str) -> None:
    found = only_plan(authentic(name) / "after")
    assert (found.has_clean_shutdown, found.plan.scanned, found.plan.changes_log) == (True, (), False)
    assert found.plan.log_end_offset == end_by_broker(authentic_expected(name), found.path.name)


FULL_SCAN_CUTS = {"4.3.0/crash-flip-early": (124, 28525, 259, (266,))}
"""Damage below the recovery point, which the broker did not see."""


@pytest.mark.req("SEG-RCV-003", "SEG-RCV-004")
@each_of("name", CRASHES)
def test_a_full_scan_finds_the_same_or_more(name: str) -> None:
    found = only_plan(authentic(name) / "before")
    full = found.full_scan
    assert full.is_full_scan
    if name not in FULL_SCAN_CUTS:
        assert (full.cuts, full.dropped, full.log_end_offset) == (
            found.plan.cuts,
            found.plan.dropped,
            found.plan.log_end_offset,
        )
        return
    cut = full.cut
    assert (cut.base_offset, cut.position, full.log_end_offset, full.dropped) == FULL_SCAN_CUTS[name]
    assert cut.requirements == ("SEG-RCV-003", "SEG-BAT-003")
    assert not found.plan.changes_log


@pytest.mark.req("SEG-RCV-001", "SEG-RCV-025", "SEG-RCV-027")
@pytest.mark.parametrize("end", ["killed", "half"])
@pytest.mark.parametrize("version", ["3.9.1", "4.4.0"])
def test_log_of_a_broker_that_was_killed_while_it_recovered(version: str, end: str, tmp_path: Path) -> None:
    """The broker had removed half of the snapshots, and had written half of the indexes again."""
    unpack_archive(FIXTURES / "half-recovered" / f"{version}.tar.gz", tmp_path)
    directory, right = tmp_path / end / "orders-0", tmp_path / "recovered" / "orders-0"
    assert not any(finding.is_failure for finding in verify(directory.parent))
    recover(directory).apply()
    files, expected = ({path.name: path.read_bytes() for path in each.iterdir()} for each in (directory, right))
    for kind in (".log", ".index", ".timeindex", ".txnindex"):
        assert {name: files[name] for name in files if name.endswith(kind)} == {
            name: expected[name] for name in expected if name.endswith(kind)
        }
    snapshots = {name for name in files if name.endswith(".snapshot")}
    assert {name: files[name] for name in snapshots} == {name: expected[name] for name in snapshots}
    assert len(snapshots) == 19 if end == "killed" else 0 < len(snapshots) < 19


@pytest.mark.req("SEG-RCV-001")
def test_recovery_of_undamaged_broker_directories_changes_nothing() -> None:
    for name in ("4.3.0/txn", "2.8.2/mixed-segs", "0.8.2.2/segs", "0.10.2.2/compact-codec", "3.9.1/cluster-metadata"):
        for directory in (path for path in authentic(name).iterdir() if path.is_dir()):
            found = plan_for_partition(directory)
            assert not found.plan.changes_log
            assert len(found.plan.scanned) == len(list(directory.glob("*.log")))


SIX = {
    0: [data_batch(0, [1, 1]), data_batch(2, [1])],
    3: [data_batch(3, [1]), data_batch(4, [1, 1])],
    6: [data_batch(6, [1]), data_batch(7, [1, 1, 1])],
}


def broken(entry: Entry) -> Entry:
    return Entry(entry.data[:-1] + bytes([entry.data[-1] ^ 1]), entry.batch)


def planned(
    root: Path, made: MadeLog, *, point: int | None = None, start: int | None = None, clean: bool = False, **gone: bool
) -> PartitionRecovery:
    path = made.write(root)
    for base in made.segments:
        if not gone.get(f"without_{base}"):
            (path / f"{base:020}.index").touch()
    if point is not None:
        (root / "recovery-point-offset-checkpoint").write_text(checkpoint(("topic", 0, point)))
    if start is not None:
        (root / "log-start-offset-checkpoint").write_text(checkpoint(("topic", 0, start)))
    if clean:
        (root / ".kafka_cleanshutdown").touch()
    return only_plan(root)


@pytest.mark.req("SEG-RCV-002", "SEG-CKP-011")
@pytest.mark.parametrize(
    ("point", "scanned"),
    [(None, (0, 3, 6)), (0, (0, 3, 6)), (2, (0, 3, 6)), (3, (3, 6)), (5, (3, 6)), (6, (6,)), (10, (6,)), (99, (6,))],
)
def test_segments_from_the_recovery_point_on_are_scanned(
    point: int | None, scanned: tuple[int, ...], tmp_path: Path
) -> None:
    found = planned(tmp_path, MadeLog(SIX), point=point)
    assert (found.plan.scanned, found.full_scan.scanned) == (scanned, (0, 3, 6))
    assert (found.plan.recovery_point, found.plan.log_end_offset, found.plan.cut) == (point or 0, 10, None)


@pytest.mark.req("SEG-RCV-002")
def test_a_recovery_point_below_the_first_segment(tmp_path: Path) -> None:
    assert planned(tmp_path, MadeLog({3: SIX[3]}), point=1).plan.scanned == (3,)


@pytest.mark.req("SEG-RCV-001", "SEG-LDR-003")
def test_nothing_is_scanned_after_a_clean_shutdown(tmp_path: Path) -> None:
    made = MadeLog(SIX | {3: [broken(SIX[3][0]), SIX[3][1]]})
    found = planned(tmp_path, made, point=0, clean=True)
    assert (found.plan.scanned, found.plan.changes_log, found.plan.log_end_offset) == ((), False, 10)
    assert (found.full_scan.scanned, found.full_scan.dropped, found.full_scan.log_end_offset) == ((0, 3), (6,), 3)


@pytest.mark.req("SEG-RCV-003", "SEG-RCV-004")
@pytest.mark.parametrize("number", [0, 1])
def test_the_first_damage_ends_the_log(number: int, tmp_path: Path) -> None:
    entries = [broken(entry) if index == number else entry for index, entry in enumerate(SIX[3])]
    plan = planned(tmp_path, MadeLog(SIX | {3: entries, 6: [broken(SIX[6][0])]})).plan
    cut = plan.cut
    end = 3 + number
    position = len(entries[0].data) * number
    assert (cut.base_offset, cut.position, cut.next_offset, plan.log_end_offset) == (3, position, end, end)
    assert cut.size == sum(len(entry.data) for entry in entries) - position
    assert (plan.scanned, plan.dropped, len(plan.cuts)) == ((0, 3), (6,), 1)
    assert cut.path.endswith("/00000000000000000003.log")
    assert "crc" in cut.reason


def scanned(*data: bytes, base: int = 0) -> SegmentScan:
    return scan_segment(memoryview(b"".join(data)), base)


FIRST = data_batch(0, [1, 2]).data
SECOND = data_batch(2, [3]).data


ORDER = {"SEG-LOG-006", "SEG-LOG-008", "SEG-LOG-013"}
ENDS = {"SEG-LOG-002", "SEG-LOG-004", "SEG-LOG-005"}


def deciding(requirement: str) -> str:
    """Return the rule of recovery by which bytes that break another rule go."""
    if requirement in ORDER:
        return "SEG-RCV-032"
    return "SEG-RCV-033" if requirement in ENDS else "SEG-RCV-003"


@pytest.mark.req("SEG-RCV-003", "SEG-RCV-032", "SEG-RCV-033")
@pytest.mark.parametrize(
    ("rest", "requirement"),
    [
        pytest.param(b"\1" * 17, "SEG-LOG-002", id="too little for an entry"),
        pytest.param(SECOND[:-1], "SEG-LOG-004", id="cut short"),
        pytest.param(bytes(40), "SEG-LOG-005", id="zeros"),
        pytest.param(bytes(7), "SEG-LOG-005", id="a few zeros"),
        pytest.param(bytes(40) + SECOND, "SEG-LOG-003", id="zeros, then more"),
        pytest.param(patched(SECOND, 8, "i", 13, seal=False), "SEG-LOG-003", id="size 13"),
        pytest.param(patched(SECOND, 8, "i", -1, seal=False), "SEG-LOG-003", id="size -1"),
        pytest.param(patched(SECOND, 8, "i", 48, seal=False), "SEG-BAT-002", id="size 48"),
        pytest.param(patched(SECOND, 16, "b", -1, seal=False), "SEG-BAT-004", id="magic -1"),
        pytest.param(patched(SECOND, 16, "b", 1, seal=False), "SEG-MSG-004", id="another magic"),
        pytest.param(patched(SECOND, 17, "I", 0, seal=False), "SEG-BAT-003", id="checksum"),
        pytest.param(patched(SECOND, 60, "b", 7, seal=False), "SEG-BAT-003", id="one byte"),
        pytest.param(message(2, crc=0), "SEG-MSG-004", id="checksum of a message"),
        pytest.param(data_batch(1, [3]).data, "SEG-LOG-006", id="offset again"),
        pytest.param(data_batch(0, [3, 3]).data, "SEG-LOG-006", id="offset back"),
        pytest.param(message(1), "SEG-LOG-006", id="message again"),
        pytest.param(data_batch(2, [3], last_delta=-1).data, "SEG-LOG-008", id="negative last offset delta"),
        pytest.param(data_batch(-5, [3] * 9).data, "SEG-LOG-008", id="below the segment"),
        pytest.param(data_batch(2**63 - 1, [3, 3]).data, "SEG-LOG-013", id="past 64 bits"),
        pytest.param(data_batch(2**63 - 1, [3]).data, "SEG-LOG-013", id="the last of 64 bits"),
    ],
)
def test_a_segment_is_cut_before(rest: bytes, requirement: str) -> None:
    behind = b"" if requirement in ENDS else SECOND
    scan = scanned(FIRST, rest, behind)
    assert (scan.next_offset, scan.cut.position, scan.cut.next_offset) == (2, len(FIRST), 2)
    assert scan.cut.requirements == (deciding(requirement), requirement)
    assert scan.cut.size == len(rest) + len(behind)
    assert bool(scan.remarks) == (requirement in {"SEG-LOG-006", "SEG-LOG-008"})


@pytest.mark.req("SEG-RCV-003", "SEG-RCV-004")
def test_the_crash_of_the_chapter() -> None:
    scan = scanned(example("71-flush-and-recovery", "crashed").data)
    assert (scan.cut.position, scan.cut.size, scan.next_offset) == (79, 160, 2)


@pytest.mark.req("SEG-RCV-003")
def test_a_segment_may_be_cut_to_nothing() -> None:
    scan = scanned(patched(SECOND, 17, "I", 0, seal=False), base=2)
    assert (scan.cut.position, scan.cut.next_offset, scan.next_offset) == (0, 2, 2)
    assert scanned(b"").cut is None


@pytest.mark.req("SEG-RCV-005")
@pytest.mark.parametrize(
    ("entry", "remark"),
    [
        pytest.param(patched(SECOND, 57, "i", 9), None, id="records count"),
        pytest.param(patched(SECOND, 57, "i", -9), None, id="negative records count"),
        pytest.param(patched(SECOND, 21, "h", 5), None, id="undefined codec"),
        pytest.param(patched(SECOND, 21, "h", 1), None, id="no gzip data"),
        pytest.param(patched(SECOND, 21, "H", 0xFF80), None, id="undefined attribute bits"),
        pytest.param(batch(b"junk", base_offset=2), None, id="no records at all"),
        pytest.param(patched(SECOND, 16, "b", 3, seal=False), None, id="a later magic"),
        pytest.param(message(2, value=b"junk", attributes=1), None, id="a wrapper around junk"),
        pytest.param(message(2, value=None, attributes=1), None, id="a wrapper around nothing"),
        pytest.param(wrapped_messages(2, [1, 2]).data, None, id="wrapper"),
        pytest.param(plain_message(2, 1, 1).data, None, id="message"),
        pytest.param(data_batch(2, [], last_delta=0).data, None, id="emptied batch"),
        pytest.param(empty_control_batch(2, 7).data, None, id="emptied control batch"),
        pytest.param(data_batch(2**31 + 5, [1]).data, "SEG-LOG-009", id="too far above the segment"),
        pytest.param(marker(2, 7, 9).data, "SEG-CTL-003", id="unknown marker"),
        pytest.param(patched(marker(2, 7, ABORT).data, 21, "h", 0x35), "SEG-COD-001", id="marker of undefined codec"),
    ],
)
def test_what_stays(entry: bytes, remark: str | None) -> None:
    scan = scanned(FIRST, entry)
    assert scan.cut is None
    assert scan.next_offset > 2
    assert [each.requirements for each in scan.remarks] == ([] if remark is None else [(remark,)])


def control(key: bytes | None, value: bytes | None, producer: int = 7) -> bytes:
    attributes = CONTROL | (TRANSACTIONAL if producer >= 0 else 0)
    return batch(record(key=key, value=value), base_offset=2, attributes=attributes, producer_id=producer)


@pytest.mark.req("SEG-RCV-008")
@pytest.mark.parametrize(
    ("key", "value", "requirement"),
    [
        (b"\0\0\0", bytes(6), "SEG-CTL-001"),
        (None, bytes(6), "SEG-CTL-001"),
        (b"\xff\xff\0\0", bytes(6), "SEG-CTL-001"),
        (bytes(4), bytes(5), "SEG-CTL-004"),
        (bytes(4), None, "SEG-CTL-004"),
        (bytes(4), b"\xff\xff" + bytes(4), "SEG-CTL-004"),
    ],
)
def test_an_end_marker_that_cannot_be_read_is_damage(key: bytes | None, value: bytes | None, requirement: str) -> None:
    scan = scanned(FIRST, control(key, value), data_batch(3, [1]).data)
    assert (scan.cut.position, scan.next_offset) == (len(FIRST), 2)
    assert scan.cut.requirements == ("SEG-RCV-008", requirement)
    assert [each.requirements for each in scan.remarks] == [(requirement,)]
    assert scanned(FIRST, control(key, value, producer=-1), data_batch(3, [1]).data).cut is None


@pytest.mark.req("SEG-RCV-006", "SEG-RCV-004")
def test_a_segment_without_an_offset_index_is_scanned(tmp_path: Path) -> None:
    made = MadeLog(SIX | {3: [SIX[3][0], broken(SIX[3][1])]})
    plan = planned(tmp_path, made, point=6, without_3=True).plan
    assert (plan.scanned, plan.dropped, plan.log_end_offset) == ((3, 6), (), 10)
    assert (plan.cut.base_offset, plan.cut.next_offset) == (3, 4)
    assert not plan.remarks


@pytest.mark.req("SEG-RCV-006", "SEG-RCV-001")
def test_it_is_scanned_after_a_clean_shutdown_too(tmp_path: Path) -> None:
    plan = planned(tmp_path, MadeLog(SIX), clean=True, without_0=True).plan
    assert (plan.scanned, plan.changes_log, plan.log_end_offset) == ((0,), False, 10)


@pytest.mark.req("SEG-RCV-004", "SEG-RCV-006")
def test_brokers_keep_what_follows_a_cut_segment_without_an_offset_index(tmp_path: Path) -> None:
    made = MadeLog(SIX | {3: [SIX[3][0], broken(SIX[3][1])]})
    plan = planned(tmp_path, made, point=0, without_3=True).plan
    assert (plan.scanned, plan.dropped, plan.log_end_offset) == ((0, 3), (6,), 4)
    (remark,) = plan.remarks
    assert remark.requirements == ("SEG-PDR-012",)


@pytest.mark.req("SEG-RCV-034")
@pytest.mark.parametrize(("last_offset", "scanned"), [(2, (3,)), (3, ())])
def test_a_transaction_index_that_reaches_below_its_segment(
    last_offset: int, scanned: tuple[int, ...], tmp_path: Path
) -> None:
    entry = bytes(2) + (7).to_bytes(8, "big") + bytes(8) + last_offset.to_bytes(8, "big") + bytes(8)
    planned(tmp_path, MadeLog(SIX), clean=True)
    (tmp_path / "topic-0" / f"{3:020}.txnindex").write_bytes(entry)
    assert plan_for_partition(tmp_path / "topic-0").plan.scanned == scanned


@pytest.mark.req("SEG-RCV-007")
@pytest.mark.parametrize(("start", "restarts"), [(0, False), (9, False), (10, False), (11, True), (500, True)])
def test_a_log_that_ends_below_its_start_begins_anew(start: int, restarts: bool, tmp_path: Path) -> None:  # noqa: FBT001
    plan = planned(tmp_path, MadeLog(SIX), start=start).plan
    assert (plan.restarts, plan.log_end_offset) == (restarts, max(start, 10))
    assert plan.dropped == ((0, 3, 6) if restarts else ())


def test_a_partition_without_segments(tmp_path: Path) -> None:
    found = planned(tmp_path, MadeLog({}), start=4)
    assert (found.plan.scanned, found.plan.cut, found.plan.log_end_offset) == ((), None, 4)


@pytest.mark.req("SEG-RCV-002")
def test_the_metadata_log_is_always_scanned(tmp_path: Path) -> None:
    planned(tmp_path, MadeLog(SIX), point=6, clean=True)
    (tmp_path / "topic-0").rename(tmp_path / "__cluster_metadata-0")
    plan = plan_for_partition(tmp_path / "__cluster_metadata-0").plan
    assert (plan.scanned, plan.recovery_point) == ((0, 3, 6), 0)


@pytest.mark.req("SEG-RCV-001")
def test_a_damaged_end_of_an_unscanned_log_is_remarked(tmp_path: Path) -> None:
    made = MadeLog(SIX, tails={6: b"\0" * 11 + b"\5" + bytes(20)})
    plan = planned(tmp_path, made, clean=True).plan
    assert (plan.log_end_offset, plan.changes_log) == (10, False)
    (remark,) = plan.remarks
    assert remark.requirements == ("SEG-LOG-003",)


def test_segments_can_be_planned_without_a_log_directory(tmp_path: Path) -> None:
    listing = list_partition(MadeLog(SIX).write(tmp_path / "anywhere"))
    segments = [LogSegment(files) for files in listing.segments]
    plan = plan_recovery(segments, recovery_point=7)
    assert (plan.scanned, plan.changes_log) == ((0, 3, 6), False)

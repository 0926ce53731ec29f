"""Compare our recovery of single segments with Kafka's ``LogSegment.recover``, on segments damaged at random.

Both of our scans are compared: the one that imitates a broker must give the same bytes, and the default one must give
the same or name the requirement by which it departs.
"""

from __future__ import annotations

import struct
from dataclasses import astuple
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import google_crc32c

from proofs.fuzz.random_damage import damaged
from proofs.fuzz.random_logs import random_log
from proofs.kafka.oracle import Oracle, bytes_of
from proofs.kafka.result import Result
from seglog_format import Origin
from seglog_format.codec.control_record import EndMarker, end_marker_of
from seglog_format.errors import FormatError, Location
from seglog_format.log.index_file import encode_offset_index, encode_time_index
from seglog_format.recovery.broker_scan import BrokerScan, Outcome, broker_scan
from seglog_format.recovery.entry_walk import recoverable_frames
from seglog_format.recovery.segment_scan import SegmentScan, encode_transaction_index, scan_segment, side_files_of
from seglog_format.state.producer_state import ProducerStates
from seglog_format.types import IndexSettings, RecordBatchHeader, Transactions

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from seglog_format.types import AbortedTxn, Frame

Producer: TypeAlias = tuple[Any, ...]
"""The fields of an entry of a producer snapshot, starting with the id."""

SNAPSHOT_HEADER: Final = struct.Struct(">hIi")
SNAPSHOT_ENTRY: Final = struct.Struct(">qhiqiqiq")
"""Producer id and epoch, last sequence, last offset, its delta, timestamp, coordinator epoch, first open offset."""
ABOUT: Final = "damaged segments: our recovery scans against LogSegment.recover"
NEWEST: Final = "4.1"
UNDAMAGED_EVERY: Final = 20
EARLIER_CUTS: Final = ("SEG-LOG-006", "SEG-LOG-008", "SEG-RCV-008")
"""Rules by which the default recovery cuts data that brokers may keep."""


def check_recovery(oracles: Sequence[Oracle], seeds: Iterable[int]) -> Result:
    """Recover a segment for each seed, by us and by Kafka.

    Args:
        oracles: one per release to compare.
        seeds: seeds; every twentieth segment is left undamaged.
    """
    result = Result(ABOUT)
    for seed in seeds:
        log = random_log(seed)
        data, damages = (log.data, []) if seed % UNDAMAGED_EVERY == 0 else damaged(seed, log.data)
        result.counts.update(f"damage: {name}" for name in damages or ["none"])
        for oracle in oracles:
            case = _Case(result, oracle, seed, data, log.base_offset, log.interval_bytes)
            case.check()
        result.checked += 1
    return result


class _Case:
    def __init__(
        self, result: Result, oracle: Oracle, seed: int, data: bytes, base_offset: int, interval_bytes: int
    ) -> None:
        self.result = result
        self.release = oracle.release
        self.name = f"segment {seed}, Kafka {oracle.version}"
        self.data = memoryview(data)
        self.base_offset = base_offset
        self.settings = IndexSettings(interval_bytes)
        config = {"index.interval.bytes": interval_bytes}
        self.answer = oracle.ask("recover", baseOffset=base_offset, config=config, log=data.hex())

    def check(self) -> None:
        """Compare both scans with Kafka's result."""
        scan = broker_scan(self.data, self.base_offset, settings=self.settings)
        outcome = outcome_of(self.answer)
        if outcome is Outcome.FAILURE and scan.outcome is Outcome.RECOVERED and self._end(scan) is None:
            self.result.counts[f"Kafka {self.release}: no start after recovery"] += 1
            return
        self.result.counts[f"Kafka {self.release}: {outcome.value}"] += 1
        if not self.result.equal(self.name, "outcome", scan.outcome, outcome):
            return
        if outcome is Outcome.RECOVERED:
            self._compare_broker_scan(scan)
        self._compare_default_scan(scan)

    def _end(self, scan: BrokerScan) -> int | None:
        return scan.next_offset_since_4_1 if self.release == NEWEST else scan.next_offset

    def _compare_broker_scan(self, scan: BrokerScan) -> None:
        equal, answer, base = self.result.equal, self.answer, self.base_offset
        equal(self.name, "log size", scan.valid_size, len(bytes_of(answer, "log")))
        equal(self.name, "next offset", self._end(scan), answer["nextOffset"])
        equal(self.name, "index", encode_offset_index(scan.offset_entries, base), bytes_of(answer, "index"))
        equal(self.name, "timeindex", encode_time_index(scan.time_entries, base), bytes_of(answer, "timeindex"))
        equal(self.name, "txnindex", encode_transaction_index(scan.aborted), bytes_of(answer, "txnindex"))
        equal(self.name, "snapshot", producers_in(self.data[: scan.valid_size], base), snapshot_of(answer))

    def _compare_default_scan(self, scan: BrokerScan) -> None:
        """Expect the same log, offset and indexes; or another log, with a requirement for the difference."""
        ours = scan_segment(self.data, self.base_offset)
        kept = len(self.data) if ours.cut is None else ours.cut.position
        departure = self._departure(ours, kept, scan)
        if departure:
            self.result.departures[departure] += 1
            return
        self._compare_kept(ours, kept)

    def _departure(self, ours: SegmentScan, kept: int, scan: BrokerScan) -> str:
        if scan.outcome is Outcome.OVERFLOW:
            return "SEG-RCV-022"
        if scan.outcome is Outcome.INVALID_OFFSET:
            return "SEG-RCV-023"
        if scan.outcome is Outcome.FAILURE:
            return f"brokers do not start: {scan.requirements[0]}"
        cut = ours.cut
        if kept < scan.valid_size and cut is not None:
            return next((id_ for id_ in EARLIER_CUTS if id_ in cut.requirements), "")
        return ""

    def _compare_kept(self, ours: SegmentScan, kept: int) -> None:
        equal, answer = self.result.equal, self.answer
        equal(self.name, "log size by default", kept, len(bytes_of(answer, "log")))
        files = side_files_of(self.data, self.base_offset, self.settings, transactions=Transactions(), end=kept)
        equal(self.name, "index by default", files.offset_index, bytes_of(answer, "index"))
        equal(self.name, "timeindex by default", files.time_index, bytes_of(answer, "timeindex"))
        equal(self.name, "txnindex by default", files.transaction_index, bytes_of(answer, "txnindex"))
        if self.release != NEWEST or answer["nextOffset"] != self.base_offset:
            equal(self.name, "next offset by default", ours.next_offset, answer["nextOffset"])


def outcome_of(answer: dict[str, Any]) -> Outcome:
    """Return the outcome of Kafka's recovery."""
    if "emptied" in answer:
        return Outcome.INVALID_OFFSET
    if "error" not in answer:
        return Outcome.RECOVERED
    return Outcome.OVERFLOW if answer["error"] == "LogSegmentOffsetOverflowException" else Outcome.FAILURE


def snapshot_of(answer: dict[str, Any]) -> list[Producer]:
    """Return the entries of a snapshot by producer id; its checksum is verified."""
    data = bytes_of(answer, "snapshot")
    return sorted_entries(data) if data else []


def sorted_entries(data: bytes) -> list[Producer]:
    """Return the entries of a snapshot by producer id, parsed here; its checksum is verified.

    Raises:
        ValueError: the snapshot is damaged.
    """
    version, checksum, count = SNAPSHOT_HEADER.unpack_from(data)
    entries = data[SNAPSHOT_HEADER.size :]
    if version != 1 or checksum != google_crc32c.value(data[6:]) or len(entries) != count * SNAPSHOT_ENTRY.size:
        msg = f"a snapshot of {len(data)} bytes is damaged: {data[:10].hex()}"
        raise ValueError(msg)
    return sorted(SNAPSHOT_ENTRY.iter_unpack(entries))


def producers_in(data: memoryview, base_offset: int) -> list[Producer]:
    """Return the producer state from the batches of a log, read one by one."""
    return replayed(([frame] for frame in recoverable_frames(data)), base_offset)[0]


def replayed(appends: Iterable[Sequence[Frame]], base_offset: int) -> tuple[list[Producer], tuple[AbortedTxn, ...]]:
    """Return the producer state from batches, and the transactions that they abort.

    Args:
        appends: entries, grouped by append: a group decides which transactions count as open at a marker.
        base_offset: base offset of the segment.
    """
    states = ProducerStates(end_offset=base_offset)
    aborted: list[AbortedTxn] = []
    for frames in appends:
        try:
            batches = [_with_marker(frame) for frame in frames if _has_producer(frame)]
        except FormatError:
            break  # the last batch that is kept: brokers ignore its producer state
        aborted += states.apply(states.changes(batches, Origin.REPLICATION), frames[-1].header.next_offset)
    return [astuple(producer.to_entry()) for producer in states.producers], tuple(aborted)


def _has_producer(frame: Frame) -> bool:
    return isinstance(frame.header, RecordBatchHeader) and frame.header.producer_id >= 0


def _with_marker(frame: Frame) -> tuple[RecordBatchHeader, EndMarker | None]:
    assert isinstance(frame.header, RecordBatchHeader)
    return frame.header, end_marker_of(frame, Location(position=frame.position))

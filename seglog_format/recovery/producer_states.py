"""The producers of a log without a snapshot: when a broker forgets them, and their states from the log (chapter 50).

A broker that starts after a clean shutdown takes a log without any producer snapshot for one without producers. After
an unclean shutdown, or if there is any snapshot, even one that cannot be read, it computes the states from the log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog_format.codec.control_record import end_marker_of
from seglog_format.errors import Location, SeglogError, UnreadableError
from seglog_format.log.index_file import without_strays
from seglog_format.model import NO_PRODUCER_ID, Frame, RecordBatchHeader
from seglog_format.recovery.entry_walk import recoverable_frames
from seglog_format.recovery.plan import reason_to_scan
from seglog_format.state.producer_state import Origin, ProducerStates
from seglog_format.storage.files import Replace

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from seglog_format.log.listing import NamedFile
    from seglog_format.log.segment import LogSegment
    from seglog_format.recovery.plan import Circumstances


def forgets_producers(
    segments: Sequence[LogSegment], snapshots: Iterable[NamedFile], circumstances: Circumstances
) -> bool:
    """Return whether a broker that starts on a log takes it for one without producers (SEG-PSN-010).

    It does not after it has scanned a segment: it then has the states at the end of that segment.

    Args:
        segments: of the partition, in order.
        snapshots: of the partition.
        circumstances: facts from the log directory.
    """
    bases = [segment.base_offset for segment in segments]
    is_without = circumstances.has_clean_shutdown and not without_strays(snapshots, bases)
    return is_without and not any(reason_to_scan(segment) for segment in segments)


def states_from_logs(ends: Iterable[tuple[LogSegment, int]], log_start_offset: int) -> ProducerStates:
    """Return the states at the end of a log from its batches alone, as a broker computes them.

    Checksums are not checked, as brokers do not check them here. What a broker cannot apply is left out.

    Args:
        ends: segments in order, each with the number of bytes that count.
        log_start_offset: batches that end below it do not count.

    Raises:
        UnreadableError: the disk refuses a log (SEG-PDR-022).
    """
    states = ProducerStates()
    for segment, end in ends:
        for frame in recoverable_frames(segment.source, end, segment.path):
            header = frame.header
            is_of_producer = isinstance(header, RecordBatchHeader) and header.producer_id > NO_PRODUCER_ID
            if is_of_producer and header.next_offset > log_start_offset:
                _apply(states, frame, segment.path)
    return states


def snapshot_steps(path: Path, ends: Iterable[tuple[LogSegment, int]], log_start_offset: int) -> Iterator[Replace]:
    """Write the states at the end of a log as a snapshot, if there are any (SEG-PSN-010).

    Args:
        path: of the snapshot.
        ends: as for `states_from_logs`.
        log_start_offset: the same.

    Raises:
        UnreadableError: the disk refuses a log (SEG-PDR-022).
    """
    states = states_from_logs(ends, log_start_offset)
    if states.producers:
        yield Replace(path, states.snapshot(), "SEG-PSN-010")


def _apply(states: ProducerStates, frame: Frame, path: str) -> None:
    header = frame.header
    assert isinstance(header, RecordBatchHeader)
    try:
        marker = end_marker_of(frame, Location(path, frame.position))
        changes = states.changes([(header, marker)], Origin.REPLICATION)
    except UnreadableError:
        raise
    except SeglogError:
        return
    states.apply(changes, header.next_offset)

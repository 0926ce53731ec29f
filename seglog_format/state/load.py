"""What a writer has to know of a log before it goes on with it: read from a directory that was closed cleanly."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from seglog_format.codec.checkpoints import decode_leader_epoch_checkpoint
from seglog_format.codec.end_marker import end_marker_of
from seglog_format.codec.framing import walk
from seglog_format.codec.index_entries import usable_offset_slots, usable_time_slots
from seglog_format.codec.producer_snapshot import decode_producer_snapshot
from seglog_format.errors import FormatError, Location, UsageError
from seglog_format.model import NO_PARTITION_LEADER_EPOCH, NO_TIMESTAMP, RecordBatchHeader, TimestampOffset
from seglog_format.names import FileKind, parse_file_name, segment_file_name
from seglog_format.schema.fixed_fields import OFFSET_INDEX_ENTRY, TIME_INDEX_ENTRY
from seglog_format.state.leader_epochs import EpochRises, LeaderEpochs
from seglog_format.state.producer import producer_from
from seglog_format.state.producer_state import Origin, ProducerStates
from seglog_format.state.segment_start import SegmentStart

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from seglog_format.model import Frame
    from seglog_format.packing import Packer
    from seglog_format.small_model import EpochStart
    from seglog_format.storage.files import Files

LEFTOVERS: Final = frozenset({".deleted", ".cleaned", ".tmp"})
"""Endings of files that every start of a broker removes."""


@dataclass(frozen=True, slots=True)
class LoadedLog:
    """A log as it was closed.

    Attributes:
        base_offsets: of its segments, ascending.
        start: what is in the last of them.
        end_offset: log end offset.
        producers: what it knows of its producers.
        epochs: its leader epochs.
        newest_epoch: the newest leader epoch that the checkpoint or a batch names; -1 where there is none.
        has_more_epochs: a batch names one that the checkpoint lacks.
    """

    base_offsets: tuple[int, ...]
    start: SegmentStart
    end_offset: int
    producers: ProducerStates
    epochs: LeaderEpochs
    newest_epoch: int = NO_PARTITION_LEADER_EPOCH
    has_more_epochs: bool = False


class LogLoader:
    """Reads a partition directory through a file layer.

    Args:
        files: where it is.
        directory: of the partition.
    """

    def __init__(self, files: Files, directory: Path) -> None:
        self._files = files
        self._directory = directory

    def base_offsets(self) -> tuple[int, ...]:
        """Of the segments, ascending; files that were on their way out are removed.

        Raises:
            UsageError: the directory needs recovery first.
        """
        found = []
        for name in self._files.names(self._directory):
            meaning = parse_file_name(name)
            if name.endswith(tuple(LEFTOVERS)):
                self._files.remove(self._directory / name)
            elif meaning is not None and (meaning.suffix or not meaning.is_canonical):
                msg = f"{self._directory / name} is left from something that did not end: recover the directory first"
                raise UsageError(msg)
            elif meaning is not None and meaning.kind is FileKind.LOG:
                found.append(meaning.base_offset)
        return tuple(sorted(found))

    def load(self, log_start_offset: int, *, has_producer_state: bool) -> LoadedLog | None:
        """Everything that a writer needs; None where there is no segment.

        Args:
            log_start_offset: as checkpointed, or 0.
            has_producer_state: whether this generation of brokers keeps any.

        Raises:
            UsageError: the directory needs recovery first.
            FormatError: a log cannot be read to its end.
        """
        base_offsets = self.base_offsets()
        if not base_offsets:
            return None
        start, end_offset, epoch_starts = self._last_segment(base_offsets[-1])
        if not start.size:
            epoch_starts = self._last_epoch_starts(base_offsets[:-1])
        if not has_producer_state:
            return LoadedLog(base_offsets, start, end_offset, ProducerStates(), LeaderEpochs())
        self._remove_stray_snapshots(base_offsets, end_offset)
        producers = self.producers(base_offsets, end_offset)
        epochs = self._epochs()
        known = max((entry.epoch for entry in epochs.entries), default=NO_PARTITION_LEADER_EPOCH)
        newer = [rise for rise in epoch_starts if rise.epoch > known]
        for rise in newer:
            epochs.assign(*rise)
        epochs.truncate_to(end_offset)
        epochs.start_at(max(log_start_offset, base_offsets[0]))
        newest_epoch = newer[-1].epoch if newer else known
        return LoadedLog(base_offsets, start, end_offset, producers, epochs, newest_epoch, bool(newer))

    def _frames(self, base_offset: int) -> Iterator[Frame]:
        path = self._path(base_offset, FileKind.LOG)
        return iter(walk(self._files.read(path), path=str(path)))

    def _path(self, base_offset: int, kind: FileKind) -> Path:
        return self._directory / segment_file_name(base_offset, kind)

    def _last_segment(self, base_offset: int) -> tuple[SegmentStart, int, list[EpochStart]]:
        """What is in it, the log end offset, and where leader epochs rise."""
        start, end_offset, rises = SegmentStart(), base_offset, EpochRises()
        for frame in self._frames(base_offset):
            header = frame.header
            if not start.size:
                start = replace(start, first_timestamp_ms=header.max_timestamp_ms)
            if start.largest is None or header.max_timestamp_ms > start.largest.timestamp_ms:
                largest = TimestampOffset(header.max_timestamp_ms, header.last_offset)
                start = replace(start, largest=largest)
            start, end_offset = replace(start, size=frame.end), header.next_offset
            rises.add(header)
        return self._with_indexes(start, base_offset), end_offset, rises.starts

    def _with_indexes(self, start: SegmentStart, base_offset: int) -> SegmentStart:
        """A largest timestamp in the time index is more than a guess: its offset follows that broker's rule."""
        offset_fields = self._slots(base_offset, FileKind.OFFSET_INDEX, OFFSET_INDEX_ENTRY)
        time_fields = self._slots(base_offset, FileKind.TIME_INDEX, TIME_INDEX_ENTRY)
        offset_count = usable_offset_slots(offset_fields)
        times = time_fields[: usable_time_slots(time_fields)]
        last = TimestampOffset(times[-1][0], base_offset + times[-1][1]) if times else None
        if last is not None and start.largest is not None and last.timestamp_ms >= start.largest.timestamp_ms:
            start = replace(start, largest=last)
        return replace(
            start,
            offset_entry_count=sum(position < start.size for _, position in offset_fields[:offset_count]),
            time_entry_count=len(times),
            last_time_entry_ms=last.timestamp_ms if last is not None else NO_TIMESTAMP,
        )

    def largest_timestamp_ms(self, base_offset: int) -> int:
        """Largest timestamp of a segment that is written no more: the last one of its time index, or else of its log.

        Returns:
            Milliseconds since 1970; -1 where there is none.

        Raises:
            FormatError: there is no entry in the time index, and the log cannot be read to its end.
        """
        times = self._slots(base_offset, FileKind.TIME_INDEX, TIME_INDEX_ENTRY)
        usable = times[: usable_time_slots(times)]
        if usable:
            return usable[-1][0]
        return max((frame.header.max_timestamp_ms for frame in self._frames(base_offset)), default=NO_TIMESTAMP)

    def _slots(self, base_offset: int, kind: FileKind, layout: Packer) -> list[tuple[int, int]]:
        path = self._path(base_offset, kind)
        data = self._files.read(path) if self._files.exists(path) else b""
        return [(first, second) for first, second in layout.iter_unpack(data[: len(data) - len(data) % layout.size])]

    def _snapshots(self) -> list[int]:
        meanings = (parse_file_name(name) for name in self._files.names(self._directory))
        found = (m for m in meanings if m is not None and m.kind is FileKind.PRODUCER_SNAPSHOT)
        return sorted(meaning.base_offset for meaning in found if not meaning.suffix)

    def _remove_stray_snapshots(self, base_offsets: Sequence[int], end_offset: int) -> None:
        """Those of no segment go, save the newest if it lies above all of them; so do those past the end."""
        snapshots = [offset for offset in self._snapshots() if offset <= end_offset]
        kept = {offset for offset in snapshots if offset in base_offsets} | {
            offset for offset in snapshots[-1:] if offset > base_offsets[-1]
        }
        for offset in set(self._snapshots()) - kept:
            self._files.remove(self._path(offset, FileKind.PRODUCER_SNAPSHOT))

    def producers(self, base_offsets: Sequence[int], end_offset: int) -> ProducerStates:
        """What the log knows of its producers: from the newest snapshot that can be read, and the log after it.

        Args:
            base_offsets: of the segments, ascending.
            end_offset: of the log.

        Raises:
            FormatError: a log cannot be read to its end.
        """
        states = self._newest_snapshot() or ProducerStates(end_offset=base_offsets[0])
        for base_offset, next_base_offset in zip(base_offsets, (*base_offsets[1:], end_offset), strict=True):
            if next_base_offset > states.end_offset:
                self._replay(states, base_offset)
        states.end_offset = end_offset
        return states

    def _newest_snapshot(self) -> ProducerStates | None:
        for offset in reversed(self._snapshots()):
            path = self._path(offset, FileKind.PRODUCER_SNAPSHOT)
            try:
                found = decode_producer_snapshot(self._files.read(path), Location(str(path)))
            except FormatError:
                continue
            return ProducerStates(map(producer_from, found.producers), offset)
        return None

    def _replay(self, states: ProducerStates, base_offset: int) -> None:
        path = str(self._path(base_offset, FileKind.LOG))
        for frame in self._frames(base_offset):
            header = frame.header
            if not isinstance(header, RecordBatchHeader) or header.base_offset < states.end_offset:
                continue
            marker = end_marker_of(frame, Location(path, frame.position))
            states.apply(states.changes([(header, marker)], Origin.REPLICATION), header.next_offset)

    def _epochs(self) -> LeaderEpochs:
        path = self._directory / FileKind.LEADER_EPOCH_CHECKPOINT.value
        data = self._files.read(path) if self._files.exists(path) else b""
        return LeaderEpochs(decode_leader_epoch_checkpoint(data, Location(str(path))).entries)

    def _last_epoch_starts(self, base_offsets: Sequence[int]) -> list[EpochStart]:
        """Where leader epochs rise in the last of these segments that has an entry."""
        rises = EpochRises()
        for base_offset in reversed(base_offsets):
            for frame in self._frames(base_offset):
                rises.add(frame.header)
            if rises.has_entries:
                break
        return rises.starts

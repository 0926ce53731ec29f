"""The files of a partition that a broker opens, for a recovery that imitates one (chapters 10 and 71).

A broker parses the number before the first full stop of a name, and then opens the file with the name that it would
itself write for that number. So it ignores a log that spells its number in another way, and creates an empty log beside
it. If a name has no number, the broker does not start.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final

from seglog_format.codec.checkpoints import decode_leader_epoch_checkpoint
from seglog_format.decimal_text import parse_decimal
from seglog_format.errors import FormatError, Location
from seglog_format.log.listing import CLEANED, SWAP, SegmentFiles
from seglog_format.log.segment import LogSegment
from seglog_format.names import INDEX_KINDS, NUMBERED_KINDS, OFFSET_DIGITS, FileKind, printable
from seglog_format.recovery.broker_scan import BrokerStopError, Outcome, broker_scan, trusted_end
from seglog_format.recovery.segment_scan import Remark
from seglog_format.schema.fixed_fields import OFFSET_INDEX_ENTRY
from seglog_format.state.index_build import encode_offset_index, encode_time_index
from seglog_format.storage.file_bytes import FileBytes, open_log, read_whole
from seglog_format.storage.file_reader import FileReader
from seglog_format.storage.files import Remove, Replace, Truncate, settled

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from seglog_format.log.listing import PartitionListing
    from seglog_format.recovery.index_settings import IndexSettings
    from seglog_format.storage.byte_source import SourceFile
    from seglog_format.storage.files import FileStep

SEGMENT_INDEX_BYTES: Final = 10 * 1024 * 1024 // OFFSET_INDEX_ENTRY.size * OFFSET_INDEX_ENTRY.size
"""Size of an index that a broker creates: the default of `segment.index.bytes`, in whole entries."""
NUMBERED: Final = tuple(kind.value for kind in NUMBERED_KINDS)
INDEXES: Final = tuple(kind.value for kind in INDEX_KINDS)


class CreatedSegment(LogSegment):
    """An empty segment that a broker creates."""

    @property
    def source(self) -> SourceFile:
        """An empty source."""
        if self._bytes is None:
            nothing = FileReader(self.path, os.open(os.devnull, os.O_RDONLY), 0)
            self._bytes = FileBytes(self.path, 0, nothing)
        return self._bytes


def broker_file_name(offset: int, ending: str) -> str:
    """Return the name under which a broker opens a file; the sign of a negative offset precedes the 20 digits."""
    return f"{'-' * (offset < 0)}{abs(offset):0{OFFSET_DIGITS}d}{ending}"


def end_of_swap(path: Path) -> int:
    """Return the first offset after a ``.log.swap`` file as a broker finds it; an empty file ends at its base offset.

    An entry at which the broker stops is ignored here; the plan reports it.
    """
    base_offset = parse_decimal(path.name.partition(".")[0], bits=64) or 0
    index = path.with_name(path.name.replace(FileKind.LOG.value, FileKind.OFFSET_INDEX.value))
    with LogSegment(SegmentFiles(base_offset, path, index if index.exists() else None)) as segment:
        try:
            return trusted_end(segment)
        except BrokerStopError:
            return base_offset


def _is_brokers_name(path: Path, offset: int) -> bool:
    return path.name.removesuffix(SWAP) == broker_file_name(offset, path.suffixes[0])


def unreadable_epochs(directory: Path) -> Remark | None:
    """Return why brokers do not start if they cannot read the leader epoch checkpoint; None if they can."""
    path = directory / FileKind.LEADER_EPOCH_CHECKPOINT.value
    try:
        entries = (
            decode_leader_epoch_checkpoint(read_whole(path), Location(str(path))).entries if path.is_file() else ()
        )
    except FormatError as error:
        text = f"brokers do not start: {error.location.field}: expected {error.expected}, found {error.found}"
        return Remark(error.location, error.requirements, text)
    for epoch, start_offset in entries:
        if epoch < 0 or start_offset < 0:
            text = f"brokers do not start: epoch {epoch} begins at offset {start_offset}"
            return Remark(Location(str(path)), ("SEG-CKP-007",), text)
    return None


@dataclass(frozen=True)
class BrokerFiles:
    """A broker's view of the names in a partition directory.

    Attributes:
        listing: of the directory.
        is_first_round: whether a broker still has to create missing files, and to remove files that are due for
            removal. It does so once, before it recovers anything.
    """

    listing: PartitionListing
    is_first_round: bool = True

    @cached_property
    def _offsets(self) -> dict[str, int | None]:
        """The number in each name that a broker parses, None if there is no number; in the order of the names."""
        names = sorted(path.name for path in self.listing.path.iterdir() if path.is_file())
        parsed = [name for name in names if name.endswith((*NUMBERED, SWAP, CLEANED))]
        return {name: parse_decimal(name.partition(".")[0], bits=64) for name in parsed}

    @cached_property
    def _created(self) -> tuple[int, ...]:
        """Offsets of logs that exist only under names that a broker does not open."""
        if not self.is_first_round:
            return ()
        logs = {offset for name, offset in self._offsets.items() if offset is not None and name.endswith(".log")}
        opened = {files.base_offset for files in self._opened}
        return tuple(sorted(o for o in logs - opened if broker_file_name(o, ".log") not in self._offsets))

    @cached_property
    def _opened(self) -> list[SegmentFiles]:
        """Segments whose log a broker opens, each with the indexes that the broker opens."""
        return [
            self._with_indexes(files)
            for files in self.listing.segments
            if files.log.name.endswith(SWAP) or _is_brokers_name(files.log, files.base_offset)
        ]

    def _with_indexes(self, files: SegmentFiles) -> SegmentFiles:
        base, log, *companions = files
        index, *others = (each if each and _is_brokers_name(each, base) else None for each in companions)
        if log.name.endswith(SWAP) and (index is None or not index.name.endswith(SWAP)):
            index = self._swap_index_path(base)
        return SegmentFiles(base, log, index, *others)

    def _swap_index_path(self, base_offset: int) -> Path:
        return self.listing.path / broker_file_name(base_offset, FileKind.OFFSET_INDEX.value + SWAP)

    def listed(self) -> PartitionListing:
        """Return the listing of the files that a broker opens, including those that it first creates."""
        created = [SegmentFiles(o, self.listing.path / broker_file_name(o, ".log")) for o in self._created if o >= 0]
        segments = tuple(sorted((*self._opened, *created)))
        return self.listing._replace(segments=segments, base_offsets=tuple(files.base_offset for files in segments))

    def segment_type(self, files: SegmentFiles) -> type[LogSegment]:
        """Return the class that opens a segment of `listed`."""
        return CreatedSegment if files.base_offset in self._created else LogSegment

    def failure(self) -> Remark | None:
        """Return why nothing may be done; None if there is no such reason.

        The reasons: a name has no number, a broker does not open the name of a replacement, or it cannot read the
        leader epochs. Beside a replacement that it does not open, a broker creates an empty one, which replaces the
        existing files.
        """
        for name, offset in self._offsets.items():
            if offset is None:
                return self._remark(name, "brokers do not start: they find no number before the first full stop")
            plain = name.removesuffix(SWAP)
            if name != plain and plain.endswith(NUMBERED) and not _is_brokers_name(self.listing.path / name, offset):
                return self._remark(name, "nothing is done: brokers put an empty file in the place of this replacement")
        return unreadable_epochs(self.listing.path)

    def _remark(self, name: str, text: str) -> Remark:
        return Remark(Location(str(self.listing.path / printable(name)), field="base_offset"), ("SEG-PDR-005",), text)

    def index_steps(self) -> tuple[FileStep, ...]:
        """Create the missing index of each finished replacement: zeros, which a broker takes for entries."""
        zeros = [self._swap_index_path(files.base_offset) for files in self._opened if files.log.name.endswith(SWAP)]
        missing = [path for path in zeros if not path.exists()]
        data = bytes(SEGMENT_INDEX_BYTES) if missing else b""
        return tuple(Replace(path, data, "SEG-PDR-010") for path in missing)

    def naming_steps(self, settings: IndexSettings) -> tuple[FileStep, ...]:
        """Create logs, remove indexes without a log, and handle segments below offset 0."""
        return settled(
            (*self._removals(), *self._empty_logs(), *self._negative_offset_steps(settings)), self.listing.path
        )

    def _removals(self) -> Iterator[FileStep]:
        known = {file.path.name for file in self.listing.files}
        removed = {file.path.name for file in (*self.listing.orphans, *self.listing.set_aside)}
        for name, offset in self._offsets.items():
            path = self.listing.path / name
            is_orphan = name.endswith(INDEXES) and broker_file_name(offset or 0, ".log") not in self._offsets
            if name.endswith(CLEANED) and name not in known:
                yield Remove(path, "SEG-RCV-020")
            elif is_orphan and name not in removed:
                yield Remove(path, "SEG-RCV-026")

    def _empty_logs(self) -> Iterator[FileStep]:
        for offset in self._created:
            yield Replace(self.listing.path / broker_file_name(offset, ".log"), b"", "SEG-PDR-005")

    def _negative_offset_steps(self, settings: IndexSettings) -> Iterator[FileStep]:
        """Index the segments below offset 0 that have no index, and truncate their damage."""
        below = {offset for offset in self._offsets.values() if offset is not None and offset < 0}
        for offset in sorted(below):
            log, index, times = (
                self.listing.path / broker_file_name(offset, ending) for ending in (".log", ".index", ".timeindex")
            )
            if offset in self._created:
                yield from (Replace(index, b"", "SEG-PDR-007"), Replace(times, b"", "SEG-PDR-007"))
            elif log.name in self._offsets and index.name not in self._offsets:
                with open_log(log) as file:
                    scan = broker_scan(file, offset, str(log), settings=settings)
                    size = file.size
                if scan.outcome is Outcome.RECOVERED:
                    yield from (Truncate(log, scan.valid_size, "SEG-PDR-007"),) if scan.valid_size < size else ()
                    yield Replace(index, encode_offset_index(scan.offset_entries, offset), "SEG-PDR-007")
                    yield Replace(times, encode_time_index(scan.time_entries, offset), "SEG-PDR-007")

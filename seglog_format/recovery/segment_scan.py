"""What recovery finds in one segment: how much of it stays, and why no more (chapter 71)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from seglog_format.codec.decode import verify_checksum
from seglog_format.codec.end_marker import end_marker_of, lacks_end_marker
from seglog_format.codec.framing import frame_at, whole_frame
from seglog_format.errors import (
    CorruptRecordError,
    FormatError,
    Location,
    UnreadableError,
    UnsupportedVersionError,
)
from seglog_format.model import GREATEST_OFFSET, INT32_MAX, Frame, Tail
from seglog_format.storage.byte_source import source_of

if TYPE_CHECKING:
    from seglog_format.recovery.volume import SoundEntries, Volume
    from seglog_format.storage.byte_source import ByteSource, Readable

RECOVERY_PREFIX: Final = "SEG-RCV-"

KEPT_MARKER: Final = "brokers keep this entry, and cut behind it"

NO_START: Final = "brokers cannot make an end marker of this, and do not start"

UNREADABLE_MARKER_PREFIXES: Final = ("SEG-COD-", "SEG-CTL-006")
"""What is wrong with a marker on which brokers fail, instead of taking it for damage."""


@dataclass(frozen=True, slots=True)
class Remark:
    """Something in a scanned segment on which brokers do not do what a plan says, or fail.

    Attributes:
        location: of the entry.
        requirements: ids that the entry does not keep.
        text: what brokers do.
    """

    location: Location
    requirements: tuple[str, ...]
    text: str


@dataclass(frozen=True, slots=True)
class Cut:
    """Where a segment ends after recovery.

    Attributes:
        base_offset: of the segment.
        path: of its `.log` file.
        position: bytes that stay.
        size: bytes that go.
        next_offset: the first offset after what stays.
        requirements: ids that decide it: SEG-RCV-003 or SEG-RCV-008, then what the first entry to go does not keep.
        reason: what is wrong there, in words.
    """

    base_offset: int
    path: str
    position: int
    size: int
    next_offset: int
    requirements: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True)
class SegmentScan:
    """What scanning one segment found.

    Attributes:
        base_offset: of the segment.
        next_offset: the first offset after what stays; the base offset where nothing stays.
        cut: None where the whole file stays.
        remarks: on entries that stay, or where the cut is not what every broker does.
    """

    base_offset: int
    next_offset: int
    cut: Cut | None
    remarks: tuple[Remark, ...] = ()


def scan_segment(data: Readable, base_offset: int, path: str = "", *, volume: Volume | None = None) -> SegmentScan:
    """Scan a segment as recovery does: sizes, magic, checksums, order, end markers. Nothing else is decoded.

    Args:
        data: the bytes of the `.log` file.
        base_offset: of the segment.
        path: file name for locations.
        volume: passes over entries that stay without a word; the result is the same with it and without.

    Raises:
        UnreadableError: the disk refuses some of it, which is no reason to cut anything (SEG-PDR-022).
    """
    source = source_of(data, path)
    sound = None if volume is None else volume.sound_entries(source, base_offset)
    scanner = _Scanner(source, base_offset, path, sound)
    try:
        tail = scanner.run()
    except UnreadableError:
        raise
    except FormatError as error:
        found = f"{error.location.field}: expected {error.expected}, found {error.found}"
        return scanner.result(error.requirements, found)
    return scanner.result(("SEG-LOG-004",), f"{tail.kind.value}: {tail.size} bytes")


class _Scanner:
    def __init__(self, source: ByteSource, base_offset: int, path: str, sound: SoundEntries | None) -> None:
        self.sound = sound
        self.source = source
        self.base_offset = base_offset
        self.path = path
        self.position = 0
        self.last_offset = base_offset - 1
        self.remarks: list[Remark] = []

    def run(self) -> Tail:
        """Go on to the first bytes that do not stay.

        Raises:
            FormatError: they are a damaged entry.
        """
        while True:
            if self.sound is not None:
                self.position, self.last_offset = self.sound.after(self.position, self.last_offset)
            at = Location(self.path, self.position)
            found = recoverable_frame_at(self.source, self.position, self.path)
            if isinstance(found, Tail):
                return found
            verify_checksum(found, at)
            self._check_offsets(found, at)
            self._check_end_marker(found, at)
            self.last_offset = found.header.last_offset
            self.position = found.end

    def _check_offsets(self, frame: Frame, at: Location) -> None:
        """Raise at an offset out of order; brokers notice it only in some places, and then do worse."""
        field = at.at("offset", 0, 8)
        first, last = frame.header.base_offset, frame.header.last_offset
        if first is not None and not self.base_offset <= first <= last:
            self._remark(at, "SEG-LOG-008", "brokers may not start, or keep the entry")
            expected = f"offsets from {self.base_offset} up"
            raise CorruptRecordError(field, "SEG-RCV-003", "SEG-LOG-008", expected=expected, found=f"{first} to {last}")
        if last > GREATEST_OFFSET:
            expected = f"at most {GREATEST_OFFSET}"
            raise CorruptRecordError(field, "SEG-RCV-003", "SEG-LOG-013", expected=expected, found=last)
        if last <= self.last_offset:
            self._remark(at, "SEG-LOG-006", "brokers empty the segment if this is where an index entry is due")
            expected = f"a last offset above {self.last_offset}"
            raise CorruptRecordError(field, "SEG-RCV-003", "SEG-LOG-006", expected=expected, found=last)
        if last - self.base_offset > INT32_MAX:
            self._remark(at, "SEG-LOG-009", "brokers from 2.0 on split the segment before this entry")

    def _check_end_marker(self, frame: Frame, at: Location) -> None:
        try:
            marker = end_marker_of(frame, at)
        except UnreadableError:
            raise
        except FormatError as error:
            self._judge_end_marker(error, at)
        else:
            if lacks_end_marker(frame.header, marker):
                self._remark(at, "SEG-CTL-003", NO_START)

    def _judge_end_marker(self, error: FormatError, at: Location) -> None:
        first, *_ = error.requirements
        if first.startswith(UNREADABLE_MARKER_PREFIXES):
            self._remark(at, first, NO_START)
            return
        self._remark(at, first, KEPT_MARKER)
        raise CorruptRecordError(
            error.location, "SEG-RCV-008", *error.requirements, expected=error.expected, found=error.found
        ) from None

    def _remark(self, at: Location, requirement: str, text: str) -> None:
        self.remarks.append(Remark(at, (requirement,), text))

    def result(self, requirements: tuple[str, ...], reason: str) -> SegmentScan:
        """What was found, given what stands at the position that was reached."""
        next_offset, size = self.last_offset + 1, self.source.size - self.position
        if not size:
            return SegmentScan(self.base_offset, next_offset, None, tuple(self.remarks))
        ids = requirements if requirements[0].startswith(RECOVERY_PREFIX) else ("SEG-RCV-003", *requirements)
        cut = Cut(self.base_offset, self.path, self.position, size, next_offset, ids, reason)
        return SegmentScan(self.base_offset, next_offset, cut, tuple(self.remarks))


def recoverable_frame_at(data: Readable, position: int, path: str = "") -> Frame | Tail:
    """The entry at a position; one of a later magic is taken for a record batch, as brokers do.

    Raises:
        FormatError: its size, or a magic below 0.
    """
    source = source_of(data)
    try:
        return frame_at(source, position, source.size, path)
    except UnsupportedVersionError:
        return whole_frame(source, position, 2, Location(path, position))

"""From a run of bytes to entries: the walk that everything else stands on (chapter 20).

The walk trusts nothing but sizes and magic. Checksums, counts and offsets are looked at by whoever needs them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seglog_format.errors import CorruptRecordError, Location, UnsupportedVersionError
from seglog_format.model import (
    ENTRY_PREFIX_SIZE,
    BatchHeader,
    Buffer,
    Frame,
    MessageHeader,
    RecordBatchHeader,
    Tail,
    TailKind,
)
from seglog_format.schema.fixed_fields import (
    ENTRY_PREFIX,
    MAGIC_POSITION,
    MESSAGE_V0_HEADER,
    MESSAGE_V1_HEADER,
    RECORD_BATCH_HEADER,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from struct import Struct

MIN_ENTRY_SIZE: Final = 14
"""Smallest size field: the fixed fields of a magic 0 message (SEG-LOG-003)."""

MAX_TRAILING_SIZE: Final = 17
"""So many bytes at the end of a log are never looked at: they cannot hold a prefix and one byte more (SEG-LOG-002)."""

SHOWN_SIZE: Final = ENTRY_PREFIX.size
"""Bytes of an entry that tell its size and magic."""

ZERO_CHUNK: Final = bytes(1 << 20)

HEADERS: Final[dict[int, tuple[Struct, Callable[..., BatchHeader]]]] = {
    0: (MESSAGE_V0_HEADER, MessageHeader),
    1: (MESSAGE_V1_HEADER, MessageHeader),
    2: (RECORD_BATCH_HEADER, RecordBatchHeader),
}

assert max(MESSAGE_V0_HEADER.size, MESSAGE_V1_HEADER.size) <= ENTRY_PREFIX_SIZE + MIN_ENTRY_SIZE


class FrameWalk:
    """Entries of a log from one position to another; iterate it once.

    Attributes:
        position: where the next entry starts; after the walk, the end of the last whole entry.
        tail: what stands after the last whole entry; known once the walk has ended.
    """

    def __init__(self, data: memoryview, start: int, end: int, path: str) -> None:
        self.data = data
        self.position = start
        self.end = end
        self.path = path
        self.tail = Tail(TailKind.NONE, start, 0)

    def __iter__(self) -> Iterator[Frame]:
        while True:
            frame = frame_at(self.data, self.position, self.end, self.path)
            if isinstance(frame, Tail):
                self.tail = frame
                return
            yield frame
            self.position = frame.end


def walk(data: Buffer, start: int = 0, end: int | None = None, *, path: str = "") -> FrameWalk:
    """Walk the entries of a log.

    Args:
        data: bytes of the log file.
        start: position of an entry.
        end: where to stop; the end of the data by default.
        path: file name for errors.

    Raises:
        FormatError: while iterating: at an entry whose size or magic cannot be right. Nothing after it can be found.
    """
    view = memoryview(data)
    return FrameWalk(view, start, len(view) if end is None else end, path)


def frame_at(data: memoryview, position: int, end: int, path: str = "") -> Frame | Tail:
    """The entry at a position, or what stands there instead at the end of a log.

    Raises:
        CorruptRecordError: the size is below 14 (SEG-LOG-003), or that of a batch below 49 (SEG-BAT-002).
        UnsupportedVersionError: the magic is above 2 (SEG-BAT-004).
    """
    left = end - position
    if left <= MAX_TRAILING_SIZE:
        return Tail(_kind_of_short_tail(data[position:end]), position, left)
    _, size, _, magic = ENTRY_PREFIX.unpack_from(data, position)
    if size == 0 and is_zero(data[position:end]):
        return Tail(TailKind.ZEROS, position, left)
    at = Location(path, position)
    if size < MIN_ENTRY_SIZE:
        raise CorruptRecordError(at.at("size", 8, 4), "SEG-LOG-003", expected="14 or more", found=size)
    if size > left - ENTRY_PREFIX_SIZE:
        return Tail(TailKind.PARTIAL, position, left)
    if magic not in HEADERS:
        check_magic(magic, at)
    entry = data[position : position + ENTRY_PREFIX_SIZE + size]
    return Frame(position, read_header(entry, magic, at), entry)


def stated_end(data: memoryview, position: int) -> int:
    """How far one has to look to tell what stands at a position: to the end of the entry, as its size field has it.

    Args:
        data: of which at least `SHOWN_SIZE` bytes from there on are known, as far as it has so many.
        position: where an entry may start.
    """
    if len(data) - position <= MAX_TRAILING_SIZE:
        return len(data)
    size: int = ENTRY_PREFIX.unpack_from(data, position)[1]
    return len(data) if size == 0 else position + max(ENTRY_PREFIX_SIZE + size, SHOWN_SIZE)


def _kind_of_short_tail(rest: memoryview) -> TailKind:
    if not rest:
        return TailKind.NONE
    return TailKind.TRAILING if any(rest) else TailKind.ZEROS


def is_zero(data: memoryview) -> bool:
    """Whether a run of bytes is nothing but zeros; quick also for gigabytes, as a broker preallocates them."""
    chunks = (data[start : start + len(ZERO_CHUNK)] for start in range(0, len(data), len(ZERO_CHUNK)))
    return all(bytes(chunk) == ZERO_CHUNK[: len(chunk)] for chunk in chunks)  # views are compared item by item


def check_magic(magic: int, at: Location) -> None:
    """Refuse an entry that is neither a message nor a record batch (SEG-BAT-004)."""
    field = at.at("magic", MAGIC_POSITION, 1)
    if magic < 0:
        raise CorruptRecordError(field, "SEG-BAT-004", expected="0, 1 or 2", found=magic)
    if magic not in HEADERS:
        raise UnsupportedVersionError(field, "SEG-BAT-004", expected="0, 1 or 2", found=magic)


def read_header(entry: memoryview, magic: int, at: Location) -> BatchHeader:
    """The fixed fields of an entry of known magic."""
    layout, header = HEADERS[magic]
    if len(entry) < layout.size:
        least, found = layout.size - ENTRY_PREFIX_SIZE, len(entry) - ENTRY_PREFIX_SIZE
        raise CorruptRecordError(at.at("batch_length", 8, 4), "SEG-BAT-002", expected=f"{least} or more", found=found)
    return header(*layout.unpack_from(entry))

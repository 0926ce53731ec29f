"""From a run of bytes to entries, by their declarations (chapters 20, 30 and 33)."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

from seglog_format.codec.framing import (
    MAX_TRAILING_SIZE,
    MIN_ENTRY_SIZE,
    FrameWalk,
    check_header_size,
    check_magic,
    is_zero,
    short_tail,
)
from seglog_format.errors import CorruptRecordError, Location
from seglog_format.model import (
    ENTRY_PREFIX_SIZE,
    BatchHeader,
    Frame,
    MessageHeader,
    RecordBatchHeader,
    StoredFrame,
    Tail,
    TailKind,
)
from seglog_format.schema.message_set import MessageV0Header, MessageV1Header
from seglog_format.schema.record_batch import EntryPrefix
from seglog_format.schema.record_batch import RecordBatchHeader as RecordBatchHeaderSchema
from seglog_format.storage.byte_source import source_of

if TYPE_CHECKING:
    from construct import Struct

    from seglog_format.storage.byte_source import Readable

HEADERS: Final[dict[int, tuple[Struct, type[BatchHeader]]]] = {
    0: (MessageV0Header, MessageHeader),
    1: (MessageV1Header, MessageHeader),
    2: (RecordBatchHeaderSchema, RecordBatchHeader),
}
"""What declares the fixed fields of an entry, and the model of them, by magic."""


def walk(data: Readable, start: int = 0, end: int | None = None, *, path: str = "") -> FrameWalk:
    """Walk the entries of a log, as `seglog_format.codec.framing.walk` does.

    Args:
        data: bytes of the log file.
        start: position of an entry.
        end: where to stop; the end of the data by default.
        path: file name for errors.

    Raises:
        FormatError: while iterating: at an entry whose size or magic cannot be right.
    """
    source = source_of(data)
    return FrameWalk(source, start, source.size if end is None else end, path, frame_at)


def frame_at(data: Readable, position: int, end: int, path: str = "") -> Frame | Tail:
    """Return the entry at a position, or what stands there instead at the end of a log.

    Args:
        data: bytes of the log file.
        position: where an entry may start.
        end: where the log ends.
        path: file name for errors.

    Raises:
        CorruptRecordError: the size is below 14 (SEG-LOG-003), or that of a batch below 49 (SEG-BAT-002).
        UnsupportedVersionError: the magic is above 2 (SEG-BAT-004).
        UnreadableError: the disk refuses its fixed fields (SEG-PDR-022).
    """
    source, left, at = source_of(data), end - position, Location(path, position)
    if left <= MAX_TRAILING_SIZE:
        return short_tail(source, position, end)
    prefix = EntryPrefix.parse(source.view(position, position + EntryPrefix.sizeof()))
    if prefix.size == 0 and is_zero(source, position, end):
        return Tail(TailKind.ZEROS, position, left)
    if prefix.size < MIN_ENTRY_SIZE:
        raise CorruptRecordError(at.at("size", 8, 4), "SEG-LOG-003", expected="14 or more", found=prefix.size)
    if prefix.size > left - ENTRY_PREFIX_SIZE:
        return Tail(TailKind.PARTIAL, position, left)
    check_magic(prefix.magic, at)
    declaration, model = HEADERS[prefix.magic]
    check_header_size(ENTRY_PREFIX_SIZE + prefix.size, declaration.sizeof(), at)
    header = declaration.parse(source.view(position, position + declaration.sizeof()))
    return StoredFrame(position, model_of(header, model), source)


def model_of(container: Any, model: type[Any]) -> Any:  # noqa: ANN401 - a construct container and what it becomes
    """Return a value of the model with the fields that were parsed; those of the same name, wherever they stand."""
    return model(**{field.name: container[field.name] for field in fields(model) if field.name in container})

"""Parsers of the entries of a log by their declarations (chapters 20, 30 and 33)."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

from seglog_format.codec.decoders import DeclaredFrame
from seglog_format.codec.framing import (
    MAX_TRAILING_SIZE,
    MIN_ENTRY_SIZE,
    check_header_size,
    check_magic,
    short_tail,
    tail_of_size,
)
from seglog_format.errors import Location
from seglog_format.model import ENTRY_PREFIX_SIZE, BatchHeader, MessageHeader, RecordBatchHeader
from seglog_format.schema.message_set import MessageV0Header, MessageV1Header
from seglog_format.schema.record_batch import EntryPrefix
from seglog_format.schema.record_batch import RecordBatchHeader as RecordBatchHeaderSchema

if TYPE_CHECKING:
    from construct import Struct

    from seglog_format.codec.decoders import DeclaredBytes
    from seglog_format.model import Frame, Tail

HEADERS: Final[dict[int, tuple[Struct, type[BatchHeader]]]] = {
    0: (MessageV0Header, MessageHeader),
    1: (MessageV1Header, MessageHeader),
    2: (RecordBatchHeaderSchema, RecordBatchHeader),
}
"""Declaration and model class of the fixed fields of an entry, by magic."""


def frame_at(source: DeclaredBytes, position: int, end: int, path: str) -> Frame | Tail:
    """Return the entry or the tail at a position, as `seglog_format.codec.framing.frame_at`."""
    left = end - position
    if left <= MAX_TRAILING_SIZE:
        return short_tail(source, position, end)
    prefix = EntryPrefix.parse(source.view(position, position + EntryPrefix.sizeof()))
    if not MIN_ENTRY_SIZE <= prefix.size <= left - ENTRY_PREFIX_SIZE:
        return tail_of_size(prefix.size, source, position, end, path)
    at = Location(path, position)
    check_magic(prefix.magic, at)
    return whole_frame(source, position, prefix.magic, at)


def whole_frame(source: DeclaredBytes, position: int, magic: int, at: Location) -> Frame:
    """Return the entry at a position; its size field is already known to be valid.

    Raises:
        CorruptRecordError: it is too small for its fixed fields (SEG-BAT-002).
        UnreadableError: the disk refuses its fixed fields (SEG-PDR-022).
    """
    declaration, model = HEADERS[magic]
    prefix = EntryPrefix.parse(source.view(position, position + EntryPrefix.sizeof()))
    check_header_size(ENTRY_PREFIX_SIZE + prefix.size, declaration.sizeof(), at)
    header = declaration.parse(source.view(position, position + declaration.sizeof()))
    return DeclaredFrame(position, model_of(header, model), source)


def model_of(container: Any, model: type[Any]) -> Any:  # noqa: ANN401 - a construct container and what it becomes
    """Return a value of the model with the parsed fields of the same names, in whatever order they are stored."""
    return model(**{field.name: container[field.name] for field in fields(model) if field.name in container})

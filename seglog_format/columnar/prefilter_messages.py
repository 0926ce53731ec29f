"""The prefilter of messages of magic 0 and 1, plain and in wrappers (chapter 33)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seglog_format.columnar.compiled import helper, inlined
from seglog_format.columnar.entries import message_is_valid
from seglog_format.columnar.layout import CODEC_MASK, LOG_APPEND_TIME, MAGIC, MESSAGE_ATTRIBUTES, OFFSET
from seglog_format.columnar.memory import load_be64, load_u8
from seglog_format.columnar.messages import inner_size, message_parts, message_timestamp

if TYPE_CHECKING:
    from seglog_format.columnar.arrays import Region

NOWHERE: Final = (-1, -1)
KNOWN_BITS: Final = (CODEC_MASK, CODEC_MASK | LOG_APPEND_TIME)
"""Attribute bits that magic 0 and magic 1 define."""


@helper
def value_of(data: Region, position: int, size: int) -> tuple[int, int]:
    """Return start and end of the value of a keyless message, if it is not null and ends the message; or `NOWHERE`."""
    _, key_size, value, value_size = message_parts(data, position, size)
    if value < 0 or key_size >= 0 or value_size < 0 or value + value_size != position + size:
        return NOWHERE
    return value, value + value_size


@inlined
def ends_with_value(data: Region, position: int, size: int) -> bool:
    """Return whether key and value fit into a message, and no bytes follow the value."""
    key, _, value, value_size = message_parts(data, position, size)
    return key >= 0 and value + max(value_size, 0) == position + size


@inlined
def has_known_bits(data: Region, position: int) -> bool:
    """Return whether only attribute bits are set that the message's magic defines."""
    known = KNOWN_BITS[1] if load_u8(data, position + MAGIC) == 1 else KNOWN_BITS[0]
    return load_u8(data, position + MESSAGE_ATTRIBUTES) & ~known == 0


@helper
def prefilter_wrapped(
    path: int, data: Region, start: int, end: int, magic: int, offset: int, attributes: int, timestamp_ms: int
) -> int:
    """Prefilter the messages of a wrapper.

    Args:
        path: of computing checksums.
        data: the decompressed messages.
        start: of them.
        end: of them.
        magic: of the wrapper.
        offset: of it.
        attributes: of it.
        timestamp_ms: of it.

    Returns:
        The offset of the first message; negative if a message is not covered.
    """
    position, first, last, largest_ms = start, -1, -1, -(1 << 63)
    while position < end:
        size = inner_size(data, position, end)
        if size <= 0 or load_u8(data, position + MAGIC) != magic:
            return -1
        stored = load_be64(data, position + OFFSET)
        if (
            stored <= last
            or not ends_with_value(data, position, size)
            or not message_is_valid(path, data, position, size)
        ):
            return -1
        first = stored if first < 0 else first
        last, largest_ms = stored, max(message_timestamp(data, position), largest_ms)
        position += size
    if last < 0:
        return -1
    base = offset - last
    is_right_base = base == 0 if magic == 0 or offset == 0 else base >= 0
    has_right_time = magic == 0 or attributes & LOG_APPEND_TIME != 0 or largest_ms == timestamp_ms
    return base + first if is_right_base and has_right_time else -1

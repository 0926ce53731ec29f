"""Entries of the index files, by their declarations (chapters 40 to 42)."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from construct import Array

from seglog_format.codec.index_entries import (
    check_transaction_version,
    usable_offset_slots,
    usable_time_slots,
)
from seglog_format.codec.reference.framing import model_of
from seglog_format.model import AbortedTxn, OffsetPosition, TimestampOffset
from seglog_format.schema.offset_index import OffsetIndexEntry
from seglog_format.schema.time_index import TimeIndexEntry
from seglog_format.schema.transaction_index import TransactionIndexEntry

if TYPE_CHECKING:
    from construct import Struct

    from seglog_format.errors import Location
    from seglog_format.storage.byte_source import Buffer


def decode_offset_index(data: Buffer, base_offset: int) -> tuple[OffsetPosition, ...]:
    """Return the entries of an offset index that a reader may use: those before the order first breaks (SEG-IDX-010).

    Args:
        data: the whole file.
        base_offset: of the segment; stored offsets count from it.
    """
    slots = _slots(OffsetIndexEntry, data)
    count = usable_offset_slots((slot.relative_offset, slot.position) for slot in slots)
    return tuple(OffsetPosition(base_offset + slot.relative_offset, slot.position) for slot in slots[:count])


def decode_time_index(data: Buffer, base_offset: int) -> tuple[TimestampOffset, ...]:
    """Return the entries of a time index that a reader may use: those before the order first breaks (SEG-TIX-009).

    Args:
        data: the whole file.
        base_offset: of the segment; stored offsets count from it.
    """
    slots = _slots(TimeIndexEntry, data)
    count = usable_time_slots((slot.timestamp_ms, slot.relative_offset) for slot in slots)
    return tuple(TimestampOffset(slot.timestamp_ms, base_offset + slot.relative_offset) for slot in slots[:count])


def decode_transaction_index(data: Buffer, at: Location) -> tuple[AbortedTxn, ...]:
    """Return the entries of a transaction index; bytes after the last whole one are passed over (SEG-TXN-001).

    Args:
        data: the whole file.
        at: where it starts.

    Raises:
        UnsupportedVersionError: an entry's version is not 0 (SEG-TXN-002).
    """
    entries = tuple(model_of(slot, AbortedTxn) for slot in _slots(TransactionIndexEntry, data))
    check_transaction_version(entries, at)
    return entries


def _slots(declaration: Struct, data: Buffer) -> list[Any]:
    """Return the whole slots of a file, as containers."""
    count = memoryview(data).nbytes // declaration.sizeof()
    return list(Array(count, declaration).parse_stream(io.BytesIO(data)))

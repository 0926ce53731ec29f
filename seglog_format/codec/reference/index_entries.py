"""Parsers of the slots of index files by their declarations (chapters 40 to 42)."""

from __future__ import annotations

import io
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final

from construct import Array

from seglog_format.codec.index_entries import check_transaction_version
from seglog_format.codec.reference.framing import model_of
from seglog_format.model import AbortedTxn
from seglog_format.schema.fixed_fields import OFFSET_INDEX_ENTRY, TIME_INDEX_ENTRY, TRANSACTION_INDEX_ENTRY
from seglog_format.schema.offset_index import OffsetIndexEntry
from seglog_format.schema.time_index import TimeIndexEntry
from seglog_format.schema.transaction_index import TransactionIndexEntry

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from construct import Struct

    from seglog_format.errors import Location
    from seglog_format.packing import Packer
    from seglog_format.storage.byte_source import Buffer


class DeclaredSlots:
    """A packer that parses and builds slots with their declaration.

    Args:
        declaration: of a slot.
        names: of its fields, in the order of the values.
        fast: the packer that it replaces.

    Attributes:
        format: of the replaced packer.
        size: of a slot, in bytes.
    """

    def __init__(self, declaration: Struct, names: tuple[str, ...], fast: Packer) -> None:
        self._declaration = declaration
        self._names = names
        self.format = fast.format
        self.size = int(declaration.sizeof())

    def pack(self, *values: Any) -> bytes:  # noqa: ANN401 - as struct
        """Return the bytes of these values."""
        return bytes(self._declaration.build(dict(zip(self._names, values, strict=True))))

    def unpack_from(self, buffer: Buffer, offset: int = 0) -> tuple[Any, ...]:
        """Read the values that start at a byte position."""
        return self._values(self._declaration.parse(memoryview(buffer)[offset : offset + self.size]))

    def iter_unpack(self, buffer: Buffer) -> Iterator[tuple[Any, ...]]:
        """Yield tuples of values, up to the end."""
        return map(self._values, _slots(self._declaration, buffer))

    def _values(self, slot: Any) -> tuple[Any, ...]:  # noqa: ANN401 - a construct container
        return tuple(slot[name] for name in self._names)


DECLARED: Final[Mapping[Packer, Packer]] = {
    OFFSET_INDEX_ENTRY: DeclaredSlots(OffsetIndexEntry, ("relative_offset", "position"), OFFSET_INDEX_ENTRY),
    TIME_INDEX_ENTRY: DeclaredSlots(TimeIndexEntry, ("timestamp_ms", "relative_offset"), TIME_INDEX_ENTRY),
    TRANSACTION_INDEX_ENTRY: DeclaredSlots(
        TransactionIndexEntry, tuple(field.name for field in fields(AbortedTxn)), TRANSACTION_INDEX_ENTRY
    ),
}


def slots(fast: Packer) -> Packer:
    """Return the packer by declaration that replaces the one of an index."""
    return DECLARED[fast]


def decode_transaction_index(data: Buffer, at: Location) -> tuple[AbortedTxn, ...]:
    """Return the entries of a transaction index; bytes after the last whole one are ignored (SEG-TXN-001).

    Args:
        data: the whole file.
        at: location of its first byte.

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

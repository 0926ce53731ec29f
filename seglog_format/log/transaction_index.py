"""The transaction index of a segment: its aborted transactions (chapter 42)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

from seglog_format.codec.decoders import decoders_of
from seglog_format.errors import Location
from seglog_format.schema.fixed_fields import TRANSACTION_INDEX_ENTRY
from seglog_format.storage.byte_source import MemoryBytes
from seglog_format.storage.file_bytes import MAX_WHOLE_SIZE, refuse_beyond
from seglog_format.storage.log_storage import LOCAL

if TYPE_CHECKING:
    import os
    from collections.abc import Callable

    from seglog_format.model import AbortedTxn
    from seglog_format.storage.byte_source import ByteSource
    from seglog_format.storage.log_storage import LogStorage


class TxnIndexSearchResult(NamedTuple):
    """The result of searching one segment's index for a range of offsets.

    Attributes:
        aborted: the aborted transactions that may have records in the range, in the order of their markers.
        is_complete: whether the indexes of later segments cannot add to them.
    """

    aborted: tuple[AbortedTxn, ...]
    is_complete: bool


@dataclass(frozen=True, slots=True)
class TransactionIndex:
    """A transaction index. It is decoded whole: it has one entry for each aborted transaction, so it is small.

    Attributes:
        entries: in file order; offsets are absolute.
        base_offset: of the segment.
        file_size: size of the file in bytes.
        path: of the file; empty for bytes in memory.
    """

    entries: tuple[AbortedTxn, ...]
    base_offset: int
    file_size: int
    path: str = ""

    @classmethod
    def open(cls, path: str | os.PathLike[str], base_offset: int, *, storage: LogStorage = LOCAL) -> Self:
        """Read a transaction index file.

        Raises:
            UsageError: the path does not exist or is not a regular file.
            UnsupportedVersionError: an entry's version is not 0 (SEG-TXN-002).
        """
        found = Path(path)
        with storage.open(found, check=partial(refuse_beyond, MAX_WHOLE_SIZE)) as source:
            return cls.from_source(source, base_offset, storage.name_of(found))

    @classmethod
    def from_bytes(cls, data: bytes | bytearray | memoryview, base_offset: int, path: str = "") -> Self:
        """Decode a transaction index; ``path`` names the bytes in error messages.

        Raises:
            UnsupportedVersionError: an entry's version is not 0 (SEG-TXN-002).
            RefusedError: more than 64 MiB (SEG-PDR-020).
        """
        return cls.from_source(MemoryBytes(data, path), base_offset, path)

    @classmethod
    def from_source(cls, source: ByteSource, base_offset: int, path: str = "") -> Self:
        """Decode a transaction index from a source of bytes, as `from_bytes` does."""
        refuse_beyond(MAX_WHOLE_SIZE, source.size, path)
        return cls(_decoder_of(source)(source.view(0, source.size), Location(path)), base_offset, source.size, path)

    @property
    def trailing_size(self) -> int:
        """Number of bytes after the last whole entry; 0 in an undamaged file."""
        return self.file_size % TRANSACTION_INDEX_ENTRY.size

    def aborted(self, from_offset: int, to_offset: int) -> TxnIndexSearchResult:
        """Return the aborted transactions that may have records from ``from_offset`` up to ``to_offset`` (excluded).

        If the result is not complete, continue with the next segment's index (SEG-TXN-007).
        """
        found = []
        for entry in self.entries:
            if entry.last_offset >= from_offset and entry.first_offset < to_offset:
                found.append(entry)
            if entry.last_stable_offset >= to_offset:
                return TxnIndexSearchResult(tuple(found), is_complete=True)
        return TxnIndexSearchResult(tuple(found), is_complete=False)


def _decoder_of(source: ByteSource) -> Callable[[memoryview, Location], tuple[AbortedTxn, ...]]:
    decoders = decoders_of(source)
    if decoders is not None:
        return decoders.transaction_index
    from seglog_format.codec.plain.transaction_index import decode_transaction_index  # noqa: PLC0415 - loaded with the first

    return decode_transaction_index

"""Hand-written decoder of transaction indexes (chapter 42)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog_format.codec.index_entries import check_transaction_version
from seglog_format.model import AbortedTxn
from seglog_format.schema.fixed_fields import TRANSACTION_INDEX_ENTRY

if TYPE_CHECKING:
    from seglog_format.errors import Location


def decode_transaction_index(data: bytes | memoryview, at: Location) -> tuple[AbortedTxn, ...]:
    """Decode a transaction index; bytes after the last whole entry are ignored (SEG-TXN-001).

    Raises:
        UnsupportedVersionError: an entry's version is not 0 (SEG-TXN-002).
    """
    view = memoryview(data)
    whole = view[: view.nbytes - view.nbytes % TRANSACTION_INDEX_ENTRY.size]
    entries = tuple(AbortedTxn(*fields) for fields in TRANSACTION_INDEX_ENTRY.iter_unpack(whole))
    check_transaction_version(entries, at)
    return entries

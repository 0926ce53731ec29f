"""Lookup of batches of aborted transactions in sorted columns (SEG-LKP-011)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from seglog_format.columnar.compiled import inlined
from seglog_format.columnar.memory import load_64

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seglog_format.columnar.arrays import Numbers, Region
    from seglog_format.model import AbortedTxn

FIELDS: Final = 3
"""Producer id, last offset, first offset."""


def aborted_numbers(transactions: Iterable[AbortedTxn]) -> Numbers:
    """Return the aborted transactions in the form of the kernel's argument: sorted by producer and last offset."""
    rows = sorted((each.producer_id, each.last_offset, each.first_offset) for each in transactions)
    return np.array(rows, np.int64).reshape(-1)


@inlined
def is_aborted(aborted: Region, producer_id: int, last_offset: int) -> bool:
    """Return whether a transactional batch belongs to an aborted transaction.

    It does if the first transaction of its producer that ends after the batch begins before the batch ends.
    """
    low, high = 0, aborted[1] // (8 * FIELDS)
    while low < high:
        middle = (low + high) >> 1
        at = middle * 8 * FIELDS
        producer, last = load_64(aborted, at), load_64(aborted, at + 8)
        if producer < producer_id or (producer == producer_id and last <= last_offset):
            low = middle + 1
        else:
            high = middle
    at = low * 8 * FIELDS
    return at < aborted[1] and load_64(aborted, at) == producer_id and load_64(aborted, at + 16) <= last_offset

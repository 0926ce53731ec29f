"""Notes that assign rows to entries, made while reading if a column about the entry is requested."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from seglog_format.columnar.batch_table import BatchTable
from seglog_format.columnar.compiled import inlined, kernel
from seglog_format.columnar.entries import COLUMN, COLUMNS, ROW_SIZE, entry_size, store_fields
from seglog_format.columnar.layout import OFFSET
from seglog_format.columnar.memory import load_64, load_be64, region, store_64
from seglog_format.columnar.plan import CAUSE, ENTRIES, FALLBACK, NOTED, ROWS

if TYPE_CHECKING:
    from seglog_format.columnar.arrays import Bytes, Numbers, Region, Table

NOTE_SIZE: Final = 16
"""Size of a note: position of an entry, and the number of rows up to its last."""
BASE_OFFSET: Final = 8 * COLUMN["base_offset"]


@inlined
def note_entry(plan: Region, state: Region, block: Region, position: int, rows_before: int) -> None:
    """Note an entry whose rows have just been stored, if notes are requested and it has rows."""
    notes, rows = load_64(plan, 8 * ENTRIES), load_64(state, 8 * ROWS)
    if notes >= 0 and rows > rows_before:
        count = load_64(state, 8 * NOTED)
        store_64(block, notes + NOTE_SIZE * count, position)
        store_64(block, notes + NOTE_SIZE * count + 8, rows)
        store_64(state, 8 * NOTED, count + 1)


@inlined
def declined(state: Region, cause: int) -> int:
    """Store the cause for which the fallback decoder has to read the entry at the position; return `FALLBACK`."""
    store_64(state, 8 * CAUSE, cause)
    return FALLBACK


@kernel
def fill_noted(log: Bytes, notes: Numbers, table: Table) -> None:
    """Fill a batch table with the fixed fields in the headers of noted entries."""
    data, rows = region(log), region(table)
    for row in range(len(table)):
        position = notes[2 * row]
        if entry_size(data, position, len(log)) >= 0:  # negative only if the file has changed since the note
            store_fields(data, position, rows, row * ROW_SIZE)
            store_64(rows, row * ROW_SIZE + BASE_OFFSET, load_be64(data, position + OFFSET))


def noted_entries(log: Bytes, notes: Numbers) -> tuple[BatchTable, Numbers]:
    """Return the headers of noted entries, and the number of rows of each."""
    table = np.zeros((len(notes) // 2, len(COLUMNS)), np.int64)
    fill_noted(log, notes, table)
    return BatchTable(table, 0), np.diff(notes[1::2], prepend=0)

"""The table of all entries of a log, in one piece."""

from __future__ import annotations

from typing import Any

import numpy as np

from seglog_format.columnar.batch_table import BatchTable, table_parts
from seglog_format.columnar.entries import COLUMNS


def batch_table(data: Any, **options: Any) -> BatchTable:  # noqa: ANN401 - as `table_parts`
    """Join the parts of a table; arguments as those of `table_parts`."""
    kept, end = [np.empty((0, len(COLUMNS)), np.int64)], 0
    for part in table_parts(data, **options):
        kept.append(part.rows.copy())
        end = part.end
    return BatchTable(np.concatenate(kept), end)

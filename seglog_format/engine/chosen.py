"""Compiled code for checks, recovery and listings, if the chosen engine has it; None for the other engines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog_format.engine.columnar import batch_tables, prefilter, recovery_kernels

if TYPE_CHECKING:
    from seglog_format.engine.choice import Choice
    from seglog_format.engine.columnar import BatchTables
    from seglog_format.engine.protocols import MakePrefilter, RecoveryKernels


def prefilter_of(choice: Choice) -> MakePrefilter | None:
    """Return the function that makes prefilters for the checks; None if the checks read every entry."""
    return prefilter() if choice.is_columnar else None


def kernels_of(choice: Choice) -> RecoveryKernels | None:
    """Return the kernels that recover and index entries without a decision; None for other engines."""
    return recovery_kernels() if choice.is_columnar else None


def tables_of(choice: Choice) -> BatchTables | None:
    """Return the function that reads the headers of entries into tables; None for other engines."""
    return batch_tables() if choice.is_columnar else None

"""What the chosen engine does for checks, recovery and listings: compiled code, or None for the others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog_format.engine import columnar

if TYPE_CHECKING:
    from seglog_format.engine.choice import Choice
    from seglog_format.engine.columnar import BatchTables
    from seglog_format.engine.protocols import MakePrefilter, RecoveryKernels


def prefilter_of(choice: Choice) -> MakePrefilter | None:
    """Return the prefilter of the checks; None where each entry is looked at."""
    return columnar.prefilter() if choice.is_columnar else None


def kernels_of(choice: Choice) -> RecoveryKernels | None:
    """Return what recovers and indexes entries that need no decision."""
    return columnar.recovery_kernels() if choice.is_columnar else None


def tables_of(choice: Choice) -> BatchTables | None:
    """Return what reads the headers of entries into tables."""
    return columnar.batch_tables() if choice.is_columnar else None

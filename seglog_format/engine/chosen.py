"""What the chosen engine does for checks, recovery and listings: compiled code, or None for the reference."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog_format.engine import columnar
from seglog_format.engine.choice import engine_for

if TYPE_CHECKING:
    from seglog_format.engine.choice import Engine
    from seglog_format.engine.columnar import BatchTables
    from seglog_format.engine.protocols import MakePrefilter, RecoveryKernels


def prefilter_for(wanted: Engine, size: int) -> MakePrefilter | None:
    """Return the prefilter of the checks; None where the reference looks at every entry.

    Args:
        wanted: what the caller asks for.
        size: bytes of the logs to read.

    Raises:
        UsageError: the columnar engine is asked for, and not installed.
    """
    return columnar.prefilter() if engine_for(wanted, size).is_columnar else None


def kernels_for(wanted: Engine, size: int) -> RecoveryKernels | None:
    """Return what recovers and indexes entries that need no decision; arguments and errors as `prefilter_for`."""
    return columnar.recovery_kernels() if engine_for(wanted, size).is_columnar else None


def tables_for(wanted: Engine, size: int) -> BatchTables | None:
    """Return what reads the headers of entries into tables; arguments and errors as `prefilter_for`."""
    return columnar.batch_tables() if engine_for(wanted, size).is_columnar else None

"""Recovery plans of the tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog_format.recovery.plan import plan_for_partition

if TYPE_CHECKING:
    from pathlib import Path

    from seglog_format.recovery.plan import PartitionRecovery


def only_plan(root: Path) -> PartitionRecovery:
    """Plan the recovery of the only partition in a log directory."""
    (partition,) = (path for path in root.iterdir() if path.is_dir())
    return plan_for_partition(partition)

"""``--engine``: settle which engine reads everything that a command is given."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from seglog_format.engine.choice import Engine


def settled(wanted: str, paths: Iterable[Path]) -> Engine:
    """Choose one engine for all that a command reads, by the size of it all instead of partition by partition.

    Args:
        wanted: value of the option.
        paths: that the command is given.

    Raises:
        UsageError: the columnar engine is asked for, and not installed; or a path is nothing of Kafka's.
    """
    from seglog_format.engine.choice import Engine, engine_for
    from seglog_format.log.log_sizes import size_of_logs

    engine = Engine(wanted)
    return engine_for(engine, sum(map(size_of_logs, paths)) if engine is Engine.AUTO else 0).engine

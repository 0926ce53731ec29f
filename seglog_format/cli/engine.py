"""``--engine``: the choice of one engine for everything that a command reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from seglog_format.engine.choice import Engine


def settled(wanted: str, paths: Iterable[Path]) -> Engine:
    """Choose one engine for all files that a command reads, by their total size instead of partition by partition.

    Args:
        wanted: value of the option.
        paths: arguments of the command.

    Raises:
        UsageError: the columnar engine is requested and not installed; or a path holds no files of Kafka.
    """
    from seglog_format.engine.choice import Engine, engine_for
    from seglog_format.log.log_sizes import size_of_logs

    engine = Engine(wanted)
    return engine_for(engine, sum(map(size_of_logs, paths)) if engine is Engine.AUTO else 0).engine

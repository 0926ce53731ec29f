"""Log directories in Spark: a data source named ``seglog``, and jobs built on it.

`pyspark_seglog` registers the source wherever this package is installed, so
``spark.read.format("seglog").load(path)`` works. Everything is imported at its first use: PySpark
and pyarrow come with the extra ``spark``.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from seglog_format.spark.columns import projection
    from seglog_format.spark.ranges import PlannedRange, plan_ranges
    from seglog_format.spark.sessions import session
    from seglog_format.spark.source import SeglogDataSource
    from seglog_format.spark.staging import finish_commits
    from seglog_format.spark.writing import prepared

__all__ = ["PlannedRange", "SeglogDataSource", "finish_commits", "plan_ranges", "prepared", "projection", "session"]

_MODULES: Final = {
    "PlannedRange": "ranges",
    "SeglogDataSource": "source",
    "finish_commits": "staging",
    "plan_ranges": "ranges",
    "prepared": "writing",
    "projection": "columns",
    "session": "sessions",
}


def __getattr__(name: str) -> object:
    module = _MODULES.get(name)
    if module is None:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    value = getattr(import_module(f"{__name__}.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

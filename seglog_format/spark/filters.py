"""Filters that Spark pushes down: the restrictions on topics, partitions, offsets and times in them.

A filter on topic or partition is applied fully: other partitions are not read. A filter on offset or timestamp only
narrows the range to read, and Spark applies it again. All others are left to Spark. Filters are recognized by the names
of their classes, so PySpark 4.0, which has no such classes, also works.

Spark, up to 4.3 at least, stores one plan with a loaded frame: that of the filters pushed last. A later query without
filters, and another branch of the same query, reuse it: rows are then missing or repeated without an error. A source
cannot detect it. So the source uses filters only if the option `pushedFilters` says that a frame is used once.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from seglog_format.model import INT64_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

INT64_MIN: Final = -(2**63)

Test: TypeAlias = "tuple[str, bool, tuple[Any, ...]]"
"""Name of a comparison, whether its operands are swapped, and the value; sent between processes."""

COMPARISONS: Final[dict[str, Callable[[Any, tuple[Any, ...]], bool]]] = {
    "EqualTo": lambda found, values: found == values[0],
    "EqualNullSafe": lambda found, values: found == values[0],
    "In": lambda found, values: found in values,
    "GreaterThan": lambda found, values: found > values[0],
    "GreaterThanOrEqual": lambda found, values: found >= values[0],
    "LessThan": lambda found, values: found < values[0],
    "LessThanOrEqual": lambda found, values: found <= values[0],
    "StringStartsWith": lambda found, values: found.startswith(values[0]),
    "StringEndsWith": lambda found, values: found.endswith(values[0]),
    "StringContains": lambda found, values: values[0] in found,
    "IsNotNull": lambda _found, _values: True,
}


@dataclass(frozen=True, slots=True)
class Narrowed:
    """The range to read after filters.

    Attributes:
        topic_tests, partition_tests: tests, all of which a partition has to pass.
        from_offset, to_offset: from the first inclusive to the second exclusive.
        from_timestamp_ms, to_timestamp_ms: both inclusive.
    """

    topic_tests: tuple[Test, ...] = field(default=())
    partition_tests: tuple[Test, ...] = field(default=())
    from_offset: int = 0
    to_offset: int = INT64_MAX
    from_timestamp_ms: int = INT64_MIN
    to_timestamp_ms: int = INT64_MAX

    def wants(self, topic: str, partition: int) -> bool:
        """Return whether any row of a partition can pass."""
        return all(map(passes(topic), self.topic_tests)) and all(map(passes(partition), self.partition_tests))


EVERYTHING: Final = Narrowed()


def passes(found: Any) -> Callable[[Test], bool]:  # noqa: ANN401 - a topic or a partition
    """Return a function that says whether a value passes a test."""
    return lambda test: COMPARISONS[test[0]](found, test[2]) != test[1]


def push_down(filters: Iterable[Any]) -> tuple[Narrowed, list[Any]]:
    """Extract the range to read from filters.

    Args:
        filters: all of which a row has to pass.

    Returns:
        The range to read, and the filters that Spark still has to apply.
    """
    narrowed, left = EVERYTHING, []
    for each in filters:
        is_negated, inner = (True, each.child) if type(each).__name__ == "Not" else (False, each)
        found = _narrowed(narrowed, inner, is_negated=is_negated)
        if found is None:
            left.append(each)
            continue
        narrowed, is_taken = found
        if not is_taken:
            left.append(each)
    return narrowed, left


def _narrowed(narrowed: Narrowed, inner: Any, *, is_negated: bool) -> tuple[Narrowed, bool] | None:  # noqa: ANN401
    """Return the range with one more filter, and whether that applies it fully; None for a filter of no use here."""
    name, column = type(inner).__name__, ".".join(inner.attribute)
    values = _values(inner)
    if name not in COMPARISONS or any(value is None for value in values):
        return None
    test: Test = (name, is_negated, values)
    if column == "topic":
        return replace(narrowed, topic_tests=(*narrowed.topic_tests, test)), True
    if column == "partition":
        return replace(narrowed, partition_tests=(*narrowed.partition_tests, test)), True
    if is_negated or not values or name not in _RANGES:
        return None
    return _in_range(narrowed, column, name, values)


def _in_range(narrowed: Narrowed, column: str, name: str, values: tuple[Any, ...]) -> tuple[Narrowed, bool] | None:
    if column == "offset":
        return _in_offsets(narrowed, *_RANGES[name](values)), False
    if column == "timestamp" and all(isinstance(value, datetime) for value in values):
        return _in_time(narrowed, *_RANGES[name](tuple(map(_milliseconds, values)))), False
    return None


def _values(inner: Any) -> tuple[Any, ...]:  # noqa: ANN401
    value = getattr(inner, "value", ())
    return tuple(value) if isinstance(value, (list, tuple)) else (value,)


_RANGES: Final[dict[str, Callable[[tuple[int, ...]], tuple[int | None, int | None]]]] = {
    "EqualTo": lambda values: (values[0], values[0]),
    "EqualNullSafe": lambda values: (values[0], values[0]),
    "In": lambda values: (min(values), max(values)),
    "GreaterThan": lambda values: (values[0], None),
    "GreaterThanOrEqual": lambda values: (values[0], None),
    "LessThan": lambda values: (None, values[0]),
    "LessThanOrEqual": lambda values: (None, values[0]),
}
"""Least and greatest value that can pass, both inclusive, and each maybe too wide by one; None: no limit."""


def _in_offsets(narrowed: Narrowed, low: int | None, high: int | None) -> Narrowed:
    return replace(
        narrowed,
        from_offset=narrowed.from_offset if low is None else max(narrowed.from_offset, low),
        to_offset=narrowed.to_offset if high is None else min(narrowed.to_offset, high + 1),
    )


def _in_time(narrowed: Narrowed, low: int | None, high: int | None) -> Narrowed:
    return replace(
        narrowed,
        from_timestamp_ms=narrowed.from_timestamp_ms if low is None else max(narrowed.from_timestamp_ms, low),
        to_timestamp_ms=narrowed.to_timestamp_ms if high is None else min(narrowed.to_timestamp_ms, high),
    )


def _milliseconds(time: datetime) -> int:
    """Return milliseconds since 1970, rounded down as in records. A time without a zone is in this machine's zone."""
    since = time.astimezone(UTC) - datetime(1970, 1, 1, tzinfo=UTC)
    return (since.days * 86_400 + since.seconds) * 1000 + since.microseconds // 1000

"""Comparison of the records of two logs by offset."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from seglog_format.cli.lookup_steps import opened
from seglog_format.cli.paths import log_directory_at
from seglog_format.errors import FormatError, UsageError
from seglog_format.lines import LineOptions, source_of
from seglog_format.lines.records import RecordLines

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from seglog_format.log.directory import LogDirectory, TopicPartition

    Line = dict[str, Any]

COMPARED: Final = ("timestamp", "key", "value", "headers", "sequence", "control", "coordinatorEpoch")
ONLY_FIRST: Final = "only first"
ONLY_SECOND: Final = "only second"
CHANGED: Final = "changed"


@dataclass(frozen=True, slots=True)
class Difference:
    """An offset at which two logs differ.

    Attributes:
        name: of the partition.
        offset: of the record.
        kind: ``only first``, ``only second`` or ``changed``.
        first, second: the records; None where there is none.
        fields: names of fields that differ, if both have a record.
    """

    name: str
    offset: int
    kind: str
    first: Line | None
    second: Line | None
    fields: tuple[str, ...] = ()

    def as_object(self) -> Line:
        """Return it for JSON."""
        return {
            "type": "difference",
            "name": self.name,
            "offset": self.offset,
            "kind": self.kind,
            "fields": list(self.fields),
            "first": self.first,
            "second": self.second,
        }


@dataclass
class Comparison:
    """Two logs to compare; iterate it once, then read the totals.

    Attributes:
        name: of the partition.
        first, second: paths of the logs; None if there is none.
        limit: bytes that one batch may decompress to.
        equal: records that both have.
        different: number of offsets that differ.
        problems: why a log could not be read to its end.
    """

    name: str
    first: Path | None
    second: Path | None
    limit: int
    equal: int = 0
    different: int = 0
    problems: list[str] = field(default_factory=list)

    @property
    def is_different(self) -> bool:
        """Return whether anything differs, as far as both could be read."""
        return bool(self.different or self.problems)

    def __iter__(self) -> Iterator[Difference]:
        for path in (self.first, self.second):
            if path is None:
                side = "first" if path is self.first else "second"
                self.problems.append(f"there is no such partition in the {side} directory")
        if not self.problems:
            yield from self._differences()

    def _differences(self) -> Iterator[Difference]:
        assert self.first is not None
        assert self.second is not None
        left, right = self._records(self.first), self._records(self.second)
        one, other = next(left, None), next(right, None)
        while not self.problems and (one is not None or other is not None):
            if other is None or (one is not None and one["offset"] < other["offset"]):
                assert one is not None
                yield self._count(one["offset"], ONLY_FIRST, one, None)
                one = next(left, None)
            elif one is None or other["offset"] < one["offset"]:
                yield self._count(other["offset"], ONLY_SECOND, None, other)
                other = next(right, None)
            else:
                fields = tuple(name for name in COMPARED if one.get(name) != other.get(name))
                if fields:
                    yield self._count(one["offset"], CHANGED, one, other, fields)
                else:
                    self.equal += 1
                one, other = next(left, None), next(right, None)

    def _count(
        self, offset: int, kind: str, first: Line | None, second: Line | None, fields: tuple[str, ...] = ()
    ) -> Difference:
        self.different += 1
        return Difference(self.name, offset, kind, first, second, fields)

    def _records(self, path: Path) -> Iterator[Line]:
        """Yield the records of a log up to its first damage."""
        with opened(path) as partition:
            for segment in partition.segments:
                segment.limit = self.limit
                lines = RecordLines(source_of(segment.paths.log, segment.paths.log.name, 0), LineOptions())
                try:
                    for batch in segment.batches():
                        yield from lines.of(batch)
                except FormatError as problem:
                    self.problems.append(str(problem))
                    return


def compared(first: Path, second: Path, limit: int) -> Iterator[Comparison]:
    """Yield the comparisons of two paths: one, or one for each partition of two log directories.

    Raises:
        UsageError: one is a log directory and the other is not.
    """
    directories = log_directory_at(first), log_directory_at(second)
    if directories == (None, None):
        yield Comparison(first.absolute().name, first, second, limit)
        return
    one, other = directories
    if one is None or other is None:
        msg = "compare a log directory with a log directory"
        raise UsageError(msg)
    for key in sorted({*one.partitions, *other.partitions}):
        yield Comparison(f"{key[0]}-{key[1]}", _path_of(one, key), _path_of(other, key), limit)


def _path_of(directory: LogDirectory, key: TopicPartition) -> Path | None:
    entry = directory.partitions.get(key)
    return None if entry is None else entry.path

"""Comparison of the records of two logs by offset."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from seglog_format.cli.gap_lines import gaps_of
from seglog_format.cli.lookup_steps import opened
from seglog_format.cli.output import count_text, printable, styled, time_text
from seglog_format.cli.paths import log_directory_at
from seglog_format.cli.render_dump import value_text
from seglog_format.errors import FormatError, UsageError
from seglog_format.lines import LineOptions, source_of
from seglog_format.lines.records import RecordLines
from seglog_format.log.gaps import watch_over
from seglog_format.model import NO_PARTITION_LEADER_EPOCH

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from seglog_format.log.directory import LogDirectory, TopicPartition


Line: TypeAlias = dict[str, Any]

COMPARED: Final = ("timestamp", "key", "value", "headers", "sequence", "control", "coordinatorEpoch")
ONLY_FIRST: Final = "only first"
ONLY_SECOND: Final = "only second"
CHANGED: Final = "changed"
MAX_RANGES: Final = 8
"""Number of ranges of offsets that are kept for the totals."""


@dataclass(frozen=True, slots=True)
class Difference:
    """An offset at which two logs differ.

    Attributes:
        name: of the partition.
        offset: of the record.
        kind: ``only first``, ``only second`` or ``changed``.
        first, second: the records; None where there is none.
        fields: names of fields that differ, if both have a record.
        leader_epochs: of the batches that hold the records; None where there is no record, or its batch has none.
    """

    name: str
    offset: int
    kind: str
    first: Line | None
    second: Line | None
    fields: tuple[str, ...] = ()
    leader_epochs: tuple[int | None, int | None] = (None, None)

    def as_object(self) -> Line:
        """Return it for JSON."""
        return {
            "type": "difference",
            "name": self.name,
            "offset": self.offset,
            "kind": self.kind,
            "fields": list(self.fields),
            "leaderEpochs": list(self.leader_epochs),
            "first": self.first,
            "second": self.second,
        }


class Entry(NamedTuple):
    """A record, and the leader epoch of its batch; None where the batch has none."""

    line: Line
    leader_epoch: int | None

    @property
    def offset(self) -> int:
        """Its offset."""
        return int(self.line["offset"])


@dataclass
class Comparison:
    """Two logs to compare; iterate it once, then read the totals.

    Attributes:
        name: of the partition.
        first, second: paths of the logs; None if there is none.
        options: the wanted offsets, and the limit of decompression.
        equal: records that both have.
        different: number of offsets that differ.
        problems: why nothing could be compared, or a log could not be read to its end.
        ranges: the first offsets that differ, as first and last of each run of compared offsets.
        not_compared_from: first offset that was not compared because of damage; None if there is no damage.
        is_damaged: whether damage kept records from being compared.
    """

    name: str
    first: Path | None
    second: Path | None
    options: LineOptions
    equal: int = 0
    different: int = 0
    problems: list[str] = field(default_factory=list)
    ranges: list[tuple[int, int]] = field(default_factory=list)
    not_compared_from: int | None = None
    is_damaged: bool = False
    _next_offset: int = 0
    _is_run: bool = False

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
        while not self.is_damaged and (one is not None or other is not None):
            is_first = one is not None and (other is None or one.offset <= other.offset)
            is_second = other is not None and (one is None or other.offset <= one.offset)
            found = self._compared(one if is_first else None, other if is_second else None)
            if found is not None:
                yield found
            one = next(left, None) if is_first else one
            other = next(right, None) if is_second else other
        if self.is_damaged:
            self.not_compared_from = self._next_offset

    def _compared(self, one: Entry | None, other: Entry | None) -> Difference | None:
        """Count the records of the next offset, and return how they differ; None if they do not."""
        kind = CHANGED if one and other else ONLY_FIRST if one else ONLY_SECOND
        first, second = (None if each is None else each.line for each in (one, other))
        fields = [name for name in COMPARED if first and second and first.get(name) != second.get(name)]
        offset = (first or second or {})["offset"]
        self._next_offset = offset + 1
        if kind == CHANGED and not fields:
            self.equal += 1
            self._is_run = False
            return None
        self._count(offset)
        epochs = (one and one.leader_epoch, other and other.leader_epoch)
        return Difference(self.name, offset, kind, first, second, tuple(fields), epochs)

    def _count(self, offset: int) -> None:
        self.different += 1
        if self._is_run and len(self.ranges) <= MAX_RANGES:
            self.ranges[-1] = (self.ranges[-1][0], offset)
        elif len(self.ranges) <= MAX_RANGES:
            self.ranges.append((offset, offset))
        self._is_run = True

    def _records(self, path: Path) -> Iterator[Entry]:
        """Yield the wanted records of a log up to its first damage."""
        reached: dict[int, int] = {}
        wanted = self.options
        with opened(path) as partition:
            for segment in partition.segments:
                if not wanted.overlaps(segment.base_offset, segment.allowed.last + 1):
                    continue
                reached[segment.base_offset] = segment.base_offset
                segment.limit = wanted.limit
                lines = RecordLines(source_of(segment.paths.log, segment.paths.log.name, 0), wanted)
                try:
                    position = 0 if wanted.from_offset is None else segment.position_of(wanted.from_offset)
                    if position is None:
                        reached[segment.base_offset] = segment.next_offset
                        continue
                    for batch in segment.batches(position):
                        if wanted.to_offset is not None and batch.base_offset >= wanted.to_offset:
                            del reached[segment.base_offset]
                            break
                        epoch = batch.header.partition_leader_epoch
                        known = None if epoch == NO_PARTITION_LEADER_EPOCH else epoch
                        yield from (Entry(line, known) for line in lines.of(batch))
                        reached[segment.base_offset] = batch.header.next_offset
                except FormatError as problem:
                    self.problems.append(str(problem))
                    self.is_damaged = True
                    return
            gaps = gaps_of(watch_over(partition.listing), reached) if path.is_dir() else ()
            self.problems += [
                str(gap) for gap in gaps if gap.is_loss and wanted.overlaps(gap.first_offset, gap.next_offset)
            ]


def compared(first: Path, second: Path, options: LineOptions) -> Iterator[Comparison]:
    """Yield the comparisons of two paths: one, or one for each partition of two log directories.

    Raises:
        UsageError: one is a log directory and the other is not.
    """
    directories = log_directory_at(first), log_directory_at(second)
    if directories == (None, None):
        yield Comparison(first.absolute().name, first, second, options)
        return
    one, other = directories
    if one is None or other is None:
        msg = "compare a log directory with a log directory"
        raise UsageError(msg)
    for key in sorted({*one.partitions, *other.partitions}):
        yield Comparison(f"{key[0]}-{key[1]}", _path_of(one, key), _path_of(other, key), options)


def _path_of(directory: LogDirectory, key: TopicPartition) -> Path | None:
    entry = directory.partitions.get(key)
    return None if entry is None else entry.path


# -- differences as text -----------------------------------------------------------------------------------------------


def difference_text(difference: Difference) -> str:
    """Return one difference: a line with ``<`` for the first, one with ``>`` for the second."""
    fields = difference.fields if difference.kind == CHANGED else COMPARED
    lines = [f"{printable(difference.name)} offset {difference.offset}: {_what(difference)}"]
    for mark, colour, record in (("<", "red", difference.first), (">", "green", difference.second)):
        if record is not None:
            lines.append(styled(f"  {mark} {_record_text(record, fields)}", colour))
    return "\n".join(lines)


def _what(difference: Difference) -> str:
    if difference.kind == CHANGED:
        return f"{', '.join(difference.fields)} differ{_epochs(*difference.leader_epochs)}"
    return "only in the first" if difference.kind == ONLY_FIRST else "only in the second"


def _epochs(first: int | None, second: int | None) -> str:
    """Return the leader epochs, if they differ: then two leaders gave the same offset."""
    return "" if first == second else f" (leader epoch {_or_none(first)} against {_or_none(second)})"


def _or_none(epoch: int | None) -> str:
    return "none" if epoch is None else str(epoch)


def _record_text(record: dict[str, Any], fields: Iterable[str]) -> str:
    return ", ".join(f"{name} {_field_text(name, record[name])}" for name in fields if name in record)


def _field_text(name: str, value: Any) -> str:  # noqa: ANN401 - a field of the JSON vocabulary
    if name == "timestamp":
        return time_text(value)
    if name == "headers":
        return "{" + ", ".join(f"{value_text(key)}: {value_text(content)}" for key, content in value) + "}"
    return value_text(value)


def summary_text(comparison: Comparison) -> str:
    """Return the totals, the offsets that differ, and what could not be compared."""
    lines = [f"{printable(comparison.name)}: {printable(problem)}" for problem in comparison.problems]
    equal = f"{count_text(comparison.equal, 'record')} the same"
    different = f"{count_text(comparison.different, 'difference')}{_at(comparison.ranges)}"
    since = comparison.not_compared_from
    rest = "" if since is None else f"; not compared from offset {since} on"
    lines.append(f"{printable(comparison.name)}: {equal}, {different}{rest}")
    return "\n".join(lines)


def _at(ranges: Sequence[tuple[int, int]]) -> str:
    if not ranges:
        return ""
    texts = [str(first) if first == last else f"{first} to {last}" for first, last in ranges[:MAX_RANGES]]
    more = ["more"] if len(ranges) > MAX_RANGES else []
    return f" at {', '.join([*texts, *more])}"

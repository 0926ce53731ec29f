"""``seglog diff``: comparison of the records of two files or directories."""

from __future__ import annotations

from bisect import bisect_right, insort
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import click

from seglog_format.cli.dump import value_text
from seglog_format.cli.lookup import opened
from seglog_format.cli.main import DONE, FINDINGS, UNREADABLE
from seglog_format.cli.options import PATH_OR_INPUT, json_option, limit_option, range_option
from seglog_format.cli.output import count_text, printable, progress, styled, summing, time_text, write_line
from seglog_format.cli.paths import log_directory_at, progress_total
from seglog_format.cluster.merged_replicas import united
from seglog_format.errors import FormatError, UsageError
from seglog_format.lines import LineOptions, source_of
from seglog_format.lines.logs import RecordLines
from seglog_format.log.gaps import watch_over
from seglog_format.model import GREATEST_OFFSET, NO_PARTITION_LEADER_EPOCH, Frame, MissingOffsets, RecordBatch
from seglog_format.recovery.salvage_placement import placed_by_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from seglog_format.log.directory import LogDirectory, TopicPartition
    from seglog_format.log.segment import LogSegment

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
        advance: called with the size of each entry that was read.
        equal: records that both have.
        different: number of offsets that differ.
        problems: why nothing could be compared, or a log could not be read to its end.
        ranges: the first offsets that differ, as first and last of each run of compared offsets.
        unread: offsets that could not be read in the first log, and in the second; without end at a damaged end.
        is_damaged: whether a log is damaged, or its offsets are out of order.
    """

    name: str
    first: Path | None
    second: Path | None
    options: LineOptions
    advance: Callable[[int], None]
    equal: int = 0
    different: int = 0
    problems: list[str] = field(default_factory=list)
    ranges: list[tuple[int, int]] = field(default_factory=list)
    unread: tuple[list[MissingOffsets], list[MissingOffsets]] = field(default_factory=lambda: ([], []))
    is_damaged: bool = False
    _is_run: bool = False

    @property
    def not_compared(self) -> list[MissingOffsets]:
        """Return the offsets that were not compared because of damage, ascending."""
        return united([*self.unread[0], *self.unread[1]])

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
        left, right = self._records(self.first, self.unread[0]), self._records(self.second, self.unread[1])
        one, other = next(left, None), next(right, None)
        while one is not None or other is not None:
            is_first = one is not None and (other is None or one.offset <= other.offset)
            is_second = other is not None and (one is None or other.offset <= one.offset)
            both = one if is_first else None, other if is_second else None
            found = None if self._is_unread(*both) else self._compared(*both)
            if found is not None:
                yield found
            one = next(left, None) if is_first else one
            other = next(right, None) if is_second else other

    def _is_unread(self, one: Entry | None, other: Entry | None) -> bool:
        """Return whether only one log has a record, and damage keeps the record of the other from being read."""
        alone = one or other
        if alone is None or (one and other):
            return False
        spans = self.unread[one is not None]
        before = bisect_right(spans, (alone.offset, GREATEST_OFFSET))
        is_unread = bool(before) and alone.offset < spans[before - 1].next_offset
        self._is_run &= not is_unread
        return is_unread

    def _compared(self, one: Entry | None, other: Entry | None) -> Difference | None:
        """Count the records of the next offset, and return how they differ; None if they do not."""
        kind = CHANGED if one and other else ONLY_FIRST if one else ONLY_SECOND
        first, second = (None if each is None else each.line for each in (one, other))
        fields = [name for name in COMPARED if first and second and first.get(name) != second.get(name)]
        offset = (first or second or {})["offset"]
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

    def _records(self, path: Path, unread: list[MissingOffsets]) -> Iterator[Entry]:
        """Yield the wanted records of a log; unreadable offsets are added to a list before what follows."""
        reached: dict[int, int] = {}
        wanted = self.options
        with opened(path) as partition:
            for segment in partition.segments:
                if not wanted.overlaps(segment.base_offset, segment.allowed.last + 1):
                    continue
                reached[segment.base_offset] = segment.base_offset
                segment.limit = wanted.limit
                lines = RecordLines(source_of(segment.paths.log, segment.paths.log.name, 0), wanted)
                for batch in self._batches(segment, reached, unread):
                    epoch = batch.header.partition_leader_epoch
                    known = None if epoch == NO_PARTITION_LEADER_EPOCH else epoch
                    yield from (Entry(line, known) for line in lines.of(batch))
            gaps = watch_over(partition.listing).gaps(reached) if path.is_dir() and not self.is_damaged else ()
            self.problems += [
                str(gap)
                for gap in gaps
                if gap.is_loss and wanted.overlaps(gap.first_offset, max(gap.next_offset, gap.first_offset + 1))
            ]

    def _batches(
        self, segment: LogSegment, reached: dict[int, int], unread: list[MissingOffsets]
    ) -> Iterator[RecordBatch]:
        """Yield the batches of a segment that may hold wanted records, also the intact ones after damage."""
        base, wanted = segment.base_offset, self.options
        try:
            first = wanted.from_offset or 0
            if wanted.since_ms is not None:
                first = max(first, segment.entries.before_not_older(first, wanted.since_ms))
            segment.verify_gap(first)
            position = segment.position_of(first)
            if position is None:
                reached[base] = segment.next_offset
                return
            for frame in segment.ordered_frames(position):
                batch = segment.decode(frame)
                if wanted.to_offset is not None and batch.base_offset >= wanted.to_offset:
                    del reached[base]
                    return
                yield batch
                if (hidden := segment.hidden_data(frame, batch)) is not None:
                    self.problems.append(str(hidden))
                self.advance(frame.end - position)
                reached[base], position = batch.header.next_offset, frame.end
            segment.refuse_hidden_entries(position)
        except FormatError as problem:
            self.problems.append(str(problem))
            self.is_damaged = True
        else:
            return
        yield from self._after_damage(segment, reached[base], unread)

    def _after_damage(self, segment: LogSegment, reached: int, unread: list[MissingOffsets]) -> Iterator[RecordBatch]:
        """Yield the intact batches of a damaged segment from an offset on."""
        (scan,) = placed_by_name([segment], is_for_brokers=False).scans
        last, is_last = max(scan.last_offsets, default=-1) + 1, segment.allowed.last == GREATEST_OFFSET
        for damage in scan.damaged:
            missing = damage.missing
            if missing is None and is_last and damage.is_loss and damage.start >= max(scan.ends, default=0):
                missing = MissingOffsets(max(last, reached), GREATEST_OFFSET)
            if missing is not None and self.options.overlaps(*missing):
                insort(unread, missing)
        first_wanted = max(reached, self.options.from_offset or 0)
        for position in scan.starts:
            frame = segment.frame_at(position)
            if not isinstance(frame, Frame) or frame.header.next_offset <= first_wanted:
                continue
            try:
                yield segment.decode(frame)
            except FormatError:
                first = frame.header.last_offset if frame.header.base_offset is None else frame.header.base_offset
                insort(unread, MissingOffsets(first, frame.header.next_offset))


def compared(first: Path, second: Path, options: LineOptions, advance: Callable[[int], None]) -> Iterator[Comparison]:
    """Yield the comparisons of two paths: one, or one for each partition of two log directories.

    Raises:
        UsageError: one is a log directory and the other is not.
    """
    directories = log_directory_at(first), log_directory_at(second)
    if directories == (None, None):
        yield Comparison(first.absolute().name, first, second, options, advance)
        return
    one, other = directories
    if one is None or other is None:
        msg = "compare a log directory with a log directory"
        raise UsageError(msg)
    for key in sorted({*one.partitions, *other.partitions}):
        yield Comparison(f"{key[0]}-{key[1]}", _path_of(one, key), _path_of(other, key), options, advance)


def _path_of(directory: LogDirectory, key: TopicPartition) -> Path | None:
    return None if (entry := directory.partitions.get(key)) is None else entry.path


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
    texts = ("none" if epoch is None else str(epoch) for epoch in (first, second))
    return "" if first == second else f" (leader epoch {' against '.join(texts)})"


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
    spans = [_span(each) for each in comparison.not_compared]
    more = ["more"] if len(spans) > MAX_RANGES else []
    rest = f"; not compared: {'; '.join([*spans[:MAX_RANGES], *more])}" if spans else ""
    lines.append(f"{printable(comparison.name)}: {equal}, {different}{rest}")
    return "\n".join(lines)


def _span(missing: MissingOffsets) -> str:
    return missing.span if missing.next_offset < GREATEST_OFFSET else f"from offset {missing.first_offset} on"


def _at(ranges: Sequence[tuple[int, int]]) -> str:
    if not ranges:
        return ""
    texts = [str(first) if first == last else f"{first} to {last}" for first, last in ranges[:MAX_RANGES]]
    more = ["more"] if len(ranges) > MAX_RANGES else []
    return f" at {', '.join([*texts, *more])}"


EPILOG: Final = """\b
Examples:
  seglog diff backup/my-topic-0 /var/lib/kafka/data/my-topic-0
  seglog diff before.log after.log
  seglog diff --from 1000 --to 2000 backup/my-topic-0 my-topic-0
  seglog diff --json backup data | jq .offset"""

USUAL_COUNT: Final = 10


@click.command(epilog=EPILOG)
@click.argument("first", type=PATH_OR_INPUT)
@click.argument("second", type=PATH_OR_INPUT)
@click.option("--count", default=USUAL_COUNT, show_default=True, metavar="N", help="Differences to print; 0 for all.")
@range_option
@json_option
@limit_option
def command(first: Path, second: Path, *, count: int, as_json: bool, **choices: Any) -> int:  # noqa: ANN401 - click passes what the options gave
    """Compare the records of FIRST and SECOND by offset: log files, partition directories or log directories.

    Records are equal if timestamp, key, value, headers, sequence and control type are equal; batching and
    compression do not matter. Damaged batches are not compared, and the last line says which offsets that are; the
    comparison goes on after them. With --since or --until, only records of these times are compared. The exit status is
    1 when anything differs, and 3 when damage kept records from it.
    """
    status, options = DONE, LineOptions(**choices)
    with progress("Comparing", progress_total(first) + progress_total(second)) as advance:
        for comparison in compared(first, second, options, summing(advance)):
            _write(comparison, count, as_json=as_json)
            status = max(status, _status(comparison))
    return status


def _status(comparison: Comparison) -> int:
    return UNREADABLE if comparison.is_damaged else FINDINGS if comparison.different or comparison.problems else DONE


def _write(comparison: Comparison, count: int, *, as_json: bool) -> None:
    for number, difference in enumerate(comparison, 1):
        if not count or number <= count:
            write_line(difference.as_object() if as_json else difference_text(difference))
    write_line(summary_object(comparison) if as_json else summary_text(comparison))


def summary_object(comparison: Comparison) -> dict[str, Any]:
    """Return the totals of a comparison for JSON."""
    return {
        "type": "comparison",
        "name": comparison.name,
        "equal": comparison.equal,
        "different": comparison.different,
        "problems": comparison.problems,
        "notComparedFrom": next((each.first_offset for each in comparison.not_compared), None),
        "notCompared": [each.as_object() for each in comparison.not_compared],
    }

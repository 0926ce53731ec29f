"""``seglog lookup``: the position of an offset or a timestamp, and how a reader finds it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final

import click

from seglog_format.cli.dump import value_text
from seglog_format.cli.main import FINDINGS
from seglog_format.cli.options import (
    file_argument,
    json_option,
    offset_of,
    remote_options,
    showing_warnings,
    to_timestamp_ms,
)
from seglog_format.cli.output import (
    GIVEN,
    count_text,
    diagnose,
    printable,
    styled,
    time_text,
    write_json,
    write_line,
    write_text,
)
from seglog_format.cli.paths import partition_directory_at, segment_files_at
from seglog_format.errors import OffsetOutOfRangeError, UsageError
from seglog_format.lines import LineOptions, source_of
from seglog_format.lines.logs import RecordLines, batch_line
from seglog_format.log.listing import list_partition
from seglog_format.log.partition import Partition, open_partition
from seglog_format.log.segment import trusted_entry

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from seglog_format.cli.options import RemoteChoice
    from seglog_format.log.gaps import Gap
    from seglog_format.log.remote_store import RemoteStore
    from seglog_format.log.segment import LogSegment
    from seglog_format.model import RecordBatch

    Answer = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a lookup.

    Attributes:
        name: a word: ``files``, ``index``, ``walk``, ``batch``, ``record``, ...
        text: what was done, and what was found.
        requirements: ids of the rules it follows.
    """

    name: str
    text: str
    requirements: tuple[str, ...] = ()


def opened(path: Path, *, trust_indexes: bool = False, remote: RemoteStore | None = None) -> Partition:
    """Open the partition at a path; for a log file, a partition that has this one segment.

    Args:
        path: of a partition directory or a log file.
        trust_indexes: as `open_partition`.
        remote: as there.

    Raises:
        UsageError: the path does not exist, or is no single partition; or it is a file, and a store is given.
    """
    directory = partition_directory_at(path)
    if path.is_dir():
        return open_partition(directory, trust_indexes=trust_indexes, remote=remote)
    if remote is not None:
        msg = f"{path}: one log file; the tiered segments belong to its partition directory"
        raise UsageError(msg)
    files = segment_files_at(path)
    listing = list_partition(directory)._replace(segments=(files,), base_offsets=(files.base_offset,))
    return Partition(listing, trust_indexes=trust_indexes)


def lookup_offset(partition: Partition, offset: int, steps: list[Step] | None = None) -> Answer:
    """Find an offset.

    Args:
        partition: to look in.
        offset: any number.
        steps: takes the steps, also those before an error; None for the answer alone, which costs less.

    Returns:
        An object with ``found``; the record and its batch if there is one, else the reason.

    Raises:
        FormatError: damage was met on the way.
    """
    return _Lookup(partition, steps).offset(offset)


def lookup_timestamp(partition: Partition, timestamp_ms: int, steps: list[Step] | None = None) -> Answer:
    """Find the first record that is not older than a timestamp; arguments, answer and errors as `lookup_offset`."""
    return _Lookup(partition, steps).timestamp(timestamp_ms)


class _Lookup:
    def __init__(self, partition: Partition, steps: list[Step] | None) -> None:
        self.partition = partition
        self.is_explained = steps is not None
        self.steps = [] if steps is None else steps

    def add_step(self, name: str, text: str, *requirements: str) -> None:
        self.steps.append(Step(name, text, requirements))

    def offset(self, offset: int) -> Answer:
        try:
            fetch = self.partition.read(offset, 1)
        except OffsetOutOfRangeError as error:
            self.add_step("end", str(error), "SEG-LKP-004")
            return _nothing(offset, str(error))
        if not fetch.batches:
            self.add_step("end", f"{offset} is the log end offset: no record has it yet", "SEG-LKP-005")
            return _nothing(offset, "the log end offset; no record has it yet")
        (batch,) = fetch.batches
        if self.is_explained:
            self._add_segments(offset)
            self._add_batch(batch, offset)
        return self._answer(self.partition.segment_for(batch.base_offset), batch, offset)

    def _add_segments(self, offset: int) -> None:
        """Add the steps from the file list to the batch."""
        segments = self.partition.segments
        segment = self.partition.segment_for(offset)
        self.add_step("files", _files_text(segments, segment, offset), "SEG-LKP-001")
        following = list(segments[segments.index(segment) + 1 :])
        while self._add_position(segment, offset) is None and following:
            segment = following.pop(0)
            self.add_step("files", f"the next segment is {segment.base_offset}", "SEG-LKP-002")

    def _add_position(self, segment: LogSegment, offset: int) -> int | None:
        start = self._add_index(segment, offset)
        position = segment.position_of(offset, trust_index=self.partition.trust_indexes)
        if position is None:
            self.add_step("walk", f"from position {start} to the end: every entry ends below {offset}", "SEG-LKP-002")
            return None
        passed = _entry_count(segment, start, position)
        self.add_step("walk", _walk_text(start, position, passed, offset), "SEG-LKP-002")
        return position

    def _add_index(self, segment: LogSegment, offset: int) -> int:
        """Add the step of the offset index, and whether its entry is right; return where the walk starts."""
        index = segment.offset_index
        if index is None:
            self.add_step("index", "there is no offset index: start at position 0", "SEG-IDX-009")
            return 0
        entries = index.entries
        if not entries:
            self.add_step("index", "the offset index has no entry: start at position 0", "SEG-IDX-008")
            return 0
        floor = index.lookup(offset)
        if entries[0].offset > offset:
            text = f"none of {count_text(len(entries), 'index entry')} is at or below {offset}: start at position 0"
            self.add_step("index", text, "SEG-IDX-008")
            return 0
        entry = f"entry ({floor.offset}, {floor.position})"
        text = f"{entry} is the last of {count_text(len(entries), 'entry')} at or below {offset}"
        self.add_step("index", text, "SEG-IDX-008")
        if self.partition.trust_indexes:
            return self._add_trust(segment, offset, floor.position)
        reason = _reason_to_doubt(segment, floor.offset, floor.position)
        if reason:
            self.add_step("proof", f"{reason}: the index is not trusted; start at position 0", "SEG-IDX-009")
            return 0
        text = f"an entry starts at {floor.position}, and all before it end below {floor.offset}"
        self.add_step("proof", text, "SEG-IDX-006")
        return floor.position

    def _add_trust(self, segment: LogSegment, offset: int, position: int) -> int:
        """Add whether a lookup that trusts indexes starts at an index entry; return where the walk starts."""
        if trusted_entry(segment, offset) is None:
            text = f"no intact entry of a fitting offset is at {position}: start at position 0"
            self.add_step("trust", text, "SEG-IDX-009")
            return 0
        text = f"an intact entry of a fitting offset is at {position}: the index is trusted, not proven"
        self.add_step("trust", text, "SEG-IDX-009")
        return position

    def _add_batch(self, batch: RecordBatch, offset: int) -> None:
        header = batch.header
        line = batch_line("", batch.position, header)
        text = (
            f"offsets {batch.base_offset} to {batch.last_offset}, {count_text(len(batch.records), 'record')},"
            f" magic {header.magic}, {line['codec']}, checksum right"
        )
        self.add_step("batch", text, "SEG-MSG-004" if header.magic < 2 else "SEG-BAT-003")  # noqa: PLR2004 - magic 2
        below = sum(record.offset < offset for record in batch.records)
        if below:
            self.add_step("drop", f"{count_text(below, 'record')} below {offset}", "SEG-LKP-003")

    def _answer(self, segment: LogSegment, batch: RecordBatch, offset: int) -> Answer:
        """Return the record at an offset, or the first one after it, which may be in a later batch."""
        log = segment.paths.log
        source = source_of(log, GIVEN.get(str(log), f"{self.partition.name}/{log.name}"), segment.size)
        position = {"file": source.name, "position": batch.position}
        lines = [line for line in RecordLines(source, LineOptions()).of(batch) if line["offset"] >= offset]
        if not lines:
            reason = "compaction has removed the record, and all that followed in its batch"
            return _nothing(offset, reason) | position
        record: Answer = lines[0]
        gaps: list[Gap] = []
        if record["offset"] != offset:
            text = f"there is no record {offset} any more; the next one is {record['offset']}"
            self.add_step("record", text, "SEG-LKP-002")
            list(self.partition.records(offset, record["offset"], on_gap=gaps.append))
        lost = {"missing": [gap.as_object() for gap in gaps if gap.is_loss]} if gaps else {}
        return {"type": "lookup", "offset": offset, "found": True, **position, "record": record, **lost}

    def timestamp(self, timestamp_ms: int) -> Answer:
        found = self.partition.offset_for_timestamp(timestamp_ms)
        if timestamp_ms < 0:
            return self._special(timestamp_ms, None if found is None else found.offset)
        if self.is_explained:
            self._add_time_segments(timestamp_ms)
        if found is None:
            self.add_step("end", f"no record at or after {time_text(timestamp_ms)}", "SEG-LKP-008")
            return _nothing(None, f"no record at or after {time_text(timestamp_ms)}") | {"timestamp": timestamp_ms}
        self.add_step("answer", f"the first such record, in offset order, is {found.offset}", "SEG-LKP-008")
        return self.offset(found.offset) | {"timestamp": timestamp_ms}

    def _special(self, timestamp_ms: int, offset: int | None) -> Answer:
        meaning = SPECIAL.get(timestamp_ms, "an offset that a directory does not hold")
        self.add_step("meaning", f"timestamp {timestamp_ms} asks for {meaning}", *SPECIAL_RULES.get(timestamp_ms, ()))
        if offset is None:
            return _nothing(None, "there is none") | {"timestamp": timestamp_ms}
        answer = {"type": "lookup", "timestamp": timestamp_ms, "offset": offset, "found": True, "reason": meaning}
        return self.offset(offset) | {"timestamp": timestamp_ms} if timestamp_ms == YOUNGEST else answer

    def _add_time_segments(self, timestamp_ms: int) -> None:
        """Add the steps of skipped segments, and of the time index of the first segment that is not skipped."""
        passed = 0
        for segment in self.partition.segments:
            if segment.largest_timestamp_ms >= timestamp_ms:
                self._add_passed(passed, timestamp_ms)
                text = f"segment {segment.base_offset} goes up to {time_text(segment.largest_timestamp_ms)}"
                self.add_step("files", text, "SEG-LKP-008")
                self._add_time_index(segment, timestamp_ms)
                return
            passed += 1
        self._add_passed(passed, timestamp_ms)

    def _add_passed(self, passed: int, timestamp_ms: int) -> None:
        if passed:
            text = f"{count_text(passed, 'segment')} only with records older than {time_text(timestamp_ms)}"
            self.add_step("files", text, "SEG-LKP-008")

    def _add_time_index(self, segment: LogSegment, timestamp_ms: int) -> None:
        index = segment.time_index
        if index is None or not index.entries:
            self.add_step("index", "no time index entry: start at the beginning of the segment", "SEG-IDX-009")
            return
        floor = index.lookup(timestamp_ms - 1)
        if floor.timestamp_ms < 0:
            self.add_step("index", "no time index entry is older: start at the beginning of the segment", "SEG-TIX-008")
            return
        text = (
            f"time index entry ({time_text(floor.timestamp_ms)}, offset {floor.offset}): nothing up to there is newer"
        )
        self.add_step("index", text, "SEG-TIX-008", "SEG-TIX-004")


YOUNGEST = -3
SPECIAL = {
    -1: "the log end offset",
    -2: "the log start offset",
    YOUNGEST: "the first of the newest records",
    -4: "the log start offset on this broker's disk",
    -5: "the last offset in tiered storage, which a directory does not hold",
}
SPECIAL_RULES = {-1: ("SEG-LKP-009",), -2: ("SEG-LKP-009",), YOUNGEST: ("SEG-LKP-013",)}


def _nothing(offset: int | None, reason: str) -> Answer:
    return {"type": "lookup", "offset": offset, "found": False, "reason": reason}


def _files_text(segments: Sequence[LogSegment], segment: LogSegment, offset: int) -> str:
    if len(segments) == 1:
        return f"one segment, {segment.base_offset}"
    first, last = segments[0].base_offset, segments[-1].base_offset
    return (
        f"{len(segments)} segments, {first} to {last}; {segment.base_offset} is the greatest that is not above {offset}"
    )


def _entry_count(segment: LogSegment, start: int, end: int) -> int:
    """Count the entries from one position to another, both of which an entry starts at."""
    return sum(1 for _ in takewhile(lambda frame: frame.position < end, segment.frames(start)))


def _walk_text(start: int, position: int, passed: int, offset: int) -> str:
    if not passed:
        return f"the entry at position {position} is the first that does not end below {offset}"
    entries = count_text(passed, "entry")
    return f"from position {start} past {entries} to position {position}, the first that does not end below {offset}"


def _reason_to_doubt(segment: LogSegment, offset: int, position: int) -> str:
    """Return why an index entry cannot be true; empty if it can."""
    table = segment.entries
    if position not in table.positions:
        return f"no entry starts at position {position}"
    number = table.positions.index(position)
    if number and table.last_offsets[number - 1] >= offset:
        return f"offset {offset} ends before position {position}"
    found = segment.frame_at(position)
    first = getattr(getattr(found, "header", None), "base_offset", None)
    return f"the entry at position {position} starts above {offset}" if first is not None and first > offset else ""


# -- the steps of a lookup as text -------------------------------------------------------------------------------------


STEP_WIDTH = 9


def step_text(step: Step) -> str:
    """Return one step on one line: its name, what happened, and why."""
    ids = f" [{', '.join(step.requirements)}]" if step.requirements else ""
    return f"{styled(f'{step.name:{STEP_WIDTH}}', 'bold')} {printable(step.text)}{styled(ids, 'dim')}"


def answer_text(answer: dict[str, Any]) -> str:
    """Return the answer on one line."""
    if not answer["found"]:
        return f"not found: {printable(answer['reason'])}"
    if "record" not in answer:
        return f"offset {answer['offset']}: {printable(answer['reason'])}"
    record = answer["record"]
    what = record.get("control") or f"{value_text(record['key'])} = {value_text(record['value'])}"
    return (
        f"offset {record['offset']} at {printable(answer['file'])}:{answer['position']}"
        f"  {time_text(record['timestamp'])}  {what}"
    )


EPILOG: Final = """\b
Examples:
  seglog lookup my-topic-0 4711
  seglog lookup --explain my-topic-0 --offset 4711
  seglog lookup --trust-indexes my-topic-0 4711
  seglog lookup --explain my-topic-0 --timestamp 2026-01-31T12:00:00Z
  seglog lookup my-topic-0 --timestamp -1
  seglog lookup --explain --remote s3://bucket/tier my-topic-0 4711"""


class _Command(click.Command):
    """A command that takes words such as -1 for numbers."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Refuse options that do not exist."""
        known = {option for each in self.get_params(ctx) for option in each.opts}
        for word in takewhile("--".__ne__, args):
            name = word.partition("=")[0]
            if name.startswith("-") and name.strip("-") and not name[1:].isdigit() and name not in known:
                raise click.NoSuchOption(name, ctx=ctx)
        return super().parse_args(ctx, args)


@click.command(cls=_Command, epilog=EPILOG, context_settings={"ignore_unknown_options": True})
@file_argument
@click.argument("number", metavar="[OFFSET]", type=offset_of, required=False)
@click.option("--offset", type=offset_of, metavar="N", help="Find this offset.")
@click.option(
    "--timestamp",
    callback=to_timestamp_ms,
    metavar="TIME",
    help="Find the first record that is not older: milliseconds or an ISO time; -1 is the end of the log, -2 its start,"
    " -3 the record with the greatest timestamp.",
)
@click.option("--explain", is_flag=True, help="Print every step.")
@click.option(
    "--trust-indexes",
    is_flag=True,
    help="Start at an index entry that looks right, as brokers do, instead of proving it by a walk.",
)
@json_option
@remote_options
def command(  # noqa: PLR0913 - an option each
    path: Path,
    *,
    number: int | None,
    offset: int | None,
    timestamp: int | None,
    explain: bool,
    trust_indexes: bool,
    as_json: bool,
    remote: RemoteChoice | None,
) -> int:
    """Find an OFFSET or a timestamp in the partition directory at PATH, or in one log file.

    With --explain, each step is printed: file list, index entry, walk, batch, record, and its requirement. The
    exit status is 1 when there is no such record, or when the offset is known to be lost, and a later record is found.

    No index is trusted by default: the walk that proves an entry reads the header of each batch before it in its
    segment, about a second for some hundred thousand. With --trust-indexes a lookup takes no longer in a large segment
    than in a small one, but a manipulated index can mislead it.

    With --remote, indexes are trusted, and the number of requests and of fetched bytes is reported.
    """
    given = [value for value in (number, offset, timestamp) if value is not None]
    if len(given) != 1:
        msg = "give one offset or one timestamp"
        raise click.UsageError(msg)
    steps: list[Step] | None = [] if explain else None
    look_up = lookup_offset if timestamp is None else lookup_timestamp
    store = None if remote is None else remote.open()
    with showing_warnings():
        found = opened(path, trust_indexes=trust_indexes, remote=store)
    with found as partition:
        try:
            answer = look_up(partition, given[0], steps)
        finally:
            _write_steps(steps or (), as_json=as_json)
    if store is not None:
        answer |= {"fetched": {"requests": store.traffic.requests, "bytes": store.traffic.size}}
    _write_answer(answer, as_json=as_json)
    return 0 if answer["found"] and not answer.get("missing") else FINDINGS


def _write_steps(steps: Iterable[Step], *, as_json: bool) -> None:
    for step in steps:
        write_line(
            {"type": "step", "step": step.name, "text": step.text, "requirements": list(step.requirements)}
            if as_json
            else step_text(step)
        )


def _write_answer(answer: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        write_json(answer)
        return
    write_text(answer_text(answer))
    for each in answer.get("missing", ()):
        diagnose(f"{each['firstOffset']} to {each['nextOffset'] - 1} are missing: {each['reason']}")
    if "fetched" in answer:
        diagnose(f"{answer['fetched']['bytes']:,} bytes fetched in {answer['fetched']['requests']} requests")

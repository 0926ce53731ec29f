"""Starts an implementation on a state of the disk, and compares what its readers get with what was promised."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Final, TypeAlias

from seglog_conformance.crash.workload import START_MS, RefusedError, ask
from seglog_format.checks import verify
from seglog_format.codec.build import build_batch, new_record
from seglog_format.codec.encode import encode_batch
from seglog_format.errors import SeglogError
from seglog_format.log.partition import open_partition
from seglog_format.names import FileKind
from seglog_format.requirements import Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from seglog_conformance.crash.workload import Batch, Promise
    from seglog_conformance.process import ProcessTestee
    from seglog_conformance.protocol import Json

ONE_MORE: Final = b"one more".hex()
"""Value of the record that is appended after the power cut."""
ZEROS: Final = frozenset({"SEG-IDX-007", "SEG-TIX-007"})
SHOWN: Final = 3
PARTITION: Final = "topic-0"
READ: Final[Json] = {"do": "read"}
CLOSE: Final[Json] = {"do": "close"}

Records: TypeAlias = tuple[tuple[int, str], ...]
"""Offset and value, in hex, of each record."""
Complaints: TypeAlias = dict[str, str]
"""What is wrong, by its kind."""


@dataclass(frozen=True, slots=True)
class Seen:
    """What an implementation does when it is started on a state.

    Attributes:
        failure: the step that it refuses or fails, and why; empty if it does all.
        believed: what `seglog verify` finds before the start, where a file says that the log was closed cleanly: errors
            and indexes that end in zeros, which a start then believes.
        log_start: first offset for readers.
        next_offset: the log end offset after the start; -1 if it did not start.
        uncommitted: what a reader gets.
        committed: what a reader gets with the isolation level read_committed.
        sent_again: base offsets of batches that were sent again, each with what became of it if it was not recognized.
        appended_at: offset of the next record.
        findings: errors that `seglog verify` finds after it was closed.
        aborted: producer and marker of each transaction that the transaction indexes then list as aborted.
        second: what a reader gets after the second start.
    """

    failure: str = ""
    believed: tuple[str, ...] = ()
    log_start: int = 0
    next_offset: int = -1
    uncommitted: Records = ()
    committed: Records = ()
    sent_again: tuple[tuple[int, str], ...] = ()
    appended_at: int = -1
    findings: tuple[str, ...] = ()
    aborted: tuple[tuple[int, int], ...] = ()
    second: Records = ()


def look(testee: ProcessTestee, root: Path, config: Json, batches: Sequence[Batch], *, sends_again: bool) -> Seen:
    """Start an implementation on a directory, read, append, close, verify, and start it again.

    Args:
        testee: the adapter's process, which is started again after a step that it does not survive.
        root: the directory, which changes.
        config: settings of the log.
        batches: what was appended.
        sends_again: whether it recognizes batches that a producer sends again.
    """
    is_clean = (root / FileKind.CLEAN_SHUTDOWN.value).exists()
    seen = Seen(believed=_findings(root, ZEROS) if is_clean else ())
    start = {"do": "open", "directory": str(root), "config": config}
    try:
        opened, read, committed = ask(testee, start, READ, {**READ, "isolation": "read_committed"})
        seen = replace(
            seen,
            log_start=int(opened["logStartOffset"]),
            next_offset=int(opened["nextOffset"]),
            uncommitted=_records(read),
            committed=_records(committed),
        )
        again = list(_last(batches, seen)) if sends_again else []
        appends = [{"do": "append", "data": batch.data} for batch in again]
        *results, appended, _ = ask(testee, *appends, {"do": "append", "data": _one_more(), "acks": "flushed"}, CLOSE)
        seen = replace(
            seen,
            sent_again=tuple((batch.start, _again(found, batch)) for batch, found in zip(again, results, strict=True)),
            appended_at=int(appended["firstOffset"]),
            findings=_findings(root),
            aborted=_aborted(root),
        )
        return replace(seen, second=_records(ask(testee, start, READ, CLOSE)[1]))
    except RefusedError as error:
        with suppress(RefusedError):
            ask(testee, CLOSE)
        return replace(seen, failure=str(error).replace(str(root), "DIRECTORY"))


@cache
def _one_more() -> str:
    return encode_batch(build_batch([new_record(value=bytes.fromhex(ONE_MORE), timestamp_ms=START_MS)])).hex()


def _records(answer: Json) -> Records:
    return tuple((int(record["offset"]), record["value"]) for record in answer["records"])


def _findings(root: Path, also: frozenset[str] = frozenset()) -> tuple[str, ...]:
    try:
        return tuple(
            str(finding).replace(str(root), "DIRECTORY")
            for finding in verify(root)
            if finding.severity is Severity.ERROR or finding.requirement in also
        )
    except SeglogError as error:
        return (str(error).replace(str(root), "DIRECTORY"),)


def _aborted(root: Path) -> tuple[tuple[int, int], ...]:
    try:
        with open_partition(root / PARTITION) as partition:
            indexes = [segment.transaction_index for segment in partition.segments]
            return tuple((each.producer_id, each.last_offset) for index in indexes if index for each in index.entries)
    except SeglogError:
        return ()


def _last(batches: Sequence[Batch], seen: Seen) -> Iterable[Batch]:
    """Return the last batch of each producer that a reader gets whole."""
    there = set(seen.uncommitted)
    whole = (batch for batch in batches if batch.producer >= 0 and batch.values and there.issuperset(batch.records))
    return {batch.producer: batch for batch in whole}.values()


def _again(answer: Json, batch: Batch) -> str:
    if answer.get("isDuplicate") is True and int(answer["firstOffset"]) == batch.start:
        return ""
    return f"is appended at offset {answer['firstOffset']}"


def complaints(seen: Seen, promise: Promise) -> Complaints:
    """Return what is wrong with a start after a power cut, by kind."""
    if seen.next_offset < 0:
        return {"does not start": seen.failure}
    kept = [batch for batch in promise.batches if batch.end <= seen.next_offset]
    wanted = [record for batch in kept for record in batch.records if record[0] >= seen.log_start]
    found = _compared(seen.uncommitted, wanted, promise)
    if seen.next_offset < promise.acknowledged:
        found["loses what was flushed"] = (
            f"the log ends at offset {seen.next_offset}, and everything below {promise.acknowledged} was acknowledged"
        )
    if seen.believed:
        found["clean end"] = f"is believed to be closed cleanly: {'; '.join(seen.believed[:SHOWN])}"
    if seen.log_start > promise.start:
        found["begins too late"] = f"readers begin at {seen.log_start}, and nothing above {promise.start} may go"
    end = kept[-1].end if kept else 0
    if seen.next_offset not in {end, seen.log_start}:
        found["ends inside a batch"] = f"the log ends at offset {seen.next_offset}, and a batch ends at {end}"
    if not found.keys() - {"clean end"} and seen.committed not in (committed := _committed(kept, seen.log_start)):
        found["read_committed"] = f"delivers {_shown(seen.committed, committed[0])}"
    if seen.failure:
        return found | {"does not work": seen.failure}
    markers = {(batches[0].producer, marker.start) for batches, marker in _ended(kept)[0] if _is_seen(batches, seen)}
    if unlisted := sorted(markers - set(seen.aborted)):
        found["aborted"] = f"no transaction index lists what was aborted (producer, marker): {unlisted[:SHOWN]}"
    return found | _of_appends(seen)


def _of_appends(seen: Seen) -> Complaints:
    """Return what is wrong with what comes after reading."""
    found: Complaints = {}
    if seen.appended_at != seen.next_offset:
        found["next offset"] = (
            f"the next record gets offset {seen.appended_at}, and the log ended at {seen.next_offset}"
        )
    if lost := [f"the batch at offset {start} is sent again, and {what}" for start, what in seen.sent_again if what]:
        found["duplicate"] = "; ".join(lost)
    if seen.findings:
        found["verify"] = "; ".join(seen.findings[:SHOWN])
    if seen.second != (*seen.uncommitted, (seen.appended_at, ONE_MORE)):
        found["second start"] = f"delivers {_shown(seen.second, seen.uncommitted)}"
    return found


def _compared(found: Records, wanted: Sequence[tuple[int, str]], promise: Promise) -> Complaints:
    broken: Complaints = {}
    known = {value: offset for batch in promise.batches for offset, value in batch.records}
    expected = dict(wanted)
    for offset, value in found:
        if value not in known:
            broken["never written"] = f"the record at offset {offset} was never written"
        elif known[value] != offset:
            broken["at another offset"] = f"the record of offset {known[value]} is delivered at offset {offset}"
    if twice := [value for value, count in Counter(value for _, value in found).items() if count > 1]:
        broken["twice"] = f"{len(twice)} records are delivered more than once"
    missing = sorted(expected.keys() - {offset for offset, _ in found})
    for kind, lost in (
        ("loses what was flushed", [offset for offset in missing if offset < promise.acknowledged]),
        ("hole", [offset for offset in missing if offset >= promise.acknowledged]),
    ):
        if lost:
            broken[kind] = f"the record at offset {lost[0]} is not delivered, and the log goes on behind it"
    if [offset for offset, _ in found] != sorted(offset for offset, _ in found):
        broken["order"] = "the offsets of the records do not ascend"
    return broken


def _committed(kept: Sequence[Batch], log_start: int) -> tuple[Records, Records]:
    """Return what a reader may get with the isolation level read_committed.

    Whether a transaction is open of which all records are below the log start, a storage may know from a snapshot of
    its producers, or not: the log itself does not tell.
    """
    ended, held = _ended(kept)
    aborted = [batch for batches, _ in ended for batch in batches]
    records = [record for batch in kept if batch not in aborted for record in batch.records if record[0] >= log_start]
    end = kept[-1].end if kept else 0
    first = [batches[0].start for batches in held.values()]
    above = [batch.start for batches in held.values() for batch in batches if batch.end > log_start]
    known, read = (min(offsets, default=end) for offsets in (first, above))
    return tuple(each for each in records if each[0] < known), tuple(each for each in records if each[0] < read)


def _ended(kept: Sequence[Batch]) -> tuple[list[tuple[list[Batch], Batch]], dict[int, list[Batch]]]:
    """Return the batches of each aborted transaction with its marker, and those of open ones by their producer."""
    held: dict[int, list[Batch]] = {}
    aborted = []
    for batch in kept:
        if batch.end_marker:
            batches = held.pop(batch.producer, [])
            if batch.end_marker == "abort" and batches:
                aborted.append((batches, batch))
        elif batch.is_transactional:
            held.setdefault(batch.producer, []).append(batch)
    return aborted, held


def _is_seen(batches: Sequence[Batch], seen: Seen) -> bool:
    return any(batch.end > seen.log_start for batch in batches)


def _shown(found: Records, wanted: Records) -> str:
    more = [offset for offset, _ in found if offset not in dict(wanted)]
    less = [offset for offset, _ in wanted if offset not in dict(found)]
    return f"too much at {more[:SHOWN]}, too little at {less[:SHOWN]}"

"""Replay random histories of remote segments with Kafka's classes and with ours.

A history holds what brokers and their failures write: segments copied epoch by epoch, copies that never finish,
elections that lose the end of a log, deletion in every state, records repeated and out of order.
"""

from __future__ import annotations

import base64
import random
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from proofs.kafka.oracle import TIERS, Oracle, scratch_directory
from proofs.kafka.result import Result
from seglog_format.tier.local_metadata import RetentionRules, expired
from seglog_format.tier.segments import (
    Lineage,
    RemotePartitionId,
    RemoteSegmentId,
    RemoteSegments,
    SegmentState,
    remote_event,
)
from seglog_format.types import EpochStart

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from seglog_format.tier.segments import RemoteSegment

ABOUT: Final = "generated histories of remote segments: states, which segment answers, lineage, deletion"
PARTITION: Final = RemotePartitionId("orders", "AAAAAAAAAAEAAAAAAAAAAQ", 0)
NOW_MS: Final = 1_800_000_000_000
MANAGERS: Final = ("4.1", "4.4")
"""The releases whose `RemoteLogManager` is compared; of the older one only a static method is."""


@dataclass(slots=True)
class History:
    """Events of one partition, with the log that they belong to.

    Attributes:
        events: events, in the oracle's format.
        checkpoint: leader epochs of the log with their start offsets.
        log_start_offset: log start offset.
        log_end_offset: log end offset.
        retention_ms: retention time of the topic.
        retention_size: retention size of the topic.
    """

    events: list[dict[str, Any]] = field(default_factory=list)
    checkpoint: list[EpochStart] = field(default_factory=list)
    log_start_offset: int = 0
    log_end_offset: int = 0
    retention_ms: int = -1
    retention_size: int = -1


class _Author:
    """Generator of one history."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.history = History()
        self.epochs = [EpochStart(self.random.choice((0, 0, 3)), 0)]
        self.end = 0
        self.copied = 0
        self.states: dict[int, int] = {}

    def write(self) -> History:
        for _ in range(self.random.randint(1, 40)):
            steps = (self.grow, self.copy, self.copy, self.copy, self.elect, self.lose_end, self.delete, self.repeat)
            self.random.choice(steps)()
        self._describe_log()
        return self.history

    def grow(self) -> None:
        self.end += self.random.randint(1, 300)

    def elect(self) -> None:
        """Elect a new leader; the previous one may have written no record, and then the log drops its epoch."""
        epoch = self.epochs[-1].epoch + self.random.randint(1, 3)
        self.epochs = [entry for entry in self.epochs if entry.start_offset < self.end]
        self.epochs.append(EpochStart(epoch, self.end))

    def lose_end(self) -> None:
        """Elect uncleanly, or truncate the log: it continues at a lower offset, under a new epoch."""
        self.end = self.random.randint(self.end // 2, self.end)
        self.elect()
        self.copied = min(self.copied, self.random.randint(self.end // 2, self.end))

    def copy(self) -> None:
        if self.end <= self.copied:
            self.grow()
        end = self.random.randint(self.copied, self.end - 1)
        self._start(self.copied, end)
        if self.random.random() < 0.85:  # noqa: PLR2004 - most copies finish
            self.change(len(self.states) - 1, SegmentState.COPY_SEGMENT_FINISHED)
            self.copied = end + 1

    def _start(self, start: int, end: int) -> None:
        number = len(self.states)
        self.states[number] = SegmentState.COPY_SEGMENT_STARTED
        event = {"id": number, "startOffset": start, "endOffset": end, "epochs": self._epochs_of(start, end)}
        size, age = self.random.randint(1, 5000), self.random.randint(0, 2000)
        event |= {"size": size, "maxTimestampMs": NOW_MS - age, "isTransactionIndexEmpty": self.random.random() < 0.5}  # noqa: PLR2004 - half of them
        self._add(event | {"state": int(SegmentState.COPY_SEGMENT_STARTED)})

    def _epochs_of(self, start: int, end: int) -> list[tuple[int, int]]:
        before = [entry for entry in self.epochs if entry.start_offset <= start]
        inside = [tuple(entry) for entry in self.epochs if start < entry.start_offset <= end]
        keep_empty = [(entry.epoch, start) for entry in before[-2:-1] if before[-1].start_offset == start]
        first = (before[-1].epoch, start)
        found = [*(keep_empty if self.random.random() < 0.3 else []), first, *inside]  # noqa: PLR2004 - some of them
        return found if self.random.random() < 0.95 else [(epoch + 1, offset) for epoch, offset in found]  # noqa: PLR2004 - few

    def change(self, number: int, state: SegmentState) -> None:
        self.states[number] = state
        event: dict[str, Any] = {"id": number, "state": int(state)}
        self._add(event | ({"custom": self.random.randint(0, 100)} if self.random.random() < 0.5 else {}))  # noqa: PLR2004 - half of them

    def _add(self, event: dict[str, Any]) -> None:
        at = len(self.history.events)
        self.history.events.append(event | {"at": at, "broker": self.random.randint(0, 5)})

    def delete(self) -> None:
        if self.states:
            number = self.random.choice(list(self.states))
            self.change(number, SegmentState.DELETE_SEGMENT_STARTED)
            if self.random.random() < 0.6:  # noqa: PLR2004 - most deletions finish
                self.change(number, SegmentState.DELETE_SEGMENT_FINISHED)

    def repeat(self) -> None:
        """Write a record out of order: one again, or any state of any segment, even of one that does not exist."""
        if self.history.events and self.random.random() < 0.5:  # noqa: PLR2004 - half of them
            again = self.random.choice(self.history.events)
            self._add({**again, **({"state": self.random.randint(0, 3)} if self.random.random() < 0.3 else {})})  # noqa: PLR2004 - some
        else:
            number = self.random.randint(0, len(self.states) + 1)
            self._add({"id": number, "state": self.random.randint(0, 3)})

    def _describe_log(self) -> None:
        history = self.history
        history.log_end_offset = self.end
        history.log_start_offset = self.random.choice((0, self.random.randint(0, self.end)))
        cut = [entry for entry in self.epochs if entry.start_offset <= history.log_start_offset]
        rest = [entry for entry in self.epochs if history.log_start_offset < entry.start_offset]
        history.checkpoint = [EpochStart(cut[-1].epoch, history.log_start_offset), *rest] if cut else rest
        history.retention_ms = self.random.choice((-1, self.random.randint(0, 2500)))
        history.retention_size = self.random.choice((-1, self.random.randint(0, 50_000)))


def generated(seed: int) -> History:
    """Return the history of a seed."""
    return _Author(seed).write()


def decoded(event: dict[str, Any]) -> dict[str, Any]:
    """Return the decoded record of the metadata topic for an event."""
    custom = event.get("custom")
    fields: dict[str, Any] = {
        "remoteLogSegmentId": {
            "topicIdPartition": {"name": PARTITION.topic, "id": PARTITION.topic_id, "partition": PARTITION.partition},
            "id": str(event["id"]),
        },
        "brokerId": event["broker"],
        "eventTimestampMs": event["at"],
        "customMetadata": None if custom is None else base64.b64encode(bytes([custom])).decode(),
        "remoteLogSegmentState": event["state"],
    }
    if "startOffset" not in event:
        return {"type": "REMOTE_LOG_SEGMENT_METADATA_UPDATE_RECORD", "version": 0, "data": fields}
    fields |= {
        "startOffset": event["startOffset"],
        "endOffset": event["endOffset"],
        "maxTimestampMs": event["maxTimestampMs"],
        "segmentLeaderEpochs": [{"leaderEpoch": epoch, "offset": offset} for epoch, offset in event["epochs"]],
        "segmentSizeInBytes": event["size"],
        "txnIndexEmpty": event["isTransactionIndexEmpty"],
    }
    return {"type": "REMOTE_LOG_SEGMENT_METADATA_RECORD", "version": 0, "data": fields}


def replayed(history: History) -> RemoteSegments:
    """Return the remote segments after a history, by our code."""
    remote = RemoteSegments(PARTITION)
    for event in history.events:
        found = remote_event(decoded(event))
        assert found is not None
        remote.apply(found)
    return remote


def check_tier(oracles: Sequence[Oracle], seeds: Iterable[int]) -> Result:
    """Compare histories of these seeds with each release, and managers with the newest."""
    result = Result(ABOUT)
    with ExitStack() as stack:
        newest = [stack.enter_context(Oracle(release, project=TIERS)) for release in TIERS.releases]
        for seed in seeds:
            _check_seed((*oracles, *newest), seed, result)
    return result


def _check_seed(oracles: Sequence[Oracle], seed: int, result: Result) -> None:
    history = generated(seed)
    remote = replayed(history)
    for oracle in oracles:
        _compare(oracle, seed, history, remote, result)
        result.counts[f"Kafka {oracle.version}: histories"] += 1
    result.checked += 1
    result.counts["events"] += len(history.events)
    result.counts["events dropped"] += len(remote.dropped)


def _compare(oracle: Oracle, seed: int, history: History, remote: RemoteSegments, result: Result) -> None:
    case = f"seed {seed}, Kafka {oracle.version}"
    epochs = sorted({epoch for epoch, _ in history.checkpoint} | set(remote.epochs))
    questions = _questions(seed, history, epochs)
    offsets = sorted({offset for _, offset in questions})
    with scratch_directory() as scratch:
        directory = Path(scratch) / "orders-0"
        directory.mkdir()
        (directory / f"{history.log_end_offset:020}.log").touch()
        answer = oracle.must(
            "tier",
            directory=str(directory),
            events=history.events,
            checkpoint=history.checkpoint,
            logStartOffset=history.log_start_offset,
            logEndOffset=history.log_end_offset,
            retentionMs=history.retention_ms,
            retentionBytes=history.retention_size,
            nowMs=NOW_MS,
            epochs=epochs,
            questions=questions,
            offsets=offsets,
        )
    result.equal(case, "segments", _described(remote.segments.values()), sorted(answer["segments"]))
    for epoch in epochs:
        highest = remote.highest_offset(epoch)
        result.equal(case, f"highest of {epoch}", -1 if highest is None else highest, answer["highest"][str(epoch)])
        of_epoch = [_row(each) for each in remote.of_epoch(epoch)]
        result.equal(case, f"segments of epoch {epoch}", sorted(of_epoch), sorted(answer["ofEpoch"][str(epoch)]))
    at = [_number(remote.segment_at(*question)) for question in questions]
    result.equal(case, "which answers", at, answer["at"])
    result.counts["questions"] += len(questions)
    result.counts["questions answered"] += sum(number >= 0 for number in at)
    lineage = Lineage(history.checkpoint, history.log_end_offset)
    held = [_number(each) for each in remote.segments.values() if lineage.holds(each)]
    result.equal(case, "of the lineage", sorted(held), sorted(answer["within"]))
    result.counts["segments"] += len(remote.segments)
    result.counts["segments of the lineage"] += len(held)
    if oracle.release in MANAGERS:
        following = [_number(remote.segment_with_transactions(*question)) for question in questions]
        result.equal(case, "with transactions", following, answer["withTransactions"])
        _compare_manager(case, oracle.release, history, remote, answer, result)
        known = [offset for offset in offsets if offset < history.log_end_offset]
        epochs_of = [-1 if (epoch := lineage.epoch_at(offset)) is None else epoch for offset in known]
        result.equal(case, "epochs of offsets", epochs_of, answer["epochOf"][: len(known)])


def _compare_manager(
    case: str, release: str, history: History, remote: RemoteSegments, answer: dict[str, Any], result: Result
) -> None:
    lineage = Lineage(history.checkpoint, history.log_end_offset)
    copied = lineage.highest_copied(remote) or (-1, -1)
    result.equal(case, "highest copied", list(copied), answer["copied"])
    limits = (history.log_start_offset, history.retention_ms, history.retention_size)
    rules = RetentionRules(*limits, NOW_MS, at_limit=release == "4.1")
    due = sorted(map(_number, expired(_InTheirOrder(remote, answer["ofEpoch"]), lineage, rules)))
    result.equal(case, "deleted", due, sorted(set(answer["deleted"])))
    result.counts["segments deleted by retention"] += len(due)


class _InTheirOrder(RemoteSegments):
    """Remote segments in Kafka's order: segments with equal start offsets are in hash table order."""

    def __init__(self, remote: RemoteSegments, listed: dict[str, list[list[int]]]) -> None:
        super().__init__(remote.id, remote.segments)
        self._listed = listed

    def of_epoch(self, epoch: int) -> list[RemoteSegment]:
        rows = self._listed[str(epoch)]
        return [self.segments[RemoteSegmentId(PARTITION, str(number))] for number, *_ in rows]


def _questions(seed: int, history: History, epochs: Sequence[int]) -> list[tuple[int, int]]:
    """Return offsets at and next to every boundary, and some between, in every epoch."""
    borders = {offset for event in history.events for offset in (event.get("startOffset"), event.get("endOffset"))}
    borders |= {entry.start_offset for entry in history.checkpoint} | {history.log_end_offset}
    near = {max(border + step, 0) for border in borders if border is not None for step in (-1, 0, 1)}
    chosen = random.Random(seed).sample(sorted(near), min(len(near), 25))
    return [(epoch, offset) for epoch in epochs for offset in chosen]


def _number(segment: RemoteSegment | None) -> int:
    return -1 if segment is None else int(segment.id.segment_id)


def _row(segment: RemoteSegment) -> list[int]:
    custom = -1 if segment.custom_metadata is None else segment.custom_metadata[0]
    return [_number(segment), int(segment.state), segment.broker_id, segment.event_timestamp_ms, custom]


def _described(segments: Iterable[RemoteSegment]) -> list[list[int]]:
    return sorted(map(_row, segments))

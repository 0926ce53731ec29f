"""What is done to a log while it is recorded, and what the implementation has promised at each moment."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from seglog_conformance.protocol import LIVE
from seglog_conformance.testee import Allowance
from seglog_format.codec.build import build_batch, build_end_marker, new_record
from seglog_format.codec.encode import encode_batch
from seglog_format.model import ControlRecordType, RecordBatch

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable, Sequence

    from seglog_conformance.crash.recording import Recording
    from seglog_conformance.process import ProcessTestee
    from seglog_conformance.protocol import Hello, Json

START_MS: Final = 1_700_000_000_000
CALLED, ANSWERED = "called", "answered"
ACTIONS: Final = {"append": 50, "flush": 10, "roll": 5, "checkpoint": 4, "retain": 6, "together": 8}
"""Actions on an open log, with their weights."""
REMOVING: Final = {"append": 40, "flush": 4, "roll": 15, "checkpoint": 6, "retain": 6}
"""Actions of a history whose retention removes several segments at once."""
STARTS: Final = (1, 2, 2, 3)
STEPS: Final = (3, 6, 10)
MANY_STEPS: Final = (15, 20)
SECONDS: Final = 30.0


class WorkloadError(Exception):
    """The implementation did something wrong before any power cut."""


class RefusedError(Exception):
    """The implementation did not do a step."""


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch as it was sent, and where it is.

    Attributes:
        data: the bytes that were sent, in hex.
        count: number of its offsets.
        values: the values of its records in hex; none of a control batch.
        start: its base offset.
        producer: id of its producer; -1 without one.
        end_marker: ``commit`` or ``abort``, for the marker that ends a transaction.
        is_transactional: whether it belongs to a transaction.
    """

    data: str
    count: int
    values: tuple[str, ...]
    start: int = 0
    producer: int = -1
    end_marker: str = ""
    is_transactional: bool = False

    @property
    def end(self) -> int:
        """Return the offset after its last."""
        return self.start + self.count

    @property
    def records(self) -> list[tuple[int, str]]:
        """Return offset and value of each record that a consumer gets."""
        return [(self.start + number, value) for number, value in enumerate(self.values)]


@dataclass(frozen=True, slots=True)
class Step:
    """A step of a workload.

    Attributes:
        do: the request.
        batches: what it appended.
        is_flushed: whether its answer promises that everything appended until then is on the disk.
        offset: of a truncation the new end; of retention the new start.
    """

    do: str
    batches: tuple[Batch, ...] = ()
    is_flushed: bool = False
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Promise:
    """What the log must hold after a power cut.

    Attributes:
        batches: what was appended, in order; the last ones may be missing.
        acknowledged: offset below which everything was acknowledged as being on the disk.
        start: the highest offset at which readers may begin.
    """

    batches: tuple[Batch, ...] = ()
    acknowledged: int = 0
    start: int = 0

    @property
    def end(self) -> int:
        """Return the offset after everything that was appended."""
        return self.batches[-1].end if self.batches else 0


def promised(steps: Sequence[Step], events: Iterable[Json]) -> Promise:
    """Return the promise that holds after these events."""
    promise = Promise()
    for event in events:
        step = steps[event["step"]]
        promise = _called(promise, step) if event["is"] == CALLED else _answered(promise, step)
    return promise


def _called(promise: Promise, step: Step) -> Promise:
    match step.do:
        case "append" | "together":
            return replace(promise, batches=(*promise.batches, *step.batches))
        case "truncate":  # from now on, less may be there
            return replace(promise, acknowledged=min(promise.acknowledged, step.offset))
        case "retain":
            return replace(promise, start=promise.end)
        case _:
            return promise


def _answered(promise: Promise, step: Step) -> Promise:
    if step.is_flushed:
        return replace(promise, acknowledged=promise.end)
    if step.do == "truncate":
        return replace(promise, batches=tuple(batch for batch in promise.batches if batch.end <= step.offset))
    return replace(promise, start=step.offset) if step.do == "retain" else promise


def open_transactions(batches: Iterable[Batch]) -> dict[int, int]:
    """Return the producers with an open transaction, each with its first offset."""
    found: dict[int, int] = {}
    for batch in batches:
        if batch.end_marker:
            found.pop(batch.producer, None)
        elif batch.is_transactional:
            found.setdefault(batch.producer, batch.start)
    return found


class Workload:
    """Drives an implementation through some starts of a log.

    Args:
        testee: the adapter's process.
        recording: where the log is.
        dice: chooses what is done.
    """

    def __init__(self, testee: ProcessTestee, recording: Recording, dice: random.Random) -> None:
        self._removes = dice.random() < 0.3  # noqa: PLR2004 - share
        self.config = _config(dice, removes=self._removes)
        self.steps: list[Step] = []
        self._testee = testee
        self._recording = recording
        self._dice = dice
        self._batches: list[Batch] = []
        self._sequences: Counter[int] = Counter()
        self._producers = 0
        self._values = 0

    def run(self) -> None:
        """Do everything.

        Raises:
            WorkloadError: the implementation refused a step, or gave offsets that are not next.
        """
        self._can = set(start(self._testee).features.get(LIVE, ()))
        starts = self._dice.choice(STARTS)
        died = False
        for life in range(starts):
            self._do(Step("open"), config=self.config)
            if died and self._dice.random() < 0.7:  # noqa: PLR2004 - share; of what the life before has left
                self._do(Step("flush", is_flushed=True))
            for _ in range(self._dice.choice(MANY_STEPS if self._removes else STEPS)):
                self._act()
            died = self._dice.random() < 0.5  # noqa: PLR2004 - share
            if not died:
                self._do(Step("close", is_flushed=True))
                if life < starts - 1 and "truncate" in self._can and self._dice.random() < 0.6:  # noqa: PLR2004 - share
                    self._truncate()
            else:  # a dead process leaves what is not on the disk
                self._append(self._plain(), is_flushed=False)
            if life < starts - 1:
                self._testee.kill()
                start(self._testee)

    def _act(self) -> None:
        every = REMOVING if self._removes else ACTIONS
        actions = {name: weight for name, weight in every.items() if name in {"append", "flush", *self._can}}
        match self._dice.choices(tuple(actions), tuple(actions.values()))[0]:
            case "append":
                self._append(self._batch(), is_flushed=self._dice.random() < 0.3)  # noqa: PLR2004 - share
            case "together":
                batches = tuple(self._plain() for _ in range(self._dice.choice((2, 3, 4))))
                self._do(Step("together", batches, is_flushed=True), batches=[batch.data for batch in batches])
            case "flush":
                self._do(Step("flush", is_flushed=True))
            case action:
                self._do(Step(action))

    def _append(self, batch: Batch, *, is_flushed: bool) -> None:
        origin = "coordinator" if batch.end_marker else "client"
        acks = "flushed" if is_flushed else "written"
        self._do(Step("append", (batch,), is_flushed), data=batch.data, acks=acks, origin=origin)

    def _truncate(self) -> None:
        offset = self._dice.choice([batch.end for batch in self._batches[-6:]] or [0])
        self._do(Step("truncate", offset=offset))
        self._batches = [batch for batch in self._batches if batch.end <= offset]
        self._sequences.clear()
        self._producers += 10

    def _do(self, step: Step, **fields: object) -> None:
        number = len(self.steps)
        self._recording.mark({"step": number, "is": CALLED, "do": step.do})
        if step.do in {"open", "truncate"}:
            fields["directory"] = str(self._recording.root)
        if step.do == "truncate":
            fields["offset"] = str(step.offset)
        try:
            (result,) = ask(self._testee, {"do": step.do, **fields})
        except RefusedError as error:
            msg = f"refused without any power cut: {error}"
            raise WorkloadError(msg) from error
        self.steps.append(self._after(step, result))
        self._recording.mark({"step": number, "is": ANSWERED, "do": step.do})

    def _after(self, step: Step, answer: Json) -> Step:
        """Return the step with what its answer told."""
        end = self._batches[-1].end if self._batches else 0
        if step.do == "retain":
            return replace(step, offset=int(answer["logStartOffset"]))
        if step.do == "open" and int(answer["nextOffset"]) != end:
            msg = f"the log was opened with the next offset {answer['nextOffset']}, and {end} is expected"
            raise WorkloadError(msg)
        if not step.batches:
            return step
        answers = answer["appended"] if step.do == "together" else [answer]
        firsts = [int(one["firstOffset"]) for one in answers]
        placed = [replace(batch, start=first) for batch, first in zip(step.batches, firsts, strict=True)]
        placed.sort(key=lambda batch: batch.start)
        for batch in placed:
            if batch.start != end:
                msg = f"a batch was appended at offset {batch.start}, and the next one was {end}"
                raise WorkloadError(msg)
            end = batch.end
        self._batches += placed
        return replace(step, batches=tuple(placed))

    # Batches

    def _batch(self) -> Batch:
        """Return the next batch: plain, of an idempotent producer, of a transaction, or the end of one."""
        is_open = open_transactions(self._batches)
        drawn = self._dice.random()
        if is_open and drawn < 0.3:  # noqa: PLR2004 - share
            return self._end_marker(self._dice.choice(sorted(is_open)))
        if drawn < 0.5:  # noqa: PLR2004 - share
            return self._plain()
        producer = 1000 + self._producers + self._dice.randrange(4)
        is_transactional = producer % 2 == 1
        count = self._dice.choice((1, 1, 2, 4))
        sequence = self._sequences[producer]
        self._sequences[producer] += count
        values = self._new_values(count)
        batch = build_batch(
            [new_record(value=bytes.fromhex(value), timestamp_ms=START_MS) for value in values],
            producer_id=producer,
            producer_epoch=0,
            base_sequence=sequence,
            is_transactional=is_transactional,
        )
        return Batch(_sent(batch), count, values, producer=producer, is_transactional=is_transactional)

    def _plain(self) -> Batch:
        values = self._new_values(self._dice.choice((1, 1, 2, 4)))
        records = [new_record(value=bytes.fromhex(value), timestamp_ms=START_MS) for value in values]
        return Batch(_sent(build_batch(records)), len(values), values)

    def _end_marker(self, producer: int) -> Batch:
        kind = self._dice.choice((ControlRecordType.ABORT, ControlRecordType.COMMIT))
        marker = build_end_marker(
            kind, producer_id=producer, producer_epoch=0, coordinator_epoch=0, timestamp_ms=START_MS
        )
        return Batch(_sent(marker), 1, (), producer=producer, end_marker=kind.name.lower(), is_transactional=True)

    def _new_values(self, count: int) -> tuple[str, ...]:
        """Return values that no other record has."""
        found = []
        for _ in range(count):
            self._values += 1
            found.append(f"{self._values:08x}" + self._dice.randbytes(self._dice.choice((0, 5, 30, 60))).hex())
        return tuple(found)


def start(testee: ProcessTestee) -> Hello:
    """Start an adapter.

    Raises:
        WorkloadError: it does not have the operation ``live``.
    """
    hello = testee.start()
    if LIVE not in hello.ops:
        msg = f"{testee.name} does not have the operation {LIVE!r}: its log cannot be opened in a directory"
        raise WorkloadError(msg)
    return hello


def ask(testee: ProcessTestee, *steps: Json) -> list[Json]:
    """Return the results of steps.

    Raises:
        RefusedError: one was not done. If there was no answer, the adapter has been started again.
    """
    reply = testee.ask({"seq": 1, "op": LIVE, "steps": list(steps)}, Allowance(SECONDS))
    if reply.answer is None:
        testee.start()
        msg = (
            f"{', '.join(step['do'] for step in steps)}: {reply.kind.value}, {reply.detail} {_last_line(reply.stderr)}"
        )
        raise RefusedError(msg)
    results = reply.answer.get("steps")
    if not isinstance(results, list) or not results:
        msg = f"{steps[0]['do']}: {reply.answer}"
        raise RefusedError(msg)
    if (reject := results[-1].get("reject")) is not None or len(results) < len(steps):
        message = reject.get("message", reject) if isinstance(reject, dict) else "it is not done"
        msg = f"{steps[len(results) - 1]['do']}: {message}"
        raise RefusedError(msg)
    return results


def _last_line(text: str) -> str:
    return next(reversed(text.strip().splitlines()), "")


def _sent(batch: RecordBatch) -> str:
    return encode_batch(batch).hex()


def _config(dice: random.Random, *, removes: bool) -> dict[str, str]:
    """Return settings, by their names for topics: small segments, and few entries between index entries."""
    chosen = {
        "segment.bytes": 400 if removes else dice.choice((400, 400, 700, 1500, 1 << 20)),
        "segment.index.bytes": dice.choice((36, 60, 240, 1000)),
        "index.interval.bytes": dice.choice((0, 100, 4096)),
        "retention.bytes": 500 if removes else dice.choice((-1, 500, 500)),
        "flush.messages": dice.choice((1, 7, 1 << 30, 1 << 30)),
        "preallocate": str(dice.random() < 0.2).lower(),  # noqa: PLR2004 - share
        "retention.ms": -1,
        "file.delete.delay.ms": 0,
    }
    return {name: str(value) for name, value in chosen.items()}

"""Records histories of an implementation, and judges it on the states that a power cut may leave of each."""

from __future__ import annotations

import json
import random
import re
import shutil
import sys
import tempfile
from collections import Counter
from dataclasses import asdict, dataclass, field
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from seglog_conformance.crash.history import PAGE, Marker, Naming, Sync
from seglog_conformance.crash.profiles import PROFILES
from seglog_conformance.crash.promises import complaints, look
from seglog_conformance.crash.recording import recording
from seglog_conformance.crash.states import Disk
from seglog_conformance.crash.workload import ANSWERED, Workload, WorkloadError, promised
from seglog_conformance.process import Command, ProcessTestee
from seglog_conformance.protocol import LIVE

if TYPE_CHECKING:
    from collections.abc import Callable

    from seglog_conformance.crash.promises import Complaints, Seen
    from seglog_conformance.crash.states import State
    from seglog_conformance.crash.workload import Promise
    from seglog_conformance.registry import Builder, Listed

POSIX: Final = next(iter(PROFILES))
MEMORY: Final = Path("/dev/shm")  # noqa: S108 - a directory of our own is made in it
Looked: TypeAlias = "Seen | dict[str, Any]"
"""What an adapter did on a state, or a whole broker."""
SYNC_SECONDS: Final = 0.004
"""How long a sync takes: others append meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How a history is judged.

    Attributes:
        profile: name of the profile of the file system.
        piece: size in bytes of what a disk writes as a whole.
        most: so many states of one cut at most.
        states: so many states of one history at most.
        stops: whether the first failure is enough.
    """

    profile: str = POSIX
    piece: int = PAGE
    most: int = 64
    states: int = sys.maxsize
    stops: bool = False


@dataclass(frozen=True, slots=True)
class Failure:
    """What is wrong after a power cut, and not after the end of the process alone.

    Attributes:
        seed: of the history.
        profile: under which the state is legal.
        kind: kind of what is wrong.
        text: what is wrong.
        cut: number of operations that had been called.
        lost: the operations that were lost.
        early: mapped pages that were on the disk before the kernel was asked for them.
        operations: all operations before the cut.
        seen: what the implementation did.
        control: what it did without the loss.
        files: the state, by paths; None for a directory.
    """

    seed: int
    profile: str
    kind: str
    text: str
    cut: int
    lost: tuple[str, ...]
    early: tuple[str, ...]
    operations: tuple[str, ...]
    seen: Looked
    control: Looked
    files: dict[str, bytes | None]

    @property
    def losses(self) -> set[str]:
        """What its operations do, and to which kind of file."""
        return set(map(loss_of, (*self.lost, *self.early)))

    def repeats(self, other: Failure) -> bool:
        """Tell whether another failure shows the same with no more kinds of losses."""
        return self.kind == other.kind and other.losses <= self.losses


def loss_of(text: str) -> str:
    """Return the description of an operation without its numbers."""
    return re.sub(r"\d+", "", text).strip()


@dataclass(slots=True)
class Result:
    """The outcome of one history.

    Attributes:
        counts: numbers of operations, cuts, states and failures.
        failures: one of each kind and each kind of loss.
        usual: what is wrong where nothing was lost, which is no failure: a text of each kind.
        digests: of all states.
    """

    counts: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)
    usual: Complaints = field(default_factory=dict)
    digests: frozenset[str] = frozenset()


def process_of(wanted: Listed, builder: Builder) -> ProcessTestee:
    """Return an adapter in a process of its own.

    Raises:
        UnavailableError: a tool chain is missing.
        AdapterError: the build fails.
        WorkloadError: it has no process.
    """
    if wanted.adapter is None and wanted.name == "reference":
        return ProcessTestee("reference", Command(arguments=(sys.executable, "-m", "seglog_conformance.reference")))
    testee = builder.testee(wanted)
    if not isinstance(testee, ProcessTestee):
        msg = f"{wanted.name} has no process of its own, which could be recorded"
        raise WorkloadError(msg)
    return testee


def examine(testee: ProcessTestee, seed: int, options: Options) -> Result:
    """Record one history, and judge the states after a power cut at each of its operations.

    Raises:
        RecordingError: nothing can be recorded on this machine.
        StartError: the adapter does not start.
        WorkloadError: the implementation does something wrong without any power cut.
    """
    with tempfile.TemporaryDirectory(prefix="seglog-crash-", dir=MEMORY if MEMORY.is_dir() else None) as name:
        scratch = Path(name)
        try:
            return _Examination(testee, seed, options, scratch).run()
        finally:
            testee.close()


class _Examination:
    """One history, and what became of each of its states."""

    def __init__(self, testee: ProcessTestee, seed: int, options: Options, scratch: Path) -> None:
        self._testee = testee
        self._seed = seed
        self._options = options
        self._root = scratch / "state"
        self._result = Result()
        self._seen: dict[str, Seen] = {}
        with recording(scratch, sync_seconds=SYNC_SECONDS) as recorded:
            self._workload = Workload(testee, recorded, random.Random(f"{seed} work"))  # noqa: S311 - not a secret
            try:
                self._workload.run()
            finally:
                testee.kill()
            self._history = recorded.history(options.piece)
        self._disk = Disk(self._history, options.profile)
        self._batches = [batch for step in self._workload.steps for batch in step.batches]

    def run(self) -> Result:
        """Judge all states."""
        features = self._testee.start().features
        self._sends_again = "duplicates" in features.get(LIVE, ())
        counts, dice = self._result.counts, random.Random(f"{self._seed} states")  # noqa: S311 - not a secret
        counts["operations"] = len(self._history)
        asked: set[tuple[str, Promise]] = set()
        for number in self._numbers(dice):
            if len(self._seen) >= self._options.states or (self._options.stops and self._result.failures):
                break
            cut = self._disk.cut(number)
            promise = promised(self._workload.steps, (event for at, event in self._history.markers if at < number))
            control = self._disk.state(cut)
            usual = complaints(self._look(control), promise)
            counts["cuts"] += 1
            counts["controls with complaints"] += bool(usual)
            self._result.usual = usual | self._result.usual
            for state in self._disk.states(cut, self._options.most, dice):
                if (state.digest, promise) not in asked:
                    asked.add((state.digest, promise))
                    self._examine(state, promise, control, usual)
        counts["verdicts"], counts["states"] = len(asked), len(self._seen)
        self._result.digests = frozenset(self._seen)
        return self._result

    def _numbers(self, dice: random.Random) -> list[int]:
        """Return all cuts in a random order: in turn after an answer that promises more, a name, and anything else."""
        numbers = list(filter(self._may_differ, range(1, len(self._history) + 1)))
        dice.shuffle(numbers)
        answers, names, others = list[int](), list[int](), list[int]()
        for each in numbers:
            match self._history.operations[each - 1]:
                case Marker(event=event) if self._workload.steps[event["step"]].is_flushed:
                    answers.append(each)
                case Naming():
                    names.append(each)
                case _:
                    others.append(each)
        return [each for turn in zip_longest(answers, names, others) for each in turn if each is not None]

    def _may_differ(self, number: int) -> bool:
        """Return whether a cut after an operation may leave what one before it may not, or breaks another promise."""
        match self._history.operations[number - 1]:
            case Sync():
                return False
            case Marker(event=event):
                return bool(event["is"] == ANSWERED)
            case _:
                return True

    def _examine(self, state: State, promise: Promise, control: State, usual: Complaints) -> None:
        found = complaints(self._look(state), promise)
        for kind in sorted(found.keys() - usual.keys()):
            self._result.counts["failures"] += 1
            text = state.cut.history.text
            losses = {loss_of(text(each)) for each in state.changes}
            if any(known.kind == kind and known.losses <= losses for known in self._result.failures):
                continue

            def still_fails(other: State, kind: str = kind) -> bool:
                return kind in complaints(self._look(other), promise)

            shrunk = self._disk.shrunk(state, still_fails)
            self._result.failures.append(self._failure(kind, shrunk, promise, control))

    def _look(self, state: State) -> Seen:
        """Return what the implementation does on a state; it is asked once for each content."""
        if state.digest not in self._seen:
            shutil.rmtree(self._root, ignore_errors=True)
            self._root.mkdir()
            self._disk.write(state, self._root)
            self._seen[state.digest] = look(
                self._testee, self._root, self._workload.config, self._batches, sends_again=self._sends_again
            )
        return self._seen[state.digest]

    def _failure(self, kind: str, state: State, promise: Promise, control: State) -> Failure:
        seen = self._look(state)
        said = (kind, complaints(seen, promise)[kind])
        return failure_of(self._disk, state, (self._seed, self._options.profile), said, seen, self._look(control))


def failure_of(
    disk: Disk, state: State, origin: tuple[int, str], said: tuple[str, str], seen: Looked, control: Looked
) -> Failure:
    """Return what is wrong on a state.

    Args:
        disk: makes the state.
        state: the state.
        origin: seed of the history, and the profile.
        said: kind and text of what is wrong.
        seen: what the implementation did.
        control: what it did without the loss.
    """
    number, text = state.cut.number, state.cut.history.text
    return Failure(
        *origin,
        *said,
        cut=number,
        lost=tuple(text(each) for each in sorted(state.changes) if each < number),
        early=tuple(text(each) for each in sorted(state.changes) if each >= number),
        operations=tuple(map(text, range(number))),
        seen=seen,
        control=control,
        files={path: None if done is None else disk.content(done)[0] for path, done in state.tree.items()},
    )


def run(
    make: Callable[[], ProcessTestee], seed: int, options: Options, *, states: int, on_states: Callable[[int], None]
) -> Result:
    """Judge one history after the other, until so many states are judged.

    Args:
        make: returns the adapter.
        seed: of the first history.
        options: how they are judged.
        states: number of states after which no history begins.
        on_states: called with the number of states so far.
    """
    total = Result()
    while total.counts["states"] < states:
        result = examine(make(), seed, options)
        seed += 1
        total.counts.update({"histories": 1, **result.counts})
        total.usual = result.usual | total.usual
        known = [*total.failures]
        total.failures += [new for new in result.failures if not any(map(new.repeats, known))]
        on_states(total.counts["states"])
    return total


def write_failure(failure: Failure, directory: Path) -> None:
    """Write a failure: the state, the operations, and what the implementation did.

    Raises:
        OSError: it cannot be written.
    """
    state = directory / "state"
    state.mkdir(parents=True, exist_ok=True)
    for path, data in failure.files.items():
        target = state / path
        if data is None:
            target.mkdir(exist_ok=True)
        else:
            target.write_bytes(data)
    lost = set(failure.lost)
    marked = [f"{'LOST ' if text in lost else '     '}{text}\n" for text in failure.operations]
    (directory / "operations.txt").write_text("".join(marked), encoding="utf-8")
    found = {name: value for name, value in asdict(failure).items() if name not in {"files", "operations"}}
    (directory / "failure.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")

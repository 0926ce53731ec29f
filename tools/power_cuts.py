"""Cut the power while logs are written, recover what is left, and hold it against what was promised (chapter 71).

Each run is a small log directory on a simulated disk (`tests/simulated_files.py`), written by one to eight appenders
that take turns as a seed says, also in the middle of each other's flushes. The power goes in a random operation; what
was not synced then survives by chance, in part or not at all. Recovery may lose the power, too, and starts again. After
that each log has to be a prefix of what was appended, with everything that a flush had acknowledged; `verify` finds no
error, and another recovery finds nothing to do.
"""

from __future__ import annotations

import argparse
import json
import platform
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from seglog_format.checks.verify import verify
from seglog_format.codec.build import build_batch, new_record, with_offset
from seglog_format.codec.control_batch import build_end_marker
from seglog_format.codec.encode import encode_batch
from seglog_format.lifecycle.config import BrokerGeneration, LogConfig
from seglog_format.lifecycle.environment import Environment
from seglog_format.lifecycle.log_writer import LogWriter
from seglog_format.lifecycle.producer_state import Origin
from seglog_format.lifecycle.recovery_apply import RecoveryOptions, recover_partition
from seglog_format.model import CompressionCodec, ControlRecordType
from seglog_format.requirements import Severity

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
from simulated_files import MirroredFiles, PowerCut, SimulatedFiles

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from seglog_format.lifecycle.writer import PartitionWriter

TOPIC: Final = "t"
START_MS: Final = 1_700_000_000_000
MOST_APPENDERS: Final = 8
MOST_TURNS: Final = 30
MOST_OPERATIONS: Final = 100
GENERATIONS: Final = (BrokerGeneration.V0_11, BrokerGeneration.V2_0, BrokerGeneration.V3_7, BrokerGeneration.V4_1)
CLOSES, PREALLOCATES, FULL_SCAN = 0.3, 0.2, 0.3
"""Shares of the runs that end with a clean close, preallocate their segments, are recovered by a full scan."""
OTHERS_GO_ON, WAITS_FOR_DISK, HAS_PRODUCER, HAS_TRANSACTIONS, ENDS = 0.4, 0.2, 0.5, 0.6, 0.4
ACTIONS: Final = {"append": 82, "flush": 9, "roll": 4, "elect": 2, "checkpoint": 3}
MOST_FAILURES: Final = 20
CHUNK: Final = 250


class BlockedError(Exception):
    """An appender would wait for another one's flush here: it is somebody else's turn."""


class Turns:
    """Locks for appenders that take turns in one thread: nobody waits in them, but it is known whether one is held."""

    def __init__(self) -> None:
        self.held = 0

    def __enter__(self) -> bool:
        self.held += 1
        return True

    def __exit__(self, *_: object) -> None:
        self.held -= 1

    def wait(self, timeout: float | None = None) -> bool:
        """Leave the lock to others."""
        raise BlockedError(timeout)

    def notify_all(self) -> None:
        """Those that were blocked try again in their next turn."""


@dataclass(slots=True)
class Log:
    """A partition and everything that was appended to it, in order.

    Attributes:
        writer: of the partition.
        appended: encoded batches as they are to stand in the log; the power may go while the last one is written.
        ends: the offset after each of them.
        acknowledged: everything below was said to be on the disk.
    """

    writer: PartitionWriter
    appended: list[bytes] = field(default_factory=list)
    ends: list[int] = field(default_factory=list)
    acknowledged: int = 0


@dataclass(slots=True)
class Producer:
    """An idempotent or transactional producer of one log."""

    producer_id: int
    is_transactional: bool
    sequence: int = 0
    is_open: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run came to.

    Attributes:
        number: of the run.
        problem: what was wrong, or nothing.
        counts: what happened, for the report.
    """

    number: int
    problem: str
    counts: Counter[str]


class Workload:
    """Appenders at work on a log directory, one turn after the other.

    Args:
        files: the disk.
        dice: decides everything.
    """

    def __init__(self, files: SimulatedFiles, dice: random.Random) -> None:
        self.files = files
        self.dice = dice
        self.turns = Turns()
        self.now_ms = START_MS
        self.logs: dict[int, Log] = {}
        self.counts: Counter[str] = Counter()
        self.producers: dict[tuple[int, int], Producer] = {}
        self._appenders: list[Iterator[None]] = []
        self._at_work: set[int] = set()

    def run(self) -> None:
        """Open, append, and sometimes close.

        Raises:
            PowerCut: in the middle of it.
        """
        self.files.before_sync = self._others_go_on
        with suppress(BlockedError):
            self._work()

    def _work(self) -> None:
        dice = self.dice
        environment = Environment(
            files=self.files,
            clock=lambda: self.now_ms,
            random=dice.random,
            make_condition=lambda: self.turns,
            locks_directory=False,
        )
        writer = LogWriter(self.files.root, self._config(), environment=environment)
        for number in range(dice.choice((1, 1, 2))):
            self.logs[number] = Log(writer.open(TOPIC, number, topic_id=dice.choice((None, "AAAAAAAAAAEAAAAAAAAAAg"))))
        self._appenders = [self._appender(number, writer) for number in range(dice.randint(1, MOST_APPENDERS))]
        for _ in range(dice.randint(1, MOST_TURNS)):
            self._turn()
        if dice.random() < CLOSES:
            self.counts["closed"] += 1
            self.files.before_sync = None
            writer.close()
            self._note()

    def _config(self) -> LogConfig:
        dice = self.dice
        return LogConfig(
            segment_bytes=dice.choice((700, 700, 1000, 1500, 1 << 20)),
            segment_index_bytes=dice.choice((24, 36, 60, 240, 1000)),
            index_interval_bytes=dice.choice((0, 100, 400, 4096)),
            segment_ms=dice.choice((50, 1000, 10**9)),
            flush_messages=dice.choice((1, 7, 10**6, 10**6)),
            preallocate=dice.random() < PREALLOCATES,
            generation=dice.choice(GENERATIONS),
        )

    def _others_go_on(self) -> None:
        """A sync takes its time; whoever holds no lock lets others append meanwhile."""
        while not self.turns.held and self.dice.random() < OTHERS_GO_ON:
            self._turn()

    def _turn(self) -> None:
        free = [number for number in range(len(self._appenders)) if number not in self._at_work]
        if not free:
            return
        number = self.dice.choice(free)
        self._at_work.add(number)
        try:
            next(self._appenders[number])
        finally:
            self._at_work.discard(number)
        self._note()

    def _note(self) -> None:
        for log in self.logs.values():
            log.acknowledged = max(log.acknowledged, log.writer.recovery_point)

    def _appender(self, number: int, writer: LogWriter) -> Iterator[None]:
        while True:
            partition = self.dice.choice(tuple(self.logs))
            log = self.logs[partition]
            action = self._action(number, partition, log, writer)
            while True:
                try:
                    action()
                except BlockedError:
                    self.counts["waited for another's flush"] += 1
                    action = log.writer.flush
                    yield
                else:
                    break
            yield

    def _action(self, number: int, partition: int, log: Log, writer: LogWriter) -> Callable[[], object]:
        match self.dice.choices(tuple(ACTIONS), tuple(ACTIONS.values()))[0]:
            case "append":
                return partial(self._append, number, partition, log)
            case "flush":
                return log.writer.flush
            case "roll":
                return log.writer.roll
            case "elect":
                return partial(log.writer.become_leader, log.writer.leader_epoch + 1)
            case _:
                return writer.checkpoint

    def _append(self, number: int, partition: int, log: Log) -> None:
        self.now_ms += self.dice.choice((0, 1, 30))
        data, origin = self._batch(number, partition)
        first = log.writer.log_end_offset
        log.appended.append(with_offset(data, first, log.writer.leader_epoch))
        log.ends.append(first + int.from_bytes(data[23:27], "big") + 1)
        self.counts["appends"] += 1
        acks = self.dice.random() < WAITS_FOR_DISK
        done = log.writer.append(data, origin=origin, acks="flushed" if acks else "written")
        self.counts["rolls"] += done.rolled is not None
        if acks:
            log.acknowledged = max(log.acknowledged, done.last_offset + 1)

    def _batch(self, number: int, partition: int) -> tuple[bytes, Origin]:
        """What an appender sends next: plain, idempotent, or a part of a transaction or its end."""
        dice = self.dice
        known = self.producers.get((number, partition))
        if known is None:
            producer_id = 1000 + number if dice.random() < HAS_PRODUCER else -1
            known = Producer(producer_id, producer_id >= 0 and dice.random() < HAS_TRANSACTIONS)
            self.producers[number, partition] = known
        if known.is_open and dice.random() < ENDS:
            known.is_open = False
            return self._end_marker(known), Origin.COORDINATOR
        return self._data_batch(known), Origin.CLIENT

    def _end_marker(self, producer: Producer) -> bytes:
        kind = self.dice.choice((ControlRecordType.ABORT, ControlRecordType.COMMIT))
        self.counts["transactions"] += 1
        marker = build_end_marker(
            kind, producer_id=producer.producer_id, producer_epoch=0, coordinator_epoch=0, timestamp_ms=self.now_ms
        )
        return encode_batch(marker)

    def _data_batch(self, producer: Producer) -> bytes:
        dice = self.dice
        count = dice.choice((1, 1, 2, 4))
        records = [
            new_record(dice.randbytes(dice.choice((0, 5, 40, 130))), timestamp_ms=self.now_ms - dice.randrange(20))
            for _ in range(count)
        ]
        codec = dice.choice((CompressionCodec.NONE, CompressionCodec.NONE, CompressionCodec.LZ4))
        if producer.producer_id < 0:
            return encode_batch(build_batch(records, codec=codec))
        producer.is_open = producer.is_transactional
        sequence, producer.sequence = producer.sequence, producer.sequence + count
        batch = build_batch(
            records,
            codec=codec,
            producer_id=producer.producer_id,
            producer_epoch=0,
            base_sequence=sequence,
            is_transactional=producer.is_transactional,
        )
        return encode_batch(batch)


class Trial:
    """One run.

    Args:
        seed: of all runs.
        number: of this one.
        scratch: a directory of the local file system that recovery works in.
    """

    def __init__(self, seed: int, number: int, scratch: Path) -> None:
        self.dice = random.Random(f"{seed} {number}")  # noqa: S311 - chance that repeats
        self.number = number
        self.root = scratch / "logs"
        self.files = SimulatedFiles(self.root, self.dice)
        self.workload = Workload(self.files, self.dice)
        self.counts = self.workload.counts

    def run(self) -> Outcome:
        """Write, cut, recover, compare."""
        try:
            self._write()
            self._restore(self.files)
            self._recover()
            problem = next(self._problems(), "")
        except Exception as error:  # noqa: BLE001 - whatever happens is the outcome of this run
            problem = f"{type(error).__name__}: {error}"
        return Outcome(self.number, problem, self.counts)

    def _write(self) -> None:
        self.files.cut_at = self.dice.randint(1, MOST_OPERATIONS)
        try:
            self.workload.run()
        except PowerCut:
            self.counts["cut while writing"] += 1
        self.counts["operations"] += self.files.step_count
        self.workload._note()  # noqa: SLF001 - what was acknowledged when the power went
        self.files.lose_power()

    def _restore(self, files: SimulatedFiles) -> None:
        shutil.rmtree(self.root, ignore_errors=True)
        files.store(self.root)

    @property
    def partitions(self) -> list[Path]:
        """What is there of the partition directories."""
        return [path for number in self.workload.logs if (path := self.root / f"{TOPIC}-{number}").is_dir()]

    def _options(self) -> RecoveryOptions:
        return RecoveryOptions(is_full_scan=self.is_full_scan)

    def _recover(self) -> None:
        """Recover; the power may go up to two times in the middle of it."""
        self.is_full_scan = self.dice.random() < FULL_SCAN
        for _ in range(self.dice.choice((0, 0, 1, 2))):
            files = SimulatedFiles(self.root, self.dice)
            files.load(self.root)
            files.cut_at = self.dice.randint(1, 30)
            try:
                self._recover_through(MirroredFiles(files))
            except PowerCut:
                self.counts["cut while recovering"] += 1
                files.lose_power()
                self._restore(files)
        for path in self.partitions:
            found = recover_partition(path, options=self._options())
            self.counts["log was cut"] += bool(found.plan.cuts)
            self.counts["segments dropped"] += bool(found.plan.dropped)

    def _recover_through(self, files: MirroredFiles) -> None:
        for path in self.partitions:
            recover_partition(path, options=self._options(), files=files)

    def _problems(self) -> Iterator[str]:
        for partition, log in self.workload.logs.items():
            yield from self._log_problems(self.root / f"{TOPIC}-{partition}", log)
        if not self.partitions:
            return
        errors = (finding for finding in verify(self.root) if finding.severity is Severity.ERROR)
        yield from (f"verify: {finding}" for finding in errors)
        before = _contents(self.root)
        for path in self.partitions:
            steps = recover_partition(path, options=self._options()).steps
            yield from (f"a second recovery: {step.text} {step.path.name}" for step in steps)
        if _contents(self.root) != before:
            yield "a second recovery changes something"

    def _log_problems(self, path: Path, log: Log) -> Iterator[str]:
        segments = sorted(path.glob("*.log")) if path.is_dir() else []
        found = b"".join(segment.read_bytes() for segment in segments)
        size, end = 0, 0
        for data, next_offset in zip(log.appended, log.ends, strict=True):
            if size == len(found):
                break
            if found[size : size + len(data)] != data:
                yield f"{path.name}: at offset {end} is something else than what was appended"
                return
            size, end = size + len(data), next_offset
        if size != len(found):
            yield f"{path.name}: {len(found) - size} bytes more than what was appended"
        if end < log.acknowledged:
            yield f"{path.name}: ends at offset {end}, but a flush acknowledged everything below {log.acknowledged}"
        self.counts["acknowledged logs"] += log.acknowledged > 0
        self.counts["more kept than acknowledged"] += end > log.acknowledged


def _contents(root: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


def run_all(seed: int, numbers: Iterable[int]) -> list[Outcome]:
    """Do some of the runs of a seed."""
    memory = Path("/dev/shm")  # noqa: S108 - a directory of our own is made in it
    with tempfile.TemporaryDirectory(prefix="power-cuts-", dir=memory if memory.is_dir() else None) as name:
        return [Trial(seed, number, Path(name)).run() for number in numbers]


def command(seed: int, number: int) -> str:
    """What repeats one run."""
    return f"python tools/power_cuts.py --seed {seed} --only {number}"


def _chunks(seed: int, count: int, workers: int) -> Iterator[list[Outcome]]:
    chunks = [range(start, min(start + CHUNK, count)) for start in range(0, count, CHUNK)]
    if workers == 1:
        yield from (run_all(seed, chunk) for chunk in chunks)
        return
    with ProcessPoolExecutor(workers) as pool:
        yield from pool.map(partial(run_all, seed), chunks)


def report(seed: int, count: int, workers: int) -> dict[str, Any]:
    """Do so many runs and sum them up."""
    started = time.perf_counter()
    counts: Counter[str] = Counter()
    failed: list[dict[str, str]] = []
    for outcomes in _chunks(seed, count, workers):
        for outcome in outcomes:
            counts += outcome.counts
            if outcome.problem:
                failed.append({"repeat": command(seed, outcome.number), "problem": outcome.problem})
                print(f"{failed[-1]['problem']}\n  {failed[-1]['repeat']}", file=sys.stderr)
    seconds = time.perf_counter() - started
    return {
        "command": f"python tools/power_cuts.py --seed {seed} --count {count}",
        "runs": count,
        "failures": len(failed),
        "failed": failed[:MOST_FAILURES],
        "seconds": round(seconds, 1),
        "runs_per_second": round(count / seconds, 1),
        "workers": workers,
        "counts": dict(sorted(counts.items())),
        "python": platform.python_version(),
        "machine": platform.platform(),
    }


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="cut the power while logs are written, and recover them")
    parser.add_argument("--seed", type=int, default=1, help="of all runs")
    parser.add_argument("--count", type=int, default=1000, help="how many runs")
    parser.add_argument("--only", type=int, help="one run by its number")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--report", type=Path, help="where to write the result as JSON")
    given = parser.parse_args()
    if given.only is not None:
        (outcome,) = run_all(given.seed, [given.only])
        print(outcome.problem or "fine", dict(outcome.counts))
        return int(bool(outcome.problem))
    result = report(given.seed, given.count, given.workers)
    text = json.dumps(result, indent=2) + "\n"
    if given.report is not None:
        given.report.write_text(text, encoding="utf-8")
    print(text, end="")
    return int(result["failures"] > 0)


if __name__ == "__main__":
    sys.exit(main())

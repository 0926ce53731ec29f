"""Compare what we write for appends with what Kafka writes for the same ones, file by file.

Single segments show the sparse rule of the indexes; whole partitions, written by a leader or a follower, show when
segments are rolled, the contents of snapshots and leader epochs, and the effects of a clean close.
"""

from __future__ import annotations

import random
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from proofs.entries import with_offset
from proofs.fuzz.random_logs import START_MS, LogMaker, RandomLog, random_log
from proofs.kafka.oracle import Oracle, bytes_of, scratch_directory
from proofs.kafka.recovery import NEWEST, replayed, snapshot_of, sorted_entries
from proofs.kafka.result import Result
from seglog_format import Environment, LogConfig, Origin, PartitionWriter, walk
from seglog_format.log.index_file import build_indexes, encode_offset_index, encode_time_index
from seglog_format.recovery.entry_walk import indexed_rows
from seglog_format.recovery.segment_scan import encode_transaction_index

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

GENERATIONS: Final = {"3.9": "3.7", "4.1": "4.1"}
"""The generation of `LogConfig` that writes as a release does."""

DIRECTORY: Final = "t-0"
SMALL_INDEXES: Final = (48, 100, 1 << 20, 1 << 20)
"""Index sizes that fill up soon; not for appends of several batches, where Kafka fails with too few free slots."""
CONTROL_BIT: Final = 0x20


# Single segments


def check_segments(oracles: Sequence[Oracle], seeds: Iterable[int]) -> Result:
    """Index a segment for each seed, with `IndexBuilder` and with ``LogSegment.append``.

    The older rule counts per append, and recovery per batch: for that rule each batch is appended on its own.
    """
    result = Result("single segments: IndexBuilder and ProducerStates against LogSegment.append")
    for seed in seeds:
        log = random_log(seed)
        for oracle in oracles:
            _check_segment(result, oracle, seed, log)
        result.checked += 1
        result.counts["batches"] += len(log.entries)
    return result


def _check_segment(result: Result, oracle: Oracle, seed: int, log: RandomLog) -> None:
    name = f"appends {seed}, Kafka {oracle.version}"
    appends = log.appends if oracle.release == NEWEST else [(entry,) for entry in log.entries]
    answer = oracle.must(
        "index",
        baseOffset=log.base_offset,
        config={"index.interval.bytes": log.interval_bytes},
        appends=[b"".join(append).hex() for append in appends],
    )
    data = memoryview(log.data)
    built = build_indexes(indexed_rows(data), interval_bytes=log.interval_bytes)
    producers, aborted = replayed((list(walk(b"".join(append))) for append in appends), log.base_offset)
    index = encode_offset_index(built.offset_entries, log.base_offset)
    time_index = encode_time_index(built.time_entries, log.base_offset)
    result.equal(name, "log", log.data, bytes_of(answer, "log"))
    result.equal(name, "index", index, bytes_of(answer, "index"))
    result.equal(name, "timeindex", time_index, bytes_of(answer, "timeindex"))
    result.equal(name, "txnindex", encode_transaction_index(aborted), bytes_of(answer, "txnindex"))
    result.equal(name, "snapshot", producers, snapshot_of(answer))
    result.counts[f"Kafka {oracle.release}: index entries"] += len(built.offset_entries)
    result.counts[f"Kafka {oracle.release}: time index entries"] += len(built.time_entries)
    result.counts[f"Kafka {oracle.release}: aborted transactions"] += len(aborted)


# Whole partitions


@dataclass(frozen=True, slots=True)
class Step:
    """One append to a partition.

    Attributes:
        data: entries to append.
        is_leader: whether offsets are assigned; a follower keeps them unchanged.
        origin: origin of an append to a leader.
        leader_epoch: epoch of the leader.
        now_ms: time of the clock.
    """

    data: bytes
    is_leader: bool
    origin: Origin
    leader_epoch: int
    now_ms: int

    def as_object(self) -> dict[str, Any]:
        """Return the request for the oracle."""
        origin = {"origin": self.origin.name} if self.is_leader else {}
        return {
            "do": "lead" if self.is_leader else "follow",
            "records": self.data.hex(),
            "leaderEpoch": self.leader_epoch,
            "nowMs": self.now_ms,
            **origin,
        }


@dataclass(frozen=True, slots=True)
class Script:
    """Settings of a partition, and the appends to it."""

    settings: dict[str, str]
    steps: tuple[Step, ...]


def random_script(seed: int) -> Script:
    """Return a script from a seed: settings that roll segments soon, and appends of a leader or follower."""
    dice = random.Random(f"script {seed}")
    is_leader = bool(seed % 2)
    settings = {
        "segment.bytes": str(dice.choice((8_000, 20_000, 1 << 20))),
        "index.interval.bytes": str(dice.choice((0, 100, 1000, 4096))),
        "segment.index.bytes": str(dice.choice(SMALL_INDEXES) if is_leader else 1 << 20),
        "segment.ms": str(dice.choice((2_000, 10_000, 7 * 86_400_000))),
        "message.timestamp.type": dice.choice(("CreateTime", "CreateTime", "LogAppendTime")),
    }
    return Script(settings, tuple(_leader_steps(dice) if is_leader else _follower_steps(seed, dice)))


def _leader_steps(dice: random.Random) -> Iterator[Step]:
    maker = LogMaker(dice, has_gaps=False, has_log_append_time=False)
    for _ in range(dice.choice((5, 30, 80))):
        data = with_offset(maker.entry(), 0, -1)
        is_control = bool(data[22] & CONTROL_BIT)
        origin = Origin.COORDINATOR if is_control else Origin.CLIENT
        yield Step(data, is_leader=True, origin=origin, leader_epoch=maker.leader_epoch, now_ms=maker.time_ms)


def _follower_steps(seed: int, dice: random.Random) -> Iterator[Step]:
    log = random_log(seed)
    epoch = 1 << 20  # fetched under an epoch that no batch exceeds
    now_ms = START_MS
    for append in log.appends:
        now_ms += dice.choice((0, 10, 3000))
        yield Step(b"".join(append), is_leader=False, origin=Origin.REPLICATION, leader_epoch=epoch, now_ms=now_ms)


def check_partitions(oracles: Sequence[Oracle], seeds: Iterable[int]) -> Result:
    """Write a partition for each seed with `PartitionWriter` and with Kafka's ``UnifiedLog``, and compare all files."""
    result = Result("partitions: PartitionWriter against UnifiedLog, every file of the directory")
    for seed in seeds:
        script = random_script(seed)
        for oracle in oracles:
            with scratch_directory() as root:
                _check_partition(result, oracle, f"partition {seed}, Kafka {oracle.version}", script, Path(root))
        result.checked += 1
        result.counts["appends"] += len(script.steps)
    return result


def _check_partition(result: Result, oracle: Oracle, name: str, script: Script, root: Path) -> None:
    theirs, ours = root / "kafka" / DIRECTORY, root / "ours" / DIRECTORY
    for directory in (theirs, ours):
        directory.parent.mkdir()
    steps = [step.as_object() for step in script.steps]
    answer = oracle.ask("write", directory=str(theirs), config=script.settings, nowMs=START_MS, steps=steps)
    if "error" in answer:
        result.fail(name, f"Kafka refuses: {answer['error']}: {answer['message']}")
        return
    end = write_partition(ours, script, GENERATIONS[oracle.release])
    result.equal(name, "log end offset", end, answer["logEndOffset"])
    compare_directories(result, name, ours, theirs)
    result.counts[f"Kafka {oracle.release}: segments"] += len(list(theirs.glob("*.log")))
    shutil.rmtree(root / "kafka")


def write_partition(directory: Path, script: Script, generation: str) -> int:
    """Write a partition as a script says.

    Args:
        directory: directory of the partition.
        script: settings and appends.
        generation: generation of `LogConfig`.

    Returns:
        The log end offset.
    """
    now_ms = START_MS
    config = LogConfig.from_properties({**script.settings, "generation": generation})
    with PartitionWriter(directory, config, environment=Environment(clock=lambda: now_ms)) as writer:
        for step in script.steps:
            now_ms = step.now_ms
            if step.is_leader:
                if step.leader_epoch != writer.leader_epoch:
                    writer.become_leader(step.leader_epoch)
                writer.append(step.data, origin=step.origin)
            else:
                writer.append_as_follower(step.data, leader_epoch=step.leader_epoch)
        return writer.log_end_offset


def compare_directories(result: Result, name: str, ours: Path, theirs: Path) -> None:
    """Compare every file of two partition directories; the order of the entries in a snapshot is free."""
    names = {path.name for path in ours.iterdir()}, {path.name for path in theirs.iterdir()}
    if not result.equal(name, "files", sorted(names[0]), sorted(names[1])):
        return
    for file in sorted(names[0]):
        mine, kafkas = (ours / file).read_bytes(), (theirs / file).read_bytes()
        if file.endswith(".snapshot"):
            result.equal(name, file, sorted_entries(mine), sorted_entries(kafkas))
            result.equal(name, f"size of {file}", len(mine), len(kafkas))
        else:
            result.equal(name, file, mine, kafkas)

"""Compare logs that we compact with the same logs compacted by Kafka's own ``Cleaner``.

Each log goes through several passes. A pass ends at the high watermark or when the memory for keys is full, and delete
horizons expire between passes. Logs without compression must be equal byte for byte, indexes included; the others,
whose compressed bytes depend on the encoder, must be equal in every field and every record.
"""

from __future__ import annotations

import os
import random
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from proofs.fuzz.random_logs import START_MS, LogMaker
from proofs.kafka.oracle import Oracle, scratch_directory
from proofs.kafka.result import Result
from seglog_format import (
    Environment,
    LogConfig,
    PartitionWriter,
    compact,
    decode_batch,
    new_record,
    open_partition,
    verify,
    walk,
)
from seglog_format.types import RecordBatchHeader

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from seglog_format.types import BatchFate, Record

DIRECTORY: Final = "t-0"
EPOCH: Final = 1 << 20
"""Leader epoch above those of all batches."""

FAULTS: Final = {
    "Empty batches are only supported for magic v2 and above": "SEG-CMP-016",
    "Attempt to append to a full index": "SEG-CMP-006",
}
"""Messages with which Kafka fails, and the requirements that describe the failure."""
COMPARED: Final = (".log", ".index", ".timeindex", ".txnindex", ".snapshot", ".deleted")


@dataclass(frozen=True, slots=True)
class Pass:
    """One pass of compaction.

    Attributes:
        now_ms: time of the clock.
        cleaner_offset: the checkpointed offset; None if there is none.
        high_watermark: end of the log for this pass.
        max_keys: limit on keys in memory.
    """

    now_ms: int
    cleaner_offset: int | None
    high_watermark: int
    max_keys: int


class KeyedMaker(LogMaker):
    """Makes entries of few keys; most records have one."""

    key_count: int = 10
    value_sizes: tuple[int, ...] = (0, 1, 20, 100)
    headers: tuple[tuple[bytes, bytes | None], ...] = ((b"h", b"1"), (b"h", None))
    header_percent: int = 10
    """Share of records that have headers."""

    def record(self, *, has_headers: bool = True) -> Record:
        """Return a record; its timestamp is later than, equal to or earlier than the one before."""
        dice = self.dice
        self.time_ms += dice.choice((0, 1, 7, 1000, -3, -500))
        value = None if self.happens(25) else dice.randbytes(dice.choice(self.value_sizes))
        key = None if self.happens(3) else b"key-%d" % dice.randrange(self.key_count)
        headers = self.headers if has_headers and self.happens(self.header_percent) else ()
        return new_record(key=key, value=value, timestamp_ms=-1 if self.happens(2) else self.time_ms, headers=headers)


def check_compaction(oracle: Oracle, seeds: Iterable[int]) -> Result:
    """Compact a log for each seed in several passes, by us and by Kafka."""
    result = Result("logs compacted: our passes against those of Kafka's Cleaner, every file of the directory")
    for seed in seeds:
        with scratch_directory() as root:
            _check(result, oracle, f"log {seed}", seed, Path(root))
        result.checked += 1
    return result


def _check(result: Result, oracle: Oracle, name: str, seed: int, root: Path) -> None:
    dice = random.Random(f"compaction {seed}")
    has_compression = seed % 3 == 0
    config = random_config(dice)
    end_ms = write_log(root / "ours" / DIRECTORY, dice, config, has_compression=has_compression)
    shutil.copytree(root / "ours" / DIRECTORY, root / "kafka" / DIRECTORY)
    result.counts["logs without compression" if not has_compression else "logs with compression"] += 1
    cleaner_offset: int | None = None
    now_ms = end_ms
    for number in range(dice.choice((2, 3, 4, 5))):
        now_ms += dice.choice((1, 1000, 5000, 5000, 10_000, 100_000_000))
        this_pass = _random_pass(dice, root / "ours" / DIRECTORY, now_ms, cleaner_offset)
        answer = _by_kafka(oracle, root / "kafka" / DIRECTORY, config, this_pass)
        departure = next((rule for words, rule in FAULTS.items() if words in answer.get("message", "")), None)
        if departure is not None:
            result.departures[departure] += 1
            return
        if "error" in answer:
            result.fail(name, f"Kafka fails: {answer['error']}: {answer['message']}")
            return
        _by_us(result, f"{name}, pass {number}", root / "ours" / DIRECTORY, config, this_pass, answer)
        if has_compression:
            _compare_fields(result, f"{name}, pass {number}", root)
            shutil.rmtree(root / "ours" / DIRECTORY)
            shutil.copytree(root / "kafka" / DIRECTORY, root / "ours" / DIRECTORY)
        else:
            _compare_bytes(result, f"{name}, pass {number}", root)
        cleaner_offset = answer.get("endOffset", cleaner_offset)
        for directory in (root / "ours", root / "kafka"):
            for path in directory.rglob("*.deleted"):
                path.unlink()


def random_config(dice: random.Random) -> LogConfig:
    """Return settings that make many small segments and let tombstones expire soon."""
    return LogConfig(
        segment_bytes=dice.choice((1500, 4000, 10_000)),
        index_interval_bytes=dice.choice((0, 100, 1000, 4096)),
        segment_index_bytes=dice.choice((120, 1 << 20, 1 << 20)),
        delete_retention_ms=dice.choice((0, 1000, 5000, 86_400_000)),
        min_compaction_lag_ms=dice.choice((0, 0, 500, 5000)),
        cleanup_policy=frozenset({"compact"}),
    )


def write_log(path: Path, dice: random.Random, config: LogConfig, *, has_compression: bool) -> int:
    """Write a log of several segments and set their modification times; return the time of the last record."""
    maker = KeyedMaker(dice, has_compression=has_compression, has_gaps=dice.choice((True, False)))
    maker.key_count = dice.choice((3, 10, 40))
    old_count = dice.choice((0, 0, 0, 10, 40))
    old_magic = dice.choice((0, 1))
    path.parent.mkdir(parents=True)
    with PartitionWriter(path, replace(config), environment=Environment(clock=lambda: maker.time_ms)) as writer:
        for number in range(old_count + dice.choice((0, 20, 60, 120)) + 1):
            entry = maker.message(old_magic) if number < old_count else maker.entry()
            writer.append_as_follower(entry, leader_epoch=EPOCH)
    modified_ms = START_MS
    for log in sorted(path.glob("*.log")):
        modified_ms += dice.choice((0, 100, 1000, 3000))
        os.utime(log, ns=(modified_ms * 1_000_000,) * 2)
    return maker.time_ms


def _random_pass(dice: random.Random, path: Path, now_ms: int, cleaner_offset: int | None) -> Pass:
    with open_partition(path) as partition:
        end, bases = partition.log_end_offset, [segment.base_offset for segment in partition.segments]
        high_watermark = end if dice.randrange(2) else dice.choice(bases)
        # After a restart a broker no longer knows which transactions ended above its high watermark.
        if _has_open_transaction(path, high_watermark):
            high_watermark = end
    start = dice.choice((cleaner_offset, None, None, dice.randrange(end + 1)))
    return Pass(now_ms, start, high_watermark, dice.choice((2, 5, 1000, 1000, 1000, 1000)))


def _has_open_transaction(path: Path, end: int) -> bool:
    """Return whether a transaction begins below an offset and does not end below it."""
    producers: set[int] = set()
    for log in sorted(path.glob("*.log")):
        for frame in walk(log.read_bytes()):
            header = frame.header
            if isinstance(header, RecordBatchHeader) and header.is_transactional and header.last_offset < end:
                producers.discard(header.producer_id) if header.is_control else producers.add(header.producer_id)
    return bool(producers)


def _by_kafka(oracle: Oracle, path: Path, config: LogConfig, this_pass: Pass) -> dict[str, Any]:
    offset = {} if this_pass.cleaner_offset is None else {"cleanerOffset": this_pass.cleaner_offset}
    return oracle.ask(
        "clean",
        directory=str(path),
        config={
            "cleanup.policy": "compact",
            "segment.bytes": str(config.segment_bytes),
            "segment.index.bytes": str(config.segment_index_bytes),
            "index.interval.bytes": str(config.index_interval_bytes),
            "delete.retention.ms": str(config.delete_retention_ms),
            "min.compaction.lag.ms": str(config.min_compaction_lag_ms),
        },
        nowMs=this_pass.now_ms,
        highWatermark=this_pass.high_watermark,
        mapSlots=this_pass.max_keys,
        **offset,
    )


def _by_us(result: Result, name: str, path: Path, config: LogConfig, this_pass: Pass, answer: dict[str, Any]) -> None:
    _write_checkpoint(path, "replication-offset-checkpoint", this_pass.high_watermark)
    _write_checkpoint(path, "cleaner-offset-checkpoint", this_pass.cleaner_offset)
    planned = compact(path, config, now_ms=this_pass.now_ms, max_keys=this_pass.max_keys)
    _count(result, planned.batch_fates())
    plan = planned.apply().plan
    ours = plan.first_dirty_offset, plan.clean_size, plan.dirty_size
    result.equal(name, "what is dirty", ours, (answer["firstDirtyOffset"], answer["cleanSize"], answer["dirtySize"]))
    if plan.groups:
        result.equal(name, "end", plan.first_uncleanable_offset, answer["firstUncleanableOffset"])
        result.equal(name, "end of the keys", plan.end_offset, answer.get("endOffset"))
        result.counts["passes that did something"] += 1
        result.counts["segments rewritten"] += sum(map(len, plan.groups))
    found = [str(finding) for finding in verify(path) if finding.severity.value == "error"]
    result.equal(name, "what verify says", found, [])


def _count(result: Result, fates: Iterable[BatchFate]) -> None:
    for fate in fates:
        result.counts[f"batches {fate.action.value}"] += 1
        result.counts["delete horizons set"] += fate.delete_horizon_ms != fate.batch.header.delete_horizon_ms
        result.counts["messages turned into batches"] += fate.batch.header.magic < 2 and bool(fate.kept)  # noqa: PLR2004 - the format
        result.counts.update(f"records: {record.reason.value[0]}" for record in fate.records)


def _write_checkpoint(path: Path, name: str, offset: int | None) -> None:
    lines = "0\n" if offset is None else f"1\nt 0 {offset}\n"
    (path.parent / name).write_text(f"0\n{lines}", encoding="utf-8")


def _compare_bytes(result: Result, name: str, root: Path) -> None:
    ours, theirs = _contents(root / "ours" / DIRECTORY), _contents(root / "kafka" / DIRECTORY)
    if result.equal(name, "files", sorted(ours), sorted(theirs)):
        for file in sorted(ours):
            if not file.endswith(".snapshot"):
                result.equal(name, file, ours[file], theirs[file])
    _compare_times(result, name, root)
    result.counts["logs compared byte for byte"] += sum(file.endswith(".log") for file in ours)


def _contents(path: Path) -> dict[str, bytes]:
    """Return the relevant files: no empty transaction indexes; of files marked for deletion only the names."""
    found = {}
    for file in sorted(path.iterdir()):
        if file.name.endswith(COMPARED):
            data = b"" if file.name.endswith(".deleted") else file.read_bytes()
            if data or ".txnindex" not in file.name:
                found[file.name] = data
    return found


def _compare_times(result: Result, name: str, root: Path) -> None:
    ours, theirs = (
        {
            file.name: file.stat().st_mtime_ns // 1_000_000
            for file in sorted((root / side / DIRECTORY).glob("*.log"))[:-1]
        }
        for side in ("ours", "kafka")
    )
    result.equal(name, "modification times", ours, theirs)


def _compare_fields(result: Result, name: str, root: Path) -> None:
    ours, theirs = (_logs(root / side / DIRECTORY) for side in ("ours", "kafka"))
    if result.equal(name, "segments", sorted(ours), sorted(theirs)):
        for file in sorted(ours):
            mine, kafkas = list(_batches(ours[file])), list(_batches(theirs[file]))
            if result.equal(name, f"batches of {file}", len(mine), len(kafkas)):
                for number, pair in enumerate(zip(mine, kafkas, strict=True)):
                    result.equal(name, f"batch {number} of {file}", *pair)
    _compare_times(result, name, root)
    result.counts["logs compared field by field"] += len(ours)


def _logs(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in path.glob("*.log")}


def _batches(data: bytes) -> Iterator[tuple[Any, ...]]:
    """Yield headers without size and checksum, and records."""
    for frame in walk(data):
        batch = decode_batch(frame.data)
        header = batch.header
        if isinstance(header, RecordBatchHeader):
            header = replace(header, batch_length=0, crc=0)
            yield header, batch.records
        else:
            yield bytes(frame.data), ()

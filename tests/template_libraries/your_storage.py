"""What the template of a storage calls, over the public API."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from seglog_format import Environment, LogConfig, LogWriter, Origin, RecoveryOptions, open_partition
from seglog_format import compact as prepared_compaction
from seglog_format import recover as prepared_recovery
from seglog_format import retain as prepared_retention
from seglog_format import truncate as prepared_truncation

if TYPE_CHECKING:
    from pathlib import Path

__version__ = "1"
CHECKPOINTS = {
    "recoveryPoint": "recovery-point-offset-checkpoint",
    "logStartOffset": "log-start-offset-checkpoint",
    "highWatermark": "replication-offset-checkpoint",
    "cleanerOffset": "cleaner-offset-checkpoint",
}


def put_beside(directory: Path, known: dict[str, Any]) -> None:
    if known["cleanShutdown"]:
        (directory.parent / ".kafka_cleanshutdown").touch()
    for name in CHECKPOINTS.keys() & known.keys():
        (directory.parent / CHECKPOINTS[name]).write_text(f"0\n1\ntopic 0 {known[name]}\n", encoding="ascii")


class Log:
    """A log that is open."""

    def __init__(self, directory: Path, config: dict[str, str], now_ms: int) -> None:
        self.directory = directory
        self.now_ms = now_ms
        environment = Environment(clock=lambda: self.now_ms, locks_directory=False)
        self.writers = LogWriter(directory.parent, LogConfig.from_properties(config), environment=environment)
        self.writer = self.writers.open("topic", 0)

    def append(self, records: bytes, *, origin: str, is_leader: bool, leader_epoch: int | None) -> SimpleNamespace:
        if is_leader and leader_epoch not in {None, self.writer.leader_epoch}:
            self.lead(leader_epoch or 0)
        done = (
            self.writer.append(records, origin=Origin(origin))
            if is_leader
            else self.writer.append_as_follower(records, leader_epoch=leader_epoch)
        )
        assert done is not None
        rolled = done.rolled and done.rolled.value
        return SimpleNamespace(first_offset=done.first_offset, last_offset=done.last_offset, rolled=rolled)

    def lead(self, leader_epoch: int) -> None:
        self.writer.become_leader(leader_epoch)

    def roll(self) -> int:
        return self.writer.roll()

    def flush(self) -> None:
        self.writer.flush()

    def close(self) -> None:
        self.writers.close()

    @property
    def recovery_point(self) -> int:
        return self.writer.recovery_point

    @property
    def end(self) -> int:
        return self.writer.log_end_offset

    @property
    def start(self) -> int:
        return self.writer.log_start_offset

    @property
    def last_stable(self) -> int:
        return self.writer.last_stable_offset


def open(directory: Path, *, config: dict[str, str], now_ms: int, known: dict[str, Any]) -> Log:  # noqa: A001 - its name
    put_beside(directory, known)
    if not any(directory.iterdir()):
        directory.rmdir()
    return Log(directory, config, now_ms)


def recover(directory: Path, *, interval_bytes: int | None, known: dict[str, Any]) -> int:
    put_beside(directory, known)
    options = RecoveryOptions(like_broker=True, interval_bytes=interval_bytes)
    done = prepared_recovery(directory, options=options)
    if done.failure is not None:
        raise ValueError(done.failure.text)
    done.apply()
    after = prepared_recovery(directory, options=options) if done.splits else done
    return after.plan.log_end_offset


def truncate(directory: Path, offset: int, *, known: dict[str, Any]) -> int:
    put_beside(directory, known)
    done = prepared_truncation(directory, offset)
    done.apply()
    return done.plan.offset


def retain(directory: Path, *, config: dict[str, str], now_ms: int, known: dict[str, Any]) -> SimpleNamespace:
    put_beside(directory, known)
    done = prepared_retention(directory, LogConfig.from_properties(config), now_ms=now_ms)
    done.apply()
    plan, removed = done.plan, [one.base_offset for one in done.plan.removed]
    return SimpleNamespace(removed=removed, start=plan.log_start_offset, end=done.log_end_offset)


def compact(
    directory: Path, *, max_keys: int | None, config: dict[str, str], now_ms: int, known: dict[str, Any]
) -> SimpleNamespace:
    put_beside(directory, known)
    settings = LogConfig.from_properties(config)
    done = prepared_compaction(directory, settings, now_ms=now_ms, max_keys=max_keys or 1 << 20)
    done.apply()
    plan = done.plan
    first = {"first_dirty": plan.first_dirty_offset, "first_uncleanable": plan.first_uncleanable_offset}
    return SimpleNamespace(**first, end=plan.end_offset)


def read(directory: Path, offset: int, size: int, *, is_committed: bool) -> tuple[list[SimpleNamespace], int]:
    with open_partition(directory) as partition:
        found = partition.read(offset, size, isolation="read_committed" if is_committed else "read_uncommitted")
        records = [
            SimpleNamespace(
                offset=one.offset,
                timestamp=one.timestamp_ms,
                key=one.key,
                value=one.value,
                headers=[(pair.key, pair.value) for pair in one.headers],
            )
            for one in found.records
        ]
        return records, found.next_offset

"""One life of a log directory: a process opens it, works on it, and ends or is cut off."""

from __future__ import annotations

import shutil
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

from proofs.power.promise import Appended, Compacted, Promise
from proofs.power.workload import Appenders, Log, restart_producers
from proofs.power.world import Turns
from seglog_format import BrokerGeneration, Environment, LogConfig, LogWriter, compact, recover, retain, truncate, walk
from seglog_format.types import RecordBatchHeader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from proofs.power.mirrored_files import MirroredFiles
    from proofs.power.world import World

TOPIC: Final = "t"
GENERATIONS: Final = (BrokerGeneration.V0_11, BrokerGeneration.V2_0, BrokerGeneration.V3_7, BrokerGeneration.V4_1)
PREALLOCATES, COMPACTS = 0.2, 0.8
"""Shares of lives that preallocate segments; and, where logs are compacted, of lives that begin with compaction."""


class Life:
    """A process at work on a log directory, from its start until it ends or the power fails.

    Args:
        files: files of the log directory.
        logs: logs by partition, with their promises.
        world: random number generator, clock and habits.

    Attributes:
        when: what the process is doing.
    """

    def __init__(self, files: MirroredFiles, logs: dict[int, Log], world: World) -> None:
        self.when = "starting"
        self._files = files
        self._root = files.simulated.root
        self._logs = logs
        self._world = world
        self._dice = world.dice
        self._habits = world.habits
        world.turns = Turns()

    @property
    def promises(self) -> dict[int, Promise]:
        """Return the promises that hold if the power fails now."""
        return {partition: log.promise for partition, log in self._logs.items()}

    def run(self) -> None:
        """Truncate, open, append, and sometimes close.

        Raises:
            PowerCut: the power fails during the life.
            BrokenPromiseError: a log does not hold what it should.
        """
        for partition, log in self._logs.items():
            path = path_of(self._root, partition)
            drawn = self._dice.random()
            if path.is_dir() and (self._world.compacts or drawn < self._habits.truncates + self._habits.retains):
                self._recover(path, log)
                self._change(path, log, drawn)
        writer = self._opened()
        self.when = "writing"
        appenders = Appenders(self._logs, writer, self._world)
        self._files.simulated.before_sync = appenders.others_go_on
        appenders.run()
        self._files.simulated.before_sync = None
        if self._dice.random() < self._habits.closes:
            self.when = "closing"
            writer.close()
            self._world.counts["closed"] += 1
            self.when = "closed"

    def end(self) -> None:
        """Release everything; acknowledged batches stay acknowledged."""
        self._files.simulated.before_sync = None
        for log in self._logs.values():
            log.note()
            log.writer = None

    def _change(self, path: Path, log: Log, drawn: float) -> None:
        if self._world.compacts and self._dice.random() < COMPACTS:
            self._compact(path, log)
        elif drawn < self._habits.truncates:
            self._truncate(path, log)
        else:
            self._retain(path, log)

    def _recover(self, path: Path, log: Log) -> None:
        """Recover the partition as the command line does."""
        self.when = "recovering"
        recover(path, environment=self._environment()).apply()
        log.keep(log.promise.kept(log_bytes(path)))

    def _truncate(self, path: Path, log: Log) -> None:
        """Truncate the log; from the start of the truncation, less is promised."""
        self.when = "truncating"
        offset = self._dice.choice([self._dice.randint(0, log.end), *(each.end for each in log.appended[-4:])])
        kept = [each for each in log.appended if each.end <= offset]
        log.acknowledged = min(log.acknowledged, kept[-1].end if kept else 0)
        truncate(path, offset, environment=self._environment()).apply()
        log.appended = kept
        log.start = min(log.start, offset)
        log.promise.kept(log_bytes(path))
        self._world.counts["truncations"] += 1

    def _retain(self, path: Path, log: Log) -> None:
        """Remove segments by age and size."""
        self.when = "removing segments"
        config, now_ms = self._config(), self._world.now_ms
        planned = retain(path, config, now_ms=now_ms, environment=self._environment())
        log.start = planned.plan.log_start_offset
        done = planned.apply()
        log.begin_at(done.plan.log_start_offset)
        log.promise.kept(log_bytes(path))
        self._world.counts["segments removed"] += len(done.plan.removed)

    def _compact(self, path: Path, log: Log) -> None:
        """Compact the log; each group of segments is either old or new."""
        config, now_ms = self._config(), self._world.now_ms
        log.groups = compacted_groups(path, config, now_ms)
        self.when = "compacting"
        compact(path, config, now_ms=now_ms, environment=self._environment()).apply()
        replaced = replace(log.promise, appended=tuple(done_with(log.appended, log.groups)), groups=())
        self._world.counts["groups of segments compacted"] += len(log.groups)
        log.keep(replaced.kept(log_bytes(path)))

    def _environment(self) -> Environment:
        return Environment(files=self._files)

    def _opened(self) -> LogWriter:
        """Open the log directory, which recovers it; the contents are then on the disk."""
        self.when = "opening"
        environment = Environment(
            files=self._files,
            clock=lambda: self._world.now_ms,
            random=self._dice.random,
            make_condition=lambda: self._world.turns,
            locks_directory=False,
        )
        writer = LogWriter(self._root, self._config(), environment=environment)
        for partition, log in self._logs.items():
            log.leader_epoch += 1
            topic_id = self._dice.choice((None, "AAAAAAAAAAEAAAAAAAAAAg"))
            opened = writer.open(TOPIC, partition, leader_epoch=log.leader_epoch, topic_id=topic_id)
            log.keep(log.promise.kept(log_bytes(path_of(self._root, partition)), zeros_may_follow=True))
            log.acknowledged = log.end  # opening a log syncs all of it
            restart_producers(log)
            log.writer = opened
        return writer

    def _config(self) -> LogConfig:
        dice = self._dice
        return LogConfig(
            segment_bytes=dice.choice((400,) if self._world.compacts else self._habits.segment_bytes),
            segment_index_bytes=dice.choice((24, 36, 60, 240, 1000)),
            index_interval_bytes=dice.choice((0, 100, 400, 4096)),
            segment_ms=dice.choice((50, 1000, 10**9)),
            flush_messages=dice.choice((1, 7, 10**6, 10**6)),
            preallocate=dice.random() < PREALLOCATES,
            retention_bytes=dice.choice(self._habits.retention_bytes),
            retention_ms=dice.choice((40, 10**9, 10**9)),
            file_delete_delay_ms=dice.choice((0, 60_000)),
            generation=dice.choice(GENERATIONS),
        )


def compacted_groups(path: Path, config: LogConfig, now_ms: int) -> tuple[Compacted, ...]:
    """Return the expected result of compaction, made on a copy of the log directory."""
    with TemporaryDirectory(dir=path.parent.parent) as name:
        copy = Path(name) / "logs"
        shutil.copytree(path.parent, copy)
        plan = compact(copy / path.name, config, now_ms=now_ms).apply().plan
        batches = batches_of(log_bytes(copy / path.name))
    found = []
    for group in plan.groups:
        start, end = group[0].base_offset, group[-1].next_offset
        within = tuple(batch for batch in batches if start <= batch.start < end)
        found.append(Compacted(start, end, within, tuple(segment.base_offset for segment in group)))
    return tuple(found)


def batches_of(data: bytes) -> list[Appended]:
    """Return the batches of a log."""
    return [
        Appended(bytes(frame.data), frame.header.base_offset, frame.header.next_offset)
        for frame in walk(data)
        if isinstance(frame.header, RecordBatchHeader)
    ]


def done_with(appended: list[Appended], groups: Sequence[Compacted]) -> list[Appended]:
    """Return the batches of a log when all groups are replaced."""
    kept = [batch for batch in appended if not any(group.holds(batch) for group in groups)]
    return sorted([*kept, *(batch for group in groups for batch in group.batches)], key=attrgetter("start"))


def path_of(root: Path, partition: int) -> Path:
    """Return the directory of a partition."""
    return root / f"{TOPIC}-{partition}"


def log_bytes(path: Path) -> bytes:
    """Return the bytes of all segments of a partition; empty if there is no directory."""
    return b"".join(segment.read_bytes() for segment in sorted(path.glob("*.log")))

"""Scenarios: write to an open log; retain and compact a closed one."""

from __future__ import annotations

import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from seglog_conformance.reference.decisions import copies_to
from seglog_conformance.reference.logs import decode
from seglog_conformance.reference.scratch import (
    TOPIC,
    config_of,
    deleted_in,
    disk_of,
    left_in,
    outcomes,
    plain_name,
    recovered,
    written,
)
from seglog_conformance.reference.wire import rejection
from seglog_format.cleaning.compaction_apply import compact_partition as compact_files
from seglog_format.cleaning.deletion import retain_partition
from seglog_format.errors import SeglogError, WriteError
from seglog_format.state.config import PRODUCER_EXPIRATION_MS
from seglog_format.state.producer_state import Origin
from seglog_format.storage.environment import Environment
from seglog_format.writing.log_writer import LogWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from seglog_conformance.protocol import Json
    from seglog_conformance.reference.disk import Disk
    from seglog_format.log.listing import PartitionListing
    from seglog_format.log.remote_store import RemoteCopies
    from seglog_format.model import MissingOffsets
    from seglog_format.writing.writer import Acks, PartitionWriter

MAX_KEYS: Final = 1 << 30
LEADER: Final = "leader"


# An open log


def write(request: Json) -> Json:
    """Return the files after some steps, and the result of each step."""
    with _logs(request) as (path, disk):
        scenario = _Scenario(path, disk, request)
        try:
            steps = scenario.run()
        except SeglogError as error:
            return rejection(error)
        return {"ok": True, "steps": steps, **left_in(path), **scenario.state, **outcomes(request, disk)}


class _Scenario:
    """A writer that executes steps."""

    def __init__(self, path: Path, disk: Disk, request: Json) -> None:
        self._path = path
        self._disk = disk
        self._request = request
        self._now_ms = int(request.get("now", 0))
        self._probability = float(request.get("options", {}).get("random", "0"))
        self.state: Json = {}

    def run(self) -> list[Json]:
        """Open the log, execute the steps, close it."""
        environment = Environment(
            files=self._disk, clock=lambda: self._now_ms, random=lambda: self._probability, locks_directory=False
        )
        log = LogWriter(self._path.parent, config_of(self._request), environment=environment)
        try:
            writer = log.open(self._request.get("options", {}).get("topic", TOPIC), 0)
            return [self._step(log, writer, step) for step in self._request["steps"]]
        finally:
            self._disk.failing = ""
            with suppress(WriteError):
                log.close()
            if log.writers:
                self.state = _state(log.writers[0])

    def _step(self, log: LogWriter, writer: PartitionWriter, step: Json) -> Json:
        self._now_ms = int(step.get("now", self._now_ms))
        self._disk.failing = step.get("fails", "")
        try:
            return STEPS[step["do"]](self, log, writer, step)
        except SeglogError as error:
            return {"reject": rejection(error)["reject"]}
        finally:
            self._disk.failing = ""

    def append(self, _log: LogWriter, writer: PartitionWriter, step: Json) -> Json:
        """Append as a leader, or as a follower."""
        data, acks = bytes.fromhex(step["records"]), _acks(step)
        if step.get("as", LEADER) == LEADER:
            if step.get("leaderEpoch", writer.leader_epoch) != writer.leader_epoch:
                writer.become_leader(step["leaderEpoch"])
            done = writer.append(data, origin=Origin(step.get("origin", "client")), acks=acks)
        else:
            found = writer.append_as_follower(data, leader_epoch=step.get("leaderEpoch"), acks=acks)
            if found is None:
                return {"taken": False}
            done = found
        return {
            "firstOffset": str(done.first_offset),
            "lastOffset": str(done.last_offset),
            "rolled": None if done.rolled is None else done.rolled.value,
            "isDuplicate": done.is_duplicate,
            "recoveryPoint": str(writer.recovery_point),
        }

    def together(self, _log: LogWriter, writer: PartitionWriter, step: Json) -> Json:
        """Make several concurrent appends, each of which waits until it is synced."""
        self._disk.is_slow = True
        threads = [
            threading.Thread(target=writer.append, args=(bytes.fromhex(data),), kwargs={"acks": "flushed"})
            for data in step["records"]
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self._disk.is_slow = False
        return {"mostSyncs": self._disk.most_syncs, "recoveryPoint": str(writer.recovery_point)}

    def lead(self, _log: LogWriter, writer: PartitionWriter, step: Json) -> Json:
        """Become the leader."""
        writer.become_leader(step["leaderEpoch"])
        return {}

    def roll(self, _log: LogWriter, writer: PartitionWriter, _step: Json) -> Json:
        """Roll a segment."""
        return {"baseOffset": str(writer.roll())}

    def flush(self, _log: LogWriter, writer: PartitionWriter, _step: Json) -> Json:
        """Flush everything to the disk."""
        return {"recoveryPoint": str(writer.flush())}

    def retain(self, _log: LogWriter, writer: PartitionWriter, _step: Json) -> Json:
        """Run a pass of retention."""
        plan = writer.apply_retention()
        return {
            "segments": [str(one.base_offset) for one in plan.removed],
            "logStartOffset": str(plan.log_start_offset),
        }

    def delete(self, _log: LogWriter, writer: PartitionWriter, _step: Json) -> Json:
        """Delete the files that have waited long enough."""
        writer.remove_deleted()
        return {"deleted": deleted_in(self._path)}

    def schedule(self, log: LogWriter, writer: PartitionWriter, _step: Json) -> Json:
        """Run the tasks that are due now."""
        log.run_due()
        return {"recoveryPoint": str(writer.recovery_point)}

    def cut(self, _log: LogWriter, _writer: PartitionWriter, _step: Json) -> Json:
        """Return the possible states after a power cut now."""
        return {"outcomes": recovered(dict.fromkeys(self._disk.left_now()))}

    def put(self, _log: LogWriter, _writer: PartitionWriter, step: Json) -> Json:
        """Write files into the directory as another program would."""
        for name, data in step["files"].items():
            (self._path / plain_name(name)).write_bytes(bytes.fromhex(data))
        return {}

    def look(self, _log: LogWriter, _writer: PartitionWriter, _step: Json) -> Json:
        """Return the present contents of the files."""
        return left_in(self._path)


STEPS: Final[dict[str, Callable[[_Scenario, LogWriter, PartitionWriter, Json], Json]]] = {
    "append": _Scenario.append,
    "together": _Scenario.together,
    "lead": _Scenario.lead,
    "roll": _Scenario.roll,
    "flush": _Scenario.flush,
    "retain": _Scenario.retain,
    "delete": _Scenario.delete,
    "schedule": _Scenario.schedule,
    "cut": _Scenario.cut,
    "put": _Scenario.put,
    "look": _Scenario.look,
}


def _acks(step: Json) -> Acks:
    return "flushed" if step.get("acks") == "flushed" else "written"


def _state(writer: PartitionWriter) -> Json:
    return {
        "nextOffset": str(writer.log_end_offset),
        "logStartOffset": str(writer.log_start_offset),
        "lastStableOffset": str(writer.last_stable_offset),
    }


# A closed log


class _Copied(NamedTuple):
    """A remote store that has every offset up to one."""

    offset: int

    def copies(self, _listing: PartitionListing, _log_end_offset: int) -> RemoteCopies:
        """Return what is copied."""
        return copies_to(self.offset)

    def located(self, _listing: PartitionListing, _tiered: MissingOffsets) -> None:
        """Return that no segment is known."""


def retain(request: Json) -> Json:
    """Return the files after retention of a closed log."""
    with _logs(request) as (path, disk):
        try:
            remote = _Copied(int(request.get("options", {}).get("copiedOffset", -1)))
            done = retain_partition(path, config_of(request), now_ms=int(request["now"]), files=disk, remote=remote)
        except SeglogError as error:
            return rejection(error)
        answer: Json = {
            "ok": True,
            "segments": [str(one.base_offset) for one in done.plan.removed],
            "logStartOffset": str(done.plan.log_start_offset),
            "nextOffset": str(done.log_end_offset),
        }
        return {**answer, **left_in(path), **outcomes(request, disk)}


def compact(request: Json) -> Json:
    """Return the files after compaction of a closed log."""
    options = request.get("options", {})
    with _logs(request) as (path, disk):
        try:
            done = compact_files(
                path,
                config_of(request),
                now_ms=int(request["now"]),
                max_keys=options.get("mostKeys", MAX_KEYS),
                producer_expiration_ms=int(options.get("producerExpirationMs", PRODUCER_EXPIRATION_MS)),
                files=disk,
            )
        except SeglogError as error:
            return rejection(error)
        plan = done.plan
        answer: Json = {
            "ok": True,
            "firstDirtyOffset": str(plan.first_dirty_offset),
            "firstUncleanableOffset": str(plan.first_uncleanable_offset),
            "endOffset": str(plan.end_offset),
            "groups": [[str(one.base_offset) for one in group] for group in plan.groups],
            **_batches(path, options),
            "modified": {one.name: str(disk.modified_ms(one)) for one in sorted(path.glob("*.log"))},
        }
        return {**answer, **left_in(path), **outcomes(request, disk)}


def _batches(path: Path, options: Json) -> Json:
    """Return the batches of each log, for implementations whose compressor gives other bytes."""
    if not options.get("batches"):
        return {}
    logs = {log.name: decode({"data": log.read_bytes().hex()}) for log in sorted(path.glob("*.log"))}
    return {"batches": {name: found["batches"] for name, found in logs.items()}}


@contextmanager
def _logs(request: Json) -> Iterator[tuple[Path, Disk]]:
    """Yield the partition directory of a request; without files, it does not exist yet."""
    with written(request) as path:
        if not request["files"]:
            path.rmdir()
        yield path, disk_of(request, path)

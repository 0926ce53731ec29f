"""The committed offsets of groups, in memory and, with a state directory, on disk. Thread-safe."""

from __future__ import annotations

import json
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from threading import Condition, Lock, Thread
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeAlias

from kio.schema.errors import ErrorCode

from seglog_format.cluster.cluster import CoordinatorState
from seglog_format.codec.checksum import crc32c
from seglog_format.errors import UsageError
from seglog_format.log.directory import open_log_directory
from seglog_format.names import CONSUMER_OFFSETS
from seglog_format.storage.files import LocalFiles, replace_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from seglog_format.log.directory import TopicPartition
    from seglog_format.serve.limits import Limits

MAX_METADATA_SIZE: Final = 4096
"""Maximum size of the metadata beside a committed offset; the default of brokers."""

OFFSET_SIZE: Final = 300
GROUP_SIZE: Final = 500
"""Memory that an offset or a group takes besides its texts."""

LARGEST_PART: Final = 8
"""The share of the memory for all groups that one group may use."""


@dataclass(frozen=True, slots=True)
class Committed:
    """A committed offset with the client's metadata."""

    offset: int
    metadata: str = ""
    leader_epoch: int = -1

    @property
    def size(self) -> int:
        """Approximate bytes of memory."""
        return OFFSET_SIZE + len(self.metadata)


@dataclass(slots=True)
class GroupOffsets:
    """The offsets of one group.

    Attributes:
        used_at: time of the last commit or fetch, in seconds since 1970.
        offsets: by topic and partition.
        size: approximate bytes of memory.
        change: number of changes so far.
    """

    used_at: float
    offsets: dict[tuple[str, int], Committed] = field(default_factory=dict)
    size: int = GROUP_SIZE
    change: int = 0


class CommittedOffsets:
    """Committed offsets by group. Callers hold the coordinator's lock.

    Args:
        limits: maximum size and age.
        is_active: returns whether a group has members, whose offsets are kept.
        clock: returns the time in seconds since 1970.
    """

    def __init__(
        self, limits: Limits, is_active: Callable[[str], bool], clock: Callable[[], float] = time.time
    ) -> None:
        self._limits = limits
        self._is_active = is_active
        self._clock = clock
        self._groups: OrderedDict[str, GroupOffsets] = OrderedDict()
        self._size = 0

    def commit(self, group_id: str, topic: str, partition: int, committed: Committed) -> ErrorCode:
        """Store an offset; drop the least recently used groups if there is no room."""
        if len(committed.metadata) > MAX_METADATA_SIZE:
            return ErrorCode.offset_metadata_too_large
        known = self._groups.get(group_id)
        before = known.offsets.get((topic, partition)) if known else None
        grown = committed.size - (before.size if before else 0)
        size = (known.size if known else GROUP_SIZE + len(group_id)) + grown
        if size > self._limits.committed_size // LARGEST_PART:
            return ErrorCode.invalid_commit_offset_size
        group = self._used(group_id)
        group.offsets[topic, partition] = committed
        group.change += 1
        self._grow(group, grown)
        self._make_room()
        return ErrorCode.none

    def _used(self, group_id: str) -> GroupOffsets:
        group = self._groups.get(group_id)
        if group is None:
            group = self._groups[group_id] = GroupOffsets(self._clock())
            self._grow(group, len(group_id))
            self._size += GROUP_SIZE
        group.used_at = self._clock()
        self._groups.move_to_end(group_id)
        return group

    def _grow(self, group: GroupOffsets, size: int) -> None:
        group.size += size
        self._size += size

    def _make_room(self) -> None:
        while len(self._groups) > self._limits.groups or self._size > self._limits.committed_size:
            self._forget(next((each for each in self._groups if not self._is_active(each)), next(iter(self._groups))))

    def _forget(self, group_id: str) -> None:
        self._size -= self._groups.pop(group_id).size

    def forget_idle(self) -> None:
        """Drop the groups that have been idle for longer than the limit."""
        earliest = self._clock() - self._limits.group_idle_seconds
        idle = [name for name, group in self._groups.items() if group.used_at < earliest and not self._is_active(name)]
        for group_id in idle:
            self._forget(group_id)

    def of(self, group_id: str) -> dict[tuple[str, int], Committed]:
        """Return the committed offsets of a group, by topic and partition."""
        return dict(self._used(group_id).offsets) if group_id in self._groups else {}

    def restore(self, group_id: str, used_at: float, offsets: dict[tuple[str, int], Committed]) -> None:
        """Add a group that was read from disk; callers add the most recently used group last."""
        for (topic, partition), committed in offsets.items():
            self.commit(group_id, topic, partition, committed)
        if group_id in self._groups:
            self._groups[group_id].used_at = min(used_at, self._clock())

    def __iter__(self) -> Iterator[tuple[str, GroupOffsets]]:
        return iter(self._groups.items())

    def __len__(self) -> int:
        return len(self._groups)


OffsetsByGroup: TypeAlias = "Mapping[str, Mapping[TopicPartition, Committed]]"
"""Committed offsets by group, topic and partition."""


def committed_offsets_in(directories: Sequence[Path], on_problem: Callable[[str], None]) -> OffsetsByGroup:
    """Return the offsets that groups had committed.

    Args:
        directories: log directories of brokers.
        on_problem: called with a message about anything of the topic that cannot be read.

    Raises:
        UsageError: no partition of the topic is in any of them, or a file cannot be read.
    """
    logs, state = open_log_directory(directories), CoordinatorState()
    entries = [entry for (topic, _), entry in sorted(logs.partitions.items()) if topic == CONSUMER_OFFSETS]
    if not entries:
        msg = (
            f"no partition of {CONSUMER_OFFSETS} in {', '.join(map(str, directories))}: committed offsets are not known"
        )
        raise UsageError(msg)
    for entry in entries:
        with logs.opened(entry) as partition:
            state.replay(CONSUMER_OFFSETS, partition.batches())
    for problem in state.problems:
        on_problem(problem)
    return {
        name: {key: Committed(at.offset, at.metadata, at.leader_epoch) for key, at in group.offsets.items()}
        for name, group in state.groups.items()
        if group.offsets
    }


# -- the file of committed offsets: a line of JSON for each group, and a last line with a checksum --------------------


VERSION: Final = 1
FORMAT: Final = "seglog-serve-groups"
HEAD: Final = json.dumps({"format": FORMAT, "version": VERSION}).encode() + b"\n"


class BrokenStateError(Exception):
    """The file is damaged."""


class StoredGroup(NamedTuple):
    """A group as it was stored."""

    group_id: str
    used_at: float
    offsets: dict[tuple[str, int], Committed]


def group_line(group_id: str, group: GroupOffsets) -> bytes:
    """Encode one group as a line."""
    offsets = [
        [topic, partition, each.offset, each.metadata, each.leader_epoch]
        for (topic, partition), each in group.offsets.items()
    ]
    return json.dumps({"group": group_id, "usedMs": int(group.used_at * 1000), "offsets": offsets}).encode() + b"\n"


def whole_file(lines: Iterable[bytes]) -> bytes:
    """Join the lines of all groups, the least recently used first, and add the last line."""
    body = b"".join((HEAD, *lines))
    return body + json.dumps({"end": True, "crc32c": crc32c(body)}).encode() + b"\n"


def groups_in(data: bytes) -> list[StoredGroup]:
    """Parse the groups of a file.

    Raises:
        BrokenStateError: the file is damaged, or of another program.
    """
    try:
        body, last = data[: data.rindex(b"\n", 0, -1) + 1], data[data.rindex(b"\n", 0, -1) + 1 :]
        is_whole = data.startswith(HEAD) and json.loads(last) == {"end": True, "crc32c": crc32c(body)}
        if not is_whole:
            msg = "its first or last line, or its checksum, is wrong"
            raise BrokenStateError(msg)
        return [_group(json.loads(line)) for line in body[len(HEAD) :].splitlines()]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise BrokenStateError(str(error)) from error


def _group(stored: dict[str, Any]) -> StoredGroup:
    offsets = {
        (str(topic), int(partition)): Committed(int(offset), str(metadata), int(epoch))
        for topic, partition, offset, metadata, epoch in stored["offsets"]
    }
    return StoredGroup(str(stored["group"]), int(stored["usedMs"]) / 1000, offsets)


# -- the committed offsets in memory ----------------------------------------------------------------------------------


class KeptOffsets:
    """Committed offsets, and the file that keeps them over a restart.

    Args:
        limits: maximum number and size.
        is_active: returns whether a group has members, whose offsets are kept.
    """

    def __init__(self, limits: Limits, is_active: Callable[[str], bool]) -> None:
        self._lock = Lock()
        self._committed = CommittedOffsets(limits, is_active)
        self._lines: dict[str, tuple[int, bytes]] = {}
        self._store: GroupStore | None = None

    def keep_in(self, directory: Path, report: Callable[[str], None]) -> None:
        """Load the offsets stored in a directory, and store later commits there.

        Args:
            directory: a directory of this server's own.
            report: called with a message about a failure.

        Raises:
            OSError: the stored file cannot be read.
        """
        store = GroupStore(directory, self._content, report)
        with self._lock:
            for group in store.load():
                self._committed.restore(*group)
        self._store = store
        store.start()

    def start_at(self, committed: OffsetsByGroup) -> int:
        """Set offsets that groups committed to a broker, except for partitions that have an offset already.

        Returns:
            Number of offsets that the limits leave out.
        """
        with self._lock:
            for group_id, offsets in committed.items():
                known = self._committed.of(group_id)
                for (topic, partition), one in offsets.items():
                    if (topic, partition) not in known:
                        self._committed.commit(group_id, topic, partition, one)
            return sum(len(offsets.keys() - self._committed.of(name).keys()) for name, offsets in committed.items())

    def _content(self) -> bytes:
        """Return the file of all groups; encode only groups that have changed."""
        with self._lock:
            lines = {}
            for group_id, group in self._committed:
                change, line = self._lines.get(group_id, (-1, b""))
                lines[group_id] = (group.change, line if change == group.change else group_line(group_id, group))
            self._lines = lines
        return whole_file(line for _, line in lines.values())

    def commit(self, group_id: str, topic: str, partition: int, committed: Committed) -> ErrorCode:
        """Store an offset in memory; `when_kept` reports when it is on disk."""
        with self._lock:
            return self._committed.commit(group_id, topic, partition, committed)

    def of(self, group_id: str) -> dict[tuple[str, int], Committed]:
        """Return the committed offsets of a group, by topic and partition."""
        with self._lock:
            return self._committed.of(group_id)

    def forget_idle(self) -> None:
        """Drop the groups that have been idle for longer than the limit."""
        with self._lock:
            self._committed.forget_idle()

    def when_kept(self, then: Saved) -> None:
        """Call back when all commits so far are on disk, if they are stored there, or could not be written."""
        if self._store is None:
            then(is_saved=True)
        else:
            self._store.save(then)

    def end(self, seconds: float) -> None:
        """Write pending commits; wait at most `seconds`."""
        if self._store is not None:
            self._store.end(seconds)


# -- the groups' committed offsets on disk, so they survive a restart --------------------------------------------------


FILE_NAME: Final = "groups.jsonl"
MAX_FILE_SIZE: Final = 64 << 20
REST_FACTOR: Final = 4
"""Pause after a write, as a multiple of its duration."""

MIN_REST_SECONDS: Final = 0.02


class Saved(Protocol):
    """Callback for the outcome of a commit."""

    def __call__(self, *, is_saved: bool) -> None:
        """Report whether the offsets are on the disk."""


class GroupStore:
    """The file in a state directory, and the thread that writes it.

    Args:
        directory: the directory of the file.
        content: returns the current content of the whole file.
        report: called once with a message about a failure.
    """

    def __init__(self, directory: Path, content: Callable[[], bytes], report: Callable[[str], None]) -> None:
        self._path = directory / FILE_NAME
        self._content = content
        self._report = report
        self._changed = Condition()
        self._waiting: list[Saved] = []
        self._is_ended = self._has_failed = False
        self._thread = Thread(target=self._run, name="seglog-groups", daemon=True)

    def load(self) -> list[StoredGroup]:
        """Read the stored groups; report a damaged file and rename it."""
        try:
            if self._path.stat().st_size > MAX_FILE_SIZE:
                return self._set_aside("it is larger than this server writes it")
            return groups_in(self._path.read_bytes())
        except FileNotFoundError:
            return []
        except BrokenStateError as error:
            return self._set_aside(str(error))
        except OSError as error:
            return self._set_aside(error.strerror or str(error))

    def _set_aside(self, reason: str) -> list[StoredGroup]:
        aside = self._path.with_name(f"{FILE_NAME}.damaged-{time.time_ns()}")
        try:
            self._path.replace(aside)
        except OSError as error:
            self._is_ended = True
            self._report(f"{self._path} cannot be used ({reason}; {error.strerror}): commits are refused")
        else:
            self._report(f"{self._path} is damaged ({reason}): groups begin without committed offsets; now {aside}")
        return []

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def save(self, then: Saved) -> None:
        """Write changes soon; then report to `then` whether they are on the disk."""
        with self._changed:
            if not self._is_ended:
                self._waiting.append(then)
                self._changed.notify()
                return
        then(is_saved=False)

    def end(self, seconds: float) -> None:
        """Write pending changes, and stop the thread."""
        with self._changed:
            self._is_ended = True
            self._changed.notify()
        self._thread.join(seconds)

    def _run(self) -> None:
        while waiting := self._next():
            began = time.monotonic()
            is_saved = self._write()
            for then in waiting:
                then(is_saved=is_saved)
            took = time.monotonic() - began
            with self._changed:
                self._changed.wait_for(lambda: self._is_ended, max(REST_FACTOR * took, MIN_REST_SECONDS))

    def _next(self) -> list[Saved]:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._is_ended)
            waiting, self._waiting = self._waiting, []
            return waiting

    def _write(self) -> bool:
        try:
            replace_file(LocalFiles(), self._path, self._content())
        except Exception as error:  # noqa: BLE001 - clients wait for the outcome, whatever the error
            if not self._has_failed:
                self._report(f"{self._path}: commits are refused, as they cannot be written: {error}")
            self._has_failed = True
            return False
        self._has_failed = False
        return True

"""The committed offsets of groups, in memory and, with a state directory, on disk. Thread-safe."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

from seglog_format.serve.committed import Committed, CommittedOffsets

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from kio.schema.errors import ErrorCode

    from seglog_format.serve.cold_groups import OffsetsByGroup
    from seglog_format.serve.group_store import GroupStore, Saved
    from seglog_format.serve.limits import Limits


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
        from seglog_format.serve.group_store import GroupStore  # noqa: PLC0415 - only with a state directory

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
        from seglog_format.serve.group_file import group_line, whole_file  # noqa: PLC0415 - as above

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

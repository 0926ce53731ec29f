"""What groups have committed, in memory and maybe on the disk. For use by several threads at once."""

from __future__ import annotations

from threading import Lock
from typing import TYPE_CHECKING

from seglog_format.serve.committed import Committed, CommittedOffsets

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from kio.schema.errors import ErrorCode

    from seglog_format.serve.group_store import GroupStore, Saved
    from seglog_format.serve.limits import Limits


class KeptOffsets:
    """Committed offsets, and the file in which they outlive the server.

    Args:
        limits: how many there may be.
        is_active: whether a group has members; what it has committed stays.
    """

    def __init__(self, limits: Limits, is_active: Callable[[str], bool]) -> None:
        self._lock = Lock()
        self._committed = CommittedOffsets(limits, is_active)
        self._lines: dict[str, tuple[int, bytes]] = {}
        self._store: GroupStore | None = None

    def keep_in(self, directory: Path, tell: Callable[[str], None]) -> None:
        """Take up what is kept in a directory, and keep there what is committed from now on.

        Args:
            directory: a directory of this server's own.
            tell: told of what goes wrong.

        Raises:
            OSError: what is there cannot be read.
        """
        from seglog_format.serve.group_store import GroupStore  # noqa: PLC0415 - not everybody keeps anything

        store = GroupStore(directory, self._content, tell)
        with self._lock:
            for group in store.load():
                self._committed.restore(*group)
        self._store = store
        store.start()

    def _content(self) -> bytes:
        """The file of all groups; only those are encoded again that have changed."""
        from seglog_format.serve.group_file import group_line, whole_file  # noqa: PLC0415 - as above

        with self._lock:
            lines = {}
            for group_id, group in self._committed:
                change, line = self._lines.get(group_id, (-1, b""))
                lines[group_id] = (group.change, line if change == group.change else group_line(group_id, group))
            self._lines = lines
        return whole_file(line for _, line in lines.values())

    def commit(self, group_id: str, topic: str, partition: int, committed: Committed) -> ErrorCode:
        """Keep an offset in memory; `when_kept` tells when it is safe."""
        with self._lock:
            return self._committed.commit(group_id, topic, partition, committed)

    def of(self, group_id: str) -> dict[tuple[str, int], Committed]:
        """What a group has committed, by topic and partition."""
        with self._lock:
            return self._committed.of(group_id)

    def forget_idle(self) -> None:
        """Let go what was not used for long."""
        with self._lock:
            self._committed.forget_idle()

    def when_kept(self, then: Saved) -> None:
        """Tell when all that was committed so far is as safe as it gets, or that it could not be written."""
        if self._store is None:
            then(is_saved=True)
        else:
            self._store.save(then)

    def end(self, seconds: float) -> None:
        """Write what was committed last; wait so long for it."""
        if self._store is not None:
            self._store.end(seconds)

"""A disk that may lose power at any moment: the synced contents, and the other possible ones.

Bytes are safe when their file is synced, and names when their directory is synced. After a power failure, any part of
the other changes may be on the disk; this disk tries no change, all changes, all changes up to some change, and each
change alone.
"""

from __future__ import annotations

import errno
import os
import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from seglog_format.storage.files import LocalFiles, LocalHandle

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from seglog_format.storage.byte_source import Buffer

SYNC_SECONDS: Final = 0.02
"""Duration of a sync when concurrent syncs are counted."""

Left: TypeAlias = frozenset[tuple[str, bytes]]
"""Files with their bytes, by their paths below the top."""


@dataclass(slots=True, eq=False)
class Node:
    """A file, whatever its name: the synced contents, and the contents that programs read."""

    durable: bytes
    content: bytes


@dataclass(frozen=True, slots=True)
class Naming:
    """A change of names in a directory: one removed, one added, or both at once."""

    gone: Path | None = None
    come: Path | None = None
    node: Node | None = None

    def apply(self, names: dict[Path, Node]) -> None:
        """Apply the change."""
        if self.gone is not None:
            names.pop(self.gone, None)
        if self.come is not None and self.node is not None:
            names[self.come] = self.node


class Disk(LocalFiles):
    """A file layer over a directory of the local file system; recovery may read the files directly.

    Args:
        top: the directory; its present contents count as synced.
        keeps_states: whether to record the possible states after a power cut at every change.

    Attributes:
        failing: operation that fails from now on, ``write`` or ``fsync``; none by default.
        most_syncs: largest number of concurrent syncs.
        states: possible states after a power cut at any moment.
    """

    def __init__(self, top: Path, *, keeps_states: bool = False) -> None:
        self.failing = ""
        self.most_syncs = 0
        self.is_slow = False
        self.states: dict[Left, None] = {}
        self._top = top
        self._keeps_states = keeps_states
        self._names = {path: _node_of(path) for path in sorted(top.rglob("*")) if path.is_file()}
        self._settled = dict(self._names)
        self._pending: list[Naming] = []
        self._syncs = 0
        self._lock = threading.Lock()

    # Changes of files

    def create(self, path: Path, size: int = 0) -> DiskHandle:
        """Create a file, or truncate an existing one."""
        handle = DiskHandle(self, path, super().create(path, size))
        if path not in self._names:
            self._rename(Naming(come=path, node=Node(b"", b"")))
        self.changed(path)
        return handle

    def create_new(self, path: Path, size: int = 0) -> DiskHandle:
        """Create a file under a name that is free."""
        handle = DiskHandle(self, path, super().create_new(path, size))
        self._rename(Naming(come=path, node=Node(b"", b"")))
        self.changed(path)
        return handle

    def open_append(self, path: Path) -> DiskHandle:
        """Open an existing file for appends; what others have put there counts as synced."""
        if path not in self._names:
            self._settled[path] = self._names[path] = _node_of(path)
        return DiskHandle(self, path, super().open_append(path))

    def rename(self, path: Path, target: Path) -> None:
        """Rename a file."""
        super().rename(path, target)
        self._rename(Naming(path, target, self._names[path]))

    def publish(self, path: Path, target: Path) -> None:
        """Give a file a name that is free."""
        super().publish(path, target)
        self._rename(Naming(path, target, self._names[path]))

    def remove(self, path: Path) -> None:
        """Delete a file."""
        super().remove(path)
        self._rename(Naming(gone=path))

    def fsync_directory(self, path: Path) -> None:
        """Record that the names in a directory are synced."""
        for naming in self._pending:
            if _directory(naming) == path:
                naming.apply(self._settled)
        self._pending = [naming for naming in self._pending if _directory(naming) != path]

    def changed(self, path: Path) -> None:
        """Record that the bytes of a file have changed."""
        self._names[path].content = path.read_bytes()
        self._note()

    def synced(self, path: Path) -> None:
        """Record that the bytes of a file are synced."""
        self._names[path].durable = self._names[path].content = path.read_bytes()

    def syncing(self) -> None:
        """Record that a file is being synced, possibly while others are."""
        with self._lock:
            self._syncs += 1
            self.most_syncs = max(self.most_syncs, self._syncs)
        if self.is_slow:
            time.sleep(SYNC_SECONDS)
        with self._lock:
            self._syncs -= 1

    def fail(self, operation: str) -> None:
        """Fail if this operation should fail.

        Raises:
            OSError: the operation should fail.
        """
        if operation == self.failing:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    def _rename(self, naming: Naming) -> None:
        naming.apply(self._names)
        self._pending.append(naming)
        self._note()

    # Power cuts

    def _note(self) -> None:
        if self._keeps_states:
            self.states.update(dict.fromkeys(self.left_now()))

    def left_now(self) -> Iterator[Left]:
        """Yield the possible states after a power cut now."""
        for names in self._possible_names():
            for left in _possible_contents(names):
                yield frozenset((str(path.relative_to(self._top)), data) for path, data in left)

    def _possible_names(self) -> Iterator[dict[Path, Node]]:
        waiting = self._pending
        prefixes = (waiting[:count] for count in range(len(waiting) + 1))
        for kept in (*prefixes, *([one] for one in waiting)):
            names = dict(self._settled)
            for naming in kept:
                naming.apply(names)
            yield names


def _node_of(path: Path) -> Node:
    data = path.read_bytes()
    return Node(data, data)


def _directory(naming: Naming) -> Path:
    path = naming.come or naming.gone
    assert path is not None
    return path.parent


def _possible_contents(names: dict[Path, Node]) -> Iterator[Iterable[tuple[Path, bytes]]]:
    """Yield the files with no unsynced bytes, with all of them, and with those of each single file."""
    unsure = [node for node in names.values() if node.durable != node.content]
    for kept in (set[int](), set(map(id, unsure)), *({id(node)} for node in unsure)):
        yield [(path, node.content if id(node) in kept else node.durable) for path, node in names.items()]


class DiskHandle(LocalHandle):
    """An open file of such a disk, which wraps one of the local file system."""

    def __init__(self, disk: Disk, path: Path, handle: LocalHandle) -> None:
        super().__init__(handle.detach(), path)
        self._disk = disk

    def write_at(self, position: int, data: Buffer) -> None:
        """Write bytes at a position; a failed write stores half of them."""
        if self._disk.failing == "write":
            super().write_at(position, memoryview(data)[: len(data) // 2])
        self._disk.fail("write")
        super().write_at(position, data)
        self._disk.changed(self.path)

    def truncate(self, size: int) -> None:
        """Truncate the file, or extend it."""
        super().truncate(size)
        self._disk.changed(self.path)

    def fsync(self) -> None:
        """Record that the bytes are synced; the real file needs no sync."""
        self._disk.fail("fsync")
        self._disk.syncing()
        self._disk.synced(self.path)

"""A disk in memory that loses power, runs full and fails: a file layer for tests of written data (chapter 71)."""

from __future__ import annotations

import errno
import os
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from proofs.power.disk import (
    Contents,
    DirectoryNode,
    FileNode,
    Naming,
    Resize,
    Write,
    after_power_cut,
    contents_of,
    files_below,
    loaded,
    store_node,
    surviving_changes,
)
from proofs.power.simulated_source import SimulatedSource

if TYPE_CHECKING:
    import random
    from collections.abc import Callable
    from pathlib import Path

    from proofs.power.disk import Node
    from proofs.power.fault import Fault

Buffer: TypeAlias = bytes | bytearray | memoryview


class PowerCut(BaseException):
    """The power is off: `except Exception` does not catch this, and no cleanup runs."""


class SimulatedHandle:
    """An open file of a simulated disk."""

    def __init__(self, files: SimulatedFiles, path: Path, node: FileNode) -> None:
        self._files = files
        self._path = path
        self._node: FileNode | None = node

    @property
    def size(self) -> int:
        """Return the size of the file in bytes."""
        return len(self._open_node().content)

    def write(self, data: Buffer) -> None:
        """Append bytes to the end of the file."""
        self.write_at(self.size, data)

    def write_at(self, position: int, data: Buffer) -> None:
        """Write at a position; a write that fails may have been done in part."""
        self._files.write_node(self._path, self._open_node(), Write(position, bytes(data)))

    def truncate(self, size: int) -> None:
        """Truncate the file, or extend it with zeros."""
        node = self._open_node()
        self._files.step("truncate", self._path, lambda: node.change(Resize(size)))

    def fsync(self) -> None:
        """Sync the file to the disk; a failed sync loses any part of it for good, as on Linux."""
        self._files.sync_node(self._path, self._open_node())

    def close(self) -> None:
        """Close the file."""
        self._node = None

    def _open_node(self) -> FileNode:
        if self._node is None:
            raise OSError(errno.EBADF, "the file is closed")
        return self._node


class SimulatedFiles:
    """A disk in memory.

    Args:
        root: directory that exists from the start; everything is below it.
        dice: random number generator that decides what survives a power cut or a failed sync.

    Attributes:
        step_count: number of operations that changed the disk, or failed to.
        cut_at: number of the operation in which the power fails; None for never.
        faults: faults to inject.
        capacity: limit on the bytes of all files, holes and zeros included; None for no limit.
        read_only: directories whose names cannot change.
        before_sync: callback before a file is synced, in which other threads may act.
        after_step: callback after each operation that changed the disk.
        is_local: whether files can also be read without this object.
    """

    is_local: Final = False

    def __init__(self, root: Path, dice: random.Random) -> None:
        self.root = root
        self.dice = dice
        self.step_count = 0
        self.cut_at: int | None = None
        self.faults: list[Fault] = []
        self.capacity: int | None = None
        self.read_only: set[Path] = set()
        self.before_sync: Callable[[], None] | None = None
        self.after_step: Callable[[], None] | None = None
        self._top = DirectoryNode()

    # Power and failure

    def step(self, operation: str, path: Path, change: Callable[[], None]) -> None:
        """Run an operation, which succeeds or fails; at a power cut it is done, but does not return."""
        if self.cut_at is not None and self.step_count >= self.cut_at:
            raise PowerCut
        self.step_count += 1
        self._fail(operation, path)
        change()
        if self.after_step is not None:
            self.after_step()
        if self.step_count == self.cut_at:
            raise PowerCut

    def _fail(self, operation: str, path: Path) -> None:
        for fault in self.faults:
            if fault.strikes(operation, path):
                raise _error(fault.number, path)

    def write_node(self, path: Path, node: FileNode, write: Write) -> None:
        """Write to an open file: all, or a part if the write fails."""
        fault = next((fault for fault in self.faults if fault.strikes("write", path)), None)
        room = self._room(node, write) if fault is None else fault.keep
        is_short = room < len(write.data) or fault is not None
        done = Write(write.position, write.data[:room])
        self.step("", path, lambda: node.change(done))
        node.modified_ms += 1
        if is_short:
            raise _error(errno.ENOSPC if fault is None else fault.number, path)

    def _room(self, node: FileNode, write: Write) -> int:
        if self.capacity is None:
            return len(write.data)
        free = max(0, self.capacity - sum(len(each.content) for each in files_below(self._top)))
        return min(len(write.data), max(0, len(node.content) - write.position) + free)

    def sync_node(self, path: Path, node: FileNode) -> None:
        """Sync a file to the disk, or lose any part of its pending changes."""
        if self.before_sync is not None:
            self.before_sync()
        try:
            self.step("fsync", path, lambda: None)
        except OSError:
            node.settle(surviving_changes(node.changes, len(node.content), self.dice))
            raise
        node.sync()

    def lose_power(self) -> None:
        """Reduce the disk to a random part of its pending changes; everything that survives counts as synced."""
        self._top = after_power_cut(self._top, self.dice, {})
        self.cut_at = None

    def survivors(self, dice: random.Random) -> Contents:
        """Return what a power cut now would leave; this disk is not changed.

        Args:
            dice: random number generator.
        """
        return dict(contents_of(after_power_cut(self._top, dice, {}), ""))

    def may_survive(self, name: str) -> bool:
        """Return whether a power cut may leave an entry with that name in the root."""
        return name in self._top.durable or any(
            name == added for change in self._top.changes for added, _ in change.added
        )

    # The file layer

    def create(self, path: Path, size: int = 0) -> SimulatedHandle:
        """Create a file, or truncate an existing one."""
        directory = self._directory(path.parent)
        node = directory.content.get(path.name)
        if isinstance(node, DirectoryNode):
            raise _error(errno.EISDIR, path)
        if node is None:
            node = FileNode()
            self._check_writable(path)
            naming = Naming(added=((path.name, node),))
            self.step("create", path, lambda: directory.change(naming))
        elif node.content:
            existing = node
            self.step("create", path, lambda: existing.change(Resize(0)))
        handle = SimulatedHandle(self, path, node)
        if size:
            handle.truncate(size)
        return handle

    def create_new(self, path: Path, size: int = 0) -> SimulatedHandle:
        """Create a file under a name that is free."""
        self._check_free(path)
        return self.create(path, size)

    def open_append(self, path: Path) -> SimulatedHandle:
        """Open an existing file for appends."""
        self._fail("open_append", path)
        return SimulatedHandle(self, path, self._file(path))

    def read(self, path: Path) -> bytes:
        """Return the bytes of a file, as written so far."""
        self._fail("read", path)
        return bytes(self._file(path).content)

    def open(self, path: Path) -> SimulatedSource:
        """Open a file for reading."""
        node = self._file(path)
        return SimulatedSource(str(path), len(node.content), partial(self._read_range, path, node))

    def _read_range(self, path: Path, node: FileNode, start: int, end: int) -> memoryview:
        """Return the bytes of an open file from one position to another, as written so far."""
        self._fail("read", path)
        return memoryview(bytes(node.content[start:end]))

    def size(self, path: Path) -> int:
        """Return the size of a file in bytes."""
        return len(self._file(path).content)

    def rename(self, path: Path, target: Path) -> None:
        """Rename a file; within a directory both names change at once."""
        node, source, goal = self._node(path), self._directory(path.parent), self._directory(target.parent)
        self._check_writable(path)
        self._check_writable(target)
        added = ((target.name, node),)
        if source is goal:
            self.step("rename", path, lambda: source.change(Naming((path.name,), added)))
            return
        self.step("rename", path, lambda: goal.change(Naming(added=added)))
        source.change(Naming((path.name,)))

    def publish(self, path: Path, target: Path) -> None:
        """Give a file a second name, then remove the first, as on file systems without an exclusive rename."""
        self._check_free(target)
        naming, goal = Naming(added=((target.name, self._file(path)),)), self._directory(target.parent)
        self.step("publish", path, lambda: goal.change(naming))
        self._unname("publish", path)

    def _check_free(self, path: Path) -> None:
        self._check_writable(path)
        if self.exists(path):
            raise _error(errno.EEXIST, path)

    def remove(self, path: Path) -> None:
        """Delete a file."""
        self._file(path)
        self._unname("remove", path)

    def remove_directory(self, path: Path) -> None:
        """Delete an empty directory."""
        if self._directory(path).content:
            raise _error(errno.ENOTEMPTY, path)
        self._unname("remove_directory", path)

    def _unname(self, operation: str, path: Path) -> None:
        self._check_writable(path)
        directory = self._directory(path.parent)
        self.step(operation, path, lambda: directory.change(Naming((path.name,))))

    def fsync_directory(self, path: Path) -> None:
        """Sync the names in a directory to the disk, but not the contents of files."""
        directory = self._directory(path)
        self.step("fsync_directory", path, lambda: None)
        directory.sync()

    def names(self, path: Path) -> list[str]:
        """Return the names in a directory, sorted."""
        return sorted(self._directory(path).content)

    def make_directory(self, path: Path) -> None:
        """Create a directory and its parents."""
        if self.exists(path):
            self._directory(path)
            return
        self.make_directory(path.parent)
        self._check_writable(path)
        naming = Naming(added=((path.name, DirectoryNode()),))
        directory = self._directory(path.parent)
        self.step("make_directory", path, lambda: directory.change(naming))

    def exists(self, path: Path) -> bool:
        """Return whether a file or directory with that name exists."""
        try:
            self._node(path)
        except FileNotFoundError:
            return False
        return True

    def modified_ms(self, path: Path) -> int:
        """Return when a file was last modified; the clock counts writes."""
        return self._file(path).modified_ms

    def set_modified_ms(self, path: Path, timestamp_ms: int) -> None:
        """Set when a file was last modified."""
        self._file(path).modified_ms = timestamp_ms

    # Nodes

    def _node(self, path: Path) -> Node:
        node: Node = self._top
        for part in path.relative_to(self.root).parts:
            found = node.content.get(part) if isinstance(node, DirectoryNode) else None
            if found is None:
                raise _error(errno.ENOENT, path)
            node = found
        return node

    def _file(self, path: Path) -> FileNode:
        node = self._node(path)
        if isinstance(node, DirectoryNode):
            raise _error(errno.EISDIR, path)
        return node

    def _directory(self, path: Path) -> DirectoryNode:
        node = self._node(path)
        if isinstance(node, FileNode):
            raise _error(errno.ENOTDIR, path)
        return node

    def _check_writable(self, path: Path) -> None:
        if path.parent in self.read_only:
            raise _error(errno.EACCES, path)

    # From and to real directories

    def store(self, target: Path) -> None:
        """Write everything, as a program would read it now, to a directory of the local file system."""
        store_node(self._top, target)

    def load(self, source: Path) -> None:
        """Load a directory of the local file system; all of it counts as synced."""
        self._top = loaded(source)


def _error(number: int, path: Path) -> OSError:
    return OSError(number, os.strerror(number), str(path))

"""A disk in memory that loses power, runs full and fails: a file layer for tests of what is written (chapter 71).

What was written counts as lost until it was synced; the same holds for names, which the directory keeps. What a power
cut leaves of the rest is drawn from a seeded generator: nothing, all, the operations up to some point with the last
one torn, or any sectors of them in any order, with zeros where a file got its length but not its bytes. Each file and
each directory draws on its own, so that what was written later in one may survive what was written earlier in another.
"""

from __future__ import annotations

import errno
import os
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Final, TypeAlias

from seglog_format.lifecycle.files import LOCAL_FILES

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from seglog_format.lifecycle.files import FileHandle, Files
    from seglog_format.model import Buffer

SECTOR_SIZE: Final = 512
SURVIVALS: Final = ("nothing", "everything", "torn", "torn sectors", "any sectors")


class PowerCut(BaseException):
    """The machine is off: nothing that would clean up gets hold of this."""


@dataclass(frozen=True, slots=True)
class Write:
    """Bytes at a position."""

    position: int
    data: bytes

    def apply(self, content: bytearray) -> None:
        """Do it; zeros fill a gap before the position."""
        content.extend(bytes(max(0, self.position - len(content))))
        content[self.position : self.position + len(self.data)] = self.data

    def sectors(self) -> Iterator[Write]:
        """The same in pieces that a disk writes each as a whole."""
        position, end = self.position, self.position + len(self.data)
        while position < end:
            stop = min(end, position - position % SECTOR_SIZE + SECTOR_SIZE)
            yield Write(position, self.data[position - self.position : stop - self.position])
            position = stop


@dataclass(frozen=True, slots=True)
class Resize:
    """Another length."""

    size: int

    def apply(self, content: bytearray) -> None:
        """Cut, or lengthen by zeros."""
        del content[self.size :]
        content.extend(bytes(self.size - len(content)))


Change: TypeAlias = Write | Resize


@dataclass(slots=True, eq=False)
class FileNode:
    """A file: what a program reads, what is on the disk, and what was changed since."""

    content: bytearray = field(default_factory=bytearray)
    durable: bytearray = field(default_factory=bytearray)
    changes: list[Change] = field(default_factory=list)
    modified_ms: int = 0

    def change(self, change: Change) -> None:
        """Change it, in memory for now."""
        change.apply(self.content)
        self.changes.append(change)

    def sync(self) -> None:
        """Bring to the disk what is known to be missing there."""
        self.settle(self.changes)

    def settle(self, survivors: list[Change]) -> None:
        """Only these of the changes get to the disk; none of the others is tried again."""
        for change in survivors:
            change.apply(self.durable)
        self.changes = []


@dataclass(frozen=True, slots=True)
class Naming:
    """A change of a directory: names that go and names that come, at once."""

    removed: tuple[str, ...] = ()
    added: tuple[tuple[str, Node], ...] = ()

    def apply(self, names: dict[str, Node]) -> None:
        """Do it."""
        for name in self.removed:
            names.pop(name, None)
        names.update(self.added)


@dataclass(slots=True, eq=False)
class DirectoryNode:
    """A directory, in the same three parts as a file."""

    content: dict[str, Node] = field(default_factory=dict)
    durable: dict[str, Node] = field(default_factory=dict)
    changes: list[Naming] = field(default_factory=list)

    def change(self, change: Naming) -> None:
        """Change it, in memory for now."""
        change.apply(self.content)
        self.changes.append(change)

    def sync(self) -> None:
        """Bring the names to the disk."""
        self.settle(self.changes)

    def settle(self, survivors: list[Naming]) -> None:
        """Only these of the changes get to the disk."""
        for change in survivors:
            change.apply(self.durable)
        self.changes = []


Node: TypeAlias = FileNode | DirectoryNode

Contents: TypeAlias = dict[str, bytes | None]
"""Files of a directory by their paths below it; directories have no bytes, and come before what is in them."""


def surviving_changes(changes: list[Change], size: int, dice: random.Random) -> list[Change]:
    """What gets to the disk of changes that nobody synced.

    Args:
        changes: in order.
        size: of the file when all are done.
        dice: decides.
    """
    if not changes:
        return []
    match dice.choice(SURVIVALS):
        case "nothing":
            return []
        case "everything":
            return changes
        case "torn":
            return torn(changes, dice, 1)
        case "torn sectors":
            return torn(changes, dice, SECTOR_SIZE)
        case _:
            return any_sectors(changes, size, dice)


def torn(changes: list[Change], dice: random.Random, unit: int) -> list[Change]:
    """Changes in order up to one of which only the beginning, in units of so many bytes, got there."""
    count = dice.randrange(len(changes))
    last = changes[count]
    if isinstance(last, Resize):
        return changes[:count]
    end = dice.randrange(last.position, last.position + len(last.data) + 1)
    kept = max(0, end - end % unit - last.position)
    return [*changes[:count], Write(last.position, last.data[:kept])]


def any_sectors(changes: list[Change], size: int, dice: random.Random) -> list[Change]:
    """Any of the changes, sector by sector; the file may have its last length without its last bytes."""
    share = dice.random()
    pieces: Iterator[Change] = chain.from_iterable(
        each.sectors() if isinstance(each, Write) else (each,) for each in changes
    )
    kept = [piece for piece in pieces if dice.random() < share]
    return [*kept, Resize(size)] if dice.random() < 0.5 else kept


def surviving_names(changes: list[Naming], dice: random.Random) -> list[Naming]:
    """Which changes of a directory get to the disk: those up to some point, or any of them."""
    if dice.random() < 0.5:
        return changes[: dice.randrange(len(changes) + 1)]
    share = dice.random()
    return [change for change in changes if dice.random() < share]


@dataclass(slots=True)
class Fault:
    """An operation that fails.

    Attributes:
        operation: its name in the file layer; a star for any.
        number: errno.
        ending: of the names of files that it is about.
        after: how many such operations work before.
        times: how many fail then.
        keep: bytes that a write gets done before it fails.
    """

    operation: str
    number: int = errno.EIO
    ending: str = ""
    after: int = 0
    times: int = 1
    keep: int = 0

    def strikes(self, operation: str, path: Path) -> bool:
        """Whether an operation fails; it has to be asked once for each."""
        if not operation or self.operation not in {"*", operation} or not path.name.endswith(self.ending):
            return False
        self.after -= 1
        return -self.times <= self.after < 0


class SimulatedHandle:
    """An open file of a simulated disk."""

    def __init__(self, files: SimulatedFiles, path: Path, node: FileNode) -> None:
        self._files = files
        self._path = path
        self._node: FileNode | None = node

    @property
    def size(self) -> int:
        """Bytes that the file has now."""
        return len(self._open_node().content)

    def write(self, data: Buffer) -> None:
        """Append bytes to the end of the file."""
        self.write_at(self.size, data)

    def write_at(self, position: int, data: Buffer) -> None:
        """Write at a position; a write that fails may have been done in part."""
        self._files.write_node(self._path, self._open_node(), Write(position, bytes(data)))

    def truncate(self, size: int) -> None:
        """Cut the file, or lengthen it by zeros."""
        node = self._open_node()
        self._files.step("truncate", self._path, lambda: node.change(Resize(size)))

    def fsync(self) -> None:
        """Bring the file to the disk; one that fails loses any part of it for good, as Linux does."""
        self._files.sync_node(self._path, self._open_node())

    def close(self) -> None:
        """Let the file go."""
        self._node = None

    def _open_node(self) -> FileNode:
        if self._node is None:
            raise OSError(errno.EBADF, "the file is closed")
        return self._node


class SimulatedFiles:
    """A disk in memory.

    Args:
        root: the directory that is there from the start; everything is below it.
        dice: decides what survives a power cut or a failed sync.

    Attributes:
        step_count: operations that changed something, or were to.
        cut_at: the operation in which the power goes; None for never.
        faults: operations that fail.
        capacity: bytes that files may have in all, holes and zeros included; None for any number.
        read_only: directories whose names do not change.
        before_sync: called before a file is synced, as other threads may do something there.
        after_step: called after each operation that changed something.
        is_local: what is written here cannot be read past this object.
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
        """One operation: it happens or fails; when the power goes it has happened, and nobody learns of it."""
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
        """Write to an open file, all or, where it fails, a part."""
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
        free = max(0, self.capacity - sum(len(each.content) for each in _files_below(self._top)))
        return min(len(write.data), max(0, len(node.content) - write.position) + free)

    def sync_node(self, path: Path, node: FileNode) -> None:
        """Bring a file to the disk, or lose any part of what was not there yet."""
        if self.before_sync is not None:
            self.before_sync()
        try:
            self.step("fsync", path, lambda: None)
        except OSError:
            node.settle(surviving_changes(node.changes, len(node.content), self.dice))
            raise
        node.sync()

    def lose_power(self) -> None:
        """Leave on the disk what chance leaves there, and nothing else; everything that survived is synced."""
        self._top = _after_power_cut(self._top, self.dice, {})
        self.cut_at = None

    def survivors(self, dice: random.Random) -> Contents:
        """What would be left if the power went now; this disk goes on as it was.

        Args:
            dice: decides.
        """
        return dict(_contents(_after_power_cut(self._top, dice, {}), ""))

    # The file layer

    def create(self, path: Path, size: int = 0) -> SimulatedHandle:
        """A new file, or an existing one without its content."""
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

    def open_append(self, path: Path) -> SimulatedHandle:
        """An existing file."""
        self._fail("open_append", path)
        return SimulatedHandle(self, path, self._file(path))

    def read(self, path: Path) -> bytes:
        """The bytes of a file, as written so far."""
        self._fail("read", path)
        return bytes(self._file(path).content)

    def size(self, path: Path) -> int:
        """Bytes that a file has."""
        return len(self._file(path).content)

    def rename(self, path: Path, target: Path) -> None:
        """Give a file another name; within a directory both names change at once."""
        node, source, goal = self._node(path), self._directory(path.parent), self._directory(target.parent)
        self._check_writable(path)
        self._check_writable(target)
        added = ((target.name, node),)
        if source is goal:
            self.step("rename", path, lambda: source.change(Naming((path.name,), added)))
            return
        self.step("rename", path, lambda: goal.change(Naming(added=added)))
        source.change(Naming((path.name,)))

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
        """Bring the names in a directory to the disk; what the files hold is another matter."""
        directory = self._directory(path)
        self.step("fsync_directory", path, lambda: None)
        directory.sync()

    def names(self, path: Path) -> list[str]:
        """What stands in a directory, sorted."""
        return sorted(self._directory(path).content)

    def make_directory(self, path: Path) -> None:
        """A new directory, and those above it."""
        if self.exists(path):
            self._directory(path)
            return
        self.make_directory(path.parent)
        self._check_writable(path)
        naming = Naming(added=((path.name, DirectoryNode()),))
        directory = self._directory(path.parent)
        self.step("make_directory", path, lambda: directory.change(naming))

    def exists(self, path: Path) -> bool:
        """Whether there is a file or directory of that name."""
        try:
            self._node(path)
        except FileNotFoundError:
            return False
        return True

    def modified_ms(self, path: Path) -> int:
        """When a file was last written; the clock here counts writes."""
        return self._file(path).modified_ms

    def set_modified_ms(self, path: Path, timestamp_ms: int) -> None:
        """Say when a file was last written."""
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
        """Write everything, as a program would read it now, into a directory of the local file system."""
        _store(self._top, target)

    def load(self, source: Path) -> None:
        """Take over a directory of the local file system; all of it counts as synced."""
        self._top = _loaded(source)


def _error(number: int, path: Path) -> OSError:
    return OSError(number, os.strerror(number), str(path))


def _files_below(directory: DirectoryNode) -> Iterator[FileNode]:
    for node in directory.content.values():
        if isinstance(node, DirectoryNode):
            yield from _files_below(node)
        else:
            yield node


def _after_power_cut(directory: DirectoryNode, dice: random.Random, known: dict[int, FileNode]) -> DirectoryNode:
    """A copy of what survives; a file that two directories name is one file there, too."""
    names = dict(directory.durable)
    for change in surviving_names(directory.changes, dice):
        change.apply(names)
    kept: dict[str, Node] = {}
    for name, node in names.items():
        if isinstance(node, DirectoryNode):
            kept[name] = _after_power_cut(node, dice, known)
            continue
        if id(node) not in known:
            known[id(node)] = _surviving_file(node, dice)
        kept[name] = known[id(node)]
    return DirectoryNode(kept, dict(kept))


def _surviving_file(node: FileNode, dice: random.Random) -> FileNode:
    durable = bytearray(node.durable)
    for change in surviving_changes(node.changes, len(node.content), dice):
        change.apply(durable)
    return FileNode(bytearray(durable), durable)


def _contents(directory: DirectoryNode, path: str) -> Iterator[tuple[str, bytes | None]]:
    for name, node in sorted(directory.content.items()):
        if isinstance(node, DirectoryNode):
            yield path + name, None
            yield from _contents(node, f"{path}{name}/")
        else:
            yield path + name, bytes(node.content)


def store(contents: Contents, target: Path) -> None:
    """Write files into a new directory of the local file system."""
    target.mkdir()
    for name, data in contents.items():
        if data is None:
            (target / name).mkdir()
        else:
            (target / name).write_bytes(data)


def _store(directory: DirectoryNode, target: Path) -> None:
    target.mkdir(exist_ok=True)
    for name, node in directory.content.items():
        if isinstance(node, DirectoryNode):
            _store(node, target / name)
        else:
            (target / name).write_bytes(node.content)


def _loaded(source: Path) -> DirectoryNode:
    found: dict[str, Node] = {}
    for path in sorted(source.iterdir()):
        if path.is_dir():
            found[path.name] = _loaded(path)
        else:
            data = path.read_bytes()
            found[path.name] = FileNode(bytearray(data), bytearray(data))
    return DirectoryNode(found, dict(found))


class MirroredHandle:
    """A file that is written on the simulated disk, and then on the real one."""

    def __init__(self, simulated: FileHandle, real: FileHandle) -> None:
        self._simulated = simulated
        self._real = real

    @property
    def size(self) -> int:
        """Bytes that the file has now."""
        return self._real.size

    def write(self, data: Buffer) -> None:
        """Append bytes to the end of the file."""
        self.write_at(self.size, data)

    def write_at(self, position: int, data: Buffer) -> None:
        """Write at a position."""
        self._simulated.write_at(position, data)
        self._real.write_at(position, data)

    def truncate(self, size: int) -> None:
        """Cut the file, or lengthen it by zeros."""
        self._simulated.truncate(size)
        self._real.truncate(size)

    def fsync(self) -> None:
        """Sync the simulated file; the real one needs none."""
        self._simulated.fsync()

    def close(self) -> None:
        """Let the files go."""
        self._simulated.close()
        self._real.close()


class MirroredFiles:
    """A simulated disk, and a real directory that shows what programs see of it.

    What reads directories by itself, as recovery does, reads the real one; what a power cut leaves, the simulated disk
    knows. The root of the simulated disk is the real directory.
    """

    is_local: Final = True

    def __init__(self, simulated: SimulatedFiles) -> None:
        self.simulated = simulated
        self._both: tuple[Files, Files] = (simulated, LOCAL_FILES)

    def create(self, path: Path, size: int = 0) -> MirroredHandle:
        """A new file."""
        simulated = self.simulated.create(path, size)
        return MirroredHandle(simulated, LOCAL_FILES.create(path, size))

    def open_append(self, path: Path) -> MirroredHandle:
        """An existing file."""
        simulated = self.simulated.open_append(path)
        return MirroredHandle(simulated, LOCAL_FILES.open_append(path))

    def read(self, path: Path) -> bytes:
        """The bytes of a file."""
        return LOCAL_FILES.read(path)

    def size(self, path: Path) -> int:
        """Bytes that a file has."""
        return LOCAL_FILES.size(path)

    def rename(self, path: Path, target: Path) -> None:
        """Give a file another name."""
        for files in self._both:
            files.rename(path, target)

    def remove(self, path: Path) -> None:
        """Delete a file."""
        for files in self._both:
            files.remove(path)

    def fsync_directory(self, path: Path) -> None:
        """Bring names to the simulated disk."""
        self.simulated.fsync_directory(path)

    def names(self, path: Path) -> list[str]:
        """What stands in a directory."""
        return LOCAL_FILES.names(path)

    def make_directory(self, path: Path) -> None:
        """A new directory."""
        for files in self._both:
            files.make_directory(path)

    def remove_directory(self, path: Path) -> None:
        """Delete an empty directory."""
        for files in self._both:
            files.remove_directory(path)

    def exists(self, path: Path) -> bool:
        """Whether there is a file or directory of that name."""
        return LOCAL_FILES.exists(path)

    def modified_ms(self, path: Path) -> int:
        """When a file was last written."""
        return LOCAL_FILES.modified_ms(path)

    def set_modified_ms(self, path: Path, timestamp_ms: int) -> None:
        """Say when a file was last written."""
        for files in self._both:
            files.set_modified_ms(path, timestamp_ms)

"""The contents of a disk, and what a power cut leaves of them: files, directories, and changes that were not synced.

Written bytes count as lost until they are synced; the same holds for names, which the directory keeps. What a power cut
leaves of the rest is drawn from a seeded generator: nothing, all, the operations up to some point with the last one
torn, or any sectors of them in any order, with zeros where a file got its length but not its bytes. Each file and each
directory draws separately: a later write to one may survive where an earlier write to another is lost.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator
    from pathlib import Path

SECTOR_SIZE: Final = 512
EVEN: Final = 0.5
SURVIVALS: Final = ("nothing", "everything", "torn", "torn sectors", "any sectors")


@dataclass(frozen=True, slots=True)
class Write:
    """Bytes at a position."""

    position: int
    data: bytes

    def apply(self, content: bytearray) -> None:
        """Apply the write; zeros fill a gap before the position."""
        content.extend(bytes(max(0, self.position - len(content))))
        content[self.position : self.position + len(self.data)] = self.data

    def sectors(self) -> Iterator[Write]:
        """Yield the same write in sectors, which a disk writes atomically."""
        position, end = self.position, self.position + len(self.data)
        while position < end:
            stop = min(end, position - position % SECTOR_SIZE + SECTOR_SIZE)
            yield Write(position, self.data[position - self.position : stop - self.position])
            position = stop


@dataclass(frozen=True, slots=True)
class Resize:
    """A new length of a file."""

    size: int

    def apply(self, content: bytearray) -> None:
        """Truncate the content, or extend it with zeros."""
        del content[self.size :]
        content.extend(bytes(self.size - len(content)))


Change: TypeAlias = Write | Resize


@dataclass(slots=True, eq=False)
class FileNode:
    """A file: the content that programs read, the content on the disk, and the changes since the last sync."""

    content: bytearray = field(default_factory=bytearray)
    durable: bytearray = field(default_factory=bytearray)
    changes: list[Change] = field(default_factory=list)
    modified_ms: int = 0

    def change(self, change: Change) -> None:
        """Apply a change in memory."""
        change.apply(self.content)
        self.changes.append(change)

    def sync(self) -> None:
        """Write all pending changes to the disk."""
        self.settle(self.changes)

    def settle(self, survivors: list[Change]) -> None:
        """Write only these of the pending changes to the disk, and drop the others for good."""
        for change in survivors:
            change.apply(self.durable)
        self.changes = []


@dataclass(frozen=True, slots=True)
class Naming:
    """A change of a directory: names that it removes and adds at once."""

    removed: tuple[str, ...] = ()
    added: tuple[tuple[str, Node], ...] = ()

    def apply(self, names: dict[str, Node]) -> None:
        """Apply the change."""
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
        """Apply a change in memory."""
        change.apply(self.content)
        self.changes.append(change)

    def sync(self) -> None:
        """Write all pending names to the disk."""
        self.settle(self.changes)

    def settle(self, survivors: list[Naming]) -> None:
        """Write only these of the pending changes to the disk."""
        for change in survivors:
            change.apply(self.durable)
        self.changes = []


Node: TypeAlias = FileNode | DirectoryNode

Contents: TypeAlias = dict[str, bytes | None]
"""Files of a directory by their relative paths; directories have no bytes, and precede their contents."""


def surviving_changes(changes: list[Change], size: int, dice: random.Random) -> list[Change]:
    """Return the changes that reach the disk without a sync.

    Args:
        changes: changes in order.
        size: size of the file after all changes.
        dice: random number generator.
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
    """Return the changes up to some point, the last one torn at a multiple of so many bytes."""
    count = dice.randrange(len(changes))
    last = changes[count]
    if isinstance(last, Resize):
        return changes[:count]
    end = dice.randrange(last.position, last.position + len(last.data) + 1)
    kept = max(0, end - end % unit - last.position)
    return [*changes[:count], Write(last.position, last.data[:kept])]


def any_sectors(changes: list[Change], size: int, dice: random.Random) -> list[Change]:
    """Return any of the changes, sector by sector; the file may have its last length without its last bytes."""
    share = dice.random()
    pieces: Iterator[Change] = chain.from_iterable(
        each.sectors() if isinstance(each, Write) else (each,) for each in changes
    )
    kept = [piece for piece in pieces if dice.random() < share]
    return [*kept, Resize(size)] if dice.random() < EVEN else kept


def surviving_names(changes: list[Naming], dice: random.Random) -> list[Naming]:
    """Return the changes of a directory that reach the disk: those up to some point, or any of them."""
    if dice.random() < EVEN:
        return changes[: dice.randrange(len(changes) + 1)]
    share = dice.random()
    return [change for change in changes if dice.random() < share]


def files_below(directory: DirectoryNode) -> Iterator[FileNode]:
    """Yield all files below a directory."""
    for node in directory.content.values():
        if isinstance(node, DirectoryNode):
            yield from files_below(node)
        else:
            yield node


def after_power_cut(directory: DirectoryNode, dice: random.Random, known: dict[int, FileNode]) -> DirectoryNode:
    """Return a copy of what survives; a file that has two names stays one file in the copy."""
    names = dict(directory.durable)
    for change in surviving_names(directory.changes, dice):
        change.apply(names)
    kept: dict[str, Node] = {}
    for name, node in names.items():
        if isinstance(node, DirectoryNode):
            kept[name] = after_power_cut(node, dice, known)
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


def contents_of(directory: DirectoryNode, path: str) -> Iterator[tuple[str, bytes | None]]:
    """Yield everything below a directory as programs see it, with a prefix for each name."""
    for name, node in sorted(directory.content.items()):
        if isinstance(node, DirectoryNode):
            yield path + name, None
            yield from contents_of(node, f"{path}{name}/")
        else:
            yield path + name, bytes(node.content)


def store(contents: Contents, target: Path) -> None:
    """Write files to a new directory of the local file system."""
    target.mkdir()
    for name, data in contents.items():
        if data is None:
            (target / name).mkdir()
        else:
            (target / name).write_bytes(data)


def store_node(directory: DirectoryNode, target: Path) -> None:
    """Write a directory, as programs see it, to the local file system."""
    target.mkdir(exist_ok=True)
    for name, node in directory.content.items():
        if isinstance(node, DirectoryNode):
            store_node(node, target / name)
        else:
            (target / name).write_bytes(node.content)


def loaded(source: Path) -> DirectoryNode:
    """Load a directory of the local file system; all of it counts as synced."""
    found: dict[str, Node] = {}
    for path in sorted(source.iterdir()):
        if path.is_dir():
            found[path.name] = loaded(path)
        else:
            data = path.read_bytes()
            found[path.name] = FileNode(bytearray(data), bytearray(data))
    return DirectoryNode(found, dict(found))

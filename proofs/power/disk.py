"""What a disk has and what a power cut leaves of it: files, directories, and changes that were not synced.

What was written counts as lost until it was synced; the same holds for names, which the directory keeps. What a power
cut leaves of the rest is drawn from a seeded generator: nothing, all, the operations up to some point with the last
one torn, or any sectors of them in any order, with zeros where a file got its length but not its bytes. Each file and
each directory draws on its own, so that what was written later in one may survive what was written earlier in another.
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
        """Do it; zeros fill a gap before the position."""
        content.extend(bytes(max(0, self.position - len(content))))
        content[self.position : self.position + len(self.data)] = self.data

    def sectors(self) -> Iterator[Write]:
        """Yield the same in pieces that a disk writes each as a whole."""
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
    """Return what gets to the disk of changes that nobody synced.

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
    """Return changes in order up to one of which only the beginning, in units of so many bytes, got there."""
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
    return [*kept, Resize(size)] if dice.random() < EVEN else kept


def surviving_names(changes: list[Naming], dice: random.Random) -> list[Naming]:
    """Which changes of a directory get to the disk: those up to some point, or any of them."""
    if dice.random() < EVEN:
        return changes[: dice.randrange(len(changes) + 1)]
    share = dice.random()
    return [change for change in changes if dice.random() < share]


def files_below(directory: DirectoryNode) -> Iterator[FileNode]:
    """All files below a directory."""
    for node in directory.content.values():
        if isinstance(node, DirectoryNode):
            yield from files_below(node)
        else:
            yield node


def after_power_cut(directory: DirectoryNode, dice: random.Random, known: dict[int, FileNode]) -> DirectoryNode:
    """Return a copy of what survives; a file that two directories name is one file there, too."""
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
    """Everything below a directory as programs see it, with a path put before each name."""
    for name, node in sorted(directory.content.items()):
        if isinstance(node, DirectoryNode):
            yield path + name, None
            yield from contents_of(node, f"{path}{name}/")
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


def store_node(directory: DirectoryNode, target: Path) -> None:
    """Write a directory, as programs see it, into one of the local file system."""
    target.mkdir(exist_ok=True)
    for name, node in directory.content.items():
        if isinstance(node, DirectoryNode):
            store_node(node, target / name)
        else:
            (target / name).write_bytes(node.content)


def loaded(source: Path) -> DirectoryNode:
    """Return a directory of the local file system; all of it counts as synced."""
    found: dict[str, Node] = {}
    for path in sorted(source.iterdir()):
        if path.is_dir():
            found[path.name] = loaded(path)
        else:
            data = path.read_bytes()
            found[path.name] = FileNode(bytearray(data), bytearray(data))
    return DirectoryNode(found, dict(found))

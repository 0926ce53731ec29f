"""What a power cut may lose, by profile: the least that POSIX promises, and what ext4 (by default) and xfs promise.

A state after a power cut is named by its *changes*: the numbers of operations in which it differs from the state of a
process that was killed at the same moment. Of an operation before the cut, the change is that it is lost; of a mapped
page that the kernel wrote later, that it was on the disk already.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeAlias

from seglog_conformance.crash.history import PAGE, Marker, Naming, Resize, Sync, Write

if TYPE_CHECKING:
    from collections.abc import Callable

    from seglog_conformance.crash.history import History

Changes: TypeAlias = frozenset[int]


@dataclass(frozen=True)
class Cut:
    """A moment at which the power fails.

    Attributes:
        history: the operations.
        number: how many of them had been called.
    """

    history: History
    number: int

    @cached_property
    def pending(self) -> tuple[int, ...]:
        """Operations before the cut that no later sync covers.

        Data and lengths are covered by a sync of the file, names by a sync of each directory that holds one ("Calling
        fsync() does not necessarily ensure that the entry in the directory containing the file has also reached disk",
        fsync(2)). An fdatasync need not cover a length that is not needed to read the data back (fdatasync(2)): one
        that became shorter.
        """
        operations = self.history.operations
        synced: set[int] = set()
        data_synced: set[int] = set()
        found = []
        for number in range(self.number - 1, -1, -1):
            match operations[number]:
                case Sync(node=node, data_only=data_only):
                    data_synced.add(node)
                    if not data_only:
                        synced.add(node)
                case Naming() as naming if not naming.directories <= synced:
                    found.append(number)
                case Resize(node=node, shrinks=True) if node not in synced:
                    found.append(number)
                case Write(node=node) | Resize(node=node, shrinks=False) if node not in data_synced:
                    found.append(number)
                case _:
                    pass
        return tuple(reversed(found))

    @cached_property
    def early(self) -> tuple[int, ...]:
        """Mapped pages that the kernel wrote after the cut, and that the process may have changed before it.

        The recorder asks the kernel for all changed pages before each marker, so a page was changed after the last
        marker before its write.
        """
        found = []
        for number in range(self.number, len(self.history)):
            operation = self.history.operations[number]
            if isinstance(operation, Marker):
                break
            if isinstance(operation, Write) and operation.is_mapped:
                found.append(number)
        return tuple(found)

    @cached_property
    def journaled(self) -> int:
        """Number of the operation before which all names and truncations are on the disk, on ext4.

        A sync of a file or directory commits the transaction that changed it last, with all before it (fs/ext4/fsync.c:
        ext4_fsync_journal, i_sync_tid). A sync of an inode without a new name or length commits nothing.
        """
        dirty: set[int] = set()
        durable = 0
        for number, operation in enumerate(self.history.operations[: self.number]):
            match operation:
                case Sync(node=node) if node in dirty:
                    durable = number
                    dirty.clear()
                case Naming() as naming:
                    dirty |= naming.directories | naming.named
                case Resize(node=node):
                    dirty.add(node)
                case _:
                    pass
        return durable

    @cached_property
    def candidates(self) -> tuple[int, ...]:
        """All operations that may be a change."""
        return self.pending + self.early

    def done(self, changes: Changes) -> list[int]:
        """Return the operations that are on the disk, in order."""
        before = [number for number in range(self.number) if number not in changes]
        return before + [number for number in self.early if number in changes]


def posix(_cut: Cut, changes: Changes) -> Changes:
    """Return the changes: whatever no sync covers is there or not, piece by piece, in any order."""
    return changes


def ext4_ordered(cut: Cut, changes: Changes) -> Changes:
    """Return the nearest legal changes on ext4 as it is mounted by default: data=ordered, delayed allocation.

    It has one journal for the whole file system, and each promise below is one of its documentation (ext4(5);
    Documentation/admin-guide/ext4.rst and Documentation/filesystems/ext4/journal.rst of Linux) or of its source, as far
    as the proof ``crash-disks`` found it kept. It found that data=ordered does not make bytes come before the length of
    a write: zeros may stand in their place, also after a rename that replaces a file.
    """
    lost, kept = _in_order(cut, changes)
    for number in kept:
        match cut.history.operations[number]:
            # If the rename replaces a file, blocks of the new file are allocated before it (ext4.rst, auto_da_alloc):
            # the file is not empty afterwards.
            case Naming(replaces=True) as naming:
                lost -= _changes_of(cut, number, Resize, naming.named)
            # A truncation inside a block writes zeros after the new end, and puts this block among the data that the
            # transaction waits for (fs/ext4/inode.c: ext4_block_truncate_page, ext4_jbd2_inode_add_write). A commit
            # allocates nothing: crash-disks finds zeros in a block that no sync had covered, and never the old bytes of
            # one that a sync had.
            case Resize(node=node, size=size, by_write=False) if size % PAGE and _is_allocated(
                cut, number, node, size // PAGE
            ):
                lost -= _changes_of(cut, number, Write, frozenset({node}), size // PAGE)
            case _:
                pass
    return frozenset(lost)


def xfs(cut: Cut, changes: Changes) -> Changes:
    """Return the nearest legal changes on xfs: one log, delayed allocation, and no promise for a rename that replaces.

    A length that a write gave is logged when its bytes are on the disk (fs/xfs/xfs_aops.c: xfs_setfilesize): it never
    comes back without them, and they bring it with them.
    """
    lost, _ = _in_order(cut, changes)
    return frozenset(lost.union(number for number in cut.pending if _is_length(cut, number)))


def _in_order(cut: Cut, changes: Changes) -> tuple[set[int], list[int]]:
    """Return the nearest legal changes with one journal, and its names and truncations before the first that is lost.

    Transactions are committed in their order (journal.rst; xfs-delayed-logging-design.rst): what is lost is the end.
    """
    durable = cut.journaled
    names = [number for number in cut.pending if number >= durable and _is_journaled(cut, number)]
    lost = {number for number in changes if not _is_journaled(cut, number)}
    first = min((number for number in names if number in changes), default=cut.number)
    lost.update(number for number in names if number >= first)
    return lost, [number for number in range(first) if _is_journaled(cut, number)]


def _changes_of(
    cut: Cut, before: int, kind: type[Write | Resize], nodes: frozenset[int], block: int | None = None
) -> set[int]:
    """Return the writes or lengths of some files before an operation, of all blocks or of one."""
    found = set()
    for number, operation in enumerate(cut.history.operations[:before]):
        if not isinstance(operation, kind) or operation.node not in nodes:
            continue
        if block is None or (isinstance(operation, Write) and block == operation.position // PAGE):
            found.add(number)
    return found


def _is_allocated(cut: Cut, before: int, node: int, block: int) -> bool:
    """Return whether a sync had covered a write of a block of a file, which no truncation has freed since."""
    is_written = is_allocated = False
    for operation in cut.history.operations[:before]:
        match operation:
            case Write(position=position) if operation.node == node and position // PAGE == block:
                is_written = True
            case Sync() if operation.node == node:
                is_allocated |= is_written
            case Resize(size=size) if operation.node == node and size <= block * PAGE:
                is_written = is_allocated = False
            case _:
                pass
    return is_allocated


def _is_journaled(cut: Cut, number: int) -> bool:
    operation = cut.history.operations[number]
    return isinstance(operation, Naming) or (isinstance(operation, Resize) and not operation.by_write)


def _is_length(cut: Cut, number: int) -> bool:
    operation = cut.history.operations[number]
    return isinstance(operation, Resize) and operation.by_write


PROFILES: Final[dict[str, Callable[[Cut, Changes], Changes]]] = {
    "posix": posix,
    "xfs": xfs,
    "ext4-ordered": ext4_ordered,
}
"""Functions that make changes legal, by profile; the order is from what promises least."""

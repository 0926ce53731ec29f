"""The disk states that a power cut may leave: which, their contents, and their directories."""

from __future__ import annotations

import hashlib
import itertools
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

from seglog_conformance.crash.history import ROOT, Naming, Resize, Write
from seglog_conformance.crash.profiles import PROFILES, Changes, Cut

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from seglog_conformance.crash.history import History

NEAR: Final = 6
"""Pairs of changes are tried among candidates that are at most so far apart."""

Tree: TypeAlias = dict[str, tuple[int, ...] | None]
"""The operations of each file by its path, in order; None for a directory, which precedes its contents."""


@dataclass(frozen=True, slots=True)
class State:
    """A state of the disk.

    Attributes:
        cut: the moment of the power cut.
        changes: what was lost, or was there early.
        tree: files and directories.
        digest: a digest of all names and bytes.
    """

    cut: Cut
    changes: Changes
    tree: Tree
    digest: str


class Disk:
    """Makes states of one history.

    Args:
        history: the operations.
        profile: name of a profile.
    """

    def __init__(self, history: History, profile: str) -> None:
        self._history = history
        self._legal = PROFILES[profile]
        self._contents: dict[tuple[int, ...], tuple[bytes, str]] = {}

    def cut(self, number: int) -> Cut:
        """Return the moment at which so many operations had been called."""
        return Cut(self._history, number)

    def state(self, cut: Cut, changes: Changes = frozenset()) -> State:
        """Return the state with the nearest legal changes."""
        return self._state(cut, self._legal(cut, changes))

    def _state(self, cut: Cut, changes: Changes) -> State:
        tree = self._tree(cut.done(changes))
        total = hashlib.sha256()
        for path, operations in sorted(tree.items()):
            total.update(f"{path}\0{'' if operations is None else self.content(operations)[1]}\0".encode())
        return State(cut, changes, tree, total.hexdigest())

    def states(self, cut: Cut, most: int, dice: random.Random) -> Iterator[State]:
        """Yield the states of a cut, each content once, the state without changes first.

        Args:
            cut: the moment.
            most: so many sets of changes are all tried; of more, so many contents.
            dice: chooses among the sets.
        """
        seen, tried = set[str](), set[Changes]()
        is_exhaustive = 1 << len(cut.candidates) <= most
        for wanted in _all_sets(cut) if is_exhaustive else _chosen_sets(cut, dice, most):
            if (changes := self._legal(cut, wanted)) in tried:
                continue
            tried.add(changes)
            state = self._state(cut, changes)
            if state.digest not in seen:
                seen.add(state.digest)
                yield state
            if len(seen) >= most:
                return

    def shrunk(self, state: State, still_fails: Callable[[State], bool]) -> State:
        """Return a state of the same cut that still fails, of which no single change can be left out.

        Halves are left out first, then smaller parts.
        """
        size = len(state.changes)
        while size := (size + 1) // 2 if size > 1 else 0:
            is_smaller = True
            while is_smaller:
                is_smaller = False
                numbers = sorted(state.changes)
                for part in (numbers[at : at + size] for at in range(0, len(numbers), size)):
                    other = self.state(state.cut, state.changes.difference(part))
                    if len(other.changes) < len(state.changes) and still_fails(other):
                        state, is_smaller = other, True
                        break
        return state

    def content(self, operations: tuple[int, ...]) -> tuple[bytes, str]:
        """Return the bytes of a file after some operations, and their digest."""
        known = self._contents.get(operations)
        if known is None:
            content = bytearray()
            for number in operations:
                match self._history.operations[number]:
                    case Write(position=position, data=data):
                        content.extend(bytes(max(0, position - len(content))))
                        content[position : position + len(data)] = data
                    case Resize(size=size, by_write=by_write):
                        if not by_write:
                            del content[size:]
                        content.extend(bytes(max(0, size - len(content))))
                    case _:
                        pass
            known = bytes(content), hashlib.sha256(content).hexdigest()
            self._contents[operations] = known
        return known

    def _tree(self, done: list[int]) -> Tree:
        names: dict[int, dict[str, int]] = {ROOT: {}}
        files: dict[int, list[int]] = {}
        for number in done:
            match self._history.operations[number]:
                case Naming(changes=changes, directory=made):
                    for directory, name, node in changes:
                        if node is None:
                            names.setdefault(directory, {}).pop(name, None)
                        else:
                            names.setdefault(directory, {})[name] = node
                    if made is not None:
                        names.setdefault(made, {})
                case Write(node=node) | Resize(node=node):
                    files.setdefault(node, []).append(number)
                case _:
                    pass
        return dict(_walk("", ROOT, names, files))

    def write(self, state: State, root: Path) -> None:
        """Write a state into an empty directory, with the times of the last change of each file."""
        for path, operations in state.tree.items():
            target = root / path
            if operations is None:
                target.mkdir()
                continue
            target.write_bytes(self.content(operations)[0])
            if operations and self._history.times_ns:
                time_ns = self._history.times_ns[operations[-1]]
                os.utime(target, ns=(time_ns, time_ns))


def _walk(
    above: str, directory: int, names: dict[int, dict[str, int]], files: dict[int, list[int]]
) -> Iterator[tuple[str, tuple[int, ...] | None]]:
    for name, node in sorted(names[directory].items()):
        path = f"{above}{name}"
        if node in names:
            yield path, None
            yield from _walk(f"{path}/", node, names, files)
        else:
            yield path, tuple(files.get(node, ()))


def _all_sets(cut: Cut) -> Iterator[Changes]:
    for count in range(len(cut.candidates) + 1):
        yield from map(frozenset, itertools.combinations(cut.candidates, count))


def _chosen_sets(cut: Cut, dice: random.Random, most: int) -> Iterator[Changes]:
    """Yield sets of changes: none, all, each alone, all but each, ends, those of a file, near pairs, and any."""
    every, operations = cut.candidates, cut.history.operations
    whole = frozenset(every)
    yield frozenset()
    yield whole
    by_node: dict[object, set[int]] = {}
    for number in every:
        operation = operations[number]
        by_node.setdefault(getattr(operation, "node", getattr(operation, "directories", None)), set()).add(number)
    chosen: list[Changes] = [frozenset(changes) for changes in by_node.values()]
    chosen += [whole - changes for changes in by_node.values()]
    chosen += [frozenset({number}) for number in every]
    chosen += [whole - {number} for number in every]
    chosen += [frozenset(every[at:]) for at in range(1, len(every))]
    chosen += [frozenset(pair) for at in range(len(every)) for pair in itertools.combinations(every[at : at + NEAR], 2)]
    dice.shuffle(chosen)
    yield from chosen
    for _ in range(most * 4):
        share = dice.random()
        yield frozenset(number for number in every if dice.random() < share)

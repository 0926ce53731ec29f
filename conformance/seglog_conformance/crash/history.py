"""The recorded operations on a file system, in order, as the model of a power cut takes them.

A file or directory is known by its number (node); 0 is the root. A write is taken apart into pieces, since a power cut
may keep some of them and lose others, and the length that each gives to its file is an operation of its own.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from seglog_conformance.protocol import Json

ROOT: Final = 0
SECTOR: Final = 512
PAGE: Final = 4096


@dataclass(frozen=True, slots=True)
class Write:
    """Bytes at a position of a file: a piece, which a power cut keeps or loses as a whole.

    Attributes:
        is_mapped: whether the kernel wrote a page of mapped memory; the process changed it at some time before.
    """

    node: int
    position: int
    data: bytes
    is_mapped: bool = False


@dataclass(frozen=True, slots=True)
class Resize:
    """A new length of a file in bytes.

    Attributes:
        by_write: whether it is the length that a write gave, not a truncation or an allocation.
        shrinks: whether the file was longer.
    """

    node: int
    size: int
    by_write: bool = False
    shrinks: bool = False


@dataclass(frozen=True, slots=True)
class Naming:
    """Names that change together: create, mkdir, link, unlink, rmdir and rename.

    Attributes:
        changes: directory, name, and the node that it now names; None where the name goes.
        replaces: whether a rename took the name of another file.
        directory: the directory that it makes, of which this is the first name; None for others.
    """

    changes: tuple[tuple[int, str, int | None], ...]
    replaces: bool = False
    directory: int | None = None

    @property
    def directories(self) -> frozenset[int]:
        """Return the directories whose names change."""
        return frozenset(directory for directory, _, _ in self.changes)

    @property
    def named(self) -> frozenset[int]:
        """Return the nodes that get a name."""
        return frozenset(node for _, _, node in self.changes if node is not None)


@dataclass(frozen=True, slots=True)
class Sync:
    """An fsync of a file or directory; with `data_only` an fdatasync, or a force of mapped memory."""

    node: int
    data_only: bool = False


@dataclass(frozen=True, slots=True)
class Marker:
    """What the judge noted at this moment: a step begins, or the implementation has answered it."""

    event: Json


Operation: TypeAlias = Write | Resize | Naming | Sync | Marker


@dataclass(frozen=True)
class History:
    """Operations in order.

    Attributes:
        operations: the operations.
        texts: a description of each.
        times_ns: when each was called, in nanoseconds since 1970.
    """

    operations: Sequence[Operation]
    texts: Sequence[str] = ()
    times_ns: Sequence[int] = ()

    def __len__(self) -> int:
        return len(self.operations)

    def text(self, number: int) -> str:
        """Return the description of an operation."""
        return f"{number} {self.texts[number] if self.texts else self.operations[number]}"

    @cached_property
    def markers(self) -> list[tuple[int, Json]]:
        """The markers, each with its number among the operations."""
        return [(number, each.event) for number, each in enumerate(self.operations) if isinstance(each, Marker)]


def read_history(lines: Iterable[str], piece: int = PAGE) -> History:
    """Read what the recorder wrote, a JSON object to a line.

    Args:
        lines: the lines.
        piece: size in bytes of what a disk writes as a whole; writes are cut at its multiples.
    """
    operations: list[Operation] = []
    texts: list[str] = []
    times_ns: list[int] = []
    sizes: dict[int, int] = {}
    for line in lines:
        stored = json.loads(line)
        for operation in _operations(stored, piece, sizes):
            operations.append(operation)
            texts.append(_text(stored, operation))
            times_ns.append(stored["time"])
    return History(operations, texts, times_ns)


def _operations(stored: Json, piece: int, sizes: dict[int, int]) -> list[Operation]:
    match stored["op"]:
        case "marker":
            return [Marker(stored["event"])]
        case "sync":
            return [Sync(stored["node"], stored["dataOnly"])]
        case "resize":
            node, size = stored["node"], stored["size"]
            before, sizes[node] = sizes.get(node, 0), size
            return [Resize(node, size, shrinks=size < before)]
        case "write":
            node, position, data = stored["node"], stored["position"], bytes.fromhex(stored["data"])
            found: list[Operation] = []
            for each in _pieces(Write(node, position, data, stored["isMapped"]), piece):
                if (end := each.position + len(each.data)) > sizes.get(node, 0):
                    found.append(Resize(node, end, by_write=True))
                    sizes[node] = end
                found.append(each)
            return found
        case _:
            changes = tuple((directory, name, node) for directory, name, node in stored["changes"])
            made = stored["node"] if stored["op"] == "mkdir" else None
            return [Naming(changes, replaces=stored.get("replaces", False), directory=made)]


def _pieces(write: Write, size: int) -> list[Write]:
    found, start, end = [], write.position, write.position + len(write.data)
    while start < end:
        stop = min(end, start - start % size + size)
        data = write.data[start - write.position : stop - write.position]
        found.append(Write(write.node, start, data, write.is_mapped))
        start = stop
    return found


def _text(stored: Json, operation: Operation) -> str:
    path = stored.get("path", "")
    match operation:
        case Marker(event=event):
            return f"-- {json.dumps(event)}"
        case Sync(data_only=data_only):
            return f"{'fdatasync' if data_only else 'fsync'} {path}"
        case Resize(size=size, by_write=by_write):
            return f"{'length by write' if by_write else 'truncate'} {path} to {size}"
        case Write(position=position, data=data, is_mapped=is_mapped):
            return f"{'write of a mapped page' if is_mapped else 'write'} {path} at {position}, {len(data)} bytes"
        case _:
            return f"{stored['op']} {path}" + (f" to {stored['to']}" if "to" in stored else "")

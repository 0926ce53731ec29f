"""Fields with their positions, as a flat list in stored order whose depths form a tree."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from seglog_format.schema.tracing import Span

NAME_PART: Final = re.compile(r"\[\d+\]|[^.\[]+")


@dataclass(slots=True)
class Field:
    """One field, or a group of fields.

    Attributes:
        name: within its group, such as ``magic`` or ``[3]``.
        start: position of its first byte in the block.
        end: position after its last byte; ``start`` for an empty field.
        depth: nesting level; 0 for the outermost.
        value: a number, bytes, None for null; an empty string for a group.
        note: short meaning of the value; may be empty.
        doc: the schema's documentation; may be empty.
        requirements: ids of requirements.
        is_group: whether it contains the deeper fields that follow.
        failed: whether reading stopped here, or the value is wrong.
    """

    name: str
    start: int
    end: int
    depth: int = 0
    value: object = ""
    note: str = ""
    doc: str = ""
    requirements: tuple[str, ...] = ()
    is_group: bool = False
    failed: bool = False


@dataclass(slots=True)
class Block:
    """A range of bytes and its fields.

    Attributes:
        title: heading.
        data: the bytes.
        position: of the first byte in the file; 0 for decompressed bytes.
        fields: in stored order.
        problems: reasons why reading stopped, and errors, as sentences with requirement ids.
        is_derived: whether the bytes were decompressed, so they are not in the file.
    """

    title: str
    data: memoryview
    position: int = 0
    fields: list[Field] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    is_derived: bool = False


@dataclass(slots=True)
class Inspection:
    """The blocks to show, and a remark about bytes that are not shown.

    Attributes:
        title: name of the file.
        blocks: the selected bytes, each block followed by its decompressed content.
        remark: the number of bytes not shown, or the way in which the bytes were found; may be empty.
    """

    title: str
    blocks: list[Block]
    remark: str = ""

    @property
    def problems(self) -> list[str]:
        """Problems of all blocks."""
        return [problem for block in self.blocks for problem in block.problems]


def fields_of(
    spans: Iterable[Span], *, shift: int, depth: int, note: Callable[[str, object], str] | None = None
) -> list[Field]:
    """Convert the spans of a traced parse to fields; elements of arrays become groups.

    Args:
        spans: in stored order.
        shift: position in the block at which the traced structure starts.
        depth: of the structure's own fields.
        note: returns the meaning of a value, given the field's dotted name and its value.
    """
    tree = _Tree(shift, depth)
    for span in spans:
        if isinstance(span.value, list) and not span.value:
            continue  # an array without elements has no bytes
        parts = NAME_PART.findall(span.name)
        tree.open_groups(parts, span)
        tree.fields.append(
            Field(
                name=parts[-1],
                start=shift + span.start,
                end=shift + span.end,
                depth=depth + len(parts) - 1,
                value="" if isinstance(span.value, list) else span.value,
                note=note(span.name, span.value) if note and not span.failed else "",
                doc=str(span.doc),
                requirements=span.doc.requirements,
                failed=span.failed,
            )
        )
    mark_groups(tree.fields)
    return tree.fields


def mark_groups(fields: list[Field]) -> None:
    """Set `is_group` of each field that is followed by a deeper one."""
    for one, following in pairwise(fields):
        if following.depth > one.depth:
            one.is_group = True
            one.value = ""


class _Tree:
    """Collects fields, and the groups that array elements form."""

    def __init__(self, shift: int, depth: int) -> None:
        self.shift = shift
        self.depth = depth
        self.fields: list[Field] = []
        self.groups: dict[tuple[str, ...], Field] = {}

    def open_groups(self, parts: list[str], span: Span) -> None:
        """Add a group for every array element around the field, and extend it over the field."""
        for level in range(1, len(parts)):
            path = tuple(parts[:level])
            if not path[-1].startswith("["):
                continue
            if path not in self.groups:
                start = self.shift + span.start
                self.groups[path] = Field(path[-1], start, start, self.depth + level - 1, is_group=True)
                self.fields.append(self.groups[path])
            group = self.groups[path]
            group.end = max(group.end, self.shift + span.end)
            group.failed = group.failed or span.failed

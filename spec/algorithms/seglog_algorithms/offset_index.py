"""Offset index (chapter 40)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from seglog_format.schema.offset_index import OffsetIndexEntry


class OffsetPosition(NamedTuple):
    """An entry of an offset index, with its absolute offset."""

    offset: int
    position: int


class Slots(Sequence[Any]):
    """The whole slots of an index, zeros included."""

    def __init__(self, declaration: Any, index: bytes) -> None:  # noqa: ANN401 - construct is untyped
        self.declaration, self.data, self.size = declaration, index, int(declaration.sizeof())

    def __len__(self) -> int:
        return len(self.data) // self.size

    def __getitem__(self, number: Any) -> Any:  # noqa: ANN401 - a slot
        if number >= len(self):
            raise IndexError(number)
        return self.declaration.parse(self.data[number * self.size :][: self.size])


def entries_of(index: bytes, base_offset: int) -> list[OffsetPosition]:
    """Return the entries of an offset index."""
    found: list[OffsetPosition] = []
    last = -1
    for slot in Slots(OffsetIndexEntry, index):  # SEG-IDX-001, SEG-IDX-011: complete entries count
        if slot.relative_offset <= last:  # SEG-IDX-010, SEG-IDX-007
            break
        found.append(OffsetPosition(base_offset + slot.relative_offset, slot.position))
        last = slot.relative_offset
    return found


def lookup(index: bytes, base_offset: int, offset: int) -> OffsetPosition:
    """Return the last entry that is not above an offset (SEG-IDX-008)."""
    not_above = [entry for entry in entries_of(index, base_offset) if entry.offset <= offset]
    return not_above[-1] if not_above else OffsetPosition(base_offset, 0)

"""Readers and writers of fixed-size fields by name, independent of their stored order.

A `FixedLayout` knows the stored order, which comes from the declarations (`seglog_format.layouts`). Callers name the
fields in the order they want, so only the declaration decides where a field is stored.
"""

from __future__ import annotations

from dataclasses import fields
from operator import itemgetter
from struct import Struct, calcsize
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from seglog_format.storage.byte_source import Buffer


class Packer(Protocol):
    """The methods of `struct.Struct` that fixed fields need. Values are in the order of the names."""

    @property
    def format(self) -> str:
        """The stored fields as codes of `struct`."""

    @property
    def size(self) -> int:
        """Bytes of all fields together."""

    def pack(self, *values: Any) -> bytes:  # noqa: ANN401 - as struct
        """Return the bytes of these values."""

    def unpack_from(self, buffer: Buffer, offset: int = 0) -> tuple[Any, ...]:
        """Read the values that start at a byte position."""

    def iter_unpack(self, buffer: Buffer) -> Iterator[tuple[Any, ...]]:
        """Yield tuples of values, up to the end."""


class Slot(NamedTuple):
    """One number at a fixed position of a structure.

    Attributes:
        position: bytes from the start of the structure.
        layout: of the number.
    """

    position: int
    layout: Struct

    def read(self, structure: Buffer) -> int:
        """Return the number."""
        return int(self.layout.unpack_from(structure, self.position)[0])

    def write(self, structure: bytearray, value: int) -> None:
        """Store a new number."""
        self.layout.pack_into(structure, self.position, value)


class FixedLayout:
    """Big-endian numbers of fixed size, stored without gaps.

    Attributes:
        codes: the code of `struct` for each field, by name, in stored order.
        size: bytes of all fields together.
    """

    def __init__(self, **codes: str) -> None:
        self.codes = codes
        self.size = calcsize(_format(codes.values()))

    def position(self, name: str) -> int:
        """Return the byte position of a field, from the start of the structure."""
        names = list(self.codes)
        return calcsize(_format(list(self.codes.values())[: names.index(name)]))

    def end(self, name: str) -> int:
        """Return the byte position after a field."""
        return self.position(name) + calcsize(_format([self.codes[name]]))

    def span(self, name: str) -> tuple[int, int]:
        """Return the byte position of a field, and its size in bytes."""
        position = self.position(name)
        return position, self.end(name) - position

    def slot(self, name: str) -> Slot:
        """Return a field as a slot that reads and writes it in a buffer."""
        return Slot(self.position(name), Struct(_format([self.codes[name]])))

    def packer(self, *names: str) -> Packer:
        """Return a packer for all fields in the order of these names.

        Raises:
            ValueError: the names are not those of the fields.
        """
        stored = Struct(_format(self.codes.values()))
        if list(names) == list(self.codes):
            return stored
        if sorted(names) != sorted(self.codes):
            msg = f"the fields are {', '.join(self.codes)}, not {', '.join(names)}"
            raise ValueError(msg)
        return _Reordering(stored, names, list(self.codes))

    def packer_of(self, model: type) -> Packer:
        """Return a packer for all fields in the order of a dataclass, whose other fields have defaults."""
        return self.packer(*(field.name for field in fields(model) if field.name in self.codes))


def _format(codes: Iterable[str]) -> str:
    return ">" + "".join(codes)


class _Reordering:
    """A packer for names in another order than the stored one."""

    def __init__(self, stored: Struct, names: tuple[str, ...], stored_names: list[str]) -> None:
        self.format = stored.format
        self.size = stored.size
        self._stored = stored
        self._to_caller = itemgetter(*map(stored_names.index, names))
        self._to_stored = itemgetter(*map(names.index, stored_names))

    def pack(self, *values: Any) -> bytes:  # noqa: ANN401 - as struct
        return self._stored.pack(*self._to_stored(values))

    def unpack_from(self, buffer: Buffer, offset: int = 0) -> tuple[Any, ...]:
        found: tuple[Any, ...] = self._to_caller(self._stored.unpack_from(buffer, offset))
        return found

    def iter_unpack(self, buffer: Buffer) -> Iterator[tuple[Any, ...]]:
        return map(self._to_caller, self._stored.iter_unpack(buffer))

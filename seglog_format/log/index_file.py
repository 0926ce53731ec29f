"""What offset and time index files have in common: slots in a mapped file, a floor search over them."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import TYPE_CHECKING, ClassVar, Generic, Self, TypeVar

from seglog_format.closing import Closing
from seglog_format.codec.index_entries import Slots, trailing_zero_size
from seglog_format.errors import SeglogError
from seglog_format.log.file_bytes import FileBytes, open_bytes

if TYPE_CHECKING:
    import os
    import struct
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

EntryT = TypeVar("EntryT")
IndexT = TypeVar("IndexT")


class IndexFile(Closing, Generic[EntryT]):
    """An index file of equal slots. A context manager; nothing of it may be used after `close`.

    Attributes:
        path: the file; empty for bytes that came from no file.
        base_offset: of the segment, 0 or greater; stored offsets count from it.
    """

    layout: ClassVar[struct.Struct]
    """Layout of one slot, compiled from the schema."""

    def __init__(self, data: memoryview, base_offset: int, path: str, source: FileBytes | None = None) -> None:
        self.path = path
        self.base_offset = base_offset
        self._data = data
        self._source = source

    @classmethod
    def open(cls, path: str | os.PathLike[str], base_offset: int, *, copy: bool = False) -> Self:
        """Open an index file.

        Args:
            path: the file.
            base_offset: of its segment: the number in the file's name.
            copy: read it at once instead of mapping it (see `open_bytes`).

        Raises:
            UsageError: the path does not exist or is not a regular file.
        """
        source = open_bytes(path, copy=copy)
        return cls(source.data, base_offset, source.path, source)

    @classmethod
    def from_bytes(cls, data: bytes | bytearray | memoryview, base_offset: int, path: str = "") -> Self:
        """Read an index from bytes; ``path`` only names them in messages."""
        return cls(memoryview(data), base_offset, path)

    @property
    def file_size(self) -> int:
        """Bytes of the file."""
        return self._data.nbytes

    @property
    def slot_count(self) -> int:
        """Whole slots of the file, preallocated ones included."""
        return self.file_size // self.layout.size

    @property
    def trailing_size(self) -> int:
        """Bytes after the last whole slot; 0 in a sound file."""
        return self.file_size % self.layout.size

    @cached_property
    def trailing_zero_count(self) -> int:
        """Whole slots at the end that hold only zeros."""
        whole = self._data[: self.slot_count * self.layout.size]
        return trailing_zero_size(whole) // self.layout.size

    @property
    def data(self) -> memoryview:
        """The bytes of the file."""
        return self._data

    @cached_property
    def entries(self) -> Sequence[EntryT]:
        """The entries that a reader may use: those before the order first breaks."""
        return self._slots(self._usable_count(self._fields()))

    def raw_entries(self) -> Sequence[EntryT]:
        """Every slot before the trailing zero ones, in order or not: what the file says, not what to believe."""
        return self._slots(self.slot_count - self.trailing_zero_count)

    def close(self) -> None:
        """Give the file back."""
        if self._source is not None:
            self._source.close()

    def _slots(self, count: int) -> Slots[EntryT]:
        return Slots(self._data, self.layout, self._decode, count)

    def _fields(self) -> Iterator[tuple[int, int]]:
        return self.layout.iter_unpack(self._data[: self.slot_count * self.layout.size])

    @abstractmethod
    def _decode(self, first: int, second: int) -> EntryT:
        """An entry from the two numbers of a slot."""

    @abstractmethod
    def _usable_count(self, fields: Iterator[tuple[int, int]]) -> int:
        """How many slots are entries."""


def readable(opener: Callable[[Path, int], IndexT], path: Path | None, base_offset: int) -> IndexT | None:
    """An index; None where there is none, or none that can be read.

    Args:
        opener: such as `OffsetIndex.open`.
        path: of its file; None where there is no file.
        base_offset: of the segment.
    """
    if path is None:
        return None
    try:
        return opener(path, base_offset)
    except SeglogError:
        return None

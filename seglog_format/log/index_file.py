"""The common part of offset and time index files: slots, and a floor search over them."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Generic, Self, TypeVar

from seglog_format.closing import Closing
from seglog_format.codec.decoders import decoders_of
from seglog_format.codec.index_entries import Slots, slot_fields, trailing_zero_size
from seglog_format.errors import SeglogError
from seglog_format.storage.byte_source import MemoryBytes
from seglog_format.storage.file_bytes import MAX_LOG_SIZE, refuse_beyond
from seglog_format.storage.log_storage import LOCAL

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Sequence

    from seglog_format.packing import Packer
    from seglog_format.storage.byte_source import ByteSource
    from seglog_format.storage.log_storage import LogStorage

EntryT = TypeVar("EntryT")
IndexT = TypeVar("IndexT")


class IndexFile(Closing, Generic[EntryT]):
    """An index file of equal slots. A context manager; it must not be used after `close`.

    Attributes:
        source: the bytes of the file.
        path: of the file; empty for bytes in memory.
        base_offset: of the segment, 0 or greater; stored offsets are relative to it.
        layout: of one slot, made from the schema.
    """

    layout: Packer

    def __init__(self, source: ByteSource, base_offset: int) -> None:
        self.path = source.path
        self.base_offset = base_offset
        self.source = source
        if (decoders := decoders_of(source)) is not None:
            self.layout = decoders.slots(self.layout)

    @classmethod
    def open(
        cls, path: str | os.PathLike[str], base_offset: int, *, mapped: bool = False, storage: LogStorage = LOCAL
    ) -> Self:
        """Open an index file.

        Args:
            path: the file.
            base_offset: of its segment: the number in the file's name.
            mapped: map the file instead of reading it through windows (see `open_bytes`).
            storage: the storage that holds the file.

        Raises:
            UsageError: the path does not exist or is not a regular file.
            UnreadableError: it may not be read, or the disk refuses it (SEG-PDR-022).
            RefusedError: it is larger than a broker can map (SEG-PDR-020).
        """
        check = partial(refuse_beyond, MAX_LOG_SIZE)
        return cls(storage.open(Path(path), mapped=mapped, check=check), base_offset)

    @classmethod
    def from_bytes(cls, data: bytes | bytearray | memoryview, base_offset: int, path: str = "") -> Self:
        """Read an index from bytes in memory; ``path`` names them in error messages."""
        return cls(MemoryBytes(data, path), base_offset)

    @property
    def file_size(self) -> int:
        """Size of the file in bytes."""
        return self.source.size

    @property
    def slot_count(self) -> int:
        """Number of whole slots of the file, preallocated ones included."""
        return self.file_size // self.layout.size

    @property
    def trailing_size(self) -> int:
        """Number of bytes after the last whole slot; 0 in an undamaged file."""
        return self.file_size % self.layout.size

    @cached_property
    def trailing_zero_count(self) -> int:
        """Number of whole slots at the end that hold only zeros."""
        return trailing_zero_size(self.source, self.slot_count * self.layout.size) // self.layout.size

    @property
    def data(self) -> memoryview:
        """The bytes of the file; if it is not mapped, all of them are read into memory."""
        return self.source.view(0, self.source.size)

    @cached_property
    def entries(self) -> Sequence[EntryT]:
        """The usable entries: those before the first entry that is out of order."""
        return self._slots(self._usable_count(slot_fields(self.source, self.layout, self.slot_count)))

    def raw_entries(self) -> Sequence[EntryT]:
        """Return every slot before the trailing slots of zeros, whether or not they are in order."""
        return self._slots(self.slot_count - self.trailing_zero_count)

    def slots(self) -> Sequence[EntryT]:
        """Return every whole slot, whether or not they are in order, preallocated ones included."""
        return self._slots(self.slot_count)

    def close(self) -> None:
        """Close the file."""
        if isinstance(self.source, Closing):
            self.source.close()

    def _slots(self, count: int) -> Slots[EntryT]:
        return Slots(self.source, self.layout, self._decode, count)

    @abstractmethod
    def _decode(self, first: int, second: int) -> EntryT:
        """Return the entry that the two numbers of a slot stand for."""

    @abstractmethod
    def _usable_count(self, fields: Iterator[tuple[int, int]]) -> int:
        """Return the number of usable entries."""


def readable(opener: Callable[[Path, int], IndexT], path: Path | None, base_offset: int) -> IndexT | None:
    """Open an index; return None if it is missing or unreadable.

    Args:
        opener: opens the index, as `OffsetIndex.open` does.
        path: of the file; None if there is no file.
        base_offset: of the segment.
    """
    if path is None:
        return None
    try:
        return opener(path, base_offset)
    except SeglogError:
        return None

"""Index files and producer snapshots, read whole; floor searches over the slots of indexes, and how brokers build them.

In every version, recovery adds at most one index entry for each entry of the log (chapters 40, 41 and 71). So its
result depends only on the log, and not on how the entries were appended.
"""

from __future__ import annotations

from abc import abstractmethod
from bisect import bisect_right
from dataclasses import dataclass
from enum import Enum
from functools import cached_property, partial
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, Self, TypeVar

from seglog_format.codec.framing import decoders_of
from seglog_format.codec.side_files import (
    Slots,
    slot_fields,
    trailing_zero_size,
    usable_offset_slots,
    usable_time_slots,
)
from seglog_format.errors import FormatError, Location, SeglogError
from seglog_format.model import NO_TIMESTAMP, AbortedTxn, OffsetPosition, ProducerStateEntry, TimestampOffset
from seglog_format.names import parse_file_name
from seglog_format.schema.fixed_fields import OFFSET_INDEX_ENTRY, TIME_INDEX_ENTRY, TRANSACTION_INDEX_ENTRY
from seglog_format.storage.byte_source import (
    FIRST_WINDOW,
    MAX_LOG_SIZE,
    MAX_WHOLE_SIZE,
    ByteSource,
    Closing,
    MemoryBytes,
    refuse_beyond,
)
from seglog_format.storage.log_storage import LOCAL

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from seglog_format.log.listing import NamedFile
    from seglog_format.packing import Packer
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
        known = path if isinstance(path, Path) else Path(path)
        return cls(storage.open(known, mapped=mapped, check=partial(refuse_beyond, MAX_LOG_SIZE)), base_offset)

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
        size = self.layout.size
        last = max(self.slot_count - 1, 0) * size
        if any(self.source.view(last, self.slot_count * size)):
            return 0
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

    def searched(self, key: int) -> EntryT | None:
        """Search for the last entry up to an offset or timestamp, among all slots before the trailing zeros.

        The order of the slots is not checked: a lookup that does without the check has to verify the result.

        Args:
            key: an offset for an offset index, a timestamp in milliseconds for a time index.
        """
        low, high = 0, self.slot_count - self.trailing_zero_count
        source, size, unpack_from, key = self.source, self.layout.size, self.layout.unpack_from, key - self._key_base
        while (high - low) * size > FIRST_WINDOW:
            middle = (low + high) // 2
            slot = source.view(middle * size, (middle + 1) * size)
            low, high = (low, middle) if unpack_from(slot)[0] > key else (middle + 1, high)
        if low < high:
            start, data = source.window(low * size, (high - low) * size)
            while low < high:
                middle = (low + high) // 2
                if unpack_from(data, middle * size - start)[0] > key:
                    high = middle
                else:
                    low = middle + 1
        return self._decode(*unpack_from(source.view((low - 1) * size, low * size))) if low else None

    def slots(self) -> Sequence[EntryT]:
        """Return every whole slot, whether or not they are in order, preallocated ones included."""
        return self._slots(self.slot_count)

    def close(self) -> None:
        """Close the file."""
        if isinstance(self.source, Closing):
            self.source.close()

    def _slots(self, count: int) -> Slots[EntryT]:
        return Slots(self.source, self.layout, self._decode, count)

    @property
    @abstractmethod
    def _key_base(self) -> int:
        """The number that the first of a slot's numbers is relative to."""

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


# -- the offset index of a segment: from offsets to byte positions (chapter 40) ----------------------------------------


class OffsetIndex(IndexFile[OffsetPosition]):
    """An offset index; its entries have absolute offsets. Only the log decides what is in it (SEG-IDX-009)."""

    layout = OFFSET_INDEX_ENTRY

    def lookup(self, offset: int) -> OffsetPosition:
        """Return where to start searching the log for an offset (SEG-IDX-008).

        Args:
            offset: absolute; any integer.

        Returns:
            The last entry whose offset is not greater, else the segment's base offset with position 0.
        """
        count = bisect_right(self.entries, offset, key=attrgetter("offset"))
        return self.entries[count - 1] if count else OffsetPosition(self.base_offset, 0)

    def _decode(self, first: int, second: int) -> OffsetPosition:
        return OffsetPosition(self.base_offset + first, second)

    @property
    def _key_base(self) -> int:
        return self.base_offset

    def _usable_count(self, fields: Iterable[tuple[int, int]]) -> int:
        return usable_offset_slots(fields)


# -- the time index of a segment: from timestamps to offsets (chapter 41) ----------------------------------------------


class TimeIndex(IndexFile[TimestampOffset]):
    """A time index; its entries have absolute offsets."""

    layout = TIME_INDEX_ENTRY

    def lookup(self, timestamp_ms: int) -> TimestampOffset:
        """Return the offset up to which no record is later than a timestamp (SEG-TIX-008).

        Args:
            timestamp_ms: milliseconds since 1970; any integer.

        Returns:
            The last entry whose timestamp is not greater, else timestamp -1 with the segment's base offset.
        """
        count = bisect_right(self.entries, timestamp_ms, key=attrgetter("timestamp_ms"))
        return self.entries[count - 1] if count else TimestampOffset(NO_TIMESTAMP, self.base_offset)

    def _decode(self, first: int, second: int) -> TimestampOffset:
        return TimestampOffset(first, self.base_offset + second)

    @property
    def _key_base(self) -> int:
        return 0

    def _usable_count(self, fields: Iterable[tuple[int, int]]) -> int:
        return usable_time_slots(fields)


# -- the transaction index of a segment: its aborted transactions (chapter 42) -----------------------------------------


class TxnIndexSearchResult(NamedTuple):
    """The result of searching one segment's index for a range of offsets.

    Attributes:
        aborted: the aborted transactions that may have records in the range, in the order of their markers.
        is_complete: whether the indexes of later segments cannot add to them.
    """

    aborted: tuple[AbortedTxn, ...]
    is_complete: bool


@dataclass(frozen=True, slots=True)
class TransactionIndex:
    """A transaction index. It is decoded whole: it has one entry for each aborted transaction, so it is small.

    Attributes:
        entries: in file order; offsets are absolute.
        base_offset: of the segment.
        file_size: size of the file in bytes.
        path: of the file; empty for bytes in memory.
    """

    entries: tuple[AbortedTxn, ...]
    base_offset: int
    file_size: int
    path: str = ""

    @classmethod
    def open(cls, path: str | os.PathLike[str], base_offset: int, *, storage: LogStorage = LOCAL) -> Self:
        """Read a transaction index file.

        Raises:
            UsageError: the path does not exist or is not a regular file.
            UnsupportedVersionError: an entry's version is not 0 (SEG-TXN-002).
        """
        found = Path(path)
        with storage.open(found, check=partial(refuse_beyond, MAX_WHOLE_SIZE)) as source:
            return cls.from_source(source, base_offset, storage.name_of(found))

    @classmethod
    def from_bytes(cls, data: bytes | bytearray | memoryview, base_offset: int, path: str = "") -> Self:
        """Decode a transaction index; ``path`` names the bytes in error messages.

        Raises:
            UnsupportedVersionError: an entry's version is not 0 (SEG-TXN-002).
            RefusedError: more than 64 MiB (SEG-PDR-020).
        """
        return cls.from_source(MemoryBytes(data, path), base_offset, path)

    @classmethod
    def from_source(cls, source: ByteSource, base_offset: int, path: str = "") -> Self:
        """Decode a transaction index from a source of bytes, as `from_bytes` does."""
        refuse_beyond(MAX_WHOLE_SIZE, source.size, path)
        return cls(_decoder_of(source)(source.view(0, source.size), Location(path)), base_offset, source.size, path)

    @property
    def trailing_size(self) -> int:
        """Number of bytes after the last whole entry; 0 in an undamaged file."""
        return self.file_size % TRANSACTION_INDEX_ENTRY.size

    def aborted(self, from_offset: int, to_offset: int) -> TxnIndexSearchResult:
        """Return the aborted transactions that may have records from ``from_offset`` up to ``to_offset`` (excluded).

        If the result is not complete, continue with the next segment's index (SEG-TXN-007).
        """
        found = []
        for entry in self.entries:
            if entry.last_offset >= from_offset and entry.first_offset < to_offset:
                found.append(entry)
            if entry.last_stable_offset >= to_offset:
                return TxnIndexSearchResult(tuple(found), is_complete=True)
        return TxnIndexSearchResult(tuple(found), is_complete=False)


def _decoder_of(source: ByteSource) -> Callable[[memoryview, Location], tuple[AbortedTxn, ...]]:
    decoders = decoders_of(source)
    if decoders is not None:
        return decoders.transaction_index
    from seglog_format.codec.side_files import decode_transaction_index  # noqa: PLC0415 - loaded with the first

    return decode_transaction_index


@dataclass(frozen=True, slots=True)
class ProducerSnapshot:
    """The producers of a snapshot file.

    Attributes:
        version: 1.
        crc: checksum as stored, 0 to 4294967295.
        producers: one entry for each producer id, in file order; the order has no meaning.
        path: of the file; empty for bytes in memory.
    """

    version: int
    crc: int
    producers: tuple[ProducerStateEntry, ...]
    path: str = ""

    @property
    def offset(self) -> int:
        """The offset in the name of the file: batches below it are included."""
        return _snapshot_offset(Path(self.path))

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, storage: LogStorage = LOCAL) -> Self:
        """Read a snapshot file.

        Raises:
            UsageError: the path does not exist or is not a regular file.
            FormatError: as for `from_bytes`. A broker ignores such a file, and so may a reader (SEG-PSN-005).
        """
        with storage.open(Path(path), check=partial(refuse_beyond, MAX_WHOLE_SIZE)) as source:
            return cls.from_source(source, source.path)

    @classmethod
    def from_bytes(cls, data: bytes | bytearray | memoryview, path: str = "") -> Self:
        """Decode a snapshot; ``path`` names the bytes in error messages.

        Raises:
            TruncatedError: fewer than 10 bytes (SEG-PSN-003).
            UnsupportedVersionError: a version other than 1 (SEG-PSN-001).
            CorruptIndexError: the checksum or the size is wrong (SEG-PSN-002, SEG-PSN-003).
            RefusedError: more than 64 MiB (SEG-PDR-020).
        """
        return cls.from_source(MemoryBytes(data, path), path)

    @classmethod
    def from_source(cls, source: ByteSource, path: str = "") -> Self:
        """Decode a snapshot from a source of bytes, as `from_bytes` does."""
        from seglog_format.codec.side_files import decode_producer_snapshot  # noqa: PLC0415 - loaded with the first

        refuse_beyond(MAX_WHOLE_SIZE, source.size, path)
        decoders = decoders_of(source)
        decode = decode_producer_snapshot if decoders is None else decoders.producer_snapshot
        snapshot = decode(source.view(0, source.size), Location(path))
        return cls(snapshot.version, snapshot.crc, snapshot.producers, path)


def newest_readable_snapshot(
    paths: Iterable[Path], open_snapshot: Callable[[Path], ProducerSnapshot] = ProducerSnapshot.open
) -> ProducerSnapshot | None:
    """Return the readable snapshot with the greatest offset in its name (SEG-PSN-005).

    Args:
        paths: of snapshot files.
        open_snapshot: reads a snapshot file.

    Returns:
        The snapshot, or None if the state must be computed from the start of the log.

    Raises:
        UsageError: one of the files does not exist.
    """
    for path in sorted(paths, key=_snapshot_offset, reverse=True):
        try:
            return open_snapshot(path)
        except FormatError:
            continue  # a broker also deletes it, and tries the next older one
    return None


def without_strays(snapshots: Iterable[NamedFile], base_offsets: Collection[int]) -> list[NamedFile]:
    """Return the snapshots that a broker keeps when it loads a log, ascending (SEG-RCV-035).

    It keeps those at which a segment begins, and the newest one if that is above all base offsets.
    """
    found = sorted(snapshots, key=lambda file: file.base_offset)
    newest = found[-1:] if found and found[-1].base_offset > max(base_offsets, default=-1) else []
    return [file for file in found if file.base_offset in base_offsets or file in newest]


def _snapshot_offset(path: Path) -> int:
    name = parse_file_name(path.name)
    assert name is not None
    return name.base_offset


INDEX_INTERVAL_BYTES: Final = 4096
"""Default of `index.interval.bytes`."""


class IndexedOffset(Enum):
    """Which offset of an entry the offset index stores (SEG-IDX-006 allows both)."""

    LAST = "last"
    """2.0 and later."""

    FIRST = "first"
    """0.8.0 to 1.1."""


@dataclass(frozen=True, slots=True)
class IndexedRow:
    """The values of one log entry that indexing needs.

    Attributes:
        position: byte position in the file.
        size: in bytes.
        first_offset: offset of the first record; a wrapper has to be decompressed to find it.
        last_offset: offset of the last record.
        max_timestamp_ms: largest timestamp, or -1.
    """

    position: int
    size: int
    first_offset: int
    last_offset: int
    max_timestamp_ms: int


@dataclass(frozen=True, slots=True)
class BuiltIndexes:
    """The entries of an offset index and a time index, in order."""

    offset_entries: tuple[OffsetPosition, ...]
    time_entries: tuple[TimestampOffset, ...]


class IndexInterval:
    """The rule when index entries are due: when more bytes than the interval follow the last index entries.

    Args:
        interval_bytes: `index.interval.bytes`, 0 or more.
        largest: largest timestamp so far, with its offset.

    Attributes:
        largest: largest timestamp so far, including the units added.
    """

    def __init__(self, interval_bytes: int, largest: TimestampOffset) -> None:
        self.largest = largest
        self._interval = interval_bytes
        # Brokers keep this count in memory only, so it begins at 0 when a log is opened (SEG-ROL-012).
        self._bytes_since_last_entry = 0

    def add(self, size: int, largest: TimestampOffset) -> bool:
        """Add the next unit of the log; return whether index entries are due at its start (SEG-ROL-010).

        Args:
            size: size of the unit in bytes.
            largest: its largest timestamp, with the offset that a time index stores.
        """
        if largest.timestamp_ms > self.largest.timestamp_ms:
            self.largest = largest
        is_due = self._bytes_since_last_entry > self._interval
        self._bytes_since_last_entry = size if is_due else self._bytes_since_last_entry + size
        return is_due


class IndexBuilder:
    """Collects index entries while a log is walked from its start.

    Args:
        interval_bytes: `index.interval.bytes`, 0 or more.
        indexed_offset: which offset the offset index stores.

    Attributes:
        offset_entries: of the offset index, so far.
        time_entries: of the time index, so far; `finish` adds the last one.
    """

    def __init__(
        self, interval_bytes: int = INDEX_INTERVAL_BYTES, indexed_offset: IndexedOffset = IndexedOffset.LAST
    ) -> None:
        self.offset_entries: list[OffsetPosition] = []
        self.time_entries: list[TimestampOffset] = []
        self._indexed_offset = indexed_offset
        self._interval = IndexInterval(interval_bytes, TimestampOffset(NO_TIMESTAMP, 0))

    def add(self, row: IndexedRow) -> None:
        """Add the next entry of the log; index it if index entries are due."""
        if self._interval.add(row.size, TimestampOffset(row.max_timestamp_ms, row.last_offset)):
            offset = row.last_offset if self._indexed_offset is IndexedOffset.LAST else row.first_offset
            self.add_offset_entry(OffsetPosition(offset, row.position))
            self.add_time_entry(self._interval.largest)

    def add_offset_entry(self, entry: OffsetPosition) -> None:
        """Add an entry to the offset index."""
        self.offset_entries.append(entry)

    def add_time_entry(self, largest: TimestampOffset) -> None:
        """Add an entry to the time index if its timestamp is larger than that of the last entry."""
        if largest.timestamp_ms > (self.time_entries[-1].timestamp_ms if self.time_entries else NO_TIMESTAMP):
            self.time_entries.append(largest)

    def finish(self) -> BuiltIndexes:
        """Add the largest timestamp to the time index (SEG-TIX-006), and return both indexes."""
        self.add_time_entry(self._interval.largest)
        return BuiltIndexes(tuple(self.offset_entries), tuple(self.time_entries))


def build_indexes(
    rows: Iterable[IndexedRow],
    *,
    interval_bytes: int = INDEX_INTERVAL_BYTES,
    indexed_offset: IndexedOffset = IndexedOffset.LAST,
) -> BuiltIndexes:
    """Index a whole segment.

    Args:
        rows: of the entries of the log, in file order.
        interval_bytes: `index.interval.bytes`.
        indexed_offset: which offset the offset index stores.
    """
    builder = IndexBuilder(interval_bytes, indexed_offset)
    for row in rows:
        builder.add(row)
    return builder.finish()


def encode_offset_index(entries: Sequence[OffsetPosition], base_offset: int) -> bytes:
    """Encode an offset index; offsets are stored relative to the segment's base offset (SEG-IDX-002)."""
    return b"".join(OFFSET_INDEX_ENTRY.pack(entry.offset - base_offset, entry.position) for entry in entries)


def encode_time_index(entries: Sequence[TimestampOffset], base_offset: int) -> bytes:
    """Encode a time index."""
    return b"".join(TIME_INDEX_ENTRY.pack(entry.timestamp_ms, entry.offset - base_offset) for entry in entries)


def interval_bounds(rows: Sequence[IndexedRow], entries: Sequence[OffsetPosition]) -> range:
    """Return the settings of `index.interval.bytes` under which recovery would have written these entries.

    Args:
        rows: entries of the log in file order.
        entries: of the segment's offset index.

    Returns:
        Smallest to largest setting; empty if no setting explains the entries.
    """
    smallest, largest = 0, 2**31 - 1
    indexed = {entry.position for entry in entries}
    start = 0
    for row in rows:
        span = row.position - start
        if row.position in indexed:
            largest, start = min(largest, span - 1), row.position
        else:
            smallest = max(smallest, span)
    return range(smallest, largest + 1)

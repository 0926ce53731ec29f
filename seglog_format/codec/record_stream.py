"""The records of an entry one by one, in memory that does not grow with their number.

A batch of a few hundred kilobytes may hold twenty million records, or one record with as many headers. As objects they
would take gigabytes, and a reader that needs only the first three would wait until all of them are built.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, islice, takewhile
from typing import TYPE_CHECKING, Final, cast, overload

from seglog_format.codec.compression import DEFAULT_OUTPUT_LIMIT
from seglog_format.codec.decode import decode_frame, records_section, verify_checksum
from seglog_format.codec.decoders import decoders_of
from seglog_format.codec.plain import FieldReading, RecordReading
from seglog_format.model import RecordBatchHeader
from seglog_format.record_model import RecordHeader

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from seglog_format.errors import Location
    from seglog_format.model import BatchHeader, Frame
    from seglog_format.record_model import Message, Record

KEPT_RECORDS: Final = 2**16
"""Records of a batch that are checked before the first of them is returned: more than brokers accept in one batch."""
KEPT_HEADERS: Final = 4096
"""Maximum headers of a record that are decoded at once; if there are more, each is decoded when it is accessed."""


@dataclass(frozen=True, slots=True)
class StreamedBatch:
    """An entry of a log whose records are decoded while they are iterated over.

    Attributes:
        position: byte position in the file.
        header: fixed fields as stored.
        base_offset: the stored base offset; for a wrapper the offset of its first message.
        records: records or messages in stored order; to be iterated over once.
    """

    position: int
    header: BatchHeader
    base_offset: int
    records: Iterable[Record | Message]

    @property
    def next_offset(self) -> int:
        """The first offset after this entry."""
        return self.header.next_offset


def stream_frame(
    frame: Frame, *, at: Location, limit: int = DEFAULT_OUTPUT_LIMIT, to_offset: int | None = None
) -> StreamedBatch:
    """Check an entry as `decode_frame` does, and return it with an iterable over its records.

    Args:
        frame: the entry.
        at: location of the entry.
        limit: bytes that decompression may produce at most.
        to_offset: after the first `KEPT_RECORDS` of a batch, stop before a record at or above this offset.

    Raises:
        FormatError: the entry is damaged or refused. Iterating over the records also raises it, for damage after the
            first `KEPT_RECORDS` of a batch.
    """
    header = frame.header
    if not isinstance(header, RecordBatchHeader):
        batch = decode_frame(frame, at=at, limit=limit)
        return StreamedBatch(frame.position, header, batch.base_offset, batch.records)
    records = _opened(frame, header, at, limit)
    kept: Iterable[Record] = list(islice(records, KEPT_RECORDS))
    if header.records_count > KEPT_RECORDS:
        kept = chain(kept, takewhile(lambda record: to_offset is None or record.offset < to_offset, records))
    return StreamedBatch(frame.position, header, header.base_offset, kept)


def has_very_many_records(header: BatchHeader) -> bool:
    """Return whether the header of an entry counts more than `KEPT_RECORDS` records."""
    return isinstance(header, RecordBatchHeader) and header.records_count > KEPT_RECORDS


def _opened(frame: Frame, header: RecordBatchHeader, at: Location, limit: int) -> Iterator[Record]:
    verify_checksum(frame, at)
    decoders = decoders_of(frame)
    read = stream_records if decoders is None else decoders.records
    return read(*records_section(frame, header, at, limit))


def stream_records(section: bytes, header: RecordBatchHeader, at: Location) -> Iterator[Record]:
    """Yield the records of a batch, as `decode_records` returns them.

    Args:
        section: everything after the batch header, decompressed.
        header: of the batch.
        at: location of the section; positions in errors are relative to it.

    Raises:
        CorruptRecordError: while iterating: a record is damaged, or the section does not hold the counted records.
    """
    return _StreamReading(section, header, at).records()


class _StreamReading(RecordReading):
    """Reads records one by one; very many headers of a record stay bytes."""

    __slots__ = ()

    def _headers(self, count: int, stop: int) -> tuple[RecordHeader, ...]:
        if not KEPT_HEADERS < count <= stop - self.position:
            return super()._headers(count, stop)
        headers = StoredHeaders(self.data, self.position, count)
        self.position = headers.end()
        return cast("tuple[RecordHeader, ...]", headers)


class StoredHeaders(Sequence[RecordHeader]):
    """The headers of a record as stored bytes, each decoded when it is accessed.

    Args:
        data: bytes with the headers.
        start: position of the first header.
        count: number of headers.
    """

    def __init__(self, data: bytes, start: int, count: int) -> None:
        self._data, self._start, self._count = data, start, count

    def end(self) -> int:
        """Read to the end of the last header.

        Raises:
            FieldError: a header is damaged.
        """
        reading = self._reading()
        for number in range(self._count):
            reading.header(number)
        return reading.position

    def _reading(self) -> FieldReading:
        return FieldReading(self._data, self._start)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[RecordHeader]:
        reading = self._reading()
        return (reading.header(number) for number in range(self._count))

    @overload
    def __getitem__(self, index: int) -> RecordHeader: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[RecordHeader]: ...

    def __getitem__(self, index: int | slice) -> RecordHeader | Sequence[RecordHeader]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(self._count))]
        number = range(self._count)[index]
        return next(islice(self, number, None))

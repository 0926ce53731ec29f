"""Looking up single records: without the reference's full decoding, as far as everything is regular (chapter 60)."""

from __future__ import annotations

from bisect import bisect_right
from operator import lt
from typing import TYPE_CHECKING, Final

from seglog_format.codec.decode import checksum_is_valid
from seglog_format.codec.framing import frame_at
from seglog_format.codec.plain.record_start import start_of_record
from seglog_format.codec.plain.records import RecordReading
from seglog_format.errors import FormatError, Location, SeglogError
from seglog_format.log.offset_index import OffsetIndex
from seglog_format.log.trusted_lookup import starts_at
from seglog_format.model import CompressionCodec, Frame, RecordBatchHeader
from seglog_format.schema.fixed_fields import OFFSET_INDEX_ENTRY, RECORD_BATCH_HEADER_SIZE

if TYPE_CHECKING:
    from seglog_format.log.segment import LogSegment
    from seglog_format.model import BatchHeader
    from seglog_format.record_model import Message, Record, RecordBatch
    from seglog_format.storage.byte_source import ByteSource

MAX_STEPS: Final = 64
"""Entries that are passed over from where the index leads to: mostly none or one."""
MAX_KNOWN_SIZE: Final = 2**25
"""Bytes of memory, about, in which batches are kept decoded."""
MAX_KNOWN_RECORDS: Final = 2**16
"""Records of a batch that is decoded whole for one of them."""
OBJECT_SIZE: Final = 256
"""Bytes of memory, about, that a record takes besides its own."""

Known = tuple[int, "tuple[Record | Message, ...]"]
"""The base offset of a batch, and its records; none where it is for the reference to read."""
NOTHING: Final[Known] = (0, ())


class KnownRecords:
    """The batches that lookups have met last: each was decoded once, and found regular."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], Known] = {}
        self._size = 0

    def find(self, segment: LogSegment, offset: int, *, trust_index: bool = False) -> Record | Message | None:
        """Return the record at an offset; None where there is none, or where only the reference can tell.

        Args:
            segment: that may hold it.
            offset: absolute.
            trust_index: start at an index entry that looks right, as `LogSegment.position_of` does.
        """
        try:
            position = segment.position_of(offset, trust_index=trust_index)
        except FormatError:
            return None
        return None if position is None else self.find_at(segment, position, offset)

    def find_at(self, segment: LogSegment, position: int, offset: int) -> Record | Message | None:
        """Return the same where the position of the entry is known that holds the offset, if any does."""
        key = segment.base_offset, position
        known = self._known.get(key)
        if known is None:
            known = self._keep(key, _decoded(segment, position))
        base_offset, records = known
        if 0 <= offset - base_offset < len(records) and (record := records[offset - base_offset]).offset == offset:
            return record
        return None

    def _keep(self, key: tuple[int, int], known: Known) -> Known:
        size = _memory(known)
        if size <= MAX_KNOWN_SIZE:
            self._known[key] = known
            self._size += size
        while self._size > MAX_KNOWN_SIZE:
            self._size -= _memory(self._known.pop(next(iter(self._known))))
        return known


def _memory(known: Known) -> int:
    return OBJECT_SIZE + sum(OBJECT_SIZE + record.size_in_bytes for record in known[1])


def _decoded(segment: LogSegment, position: int) -> Known:
    try:
        frame = segment.frame_at(position)
        if not isinstance(frame, Frame) or not is_short_batch(frame.header):
            return NOTHING
        batch = segment.decode(frame)
    except FormatError:
        return NOTHING
    if not _are_where_header_says(batch):
        return NOTHING
    return batch.base_offset, batch.records


def is_short_batch(header: BatchHeader) -> bool:
    """Tell whether an entry is a batch of records, and few enough to decode all for one of them."""
    is_of_records = isinstance(header, RecordBatchHeader) and not header.is_control
    return is_of_records and (header.records_count or 0) <= MAX_KNOWN_RECORDS


def _are_where_header_says(batch: RecordBatch) -> bool:
    """Tell whether offsets increase up to the header's last one: else reading on behind a record would miss some."""
    offsets = [record.offset for record in batch.records]
    return all(map(lt, offsets, [*offsets[1:], batch.header.next_offset]))


def record_at(segment: LogSegment, offset: int) -> Record | None:
    """Return the record at an offset, where the offset index leads to it; None where there is none, or on any doubt.

    For a single lookup in a segment that nothing is known of. The index is believed as far as a broker believes it: an
    intact batch has to stand where it points (see `open_partition`, ``trust_indexes``). The checksum of the batch is
    verified, and its records are read up to the one asked for.

    Args:
        segment: that may hold it.
        offset: absolute.

    Raises:
        UsageError: the log is gone, or may not be read.
    """
    try:
        frame = _entry_with(segment.source, index_floor(segment, offset), offset)
    except FormatError:
        return None
    header = None if frame is None else frame.header
    if not isinstance(header, RecordBatchHeader) or header.codec_id != CompressionCodec.NONE or header.is_control:
        return None
    assert frame is not None
    if header.last_offset_delta != header.records_count - 1:
        return None
    found = _record_in(bytes(frame.data), header, offset - header.base_offset)
    return found if found is not None and found.offset == offset else None


def _record_in(batch: bytes, header: RecordBatchHeader, number: int) -> Record | None:
    """One record of an uncompressed batch, by its number; None where there is none, or it is damaged."""
    position = start_of_record(batch, number, RECORD_BATCH_HEADER_SIZE)
    try:
        return None if position is None else RecordReading(batch, header, Location(), position).record(number)
    except FormatError:
        return None


def index_floor(segment: LogSegment, offset: int) -> int:
    """Return where the index says to start; nothing is checked but that it is inside the file."""
    path, size = segment.paths.offset_index, OFFSET_INDEX_ENTRY.size
    if path is None:
        return 0
    relative = offset - segment.base_offset
    try:
        with OffsetIndex.open(path, segment.base_offset, copy=segment.copy, storage=segment.storage) as index:
            source = index.source

            def slot(number: int) -> tuple[int, ...]:
                return OFFSET_INDEX_ENTRY.unpack_from(source.view(number * size, (number + 1) * size), 0)

            count = bisect_right(range(source.size // size), relative, key=lambda number: slot(number)[0])
            return slot(count - 1)[1] if count else 0
    except SeglogError:
        return 0


def _entry_with(source: ByteSource, position: int, offset: int) -> Frame | None:
    """Return the entry that holds an offset, by a short walk from an intact one; None on any doubt."""
    is_first = position > 0
    for _ in range(MAX_STEPS):
        frame = frame_at(source, position, source.size) if 0 <= position < source.size else None
        if not isinstance(frame, Frame) or starts_at(frame) > offset:
            return None
        holds = frame.header.last_offset >= offset
        if (is_first or holds) and not checksum_is_valid(frame):
            return None
        if holds:
            return frame
        position, is_first = frame.end, False
    return None

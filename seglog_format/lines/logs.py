"""Lines of a `.log` file or a metadata snapshot (batches, records, the end of the log), and of the files beside one."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from itertools import chain, islice
from typing import TYPE_CHECKING, Any, Final

from seglog_format.codec.control_record import decode_control_record, decode_early_control_record
from seglog_format.codec.decode import StreamedBatch, checksum_is_valid, stream_frame, verify_checksum
from seglog_format.codec.framing import MAX_TRAILING_SIZE, FrameWalk
from seglog_format.errors import FormatError, Location, RefusedError, UnreadableError
from seglog_format.lines.options import byte_writer, list_of
from seglog_format.lines.sources import SourceKind
from seglog_format.log.entry_table import in_order, proven_start
from seglog_format.log.index_file import OffsetIndex, ProducerSnapshot, TimeIndex, TransactionIndex
from seglog_format.log.search import unexpected_end
from seglog_format.model import NO_PRODUCER_ID, CompressionCodec, Message, TailKind
from seglog_format.names import (
    EARLY_METADATA_TOPIC,
    METADATA_TOPIC,
    METADATA_TOPICS,
    FileKind,
    parse_partition_directory,
)
from seglog_format.storage.byte_source import MAX_WHOLE_SIZE, max_text_size, refuse_beyond, refuse_whole, source_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from seglog_format.lines.options import Line, LineOptions
    from seglog_format.lines.sources import Source

    ApplicationDecoder = Callable[[bytes | None, bytes | None], dict[str, object] | None]
    from seglog_format.model import (
        AbortedTxn,
        BatchHeader,
        Frame,
        ProducerStateEntry,
        Record,
        RecordBatch,
        RecordHeader,
        Tail,
    )
    from seglog_format.storage.byte_source import ByteSource, Readable


def log_lines(
    source: Source, data: Readable, options: LineOptions, reached: Callable[[int], None] | None = None
) -> Iterator[Line]:
    """Yield batches with their records, and a last line with the position and reason of the end.

    Args:
        source: the log.
        data: its bytes.
        options: what to yield.
        reached: called at the end with the offset after the last entry, if not all of them have lines.
    """
    stored = source_of(data)
    frames = WantedEntries(source, stored, options)
    record_lines = RecordLines(source, options)
    batches = records = 0
    error: str | None = None
    try:
        for frame in frames:
            batches += 1
            for line in _frame_lines(frame, source.name, options, record_lines):
                records += line["type"] == "record"
                is_disordered = frames.disorder is not None and line["type"] == "batch"
                yield line | {"outOfOrder": str(frames.disorder)} if is_disordered else line
    except FormatError as problem:
        error = str(problem)
    if reached is not None and options.has_times:
        reached(frames.reached)
    zero_count = frames.tail.size if error is None and frames.tail.kind is TailKind.ZEROS else 0
    if error is None:
        hidden = unexpected_end(frames.tail, stored, source.allowed, source.name, is_last=True)
        error = _zeros(frames.tail) if hidden is None else str(hidden)
    if options.is_window and error is None and (frames.position or not frames.tail.size):
        return
    yield {
        "type": "logEnd",
        "file": source.name,
        "batches": batches,
        "records": records if options.records and not options.is_window else None,
        "scannedBytes": frames.position,
        "fileBytes": stored.size,
        "zeroBytes": zero_count,
        "error": error,
    }


class WantedEntries(FrameWalk):
    """The entries of a log that may hold wanted offsets, and damaged ones before them or among them.

    It begins at the entry before the first one that ends at or above the first wanted offset, by a walk over headers.
    It ends before the first intact entry that begins at or above the end of the range, unless it is out of order.

    Attributes:
        allowed: the offsets that the segment can hold.
        reached: the offset after the last entry that was looked at.
        disorder: why readers end before this entry, whose offset its segment cannot hold; None for any other.
        before: the offset after the entry before this one.
    """

    def __init__(self, source: Source, stored: ByteSource, options: LineOptions) -> None:
        self.allowed, self._options = source.allowed, options
        self.disorder: FormatError | None = None
        start, self.reached = (0, self.allowed.first)
        if options.from_offset is not None or options.since_ms is not None:
            first = options.from_offset or 0
            start, self.reached = proven_start(stored, source.name, self.allowed, first, options.since_ms)
        self.before = self.reached
        super().__init__(stored, start, stored.size, source.name)

    def __iter__(self) -> Iterator[Frame]:
        for frame in super().__iter__():
            self.disorder, self.before = self._disorder_of(frame), self.reached
            base_offset, to_offset = frame.header.base_offset, self._options.to_offset
            first = self.reached if base_offset is None else base_offset
            self.reached = frame.header.next_offset
            is_wanted = self._options.overlaps(first, self.reached) and self._options.may_be_in(frame.header)
            if is_wanted or not _is_intact(frame):
                yield frame
            elif to_offset is not None and first >= to_offset and self.disorder is None:
                return

    def _disorder_of(self, frame: Frame) -> FormatError | None:
        try:
            next(in_order((frame,), self.path, self.allowed, self.reached - 1))
        except FormatError as problem:
            return problem
        return None


def _is_intact(frame: Frame) -> bool:
    """Return whether the offsets of a frame are those that were written, as far as its checksum covers them."""
    with suppress(UnreadableError):
        return checksum_is_valid(frame)
    return False


def _zeros(tail: Tail) -> str | None:
    """Return the error text for trailing zeros, which Kafka's reader refuses as an entry of size 0."""
    if tail.kind is not TailKind.ZEROS or tail.size <= MAX_TRAILING_SIZE:
        return None
    return f"the log ends in {tail.size} zero bytes at position {tail.position} [SEG-LOG-005]"


def _frame_lines(frame: Frame, name: str, options: LineOptions, record_lines: RecordLines) -> Iterator[Line]:
    line = batch_line(name, frame.position, frame.header)
    try:
        batch = _decoded(frame, Location(name, frame.position), options)
    except FormatError as problem:
        yield _damaged(line, frame, problem)
        return
    if batch is None:
        yield line
        return
    line["baseOffset"] = batch.base_offset
    if not options.overlaps(batch.base_offset, batch.next_offset):
        return
    try:
        records = record_lines.of(batch)
        first = [*islice(records, 1)] if options.has_times else []
        if options.has_times and not first:
            return
        yield line
        if options.records:
            yield from chain(first, records)
    except FormatError as problem:  # in a batch of very many records, only some are checked before the first is yielded
        yield _damaged(line, frame, problem)


def _decoded(frame: Frame, at: Location, options: LineOptions) -> StreamedBatch | None:
    if options.records or options.has_times:
        return stream_frame(frame, at=at, limit=options.limit, to_offset=options.to_offset)
    verify_checksum(frame, at)
    return None


def _damaged(line: Line, frame: Frame, problem: FormatError) -> Line:
    """Return the line of a batch whose records cannot be read."""
    if isinstance(problem, RefusedError):
        return line | {"refused": str(problem)}
    if isinstance(problem, UnreadableError):
        return line | {"isValid": None, "invalid": str(problem)}
    damaged = line | {"isValid": checksum_is_valid(frame), "invalid": str(problem)}
    if frame.header.magic < 2:  # noqa: PLR2004 - magic numbers are what they are
        del damaged["baseOffset"]
    return damaged


def codec_name(codec_id: int) -> str:
    """Return ``none``, ``gzip``, ..., or ``undefined-5`` for an unknown id."""
    try:
        return CompressionCodec(codec_id).label
    except ValueError:
        return f"undefined-{codec_id}"


def batch_line(name: str, position: int, header: BatchHeader) -> Line:
    """Return the line of a batch with this header, as a valid batch."""
    return {
        "type": "batch",
        "file": name,
        "position": position,
        "sizeInBytes": header.size_in_bytes,
        "magic": header.magic,
        "baseOffset": header.base_offset,
        "lastOffset": header.last_offset,
        "nextOffset": header.next_offset,
        "crc": header.crc,
        "codec": codec_name(header.codec_id),
        "timestampType": header.timestamp_type.value,
        "baseTimestamp": header.base_timestamp_ms,
        "maxTimestamp": header.max_timestamp_ms,
        "deleteHorizonMs": header.delete_horizon_ms,
        "recordsCount": header.records_count,
        "producerId": header.producer_id,
        "producerEpoch": header.producer_epoch,
        "baseSequence": header.base_sequence,
        "lastSequence": header.last_sequence,
        "isTransactional": header.is_transactional,
        "isControl": header.is_control,
        "partitionLeaderEpoch": header.partition_leader_epoch,
        "isValid": True,
    }


# -- records of Kafka's own topics, decoded on request -----------------------------------------------------------------


MAX_DECODED_SIZE: Final = 16 * 2**20
"""Maximum bytes of key and value together: many times more than in records that brokers write into these topics."""


def topic_of(source: Source) -> str:
    """Return the topic of a file, by the name of its directory, or by its own name for a metadata snapshot."""
    if FileKind.METADATA_SNAPSHOT.value in source.path.name:
        return METADATA_TOPIC
    topic = directory_topic(source)
    return METADATA_TOPIC if topic in METADATA_TOPICS else topic


def directory_topic(source: Source) -> str:
    """Return the topic in the name of a file's directory; empty if it is not the name of a partition directory."""
    try:
        return parse_partition_directory(source.directory).topic
    except FormatError:
        return ""


def application_decoder(topic: str) -> ApplicationDecoder:
    """Return the decoder for key and value of a topic's records; it returns None if the topic is not one of Kafka's."""
    from seglog_format.codec.coordinator_records import decode_application_record  # noqa: PLC0415 - loads declarations

    def decoded(key: bytes | None, value: bytes | None) -> dict[str, object] | None:
        if len(key or b"") + len(value or b"") > MAX_DECODED_SIZE:
            return {"error": f"key and value: expected at most {MAX_DECODED_SIZE} bytes"}
        return decode_application_record(topic, key, value)

    return decoded


# -- lines of the records of one batch ---------------------------------------------------------------------------------


class RecordLines:
    """Converts the decoded batches of one file to lines."""

    def __init__(self, source: Source, options: LineOptions) -> None:
        self.name = source.name
        self.options = options
        self.write = byte_writer(options)
        is_early = directory_topic(source) == EARLY_METADATA_TOPIC
        self.decode_control = decode_early_control_record if is_early else decode_control_record
        self.decode = application_decoder(options.decode_as or topic_of(source)) if options.decode else None

    def of(self, batch: RecordBatch | StreamedBatch) -> Iterator[Line]:
        """Yield the lines of a batch's records that are within the requested offsets."""
        header, position = batch.header, batch.position
        for record in filter(self.options.accepts, batch.records) if self.options.is_window else batch.records:
            yield self.line(record, header, position)

    def line(self, record: Record | Message, header: BatchHeader, position: int) -> Line:
        """Return the line of one record of the batch with this header and position."""
        line: Line = {
            "type": "record",
            "file": self.name,
            "position": position,
            "offset": record.offset,
            "timestamp": record.timestamp_ms,
            "key": self.write(record.key),
            "value": self.write(record.value),
        }
        if record.headers:
            line["headers"] = self._headers(record.headers)
        if isinstance(record, Message):
            line |= {"innerMagic": record.magic, "crc": record.crc, "isValid": record.is_valid}
        if header.producer_id != NO_PRODUCER_ID:
            line["sequence"] = record.sequence
        if header.is_control:
            line |= self._control(record, position)
        elif self.decode is not None:
            line["decoded"] = self.decode(record.key, record.value)
        return line | _raw(record) if self.options.raw else line

    def _headers(self, headers: Sequence[RecordHeader]) -> object:
        def pairs() -> Iterator[list[object]]:
            return ([self.write(pair.key), self.write(pair.value)] for pair in headers)

        return list_of(pairs, len(headers), self.options.long_over)

    def _control(self, record: Record | Message, position: int) -> Line:
        try:
            control = self.decode_control(record.key, record.value, Location(self.name, position))
        except FormatError as problem:
            return {"control": None, "invalid": str(problem)}
        line: Line = {"control": control.label}
        if "coordinatorEpoch" in control.fields:
            line["coordinatorEpoch"] = control.fields["coordinatorEpoch"]
        if self.options.decode:
            line["decoded"] = {"type": control.label, "version": control.version, **control.fields}
        return line


def _raw(record: Record | Message) -> Line:
    """Return values as stored, for the fields that are shown converted."""
    if isinstance(record, Message):
        return {"timestampDelta": None, "offsetDelta": None, "attributes": record.attributes}
    return {
        "timestampDelta": record.timestamp_delta,
        "offsetDelta": record.offset_delta,
        "attributes": record.attributes,
    }


"""Maximum bytes of a file of unknown kind whose content is shown."""


def file_line(source: Source, data: Readable) -> Line:
    """Return the line with size and SHA-256 of a file, or with the error if the disk refuses to read it."""
    stored, position, digest = source_of(data), 0, hashlib.sha256()
    line: Line = {"type": "file", "file": source.name, "bytes": stored.size, "sha256": None}
    while position < stored.size:
        try:
            start, known = stored.window(position)
        except UnreadableError as problem:
            return line | {"error": str(problem)}
        digest.update(known[position - start :])
        position = start + len(known)
    return line | {"sha256": digest.hexdigest()}


def offset_index_lines(source: Source, data: Readable, long_over: int | None = None) -> Iterator[Line]:
    """Yield all entries before the trailing zeros, whether or not a reader would use them."""
    index = OffsetIndex(source_of(data, source.name), source.base_offset)
    yield _index_line("offsetIndex", source, index, long_over, lambda entry: [entry.offset, entry.position])


def time_index_lines(source: Source, data: Readable, long_over: int | None = None) -> Iterator[Line]:
    """Yield all entries before the trailing zeros, whether or not a reader would use them."""
    index = TimeIndex(source_of(data, source.name), source.base_offset)
    yield _index_line("timeIndex", source, index, long_over, lambda entry: [entry.timestamp_ms, entry.offset])


def _index_line(
    kind: str,
    source: Source,
    index: OffsetIndex | TimeIndex,
    long_over: int | None,
    numbers: Callable[[Any], list[int]],
) -> Line:
    line: Line = {
        "type": kind,
        "file": source.name,
        "fileBytes": index.file_size,
        "entryCount": index.slot_count,
        "trailingZeroEntries": index.trailing_zero_count,
    }
    entries = index.raw_entries()
    try:
        refuse_beyond(MAX_WHOLE_SIZE, len(entries) * index.file_size // max(1, index.slot_count), source.name)
    except FormatError as problem:
        return line | {"entries": [], "error": str(problem)}
    return line | {"entries": list_of(lambda: map(numbers, entries), len(entries), long_over)}


def transaction_index_lines(source: Source, data: Readable, _long_over: int | None = None) -> Iterator[Line]:
    """Yield aborted transactions, or the error of an unreadable file."""
    line: Line = {"type": "transactionIndex", "file": source.name}
    try:
        index = TransactionIndex.from_source(source_of(data), source.base_offset, source.name)
    except FormatError as problem:
        yield line | {"aborted": [], "error": str(problem)}
    else:
        yield line | {"aborted": [_aborted(entry) for entry in index.entries]}


def _aborted(entry: AbortedTxn) -> Line:
    return {
        "version": entry.version,
        "producerId": entry.producer_id,
        "firstOffset": entry.first_offset,
        "lastOffset": entry.last_offset,
        "lastStableOffset": entry.last_stable_offset,
    }


def producer_snapshot_lines(source: Source, data: Readable, _long_over: int | None = None) -> Iterator[Line]:
    """Yield producers in stored order, or the error of an unreadable file."""
    line: Line = {"type": "producerSnapshot", "file": source.name}
    try:
        snapshot = ProducerSnapshot.from_source(source_of(data), source.name)
    except FormatError as problem:
        yield line | {"error": str(problem)}
    else:
        yield line | {"producers": [_producer(entry) for entry in snapshot.producers]}


def _producer(entry: ProducerStateEntry) -> Line:
    return {
        "producerId": entry.producer_id,
        "producerEpoch": entry.producer_epoch,
        "coordinatorEpoch": entry.coordinator_epoch,
        "lastTimestamp": entry.timestamp_ms,
        "currentTxnFirstOffset": None if entry.current_txn_first_offset < 0 else entry.current_txn_first_offset,
        "batches": [] if entry.last_offset < 0 else [_last_batch(entry)],
    }


def _last_batch(entry: ProducerStateEntry) -> Line:
    return {
        "lastSequence": entry.last_sequence,
        "lastOffset": entry.last_offset,
        "offsetDelta": entry.offset_delta,
        "timestamp": entry.timestamp_ms,
    }


def text_lines(source: Source, data: Readable, _long_over: int | None = None) -> Iterator[Line]:
    """Yield the content of a small UTF-8 text file; nothing for other files."""
    stored = source_of(data)
    refuse_whole(stored.size, source.name)
    if stored.size > max_text_size(source.name):
        return
    try:
        text = bytes(stored.view(0, stored.size)).decode()
    except UnicodeDecodeError:
        return
    if "\0" not in text:
        yield {"type": "text", "file": source.name, "text": text}


SIDE_FILE_LINES: Final[dict[SourceKind, Callable[[Source, Readable, int | None], Iterator[Line]]]] = {
    SourceKind.OFFSET_INDEX: offset_index_lines,
    SourceKind.TIME_INDEX: time_index_lines,
    SourceKind.TRANSACTION_INDEX: transaction_index_lines,
    SourceKind.PRODUCER_SNAPSHOT: producer_snapshot_lines,
    SourceKind.OTHER: text_lines,
}

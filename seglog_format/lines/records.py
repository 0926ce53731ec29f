"""Lines of the records of one batch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seglog_format.codec.control_record import decode_control_record, decode_early_control_record
from seglog_format.codec.coordinator_records import decode_application_record
from seglog_format.errors import FormatError, Location
from seglog_format.lines.values import byte_writer, list_of
from seglog_format.model import NO_PRODUCER_ID
from seglog_format.names import (
    EARLY_METADATA_TOPIC,
    METADATA_TOPIC,
    METADATA_TOPICS,
    FileKind,
    parse_partition_directory,
)
from seglog_format.record_model import Message

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from seglog_format.codec.record_stream import StreamedBatch
    from seglog_format.lines.options import Line, LineOptions
    from seglog_format.lines.sources import Source
    from seglog_format.model import BatchHeader
    from seglog_format.record_model import Record, RecordBatch, RecordHeader

    ApplicationDecoder = Callable[[bytes | None, bytes | None], dict[str, object] | None]


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
        wanted = self.options.overlaps
        for record in batch.records:
            if wanted(record.offset, record.offset + 1):
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

"""Search for records by the bytes of their keys, values and headers, by offset and by time."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final

from seglog_format.codec.decode import verify_checksum
from seglog_format.codec.framing import MAX_TRAILING_SIZE, frame_at
from seglog_format.codec.record_stream import stream_frame
from seglog_format.errors import FormatError, Location, UsageError
from seglog_format.lines.logs import WantedEntries
from seglog_format.lines.options import opened
from seglog_format.lines.records import RecordLines
from seglog_format.model import Frame, TailKind

if TYPE_CHECKING:
    import re
    from collections.abc import Iterable, Iterator

    from seglog_format.lines.options import LineOptions
    from seglog_format.lines.sources import Source
    from seglog_format.model import Tail
    from seglog_format.record_model import Message, Record
    from seglog_format.storage.byte_source import Buffer

FIELDS: Final = ("key", "value", "header")
"""The parts of a record that are searched; a header by its key and by its value."""
MAX_SEARCHED_SIZE: Final = 2**26
"""Maximum size of a batch that is searched as a whole before it is decoded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a record has to hold.

    Attributes:
        pattern: bytes, or an expression for bytes; a field that is null never holds it.
        fields: some of `FIELDS`.
        since_ms: the least timestamp; None for any.
        until_ms: the timestamp that the record is older than; None for any.
    """

    pattern: bytes | re.Pattern[bytes]
    fields: tuple[str, ...] = FIELDS
    since_ms: int | None = None
    until_ms: int | None = None

    def accepts(self, record: Record | Message) -> bool:
        """Return whether a record is wanted."""
        if self.since_ms is not None and record.timestamp_ms < self.since_ms:
            return False
        if self.until_ms is not None and record.timestamp_ms >= self.until_ms:
            return False
        return any(self._is_in(each) for each in self._searched(record) if each is not None)

    def may_be_in(self, frame: Frame) -> bool:
        """Return False if the bytes of a batch show that it holds no wanted record.

        A text that is in an uncompressed record is also in the bytes of its batch. An expression can
        depend on where a field begins and ends, which only decoding shows.
        """
        is_readable = not frame.header.codec_id and frame.header.size_in_bytes <= MAX_SEARCHED_SIZE
        return not (is_readable and isinstance(self.pattern, bytes)) or self.pattern in bytes(frame.data)

    def _is_in(self, field: bytes) -> bool:
        return self.pattern in field if isinstance(self.pattern, bytes) else bool(self.pattern.search(field))

    def _searched(self, record: Record | Message) -> Iterator[bytes | None]:
        if "key" in self.fields:
            yield record.key
        if "value" in self.fields:
            yield record.value
        if "header" in self.fields:
            for header in record.headers:
                yield header.key
                yield header.value


def found_in(source: Source, wanted: Wanted, options: LineOptions) -> Iterator[dict[str, Any] | FormatError | int]:
    """Yield the wanted records of a log file as the lines that `lines_of` makes.

    Between them are an error for each part that cannot be read, and the next offset after each batch. Control records
    are left out; records of aborted transactions are not.

    Args:
        source: a log file.
        wanted: what to search for.
        options: the wanted offsets, the limit of decompression and the form of the lines.

    Raises:
        FormatError: the file cannot be opened, or is larger than Kafka allows.
        UsageError: the file does not exist.
    """
    lines = RecordLines(source, options)
    with opened(source) as content:
        frames = WantedEntries(source, content, options)
        try:
            for frame in frames:
                yield from _found_in_frame(frame, source.name, wanted, options, lines)
                yield frame.header.next_offset
        except FormatError as error:
            yield error
            return
        yield frames.reached
        if _is_unread(frames.tail):
            at = Location(source.name, frames.tail.position)
            found = f"{frames.tail.size} bytes: {frames.tail.kind.value}"
            yield FormatError(at, frames.tail.requirement, expected="a whole batch", found=found)


def _is_unread(tail: Tail) -> bool:
    """Return whether the bytes after the last batch may have held records; zeros up to a limit never did."""
    return bool(tail.size) and not (tail.kind is TailKind.ZEROS and tail.size <= MAX_TRAILING_SIZE)


def _found_in_frame(
    frame: Frame, name: str, wanted: Wanted, options: LineOptions, lines: RecordLines
) -> Iterator[dict[str, Any] | FormatError]:
    header, at = frame.header, Location(name, frame.position)
    base_offset = header.base_offset
    if header.is_control or (base_offset is not None and not options.overlaps(base_offset, header.next_offset)):
        return
    try:
        if not wanted.may_be_in(frame):
            verify_checksum(frame, at)
            return
        batch = stream_frame(frame, at=at, limit=options.limit, to_offset=options.to_offset)
        for record in batch.records:
            if options.overlaps(record.offset, record.offset + 1) and wanted.accepts(record):
                yield lines.line(record, header, frame.position)
    except FormatError as error:
        yield error


def batches_at(positions: Iterable[tuple[Source, int]]) -> Iterator[Buffer]:
    """Yield the bytes of batches as stored, of which one segment can be made.

    Args:
        positions: file and position of each batch; those of one file follow each other.

    Raises:
        UsageError: the offsets of a batch are not above those of the batch before it.
        FormatError: a file cannot be read any more.
    """
    reached = -1
    for source, of_source in groupby(positions, key=itemgetter(0)):
        with opened(source) as content:
            for _, position in of_source:
                frame = frame_at(content, position, content.size, source.name)
                assert isinstance(frame, Frame)
                last = frame.header.last_offset
                first = last if frame.header.base_offset is None else frame.header.base_offset
                if first <= reached:
                    msg = (
                        f"{source.name}: offset {first} comes after {reached}: give the logs of one partition in order"
                    )
                    raise UsageError(msg)
                reached = last
                yield frame.data

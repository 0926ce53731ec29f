"""Search for records by the bytes of their keys, values and headers, by offset and by time."""

from __future__ import annotations

import json
from itertools import groupby
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from seglog_format.codec.checksum import crc32c
from seglog_format.codec.decoders import DeclaredBytes
from seglog_format.codec.framing import MAX_TRAILING_SIZE, frame_at
from seglog_format.codec.record_stream import stream_frame
from seglog_format.errors import FormatError, Location, UnreadableError, UsageError
from seglog_format.lines.logs import RecordLines, WantedEntries
from seglog_format.lines.options import opened
from seglog_format.model import CODEC_MASK, ENTRY_PREFIX_SIZE, Frame, TailKind
from seglog_format.schema.fixed_fields import (
    ATTRIBUTES_POSITION,
    RECORD_BATCH_HEADER,
    RECORD_BATCH_HEADER_SIZE,
    RECORD_BATCH_MAGIC,
)

if TYPE_CHECKING:
    import re
    from collections.abc import Iterable, Iterator

    from seglog_format.lines.options import LineOptions
    from seglog_format.lines.sources import Source
    from seglog_format.log.entry_table import Overlap
    from seglog_format.log.search import Wanted
    from seglog_format.model import Tail
    from seglog_format.storage.byte_source import Buffer, SourceFile

PIECE_SIZE: Final = 2**19
"""Bytes of uncompressed batches that are searched at once."""


class FieldPath(NamedTuple):
    """A place in a decoded record, or in a value that is JSON, and the text that has to be all that is there.

    Attributes:
        names: of fields, or numbers in lists, from the outside in.
        text: a string, or the JSON of anything else.
    """

    names: tuple[str, ...]
    text: str

    def is_in(self, decoded: object, value: bytes | None) -> bool:
        """Return whether the text is at this place."""
        try:
            found: Any = json.loads(value or b"") if decoded is None else decoded
            for name in self.names:
                found = found[int(name)] if isinstance(found, list) else found[name]
        except (KeyError, IndexError, TypeError, ValueError, RecursionError):
            return False
        return self.text == (found if isinstance(found, str) else json.dumps(found, ensure_ascii=False))


def found_in(
    source: Source, wanted: Wanted, options: LineOptions, at: FieldPath | None = None
) -> Iterator[dict[str, Any] | FormatError | Overlap | int]:
    """Yield the wanted records of a log file as the lines that `lines_of` makes.

    Between them are an error for each part that cannot be read, an overlap before each batch that has one, and the next
    offset after each batch. Control records
    are left out; records of aborted transactions are not.

    Args:
        source: a log file.
        wanted: what to search for.
        options: the wanted offsets, the limit of decompression and the form of the lines.
        at: where a text has to be, besides.

    Raises:
        FormatError: the file cannot be opened, or is larger than Kafka allows.
        UsageError: the file does not exist.
    """
    lines = RecordLines(source, options)
    with opened(source) as content:
        frames = WantedEntries(source, content, options)
        try:
            while True:
                has_offsets = options.from_offset is not None or options.to_offset is not None
                if not has_offsets and (passed := _passed_over(content, frames, wanted.pattern)):
                    frames.position, frames.reached = passed
                    yield frames.reached
                frame = next(iter(frames), None)
                if frame is None:
                    break
                if frames.disorder is not None:
                    yield frames.disorder
                elif frames.overlap is not None:
                    yield frames.overlap
                yield from _found_in_frame(frame, source.name, wanted, options, lines, at)
                yield frame.header.next_offset
                frames.position = frame.end
        except FormatError as error:
            yield error
            return
        yield frames.reached
        if _is_unread(frames.tail):
            where = Location(source.name, frames.tail.position)
            found = f"{frames.tail.size} bytes: {frames.tail.kind.value}"
            yield FormatError(where, frames.tail.requirement, expected="a whole batch", found=found)


def _passed_over(
    content: SourceFile, frames: WantedEntries, pattern: bytes | re.Pattern[bytes]
) -> tuple[int, int] | None:
    """Return the position after uncompressed batches without a text, and their next offset; None if there are none.

    Many batches are searched at once. Whatever else is there is left to the caller, such as a wrong checksum, or
    offsets out of order.
    """
    if not isinstance(pattern, bytes) or not pattern or isinstance(content, DeclaredBytes):
        return None
    position, reached, is_quiet = frames.position, frames.reached, True
    while is_quiet and content.size - position >= RECORD_BATCH_HEADER_SIZE:
        try:
            window = content.window(position, min(PIECE_SIZE, content.size - position))
        except UnreadableError:
            break
        piece = window.data[position - window.start :][:PIECE_SIZE]
        if not _is_plain(*RECORD_BATCH_HEADER.unpack_from(piece)[3:6]):
            break
        data, cursor = bytes(piece), 0
        hit = data.find(pattern)
        end = len(data) if hit < 0 else hit
        while cursor + RECORD_BATCH_HEADER_SIZE <= end:
            base_offset, length, _, magic, crc, attributes, delta, *_ = RECORD_BATCH_HEADER.unpack_from(data, cursor)
            following = cursor + ENTRY_PREFIX_SIZE + length
            if not (_is_plain(magic, crc, attributes) and cursor + RECORD_BATCH_HEADER_SIZE <= following <= end):
                break
            if crc32c(data[cursor + ATTRIBUTES_POSITION : following]) != crc:
                break
            if not reached <= base_offset <= base_offset + delta <= frames.allowed.last:
                break
            cursor, reached = following, base_offset + delta + 1
        position += cursor
        is_quiet = bool(cursor) and hit < 0
    return None if position == frames.position else (position, reached)


def _is_plain(magic: int, _crc: int, attributes: int) -> bool:
    return magic == RECORD_BATCH_MAGIC and not attributes & CODEC_MASK


def _is_unread(tail: Tail) -> bool:
    """Return whether the bytes after the last batch may have held records; zeros up to a limit never did."""
    return bool(tail.size) and not (tail.kind is TailKind.ZEROS and tail.size <= MAX_TRAILING_SIZE)


def _found_in_frame(
    frame: Frame, name: str, wanted: Wanted, options: LineOptions, lines: RecordLines, field_path: FieldPath | None
) -> Iterator[dict[str, Any] | FormatError]:
    header, at = frame.header, Location(name, frame.position)
    try:
        if not wanted.may_be_in(frame, at, options.limit):
            return
        batch = stream_frame(frame, at=at, limit=options.limit, to_offset=options.to_offset)
        for record in batch.records:
            if options.accepts(record) and wanted.accepts(record):
                line = lines.line(record, header, frame.position)
                if field_path is None or field_path.is_in(line.get("decoded"), record.value):
                    yield line
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

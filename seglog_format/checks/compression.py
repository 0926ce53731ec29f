"""Checks of chapter 34: bytes that decompression ignores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seglog_format.checks.finding import Problem, checks
from seglog_format.checks.subjects import Batch
from seglog_format.codec.compression import trailing_size
from seglog_format.codec.decoders import containers_of
from seglog_format.model import CompressionCodec
from seglog_format.schema.fixed_fields import BYTES_LENGTH, MESSAGE_HEADERS, RECORD_BATCH_HEADER_SIZE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_format.checks.subjects import Messages
    from seglog_format.errors import Location


@dataclass(frozen=True, slots=True)
class Compressed:
    """The compressed part of an intact entry.

    Attributes:
        at: location of its start.
        codec: of the entry; `CompressionCodec.NONE` if it is not compressed.
        trailing_size: number of bytes at its end that a reader ignores.
    """

    at: Location
    codec: CompressionCodec
    trailing_size: int

    def problem(self) -> Problem:
        """Return the problem that bytes follow the compressed data."""
        return Problem(self.at, "the end of the compressed data", f"{self.trailing_size} more bytes")


def compressed_part(subject: Batch | Messages, limit: int) -> Compressed:
    """Return the compressed part of an entry that was decoded within this limit."""
    codec_id, magic = subject.header.codec_id, subject.header.magic
    start, end = _records(subject) if isinstance(subject, Batch) else _value(subject)
    at = subject.at.at("records" if isinstance(subject, Batch) else "value", start, end - start)
    if codec_id == CompressionCodec.NONE or start == end:
        return Compressed(at, CompressionCodec.NONE, 0)
    headers = containers_of(subject.frame)
    size = trailing_size(codec_id, subject.frame.data[start:end], magic=magic, at=at, limit=limit, headers=headers)
    return Compressed(at.at(at.field, end - start - size, size), CompressionCodec(codec_id), size)


def _records(batch: Batch) -> tuple[int, int]:
    return RECORD_BATCH_HEADER_SIZE, len(batch.frame.data)


def _value(messages: Messages) -> tuple[int, int]:
    """Return start and end of the value of the outermost message."""
    lengths = 2 * BYTES_LENGTH.size
    start = MESSAGE_HEADERS[messages.header.magic].size + lengths + len(messages.contents.key or b"")
    return start, len(messages.frame.data) - messages.contents.trailing_size


@checks("SEG-COD-011")
def after_lz4_frame(compressed: Compressed) -> Iterator[Problem]:
    """Report bytes after the lz4 frame, perhaps a second one, which is never read."""
    if compressed.codec is CompressionCodec.LZ4 and compressed.trailing_size:
        yield compressed.problem()


@checks("SEG-COD-018")
def after_gzip_members(compressed: Compressed) -> Iterator[Problem]:
    """Report bytes that start no further gzip member."""
    if compressed.codec is CompressionCodec.GZIP and compressed.trailing_size:
        yield compressed.problem()


@checks("SEG-COD-019")
def after_snappy_blocks(compressed: Compressed) -> Iterator[Problem]:
    """Report bytes too few for the length of a snappy block."""
    if compressed.codec is CompressionCodec.SNAPPY and compressed.trailing_size:
        yield compressed.problem()

"""Frames of the Kafka protocol: a size, a header, a message. Log bytes are put between without being read."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from seglog_format.serve.schemas import (
    MARK,
    UnreadableRequestError,
    read_entity,
    request_type,
    response_type,
    write_entity,
)
from seglog_format.serve.slices import Chunk, FileSlice, size_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SIZE: Final = struct.Struct(">i")
KEY_AND_VERSION: Final = struct.Struct(">hhi")
"""API key, version and correlation id: the same in the header of every request."""

MIN_REQUEST_SIZE: Final = KEY_AND_VERSION.size
VARINT_BITS: Final = 7


@dataclass(frozen=True, slots=True)
class Request:
    """A request, decoded.

    Attributes:
        api_key: which API.
        version: of its messages.
        correlation_id: goes back with the answer.
        client_id: what the client calls itself; may be empty.
        body: the message; its fields are those of the version.
    """

    api_key: int
    version: int
    correlation_id: int
    client_id: str
    body: Any


def peek(frame: bytes) -> tuple[int, int, int]:
    """API key, version and correlation id of a request.

    Raises:
        UnreadableRequestError: it is too short for them.
    """
    if len(frame) < MIN_REQUEST_SIZE:
        msg = f"a request of {len(frame)} bytes"
        raise UnreadableRequestError(msg)
    key, version, correlation_id = KEY_AND_VERSION.unpack_from(frame)
    return key, version, correlation_id


def decode_request(frame: bytes) -> Request:
    """Decode a request of a known API and version; ``frame`` is what follows its size.

    Raises:
        UnreadableRequestError: the bytes are no such request.
    """
    key, version, correlation_id = peek(frame)
    kind = request_type(key, version)
    header, size = read_entity(kind.__header_schema__, frame, 0)
    body, _ = read_entity(kind, frame, size)
    return Request(key, version, correlation_id, header.client_id or "", body)


def encode_response(api_key: int, version: int, correlation_id: int, values: Mapping[str, object]) -> list[Chunk]:
    """Encode an answer, size and header included.

    Args:
        api_key: of the request.
        version: of the request.
        correlation_id: of the request.
        values: the fields; log bytes are given as `FileSlice`.
    """
    kind = response_type(api_key, version)
    slices: list[FileSlice] = []
    header = write_entity(kind.__header_schema__, {"correlation_id": correlation_id}, slices)
    body = header + write_entity(kind, values, slices)
    if not slices:
        return [SIZE.pack(len(body)) + body]
    chunks = list(_interleaved(body, slices, is_flexible=kind.__flexible__))
    first = chunks[0]
    assert isinstance(first, bytes)
    chunks[0] = SIZE.pack(sum(map(size_of, chunks))) + first
    return chunks


def _interleaved(body: bytes, slices: list[FileSlice], *, is_flexible: bool) -> Iterator[Chunk]:
    """The answer with log bytes in place of their marks, each with its own size before it."""
    prefix_of = _compact_size if is_flexible else SIZE.pack
    mark_prefix_size = len(prefix_of(len(MARK)))
    *before, rest = body.split(MARK)
    assert len(before) == len(slices)
    for part, piece in zip(before, slices, strict=True):
        yield part[: len(part) - mark_prefix_size] + prefix_of(piece.size)
        yield piece
    yield rest


def _compact_size(size: int) -> bytes:
    """A size as flexible versions write it: one more, seven bits in each byte."""
    left, written = size + 1, bytearray()
    while left >> VARINT_BITS:
        written.append((left & 0x7F) | 0x80)
        left >>= VARINT_BITS
    written.append(left)
    return bytes(written)

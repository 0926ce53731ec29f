"""Frames of the Kafka protocol: a size, a header, a message. Log bytes are inserted without being read."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from seglog_format.serve.limits import MAX_REQUEST_ITEMS
from seglog_format.serve.schemas import (
    MARK,
    UnreadableRequestError,
    read_counted,
    request_type,
    response_type,
    write_entity,
)
from seglog_format.serve.slices import Chunk, FileSlice, size_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

SIZE: Final = struct.Struct(">i")
SIZE_AND_CORRELATION_ID: Final = struct.Struct(">ii")
"""The start of every answer."""
CORRELATION_ID_SIZE: Final = SIZE_AND_CORRELATION_ID.size - SIZE.size

KEY_AND_VERSION: Final = struct.Struct(">hhi")
"""API key, version and correlation id: the same in the header of every request."""

MIN_REQUEST_SIZE: Final = KEY_AND_VERSION.size
VARINT_BITS: Final = 7


class Request(NamedTuple):
    """A request, decoded.

    Attributes:
        api_key: number of the API.
        version: of its messages.
        correlation_id: number that the answer repeats.
        client_id: name that the client gives itself; may be empty.
        body: the message; its fields are those of the version.
        items: items of all its arrays together.
    """

    api_key: int
    version: int
    correlation_id: int
    client_id: str
    body: Any
    items: int


def peek(frame: bytes) -> tuple[int, int, int]:
    """Return API key, version and correlation id of a request.

    Raises:
        UnreadableRequestError: it is too short.
    """
    if len(frame) < MIN_REQUEST_SIZE:
        msg = f"a request of {len(frame)} bytes"
        raise UnreadableRequestError(msg)
    key, version, correlation_id = KEY_AND_VERSION.unpack_from(frame)
    return key, version, correlation_id


def decode_request(
    frame: bytes, max_items: int = MAX_REQUEST_ITEMS, start: tuple[int, int, int] | None = None
) -> Request:
    """Decode a request of a known API and version.

    Args:
        frame: the bytes after its size.
        max_items: maximum number of items of all its arrays.
        start: the result of `peek`, if it was called before.

    Raises:
        UnreadableRequestError: the bytes are no such request, or its arrays have more items than that.
    """
    key, version, correlation_id = start or peek(frame)
    kind = request_type(key, version)
    header, size, _ = read_counted(kind.__header_schema__, frame, 0)
    body, _, items = read_counted(kind, frame, size, max_items)
    return Request(key, version, correlation_id, header.client_id or "", body, items)


class Envelope(NamedTuple):
    """An encoded answer with gaps where log bytes go. Requests of one version may share it.

    Attributes:
        head: bytes after the correlation id, up to the first gap.
        rest: bytes after each gap.
        is_flexible: the size before log bytes is a compact one.
    """

    head: bytes
    rest: tuple[bytes, ...]
    is_flexible: bool

    def filled(self, correlation_id: int, records: Sequence[Chunk]) -> list[Chunk]:
        """Return the answer to one request, size and header included.

        Args:
            correlation_id: of the request.
            records: log bytes for each gap.
        """
        prefix_of = _compact_size if self.is_flexible else SIZE.pack
        sizes = [size_of(piece) for piece in records]
        prefixes = [prefix_of(size) for size in sizes]
        size = CORRELATION_ID_SIZE + len(self.head) + sum(sizes) + sum(map(len, prefixes)) + sum(map(len, self.rest))
        chunks = list[Chunk]()
        run = [SIZE_AND_CORRELATION_ID.pack(size, correlation_id), self.head]
        for prefix, piece, rest in zip(prefixes, records, self.rest, strict=True):
            if isinstance(piece, FileSlice):
                chunks += b"".join((*run, prefix)), piece
                run = [rest]
            else:
                run += prefix, piece, rest
        last = b"".join(run)
        return [*chunks, last] if last else chunks


def envelope(api_key: int, version: int, values: Mapping[str, object]) -> Envelope:
    """Encode an answer.

    Args:
        api_key: of the request.
        version: of the request.
        values: the fields, with `GAP` for log bytes that are filled in.
    """
    kind = response_type(api_key, version)
    header = write_entity(kind.__header_schema__, {"correlation_id": 0})[CORRELATION_ID_SIZE:]
    *before_gaps, end = write_entity(kind, values).split(MARK)
    mark_prefix_size = len(_compact_size(len(MARK)) if kind.__flexible__ else SIZE.pack(len(MARK)))
    head, *rest = [*(each[:-mark_prefix_size] for each in before_gaps), end]
    return Envelope(header + head, tuple(rest), kind.__flexible__)


def encode_response(api_key: int, version: int, correlation_id: int, values: Mapping[str, object]) -> list[Chunk]:
    """Encode an answer without gaps, size and header included.

    Args:
        api_key: of the request.
        version: of the request.
        correlation_id: of the request.
        values: the fields.
    """
    return envelope(api_key, version, values).filled(correlation_id, ())


def _compact_size(size: int) -> bytes:
    """Encode a size as flexible versions do: plus one, as an unsigned varint."""
    left, written = size + 1, bytearray()
    while left >> VARINT_BITS:
        written.append((left & 0x7F) | 0x80)
        left >>= VARINT_BITS
    written.append(left)
    return bytes(written)

"""Messages of the Kafka protocol, as the library `kio` describes them, and the frames around them.

Log bytes are inserted without being read.
"""

from __future__ import annotations

import io
import os
import struct
from dataclasses import MISSING, fields, is_dataclass
from datetime import timedelta
from functools import cache, partial
from itertools import groupby
from struct import Struct
from types import NoneType
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, get_args, get_origin

from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer

from seglog_format.serve.limits import MAX_REQUEST_ITEMS
from seglog_format.serve.slices import Chunk, FileSlice, size_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from kio.static.protocol import RequestPayload, ResponsePayload


# -- encoding of a message's field, by its type annotation -------------------------------------------------------------


def message_in(annotation: Any) -> type[Any] | None:
    """Return the message class of a field or of its items; None for a plain value."""
    if isinstance(annotation, type) and is_dataclass(annotation):
        return annotation
    return next((found for part in get_args(annotation) if (found := message_in(part)) is not None), None)


def is_array(annotation: Any) -> bool:
    """Return whether a field is an array."""
    return get_origin(annotation) is tuple or any(get_origin(part) is tuple for part in get_args(annotation))


def is_nullable(annotation: Any) -> bool:
    """Return whether a field may be null."""
    return NoneType in get_args(annotation)


# -- checks of a request before it is decoded: no count and no length may exceed the bytes that follow -----------------


MAX_VARINT_SIZE: Final = 5
FIXED_SIZES: Final[Mapping[str, int]] = {
    "bool": 1,
    "int8": 1,
    "uint8": 1,
    "int16": 2,
    "uint16": 2,
    "error_code": 2,
    "int32": 4,
    "uint32": 4,
    "timedelta_i32": 4,
    "int64": 8,
    "uint64": 8,
    "float64": 8,
    "timedelta_i64": 8,
    "datetime_i64": 8,
    "uuid": 16,
}
ENTITY_MARK: Final = Struct(">b")
"""First byte, as a signed number, of a null message."""


class Walk:
    """One walk over a message.

    Attributes:
        data: the bytes.
        items: array items and tagged fields announced so far.
        max_items: the maximum.
    """

    __slots__ = ("data", "items", "max_items")

    def __init__(self, data: bytes, max_items: int) -> None:
        self.data = data
        self.items = 0
        self.max_items = max_items

    def announce(self, count: int) -> None:
        """Add `count` items.

        Raises:
            BrokenRequestError: there are too many.
        """
        self.items += count
        if self.items > self.max_items:
            msg = f"{self.items} items or more, where {self.max_items} are allowed"
            raise BrokenRequestError(msg)


Count: TypeAlias = "Callable[[bytes, int, int], tuple[int, int]]"
"""Reader of a count: takes data, position and end; returns the count, -1 for null, and the position after it."""

Step: TypeAlias = "Callable[[Walk, int, int], int]"
"""Skips one field or more: takes the walk, position and end; returns the position after them, maybe beyond the end."""


class BrokenRequestError(Exception):
    """A request ends early, or announces too many items."""


class Layout(NamedTuple):
    """The fields of a message.

    Attributes:
        steps: one for each field or run of fields, in order.
        tagged: one for each tagged field; None if the version has none.
    """

    steps: tuple[Step, ...]
    tagged: Mapping[int, Step] | None


def check_message(kind: type[Any], data: bytes, position: int, max_items: int = MAX_REQUEST_ITEMS) -> int:
    """Check that a message is whole, and return the number of items of all its arrays.

    Raises:
        BrokenRequestError: the message is not whole, or has more than ``max_items``.
    """
    walk = Walk(data, max_items)
    _within(_message(_layout(kind), walk, position, len(data)), len(data))  # type: ignore[arg-type]  # a class is a key
    return walk.items


def _within(position: int, end: int) -> int:
    if position > end:
        msg = f"{position - end} bytes are missing"
        raise BrokenRequestError(msg)
    return position


def _message(layout: Layout, walk: Walk, position: int, end: int) -> int:
    for step in layout.steps:
        position = step(walk, position, end)
    if layout.tagged is None:
        return position
    count, position = _varint(walk.data, position, end)
    if count:
        walk.announce(count)
    for _ in range(count):
        position = _tagged_field(layout.tagged, walk, position, end)
    return position


def _tagged_field(known: Mapping[int, Step], walk: Walk, position: int, end: int) -> int:
    tag, position = _varint(walk.data, position, end)
    size, position = _varint(walk.data, position, end)
    following = _within(position + size, end)
    if tag in known and known[tag](walk, position, following) != following:
        msg = f"tag {tag} is not of {size} bytes"
        raise BrokenRequestError(msg)
    return following


def _varint(data: bytes, position: int, end: int) -> tuple[int, int]:
    """Read an unsigned varint; return it and the position after it."""
    if position < end and data[position] <= 0x7F:  # noqa: PLR2004 - as below; nearly all are that short
        return data[position], position + 1
    value = 0
    for index in range(MAX_VARINT_SIZE):
        _within(position + index + 1, end)
        byte = data[position + index]
        value |= (byte & 0x7F) << 7 * index
        if byte <= 0x7F:  # noqa: PLR2004 - the highest bit is not set
            return value, position + index + 1
    msg = "a varint without an end"
    raise BrokenRequestError(msg)


def _compact(data: bytes, position: int, end: int) -> tuple[int, int]:
    """Read a compact count, which is stored plus one; return it, -1 for null, and the position after it."""
    more, following = _varint(data, position, end)
    return _checked_count(more - 1, end - following), following


def _plain(prefix: Struct) -> Count:
    read, size = prefix.unpack_from, prefix.size

    def count(data: bytes, position: int, end: int) -> tuple[int, int]:
        following = _within(position + size, end)
        (claimed,) = read(data, position)
        return _checked_count(claimed, end - following), following

    return count


def _checked_count(claimed: int, left: int) -> int:
    if claimed > left:
        msg = f"{claimed} announced, {left} bytes left"
        raise BrokenRequestError(msg)
    return claimed if claimed >= 0 else -1


SHORT: Final = _plain(Struct(">h"))
LONG: Final = _plain(Struct(">i"))
"""Reader of the count before anything but a string, where counts are not compact."""


@cache
def _layout(kind: type[Any]) -> Layout:
    plain: list[Step | int] = []
    tagged = {}
    for field in fields(kind):
        # Kafka kept the client id as it was when all other strings became compact
        is_compact = kind.__flexible__ and not (kind.__name__ == "RequestHeader" and field.name == "client_id")
        step = _step(field.type, field.metadata.get("kafka_type", ""), is_compact=is_compact)
        tag = field.metadata.get("tag")
        if tag is None:
            plain.append(step)
        else:
            tagged[tag] = _stepping(step)
    return Layout(tuple(_joined(plain)), tagged if kind.__flexible__ else None)


def _joined(steps: Iterable[Step | int]) -> Iterator[Step]:
    """Merge neighbouring steps over a known number of bytes."""
    for is_known, run in groupby(steps, lambda step: isinstance(step, int)):
        if is_known:
            yield _skip(sum(size for size in run if isinstance(size, int)))
        else:
            yield from map(_stepping, run)


def _stepping(step: Step | int) -> Step:
    return _skip(step) if isinstance(step, int) else step


def _skip(size: int) -> Step:
    return lambda _walk, position, _end: position + size


def _step(annotation: Any, kafka_type: str, *, is_compact: bool) -> Step | int:
    """Return the step over a field, or its size if that is fixed."""
    nested = message_in(annotation)
    item = _scalar(kafka_type, is_compact=is_compact) if nested is None else _nested(nested)
    if is_array(annotation):
        return _array(item, _compact if is_compact else LONG, may_be_null=is_nullable(annotation))
    return _optional(_stepping(item)) if nested is not None and is_nullable(annotation) else item


def _scalar(kafka_type: str, *, is_compact: bool) -> Step | int:
    return FIXED_SIZES.get(kafka_type) or _sized(_compact if is_compact else SHORT if kafka_type == "string" else LONG)


def _sized(count: Count) -> Step:
    def step(walk: Walk, position: int, end: int) -> int:
        size, position = count(walk.data, position, end)
        return position + max(size, 0)

    return step


def _nested(kind: type[Any]) -> Step | int:
    sizes = [_size_of(field.type, field.metadata.get("kafka_type", "")) for field in fields(kind)]
    if not kind.__flexible__ and all(sizes):
        return sum(sizes)
    return partial(_message, _layout(kind))  # type: ignore[arg-type]  # a class is a key


def _size_of(annotation: Any, kafka_type: str) -> int:
    """Return the size of a plain field of fixed size; else 0."""
    return 0 if message_in(annotation) or is_array(annotation) else FIXED_SIZES.get(kafka_type, 0)


def _array(item: Step | int, count: Count, *, may_be_null: bool) -> Step:
    def step(walk: Walk, position: int, end: int) -> int:
        items, position = count(walk.data, position, end)
        if items < 0 and not may_be_null:
            msg = "an array is null that must not be"
            raise BrokenRequestError(msg)
        if items <= 0:
            return position
        walk.announce(items)
        if isinstance(item, int):
            return position + items * item
        for _ in range(items):
            position = _within(item(walk, position, end), end)
        return position

    return step


def _optional(item: Step) -> Step:
    def step(walk: Walk, position: int, end: int) -> int:
        (mark,) = ENTITY_MARK.unpack_from(walk.data, _within(position + ENTITY_MARK.size, end) - ENTITY_MARK.size)
        return position + ENTITY_MARK.size if mark < 0 else item(walk, position + ENTITY_MARK.size, end)

    return step


# -- messages of the Kafka protocol by API key and version -------------------------------------------------------------


MARK: Final = os.urandom(16)
"""Bytes that stand for log bytes in an encoded answer; random, so no client can place them there."""

GAP: Final = object()
"""Stands for log bytes in the fields of an answer."""


class UnreadableRequestError(Exception):
    """The bytes are not a request of the API and version that their header names."""


@cache
def request_type(api_key: int, version: int) -> type[RequestPayload]:
    """Return the class of a request's fields."""
    return load_request_schema(api_key, version)


@cache
def response_type(api_key: int, version: int) -> type[ResponsePayload]:
    """Return the class of an answer's fields."""
    return load_response_schema(api_key, version)


def read_counted(
    kind: type[Any], data: bytes, position: int, max_items: int = MAX_REQUEST_ITEMS
) -> tuple[Any, int, int]:
    """Decode one message whose arrays have at most `max_items` items together.

    Returns:
        The message, its size in bytes, and how many items all its arrays have together.

    Raises:
        UnreadableRequestError: the bytes are no such message.
    """
    try:
        items = check_message(kind, data, position, max_items)
        return *entity_reader(kind)(data, position), items
    except Exception as error:  # the library raises any error for hostile bytes
        msg = f"{kind.__name__}: {error}"
        raise UnreadableRequestError(msg) from error


def write_entity(kind: type[Any], values: Mapping[str, object]) -> bytes:
    """Encode one message.

    Args:
        kind: class of the message.
        values: fields of this version, and maybe of others. For each `GAP`, `MARK` is in the result.
    """
    buffer = io.BytesIO()
    entity_writer(kind)(buffer, _build(kind, values))
    return buffer.getvalue()


Converter: TypeAlias = "Callable[[Any], object]"


class FieldPlan(NamedTuple):
    """Filler of one field of a message from a mapping."""

    name: str
    is_required: bool
    convert: Converter


def _build(kind: type[Any], values: Mapping[str, object]) -> object:
    made = {
        name: convert(values[name])
        for name, is_required, convert in _plan(kind)  # type: ignore[arg-type]  # a class can be a key
        if is_required or name in values
    }
    return kind(**made)


@cache
def _plan(kind: type[Any]) -> tuple[FieldPlan, ...]:
    return tuple(
        FieldPlan(field.name, field.default is MISSING, _converter(field.type, field.metadata.get("kafka_type", "")))
        for field in fields(kind)
    )


def _converter(annotation: Any, kafka_type: str) -> Converter:
    nested = message_in(annotation)
    if nested is not None:
        return partial(_messages if is_array(annotation) else _build, nested)
    return _as_tuple if is_array(annotation) else CONVERTERS.get(kafka_type, _as_it_is)


def _messages(kind: type[Any], values: Any) -> object:
    return None if values is None else tuple(_build(kind, each) for each in values)


def _as_it_is(value: object) -> object:
    return value


def _as_tuple(values: Any) -> object:
    return None if values is None else tuple(values)


def _milliseconds(value: int) -> object:
    return timedelta(milliseconds=value)


def _log_bytes(value: object) -> object:
    return MARK if value is GAP else value


CONVERTERS: Final[Mapping[str, Converter]] = {
    "timedelta_i32": _milliseconds,
    "timedelta_i64": _milliseconds,
    "error_code": ErrorCode,
    "records": _log_bytes,
}


# -- frames of the Kafka protocol: a size, a header, a message. Log bytes are inserted without being read --------------


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

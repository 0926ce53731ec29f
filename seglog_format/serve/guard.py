"""A look at a request before its decoder sees it: no count and no length is believed further than bytes reach.

The library that decodes requests makes room for as many items as a count claims, and ends the whole process where
there is no such room. A request of thirty bytes could ask for that. So every request is walked here first.
"""

from __future__ import annotations

from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from seglog_format.serve.annotations import is_array, is_nullable, message_in

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

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
SHORT, LONG = 2, 4
"""Bytes of a size before a string, and before anything else, where sizes are not compact."""

Step: TypeAlias = "Callable[[Cursor], None]"


class BrokenRequestError(Exception):
    """A request ends before what it announces."""


class Cursor:
    """A place in a request, which moves forward only and never beyond the end."""

    __slots__ = ("data", "end", "position")

    def __init__(self, data: bytes, position: int, end: int) -> None:
        self.data = data
        self.position = position
        self.end = end

    def skip(self, size: int) -> None:
        """Go on by some bytes."""
        if size > self.end - self.position:
            msg = f"{size} bytes announced, {self.end - self.position} left"
            raise BrokenRequestError(msg)
        self.position += size

    def fixed(self, size: int) -> int:
        """A signed number of so many bytes."""
        start = self.position
        self.skip(size)
        return int.from_bytes(self.data[start : self.position], "big", signed=True)

    def varint(self) -> int:
        """An unsigned number of seven bits a byte."""
        value = 0
        for place in range(MAX_VARINT_SIZE):
            byte = self.fixed(1) & 0xFF
            value |= (byte & 0x7F) << 7 * place
            if byte <= 0x7F:  # noqa: PLR2004 - the highest bit is not set
                return value
        msg = "a number without an end"
        raise BrokenRequestError(msg)

    def count(self, size: int | None) -> int:
        """How many follow, -1 for null: a number of ``size`` bytes, or a compact one that is one more."""
        claimed = self.varint() - 1 if size is None else self.fixed(size)
        if claimed > self.end - self.position:
            msg = f"{claimed} announced, {self.end - self.position} bytes left"
            raise BrokenRequestError(msg)
        return max(claimed, -1)


class Layout(NamedTuple):
    """What a message consists of.

    Attributes:
        steps: over each field, in order.
        tagged: over each field with a tag; None where the version has none.
    """

    steps: tuple[Step, ...]
    tagged: Mapping[int, Step] | None


def check_message(kind: type[Any], data: bytes, position: int) -> None:
    """Make sure that a message is whole.

    Raises:
        BrokenRequestError: it is not.
    """
    _message(kind, Cursor(data, position, len(data)))


def _message(kind: type[Any], cursor: Cursor) -> None:
    layout = _layout(kind)  # type: ignore[arg-type]  # a class can be a key
    for step in layout.steps:
        step(cursor)
    if layout.tagged is None:
        return
    for _ in range(cursor.varint()):
        _tagged_field(layout.tagged, cursor)


def _tagged_field(known: Mapping[int, Step], cursor: Cursor) -> None:
    tag, size = cursor.varint(), cursor.varint()
    start = cursor.position
    cursor.skip(size)
    if tag in known:
        inner = Cursor(cursor.data, start, cursor.position)
        known[tag](inner)
        if inner.position != inner.end:
            msg = f"tag {tag} has {inner.end - inner.position} bytes too many"
            raise BrokenRequestError(msg)


@cache
def _layout(kind: type[Any]) -> Layout:
    plain, tagged = [], {}
    for field in fields(kind):
        # the client id stayed as it was when everything around it became compact
        is_compact = kind.__flexible__ and not (kind.__name__ == "RequestHeader" and field.name == "client_id")
        step = _step(field.type, field.metadata.get("kafka_type", ""), is_compact=is_compact)
        tag = field.metadata.get("tag")
        if tag is None:
            plain.append(step)
        else:
            tagged[tag] = step
    return Layout(tuple(plain), tagged if kind.__flexible__ else None)


def _step(annotation: Any, kafka_type: str, *, is_compact: bool) -> Step:
    nested = message_in(annotation)
    item = _scalar(kafka_type, is_compact=is_compact) if nested is None else _nested(nested)
    if is_array(annotation):
        return _array(item, None if is_compact else LONG, may_be_null=is_nullable(annotation))
    return _optional(item) if nested is not None and is_nullable(annotation) else item


def _scalar(kafka_type: str, *, is_compact: bool) -> Step:
    size = FIXED_SIZES.get(kafka_type)
    if size is not None:
        return lambda cursor: cursor.skip(size)
    prefix = None if is_compact else SHORT if kafka_type == "string" else LONG
    return lambda cursor: cursor.skip(max(cursor.count(prefix), 0))


def _nested(kind: type[Any]) -> Step:
    return lambda cursor: _message(kind, cursor)


def _array(item: Step, prefix: int | None, *, may_be_null: bool) -> Step:
    def step(cursor: Cursor) -> None:
        count = cursor.count(prefix)
        if count < 0 and not may_be_null:
            msg = "null where there has to be an array"
            raise BrokenRequestError(msg)
        for _ in range(count):
            item(cursor)

    return step


def _optional(item: Step) -> Step:
    def step(cursor: Cursor) -> None:
        if cursor.fixed(1) >= 0:
            item(cursor)

    return step

"""The conversion of objects to Arrow: a type, and the change of an object that the type needs; times are exact."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta, timezone
from typing import Any, Final, NamedTuple, NoReturn

import pyarrow as pa

from seglog_format.errors import UsageError
from seglog_format.values.schemas import MAX_SHOWN, UndecodedError

Change = Callable[[Any], Any]

MAX_WIDTH: Final = 4_000
"""Maximum number of fields in a column, with those inside of others."""
MAX_DEPTH: Final = 32
"""Maximum depth of nested types; deeper types, and types that contain themselves, are JSON as text."""
MAX_TYPES: Final = 20_000
"""Maximum number of types that are visited for a column."""
CELL_SIZE: Final = 8
"""Bytes that count as one cell of a column."""
BASE_CELLS: Final = 2**16
CELLS_PER_BYTE: Final = 16
"""The cells that a value may fill: some, and more for each of its bytes.

Few bytes can stand for many cells: each item of a list fills all the fields of its type, also those with a default.
"""


class _Work(threading.local):
    """Counts the cells that the present value fills.

    Attributes:
        left: cells that the value may still fill.
        spent: cells that values have filled since `taken` was called.
    """

    left = 0
    spent = 0

    def begin(self, size: int) -> None:
        """Begin a value of a size in bytes."""
        self.left = BASE_CELLS + CELLS_PER_BYTE * size

    def spend(self, cells: int) -> None:
        """Count cells.

        Raises:
            UndecodedError: the value fills too many.
        """
        self.left -= cells
        self.spent += cells
        if self.left < 0:
            msg = f"the value fills more than {BASE_CELLS} cells, and {CELLS_PER_BYTE} for each of its bytes"
            raise UndecodedError(msg)

    def taken(self) -> int:
        """Return the cells that were filled since the last call."""
        spent, self.spent = self.spent, 0
        return spent


WORK: Final = _Work()


class Shape(NamedTuple):
    """The type of a column or of a part of it.

    Attributes:
        type: Arrow's.
        change: converts an object to the form that Arrow accepts; None if no conversion is needed.
        width: number of cells that a value fills, without the items of lists.
    """

    type: pa.DataType
    change: Change | None = None
    width: int = 1

    def of(self, value: Any) -> Any:  # noqa: ANN401 - decoded objects
        """Return an object in the form that Arrow accepts; null stays null."""
        return value if value is None or self.change is None else self.change(value)


class Visits:
    """Counts the types that are visited, for example for a column.

    Attributes:
        count: so far.
    """

    def __init__(self, most: int = MAX_TYPES) -> None:
        self.count = 0
        self._most = most

    def add(self) -> None:
        """Count a type.

        Raises:
            UndecodedError: there are too many: types that refer to each other can stand for any number.
        """
        self.count += 1
        if self.count > self._most:
            msg = f"the schema stands for more than {self._most} types"
            raise UndecodedError(msg)


def text_of(value: Any) -> str:  # noqa: ANN401 - decoded objects
    """Return as JSON an object that has no Arrow type."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_plain)


def _plain(value: Any) -> str:  # noqa: ANN401 - as above
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


JSON_TEXT: Final = Shape(pa.string(), text_of)
"""The shape of types that columns do not have: alternatives, and types that contain themselves."""
PLAIN_TEXT: Final = Shape(pa.string(), lambda value: value if isinstance(value, str) else text_of(value))
"""The shape of alternatives without parts, such as a text or a number."""


def width_of(shapes: list[Shape]) -> int:
    """Return the width of a struct.

    Raises:
        UndecodedError: it has too many fields.
    """
    width = sum(shape.width for shape in shapes)
    if width > MAX_WIDTH:
        msg = f"the schema has more than {MAX_WIDTH} fields"
        raise UndecodedError(msg)
    return max(1, width)


def struct_of(fields: dict[str, Shape]) -> Shape:
    """Return the shape of an object with the given fields; a missing field is null."""
    return fields_of([(name, shape, _item(name)) for name, shape in fields.items()], {})


def _item(name: str) -> Callable[[Any], Any]:
    return lambda value: value.get(name)


def fields_of(parts: list[tuple[str, Shape, Callable[[Any], Any]]], numbers: Mapping[str, Collection[str]]) -> Shape:
    """Return the shape of an object with fields, each with its name, its shape, and how an object gives its value."""

    def change(value: Any) -> dict[str, Any]:  # noqa: ANN401 - decoded objects
        name, found = "", {}
        try:
            for name, shape, value_of in parts:
                found[name] = shape.of(value_of(value))
        except UndecodedError as error:
            raise error.inside(name) from None
        return found

    fields = [with_names(pa.field(name, shape.type), NUMBER, numbers.get(name, ())) for name, shape, _ in parts]
    return Shape(pa.struct(fields), change, width_of([shape for _, shape, _ in parts]))


def list_of(items: Shape) -> Shape:
    """Return the shape of a list."""

    def change(value: Any) -> list[Any]:  # noqa: ANN401 - decoded objects
        WORK.spend(len(value) * items.width)
        return [items.of(each) for each in value]

    return Shape(pa.list_(items.type), change)


# -- times of Protobuf and JSON as columns of microseconds, which hold each time exactly; other times are refused ------


TIMESTAMP_SECONDS: Final = range(-62_135_596_800, 253_402_300_800)
"""Seconds since 1970 of the years 1 to 9999."""
DURATION_SECONDS: Final = range(-315_576_000_000, 315_576_000_001)
NANOS: Final = range(1_000_000_000)
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MICRO: Final = timedelta(microseconds=1)
RFC_3339: Final = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt](\d\d:\d\d:\d\d)(?:\.(\d+))?(?:[Zz]|([+-])(\d\d):([0-5]\d))", re.ASCII
)
DAY: Final = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


def _refuse(expected: str, found: object) -> NoReturn:
    msg = f"the reader's schema expects {expected}, found {found!r:.{MAX_SHOWN}}"
    raise UndecodedError(msg)


def _timestamp(value: Any) -> int:  # noqa: ANN401 - a Protobuf message
    if value.seconds not in TIMESTAMP_SECONDS or value.nanos not in NANOS:
        _refuse("a time of the years 1 to 9999", _seconds_text(value))
    return _micros(value, "a time")


def _duration(value: Any) -> int:  # noqa: ANN401 - as above
    has_one_sign = value.seconds * value.nanos >= 0
    if value.seconds not in DURATION_SECONDS or abs(value.nanos) not in NANOS or not has_one_sign:
        _refuse("a duration of at most 10,000 years, with one sign", _seconds_text(value))
    return _micros(value, "a duration")


def _micros(value: Any, what: str) -> int:  # noqa: ANN401 - as above
    if value.nanos % 1000:
        _refuse(f"{what} of whole microseconds, or times as written", _seconds_text(value))
    found: int = value.seconds * 1_000_000 + value.nanos // 1000
    return found


def _seconds_text(value: Any) -> str:  # noqa: ANN401 - as above
    return f"{value.seconds} s and {value.nanos} ns"


def _date_time(text: str) -> int:
    match = RFC_3339.fullmatch(text)
    if match is None:
        _refuse("a date-time of RFC 3339", text)
    day, clock, fraction, sign, hours, minutes = match.groups(default="0")
    if fraction[6:].strip("0"):
        _refuse("a date-time of whole microseconds, or times as written", text)
    try:
        east = timedelta(hours=int(hours), minutes=int(minutes)) * (-1 if sign == "-" else 1)
        local = datetime.fromisoformat(f"{day}T{clock}.{fraction:0<6.6}").replace(tzinfo=timezone(east))
        return (local.astimezone(UTC) - EPOCH) // MICRO
    except (ValueError, OverflowError):
        _refuse("an existing date-time of the years 1 to 9999", text)


def _date(text: str) -> date:
    if DAY.fullmatch(text):
        with suppress(ValueError):
            return date.fromisoformat(text)
    _refuse("a date of RFC 3339", text)


def _of_text(kind: pa.DataType, change: Callable[[str], Any]) -> Shape:
    def checked(value: object) -> Any:  # noqa: ANN401 - what Arrow accepts
        if not isinstance(value, str):
            _refuse("text", value)
        return change(value)

    return Shape(kind, checked)


PROTOBUF_TIMES: Final = {
    "google.protobuf.Timestamp": Shape(pa.timestamp("us", "UTC"), _timestamp),
    "google.protobuf.Duration": Shape(pa.duration("us"), _duration),
}
"""The columns of Protobuf's messages for times."""
JSON_TIMES: Final = {
    "date-time": _of_text(pa.timestamp("us", "UTC"), _date_time),
    "date": _of_text(pa.date32(), _date),
}
"""The columns of text in a JSON Schema with these formats."""


# -- a column that grows: the type for the values of all schemas that a table was written by ---------------------------


ALIASES: Final = b"aliases"
"""Key of a field's metadata: other names of the field in its schema."""
NAMES: Final = b"names"
"""Key of a field's metadata: the names that the field had in a table before, the first one first."""
BRANCH: Final = b"branch"
"""Key of the metadata of a member of a union: the names of its type."""
NUMBER: Final = b"number"
"""Key of the metadata of a field of a Protobuf message: `number 1` for that which values have instead of a name."""
WIDER: Final = ((pa.int32(), pa.int64()), (pa.float32(), pa.float64()))
"""Types whose values the second type holds without a change, and which Iceberg widens."""


def with_names(field: pa.Field, key: bytes, names: Collection[str]) -> pa.Field:
    """Return a field whose metadata have other names of it."""
    return field.with_metadata({**(field.metadata or {}), key: json.dumps(list(names))}) if names else field


def _names(field: pa.Field, key: bytes) -> list[str]:
    found: list[str] = json.loads((field.metadata or {}).get(key, b"[]"))
    return found


def grown(was: pa.DataType, now: pa.DataType, column: str) -> pa.DataType:
    """Return the type of a table's column that also holds the values of another schema.

    Fields that the schema lacks stay, and are null in new rows; fields that it adds are null in old rows. A number
    becomes the wider one. A field that the schema knows by an alias, or by its number, gets the schema's name.

    Args:
        was: of the column until now.
        now: of the values of the schema.
        column: name of the column.

    Raises:
        UsageError: a field would have another type, which does not hold the values of both, or the name that another
            field had; or there are too many.
    """
    if pa.types.is_struct(was) and pa.types.is_struct(now) and _is_union(was) == _is_union(now):
        return _grown_struct(was, now, column)
    if pa.types.is_list(was) and pa.types.is_list(now):
        return pa.list_(grown(was.value_type, now.value_type, f"{column}.element"))
    if pa.types.is_map(was) and pa.types.is_map(now):
        return pa.map_(was.key_type, grown(was.item_type, now.item_type, f"{column}.value"))
    if pa.types.is_decimal(was) and pa.types.is_decimal(now) and was.scale == now.scale:
        return max(was, now, key=lambda each: each.precision)
    for narrow, wide in ((was, was), *WIDER):
        if {was, now} <= {narrow, wide}:
            return wide
    msg = (
        f"{column} has the type {was!s:.200} in the table, and {now!s:.200} by the schema, to which it cannot grow:"
        " give an older schema, or another directory"
    )
    raise UsageError(msg)


def _is_union(kind: pa.DataType) -> bool:
    return any(_names(each, BRANCH) for each in kind)


def _grown_struct(was: pa.StructType, now: pa.StructType, column: str) -> pa.StructType:
    left = {each.name: each for each in now}
    by_name: dict[str, list[pa.Field]] = {}
    for each in now:
        for name in {each.name, *_names(each, ALIASES), *_names(each, NUMBER)}:
            by_name.setdefault(name, []).append(each)
    found: list[pa.Field] = []
    for each in was:
        names = [*_names(each, NAMES), each.name]
        known = {it.name: it for name in [*names, *_names(each, NUMBER)] for it in by_name.get(name, ())}
        other = next(iter(known.values()), each)
        if not known or (len(known) == 1 and other.name != each.name and was.get_field_index(other.name) >= 0):
            found.append(each)
            continue
        branches, numbers = ([_names(it, key) for it in (each, other)] for key in (BRANCH, NUMBER))
        is_other = any(a != b and set(a).isdisjoint(b) for a, b in (branches, numbers))
        if len(known) > 1 or left.pop(other.name, None) is None or is_other:
            raise _unpaired(each, known.values(), column)
        kept = other.with_type(grown(each.type, other.type, f"{column}.{each.name}"))
        before = dict.fromkeys(names if other.name != each.name else names[:-1])
        found.append(with_names(with_names(kept, NAMES, before), BRANCH, dict.fromkeys(branches[0] + branches[1])))
    if len(found) + len(left) > MAX_WIDTH:
        msg = f"{column} would have more than {MAX_WIDTH} fields: export to another directory"
        raise UsageError(msg)
    return pa.struct([*found, *left.values()])


def _unpaired(field: pa.Field, others: Collection[pa.Field], column: str) -> UsageError:
    texts = [
        f"{each.name}{''.join(f' of {name}' for name in _names(each, BRANCH)[:1] + _names(each, NUMBER))}"
        f" with the type {each.type!s:.200}"
        for each in (field, *others)
    ]
    return UsageError(
        f"{column}: by names, aliases and numbers, the table's {texts[0]} is not the same as one field of the schema:"
        f" {', '.join(texts[1:])}: give an older schema, or another directory"
    )


def renamed(kind: pa.DataType, name_of: Callable[[pa.Field], str]) -> pa.DataType:
    """Return a type whose fields have other names."""
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(name_of(each), renamed(each.type, name_of)) for each in kind])
    if pa.types.is_list(kind):
        return pa.list_(renamed(kind.value_type, name_of))
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, renamed(kind.item_type, name_of))
    return kind


def renames(was: pa.DataType, now: pa.DataType, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield the paths of fields of a type, as Iceberg has them, and the names that these have in the grown type."""
    if pa.types.is_struct(was):
        for each, other in zip(was, now, strict=False):  # those that it adds are the last ones
            yield from renames(each.type, other.type, (*path, each.name))
            if each.name != other.name:
                yield (*path, each.name), other.name
    elif pa.types.is_list(was):
        yield from renames(was.value_type, now.value_type, (*path, "element"))
    elif pa.types.is_map(was):
        yield from renames(was.item_type, now.item_type, (*path, "value"))


def first_names(kind: pa.DataType) -> pa.DataType:
    """Return a type whose fields have the names that they had first: files do not change."""
    return renamed(kind, lambda field: (*_names(field, NAMES), field.name)[0])

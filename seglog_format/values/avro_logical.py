"""Avro's logical types: numbers, bytes and texts as dates, times, decimals and UUIDs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import pyarrow as pa

from seglog_format.values.undecoded import UndecodedError

if TYPE_CHECKING:
    from collections.abc import Callable

    from seglog_format.values.avro_bytes import Read
    from seglog_format.values.avro_schema import AvroType


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """A type of the reader's schema as a column, or as a part of one.

    Attributes:
        type: Arrow's.
        inside: the columns of fields, items or members.
        width: as of `Shape`.
        is_text: whether values are JSON as text.
    """

    type: pa.DataType
    inside: tuple[Column, ...] = ()
    width: int = 1
    is_text: bool = False


TEXT: Final = Column(pa.string(), is_text=True)

MICRO: Final = 1_000
MILLI: Final = 1_000_000
DAY_MICROS: Final = 86_400_000_000
TIMES: Final = {
    "date": ("date", 1),
    "time-millis": ("time", MILLI),
    "time-micros": ("time", MICRO),
    "timestamp-millis": ("timestamp", MILLI),
    "timestamp-micros": ("timestamp", MICRO),
    "timestamp-nanos": ("timestamp", 1),
    "local-timestamp-millis": ("timestamp", MILLI),
    "local-timestamp-micros": ("timestamp", MICRO),
    "local-timestamp-nanos": ("timestamp", 1),
}
"""What the numbers of a logical type count: days, or times in units of so many nanoseconds."""
COLUMNS: Final = {
    "date": pa.date32(),
    "time-millis": pa.time64("us"),
    "time-micros": pa.time64("us"),
    "timestamp-millis": pa.timestamp("us", "UTC"),
    "timestamp-micros": pa.timestamp("us", "UTC"),
    "local-timestamp-millis": pa.timestamp("us"),
    "local-timestamp-micros": pa.timestamp("us"),
    "uuid": pa.string(),
}
"""Arrow's types by logical types. Nanoseconds stay numbers: tables hold microseconds."""
EPOCH: Final = datetime(1970, 1, 1)  # noqa: DTZ001 - local times have no zone
RANGES: Final = {
    "date": range(-date(1970, 1, 1).toordinal() + 1, date.max.toordinal() - date(1970, 1, 1).toordinal() + 1),
    "time": range(DAY_MICROS),
    "timestamp": range(-62_135_596_800_000_000, 253_402_300_800_000_000),
}
"""What readers of tables can show: days and microseconds of the years 1 to 9999, and times of a day."""
MAX_DECIMAL128: Final = 38


def logical_column(kind: AvroType) -> pa.DataType | None:
    """Return the type of a column for a logical type; None where the column is that of the type itself."""
    if kind.logical == "decimal":
        return (pa.decimal128 if kind.precision <= MAX_DECIMAL128 else pa.decimal256)(kind.precision, kind.scale)
    return COLUMNS.get(kind.logical or "")


def converted(read: Read, writer: AvroType, reader: AvroType, *, is_text: bool) -> Read:
    """Return a plan that reads a value, and converts it to the reader's logical type.

    The value counts in the unit of the writer's logical type, or in the reader's if the writer has none.

    Args:
        read: reads the value as the reader's type.
        writer: type that the value was written as.
        reader: type to convert it to.
        is_text: whether the value becomes a part of JSON as text.

    Raises:
        UndecodedError: the writer has a logical type of another kind.
    """
    change = _change(writer, reader, is_text=is_text)
    return read if change is None else lambda source: change(read(source))


def _change(writer: AvroType, reader: AvroType, *, is_text: bool) -> Callable[[Any], Any] | None:
    logical = reader.logical
    if logical is None:
        return None
    if logical == "decimal":
        scale = writer.scale if writer.logical == "decimal" else reader.scale
        return lambda data: _decimal(data, scale)
    if logical == "uuid":
        return (lambda data: str(UUID(bytes=data))) if reader.kind == "fixed" else (lambda text: str(UUID(text)))
    family, unit = TIMES[logical]
    from_family, from_unit = TIMES.get(writer.logical or "", (family, unit))
    if from_family != family:
        msg = f"written as {writer.logical}, and the reader's schema has {logical}"
        raise UndecodedError(msg)
    to_unit = 1 if logical not in COLUMNS or family == "date" else MICRO
    as_object = _objects(logical) if is_text else None
    return lambda number: _time(number * from_unit, to_unit, logical, as_object)


def _time(count: int, unit: int, logical: str, as_object: Callable[[int], Any] | None) -> Any:  # noqa: ANN401
    found, rest = divmod(count, unit)
    if rest:
        msg = f"a time of {count} nanoseconds, and the column has microseconds"
        raise UndecodedError(msg)
    if logical in COLUMNS and found not in RANGES[TIMES[logical][0]]:
        msg = f"{found} is out of the range of {logical}"
        raise UndecodedError(msg)
    return found if as_object is None else as_object(found)


def _objects(logical: str) -> Callable[[int], Any] | None:
    """Return the function that makes an object whose text is the date or time; None for numbers."""
    if logical not in COLUMNS:
        return None
    family = TIMES[logical][0]
    if family == "date":
        return lambda days: (EPOCH + timedelta(days)).date()
    if family == "time":
        return _time_of_day
    zone = None if logical.startswith("local") else UTC
    return lambda micros: (EPOCH + timedelta(microseconds=micros)).replace(tzinfo=zone)


def _time_of_day(micros: int) -> time:
    return (EPOCH + timedelta(microseconds=micros)).time()


def _decimal(data: bytes, scale: int) -> Decimal:
    number = int.from_bytes(data, "big", signed=True)
    return Decimal((number < 0, tuple(map(int, str(abs(number)))), -scale))

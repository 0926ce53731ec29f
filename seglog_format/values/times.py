"""Times of Protobuf and JSON as columns of microseconds, which hold each time exactly; other times are refused."""

from __future__ import annotations

import re
from contextlib import suppress
from datetime import UTC, date, datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any, Final, NoReturn

import pyarrow as pa

from seglog_format.values.shape import Shape
from seglog_format.values.undecoded import MAX_SHOWN, UndecodedError

if TYPE_CHECKING:
    from collections.abc import Callable

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

"""Messages of the Kafka protocol by API key and version, as the library `kio` describes them.

An answer is given as one mapping with the fields of all versions; its encoding has the fields of one version.
"""

from __future__ import annotations

import io
import os
from dataclasses import MISSING, fields
from datetime import timedelta
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.serial import entity_reader, entity_writer

from seglog_format.serve.annotations import is_array, message_in
from seglog_format.serve.guard import check_message
from seglog_format.serve.limits import MAX_REQUEST_ITEMS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kio.static.protocol import RequestPayload, ResponsePayload

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


def _error_code(value: int) -> object:
    return ErrorCode(value)


def _log_bytes(value: object) -> object:
    return MARK if value is GAP else value


CONVERTERS: Final[Mapping[str, Converter]] = {
    "timedelta_i32": _milliseconds,
    "timedelta_i64": _milliseconds,
    "error_code": _error_code,
    "records": _log_bytes,
}

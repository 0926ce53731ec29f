"""Messages of the Kafka protocol as an independent client writes them, by `kio`: nothing here is the server's code."""

from __future__ import annotations

import io
from dataclasses import MISSING, fields, is_dataclass
from datetime import timedelta
from functools import cache
from types import NoneType
from typing import TYPE_CHECKING, Any, get_args, get_origin

from kio.index import load_request_schema, load_response_schema
from kio.schema.errors import ErrorCode
from kio.serial import entity_writer

if TYPE_CHECKING:
    from collections.abc import Mapping

request_type = cache(load_request_schema)
response_type = cache(load_response_schema)


def encoded(kind: type[Any], values: Mapping[str, Any]) -> bytes:
    """Encode a message.

    Args:
        kind: class of the message.
        values: values by field name; fields of other versions are ignored.
    """
    buffer = io.BytesIO()
    entity_writer(kind)(buffer, _made(kind, values))
    return buffer.getvalue()


def request_frame(api_key: int, version: int, number: int, client_id: str | None, values: Mapping[str, Any]) -> bytes:
    """Return a request with its header, without the leading size."""
    kind = request_type(api_key, version)
    header = {
        "request_api_key": api_key,
        "request_api_version": version,
        "correlation_id": number,
        "client_id": client_id,
    }
    return encoded(kind.__header_schema__, header) + encoded(kind, values)


def message_in(annotation: object) -> type[Any] | None:
    """Return the class of the messages in a field; None for a plain value."""
    if isinstance(annotation, type) and is_dataclass(annotation):
        return annotation
    return next((found for part in get_args(annotation) if (found := message_in(part)) is not None), None)


def is_array(annotation: object) -> bool:
    """Return whether a field is an array."""
    return any(get_origin(each) is tuple for each in (annotation, *get_args(annotation)))


def is_nullable(annotation: object) -> bool:
    """Return whether a field may be null."""
    return NoneType in get_args(annotation)


def _made(kind: type[Any], values: Mapping[str, Any]) -> object:
    needed = {each.name: each for each in fields(kind) if each.default is MISSING or each.name in values}
    return kind(
        **{name: _field(each.type, each.metadata.get("kafka_type", ""), values[name]) for name, each in needed.items()}
    )


def _field(annotation: object, kafka_type: str, value: Any) -> object:  # noqa: ANN401 - of any type
    nested = message_in(annotation)
    if value is None:
        return None
    if is_array(annotation):
        return tuple(value if nested is None else (_made(nested, each) for each in value))
    if nested is not None:
        return _made(nested, value)
    if kafka_type.startswith("timedelta"):
        return timedelta(milliseconds=value)
    return ErrorCode(value) if kafka_type == "error_code" else value

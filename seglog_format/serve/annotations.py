"""Encoding of a message's field, by its type annotation."""

from __future__ import annotations

from dataclasses import is_dataclass
from types import NoneType
from typing import Any, get_args, get_origin


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

"""What the type of a message's field says about its form."""

from __future__ import annotations

from dataclasses import is_dataclass
from types import NoneType
from typing import Any, get_args, get_origin


def message_in(annotation: Any) -> type[Any] | None:
    """The message that a field, or each item of it, is; None where it is a plain value."""
    if isinstance(annotation, type) and is_dataclass(annotation):
        return annotation
    return next((found for part in get_args(annotation) if (found := message_in(part)) is not None), None)


def is_array(annotation: Any) -> bool:
    """Whether a field has items."""
    return get_origin(annotation) is tuple or any(get_origin(part) is tuple for part in get_args(annotation))


def is_nullable(annotation: Any) -> bool:
    """Whether a field may be null."""
    return NoneType in get_args(annotation)

"""The conversion of objects to Arrow: a type, and the change of an object that the type needs."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow as pa

Change = Callable[[Any], Any]


class Shape(NamedTuple):
    """The type of a column or of a part of it.

    Attributes:
        type: Arrow's.
        change: converts an object to the form that Arrow accepts; None if no conversion is needed.
    """

    type: pa.DataType
    change: Change | None = None

    def of(self, value: Any) -> Any:  # noqa: ANN401 - decoded objects
        """Return an object in the form that Arrow accepts; null stays null."""
        return value if value is None or self.change is None else self.change(value)


def text_of(value: Any) -> str:  # noqa: ANN401 - decoded objects
    """Return as JSON an object that has no Arrow type."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=_plain)


def _plain(value: Any) -> str:  # noqa: ANN401 - as above
    return value.decode("latin-1") if isinstance(value, bytes) else str(value)


JSON_TEXT = Shape(pa.string(), text_of)
"""The shape of types that columns do not have: alternatives, and types that contain themselves."""


def struct_of(fields: dict[str, Shape]) -> Shape:
    """Return the shape of an object with the given fields; a missing field is null."""
    parts = tuple(fields.items())

    def change(value: dict[str, Any]) -> dict[str, Any]:
        return {name: shape.of(value.get(name)) for name, shape in parts}

    return Shape(pa.struct([pa.field(name, shape.type) for name, shape in parts]), change)


def list_of(items: Shape) -> Shape:
    """Return the shape of a list."""
    return Shape(pa.list_(items.type), lambda value: [items.of(each) for each in value])


def map_of(values: Shape, keys: pa.DataType | None = None) -> Shape:
    """Return the shape of a map; its keys are text by default."""
    kind = pa.map_(pa.string() if keys is None else keys, values.type)
    return Shape(kind, lambda value: [(key, values.of(each)) for key, each in value.items()])

"""The conversion of objects to Arrow: a type, and the change of an object that the type needs."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import pyarrow as pa

from seglog_format.values.undecoded import UndecodedError

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
    return fields_of([(name, shape, _item(name)) for name, shape in fields.items()])


def _item(name: str) -> Callable[[Any], Any]:
    return lambda value: value.get(name)


def fields_of(parts: list[tuple[str, Shape, Callable[[Any], Any]]]) -> Shape:
    """Return the shape of an object with fields, each with its name, its shape, and how an object gives its value."""

    def change(value: Any) -> dict[str, Any]:  # noqa: ANN401 - decoded objects
        name, found = "", {}
        try:
            for name, shape, value_of in parts:
                found[name] = shape.of(value_of(value))
        except UndecodedError as error:
            raise error.inside(name) from None
        return found

    kind = pa.struct([pa.field(name, shape.type) for name, shape, _ in parts])
    return Shape(kind, change, width_of([shape for _, shape, _ in parts]))


def list_of(items: Shape) -> Shape:
    """Return the shape of a list."""

    def change(value: Any) -> list[Any]:  # noqa: ANN401 - decoded objects
        WORK.spend(len(value) * items.width)
        return [items.of(each) for each in value]

    return Shape(pa.list_(items.type), change)

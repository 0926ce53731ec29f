"""Every declared structure with its fields, as pages, exports and `seglog schema` show it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from construct import Construct, SizeofError, Struct

from seglog_format.cli.declared import declared_structures
from seglog_format.cli.field_shapes import shape
from seglog_format.field_names import kafka_name
from seglog_format.schema.fields import FieldLayout, layout

if TYPE_CHECKING:
    from seglog_format.cli.declared import Declared

POSITION_MARK: Final = "tell"
"""Type of declarations that record a position and have no bytes."""


@dataclass(frozen=True, slots=True)
class Structure:
    """One declared structure.

    Attributes:
        name: such as ``RecordBatchHeader``.
        chapter: number of the chapter that specifies it; 0 where its module names none.
        module: stem of the schema module.
        size: its size; None if it varies.
        fields: in stored order.
        declaration: the construct declaration.
    """

    name: str
    chapter: int
    module: str
    size: int | None
    fields: tuple[FieldLayout, ...]
    declaration: Struct

    def as_object(self) -> dict[str, Any]:
        """Return the structure for JSON."""
        return {
            "structure": self.name,
            "chapter": self.chapter,
            "module": self.module,
            "size": self.size,
            "fields": [_field_object(field) | self._shape(field.name) for field in self.fields],
        }

    def _shape(self, name: str) -> dict[str, Any]:
        declared = next(one for one in self.declaration.subcons if one.name == name)
        return shape(declared).as_object()


def _field_object(field: FieldLayout) -> dict[str, Any]:
    return ({"default": field.default} if field.default else {}) | {
        "field": kafka_name(field.name),
        "offset": field.offset,
        "size": field.size,
        "type": field.type,
        "doc": field.doc,
        "requirements": list(field.requirements),
        "since": field.since,
    }


def structures() -> list[Structure]:
    """Return all structures, by chapter."""
    return sorted(map(_structure, declared_structures()), key=lambda structure: (structure.chapter, structure.module))


def _structure(found: Declared) -> Structure:
    fields = tuple(field for field in layout(found.declaration) if field.name and field.type != POSITION_MARK)
    size = _size(found.declaration)
    return Structure(found.name, found.chapter, found.module, size, fields, found.declaration)


def _size(declaration: Construct) -> int | None:
    try:
        return int(declaration.sizeof())
    except SizeofError:
        return None

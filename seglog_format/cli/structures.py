"""Every declared structure, found by looking through the schema modules."""

from __future__ import annotations

import pkgutil
import re
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from construct import Construct, SizeofError, Struct

from seglog_format import schema
from seglog_format.cli.field_shapes import shape
from seglog_format.schema.fields import FieldLayout, layout

if TYPE_CHECKING:
    from collections.abc import Iterator

CHAPTER: Final = re.compile(r"chapters?\s+(\d+)(?:\s+and\s+(\d+))?")
POSITION_MARK: Final = "tell"
"""Type of declarations that note a position and have no bytes."""


@dataclass(frozen=True, slots=True)
class Structure:
    """One declared structure.

    Attributes:
        name: such as ``RecordBatchHeader``.
        chapter: number of the chapter that specifies it; 0 where its module names none.
        module: stem of the schema module.
        size: bytes; None where it varies.
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
        """The structure for JSON."""
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
        "field": field.name,
        "offset": field.offset,
        "size": field.size,
        "type": field.type,
        "doc": field.doc,
        "requirements": list(field.requirements),
        "since": field.since,
    }


def structures() -> list[Structure]:
    """All structures, by chapter."""
    return sorted(_declared(), key=lambda structure: (structure.chapter, structure.module))


def _declared() -> Iterator[Structure]:
    seen: set[int] = set()
    for module in pkgutil.iter_modules(schema.__path__):
        content = import_module(f"{schema.__name__}.{module.name}")
        match = CHAPTER.search(content.__doc__ or "")
        chapter = int(match[match.lastindex or 1]) if match else 0
        for name, declaration in vars(content).items():
            if isinstance(declaration, Struct) and not name.startswith("_") and id(declaration) not in seen:
                seen.add(id(declaration))
                yield _structure(name, chapter, module.name, declaration)


def _structure(name: str, chapter: int, module: str, declaration: Struct) -> Structure:
    fields = tuple(field for field in layout(declaration) if field.name and field.type != POSITION_MARK)
    return Structure(name, chapter, module, _size(declaration), fields, declaration)


def _size(declaration: Construct) -> int | None:
    try:
        return int(declaration.sizeof())
    except SizeofError:
        return None

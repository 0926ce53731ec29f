"""The structures that the schema modules declare, by name."""

from __future__ import annotations

import pkgutil
import re
from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple

from construct import Struct

from seglog_format import schema

if TYPE_CHECKING:
    from collections.abc import Iterator

CHAPTER: Final = re.compile(r"chapters?\s+(\d+)(?:\s+and\s+(\d+))?")


class Declared(NamedTuple):
    """A declaration and the module that it is in.

    Attributes:
        name: such as ``RecordBatchHeader``.
        chapter: number of the chapter that specifies it; 0 where its module names none.
        module: stem of the schema module.
        declaration: the construct declaration.
    """

    name: str
    chapter: int
    module: str
    declaration: Struct


def declared_structures() -> Iterator[Declared]:
    """Yield each declared structure once, by module and in the order of declaration."""
    seen: set[int] = set()
    for module in pkgutil.iter_modules(schema.__path__):
        content = import_module(f"{schema.__name__}.{module.name}")
        match = CHAPTER.search(content.__doc__ or "")
        chapter = int(match[match.lastindex or 1]) if match else 0
        for name, declaration in vars(content).items():
            if isinstance(declaration, Struct) and not name.startswith("_") and id(declaration) not in seen:
                seen.add(id(declaration))
                yield Declared(name, chapter, module.name, declaration)

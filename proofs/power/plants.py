"""Faults that lose data when the power fails, as values, and context managers that plant them into the package."""

from __future__ import annotations

import ast
import textwrap
import tomllib
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Final

import seglog_format

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FunctionType

PACKAGE: Final = Path(seglog_format.__file__).parent
LIST: Final = Path(__file__).with_name("plants.toml")
POWER_CUTS, SYSTEM_CALLS, NOT_NOTICED = "power cuts", "system calls", "nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plant:
    """A fault.

    Attributes:
        name: description of the fault.
        symbol: function or method, with its class, to change.
        find: text of the function, which occurs in it once.
        replace: replacement for this text.
        noticed_by: proof that notices it.
        reason: reason why no proof notices it.
        histories: numbers of histories that noticed it.
        breaks_calls: whether the system calls of one thread also show it (`proofs/calls/`).
    """

    name: str
    symbol: str
    find: str
    replace: str
    noticed_by: str = POWER_CUTS
    reason: str = ""
    histories: tuple[int, ...] = ()
    breaks_calls: bool = True


class PlantError(Exception):
    """A fault cannot be planted: the package has changed, and the list has not."""


def plants() -> list[Plant]:
    """Return the list."""
    found = tomllib.loads(LIST.read_text(encoding="utf-8"))["plant"]
    return [Plant(**{**each, "histories": tuple(each.get("histories", ()))}) for each in found]


@contextmanager
def planted(plant: Plant) -> Iterator[None]:
    """Plant a fault into this process, and remove it afterwards.

    Only the code object of the function changes: code that has already imported the function also runs the fault.

    Raises:
        PlantError: the function or the text in it does not occur exactly once.
    """
    function, code = _located(plant)
    before, function.__code__ = function.__code__, code.__code__
    try:
        yield
    finally:
        function.__code__ = before


def _located(plant: Plant) -> tuple[FunctionType, FunctionType]:
    """Return the function of a plant, and the same function with the fault in it."""
    definitions = [(path, node) for path in sorted(PACKAGE.rglob("*.py")) for node in _definitions(path, plant.symbol)]
    if len(definitions) != 1:
        msg = f"{plant.name}: {plant.symbol} is defined {len(definitions)} times"
        raise PlantError(msg)
    path, node = definitions[0]
    source = "".join(path.read_text(encoding="utf-8").splitlines(keepends=True)[node.lineno - 1 : node.end_lineno])
    if source.count(plant.find) != 1:
        msg = f"{plant.name}: {plant.symbol} has this text {source.count(plant.find)} times: {plant.find}"
        raise PlantError(msg)
    module = import_module(".".join(["seglog_format", *path.relative_to(PACKAGE).with_suffix("").parts]))
    text = textwrap.dedent(source.replace(plant.find, plant.replace))
    names = dict(vars(module))
    exec(compile(text, str(path), "exec", annotations.compiler_flag), names)  # noqa: S102 - our own source
    return attrgetter(plant.symbol)(module), names[node.name]


def _definitions(path: Path, symbol: str) -> Iterator[ast.FunctionDef]:
    """Yield the definitions of a function, or of a method of a class, in a module."""
    text = path.read_text(encoding="utf-8")
    *classes, name = symbol.split(".")
    if f"def {name}(" not in text:
        return
    bodies = [ast.parse(text).body]
    for each in classes:
        bodies = [node.body for body in bodies for node in body if isinstance(node, ast.ClassDef) and node.name == each]
    yield from (node for body in bodies for node in body if isinstance(node, ast.FunctionDef) and node.name == name)

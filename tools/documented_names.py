"""Names that docstrings explain under ``Args:`` and ``Attributes:``: each must exist."""

from __future__ import annotations

import ast
import inspect
import re
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from tools.lengths import python_files

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

SECTION: Final = re.compile(r"^(Args|Attributes):\n((?:[ ]{4}.*\n|\n)*)", re.MULTILINE)
NAMES: Final = re.compile(r"^[ ]{4}([\w*`]+(?:, [\w*`]+)*):\s", re.MULTILINE)


def documented_names_exist(root: Path) -> Iterator[str]:
    """Yield each documented parameter and attribute that the function or class does not have."""
    trees = {name: ast.parse(text) for name, text in python_files(root)}
    classes: defaultdict[str, list[ast.ClassDef]] = defaultdict(list)
    for tree in trees.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                classes[node.name].append(node)
    for file, tree in trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                yield from (
                    f"{file}:{node.lineno}: {node.name} has no {name}, which its docstring explains"
                    for name in _missing(node, classes)
                )


def documented(docstring: str, section: str) -> list[str]:
    """Return the names that a section of a docstring explains."""
    found = [match[2] for match in SECTION.finditer(inspect.cleandoc(docstring) + "\n") if match[1] == section]
    return [name.strip(" `*") for text in found for names in NAMES.findall(text) for name in names.split(",")]


def _missing(
    node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, classes: Mapping[str, list[ast.ClassDef]]
) -> Iterator[str]:
    docstring = ast.get_docstring(node) or ""
    if isinstance(node, ast.ClassDef):
        bases = list(_with_bases(node, classes))
        attributes = {name for each in bases for name in _attributes(each)}
        parameters = {name for each in bases for name in _constructor_parameters(each)}
    else:
        attributes, parameters = set(), set(_parameters(node))
    yield from (name for name in documented(docstring, "Attributes") if name not in attributes)
    yield from (name for name in documented(docstring, "Args") if name not in parameters)


def _with_bases(node: ast.ClassDef, classes: Mapping[str, list[ast.ClassDef]]) -> Iterator[ast.ClassDef]:
    """Yield a class, and the classes of the repository with the names of its bases."""
    yield node
    for base in node.bases:
        name = base.value if isinstance(base, ast.Subscript) else base
        text = ast.unparse(name).rpartition(".")[2]
        for each in classes.get(text, []):
            if each.name != node.name:
                yield from _with_bases(each, classes)


def _parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> Iterator[str]:
    given = function.args
    optional = [each for each in (given.vararg, given.kwarg) if each is not None]
    yield from (each.arg for each in (*given.posonlyargs, *given.args, *given.kwonlyargs, *optional))


def _constructor_parameters(node: ast.ClassDef) -> Iterator[str]:
    """Yield the parameters of ``__init__`` and ``__new__``, and the fields of a dataclass or a named tuple."""
    for each in node.body:
        if isinstance(each, ast.FunctionDef) and each.name in {"__init__", "__new__"}:
            yield from _parameters(each)
        elif isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
            yield each.target.id


def _attributes(node: ast.ClassDef) -> Iterator[str]:
    """Yield the attributes of a class: what its body assigns or defines, and what its methods assign to ``self``."""
    for each in node.body:
        match each:
            case ast.FunctionDef(name=name) | ast.AnnAssign(target=ast.Name(id=name)):
                yield name
            case ast.Assign(targets=targets, value=value):
                names = [target.id for target in targets if isinstance(target, ast.Name)]
                yield from (ast.literal_eval(value) if names == ["__slots__"] else names)
    for each in ast.walk(node):
        match each:
            case ast.Attribute(value=ast.Name(id="self"), attr=name, ctx=ast.Store()):
                yield name

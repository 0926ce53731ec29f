"""Functions, classes and constants that nothing uses, or only tests."""

from __future__ import annotations

import ast
import re
from itertools import chain
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PACKAGE: Final = "seglog_format"
CALLERS: Final = (PACKAGE, "conformance", "proofs", "tools", "benchmarks")
"""Directories whose code counts as use."""
CONSTANT: Final = re.compile(r"_?[A-Z][A-Z0-9_]*")


def functions_are_used(root: Path) -> Iterator[str]:
    """Yield complaints about functions and classes of the package whose name occurs elsewhere only in tests.

    Whatever has a decorator may be reached through it, as commands and checks are.
    """
    trees = {path: _parsed(path) for directory in CALLERS for path in sorted((root / directory).rglob("*.py"))}
    used = set(chain.from_iterable(map(_names, trees.values())))
    for path, tree in trees.items():
        file = path.relative_to(root).as_posix()
        if file.startswith(f"{PACKAGE}/"):
            for node in _defined(tree):
                if node.name not in used:
                    yield f"{file}:{node.lineno}: nothing outside of tests uses {node.name}"


def constants_are_used(root: Path) -> Iterator[str]:
    """Yield complaints about constants whose name occurs nowhere else, not even in tests."""
    trees = {
        path: _parsed(path) for directory in (*CALLERS, "tests") for path in sorted((root / directory).rglob("*.py"))
    }
    used = set(chain.from_iterable(map(_names, trees.values())))
    for path, tree in trees.items():
        for name, line in _constants(tree):
            if name not in used:
                yield f"{path.relative_to(root).as_posix()}:{line}: nothing uses {name}"


def _constants(tree: ast.Module) -> Iterator[tuple[str, int]]:
    """Yield name and line of each constant; those that are unpacked from a row are left out: some may not be needed."""
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        for target in targets:
            if isinstance(target, ast.Name) and CONSTANT.fullmatch(target.id):
                yield target.id, node.lineno


def _parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _defined(tree: ast.Module) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef]:
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            is_special = node.name.startswith("__")
            if not node.decorator_list and not is_special:
                yield node


def _names(tree: ast.Module) -> Iterator[str]:
    """Yield every name that is used, also in strings, which name modules that load late."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Load()) | ast.Attribute(attr=name) | ast.keyword(arg=str(name)):
                yield name
            case ast.alias(name=name) | ast.Constant(value=str(name)):
                yield name.rpartition(".")[2]

"""Maximum lengths of modules and functions, in every directory with Python in it."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LONGEST_MODULE_LINES: Final = 700
LONGEST_FUNCTION_LINES: Final = 60
"""Without the docstring."""

SOURCES: Final = (*("seglog_format", "conformance", "proofs", "benchmarks", "tools", "tests"), "pyspark_seglog.py")

DIRECTORIES: Final = {
    "tests/": (900, LONGEST_FUNCTION_LINES, "a chapter's tests are in one module, and are read one by one"),
    "conformance/authoring/": (1000, 150, "cases are data: a line for each, in one function for each family"),
}
"""Directories with limits of their own, for modules and for functions, each with its reason."""

LONGER_MODULES: Final[dict[str, str]] = {}
LONGER_FUNCTIONS: Final = {
    "seglog_format/cli/serve.py: command": "a parameter for each of its options",
    "seglog_format/columnar/reader.py: read_messages": "a kernel: one loop with much state",
    "seglog_format/columnar/reader.py: read_batches": "a kernel: one loop with much state",
    "seglog_format/columnar/records.py: decode_records": "a kernel: one loop with much state",
    "tests/helpers/hostile_testee.py: misbehave": "a flat list: a case for each of its bad manners",
}
"""Modules and functions above the limits, each with its reason."""

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


def python_files(root: Path) -> Iterator[tuple[str, str]]:
    """Yield name and text of every Python file of the repository."""
    for source in SOURCES:
        for path in sorted((root / source).rglob("*.py")) or [root / source]:
            if path.is_file():
                yield path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")


def limits_of(name: str) -> tuple[int, int]:
    """Return the limits of a file: lines of the module, and of each function."""
    for directory, (module_lines, function_lines, _) in DIRECTORIES.items():
        if name.startswith(directory):
            return module_lines, function_lines
    return LONGEST_MODULE_LINES, LONGEST_FUNCTION_LINES


def modules_are_short(root: Path) -> Iterator[str]:
    """Yield complaints about modules that are too long, except for those with a reason."""
    for name, text in python_files(root):
        count = len(text.splitlines())
        if count > limits_of(name)[0] and name not in LONGER_MODULES:
            yield f"{name}: {count} lines"


def functions_are_short(root: Path) -> Iterator[str]:
    """Yield complaints about functions that are too long, except for those with a reason."""
    for name, text in python_files(root):
        for function in (node for node in ast.walk(ast.parse(text)) if isinstance(node, Function)):
            count = _lines_of(function)
            if count > limits_of(name)[1] and f"{name}: {function.name}" not in LONGER_FUNCTIONS:
                yield f"{name}:{function.lineno}: {function.name} has {count} lines"


def exceptions_are_needed(root: Path) -> Iterator[str]:
    """Yield complaints about exceptions for code that is short enough now, or no longer exists."""
    files = dict(python_files(root))
    for name in LONGER_MODULES:
        if len(files.get(name, "").splitlines()) <= limits_of(name)[0]:
            yield f"{name}: not too long any more"
    for listed in LONGER_FUNCTIONS:
        name, _, wanted = listed.partition(": ")
        found = [node for node in ast.walk(ast.parse(files.get(name, ""))) if isinstance(node, Function)]
        if not any(node.name == wanted and _lines_of(node) > limits_of(name)[1] for node in found):
            yield f"{listed}: not too long any more"


def _lines_of(function: Function) -> int:
    first, count = function.body[0], (function.end_lineno or 0) - function.lineno + 1
    if ast.get_docstring(function) is None:
        return count
    return count - ((first.end_lineno or 0) - first.lineno + 1)

"""What the engine uses of numba and of the interpreter: public interfaces."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING, Final

from helpers.support import REPOSITORY
from helpers.walking import each_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

COLUMNAR: Final = REPOSITORY / "seglog_format" / "columnar"
MODULES: Final = sorted(COLUMNAR.glob("*.py"))
EXTENDING: Final = {"numba", "numba.extending", "numba.core.cgutils", "numba.core.config"}
"""What numba's pages describe for users and for those who extend it."""
DOCUMENTED: Final = {
    "PyBytes_FromStringAndSize",
    "PyErr_Clear",
    "PyList_SetItem",
    "PyLong_FromLongLong",
    "PyMember_SetOne",
    "PyTuple_GetItem",
    "PyTuple_New",
    "PyTuple_SetItem",
    "PyType_GenericAlloc",
    "Py_DecRef",
}
"""Functions of CPython that kernels call."""


def numba_modules(path: Path) -> Iterator[str]:
    """Yield the modules of numba that a module imports, or imports from."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names if each.name.partition(".")[0] == "numba")
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "numba":
            inner = node.module == "numba.core"
            yield from ((f"{node.module}.{each.name}" if inner else str(node.module)) for each in node.names)


@each_of("path", MODULES, ids=lambda path: path.stem)
def test_no_module_goes_behind_the_interface_of_numba(path: Path) -> None:
    assert set(numba_modules(path)) <= EXTENDING


def test_kernels_call_documented_functions_of_the_interpreter_only() -> None:
    texts = [path.read_text(encoding="utf-8") for path in MODULES]
    assert {
        name for text in texts for name in re.findall(r'"(_?Py(?:[A-Z][a-z]+)?_[A-Z][a-z]\w+)"', text)
    } == DOCUMENTED


def test_nothing_that_makes_objects_stores_by_address() -> None:
    text = (COLUMNAR / "objects.py").read_text(encoding="utf-8")
    assert re.findall(r"store_\w+|copy_\d+|memmove|memset|\.store\(", text) == []

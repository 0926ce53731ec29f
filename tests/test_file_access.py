"""Files are changed by `seglog_format.storage`, and by a few modules that have files of their own."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Final

from helpers.support import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Iterator

METHODS: Final = frozenset({"mkdir", "rmdir", "unlink", "rename", "write_bytes", "write_text", "symlink_to"})
HARMLESS: Final = frozenset({"which", "get_terminal_size", "ignore_patterns"})
WRITING: Final = frozenset("wxa+")

EXCEPTIONS: Final = {
    "cluster/whole_log.py": "replaces the empty last segment of a log whose end it raises",
    "cli/options.py": "keeps the bytes of standard input while they are read",
    "cli/main.py": "opens an empty device in place of standard streams that are closed",
    "columnar/kernel_build.py": "writes the compiled kernels beside their sources",
    "log/directory_lock.py": "locks a log directory, and asks whether a broker holds the lock",
    "recovery/planned_files.py": "opens an empty device in place of a file that is not there",
    "serve/slices.py": "opens logs that the kernel sends to clients",
    "serve/state_directory.py": "makes the directory for what groups commit",
    "spark/sessions.py": "writes the programs that start workers",
    "spark/staging.py": "writes the files of a task, and moves them",
    "tier/joining.py": "writes fetched segments",
    "tier/audit.py": "keeps a fetched segment while it is verified",
}
"""Modules outside of storage/ that open or change files, and what for."""


def changes(tree: ast.Module) -> Iterator[str]:
    """Yield the calls that change files."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            match node.func:
                case ast.Attribute(value=ast.Name(id="shutil" | "tempfile"), attr=name) if name not in HARMLESS:
                    yield name
                case ast.Attribute(attr=name) if name in METHODS:
                    yield name
                case ast.Attribute(value=ast.Name(id="os"), attr="open"):
                    yield "os.open"
                case ast.Attribute(attr="open") | ast.Name(id="open"):
                    modes = [each.value for each in node.args if isinstance(each, ast.Constant)]
                    if any(isinstance(mode, str) and WRITING & set(mode) and len(mode) < 4 for mode in modes):
                        yield "open"


def test_only_these_modules_open_or_change_files_beside_storage() -> None:
    package = REPOSITORY / "seglog_format"
    found = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if path.relative_to(package).parts[0] != "storage" and any(changes(ast.parse(path.read_text(encoding="utf-8"))))
    }
    assert found == set(EXCEPTIONS)

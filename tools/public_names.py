"""Which names of the package each part of the repository may use.

Benchmarks, examples and the code in documents use the package as a user does: by the names that `seglog_format` and its
public modules list. So every user can reach the published figures, and can run the code on a page.
"""

from __future__ import annotations

import ast
import re
import tomllib
from itertools import chain
from textwrap import dedent
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

PACKAGE: Final = "seglog_format"
PUBLIC_MODULES: Final = {
    "seglog_format": "__init__.py",
    "seglog_format.errors": "errors.py",
    "seglog_format.spark": "spark/__init__.py",
    "seglog_format.strategies": "strategies.py",
    "seglog_format.types": "types.py",
}
"""Each has a page in `docs/reference/`."""

COMMAND: Final = "seglog_format.cli"
"""The module that ``python -m`` runs: a command, not an import."""

SCRIPTS: Final = ("benchmarks/**/*.py", "examples/**/*.py", "conformance/templates/**/*.py", "tools/demo*.py")
DOCUMENTS: Final = ("docs/**/*.md", "*.md", "benchmarks/*.md", "conformance/**/*.md", "spec/*.md")
INSIDERS: Final = ("proofs/**/*.py", "tools/**/*.py")
"""Proofs and generators, which may import what `LIST` names besides."""
LIST: Final = "tools/private_imports.toml"
MAX_LISTED: Final = 13
"""Maximum number of listed modules and packages, which may be reduced."""
DOCSTRINGS: Final = ("seglog_format/**/*.py", "pyspark_seglog.py")

FENCED: Final = re.compile(
    r"^(?P<indent> *)```(?P<language>\w*)[^\n]*\n(?P<code>.*?)^(?P=indent)```", re.MULTILINE | re.DOTALL
)
IMPORT: Final = re.compile(rf"\b(?:from|import) +({PACKAGE}[\w.]*)(?: +import +\(?([\w, ]+))?")
PROMPTED: Final = re.compile(r"^\s*(?:>>>|\.\.\.) (.*)$", re.MULTILINE)
MODULE_NAME: Final = re.compile(rf"{PACKAGE}\.[\w.]*")


class Use(NamedTuple):
    """A use of a name of the package.

    Attributes:
        line: line of the text, from 1.
        module: module that has the name.
        name: the name; empty if the module itself is imported.
    """

    line: int
    module: str
    name: str = ""

    def __str__(self) -> str:
        return f"{self.module}.{self.name}" if self.name else self.module


def public_names(root: Path) -> dict[str, frozenset[str]]:
    """Return the names that each public module lists; for a module without a list, its classes."""
    files = {module: root / PACKAGE / file for module, file in PUBLIC_MODULES.items()}
    return {module: _listed(file.read_text(encoding="utf-8")) for module, file in files.items() if file.is_file()}


def _listed(source: str) -> frozenset[str]:
    tree = ast.parse(source)
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return frozenset(ast.literal_eval(node.value))
    return frozenset(node.name for node in tree.body if isinstance(node, ast.ClassDef) and node.name[0] != "_")


def is_public(use: Use, public: Mapping[str, frozenset[str]]) -> bool:
    """Return whether a name is listed, or is the name of a public module."""
    if use.module not in public:
        return False
    return not use.name or use.name in public[use.module] or f"{use.module}.{use.name}" in public


def uses_in_code(source: str) -> Iterator[Use]:
    """Find imports from the package, attributes of it, and names of its modules in strings."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.ImportFrom(module=str(module), level=0) if _is_ours(module):
                yield from (Use(node.lineno, module, alias.name) for alias in node.names)
            case ast.Import():
                yield from (Use(node.lineno, alias.name) for alias in node.names if _is_ours(alias.name))
            case ast.Attribute(value=ast.Name(id="seglog_format"), attr=name) if not name.startswith("__"):
                yield Use(node.lineno, PACKAGE, name)
            case ast.Constant(value=str(text)) if MODULE_NAME.fullmatch(text) and text != COMMAND:
                yield Use(node.lineno, text.rstrip("."))


def _is_ours(module: str) -> bool:
    return module.split(".", 1)[0] == PACKAGE


def uses_in_text(text: str) -> Iterator[Use]:
    """Find imports from the package in text that need not be a whole program."""
    for number, line in enumerate(text.splitlines(), start=1):
        for module, names in IMPORT.findall(line):
            yield from (Use(number, module, name.strip()) for name in names.split(",") if name.strip() or not names)


def uses_in_document(text: str) -> Iterator[Use]:
    """Find the names that the code of a Markdown document uses."""
    for found in FENCED.finditer(text):
        before = text.count("\n", 0, found.start("code"))
        yield from (use._replace(line=before + use.line) for use in _uses_in_block(found["language"], found["code"]))


def _uses_in_block(language: str, code: str) -> list[Use]:
    if language in {"py", "python"}:
        try:
            return list(uses_in_code(dedent(code)))
        except SyntaxError:  # code in a page may not be a whole program
            pass
    return list(uses_in_text(code))


def uses_in_examples(source: str) -> Iterator[Use]:
    """Find imports in the examples of docstrings."""
    for found in PROMPTED.finditer(source):
        line = source.count("\n", 0, found.start(1)) + 1
        yield from (use._replace(line=line) for use in uses_in_text(found[1]))


def private_uses(root: Path) -> Iterator[str]:
    """Yield complaints about private names in benchmarks, examples and the code of documents."""
    public = public_names(root)
    readers = ((SCRIPTS, uses_in_code), (DOCUMENTS, uses_in_document), (DOCSTRINGS, uses_in_examples))
    for patterns, uses in readers:
        for path in files_of(root, patterns):
            for use in uses(path.read_text(encoding="utf-8")):
                if not is_public(use, public):
                    yield f"{path.relative_to(root).as_posix()}:{use.line}: {use} is not public"


class Listed(NamedTuple):
    """A private module that may be imported, with the modules below it.

    Attributes:
        name: name of the module.
        by: directories whose files may import it.
    """

    name: str
    by: tuple[str, ...]

    def allows(self, use: Use, file: str) -> bool:
        """Return whether a file may use a name."""
        return f"{use.module}.".startswith(f"{self.name}.") and any(
            file.startswith(f"{directory}/") for directory in self.by
        )


def listed_modules(root: Path) -> list[Listed]:
    """Read the private modules that proofs and generators may import."""
    path = root / LIST
    rows = tomllib.loads(path.read_text(encoding="utf-8"))["modules"] if path.is_file() else []
    assert all(row["reason"] for row in rows)
    return [Listed(name, tuple(row["by"])) for row in rows for name in row["names"]]


def unlisted_uses(root: Path) -> Iterator[str]:
    """Yield complaints about private names in proofs and generators that are not listed, and about a long list."""
    public, listed = public_names(root), listed_modules(root)
    used: set[Listed] = set()
    for path in files_of(root, INSIDERS):
        file = path.relative_to(root).as_posix()
        for use in uses_in_code(path.read_text(encoding="utf-8")):
            allowed = [each for each in listed if each.allows(use, file)]
            used.update(allowed)
            if not allowed and not is_public(use, public):
                yield f"{file}:{use.line}: {use} is neither public nor in {LIST}"
    if len(listed) > MAX_LISTED:
        yield f"{LIST}: {len(listed)} modules, and {MAX_LISTED} at most"
    yield from (f"{LIST}: no module imports {each.name}" for each in listed if each not in used)


def files_of(root: Path, patterns: Iterable[str]) -> list[Path]:
    """Return the files that match some patterns, each once."""
    return sorted(set(chain.from_iterable(root.glob(pattern) for pattern in patterns)))

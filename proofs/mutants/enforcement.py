"""The places where the package enforces a requirement, and their removal.

A rule is enforced in one of three forms, each with the id as a literal: a ``raise`` statement, a `Checked` field of a
schema, or a function decorated ``@checks(...)``. `sites` finds them; `disabled` gives the source text without them.
"""

from __future__ import annotations

import ast
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path

from proofs.mutants.fault_locations import occurrence_in

REPOSITORY = Path(__file__).resolve().parents[2]
PACKAGE = REPOSITORY / "seglog_format"
FAULTS = REPOSITORY / "tests" / "faults"
ENFORCING = ("raise", "Checked", "checks")
"""Forms in which code holds a rule, so that it can be switched off."""

IDENTIFIER = re.compile(r"SEG-[A-Z]{3}-\d{3}\b")


@dataclass(frozen=True, slots=True)
class Site:
    """One place in the package that names a requirement.

    Attributes:
        requirement: id.
        form: ``raise``, ``Checked``, ``checks`` (enforcing) or ``Doc`` (documentation of a schema field).
        file: below the repository.
        scope: dotted name of the function or declaration around it.
        line: its first line.
    """

    requirement: str
    form: str
    file: str
    scope: str
    line: int

    @property
    def scope_path(self) -> str:
        """Return file and scope, which do not change when lines move."""
        return f"{self.file}:{self.scope}" if self.scope else self.file


@dataclass(frozen=True, slots=True)
class Fault:
    """A text substitution, kept by hand, that breaks one requirement.

    Attributes:
        requirement: id.
        file: below the repository.
        symbol: dotted name of the function, class or constant that holds the text; empty for the module itself.
        find: text that occurs exactly once in the symbol.
        replace: text that breaks the rule.
        listed_in: file that lists the fault, below the repository.
        unseen: reason why no case of the conformance suite can flag the fault; empty if a case must flag it.
    """

    requirement: str
    file: str
    symbol: str
    find: str
    replace: str
    listed_in: str
    unseen: str = ""

    def apply(self, text: str) -> str:
        """Return the source text with the fault in it.

        Raises:
            ValueError: the text to find does not occur exactly once in its symbol.
        """
        try:
            start = occurrence_in(text, self.symbol, self.find).position
        except ValueError as error:
            msg = f"{self.listed_in}: {self.requirement}: the text to find {error}, in {self.file}"
            raise ValueError(msg) from error
        return text[:start] + self.replace + text[start + len(self.find) :]


def source_files() -> list[Path]:
    """Return every module of the package."""
    return sorted(PACKAGE.rglob("*.py"))


def relative(path: Path) -> str:
    """Return a path in the form of reports."""
    return path.relative_to(REPOSITORY).as_posix()


def faults() -> list[Fault]:
    """Return the faults of tests/faults, in file order."""
    found = []
    for path in sorted(FAULTS.glob("*.toml")):
        for entry in tomllib.loads(path.read_text(encoding="utf-8")).get("fault", []):
            found.append(Fault(**entry, listed_in=relative(path)))  # noqa: PERF401 - longer than it reads
    return found


def literal_ids(*nodes: ast.AST) -> list[str]:
    """Return the requirement ids in string literals under these nodes, in order."""
    return [
        node.value
        for root in nodes
        for node in ast.walk(root)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and IDENTIFIER.fullmatch(node.value)
    ]


def _called(node: ast.AST) -> str:
    if not isinstance(node, ast.Call):
        return ""
    return getattr(node.func, "attr", getattr(node.func, "id", ""))


def _checks_ids(node: ast.AST) -> list[str]:
    decorators = getattr(node, "decorator_list", [])
    return literal_ids(*(decorator for decorator in decorators if _called(decorator) == "checks"))


def ids_of(node: ast.AST) -> tuple[str, list[str]]:
    """Return the form of this node and the ids that it names; no ids if it has none of the forms."""
    if isinstance(node, ast.Raise):
        return "raise", literal_ids(node)
    if _called(node) == "Checked":
        assert isinstance(node, ast.Call)
        return "Checked", literal_ids(*node.args[1:], *node.keywords)
    if _called(node) == "Doc":
        return "Doc", literal_ids(node)
    return "checks", _checks_ids(node)


def sites() -> list[Site]:
    """Return every place in the package that enforces or documents a requirement."""
    return [
        site
        for path in source_files()
        for site in _sites_under(ast.parse(path.read_text(encoding="utf-8")), relative(path), "")
    ]


def _sites_under(parent: ast.AST, file: str, scope: str) -> list[Site]:
    found = []
    for node in ast.iter_child_nodes(parent):
        inner = ".".join(filter(None, (scope, _scope_name(node))))
        form, ids = ids_of(node)
        found += [Site(identifier, form, file, inner, getattr(node, "lineno", 0)) for identifier in dict.fromkeys(ids)]
        found += _sites_under(node, file, inner)
    return found


def _scope_name(node: ast.AST) -> str:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return node.name
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        return node.targets[0].id
    return ""


class _Disable(ast.NodeTransformer):
    def __init__(self, requirement: str) -> None:
        self.requirement = requirement

    def visit_Raise(self, node: ast.Raise) -> ast.stmt:
        return ast.Pass() if self.requirement in literal_ids(node) else node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        form, ids = ids_of(node)
        return node.args[0] if form == "Checked" and self.requirement in ids else node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
        self.generic_visit(node)
        if self.requirement in _checks_ids(node):
            node.body = ast.parse("def nothing():\n    return\n    yield").body[0].body  # type: ignore[attr-defined]
        return node


def disabled(text: str, requirement: str) -> str:
    """Return the source text of a module without the rule: it does not refuse or report anything for this id."""
    tree = _Disable(requirement).visit(ast.parse(text))
    return ast.unparse(ast.fix_missing_locations(tree))

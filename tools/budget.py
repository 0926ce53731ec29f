"""Budgets of size: ``python -m tools.budget`` prints each number beside its limit in `tools/budget.toml`.

A limit may only fall: a number below it is reported too, until the limit is that number. So the file shows what a
change cost or saved. With ``--write`` limits fall to the numbers; none rises.
"""

from __future__ import annotations

import ast
import json
import sys
import tomllib
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tools.walks import walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

REPOSITORY: Final = Path(__file__).resolve().parent.parent
LIMITS: Final = REPOSITORY / "tools" / "budget.toml"
PACKAGE: Final = "seglog_format"
SUPPORT: Final = ("proofs", "tools", "conformance/authoring")
HEADER_FIELD: Final = "partition_leader_epoch"


def trees(*folders: str) -> Iterator[tuple[str, ast.Module]]:
    """Yield the text and the parsed form of each module below some folders."""
    for folder in folders:
        for path in sorted((REPOSITORY / folder).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            yield text, ast.parse(text)


def code_lines(text: str, tree: ast.Module) -> int:
    """Return the number of lines that are neither blank, comment, docstring nor import."""
    left_out = {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom) or _is_text(node)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    return sum(
        bool(line.strip()) and not line.lstrip().startswith("#") and number not in left_out
        for number, line in enumerate(text.splitlines(), 1)
    )


def _is_text(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def decides_on(tree: ast.Module, word: str) -> bool:
    """Return whether a module has a condition, a comparison, a match or a key that mentions a word."""
    for node in ast.walk(tree):
        match node:
            case ast.If(test=asked) | ast.IfExp(test=asked) | ast.While(test=asked):
                parts: list[ast.AST] = [asked]
            case ast.Compare() | ast.match_case() | ast.Subscript():
                parts = [node.pattern] if isinstance(node, ast.match_case) else [node]
            case ast.comprehension(ifs=asked_of):
                parts = list(asked_of)
            case ast.Dict(keys=keys):
                parts = [key for key in keys if key is not None]
            case _:
                continue
        if any(word in ast.unparse(part).lower() for part in parts):
            return True
    return False


def imports_percent() -> float:
    """Return the share of the package's lines that are imports, in percent."""
    lines = found = 0
    for text, tree in trees(PACKAGE):
        lines += len(text.splitlines())
        nodes = (node for node in ast.walk(tree) if isinstance(node, ast.Import | ast.ImportFrom))
        found += sum((node.end_lineno or node.lineno) - node.lineno + 1 for node in nodes)
    return round(100 * found / lines, 1)


def raw_lines(*folders: str) -> int:
    """Return the number of lines of the modules below some folders."""
    return sum(len(text.splitlines()) for text, _ in trees(*folders))


def deciding(word: str) -> int:
    """Return how many modules of the package decide on a word."""
    return sum(decides_on(tree, word) for _, tree in trees(PACKAGE))


def public_names(module: str) -> int:
    """Return how many names a module makes public: those that it lists, else its classes."""
    found = import_module(module)
    classes = (name for name, value in vars(found).items() if isinstance(value, type) and value.__module__ == module)
    return len(getattr(found, "__all__", None) or [name for name in classes if not name.startswith("_")])


NUMBERS: Final[dict[str, Callable[[], float]]] = {
    "package: code lines": lambda: sum(code_lines(*each) for each in trees(PACKAGE)),
    "package: modules": lambda: sum(1 for _ in trees(PACKAGE)),
    "package: imports, percent of raw lines": imports_percent,
    "proofs, tools, authoring: raw lines": lambda: raw_lines(*SUPPORT),
    "public names: seglog_format": lambda: public_names("seglog_format"),
    "public names: seglog_format.types": lambda: public_names("seglog_format.types"),
    "public names: seglog_format.errors": lambda: public_names("seglog_format.errors"),
    "modules that decide on .swap": lambda: deciding("swap"),
    "modules that decide on zstd": lambda: deciding("zstd"),
    "modules that decide on a header field": lambda: deciding(HEADER_FIELD),
    "modules called by the first record": lambda: len(walk("first record")),
    "modules called by verify": lambda: len(walk("verify")),
    "modules called by recover and apply": lambda: len(walk("recover and apply")),
}


def complaints(numbers: dict[str, float], rows: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Yield each number that is not its limit, and each limit of nothing."""
    for name in rows.keys() ^ numbers.keys():
        yield f"{name}: in the list of numbers or in tools/budget.toml, not in both"
    for name, row in rows.items():
        number = numbers.get(name, row["limit"])
        if number > row["limit"]:
            yield f"{name}: {number:,} is above the limit of {row['limit']:,}"
        elif number < row["limit"]:
            yield f"{name}: the limit of {row['limit']:,} can fall to {number:,} (python -m tools.budget --write)"


def main(arguments: list[str]) -> int:
    """Print the table; return 1 if a number is not its limit."""
    rows: dict[str, dict[str, Any]] = tomllib.loads(LIMITS.read_text(encoding="utf-8"))
    numbers = {name: number() for name, number in NUMBERS.items()}
    if "--write" in arguments:
        for name, row in rows.items():
            row["limit"] = min(row["limit"], numbers.get(name, row["limit"]))
        LIMITS.write_text(written(rows), encoding="utf-8")
    print(f"{'':42} {'now':>8} {'limit':>8} {'goal':>8}")
    for name, number in numbers.items():
        row = rows.get(name, {})
        print(f"{name:42} {number:>8,} {row.get('limit', 0):>8,} {row.get('goal', 0):>8,}")
    print(f"{'package: raw lines, not judged':42} {raw_lines(PACKAGE):>8,}")
    problems = list(complaints(numbers, rows))
    print(*problems, sep="\n", file=sys.stderr, end="\n" if problems else "")
    return bool(problems)


def written(rows: dict[str, dict[str, Any]]) -> str:
    """Return the text of the file of limits."""
    head = LIMITS.read_text(encoding="utf-8").partition("[")[0]
    return head + "\n".join(
        f'["{name}"]\n' + "".join(f"{key} = {json.dumps(value)}\n" for key, value in row.items())
        for name, row in rows.items()
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

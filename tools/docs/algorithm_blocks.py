"""Write the algorithms that chapters print: ``python -m tools.docs.algorithm_blocks``, or ``--check`` to compare.

A block of a chapter is a comment that names functions or classes of `seglog_algorithms`, such as
``<!-- algorithm: lookup.find_entry -->``, and a fenced block of Python after it, which has their source text.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

REPOSITORY: Final = Path(__file__).resolve().parents[2]
SPEC: Final = REPOSITORY / "spec"
ALGORITHMS: Final = SPEC / "algorithms" / "seglog_algorithms"
BLOCK: Final = re.compile(r"^<!-- algorithm: (?P<names>[\w. ]+) -->\n```python\n.*?^```$", re.MULTILINE | re.DOTALL)


@cache
def sources(module: str) -> dict[str, str]:
    """Return the source text of every function and class of a module, by name."""
    text = (ALGORITHMS / f"{module}.py").read_text(encoding="utf-8")
    lines = text.splitlines()
    found = {}
    for node in ast.parse(text).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            found[node.name] = "\n".join(lines[first - 1 : node.end_lineno])
    return found


def printed(names: str) -> str:
    """Return the source text of functions and classes, such as ``lookup.find_entry``.

    Raises:
        KeyError: there is none of a name.
    """
    pairs = (name.split(".") for name in names.split())
    return "\n\n\n".join(sources(module)[name] for module, name in pairs)


def refreshed(text: str) -> str:
    """Return the text of a chapter with the source text of today in its blocks."""
    return BLOCK.sub(
        lambda match: f"<!-- algorithm: {match['names']} -->\n```python\n{printed(match['names'])}\n```", text
    )


def pages() -> Iterator[tuple[str, str]]:
    """Yield path and text of every chapter with a block."""
    for path in sorted(SPEC.glob("*.md")):
        text = path.read_text(encoding="utf-8")
        if BLOCK.search(text):
            yield path.relative_to(REPOSITORY).as_posix(), refreshed(text)


def main() -> int:
    """Write the chapters, or report which are out of date."""
    parser = argparse.ArgumentParser(description="write the algorithms that chapters print")
    parser.add_argument("--check", action="store_true", help="write nothing; fail when a chapter is out of date")
    check = parser.parse_args().check
    stale = [(path, text) for path, text in pages() if (REPOSITORY / path).read_text(encoding="utf-8") != text]
    for path, text in stale:
        print(f"{path}: out of date" if check else f"writing {path}")
        if not check:
            (REPOSITORY / path).write_text(text, encoding="utf-8")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main())

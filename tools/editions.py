"""Record an edition of the specification: ``python -m tools.editions record``.

Writes the rules of the last edition of ``spec/editions.toml`` to ``spec/editions/VERSION.json`` and prints the digest
that publishes it. ``--commit`` takes the chapters from an earlier state of this repository, ``--version`` names the
edition.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from seglog_conformance.toolchains import child_processes

from seglog_format.cli.explain import editions, state_of_chapters, state_text

if TYPE_CHECKING:
    from collections.abc import Iterator

REPOSITORY: Final = Path(__file__).resolve().parent.parent
SPEC: Final = REPOSITORY / "spec"


def chapters(commit: str) -> Iterator[tuple[str, str]]:
    """Yield stem and text of each chapter, in reading order.

    Args:
        commit: commit of this repository; empty for the working tree.
    """
    if not commit:
        yield from ((path.stem, path.read_text(encoding="utf-8")) for path in sorted(SPEC.glob("*.md")))
        return
    for name in sorted(_git("ls-tree", "--name-only", commit, "spec/").splitlines()):
        if name.endswith(".md"):
            yield Path(name).stem, _git("show", f"{commit}:{name}")


def _git(*words: str) -> str:
    command = ["git", "-C", str(REPOSITORY), *words]
    return child_processes.run(
        command, directory=REPOSITORY, capture_output=True, check=True, text=True, encoding="utf-8"
    ).stdout


def main() -> int:
    """Write the rules of an edition, and print the digest that publishes it."""
    parser = argparse.ArgumentParser(description="record an edition of the specification")
    parser.add_argument("action", choices=["record"])
    parser.add_argument("--version", default=editions()[-1].version, help="of the edition (default: the last)")
    parser.add_argument("--commit", default="", help="take the chapters from there")
    arguments = parser.parse_args()
    text = state_text(state_of_chapters(chapters(arguments.commit)))
    path = SPEC / "editions" / f"{arguments.version}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, encoding="utf-8")
    print(f'digest = "{hashlib.sha256(text.encode()).hexdigest()}"')
    return 0


if __name__ == "__main__":
    sys.exit(main())

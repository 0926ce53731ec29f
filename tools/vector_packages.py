"""Write the cases of the suite as packages for five registries: ``python -m tools.vector_packages -o DIRECTORY``.

Each directory is ready to be built and published by the registry's own client. All hold the same file, with a case on
each line; the readers of the file are in ``conformance/vectors/``.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from seglog_conformance.cases import MissingFixtureError, load_cases
from seglog_conformance.environment import suite_version

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from seglog_conformance.cases import Case

SOURCES: Final = Path(__file__).resolve().parent.parent / "conformance" / "vectors"
FOLDERS: Final = {
    "python": "seglog_vectors",
    "npm": ".",
    "go": ".",
    "rust": "src",
    "java": "src/main/resources/seglog/vectors",
}
"""The folder of the file in the package of each registry."""
FILE: Final = "vectors.jsonl"


def lines_of(cases: Iterable[Case]) -> Iterator[str]:
    """Yield a line for each case that has its fixtures, and its bytes: those of a recipe would be most of the file."""
    for case in cases:
        if case.is_made:
            continue
        try:
            asked = {"request": case.request, "expect": case.expect}
        except MissingFixtureError:
            continue
        about = {name: getattr(case, name) for name in ("id", "op", "level", "result", "requirements", "needs", "why")}
        yield json.dumps({**about, **asked}, separators=(",", ":")) + "\n"


def write_packages(directory: Path, cases: Iterable[Case], version: str, home: str) -> None:
    """Write a directory for each registry.

    Args:
        directory: where the packages go; earlier ones are replaced.
        cases: cases to pack.
        version: version of the packages.
        home: host and path that the Go module begins with; its host, backwards, is the group of Maven.
    """
    text = "".join(lines_of(cases))
    group = ".".join(reversed(home.partition("/")[0].split(".")))
    words = {"@VERSION@": version, "@HOME@": home, "@GROUP@": group}
    for name, folder in FOLDERS.items():
        package = directory / name
        shutil.rmtree(package, ignore_errors=True)
        shutil.copytree(SOURCES / name, package)
        for path in [path for path in package.rglob("*") if path.is_file()]:
            path.write_text(_filled(path.read_text(encoding="utf-8"), words), encoding="utf-8")
        (package / folder).mkdir(parents=True, exist_ok=True)
        (package / folder / FILE).write_text(text, encoding="utf-8")


def _filled(text: str, words: dict[str, str]) -> str:
    for word, value in words.items():
        text = text.replace(word, value)
    return text


def main() -> int:
    """Write all packages."""
    parser = argparse.ArgumentParser(description="Write the cases of the suite as packages for five registries.")
    parser.add_argument("-o", "--output", type=Path, required=True, help="directory that they are written to")
    parser.add_argument("--home", default="example.org", help="where the Go module is published, such as host/owner")
    given = parser.parse_args()
    write_packages(given.output, load_cases(), suite_version(), given.home)
    return 0


if __name__ == "__main__":
    sys.exit(main())

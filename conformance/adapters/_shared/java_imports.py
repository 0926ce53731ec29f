"""Copy Java sources, with the imports of Kafka's classes changed to a release's packages.

Kafka moves classes between packages from one release to the next. The sources here import each class from its package
in the newest release; for another release the imports are rewritten, except those of classes that the sources define
themselves. Up to 3.9 many packages begin with ``kafka``. A source that replaces a class is left out if the release has
that class.

usage: java_imports.py JARS TARGET SOURCES...
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import zipfile
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

KAFKA = ("org.apache.kafka.", "kafka.")
IMPORT = re.compile(r"^(import (?:static )?)(org\.apache\.kafka\.[a-z0-9_.]+)\.([A-Z]\w*)", re.MULTILINE)


def packages_of(jars: Path) -> dict[str, set[str]]:
    """Return the packages for each simple class name of Kafka in a directory of jars."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in sorted(jars.glob("*.jar")):
        with zipfile.ZipFile(path) as jar:
            for name in jar.namelist():
                package, _, simple = name.removesuffix(".class").replace("/", ".").rpartition(".")
                if name.endswith(".class") and "$" not in simple and package.startswith(KAFKA):
                    found[simple].add(package)
    return found


def brought(sources: Iterable[str]) -> dict[str, set[str]]:
    """Return the packages for each simple class name of Kafka in directories of sources."""
    found: dict[str, set[str]] = defaultdict(set)
    for source in map(Path, sources):
        for path in source.rglob("*.java"):
            found[path.stem].add(package_of(path, source))
    return found


def package_of(path: Path, source: Path) -> str:
    """Return the package of a source file below a directory of sources."""
    return ".".join(path.relative_to(source).parts[:-1])


def moved(text: str, packages: Mapping[str, set[str]]) -> str:
    """Return a source file's text with imports of the right packages; imports of unknown classes stay."""

    def imported(match: re.Match[str]) -> str:
        start, package, simple = match.groups()
        there = packages.get(simple, set())
        if there and package not in there:
            package = max(sorted(there), key=lambda one: len(os.path.commonprefix([one, package])))
        return f"{start}{package}.{simple}"

    return IMPORT.sub(imported, text)


def main(jars: str, target: str, *sources: str) -> None:
    """Copy all sources below some directories into one, after emptying it."""
    present = packages_of(Path(jars))
    packages = present | brought(sources)
    shutil.rmtree(target, ignore_errors=True)
    for source in map(Path, sources):
        for path in source.rglob("*.java"):
            if package_of(path, source) in present.get(path.stem, ()):
                continue
            copy = Path(target) / path.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(moved(path.read_text(encoding="utf-8"), packages), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])

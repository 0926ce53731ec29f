"""Copy Java sources, with the imports of Kafka's classes changed to a release's packages.

Kafka moves classes between packages from one release to the next. The sources here import each class from its package
in the newest release; for another release the imports are rewritten, except those of classes that the sources define
themselves. Up to 3.9 many packages begin with ``kafka``. A source that replaces a class is left out if the release has
that class. A directory of sources may name its neighbour in a file `like`: it has what that one has, and more.

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


def with_neighbours(sources: Iterable[str]) -> list[str]:
    """Return directories of sources, each after those whose sources it also has."""
    found: list[str] = []
    for source in sources:
        like = Path(source, "like")
        neighbours = [str(Path(source).with_name(like.read_text(encoding="ascii").strip()))] if like.exists() else []
        found += [*with_neighbours(neighbours), source]
    return found


def needed(sources: Iterable[str], present: Mapping[str, set[str]]) -> dict[Path, Path]:
    """Return the source files that a release needs, the later directory's first of two, below their directories."""
    return {
        path.relative_to(source): path
        for source in map(Path, sources)
        for path in source.rglob("*.java")
        if package_of(path.relative_to(source)) not in present.get(path.stem, ())
    }


def package_of(path: Path) -> str:
    """Return the package of a source file, given by its path below a directory of sources."""
    return ".".join(path.parts[:-1])


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
    packages = packages_of(Path(jars))
    files = needed(with_neighbours(sources), packages)
    packages |= {
        stem: {package_of(each) for each in files if each.stem == stem} for stem in {each.stem for each in files}
    }
    shutil.rmtree(target, ignore_errors=True)
    for below, path in files.items():
        copy = Path(target) / below
        copy.parent.mkdir(parents=True, exist_ok=True)
        copy.write_text(moved(path.read_text(encoding="utf-8"), packages), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])

"""Rules about the source tree that linters do not have. ``python -m tools.tidy`` prints the violations.

Each rule is a function that takes the repository's root and yields complaints.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from seglog_conformance.toolchains import child_processes

from tools.documented_names import documented_names_exist
from tools.lengths import exceptions_are_needed, functions_are_short, modules_are_short
from tools.public_names import private_uses, unlisted_uses
from tools.unused import constants_are_used, functions_are_used
from tools.wording import names_follow_glossary, of_tree, pages_are_plain, phrases_in, texts_are_plain

if TYPE_CHECKING:
    from collections.abc import Iterator

REPOSITORY = Path(__file__).resolve().parent.parent

LARGEST_FILE_BYTES = 5_000_000
LARGEST_FIXTURES_BYTES = 40_000_000

MACHINE_PATH = re.compile(r"(?<![\w.}])/(?:work|home|root|Users)/\w")
REGISTRY_HOST = re.compile(r"\b(?:pypi|pythonhosted|npmjs|crates|golang|maven|debian)\.(?:org|com|io|net)\b")
BARE_TODO = re.compile(r"\b(?:TODO|FIXME|XXX)\b(?!: \w+ \w+ \w+)(?!-)")

CONFLICT = re.compile(r"^(?:<{7}|>{7}|\|{7}) ")

OWN_VOICE = re.compile(
    r"(?i)\b(?:this (?:project|implementation)|ours|the reference reader)\b|`(?:seglog[ _]|salvage`)"
)

EXTERNAL_LINK = re.compile(r"\]\(https?://")
MONTH = re.compile(
    r"\b(?:January|February|March|April|May|June|July|August|September|October|November|December)\s20\d\d\b"
)

PROSE_ONLY = ("00-terms", "A-disagreements", "B-version-history", "C-departures", "D-errata")
"""Chapters without requirements."""
SCHEMA_HELPERS = (*("__init__", "fields", "fixed_fields", "protocol", "text", "tracing"),)
"""Schema modules that describe no structure of their own."""
APPLICATION_SCHEMAS = ("coordinator_records", "metadata_records")
"""Schema modules for what Kafka writes into topics of its own: data, to which no chapter but 32 has anything to say."""


def tracked_files(root: Path) -> list[Path]:
    """Return the files that git knows, or every file where there is no git."""
    command = ["git", "-C", str(root), "ls-files", "-z"]
    try:
        listed = child_processes.run(command, directory=REPOSITORY, capture_output=True, check=True).stdout.decode()
    except (OSError, subprocess.CalledProcessError):
        return sorted(path for path in root.rglob("*") if path.is_file() and ".venv" not in path.parts)
    return [path for name in listed.split("\0") if name and (path := root / name).is_file()]


def text_lines(root: Path) -> Iterator[tuple[str, int, str]]:
    """Yield file, number and text of every line of text; the licence is left out, as we may not change it."""
    for path in tracked_files(root):
        name = path.relative_to(root).as_posix()
        data = path.read_bytes()
        if b"\0" in data[:8000] or name == "LICENSE" or path.suffix == ".gz":
            continue
        for number, line in enumerate(data.decode("utf-8", errors="replace").splitlines(), start=1):
            yield name, number, line


def no_machine_in_text(root: Path) -> Iterator[str]:
    """Yield lines that are no text of the project: a machine's path, a registry's host, a conflict, a bare open end."""
    patterns = ((MACHINE_PATH, "a path of one machine"), (REGISTRY_HOST, "the host of a registry"))
    patterns += ((BARE_TODO, "an open end without a reason of three words or more"),)
    patterns += ((CONFLICT, "a mark of a merge that was not resolved"),)
    for name, number, line in text_lines(root):
        for pattern, what in patterns:
            if pattern.search(line) and not name.endswith("tidy.py"):
                yield f"{name}:{number}: {what}: {line.strip()[:80]}"


def files_are_small(root: Path) -> Iterator[str]:
    """Yield files above 5 MB, and the size of all fixtures if it is above 40 MB."""
    sizes = {path.relative_to(root).as_posix(): path.stat().st_size for path in tracked_files(root)}
    for name, size in sizes.items():
        if size > LARGEST_FILE_BYTES:
            yield f"{name}: {size} bytes"
    fixtures = sum(size for name, size in sizes.items() if name.startswith("fixtures/"))
    if fixtures > LARGEST_FIXTURES_BYTES:
        yield f"fixtures/: {fixtures} bytes"


def stems_agree(root: Path) -> Iterator[str]:
    """Yield chapters, schemas, tests and pages of different stems: a reader finds each by the stem of another."""
    chapters = {path.stem for path in root.glob("spec/*.md")}
    stems = {chapter.partition("-")[2].replace("-", "_") for chapter in chapters}
    for path in sorted(root.glob("seglog_format/schema/*.py")):
        if path.stem not in SCHEMA_HELPERS + APPLICATION_SCHEMAS and not {path.stem, f"{path.stem}s"} & stems:
            yield f"seglog_format/schema/{path.name}: spec/ has no chapter of that name"
    for chapter in sorted(chapters - set(PROSE_ONLY)):
        test = f"tests/test_{chapter.partition('-')[2].replace('-', '_')}.py"
        if not (root / test).is_file():
            yield f"spec/{chapter}.md: there is no {test}"
    for path in sorted(root.glob("tests/faults/*.toml")):
        stem = path.stem.replace("_", "-")
        if not any(part.startswith(stem) for chapter in chapters for part in (chapter, chapter.partition("-")[2])):
            yield f"tests/faults/{path.name}: spec/ has no chapter of that name"


def links_out_are_dated(root: Path) -> Iterator[str]:
    """Yield the sections that link to another site without the month and year of the visit."""
    for path in sorted([*root.glob("docs/explanation/*.md"), *root.glob("spec/*.md")]):
        for section in re.split(r"^(?=#+ )", path.read_text(encoding="utf-8"), flags=re.MULTILINE):
            if EXTERNAL_LINK.search(section) and not MONTH.search(section):
                title = section.partition("\n")[0]
                yield f"{path.relative_to(root).as_posix()}: {title}: a link to another site without month and year"


def identifiers_follow_glossary(root: Path) -> Iterator[str]:
    """Yield the identifiers with a word that the glossary replaces, in every directory."""
    yield from names_follow_glossary(root, tracked_files(root))


def text_follows_glossary(root: Path) -> Iterator[str]:
    """Yield the lines with a phrase that the glossary replaces."""
    yield from phrases_in(text_lines(root), of_tree(root)[0])


def prose_is_plain(root: Path) -> Iterator[str]:
    """Yield the turns of phrase in pages and strings that have a plainer word."""
    yield from pages_are_plain(root, tracked_files(root))
    yield from texts_are_plain(root, tracked_files(root))


def chapters_name_no_implementation(root: Path) -> Iterator[str]:
    """Yield the lines of the normative chapters, 10 to 73, that speak of this project or of its commands."""
    for path in sorted(root.glob("spec/[1-7]*.md")):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            if OWN_VOICE.search(line):
                yield f"{path.relative_to(root).as_posix()}:{number}: not of the format: {line.strip()[:80]}"


RULES = (
    *(no_machine_in_text, files_are_small, modules_are_short, functions_are_short, exceptions_are_needed, stems_agree),
    *(functions_are_used, constants_are_used, documented_names_exist, links_out_are_dated),
    *(private_uses, unlisted_uses, identifiers_follow_glossary, text_follows_glossary, prose_is_plain),
    chapters_name_no_implementation,
)


def main() -> int:
    """Print every complaint."""
    found = [complaint for rule in RULES for complaint in rule(REPOSITORY)]
    for complaint in found:
        print(complaint)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

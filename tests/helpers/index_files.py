"""Index files and the examples of their chapters for tests: parsed, written to disk, verified."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from helpers.support import REPOSITORY, authentic, authentic_expected, authentic_names
from seglog_format.checks import verify

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

BLOCK = re.compile(
    r"^```hex (valid|invalid (?P<breaks>\S+))(?P<options>( \S+=\S+)*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL
)
SUFFIXES = {
    "batch": ".log",
    "offset-index": ".index",
    "time-index": ".timeindex",
    "transaction-index": ".txnindex",
    "producer-snapshot": ".snapshot",
}
RULES = {
    "offset-index": "SEG-IDX",
    "time-index": "SEG-TIX",
    "transaction-index": "SEG-TXN",
    "producer-snapshot": "SEG-PSN",
}


@dataclass(frozen=True)
class Example:
    """A hex block of a chapter."""

    breaks: str | None
    data: bytes
    options: Mapping[str, str]

    @property
    def base_offset(self) -> int:
        return int(self.options.get("base", "0"))

    @property
    def kind(self) -> str:
        return self.options["kind"]


@cache
def examples(chapter: str) -> tuple[Example, ...]:
    """Return the hex blocks of a chapter, in order."""
    text = (REPOSITORY / "spec" / f"{chapter}.md").read_text(encoding="utf-8")
    return tuple(_example(match) for match in BLOCK.finditer(text))


def _example(match: re.Match[str]) -> Example:
    data = bytes.fromhex("".join(line.partition(";")[0] for line in match["body"].splitlines()))
    return Example(match["breaks"], data, dict(option.split("=") for option in match["options"].split()))


def example(chapter: str, name: str) -> Example:
    (found,) = (block for block in examples(chapter) if block.options.get("name") == name)
    return found


def table(chapter: str, heading: str) -> list[list[int]]:
    """Return the numbers in the rows of the table of a chapter that has this heading row."""
    text = (REPOSITORY / "spec" / f"{chapter}.md").read_text(encoding="utf-8")
    rows = text.partition(heading + "\n")[2].splitlines()[1:]
    return [[int(number) for number in re.findall(r"-?\d+", row)] for row in rows[: rows.index("")]]


def partition(directory: Path, base_offset: int, files: Mapping[str, bytes], *, next_base: int | None = None) -> Path:
    """Return a partition directory with one segment, and an empty one behind it if ``next_base`` is given."""
    target = directory / "topic-0"
    target.mkdir()
    for kind, data in files.items():
        (target / f"{base_offset:020}{SUFFIXES[kind]}").write_bytes(data)
    if next_base is not None:
        (target / f"{next_base:020}.log").touch()
    return target


def write_example(directory: Path, chapter: str, block: Example) -> Path:
    """Return a partition directory with an example, and with the log that it points into."""
    log = example(chapter, block.options["log"]).data if "log" in block.options else b""
    next_base = block.options.get("next")
    files = {"batch": log, block.kind: block.data}
    return partition(directory, block.base_offset, files, next_base=None if next_base is None else int(next_base))


def broken(path: Path, kind: str) -> list[str]:
    """Ids of the requirements for one kind of file that ``verify`` finds broken, in order."""
    found = [finding.requirement for finding in verify(path)]
    return [identifier for identifier in found if identifier.startswith(RULES[kind])]


def authentic_lines(kind: str) -> Iterator[tuple[str, Path, dict[str, Any]]]:
    """Case, file and expected line of every side file of a kind that real brokers wrote."""
    for name in authentic_names():
        lines = [line for line in authentic_expected(name) if line["type"] == kind]
        for line in lines:
            yield name, authentic(name) / line["file"], line


def base_offset_of(path: Path) -> int:
    return int(path.name.partition(".")[0])

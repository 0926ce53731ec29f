"""The examples in the chapters of the specification: fenced blocks of bytes, valid or invalid."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

from helpers.support import REPOSITORY
from seglog_format.requirements import Severity, requirement

if TYPE_CHECKING:
    from collections.abc import Mapping

BLOCK = re.compile(
    r"^```(?P<form>hex|text) (?P<verdict>valid|invalid)(?P<rest>[^\n]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True)
class Example:
    """A fenced block of a chapter, by where it starts."""

    chapter: str
    line: int
    breaks: str | None
    kind: str
    options: Mapping[str, str]
    data: bytes

    @property
    def base_offset(self) -> int:
        return int(self.options.get("base", "0"))

    @property
    def severity(self) -> Severity:
        return requirement(self.breaks).severity if self.breaks else Severity.ERROR

    def __str__(self) -> str:
        return f"{self.chapter}:{self.line}"


def parsed(chapter: str, text: str) -> list[Example]:
    return [_example(chapter, text.count("\n", 0, match.start()) + 1, match) for match in BLOCK.finditer(text)]


def _example(chapter: str, line: int, match: re.Match[str]) -> Example:
    words = match["rest"].split()
    breaks = words.pop(0) if match["verdict"] == "invalid" else None
    options = dict(word.split("=", 1) for word in words)
    data = match["body"].strip().encode() if match["form"] == "text" else _bytes_of(match["body"])
    return Example(chapter, line, breaks, options.pop("kind"), options, data)


def _bytes_of(body: str) -> bytes:
    return bytes.fromhex("".join(line.partition(";")[0] for line in body.splitlines()))


@cache
def examples() -> tuple[Example, ...]:
    chapters = sorted((REPOSITORY / "spec").glob("*.md"))
    return tuple(block for path in chapters for block in parsed(path.stem, path.read_text(encoding="utf-8")))

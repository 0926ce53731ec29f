"""The whole specification as one page, to print or to search: every chapter, the glossary and the list of changes."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

from seglog_format.cli.explain import editions

if TYPE_CHECKING:
    from collections.abc import Callable

REPOSITORY: Final = Path(__file__).resolve().parents[2]
PAGE: Final = "spec/whole.md"
BEHIND: Final = ("docs/specification/glossary.md", "docs/specification/changes.md")
"""Generated pages that belong to the specification."""

HEADING: Final = re.compile(r"^(#+) (.+)$", re.MULTILINE)
LINK: Final = re.compile(r"\]\((?:\.\./spec/)?([\w-]+)\.md(#[\w-]+)?\)")
STAYS: Final = re.compile(r"(?:dep|err|f-dis)-\d+")
"""Headings that keep their anchor: they are numbers, and links lead to them."""

FRONT: Final = """\
---
search:
  exclude: true
hide: [navigation, toc]
---

# The segmented log format of Apache Kafka

{edition}, for Kafka {kafka}. The whole specification on one page, for printing; the chapters
[have pages of their own](index.md).

"""


def parts() -> dict[str, Path]:
    """Return the files that make up the specification, by stem, in reading order."""
    paths = [*sorted((REPOSITORY / "spec").glob("*.md")), *(REPOSITORY / name for name in BEHIND)]
    return {path.stem: path for path in paths}


def page(outside_fences: Callable[[str, Callable[[str], str]], str]) -> str:
    """Return the page as Markdown.

    Args:
        outside_fences: applies a change to a text, except for fenced blocks in it.
    """
    present = editions()[-1]
    texts = [FRONT.format(edition=present.title, kafka=present.kafka)]
    for stem, path in parts().items():
        text = path.read_text(encoding="utf-8")
        texts.append(outside_fences(text, lambda text, stem=stem: _within(text, stem)))  # type: ignore[misc]
    return "\n\n".join(texts)


def _within(text: str, stem: str) -> str:
    """Return a chapter for the page: headings one level lower, each with its own anchor, and links within the page."""
    seen: Counter[str] = Counter()
    return LINK.sub(_link, HEADING.sub(lambda match: _heading(match, stem, seen), text))


def _heading(match: re.Match[str], stem: str, seen: Counter[str]) -> str:
    level, title = match.groups()
    slug = re.sub(r"[^\w-]+", "-", title.lower()).strip("-")
    anchor = stem if level == "#" else slug if STAYS.fullmatch(slug) else f"{stem}--{slug}"
    seen[anchor] += 1
    number = f"-{seen[anchor]}" if seen[anchor] > 1 else ""  # a title may come again in a list of changes
    return f"#{level} {title} {{ #{anchor}{number} }}"


def _link(match: re.Match[str]) -> str:
    stem, anchor = match.groups()
    if stem not in parts():
        return match[0]
    return f"]({anchor or f'#{stem}'})"

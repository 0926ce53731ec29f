"""Permanent pages below ``r/`` that redirect to each numbered rule, departure, difference and erratum.

A withdrawn rule of an earlier edition keeps its page, which says that it is withdrawn. The pages are made while the
site is built.
"""

from __future__ import annotations

import re
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Final

from seglog_format.cli.explain import editions, rules_of
from tools.rules import requirements

if TYPE_CHECKING:
    from collections.abc import Iterator

SPEC: Final = Path(__file__).resolve().parents[2] / "spec"
NUMBERED: Final = re.compile(r"^## ((?:DEP|F-DIS|ERR)-\d+)$", re.MULTILINE)
NUMBERED_HEADING: Final = re.compile(r"^##+ ((?:DEP|F-DIS|ERR)-\d+)(?: \{[^}]*\})?$", re.MULTILINE)
DEPARTURE: Final = re.compile(r"(What brokers do \()(DEP-\d\d)(?=\))")
NAMED: Final = re.compile(r"^\[(SEG-[A-Z]{3}-\d{3})\]: |What brokers do \((DEP-\d\d)\)", re.MULTILINE)
"""Matches the definition of a rule, or the number of a departure in the text below its rule."""

PAGE: Final = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{name}</title>
<link rel="canonical" href="{target}">
<meta http-equiv="refresh" content="{delay}; url={target}">
</head>
<body>
<h1>{name}</h1>
<p>{text}</p>
<p><a href="{target}">{name} in the specification</a></p>
</body>
</html>
"""
READING_SECONDS: Final = 20
"""Seconds for which the page of a withdrawn rule is shown before it redirects."""


def path_of(name: str) -> str:
    """Return the path of a page in the site.

    Args:
        name: a number, such as ``SEG-IDX-004`` or ``DEP-07``.
    """
    return f"r/{name}/index.html"


def made_pages() -> Iterator[tuple[str, str]]:
    """Yield path and text of each page."""
    for entry in requirements().values():
        yield path_of(entry.id), _page(entry.id, entry.chapter, entry.text)
    for name, text in withdrawn().items():
        shown = f"This rule is not in the present edition. It read: {text}"
        yield path_of(name), _page(name, "../specification/changes", shown, delay=READING_SECONDS, anchor="")
    for name, (chapter, anchor) in numbered().items():
        yield path_of(name), _page(name, chapter, "", anchor=f"#{anchor}")


def numbered() -> dict[str, tuple[str, str]]:
    """Return chapter and anchor of each departure, difference and erratum; for a departure, those of its first rule."""
    found: dict[str, tuple[str, str]] = {}
    texts = {path.stem: path.read_text(encoding="utf-8") for path in sorted(SPEC.glob("*.md"))}
    for chapter, text in texts.items():
        found |= {name: (chapter, name.lower()) for name in NUMBERED.findall(text)}
    for chapter, text in texts.items():
        rule = ""
        for match in NAMED.finditer(text):
            rule = match[1] or rule
            if match[2]:
                found.setdefault(match[2], (chapter, rule.lower()))
    return found


def withdrawn() -> dict[str, str]:
    """Return the last text of each withdrawn rule of the published editions."""
    published = (edition for edition in editions() if edition.digest)
    texts = {key: kept["text"] for edition in published for key, kept in rules_of(edition).items()}
    return {key: text for key, text in texts.items() if key not in requirements()}


def linked(markdown: str) -> str:
    """Return a chapter with a link to the permanent page of each departure, difference and erratum.

    Args:
        markdown: its text.
    """
    markdown = NUMBERED_HEADING.sub(r"\g<0>\n\n[permanent link](../r/\1/index.html)", markdown)
    return DEPARTURE.sub(r"\1[\2](../r/\2/index.html)", markdown)


def _page(name: str, chapter: str, text: str, *, delay: int = 0, anchor: str | None = None) -> str:
    fragment = f"#{name.lower()}" if anchor is None else anchor
    return PAGE.format(name=name, target=f"../../spec/{chapter}/{fragment}", delay=delay, text=escape(text))

"""The search of the site: rules are found by their id, terms by each of their names, and pages rank before lists.

The theme indexes headings only. A rule has no heading, and a term is a row of a table, so each gets its own entry here.
"""

from __future__ import annotations

import html
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tools.docs import glossary_page, whole_page
from tools.rules import requirements

if TYPE_CHECKING:
    from collections.abc import Iterator

REPOSITORY: Final = Path(__file__).resolve().parents[2]
COMMAND: Final = re.compile(r"^## seglog (\S+)\n(.*?)(?=^## |\Z)", re.MULTILINE | re.DOTALL)
OPTION: Final = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
INDEX: Final = "search/search_index.json"
LISTS: Final = ("reference/requirements", "specification/changes", "reference/kafka-4", "reference/errors")
REPEATED: Final = (whole_page.PAGE, "source/")
"""Pages that are left out, because other pages have the same text."""
BOOSTS: Final = {
    **dict.fromkeys(LISTS, 0.2),
    "conformance/index": 4.0,
    "conformance/": 0.2,
    "reference/python": 0.2,
    "reference/command-line": 0.5,
    "contributing": 0.3,
    "glossary": 0.2,
    "zh/": 0.2,
    "how-to/": 4.0,
    "spec/": 3.0,
    "tutorial/": 1.0,
}
"""Weight of the pages whose path has a prefix, instead of 1; the first matching prefix counts."""
RULE_BOOST: Final = 4.0
TERM_BOOST: Final = 2.6
COMMAND_BOOST: Final = 6.0


def meta(path: str) -> dict[str, object]:
    """Return the search settings of a page.

    Args:
        path: path of its Markdown, below the documents.
    """
    if path.startswith(REPEATED):
        return {"exclude": True}
    return next(({"boost": boost} for start, boost in BOOSTS.items() if path.startswith(start)), {})


def entries() -> Iterator[dict[str, Any]]:
    """Yield an entry for each rule, each command and each term."""
    for rule in requirements().values():
        location = f"spec/{rule.chapter}/#{rule.id.lower()}"
        yield {"location": location, "title": rule.id, "text": html.escape(rule.text), "boost": RULE_BOOST}
    commands = (REPOSITORY / "docs" / "reference" / "command-line.md").read_text(encoding="utf-8")
    for name, section in COMMAND.findall(commands):
        location, options = f"reference/command-line/#seglog-{name}", " ".join(sorted({*OPTION.findall(section)}))
        yield {"location": location, "title": f"seglog {name}", "text": f"Options: {options}", "boost": COMMAND_BOOST}
    page = glossary_page.PAGE.removeprefix("docs/").removesuffix(".md")
    for term, meaning in glossary_page.terms().items():
        names = ", ".join([term, *glossary_page.SYNONYMS.get(term, ())])
        anchor = glossary_page.anchor_of(glossary_page.names_of(term)[0])
        yield {"location": f"{page}/#{anchor}", "title": names, "text": html.escape(meaning), "boost": TERM_BOOST}


def tune(site: Path) -> None:
    """Add the entries to the search index of a finished site."""
    path = site / INDEX
    index = json.loads(path.read_text(encoding="utf-8"))
    index["docs"] += entries()
    path.write_text(json.dumps(index, separators=(",", ":"), ensure_ascii=False), encoding="utf-8")

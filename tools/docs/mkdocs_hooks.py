"""Changes that the site makes to the Markdown from which it is built.

The chapters of spec/ become pages unchanged, each requirement gets an anchor, and every requirement id in the text of
any page becomes a link to it. So the source remains plain text that is readable without a site.
"""

from __future__ import annotations

import posixpath
import re
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from mkdocs.structure.files import File

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from seglog_format.cli.explain import editions
from tools.docs import explorer_page, permalinks, siblings, site_home, site_search, source_pages, whole_page
from tools.rules import broker_marks, requirements

if TYPE_CHECKING:
    from collections.abc import Iterable

    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

REPOSITORY = Path(__file__).resolve().parents[2]
SPECIFICATION = ("specification/glossary.md", "specification/changes.md")
"""Generated pages that belong to the specification."""
PARTS = {
    "Directories": "01",
    "The log": "23",
    "Beside the log": "45",
    "Reading and writing": "67",
    "Security, and a dialect": "89",
    "Appendices": "ABCDEFGH",
}
"""Parts of the specification, and the first characters of the names of their chapters."""
TOPICS = ("coordinator-records", "metadata-records")
"""Pages of the reference on records in Kafka's own topics, which chapter 32 covers."""
TOOLS = ("command-line", "broker-lines", "errors")
LIBRARY = ("python", "python-types", "python-spark")
LANGUAGE = re.compile(r"^\[http[^\n]*\), ([A-Z][\w /]*), ?$", re.MULTILINE)
"""The line of an implementation's page that has its language."""
SEARCH = 'data-md-component="search" role="dialog"'
"""Attributes of the theme's search dialog, which has no label."""

DEFINITION = re.compile(
    r"^\[(SEG-[A-Z]{3}-\d{3})\]: (MUST|SHOULD|MAY)[^\n]*\n(.+?)(?=\n\s*\n|\Z)", re.MULTILINE | re.DOTALL
)
FENCED = re.compile(r"^(```+).*?^\1\s*$", re.MULTILINE | re.DOTALL)
HEX_FENCE = re.compile(r"^(```+)(?:hex|text) (valid|invalid)([^\n]*)$", re.MULTILINE)
LINKABLE = re.compile(r"(?<![\w\[#/>-])(`?)(SEG-[A-Z]{3}-\d{3})\1(?![\w\]-])")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the chapters and the generated pages into the navigation, in chapter order."""
    site_home.show(config)
    pages = _conformance_pages()
    config.nav = [section for section in config.nav or [] if pages or "Conformance" not in section]
    chapters = [f"spec/{path.name}" for path in sorted((REPOSITORY / "spec").glob("*.md"))]
    for section in config.nav:
        if "Specification" in section:
            section["Specification"] = _specification_nav(chapters)
        if "Reference" in section:
            section["Reference"] = _reference_nav(chapters)
        if "Conformance" in section:
            section["Conformance"] = pages
    return config


def _specification_nav(chapters: list[str]) -> list[object]:
    """Return the chapters by the first character of their names, and the pages made from them; each part folds."""
    found = [{title: [one for one in chapters if Path(one).name[0] in names]} for title, names in PARTS.items()]
    made = {"About this text": [*SPECIFICATION, {"On one page": whole_page.PAGE}]}
    return ["spec/index.md", {"Chapters": [*found, made]}]


def _reference_nav(chapters: list[str]) -> list[object]:
    """Return the pages of the reference: structures in the order of their chapters, then all others by subject."""
    pages = {path.stem for path in (REPOSITORY / "docs" / "reference").glob("*.md")} - {"index", "requirements"}
    rules = sorted(source_pages.tables())
    stems = [Path(chapter).stem.partition("-")[2] for chapter in chapters]
    structures = [stem for stem in stems if stem in pages] + [name for name in TOPICS if name in pages]
    tools = [name for name in TOOLS if name in pages]
    library = [name for name in LIBRARY if name in pages]
    others = sorted(pages - set(structures) - set(tools) - set(library))
    listed: list[object] = [
        {"Structures": _paths(structures)},
        {"Command and library": [*_paths(tools), {"Python": _paths(library)}]},
    ]
    tables = [{"Tables and files": _paths(others)}, {"Requirements": ["reference/requirements.md", *rules]}]
    about = [{"About": ["changelog.md", {"Words of this project": "glossary.md"}]}]
    return ["reference/index.md", *listed, {"More": [*tables, *about]}]


def _paths(stems: Iterable[str]) -> list[str]:
    return [f"reference/{stem}.md" for stem in stems]


def _conformance_pages() -> list[object]:
    """Return the matrix, then the implementations by language; each language folds."""
    languages: dict[str, list[str]] = {}
    for path in sorted((REPOSITORY / "docs" / "conformance").glob("*.md")):
        if path.stem != "index" and (found := LANGUAGE.search(path.read_text(encoding="utf-8"))):
            languages.setdefault(found[1].replace("Cython", "Python"), []).append(f"conformance/{path.name}")
    if not languages:
        return []
    return [
        {"Results": "conformance/index.md"},
        {"Property tests": "conformance/property-tests.md"},
        {"Pairs": "conformance/pairs.md"},
        {"Power cuts": "conformance/power-cuts.md"},
        {"Fixed defects": "conformance/bugs.md"},
        {"What answers rest on": "conformance/sources.md"},
        {"Implementations": [{name: languages[name]} for name in sorted(languages)]},
    ]


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the chapters of the specification, the explorer's script, and the pages that requirements link to."""
    for name, text in explorer_page.made_files():
        files.append(File.generated(config, f"explorer/{name}", content=text))
    for path in sorted((REPOSITORY / "spec").glob("*.md")):
        page = File.generated(config, f"spec/{path.name}", content=path.read_text(encoding="utf-8"))
        files.append(page)
    files.append(File.generated(config, "spec/index.md", content=_contents()))
    files.append(File.generated(config, whole_page.PAGE, content=whole_page.page(_outside_fences)))
    for name, text in (*source_pages.made_pages(), *permalinks.made_pages()):
        files.append(File.generated(config, name, content=text))
    guide = (REPOSITORY / "CONTRIBUTING.md").read_text(encoding="utf-8")
    files.append(File.generated(config, "contributing.md", content=guide))
    changes = (REPOSITORY / "CHANGELOG.md").read_text(encoding="utf-8")
    files.append(File.generated(config, "changelog.md", content=changes))
    return files


def _contents() -> str:
    present = editions()[-1]
    state = f"published {present.published}" if present.published else "a draft until it has a date"
    lines = [
        "# Specification",
        "",
        f"Edition {present.number}, {state}, for Kafka {present.kafka}: [what changed](../specification/changes.md).",
        "",
        "Each rule has a number that never changes, a level, and a note of whom it binds. **MUST**: Kafka's own code",
        "enforces it, or data are lost or corrupted where it does not hold. **SHOULD** and **MAY**: everything else.",
        "",
    ]
    for path in sorted((REPOSITORY / "spec").glob("*.md")):
        title = path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")
        lines.append(f"- [{title}]({path.name})")
    lines += [
        "- [Glossary of the format](../specification/glossary.md)",
        "- [Editions and their changes](../specification/changes.md)",
        f"- [All of it on one page]({Path(whole_page.PAGE).name}), for printing",
    ]
    return "\n".join(lines) + "\n"


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001
    """Give requirements their anchors and links."""
    source = page.file.src_uri
    page.meta.setdefault("search", site_search.meta(source))
    markdown = siblings.with_siblings(markdown, source)
    if source.startswith("spec/"):
        markdown = HEX_FENCE.sub(_hex_fence, _outside_fences(markdown, _numbered))
    if source.startswith(source_pages.TABLES):
        markdown = source_pages.linked(markdown, source)
    return _outside_fences(markdown, lambda text: LINKABLE.sub(lambda match: _link(match, source), text))


def _numbered(text: str) -> str:
    """Return part of a chapter with anchors and permanent links for rules, departures, differences and errata."""
    return permalinks.linked(DEFINITION.sub(_definition, text))


def _definition(match: re.Match[str]) -> str:
    identifier, level, text = match.groups()
    entry = requirements()[identifier]
    facts = f"binds {', '.join(entry.binds)} · {broker_marks(entry)}"
    return (
        f'<div class="requirement {level.lower()}" id="{identifier.lower()}" markdown>\n\n'
        f'<p class="requirement-head" markdown><a href="#{identifier.lower()}">{identifier}</a> <b>{level}</b> {facts}'
        f" · [code and tests](../reference/requirements/{entry.chapter}.md#{identifier.lower()})"
        f" · [permanent link](../{permalinks.path_of(identifier)})</p>\n\n"
        f"{text}\n\n</div>"
    )


def _hex_fence(match: re.Match[str]) -> str:
    fence, verdict, rest = match.groups()
    named = re.search(r"SEG-[A-Z]{3}-\d{3}", rest)
    title = f"breaks {named.group()}" if verdict == "invalid" and named else "valid"
    return f'{fence}text title="{title}"'


def _outside_fences(markdown: str, change: object) -> str:
    parts = []
    end = 0
    for fence in FENCED.finditer(markdown):
        parts += [change(markdown[end : fence.start()]), fence.group()]  # type: ignore[operator]
        end = fence.end()
    return "".join([*parts, change(markdown[end:])])  # type: ignore[operator]


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:  # noqa: ARG001
    """Add labels for screen readers to elements of the theme that have none."""
    return output.replace(SEARCH, f'{SEARCH} aria-label="Search"')


def on_post_build(config: MkDocsConfig) -> None:
    """Complete the index of the search, which the theme has written."""
    site_search.tune(Path(config.site_dir))


@cache
def _chapter(identifier: str) -> str | None:
    entry = requirements().get(identifier)
    return None if entry is None else entry.chapter


def _link(match: re.Match[str], source: str) -> str:
    quote, identifier = match.groups()
    chapter = _chapter(identifier)
    if chapter is None:
        return match.group()
    if source == whole_page.PAGE:
        return f"[{quote}{identifier}{quote}](#{identifier.lower()})"
    target = posixpath.relpath(f"spec/{chapter}.md", posixpath.dirname(source) or ".")
    return f"[{quote}{identifier}{quote}]({target}#{identifier.lower()})"

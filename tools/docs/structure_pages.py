"""The reference pages of structures on disk: one for each schema module, with table, picture and rules."""

from __future__ import annotations

import re
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

from seglog_format.cli.structures import Structure, structures, svg, table
from tools.docs import message_tables, page_examples, verdicts
from tools.rules import requirements

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_format.types import Requirement

REPOSITORY = Path(__file__).resolve().parents[2]
CAPITALS = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[0-9])(?=[A-Z])")
KEPT = {"partly": "only partly keep", "no": "do not keep"}
"""Words for a departure of brokers from a rule."""


def page_order() -> list[str]:
    """Return the paths of the pages, in chapter order."""
    return [_path(module) for module, _ in _by_module()]


def pages(notice: str) -> dict[str, str]:
    """Return the content of every page and picture, by path below the repository.

    Args:
        notice: first line of each page, which says that it is generated.
    """
    made = {}
    for module, group in _by_module():
        made[_path(module)] = notice + "\n".join(_page(module, group)) + "\n"
        for structure in group:
            if _is_drawn(structure):
                made[f"docs/{_picture(structure)}"] = svg([structure], link=_link_from_picture) + "\n"
    return made


def _by_module() -> list[tuple[str, list[Structure]]]:
    """Return the structures by the module that declares them; those without a chapter come last."""
    ordered = sorted(structures(), key=lambda structure: (structure.chapter or 100, structure.module))
    return [(module, list(group)) for module, group in groupby(ordered, key=lambda structure: structure.module)]


def _chapter(module: str) -> str | None:
    """Return the chapter of the same name, in the singular or plural."""
    stem = module.replace("_", "-")
    names = [path.stem for path in sorted((REPOSITORY / "spec").glob("*.md"))]
    return next((name for name in names if name.partition("-")[2] in (stem, f"{stem}s")), None)


def _stem(module: str) -> str:
    chapter = _chapter(module)
    return module.replace("_", "-") if chapter is None else chapter.partition("-")[2]


def _path(module: str) -> str:
    return f"docs/reference/{_stem(module)}.md"


def _picture(structure: Structure) -> str:
    return f"assets/{CAPITALS.sub('-', structure.name).lower()}.svg"


def _is_drawn(structure: Structure) -> bool:
    """Return whether a structure gets a picture: text and names have no fixed bytes, and one number needs none."""
    return len(structure.fields) > 1 and any(field.size is not None for field in structure.fields)


def _link_from_picture(identifier: str) -> str:
    return f"../spec/{requirements()[identifier].chapter}/#{identifier.lower()}"


def _page(module: str, group: list[Structure]) -> Iterator[str]:
    chapter = _chapter(module)
    yield f"# {_stem(module).replace('-', ' ').capitalize()}"
    yield ""
    source = f"declared in `seglog_format/schema/{module}.py`"
    if chapter is None:
        yield f"Records of Kafka's own topics, {source}: messages of Kafka's protocol, which come and go with versions."
        yield "[Control records](../spec/32-control-records.md) describe how a record holds them, in SEG-CTL-010."
    else:
        yield f"Specified in [{chapter.replace('-', ' ')}](../spec/{chapter}.md), {source}."
    for structure in group:
        yield from _structure(structure)
    yield from message_tables.tables(module)
    yield from page_examples.real_files(module)
    if chapter is not None:
        entries = [entry for entry in requirements().values() if entry.chapter == chapter]
        yield from _unusual(entries, chapter)
        yield from page_examples.broken_examples(chapter)
        yield from _rules(entries)


def _structure(structure: Structure) -> Iterator[str]:
    size = "" if structure.size is None else f" ({structure.size} bytes)"
    yield f"\n## {structure.name}{size}\n"
    if _is_drawn(structure):
        picture = f"../{_picture(structure)}"
        yield f"[![Bytes of {structure.name}]({picture})]({picture})\n"
    yield table(structure)


def _unusual(entries: list[Requirement], chapter: str) -> Iterator[str]:
    """Yield encodings that look unusual but are valid: rules of level MAY, and departures of brokers."""
    lines = [f"- {entry.title} ({entry.id})" for entry in entries if entry.level == "MAY"]
    lines += [
        f"- Brokers {KEPT[entry.brokers.kept]} {entry.id}: [what they do](../spec/C-departures.md#{entry.id.lower()})."
        for entry in entries
        if entry.brokers.departs
    ]
    if lines:
        yield "\n## Unusual, and valid\n"
        yield from lines
        yield ""
        yield from page_examples.unusual_examples(chapter)


def _rules(entries: list[Requirement]) -> Iterator[str]:
    yield "\n## Rules\n"
    yield "The last column shows how many implementations pass all cases of the conformance suite about a rule.\n"
    yield "| requirement | level | binds | since | brokers | rule | kept by |"
    yield "|---|---|---|---|---|---|---|"
    for entry in entries:
        title = entry.title.replace("|", "\\|")
        kept = verdicts.reported(entry.id, "../")
        binds, brokers = ", ".join(entry.binds), entry.brokers.kept
        yield f"| {entry.id} | {entry.level} | {binds} | {entry.since} | {brokers} | {title} | {kept} |"

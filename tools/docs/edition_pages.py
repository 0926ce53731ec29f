"""The page of editions: each with its date, and the rules that changed from one to the next."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

from seglog_format.cli.explain import Edition, State, changed_marks, editions, is_only_reworded, rules_of

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE: Final = "docs/specification/changes.md"

INTRODUCTION: Final = """\
# Editions and their changes

The specification is published in numbered editions. A rule keeps its id for ever. This page is computed from the rules
of each edition. Where an edition was wrong, the [errata](../spec/D-errata.md) say so, and whom it concerns; they name
an edition by its year and month. `seglog explain` shows whether a rule changed in the present edition. The rules of the
present edition are also [a file for programs](../reference/rules.json).

Links that stay, whatever becomes of chapters and pages:

| of | link |
|---|---|
| a rule | `r/SEG-IDX-004/` below the address of the site: leads to the rule, or gives its last text if it is gone |
| a departure, a difference, an erratum | `r/DEP-07/`, `r/F-DIS-12/`, `r/ERR-001/` |
| a rule in its chapter | the anchor `#seg-idx-004` |
| everything that holds a rule | `reference/requirements/#seg-idx-004` |

| edition | year and month | published | Kafka | rules |
|---:|---|---|---|---:|
"""
MARK_NAMES: Final = {"level": "level", "binds": "binds", "since": "since", "brokers": "kept by brokers"}


def pages(notice: str) -> dict[str, str]:
    """Return the page, by its path below the repository."""
    known = [(edition, rules_of(edition)) for edition in editions()]
    lines = [notice + INTRODUCTION.rstrip("\n")]
    lines += [_row(edition, state) for edition, state in reversed(known)]
    for (old, before), (new, after) in reversed(list(pairwise(known))):
        anchor = f"{new.version}-compared-with-{old.version}".replace(".", "")  # the link of a time without numbers
        lines += ["", f"## {new.title}, compared with edition {old.number} {{ #{anchor} }}", ""]
        lines += change_list(before, after, new)
    return {PAGE: "\n".join(lines) + "\n"}


def _row(edition: Edition, state: State) -> str:
    published = edition.published or "draft"
    return f"| {edition.number} | {edition.version} | {published} | {edition.kafka} | {len(state)} |"


def change_list(old: State, new: State, edition: Edition) -> Iterator[str]:
    """Yield lines about the rules that changed.

    Args:
        old: the rules of one edition.
        new: the rules of the next edition.
        edition: the next edition.
    """
    changed = {key: marks for key in new if key in old and (marks := changed_marks(old[key], new[key]))}
    added, gone = [key for key in new if key not in old], [key for key in old if key not in new]
    reworded = [key for key, marks in changed.items() if marks == ["text"] and is_only_reworded(edition, key)]
    same = len(new) - len(added) - len(changed)
    counts = f"{len(added)} rules are new, {len(changed) - len(reworded)} changed, {len(gone)} withdrawn"
    yield f"{counts}, {len(reworded)} only reworded; {same} are the same."
    texts = [key for key, marks in changed.items() if "text" in marks]
    if edition.meaning is None:
        yield from _titled("### Another text", _texts(old, new, texts))
    else:
        rows = _texts(old, new, [key for key in texts if key in edition.meaning])
        yield from _titled("### Changed in meaning", rows)
    if added:
        yield from ("", "### New", "")
        yield from (f"- {key} ({new[key]['level']}): {new[key]['text']}" for key in added)
    if gone:
        yield from ("", "### Withdrawn", "")
        yield from (f"- `{key}`: {old[key]['text']}" for key in gone)
    yield from _marks(old, new, changed)
    yield from _moved(old, new, [key for key, marks in changed.items() if "chapter" in marks])
    if edition.meaning is not None:
        yield from _reworded(_texts(old, new, [key for key in texts if key not in edition.meaning]))


def _titled(title: str, rows: list[str]) -> Iterator[str]:
    if rows:
        yield from ("", title, "", *rows)


def _reworded(rows: list[str]) -> Iterator[str]:
    """Yield the table of rules that say the same in other words, folded: an implementer can skip it."""
    if rows:
        yield from ("", "### Worded otherwise", "")
        yield f"<details markdown><summary>{len(rows) - 2} rules</summary>"
        yield from ("", *rows, "", "</details>")


def _texts(old: State, new: State, keys: list[str]) -> list[str]:
    rows = [f"| {key} | {_cell(old[key]['text'])} | {_cell(new[key]['text'])} |" for key in keys]
    return ["| rule | was | is |", "|---|---|---|", *rows] if rows else []


def _marks(old: State, new: State, changed: dict[str, list[str]]) -> Iterator[str]:
    rows = [(key, mark) for key, marks in changed.items() for mark in MARK_NAMES if mark in marks]
    if rows:
        yield from ("", "### Other marks", "", "| rule | mark | was | is |", "|---|---|---|---|")
    for key, mark in rows:
        yield f"| {key} | {MARK_NAMES[mark]} | {old[key][mark] or 'none'} | {new[key][mark] or 'none'} |"


def _moved(old: State, new: State, keys: list[str]) -> Iterator[str]:
    if keys:
        yield from ("", "### In another chapter", "", "| rule | was in | is in |", "|---|---|---|")
        yield from (f"| {key} | {old[key]['chapter']} | {new[key]['chapter']} |" for key in keys)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")

"""The report as a page in Markdown, for the terminal and for the site."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tools.kafka_next.features import undescribed
from tools.kafka_next.introspection import simple_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

SHOWN: Final = 12
"""Maximum lines of one kind about one class; the report has all."""
NONE: Final = ("Nothing.", "")
Json = dict[str, Any]


def page(report: Json) -> Iterator[str]:
    """Yield the lines of a page about a release, without its title."""
    for title, section in SECTIONS.items():
        yield from (f"## {title}", "")
        yield from list(section(report)) or NONE


# Messages


def _stored(report: Json) -> Iterator[str]:
    yield from _messages(report["stored"])


def _sent(report: Json) -> Iterator[str]:
    yield from _messages(report["sent"])


def _messages(found: Json) -> Iterator[str]:
    for name, fields in found.get("new", {}).items():
        yield f"- **{name}** is new: {_facts(fields['']) or 'no facts'}"
        yield from (f"    - `{path}`: {_facts(facts)}" for path, facts in fields.items() if path)
    yield from (f"- **{name}** is gone" for name in found.get("gone", {}))
    for name, change in found.get("changed", {}).items():
        yield f"- **{name}**"
        yield from (f"    - `{path}` is new: {_facts(facts)}" for path, facts in change.get("new", {}).items())
        yield from (f"    - `{path}` is gone" for path in change.get("gone", {}))
        for path, facts in change.get("changed", {}).items():
            yield from (f"    - {_prefix(path)}{fact}: {_change(values)}" for fact, values in facts.items())
    if found:
        yield ""


def _prefix(path: str) -> str:
    return f"`{path}`, " if path else ""


def _facts(facts: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {_code(value)}" for name, value in facts.items())


def _change(values: Sequence[str | None]) -> str:
    before, after = values
    return f"{_code(before)}, now {_code(after)}"


def _code(value: str | None) -> str:
    return "nothing" if value is None else f"`{value}`" if value.strip() else "empty"


# Features and settings


def _features(report: Json) -> Iterator[str]:
    found = report["features"]
    yield from (f"- `{name}` is new: {_facts(levels)}" for name, levels in found.get("new", {}).items())
    yield from (f"- `{name}` is gone" for name in found.get("gone", {}))
    for name, levels in found.get("changed", {}).items():
        yield f"- `{name}`: " + "; ".join(f"`{level}` {_level_change(values)}" for level, values in levels.items())
    for name, number in undescribed(found):
        yield f"- **`{name}` {number} has no row in appendix B: find out what it changes on disk**"
    if found:
        yield ""


def _level_change(values: Sequence[str | None]) -> str:
    return _change(values) if values[0] is not None else f"is new: {_code(values[1])}"


def _settings(report: Json) -> Iterator[str]:
    found = report["settings"]
    if found.get("new"):
        yield from ("| new setting | type | default | allowed | declared in |", "|---|---|---|---|---|")
    for name, holders in found.get("new", {}).items():
        yield from (f"| `{name}` | {row} |" for row in _rows(holders))
    if found.get("new"):
        yield ""
    yield from (f"- `{name}` is gone" for name in found.get("gone", {}))
    for name, change in found.get("changed", {}).items():
        yield from (f"- `{name}` is declared in {simple_name(holder)}, too" for holder in change.get("new", {}))
        yield from (f"- `{name}` is no longer declared in {simple_name(holder)}" for holder in change.get("gone", {}))
        for holder, facts in change.get("changed", {}).items():
            yield from (
                f"- `{name}` in {simple_name(holder)}: {fact} {_change(values)}" for fact, values in facts.items()
            )
    if found.keys() - {"new"}:
        yield ""


def _rows(holders: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Yield the facts of a setting, each with the classes that declare it in this way."""
    alike: dict[tuple[str, ...], set[str]] = {}
    for holder, facts in holders.items():
        cells = (facts["type"], _code(facts["default"]), _code(facts["allowed"]) if facts["allowed"] else "")
        alike.setdefault(cells, set()).add(simple_name(holder))
    for cells, names in alike.items():
        yield " | ".join([*map(_cell, cells), ", ".join(sorted(names))])


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


# Classes


def _names(report: Json) -> Iterator[str]:
    found = report["classes"]
    if found.get("moved"):
        yield from ("| class | was in | is in |", "|---|---|---|")
        for old, new in found["moved"].items():
            yield f"| `{simple_name(new)}` | `{_package(old)}` | `{_package(new)}` |"
        yield ""
    if found.get("jar"):
        yield from ("| class | was in the jar | is in the jar |", "|---|---|---|")
        yield from (f"| `{name}` | `{old}` | `{new}` |" for name, (old, new) in found["jar"].items())
        yield ""
    for kind in ("gone", "new"):
        if found.get(kind):
            yield from (f"{kind.capitalize()}:", "")
            yield from (f"- `{name}`" for name in found[kind])
            yield ""


def _signatures(report: Json) -> Iterator[str]:
    for name, change in report["classes"]["signatures"].items():
        yield from (f"### {simple_name(name)}", "", f"`{name}`", "")
        if "header" in change:
            before, after = change["header"]
            yield f"- `{before}` is now `{after}`"
        for kind in ("gone", "new"):
            declared = change.get(kind, ())
            yield from (f"- {kind}: `{each}`" for each in declared[:SHOWN])
            if len(declared) > SHOWN:
                yield f"- {kind}: {len(declared) - SHOWN} more"
        yield ""


def _behaviour(report: Json) -> Iterator[str]:
    found = report["classes"]["code"]
    if found:
        yield from ("| class | methods |", "|---|---|")
        for name, methods in found.items():
            yield f"| `{name}` | {', '.join(f'`{method}`' for method in methods)} |"
        yield ""


def _answers(report: Json) -> Iterator[str]:
    for name, found in report["answers"].items():
        if "notAsked" in found:
            yield from (f"{name} was not asked: {found['notAsked']}", "")
            continue
        count = len(found["differ"])
        yield from (f"{name}: {found['asked']:,} cases asked of both, {count} answered otherwise.", "")
        for case, difference in found["differ"].items():
            before, after = difference["verdicts"]
            verdicts = f"{before}, now {after}" if before != after else f"{after} in both"
            yield f"- `{case}`: {verdicts}; other at {', '.join(f'`{path}`' for path in difference['at'])}"
        if count:
            yield ""


def _package(name: str) -> str:
    return name.rpartition(".")[0]


SECTIONS: Final = {
    "Stored messages": _stored,
    "Feature levels": _features,
    "Settings": _settings,
    "Answers to the conformance cases": _answers,
    "Names of classes": _names,
    "Methods whose code changed": _behaviour,
    "Signatures and constants": _signatures,
    "Requests and responses": _sent,
}

"""The catalogue of the corpus: a page and a picture, from the manifest, the cases' descriptions and the README."""

from __future__ import annotations

import json
import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tools.docs.pictures import INK, PAPER, SOFT, box, text
from tools.message_definitions import order

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

FIXTURES: Final = Path(__file__).resolve().parents[2] / "fixtures"
PAGE: Final = "docs/how-to/catalogue.md"
PICTURE: Final = "docs/assets/catalogue.svg"
RELEASE: Final = re.compile(r"kafka-(\d[\d.]*)/([^/]+)/case\.toml")
ROW: Final = re.compile(r"^\| (`[^|]+) \| ([^|]+) \| ([^|]+) \|$", re.MULTILINE)
"""A row of the table in the README: directories, what, by whom."""
OF_A_RELEASE: Final = "`kafka-VERSION"
MOST_CASES: Final = 4
MEGABYTE: Final = 1_000_000
KILOBYTE: Final = 1_000

INTRODUCTION: Final = """\
# Directories of brokers: a catalogue

{count} log directories that brokers of {releases} releases of Apache Kafka wrote, each with what Kafka's own classes
read from it. The whole corpus has {size}, and no file above 5 MB. `fixtures/manifest.json` has the size and the SHA-256
of each file. [Test with directories of brokers](test-with-pytest.md) says how tests use them:
`seglog_partition("4.4/txn")` is the directory of the case `txn` below Kafka 4.4.0.

![The cases of each release by kind](../assets/catalogue.svg)

*states*: a *clean stop* is a directory that a broker has closed; a case with *before* and *after* has what a killed
broker left, and what the same broker made of it. *rules*: the areas of the rules that the files exercise, with the
number of rules; the last table lists the cases by rule.
"""


class Case(NamedTuple):
    """A bundled directory of a broker.

    Attributes:
        release: of the broker.
        name: of the case.
        size: bytes of its files, packed.
        facts: content of its `case.toml`.
    """

    release: str
    name: str
    size: int
    facts: dict[str, Any]

    @property
    def kind(self) -> str:
        """What the case is about, in the first word of its name."""
        return self.name.partition("-")[0]


def sizes() -> dict[str, int]:
    """Return the size of each file in the manifest."""
    files = json.loads((FIXTURES / "manifest.json").read_text(encoding="utf-8"))["files"]
    return {name: entry["bytes"] for name, entry in files.items()}


def cases() -> list[Case]:
    """Return the cases of the manifest, by release and name."""
    stored = sizes()
    found = []
    for name in stored:
        if match := RELEASE.fullmatch(name):
            folder = name.removesuffix("case.toml")
            size = sum(each for file, each in stored.items() if file.startswith(folder))
            facts = tomllib.loads((FIXTURES / name).read_text(encoding="utf-8"))
            found.append(Case(match[1], match[2], size, facts))
    return sorted(found, key=lambda case: (order(case.release), case.name))


def pages(notice: str) -> dict[str, str]:
    """Return the page and its picture, by path."""
    found = cases()
    releases = list(dict.fromkeys(case.release for case in found))
    introduction = INTRODUCTION.format(count=len(found), releases=len(releases), size=_size(sum(sizes().values())))
    lines = [notice + introduction]
    for release in releases:
        lines += _section(release, [case for case in found if case.release == release])
    lines += [*_others(), *_rules(found)]
    return {PAGE: "\n".join(lines).rstrip() + "\n", PICTURE: picture(found, releases)}


def _section(release: str, found: Sequence[Case]) -> Iterator[str]:
    yield f"## Kafka {release} {{ #kafka-{release.replace('.', '-')} }}"
    yield ""
    producers = {case.facts["producer"] for case in found}
    modes = {case.facts["mode"] for case in found if "mode" in case.facts}
    mode = f" ({', '.join(sorted(modes))})" if modes else ""
    yield f"By {', '.join(sorted(producers))}{mode}; {_size(sum(case.size for case in found))}."
    yield ""
    yield from ("| case | what it exercises | magic, codecs | states | size | rules |", "|---|---|---|---|---:|---|")
    for case in found:
        facts = case.facts
        codecs = [codec for codec in facts.get("codecs", ()) if codec != "none"]
        formats = "; ".join(filter(None, [", ".join(map(str, facts.get("magics", ()))), ", ".join(codecs)]))
        states = ", ".join(facts.get("states", ()))
        row = (f"`{case.name}`", _cell(facts["about"]), formats, _cell(states), _size(case.size), _areas(facts))
        yield f"| {' | '.join(row)} |"
    yield ""


def _areas(facts: dict[str, Any]) -> str:
    """Return the areas of a case's rules, each with the number of them."""
    counted = Counter(rule[4:7] for rule in facts["requirements"])
    return ", ".join(f"{area} {count}" for area, count in sorted(counted.items()))


def _others() -> Iterator[str]:
    """Yield the other parts of the corpus, as the README describes them, each with its size."""
    yield from (
        "## Clusters, tiers, messages, damage",
        "",
        "| directory | what | by whom | size |",
        "|---|---|---|---:|",
    )
    stored = sizes()
    readme = (FIXTURES / "README.md").read_text(encoding="utf-8")
    for paths, what, whom in ROW.findall(readme):
        if not paths.startswith(OF_A_RELEASE):
            found = [_of_directory(stored, path) for path in re.findall(r"`([^`]+)`", paths)]
            yield f"| {paths} | {_links(what)} | {_links(whom)} | {_size(sum(found))} |"
    yield ""


def _of_directory(stored: dict[str, int], path: str) -> int:
    """Return the size of all files whose path fits one with words in capitals, such as `VERSION`."""
    pattern = re.sub(r"[A-Z]{4,}", "[^/]+", re.escape(path)) + ("" if "." in path.rpartition("/")[2] else ".*")
    return sum(size for name, size in stored.items() if re.match(pattern, name))


def _links(cell: str) -> str:
    """Return a cell without the targets of links: they are relative to the README."""
    return re.sub(r"\[([^\]]+)\]\([^)]+\)", r"\1", cell)


def _rules(found: Sequence[Case]) -> Iterator[str]:
    """Yield the cases of each rule, the newest release first."""
    by_rule: dict[str, list[Case]] = {}
    for case in reversed(found):
        for rule in case.facts["requirements"]:
            by_rule.setdefault(rule, []).append(case)
    yield from ("## Rules", "", f"{len(by_rule)} rules are exercised by these directories.", "")
    yield from ("| rule | cases | such as |", "|---|---:|---|")
    for rule in sorted(by_rule):
        shown = ", ".join(f"`{case.release}/{case.name}`" for case in by_rule[rule][:MOST_CASES])
        yield f"| {rule} | {len(by_rule[rule])} | {shown} |"
    yield ""


def _cell(words: str) -> str:
    return words.replace("|", "\\|").replace("\n", " ")


def _size(size: int) -> str:
    if size >= MEGABYTE // 10:
        return f"{size / MEGABYTE:.1f} MB"
    return f"{max(size / KILOBYTE, 0.1):.1f} KB"


# The picture

LEFT: Final = 110
TOP: Final = 120
SIDE: Final = 26
SHADES: Final = ("#f1f5f9", "#dbeafe", "#93c5fd", "#3b82f6")
"""Of no case, one, two or three, and more."""


def picture(found: Sequence[Case], releases: Sequence[str]) -> str:
    """Return a table as a picture: a row for each release, a column for each kind of case."""
    kinds = sorted({case.kind for case in found})
    counts = Counter((case.release, case.kind) for case in found)
    width, height = LEFT + SIDE * len(kinds) + 70, TOP + SIDE * len(releases) + 40
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">',
        f'<rect width="{width}" height="{height}" fill="{PAPER}"/>',
    ]
    for column, kind in enumerate(kinds):
        x = LEFT + SIDE * column + SIDE / 2
        parts.append(text(x, TOP - 8, kind, fill=INK, more=f' transform="rotate(-55 {x:g} {TOP - 8})"'))
    for row, release in enumerate(releases):
        y = TOP + SIDE * row
        parts.append(text(12, y + 17, f"Kafka {release}", fill=INK))
        for column, kind in enumerate(kinds):
            count = counts[release, kind]
            shade = SHADES[min((count + 2) // 2 if count else 0, len(SHADES) - 1)]
            title = f"Kafka {release}, {kind}: {count} {'case' if count == 1 else 'cases'}"
            parts.append(box(LEFT + SIDE * column + 2, y + 2, SIDE - 4, SIDE - 4, shade, "#cbd5e1", title=title))
            if count > 1:
                parts.append(text(LEFT + SIDE * column + 9, y + 17, str(count), size=11, fill=INK))
    parts.append(text(12, height - 14, "A coloured field: a case of that kind; a number: several.", fill=SOFT))
    return "\n".join([*parts, "</svg>"]) + "\n"

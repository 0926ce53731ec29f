"""``seglog explain``: a requirement, its editions, where it is enforced and tested; a term; a broker's line."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import click

from seglog_format.cli.options import json_option
from seglog_format.cli.output import write_json, write_lines, write_text
from seglog_format.errors import UsageError
from seglog_format.requirements import parse_chapter, requirements, spec_directory

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from seglog_format.requirements import Requirement


# -- editions of the specification: which there are, the rules that each had, and what changed from one to the next ----


State: TypeAlias = "dict[str, dict[str, str]]"
"""The rules of an edition by id, each with its `MARKS`."""

MARKS: Final = ("level", "binds", "since", "brokers", "chapter", "text")
"""The marks of a rule that an edition records. `check`, how this repository tests the rule, is not recorded."""


@dataclass(frozen=True, slots=True)
class Edition:
    """One edition of the specification.

    Attributes:
        number: 1 for the first, and one more for each later one.
        version: year and month, such as ``2026.12``; names its file, and stays in links.
        kafka: the releases that it covers.
        published: ISO date; empty for a draft.
        commit: of this repository, whose `spec/` it was; empty where it is not known.
        digest: SHA-256 of the file that holds its rules; empty for a draft.
        meaning: the rules whose text changed its meaning since the edition before; None where no list was kept.
    """

    number: int
    version: str
    kafka: str
    published: str = ""
    commit: str = ""
    digest: str = ""
    meaning: tuple[str, ...] | None = None

    @property
    def name(self) -> str:
        """Its name in a text and in JSON: the number, and beside it the date or what it is without one."""
        return f"{self.number} ({self.published or 'draft'})"

    @property
    def title(self) -> str:
        """Its name as a heading has it."""
        return f"Edition {self.name}"

    @property
    def path(self) -> Path:
        """The file that holds its rules."""
        return spec_directory() / "editions" / f"{self.version}.json"


@cache
def editions() -> tuple[Edition, ...]:
    """Return all editions, oldest first; the last one is the text in `spec/`."""
    table = tomllib.loads((spec_directory() / "editions.toml").read_text(encoding="utf-8"))
    return tuple(_edition(entry) for entry in table["edition"])


def _edition(entry: dict[str, Any]) -> Edition:
    meaning = tuple(entry["meaning"]) if "meaning" in entry else None
    return Edition(**(entry | {"meaning": meaning}))


def state_of(rules: Iterable[Requirement]) -> State:
    """Return what an edition records of some rules.

    Args:
        rules: the requirements.
    """
    return {rule.id: _kept(rule) for rule in rules}


def state_of_chapters(chapters: Iterable[tuple[str, str]]) -> State:
    """Return what an edition records of the rules that some chapters define.

    Args:
        chapters: stem and text of each, in reading order.
    """
    return state_of(rule for stem, text in chapters for rule in parse_chapter(stem, text))


def _kept(rule: Requirement) -> dict[str, str]:
    return {
        "level": rule.level,
        "binds": ", ".join(rule.binds),
        "since": rule.since,
        "brokers": rule.brokers.kept,
        "chapter": rule.chapter,
        "text": " ".join(rule.text.split()),
    }


def state_text(state: State) -> str:
    """Return the rules of an edition as the text of a file, with a line for each."""
    lines = (f"{json.dumps(key)}: {json.dumps(kept, ensure_ascii=False)}" for key, kept in state.items())
    return "{\n" + ",\n".join(lines) + "\n}\n"


@cache
def recorded(edition: Edition) -> State:
    """Return the rules of a published edition.

    Raises:
        UsageError: the file is not the one that was published.
    """
    data = edition.path.read_bytes()
    if hashlib.sha256(data).hexdigest() != edition.digest:
        msg = f"{edition.path.name} is not what was published as edition {edition.version}"
        raise UsageError(msg)
    state: State = json.loads(data)
    return state


def rules_of(edition: Edition) -> State:
    """Return the rules of an edition: as published, or as `spec/` has them now.

    Args:
        edition: one of `editions`.
    """
    return recorded(edition) if edition.digest else state_of(requirements().values())


def changed_marks(old: Mapping[str, str], new: Mapping[str, str]) -> list[str]:
    """Return the marks in which a rule differs; a mark that the old edition did not have yet is none.

    Args:
        old: what one edition records of the rule.
        new: what a later edition records of it.
    """
    return [mark for mark in MARKS if old[mark] != new[mark] and (old[mark] or mark != "brokers")]


def is_only_reworded(edition: Edition, identifier: str) -> bool:
    """Return whether a new text of a rule has the meaning that it had in the edition before.

    Args:
        edition: the one with the new text.
        identifier: of the rule.
    """
    return edition.meaning is not None and identifier not in edition.meaning


def standing(identifier: str) -> dict[str, Any]:
    """Return the present edition, and how one of its rules differs from the edition before.

    Args:
        identifier: of the requirement.

    Returns:
        Its name under ``edition``, that of the one before under ``before``, and under ``changed`` what differs: marks,
        with ``wording`` for a new text of the same meaning; ``before`` is missing for a rule that is new.
    """
    *_, before, present = editions()
    old, new = rules_of(before).get(identifier), rules_of(present)[identifier]
    found: dict[str, Any] = {"edition": present.name}
    if old is None:
        return found
    reworded = {"text": "wording"} if is_only_reworded(present, identifier) else {}
    changed = [reworded.get(mark, mark) for mark in changed_marks(old, new)]
    return found | {"before": before.name, "changed": changed}


# -- where each rule is enforced and tested ----------------------------------------------------------------------------


DATA: Final = "trace.json"
SHOWN: Final = 4
"""Items of a list that text shows; JSON has all."""
LABELS: Final = {
    "fields": "fields",
    "code": "code",
    "tests": "tests",
    "faults": "faults",
    "fixtures": "fixtures",
    "damaged": "broken in",
    "cases": "cases",
}
"""Name of each list in the text."""


@cache
def _table() -> dict[str, dict[str, Any]]:
    """Return the lists of each requirement by its id."""
    import json
    from importlib.resources import files

    table: dict[str, dict[str, Any]] = json.loads(files("seglog_format.cli").joinpath(DATA).read_text(encoding="utf-8"))
    return table


def trace_of(identifier: str) -> dict[str, Any]:
    """Return where a requirement is enforced and tested.

    Args:
        identifier: of the requirement.

    Returns:
        Lists of names under ``fields``, ``code``, ``tests``, ``faults``, ``fixtures``, ``damaged`` and ``cases``, and
        under ``verdicts`` how many implementations were asked about it, how many pass, and the counts of the others.
        Empty for a requirement that is newer than the data.
    """
    return _table().get(identifier, {})


def trace_lines(identifier: str) -> Iterator[str]:
    """Yield the same as lines of text: a label, then one item on each line.

    Args:
        identifier: of the requirement.
    """
    trace = trace_of(identifier)
    for key, label in LABELS.items():
        yield from _labelled(label, _shortened(trace.get(key, [])))
    if trace.get("verdicts", {}).get("asked"):
        yield from _labelled("verdicts", list(_verdicts(trace["verdicts"])))


def _labelled(label: str, items: list[str]) -> Iterator[str]:
    for number, item in enumerate(items):
        yield f"  {'' if number else label:9} {item}"


def _shortened(items: list[str]) -> list[str]:
    more = len(items) - SHOWN
    return [*items[:SHOWN], f"and {more} more, see --json"] if more > 0 else items


def _verdicts(found: dict[str, Any]) -> Iterator[str]:
    yield f"{found['passing']} of {found['asked']} implementations pass all cases"
    if found["failing"]:
        yield from _shortened([f"{testee} passes {counts}" for testee, counts in found["failing"].items()])


# -- ``seglog explain`` ------------------------------------------------------------------------------------------------


EPILOG: Final = """\b
Examples:
  seglog explain SEG-IDX-004
  seglog explain idx-4
  seglog explain SEG-BAT
  seglog explain LSO
  seglog explain "Found invalid messages in log segment /data/orders-0"
  seglog explain --json SEG-IDX-004 | jq -r '.cases[]'
  seglog explain --json | jq -r .id"""

LEAST_TEXT: Final = 12
"""Characters of a text that is shorter than the words of a known line."""
LEAST_SHARED, MOST_NAMED = 2, 3
"""Words that a text shares with a known line, and lines that are named, where no line is in the text."""
LOOSE_ID: Final = re.compile(r"(?:SEG-?)?([A-Z]{3})(?:-?0*(\d{1,3}))?", re.IGNORECASE)


@click.command(epilog=EPILOG)
@click.argument("identifier", metavar="[ID|TEXT]", nargs=-1)
@json_option
def command(identifier: tuple[str, ...], *, as_json: bool) -> None:
    """Print the requirement ID, what a term means, or what the line TEXT of a broker's own log means.

    A term is one of chapter 00, such as LSO. For a line, the command that shows more is printed with it.

    For a requirement, that is its text, its level, whom it binds, whether brokers keep it, and where it is tested.

    The last part lists the schema fields, code, tests, planted faults, bundled fixtures and cases of the conformance
    suite that name it, and how many implementations pass those cases. Paths are those of the repository.

    An area such as SEG-BAT lists its requirements; without ID, all are listed.
    """
    text = " ".join(identifier)
    for term, meaning in terms_like(text):
        if as_json:
            write_json({"type": "term", "term": term, "means": meaning})
        else:
            _write_meaning(term, meaning, "chapter: spec/00-terms.md")
        return
    if lines := lines_like(text):
        for line in lines:
            _write_line(line, as_json=as_json)
        return
    found = _found(text)
    for requirement in found:
        if as_json:
            write_json(as_object(requirement))
        elif len(found) == 1:
            _explain(requirement)
        else:
            write_text(f"{requirement.id}  {requirement.level:6}  {requirement.title}")


def terms_like(text: str) -> list[tuple[str, str]]:
    """Return the terms of chapter 00 that are a text or are shortened to it, each with its meaning."""
    chapter = (spec_directory() / "00-terms.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", chapter, re.MULTILINE)
    wanted = " ".join(text.lower().split())
    return [(term, meaning) for term, meaning in rows if wanted in term.lower().split(", ") and term != "term"]


def broker_lines() -> list[dict[str, Any]]:
    """Return what brokers log: for each line its ``words``, what it ``means``, and the command to ``run``."""
    import tomllib
    from importlib.resources import files

    table = files("seglog_format.cli").joinpath("broker_lines.toml").read_text(encoding="utf-8")
    lines: list[dict[str, Any]] = tomllib.loads(table)["line"]
    return lines


def lines_like(text: str) -> list[dict[str, Any]]:
    """Return the known lines whose words are in a text, those with the longest words first.

    Args:
        text: a line of a broker's log, or part of one of at least `LEAST_TEXT` characters.
    """
    wanted = " ".join(text.lower().split())

    def score(line: dict[str, Any]) -> int:
        words = [" ".join(each.lower().split()) for each in line["words"]]
        known = [len(each) for each in words if each in wanted]
        return max(
            [*known, *(len(wanted) for each in words if len(wanted) >= LEAST_TEXT and wanted in each)], default=0
        )

    return sorted(filter(score, broker_lines()), key=score, reverse=True)


def _write_line(line: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        write_json({"type": "brokerLine", **line})
    else:
        _write_meaning(line["words"][0], line["means"], f"run: {line['run']}")


def _write_meaning(name: str, meaning: str, more: str) -> None:
    import textwrap

    write_text(name)
    write_text(textwrap.fill(meaning, width=88, initial_indent="  ", subsequent_indent="  "))
    write_text(f"  {more}")


def _found(identifier: str) -> list[Requirement]:
    from seglog_format.requirements import requirements

    table = requirements()
    wanted = normalized(identifier)
    if wanted in table:
        return [table[wanted]]
    listed = [one for one in table.values() if not wanted or one.id.startswith(wanted + "-")]
    if listed:
        return listed
    if " " in identifier.strip():
        alike = [f"{each!r}" for each in _sharing_words(identifier)]
        hint = f"is it {' or '.join(alike)}?" if alike else "seglog doctor PATH says what is wrong on a disk"
        msg = f"no known line of a broker's log {identifier!r}; {hint}"
    else:
        msg = f"no requirement {identifier!r}; {_suggestion(wanted, table)}"
    raise click.UsageError(msg)


def _sharing_words(text: str) -> list[str]:
    """Return the known lines that share most words with a text, two or more, the best first."""
    wanted = {*text.lower().split()}
    shared = {
        words: len(wanted.intersection(words.lower().split())) for each in broker_lines() for words in each["words"]
    }
    found = sorted(
        (words for words, count in shared.items() if count >= LEAST_SHARED), key=lambda words: -shared[words]
    )
    return found[:MOST_NAMED]


def normalized(identifier: str) -> str:
    """Return the id for an abbreviation such as ``idx-4`` or ``seg-idx-004``; an area without a number stays one."""
    match = LOOSE_ID.fullmatch(identifier.strip())
    if not match:
        return identifier.strip().upper()
    area, number = match.groups()
    return f"SEG-{area.upper()}" + (f"-{int(number):03d}" if number else "")


def _suggestion(wanted: str, table: Mapping[str, Requirement]) -> str:
    """Return which numbers the area has, or ids that look alike, or which areas there are."""
    from difflib import get_close_matches

    areas = sorted({one.rpartition("-")[0] for one in table})
    area = wanted.rpartition("-")[0]
    if area in areas:
        numbers = sorted(one for one in table if one.startswith(area))
        return f"{area} has {numbers[0]} to {numbers[-1]}"
    alike = get_close_matches(wanted, table, cutoff=0.85)
    return f"is it {' or '.join(alike)}?" if alike else f"the areas are {', '.join(areas)}; without ID, all are listed"


def as_object(requirement: Requirement) -> dict[str, Any]:
    """Return one requirement for JSON."""
    return {
        "id": requirement.id,
        "level": requirement.level,
        "severity": requirement.severity.value,
        "binds": list(requirement.binds),
        "since": requirement.since or None,
        "sinceBasis": requirement.since_basis or None,
        "brokers": {
            "kept": requirement.brokers.kept,
            "version": requirement.brokers.version,
            "basis": requirement.brokers.basis,
        },
        "check": requirement.check,
        "chapter": requirement.chapter,
        "title": requirement.title,
        "text": requirement.text,
        **standing(requirement.id),
        **trace_of(requirement.id),
    }


def _explain(requirement: Requirement) -> None:
    import textwrap

    occasion = "used" if requirement.level == "MAY" else "broken"  # a MAY cannot be broken
    write_text(f"{requirement.id}: {requirement.level} ({requirement.severity.value} when {occasion})")
    write_text("")
    write_text(textwrap.fill(requirement.text, width=88, initial_indent="  ", subsequent_indent="  "))
    write_text("")
    write_text(f"  binds     {', '.join(requirement.binds)}")
    if requirement.since:
        write_text(f"  since     Kafka {requirement.since}: {SEEN[requirement.since_basis]} that release")
    mark = requirement.brokers
    write_text(f"  brokers   {mark.kept}: {SEEN[mark.basis]} Kafka {mark.version}")
    write_text(f"  checked   {CHECKED.get(requirement.check, requirement.check)}")
    write_text(f"  chapter   spec/{requirement.chapter}.md")
    write_text(f"  edition   {_standing_text(standing(requirement.id))}")
    write_lines(trace_lines(requirement.id))


def _standing_text(found: dict[str, Any]) -> str:
    if "before" not in found:
        return f"{found['edition']}, new in it"
    changed = f"changed ({', '.join(found['changed'])})" if found["changed"] else "the same"
    return f"{found['edition']}, {changed} since {found['before']}"


SEEN: Final = {"source": "by the source of", "bytes": "by the bytes of", "run": "by running the classes of"}
CHECKED: Final = {
    "auto": "by seglog verify, or when the bytes are read",
    "behaviour": "by tests of what reading answers",
    "none": "by nothing; the chapter says why",
}

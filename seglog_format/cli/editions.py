"""Editions of the specification: which there are, the rules that each had, and what changed from one to the next."""

from __future__ import annotations

import hashlib
import json
import tomllib
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from seglog_format.errors import UsageError
from seglog_format.requirements import parse_chapter, requirements, spec_directory

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from seglog_format.requirements import Requirement

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

"""The table of requirements, read from the chapters in `spec/`, which alone define the ids.

A requirement begins on a line of its own, followed by its text up to a blank line::

    [SEG-IDX-004]: MUST binds=writer,validator since=0.8.0:source brokers=yes:4.3.0:bytes check=auto
    Entries MUST be ordered by strictly increasing relative offset.

`since` and `brokers` name a Kafka version and the evidence: the ``source`` of that release, the ``bytes`` that it
wrote, or a ``run`` of its classes. A rule that no broker keeps has no `since`.

The level decides the severity of a finding: a broken MUST is an error, a broken SHOULD a warning, a MAY a note.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path

from seglog_format.errors import UsageError

DEFINITION = re.compile(r"^\[(SEG-[A-Z]{3}-\d{3})\]: (MUST|SHOULD|MAY)((?: [a-z]+=\S+)*)$")
SENTENCE = re.compile(r"(?:`[^`]*`|[^`])*?[.!?](?=\s|$)")
"""The first sentence of a text: a full stop inside of backticks, as in a list of characters, does not end it."""


class Severity(Enum):
    """Weight of a finding.

    Examples:
        >>> from seglog_format import Severity, requirement
        >>> requirement("SEG-BAT-003").severity is Severity.ERROR
        True
    """

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


SEVERITIES = {"MUST": Severity.ERROR, "SHOULD": Severity.WARNING, "MAY": Severity.NOTE}


@dataclass(frozen=True, slots=True)
class BrokerMark:
    """Whether brokers keep a requirement.

    Attributes:
        kept: ``yes``, ``partly`` (in some cases, or only a part of the rule) or ``no``.
        version: Kafka version in which that was seen, such as ``4.1.1``.
        basis: the evidence: ``source``, ``bytes`` or ``run``.
    """

    kept: str
    version: str
    basis: str

    @property
    def departs(self) -> bool:
        """Return whether the rule is in the list of departures (appendix C)."""
        return self.kept != "yes"


@dataclass(frozen=True, slots=True)
class Requirement:
    """One numbered rule of the specification.

    Attributes:
        id: such as ``SEG-IDX-004``; never renumbered, never reused.
        level: MUST, SHOULD or MAY.
        binds: the roles that must follow it: writer, reader, validator, recovery.
        since: first Kafka version that keeps it, such as ``0.11.0``; empty if none does.
        since_basis: the evidence for `since`: ``source``, ``bytes`` or ``run``; empty if `since` is.
        brokers: whether brokers keep it, with the evidence.
        check: how it is enforced: ``auto`` (a check or decoder refuses bytes that break it), ``behaviour`` (a result
            that tests compare) or ``none`` (the text says why).
        title: its first sentence.
        text: the whole paragraph.
        chapter: stem of the file that defines it, such as ``40-offset-index``.
    """

    id: str
    level: str
    binds: tuple[str, ...]
    since: str
    since_basis: str
    brokers: BrokerMark
    check: str
    title: str
    text: str
    chapter: str

    @property
    def severity(self) -> Severity:
        """Severity of a finding that names this requirement."""
        return SEVERITIES[self.level]


def spec_directory() -> Path:
    """Return the directory of the chapters: inside an installed package, or beside it in a checkout."""
    package = Path(__file__).resolve().parent
    installed = package / "_spec"
    return installed if installed.is_dir() else package.parent / "spec"


def parse_chapter(chapter: str, text: str) -> list[Requirement]:
    """Return the requirements that one chapter defines, in order."""
    paragraphs = (block.strip().splitlines() for block in text.split("\n\n"))
    return [_requirement(chapter, lines) for lines in paragraphs if lines and DEFINITION.match(lines[0])]


def _requirement(chapter: str, lines: list[str]) -> Requirement:
    match = DEFINITION.match(lines[0])
    assert match is not None
    identifier, level, attributes = match.groups()
    given = dict(pair.split("=", 1) for pair in attributes.split())
    since, _, since_basis = given.get("since", "").partition(":")
    body = " ".join(line.strip() for line in lines[1:])
    return Requirement(
        id=identifier,
        level=level,
        binds=tuple(given.get("binds", "").split(",")),
        since=since,
        since_basis=since_basis,
        brokers=_broker_mark(given.get("brokers", "")),
        check=given.get("check", ""),
        title=match[0] if (match := SENTENCE.match(body)) else body,
        text=body,
        chapter=chapter,
    )


def _broker_mark(text: str) -> BrokerMark:
    kept, _, seen = text.partition(":")
    version, _, basis = seen.partition(":")
    return BrokerMark(kept, version, basis)


@cache
def requirements() -> dict[str, Requirement]:
    """Return every requirement by id, in reading order.

    Raises:
        UsageError: an id is defined twice.
    """
    table: dict[str, Requirement] = {}
    for path in sorted(spec_directory().glob("*.md")):
        for requirement in parse_chapter(path.stem, path.read_text(encoding="utf-8")):
            if requirement.id in table:
                msg = f"{requirement.id} is defined in {table[requirement.id].chapter} and again in {path.stem}"
                raise UsageError(msg)
            table[requirement.id] = requirement
    return table


def requirement(identifier: str) -> Requirement:
    """Return one requirement.

    Raises:
        UsageError: there is no such id.

    Examples:
        >>> from seglog_format import requirement
        >>> requirement("SEG-BAT-003").title
        'The stored checksum MUST be the CRC-32C of the bytes from the attributes to the end of the batch.'
    """
    try:
        return requirements()[identifier]
    except KeyError:
        msg = f"no requirement {identifier!r} in spec/"
        raise UsageError(msg) from None

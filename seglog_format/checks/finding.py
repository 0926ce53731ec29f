"""Findings, and the registry of the functions that yield them.

A check is one small function for one requirement. Its *subject* is the class of its parameter::

    @checks("SEG-LOG-009")
    def offset_span(entry: Entry) -> Iterator[Problem]: ...

`findings_of` runs every check that is registered for a subject's class. A class is known by its name,
because most are imported for annotations alone; so no two subjects have the same name.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from seglog_format.errors import FormatError, Location, RefusedError
from seglog_format.requirements import Severity, requirement

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from seglog_format.engine import Engine
    from seglog_format.model import MissingOffsets
    from seglog_format.scan_statistics import FallbackCause


@dataclass(frozen=True, slots=True)
class Problem:
    """Result of a check: a rule that bytes break, or a warning.

    Attributes:
        location: where it was found.
        expected: the value that the requirement demands.
        found: the value found instead.
        missing: the offsets that are missing from the log, if that is the problem.
        is_explained: whether another fact explains it, such as compaction; it is then only a note.
    """

    location: Location
    expected: str
    found: object
    missing: MissingOffsets | None = None
    is_explained: bool = False


@dataclass(frozen=True, slots=True)
class Finding:
    """A requirement that some bytes break, or something legal that is worth knowing.

    Attributes:
        location: file, position, field.
        severity: error for a MUST, warning for a SHOULD, note for a MAY or an explained problem.
        requirement: its id.
        expected: short text of the demand.
        found: the value found instead.
        message: the requirement's first sentence.
        count: number of equal notes in this file, from this position on; 1 for errors and warnings.
        missing: the offsets missing from the log, if that is the finding.
        is_unchecked: whether the bytes were refused: nothing is known of them.
    """

    location: Location
    severity: Severity
    requirement: str
    expected: str
    found: str
    message: str
    count: int = 1
    missing: MissingOffsets | None = None
    is_unchecked: bool = False

    @property
    def is_failure(self) -> bool:
        """Return whether ``seglog verify`` exits with 1 because of it: an error, or a warning about missing offsets."""
        return self.severity is Severity.ERROR or (self.severity is Severity.WARNING and self.missing is not None)

    @classmethod
    def of(cls, identifier: str, problem: Problem) -> Finding:
        """Create the finding for a broken requirement."""
        rule = requirement(identifier)
        severity = Severity.NOTE if problem.is_explained else rule.severity
        location, expected, found = problem.location, problem.expected, str(problem.found)
        return cls(location, severity, rule.id, expected, found, rule.title, missing=problem.missing)

    @classmethod
    def of_error(cls, error: FormatError) -> Finding:
        """Create the finding for an error of a decoder.

        A refusal is a warning: it only says that the bytes were not checked. Otherwise, what does not decode is more
        than a note, also if the field that is missing or wrong may have any value.
        """
        finding = cls.of(error.requirements[0], Problem(error.location, error.expected, error.found))
        if isinstance(error, RefusedError):
            return replace(finding, severity=Severity.WARNING, is_unchecked=True)
        return replace(finding, severity=Severity.ERROR) if finding.severity is Severity.NOTE else finding

    def __str__(self) -> str:
        more = f" ({self.count} times)" if self.count > 1 else ""
        missing = "" if self.missing is None else f": {self.missing}"
        return f"{self.location}: expected {self.expected}, found {self.found}{more}{missing} [{self.requirement}]"


CheckFunction = TypeVar("CheckFunction", bound="Callable[[Any], Iterator[Problem]]")

CHECKS: Final[dict[str, list[tuple[str, Callable[[Any], Iterator[Problem]]]]]] = {}
"""Requirement id and function, by the name of the subject's class."""


def checks(identifier: str) -> Callable[[CheckFunction], CheckFunction]:
    """Register a function as the check of one requirement."""

    def register(function: CheckFunction) -> CheckFunction:
        subject = next(iter(function.__annotations__.values()))
        CHECKS.setdefault(subject, []).append((identifier, function))
        return function

    return register


def findings_of(subject: object) -> Iterator[Finding]:
    """Yield the findings of all checks for a subject's class.

    Raises:
        LookupError: the class has no checks, so the class, or the annotation of its checks, has a wrong name.
    """
    found = CHECKS.get(type(subject).__name__)
    if found is None:
        msg = f"no check is registered for {type(subject).__name__}"
        raise LookupError(msg)
    for identifier, check in found:
        for problem in check(subject):
            yield Finding.of(identifier, problem)


# -- the amount of verified data --------------------------------------------------------------------------------------


@dataclass(slots=True)
class Extent:
    """Counts the data that a verification reads, while it runs.

    Attributes:
        files: files of a known kind. Only the names of leftovers are checked.
        batches: intact batches and messages, in logs and metadata snapshots.
        engine: the engine that reads the logs; None before it is chosen.
        prefiltered: batches that the columnar engine skipped, since no check can report a finding on them.
        unread: logs that are not empty, and in which no entry is intact or has a finding.
        fallbacks: entries that the columnar engine left to the checks, by cause; empty with another engine.
    """

    files: int = 0
    batches: int = 0
    engine: Engine | None = None
    prefiltered: int = 0
    unread: list[str] = field(default_factory=list)
    fallbacks: Counter[FallbackCause] = field(default_factory=Counter)

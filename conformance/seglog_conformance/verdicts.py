"""Verdicts, and the result of one case."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from seglog_conformance.index_entries import file_difference

if TYPE_CHECKING:
    from seglog_conformance.protocol import Json


class Verdict(StrEnum):
    """The verdict on one case; a closed set."""

    PASS = "PASS"  # noqa: S105 - a verdict, not a password
    DIFFER = "DIFFER"
    """The answer differs from the expected one."""

    ACCEPTS_INVALID = "ACCEPTS-INVALID"
    """The implementation accepted bytes that it must refuse."""

    REJECTS_VALID = "REJECTS-VALID"
    """The implementation refused bytes that it must read."""

    ACCIDENT = "ACCIDENT"
    """The implementation refused what it must refuse, by an error that it did not mean: robustness, not data."""

    SILENT = "SILENT"
    """There is no error, but data is missing or damage was skipped."""

    STALL = "STALL"
    """A consumer repeats requests for one offset, or keeps refusing valid records before damage."""

    JUMP = "JUMP"
    """A consumer continues at an offset that leaves records out, or repeats them."""

    CRASH = "CRASH"
    """The process ended without an answer."""

    HANG = "HANG"
    """No answer came within the time limit."""

    UNDECIDED = "UNDECIDED"
    """No answer came within a tenth of the time limit, which is what a rule gets after three hangs."""

    MEMORY = "MEMORY"
    """The implementation took more memory than input and answer explain."""

    SKIP = "SKIP"
    """The implementation lacks a feature that the case needs."""

    UNPROVEN = "UNPROVEN"
    """The implementation refuses the bytes, as it may, and the valid case beside them as well."""

    XFAIL = "XFAIL"
    """The case fails as listed in the known failures."""

    XPASS = "XPASS"
    """The case passes, but the list says that it fails."""

    ADAPTER_ERROR = "ADAPTER-ERROR"
    """The adapter failed, which says nothing about the implementation."""


FINE: Final = frozenset({Verdict.PASS, Verdict.SKIP, Verdict.UNPROVEN, Verdict.XFAIL})
"""Verdicts that do not fail a run."""

FAILURES: Final = frozenset(Verdict) - FINE - {Verdict.XPASS}
"""Verdicts that a list of known failures may hold."""

TIMED_OUT: Final = frozenset({Verdict.HANG, Verdict.UNDECIDED})
"""Verdicts without an answer in time: which of them a case gets depends on the cases before it."""

DEADLY: Final = frozenset({Verdict.CRASH, Verdict.HANG, Verdict.MEMORY})
"""Verdicts that count only if they occur again in a new process."""


def level_of(level: str, verdict: Verdict) -> str:
    """Return the level of a verdict on a case: an accident breaks no MUST, because the bytes were refused."""
    return "should" if verdict is Verdict.ACCIDENT and level == "must" else level


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference of an answer from the expected one."""

    path: str
    expected: Any
    found: Any

    def __str__(self) -> str:
        of_file = file_difference(self.path, self.expected, self.found)
        path, expected, found = of_file or (self.path, self.expected, self.found)
        return f"{path}: expected {shown(expected)}, found {shown(found)}"


MISSING: Final = "(missing)"


def shown(value: object, limit: int = 120) -> str:
    """Return a value as text for a message."""
    text = "null" if value is None else str(value) or '""'
    return text if len(text) <= limit else f"{text[:limit]}... ({len(text)} characters)"


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict on one answer, with its basis.

    Attributes:
        verdict: the verdict.
        detail: reason in a few words; empty for a plain PASS.
        differences: first differences.
        compared: names of the compared fields.
        branch: name of the allowed answer that was given.
    """

    verdict: Verdict
    detail: str = ""
    differences: tuple[Difference, ...] = ()
    compared: tuple[str, ...] = ()
    branch: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of one case on one implementation.

    Attributes:
        testee: name of the testee in the registry.
        version: version of the implementation.
        case: id of the case.
        digest: digest of the case.
        verdict: reported verdict: a known failure is XFAIL.
        raw: verdict without the list of known failures.
        detail: reason for the verdict.
        differences: first differences, as text.
        compared: names of the compared fields.
        branch: name of the allowed answer that was given.
        answer: the answer; None if there is none, or if it must not be reported.
        stderr: end of the standard error of the process after a failure.
        seconds: seconds until the answer.
        growth: growth of memory at its peak in bytes; None if that is not known.
        notes: remarks, such as about a failure that did not occur again.
        disclosure: ``withheld`` if the bytes are not published.
        fingerprint: fingerprint of a wrong answer; empty if there is none.
    """

    testee: str
    version: str
    case: str
    digest: str
    verdict: Verdict
    raw: Verdict
    detail: str = ""
    differences: tuple[str, ...] = ()
    compared: tuple[str, ...] = ()
    branch: str = ""
    answer: Json | None = None
    stderr: str = ""
    seconds: float = 0.0
    growth: int | None = None
    notes: tuple[str, ...] = field(default=())
    disclosure: str = ""
    fingerprint: str = ""

    @property
    def label(self) -> str:
        """Return the verdict for display: ``PASS(branch)``, ``SKIP(codec:zstd)``, ``XFAIL(CRASH)``."""
        match self.verdict:
            case Verdict.PASS if self.branch:
                return f"PASS({self.branch})"
            case Verdict.SKIP:
                return f"SKIP({self.detail})"
            case Verdict.XFAIL:
                return f"XFAIL({self.raw})"
            case _:
                return str(self.verdict)

"""Verdicts, and the result of one case."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from seglog_conformance.protocol import Json


class Verdict(StrEnum):
    """What comes of asking one case; a closed set."""

    PASS = "PASS"  # noqa: S105 - a verdict, not a password
    DIFFER = "DIFFER"
    """An answer that is not the expected one."""

    ACCEPTS_INVALID = "ACCEPTS-INVALID"
    """Bytes that have to be refused were not."""

    REJECTS_VALID = "REJECTS-VALID"
    """Bytes that have to be read were refused."""

    SILENT = "SILENT"
    """No error, and data is missing or damage was passed over."""

    STALL = "STALL"
    """A consumer asks for the same offset again and again, or refuses good records in front of damage as often."""

    JUMP = "JUMP"
    """A consumer goes on at an offset that leaves records out, or repeats them."""

    CRASH = "CRASH"
    """The process ended without an answer."""

    HANG = "HANG"
    """No answer within the time."""

    MEMORY = "MEMORY"
    """It took more memory than input and answer explain."""

    SKIP = "SKIP"
    """The implementation does not have what the case needs."""

    XFAIL = "XFAIL"
    """It fails as its list of known failures says."""

    XPASS = "XPASS"
    """It passes, and the list says that it fails."""

    ADAPTER_ERROR = "ADAPTER-ERROR"
    """The adapter failed, which says nothing about the implementation."""


FINE: Final = frozenset({Verdict.PASS, Verdict.SKIP, Verdict.XFAIL})
"""What does not fail a run."""

FAILURES: Final = frozenset(Verdict) - FINE - {Verdict.XPASS}
"""What can stand in a list of known failures."""

DEADLY: Final = frozenset({Verdict.CRASH, Verdict.HANG, Verdict.MEMORY})
"""What counts only if it happens again in a fresh process."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where an answer is not the expected one."""

    path: str
    expected: Any
    found: Any

    def __str__(self) -> str:
        return f"{self.path}: expected {shown(self.expected)}, found {shown(self.found)}"


MISSING: Final = "(missing)"


def shown(value: object, limit: int = 120) -> str:
    """Return a value in a message."""
    text = "null" if value is None else str(value)
    return text if len(text) <= limit else f"{text[:limit]}... ({len(text)} characters)"


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict on one answer, and what it rests on.

    Attributes:
        verdict: the verdict.
        detail: why, in a few words; empty for a plain PASS.
        differences: the first of them.
        compared: names of the fields that were.
        branch: which of the allowed answers it was.
    """

    verdict: Verdict
    detail: str = ""
    differences: tuple[Difference, ...] = ()
    compared: tuple[str, ...] = ()
    branch: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One case on one implementation.

    Attributes:
        testee: its name in the registry.
        version: of the implementation.
        case: id.
        digest: of the case.
        verdict: as reported: a known failure is XFAIL.
        raw: the verdict before the list of known failures was looked at.
        detail: why.
        differences: as text, the first few.
        compared: fields that were.
        branch: which allowed answer was given.
        answer: what came back; None where nothing did, or nothing is to be told.
        stderr: the end of what the process wrote there, when it went wrong.
        seconds: until the answer.
        growth: bytes that memory grew by at its peak; None where that is not known.
        notes: such as that it went wrong at first, and not again.
        disclosure: ``withheld`` where the bytes are not published.
        fingerprint: of a wrong answer; empty where none came.
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
        """The verdict as people read it: ``PASS(branch)``, ``SKIP(codec:zstd)``, ``XFAIL(CRASH)``."""
        match self.verdict:
            case Verdict.PASS if self.branch:
                return f"PASS({self.branch})"
            case Verdict.SKIP:
                return f"SKIP({self.detail})"
            case Verdict.XFAIL:
                return f"XFAIL({self.raw})"
            case _:
                return str(self.verdict)

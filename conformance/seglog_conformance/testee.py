"""The interface of an implementation under test, and the outcomes of a request."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from seglog_conformance.protocol import Hello, Json

MEBIBYTE = 1 << 20


class Kind(Enum):
    """The outcome of a request."""

    ANSWER = "answer"
    CRASH = "crash"
    HANG = "hang"
    MEMORY = "memory"
    BROKEN = "broken"
    """The adapter violates the protocol."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """The limits of one request.

    Attributes:
        seconds: time limit.
        growth: largest growth of memory in bytes; None for no limit.
        line: largest size of the answer in bytes.
    """

    seconds: float = 10.0
    growth: int | None = None
    line: int = 64 * MEBIBYTE


@dataclass(frozen=True, slots=True)
class Reply:
    """The outcome of one request.

    Attributes:
        kind: kind of outcome.
        answer: the answer, if there is one.
        detail: reason for a missing answer.
        stderr: end of the standard error of the process.
        seconds: seconds until the outcome.
        growth: growth of memory at its peak in bytes; None if that is not known.
    """

    kind: Kind
    answer: Json | None = None
    detail: str = ""
    stderr: str = ""
    seconds: float = 0.0
    growth: int | None = None


class StartError(Exception):
    """A testee does not start; the message holds its output."""


class Testee(Protocol):
    """An implementation under test, in this process or in another."""

    @property
    def name(self) -> str:
        """Return the name in the registry."""

    def start(self) -> Hello:
        """Start the testee, or restart it, and return its greeting.

        Raises:
            StartError: the testee does not start.
        """

    def ask(self, request: Json, allowance: Allowance) -> Reply:
        """Send a request once. After any outcome but an answer the testee must be started again."""

    def close(self) -> None:
        """End the testee and its processes."""

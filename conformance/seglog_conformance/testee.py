"""An implementation under test, as the runner sees it, and the outcomes of a request."""

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
    """The adapter does not keep to the protocol."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """What one request may cost.

    Attributes:
        seconds: until the answer.
        growth: bytes by which memory may grow at its peak; None for any.
        line: bytes that the answer may have.
    """

    seconds: float = 10.0
    growth: int | None = None
    line: int = 64 * MEBIBYTE


@dataclass(frozen=True, slots=True)
class Reply:
    """What came of asking once.

    Attributes:
        kind: of outcome.
        answer: where there is one.
        detail: why there is none.
        stderr: the end of what the process wrote there.
        seconds: until the outcome.
        growth: bytes by which memory grew at its peak; None where that is not known.
    """

    kind: Kind
    answer: Json | None = None
    detail: str = ""
    stderr: str = ""
    seconds: float = 0.0
    growth: int | None = None


class StartError(Exception):
    """A testee does not come up; what it wrote is in the message."""


class Testee(Protocol):
    """An implementation behind whatever door it has."""

    @property
    def name(self) -> str:
        """In the registry."""

    def start(self) -> Hello:
        """Bring it up, again if it is up already, and greet it.

        Raises:
            StartError: that does not work.
        """

    def ask(self, request: Json, allowance: Allowance) -> Reply:
        """Ask once. After anything but an answer it has to be started again."""

    def close(self) -> None:
        """Leave nothing behind."""

"""What a history shares from its start to its end: chance, the clock, locks, and what its processes like to do."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import random
    from collections.abc import Mapping

START_MS: Final = 1_700_000_000_000
ACTIONS: Final = {
    "append": 70,
    "follow": 6,
    "flush": 9,
    "roll": 4,
    "elect": 2,
    "checkpoint": 3,
    "retain": 4,
    "remove": 2,
}
"""What appenders do, and how often."""


class BlockedError(Exception):
    """An appender would wait for another one's flush here: it is somebody else's turn."""


class Turns:
    """Locks for appenders that take turns in one thread: nobody waits in them, but it is known whether one is held."""

    def __init__(self) -> None:
        self.held = 0

    def __enter__(self) -> bool:
        self.held += 1
        return True

    def __exit__(self, *_: object) -> None:
        self.held -= 1

    def wait(self, timeout: float | None = None) -> bool:
        """Leave the lock to others."""
        raise BlockedError(timeout)

    def notify_all(self) -> None:
        """Those that were blocked try again in their next turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Habits:
    """What the processes of a history like to do.

    Attributes:
        closes: share of lives that end with a clean close, where the power stays.
        truncates: share of lives that begin with a truncation.
        retains: share of lives that begin with retention.
        transactions: share of producers that have transactions.
        actions: weights of actions, where they are not the common ones.
        segment_bytes: one of these, for each life.
        retention_bytes: one of these, for each life.
        looks: after so many of the operations it is asked what a power cut would leave.
    """

    closes: float = 0.5
    truncates: float = 0.3
    retains: float = 0.2
    transactions: float = 0.6
    actions: Mapping[str, int] = field(default_factory=dict)
    segment_bytes: tuple[int, ...] = (400, 400, 700, 1500, 1 << 15)
    retention_bytes: tuple[int, ...] = (-1, 500, 2000)
    looks: float = 0.12


HABITS: Final = (
    Habits(),
    Habits(closes=0.9, truncates=0.7, retains=0.1),
    Habits(
        transactions=1.0,
        actions={"retain": 20, "checkpoint": 12},
        segment_bytes=(400,),
        retention_bytes=(500,),
        looks=0.25,
    ),
)
"""Each history has one of these."""


@dataclass(slots=True)
class World:
    """What a history shares from its start to its end.

    Attributes:
        dice: decide everything.
        counts: of what happened.
        now_ms: the clock.
        turns: the locks of a process.
        compacts: logs are compacted, and so records have keys.
        habits: what its processes like to do.
    """

    dice: random.Random
    counts: Counter[str] = field(default_factory=Counter)
    now_ms: int = START_MS
    turns: Turns = field(default_factory=Turns)
    compacts: bool = False
    habits: Habits = field(default_factory=Habits)

"""State that a history shares from its start to its end: random numbers, clock, locks, and habits of its processes."""

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
"""Actions of appenders, with their weights."""


class BlockedError(Exception):
    """An appender would wait for another one's flush: another appender takes its turn."""


class Turns:
    """Locks for appenders that take turns in one thread: they never block, but know whether one is held."""

    def __init__(self) -> None:
        self.held = 0

    def __enter__(self) -> bool:
        self.held += 1
        return True

    def __exit__(self, *_: object) -> None:
        self.held -= 1

    def wait(self, timeout: float | None = None) -> bool:
        """Release the lock to the others."""
        raise BlockedError(timeout)

    def notify_all(self) -> None:
        """Do nothing: blocked appenders try again in their next turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Habits:
    """Habits of the processes of a history.

    Attributes:
        closes: share of lives that end with a clean close, if the power stays.
        truncates: share of lives that begin with a truncation.
        retains: share of lives that begin with retention.
        transactions: share of producers that use transactions.
        actions: weights of actions that differ from the common ones.
        segment_bytes: segment sizes; one is chosen for each life.
        retention_bytes: retention sizes; one is chosen for each life.
        looks: share of operations after which a power cut is tried.
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
"""Habits; each history has one of these."""


@dataclass(slots=True)
class World:
    """State that a history shares from its start to its end.

    Attributes:
        dice: random number generator.
        counts: numbers of events.
        now_ms: time of the clock.
        turns: locks of a process.
        compacts: whether logs are compacted, for which records have keys.
        habits: habits of its processes.
    """

    dice: random.Random
    counts: Counter[str] = field(default_factory=Counter)
    now_ms: int = START_MS
    turns: Turns = field(default_factory=Turns)
    compacts: bool = False
    habits: Habits = field(default_factory=Habits)

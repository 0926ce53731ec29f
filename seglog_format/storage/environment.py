"""What writing takes from the world around it, in one place, so that tests can put something else there."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from seglog_format.storage.files import LOCAL_FILES, Files

Clock: TypeAlias = Callable[[], int]
"""Milliseconds since 1970."""


class Condition(AbstractContextManager[bool], Protocol):
    """What the writer uses of `threading.Condition`: a lock, and waiting for what another thread does under it."""

    def wait(self, timeout: float | None = None) -> bool:
        """Give the lock back until another thread notifies, or for so many seconds at most."""

    def notify_all(self) -> None:
        """Let all that wait go on, one after the other."""


def system_clock() -> int:
    """Milliseconds since 1970, by the computer's clock."""
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Files, time, chance and threads.

    Attributes:
        files: where files are.
        clock: what time it is.
        random: a number from 0 up to, not including, 1; for the jitter of segments.
        make_condition: makes a lock.
        locks_directory: the log directory's lock file is held while it is written to.

    Examples:
        >>> from seglog_format import Environment, PartitionWriter, new_record
        >>> noon = Environment(clock=lambda: 1_767_268_800_000)
        >>> with PartitionWriter("written/at-noon-0", environment=noon) as writer:
        ...     appended = writer.append([new_record(value=b"lunch")])
        >>> appended.first_offset
        0
    """

    files: Files = LOCAL_FILES
    clock: Clock = system_clock
    random: Callable[[], float] = random.random
    make_condition: Callable[[], Condition] = threading.Condition
    locks_directory: bool = True

"""The environment of a writer: files, clock, random numbers and threads, which tests can replace."""

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
    """The part of `threading.Condition` that the writer uses: a lock, and waiting for another thread."""

    def wait(self, timeout: float | None = None) -> bool:
        """Release the lock until another thread notifies, or until a timeout in seconds."""

    def notify_all(self) -> None:
        """Wake all waiting threads, one after the other."""


def system_clock() -> int:
    """Return the time of the computer's clock, in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Files, clock, random numbers and threads.

    Attributes:
        files: the file layer.
        clock: returns the time.
        random: returns a random number from 0 up to, not including, 1; for the jitter of segments.
        make_condition: creates a lock.
        locks_directory: whether to hold the log directory's lock file while writing.

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

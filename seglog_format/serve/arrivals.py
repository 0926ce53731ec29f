"""Who waits for records of which partition."""

from __future__ import annotations

from collections import defaultdict
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Wake = Callable[[], None]


class Arrivals:
    """Wakes those who wait at the end of a log when something was written to it in this process.

    Attributes:
        has_ended: nothing comes any more: nobody need wait.
    """

    def __init__(self) -> None:
        self.has_ended = False
        self._lock = Lock()
        self._waiting: dict[tuple[str, int], dict[Wake, None]] = defaultdict(dict)
        self._expected: dict[Wake, tuple[tuple[str, int], ...]] = {}

    def expect(self, partitions: Iterable[tuple[str, int]], wake: Wake) -> None:
        """Have a function called, soon and briefly, whenever something comes to one of these partitions."""
        with self._lock:
            self._expected[wake] = tuple(partitions)
            for each in self._expected[wake]:
                self._waiting[each][wake] = None

    def forget(self, wake: Wake) -> None:
        """Call it no more."""
        with self._lock:
            for each in self._expected.pop(wake, ()):
                self._waiting[each].pop(wake, None)
                if not self._waiting[each]:
                    del self._waiting[each]

    def announce(self, topic: str, partition: int) -> None:
        """Something has come."""
        with self._lock:
            waking = tuple(self._waiting.get((topic, partition), ()))
        for wake in waking:
            wake()

    def end(self) -> None:
        """Wake everybody, and let nobody wait any more."""
        self.has_ended = True
        with self._lock:
            waking = tuple(self._expected)
        for wake in waking:
            wake()

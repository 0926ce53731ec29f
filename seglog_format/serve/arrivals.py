"""Callbacks for fetches that wait until records are appended to a partition."""

from __future__ import annotations

from collections import defaultdict
from threading import Lock
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Wake = Callable[[], None]


class Arrivals:
    """Calls back the fetches that wait at the end of a log when this process appends to it.

    Attributes:
        has_ended: whether the server stops, so no fetch needs to wait.
    """

    def __init__(self) -> None:
        self.has_ended = False
        self._lock = Lock()
        self._waiting: dict[tuple[str, int], dict[Wake, None]] = defaultdict(dict)
        self._expected: dict[Wake, tuple[tuple[str, int], ...]] = {}

    def expect(self, partitions: Iterable[tuple[str, int]], wake: Wake) -> None:
        """Call `wake` as soon as records are appended to one of these partitions; it must return quickly."""
        with self._lock:
            self._expected[wake] = tuple(partitions)
            for each in self._expected[wake]:
                self._waiting[each][wake] = None

    def forget(self, wake: Wake) -> None:
        """Remove a callback."""
        with self._lock:
            for each in self._expected.pop(wake, ()):
                self._waiting[each].pop(wake, None)
                if not self._waiting[each]:
                    del self._waiting[each]

    def announce(self, topic: str, partition: int) -> None:
        """Call the callbacks of a partition: records were appended to it."""
        with self._lock:
            waking = tuple(self._waiting.get((topic, partition), ()))
        for wake in waking:
            wake()

    def end(self) -> None:
        """Call all callbacks, and accept no more."""
        self.has_ended = True
        with self._lock:
            waking = tuple(self._expected)
        for wake in waking:
            wake()

"""Callbacks for what waits: at a later time, or as soon as records are appended to a partition."""

from __future__ import annotations

import heapq
import time
from collections import defaultdict
from itertools import count
from threading import Condition, Lock, Thread
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    Wake = Callable[[], None]


# -- callbacks for fetches that wait until records are appended to a partition -----------------------------------------


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


# -- callbacks at a later time: for waiting answers and for the timeouts of group members. One thread for all ----------


class Delays:
    """Calls functions when their time has come; they must return quickly.

    A function that raises is reported, and the others are still called.
    """

    def __init__(self, on_failure: Callable[[str], None]) -> None:
        """Prepare the thread.

        Args:
            on_failure: called with a message about a function that raised.
        """
        self._on_failure = on_failure
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()
        self._changed = Condition()
        self._is_stopped = False
        self._thread = Thread(target=self._run, name="seglog-delays", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        """Call a function after some seconds, unless `stop` is called first."""
        with self._changed:
            heapq.heappush(self._due, (time.monotonic() + seconds, next(self._numbers), action))
            self._changed.notify()

    def stop(self) -> None:
        """Stop the thread; pending calls are dropped."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while True:
            action = self._next()
            if action is None:
                return
            try:
                action()
            except Exception as error:  # noqa: BLE001 - a fault of ours ends one call, not the thread of all
                self._on_failure(f"a delayed call failed: {type(error).__name__}: {error}")

    def _next(self) -> Callable[[], None] | None:
        with self._changed:
            while not self._is_stopped:
                left = self._due[0][0] - time.monotonic() if self._due else None
                if left is not None and left <= 0:
                    return heapq.heappop(self._due)[2]
                self._changed.wait(left)
            return None

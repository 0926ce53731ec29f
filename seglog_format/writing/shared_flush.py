"""Flushes shared by threads: threads that request a flush while another one runs share the next flush (chapter 71)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from seglog_format.storage.environment import Condition


class SharedFlush:
    """Flushes of one log, one at a time (SEG-FLS-003).

    Args:
        condition: protects the state of this object; it is not held during a flush.
        flush: flushes everything that was appended before the call.
        reached: returns the offset up to which the log is flushed.
        check: raises an error if the log has failed.
    """

    def __init__(
        self,
        condition: Condition,
        *,
        flush: Callable[[], None],
        reached: Callable[[], int],
        check: Callable[[], None],
    ) -> None:
        self._condition = condition
        self._flush = flush
        self._reached = reached
        self._check = check
        self._is_busy = False

    def wait_for(self, offset: int) -> None:
        """Wait until everything below an offset is on disk; flush, unless another thread does.

        Raises:
            WriteError: the log has failed.
        """
        while self._is_my_turn(offset):
            try:
                self._flush()
            finally:
                with self._condition:
                    self._is_busy = False
                    self._condition.notify_all()

    def _is_my_turn(self, offset: int) -> bool:
        """Wait; return True if this thread has to flush, False if nothing is left to flush."""
        with self._condition:
            while self._is_busy and self._reached() < offset:
                self._condition.wait()
            self._check()
            if self._reached() >= offset:
                return False
            self._is_busy = True
            return True

    def unless_busy(self, action: Callable[[], None]) -> None:
        """Run an action that must not run during a flush; skip it if a flush is running, which does it at its end."""
        with self._condition:
            if not self._is_busy:
                action()

"""Stores the groups' committed offsets on disk, so they survive a restart.

A commit is acknowledged when it is on the disk. Commits that arrive during a write share the next write. Writes take a
small part of the time, however many commits arrive.
"""

from __future__ import annotations

import time
from threading import Condition, Thread
from typing import TYPE_CHECKING, Final, Protocol

from seglog_format.serve.group_file import BrokenStateError, StoredGroup, groups_in
from seglog_format.storage.files import LocalFiles, replace_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

FILE_NAME: Final = "groups.jsonl"
MAX_FILE_SIZE: Final = 64 << 20
REST_FACTOR: Final = 4
"""Pause after a write, as a multiple of its duration."""

MIN_REST_SECONDS: Final = 0.02


class Saved(Protocol):
    """Callback for the outcome of a commit."""

    def __call__(self, *, is_saved: bool) -> None:
        """Report whether the offsets are on the disk."""


class GroupStore:
    """The file in a state directory, and the thread that writes it.

    Args:
        directory: the directory of the file.
        content: returns the current content of the whole file.
        report: called once with a message about a failure.
    """

    def __init__(self, directory: Path, content: Callable[[], bytes], report: Callable[[str], None]) -> None:
        self._path = directory / FILE_NAME
        self._content = content
        self._report = report
        self._changed = Condition()
        self._waiting: list[Saved] = []
        self._is_ended = self._has_failed = False
        self._thread = Thread(target=self._run, name="seglog-groups", daemon=True)

    def load(self) -> list[StoredGroup]:
        """Read the stored groups; report a damaged file and rename it."""
        try:
            if self._path.stat().st_size > MAX_FILE_SIZE:
                return self._set_aside("it is larger than this server writes it")
            return groups_in(self._path.read_bytes())
        except FileNotFoundError:
            return []
        except BrokenStateError as error:
            return self._set_aside(str(error))
        except OSError as error:
            return self._set_aside(error.strerror or str(error))

    def _set_aside(self, reason: str) -> list[StoredGroup]:
        aside = self._path.with_name(f"{FILE_NAME}.damaged-{time.time_ns()}")
        try:
            self._path.replace(aside)
        except OSError as error:
            self._is_ended = True
            self._report(f"{self._path} cannot be used ({reason}; {error.strerror}): commits are refused")
        else:
            self._report(f"{self._path} is damaged ({reason}): groups begin without committed offsets; now {aside}")
        return []

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def save(self, then: Saved) -> None:
        """Write changes soon; then report to `then` whether they are on the disk."""
        with self._changed:
            if not self._is_ended:
                self._waiting.append(then)
                self._changed.notify()
                return
        then(is_saved=False)

    def end(self, seconds: float) -> None:
        """Write pending changes, and stop the thread."""
        with self._changed:
            self._is_ended = True
            self._changed.notify()
        self._thread.join(seconds)

    def _run(self) -> None:
        while waiting := self._next():
            began = time.monotonic()
            is_saved = self._write()
            for then in waiting:
                then(is_saved=is_saved)
            took = time.monotonic() - began
            with self._changed:
                self._changed.wait_for(lambda: self._is_ended, max(REST_FACTOR * took, MIN_REST_SECONDS))

    def _next(self) -> list[Saved]:
        with self._changed:
            self._changed.wait_for(lambda: self._waiting or self._is_ended)
            waiting, self._waiting = self._waiting, []
            return waiting

    def _write(self) -> bool:
        try:
            replace_file(LocalFiles(), self._path, self._content())
        except Exception as error:  # noqa: BLE001 - clients wait for the outcome, whatever the error
            if not self._has_failed:
                self._report(f"{self._path}: commits are refused, as they cannot be written: {error}")
            self._has_failed = True
            return False
        self._has_failed = False
        return True

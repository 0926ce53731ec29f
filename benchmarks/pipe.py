"""A peer process that keeps running, and answers one JSON object per line."""

from __future__ import annotations

import json
import subprocess
import tempfile
import threading
import time
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from contents import Part, joined
from seglog_conformance.toolchains import child_processes

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

PROCESS_CLOCK: Final = 2
"""The kind of clock in a clock id of Linux that counts the time of a process on processors."""
PATIENCE_SECONDS: Final = 300
"""Time limit for an answer; a peer that exceeds it is ended."""


class PeerError(Exception):
    """A peer could not be built, gives no answer, or reports a failure."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a peer about some passes.

    Attributes:
        seconds: of each pass.
        contents: checksum of the last pass; None if it was not requested.
        more: all other fields of the answer.
        processor_seconds: time of all threads of the peer on processors, from the request to its answer; None where the
            system does not tell.
    """

    seconds: tuple[float, ...]
    contents: Part
    more: dict[str, Any]
    processor_seconds: float | None = None


class NotBuiltError(Exception):
    """The peer reports that it does not implement this work yet."""


class Process(AbstractContextManager["Process"]):
    """A started peer; use it as a context manager.

    Args:
        name: name for messages.
        command: command that starts it.
        environment: variables besides those of this process.
    """

    def __init__(self, name: str, command: Sequence[str], environment: Mapping[str, str]) -> None:
        self.name = name
        self._errors = tempfile.TemporaryFile(mode="w+", encoding="utf-8", errors="replace")  # noqa: SIM115 - closed with the process
        self._process = child_processes.start(
            command,
            directory=Path(__file__).parent,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            encoding="utf-8",
            changes=environment,
        )
        self.version: str = self._asked(work="hello")["version"]

    @property
    def has_ended(self) -> bool:
        """Return whether the process has ended."""
        return self._process.poll() is not None

    def run(self, work: str, /, **fields: object) -> Answer:
        """Make the peer run some passes of a work.

        Args:
            work: name of the work; see the peers.
            fields: ``path``, ``how``, ``threads``, ``passes``, ``check`` (report the contents found) and others.

        Raises:
            NotBuiltError: the peer does not implement the work.
            PeerError: the peer gives no answer, or failed.
        """
        before = self._processor_seconds()
        reported = self._asked(work=work, **fields)
        after = self._processor_seconds()
        if "skip" in reported:
            raise NotBuiltError(reported["skip"])
        if "error" in reported:
            msg = f"{self.name}: {work}: {reported['error']}"
            raise PeerError(msg)
        parts = joined(Part(int(number), count) for number, count in reported.pop("parts", ()))
        taken = None if before is None or after is None else after - before
        return Answer(tuple(reported.pop("seconds", ())), parts, reported, taken)

    def _processor_seconds(self) -> float | None:
        """Return the time of the peer on processors; None where its clock cannot be read."""
        try:
            return time.clock_gettime(~self._process.pid << 3 | PROCESS_CLOCK)
        except (AttributeError, OSError):
            return None

    def _asked(self, **request: object) -> dict[str, Any]:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        watch = threading.Timer(PATIENCE_SECONDS, self._process.kill)
        watch.start()
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except BrokenPipeError:
            line = ""
        finally:
            watch.cancel()
        if not line:
            self._process.kill()
            self._process.wait()
            self._errors.seek(0)
            msg = f"{self.name} does not answer: {self._errors.read()[-2000:]}"
            raise PeerError(msg)
        reported: dict[str, Any] = json.loads(line)
        return reported

    def __exit__(self, *_: object) -> None:
        """End the process."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with suppress(BrokenPipeError):
            self._process.stdin.close()
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._errors.close()

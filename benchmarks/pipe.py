"""A peer process that keeps running, and answers one JSON object per line."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import threading
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from contents import Part, joined

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

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
    """

    seconds: tuple[float, ...]
    contents: Part
    more: dict[str, Any]


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
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            encoding="utf-8",
            env={**os.environ, **environment},
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
        reported = self._asked(work=work, **fields)
        if "skip" in reported:
            raise NotBuiltError(reported["skip"])
        if "error" in reported:
            msg = f"{self.name}: {work}: {reported['error']}"
            raise PeerError(msg)
        parts = joined(Part(int(number), count) for number, count in reported.pop("parts", ()))
        return Answer(tuple(reported.pop("seconds", ())), parts, reported)

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

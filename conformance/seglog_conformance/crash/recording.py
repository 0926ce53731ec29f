"""A mounted recorder: where a process works, and what it did there."""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from seglog_conformance.crash.history import PAGE, read_history
from seglog_format.storage.child_processes import NOWHERE, find_program, run, start

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_conformance.crash.history import History
    from seglog_conformance.protocol import Json

DEVICE: Final = Path("/dev/fuse")
LIBRARY: Final = "mfusepy"
MOUNT_SECONDS: Final = 20.0
WAIT_SECONDS: Final = 0.01


class RecordingError(Exception):
    """Nothing can be recorded on this machine, or the recorder failed."""


class Recording:
    """A directory whose changes are recorded.

    Attributes:
        root: the mount point, where a process works.
    """

    def __init__(self, root: Path, log: Path) -> None:
        self.root = root
        self._log = log
        self._marker = os.open(root / ".marker", os.O_WRONLY)

    def mark(self, event: Json) -> None:
        """Note an event among the operations, after all pages of mapped memory that were changed before it.

        Raises:
            RecordingError: the kernel could not write the pages.
        """
        if ctypes.CDLL(None, use_errno=True).syncfs(self._marker) != 0:
            msg = f"syncfs {self.root}: {os.strerror(ctypes.get_errno())}"
            raise RecordingError(msg)
        os.pwrite(self._marker, json.dumps(event).encode(), 0)

    def history(self, piece: int = PAGE) -> History:
        """Return the operations until now; writes are cut at multiples of `piece` bytes."""
        with self._log.open(encoding="utf-8") as lines:
            return read_history(lines, piece)

    def close(self) -> None:
        """Release the mount point."""
        os.close(self._marker)


def missing() -> str:
    """Return what this machine lacks to record a process; empty if nothing."""
    if not DEVICE.exists():
        return f"{DEVICE} is missing: recording needs Linux with FUSE"
    if not os.access(DEVICE, os.R_OK | os.W_OK):
        return f"{DEVICE} cannot be opened by this user"
    if importlib.util.find_spec(LIBRARY) is None:
        return f"{LIBRARY} is missing: pip install 'seglog-format[crash]'"
    if find_program("fusermount3") is None and find_program("fusermount") is None:
        return "libfuse is missing: install the package fuse3"
    return ""


@contextmanager
def recording(scratch: Path, *, sync_seconds: float = 0.0) -> Iterator[Recording]:
    """Provide a directory whose changes are recorded, until the end of the block.

    Args:
        scratch: an empty directory for the files, the mount point and the operations.
        sync_seconds: how long a sync takes.

    Raises:
        RecordingError: it cannot be mounted.
    """
    if reason := missing():
        raise RecordingError(reason)
    directory, root, log = scratch / "files", scratch / "mounted", scratch / "operations.jsonl"
    directory.mkdir()
    root.mkdir()
    command = [
        sys.executable,
        "-m",
        "seglog_conformance.crash.recorder",
        *map(str, (directory, root, log, sync_seconds)),
    ]
    said = scratch / "recorder.txt"
    with said.open("wb") as output:
        child = start(command, directory=NOWHERE, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    try:
        _wait_for(child, root, said)
        opened = Recording(root, log)
        try:
            yield opened
        finally:
            opened.close()
    finally:
        unmount = next(program for program in ("fusermount3", "fusermount") if find_program(program))
        run([unmount, "-u", "-z", str(root)], directory=NOWHERE, check=False, stderr=subprocess.DEVNULL)
        with suppress(subprocess.TimeoutExpired):
            child.wait(MOUNT_SECONDS)
        child.kill()
        child.wait()


def _wait_for(child: subprocess.Popen[bytes], root: Path, said: Path) -> None:
    end = time.monotonic() + MOUNT_SECONDS
    while not os.path.ismount(root):
        if child.poll() is not None or time.monotonic() > end:
            lines = said.read_text(encoding="utf-8", errors="replace").splitlines()
            lines = lines or [f"not mounted within {MOUNT_SECONDS:g} s"]
            msg = f"the recording file system does not start: {lines[-1]}"
            raise RecordingError(msg)
        time.sleep(WAIT_SECONDS)

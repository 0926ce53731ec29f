"""One case: a damaged log directory, and every command on it. Runs in a process with little memory."""

from __future__ import annotations

import ctypes
import io
import os
import random
import re
import resource
import sys
import time
import traceback
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from proofs.damaging.contents import current_path, delivered, missing
from proofs.damaging.kinds import damage
from proofs.damaging.sources import build, discard
from seglog_format.cli.main import run

if TYPE_CHECKING:
    from collections import Counter
    from pathlib import Path

    from proofs.damaging.contents import Content

DATA_LIMIT: Final = 600 * 2**20
"""Bytes of memory of its own that the process may have."""

WRITE_SHARE: Final = 0.3
"""Share of the cases that are also recovered."""

CAPABILITIES_VERSION: Final = 0x2008_0522
MAY_READ_ALL: Final = 1 << 1 | 1 << 2
"""CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH: without them, modes of files also apply to root."""


@dataclass
class Result:
    """The result of one case.

    Attributes:
        number: number of the case.
        damages: names and descriptions of the damages.
        statuses: exit status of each command.
        lost: number of records that are no longer delivered.
        failures: descriptions of failures.
        seconds: seconds that the slowest command took.
    """

    number: int
    damages: list[tuple[str, str]] = field(default_factory=list)
    statuses: dict[str, int] = field(default_factory=dict)
    lost: int = 0
    failures: list[str] = field(default_factory=list)
    seconds: float = 0.0


class Sink(io.StringIO):
    """Takes any amount of text, and keeps its beginning."""

    KEPT: Final = 100_000

    def write(self, text: str) -> int:
        """Keep as much of the text as there is room for."""
        super().write(text[: max(self.KEPT - self.tell(), 0)])
        return len(text)


def confine() -> None:
    """Give up privileges, most of the memory, and the compiled engine, which would be chosen for a large sparse file.

    Tests compare the columnar engine with the findings of the reference; it needs much more memory from its start.
    """
    sys.modules["pyarrow"] = None  # type: ignore[assignment] - as if it were not installed
    resource.setrlimit(resource.RLIMIT_DATA, (DATA_LIMIT, DATA_LIMIT))
    if os.geteuid() != 0:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    header, data = (ctypes.c_uint32 * 2)(CAPABILITIES_VERSION, 0), (ctypes.c_uint32 * 6)()
    libc.capget(header, data)
    for word in range(3):  # effective, permitted, inheritable
        data[word] &= ~MAY_READ_ALL
    if libc.capset(header, data) != 0:
        raise OSError(ctypes.get_errno(), "capabilities cannot be given up")


class Case:
    """A damaged directory.

    Args:
        scratch: an empty directory.
        seed: seed of all cases.
        number: number of this case.
    """

    def __init__(self, scratch: Path, seed: int, number: int) -> None:
        self.dice = random.Random(f"{seed}:{number}")
        self.scratch, self.root, self.outside = scratch, scratch / "data", scratch / "outside"
        self.result = Result(number)
        self.said: dict[str, str] = {}
        self.outside.mkdir()
        (self.outside / f"{0:020}.log").write_bytes(b"not ours")
        self.held = build(self.root, self.dice)
        self.result.damages = damage(self.root, self.outside, self.dice)

    def check(self) -> Result:
        """Run all commands."""
        before = state_of(self.root), state_of(self.outside)
        self._plans()
        if (state_of(self.root), state_of(self.outside)) != before:
            self._fail("a command that only reads has changed something")
        kept = {name: delivered(self.root / name) for name in self.held}
        self._check_losses(kept)
        if self.dice.random() < WRITE_SHARE:
            self._recover(kept, before[1])
        return self.result

    def _plans(self) -> None:
        root, out = str(self.root), str(self.scratch / "out")
        partition = str(self.root / self.dice.choice(sorted(self.held)))
        self._run("verify", "verify", root)
        self._run("recover", "recover", root)
        self._run("ls", "ls", *self.dice.choice(([], ["--long"], ["--json"])), self.dice.choice((root, partition)))
        options = self.dice.choice(([], ["--json"], ["--no-records"], ["--from", "3"], ["--decode", "--raw"]))
        self._run("dump", "dump", *options, self.dice.choice((root, partition)))
        self._run("salvage", "salvage", self.dice.choice((root, partition)), "-o", out)
        others = ["verify", partition], ["index", root], ["lookup", partition, "5"]
        other = self.dice.choice((*others, ["retain", root]))
        self._run(f"other: {other[0]}", *other)

    def _run(self, name: str, *arguments: str) -> int:
        out, err, started, status = Sink(), Sink(), time.monotonic(), -1
        try:
            with redirect_stdout(out), redirect_stderr(err):
                status = run(list(arguments))
        except BaseException:  # noqa: BLE001 - whatever escapes is what is looked for
            self._fail(f"{' '.join(arguments[:1])}: {traceback.format_exc()[-900:]}")
        self.result.statuses[name] = status
        self.result.seconds = max(self.result.seconds, time.monotonic() - started)
        said = self.said[name] = out.getvalue() + err.getvalue()
        if "Traceback" in said or status not in range(5):
            self._fail(f"{name}: status {status}: {said[-600:]}")
        if "not enough memory" in said:
            self._fail(f"{name}: it needs more than {DATA_LIMIT:,} bytes of memory")
        if status == 4:  # noqa: PLR2004 - nothing here refuses to be written to that could be
            self._check_refusal(name, err.getvalue())
        return status

    def _check_refusal(self, name: str, said: str) -> None:
        """Check that a failed write has a reason that a damage explains."""
        reasons = "permission denied|is a directory|not a directory|directory not empty|exists|not a regular file"
        if not re.search(
            f"{reasons}|a symbolic link, which is neither changed nor written through", said, re.IGNORECASE
        ):
            self._fail(f"{name}: {said[-300:]}")

    def _check_losses(self, kept: dict[str, Counter[Content]]) -> None:
        gone = {name: missing(held, current_path(self.root / name), kept[name]) for name, held in self.held.items()}
        self.result.lost = sum(gone.values())
        named = any("missing" in self.said.get(command, "") for command in ("verify", "recover"))  # of compacted logs
        is_copied = any(name == "copy_segment" for name, _ in self.result.damages)  # of another log, with its offsets
        named |= is_copied and "SEG-TIX-005" in self.said["verify"]
        silent = not named and not self.result.statuses["verify"] and not self.result.statuses["recover"]
        if self.result.lost and silent:
            self._fail(f"silent loss: {', '.join(f'{count} of {name}' for name, count in gone.items() if count)}")

    def _recover(self, kept: dict[str, Counter[Content]], outside: object) -> None:
        """Recover, and compare with the plan: records outside of its cuts are still there."""
        planned = self.result.statuses["recover"]
        done = self._run("recover --write", "recover", "--write", str(self.root))
        if state_of(self.outside) != outside:
            self._fail("recover --write has changed something outside")
        lost = sum((kept[name] - delivered(self.root / name)).total() for name in kept)
        if lost and planned == 0 and done == 0:
            self._fail(f"recover --write has lost {lost} records that its plan did not name")

    def _fail(self, what: str) -> None:
        self.result.failures.append(what)


def state_of(root: Path) -> dict[str, tuple[int, ...]]:
    """Return kind, size and times of everything below a directory, to detect changes."""
    found = {}
    for directory, inner, files in os.walk(root, onerror=None):
        for name in [*inner, *files]:
            path = os.path.join(directory, name)  # noqa: PTH118 - names that are no text, too
            with suppress(OSError):
                seen = os.lstat(path)
                found[path] = (seen.st_ino, seen.st_mode, seen.st_size, seen.st_mtime_ns, seen.st_ctime_ns)
    return found


def result_of(scratch: Path, seed: int, number: int) -> Result:
    """Make, damage and judge one case, and remove its files."""
    word = scratch / f"case-{number}"
    word.mkdir()
    try:
        return Case(word, seed, number).check()
    finally:
        discard(word)
        sys.stdout.flush()

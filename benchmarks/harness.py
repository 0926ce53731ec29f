"""Peers that do the same work, measured in turns in one run and compared by ratios.

Machines differ and also run other programs; the ratio of two peers that took turns says more than a single figure.
"""

from __future__ import annotations

import gc
import os
import platform
import statistics
import subprocess
from dataclasses import dataclass, field
from importlib import metadata
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


@dataclass(frozen=True, slots=True)
class Peer:
    """A program or library that does the work.

    Attributes:
        name: name in the report.
        run: works for a while, and returns the seconds per piece of work.
    """

    name: str
    run: Callable[[], float]


@dataclass(slots=True)
class Times:
    """Seconds per piece of work of a peer, round by round."""

    name: str
    seconds: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        """Return the seconds of the median round."""
        return statistics.median(self.seconds)


def measure(peers: Sequence[Peer], rounds: int, warm_up: int = 3) -> list[Times]:
    """Measure the peers in turns.

    Args:
        peers: peers that do the same work.
        rounds: rounds that count.
        warm_up: earlier rounds that do not count.
    """
    times = [Times(peer.name) for peer in peers]
    for number in range(warm_up + rounds):
        for peer, known in zip(peers, times, strict=True):
            gc.collect()
            seconds = peer.run()
            if number >= warm_up:
                known.seconds.append(seconds)
    return times


def machine() -> dict[str, Any]:
    """Return the conditions of the figures, without names; the load shows how busy the machine was."""
    return {
        "system": platform.system(),
        "architecture": platform.machine(),
        "cores": os.cpu_count(),
        "loadAverage": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
    }


def java_version() -> str:
    """Return the first line of Java's version text."""
    done = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True)  # noqa: S607 - from PATH
    return done.stderr.splitlines()[0]


def our_version() -> str:
    """Return the version of the measured package."""
    return metadata.version("seglog-format")


def at_offset(batch: bytes, offset: int) -> bytes:
    """Return a record batch as a leader of epoch 0 stores it: its checksum covers neither the offset nor the epoch."""
    return offset.to_bytes(8, "big") + batch[8:12] + bytes(4) + batch[16:]

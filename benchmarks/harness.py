"""Peers that do the same work, measured in turns in one run and compared by ratios.

Machines differ and also run other programs; the ratio of two peers that took turns says more than a single figure.
"""

from __future__ import annotations

import gc
import statistics
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from seglog_conformance.toolchains import child_processes

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


def java_version() -> str:
    """Return the first line of Java's version text."""
    done = child_processes.run(
        ["java", "-version"], directory=child_processes.NOWHERE, capture_output=True, text=True, check=True
    )
    return done.stderr.splitlines()[0]


def at_offset(batch: bytes, offset: int) -> bytes:
    """Return a record batch as a leader of epoch 0 stores it: its checksum covers neither the offset nor the epoch."""
    return offset.to_bytes(8, "big") + batch[8:12] + bytes(4) + batch[16:]

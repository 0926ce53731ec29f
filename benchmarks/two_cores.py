"""Upper bound of the gain by a second core: one process, or two that share the work, sum or decompress equal data."""

from __future__ import annotations

import time
from dataclasses import dataclass
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from limits import payloads_of, wheels
from seglog_conformance.toolchains import child_processes

if TYPE_CHECKING:
    from collections.abc import Sequence
    from concurrent.futures import ProcessPoolExecutor
    from pathlib import Path

    from datasets import DataSet
    from limits import Limit

MAX_RUNS: Final = 10
WORD: Final = 8


@dataclass(frozen=True, slots=True)
class Gain:
    """The ratio of the speed of two processes to one, and the seconds of both."""

    times: float
    alone: float
    shared: float


class Part:
    """One part of a log.

    Args:
        path: path of the log.
        number: number of the part, from 0.
        parts: how many parts there are.
        way: name of a decoder of `wheels`; empty for reading.
    """

    def __init__(self, path: Path, number: int, parts: int, way: str) -> None:
        self._way = way
        if way:
            payloads = list(payloads_of(path.read_bytes()))
            self._codec, own = payloads[0][0], payloads[number::parts]
            self._payloads = [payload for _, payload in own]
        else:
            words = np.memmap(path, np.uint64, "r", shape=path.stat().st_size // WORD)
            self._words = words[len(words) * number // parts : len(words) * (number + 1) // parts]

    def worked(self) -> None:
        """Read or decompress this part."""
        if not self._way:
            self._words.sum()
            return
        decompress = wheels(self._codec)[self._way]
        for payload in self._payloads:
            decompress(payload)


_known: dict[tuple[Any, ...], Part] = {}


def _run(reported: tuple[Any, ...]) -> None:
    if reported not in _known:
        _known[reported] = Part(*reported)
    _known[reported].worked()


def second_core(data: DataSet, codec: Limit | None, rounds: int) -> Gain:
    """Return the gain of two processes over one, in the best of some rounds taken in turns.

    Args:
        data: a set.
        codec: speeds of decoders alone, of which the fastest is used; None for reading.
        rounds: number of rounds.
    """
    way = "" if codec is None else max(codec.ways, key=codec.ways.__getitem__)
    spawning = get_context("spawn")
    with child_processes.process_pool(1, spawning) as first, child_processes.process_pool(1, spawning) as second:
        alone = [(first, (data.path, 0, 1, way))]
        shared = [(first, (data.path, 0, 2, way)), (second, (data.path, 1, 2, way))]
        seconds = [(_timed(alone), _timed(shared)) for _ in range(min(rounds, MAX_RUNS) + 1)][1:]
    best = [min(each) for each in zip(*seconds, strict=True)]
    return Gain(best[0] / best[1], *best)


def _timed(jobs: Sequence[tuple[ProcessPoolExecutor, tuple[Any, ...]]]) -> float:
    started = time.perf_counter()
    for running in [pool.submit(_run, reported) for pool, reported in jobs]:
        running.result()
    return time.perf_counter() - started

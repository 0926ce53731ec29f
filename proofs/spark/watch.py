"""A watch on Spark's processes from outside: memory of its Python workers, processor time of all."""

from __future__ import annotations

import os
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

TICKS: Final = os.sysconf("SC_CLK_TCK")
LOOK_SECONDS: Final = 0.2
FORGET_PEAK: Final = "5"
"""Written to ``clear_refs`` to reset the recorded peak of a process to its present memory."""


def children(process_id: int) -> list[int]:
    """Return a process's descendants."""
    found = []
    with suppress(OSError):  # the process may have ended
        for task in Path(f"/proc/{process_id}/task").iterdir():
            for each in map(int, (task / "children").read_text().split()):
                found += [each, *children(each)]
    return found


def _is_worker(process_id: int) -> bool:
    return b"pyspark.daemon" in _read(process_id, "cmdline")


def _read(process_id: int, name: str) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{process_id}/{name}").read_bytes()
    return b""


def _status(process_id: int, *names: str) -> tuple[int, ...]:
    lines = _read(process_id, "status").decode().splitlines()
    values = {line.partition(":")[0]: line.split()[1] for line in lines if line.endswith(" kB")}
    return tuple(int(values.get(name, 0)) * 1024 for name in names)


@dataclass
class Watch:
    """Samples Spark's processes.

    Attributes:
        peaks: for each Python process: peak resident memory, and peak private memory.
        began: processor time of each process of Spark at its first sample, in ticks; 0 for new ones.
        ticks: processor time at the last sample.
        stopped: event that ends the sampling.
    """

    peaks: dict[int, tuple[int, ...]] = field(default_factory=dict)
    began: dict[int, int] = field(default_factory=dict)
    ticks: dict[int, int] = field(default_factory=dict)
    stopped: threading.Event = field(default_factory=threading.Event)

    def look(self) -> None:
        """Take one sample."""
        for each in children(os.getpid()):
            fields = _read(each, "stat").decode().rpartition(")")[2].split()[11:13]
            self.ticks[each] = max(self.ticks.get(each, 0), sum(map(int, fields)))
            if _is_worker(each):
                before = self.peaks.get(each, (0, 0))
                self.peaks[each] = tuple(map(max, before, _status(each, "VmHWM", "RssAnon")))

    def look_on(self) -> None:
        """Take samples until the watch is stopped."""
        while not self.stopped.wait(LOOK_SECONDS):
            self.look()

    def found(self) -> dict[str, float]:
        """Return the highest peaks, and the processor time of all processes, ended ones included."""
        peaks = self.peaks.values()
        ticks = sum(each - self.began.get(number, 0) for number, each in self.ticks.items())
        return {
            "processor_seconds": round(ticks / TICKS, 2),
            "python_processes": len(peaks),
            "peak_rss_bytes": max((peak for peak, _ in peaks), default=0),
            "peak_private_bytes": max((private for _, private in peaks), default=0),
        }


@contextmanager
def watching() -> Iterator[Watch]:
    """Watch Spark's processes during the block; earlier peaks of memory are reset."""
    watch = Watch()
    watch.look()
    watch.began, watch.peaks = dict(watch.ticks), {}
    for each in filter(_is_worker, watch.began):
        with suppress(OSError):
            Path(f"/proc/{each}/clear_refs").write_text(FORGET_PEAK, encoding="ascii")
    thread = threading.Thread(target=watch.look_on)
    thread.start()
    try:
        yield watch
    finally:
        watch.stopped.set()
        thread.join()
        watch.look()


def timed(work: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    """Return the result of a callable, with seconds of wall time and of processor time of this process."""
    processors, clock = time.process_time(), time.monotonic()
    found = work()
    seconds = {"wall_seconds": time.monotonic() - clock, "processor_seconds": time.process_time() - processors}
    return found, {name: round(value, 2) for name, value in seconds.items()}

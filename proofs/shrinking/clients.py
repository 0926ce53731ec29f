"""A server over a log directory whose files change, and clients that compare what they get with what the log held."""

from __future__ import annotations

import random
import time
from collections import Counter
from threading import Thread
from typing import TYPE_CHECKING, Any, Final

from proofs.serve.client import Client
from proofs.serve.target import Target
from proofs.shrinking.changing import CALM, CHANGED, TIME_MS, changing, value_of
from seglog_format import decode_batch, walk
from seglog_format.errors import FormatError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

NONE, OUT_OF_RANGE, CORRUPT, STORAGE = 0, 1, 2, 56
ANSWERS: Final = frozenset({NONE, OUT_OF_RANGE, CORRUPT, STORAGE})
"""Codes of errors that a client may get for a partition whose files change."""
ISOLATION_LEVELS: Final = (0, 1)


class Reader(Thread):
    """A client that fetches from one partition until it is stopped.

    Attributes:
        counts: of answers, by the code of their error; of records; of connections that the server closed.
        problems: what must not happen.
    """

    def __init__(self, port: int, name: str, end: int, seed: int) -> None:
        super().__init__(daemon=True)
        self.counts = Counter[str]()
        self.problems: list[str] = []
        self.is_stopped = False
        self._port, self._name, self._end = port, name, end
        self._dice = random.Random(seed)

    def run(self) -> None:
        """Fetch, and connect again where the server has hung up; only the calm partition must never be hung up on."""
        while not self.is_stopped:
            try:
                with Client(self._port, timeout=60) as client:
                    while not self.is_stopped:
                        self._ask(client)
            except (OSError, AssertionError) as error:
                self.counts["connections closed"] += 1
                if self._name == CALM or isinstance(error, (ConnectionRefusedError, TimeoutError)):
                    self.problems.append(f"{self._name}: {error!r}")
                    return

    def _ask(self, client: Client) -> None:
        topic, _, number = self._name.rpartition("-")
        offset = self._dice.randrange(self._end)
        level = self._dice.choice(ISOLATION_LEVELS)
        if self._dice.random() < 0.1:  # noqa: PLR2004 - one of ten
            found = client.list_offset(topic, TIME_MS + offset, number=int(number), level=level)
        else:
            found = client.fetch(topic, offset, number=int(number), isolation_level=level)
            self._compare(topic, int(number), bytes(found.records or b""))
        self.counts[f"error {int(found.error_code)}"] += 1
        if int(found.error_code) not in ({NONE} if self._name == CALM else ANSWERS):
            self.problems.append(f"{self._name}: offset {offset}: error {found.error_code}")

    def _compare(self, topic: str, number: int, data: bytes) -> None:
        try:
            batches = [decode_batch(data[frame.position : frame.end]) for frame in walk(data)]
        except FormatError as error:
            self.counts["damaged answers"] += 1
            if self._name == CALM:
                self.problems.append(f"{self._name}: {error}")
            return
        for batch in batches:
            for record in () if batch.header.is_control else batch.records:
                self.counts["records"] += 1
                if record.value != value_of(topic, number, record.offset):
                    self.problems.append(f"{self._name}: wrong: {record!r}"[:200])


def served(
    truth: Path, root: Path, expected: Mapping[str, Sequence[int]], seconds: float, seed: int
) -> tuple[dict[str, Any], list[str]]:
    """Serve a log directory while its files change, and then as it was.

    Args:
        truth: a copy that does not change.
        root: the directory to serve.
        expected: offsets of the records of each partition.
        seconds: for which files change.
        seed: of the changes and of the requests.

    Returns:
        What was counted, and what must not happen.
    """
    with Target(root, is_writable=False) as target:
        names = (*CHANGED, *CHANGED, CALM)
        readers = [Reader(target.port, name, expected[name][-1], seed + turn) for turn, name in enumerate(names)]
        with changing(truth, root, seed):
            for reader in readers:
                reader.start()
            time.sleep(seconds)
            for reader in readers:
                reader.is_stopped = True
            for reader in readers:
                reader.join(120)
        problems = [problem for reader in readers for problem in reader.problems]
        problems += [f"{reader.name}: not answered" for reader in readers if reader.is_alive()]
        problems += [problem for name in expected for problem in _differences(target, name, expected[name])]
        target.end()
    said = "\n".join(target.said())
    if target.end_status != 0 or "Traceback" in said:
        problems.append(f"serve: status {target.end_status}: {said[-1500:]}")
    counts = sum((reader.counts for reader in readers[:-1]), Counter[str]())
    return {"changing": dict(counts), "calm": dict(readers[-1].counts)}, problems[:20]


def _differences(target: Target, name: str, expected: Sequence[int]) -> Iterator[str]:
    """Yield what a whole partition lacks, once its files are as they were.

    The server may still hold a file that was cut before another took its name. It says so once, by an error after which
    clients ask again.
    """
    topic, _, number = name.rpartition("-")
    offset, found, repeated = 0, list[int](), -1
    try:
        with Client(target.port, timeout=60) as client:
            while offset <= expected[-1]:
                answer = client.fetch(topic, offset, number=int(number))
                data = bytes(answer.records or b"")
                if int(answer.error_code) == STORAGE and offset != repeated:
                    repeated = offset
                    continue
                if answer.error_code or not data:
                    yield f"{name}: after all: offset {offset}: error {answer.error_code}, {len(data)} bytes"
                    return
                batches = [decode_batch(data[frame.position : frame.end]) for frame in walk(data)]
                found += [each.offset for one in batches if not one.header.is_control for each in one.records]
                offset = batches[-1].next_offset
    except (OSError, AssertionError, FormatError) as error:
        yield f"{name}: after all: offset {offset}: {error!r}"
        return
    if found != list(expected):
        yield f"{name}: after all: {len(found)} records, not {len(expected)}"

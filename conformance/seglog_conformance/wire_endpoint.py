"""The endpoint to which whole clients connect.

Consumers fetch from a ``seglog serve --raw`` that records their requests; batches from producers are kept in memory.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Final, Self

from seglog_conformance.wire_producing import Captured, Capturing
from seglog_format.codec.framing import walk
from seglog_format.errors import FormatError
from seglog_format.log.partition import open_partition
from seglog_format.serve.catalog import Catalog, CatalogOptions, Topic
from seglog_format.serve.limits import Settings
from seglog_format.serve.served_partition import ServedPartition
from seglog_format.serve.server import Server
from seglog_format.serve.slices import Fetched, LogRange, Source

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

TOPIC_PREFIX: Final = "case-"

MAX_ASKED: Final = 4
"""Number of answered requests for one offset after which a consumer counts as stalled."""


class WatchedPartition(ServedPartition):
    """The bytes of a case as one partition.

    Bytes after the last whole entry are sent with it, and never alone: a broker would have truncated them. When a
    consumer requests an offset after the end, or stalls, no more bytes are sent.

    Attributes:
        positions: requested offsets in order, with repeated ones; when there are
            no more bytes to send, none is added.
    """

    def __init__(self, source: Source, ended: Path) -> None:
        """Watch a partition.

        Args:
            source: source of the bytes.
            ended: path of a file to make when there are no more bytes to send.
        """
        super().__init__(source, _ignore)
        self.positions: list[int] = []
        self._ended = ended
        self._is_over = False
        self._asked: Counter[int] = Counter()
        self._noting = Lock()
        self._end = self._end_of_entries()

    def _end_of_entries(self) -> int:
        """Return the offset after the last whole entry; if there is no such entry, one beyond all requests."""
        end = 0
        try:
            for frame in walk(self._partition.segments[0].source):
                end = frame.header.last_offset + 1
        except FormatError:
            return self.log_range(is_committed_only=False).end + 1
        return end

    def fetch(self, offset: int, max_bytes: int, *, is_committed_only: bool, is_first: bool) -> Fetched:
        """Fetch as the base class does, and record the request."""
        with self._noting:
            self._note(offset)
            if self._is_over:
                end = max(self._end, offset)
                return Fetched(LogRange(0, end, end), None, () if is_committed_only else None)
        return super().fetch(offset, max_bytes, is_committed_only=is_committed_only, is_first=is_first)

    def _note(self, offset: int) -> None:
        if self._is_over:
            return
        self.positions.append(offset)
        self._asked[offset] += 1
        if offset >= self._end or self._asked[offset] >= MAX_ASKED:
            self._is_over = True
            self._ended.touch()


class CaseCatalog(Catalog):
    """A catalog of one topic at a time."""

    def __init__(self) -> None:
        super().__init__((), CatalogOptions(is_raw=True), _ignore)
        self._shown: WatchedPartition | None = None

    def show(self, watched: WatchedPartition) -> None:
        """Replace the topic by this one."""
        self._replace_topic(watched.source.topic, watched.source.path, watched)

    def show_empty(self, topic: str, path: Path) -> None:
        """Replace the topic by this one, which cannot be read."""
        self._replace_topic(topic, path, None)

    def _replace_topic(self, topic: str, path: Path, watched: WatchedPartition | None) -> None:
        self._shown, before = watched, self._shown
        self.topics = {topic: Topic(topic, {0: path})}
        self._known_topic_ids = None
        if before is not None:
            before.rest()

    def partition(self, topic: str, number: int) -> WatchedPartition | None:
        """Return the partition if it is the current one."""
        shown = self._shown
        return shown if shown is not None and (topic, number) == (shown.source.topic, 0) else None


class Endpoint:
    """A server on 127.0.0.1 that serves one case after another, or accepts batches. A context manager.

    Attributes:
        address: host and port.
    """

    def __init__(self) -> None:
        self._catalog = CaseCatalog()
        self._capturing = Capturing()
        self._server = Server(
            self._catalog, Settings(port=0, processors=1, io_threads=2), _ignore, writers=self._capturing
        )
        self.address = f"{self._server.address.host}:{self._server.address.port}"

    def show(self, partition: Path, topic: str, ended: Path) -> WatchedPartition:
        """Serve a partition directory as the only topic.

        Args:
            partition: directory of the partition.
            topic: name of the topic.
            ended: path of a file to make when there are no more bytes to send.
        """
        source = Source(topic, 0, partition, partial(open_partition, partition), is_raw=True)
        watched = WatchedPartition(source, ended)
        self._capturing.show(topic, None)
        self._catalog.show(watched)
        return watched

    def take(self, partition: Path, topic: str, start: int, leader_epoch: int) -> Captured:
        """Accept batches from producers for one topic.

        Args:
            partition: directory of the partition, which is not written to.
            topic: name of the topic.
            start: offset for the first record.
            leader_epoch: leader epoch for the batches.
        """
        captured = Captured(start, leader_epoch)
        self._capturing.show(topic, captured)
        self._catalog.show_empty(topic, partition)
        return captured

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server.stop()


def _ignore(_finding: str) -> None:
    """Drop log messages of the library: the defects of a case are known."""

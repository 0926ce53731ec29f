"""The endpoint that whole clients talk to.

They fetch from that of ``seglog serve --raw``, with an eye on what is asked for; what they send is kept, not written.
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
from seglog_format.serve.catalog import Catalog, CatalogOptions
from seglog_format.serve.fetched import Fetched, LogRange, Source
from seglog_format.serve.served_partition import ServedPartition
from seglog_format.serve.server import Server
from seglog_format.serve.settings import Settings
from seglog_format.serve.topics import Topic

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

TOPIC_PREFIX: Final = "case-"

MAX_ASKED: Final = 4
"""A consumer that asks for an offset so often, and was answered with bytes before, stands still."""


class WatchedPartition(ServedPartition):
    """The bytes of a case, as one partition.

    What follows the last whole entry is sent behind it, and never alone: a broker would have cut it off by then. Where
    a consumer asks for what follows, or stands still, nothing more is sent.

    Attributes:
        positions: the offsets that were asked for, in order, with those that were asked for again; once there is
            nothing more to send, none is added.
    """

    def __init__(self, source: Source, ended: Path) -> None:
        """Watch a partition.

        Args:
            source: where it is.
            ended: a file to make when there is nothing more to send.
        """
        super().__init__(source, _ignore)
        self.positions: list[int] = []
        self._ended = ended
        self._is_over = False
        self._asked: Counter[int] = Counter()
        self._noting = Lock()
        self._end = self._end_of_entries()

    def _end_of_entries(self) -> int:
        """Return the offset after the last whole entry; where sizes lead to none, one that no client may ask for."""
        end = 0
        try:
            for frame in walk(self._partition.segments[0].source):
                end = frame.header.last_offset + 1
        except FormatError:
            return self.log_range(is_committed_only=False).end + 1
        return end

    def fetch(self, offset: int, max_bytes: int, *, is_committed_only: bool, is_first: bool) -> Fetched:
        """As it is; see there."""
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
    """One topic at a time."""

    def __init__(self) -> None:
        super().__init__((), CatalogOptions(is_raw=True), _ignore)
        self._shown: WatchedPartition | None = None

    def show(self, watched: WatchedPartition) -> None:
        """Have this topic instead of the one before."""
        self._turn_to(watched.source.topic, watched.source.path, watched)

    def show_empty(self, topic: str, path: Path) -> None:
        """Have this topic, of which nothing can be read, instead of the one before."""
        self._turn_to(topic, path, None)

    def _turn_to(self, topic: str, path: Path, watched: WatchedPartition | None) -> None:
        self._shown, before = watched, self._shown
        self.topics = {topic: Topic(topic, {0: path})}
        self._known_topic_ids = None
        if before is not None:
            before.rest()

    def partition(self, topic: str, number: int) -> WatchedPartition | None:
        """Return the partition, if it is the one there is."""
        shown = self._shown
        return shown if shown is not None and (topic, number) == (shown.source.topic, 0) else None


class Endpoint:
    """A server on 127.0.0.1 that shows one case after another, or takes what is sent. A context manager.

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
        """Serve a partition directory as a topic, and nothing else.

        Args:
            partition: its directory.
            topic: its name.
            ended: a file to make when there is nothing more to send.
        """
        source = Source(topic, 0, partition, partial(open_partition, partition, copy=True), is_raw=True)
        watched = WatchedPartition(source, ended)
        self._capturing.show(topic, None)
        self._catalog.show(watched)
        return watched

    def take(self, partition: Path, topic: str, start: int, leader_epoch: int) -> Captured:
        """Let producers send to a topic, and to nothing else.

        Args:
            partition: a directory that nothing is written to.
            topic: its name.
            start: offset that the first record gets.
            leader_epoch: that batches get.
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
    """Leave out the library's log messages: what is wrong with a case is known."""

"""The pieces of `.log` files that a task reads, each from the start of an entry to the start of another.

Pieces are cut where an offset index says that entries start, but the index is not trusted: a task that does not end
exactly where the next piece begins raises an error instead of losing or repeating records.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from seglog_format.log.listing import SegmentFiles
from seglog_format.log.segment import LogSegment
from seglog_format.model import GREATEST_OFFSET, INT64_MAX
from seglog_format.storage.log_storage import LOCAL

if TYPE_CHECKING:
    from seglog_format.spark.remote import RemoteLog
    from seglog_format.storage.log_storage import LogStorage


@dataclass(frozen=True, slots=True)
class Piece:
    """Whole entries of one segment, or all of them.

    Attributes:
        topic, partition: of the records.
        log: path or address of the `.log` file; of a remote one, the name of its object.
        base_offset: of the segment.
        last_allowed: greatest possible offset in the piece.
        start: byte position of its first entry.
        end: byte position after its last; None for the end of the file.
        previous: last offset of the entry before it.
        from_offset: first offset to read.
        to_offset: first offset not to read.
        topic_id: of the topic; None if it has none.
        is_last: whether no other segment of the log follows.
        has_to_reach: whether the log has reached ``to_offset`` before: if it ends earlier, it was truncated meanwhile.
        limit: maximum bytes that one entry may decompress to.
        remote: opens a log in a remote store; None for any other log.
    """

    topic: str
    partition: int
    log: str
    base_offset: int
    last_allowed: int = GREATEST_OFFSET
    start: int = 0
    end: int | None = None
    previous: int = -1
    from_offset: int = 0
    to_offset: int = INT64_MAX
    topic_id: str | None = None
    is_last: bool = False
    has_to_reach: bool = False
    limit: int = 0
    remote: RemoteLog | None = None

    def segment(self, storage: LogStorage = LOCAL) -> LogSegment:
        """Return the segment, with no file opened yet.

        Args:
            storage: the storage with the log.
        """
        return LogSegment(
            SegmentFiles(self.base_offset, Path(self.log if self.remote is None else self.remote.path)),
            next_base_offset=self.last_allowed + 1,
            limit=self.limit,
            storage=storage,
        )


@dataclass(frozen=True, slots=True)
class Task:
    """Input of one Spark task.

    Attributes:
        pieces: in order.
        directory: path or address of the partition, if its transactions decide which records are read.
    """

    pieces: tuple[Piece, ...]
    directory: str | None = None


@dataclass(frozen=True, slots=True)
class DirectoryTask:
    """A partition directory for one task.

    Attributes:
        path: path or address of the directory.
        topic, partition: its name.
        topic_id: of the topic, if it is known.
        offsets: first offset to read, and the one after the last.
    """

    path: str
    topic: str
    partition: int
    topic_id: str | None
    offsets: tuple[int, int] = (0, INT64_MAX)


AnyTask: TypeAlias = Task | DirectoryTask

"""The source of a served partition, and the result of a fetch."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from seglog_format.model import INT64_MAX

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from seglog_format.log.partition import Partition
    from seglog_format.model import AbortedTxn
    from seglog_format.serve.slices import Chunk


class LogRange(NamedTuple):
    """The offsets of a log that a client may read; `stable` is the last stable offset, or the end of the log."""

    start: int
    end: int
    stable: int

    @property
    def as_fields(self) -> LogRange:
        """The range with offsets limited to the largest value of an answer's fields."""
        if self.end <= INT64_MAX:
            return self
        return LogRange(self.start, INT64_MAX, min(self.stable, INT64_MAX))


class Fetched(NamedTuple):
    """The result of a fetch of one partition.

    Attributes:
        log: its first and last offsets.
        records: whole entries; None where there are none.
        aborted: the aborted transactions in the range; None for a client that reads uncommitted records.
        has_zstd: the first entry is compressed with zstd, which old clients cannot read.
    """

    log: LogRange
    records: Chunk | None
    aborted: Sequence[AbortedTxn] | None
    has_zstd: bool = False


class Source(NamedTuple):
    """The directory of a partition, and how to read it.

    Attributes:
        topic: its topic.
        number: of the partition.
        path: of its directory.
        opener: opens the directory.
        end: returns the end that readers may see; None if no writer in this process has the partition.
        is_raw: bytes are sent unchecked, damage included.
    """

    topic: str
    number: int
    path: Path
    opener: Callable[[], Partition]
    end: Callable[[], int] | None = None
    is_raw: bool = False

    def __str__(self) -> str:
        return f"{self.topic}-{self.number}"

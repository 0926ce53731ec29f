"""Where a served partition comes from, and what a fetch of it answers."""

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
    """Where a log starts and ends for a client: `stable` is the last stable offset, the end where nothing is open."""

    start: int
    end: int
    stable: int

    @property
    def told(self) -> LogRange:
        """As an answer can tell it: its fields hold no offset behind the greatest."""
        if self.end <= INT64_MAX:
            return self
        return LogRange(self.start, INT64_MAX, min(self.stable, INT64_MAX))


class Fetched(NamedTuple):
    """What a fetch of one partition answers.

    Attributes:
        log: where it starts and ends.
        records: whole entries; None where there are none.
        aborted: the aborted transactions that touch them; None for a client that does not ask for committed ones.
        has_zstd: the first entry is compressed with zstd, which not every client reads.
    """

    log: LogRange
    records: Chunk | None
    aborted: Sequence[AbortedTxn] | None
    has_zstd: bool = False


class Source(NamedTuple):
    """Where a partition comes from.

    Attributes:
        topic: its topic.
        number: of the partition.
        path: of its directory.
        opener: opens the directory.
        end: up to where it may be read, where somebody writes to it in this process; None where nobody does.
        is_raw: bytes are sent whatever they are, damage and all.
    """

    topic: str
    number: int
    path: Path
    opener: Callable[[], Partition]
    end: Callable[[], int] | None = None
    is_raw: bool = False

    def __str__(self) -> str:
        return f"{self.topic}-{self.number}"

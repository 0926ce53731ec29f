"""Plan to rebuild the indexes of a partition directory."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from seglog_format.engine.choice import Engine
from seglog_format.errors import UsageError, write_errors
from seglog_format.log.directory import log_directory_above
from seglog_format.log.listing import list_partition
from seglog_format.log.path_kind import PathKind, path_kind, require_partition
from seglog_format.recovery.apply import writing
from seglog_format.recovery.index_rebuild import rebuilt_indexes
from seglog_format.storage.files import LOCAL_FILES, replace_file
from seglog_format.storage.planned import require_unchanged, states_of

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator

    from seglog_format.log.listing import PartitionListing
    from seglog_format.recovery.index_rebuild import RebuiltSegment
    from seglog_format.state.config import BrokerGeneration
    from seglog_format.storage.planned import FileState


@dataclass(frozen=True, slots=True)
class PreparedIndexes:
    """A plan to rebuild the indexes of logs. Nothing is written before `apply`.

    Attributes:
        path: of the partition directory.
    """

    path: Path
    _only: frozenset[str] | None = field(repr=False)
    _interval_bytes: int | None = field(repr=False)
    _generation: BrokerGeneration | None = field(repr=False)
    _engine: Engine = field(repr=False)
    _states: tuple[FileState, ...] = field(repr=False)

    def segments(self) -> Iterator[RebuiltSegment]:
        """Build the indexes of each segment in memory, one after the other.

        Raises:
            UnreadableError: while iterating: the disk refuses bytes that the indexes depend on (SEG-PDR-022).
        """
        return self._rebuilt(list_partition(self.path))

    def _rebuilt(self, listing: PartitionListing) -> Iterator[RebuiltSegment]:
        return rebuilt_indexes(
            listing,
            only=self._only,
            interval_bytes=self._interval_bytes,
            generation=self._generation,
            engine=self._engine,
        )

    def apply(self, on_segment: Callable[[RebuiltSegment], None] | None = None) -> tuple[Path, ...]:
        """Replace the index files that differ.

        Args:
            on_segment: called with each segment after its indexes were written.

        Returns:
            The files that were written.

        Raises:
            UsageError: the directory changed since this was planned, or another process holds the lock of the log
                directory.
            UnreadableError: the disk refuses bytes that the indexes depend on (SEG-PDR-022).
            WriteError: an index could not be written. Earlier indexes have been replaced.
        """
        written: list[Path] = []
        with writing(log_directory_above(self.path)):
            require_unchanged(self._states, states_of(self.path), self.path)
            for segment in self.segments():
                for index in segment.indexes:
                    if not index.is_same:
                        with write_errors("indexing"):
                            replace_file(LOCAL_FILES, self.path / index.name, index.data)
                        written.append(self.path / index.name)
                if on_segment is not None:
                    on_segment(segment)
        return tuple(written)


def rebuild_indexes(
    path: str | os.PathLike[str],
    *,
    interval_bytes: int | None = None,
    generation: BrokerGeneration | None = None,
    engine: Engine = Engine.AUTO,
) -> PreparedIndexes:
    """Plan to rebuild the indexes of segments from their logs (SEG-RCV-025); `apply` of the plan replaces them.

    Args:
        path: of the partition directory, or of the log of one segment.
        interval_bytes: `index.interval.bytes`; None to infer it.
        generation: which brokers to write indexes like; None to infer it.
        engine: the engine that reads the logs; the indexes do not depend on it.

    Raises:
        UsageError: the path is neither of these, or cannot be read.

    Examples:
        >>> from seglog_format import rebuild_indexes
        >>> plan = rebuild_indexes("demo/kafka-4.3.0/segs-0", interval_bytes=1024)
        >>> segment = next(plan.segments())
        >>> [(index.name, index.state, len(index.data)) for index in segment.indexes]
        [('00000000000000000000.index', 'differs', 56), ('00000000000000000000.timeindex', 'differs', 84)]
        >>> len(plan.apply())
        18
    """
    given = Path(path)
    is_file = path_kind(given) is PathKind.FILE
    directory = given.absolute().parent if is_file else given
    if not is_file:
        require_partition(given)
    elif not any(files.log.name == given.name for files in list_partition(directory).segments):
        msg = f"{directory / given.name}: not the log of a segment"
        raise UsageError(msg)
    only = frozenset({given.name}) if is_file else None
    return PreparedIndexes(directory, only, interval_bytes, generation, engine, states_of(directory))

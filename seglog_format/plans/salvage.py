"""Plan to copy the intact entries of a damaged partition directory."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from seglog_format.cleaning.redaction import redaction_of
from seglog_format.log.listing import list_partition
from seglog_format.log.path_kind import require_partition
from seglog_format.recovery.salvage import require_apart, salvage_partition, salvageable
from seglog_format.storage.new_directory import directories_for
from seglog_format.storage.planned import require_unchanged, states_of

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Collection, Iterator

    from seglog_format.cleaning.redaction import Redaction
    from seglog_format.recovery.salvage_placement import SalvagedSegment
    from seglog_format.state.config import BrokerGeneration
    from seglog_format.storage.planned import FileState


@dataclass(frozen=True, slots=True)
class PreparedSalvage:
    """A plan to copy the intact entries of a partition directory. Nothing is written before `apply`.

    Attributes:
        path: of the damaged directory, in which nothing is changed.
        target: the new directory.
    """

    path: Path
    target: Path
    _interval_bytes: int | None = field(repr=False)
    _generation: BrokerGeneration | None = field(repr=False)
    _states: tuple[FileState, ...] = field(repr=False)
    _redaction: Redaction | None = field(default=None, repr=False)

    @property
    def redacted(self) -> frozenset[int | bytes]:
        """The offsets of the records that `apply` has found and redacted, and those of the keys that they have."""
        return frozenset() if self._redaction is None else frozenset(self._redaction.redacted)

    def segments(self) -> Iterator[SalvagedSegment]:
        """Yield what would be copied of each segment, and what would not; the whole partition is read each time."""
        return salvageable(list_partition(self.path))

    def apply(self, on_segment: Callable[[SalvagedSegment], None] | None = None) -> tuple[SalvagedSegment, ...]:
        """Copy the intact entries, and build their indexes.

        A readable `partition.metadata` is copied, and leader epochs are taken from the entries. Producer snapshots are
        not copied: a broker computes them.

        Args:
            on_segment: called with each segment after it was written.

        Returns:
            What was copied of each segment.

        Raises:
            UsageError: the damaged directory changed since this was planned, or the new directory is not empty any
                more.
            WriteError: a file could not be written. The segments reported before are complete; the files of the segment
                being written are removed.
        """
        require_apart(self.path, self.target)
        require_unchanged(self._states, states_of(self.path), self.path)
        done = []
        with directories_for(self.target):
            for segment in salvage_partition(
                list_partition(self.path),
                self.target,
                interval_bytes=self._interval_bytes,
                generation=self._generation,
                change=None if self._redaction is None else self._redaction.of,
            ):
                done.append(segment)
                if on_segment is not None:
                    on_segment(segment)
        return tuple(done)


def salvage(
    path: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    interval_bytes: int | None = None,
    generation: BrokerGeneration | None = None,
    redact: Collection[int | bytes] = (),
    keeps_keys: bool = False,
) -> PreparedSalvage:
    """Plan to copy the intact entries of a partition directory into a new one, byte for byte, with their offsets.

    Args:
        path: of the damaged partition directory.
        target: the directory to write to; it has to be new or empty, and outside the damaged one.
        interval_bytes: `index.interval.bytes`; None to infer it.
        generation: which brokers to write indexes like; None to infer it.
        redact: offsets and keys of records that the copy does not have, as if compaction had removed them.
        keeps_keys: whether these records keep offset, timestamp and key, and lose their value and headers.

    Raises:
        UsageError: the path is not a partition directory, or cannot be read; or the target is not empty, or is inside
            the damaged directory.

    Examples:
        >>> from seglog_format import salvage
        >>> plan = salvage("demo/broken/crash-flip-0", "rescued/crash-flip-0")
        >>> for segment in plan.apply():
        ...     print(segment.log.name, segment.kept_size, [damage.reason for damage in segment.damaged])
        00000000000000000000.log 29409 []
        00000000000000000128.log 29742 []
        00000000000000000270.log 17104 ['a wrong checksum']
    """
    require_partition(path)
    source, new = Path(path), Path(target)
    require_apart(source, new)
    return PreparedSalvage(
        source, new, interval_bytes, generation, states_of(source), redaction_of(redact, keeps_keys=keeps_keys)
    )

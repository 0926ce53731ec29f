"""The six operations that change a directory; each returns a plan that a caller can read and then apply."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from seglog_format.cleaning.compaction_apply import (
    PreparedCompaction,
    compact_partition,
    explain_compaction,
    prepare_compaction,
)
from seglog_format.cleaning.compaction_pass import MAX_KEYS
from seglog_format.cleaning.compaction_rules import redaction_of
from seglog_format.cleaning.deletion import prepare_retention, retain_partition
from seglog_format.engine import Engine
from seglog_format.errors import UsageError, write_errors
from seglog_format.log.directory import log_directory_above
from seglog_format.log.entry_table import EVERYTHING, WantedRange
from seglog_format.log.listing import list_partition
from seglog_format.log.path_kind import PathKind, path_kind, require_partition
from seglog_format.recovery.apply import DEFAULT_OPTIONS, prepare_recovery, recover_partition, writing
from seglog_format.recovery.index_rebuild import rebuilt_indexes
from seglog_format.recovery.salvage import require_apart, salvage_partition, salvageable
from seglog_format.recovery.truncation import prepare_truncation, truncate_to
from seglog_format.state.config import PRODUCER_EXPIRATION_MS
from seglog_format.storage.environment import Environment
from seglog_format.storage.files import LOCAL_FILES, replace_file
from seglog_format.storage.log_storage import require_unchanged, states_of
from seglog_format.storage.new_directory import directories_for

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Collection, Iterator

    from seglog_format.cleaning.compaction_rules import Redaction
    from seglog_format.cleaning.deletion import PreparedRetention
    from seglog_format.log.directory import LogDirectory
    from seglog_format.log.listing import PartitionListing
    from seglog_format.log.remote_store import KnowsTiered
    from seglog_format.recovery.apply import PreparedRecovery, RecoveryOptions
    from seglog_format.recovery.index_rebuild import RebuiltSegment
    from seglog_format.recovery.salvage_placement import SalvagedSegment
    from seglog_format.recovery.truncation import PreparedTruncation
    from seglog_format.state.config import BrokerGeneration, LogConfig
    from seglog_format.storage.log_storage import FileState


DEFAULT_ENVIRONMENT: Final = Environment()


def recover(
    path: str | os.PathLike[str],
    *,
    options: RecoveryOptions = DEFAULT_OPTIONS,
    directory: LogDirectory | None = None,
    environment: Environment = DEFAULT_ENVIRONMENT,
) -> PreparedRecovery:
    """Plan the recovery of a partition directory after a crash (SEG-RCV-029); `apply` of the plan carries it out.

    Args:
        path: of the partition directory.
        options: how to recover.
        directory: the log directory; the directory above by default.
        environment: has the file layer that changes go through.

    Raises:
        UsageError: the path is not a partition directory, or cannot be read.
        UnreadableError: the disk refuses the directory, a file of it, or a range of a file (SEG-PDR-022).
        FormatError: something that is no regular file has the name of a log (SEG-PDR-030), or a link would have to be
            changed (SEG-PDR-031).

    Examples:
        >>> from seglog_format import recover
        >>> recovery = recover("demo/broken/crash-flip-0")
        >>> recovery.plan.cut.reason
        'crc: expected 0x0051bb4c, found 0xdf10a37f'
        >>> [(lost.file, lost.missing.offset_count) for lost in recovery.losses().lost]
        [('00000000000000000270.log', 18)]
        >>> done = recovery.apply()
        >>> print(done.steps[0].path.name, done.steps[0].text, sep=": ")
        00000000000000000270.log: cut to 14705 bytes
    """
    planned = prepare_recovery(path, directory, options=options)
    carry_out = partial(recover_partition, path, directory, options=options, files=environment.files, planned=planned)
    return replace(planned, _carry_out=carry_out)


def retain(  # noqa: PLR0913 - how to retain
    path: str | os.PathLike[str],
    config: LogConfig,
    *,
    now_ms: int | None = None,
    directory: LogDirectory | None = None,
    remote: KnowsTiered | None = None,
    holds_lock: bool = False,
    environment: Environment = DEFAULT_ENVIRONMENT,
) -> PreparedRetention:
    """Plan to remove the segments of a partition directory that exceed limits of age or size; `apply` removes them.

    Their files are renamed to names that end in ``.deleted``; the next program that opens the log deletes them.

    Of a log that brokers copy to a remote store (`remote_storage_enable`), only segments are removed that the store
    holds, by the local limits (SEG-RET-014, SEG-RET-015); the log start offset stays. Nothing in the store is removed.

    Args:
        path: of the partition directory.
        config: the settings of the log.
        now_ms: the time, in milliseconds since 1970; by default that of the environment.
        directory: the log directory; the directory above by default.
        remote: knows what a remote store holds of a tiered log: a store that `open_tier` opened, or a
            `LocalMetadataTopic`, which reads the records in the same log directory; without it no segment is removed
            from such a log that consumers may still read.
        holds_lock: whether the caller of `apply` already holds the lock of the log directory.
        environment: has the file layer that changes go through, and the clock.

    Raises:
        UsageError: a path is not a directory or cannot be read, there is no segment, the log has to be recovered
            first, the store does not answer, or the log may be tiered and `config` does not say whether it is
            (SEG-RET-018).
        FormatError: a log cannot be walked to its end, so its age is not known.

    Examples:
        >>> from seglog_format import LogConfig, retain
        >>> retention = retain("demo/kafka-4.3.0/segs-0", LogConfig(retention_ms=-1, retention_bytes=30_000))
        >>> [segment.base_offset for segment in retention.plan.removed]
        [0, 48, 102, 156, 210]
        >>> retention.apply().plan.log_start_offset
        264
    """
    at_ms = environment.clock() if now_ms is None else now_ms
    planned = prepare_retention(path, config, now_ms=at_ms, directory=directory, remote=remote)
    carry_out = partial(
        retain_partition,
        path,
        config,
        now_ms=at_ms,
        directory=directory,
        files=environment.files,
        holds_lock=holds_lock,
        remote=remote,
        planned=planned,
    )
    return replace(planned, _carry_out=carry_out)


def compact(  # noqa: PLR0913 - how to compact
    path: str | os.PathLike[str],
    config: LogConfig,
    *,
    now_ms: int | None = None,
    directory: LogDirectory | None = None,
    max_keys: int = MAX_KEYS,
    producer_expiration_ms: int = PRODUCER_EXPIRATION_MS,
    holds_lock: bool = False,
    environment: Environment = DEFAULT_ENVIRONMENT,
) -> PreparedCompaction:
    """Plan to rewrite segments of a partition directory without outdated records; `apply` rewrites them.

    The plan does not depend on whether a broker would compact now; its `is_due` shows that. Replaced files are renamed
    to names that end in ``.deleted``; the next program that opens the log deletes them.

    Args:
        path: of the partition directory.
        config: the settings of the log; whether the cleanup policy has ``compact`` is not checked.
        now_ms: the time, in milliseconds since 1970; by default that of the environment.
        directory: the log directory; the directory above by default.
        max_keys: maximum number of keys in memory.
        producer_expiration_ms: age after which a producer's state expires, so its last batch may be removed.
        holds_lock: whether the caller of `apply` already holds the lock of the log directory.
        environment: has the file layer that changes go through, and the clock.

    Raises:
        UsageError: a path is not a directory, cannot be read, or needs recovery first.
        FormatError: a log is damaged; recovery comes first.

    Examples:
        >>> from seglog_format import LogConfig, PartitionWriter, compact, new_record
        >>> config = LogConfig(segment_bytes=100, cleanup_policy=frozenset({"compact"}))
        >>> with PartitionWriter("written/profiles-0", config) as writer:
        ...     for value in (b"1", b"2", b"3"):
        ...         appended = writer.append([new_record(key=b"ann", value=value, timestamp_ms=1000)])
        >>> compaction = compact("written/profiles-0", config)
        >>> compaction.plan.is_due, [fate.action.value for fate in compaction.plan.fates]
        (True, ['clean', 'clean', 'keep'])
        >>> done = compaction.apply()
        >>> done.size_before, done.size_after
        (144, 72)
    """
    at_ms = environment.clock() if now_ms is None else now_ms
    planned = prepare_compaction(path, config, now_ms=at_ms, directory=directory, max_keys=max_keys)
    explained = partial(
        explain_compaction,
        path,
        config,
        now_ms=at_ms,
        directory=directory,
        max_keys=max_keys,
        producer_expiration_ms=producer_expiration_ms,
    )
    done = partial(
        compact_partition,
        path,
        config,
        now_ms=at_ms,
        directory=directory,
        max_keys=max_keys,
        producer_expiration_ms=producer_expiration_ms,
        files=environment.files,
        holds_lock=holds_lock,
        planned=planned,
    )
    return PreparedCompaction(Path(path), planned, _carry_out=done, _explain=explained)


def truncate(
    path: str | os.PathLike[str],
    offset: int,
    *,
    directory: LogDirectory | None = None,
    environment: Environment = DEFAULT_ENVIRONMENT,
) -> PreparedTruncation:
    """Plan to truncate a partition directory, so the log end offset is the given offset; `apply` truncates it.

    Files of removed segments are renamed to names that end in ``.deleted``; the next program that opens the log deletes
    them.

    Args:
        path: of the partition directory.
        offset: the first to remove, 0 or more.
        directory: the log directory; the directory above by default.
        environment: has the file layer that changes go through.

    Raises:
        UsageError: the path is not a partition directory, or cannot be read; a negative offset; or there is no segment.
        UnreadableError: the disk refuses bytes that the plan depends on (SEG-PDR-022).

    Examples:
        >>> from seglog_format import open_partition, truncate
        >>> truncation = truncate("demo/kafka-4.3.0/segs-0", 100)
        >>> truncation.plan.base_offset, truncation.plan.dropped
        (48, (102, 156, 210, 264, 318, 372, 426))
        >>> done = truncation.apply()
        >>> with open_partition("demo/kafka-4.3.0/segs-0") as log:
        ...     log.log_end_offset
        96
    """
    require_partition(path)
    planned = prepare_truncation(path, offset, directory=directory)
    return replace(
        planned,
        _carry_out=partial(truncate_to, path, offset, directory=directory, files=environment.files, planned=planned),
    )


# -- plan to rebuild the indexes of a partition directory -------------------------------------------------------------


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


# -- plan to copy the intact entries of a damaged partition directory -------------------------------------------------


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
    _wanted: WantedRange = field(default=EVERYTHING, repr=False)

    @property
    def redacted(self) -> frozenset[int | bytes]:
        """The offsets of the records that `apply` has found and redacted, and those of the keys that they have."""
        return frozenset() if self._redaction is None else frozenset(self._redaction.redacted)

    def segments(self) -> Iterator[SalvagedSegment]:
        """Yield what would be copied of each segment, and what would not; the whole partition is read each time."""
        return salvageable(list_partition(self.path), self._wanted)

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
                wanted=self._wanted,
            ):
                done.append(segment)
                if on_segment is not None:
                    on_segment(segment)
        return tuple(done)


def salvage(  # noqa: PLR0913 - what to copy
    path: str | os.PathLike[str],
    target: str | os.PathLike[str],
    *,
    interval_bytes: int | None = None,
    generation: BrokerGeneration | None = None,
    redact: Collection[int | bytes] = (),
    keeps_keys: bool = False,
    from_offset: int | None = None,
    to_offset: int | None = None,
    since_ms: int | None = None,
    until_ms: int | None = None,
) -> PreparedSalvage:
    """Plan to copy the intact entries of a partition directory into a new one, byte for byte, with their offsets.

    Args:
        path: of the damaged partition directory.
        target: the directory to write to; it has to be new or empty, and outside the damaged one.
        interval_bytes: `index.interval.bytes`; None to infer it.
        generation: which brokers to write indexes like; None to infer it.
        redact: offsets and keys of records that the copy does not have, as if compaction had removed them.
        keeps_keys: whether these records keep offset, timestamp and key, and lose their value and headers.
        from_offset: with this or one of the next three, only entries of the range are read and copied, whole: those
            that end at this offset or above.
        to_offset: those that begin below this offset.
        since_ms: those that are not older by their headers, in milliseconds since 1970.
        until_ms: those whose first record is older by their headers; of messages, and of batches that compaction has
            marked, up to the one that follows the last older one.

    Raises:
        UsageError: the path is not a partition directory, or cannot be read; or the target is not empty, or is inside
            the damaged directory; or `to_offset` is not above `from_offset`.

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
    redaction = redaction_of(redact, keeps_keys=keeps_keys)
    wanted = WantedRange(from_offset=from_offset, to_offset=to_offset, since_ms=since_ms, until_ms=until_ms)
    return PreparedSalvage(source, new, interval_bytes, generation, states_of(source), redaction, wanted)

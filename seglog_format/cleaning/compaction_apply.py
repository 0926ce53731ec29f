"""Compaction of a partition directory: the plan, its file changes, and their execution (chapter 73).

Each group of segments is replaced separately. The order of the steps guarantees that a crash or a power cut at any
moment leaves either the old or the new segments of the group, and that recovery restores a consistent log.
"""

from __future__ import annotations

from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from seglog_format.cleaning.compaction import CompactionPlan, plan_compaction
from seglog_format.cleaning.compaction_pass import (
    MAX_KEYS,
    LogCleaner,
    LogState,
    active_producers,
    facts_of,
    newest_offsets,
    transactions_of,
)
from seglog_format.cleaning.compaction_rules import Pass
from seglog_format.cleaning.retention import require_not_tiered
from seglog_format.codec.checkpoints import decode_offset_checkpoint, encode_offset_checkpoint
from seglog_format.errors import FormatError, Location, WriteError, write_errors
from seglog_format.log.directory import LogDirectory, log_directory_above
from seglog_format.log.listing import CLEANED, DELETED, SWAP, list_partition
from seglog_format.model import CheckpointedOffset
from seglog_format.names import FileKind, segment_file_name
from seglog_format.recovery.apply import writing
from seglog_format.recovery.index_settings import IndexSettings
from seglog_format.recovery.planned_files import opened_segments
from seglog_format.state.config import PRODUCER_EXPIRATION_MS
from seglog_format.state.root_files import opened_for_change
from seglog_format.storage.files import LOCAL_FILES, Rename, Replace, Settle, apply_steps, read_small, write_file
from seglog_format.storage.log_storage import Plan, require_unchanged

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from seglog_format.cleaning.compaction_pass import CleanedSegment
    from seglog_format.cleaning.compaction_rules import BatchFate
    from seglog_format.log.listing import PartitionListing, SegmentFiles
    from seglog_format.log.segment import LogSegment
    from seglog_format.state.config import LogConfig
    from seglog_format.storage.files import Files, FileStep


# -- replacement of segments by a cleaned segment, and undoing a replacement that failed (chapter 73) ------------------


SWAPPED: Final = "SEG-CMP-022"
GONE_SNAPSHOT: Final = "SEG-CMP-024"


@dataclass(frozen=True, slots=True)
class Create:
    """Create a file. When the step ends, its content is on disk, but its name may not be."""

    path: Path
    data: bytes = field(repr=False)
    modified_ms: int
    requirement: str

    @property
    def text(self) -> str:
        """The step as text."""
        return f"write {len(self.data)} bytes"

    def apply(self, files: Files) -> None:
        """Carry out the step."""
        write_file(files, self.path, self.data)
        files.set_modified_ms(self.path, self.modified_ms)


def swap_steps(cleaned: CleanedSegment, directory: Path, *, has_time_index: bool = True) -> tuple[FileStep, ...]:
    """Return the steps that replace the sources of a cleaned segment by it (SEG-CMP-022).

    Args:
        cleaned: the segment.
        directory: of the partition.
        has_time_index: whether there are time indexes.
    """
    contents = {FileKind.LOG: cleaned.log, FileKind.OFFSET_INDEX: cleaned.offset_index}
    if has_time_index:
        contents[FileKind.TIME_INDEX] = cleaned.time_index
    # An empty `.log.swap` covers no offsets: after a crash, only an empty index of its own replaces the old index.
    hides_old = not cleaned.log and cleaned.sources[0].transaction_index is not None
    if cleaned.transaction_index or hides_old:
        contents[FileKind.TRANSACTION_INDEX] = cleaned.transaction_index
    names = {kind: segment_file_name(cleaned.base_offset, kind) for kind in contents}
    return (
        *(
            Create(directory / (names[kind] + CLEANED), data, cleaned.modified_ms, SWAPPED)
            for kind, data in contents.items()
        ),
        Settle(directory),
        *(Rename(directory / (n + CLEANED), directory / (n + SWAP), SWAPPED) for n in names.values()),
        Settle(directory),
        *_removals(cleaned.sources),
        Settle(directory),
        *(Rename(directory / (n + SWAP), directory / n, SWAPPED) for n in names.values()),
        Settle(directory),
    )


def _removals(sources: Sequence[SegmentFiles]) -> Iterator[FileStep]:
    """Yield the renaming of the old files; the first snapshot stays, as that of the new segment (SEG-CMP-024)."""
    for source in sources:
        snapshot = source.snapshot if source is not sources[0] else None
        if snapshot is not None:
            yield _removal(snapshot, GONE_SNAPSHOT)
        for path in (source.transaction_index, source.time_index, source.offset_index, source.log):
            if path is not None:
                yield _removal(path, SWAPPED)


def _removal(path: Path, requirement: str) -> Rename:
    return Rename(path, path.with_name(path.name + DELETED), requirement)


def applied(steps: tuple[FileStep, ...], files: Files) -> tuple[FileStep, ...]:
    """Carry out the steps in order.

    Returns:
        The same steps.

    Raises:
        WriteError: a step failed; the steps before it are undone, or recovery of the directory completes them.
    """
    try:
        with write_errors("compaction"):
            apply_steps(steps, files)
    except WriteError as error:
        _undo(steps, files)
        finished = [path for path in map(_swap, _made(steps)) if files.exists(path)]
        if not finished:
            raise
        msg = f"{error}; recover {finished[0].parent} to complete the replacement"
        raise WriteError(msg) from error.__cause__
    return steps


def _made(steps: tuple[FileStep, ...]) -> list[Path]:
    return [step.path for step in steps if isinstance(step, Create)]


def _swap(cleaned: Path) -> Path:
    return cleaned.with_name(cleaned.name.removesuffix(CLEANED) + SWAP)


def _undo(steps: tuple[FileStep, ...], files: Files) -> None:
    """Remove the new files if all old ones still exist; if not, recovery has to complete the replacement."""
    made = _made(steps)
    if any(map(files.exists, made)):
        with suppress(OSError):
            # The `.cleaned` files are last: they show that the replacement is unfinished.
            for path in filter(files.exists, (*map(_swap, made), *made)):
                files.remove(path)


# -- compaction of a partition directory -------------------------------------------------------------------------------


CHECKPOINTED: Final = "SEG-CMP-023"


@dataclass(frozen=True, slots=True)
class PreparedCompaction(Plan["Compacted"]):
    """The planned compaction of a partition directory.

    Attributes:
        path: of the directory.
        plan: which segments are rewritten, and which segments replace them.
    """

    path: Path
    plan: CompactionPlan
    _explain: Callable[[], Iterator[BatchFate]] | None = field(default=None, compare=False, repr=False, kw_only=True)

    def batch_fates(self) -> Iterator[BatchFate]:
        """Yield what happens to each batch and record of the rewritten segments, and why, in log order.

        Raises:
            UsageError: the directory needs recovery first.
            FormatError: while iterating: a log is damaged; recovery comes first.
        """
        return iter(()) if self._explain is None else self._explain()


@dataclass(frozen=True, slots=True)
class Compacted:
    """The result of compacting a partition directory.

    Attributes:
        path: of the directory.
        plan: the decisions.
        steps: the file changes, in order.
        size_before: number of bytes of the rewritten logs.
        size_after: number of bytes of the logs that replaced them.
    """

    path: Path
    plan: CompactionPlan
    steps: tuple[FileStep, ...]
    size_before: int
    size_after: int


def prepare_compaction(
    path: str | os.PathLike[str],
    config: LogConfig,
    *,
    now_ms: int,
    directory: LogDirectory | None = None,
    max_keys: int = MAX_KEYS,
    files: Files = LOCAL_FILES,
) -> CompactionPlan:
    """Decide which segments of a partition directory compaction rewrites. No file is changed.

    Args:
        path: of the partition directory.
        config: the settings; whether the cleanup policy has ``compact`` is not checked.
        now_ms: the current time, in milliseconds since 1970.
        directory: the log directory; the directory above by default.
        max_keys: maximum number of keys in memory.
        files: the file layer that returns modification times.

    Raises:
        UsageError: a path is not a directory, or cannot be read; or the directory needs recovery first.
        FormatError: a log is damaged; recovery comes first.
    """
    with _opened(path, config, now_ms, directory, max_keys, files) as work:
        return work.plan


def explain_compaction(  # noqa: PLR0913 - how to compact
    path: str | os.PathLike[str],
    config: LogConfig,
    *,
    now_ms: int,
    directory: LogDirectory | None = None,
    max_keys: int = MAX_KEYS,
    producer_expiration_ms: int = PRODUCER_EXPIRATION_MS,
    files: Files = LOCAL_FILES,
) -> Iterator[BatchFate]:
    """Yield what compaction would do with each batch and record, and why, in log order. No file is changed.

    Args:
        path: as for `compact_partition`.
        config: as for `compact_partition`.
        now_ms: as for `compact_partition`.
        directory: as for `compact_partition`.
        max_keys: as for `compact_partition`.
        producer_expiration_ms: as for `compact_partition`.
        files: the file layer that returns modification times.

    Raises:
        UsageError: as for `compact_partition`.
        FormatError: a log is damaged; recovery comes first.
    """
    with _opened(path, config, now_ms, directory, max_keys, files) as work:
        cleaner = work.cleaner(producer_expiration_ms)
        for group in work.plan.groups:
            yield from cleaner.fates(group)


def compact_partition(  # noqa: PLR0913 - how to compact
    path: str | os.PathLike[str],
    config: LogConfig,
    *,
    now_ms: int,
    directory: LogDirectory | None = None,
    max_keys: int = MAX_KEYS,
    producer_expiration_ms: int = PRODUCER_EXPIRATION_MS,
    files: Files = LOCAL_FILES,
    holds_lock: bool = False,
    planned: CompactionPlan | None = None,
) -> Compacted:
    """Compact a partition directory as a broker would, whether or not compaction is due.

    Replaced files are renamed to names that end in `.deleted`; the next program that opens the log deletes them.

    Args:
        path: of the partition directory.
        config: the settings; whether the cleanup policy has ``compact`` is not checked.
        now_ms: the current time, in milliseconds since 1970.
        directory: the log directory; the directory above by default.
        max_keys: maximum number of keys in memory.
        producer_expiration_ms: age after which a producer's state expires, so its last batch may be removed.
        files: the file layer that changes go through.
        holds_lock: whether the caller already holds the lock of the log directory.
        planned: the plan to carry out; nothing is changed if the current plan differs.

    Raises:
        UsageError: a path is not a directory, cannot be read, or needs recovery first; or the current plan differs from
            `planned`; or another process holds the lock of the log directory.
        FormatError: a log is damaged; its group of segments is unchanged.
        WriteError: a file change failed; the changes of the group are undone, or recovery of the directory completes
            them.
    """
    directory = directory or log_directory_above(path)
    steps: list[FileStep] = []
    size_after = 0
    with (
        nullcontext() if holds_lock else writing(directory),
        _opened(path, config, now_ms, directory, max_keys, files) as work,
    ):
        require_unchanged(planned, work.plan, path)
        cleaner, has_time_index = work.cleaner(producer_expiration_ms), work.settings.has_time_index
        with (
            write_errors("compaction"),
            opened_for_change(directory.path, work.listing.path, files, is_changed=bool(work.plan.groups)),
        ):
            for group in work.plan.groups:
                cleaned = cleaner.clean(group, work.settings)
                steps += applied(swap_steps(cleaned, work.listing.path, has_time_index=has_time_index), files)
                size_after += len(cleaned.log)
            if work.plan.groups:
                steps += applied(_checkpoint_steps(work.listing, directory, work.plan.end_offset, files), files)
    rewritten = sum(one.size for group in work.plan.groups for one in group)
    return Compacted(work.listing.path, work.plan, tuple(steps), rewritten, size_after)


@dataclass(frozen=True, slots=True)
class _Work:
    """An open partition and its plan."""

    listing: PartitionListing
    segments: Sequence[LogSegment]
    plan: CompactionPlan
    rules: Pass
    settings: IndexSettings
    state: LogState

    def cleaner(self, producer_expiration_ms: int) -> LogCleaner:
        """Create the cleaner for the groups of the plan."""
        expired = self.rules.now_ms - producer_expiration_ms
        producers = active_producers(self.segments, self.listing.snapshots, expired)
        state = LogState(self.state.transactions, self.state.last_stable_offset, producers)
        return LogCleaner(self.segments, state, self.rules, self._old_tombstones_before_ms)

    @property
    def _old_tombstones_before_ms(self) -> int:
        """The last write of the clean part, minus the retention of tombstones, as a time (SEG-CMP-012)."""
        facts = [fate.segment for fate in self.plan.fates]
        clean = [one.modified_ms for one in facts if one.base_offset < self.plan.first_dirty_offset]
        return clean[-1] - self.rules.delete_retention_ms if clean else 0


@contextmanager
def _opened(
    path: str | os.PathLike[str],
    config: LogConfig,
    now_ms: int,
    directory: LogDirectory | None,
    max_keys: int,
    files: Files,
) -> Iterator[_Work]:
    """Open a partition and plan its compaction."""
    directory = directory or log_directory_above(path)
    listing = list_partition(path)
    listing.require_settled()
    require_not_tiered(config, listing, directory)
    key = listing.topic_partition
    with opened_segments(listing) as segments:
        facts = [facts_of(segment, files) for segment in segments]
        transactions, stable = transactions_of(
            segments, min(directory.high_watermarks.get(key, facts[-1].next_offset), facts[-1].next_offset)
        )
        known = {
            "now_ms": now_ms,
            "log_start_offset": directory.log_start_offsets.get(key, 0),
            "last_stable_offset": stable,
        }
        cleaner_offset = directory.cleaner_offsets.get(key)
        plan = plan_compaction(facts, config, cleaner_offset=cleaner_offset, **known)
        newest = newest_offsets(
            segments, plan.first_dirty_offset, plan.first_uncleanable_offset, transactions, max_keys
        )
        if plan.groups and newest.end_offset < plan.end_offset:
            plan = plan_compaction(facts, config, cleaner_offset=cleaner_offset, end_offset=newest.end_offset, **known)
        rules = Pass(newest, now_ms, config.delete_retention_ms, plan.first_uncleanable_offset)
        generation = config.generation
        settings = IndexSettings(config.index_interval_bytes, generation.indexed_offset, generation.has_time_index)
        yield _Work(listing, segments, plan, rules, settings, LogState(transactions, stable, {}))


def _checkpoint_steps(
    listing: PartitionListing, directory: LogDirectory, offset: int, files: Files
) -> tuple[FileStep, ...]:
    """Return the steps that store the compacted offset, keeping other partitions' lines (SEG-CMP-023)."""
    if listing.name is None:
        return ()
    path = directory.path / FileKind.CLEANER_OFFSET_CHECKPOINT.value
    try:
        data = read_small(files, path) if files.exists(path) else None
        known = () if data is None else decode_offset_checkpoint(data, Location(str(path))).entries
    except FormatError:
        known = ()
    key = listing.name.topic_partition
    entries = [entry for entry in known if (entry.topic, entry.partition) != key]
    data = encode_offset_checkpoint([*entries, CheckpointedOffset(*key, offset)])
    return (Replace(path, data, CHECKPOINTED),)

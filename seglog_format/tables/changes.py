"""The changes of a log since a table was written from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog_format.log.gaps import GapKind
from seglog_format.model import MissingOffsets
from seglog_format.tables.outcome import Change, ChangeKind
from seglog_format.tables.rows import digest_of_last

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_format.errors import FormatError
    from seglog_format.log.gaps import Gap
    from seglog_format.log.partition import Partition
    from seglog_format.tables.progress import Progress, SegmentSize


def closed_segments(partition: Partition, next_offset: int) -> tuple[SegmentSize, ...]:
    """Return the segments with only records below an offset, except the last of the log, which still grows."""
    following = [segment.base_offset for segment in partition.segments[1:]]
    pairs = zip(partition.segments, following, strict=False)
    return tuple((segment.base_offset, segment.size) for segment, base in pairs if base <= next_offset)


def changes_of(partition: Partition, progress: Progress, topic: str, number: int) -> Iterator[Change]:
    """Yield the changes of the log since the progress was stored.

    Raises:
        FormatError: the log is damaged at the offset of the table's last row.
    """
    start, end = partition.log_start_offset, partition.log_end_offset
    known = progress.next_offset
    if end < known:
        text = f"the log was cut to offset {end} since the last run, and the table has offsets up to {known - 1}"
        yield Change(ChangeKind.CUT, topic, number, f"{text}: export it again from the start")
        return
    found = _last_row(partition, progress)
    if found and found != progress.last_row:
        text = f"the log was cut and written again since the last run: its offset {progress.last_offset} is another"
        yield Change(
            ChangeKind.REWRITTEN, topic, number, f"{text} record than in the table: export it again from the start"
        )
        return
    if start > known:
        text = f"offsets {known} to {start - 1} were deleted from the log before they were exported"
        yield Change(ChangeKind.DELETED, topic, number, text, MissingOffsets(known, start))
    is_gone = not found and progress.last_offset is not None and progress.last_offset >= start
    if is_gone or _were_compacted(partition, progress):
        text = f"the log was compacted since the last run: the table keeps rows below {known} that it may have lost"
        yield Change(ChangeKind.COMPACTED, topic, number, text)


def missing_change(gap: Gap, topic: str, number: int) -> Change | None:
    """Return the change for a gap that an export skips; None for a gap that a later run may find filled.

    Such gaps are before the log, if a remote store has the offsets, and at its end.
    """
    if gap.kind not in {GapKind.BETWEEN_SEGMENTS, GapKind.MISSING_LOG}:
        return None
    return Change(ChangeKind.MISSING, topic, number, f"{gap.missing} ({gap.kind.value})", gap.missing)


def damage_change(damage: FormatError, gap: Gap | None, topic: str, number: int) -> Change:
    """Return the change for damage at which an export ends.

    Args:
        damage: the error.
        gap: the offsets that it hides; None if they are unknown.
        topic: of the partition.
        number: of the partition.
    """
    return Change(ChangeKind.DAMAGED, topic, number, str(damage), None if gap is None else gap.missing)


def _last_row(partition: Partition, progress: Progress) -> str:
    """Return the digest of the log's record at the table's last offset; empty if the log no longer has that record."""
    offset = progress.last_offset
    if offset is None or offset < partition.log_start_offset:
        return ""
    reader = partition.scan(("offset", "timestamp", "key", "value"), offset, offset + 1, layout="binary")
    rows = reader.read_all()
    return digest_of_last(rows) if rows.num_rows else ""


def _were_compacted(partition: Partition, progress: Progress) -> bool:
    """Return whether segments were joined or became smaller; segments that retention removed are ignored."""
    if not partition.segments:
        return False
    start = partition.segments[0].base_offset
    known = dict(progress.segments)
    now = {segment.base_offset: segment.size for segment in partition.segments}
    return any(now.get(base) != size for base, size in known.items() if base >= start)

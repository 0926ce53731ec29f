"""One log out of several damaged replicas of a partition: every whole batch that is in any of them.

Brokers hold the same bytes at the same offsets, so a batch that is damaged in one replica is taken from another one.
Where replicas hold different batches at an offset, leaders have written two histories. The one that an election keeps
wins (`Election`); batches of other histories are left out and reported.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from seglog_format.cluster.comparison import Election, Replica
from seglog_format.codec.checkpoints import decode_partition_metadata
from seglog_format.codec.framing import frame_at
from seglog_format.errors import SeglogError, UsageError
from seglog_format.log.gaps import GapKind, watch_over
from seglog_format.log.listing import leader_epochs
from seglog_format.log.path_kind import require_partition
from seglog_format.log.search import begins_entry
from seglog_format.model import GREATEST_OFFSET, EpochStart, Frame, MissingOffsets, RecordBatchHeader
from seglog_format.names import FileKind, parse_partition_directory
from seglog_format.recovery.entry_walk import row_of
from seglog_format.recovery.index_settings import infer_settings
from seglog_format.recovery.planned_files import opened_segments
from seglog_format.recovery.salvage import require_apart, salvage_writer, spliced
from seglog_format.recovery.salvage_placement import PlacedEntry, blocked_reports, parts_of, placement_of, source_of_log
from seglog_format.recovery.salvage_scan import longest_increasing
from seglog_format.storage.byte_source import read_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from seglog_format.cleaning.compaction_rules import Redaction
    from seglog_format.log.listing import PartitionListing
    from seglog_format.log.segment import LogSegment
    from seglog_format.recovery.salvage_placement import PlacedPart
    from seglog_format.recovery.salvage_scan import DamagedRange, SalvageScan
    from seglog_format.state.config import BrokerGeneration


class Diverged(NamedTuple):
    """Offsets of whole batches that are left out, since another history was kept.

    Attributes:
        first_offset, last_offset: of the batches.
        leader_epoch: of the first of them; -1 for none.
    """

    first_offset: int
    last_offset: int
    leader_epoch: int


@dataclass(frozen=True, slots=True)
class ReplicaReport:
    """What was found in one replica.

    Attributes:
        path: of the partition directory.
        whole_count: number of whole batches in it.
        taken_count: number of batches that were copied from it.
        damaged: logs and ranges in them that hold no whole batch.
        diverged: offsets of its batches that are of another history.
    """

    path: Path
    whole_count: int
    taken_count: int
    damaged: tuple[tuple[Path, DamagedRange], ...]
    diverged: tuple[Diverged, ...]


@dataclass(frozen=True, slots=True)
class MergedReplicas:
    """The log that was written.

    Attributes:
        chosen: path of the replica whose history was kept.
        replicas: one report for each.
        lost: offsets that no replica has, ascending; of an unknown number if ``next_offset`` is ``first_offset``.
        entry_count: number of batches written.
        next_offset: the log end offset of the new log.
    """

    chosen: Path
    replicas: tuple[ReplicaReport, ...]
    lost: tuple[MissingOffsets, ...]
    entry_count: int
    next_offset: int


class _Batch(NamedTuple):
    """A whole batch, and the logs in which it is, by number; compaction lowers how full it is."""

    first_offset: int
    last_offset: int
    size: int
    crc: int
    fullness: int
    epoch: int
    copies: tuple[PlacedEntry, ...]


class _Opened(NamedTuple):
    """The logs of all replicas, with their scans and the number of the replica of each."""

    listings: Sequence[PartitionListing]
    logs: list[LogSegment]
    scans: list[SalvageScan]
    owners: list[int]

    def replicas_of(self, batch: _Batch) -> set[int]:
        return {self.owners[entry.log] for entry in batch.copies}

    def logs_of(self, number: int) -> list[LogSegment]:
        return [log for log, owner in zip(self.logs, self.owners, strict=True) if owner == number]


def merge_replicas(
    listings: Sequence[PartitionListing],
    target: Path,
    *,
    interval_bytes: int | None = None,
    generation: BrokerGeneration | None = None,
    redaction: Redaction | None = None,
) -> MergedReplicas:
    """Write one log with every whole batch of several replicas of a partition.

    Args:
        listings: of the partition directories, in which nothing is changed.
        target: the directory to write to; it has to be new or empty, and outside of them.
        interval_bytes: `index.interval.bytes`; None to infer it.
        generation: which brokers to write indexes like; None to infer it.
        redaction: the records to leave out.

    Raises:
        UsageError: a path is no partition directory; the directories are not of one partition, by their names, their
            topic ids or their batches; or the target is not empty or is inside one of them.
        WriteError: a file could not be written; the target then holds whole segments only.
    """
    for listing in listings:
        require_partition(listing.path)
        require_apart(listing.path, target)
    _require_one_partition(listings)
    with ExitStack() as stack:
        opened = _opened(listings, stack)
        batches = _batches(opened)
        chosen = _chosen_replica(opened, batches)
        parts, merged = _merged(opened, batches, chosen)
        offset = None if generation is None else generation.indexed_offset
        settings = infer_settings(opened.logs_of(chosen), interval_bytes=interval_bytes, indexed_offset=offset)
        with salvage_writer(target, settings, change=None if redaction is None else redaction.of) as writer:
            writer.write_parts(opened.logs, parts)
            writer.finish(listings)
        return merged


def merged_log(listings: Sequence[PartitionListing]) -> tuple[PartitionListing, MergedReplicas]:
    """Return the log that brokers can load and that has every whole batch of several replicas. Nothing is written.

    Args:
        listings: of the replicas; the history of the first one is kept. Its storage opens the files of all.

    Raises:
        UsageError: no batch of a replica is in another one, and others hold its offsets.
    """
    with ExitStack() as stack:
        opened = _opened(listings, stack, is_for_brokers=True)
        parts, merged = _merged(opened, _batches(opened), 0)
        return spliced(listings[0], opened.logs, parts), merged


def _merged(opened: _Opened, batches: Sequence[_Batch], chosen: int) -> tuple[Sequence[PlacedPart], MergedReplicas]:
    """Return the new segments and the report; the segments begin where those of the chosen replica do."""
    kept, cleaned, dropped = _choice(batches, chosen, opened)
    _require_shared(opened, [*kept, *cleaned], dropped)
    taken = [batch.copies[0] for batch in kept]
    bases = sorted(log.base_offset for log in opened.logs_of(chosen))
    parts = list(parts_of(taken, opened.logs, lambda entry: bisect_right(bases, entry.first_offset)))
    end = taken[-1].last_offset + 1 if taken else 0
    next_offset = max(end, parts[-1].base_offset) if parts else 0  # the last part may be an empty segment
    before_empty = [MissingOffsets(end, next_offset)] if taken and end < next_offset else []
    return parts, MergedReplicas(
        chosen=opened.listings[chosen].path,
        replicas=tuple(_reports(opened, taken, dropped)),
        lost=tuple(united([*_lost(opened, [*kept, *cleaned]), *before_empty])),
        entry_count=len(kept),
        next_offset=next_offset,
    )


def _require_one_partition(listings: Sequence[PartitionListing]) -> None:
    """Refuse directories whose names or topic ids differ."""
    names, ids = set[object](), set[str]()
    for listing in listings:
        with suppress(SeglogError):
            name = parse_partition_directory(listing.path.absolute().name)
            names.add((name.topic, name.partition))
        metadata = listing.text_files.get(FileKind.PARTITION_METADATA)
        with suppress(SeglogError):
            ids |= {decode_partition_metadata(read_whole(metadata)).topic_id} if metadata is not None else set()
    if len(names) > 1 or len(ids) > 1:
        different = "names" if len(names) > 1 else "topic ids"
        msg = f"{', '.join(str(each.path) for each in listings)}: not one partition: the {different} differ"
        raise UsageError(msg)


def _require_shared(opened: _Opened, used: Iterable[_Batch], dropped: Iterable[_Batch]) -> None:
    """Refuse a replica that holds other batches at offsets of the others, and none that another one holds."""
    shared = {number for batch in used if len(found := opened.replicas_of(batch)) > 1 for number in found}
    strange = {number for batch in dropped for number in opened.replicas_of(batch)} - shared
    if strange:
        path = opened.listings[min(strange)].path
        msg = f"{path}: no batch of it is in another replica, and others hold its offsets: is it the same partition?"
        raise UsageError(msg)


def _opened(listings: Sequence[PartitionListing], stack: ExitStack, *, is_for_brokers: bool = False) -> _Opened:
    opened = _Opened(listings, [], [], [])
    for number, listing in enumerate(listings):
        segments = stack.enter_context(opened_segments(listing, storage=listing.storage))
        logs, placement = placement_of(listing, segments, is_for_brokers=is_for_brokers)
        opened.logs.extend(logs)
        opened.scans.extend(placement.scans)
        opened.owners.extend(number for _ in logs)
    return opened


# -- the whole batches, the history that an election keeps, and the batches of it --------------------------------------


def _batches(opened: _Opened) -> list[_Batch]:
    """Return the whole batches of all replicas by offset.

    No checksum covers the leader epoch. Of copies that differ in it, those count whose epoch follows the one before.
    """
    found: dict[tuple[int, int, int, int, int], dict[int, list[PlacedEntry]]] = {}
    for number, (log, scan) in enumerate(zip(opened.logs, opened.scans, strict=True)):
        source = source_of_log(log)
        for start in scan.starts:
            with suppress(SeglogError):
                frame = frame_at(source, start, source.size, log.path)
                assert isinstance(frame, Frame)
                row, header = row_of(frame, log.path, has_first_offset=True), frame.header
                epoch, fullness = -1, 0
                if isinstance(header, RecordBatchHeader):
                    epoch = header.partition_leader_epoch
                    fullness = 2 * header.records_count - (header.delete_horizon_ms is not None)
                entry = PlacedEntry(row.first_offset, number, row.last_offset, start, frame.end)
                key = (row.first_offset, row.last_offset, frame.end - start, header.crc, fullness)
                found.setdefault(key, {}).setdefault(epoch, []).append(entry)
    batches, reached = list[_Batch](), -1
    for key, by_epoch in sorted(found.items()):
        reached = min((epoch for epoch in by_epoch if epoch >= reached), default=max(by_epoch))
        batches.append(_Batch(*key, reached, tuple(by_epoch[reached])))
    return _where_they_belong(batches, opened)


def _beside(batch: _Batch, begins: set[int], ends: set[int]) -> int:
    """Return at how many of its ends a batch meets another one."""
    return (batch.first_offset - 1 in ends) + (batch.last_offset + 1 in begins)


def _where_they_belong(batches: Sequence[_Batch], opened: _Opened) -> list[_Batch]:
    """Leave out batches with a damaged offset, which no checksum covers: another replica has them where they fit."""
    begins, ends = {batch.first_offset for batch in batches}, {batch.last_offset for batch in batches}
    alike: dict[tuple[int, int], list[_Batch]] = {}
    for batch in batches:
        alike.setdefault((batch.size, batch.crc), []).append(batch)

    def is_moved(batch: _Batch) -> bool:
        if len(same := alike[batch.size, batch.crc]) == 1 or _beside(batch, begins, ends):
            return False
        own = opened.replicas_of(batch)
        return any(_beside(one, begins, ends) and not own & opened.replicas_of(one) for one in same)

    return [batch for batch in batches if not is_moved(batch)]


def _own(number: int, batches: Iterable[_Batch], opened: _Opened) -> list[_Batch]:
    return [batch for batch in batches if number in opened.replicas_of(batch)]


def _history(batches: Iterable[_Batch]) -> list[_Batch]:
    """Return the batches of one replica whose leader epochs are known and do not fall."""
    known = [batch for batch in batches if batch.epoch >= 0]
    ranked = array("q", (batch.epoch * len(known) + number for number, batch in enumerate(known)))
    return [known[number] for number in longest_increasing(ranked)]


def _chosen_replica(opened: _Opened, batches: Sequence[_Batch]) -> int:
    """Return the number of the replica whose history an election keeps."""
    copies = list[Replica]()
    for number, listing in enumerate(opened.listings):
        own, rises = _own(number, batches, opened), dict[int, int]()
        for batch in _history(own):
            rises.setdefault(batch.epoch, batch.first_offset)
        first, end = (own[0].first_offset, own[-1].last_offset + 1) if own else (0, 0)
        epochs = tuple(EpochStart(*each) for each in rises.items())
        copies.append(Replica(listing.path, number, None, epochs, first, end, sum(batch.size for batch in own)))
    return Election(copies, {}).chosen.node_id or 0


def _choice(batches: Sequence[_Batch], chosen: int, opened: _Opened) -> tuple[list[_Batch], list[_Batch], list[_Batch]]:
    """Return the batches to write, those of which a fuller copy is written, and those of another history.

    Compaction leaves a batch its offsets and its epoch, and removes records or gives it a delete horizon. Of other
    batches that overlap, those are written that more replicas hold, that meet others, or that the chosen one holds.
    """
    fullest: dict[tuple[int, int, int], int] = {}
    for batch in batches:
        key = batch.first_offset, batch.last_offset, batch.epoch
        fullest[key] = max(fullest.get(key, 0), batch.fullness)
    cleaned = [each for each in batches if each.fullness < fullest[each.first_offset, each.last_offset, each.epoch]]
    rest = sorted(set(batches).difference(cleaned))
    starts = _starts(chosen, rest, opened)
    fitting = [batch for batch in rest if _is_within(batch, starts)]
    begins, ends = {batch.first_offset for batch in fitting}, {batch.last_offset for batch in fitting}

    def weight(batch: _Batch) -> int:
        replicas = opened.replicas_of(batch)
        votes = 4 * len(replicas) + 2 * _beside(batch, begins, ends) + (chosen in replicas)
        return votes * (batch.last_offset - batch.first_offset + 1)

    kept = _heaviest(sorted(fitting, key=lambda batch: batch.last_offset), weight)
    return kept, cleaned, sorted(set(rest).difference(kept))


def _starts(number: int, batches: Iterable[_Batch], opened: _Opened) -> list[tuple[int, int]]:
    """Return offsets in a replica with their leader epochs, both ascending: of batches, and where epochs begin.

    The leader epoch checkpoint knows an epoch whose first batch is damaged. It does not count if it contradicts.
    """
    own = {(batch.first_offset, batch.epoch) for batch in _history(_own(number, batches, opened))}
    both = sorted(own.union((first, epoch) for epoch, first in leader_epochs(opened.listings[number])))
    return both if both == sorted(both, key=lambda each: each[1]) else sorted(own)


def _is_within(batch: _Batch, starts: Sequence[tuple[int, int]]) -> bool:
    """Return whether the leader epoch of a batch lies between those around it in the chosen history."""
    before = bisect_right(starts, (batch.last_offset, GREATEST_OFFSET))
    after = bisect_right(starts, (batch.first_offset, GREATEST_OFFSET))
    least = starts[before - 1][1] if before else 0
    most = starts[after][1] if after < len(starts) else GREATEST_OFFSET
    return batch.epoch < 0 or least <= batch.epoch <= most


def _heaviest(batches: Sequence[_Batch], weight: Callable[[_Batch], int]) -> list[_Batch]:
    """Return the batches, by ascending last offset, that do not overlap and together weigh most."""
    lasts = [batch.last_offset for batch in batches]
    best, before = [0], [bisect_left(lasts, batch.first_offset) for batch in batches]
    for number, batch in enumerate(batches):
        best.append(max(best[number], best[before[number]] + weight(batch)))
    kept, number = list[_Batch](), len(batches)
    while number:
        if best[number] == best[number - 1]:
            number -= 1
        else:
            kept.append(batches[number - 1])
            number = before[number - 1]
    return kept[::-1]


# -- what is copied from where, what is lost, and the reports ----------------------------------------------------------


def _lost(opened: _Opened, shown: Sequence[_Batch]) -> Iterator[MissingOffsets]:
    """Yield the offsets that one replica lacks by damage or by a gap, and no other one shows.

    A replica shows the offsets of its batches, and between two that are neighbours in its bytes: there, compaction has
    removed all records.
    """
    runs = united(_runs(opened, shown))
    spans = [span for number in range(len(opened.listings)) for span in _spans(opened, number, shown)]
    yield from united(part for span in spans for part in _without(span, runs))


def _spans(opened: _Opened, number: int, shown: Sequence[_Batch]) -> Iterator[MissingOffsets]:
    """Yield the offsets that a replica lacks; at its damaged end, of an unknown number unless others have them."""
    reached: dict[int, int] = {}
    last = _last_logs(opened).get(number, -1)
    for log, scan in _scans(opened, number):
        end = scan.last_offsets[-1] + 1 if scan.last_offsets else opened.logs[log].base_offset
        reached[opened.logs[log].base_offset] = end
        for damage in scan.damaged:
            if damage.missing is not None:
                yield damage.missing
            elif log == last and damage.start >= max(scan.ends, default=0):
                yield from () if _others_have(damage, end, shown, log, opened) else (MissingOffsets(end, end),)
    yield from (damage.missing for _, damage in _blocked(opened, number) if damage.missing is not None)
    for gap in watch_over(opened.listings[number]).gaps(reached):
        if gap.is_loss and gap.kind is not GapKind.UNREADABLE:
            yield gap.missing


def _others_have(damage: DamagedRange, end: int, shown: Sequence[_Batch], log: int, opened: _Opened) -> bool:
    """Return whether other replicas have what was at the damaged end of one.

    They have, if the bytes of their batches from there on are as many. Damage may also have added bytes. So it is
    enough that a replica with an intact end reaches beyond, and that no entry seems to begin where that one ends.
    """
    if sum(batch.size for batch in shown if batch.first_offset >= end) >= damage.end - damage.start:
        return True
    reached = max(_intact_ends(opened, shown), default=0)
    return reached > end and not begins_entry(source_of_log(opened.logs[log]), damage.start, reached)


def _intact_ends(opened: _Opened, shown: Sequence[_Batch]) -> Iterator[int]:
    """Yield the log end offset of each replica whose last log ends with a whole batch of the written history."""
    ends = {log: source_of_log(opened.logs[log]).size for log in _last_logs(opened).values()}
    copies = ((batch, entry) for batch in shown for entry in batch.copies)
    return (batch.last_offset + 1 for batch, entry in copies if ends.get(entry.log) == entry.end)


def _last_logs(opened: _Opened) -> dict[int, int]:
    """Return the number of the last log of each replica."""
    return {number: log for log, number in enumerate(opened.owners)}


def _scans(opened: _Opened, number: int) -> Iterator[tuple[int, SalvageScan]]:
    return ((log, opened.scans[log]) for log, owner in enumerate(opened.owners) if owner == number)


def _blocked(opened: _Opened, number: int) -> Iterator[tuple[Path, DamagedRange]]:
    return ((each.log, damage) for each in blocked_reports(opened.listings[number]) for damage in each.damaged)


def _runs(opened: _Opened, shown: Iterable[_Batch]) -> Iterator[MissingOffsets]:
    copies = {(entry.log, entry.start): entry for batch in shown for entry in batch.copies}
    for log, scan in enumerate(opened.scans):
        before = None
        for start in scan.starts:
            entry = copies.get((log, start))
            if entry is not None:
                is_next = before is not None and before.end == start and before.last_offset < entry.first_offset
                first = before.last_offset + 1 if before is not None and is_next else entry.first_offset
                yield MissingOffsets(first, entry.last_offset + 1)
            before = entry


def united(spans: Iterable[MissingOffsets]) -> list[MissingOffsets]:
    """Return ranges of offsets, ascending, those that touch as one."""
    found: list[MissingOffsets] = []
    for span in sorted(spans):
        if found and span.first_offset <= found[-1].next_offset:
            found[-1] = MissingOffsets(found[-1].first_offset, max(found[-1].next_offset, span.next_offset))
        else:
            found.append(span)
    return found


def _without(span: MissingOffsets, runs: Sequence[MissingOffsets]) -> Iterator[MissingOffsets]:
    """Yield the parts of a range that no run covers; one of an unknown number of offsets unchanged."""
    first = span.first_offset
    for run in runs[max(bisect_right(runs, (first, GREATEST_OFFSET)) - 1, 0) :] if span.offset_count else ():
        if run.first_offset >= span.next_offset:
            break
        if first < run.first_offset:
            yield MissingOffsets(first, run.first_offset)
        first = max(first, run.next_offset)
    if first < span.next_offset or not span.offset_count:
        yield MissingOffsets(first, span.next_offset)


def _reports(opened: _Opened, taken: Sequence[PlacedEntry], dropped: Sequence[_Batch]) -> Iterator[ReplicaReport]:
    for number, listing in enumerate(opened.listings):
        scans = list(_scans(opened, number))
        damaged = ((opened.logs[log].paths.log, damage) for log, scan in scans for damage in scan.damaged)
        yield ReplicaReport(
            path=listing.path,
            whole_count=sum(len(scan.starts) for _, scan in scans),
            taken_count=sum(opened.owners[entry.log] == number for entry in taken),
            damaged=(*damaged, *_blocked(opened, number)),
            diverged=tuple(_diverged(_own(number, dropped, opened))),
        )


def _diverged(dropped: Iterable[_Batch]) -> Iterator[Diverged]:
    found: list[Diverged] = []
    for batch in dropped:
        if found and found[-1].leader_epoch == batch.epoch and found[-1].last_offset + 1 == batch.first_offset:
            found[-1] = found[-1]._replace(last_offset=batch.last_offset)
        else:
            found.append(Diverged(batch.first_offset, batch.last_offset, batch.epoch))
    return iter(found)

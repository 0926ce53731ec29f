"""Recovery by the rules of chapter 71, and truncation. `brokers` has what brokers do instead."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from seglog_algorithms import offset_index, time_index, transaction_index
from seglog_algorithms.control_records import marker_of
from seglog_algorithms.damage import Damage, or_none
from seglog_algorithms.directory import (
    CLEANED,
    DELETED,
    INDEX,
    INDEXES,
    LOG,
    SNAPSHOT,
    SWAP,
    TIME_INDEX,
    TRANSACTION_INDEX,
    base_offsets,
    file_name,
    next_offset,
    parse_name,
    replacements,
)
from seglog_algorithms.entries import LAST_OFFSET, MOST_AHEAD, check_crc, up_to_damage, walk
from seglog_algorithms.index_settings import Settings, inferred
from seglog_algorithms.indexes import indexes_of
from seglog_algorithms.leader_epochs import (
    LEADER_EPOCHS,
    LOG_STARTS,
    RECOVERY_POINTS,
    change_epochs,
    checkpoint,
    read_epochs,
    read_offsets,
    truncated_from_end,
    with_newer,
    within,
)
from seglog_algorithms.offset_index import Slots
from seglog_algorithms.producers import (
    Producers,
    keep_snapshots,
    producers_before,
    replayed,
    snapshot_of,
    snapshot_offsets,
    without_strays,
)
from seglog_algorithms.records import first_offset
from seglog_format.schema.offset_index import OffsetIndexEntry
from seglog_format.schema.record_batch import EntryPrefix
from seglog_format.schema.time_index import TimeIndexEntry
from seglog_format.schema.transaction_index import TransactionIndexEntry

if TYPE_CHECKING:
    from collections.abc import Callable

    from seglog_algorithms.directory import Directory
    from seglog_algorithms.entries import Entry
    from seglog_algorithms.indexes import Indexes
    from seglog_algorithms.leader_epochs import Epochs
    from seglog_algorithms.records import Decompress

UNREAD: Final = ("SEG-COD-", "SEG-CTL-006")
"""Rules of an end marker that does not decompress, or is no end marker: recovery keeps it."""
LOWERED: Final = (RECOVERY_POINTS, LOG_STARTS)
SIDE_FILES: Final = (SNAPSHOT, TRANSACTION_INDEX, TIME_INDEX, INDEX)


@dataclass(frozen=True, slots=True)
class Around:
    """What recovery takes from the log directory.

    Attributes:
        clean: whether the clean-shutdown file is there (SEG-LDR-003).
        recovery_point: as checkpointed, or 0 (SEG-CKP-011).
        log_start: as checkpointed, or 0 (SEG-CKP-010).
    """

    clean: bool = False
    recovery_point: int = 0
    log_start: int = 0


@dataclass(frozen=True, slots=True)
class Cut:
    """The end of a segment after recovery: bytes that stay, the offset after them, and the rules."""

    base_offset: int
    position: int
    next_offset: int
    rules: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Remark:
    """A place where brokers do something else: position in the log, and the rule that the entry there breaks."""

    position: int
    rule: str


@dataclass(slots=True)
class Plan:
    """What recovery does to the logs: base offsets of scanned and dropped segments, cuts, the end of the log."""

    scanned: list[int] = field(default_factory=list)
    cuts: list[Cut] = field(default_factory=list)
    dropped: list[int] = field(default_factory=list)
    end: int = 0
    restarts: bool = False
    remarks: list[Remark] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Recovered:
    """A directory after recovery, and what was done to its logs."""

    directory: dict[str, bytes]
    plan: Plan


def recover(
    directory: Directory,
    around: Around,
    decompress: Decompress,
    interval: int | None = None,
    settings: Settings | None = None,
) -> Recovered:
    """Recover a partition directory by the rules; without an interval or settings, its indexes show them.

    Raises:
        Damage: nothing may be changed (SEG-RCV-032).
    """
    files = dict(directory)
    finish_replacement(files)
    give_full_names(files)
    settings = settings or inferred(files, interval)
    plan = planned(files, around, decompress)
    refuse_misnamed(plan)
    known = dict(files)
    drop_and_cut(files, plan)
    epochs = rebuild_indexes(files, known, plan, settings, decompress)
    remove_orphans(files)
    remove_snapshots(files, plan)
    if around.clean and not snapshot_offsets(files):
        write_snapshot(files, plan.end, around.log_start, decompress)
    change_epochs(files, lambda known: epochs_of(known, plan, epochs, around.log_start))
    whole = [base for base in plan.scanned if base not in {cut.base_offset for cut in plan.cuts}]
    splits = [split(files, base, decompress) for base in whole]  # SEG-RCV-022
    if any(splits):
        again = recover(files, around, decompress, interval, settings)
        return Recovered(again.directory, replace(plan, end=again.plan.end))
    return Recovered(files, plan)


# What is scanned


def planned(files: Directory, around: Around, decompress: Decompress) -> Plan:
    """Return which segments recovery scans, cuts and drops."""
    bases, plan = base_offsets(files), Plan(end=around.log_start)
    first, kept = first_scanned(bases, around), bases
    for number, base in enumerate(bases):
        if number >= first or is_scanned_anyway(files, base):
            scan(files[file_name(base, LOG)], base, decompress, plan)
            if number >= first and any(cut.base_offset == base for cut in plan.cuts):  # SEG-RCV-004
                kept = bases[: number + 1]
                break
    if kept and kept[-1] not in plan.scanned:
        plan.end = next_offset(files[file_name(kept[-1], LOG)], kept[-1])  # SEG-LKP-015
        cut_tail(files[file_name(kept[-1], LOG)], kept[-1], plan)
    plan.restarts = plan.end < around.log_start  # SEG-RCV-007
    plan.dropped = bases if plan.restarts else bases[len(kept) :]
    plan.end = max(plan.end, around.log_start)
    return plan


def first_scanned(bases: list[int], around: Around) -> int:
    """Return the number of the segment that contains the recovery point; after a clean shutdown, one after the last."""
    if around.clean:  # SEG-RCV-001
        return len(bases)
    return max(sum(base <= around.recovery_point for base in bases) - 1, 0)  # SEG-RCV-002


def is_scanned_anyway(files: Directory, base: int) -> bool:
    """Return whether a segment has to be scanned for its indexes."""
    if file_name(base, INDEX) not in files:  # SEG-RCV-006
        return True
    index = files.get(file_name(base, TRANSACTION_INDEX), b"")
    return any(entry.last_offset < base for entry in Slots(TransactionIndexEntry, index))  # SEG-RCV-034


# What stays


def scan(log: bytes, base: int, decompress: Decompress, plan: Plan) -> None:
    """Scan a segment, and add what stays of it to the plan."""
    end, last = 0, base - 1
    rules: tuple[str, ...] = ()
    step = "SEG-RCV-003"
    try:
        for entry in walk(log, takes_later_magic=True):  # SEG-RCV-038
            check_crc(entry)
            step = "SEG-RCV-032"
            check_order(entry, base, last, plan)
            step = "SEG-RCV-008"
            check_marker(entry, decompress, plan)
            step, end, last = "SEG-RCV-003", entry.end, entry.last_offset
        if end < len(log):  # SEG-RCV-033
            rules = ("SEG-RCV-033", tail_rule(log[end:]))
    except Damage as damage:
        rules = (step, damage.rule)
    plan.scanned.append(base)
    plan.end = last + 1
    if rules:
        plan.cuts.append(Cut(base, end, last + 1, rules))


def check_order(entry: Entry, base: int, last: int, plan: Plan) -> None:
    """Refuse an entry below the base offset, or one that ends no higher than the one before (SEG-RCV-032)."""
    first, at = entry.first_offset, entry.position
    if first is not None and not base <= first <= entry.last_offset:
        plan.remarks.append(Remark(at, "SEG-LOG-008"))
        raise Damage("SEG-LOG-008", at)
    if entry.last_offset > LAST_OFFSET:
        raise Damage("SEG-LOG-013", at)
    if entry.last_offset <= last:
        plan.remarks.append(Remark(at, "SEG-LOG-006"))
        raise Damage("SEG-LOG-006", at)
    if entry.last_offset - base > MOST_AHEAD:  # SEG-RCV-022
        plan.remarks.append(Remark(at, "SEG-LOG-009"))


def check_marker(entry: Entry, decompress: Decompress, plan: Plan) -> None:
    """Refuse a control batch of a producer whose end marker cannot be read (SEG-RCV-008)."""
    try:
        marker = marker_of(entry, decompress)
    except Damage as damage:
        plan.remarks.append(Remark(entry.position, damage.rule))
        if not damage.rule.startswith(UNREAD):  # SEG-RCV-005
            raise
        return
    if marker is None and entry.is_control and entry.producer_id >= 0 and entry.header.records_count:
        plan.remarks.append(Remark(entry.position, "SEG-CTL-003"))


def tail_rule(tail: bytes) -> str:
    """Return the rule by which bytes end the walk without an error (chapter 20)."""
    if not any(tail):
        return "SEG-LOG-005"
    return "SEG-LOG-002" if len(tail) <= EntryPrefix.sizeof() else "SEG-LOG-004"


def cut_tail(log: bytes, base: int, plan: Plan) -> None:
    """Cut what follows the last entry of a log that is not scanned (SEG-RCV-024)."""
    end, next_ = 0, base
    try:
        for entry in walk(log, takes_later_magic=True):
            end, next_ = entry.end, entry.last_offset + 1
        rule = tail_rule(log[end:])
    except Damage as damage:
        rule = damage.rule
    if end < len(log):
        plan.cuts.append(Cut(base, end, next_, ("SEG-RCV-024", rule)))


def refuse_misnamed(plan: Plan) -> None:
    """Refuse to empty a log that has the name of another segment (SEG-RCV-032)."""
    if any(cut.position == 0 and "SEG-LOG-008" in cut.rules for cut in plan.cuts):
        raise Damage("SEG-RCV-032", 0, "the first entry is below the base offset")


# What becomes of the files


def finish_replacement(files: dict[str, bytes], end_of: Callable[[Directory, str, int], int] | None = None) -> None:
    """Finish or undo an interrupted replacement (SEG-RCV-021), and remove what is unfinished (SEG-RCV-020)."""
    names, swaps, covered = replacements(files, end_of)
    for name in [each for each in names if names[each].state == SWAP and each not in swaps]:  # SEG-PDR-010, step 2
        del files[name]
    for name in [each for each in files if each.endswith((CLEANED, ".tmp"))]:  # SEG-RCV-020
        del files[name]
    for name, parts in names.items():
        if not parts.state and parts.base_offset in covered:  # SEG-PDR-010, step 4
            del files[name]
    for name, parts in swaps.items():  # SEG-PDR-010, step 5
        files[file_name(parts.base_offset, parts.kind)] = files.pop(name)


def give_full_names(files: dict[str, bytes]) -> None:
    """Give each log, and its side files, the name in 20 digits (SEG-RCV-026), unless it is taken (SEG-PDR-019)."""
    parsed = {name: parts for name in sorted(files) if (parts := parse_name(name)) is not None and not parts.state}
    logs = {parts.base_offset for parts in parsed.values() if parts.kind == LOG}
    for name, parts in parsed.items():
        if parts.base_offset in logs and str(parts) not in files:
            files[str(parts)] = files.pop(name)


def drop_and_cut(files: dict[str, bytes], plan: Plan) -> None:
    """Drop segments, the last first, then cut (SEG-RCV-029); a log keeps a segment (SEG-RCV-030)."""
    for base in reversed(plan.dropped):  # SEG-RCV-004, SEG-RCV-007
        for kind in (*SIDE_FILES, LOG):
            name = file_name(base, kind)
            if name in files:
                files[name + DELETED] = files.pop(name)
    for cut in plan.cuts:
        if cut.base_offset not in plan.dropped:
            name = file_name(cut.base_offset, LOG)
            files[name] = files[name][: cut.position]
    if not base_offsets(files):
        files[file_name(plan.end, LOG)] = b""  # SEG-RCV-030


def rebuild_indexes(
    files: dict[str, bytes], known: Directory, plan: Plan, settings: Settings, decompress: Decompress
) -> Epochs:
    """Rebuild the indexes of changed segments (SEG-RCV-025); return the leader epochs of their batches."""
    changed = {*plan.scanned, *(cut.base_offset for cut in plan.cuts)}
    found: Epochs = []
    for base in sorted({*base_offsets(known), *base_offsets(files)}):
        log = files.get(file_name(base, LOG))
        is_bare = settings.has_time_index and file_name(base, TIME_INDEX) not in files
        if log is None or (base not in changed and not is_bare):
            continue
        indexes = indexes_of(log, base, settings, decompress)
        if base not in changed and base in base_offsets(known):
            files[file_name(base, TIME_INDEX)] = indexes.time
            continue
        open_offsets = producers_before(known, base, decompress, is_opened=False).open_offsets
        aborted = transaction_index.build(up_to_damage(log), open_offsets, decompress)
        put_indexes(files, base, indexes, aborted, settings)
        found += rising_epochs(log)
    return found


def put_indexes(files: dict[str, bytes], base: int, indexes: Indexes, aborted: bytes, settings: Settings) -> None:
    """Write the indexes of a segment; a transaction index if there is one, or it has entries."""
    files[file_name(base, INDEX)] = indexes.offset
    if settings.has_time_index:
        files[file_name(base, TIME_INDEX)] = indexes.time
    if aborted or file_name(base, TRANSACTION_INDEX) in files:
        files[file_name(base, TRANSACTION_INDEX)] = aborted


def rising_epochs(log: bytes) -> Epochs:
    """Return where each leader epoch begins that is above all before it."""
    found: Epochs = []
    for entry in up_to_damage(log):
        first = entry.first_offset
        if entry.is_batch and first is not None and first >= 0 and entry.leader_epoch > (found[-1][0] if found else -1):
            found.append((entry.leader_epoch, first))
    return found


def remove_orphans(files: dict[str, bytes]) -> None:
    """Remove indexes without a log (SEG-RCV-026)."""
    logs = base_offsets(files)
    for name in sorted(files):
        parts = parse_name(name)
        if parts is not None and parts.kind in INDEXES and not parts.state and parts.base_offset not in logs:
            del files[name]


def remove_snapshots(files: dict[str, bytes], plan: Plan) -> None:
    """Remove snapshots above the end, unreadable ones (SEG-RCV-027), and those where nothing begins (SEG-RCV-035)."""
    kept = without_strays(snapshot_offsets(files), base_offsets(files))
    keep_snapshots(files, (offset for offset in kept if offset <= plan.end))


def write_snapshot(files: dict[str, bytes], end: int, log_start: int, decompress: Decompress) -> None:
    """Write a snapshot if the log has producers: brokers would forget them (SEG-PSN-010)."""
    producers = replayed(Producers(), files, range(log_start, 2**63), decompress)
    if producers:
        files[file_name(end, SNAPSHOT)] = snapshot_of(producers.values())


def epochs_of(known: Epochs, plan: Plan, found: Epochs, log_start: int) -> Epochs:
    """Return the leader epochs that agree with the log."""
    end = epochs_end(plan, found, log_start)
    epochs = with_newer(truncated_from_end(known, end), found)  # SEG-RCV-028, SEG-RCV-036
    return [] if plan.restarts else within(epochs, log_start, end)  # SEG-RCV-007, SEG-RCV-037


def epochs_end(plan: Plan, found: Epochs, log_start: int) -> int:
    """Return the offset from which on leader epochs are removed: batches of an empty log leave theirs."""
    return plan.end + (bool(found) and plan.end == log_start)


def split(files: dict[str, bytes], base: int, decompress: Decompress) -> bool:
    """Split a segment whose offsets are too far above its base offset (SEG-RCV-022); return whether it was."""
    name = file_name(base, LOG)
    if name not in files:
        return False
    log, parts, start = files[name], [base], [0]
    for entry in up_to_damage(log):
        if entry.last_offset - parts[-1] > MOST_AHEAD:
            parts.append(first_offset(entry, decompress))
            start.append(entry.position)
        if entry.last_offset - parts[-1] > MOST_AHEAD:
            return False
    above = min((each for each in base_offsets(files) if each > base), default=2**63)
    if len(parts) == 1 or parts[-1] >= above:
        return False
    put_parts(files, base, parts, start)
    return True


def put_parts(files: dict[str, bytes], base: int, parts: list[int], starts: list[int]) -> None:
    """Replace a segment by parts of it: their base offsets and positions."""
    log = files[file_name(base, LOG)]
    for kind in (*SIDE_FILES, LOG):
        files.pop(file_name(base, kind), None)
    for part, begin, end in zip(parts, starts, [*starts[1:], len(log)], strict=True):
        files[file_name(part, LOG)] = log[begin:end]


# Truncation


def truncate(
    directory: Directory,
    checkpoints: Directory,
    partition: tuple[str, int],
    offset: int,
    decompress: Decompress,
    around: Around,
) -> tuple[dict[str, bytes], dict[str, bytes], int]:
    """Return the directory after a log is truncated, the checkpoints of its log directory, and the end of the log.

    Args:
        directory: the partition directory.
        checkpoints: the offset checkpoints of the log directory, by name.
        partition: topic and partition.
        offset: the first to remove.
        decompress: decompresses an end marker.
        around: what the log directory says.

    Raises:
        Damage: the offset is negative, there is no segment, or the log would end in its remote part.
    """
    files, bases = dict(directory), base_offsets(directory)
    if offset < 0 or not bases:
        raise Damage("SEG-TRN-001", text=f"offset {offset}, {len(bases)} segments")
    if is_tiered(files, bases[0], around.log_start) and offset < bases[0]:
        raise Damage("SEG-TRN-002", text="the log would not lead to its remote segments any more")
    end = next_offset(files[file_name(bases[-1], LOG)], bases[-1])
    if offset >= end:  # SEG-TRN-002
        return files, dict(checkpoints), end
    kept = [base for base in bases if base <= offset]
    lowered = {name: lowered_to(data, partition, offset) for name, data in checkpoints.items() if name in LOWERED}
    change_epochs(files, lambda known: truncated_from_end(known, offset if kept else -1))  # SEG-TRN-007
    for at in snapshot_offsets(files):
        if at > offset and at not in bases:  # SEG-TRN-004; others go with their segments
            del files[file_name(at, SNAPSHOT)]
    drop_and_cut(files, Plan(dropped=bases[len(kept) :], end=offset))  # SEG-TRN-001, SEG-TRN-002
    if kept:
        truncate_segment(files, kept[-1], offset)
    if around.clean and not without_strays(snapshot_offsets(files), kept):
        write_snapshot(files, offset, around.log_start, decompress)
    return files, {**checkpoints, **lowered}, offset


def is_tiered(files: Directory, first: int, log_start: int) -> bool:
    """Return whether a log begins below its first segment, in a remote store (SEG-PDR-028)."""
    epochs = or_none(read_epochs, files.get(LEADER_EPOCHS, b""))
    return (epochs[0][1] if epochs else log_start or first) < first


def lowered_to(data: bytes, partition: tuple[str, int], offset: int) -> bytes:
    """Lower the checkpointed offset of a partition (SEG-TRN-005); one that cannot be read stays."""
    entries = or_none(read_offsets, data) or []
    lowered = [(*each[:2], min(each[2], offset)) if each[:2] == partition else each for each in entries]
    return data if lowered == entries else checkpoint(lowered)


def truncate_segment(files: dict[str, bytes], base: int, offset: int) -> None:
    """Cut a segment at its first entry that ends at an offset or above, and its indexes."""
    name, index, times, aborted = (file_name(base, kind) for kind in (LOG, INDEX, TIME_INDEX, TRANSACTION_INDEX))
    log = files[name]
    files[name] = log[
        : next((e.position for e in up_to_damage(log) if e.last_offset >= offset), len(log))
    ]  # SEG-TRN-001
    if index in files:  # SEG-TRN-003
        count = sum(each.offset < offset for each in offset_index.entries_of(files[index], base))
        files[index] = files[index][: count * OffsetIndexEntry.sizeof()]
    if times in files:  # SEG-TRN-003
        count = sum(each.offset < offset for each in time_index.entries_of(files[times], base))
        files[times] = files[times][: count * TimeIndexEntry.sizeof()]
    if aborted in files:  # SEG-TRN-006
        slots = Slots(TransactionIndexEntry, files[aborted])
        files[aborted] = b"".join(TransactionIndexEntry.build(each) for each in slots if each.last_offset < offset)

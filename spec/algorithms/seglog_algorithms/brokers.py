"""What brokers since 2.0 do when they start, where it differs from the rules (chapter 71, "What brokers do")."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final

from seglog_algorithms import recovery, transaction_index
from seglog_algorithms.control_records import marker_of
from seglog_algorithms.damage import Damage
from seglog_algorithms.directory import (
    CLEANED,
    DELETED,
    INDEX,
    INDEXES,
    LOG,
    SNAPSHOT,
    SWAP,
    TIME_INDEX,
    base_offsets,
    file_name,
    parse_name,
)
from seglog_algorithms.entries import MOST_AHEAD, check_crc, walk
from seglog_algorithms.index_settings import Settings, inferred
from seglog_algorithms.indexes import IndexBuilder, Indexes
from seglog_algorithms.leader_epochs import LEADER_EPOCHS, Epochs, assigned, checkpoint, read_epochs, with_newer, within
from seglog_algorithms.offset_index import Slots
from seglog_algorithms.producers import (
    Producers,
    is_readable,
    keep_snapshots,
    producers_in,
    snapshot_offsets,
    without_strays,
)
from seglog_algorithms.records import first_offset
from seglog_format.schema.offset_index import OffsetIndexEntry
from seglog_format.schema.record_batch import EntryPrefix, RecordBatchHeader

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seglog_algorithms.directory import Directory
    from seglog_algorithms.entries import Entry
    from seglog_algorithms.records import Decompress
    from seglog_algorithms.transaction_index import AbortedTransaction

SEGMENT_INDEX_BYTES: Final = 10485760
"""Default of `segment.index.bytes`."""
_NUMBERED: Final = (LOG, *INDEXES, SNAPSHOT)
_WARM_SLOTS: Final = 1024


class NotStarted(Damage):
    """The broker does not start."""


class MustSplit(Exception):  # noqa: N818 - no error
    """The broker splits a segment, and begins again."""


@dataclass(slots=True)
class Scanned:
    """What a broker keeps of a segment, and the files that it writes."""

    position: int = 0
    end: int = 0
    rules: tuple[str, ...] = ()
    indexes: Indexes = Indexes(b"", b"")  # noqa: RUF009 - frozen
    aborted: list[AbortedTransaction] = field(default_factory=list)
    epochs: Epochs = field(default_factory=list)


def recover_like_broker(
    directory: Directory,
    around: recovery.Around,
    decompress: Decompress,
    interval: int | None = None,
    settings: Settings | None = None,
) -> recovery.Recovered:
    """Recover a partition directory as a broker does.

    Raises:
        NotStarted: the broker does not start.
    """
    files = {name: data for name, data in directory.items() if settings or not is_removed(name)}
    refuse_names(files)
    refuse_epochs(files)
    recovery.finish_replacement(files, end_of_swap)
    create_logs(files, interval, decompress)
    known = {name: data for name, data in files.items() if is_opened(name)}
    others = {name: data for name, data in files.items() if name not in known}
    settings = settings or inferred(known, interval)
    loading = Loading(known, around, decompress, settings)
    try:
        plan = loading.run()
    except MustSplit as split:
        split_like_broker(known, split.args[0], decompress)
        again = recover_like_broker(known | others, around, decompress, interval, settings)
        return recovery.Recovered(again.directory, replace(loading.plan, end=again.plan.end))
    recovered = dict(known)
    recovery.drop_and_cut(recovered, plan)
    write_files(recovered, known, loading, settings)
    remove_snapshots(recovered, plan, around.log_start)
    if around.clean and not snapshot_offsets(recovered) and not recovery.forgets_producers(known):
        recovery.write_snapshot(recovered, plan.end, around.log_start, decompress)
    change_epochs(recovered, plan, loading.epochs, around.log_start)
    return recovery.Recovered(recovered | others, plan)


def differences(
    directory: Directory,
    plan: recovery.Plan,
    around: recovery.Around,
    decompress: Decompress,
    interval: int | None = None,
) -> list[recovery.Remark]:
    """Return where a broker would keep more or less of a log than a plan does, and by which rule less is kept."""
    try:
        broker = recover_like_broker(directory, around, decompress, interval).plan
    except NotStarted as failure:
        return [recovery.Remark(failure.position, failure.rule)]
    found = []
    for base in base_offsets(directory):
        size = len(directory.get(file_name(base, LOG), b""))
        ours, theirs = kept_of(plan, base, size), kept_of(broker, base, size)
        if ours[0] != theirs[0]:
            found.append(recovery.Remark(min(ours[0], theirs[0]), min(ours, theirs)[1]))
    return found


def kept_of(plan: recovery.Plan, base: int, size: int) -> tuple[int, str]:
    """Return how many bytes of a segment a plan keeps, and the rule by which it removes others."""
    if base in plan.dropped:
        return 0, "SEG-RCV-007" if plan.restarts else "SEG-RCV-004"
    return next(((cut.position, cut.rules[0]) for cut in plan.cuts if cut.base_offset == base), (size, ""))


# Names


def number_in(name: str) -> int | None:
    """Return the number before the first full stop; None if there is none of 64 bits."""
    digits = name.partition(".")[0]
    number = int(digits) if re.fullmatch(r"[+-]?\d+", digits) else None
    return number if number is not None and -(2**63) <= number < 2**63 else None


def opened_name(offset: int, kind: str) -> str:
    """Return the name that a broker opens; the sign precedes the 20 digits (SEG-PDR-007)."""
    return f"{'-' * (offset < 0)}{abs(offset):020}{kind}"


def is_opened(name: str) -> bool:
    """Return whether a broker opens a file by its name (SEG-PDR-018)."""
    parts = parse_name(name)
    return parts is None or name == str(parts)


def is_removed(name: str) -> bool:
    """Return whether a broker removes a file when it starts (SEG-RCV-020)."""
    return name.endswith(DELETED) and not name.endswith(".checkpoint" + DELETED)


def refuse_names(files: Directory) -> None:
    """Refuse a name without a number (SEG-PDR-005), and a replacement that the broker does not open."""
    for name in sorted(files):
        plain = name.removesuffix(SWAP)
        if name.endswith((*_NUMBERED, SWAP, CLEANED)):
            number = number_in(name)
            is_other = (
                name != plain
                and plain.endswith(_NUMBERED)
                and plain != opened_name(number or 0, plain[plain.index(".") :])
            )
            if number is None or is_other:
                raise NotStarted("SEG-PDR-005", text=name)


def refuse_epochs(files: Directory) -> None:
    """Refuse a leader epoch checkpoint that cannot be read (SEG-RCV-036), or has a negative number (SEG-CKP-015)."""
    try:
        epochs = read_epochs(files.get(LEADER_EPOCHS, b""))
    except Damage as damage:
        raise NotStarted(damage.rule, text=damage.text) from None
    if any(min(each) < 0 for each in epochs):
        raise NotStarted("SEG-CKP-007", text=str(epochs))


def end_of_swap(files: Directory, name: str, base: int) -> int:
    """Return the end of a `.log.swap` file by its index (SEG-PDR-010); create a missing index, of zeros."""
    index = files.get(name.replace(LOG, INDEX), bytes(SEGMENT_INDEX_BYTES))
    return trusted_end(files[name], index, base)


def create_logs(files: dict[str, bytes], interval: int | None, decompress: Decompress) -> None:
    """Create logs that exist under other names only (SEG-PDR-005); remove indexes without a log (SEG-RCV-026)."""
    for name in [each for each in files if each.endswith(LOG)]:
        offset = number_in(name) or 0
        opened = opened_name(offset, LOG)
        if opened not in files:
            files[opened] = b""
            if offset < 0:  # SEG-PDR-007
                files |= {opened_name(offset, INDEX): b"", opened_name(offset, TIME_INDEX): b""}
        elif offset < 0 and opened_name(offset, INDEX) not in files:
            found = scan_like_broker(files[opened], offset, Settings(interval or 4096), Producers(), decompress)
            files[opened] = files[opened][: found.position]
            files[opened_name(offset, INDEX)] = found.indexes.offset
            files[opened_name(offset, TIME_INDEX)] = found.indexes.time
    for name in [each for each in files if each.endswith(INDEXES)]:
        if opened_name(number_in(name) or 0, LOG) not in files:
            del files[name]


# The end of a segment that is not scanned


def trusted_end(log: bytes, index: bytes, base: int) -> int:
    """Return the end of a segment by its index (SEG-LKP-015)."""
    found = Slots(OffsetIndexEntry, index)
    wanted = base + found[len(found) - 1].relative_offset if found else base
    end, is_found = base, False
    for _, end, _ in passed(log, max(searched(found, wanted - base), 0)):
        is_found = is_found or end > wanted
    return end if is_found else base


def searched(found: Sequence[Any], relative: int) -> int:
    """Return the position that a binary search finds, whether or not the slots are in order (chapter 40)."""
    warm = max(len(found) - 1 - _WARM_SLOTS, 0)
    is_warm = bool(found) and found[warm].relative_offset < relative
    low, high = (warm, len(found) - 1) if is_warm else (0, warm)
    if not found or found[low].relative_offset > relative:
        return 0
    while low < high:
        middle = (low + high + 1) // 2
        if found[middle].relative_offset == relative:
            return int(found[middle].position)
        low, high = (low, middle - 1) if found[middle].relative_offset > relative else (middle, high)
    return int(found[low].position)


def passed(log: bytes, position: int) -> Iterator[tuple[int, int, int]]:
    """Walk entries without their checksums: yield position, next offset and producer id of each."""
    while position < len(log) - EntryPrefix.sizeof():
        prefix = EntryPrefix.parse(log[position:])
        end = position + 12 + prefix.size
        if prefix.size < 14:
            raise NotStarted("SEG-LOG-003", position)
        if end > len(log):
            return
        if prefix.magic < 2:
            yield position, prefix.offset + 1, -1
        else:
            if position + RecordBatchHeader.sizeof() > len(log):
                raise NotStarted("SEG-BAT-002", position)
            header = RecordBatchHeader.parse(log[position:])
            yield position, header.base_offset + header.last_offset_delta + 1, header.producer_id
        position = end


# The scan of a segment


def is_in_order(builder: IndexBuilder) -> bool:
    """Return whether the newest index entries are in order; if not, the broker empties the segment (SEG-RCV-023)."""
    offsets, times = (
        [each[field] for each in found[-2:]] for field, found in enumerate((builder.offsets, builder.times))
    )
    return offsets == sorted(set(offsets)) and times == sorted(times)


def scan_like_broker(
    log: bytes, base: int, settings: Settings, producers: Producers, decompress: Decompress
) -> Scanned:
    """Return what a broker keeps of a segment; the producers are those at its start, and are changed."""
    scanned, builder = Scanned(end=base), IndexBuilder(settings.index_interval_bytes)
    try:
        for entry in walk(log, takes_later_magic=True):  # SEG-RCV-038
            check_crc(entry)  # SEG-RCV-003
            last = (entry.last_offset + 2**63) % 2**64 - 2**63
            if not 0 <= last - base <= MOST_AHEAD:  # SEG-RCV-022
                raise MustSplit(base)
            named = first_offset(entry, decompress) if settings.stores_first_offset else last
            builder.add(named, entry.position, len(entry.data), (entry.max_timestamp_ms, last))
            if not is_in_order(builder):
                return Scanned(end=base, rules=("SEG-RCV-023", "SEG-LOG-006"))
            scanned.position, scanned.end = entry.end, entry.last_offset + 1
            apply_entry(entry, scanned, producers, decompress)
        if scanned.position < len(log):
            scanned.rules = ("SEG-RCV-033", recovery.tail_rule(log[scanned.position :]))
    except NotStarted:
        raise
    except Damage as damage:
        scanned.rules = ("SEG-RCV-003", damage.rule)
    builder.add_time()
    if not is_in_order(builder):
        return Scanned(end=base, rules=("SEG-RCV-023", "SEG-LOG-006"))
    scanned.indexes = builder.built(base)
    scanned.epochs = recovery.rising_epochs(log[: scanned.position])
    return scanned


def apply_entry(entry: Entry, scanned: Scanned, producers: Producers, decompress: Decompress) -> None:
    """Apply leader epoch and producer of an entry that stays."""
    if entry.is_batch and entry.header.base_offset < 0 and entry.leader_epoch > -1:
        raise NotStarted("SEG-BAT-005", entry.position)
    aborted = apply_producer(entry, producers, decompress)
    if aborted is not None:
        if scanned.aborted and aborted.last_offset <= scanned.aborted[-1].last_offset:
            raise NotStarted("SEG-TXN-004", entry.position)
        scanned.aborted.append(aborted)


def apply_producer(entry: Entry, producers: Producers, decompress: Decompress) -> AbortedTransaction | None:
    """Apply a batch of a producer; a broker does not start on a marker that it cannot use (DEP-13)."""
    if entry.producer_id < 0:
        return None
    try:
        marker = marker_of(entry, decompress)
        lacks_marker = marker is None and entry.is_control and entry.header.records_count
        aborted = None if lacks_marker else producers.add(entry, marker)
    except Damage as damage:
        if damage.rule.startswith((*recovery.UNREAD, "SEG-APP-023")):
            raise NotStarted(damage.rule, entry.position) from None
        raise
    if lacks_marker:
        raise NotStarted("SEG-CTL-003", entry.position)
    return aborted


# The plan


class Loading:
    """A broker loads a log."""

    def __init__(self, files: Directory, around: recovery.Around, decompress: Decompress, settings: Settings) -> None:
        self.files, self.around, self.decompress, self.settings = files, around, decompress, settings
        self.bases = [base for base in base_offsets(files) if base >= 0]
        self.scans: dict[int, Scanned] = {}
        self.plan = recovery.Plan(end=around.log_start)
        self.log_start = around.log_start
        self.snapshots = {at: files[file_name(at, SNAPSHOT)] for at in snapshot_offsets(files)}
        self.states: dict[int, Producers] = {}

    def run(self) -> recovery.Plan:
        """Return what the broker does to the logs."""
        kept = self.bases
        for base in self.bases:  # SEG-RCV-006, SEG-RCV-034
            if recovery.is_scanned_anyway(self.files, base):
                self.scan(base)
                if "SEG-RCV-023" in self.scans[base].rules:
                    raise NotStarted("SEG-LOG-006", 0)
        for number in range(recovery.first_scanned(self.bases, self.around), len(self.bases)):
            if self.scan(self.bases[number]):  # SEG-RCV-004
                kept = self.bases[: number + 1]
                break
        end = self.end_of(kept)
        self.plan.restarts = end < self.around.log_start  # SEG-RCV-007
        self.plan.dropped = self.bases if self.plan.restarts else self.bases[len(kept) :]
        self.plan.end = max(end, self.around.log_start)
        self.plan.scanned = sorted(self.scans)
        scans = sorted(self.scans.items())
        self.plan.cuts = [recovery.Cut(base, each.position, each.end, each.rules) for base, each in scans if each.rules]
        return self.plan

    def scan(self, base: int) -> int:
        """Scan a segment, or what an earlier scan kept of it; return the bytes to remove."""
        log, before = self.files[file_name(base, LOG)], self.scans.get(base)
        size = len(log) if before is None else before.position
        producers = self.producers_at(base)
        found = scan_like_broker(log[:size], base, self.settings, producers, self.decompress)
        if before is not None and before.rules and not found.rules:
            found.rules = before.rules
        self.scans[base] = found
        above = min((each for each in self.bases if each > base), default=2**63)
        if above > self.log_start:  # SEG-RCV-035: the broker writes a snapshot there
            self.states[above] = producers
        return size - found.position

    def end_of(self, kept: list[int]) -> int:
        """Return the end of the log."""
        if not kept:
            return self.around.log_start
        last = kept[-1]
        if last in self.scans:
            return self.scans[last].end
        end = trusted_end(self.files[file_name(last, LOG)], self.files.get(file_name(last, INDEX), b""), last)
        stays = without_strays(self.snapshots, self.bases)
        self.snapshots = {at: data for at, data in self.snapshots.items() if at in stays}
        if self.snapshots or self.states:
            self.log_start = max(self.log_start, self.bases[0])
            self.rebuilt(end)
        return end

    # The producers that a broker knows (SEG-RCV-002)

    def producers_at(self, base: int) -> Producers:
        """Return the producers where a segment begins."""
        if base not in self.states:
            self.states[base] = self.rebuilt(base)
        return Producers(self.states[base])

    def rebuilt(self, offset: int) -> Producers:
        """Return the producers at an offset: of the newest snapshot above the log start, and the batches after it."""
        usable = range(self.log_start + 1, offset + 1)
        self.snapshots = {at: data for at, data in self.snapshots.items() if at in usable}
        self.states = {at: state for at, state in self.states.items() if at in usable}
        start = max(self.states, default=self.log_start)
        producers = Producers(self.states.get(start, {}))
        for at in sorted(self.snapshots):
            if at > start and is_readable(self.snapshots[at]):  # SEG-PSN-005
                start, producers = at, producers_in(self.snapshots[at])
        for base, above in pairwise([*self.bases, 2**63]):
            if base < offset and start < min(offset, above):
                self.read_batches(base, start, producers)
        return producers

    def read_batches(self, base: int, start: int, producers: Producers) -> None:
        """Apply the batches of a segment from the first that ends at an offset or above; checksums do not count."""
        log, is_found = self.files[file_name(base, LOG)], False
        index = Slots(OffsetIndexEntry, self.files.get(file_name(base, INDEX), b""))
        for position, end, producer in passed(log, max(searched(index, max(start, base) - base), 0)):
            is_found = is_found or end > max(start, base)
            if is_found and producer >= 0:
                self.read_batch(log, position, producers)

    def read_batch(self, log: bytes, position: int, producers: Producers) -> None:
        """Apply one batch; a broker that fails on it does not start."""
        try:
            apply_producer(next(walk(log, position, takes_later_magic=True)), producers, self.decompress)
        except NotStarted:
            raise
        except Damage as damage:
            if not damage.rule.startswith("SEG-BAT-002"):
                raise NotStarted(damage.rule, position) from None

    @property
    def epochs(self) -> Epochs:
        """The leader epochs of the segments that were scanned and stay."""
        kept = [base for base in sorted(self.scans) if base not in self.plan.dropped]
        return [each for base in kept for each in self.scans[base].epochs]


def split_like_broker(files: dict[str, bytes], base: int, decompress: Decompress) -> None:
    """Split a segment, each part named by its first entry (SEG-RCV-022); only if its last entry is too far above."""
    log = files[file_name(base, LOG)]
    try:
        found = list(walk(log))
    except Damage as damage:
        raise NotStarted(damage.rule, damage.position) from None
    if found[-1].end < len(log):
        raise NotStarted(recovery.tail_rule(log[found[-1].end :]), found[-1].end)
    last = found[-1].last_offset
    rows = [(entry.position, first_offset(entry, decompress), entry.last_offset) for entry in found]
    if last >= 2**63 - 1 or last - base <= MOST_AHEAD or not all(0 <= b - a <= MOST_AHEAD for _, a, b in rows):
        raise NotStarted("SEG-LOG-009", 0)
    bases, starts = [rows[0][1]], [0]
    for position, first, end in rows:
        if not 0 <= end - bases[-1] <= MOST_AHEAD:
            bases.append(first)
            starts.append(position)
    if bases != sorted(set(bases)) or bases[0] < 0:
        raise NotStarted("SEG-LOG-006", 0)
    recovery.put_parts(files, base, bases, starts)


# What becomes of the files


def write_files(files: dict[str, bytes], known: Directory, loading: Loading, settings: Settings) -> None:
    """Write the indexes of scanned segments, and an empty time index where one is missing (SEG-RCV-025)."""
    for base in base_offsets(files):
        found = loading.scans.get(base)
        if found is None and base in base_offsets(known):
            if settings.has_time_index:
                files.setdefault(file_name(base, TIME_INDEX), b"")
            continue
        found = found or Scanned()
        recovery.put_indexes(files, base, found.indexes, transaction_index.as_bytes(found.aborted), settings)


def remove_snapshots(files: dict[str, bytes], plan: recovery.Plan, log_start: int) -> None:
    """Remove snapshots as a broker does: also those at the log start or below, and unless the end is one, the last."""
    bases = base_offsets(files)
    kept = without_strays(snapshot_offsets(files), bases)
    if bases[-1] in plan.scanned:  # SEG-RCV-035
        kept = [at for at in kept if at in bases or at == plan.end]
    keep_snapshots(files, (at for at in kept if max(bases[0], log_start) < at <= plan.end))  # SEG-RCV-027


def change_epochs(files: dict[str, bytes], plan: recovery.Plan, found: Epochs, log_start: int) -> None:
    """Add leader epochs one by one, then remove: so a high one keeps lower ones out (SEG-RCV-036)."""
    known, loaded = read_epochs(files.get(LEADER_EPOCHS, b"")), list[tuple[int, int]]()
    for each in known:  # SEG-CKP-015
        loaded = assigned(loaded, *each)
    end = recovery.epochs_end(plan, found, log_start)
    epochs = [] if plan.restarts else within(with_newer(loaded, found), log_start, end)  # SEG-RCV-007, SEG-RCV-037
    is_kept = epochs == loaded and not any(start <= log_start for _, start in loaded)
    if epochs != known and not is_kept:
        files[LEADER_EPOCHS] = checkpoint(epochs)

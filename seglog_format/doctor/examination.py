"""What is wrong with partition and log directories: the owners of the facts are asked, and what they say is ranked."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from seglog_format.checks.verify import repeated_partitions, verify
from seglog_format.cluster.cluster import Cluster
from seglog_format.doctor import starts
from seglog_format.doctor.sizes import sizes_of, stamped_late, uncleaned
from seglog_format.doctor.statements import READERS, Hurt, Kind, Statement, typed
from seglog_format.doctor.transactions import Coordinator, Standing, open_transactions, unlisted
from seglog_format.errors import Location
from seglog_format.field_names import kafka_name
from seglog_format.log.directory import LogDirectories, LogDirectory, log_directory_above
from seglog_format.log.gaps import COMPACTED_TOPICS, tiered_gap
from seglog_format.log.listing import list_log_directory
from seglog_format.log.path_kind import PathKind, path_kind, require_directory
from seglog_format.log.side_files import topic_id_of
from seglog_format.names import DELETE_STATE, METADATA_TOPICS, FileKind, segment_file_name
from seglog_format.tier.local_metadata import LocalMetadataTopic
from seglog_format.tier.segments import SegmentState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from seglog_format.checks.finding import Finding
    from seglog_format.doctor.sizes import Sizes
    from seglog_format.doctor.transactions import OpenTransaction
    from seglog_format.log.listing import PartitionEntry
    from seglog_format.log.partition import Partition
    from seglog_format.log.remote_store import KnowsTiered, RemoteCopies
    from seglog_format.tier.segments import RemoteSegment

    Guard: TypeAlias = Callable[[object], AbstractContextManager[None]]


# -- why segments of a tiered partition are not in the remote store, as far as the files show a reason -----------------


def uncopied(
    entry: PartitionEntry,
    directory: LogDirectory,
    partition: Partition,
    remote: KnowsTiered,
    topic: LocalMetadataTopic,
) -> Iterator[Statement]:
    """Yield the segments that brokers have not copied and do not remove, except those that are copied next.

    Args:
        entry: of the partition.
        directory: the log directory.
        partition: opened.
        remote: knows what the store holds.
        topic: the metadata topic in the log directories, which knows which copies have begun.

    Raises:
        UsageError: the store does not answer.
        FormatError: the log of the metadata topic is damaged.
    """
    copies = remote.copies(partition.listing, partition.log_end_offset)
    if copies is None:
        yield from _nothing_of_it(entry, partition, topic)
        return
    begun = _begun(entry, partition, topic)
    for segment, following in pairwise(partition.segments):
        first, last = max(segment.base_offset, partition.log_start_offset), following.base_offset - 1
        missing = copies.missing(first, last) if first <= last else None
        reason = None if missing is None else _reason(partition, copies, begun, first, last)
        snapshots = {each.base_offset for each in partition.listing.snapshots}
        if missing is not None and reason is None and following.base_offset not in snapshots:
            name = segment_file_name(following.base_offset, FileKind.PRODUCER_SNAPSHOT)
            reason = f"{name} is not here, which brokers copy with it", "SEG-ROL-015"
        if reason is not None:
            why, rule = reason
            what = f"offsets {first} to {last} are not in the remote store, so retention keeps this segment: {why}"
            step = typed("retain", entry.path, "--config", "remote.storage.enable=true")
            if rule == "SEG-LKP-012":
                step = typed("transactions", directory.path)
            where, hurt = Location(segment.path), (Hurt.UPLOADER, Hurt.RETENTION)
            rules = tuple(dict.fromkeys(("SEG-RET-014", rule)))
            yield Statement(Kind.TIER, what, where, rules, hurt, step, None, first)


def _nothing_of_it(entry: PartitionEntry, partition: Partition, topic: LocalMetadataTopic) -> Iterator[Statement]:
    """Yield that the store has segments of other partitions of the topic, and none of this one, which has some."""
    name, number = entry.name.topic_partition
    others = sorted({each.partition for each in topic.of(partition.listing) or () if each.topic == name} - {number})
    if others and len(partition.segments) > 1:
        count = len(partition.segments) - 1
        what = (
            f"no segment of this partition is in the remote store, {count} could be, and segments of partition"
            f" {others[0]} of its topic are: look for errors of copying in the log of its leader"
        )
        step = typed("retain", entry.path, "--config", "remote.storage.enable=true")
        hurt = (Hurt.UPLOADER, Hurt.RETENTION)
        yield Statement(Kind.TIER, what, Location(str(entry.path)), ("SEG-RET-014",), hurt, step)


def _begun(entry: PartitionEntry, partition: Partition, topic: LocalMetadataTopic) -> list[RemoteSegment]:
    """Return the segments of which a copy has begun and not ended, the newest first."""
    known, topic_id = topic.of(partition.listing) or {}, topic_id_of(entry.path)
    of_partition = (
        segments
        for each, segments in known.items()
        if (each.topic, each.partition) == entry.name.topic_partition and topic_id in {None, each.topic_id}
    )
    found = (each for segments in of_partition for each in segments.segments.values())
    begun = (each for each in found if each.state is SegmentState.COPY_SEGMENT_STARTED)
    return sorted(begun, key=lambda each: -each.event_timestamp_ms)


def _reason(
    partition: Partition, copies: RemoteCopies, begun: list[RemoteSegment], first: int, last: int
) -> tuple[str, str] | None:
    """Return why a segment is not copied, and the rule; None if it is only not copied yet."""
    stable = partition.last_stable_offset
    if last >= stable and partition.transactions.open_offsets:
        return f"it ends above the last stable offset, {stable}, and a transaction is open there", "SEG-LKP-012"
    attempt = next((each for each in begun if each.start_offset <= last and each.end_offset >= first), None)
    if attempt is not None:
        return f"broker {attempt.broker_id} has begun to copy it, and has not ended", "SEG-RLM-014"
    if last <= copies.highest_offset:
        return f"{copies.where} has had offsets up to {copies.highest_offset}, and does not have these", "SEG-RET-014"
    return None


# -- what is wrong with partition and log directories: the owners of the facts are asked, and what they say is ranked --


CHECKSUMS: Final = frozenset({"SEG-BAT-003", "SEG-MSG-004"})
"""Rules without which consumers and followers refuse an entry."""
UNREAD: Final = frozenset({"SEG-PDR-022", "SEG-PDR-030"})
"""Rules whose findings say that something could not be read."""
TIMES: Final = frozenset({"SEG-TIX-005", "SEG-TIX-006"})
"""Rules without which lookups by time and retention go by a time that the log does not have."""


class _Input(NamedTuple):
    """A path to examine.

    Attributes:
        path: of a log directory, or of a partition directory.
        directory: the log directory.
        partition: the path, if it is that of a partition directory; else None.
    """

    path: Path
    directory: LogDirectory
    partition: Path | None

    def entries(self) -> list[PartitionEntry]:
        """Return the partitions to examine, except those that brokers delete."""
        entries = [entry for entry in self.directory.listing.partitions if entry.name.state != DELETE_STATE]
        if self.partition is None:
            return entries
        return [entry for entry in entries if entry.path.absolute() == self.partition.absolute()]

    def holds(self, statement: Statement) -> bool:
        """Return whether a statement is about something at or below the path."""
        return Path(statement.where.path).absolute().is_relative_to(self.path.absolute())


class Examination:
    """An examination of log directories, or of partitions in them.

    Args:
        paths: of log directories and partition directories.
        now_ms: the time, in milliseconds since 1970.
        remote: knows what a remote store holds.
        limit: maximum bytes that one batch may decompress to.
        guard: returns a context that handles the errors of a named thing; the others are examined all the same.
        version: of the brokers that shall start; None for any.

    Raises:
        UsageError: a path is no directory of either kind.
    """

    def __init__(
        self,
        paths: Sequence[Path],
        *,
        now_ms: int,
        remote: KnowsTiered,
        limit: int,
        guard: Guard,
        version: str | None = None,
    ) -> None:
        self._version = version
        self._now_ms, self._remote, self._limit, self._guard = now_ms, remote, limit, guard
        self._inputs = [_input_at(path) for path in dict.fromkeys(paths)]
        self._topic = LocalMetadataTopic()
        self._rebuilt: set[str] = set()
        self.unread = False
        self.remarks: list[str] = []

    def statements(self) -> list[Statement]:
        """Return everything that is wrong, worst first, and in the order of the paths."""
        found: list[Statement] = []
        if any(given.partition is None for given in self._inputs):
            with self._guard("the log directories"):
                found += starts.about_directories(self._cluster)
                found += starts.refused_by(self._cluster, self._version) if self._version else ()
        for given in self._inputs:
            found += self._of_input(given)
        whole = [given.path for given in self._inputs if given.partition is None]
        repeated: dict[tuple[Path, Path], list[Finding]] = {}
        for each in repeated_partitions(whole) if len(whole) > 1 else ():
            repeated.setdefault((Path(each.location.path).parent, _other(each).parent), []).append(each)
        found += map(_repeated, repeated.values())
        return sorted(found, key=lambda each: each.rank)

    def sizes(self) -> Iterator[Sizes]:
        """Yield what each partition consists of; every record is decoded."""
        for given in self._inputs:
            for entry in given.entries():
                with self._guard(entry.path), given.directory.open(entry) as partition:
                    yield sizes_of(entry.path, partition, self._limit)

    @cached_property
    def _cluster(self) -> Cluster:
        """The cluster of the log directories, and of those that partitions are in."""
        known = {given.directory.path.absolute(): given.directory for given in self._inputs}
        return Cluster(LogDirectories(known.values()))

    @cached_property
    def _coordinator(self) -> Coordinator:
        """What the transaction coordinator knows; read where a transaction is open."""
        coordinator = Coordinator(self._cluster)
        self.remarks += self._cluster.coordinators.problems
        return coordinator

    def _of_input(self, given: _Input) -> list[Statement]:
        found: list[Statement] = []
        with self._guard(given.path):
            found += filter(given.holds, starts.about_directory(given.directory))
        if given.partition is not None:
            with self._guard(given.path):
                found += self._of_start(given.partition, given)
        for entry in given.entries():
            if given.partition is None:
                with self._guard(entry.path):
                    found += self._of_start(entry.path, given)
            if not entry.name.state:
                with self._guard(entry.path):
                    found += self._of_open(entry, given.directory)
        findings: list[Finding] = []
        with self._guard(given.path):
            every = verify(given.path, limit=self._limit, remote=self._remote)
            findings += (each for each in every if each.is_failure or each.requirement in TIMES)
        return self._with_findings(found, findings, given)

    def _of_start(self, path: Path, given: _Input) -> Iterator[Statement]:
        """Yield what is missing from a partition, and what a start does; other replicas may have what is lost."""
        others = [other for other in self._replicas.get(path.name, ()) if other.absolute() != path.absolute()]
        yield from starts.about_partition(path, given.directory, self._rebuilt, others)

    @cached_property
    def _replicas(self) -> dict[str, list[Path]]:
        """The partition directories of each name."""
        found: dict[str, list[Path]] = {}
        for entry in (each for given in self._inputs for each in given.entries() if not each.name.state):
            found.setdefault(entry.path.name, []).append(entry.path)
        return found

    def _of_open(self, entry: PartitionEntry, directory: LogDirectory) -> Iterator[Statement]:
        """Yield what is wrong with the records of a partition."""
        if entry.name.topic in METADATA_TOPICS:
            return
        with directory.open(entry) as partition:
            transactions = partition.transactions
            if transactions.open_offsets:
                held = self._held_back(entry, directory, partition)
                for each in open_transactions(entry, partition, self._coordinator):
                    yield _open(each, directory, held)
                yield from starts.forgotten(entry, directory, partition)
            yield from unlisted(partition, self._rebuilt)
            if transactions.damage is not None:
                self.remarks.append(f"{transactions.damage}; transactions from there on are not known")
            yield from stamped_late(entry, partition, self._now_ms)
            yield from uncleaned(entry, directory, partition, lambda topic: self._cluster.image().topic_config(topic))
            yield from uncopied(entry, directory, partition, self._remote, self._topic)

    def _held_back(self, entry: PartitionEntry, directory: LogDirectory, partition: Partition) -> tuple[Hurt, ...]:
        """Return who waits for the end of a transaction."""
        key, hurt = entry.name.topic_partition, [Hurt.COMMITTED]
        if key[0] in COMPACTED_TOPICS or key in directory.cleaner_offsets:
            hurt.append(Hurt.CLEANER)
        if tiered_gap(partition.listing, directory.log_start_offsets.get(key, 0)) is not None:
            hurt.append(Hurt.UPLOADER)
        return tuple(hurt)

    def _with_findings(self, found: list[Statement], findings: Sequence[Finding], given: _Input) -> list[Statement]:
        """Add what `verify` finds and the statements do not say, and the rules to those about missing offsets."""
        self.unread |= any(each.requirement in UNREAD for each in findings)
        partitions = {entry.path for entry in given.entries()} if given.partition is None else {given.path}

        def partition_of(path: Path) -> Path | None:
            """Return None for a file of the root: checkpoints name the partitions that they are about in texts only."""
            return path if path in partitions else path.parent if path.parent in partitions else None

        located = [(given.path / each.location.path, each) for each in findings]
        rules = {(partition_of(path), each.missing): each.requirement for path, each in located}
        said: dict[Path | None, list[Statement]] = {}
        for number, each in enumerate(found):
            partition = partition_of(Path(each.where.path))
            rule = rules.get((partition, each.offsets)) or rules.get((None, each.offsets))
            if rule and not each.requirements and each.offsets is not None:
                found[number] = each._replace(requirements=(rule,))
            said.setdefault(partition, []).append(found[number])
        said[None] = found
        left: dict[str, list[Finding]] = {}
        for path, finding in located:
            if not any(_says(one, finding, path) for one in said.get(partition_of(path), ())):
                name = str(path) if finding.missing is None else f"{path} {finding.missing}"
                left.setdefault(name, []).append(finding)
        return found + [self._of_findings(of_file, given.path) for of_file in left.values()]

    def _of_findings(self, findings: Sequence[Finding], root: Path) -> Statement:
        """Return the statement about the findings in one file."""
        first, path = findings[0], root / findings[0].location.path
        what = f"{_field(first)}expected {first.expected}, found {first.found}"
        if first.missing is not None:
            what = f"{first.missing}: {what}"
        if len(findings) > 1:
            what = f"{what}; {len(findings) - 1} more in this file"
        if str(path) in self._rebuilt:
            what = f"{what}; a broker that starts writes this file again"
        rules = tuple(dict.fromkeys(each.requirement for each in findings))
        is_refused = first.missing is not None or CHECKSUMS.intersection(rules)
        others = (Hurt.READER, Hurt.RETENTION) if TIMES.intersection(rules) else (Hurt.READER,)
        hurt = READERS if is_refused else others
        kind = Kind.DAMAGE if first.missing is None else Kind.LOSS
        is_named = path.is_file() or (path.is_dir() and not UNREAD.intersection(rules))
        step = typed("verify", path if is_named else root)
        return Statement(kind, what, replace(first.location, path=str(path)), rules, hurt, step, first.missing)


def _input_at(path: Path) -> _Input:
    require_directory(path)
    if path_kind(path) is PathKind.PARTITION:
        return _Input(path, log_directory_above(path), path)
    return _Input(path, LogDirectory(list_log_directory(path)), None)


def _says(statement: Statement, finding: Finding, path: Path) -> bool:
    """Return whether a statement says what a finding of its directory says: offsets, rule, or bytes that are cut."""
    if finding.missing is not None and statement.offsets is not None:
        first, following = statement.offsets
        if first <= finding.missing.first_offset and finding.missing.next_offset <= following:
            return True
    if finding.requirement == "SEG-PDR-025" and "SEG-RCV-021" in statement.requirements:
        return True  # there is a statement for each replaced log
    if Path(statement.where.path) != path:
        return False
    is_cut = statement.kind in {Kind.LOSS, Kind.CHANGE} and statement.where.position <= finding.location.position
    return finding.requirement in statement.requirements or (is_cut and path.suffix == ".log")


def _field(finding: Finding) -> str:
    field = finding.location.field
    return f"{kafka_name(field)}: " if field else ""


def _other(finding: Finding) -> Path:
    """Return where a partition also is, by the finding that it is in two log directories."""
    return Path(finding.found.removeprefix("it is also in "))


def _repeated(findings: Sequence[Finding]) -> Statement:
    """Return the statement about the partitions that are in the same two log directories."""
    first, other = findings[0], _other(findings[0])
    what = f"no broker starts with a partition in two log directories: it is also in {other}"
    if len(findings) > 1:
        more = f"{other.name} and {len(findings) - 1} more are also in {other.parent}"
        what = f"no broker starts with {len(findings)} partitions in two log directories: {more}"
    step = typed("diff", other, first.location.path)
    return Statement(Kind.START, what, first.location, (first.requirement,), (Hurt.BROKER,), step)


def _open(one: OpenTransaction, directory: LogDirectory, held: tuple[Hurt, ...]) -> Statement:
    epoch = "" if one.producer_epoch is None else f" with epoch {one.producer_epoch}"
    name = "" if one.transactional_id is None else f" and transactional id {one.transactional_id}"
    count = one.log_end_offset - one.first_offset
    waiting = f", and {count} {'offset waits' if count == 1 else 'offsets wait'}" if one.is_blocking else ""
    said = {
        Standing.HANGING: "no coordinator has it open, so none will end it",
        Standing.UNDECIDED: "whether its coordinator has it open cannot be seen here",
        Standing.KNOWN: "its coordinator has it open, and will end it",
    }
    what = (
        f"a transaction of producer {one.producer_id}{epoch}{name} is open from offset {one.first_offset} on{waiting};"
        f" {said[one.standing]}"
    )
    step = typed("transactions", "--producer", str(one.producer_id), directory.path)
    return Statement(Kind.READERS, what, Location(str(one.path)), ("SEG-LKP-012",), held, step, None, one.first_offset)

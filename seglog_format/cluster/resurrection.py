"""A node directory that an unmodified Kafka starts from, built from the log directories of a lost cluster."""

from __future__ import annotations

import json
import time
from collections import deque
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from seglog_format.cluster.cluster import OPEN_STATES, open_cluster, transaction_state
from seglog_format.cluster.comparison import comparisons
from seglog_format.cluster.image import GROUP_FEATURES, NEWEST, RELEASES
from seglog_format.cluster.new_image import (
    NewImage,
    NewNode,
    Note,
    add_unknown_topics,
    complete_topics,
    leave_out_refused,
    made_id,
    new_image,
    require_coordinators,
)
from seglog_format.cluster.whole_log import at_most, complete_logs, raise_ends, write_end
from seglog_format.codec.build import build_batch, build_control_batch, control_record, new_record
from seglog_format.codec.checkpoints import (
    decode_leader_epoch_checkpoint,
    encode_leader_epoch_checkpoint,
    encode_offset_checkpoint,
    encode_partition_metadata,
)
from seglog_format.codec.coordinator_records import encode_metadata_record
from seglog_format.codec.encode import encode_batch
from seglog_format.errors import FormatError, Location, SeglogError, UsageError
from seglog_format.log.gaps import Gap, GapKind, watch_over
from seglog_format.log.index_file import ProducerSnapshot
from seglog_format.log.listing import list_partition
from seglog_format.log.partition import Partition
from seglog_format.log.transactions import Transactions, read_on
from seglog_format.model import INT32_MAX, INT64_MAX, CheckpointedOffset, ControlRecordType, EpochStart, Record
from seglog_format.names import METADATA_TOPIC, TRANSACTION_STATE, FileKind, segment_file_name
from seglog_format.plans import recover
from seglog_format.recovery.apply import RecoveryOptions
from seglog_format.recovery.plan import plan_of_logs, replaced_or_hidden
from seglog_format.recovery.planned_files import read_leader_epochs
from seglog_format.recovery.salvage import salvaged_log
from seglog_format.storage.copying import copy_file, link_file, pieces_of
from seglog_format.storage.files import Replace
from seglog_format.storage.new_directory import all_or_nothing, require_new, write_new_file

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from seglog_format.cluster.cluster import Cluster
    from seglog_format.cluster.comparison import Replica, Replicas
    from seglog_format.cluster.image import Fields, ImageRecord, Release
    from seglog_format.cluster.whole_log import WholeLog
    from seglog_format.log.directory import PathOrPaths, TopicPartition
    from seglog_format.log.listing import SegmentFiles
    from seglog_format.log.remote_store import RemoteStore
    from seglog_format.recovery.apply import PreparedRecovery
    from seglog_format.recovery.plan import RecoveryPlan


# -- examination of replicas: where each log ends, and which leader epochs it has, after a broker recovers it ----------


def examined(replicas: Replicas, on_replica: Callable[[Replica], None] | None = None) -> Replicas:
    """Return the replicas as they will be after a broker recovers them from their first offset.

    Every log is read whole. No file is changed.

    Args:
        replicas: to examine.
        on_replica: called with each replica before it is read.
    """
    return {key: tuple(_examined(copy, on_replica) for copy in copies) for key, copies in replicas.items()}


def _examined(copy: Replica, on_replica: Callable[[Replica], None] | None) -> Replica:
    if on_replica is not None:
        on_replica(copy)
    try:
        recovery = recover(copy.path, options=RecoveryOptions(is_full_scan=True))
        plan, epochs = recovery.plan, _epochs_after(copy, recovery)
    except SeglogError as error:
        return _with_logs_alone(copy, str(error))
    if plan.restarts:
        return _with_logs_alone(copy, next(_damages(copy, plan)))
    end = max(plan.log_end_offset, copy.log_start_offset)
    with Partition(list_partition(copy.path)) as partition:
        damages = [*(list(_damages(copy, plan)) or _unread(partition)), *_gaps(partition)]
    return _with_epochs(copy, epochs, end)._replace(log_end_offset=end, damage="; ".join(damages), cut=plan.cut)


def _with_epochs(copy: Replica, epochs: tuple[EpochStart, ...], end: int) -> Replica:
    """Return a replica with leader epochs, and those above them that its checkpoint names.

    A broker that loads a log forgets an epoch that begins at its end. But in a log that retention has emptied, this is
    the epoch of the last leader.
    """
    latest = epochs[-1].epoch if epochs else -1
    above = tuple(each for each in copy.known_epochs if each.epoch > latest)
    at_end = tuple(each for each in above if each.start_offset == end)
    return copy._replace(epochs=epochs + at_end, known_epochs=epochs + above)


def _with_logs_alone(copy: Replica, error: str) -> Replica:
    """Return a replica as its logs alone: a file cannot be read, or its log start offset is above its end.

    A broker builds the other files. The log counts up to the first file that cannot be opened, although a node
    also gets the intact entries after it: a replica without such a hole is better.
    """
    plan = plan_of_logs(copy.path)
    if not plan.scanned and not any(each.entry_count for each in salvaged_log(list_partition(copy.path)).reports):
        return copy._replace(log_end_offset=None, damage=error)
    damages = [error, "only its logs are taken"]
    with suppress(SeglogError):
        damages += _damages(copy, plan)
    end = plan.log_end_offset
    return _with_epochs(copy, _epochs_of_batches(copy, end), end)._replace(
        log_end_offset=end, damage="; ".join(dict.fromkeys(damages)), cut=plan.cut, has_logs_alone=True
    )


def _unread(partition: Partition) -> list[str]:
    """Return what readers leave out, and where they end before a broker does, which takes a batch by its checksum."""
    gaps = list[Gap]()
    try:
        deque(partition.records(on_gap=gaps.append), maxlen=0)
    except FormatError as error:
        return [str(error)]
    return at_most([gap.span_text for gap in gaps if gap.kind is GapKind.CONTROL_BIT])


def _gaps(partition: Partition) -> list[str]:
    """Return texts about offsets up to the last entry that no reader gets: another replica may have them."""
    gaps, watch = list[Gap](), watch_over(partition.listing)
    if partition.segments:
        *before, last = partition.segments
        gaps = [*watch.gaps({each.base_offset: each.next_offset for each in before}), *watch.overlaps(last.base_offset)]
    return at_most([gap.span_text for gap in gaps if gap.is_loss and gap.kind is not GapKind.DAMAGED])


def _damages(copy: Replica, plan: RecoveryPlan) -> Iterator[str]:
    """Yield a text for each part of a replica that is lost, with the reason."""
    if plan.restarts:
        yield f"it ends below its checkpointed log start offset, {copy.log_start_offset}: a broker drops every record"
        return
    if plan.cut is not None:
        yield plan.cut.reason
    for lost in replaced_or_hidden(copy.path, plan):
        yield f"{lost.file} {lost.reason.value}: {lost.missing.span}"


def _epochs_after(copy: Replica, recovery: PreparedRecovery) -> tuple[EpochStart, ...]:
    """Return the leader epochs after a recovery; those that the checkpoint lacks are taken from batches."""
    path = copy.path / FileKind.LEADER_EPOCH_CHECKPOINT.value
    known = read_leader_epochs(path)
    if known is None:
        return _epochs_of_batches(copy, recovery.plan.log_end_offset)
    written = (step.data for step in recovery.steps if isinstance(step, Replace) and step.path == path)
    data = next(written, None)
    return known if data is None else decode_leader_epoch_checkpoint(data, Location(str(path))).entries


def _epochs_of_batches(copy: Replica, end: int) -> tuple[EpochStart, ...]:
    """Return the leader epochs of batches up to the first damage, in place of an unreadable checkpoint.

    Epochs that begin at the end of the log or above it are left out: the base offset of their batch is damaged.
    """
    found: list[EpochStart] = []
    with suppress(FormatError), Partition(list_partition(copy.path)) as partition:
        for header in (batch.header for batch in partition.batches()):
            epoch, offset = header.partition_leader_epoch, header.base_offset
            if offset is not None and epoch > (found[-1].epoch if found else -1):
                found.append(EpochStart(epoch, offset))
    return tuple(each for each in found if each.start_offset < end)


# -- notes and precautions for a new node: open transactions, producer ids, directories that brokers renamed -----------


PRODUCER_ID_DISTANCE: Final = 1_000_000
"""Distance of new producer ids from the highest known one, because snapshots lack the latest producers."""

MAX_PRODUCER_ID: Final = INT64_MAX - 2 * PRODUCER_ID_DISTANCE
"""Higher producer ids count as damage: a node would have no ids left above them."""


def note_directories(made: NewImage, cluster: Cluster) -> None:
    """Note the log directories that another process holds, and the partition directories that cannot be opened."""
    for directory in cluster.directories.directories:
        if directory.is_locked:
            text = "a broker or another writer holds its lock file; what it writes during the copy may be missing"
            made.note(str(directory.path), text)
        for error in directory.listing.blocked:
            made.note(PurePath(error.location.path).name, f"left out: {error}")


def note_unread(made: NewImage, replicas: Replicas) -> None:
    """Note the replicas that were not taken and of which a file cannot be read: it may hold more than is known."""
    for key, copies in replicas.items():
        for copy in copies if key in made.logs else ():
            if copy.has_logs_alone and copy.path != made.logs[key].path:
                made.note(f"{key[0]}-{key[1]}", f"{copy.path} is damaged, and was not taken: {copy.damage}")


def note_renamed(made: NewImage, cluster: Cluster) -> None:
    """Note the renamed directories that are left out, except moves to another disk: their source is still there."""
    for entry in cluster.left_out:
        name = entry.name
        if name.state != "future" or name.topic_partition not in made.logs:
            made.note(f"{name.topic}-{name.partition}", f"{entry.path} is left out: --renamed {name.state} takes it")


def note_groups(made: NewImage, cluster: Cluster, release: Release) -> None:
    """Note the groups of types that the release does not support, or that need a feature whose level was lost."""
    for name, group in sorted(cluster.coordinators.groups.items()):
        feature = GROUP_FEATURES.get(group.type)
        if feature is None or feature in made.image.features:
            continue
        kept = "" if group.type == "share" else "; its committed positions stay"
        if feature not in release.features:
            made.note(f"group {name}", f"is a {group.type} group, which Kafka {release.version} does not know{kept}")
        else:
            text = f"is a {group.type} group, which needs {feature}: its level is lost with the metadata"
            made.note(f"group {name}", f"{text}; set it with kafka-features.sh, metadata.version first{kept}")


def note_transactions(made: NewImage, cluster: Cluster, whole_logs: Mapping[TopicPartition, WholeLog]) -> None:
    """Note what happens to open transactions.

    A coordinator ends the transactions that its topic lists as open. If offsets were lost, they may include the end
    marker of a transaction that its topic lists as ended; then no coordinator ends it again.

    Args:
        made: the notes are added to it.
        cluster: the old cluster.
        whole_logs: the logs of the new node.
    """
    has_coordinator = any(topic == TRANSACTION_STATE for topic, _ in made.logs)
    known = set()
    for name, fields in sorted(cluster.coordinators.transactions.items()):
        if transaction_state(fields) in OPEN_STATES and has_coordinator:
            known.add(fields["producerId"])
            partitions = [
                f"{each['topic']}-{number}"
                for each in fields["transactionPartitions"] or ()
                for number in each["partitionIds"]
            ]
            text = (
                f"was open; its coordinator ends it, with one more offset in {', '.join(partitions) or 'no partition'}"
            )
            made.note(f"transaction {name}", text)
    for key in sorted(made.logs):
        log = whole_logs[key]
        has_all = has_coordinator and not log.missing and key not in made.ends
        offsets = () if has_all else _open_offsets(log, known)
        if offsets:
            offset = max(min(offsets), log.log_start_offset)
            text = f"a transaction is open at offset {offset}, and no producer is left to end it"
            made.note(f"{key[0]}-{key[1]}", f"{text}; with read_committed, reading stops there")


def _open_offsets(log: WholeLog, known: Collection[int]) -> Sequence[int]:
    """Return the first offsets of transactions that are open at the end of a log, except those of known producers."""
    found = Transactions(open_offsets=dict(log.open_offsets))
    with Partition(log.listing) as partition:
        read_on(found, partition.segments[log.remote_count :], log.log_start_offset)
    return [first for producer_id, first in found.open_offsets.items() if producer_id not in known]


def reserve_producer_ids(made: NewImage, cluster: Cluster) -> None:
    """Set the next producer id above all ids in the logs and the metadata, for a cluster with incomplete metadata."""
    ids = set(_producer_ids(made, cluster))
    absurd = {each for each in ids if each > MAX_PRODUCER_ID}
    for each in sorted(absurd):
        made.note("producer ids", f"the logs hold id {each}, above which none are left; it does not count")
    highest = max(ids - absurd, default=-1)
    start = max(highest + 1, made.image.next_producer_id, 0) + PRODUCER_ID_DISTANCE
    made.image.next_producer_id = start
    if highest >= 0:
        made.note("producer ids", f"the logs hold ids up to {highest}; new ones start at {start}")


def _producer_ids(made: NewImage, cluster: Cluster) -> Iterator[int]:
    yield from (fields["producerId"] for fields in cluster.coordinators.transactions.values())
    for replica in made.logs.values():
        for snapshot in list_partition(replica.path).snapshots:
            with suppress(SeglogError):
                yield from (each.producer_id for each in ProducerSnapshot.open(snapshot.path).producers)


# -- writing of an image as a metadata snapshot that a broker starts from ----------------------------------------------


RECORDS_IN_A_BATCH: Final = 1000

VERSIONS: Final = {"PARTITION_RECORD": 1}
"""Versions of records other than 0: those with directory ids, which every broker from 3.7 on reads."""


class SnapshotName(NamedTuple):
    """The two numbers in the name of a snapshot.

    Attributes:
        end_offset: the first offset of the metadata log that the snapshot does not include.
        epoch: leader epoch of the last record that it includes.
    """

    end_offset: int
    epoch: int

    def __str__(self) -> str:
        return f"{self.end_offset:020d}-{self.epoch:010d}.checkpoint"


def snapshot_batches(
    records: Iterable[ImageRecord], *, epoch: int, timestamp_ms: int, voters: Sequence[Fields] = ()
) -> Iterator[bytes]:
    """Yield the batches of a snapshot: header, records, footer.

    Args:
        records: of the image, in Kafka's order.
        epoch: leader epoch of the batches.
        timestamp_ms: of the last record that the snapshot includes.
        voters: of a dynamic quorum; empty for a static quorum, whose voters are in the configuration.

    Raises:
        UsageError: while iterating: a record cannot be stored, such as a text of more than 32,767 bytes.
    """
    head = [_control(ControlRecordType.SNAPSHOT_HEADER, {"lastContainedLogTimestamp": timestamp_ms}, timestamp_ms)]
    if voters:
        head.append(_control(ControlRecordType.KRAFT_VERSION, {"kRaftVersion": 1}, timestamp_ms))
        head.append(_control(ControlRecordType.KRAFT_VOTERS, {"voters": list(voters)}, timestamp_ms))
    yield bytes(encode_batch(build_control_batch(head, partition_leader_epoch=epoch)))
    offset = len(head)
    for values in _groups(records):
        plain = [new_record(value=value, timestamp_ms=timestamp_ms) for value in values]
        yield bytes(encode_batch(build_batch(plain, base_offset=offset, partition_leader_epoch=epoch)))
        offset += len(plain)
    foot = [_control(ControlRecordType.SNAPSHOT_FOOTER, {}, timestamp_ms)]
    yield bytes(encode_batch(build_control_batch(foot, base_offset=offset, partition_leader_epoch=epoch)))


def _control(kind: ControlRecordType, fields: Fields, timestamp_ms: int) -> Record:
    return control_record(kind, {"version": 0, **fields}, timestamp_ms=timestamp_ms)


def _groups(records: Iterable[ImageRecord]) -> Iterator[list[bytes]]:
    values: list[bytes] = []
    for kind, fields in records:
        values.append(encode_metadata_record(METADATA_TOPIC, kind, VERSIONS.get(kind, 0), fields))
        if len(values) == RECORDS_IN_A_BATCH:
            yield values
            values = []
    if values:
        yield values


# -- a node directory that an unmodified Kafka starts from -------------------------------------------------------------


SNAPSHOT: Final = SnapshotName(1000, 1)
"""Name of the metadata snapshot. Any offset above 0 is possible; at 0, brokers of 4.4 accept 8 MiB at most."""

SETTINGS: Final = """\
# Settings for the first start. No topic deletes by retention; resurrection.jsonl has the old settings.
process.roles=broker,controller
node.id={node_id}
controller.quorum.voters={node_id}@localhost:9093
listeners=PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093
controller.listener.names=CONTROLLER
log.dirs={path}
# Positions of groups and states of transactions that no client uses are kept; set back when all clients have come back.
offsets.retention.minutes=2147483647
transactional.id.expiration.ms=2147483647
# Positions that brokers before 2.1 wrote have an expiry time of their own, which has passed: no check for ten years.
offsets.retention.check.interval.ms=315360000000
transaction.remove.expired.transaction.cleanup.interval.ms=2147483647
auto.create.topics.enable=false
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
"""


@dataclass(frozen=True, slots=True)
class PreparedResurrection:
    """A plan to write a node directory. Nothing is written before `apply`, and the sources are never changed.

    Attributes:
        target: the new log directory; None for a plan that cannot be applied.
        cluster_id: cluster id of the node: that of the old cluster if it is known.
        node: the node.
        made: its metadata, its logs, and the differences from the old cluster.
        link_closed: whether to create hard links to closed segments instead of copies.
    """

    target: Path | None
    cluster_id: str
    node: NewNode
    made: NewImage
    link_closed: bool
    _recovery_points: dict[Path, int] = field(repr=False)
    _whole_logs: dict[TopicPartition, WholeLog] = field(repr=False)
    _compared: tuple[dict[str, Any], ...] = field(repr=False)
    _sources: tuple[Path, ...] = field(repr=False)

    def report(self) -> Iterator[dict[str, Any]]:
        """Yield what will be written, as objects for JSON: the node, each log, each note, each setting to restore.

        If a partition has several replicas, each is compared with the chosen one.
        """
        image = self.made.image
        yield {
            "type": "node",
            "clusterId": self.cluster_id,
            "nodeId": self.node.node_id,
            "kafka": self.node.release.version,
            "features": image.features,
            "topicCount": len(image.topics),
        }
        for key in sorted({*self.made.logs, *self.made.ends}):
            replica, log = self.made.logs.get(key), self._whole_logs.get(key)
            held = 0 if log is None else log.log_end_offset
            end = self.made.ends.get(key, held)
            yield {
                "type": "log",
                "topic": key[0],
                "partition": key[1],
                "from": None if replica is None else str(replica.path),
                "logStartOffset": self._start(key),
                "logEndOffset": end,
                "lostOffsetCount": end - held,
                "size": 0 if replica is None else replica.size,
                "remoteSegmentCount": 0 if log is None else log.remote_count,
            }
        yield from self._compared
        for about, text in self.made.notes:
            yield {"type": "note", "about": about, "text": text}
        for topic, values in sorted(self.made.old_settings.items()):
            yield {"type": "oldSettings", "topic": topic, "settings": values}

    def apply(self, on_log: Callable[[TopicPartition], None] | None = None) -> None:
        """Write the node. The directory appears when all files are on disk; after a failure no files are left.

        Args:
            on_log: called with each topic and partition after its log was copied.

        Raises:
            UsageError: the plan has no target, the target exists now, or it is inside a source.
            WriteError: a file could not be written.
        """
        if self.target is None:
            msg = "this plan has no target: name the new directory"
            raise UsageError(msg)
        require_apart_from(self.target, self._sources)
        with all_or_nothing(self.target) as staging:
            for key, replica in sorted(self.made.logs.items()):
                self._write_log(staging, key, replica)
                if on_log is not None:
                    on_log(key)
            for key, end in sorted(self.made.ends.items()):
                directory, epoch = staging / f"{key[0]}-{key[1]}", -1
                if key in self.made.logs:
                    epoch = self.made.logs[key].leader_epoch
                else:
                    self._write_topic_id(directory, key[0])
                write_end(directory, self._start(key), end, epoch)
            self._write_root_files(staging, self.target)

    def _write_log(self, staging: Path, key: TopicPartition, replica: Replica) -> None:
        directory = staging / f"{key[0]}-{key[1]}"
        self._write_topic_id(directory, key[0])
        if replica.epochs:
            data = encode_leader_epoch_checkpoint(replica.epochs)
            write_new_file(directory, FileKind.LEADER_EPOCH_CHECKPOINT.value, [data])
        listing = self._whole_logs[key].listing
        for files, following in listing.with_following:
            if files.log in self._whole_logs[key].on_disk:
                self._write_segment(directory, files, following, self._recovery_points.get(replica.path, 0))
            else:
                pieces = pieces_of(listing.storage.open(files.log))
                write_new_file(directory, segment_file_name(files.base_offset, FileKind.LOG), pieces)
        for snapshot in listing.snapshots:
            if snapshot.base_offset <= (replica.log_end_offset or 0):
                name = segment_file_name(snapshot.base_offset, FileKind.PRODUCER_SNAPSHOT)
                copy_file(snapshot.path, directory / name)

    def _write_topic_id(self, directory: Path, topic: str) -> None:
        topic_id = next(each.topic_id for each in self.made.image.topics.values() if each.name == topic)
        write_new_file(directory, FileKind.PARTITION_METADATA.value, [encode_partition_metadata(topic_id)])

    def _start(self, key: TopicPartition) -> int:
        """Return the log start offset of a log of the node; one that nothing is left of begins at its end."""
        return self.made.logs[key].log_start_offset if key in self.made.logs else self.made.ends[key]

    def _write_segment(self, directory: Path, files: SegmentFiles, following: int | None, recovery_point: int) -> None:
        log = directory / segment_file_name(files.base_offset, FileKind.LOG)
        is_closed = following is not None and following <= recovery_point
        (link_file if self.link_closed and is_closed else copy_file)(files.log, log)
        for path, kind in (
            (files.offset_index, FileKind.OFFSET_INDEX),
            (files.time_index, FileKind.TIME_INDEX),
            (files.transaction_index, FileKind.TRANSACTION_INDEX),
        ):
            if path is not None:
                copy_file(path, directory / segment_file_name(files.base_offset, kind))

    def _write_root_files(self, staging: Path, target: Path) -> None:
        timestamp_ms = time.time_ns() // 10**6
        batches = snapshot_batches(self.made.image.records(), epoch=SNAPSHOT.epoch, timestamp_ms=timestamp_ms)
        write_new_file(staging, f"__cluster_metadata-0/{SNAPSHOT}", batches)
        starts = [CheckpointedOffset(*key, self._start(key)) for key in sorted({*self.made.logs, *self.made.ends})]
        write_new_file(staging, FileKind.LOG_START_OFFSET_CHECKPOINT.value, [encode_offset_checkpoint(starts)])
        write_new_file(staging, FileKind.META_PROPERTIES.value, [self._meta_properties().encode("ascii")])
        settings = SETTINGS.format(node_id=self.node.node_id, path=target.absolute())
        write_new_file(staging, "server.properties", [settings.encode()])
        lines = (json.dumps(line) + "\n" for line in self.report())
        write_new_file(staging, "resurrection.jsonl", (line.encode() for line in lines))

    def _meta_properties(self) -> str:
        return (
            f"version=1\ncluster.id={self.cluster_id}\nnode.id={self.node.node_id}\n"
            f"directory.id={self.node.directory_id}\n"
        )


def require_apart_from(target: Path, sources: Iterable[Path]) -> None:
    """Refuse a target that is inside a source's log directory, or that contains one.

    Raises:
        UsageError: it is such a target.
    """
    new = target.resolve()
    for source in {path.resolve() for path in sources}:
        if new == source or source in new.parents or new in source.parents:
            msg = f"{target} and {source}: one lies in the other; the new node needs a directory of its own"
            raise UsageError(msg)


def resurrect(  # noqa: PLR0913 - each is an option of the user
    path_or_paths: PathOrPaths,
    target: Path | str | None = None,
    *,
    kafka: str = NEWEST,
    node_id: int = 1,
    downgrade: bool = False,
    unknown_topics: bool = False,
    renamed: Collection[str] = (),
    cluster_id: str | None = None,
    partitions: Mapping[str, int] | None = None,
    link_closed: bool = False,
    remote: RemoteStore | None = None,
    on_replica: Callable[[Replica], None] | None = None,
) -> PreparedResurrection:
    """Plan a node directory that an unmodified Kafka starts from, with the same offsets in every topic.

    The node is a single broker and controller. Topics keep ids, offsets, timestamps and transactions, and groups keep
    their positions. Settings, quotas, ACLs and SCRAM users are kept if the metadata log has them. Retention is
    disabled, so the first start deletes nothing.

    Args:
        path_or_paths: the remaining log directories, of one broker or of several.
        target: the new log directory; it has to be new or empty. None for a plan that cannot be applied.
        kafka: the release that will start on it: ``3.9``, ``4.1`` or ``4.4``, or a later one of the same line.
        node_id: of the new node, 0 to 2147483647.
        downgrade: whether to allow a release that does not accept all features of the cluster.
        unknown_topics: whether to use also topics that have directories but are not in the metadata; if the metadata
            log is damaged, they are used in any case. Of two topics with one name, the one with directories is used if
            the one in the metadata has no records.
        renamed: states of renamed directories to use also: ``stray``, ``delete``, ``future``.
        cluster_id: id of the cluster whose metadata is used, if the directories have several ids.
        partitions: numbers of partitions of coordinators' topics that the metadata do not know: ``__consumer_offsets``,
            ``__transaction_state``, ``__share_group_state``. Inferred, or guessed, where none is given.
        link_closed: whether to create hard links to closed segments below the recovery point instead of copies. That is
            faster, but the sources must not be written to any more.
        remote: the store with tiered segments of the partitions, see `open_tier`; they are written to the node's
            directory. Each is read once for the plan, and once to write it.
        on_replica: called with each replica before it is read, which may take long.

    Raises:
        UsageError: a path is not a log directory, the target exists, the directories are those of several clusters,
            the node id is out of range, the release is unknown, or it does not accept the cluster's features; a
            number of partitions contradicts the directories or the metadata; or the store does not answer, or a
            decryption key is missing.
        FormatError: an object of the store does not follow its layout.

    Examples:
        >>> from seglog_format import resurrect
        >>> plan = resurrect("demo/kafka-4.3.0", "node")
        >>> len(plan.made.logs), plan.made.image.features["metadata.version"]
        (24, 30)
        >>> plan.apply()
    """
    if kafka not in RELEASES:
        msg = f"kafka is one of {', '.join(RELEASES)}, not {kafka!r}"
        raise UsageError(msg)
    if not 0 <= node_id <= INT32_MAX:
        msg = f"node_id is a number from 0 to {INT32_MAX}, not {node_id}"
        raise UsageError(msg)
    require_coordinators(partitions or {})
    new = None if target is None else Path(target)
    if new is not None:
        require_new(new)
    cluster = open_cluster(path_or_paths, renamed=renamed, cluster_id=cluster_id)
    require_one_cluster(cluster)
    if new is not None:
        require_apart_from(new, (each.path for each in cluster.directories.directories))
    new_id = cluster.cluster_id or made_id("cluster")
    node = NewNode(node_id, made_id(f"{new_id}/{node_id}"), RELEASES[kafka], downgrade)
    state, old = cluster.metadata(), cluster.image()
    problems = () if state is None else tuple(state.problems)
    replicas = examined(cluster.replicas, on_replica)
    inferred = [] if state is None else leave_out_refused(old)
    added = add_unknown_topics(old, replicas) if unknown_topics or problems else []
    inferred += complete_topics(old, cluster, replicas, None if state is None else added, partitions or {})
    made = new_image(old, replicas, node)
    made.notes[:0] = [*(Note("metadata log", text) for text in problems), *inferred]
    note_directories(made, cluster)
    note_unread(made, replicas)
    note_renamed(made, cluster)
    whole_logs = complete_logs(made, remote)
    raise_ends(made, cluster, replicas, whole_logs)
    if state is None or problems:
        reserve_producer_ids(made, cluster)
    note_groups(made, cluster, node.release)
    note_transactions(made, cluster, whole_logs)
    compared = tuple(comparisons(made.elections))
    sources = tuple(each.path for each in cluster.directories.directories)
    points = _recovery_points(cluster)
    return PreparedResurrection(new, new_id, node, made, link_closed, points, whole_logs, compared, sources)


def require_one_cluster(cluster: Cluster) -> None:
    """Refuse directories of several clusters, unless the cluster whose metadata counts is given.

    Raises:
        UsageError: the directories have several cluster ids, or none has the given id.
    """
    ids = cluster.cluster_ids
    named = "; ".join(f"{each} ({', '.join(map(str, paths))})" for each, paths in ids.items())
    if cluster.chosen_id is None and len(ids) > 1:
        msg = f"these directories belong to several clusters: {named}; give those of one, or say whose metadata counts"
        raise UsageError(msg)
    if cluster.chosen_id is not None and ids and cluster.chosen_id not in ids:
        msg = f"no directory belongs to cluster {cluster.chosen_id}, but to {named}"
        raise UsageError(msg)


def _recovery_points(cluster: Cluster) -> dict[Path, int]:
    return {
        entry.path: directory.recovery_point(key)
        for directory in cluster.directories.directories
        for key, entry in directory.partitions.items()
    }

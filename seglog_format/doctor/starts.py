"""What the start of a broker does to a log directory: whether it starts, and what it then cuts, removes or forgets."""

from __future__ import annotations

import os
import re
import shlex
from contextlib import suppress
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Final

from seglog_format.cluster.image import RELEASES, TOPIC_RESOURCE, too_high, too_low
from seglog_format.cluster.metadata_log import snapshot_state
from seglog_format.codec.framing import MAX_TRAILING_SIZE
from seglog_format.doctor.statements import READERS, Hurt, Kind, Statement, typed
from seglog_format.errors import FormatError, Location
from seglog_format.log.gaps import GapKind
from seglog_format.log.listing import list_partition
from seglog_format.log.path_kind import packed_with, unnamed_base_offset
from seglog_format.model import MetaProperties, MissingOffsets
from seglog_format.names import DELETE_STATE, METADATA_TOPICS, FileKind, segment_file_name
from seglog_format.recovery.apply import RecoveryOptions, prepare_recovery
from seglog_format.recovery.plan import LossReason, circumstances_of, losses_of
from seglog_format.recovery.planned_files import opened_segments
from seglog_format.recovery.producer_states import forgets_producers
from seglog_format.recovery.start_problems import (
    StartEffect,
    directory_number,
    has_kraft,
    has_metadata,
    missing_ids,
    start_problems,
    topic_id_read,
)
from seglog_format.storage.byte_source import read_whole
from seglog_format.storage.files import Replace

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seglog_format.cluster.cluster import Cluster
    from seglog_format.cluster.image import MetadataImage
    from seglog_format.log.directory import LogDirectory, TopicPartition
    from seglog_format.log.listing import LogDirectoryListing, PartitionEntry
    from seglog_format.log.partition import Partition
    from seglog_format.recovery.plan import Losses, LostOffsets, RecoveryPlan
    from seglog_format.recovery.segment_scan import Cut
    from seglog_format.recovery.start_problems import StartProblem


def about_directory(directory: LogDirectory) -> Iterator[Statement]:
    """Yield what a broker does not accept in a log directory beside the logs."""
    yield from (_of_problem(each, directory.path) for each in start_problems(directory.listing))
    path = directory.listing.root_files.get(FileKind.BOOTSTRAP_SNAPSHOT)
    if path is not None and has_metadata(directory.listing):
        lacks = "" if "metadata.version" in snapshot_state(path).image.features else "has no metadata.version to read"
        has_zeros = read_whole(path).endswith(bytes(MAX_TRAILING_SIZE + 1))
        if wrong := lacks or ("ends in zeros" if has_zeros else ""):
            what = f"no broker starts: {path.name} {wrong}; without the file one does, since the metadata log is here"
            step = f"mv -n {shlex.quote(str(path))} {shlex.quote(f'{path}.bad')}"
            yield Statement(Kind.START, what, Location(str(path)), ("SEG-LOG-003",), (Hurt.BROKER,), step)


def _of_problem(problem: StartProblem, directory: Path) -> Statement:
    error, is_stray = problem.error, problem.effect is StartEffect.STRAY
    what = f"{problem.effect.value}: expected {error.expected}, found {error.found}"
    kind = Kind.LOSS if is_stray else Kind.START
    hurt = {StartEffect.STRAY: READERS, StartEffect.GIVEN_UP: (Hurt.BROKER, *READERS)}
    rules = tuple(error.requirements)
    step = typed("cluster", directory) if error.location.field else typed("explain", rules[0])
    return Statement(kind, what, error.location, rules, hurt.get(problem.effect, (Hurt.BROKER,)), step)


def about_directories(cluster: Cluster) -> Iterator[Statement]:
    """Yield what a broker with all these log directories does not accept, or takes for parts of deleted topics."""
    if len(cluster.cluster_ids) > 1:
        named = "; ".join(f"{each} in {', '.join(map(str, paths))}" for each, paths in cluster.cluster_ids.items())
        what = f"no broker starts with all of these log directories: they are of several clusters: {named}"
        where = Location(str([*cluster.cluster_ids.values()][1][0] / "meta.properties"), field="cluster.id")
        step = typed("dump", where.path)
        yield Statement(Kind.START, what, where, ("SEG-LDR-005",), (Hurt.BROKER,), step)
    listings = [each.listing for each in cluster.directories.directories]
    if _shows_kraft(listings):
        for listing in listings:
            path = listing.path / "meta.properties"
            is_whole = bool(listing.root_files) or len(listings) > 1  # else it is a copy of partitions
            if is_whole and not os.path.lexists(path):
                what = "no broker starts with this log directory: it has no meta.properties"
                step = typed("resurrect", *(each.path for each in listings), "-o", "NEW")
                yield Statement(Kind.START, what, Location(str(path)), ("SEG-LDR-005",), (Hurt.BROKER,), step)
            elif not has_metadata(listing):  # else its own examination says so
                yield from (_of_problem(each, listing.path) for each in missing_ids(listing))
    yield from _of_ids_twice(cluster)
    state = cluster.metadata() if cluster.metadata_logs else None
    if state is not None and not state.has_gap and not state.problems:
        yield from _of_other_topics(cluster, state.image)
        yield from _of_absent(cluster, state.image)
    yield from _of_copies(cluster)


def _shows_kraft(listings: Sequence[LogDirectoryListing]) -> bool:
    return any(has_kraft(each) or (each.path / FileKind.BOOTSTRAP_SNAPSHOT.value).is_file() for each in listings)


def _of_ids_twice(cluster: Cluster) -> Iterator[Statement]:
    """Yield the log directories of a node that have the id of another one of it."""
    first: dict[tuple[int | None, int], Path] = {}
    for path, properties in cluster.properties.items():
        number = None if properties is None else directory_number(properties.directory_id or "")
        if properties is not None and number is not None:
            other = first.setdefault((properties.node_id, number), path)
            if other != path:
                what = f"no broker starts with all of these log directories: this one has the directory.id of {other}"
                where = Location(str(path / "meta.properties"), field="directory.id")
                yield Statement(Kind.START, what, where, ("SEG-LDR-005",), (Hurt.BROKER,), typed("dump", where.path))


def refused_by(cluster: Cluster, version: str) -> Iterator[Statement]:
    """Yield what brokers of a release do not take: directories of ZooKeeper, levels of features, settings of topics.

    Args:
        cluster: of the log directories; its metadata log is read.
        version: of the release, one of `RELEASES`.
    """
    release, image = RELEASES[version], cluster.image()
    if not cluster.metadata_logs:
        yield from () if release.has_zookeeper else _of_zookeeper(cluster, version)
        return
    where = Location(str(cluster.metadata_logs[0].path))
    paths = [each.path for each in cluster.directories.directories]
    high, low = too_high(image.features, release), too_low(image.features, release)
    for name, level in (high | low).items():
        limit = (
            f"{release.features.get(name, 0)} at most" if name in high else f"{release.least_features[name]} at least"
        )
        what = f"no broker of Kafka {version} starts: the level of {name} is {level}, and it accepts {limit}"
        step = typed("resurrect", "--kafka", version, *(("--downgrade",) if name in high else ()), *paths, "-o", "NODE")
        yield Statement(Kind.START, what, where, (), (Hurt.BROKER,), step)
    for resource, values in image.configs.items():
        for name, least in release.least_settings.items() if resource.resource_type == TOPIC_RESOURCE else ():
            value = values.get(name, "")
            if value.isascii() and value.isdecimal() and int(value) < least:
                has = f"topic {resource.name} has {name}={value}"
                what = f"no broker of Kafka {version} starts: {has}, the least is {least}"
                step = typed("cluster", "--history", resource.name, *paths)
                yield Statement(Kind.START, what, where, (), (Hurt.BROKER,), step)


def _of_zookeeper(cluster: Cluster, version: str) -> Iterator[Statement]:
    """Yield the log directories of a cluster with ZooKeeper: a broker without it does not start, or serves nothing."""
    listings = [each.listing for each in cluster.directories.directories]
    step = typed("resurrect", "--kafka", version, *(each.path for each in listings), "-o", "NODE")
    for listing in listings if not _shows_kraft(listings) else ():
        path, properties = listing.path / FileKind.META_PROPERTIES.value, cluster.properties[listing.path]
        where = Location(str(path))
        if properties is None:
            lacks = "meta.properties" if listing.root_files and not os.path.lexists(path) else ""
        else:
            lacks = ", ".join(error.location.field for error, _ in missing_ids(listing))
        if lacks:
            what = f"no broker of Kafka {version} starts: this log directory is of a cluster with ZooKeeper, without"
            yield Statement(Kind.START, f"{what} {lacks}", where, ("SEG-LDR-005",), (Hurt.BROKER,), step)
        elif properties is not None and any(not each.name.state for each in listing.partitions):
            what = (
                f"a broker of Kafka {version} renames all partitions of this log directory to -stray, unless it joins"
                " a cluster with their topics: it is of a cluster with ZooKeeper"
            )
            yield Statement(Kind.LOSS, what, where, ("SEG-LDR-008",), READERS, step)


def _of_copies(cluster: Cluster) -> Iterator[Statement]:
    """Yield the copies of partitions that a start goes on with, or that it leaves although there is no original."""
    nodes = {path: None if each is None else each.node_id for path, each in cluster.properties.items()}
    entries = [(each, entry) for each in cluster.directories.directories for entry in each.listing.partitions]
    served: dict[TopicPartition, dict[int | None, int]] = {}
    for directory, entry in (each for each in entries if not each[1].name.state):
        served.setdefault(entry.name.topic_partition, {})[nodes[directory.path]] = _begin(directory, entry)
    for directory, entry in entries:
        originals, state = served.get(entry.name.topic_partition, {}), entry.name.state
        where, node = Location(str(entry.path)), nodes[directory.path]
        if state in LEFT and not originals:
            what = f"no broker serves this copy, the only one given of its partition: {LEFT[state]}"
            step = typed("salvage", entry.path, "-o", "NEW")
            yield Statement(Kind.LOSS, what, where, ("SEG-PDR-003",), READERS, step)
        elif state == "future" and node in originals:
            begin, what = _begin(directory, entry), "a broker that starts goes on with a move: this copy then replaces"
            is_late = begin > originals[node]
            later = f", which begins at offset {begin} from then on, and not at {originals[node]}" if is_late else ""
            kind, hurt = (Kind.LOSS, READERS) if is_late else (Kind.CHANGE, (Hurt.BROKER,))
            what += f" the partition{later}"
            yield Statement(kind, what, where, ("SEG-PDR-003",), hurt, typed("ls", entry.path))


def _begin(directory: LogDirectory, entry: PartitionEntry) -> int:
    """Return where a log begins; an unreadable checkpoint has its own statement."""
    begins = [*list_partition(entry.path).base_offsets[:1], 0]
    with suppress(FormatError):
        begins.append(directory.log_start_offsets.get(entry.name.topic_partition, 0))
    return max(begins)


MOST_NAMED: Final = 5
LEFT: Final = {
    "stray": "a start found no topic id in it, an unknown one, or that the broker is not among its replicas",
    "future": "it was being made of the original, which another log directory may have, and may end before it",
}
"""Why brokers do not serve a copy, by the state in the name of the directory."""


def _of_absent(cluster: Cluster, image: MetadataImage) -> Iterator[Statement]:
    """Yield the log directories without partitions that the metadata log has there."""
    present: set[tuple[int | None, TopicPartition]] = set()
    for directory, properties in _with_properties(cluster):
        entries = (each.name for each in directory.listing.partitions if each.name.state != DELETE_STATE)
        present.update((properties.node_id, each.topic_partition) for each in entries)
    for directory, properties in _with_properties(cluster):
        number = directory_number(properties.directory_id or "")
        absent = [
            f"{topic.name}-{partition}"
            for topic in image.topics.values()
            for partition, fields in topic.partitions.items()
            if (properties.node_id, (topic.name, partition)) not in present
            for node, assigned in zip(fields["replicas"], fields.get("directories") or (), strict=False)
            if node == properties.node_id and number is not None and directory_number(assigned) == number
        ]
        if absent:
            more = f" and {len(absent) - MOST_NAMED} more" if len(absent) > MOST_NAMED else ""
            names = f"{', '.join(sorted(absent)[:MOST_NAMED])}{more}"
            what = f"partitions of this log directory are not here, and a broker that starts begins them empty: {names}"
            where, step = Location(str(directory.path)), typed("cluster", directory.path)
            yield Statement(Kind.LOSS, what, where, (), READERS, step)


def _with_properties(cluster: Cluster) -> Iterator[tuple[LogDirectory, MetaProperties]]:
    for directory in cluster.directories.directories:
        properties = cluster.properties[directory.path]
        if properties is not None:
            yield directory, properties


def _of_other_topics(cluster: Cluster, image: MetadataImage) -> Iterator[Statement]:
    """Yield the partition directories with a topic id that the metadata log does not have, or not with that number."""
    for directory in cluster.directories.directories:
        for key, entry in directory.partitions.items():
            found = None if key[0] in METADATA_TOPICS else topic_id_read(entry.path)
            known = image.topics.get(found) if found is not None else None
            if found is not None and (known is None or key[1] not in known.partitions):
                topic = known or image.topic_named(key[0])
                has = "has no such topic" if topic is None else f"has {topic.topic_id} for this topic"
                has = has if known is None else f"has no partition {key[1]} of topic {known.name}"
                what = f"{StartEffect.STRAY.value}: its topic id is {found}, and the metadata log {has}"
                where = Location(str(entry.path / "partition.metadata"), field="topic_id")
                step = typed("cluster", "--history", key[0], directory.path)
                yield Statement(Kind.LOSS, what, where, ("SEG-CKP-009",), READERS, step)


def about_partition(
    path: Path, directory: LogDirectory, rebuilt: set[str], others: Sequence[Path]
) -> Iterator[Statement]:
    """Yield what is missing from a partition, and what the start of a broker does to it.

    Args:
        path: of the partition directory.
        directory: the log directory.
        rebuilt: the files that the start writes again are added to it.
        others: other replicas of the partition, which may still have what is lost here.

    Raises:
        UnreadableError: the disk refuses a file.
        FormatError: something that is no regular file has the name of a log.
    """
    found = prepare_recovery(path, directory, options=RecoveryOptions(like_broker=True))
    plan = found.plan
    if found.failure is not None:
        plan = replace(plan, cuts=(), dropped=(), restarts=False)
        what = f"no broker starts: {found.failure.text.removeprefix('brokers do not start: ')}"
        where, rules = found.failure.location, tuple(found.failure.requirements)
        is_recovered = prepare_recovery(path, directory).failure is None
        step = typed("recover", path) if is_recovered else typed("salvage", path, "-o", "NEW")
        yield Statement(Kind.START, what, where, rules, (Hurt.BROKER,), step)
    rebuilt |= {str(step.path) for step in found.steps if isinstance(step, Replace)}
    losses, rescue = losses_of(path, plan), typed("salvage", path, *others, "-o", "NEW")
    yield from _missing(path, losses, rescue, rescue if others else typed("ls", path))
    yield from _cuts(path, plan, losses, rescue)
    yield from _removed(path, plan, losses, rescue)
    yield from _unreached(path, losses)
    for split in found.splits if found.failure is None else ():
        what = f"a broker that starts splits this segment into {len(split.parts)}: its offsets span too much"
        where = Location(str(split.files.log))
        yield Statement(Kind.CHANGE, what, where, ("SEG-RCV-022",), (Hurt.BROKER,), typed("recover", path))


def _missing(path: Path, losses: Losses, rescue: str, look: str) -> Iterator[Statement]:
    known = _spares(path) if losses.missing else {}
    for gap in losses.missing:
        if gap.kind is GapKind.NO_SNAPSHOT:
            continue  # no broker starts, which is said
        where, what = Location(gap.path, gap.position), f"{gap.missing} ({gap.kind.value})"
        spares = {base: file for base, file in known.items() if gap.first_offset <= base < gap.next_offset}
        if spares:
            first = next(iter(spares.values())).name
            what = f"{what}; {first} holds a log of these offsets under a name that no reader opens"
            what += f", and so do {len(spares) - 1} other files" if len(spares) > 1 else ""
        step = _restored(spares) if spares else look
        yield Statement(Kind.LOSS, what, where, (), READERS, step, gap.missing)
    for one in losses.hidden:
        what = f"{one.missing.span} cannot be read: this log {one.reason.value}"
        where = Location(str(path / one.file))
        yield Statement(Kind.LOSS, what, where, ("SEG-PDR-013",), READERS, rescue, one.missing)


SPARE: Final = re.compile(r"(\d{20})(\.log(\W.*)?)", re.IGNORECASE | re.DOTALL)
"""The name of a file that a program or a person has given to a log."""
MOST_SPARES: Final = 1000
"""Maximum number of files of no known kind that are searched for logs."""


def _spares(path: Path) -> dict[int, Path]:
    """Return files with logs under names that no reader opens, by base offset: renamed, packed, or set aside."""
    listing = list_partition(path)
    found: dict[int, Path] = {}
    aside = [each.path for each in listing.set_aside if each.name.kind is FileKind.LOG and each.name.suffix]
    for file in (*aside, *listing.others[:MOST_SPARES]):
        named, base_offset = SPARE.fullmatch(file.name), unnamed_base_offset(file)
        if named and (base_offset is not None or packed_with(file)):
            base_offset = int(named[1])
        if base_offset is not None:
            found.setdefault(base_offset, file)
    return found


def _restored(spares: dict[int, Path]) -> str:
    """Return the command for a shell that makes logs of such files; it replaces and removes nothing."""
    names = [SPARE.fullmatch(file.name) for file in spares.values()]
    endings, (file, *_) = {name and name[2] for name in names}, spares.values()
    directory, ending, program = shlex.quote(str(file.parent)), endings.pop(), packed_with(file)
    if len(spares) > 1 and ending and not endings:
        numbers = " ".join(segment_file_name(each, FileKind.LOG).removesuffix(".log") for each in spares)
        packed, log = f"{directory}/$f{shlex.quote(ending)}", f"{directory}/$f.log"
        how = f"cp -n {packed} {log}" if program is None else f"{program} -dc {packed} > {log}"
        return f"for f in {numbers}; do {how}; done"
    commands = []
    for base_offset, file in spares.items():
        log, program = f"{directory}/{segment_file_name(base_offset, FileKind.LOG)}", packed_with(file)
        name = shlex.quote(str(file))
        commands.append(f"cp -n {name} {log}" if program is None else f"{program} -dc {name} > {log}")
    return "; ".join(commands)


def _cuts(path: Path, plan: RecoveryPlan, losses: Losses, rescue: str) -> Iterator[Statement]:
    for cut in plan.cuts:
        lost = [one for one in losses.lost if one.file == Path(cut.path).name and one.reason is LossReason.CUT]
        yield _cut(path, cut, lost, rescue)


def _cut(path: Path, cut: Cut, lost: Sequence[LostOffsets], rescue: str) -> Statement:
    where, what = Location(cut.path, cut.position), f"a broker that starts cuts {cut.size} bytes here: {cut.reason}"
    offsets = _spanned(lost)
    if offsets is None or not offsets.offset_count:
        what = f"{what}; no whole entry is among them"
        return Statement(Kind.CHANGE, what, where, cut.requirements, (Hurt.BROKER,), typed("recover", path))
    return Statement(Kind.LOSS, f"{what}; lost: {offsets.span}", where, cut.requirements, READERS, rescue, offsets)


def _removed(path: Path, plan: RecoveryPlan, losses: Losses, rescue: str) -> Iterator[Statement]:
    if plan.dropped:
        lost = [one for one in losses.lost if one.reason is LossReason.DROPPED]
        name, count = lost[0].file if lost else f"{plan.dropped[0]:020}.log", len(plan.dropped)
        offsets, rule = _spanned(lost), "SEG-RCV-007" if plan.restarts else "SEG-RCV-004"
        why = ": the log ends below its log start offset" if plan.restarts else ", because of the damage before it"
        what = f"a broker that starts removes {count} {'segment' if count == 1 else 'segments'} from here on{why}"
        if offsets is None:
            yield Statement(Kind.CHANGE, what, Location(str(path / name)), (rule,), (Hurt.BROKER,), rescue)
        else:
            what = f"{what}; lost: {offsets.span}"
            yield Statement(Kind.LOSS, what, Location(str(path / name)), (rule,), READERS, rescue, offsets)
    replaced = [one for one in losses.lost if one.reason is LossReason.REPLACED and not losses.is_compacted]
    for name, each in groupby(replaced, key=lambda one: one.file):
        offsets = _spanned(list(each))
        what = f"a broker that starts removes this log, which .swap files replace; lost: {offsets and offsets.span}"
        yield Statement(Kind.LOSS, what, Location(str(path / name)), ("SEG-RCV-021",), READERS, rescue, offsets)


def _unreached(path: Path, losses: Losses) -> Iterator[Statement]:
    for one in losses.lost:
        if one.reason is LossReason.UNREACHED:
            what = f"a broker that starts appends at {one.missing.first_offset}; {one.missing.span}, are lost"
            where, step = Location(str(path / one.file)), typed("recover", "--full-scan", "--write", path)
            yield Statement(Kind.LOSS, what, where, ("SEG-RCV-001",), READERS, step, one.missing)


def _spanned(lost: Sequence[LostOffsets]) -> MissingOffsets | None:
    """Return the range from the first to the last of lost offsets; None if there are none."""
    if not lost:
        return None
    return MissingOffsets(min(one.missing.first_offset for one in lost), max(one.missing.next_offset for one in lost))


def forgotten(entry: PartitionEntry, directory: LogDirectory, partition: Partition) -> Iterator[Statement]:
    """Yield the open transactions that a broker which starts does not know: it delivers their records."""
    listing, opened = partition.listing, partition.transactions.open_offsets
    if not opened:
        return
    with opened_segments(listing) as segments:
        if not forgets_producers(segments, listing.snapshots, circumstances_of(listing, directory)):
            return
    for producer_id, first_offset in sorted(opened.items(), key=lambda item: item[1]):
        what = (
            f"a broker that starts forgets producer {producer_id}, because no producer snapshot is here:"
            f" consumers of committed records get the records of its open transaction from offset {first_offset} on"
        )
        step = typed("transactions", "--producer", str(producer_id), directory.path)
        where, hurt = Location(str(entry.path)), (Hurt.COMMITTED,)
        yield Statement(Kind.READERS, what, where, ("SEG-PSN-010",), hurt, step, None, first_offset)

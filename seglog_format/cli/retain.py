"""``seglog retain``: the plan of retention and compaction with its reasons, and its execution."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Final

import click

from seglog_format.cleaning.compaction import CompactionAction
from seglog_format.cleaning.retention import RetentionLimits, is_copied
from seglog_format.cli.main import PassingOver
from seglog_format.cli.options import PATH, json_option, path_argument, remote_options, to_timestamp_ms
from seglog_format.cli.output import (
    LEFT,
    count_text,
    diagnose,
    printable,
    progress,
    size_text,
    styled,
    table,
    time_text,
    write_lines,
)
from seglog_format.errors import UsageError
from seglog_format.names import METADATA_TOPICS
from seglog_format.state.config import LogConfig, topic_settings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from seglog_format.cleaning.compaction import SegmentCompaction
    from seglog_format.cleaning.compaction_apply import Compacted
    from seglog_format.cleaning.deletion import PreparedRetention
    from seglog_format.cleaning.retention import SegmentFate
    from seglog_format.cli.options import RemoteChoice
    from seglog_format.cluster.image import MetadataImage
    from seglog_format.log.directory import LogDirectory
    from seglog_format.log.remote_store import KnowsTiered
    from seglog_format.storage.files import FileStep


# -- the settings that a command takes for each topic: options first, then the metadata log, a file, and defaults ------


class TopicSettings:
    """Finds the settings of a topic, and reports those that come from the metadata log.

    Args:
        directory: the log directory, whose metadata log is read if there is one.
        given: settings from options, by the names of topics or brokers; they override all others.
        config_file: such as a `server.properties`, of which only the settings of logs are used; None for none.

    Raises:
        UsageError: the file cannot be read.
        UnreadableError: the disk refuses the metadata log.
    """

    def __init__(self, directory: LogDirectory, given: Mapping[str, str], config_file: Path | None) -> None:
        found = {} if config_file is None else topic_settings(_read(config_file))
        self._file = {name: value for name, value in found.items() if LogConfig.has_setting(name)}
        self._given = topic_settings(given)
        self._image, self._node_id, self._is_complete = _metadata(directory)
        self._reported: set[str] = set()

    def of(self, topic: str) -> LogConfig:
        """Return the settings of a topic.

        Raises:
            UsageError: a setting is not known, or a value does not fit.
        """
        return LogConfig.from_properties(self._file | self._stored(topic) | self._given)

    def _stored(self, topic: str) -> dict[str, str]:
        if self._image is None:
            return {}
        found = self._image.topic_config(topic, self._node_id)
        shown = " ".join(f"{name}={value}" for name, value in sorted(found.items()) if name not in self._given)
        if shown and topic not in self._reported:
            self._reported.add(topic)
            diagnose(printable(f"{topic}: settings from the metadata log: {shown}"))
        if self._is_complete and self._image.topic_named(topic) is not None:
            found.setdefault("remote.storage.enable", "false")  # no setting of a broker stands for it
        return found


def _metadata(directory: LogDirectory) -> tuple[MetadataImage | None, int | None, bool]:
    """Return the image of the cluster, the broker's id, and whether the image is complete.

    There is no image without a metadata log in the directory.
    """
    if not any(topic in METADATA_TOPICS for topic, _ in directory.partitions):
        return None, None, False
    from seglog_format.cluster.cluster import open_cluster

    cluster = open_cluster(directory.path)
    state, properties = cluster.metadata(), next(iter(cluster.properties.values()))
    if state is None:
        return None, None, False
    for problem in state.problems:
        diagnose(printable(f"settings of topics may be incomplete: {problem}"))
    return state.image, None if properties is None else properties.node_id, not state.problems


def _read(config_file: Path) -> dict[str, str]:
    from seglog_format.schema.text import properties

    try:
        pairs = properties(config_file.read_bytes())
    except OSError as error:
        msg = f"{config_file}: {error.strerror}"
        raise UsageError(msg) from error
    if pairs is None:
        msg = f"{config_file}: not a properties file"
        raise UsageError(msg)
    return dict(pairs)


# -- ``seglog retain`` -------------------------------------------------------------------------------------------------


EPILOG: Final = """\b
Examples:
  seglog retain my-topic-0 --config retention.ms=3600000
  seglog retain /var/lib/kafka/data --config-file server.properties
  seglog retain my-topic-0 --config log.retention.hours=12 --now 2026-01-31
  seglog retain --write my-topic-0 --config retention.bytes=1073741824
  seglog retain my-topic-0 --config cleanup.policy=compact,delete
  seglog retain my-topic-0 --remote tier --config remote.storage.enable=true"""


def settings_of(_context: click.Context, _parameter: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """Parse ``--config``: pairs of name and value."""
    for value in values:
        if "=" not in value:
            msg = f"{value!r} is not a setting such as retention.ms=3600000"
            raise click.BadParameter(msg)
    return dict(value.split("=", 1) for value in values)


@click.command(epilog=EPILOG)
@path_argument
@click.option(
    "--config",
    "given",
    multiple=True,
    callback=settings_of,
    metavar="NAME=VALUE",
    help="A setting of the topic or of the broker; may be given several times.",
)
@click.option(
    "--config-file", type=PATH, metavar="FILE", help="Take settings from this file, such as a server.properties."
)
@click.option("--now", callback=to_timestamp_ms, metavar="TIME", help="Assume this time: milliseconds or an ISO time.")
@click.option("--explain", is_flag=True, help="Only show the fate of each segment, and why; the default.")
@click.option("--write", is_flag=True, help="Carry the plan out; without this nothing is changed.")
@remote_options
@json_option
def command(  # noqa: PLR0913 - one for each option
    path: Path,
    *,
    given: dict[str, str],
    config_file: Path | None,
    now: int | None,
    explain: bool,
    write: bool,
    remote: RemoteChoice | None,
    as_json: bool,
) -> int:
    """Show which segments of PATH, a partition or log directory, retention removes; with --write, remove them.

    Settings are those of --config, by the names of Kafka's topics (retention.ms, cleanup.policy and so on) or brokers
    (log.retention.hours and so on); then those that the metadata log in the directory has for the topic and the broker;
    then those of --config-file; then Kafka's defaults. Without a metadata log, as in clusters that used ZooKeeper, give
    the topic's settings. Log start offset and high watermark are those of the checkpoints. Removed files get names that
    end in .deleted, and the next broker to start deletes them.

    If the cleanup policy has compact, the segments that compaction rewrites are shown; --write rewrites them if a
    broker would do so now. In internal topics nothing is removed for its age or size, whatever the settings say; the
    metadata log is not changed. The directory is not changed while a broker uses it.

    Of a topic with remote.storage.enable=true, local.retention.ms and local.retention.bytes decide, and only segments
    are removed that brokers have copied, by __remote_log_metadata in the same directory and, with --remote, by the
    objects of the store; the log start offset stays. In the store nothing is removed. If the settings do not say
    whether a topic is tiered, and its directory does not exclude it, its log is not changed.
    """
    from seglog_format.tier.local_metadata import LocalMetadataTopic

    if explain and write:
        msg = "--explain changes nothing: give either it or --write"
        raise UsageError(msg)
    directory, paths = _partitions(path)
    topics = TopicSettings(directory, given, config_file)
    passing = PassingOver("partitions")
    known = LocalMetadataTopic() if remote is None else remote.open()
    with _held(directory, write=write), progress("Looking", len(paths)) as advance:
        for number, each in enumerate(paths, 1):
            with passing.errors_of(each):
                _retain(each, directory, topics, known, now, write=write, as_json=as_json)
            advance(number)
    return passing.status()


def _held(directory: LogDirectory, *, write: bool) -> Any:  # noqa: ANN401 - a context manager of either kind
    from seglog_format.recovery.apply import writing

    return writing(directory) if write else nullcontext()


def _partitions(path: Path) -> tuple[LogDirectory, list[Path]]:
    from seglog_format.cli.paths import log_directory_at
    from seglog_format.log.directory import log_directory_above
    from seglog_format.log.path_kind import require_directory
    from seglog_format.names import METADATA_TOPICS

    directory = log_directory_at(path)
    if directory is not None:
        entries = [entry for key, entry in directory.partitions.items() if key[0] not in METADATA_TOPICS]
        return directory, [entry.path for entry in entries]
    require_directory(path)
    return log_directory_above(path), [path]


def _retain(  # noqa: PLR0913 - how to retain
    path: Path,
    directory: LogDirectory,
    topics: TopicSettings,
    remote: KnowsTiered,
    now_ms: int | None,
    *,
    write: bool,
    as_json: bool,
) -> None:
    from seglog_format import retain
    from seglog_format.cleaning.retention import KEPT_TOPICS, topic_config
    from seglog_format.log.directory import LogDirectory
    from seglog_format.storage.environment import system_clock

    topic = path.absolute().name.rpartition("-")[0]
    config = topics.of(topic)
    is_compacted = config.is_compacted
    config = topic_config(topic, config)
    at_ms = system_clock() if now_ms is None else now_ms
    plan = retain(path, config, now_ms=at_ms, directory=directory, remote=remote, holds_lock=True)
    _report(plan.apply() if write else plan, config, is_written=write, as_json=as_json)
    if is_compacted and topic not in KEPT_TOPICS:
        _compact(path, LogDirectory(directory.listing), config, at_ms, write=write, as_json=as_json)


def _report(found: PreparedRetention, config: LogConfig, *, is_written: bool, as_json: bool) -> None:

    write_lines(
        as_objects(found, is_written=is_written) if as_json else retention_text(found, config, is_written=is_written)
    )


def _compact(
    path: Path, directory: LogDirectory, config: LogConfig, now_ms: int, *, write: bool, as_json: bool
) -> None:
    """Show the compaction of the segments; carry it out if a broker would do so now."""
    from seglog_format import compact
    from seglog_format.cleaning.compaction_apply import Compacted

    prepared = compact(path, config, now_ms=now_ms, directory=directory, holds_lock=True)
    is_written = write and prepared.plan.is_due
    found = prepared.apply() if is_written else Compacted(path, prepared.plan, (), 0, 0)
    write_lines(
        compaction_objects(found, is_written=is_written)
        if as_json
        else compaction_text(found, config, is_written=is_written)
    )


def as_objects(found: PreparedRetention, *, is_written: bool) -> Iterator[dict[str, Any]]:
    """Yield one object for each segment, and one for the partition."""
    from seglog_format.cli.recover import change_object

    name = found.path.absolute().name
    for fate in found.plan.fates:
        yield {"type": "segmentFate", "directory": name, **_fate(fate)}
    yield {
        "type": "retention",
        "directory": name,
        "segments": len(found.plan.fates),
        "removed": [segment.base_offset for segment in found.plan.removed],
        "rollsFirst": found.plan.rolls_first,
        "logStartOffset": found.plan.log_start_offset,
        "localLogStartOffset": found.plan.local_log_start_offset,
        "logEndOffset": found.log_end_offset,
        "highWatermark": found.high_watermark,
        "isWritten": is_written,
        "changes": [change_object(step) for step in found.steps if step.requirement],
    }


def _fate(fate: SegmentFate) -> dict[str, Any]:
    segment = fate.segment
    return {
        "baseOffset": segment.base_offset,
        "nextOffset": segment.next_offset,
        "fileBytes": segment.size,
        "largestTimestamp": segment.largest_timestamp_ms,
        "modified": segment.modified_ms,
        "isRemoved": fate.reason is not None,
        "reason": None if fate.reason is None else fate.reason.value,
        "explanation": fate.explanation,
        "requirements": list(fate.requirements),
    }


def compaction_objects(found: Compacted, *, is_written: bool) -> Iterator[dict[str, Any]]:
    """Yield one object for each segment, and one for the partition."""
    from seglog_format.cli.recover import change_object

    name, plan = found.path.absolute().name, found.plan
    for fate in plan.fates:
        yield {
            "type": "segmentCompaction",
            "directory": name,
            "baseOffset": fate.segment.base_offset,
            "nextOffset": fate.segment.next_offset,
            "fileBytes": fate.segment.size,
            "action": fate.action.value,
            "target": fate.target,
            "explanation": fate.explanation,
            "requirements": list(fate.requirements),
        }
    yield {
        "type": "compaction",
        "directory": name,
        "firstDirtyOffset": plan.first_dirty_offset,
        "firstUncleanableOffset": plan.first_uncleanable_offset,
        "endOffset": plan.end_offset,
        "dirtyRatio": plan.dirty_ratio,
        "isDue": plan.is_due,
        "isWritten": is_written,
        "bytesBefore": found.size_before if is_written else None,
        "bytesAfter": found.size_after if is_written else None,
        "changes": [change_object(step) for step in found.steps if step.requirement],
    }


# -- the decision for each segment, as a table -------------------------------------------------------------------------


COMPACTION_COLUMNS = ("base offset", "size", f"{LEFT}fate", f"{LEFT}why")
COLUMNS = ("base offset", "size", f"{LEFT}largest timestamp", f"{LEFT}fate", f"{LEFT}why")


def retention_text(found: PreparedRetention, config: LogConfig, *, is_written: bool) -> Iterator[str]:
    """Yield a heading, a row for each segment, and the changes of the log and its files."""
    name = styled(printable(found.path.absolute().name), "bold")
    yield f"{name}: {_limits(config)}; log end offset {found.log_end_offset}, high watermark {found.high_watermark}"
    yield from table(COLUMNS, map(_row, found.plan.fates))
    yield _outcome(found, is_written=is_written)
    if found.steps and not is_written:
        yield "to change, with --write:"
    yield from _changes(found.steps)


def _changes(steps: Iterable[FileStep]) -> Iterator[str]:
    for step in steps:
        if step.requirement:
            yield f"  {printable(step.path.name)}: {printable(step.text)} [{step.requirement}]"


def compaction_text(found: Compacted, config: LogConfig, *, is_written: bool) -> Iterator[str]:
    """Yield the settings that matter, a row for each segment, and whether compaction is due."""
    plan = found.plan
    span = f"from offset {plan.first_dirty_offset} up to {plan.first_uncleanable_offset}"
    ratio = f"{plan.dirty_ratio:.2f} of it is dirty, min.cleanable.dirty.ratio {config.min_cleanable_dirty_ratio}"
    yield f"compaction {span}: {ratio}"
    yield from table(COMPACTION_COLUMNS, map(_compaction_row, plan.fates))
    if is_written:
        yield f"{size_text(found.size_before)} became {size_text(found.size_after)}"
        yield from _changes(found.steps)
    elif plan.is_due:
        yield "a broker would do it now [SEG-CMP-005]"
    else:
        yield "a broker would not do it now [SEG-CMP-005]"


def _compaction_row(fate: SegmentCompaction) -> list[str]:
    segment = fate.segment
    is_kept = fate.action is CompactionAction.KEEP
    verdict = "kept" if is_kept else f"cleaned into {fate.target}"
    why = f"{fate.explanation} [{', '.join(fate.requirements)}]"
    return [str(segment.base_offset), size_text(segment.size), verdict, why]


def _limits(config: LogConfig) -> str:
    policy = ",".join(sorted(config.cleanup_policy))
    if not config.is_deleted:
        return f"cleanup.policy {policy}"
    whole = f"cleanup.policy {policy}, retention.ms {config.retention_ms}, retention.bytes {config.retention_bytes}"
    if not is_copied(config):
        return whole
    disk = RetentionLimits.of_disk(config)
    return f"{whole}, local.retention.ms {disk.ms}, local.retention.bytes {disk.size}"


def _row(fate: SegmentFate) -> list[str]:
    segment = fate.segment
    has_time = segment.largest_timestamp_ms >= 0
    time = time_text(segment.age_from_ms) + ("" if has_time else " (of the file)")
    verdict = "kept" if fate.reason is None else f"deleted by {fate.reason.value}"
    why = f"{fate.explanation} [{', '.join(fate.requirements)}]"
    return [str(segment.base_offset), size_text(segment.size), time, verdict, why]


def _outcome(found: PreparedRetention, *, is_written: bool) -> str:
    plan = found.plan
    then = "" if is_written else "then "
    is_local = plan.local_log_start_offset > plan.log_start_offset
    local = f", on the disk at {plan.local_log_start_offset}" if is_local else ""
    if not plan.removed:
        rolled = f"; a new segment {then}begins at {found.log_end_offset}" if plan.rolls_first else ""
        return f"nothing to delete; the log starts at {plan.log_start_offset}{local}{rolled}"
    size = size_text(sum(segment.size for segment in plan.removed))
    segments = count_text(len(plan.fates), "segment")
    gone = f"{len(plan.removed)} of {segments} {'deleted' if is_written else 'to delete'}, {size}"
    is_empty = len(plan.removed) == len(plan.fates)
    begun = ", in a new segment," if is_empty else ""
    rolled = f"; a new segment {then}begins at {found.log_end_offset}" if plan.rolls_first and not is_empty else ""
    return f"{gone}; the log {then}starts{begun} at {plan.log_start_offset}{local}{rolled}"

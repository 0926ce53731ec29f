"""``seglog retain``: the plan of retention and compaction with its reasons, and its execution."""

from __future__ import annotations

from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Final

import click

from seglog_format.cli.options import PATH, json_option, path_argument, to_timestamp_ms
from seglog_format.cli.output import write_json, write_text
from seglog_format.cli.passing_over import PassingOver
from seglog_format.cli.progress import progress
from seglog_format.cli.tier_options import remote_options
from seglog_format.cli.topic_settings import TopicSettings
from seglog_format.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from seglog_format.cleaning.compaction_apply import Compacted
    from seglog_format.cleaning.deletion import PreparedRetention
    from seglog_format.cleaning.retention import SegmentFate
    from seglog_format.cli.tier_options import RemoteChoice
    from seglog_format.log.directory import LogDirectory
    from seglog_format.log.remote_store import KnowsTiered
    from seglog_format.state.config import LogConfig

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
    from seglog_format.cleaning.settings import KEPT_TOPICS, topic_config
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
    from seglog_format.cli.render_retention import retention_text

    _write(
        as_objects(found, is_written=is_written) if as_json else retention_text(found, config, is_written=is_written)
    )


def _write(lines: Iterable[dict[str, Any] | str]) -> None:
    """Write JSON objects, or lines of text."""
    for line in lines:
        if isinstance(line, dict):
            write_json(line)
        else:
            write_text(line)


def _compact(
    path: Path, directory: LogDirectory, config: LogConfig, now_ms: int, *, write: bool, as_json: bool
) -> None:
    """Show the compaction of the segments; carry it out if a broker would do so now."""
    from seglog_format import compact
    from seglog_format.cleaning.compaction_apply import Compacted
    from seglog_format.cli.render_retention import compaction_text

    prepared = compact(path, config, now_ms=now_ms, directory=directory, holds_lock=True)
    is_written = write and prepared.plan.is_due
    found = prepared.apply() if is_written else Compacted(path, prepared.plan, (), 0, 0)
    _write(
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

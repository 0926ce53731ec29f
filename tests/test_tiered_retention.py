"""Chapter 72 with remote storage: what goes, what stays until it is copied, and where the log starts then.

The kind of fault: a command that was there before remote storage deletes records that no store holds, or moves the
start of a log away from its remote segments. `COMMANDS` lists whatever deletes segments or moves a log start.
"""

from __future__ import annotations

import gzip
import json
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from helpers.made_partitions import EPOCHS, content, entry, log_sizes, make
from helpers.support import FIXTURES, REPOSITORY
from helpers.tier_cases import tier_case
from test_cli import USAGE, Seglog

from seglog_format import (
    LogConfig,
    PartitionWriter,
    compact,
    new_record,
    open_log_directory,
    open_tier,
    recover,
    resurrect,
    retain,
    salvage,
    truncate,
)
from seglog_format.cleaning.retention import NEVER_TIERED, RetainedSegment, RetentionLimits, plan_retention
from seglog_format.cli import retain as topic_settings_module
from seglog_format.cluster.image import ConfigResource, MetadataImage, TopicImage
from seglog_format.errors import UsageError
from seglog_format.log.remote_store import RemoteCopies
from seglog_format.names import METADATA_TOPICS
from seglog_format.state.config import topic_settings
from seglog_format.tier.local_metadata import read_local_log, read_metadata_topic
from seglog_format.types import LocalMetadataTopic

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("no_fsync")

HOUR_MS = 3_600_000
STARTS = b"0\n6\nretained 0 410\nwide 0 0\ncodecs 0 0\ncodecs 1 0\norders 0 73\ndiverged 0 0\n"
"""The log start offsets that the broker left."""
EPOCHS_LEFT = b"0\n3\n0 73\n2 549\n6 1098\n"
LOGS = [792, 892, 914, 1013, 1036]
"""The local segments of orders-0; the remote store holds offsets up to 1035."""
TIERED = LogConfig(remote_storage_enable=True, local_retention_ms=HOUR_MS)
LONG_AFTER_MS = 1_900_000_000_000


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Seglog:
    return Seglog(capsys)


@pytest.fixture
def tiered(tmp_path: Path) -> Path:
    """Return ``orders-0`` as a broker of 4.4.0 left it, in its log directory, with the store in ``../../tier``."""
    case = tier_case("lts-4.4.0")
    shutil.copytree(case.root, tmp_path / "case")
    return tmp_path / "case" / "local" / "orders-0"


def whole(directory: Path) -> dict[str, bytes]:
    """Return every file of a log directory."""
    return {str(file.relative_to(directory)): file.read_bytes() for file in directory.rglob("*") if file.is_file()}


# What UnifiedLog removes


def witness() -> tuple[dict[str, Any], list[dict[str, Any]]]:
    with gzip.open(FIXTURES / "witnesses" / "tiered-retention.jsonl.gz", "rt", encoding="utf-8") as lines:
        header, *rows = map(json.loads, lines)
    return header, rows


@pytest.mark.req(
    "SEG-RET-001", "SEG-RET-002", "SEG-RET-007", "SEG-RET-014", "SEG-RET-015", "SEG-RET-016", "SEG-RET-017"
)
def test_the_same_is_left_as_by_unified_log() -> None:
    header, rows = witness()
    assert (header["releases"], len(rows)) == (["3.9.1", "4.4.0"], 1200)
    removed = 0
    for number, row in enumerate(rows):
        segments = [RetainedSegment(*facts) for facts in row["segments"]]
        config = LogConfig.from_properties(row["config"])
        start, copied = row["logStartOffset"], row["copiedOffset"]
        if not config.remote_storage_enable:
            start = max(start, segments[0].base_offset)
        plan = plan_retention(
            segments,
            config,
            now_ms=header["nowMs"],
            log_start_offset=start,
            high_watermark=max(start, row["highWatermark"]),
            copies=RemoteCopies("the store", copied, ((0, copied),)),
        )
        left = [[each.segment.base_offset, each.segment.size] for each in plan.fates if each.reason is None]
        left += [[segments[-1].next_offset, 0]] if plan.rolls_first else []
        removed += len(plan.removed)
        for release, (segments_left, log_start, local_start, only_local) in row["answers"].items():
            assert (left, plan.log_start_offset) == (segments_left, log_start), (number, release)
            if config.remote_storage_enable:
                assert plan.local_log_start_offset == local_start, (number, release)
                above = copied - (release == "3.9.1")  # which also counts a segment that begins at this offset
                assert sum(size for base, size in segments_left if base > above) == only_local, (number, release)
    assert removed > 1000


def rows_of(*sizes: int) -> list[RetainedSegment]:
    """Return segments of ten offsets, with records of the time 0."""
    return [RetainedSegment(10 * number, 10 * number + 10, size, 0, 0) for number, size in enumerate(sizes)]


def explained(copies: RemoteCopies | None, **settings: object) -> list[str]:
    """Return why each segment goes or stays, when each is too old."""
    config = replace(TIERED, local_retention_ms=5, **settings)  # type: ignore[arg-type]
    plan = plan_retention(rows_of(100, 100, 100), config, now_ms=10, log_start_offset=3, copies=copies)
    return [("goes: " if fate.reason else "stays: ") + fate.explanation.split(";")[0] for fate in plan.fates]


@pytest.mark.req("SEG-RET-014")
def test_the_plan_says_why_not_yet() -> None:
    goes, blocked = "goes: it is 10 ms old, 5 ms are kept", "stays: segment 0 before it is kept"
    assert explained(None) == ["stays: not yet: it is not known what the remote store holds", blocked, blocked]
    nothing = RemoteCopies("the store", -1, ())
    assert explained(nothing)[0] == "stays: not yet: the store has offsets up to -1, the segment ends at 9"
    assert explained(RemoteCopies("the store", 18, ((3, 18),)))[:2] == [
        goes,
        "stays: not yet: the store has offsets up to 18, the segment ends at 19",
    ]
    holed = RemoteCopies("the store", 29, ((0, 4), (7, 29)))
    assert explained(holed)[0] == "stays: not yet: the store has no offsets 5 to 6"
    assert explained(RemoteCopies("the store", 29, ((4, 29),)))[0] == "stays: not yet: the store has no offsets 3 to 3"
    kept = "it is 10 ms old, 604800000 ms (7 days) are kept, until 1970-01-08T00:00:00Z"
    assert explained(None, remote_log_copy_disable=True)[0] == f"stays: {kept}"


@pytest.mark.parametrize(
    ("held", "asked", "missing"),
    [
        ((), (3, 5), (3, 5)),
        (((0, 9),), (3, 5), None),
        (((0, 3), (4, 9)), (0, 9), None),
        (((0, 3), (2, 9)), (0, 9), None),
        (((0, 3), (6, 9)), (0, 9), (4, 5)),
        (((0, 3),), (0, 9), (4, 9)),
        (((4, 9),), (0, 9), (0, 3)),
        (((0, 3),), (5, 4), None),
    ],
)
def test_offsets_that_the_store_does_not_hold(
    held: tuple[tuple[int, int], ...], asked: tuple[int, int], missing: tuple[int, int] | None
) -> None:
    assert RemoteCopies("the store", 9, held).missing(*asked) == missing


@pytest.mark.req("SEG-RET-015")
def test_limits_of_the_disk() -> None:
    config = LogConfig(remote_storage_enable=True, retention_ms=9, retention_bytes=8)
    assert RetentionLimits.of_disk(config) == RetentionLimits(9, 8)
    config = replace(config, local_retention_ms=3, local_retention_bytes=-1)
    assert RetentionLimits.of_disk(config) == RetentionLimits(3, -1)
    assert RetentionLimits.of_disk(replace(config, remote_log_copy_disable=True)) == RetentionLimits(9, 8)
    assert RetentionLimits.of_disk(replace(config, remote_storage_enable=False)) == RetentionLimits(9, 8)


# The log of a broker


@pytest.mark.req("SEG-RET-014", "SEG-RET-016")
@pytest.mark.parametrize("setting", ["local.retention.ms=3600000", "retention.ms=3600000", "local.retention.bytes=0"])
@pytest.mark.parametrize("store", ["", "tier"])
def test_only_what_was_copied_goes_and_the_log_start_stays(setting: str, store: str, cli: Seglog, tiered: Path) -> None:
    remote = ("--remote", tiered.parents[1] / store) if store else ()
    given = ("--config", setting, "--config", "remote.storage.enable=true", *remote)
    before = whole(tiered.parent)
    planned = cli.lines("retain", tiered, *given)[-1]
    assert whole(tiered.parent) == before
    reported = cli("retain", "--write", tiered, *given)
    assert "4 of 5 segments deleted, 110.7 KiB; the log starts at 73, on the disk at 1036" in reported
    why = "not yet: by __remote_log_metadata the remote store has offsets up to 1035, the segment ends at 1097"
    assert why in reported
    assert (planned["removed"], planned["logStartOffset"], planned["localLogStartOffset"]) == (LOGS[:4], 73, 1036)
    assert log_sizes(tiered) == {1036: 26683, 1098: 0}
    assert (tiered.parent / "log-start-offset-checkpoint").read_bytes() == STARTS
    assert (tiered / EPOCHS).read_bytes() == EPOCHS_LEFT
    assert "nothing to delete; the log starts at 73, on the disk at 1036" in cli("retain", "--write", tiered, *given)


def test_the_how_to_shows_what_is_printed(cli: Seglog, tiered: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (REPOSITORY / "docs" / "how-to" / "audit-my-bucket.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tiered.parents[1])
    command = "retain local/orders-0 --remote tier --config remote.storage.enable=true"
    command += " --config local.retention.ms=3600000 --now 2026-11-23"
    printed, _, changes = cli(*command.split()).partition("to change, with --write:\n")
    assert f'```text title="seglog {command}"\n{printed}```\n' in page
    assert "  00000000000000001098.log: write 0 bytes [SEG-RET-017]\n" in changes


@pytest.mark.req("SEG-RET-018")
@pytest.mark.parametrize("setting", ["local.retention.ms=3600000", "retention.ms=3600000", "retention.bytes=0"])
def test_a_topic_that_may_be_tiered_is_refused(setting: str, cli: Seglog, tiered: Path) -> None:
    before = whole(tiered.parent)
    _, errors = cli.both("retain", "--write", tiered, "--config", setting, status=USAGE)
    assert "the log begins at offset 73, its first segment at 792, so the topic may be tiered" in errors
    _, errors = cli.both("retain", "--write", tiered.parent, "--config", setting, status=USAGE)
    assert "so the topic may be tiered" in errors
    assert whole(tiered.parent) == before


@pytest.mark.req("SEG-RET-014")
def test_without_records_of_the_metadata_topic_nothing_goes(cli: Seglog, tiered: Path) -> None:
    shutil.rmtree(tiered.parent / "__remote_log_metadata-0")
    given = ("--config", "retention.ms=1", "--config", "remote.storage.enable=true", "--write")
    reported = cli("retain", tiered, *given)
    assert "nothing to delete" in reported
    assert "not yet: it is not known what the remote store holds" in reported
    assert sorted(log_sizes(tiered)) == LOGS
    reported = cli("retain", tiered, *given, "--remote", tiered.parents[1] / "tier")
    assert "4 of 5 segments deleted" in reported
    assert "by its objects the remote store has offsets up to 1035" in reported
    assert sorted(log_sizes(tiered)) == [1036, 1098]


@pytest.mark.req("SEG-RET-014")
def test_a_segment_whose_objects_are_missing_stays(tiered: Path) -> None:
    """The metadata topic says that they are there: a broker would delete the only copy."""
    (lost,) = (tiered.parents[1] / "tier").rglob("kafka-tiered-storage/orders-0-*/*914-*.log")
    lost.unlink()
    config = LogConfig(remote_storage_enable=True, local_retention_ms=0)
    plan = retain(tiered, config, now_ms=LONG_AFTER_MS, remote=open_tier(tiered.parents[1] / "tier")).plan
    assert [segment.base_offset for segment in plan.removed] == LOGS[:2]
    assert "by __remote_log_metadata the remote store has no offsets 914 to 1012" in plan.fates[2].explanation
    recorded = retain(tiered, config, now_ms=LONG_AFTER_MS, remote=LocalMetadataTopic()).plan
    assert [segment.base_offset for segment in recorded.removed] == LOGS[:4]


@pytest.mark.req("SEG-RET-014")
def test_records_of_another_topic_of_the_name_do_not_count(tiered: Path) -> None:
    metadata = tiered / "partition.metadata"
    metadata.write_text("version: 0\ntopic_id: jEbG1SvaS8mLmWzFrBoA3w\n", encoding="utf-8")
    plan = retain(tiered, TIERED, now_ms=LONG_AFTER_MS, remote=LocalMetadataTopic()).plan
    assert not plan.removed
    assert "not known what the remote store holds" in plan.fates[0].explanation


@pytest.mark.req("SEG-RET-015", "SEG-RET-016")
def test_without_copying_the_log_is_as_any_other(tiered: Path) -> None:
    config = LogConfig(remote_storage_enable=True, remote_log_copy_disable=True, local_retention_ms=0, retention_ms=-1)
    assert not retain(tiered, config, now_ms=LONG_AFTER_MS, remote=LocalMetadataTopic()).plan.removed
    done = retain(tiered, replace(config, retention_ms=0), now_ms=LONG_AFTER_MS).apply()
    assert (len(done.plan.removed), done.plan.log_start_offset) == (5, 1098)


@pytest.mark.req("SEG-RET-014")
def test_segments_below_the_log_start_need_no_copy(tiered: Path) -> None:
    checkpoint = tiered.parent / "log-start-offset-checkpoint"
    checkpoint.write_bytes(STARTS.replace(b"orders 0 73", b"orders 0 920"))
    plan = retain(tiered, LogConfig(remote_storage_enable=True, retention_ms=-1), now_ms=LONG_AFTER_MS).plan
    assert [segment.base_offset for segment in plan.removed] == LOGS[:2]
    assert (plan.log_start_offset, plan.local_log_start_offset) == (920, 920)


@pytest.mark.req("SEG-RLM-013")
def test_the_audit_counts_a_segment_that_is_in_both_places_once(tiered: Path) -> None:
    """At e6e47325 the copied segments on the disk counted as local ones too: the audit reported what brokers keep."""
    logs = open_log_directory(tiered.parent)
    (whose, remote), *_ = (each for each in read_metadata_topic(logs).partitions.items() if each[0].topic == "orders")
    log = read_local_log(logs, whose)
    assert log is not None
    assert log.only_local_size(remote) == 26683  # of the segment 1036
    sizes = [segment.size for segment in remote.segments.values()]
    kept = sum(sizes) + 26683
    store = open_tier(tiered.parents[1] / "tier")
    found = [
        [each for each in store.audit(logs, retention_bytes=limit) if "orders-0" in str(each.location)]
        for limit in (kept, kept - sizes[0] + 1, kept - sizes[0], kept - sum(sizes[:2]))
    ]
    assert [len(each) for each in found] == [0, 0, 1, 2]


# Settings


@pytest.mark.req("SEG-RET-015")
def test_settings_by_the_names_of_brokers() -> None:
    found = topic_settings({"log.local.retention.ms": "5", "log.local.retention.bytes": "6"})
    config = LogConfig.from_properties(found | {"remote.storage.enable": "TRUE", "remote.log.copy.disable": "false"})
    assert (config.local_retention_ms, config.local_retention_bytes) == (5, 6)
    assert (config.remote_storage_enable, config.remote_log_copy_disable) == (True, False)
    assert LogConfig().remote_storage_enable is None
    for wrong in (
        {"remote.storage.enable": "yes"},
        {"local.retention.ms": "-3"},
        {"remote.storage.enable": "true", "cleanup.policy": "compact"},
        {"remote.storage.enable": "true", "remote.log.storage.system.enable": "false"},
    ):
        with pytest.raises(UsageError):
            LogConfig.from_properties(wrong)


PLAIN = {
    "0.log": entry(0, 10, time=1000),
    "10.log": entry(10, 10, time=2000),
    "20.log": entry(20, 10, time=3000),
    EPOCHS: b"0\n1\n0 0\n",
}


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """``orders-0`` with nothing that speaks of a remote store."""
    return make(tmp_path, PLAIN)


@pytest.mark.req("SEG-RET-018")
@pytest.mark.parametrize(
    "line",
    [
        "log.local.retention.ms=1",
        "log.local.retention.bytes=1",
        "remote.log.storage.system.enable=true",
        "remote.log.copy.disable=true",
    ],
)
def test_settings_in_a_file_that_name_remote_storage(line: str, cli: Seglog, plain: Path) -> None:
    file = plain.parent / "server.properties"
    file.write_text(f"{line}\nlog.retention.ms=1\nnum.io.threads=8\n", encoding="utf-8")
    before = content(plain)
    _, errors = cli.both("retain", "--write", plain, "--config-file", file, status=USAGE)
    assert "the settings name remote storage, so the topic may be tiered" in errors
    assert content(plain) == before
    reported = cli("retain", plain, "--config-file", file, "--config", "remote.storage.enable=false")
    assert "3 of 3 segments to delete" in reported


@pytest.mark.req("SEG-RET-018")
def test_the_metadata_topic_of_remote_storage_beside_a_log(cli: Seglog, plain: Path) -> None:
    shutil.copytree(plain, plain.parent / "__remote_log_metadata-3")
    given = ("--write", "--config", "retention.ms=1")
    _, errors = cli.both("retain", plain, *given, status=USAGE)
    assert "has a partition of __remote_log_metadata, so the topic may be tiered" in errors
    out = cli("retain", plain.parent / "__remote_log_metadata-3", *given)
    assert "nothing to delete" in out
    given = (*given, "--config", "remote.log.storage.system.enable=false")
    assert "3 of 3 segments deleted" in cli("retain", plain, *given)


def settings_from(image: MetadataImage, monkeypatch: pytest.MonkeyPatch, *, is_complete: bool = True) -> None:
    """Let commands find a metadata log with this content."""
    monkeypatch.setattr(topic_settings_module, "_metadata", lambda _directory: (image, 1, is_complete))


@pytest.mark.req("SEG-RET-018")
def test_settings_of_the_metadata_log(cli: Seglog, tiered: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    image = MetadataImage()
    image.topics["id"] = TopicImage("orders", "id")
    stored = {"remote.storage.enable": "true", "local.retention.bytes": "60000", "retention.ms": "-1"}
    image.configs[ConfigResource(2, "orders")] = stored
    settings_from(image, monkeypatch)
    reported, errors = cli.both("retain", tiered, "--now", "2030-01-01")
    assert "local.retention.bytes=60000 remote.storage.enable=true retention.ms=-1" in errors
    assert "retention.ms -1, retention.bytes -1, local.retention.ms -1, local.retention.bytes 60000;" in reported
    assert "2 of 5 segments to delete" in reported
    image.configs.clear()
    reported = cli("retain", tiered, "--now", "2030-01-01", "--config", "retention.ms=1")
    assert "5 of 5 segments to delete" in reported  # the topic is known, and not tiered
    settings_from(image, monkeypatch, is_complete=False)
    _, errors = cli.both("retain", tiered, status=USAGE)
    assert "may be tiered" in errors


# Every command and call that deletes segments or moves the start of a log


def written(path: Path) -> None:
    with PartitionWriter(path, LogConfig(retention_ms=0)) as writer:
        writer.append([new_record(value=b"x")])
        writer.apply_retention()


def damaged(path: Path) -> None:
    """Recover after a crash that damaged the last segment."""
    log = path / f"{1036:020d}.log"
    data = bytearray(log.read_bytes())
    data[-10] ^= 1
    log.write_bytes(data)
    (path.parent / ".kafka_cleanshutdown").unlink()
    (path.parent / "recovery-point-offset-checkpoint").unlink()
    recover(path).apply()


COMPACTED = LogConfig(cleanup_policy=frozenset({"compact"}))
COMMANDS: dict[str, tuple[Callable[[Path], object], bool]] = {
    "retain": (lambda path: retain(path, LogConfig(retention_ms=0)).apply(), False),
    "retain, copies unknown": (lambda path: retain(path, TIERED).apply(), True),
    "retain, errors what was copied": (lambda path: retain(path, TIERED, remote=LocalMetadataTopic()).apply(), True),
    "compact": (lambda path: compact(path, COMPACTED).apply(), False),
    "compact, tiered": (lambda path: compact(path, TIERED).apply(), False),
    "write": (written, False),
    "truncate below the disk": (lambda path: truncate(path, 500).apply(), False),
    "truncate below the log": (lambda path: truncate(path, 50).apply(), False),
    "truncate": (lambda path: truncate(path, 1000).apply(), True),
    "recover": (lambda path: recover(path).apply(), True),
    "recover what is damaged": (damaged, True),
    "salvage": (lambda path: salvage(path, path.parents[1] / "saved" / path.name).apply(), True),
    "resurrect": (lambda path: resurrect(path.parent), True),
}
"""Each with whether it does something to a tiered log; else it has to refuse it."""


@pytest.mark.req("SEG-RET-016", "SEG-RET-018")
@pytest.mark.parametrize("name", COMMANDS)
def test_no_command_moves_the_start_of_a_tiered_log(name: str, tiered: Path) -> None:
    call, is_done = COMMANDS[name]
    before = whole(tiered.parent)
    if is_done:
        call(tiered)
    else:
        with pytest.raises(UsageError, match=r"tiered|remote"):
            call(tiered)
        assert whole(tiered.parent) == before
    assert (tiered.parent / "log-start-offset-checkpoint").read_bytes() == STARTS
    assert (tiered / EPOCHS).read_bytes().startswith(b"0\n3\n0 73\n2 549\n") or (
        tiered / EPOCHS
    ).read_bytes() == b"0\n2\n0 73\n2 549\n"


@pytest.mark.req("SEG-RET-018")
@pytest.mark.parametrize("topic", sorted(NEVER_TIERED - METADATA_TOPICS))
def test_internal_topics_are_never_tiered_and_lose_nothing(topic: str, plain: Path) -> None:
    """At e6e47325 `retention.bytes` emptied the topic that says which remote segments there are."""
    directory = plain.rename(plain.parent / f"{topic}-0")
    config = LogConfig(remote_storage_enable=True, retention_ms=0, retention_bytes=0)
    assert not retain(directory, config, now_ms=10_000).plan.removed

"""``seglog retain``: the plan for each segment, settings of topics and brokers, and doing it (chapter 72)."""

from __future__ import annotations

import os
import subprocess
import sys
from shutil import copytree
from typing import TYPE_CHECKING

import pytest
from helpers.made_partitions import EPOCHS, checkpoint, content, entry, log_sizes, make, names
from helpers.support import bundled
from test_cli import FINE, SEGLOG, UNREADABLE, USAGE, Seglog

from seglog_format.cluster.image import ConfigResource, MetadataImage
from seglog_format.errors import UsageError
from seglog_format.state.config import LogConfig, topic_settings

if TYPE_CHECKING:
    from pathlib import Path

HOUR_MS = 3_600_000
DAY_MS = 24 * HOUR_MS
FILES = {
    "0.log": entry(0, 10, time=1000),
    "10.log": entry(10, 10, time=2000),
    "20.log": entry(20, 10, time=3000),
    "20.snapshot": b"x",
    EPOCHS: b"0\n1\n0 0\n",
}


pytestmark = pytest.mark.usefixtures("no_fsync")


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str]) -> Seglog:
    return Seglog(capsys)


@pytest.fixture
def orders(tmp_path: Path) -> Path:
    """``orders-0`` with three segments of a second each, in a log directory."""
    directory = make(tmp_path, FILES)
    checkpoint(directory, "recovery-point-offset-checkpoint", 30)
    return directory


LIMIT = "7500 ms are kept [SEG-RET-003]"
WHY_IT_STAYS = (
    "it is 7000 ms old, 7500 ms are kept, until 1970-01-01T00:00:10Z; no limit of size; the active segment"
    " [SEG-RET-003, SEG-RET-005, SEG-RET-008]"
)
TEN_SECONDS_LATER = ("--now", 10_000, "--config", "retention.ms=7500")


# The plan


def test_a_row_for_each_segment(cli: Seglog, orders: Path) -> None:
    before = content(orders)
    reported = cli("retain", orders, *TEN_SECONDS_LATER)
    assert reported.splitlines()[:7] == [
        "orders-0: cleanup.policy delete, retention.ms 7500, retention.bytes -1; log end offset 30, high watermark 30",
        "base offset   size  largest timestamp         fate             why",
        f"          0  531 B  1970-01-01T00:00:01.000Z  deleted by time  it is 9000 ms old, {LIMIT}",
        f"         10  531 B  1970-01-01T00:00:02.000Z  deleted by time  it is 8000 ms old, {LIMIT}",
        "         20  531 B  1970-01-01T00:00:03.000Z  kept             " + WHY_IT_STAYS,
        "2 of 3 segments to delete, 1.0 KiB; the log then starts at 20",
        "to change, with --write:",
    ]
    assert cli("retain", orders, *TEN_SECONDS_LATER, "--explain") == reported
    assert content(orders) == before


def test_the_plan_as_json(cli: Seglog, orders: Path) -> None:
    *fates, plan = cli.lines("retain", orders, *TEN_SECONDS_LATER)
    assert [(fate["type"], fate["baseOffset"], fate["isRemoved"], fate["reason"]) for fate in fates] == [
        ("segmentFate", 0, True, "time"),
        ("segmentFate", 10, True, "time"),
        ("segmentFate", 20, False, None),
    ]
    assert fates[0]["requirements"] == ["SEG-RET-003"]
    assert (plan["type"], plan["directory"], plan["removed"]) == ("retention", "orders-0", [0, 10])
    assert (plan["logStartOffset"], plan["rollsFirst"], plan["isWritten"]) == (20, False, False)
    assert {change["requirement"] for change in plan["changes"]} == {"SEG-RET-009", "SEG-RET-011", "SEG-RET-012"}


def test_a_file_time_says_so(cli: Seglog, tmp_path: Path) -> None:
    directory = make(tmp_path, {"0.log": entry(0, time=-1)})
    os.utime(directory / f"{0:020d}.log", (5, 5))
    reported = cli("retain", directory, "--now", "1970-01-01T00:00:05Z")
    assert "1970-01-01T00:00:05.000Z (of the file)  kept" in reported
    assert reported.endswith("nothing to delete; the log starts at 0\n")


# Doing it


def test_write(cli: Seglog, orders: Path) -> None:
    reported = cli("retain", orders, *TEN_SECONDS_LATER, "--write")
    assert "2 of 3 segments deleted, 1.0 KiB; the log starts at 20\n" in reported
    assert log_sizes(orders) == {20: 531}
    assert "0.log.deleted".lstrip("0") in names(orders)
    assert "nothing to delete; the log starts at 20" in cli("retain", orders, *TEN_SECONDS_LATER, "--write")
    reported = cli("retain", orders, "--now", 10_000, "--config", "retention.ms=0", "--write")
    assert "the log starts, in a new segment, at 30\n" in reported
    assert log_sizes(orders) == {30: 0}


def test_every_partition_of_a_log_directory(cli: Seglog, orders: Path) -> None:
    root = orders.parent
    bad = entry(0) + entry(1)[:8] + bytes(60)
    others = {"logs-1": FILES, "__consumer_offsets-0": FILES, "__cluster_metadata-0": FILES, "bad-0": {"0.log": bad}}
    for name, files in others.items():
        (root / name).mkdir()
        for file, data in files.items():
            digits, dot, rest = file.partition(".")
            (root / name / (f"{int(digits):020d}.{rest}" if dot else file)).write_bytes(data)
    out, err = cli.both("retain", root, *TEN_SECONDS_LATER, "--write", status=UNREADABLE)
    assert out.count("2 of 3 segments deleted") == 2
    assert "__consumer_offsets-0: cleanup.policy compact;" in out
    assert "__cluster_metadata" not in out
    assert "bad-0/" in err
    assert "1 of 4 partitions could not be read" in err
    assert [len(log_sizes(root / name)) for name in ("orders-0", *others)] == [1, 1, 3, 3, 1]
    checkpointed = (root / "log-start-offset-checkpoint").read_text(encoding="utf-8")
    assert checkpointed == "0\n2\nlogs 1 20\norders 0 20\n"


@pytest.mark.parametrize("topic", ["__share_group_state", "__remote_log_metadata"])
@pytest.mark.parametrize("policy", ["delete", "compact", "compact,delete"])
def test_internal_topics_that_are_kept_for_ever(topic: str, policy: str, cli: Seglog, orders: Path) -> None:
    """Brokers 4.4.0 create both with ``cleanup.policy=delete`` and ``retention.ms=-1`` (records of their metadata)."""
    directory = orders.rename(orders.parent / f"{topic}-0")
    before = log_sizes(directory)
    out = cli("retain", directory, *TEN_SECONDS_LATER, "--config", f"cleanup.policy={policy}", "--write")
    assert "nothing to delete" in out
    assert "compact" not in out
    assert log_sizes(directory) == before


def test_nothing_is_written_while_a_broker_is_at_work(cli: Seglog, orders: Path) -> None:
    lock = "f = open(sys.argv[1], 'w'); fcntl.lockf(f, fcntl.LOCK_EX)"
    holder = f"import fcntl, sys; {lock}; print(flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", holder, str(orders.parent / ".lock")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        process.stdout.readline()
        before = content(orders)
        _, err = cli.both("retain", orders, *TEN_SECONDS_LATER, "--write", status=USAGE)
        assert "in use" in err
        assert "2 of 3 segments to delete" in cli("retain", orders, *TEN_SECONDS_LATER, status=FINE)
        assert content(orders) == before
        process.stdin.close()


def test_wrong_usage(cli: Seglog, orders: Path, tmp_path: Path) -> None:
    for arguments in (
        (tmp_path / "missing",),
        (orders / f"{0:020d}.log",),
        (orders, "--config", "retention.ms"),
        (orders, "--config", "retention.ms=soon"),
        (orders, "--config", "log.retention.hours=soon"),
        (orders, "--config", "retention.weeks=1"),
        (orders, "--config-file", tmp_path / "missing"),
        (orders, "--explain", "--write"),
        (orders, "--now", "soon"),
    ):
        out, err = cli.both("retain", *arguments, status=USAGE)
        assert (out, bool(err)) == ("", True), arguments
    (tmp_path / "broken").write_bytes(b"a=\\uzzzz\n")
    cli.both("retain", orders, "--config-file", tmp_path / "broken", status=USAGE)


def test_the_command_as_it_is_called(orders: Path) -> None:
    with (orders.parent / "server.properties").open("w", encoding="utf-8") as file:
        file.write("broker.id=1\nlog.retention.hours=1\nlog.dirs=/nowhere\n")
    arguments = ["retain", str(orders), "--config-file", file.name, "--now", str(HOUR_MS + 1500)]
    done = subprocess.run([*SEGLOG, *arguments], capture_output=True, text=True, check=True)
    assert "retention.ms 3600000" in done.stdout
    assert "1 of 3 segments to delete" in done.stdout
    done = subprocess.run(
        [*SEGLOG, *arguments, "--config", "retention.bytes=1"], capture_output=True, text=True, check=True
    )
    assert "deleted by size" in done.stdout


# Compaction


@pytest.fixture
def compacted(tmp_path: Path) -> Path:
    """Provide a log in which one key is written again and again."""
    directory = make(tmp_path, {f"{10 * number}.log": entry(10 * number, 10) for number in range(3)})
    checkpoint(directory, "recovery-point-offset-checkpoint", 30)
    return directory


COMPACT = ("--now", 10_000, "--config", "cleanup.policy=compact")


def test_the_plan_of_compaction(cli: Seglog, compacted: Path) -> None:
    before = content(compacted)
    lines = cli("retain", compacted, *COMPACT).splitlines()
    assert lines[0] == "orders-0: cleanup.policy compact; log end offset 30, high watermark 30"
    assert "compaction from offset 0 up to 20: 1.00 of it is dirty, min.cleanable.dirty.ratio 0.5" in lines
    assert [line.split()[3] for line in lines[-4:-1]] == ["cleaned", "cleaned", "kept"]
    assert lines[-1] == "a broker would do it now [SEG-CMP-005]"
    *_, last, plan = cli.lines("retain", compacted, *COMPACT)
    assert (last["type"], last["baseOffset"], last["action"]) == ("segmentCompaction", 20, "keep")
    assert (plan["type"], plan["isDue"], plan["isWritten"]) == ("compaction", True, False)
    assert content(compacted) == before


def test_compaction_is_done_where_it_is_due(cli: Seglog, compacted: Path) -> None:
    reported = cli("retain", compacted, *COMPACT, "--write", "--config", "min.compaction.lag.ms=20000")
    assert reported.endswith("a broker would not do it now [SEG-CMP-005]\n")
    assert log_sizes(compacted) == {0: 531, 10: 531, 20: 531}
    plan = cli.lines("retain", compacted, *COMPACT, "--write")[-1]
    assert (plan["isWritten"], plan["bytesBefore"]) == (True, 2 * 531)
    assert plan["bytesAfter"] == log_sizes(compacted)[0] < 531
    assert sorted(log_sizes(compacted)) == [0, 20]


def test_both_policies(cli: Seglog, orders: Path) -> None:
    arguments = (orders, *TEN_SECONDS_LATER, "--config", "cleanup.policy=compact,delete", "--write")
    reported = cli("retain", *arguments)
    assert "2 of 3 segments deleted" in reported
    assert "compaction from offset 20 up to 20" in reported
    assert log_sizes(orders) == {20: 531}


# Settings of brokers


@pytest.mark.req("SEG-RET-013")
@pytest.mark.parametrize(
    ("settings", "kept"),
    [
        ({}, 7 * DAY_MS),
        ({"log.retention.hours": "12"}, 12 * HOUR_MS),
        ({"log.retention.hours": "12", "log.retention.minutes": "90"}, 90 * 60_000),
        ({"log.retention.hours": "12", "log.retention.minutes": "90", "log.retention.ms": "5000"}, 5000),
        ({"log.retention.ms": "5000", "retention.ms": "1000"}, 1000),
        ({"log.retention.ms": "-1", "log.retention.minutes": "90"}, -1),
        ({"log.retention.minutes": "-1", "log.retention.hours": "12"}, -1),
        ({"log.retention.ms": "", "log.retention.minutes": "1"}, 60_000),
    ],
)
def test_the_smallest_unit_of_time_counts(settings: dict[str, str], kept: int) -> None:
    assert LogConfig.from_properties(topic_settings(settings)).retention_ms == kept


@pytest.mark.req("SEG-RET-013")
def test_rolling_has_units_too() -> None:
    found = topic_settings({"log.roll.hours": "2", "log.roll.jitter.hours": "1", "log.roll.ms": "7"})
    config = LogConfig.from_properties(found)
    assert (config.segment_ms, config.segment_jitter_ms) == (7, HOUR_MS)


@pytest.fixture
def with_metadata(tmp_path: Path) -> Path:
    """Provide a log directory with a compacted topic and the metadata log that has the topic's settings."""
    for name in ("compact", "cluster-metadata"):
        for path in bundled(f"4.4.0/{name}").iterdir():
            copytree(path, tmp_path / "data" / path.name)
    return tmp_path / "data"


STORED = "cleanup.policy=compact delete.retention.ms=100 file.delete.delay.ms=500"
LONG_AFTER = ("--now", "2030-01-01")


def test_the_topics_settings_in_the_metadata_log_count(cli: Seglog, with_metadata: Path, tmp_path: Path) -> None:
    reported, errors = cli.both("retain", with_metadata, *LONG_AFTER)
    assert "compact-0: cleanup.policy compact;" in reported
    assert "deleted" not in reported
    assert f"compact: settings from the metadata log: {STORED} " in errors
    file = tmp_path / "server.properties"
    file.write_text("log.cleanup.policy=delete\n")
    assert cli("retain", with_metadata, *LONG_AFTER, "--config-file", file) == reported
    given = ("--config", "cleanup.policy=delete")
    reported, errors = cli.both("retain", with_metadata / "compact-0", *LONG_AFTER, *given)
    assert "cleanup.policy delete" in reported
    assert "deleted by time" in reported
    assert "cleanup.policy" not in errors


def test_a_topics_own_setting_overrides_the_brokers_and_that_all_brokers() -> None:
    image = MetadataImage()
    image.configs[ConfigResource(4, "")] = {"log.retention.ms": "1", "log.segment.bytes": "9", "num.io.threads": "8"}
    image.configs[ConfigResource(4, "7")] = {"log.retention.hours": "2", "log.retention.bytes": "3"}
    image.configs[ConfigResource(2, "orders")] = {"retention.bytes": "4", "unknown.setting": "5"}
    assert image.topic_config("orders") == {"retention.ms": "1", "segment.bytes": "9", "retention.bytes": "4"}
    own = {"retention.ms": str(2 * HOUR_MS), "segment.bytes": "9", "retention.bytes": "3"}
    assert image.topic_config("other", 7) == own
    assert image.topic_config("orders", 7) == own | {"retention.bytes": "4"}


def test_settings_of_brokers_by_their_names() -> None:
    found = topic_settings({"log.segment.bytes": "500", "log.cleanup.policy": "compact,delete", "node.id": "1"})
    assert found == {"segment.bytes": "500", "cleanup.policy": "compact,delete", "node.id": "1"}
    assert topic_settings({"log.segment.bytes": "500", "segment.bytes": "600"}) == {"segment.bytes": "600"}
    with pytest.raises(UsageError, match=r"log\.roll\.hours"):
        topic_settings({"log.roll.hours": "x"})

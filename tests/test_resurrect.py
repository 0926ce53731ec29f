"""A node of what a cluster left: which logs it gets, what its metadata says, and that a stock broker serves it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from typing import TYPE_CHECKING, Any, Final

import pytest

from proofs.kafka.crashes import recovered_ends
from proofs.resurrect import FILLED, crash_cases, find_crash_failures, find_failures, find_own_failures, fingerprint
from seglog_format import open_cluster, open_partition, resurrect, verify
from seglog_format.cli import resurrect as command
from seglog_format.cli.main import run
from seglog_format.cluster import resurrection
from seglog_format.cluster.comparison import Replica, divergence
from seglog_format.cluster.image import RELEASES, ConfigResource, MetadataImage, TopicImage
from seglog_format.cluster.new_image import NewNode, new_image
from seglog_format.cluster.resurrection import SnapshotName
from seglog_format.errors import UsageError, WriteError
from seglog_format.model import EpochStart
from tests.helpers.kafka import kafka_at_hand
from tests.helpers.support import authentic

if TYPE_CHECKING:
    from pathlib import Path

CASES = ("root", "cluster-metadata", "plain", "txn", "txn-open", "delrec", "segs")
NODE = NewNode(1, "AAAAAAAAAAAAAAAAAAAAAA", RELEASES["4.4"])


def old_directory(target: Path, version: str = "4.3.0", cases: tuple[str, ...] = CASES) -> Path:
    """Copy a log directory as a broker left it."""
    for case in cases:
        shutil.copytree(authentic(f"{version}/{case}"), target, dirs_exist_ok=True)
    return target


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return old_directory(tmp_path / "old")


def contents(directory: Path) -> list[Any]:
    with open_partition(directory) as partition:
        return list(partition.records(on_gap=lambda _gap: None))


# -- what is written ---------------------------------------------------------------------------------------------------


def test_node_holds_every_record_at_its_offset_and_the_sources_stay(old: Path, tmp_path: Path) -> None:
    before = fingerprint(old)
    node = tmp_path / "node"
    plan = resurrect(old, node)
    assert not node.exists()
    plan.apply()
    assert {topic for topic, _ in plan.made.logs} == {"plain", "txn", "delrec", "segs"}
    for topic, number in plan.made.logs:
        assert contents(node / f"{topic}-{number}") == contents(old / f"{topic}-{number}")
    assert not [finding for finding in verify(node) if finding.severity.name == "ERROR"]
    assert fingerprint(old) == before


def test_metadata_of_the_node_says_what_was_planned(old: Path, tmp_path: Path) -> None:
    plan = resurrect(old, tmp_path / "node")
    plan.apply()
    cluster = open_cluster(tmp_path / "node")
    state = cluster.metadata()
    assert state is not None
    assert not state.problems
    assert (state.end_offset, state.epoch) == (1000, 1)
    assert list(state.image.records()) == list(plan.made.image.records())
    assert cluster.cluster_id == open_cluster(old).cluster_id
    assert state.image.topic_named("txn").topic_id == open_cluster(old).image().topic_named("txn").topic_id


def test_log_start_offsets_stay(old: Path, tmp_path: Path) -> None:
    resurrect(old, tmp_path / "node").apply()
    with open_partition(tmp_path / "node" / "delrec-0") as new, open_partition(old / "delrec-0") as before:
        assert new.log_start_offset == before.log_start_offset > 0


def test_report_in_the_node_is_that_of_the_plan(old: Path, tmp_path: Path) -> None:
    plan = resurrect(old, tmp_path / "node")
    plan.apply()
    lines = (tmp_path / "node" / "resurrection.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line) for line in lines] == json.loads(json.dumps(list(plan.report())))


def test_times_of_files_stay(old: Path, tmp_path: Path) -> None:
    log = next((old / "plain-0").glob("*.log"))
    os.utime(log, (1_000_000, 1_000_000))
    resurrect(old, tmp_path / "node").apply()
    assert (tmp_path / "node" / "plain-0" / log.name).stat().st_mtime == 1_000_000


@pytest.mark.parametrize("failing", ["copy_file", "write_new_file"])
@pytest.mark.parametrize("calls", [0, 3, 5])
def test_after_a_failed_write_nothing_is_left_and_the_next_try_works(
    failing: str, calls: int, old: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    works = getattr(resurrection, failing)
    left = [calls]

    def failing_write(*arguments: Any) -> Any:  # noqa: ANN401 - what it stands for takes and gives anything
        if not left[0]:
            raise WriteError(msg) from OSError(28, "No space left on device")
        left[0] -= 1
        return works(*arguments)

    msg = "writing: No space left on device"
    node = tmp_path / "node"
    with monkeypatch.context() as patch:
        patch.setattr(resurrection, failing, failing_write)
        with pytest.raises(WriteError):
            resurrect(old, node).apply()
    assert not node.exists()
    resurrect(old, node).apply()
    assert contents(node / "txn-0") == contents(old / "txn-0")


KILLED = """
import os, shutil, signal, sys
from pathlib import Path
from seglog_format.cluster import resurrection
from seglog_format.storage import copying, new_directory
left = [1 << 30]  # planning writes nothing
def counted(owner, name):
    works = getattr(owner, name)
    def killed(*arguments, **options):
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1
        return works(*arguments, **options)
    setattr(owner, name, killed)
for owner, names in (
    (os, ["write", "utime", "fsync", "mkdir", "rename", "open", "close"]),
    (shutil, ["copyfileobj"]),
    (new_directory, ["rename_to_new", "_sync_all"]),
):
    for name in names:
        counted(owner, name)
plan = resurrection.resurrect(sys.argv[1], sys.argv[2])
left[0] = int(sys.argv[3])
plan.apply()
print(int(sys.argv[3]) - left[0])
"""
FAR: Final = 1 << 30


def run_killed(old: Path, node: Path, calls: int) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", KILLED, old, node, str(calls)]
    return subprocess.run(command, check=False, timeout=60, capture_output=True, text=True)


def described(node: Path) -> dict[str, Any]:
    """Return what a node is: the bytes of its files, and of the one that holds the time of writing the records."""
    files = {str(path.relative_to(node)): path.read_bytes() for path in node.rglob("*") if path.is_file()}
    metadata = [name for name in files if name.endswith(".checkpoint")]
    return {name: data for name, data in files.items() if name not in metadata} | {
        name: list(open_cluster(node).image().records()) for name in metadata
    }


def test_after_a_kill_at_any_write_the_next_run_gives_the_same_and_leaves_nothing_else(
    old: Path, tmp_path: Path
) -> None:
    shutil.rmtree(old / "segs-0")
    whole, node = tmp_path / "whole", tmp_path / "new" / "node"
    node.parent.mkdir()
    count = int(run_killed(old, node, FAR).stdout)
    assert count > 100
    node.rename(whole)
    expected, sources = described(whole), fingerprint(old)
    for calls in [*range(0, count, count // 7), count - 1]:
        done = run_killed(old, node, calls)
        assert done.returncode == -signal.SIGKILL, f"{calls} of {count}: {done.stderr}"
        if node.exists():  # it was killed after its name had been given
            assert described(node) == expected
            shutil.rmtree(node)
        assert run(["resurrect", str(old), "-o", str(node)]) in {0, 1}
        assert [path.name for path in node.parent.iterdir()] == ["node"], f"{calls} of {count}"
        assert described(node) == expected, f"{calls} of {count}"
        assert not (node.stat().st_mode ^ old.stat().st_mode) & 0o77
        shutil.rmtree(node)
    assert fingerprint(old) == sources


def test_closed_segments_are_linked_only_below_the_recovery_point(old: Path, tmp_path: Path) -> None:
    logs = sorted((old / "segs-0").glob("*.log"))
    point = int(logs[2].stem)
    (old / "recovery-point-offset-checkpoint").write_text(f"0\n1\nsegs 0 {point}\n", encoding="ascii")
    resurrect(old, tmp_path / "node", link_closed=True).apply()
    new = sorted((tmp_path / "node" / "segs-0").glob("*.log"))
    linked = [mine.samefile(theirs) for mine, theirs in zip(new, logs, strict=True)]
    assert linked == [True, True, *[False] * (len(logs) - 2)]


# -- what is refused ---------------------------------------------------------------------------------------------------


def test_target_that_is_there_or_lies_in_a_source_is_refused(old: Path, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").touch()
    with pytest.raises(UsageError, match="not an empty directory"):
        resurrect(old, tmp_path / "full")
    with pytest.raises(UsageError, match="one lies in the other"):
        resurrect(old, old / "node").apply()
    assert not (old / "node").exists()


def test_plan_without_a_target_cannot_be_applied(old: Path) -> None:
    with pytest.raises(UsageError, match="no target"):
        resurrect(old).apply()


def test_release_that_does_not_know_the_features_is_refused_unless_a_downgrade_is_allowed(old: Path) -> None:
    with pytest.raises(UsageError, match=r"metadata\.version 30"):
        resurrect(old, kafka="3.9")
    plan = resurrect(old, kafka="3.9", downgrade=True)
    assert plan.made.image.features == {"metadata.version": 21}
    assert any(note.about == "metadata.version" for note in plan.made.notes)


def test_unknown_release_is_refused(old: Path) -> None:
    with pytest.raises(UsageError, match="kafka is one of"):
        resurrect(old, kafka="2.8")


# -- decisions ---------------------------------------------------------------------------------------------------------


def replica(name: str, *epochs: tuple[int, int], end: int | None = 10, topic_id: str | None = "id") -> Replica:
    from pathlib import PurePosixPath

    path: Any = PurePosixPath(name)
    return Replica(path, 1, topic_id, tuple(EpochStart(*each) for each in epochs), 0, end, 100)


def image_with(**settings: str) -> MetadataImage:
    image = MetadataImage(features={"metadata.version": 30})
    image.topics["id"] = TopicImage("t", "id", {0: {"partitionId": 0, "leaderEpoch": 4}})
    if settings:
        image.configs[ConfigResource(2, "t")] = {name.replace("_", "."): value for name, value in settings.items()}
    return image


def test_highest_epoch_wins_then_the_longest_log() -> None:
    long, newer = replica("a", (0, 0), end=99), replica("b", (0, 0), (2, 7), end=9)
    made = new_image(image_with(), {("t", 0): (long, newer)}, NODE)
    assert made.logs["t", 0] is newer
    (note,) = made.notes
    assert "leader epoch 2 is above 0" in note.text
    assert "offsets 7 to 98 of the other are lost" in note.text
    longer = replica("c", (0, 0), (2, 7), end=12)
    assert new_image(image_with(), {("t", 0): (newer, longer)}, NODE).logs["t", 0] is longer


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        (replica("a", (0, 0), end=10), replica("b", (0, 0), end=8), 8),
        (replica("a", (0, 0), (1, 5), end=10), replica("b", (0, 0), end=8), 5),
        (replica("a", (0, 0), (1, 5), end=10), replica("b", (0, 0), (2, 6), end=8), 5),
        (replica("a", (1, 0), end=10), replica("b", (0, 0), end=8), 0),
    ],
)
def test_replicas_part_where_their_leader_epochs_do(one: Replica, other: Replica, expected: int) -> None:
    assert divergence(one, other) == divergence(other, one) == expected


def test_directory_of_another_topic_of_the_name_is_left_out() -> None:
    made = new_image(image_with(), {("t", 0): (replica("a", topic_id="other"),)}, NODE)
    assert made.logs == {}
    assert "another topic of this name" in made.notes[0].text
    assert "will be empty" in made.notes[1].text


def test_leader_epoch_is_above_every_old_one() -> None:
    made = new_image(image_with(), {("t", 0): (replica("a", (0, 0), (7, 3)),)}, NODE)
    assert made.image.topics["id"].partitions[0]["leaderEpoch"] == 8
    made = new_image(image_with(), {("t", 0): (replica("a", (0, 0)),)}, NODE)
    assert made.image.topics["id"].partitions[0]["leaderEpoch"] == 5


def test_settings_that_would_delete_or_stop_are_changed_and_told() -> None:
    old = image_with(
        retention_ms="1000", segment_bytes="4096", min_insync_replicas="2", message_format_version="0.10", foo="bar"
    )
    made = new_image(old, {("t", 0): (replica("a", (0, 0)),)}, NODE)
    assert made.image.configs[ConfigResource(2, "t")] == {
        "retention.ms": "-1",
        "retention.bytes": "-1",
        "segment.bytes": "1048576",
        "min.insync.replicas": "1",
        "foo": "bar",
    }
    assert made.old_settings["t"] == {
        "retention.ms": "1000",
        "retention.bytes": None,
        "segment.bytes": "4096",
        "min.insync.replicas": "2",
        "message.format.version": "0.10",
    }
    assert any("message.format.version" in note.text for note in made.notes)


def test_a_size_of_segments_for_all_brokers_that_the_release_refuses_is_raised() -> None:
    """`fixtures/witnesses/log_settings.json`: since 4.0 the least value of `log.segment.bytes` is 1048576."""
    old = image_with()
    old.configs[ConfigResource(4, "")] = {"log.segment.bytes": "4096", "log.retention.ms": "1000"}
    made = new_image(old, {}, NODE)
    assert made.image.configs[ConfigResource(4, "")] == {"log.segment.bytes": "1048576", "log.retention.ms": "1000"}
    assert any("log.segment.bytes=4096 becomes 1048576" in note.text for note in made.notes)


def test_settings_of_other_brokers_are_left_out() -> None:
    old = image_with()
    for name in ("", "1", "2"):
        old.configs[ConfigResource(4, name)] = {"a": name}
    made = new_image(old, {}, NODE)
    assert [name for kind, name in made.image.configs if kind == 4] == ["", "1"]
    assert [note.about for note in made.notes if note.about.startswith("broker")] == ["broker 2"]


def test_damage_is_told_with_what_is_lost_and_the_rest_is_kept(tmp_path: Path) -> None:
    old = old_directory(tmp_path / "old")
    log = sorted((old / "segs-0").glob("*.log"))[1]
    data = bytearray(log.read_bytes())
    data[70] ^= 1
    log.write_bytes(data)
    plan = resurrect(old)
    assert plan.made.logs["segs", 0].log_end_offset == 450
    damage, lost = notes_of(plan, "segs-0")
    assert f"a broker would cut it at offset {int(log.stem)}" in damage
    assert lost.startswith(f"{log.name}: ")
    assert f"{int(log.stem)} to " in lost


def notes_of(plan: Any, about: str) -> list[str]:  # noqa: ANN401 - a plan
    return [note.text for note in plan.made.notes if note.about == about]


def test_a_log_start_above_the_log_is_no_silent_loss(old: Path) -> None:
    (old / "log-start-offset-checkpoint").write_text("0\n1\nsegs 0 100000\n", encoding="ascii")
    plan = resurrect(old)
    damage, start = notes_of(plan, "segs-0")
    assert "below its checkpointed log start offset, 100000: a broker drops every record" in damage
    assert "that checkpoint is of another log; the log starts at its first record, 0" in start
    assert (plan.made.logs["segs", 0].log_start_offset, plan.made.logs["segs", 0].log_end_offset) == (0, 450)


def test_a_log_behind_an_empty_one_is_no_silent_loss(old: Path) -> None:
    first = min((old / "segs-0").glob("*.log"))
    (old / "segs-0" / f"{3:020d}.log").touch()
    (text,) = notes_of(resurrect(old), "segs-0")
    assert f"{first.name} holds offsets of the segment after it" in text


def test_a_poorer_replacement_is_no_silent_loss(old: Path, tmp_path: Path) -> None:
    log = min((old / "segs-0").glob("*.log"))
    log.with_name(f"{log.name}.swap").touch()
    (text,) = notes_of(resurrect(old), "segs-0")
    assert f"{log.name} is replaced by .swap files: " in text
    other = old_directory(tmp_path / "other")
    assert resurrect([old, other]).made.logs["segs", 0].path == other / "segs-0"


def test_whole_copy_is_taken_instead_of_a_damaged_one(old: Path, tmp_path: Path) -> None:
    other = old_directory(tmp_path / "other")
    log = sorted((old / "segs-0").glob("*.log"))[1]
    data = bytearray(log.read_bytes())
    data[70] ^= 1
    log.write_bytes(data)
    plan = resurrect([old, other])
    assert plan.made.logs["segs", 0].path == other / "segs-0"


def with_epochs(log_directory: Path, *epochs: tuple[int, int]) -> None:
    lines = "".join(f"{epoch} {start}\n" for epoch, start in epochs)
    (log_directory / "segs-0" / "leader-epoch-checkpoint").write_text(f"0\n{len(epochs)}\n{lines}", encoding="ascii")


def test_leader_epochs_behind_damage_do_not_count(old: Path, tmp_path: Path) -> None:
    other = old_directory(tmp_path / "other")
    log = sorted((old / "segs-0").glob("*.log"))[1]
    with_epochs(old, (0, 0), (5, int(log.stem) + 1))
    with_epochs(other, (0, 0))
    assert resurrect([old, other]).made.logs["segs", 0].path == old / "segs-0"
    data = bytearray(log.read_bytes())
    data[70] ^= 1
    log.write_bytes(data)
    chosen = resurrect([old, other]).made.logs["segs", 0]
    assert chosen.path == other / "segs-0"
    assert (chosen.leader_epoch, chosen.log_end_offset) == (0, 450)


def test_directories_of_a_cluster_with_zookeeper_get_ids_and_producer_ids(tmp_path: Path) -> None:
    old = old_directory(tmp_path / "old", "1.1.1", ("root", "txn", "plain", "consumer-offsets"))
    plan = resurrect(old, tmp_path / "node")
    plan.apply()
    image = open_cluster(tmp_path / "node").image()
    assert image.features == {"metadata.version": 21}
    assert image.next_producer_id >= 1000
    topic = image.topic_named("txn")
    assert (tmp_path / "node" / "txn-0" / "partition.metadata").read_text() == f"version: 0\ntopic_id: {topic.topic_id}"
    again = resurrect(old).made.image.topic_named("txn")
    assert again.topic_id == topic.topic_id
    assert image.configs[ConfigResource(2, "__consumer_offsets")] == {"cleanup.policy": "compact"}


def test_open_transaction_without_its_coordinator_is_told(old: Path) -> None:
    plan = resurrect(old, unknown_topics=True)
    lost, opened = (note.text for note in plan.made.notes if note.about == "txn-open-0")
    assert "open at offset 0" in opened
    assert "reading stops there" in opened
    assert lost == "offsets 15 to 15 are lost: by replication-offset-checkpoint the log had reached 16"  # its marker


def test_topics_that_the_metadata_does_not_know_are_taken_when_asked_for(old: Path) -> None:
    assert ("txn-open", 0) not in resurrect(old).made.logs
    assert ("txn-open", 0) in resurrect(old, unknown_topics=True).made.logs


def test_name_of_a_snapshot() -> None:
    assert str(SnapshotName(1000, 1)) == "00000000000000001000-0000000001.checkpoint"


# -- the command -------------------------------------------------------------------------------------------------------


def test_command_offers_the_releases_that_are_known() -> None:
    assert tuple(RELEASES) == command.RELEASES


def test_command_only_tells_without_an_output(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["resurrect", str(old)]) == 1
    text = capsys.readouterr().out
    assert "node 1 for Kafka 4.4" in text
    assert "Old values of settings that the node has otherwise" in text
    assert text.endswith("nothing written; -o NODE writes it\n")


def test_command_writes(old: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["resurrect", "--json", str(old), "-o", str(tmp_path / "node")]) == 1
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert lines[0]["type"] == "node"
    assert (tmp_path / "node" / "meta.properties").is_file()


# -- a stock broker ----------------------------------------------------------------------------------------------------


def test_stock_broker_serves_the_node(tmp_path: Path) -> None:
    old = old_directory(tmp_path / "old", cases=("root", "cluster-metadata", "plain", "txn", "consumer-offsets"))
    with kafka_at_hand():
        failures, count = find_failures([old], tmp_path / "node", "4.4")
    assert failures == []
    assert count >= 3


def test_stock_broker_serves_what_the_old_one_recovered_after_a_kill() -> None:
    with kafka_at_hand():
        failures, count = find_crash_failures(crash_cases()["4.4.0"], "4.4")
    assert failures == []
    assert count == 1


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("INFO Completed load of log crash-flip-0 with log end offset 338 (kafka.log.Log)", ("crash-flip", 338)),
        ("INFO Completed load of log a-0 with 3 log segments and log end offset 305 in 60 ms", ("a", 305)),
        (
            "[Log partition=a-0] Completed load of log with 4 segments, log start offset 0 and log end offset 418",
            ("a", 418),
        ),
        ("Completed load of Log(, topicId=x, topic=a, partition=0, highWatermark=0, logEndOffset=9) with", ("a", 9)),
        ("[LogLoader partition=a-0] Loading producer state till offset 365", ("a", 365)),
    ],
)
def test_end_that_a_broker_tells_of_its_recovery(line: str, expected: tuple[str, int]) -> None:
    topic, end = expected
    assert recovered_ends(line) == {(topic, 0): end}


def test_acls_quotas_positions_and_lag_are_what_the_old_broker_said() -> None:
    with kafka_at_hand():
        failures, count = find_own_failures("4.4")
    assert failures == []
    assert count == FILLED["partitions"] + 1, "the topic, and the positions of its group"

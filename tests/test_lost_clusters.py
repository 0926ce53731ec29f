"""Clusters that were lost in odd ways: what a plan takes, what it leaves out, and what it says about both."""

from __future__ import annotations

import json
import os
import shutil
import struct
from typing import TYPE_CHECKING, Any

import pytest

from proofs import lost_clusters
from proofs.resurrect import fingerprint
from seglog_format import open_cluster, open_partition, resurrect, salvage, verify
from seglog_format.cli import resurrect as command
from seglog_format.cli.main import run
from seglog_format.cluster import cluster as cluster_module
from seglog_format.cluster.cluster import image_lines
from seglog_format.cluster.image import RELEASES, ConfigResource, MetadataImage, TopicImage
from seglog_format.cluster.new_image import MAX_PARTITIONS, NewNode, new_image
from seglog_format.codec.coordinator_records import decode_coordinator_record
from seglog_format.codec.side_files import encode_producer_snapshot
from seglog_format.errors import UsageError
from seglog_format.model import INT32_MAX, INT64_MAX, EpochStart, ProducerStateEntry
from tests.helpers.kafka import kafka_at_hand
from tests.helpers.refusing_disk import seglog, seglog_without_rights
from tests.helpers.support import authentic
from tests.test_resurrect import NODE, contents, image_with, old_directory, replica, with_epochs

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

KAFKA = "4.3.0"
CASES = ("root", "cluster-metadata", "plain", "txn", "delrec", "segs")
METADATA = "__cluster_metadata-0"


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return old_directory(tmp_path / "old", cases=CASES)


def notes_about(plan: Any, about: str) -> list[str]:  # noqa: ANN401 - a plan, whose notes are read
    return [note.text for note in plan.made.notes if note.about == about]


def with_properties(log_directory: Path, cluster_id: str, node_id: int = 1) -> Path:
    text = f"version=1\ncluster.id={cluster_id}\nnode.id={node_id}\n"
    (log_directory / "meta.properties").write_text(text, encoding="ascii")
    return log_directory


def flip(log: Path, position: int) -> None:
    data = bytearray(log.read_bytes())
    data[position] ^= 1
    log.write_bytes(data)


# -- the metadata ------------------------------------------------------------------------------------------------------


def test_directories_of_several_clusters_are_refused_until_one_is_named(
    old: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = old_directory(tmp_path / "other", "4.4.0", ("root", "cluster-metadata", "one"))
    with_properties(old, "A" * 22)
    with_properties(other, "B" * 22)
    with pytest.raises(UsageError, match=f"several clusters: {'A' * 22} .*/old.*; {'B' * 22} .*/other"):
        resurrect([old, other], tmp_path / "node")
    plan = resurrect([other, old], cluster_id="A" * 22)
    assert plan.cluster_id == "A" * 22
    assert plan.made.image.topic_named("txn").topic_id == open_cluster(old).image().topic_named("txn").topic_id
    with pytest.raises(UsageError, match="no directory belongs to cluster"):
        resurrect([old, other], cluster_id="C" * 22)
    assert run(["cluster", str(old), str(other)]) == 1
    assert "directories of several clusters" in capsys.readouterr().err


def test_snapshot_of_formatting_tells_features_and_not_that_there_are_no_topics(old: Path) -> None:
    logs = resurrect(old).made.logs
    (snapshot, *_) = sorted((old / METADATA).glob("*.checkpoint"))
    snapshot.rename(old / "bootstrap.checkpoint")
    shutil.rmtree(old / METADATA)
    plan = resurrect(old)
    assert plan.made.logs.keys() == logs.keys()
    assert plan.made.image.features["metadata.version"] == 30
    assert plan.made.image.next_producer_id >= 1_000_000


def cut_metadata(log_directory: Path, topic: bytes) -> None:
    """Damage the metadata log in the record that creates a topic, and remove the snapshots."""
    for snapshot in (log_directory / METADATA).glob("*.checkpoint"):
        snapshot.unlink()
    (log, *_) = sorted((log_directory / METADATA).glob("*.log"))
    data = log.read_bytes()
    log.write_bytes(data[: data.index(topic) + 1])


def test_damage_of_the_metadata_is_told_and_topics_behind_it_are_taken(tmp_path: Path) -> None:
    old = old_directory(tmp_path / "old", "4.4.0", ("root", "cluster-metadata", "plain", "txn", "segs-fine"))
    logs = resurrect(old).made.logs
    cut_metadata(old, b"segs-fine")
    plan = resurrect(old)
    assert plan.made.logs.keys() == logs.keys()
    assert notes_about(plan, "metadata log")
    assert plan.made.image.next_producer_id >= 1_000_000


def test_copy_of_the_metadata_log_without_its_beginning_comes_last(old: Path, tmp_path: Path) -> None:
    other = old_directory(tmp_path / "other", cases=CASES)
    for path in (other / METADATA).iterdir():
        if path.suffix == ".checkpoint":
            path.unlink()
        elif path.name.startswith("0" * 20):
            path.rename(path.with_name(f"{100:020}{path.suffix}"))
    expected = list(open_cluster(old).image().records())
    assert list(open_cluster([other, old]).image().records()) == expected
    assert not open_cluster([other, old]).metadata().has_gap


def test_partition_that_only_has_a_directory_is_taken(old: Path) -> None:
    shutil.copytree(old / "plain-0", old / "plain-2")
    plan = resurrect(old)
    assert ("plain", 2) in plan.made.logs
    assert sorted(plan.made.image.topic_named("plain").partitions) == [0, 1, 2]
    assert "has a directory" in notes_about(plan, "plain-2")[0]
    assert "will be empty" in notes_about(plan, "plain-1")[0]


def test_absurd_partition_number_is_left_out(old: Path) -> None:
    shutil.copytree(old / "plain-0", old / "plain-2147483647")
    plan = resurrect(old)
    assert sorted(plan.made.image.topic_named("plain").partitions) == [0]
    assert f"at most {MAX_PARTITIONS:,}" in notes_about(plan, "plain-2147483647")[1]


# -- renamed directories -----------------------------------------------------------------------------------------------


def renamed(partition: Path, state: str) -> Path:
    return partition.rename(partition.with_name(f"{partition.name}.{'0' * 32}-{state}"))


@pytest.mark.parametrize("state", ["stray", "delete", "future"])
def test_renamed_directory_is_named_and_taken_when_asked_for(state: str, old: Path, tmp_path: Path) -> None:
    expected = fingerprint(old / "txn-0")
    path = renamed(old / "txn-0", state)
    plan = resurrect(old)
    assert ("txn", 0) not in plan.made.logs
    assert f"{path} is left out: --renamed {state} takes it" in notes_about(plan, "txn-0")
    assert run(["resurrect", str(old), "--renamed", state, "-o", str(tmp_path / "node")]) in {0, 1}
    copied = {(name.rpartition("/")[2], digest) for name, _, digest in fingerprint(tmp_path / "node" / "txn-0")}
    logs = {(name.rpartition("/")[2], digest) for name, _, digest in expected if name.endswith(".log")}
    assert logs <= copied


def test_copy_that_moves_to_another_disk_is_no_news(old: Path) -> None:
    shutil.copytree(old / "txn-0", old / f"txn-0.{'0' * 32}-future")
    assert notes_about(resurrect(old), "txn-0") == []


def test_stray_directory_wins_against_an_empty_topic_of_its_name(old: Path) -> None:
    topic_id = open_cluster(old).replicas["plain", 0][0].topic_id
    path = renamed(old / "plain-0", "stray")
    (old / "plain-0").mkdir()
    (old / "plain-0" / f"{0:020}.log").touch()
    (path / "partition.metadata").write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ", encoding="ascii")
    (old / "plain-0" / "partition.metadata").write_text(f"version: 0\ntopic_id: {topic_id}", encoding="ascii")
    plan = resurrect(old, renamed=("stray",), unknown_topics=True)
    assert plan.made.logs["plain", 0].path == path
    assert plan.made.image.topic_named("plain").topic_id == "AAAAAAAAAAAAAAAAAAAAAQ"
    assert resurrect(old, renamed=("stray",)).made.logs["plain", 0].path == old / "plain-0"


def test_command_offers_the_states_that_are_known() -> None:
    assert command.RENAMED == cluster_module.RENAMED


# -- replicas ----------------------------------------------------------------------------------------------------------


def metadata_of(**fields: Any) -> MetadataImage:  # noqa: ANN401 - fields of a partition
    image = image_with()
    image.topics["id"] = TopicImage("t", "id", {0: {"partitionId": 0, "leaderEpoch": 2, **fields}})
    return image


@pytest.mark.parametrize(
    ("fields", "taken"),
    [
        ({"isr": [1]}, "a"),
        ({"isr": [2]}, "b"),
        ({"isr": [3], "eligibleLeaderReplicas": [1]}, "a"),
        ({"isr": [1], "leaderEpoch": 1}, "b"),
        ({}, "b"),
    ],
)
def test_of_one_leader_epoch_the_replica_in_sync_wins_then_the_longest(fields: dict[str, Any], taken: str) -> None:
    one = replica("a", (2, 0), end=10)._replace(node_id=1)
    two = replica("b", (2, 0), end=15)._replace(node_id=2)
    made = new_image(metadata_of(**fields), {("t", 0): (one, two)}, NODE)
    assert str(made.logs["t", 0].path) == taken
    assert ("offsets 10 to 14 of the other are lost" in made.notes[-1].text) is (taken == "a")


def test_damaged_replica_in_sync_does_not_win() -> None:
    one = replica("a", (2, 0), end=10)._replace(node_id=1, damage="crc")
    two = replica("b", (2, 0), end=15)._replace(node_id=2)
    made = new_image(metadata_of(isr=[1]), {("t", 0): (one, two)}, NODE)
    assert made.logs["t", 0] is two


def test_plan_tells_when_no_replica_in_sync_is_at_hand() -> None:
    one = replica("a", (2, 0))._replace(node_id=1)
    (note,) = new_image(metadata_of(isr=[2, 3]), {("t", 0): (one,)}, NODE).notes
    assert note.text.startswith("in sync were brokers 2, 3")
    assert new_image(metadata_of(isr=[1, 3]), {("t", 0): (one,)}, NODE).notes == []


@pytest.mark.parametrize("content", [None, b"", b"\xff\x00 nonsense"])
def test_leader_epochs_of_batches_count_where_the_checkpoint_lacks_them(
    content: bytes | None, old: Path, tmp_path: Path
) -> None:
    other = old_directory(tmp_path / "other", cases=CASES)
    checkpoint = old / "segs-0" / "leader-epoch-checkpoint"
    checkpoint.unlink()
    if content is not None:
        checkpoint.write_bytes(content)
    shutil.rmtree(other / "segs-0")
    plan = resurrect([old, other], tmp_path / "node")
    assert plan.made.logs["segs", 0].epochs == (EpochStart(0, 0),)
    plan.apply()
    assert (tmp_path / "node" / "segs-0" / "leader-epoch-checkpoint").read_text(encoding="ascii") == "0\n1\n0 0\n"


def test_report_compares_replicas_and_measures_what_is_lost(old: Path, tmp_path: Path) -> None:
    other = old_directory(tmp_path / "other", cases=CASES)
    with_properties(old, "A" * 22, 1)
    with_properties(other, "A" * 22, 2)
    with_epochs(old, (0, 0), (1, 300))
    with_epochs(other, (0, 0))
    lines = [line for line in resurrect([old, other]).report() if line["type"] == "replica" and line["topic"] == "segs"]
    taken, lost = lines
    assert (taken["nodeId"], taken["isTaken"], taken["leaderEpoch"], taken["divergence"]) == (1, True, 1, None)
    assert (lost["nodeId"], lost["isTaken"], lost["leaderEpoch"]) == (2, False, 0)
    with open_partition(other / "segs-0") as partition:
        segment = max(
            (each for each in partition.segments if each.base_offset <= 300), key=lambda each: each.base_offset
        )
        position = segment.position_of(300)
        size = sum(each.size for each in partition.segments if each.base_offset >= segment.base_offset) - position
    assert lost["divergence"] == {
        "offset": 300,
        "leaderEpoch": 0,
        "file": f"{segment.base_offset:020}.log",
        "position": position,
        "lostOffsetCount": 150,
        "lostSize": size,
    }


def test_node_of_a_damaged_log_lacks_only_the_damaged_batch_and_is_sound(old: Path, tmp_path: Path) -> None:
    log = sorted((old / "segs-0").glob("*.log"))[2]
    flip(log, log.stat().st_size // 2)
    plan = resurrect(old, tmp_path / "node")
    plan.apply()
    node = tmp_path / "node" / "segs-0"
    with open_partition(node) as partition:
        assert partition.log_end_offset == plan.made.logs["segs", 0].log_end_offset == 450
    cut = plan.made.logs["segs", 0].cut
    old_data, new_data = log.read_bytes(), (node / log.name).read_bytes()
    (size,) = struct.unpack_from(">i", old_data, cut.position + 8)
    assert new_data == old_data[: cut.position] + old_data[cut.position + 12 + size :]
    assert {path.name for path in node.glob("*.log")} == {path.name for path in log.parent.glob("*.log")}
    assert [finding for finding in verify(tmp_path / "node") if finding.severity.name == "ERROR"] == []


def test_unreadable_directory_of_a_partition_does_not_hide_the_others(old: Path) -> None:
    log = next((old / "plain-0").glob("*.log"))
    log.unlink()
    log.symlink_to("nowhere")
    plan = resurrect(old)
    assert ("txn", 0) in plan.made.logs
    assert any("cannot be read" in text for text in notes_about(plan, "plain-0"))


def to_directory(path: Path) -> None:
    path.mkdir()


def to_fifo(path: Path) -> None:
    os.mkfifo(path)


def to_link(path: Path) -> None:
    path.symlink_to("nowhere")


BESIDE = (".index", ".timeindex", ".snapshot", "leader-epoch-checkpoint")


@pytest.mark.parametrize("turned", [to_directory, to_fifo, to_link])
@pytest.mark.parametrize("ending", BESIDE)
def test_file_beside_the_logs_that_cannot_be_read_costs_no_record(
    ending: str, turned: Callable[[Path], None], old: Path, tmp_path: Path
) -> None:
    beside = max((old / "segs-0").glob(f"*{ending}"))
    beside.unlink()
    turned(beside)
    plan = resurrect(old, tmp_path / "node")
    plan.apply()
    assert contents(tmp_path / "node" / "segs-0") == contents(authentic(f"{KAFKA}/segs") / "segs-0")
    (note,) = notes_about(plan, "segs-0")
    assert str(beside) in note
    assert "only its logs are taken" in note
    assert [finding for finding in verify(tmp_path / "node") if finding.severity.name == "ERROR"] == []


def test_records_around_bytes_that_the_disk_refuses_are_kept(old: Path, tmp_path: Path) -> None:
    log = sorted((old / "segs-0").glob("*.log"))[2]
    middle = log.stat().st_size // 2
    answer = seglog("resurrect", old, "-o", tmp_path / "node", refused=((log.name, middle, middle + 1),))
    assert answer.status == 3
    kept, whole = contents(tmp_path / "node" / "segs-0"), contents(authentic(f"{KAFKA}/segs") / "segs-0")
    lost = [record.offset for record in whole if record not in kept]
    assert [record for record in whole if record in kept] == kept
    assert 0 < len(lost) < 30
    assert lost == list(range(lost[0], lost[-1] + 1))
    assert kept[-1] == whole[-1]
    assert "only its logs are taken" in answer.out


def test_index_that_its_user_may_not_read_costs_no_record(old: Path, tmp_path: Path) -> None:
    max((old / "segs-0").glob("*.index")).chmod(0)
    answer = seglog_without_rights("resurrect", old, "-o", tmp_path / "node")
    assert contents(tmp_path / "node" / "segs-0") == contents(authentic(f"{KAFKA}/segs") / "segs-0")
    assert "only its logs are taken" in answer.out


def test_torn_tail_of_a_linked_log_costs_no_record_before_it(old: Path, tmp_path: Path) -> None:
    log = max((old / "segs-0").glob("*.log"))
    target = log.rename(tmp_path / "elsewhere")
    log.symlink_to(target)
    with target.open("ab") as file:
        file.write(bytes(5))
    resurrect(old, tmp_path / "node").apply()
    assert contents(tmp_path / "node" / "segs-0") == contents(authentic(f"{KAFKA}/segs") / "segs-0")


def test_log_that_no_replica_holds_whole_is_salvaged(old: Path, tmp_path: Path) -> None:
    flip(min((old / "segs-0").glob("*.log")), 70)
    salvage(old / "segs-0", tmp_path / "rescued" / "segs-0").apply()
    assert resurrect([old, tmp_path / "rescued"]).made.logs["segs", 0].log_end_offset == 450


# -- numbers at the end of their range -------------------------------------------------------------------------------


def test_last_leader_epoch_is_written_and_told(old: Path, tmp_path: Path) -> None:
    with_epochs(old, (INT32_MAX, 0))
    plan = resurrect(old, tmp_path / "node")
    plan.apply()
    assert "leader epoch 2147483647 is the last one: no broker can be elected again" in notes_about(plan, "segs-0")


def test_producer_id_without_a_successor_does_not_count(old: Path, tmp_path: Path) -> None:
    shutil.rmtree(old / METADATA)
    producer = ProducerStateEntry(INT64_MAX, 0, 0, 449, 0, 0, -1, -1)
    (old / "segs-0" / f"{450:020}.snapshot").write_bytes(encode_producer_snapshot([producer]))
    plan = resurrect(old, tmp_path / "node", unknown_topics=True)
    plan.apply()
    assert any(str(INT64_MAX) in text for text in notes_about(plan, "producer ids"))
    assert plan.made.image.next_producer_id < 10**7


@pytest.mark.parametrize("node_id", [-1, INT32_MAX + 1])
def test_node_id_that_cannot_be_written_is_refused_at_once(node_id: int, old: Path) -> None:
    with pytest.raises(UsageError, match="node_id"):
        resurrect(old, node_id=node_id)


# -- settings ----------------------------------------------------------------------------------------------------------


def test_one_replica_is_enough_for_topics_that_take_it_from_their_broker() -> None:
    old = image_with()
    old.configs[ConfigResource(4, "")] = {"min.insync.replicas": "2", "log.cleaner.threads": "2"}
    made = new_image(old, {}, NewNode(1, NODE.directory_id, RELEASES["4.4"]))
    assert made.image.configs[ConfigResource(4, "")] == {"min.insync.replicas": "1", "log.cleaner.threads": "2"}
    assert any("min.insync.replicas=2" in note.text for note in made.notes)


def test_passwords_in_settings_are_printed_only_when_asked_for() -> None:
    image = MetadataImage()
    image.configs[ConfigResource(4, "1")] = {
        "ssl.keystore.password": "x1",
        "listener.name.a.scram-sha-256.sasl.jaas.config": "x2",
        "ssl.keystore.key": "x3",
        "ssl.keystore.location": "shown",
    }
    values = [line["value"] for line in image_lines(image)]
    assert values == ["(hidden)", "(hidden)", "shown", "(hidden)"]
    assert sorted(line["value"] for line in image_lines(image, with_secrets=True)) == ["shown", "x1", "x2", "x3"]


def test_downgrade_is_refused_with_a_list_of_what_would_be_lost_and_names_the_groups(tmp_path: Path) -> None:
    cases = ("root", "cluster-metadata", "consumer-offsets", "share-group-state")
    old = old_directory(tmp_path / "old", "4.4.0", cases)
    with pytest.raises(UsageError, match=r"share\.version 2 \(share groups and their start offsets\)"):
        resurrect(old, kafka="3.9")
    types = {name: group.type for name, group in open_cluster(old).coordinators.groups.items()}
    plan = resurrect(old, kafka="3.9", downgrade=True)
    lost = {name for name, kind in types.items() if kind in {"consumer", "share", "streams"}}
    assert {note.about.removeprefix("group ") for note in plan.made.notes if note.about.startswith("group ")} == lost
    assert {types[name] for name in lost} >= {"consumer", "share"}
    newest = resurrect(old)
    assert not [note for note in newest.made.notes if note.about.startswith("group ")]


def test_positions_with_an_expiry_time_of_their_own_are_not_looked_at(tmp_path: Path) -> None:
    old = old_directory(tmp_path / "old", "1.1.1", ("root", "consumer-offsets"))
    with open_partition(old / "__consumer_offsets-0") as log:
        decoded = [decode_coordinator_record("__consumer_offsets", each.key, each.value) for each in log.records()]
    values = [each["value"] for each in decoded if each["type"] == "offsetCommit"]
    assert all(value["expireTimestamp"] > value["commitTimestamp"] for value in values)
    resurrect(old, tmp_path / "node").apply()
    lines = (tmp_path / "node" / "server.properties").read_text(encoding="utf-8").splitlines()
    settings = dict(line.split("=", 1) for line in lines if not line.startswith("#"))
    assert int(settings["offsets.retention.check.interval.ms"]) > 9 * 365 * 86_400_000
    assert settings["offsets.retention.minutes"] == "2147483647"


# -- where it is written -----------------------------------------------------------------------------------------------


def test_target_in_a_directory_of_which_no_log_is_taken_is_refused(old: Path, tmp_path: Path) -> None:
    controller = tmp_path / "controller"
    controller.mkdir()
    (old / METADATA).rename(controller / METADATA)
    (tmp_path / "link").symlink_to(controller)
    for target in (controller / "node", tmp_path / "link" / "node"):
        with pytest.raises(UsageError, match="one lies in the other"):
            resurrect([old, controller], target)


def test_full_disk_is_told_and_nothing_is_left(
    old: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_arguments: object) -> None:
        raise OSError(28, "No space left on device", str(tmp_path / "node"))

    before = fingerprint(old)
    monkeypatch.setattr(shutil, "copyfileobj", full)
    assert run(["resurrect", str(old), "-o", str(tmp_path / "node")]) > 1
    error = capsys.readouterr().err
    assert "No space left on device" in error
    assert "Traceback" not in error
    assert [path.name for path in tmp_path.iterdir()] == ["old"]
    assert fingerprint(old) == before


def test_several_disks_of_a_broker_are_one(old: Path, tmp_path: Path) -> None:
    second = tmp_path / "second"
    second.mkdir()
    for name in ("txn-0", "segs-0"):
        (old / name).rename(second / name)
    assert run(["resurrect", "--json", str(old), str(second), "-o", str(tmp_path / "node")]) in {0, 1}
    for name in ("plain-0", "txn-0", "segs-0", "delrec-0"):
        assert (tmp_path / "node" / name).is_dir()
    lines = (tmp_path / "node" / "resurrection.jsonl").read_text(encoding="utf-8").splitlines()
    assert not [line for line in map(json.loads, lines) if line["type"] == "replica"]


# -- a stock broker ----------------------------------------------------------------------------------------------------


def test_stock_broker_serves_what_is_left_without_metadata_and_without_some_partitions(tmp_path: Path) -> None:
    with kafka_at_hand():
        old, served = lost_clusters.filled("4.4", tmp_path)
        found, count = lost_clusters.find_lost_failures("4.4", "missing-partitions", old, served, tmp_path / "lost")
    assert found == []
    assert count == 8

"""What a cluster was: its metadata image, its groups and transactions, and the command that shows them."""

from __future__ import annotations

import json
import os
import random
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from helpers.support import authentic, need
from hypothesis import given
from hypothesis import strategies as st

from proofs.cluster_images import bundled, differences, made_steps, real_histories, snapshot_of
from proofs.kafka.metadata_histories import made_history
from proofs.kafka.oracle import CLUSTERS, TOOL_CHAIN, Oracle, OracleError
from seglog_format import build_batch, build_end_marker, new_record, open_cluster, open_partition
from seglog_format.cli.cluster import cluster_text
from seglog_format.cli.main import run
from seglog_format.cluster.cluster import CoordinatorState, decided_records, image_lines, transaction_line
from seglog_format.cluster.image import ConfigResource, MetadataImage
from seglog_format.cluster.metadata_log import RULES, MetadataLog, MetadataRecord, MetadataState, replay, snapshot_state
from seglog_format.errors import CorruptRecordError
from seglog_format.model import ControlRecordType, RecordBatch
from seglog_format.schema.metadata_records import FRAMED_TOPICS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


VERSIONS = ("3.9.1", "4.3.0")
TRANSACTION_KINDS = {"BEGIN_TRANSACTION_RECORD", "END_TRANSACTION_RECORD", "ABORT_TRANSACTION_RECORD"}


def metadata_log(cluster: str) -> MetadataLog:
    """Return the metadata log of a bundled broker directory."""
    return MetadataLog(authentic(f"{cluster}/cluster-metadata") / "__cluster_metadata-0")


# -- the image ---------------------------------------------------------------------------------------------------------


def test_every_kind_of_metadata_record_has_a_rule() -> None:
    kinds = {definition.name for definition in FRAMED_TOPICS["__cluster_metadata"].values()}
    assert kinds - TRANSACTION_KINDS - {"ACCESS_CONTROL_RECORD"} == set(RULES)


@pytest.mark.parametrize("cluster", VERSIONS)
def test_snapshots_of_a_broker_hold_the_image_of_the_log_up_to_them(cluster: str) -> None:
    log = metadata_log(cluster)
    assert log.snapshots
    for snapshot in log.snapshots:
        state = MetadataState()
        state.replay(record for record in log.records() if record.offset < snapshot.base_offset)
        written = snapshot_state(snapshot.path)
        assert not written.problems
        assert snapshot_of(state.image) == snapshot_of(written.image)


@pytest.fixture(scope="module")
def kafka() -> Iterator[Oracle]:
    """Kafka's own image; in CI, where the tool chain works, it has to answer."""
    need("Kafka", TOOL_CHAIN)
    try:
        with Oracle("4.4", project=CLUSTERS) as oracle:
            yield oracle
    except OracleError as error:
        if os.environ.get("CI") == "true":
            raise
        pytest.skip(f"Kafka's classes could not be built: {error}")


def test_image_equals_that_of_kafka_after_each_record_of_real_logs(kafka: Oracle, tmp_path: Path) -> None:
    histories = list(real_histories(bundled(tmp_path)))
    assert sum(map(len, histories)) > 500
    assert [text for steps in histories for text in differences(kafka, steps)] == []


@pytest.mark.parametrize("seed", range(3))
def test_image_equals_that_of_kafka_after_each_made_up_record(kafka: Oracle, seed: int) -> None:
    assert differences(kafka, made_steps(seed, 150)) == []


@given(st.integers(min_value=0), st.integers(min_value=0, max_value=60))
def test_replaying_a_snapshot_gives_the_image_back(seed: int, length: int) -> None:
    image, again = MetadataImage(), MetadataImage()
    for kind, fields in made_history(random.Random(seed), image, length):  # noqa: S311 - no secret
        replay(image, kind, fields)
    for kind, fields in image.records():
        replay(again, kind, fields)
    assert snapshot_of(again) == snapshot_of(image)


def record(offset: int, kind: str, **fields: object) -> MetadataRecord:
    return MetadataRecord(offset, 1, 1000 + offset, kind, fields, is_control=False)


TOPIC = record(0, "TOPIC_RECORD", name="t", topicId="id")
BEGIN = record(1, "BEGIN_TRANSACTION_RECORD")


@pytest.mark.parametrize(
    ("records", "topics"),
    [
        ([BEGIN, TOPIC], 0),
        ([BEGIN, TOPIC, record(2, "END_TRANSACTION_RECORD")], 1),
        ([BEGIN, TOPIC, record(2, "ABORT_TRANSACTION_RECORD")], 0),
        ([TOPIC, BEGIN], 1),
    ],
)
def test_records_of_a_metadata_transaction_count_from_its_end(records: list[MetadataRecord], topics: int) -> None:
    state = MetadataState()
    state.replay(records)
    assert len(state.image.topics) == topics
    assert not state.problems


@pytest.mark.parametrize(
    ("kind", "fields", "named"),
    [
        ("PARTITION_RECORD", {"topicId": "none", "partitionId": 0}, "topicId"),
        ("PARTITION_CHANGE_RECORD", {"topicId": "id", "partitionId": 7}, "partitionId"),
        ("FENCE_BROKER_RECORD", {"id": 7, "epoch": 0}, "brokerId"),
        ("SOMETHING_NEW", {}, "type"),
    ],
)
def test_record_that_does_not_fit_is_named_and_left_out(kind: str, fields: dict[str, Any], named: str) -> None:
    image = MetadataImage()
    replay(image, TOPIC.type, TOPIC.fields)
    with pytest.raises(CorruptRecordError) as caught:
        replay(image, kind, fields)
    assert caught.value.location.field == named
    state = MetadataState()
    state.replay([TOPIC, record(1, kind, **fields), record(2, "TOPIC_RECORD", name="u", topicId="id2")])
    assert set(state.image.topics) == {"id", "id2"}
    assert len(state.problems) == 1
    assert kind in state.problems[0]


@pytest.mark.parametrize("cluster", VERSIONS)
def test_state_at_an_offset_or_a_time_is_that_of_the_records_up_to_it(cluster: str) -> None:
    log = metadata_log(cluster)
    records = list(log.records())
    for wanted in records[:: len(records) // 5]:
        state = MetadataState()
        state.replay(each for each in records if each.offset <= wanted.offset)
        found = log.state(at_offset=wanted.offset)
        assert snapshot_of(found.image) == snapshot_of(state.image)
        assert (found.end_offset, found.timestamp_ms) == (wanted.offset + 1, wanted.timestamp_ms)
        assert log.state(at_time_ms=wanted.timestamp_ms).end_offset >= wanted.offset + 1


def copied(cluster: str, target: Path) -> MetadataLog:
    shutil.copytree(metadata_log(cluster).path, target)
    return MetadataLog(target)


def test_damaged_snapshot_is_named_and_an_older_one_taken(tmp_path: Path) -> None:
    log = copied("4.3.0", tmp_path / "__cluster_metadata-0")
    whole = log.state()
    newest = log.snapshots[-1].path
    data = bytearray(newest.read_bytes())
    data[len(data) // 2] ^= 1
    newest.write_bytes(data)
    state = log.state()
    assert state.snapshot == log.snapshots[-2].path
    assert snapshot_of(state.image) == snapshot_of(whole.image)
    assert newest.name in state.problems[0]


def test_snapshot_without_its_footer_is_not_taken(tmp_path: Path) -> None:
    log = copied("4.3.0", tmp_path / "__cluster_metadata-0")
    newest = log.snapshots[-1].path
    newest.write_bytes(newest.read_bytes()[:-1])
    state = log.state()
    assert state.snapshot == log.snapshots[-2].path
    assert any("footer" in problem for problem in state.problems)


def test_records_missing_between_snapshot_and_log_are_named(tmp_path: Path) -> None:
    log = copied("4.3.0", tmp_path / "__cluster_metadata-0")
    for snapshot in log.snapshots:
        snapshot.path.unlink()
    segment = next(log.path.glob("*.log"))
    segment.rename(segment.with_name(f"{100:020d}.log"))
    for index in [*log.path.glob("*.index"), *log.path.glob("*.timeindex")]:
        index.unlink()
    problems = MetadataLog(log.path).state().problems
    assert "records 0 to 99 are missing" in problems[0]


# -- coordinators ------------------------------------------------------------------------------------------------------


def entry(offset: int, key: bytes, producer_id: int = -1) -> RecordBatch:
    """Return a batch of one record; with a producer id part of a transaction."""
    return build_batch(
        [new_record(key=key)], base_offset=offset, producer_id=producer_id, is_transactional=producer_id >= 0
    )


def marker(offset: int, producer_id: int, kind: ControlRecordType) -> RecordBatch:
    return build_end_marker(
        kind, producer_id=producer_id, producer_epoch=0, coordinator_epoch=0, timestamp_ms=0, base_offset=offset
    )


def test_records_of_a_transaction_count_when_it_is_committed() -> None:
    commit, abort = marker(4, 1, ControlRecordType.COMMIT), marker(5, 2, ControlRecordType.ABORT)
    open_one = entry(3, b"d", 3)
    batches = [entry(0, b"a", 1), entry(1, b"b", 2), entry(2, b"c"), open_one, commit, abort, entry(6, b"e")]
    assert [each.key for each in decided_records(batches)] == [b"c", b"a", b"e"]


@pytest.mark.parametrize("cluster", ["1.1.1", "2.8.2", *VERSIONS])
def test_groups_of_real_brokers(cluster: str) -> None:
    state = CoordinatorState()
    directory = next(authentic(f"{cluster}/consumer-offsets").glob("__consumer_offsets-*"))
    with open_partition(directory) as partition:
        state.replay("__consumer_offsets", partition.batches())
    assert not state.problems
    assert any(group.offsets for group in state.groups.values())


COMMIT_KEY = bytes.fromhex("000100016700017400000000")
"""Key of an offset commit: version 1, group ``g``, topic ``t``, partition 0."""


def commit_value(offset: int) -> bytes:
    """Value of version 1: offset, empty metadata, commit and expiry time."""
    return b"\x00\x01" + offset.to_bytes(8, "big") + b"\x00\x00" + bytes(8) + b"\xff" * 8


def committed(offset: int, at: int, producer_id: int = -1) -> RecordBatch:
    record = new_record(key=COMMIT_KEY, value=commit_value(offset))
    return build_batch([record], base_offset=at, producer_id=producer_id, is_transactional=producer_id >= 0)


def position_after(*batches: RecordBatch) -> int | None:
    state = CoordinatorState()
    state.replay("__consumer_offsets", batches)
    assert not state.problems
    found = state.groups["g"].offsets.get(("t", 0))
    return None if found is None else found.offset


def test_transaction_that_ends_late_does_not_undo_a_later_commit() -> None:
    end = marker(2, 1, ControlRecordType.COMMIT)
    assert position_after(committed(5, 0, 1), committed(9, 1), end) == 9
    assert position_after(committed(9, 0), committed(5, 1, 1), end) == 5


def test_tombstone_removes_a_position() -> None:
    gone = build_batch([new_record(key=COMMIT_KEY)], base_offset=1)
    assert position_after(committed(5, 0), gone) is None


# -- the command -------------------------------------------------------------------------------------------------------


@pytest.fixture
def node(tmp_path: Path) -> Path:
    """Provide a log directory of 4.3.0 with its metadata log and the topics of its coordinators.

    The checkpoints are of a later time than the log of ``txn-open``.
    """
    for case in ("root", "cluster-metadata", "consumer-offsets", "transaction-state", "txn-open"):
        shutil.copytree(authentic(f"4.3.0/{case}"), tmp_path, dirs_exist_ok=True)
    return tmp_path


def lines_of(capsys: pytest.CaptureFixture[str], *arguments: str | Path, status: int = 0) -> list[dict[str, Any]]:
    assert run(["cluster", "--json", *map(str, arguments)]) == status
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_command_shows_cluster_topics_groups_and_transactions(node: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = lines_of(capsys, node, status=1)
    cluster = lines[0]
    assert (cluster["type"], cluster["mode"], cluster["features"]["metadata.version"]) == ("cluster", "kraft", 30)
    topics = {line["topic"] for line in lines if line["type"] == "topic"}
    assert {"__consumer_offsets", "txn-open", "plain"} <= topics
    assert any(line["type"] == "committedOffset" for line in lines)
    states = {line["transactionalId"]: line["state"] for line in lines if line["type"] == "transaction"}
    assert states["tx-A-t"] == "CompleteAbort"
    (problem,) = (line["text"] for line in lines if line["type"] == "problem")
    assert problem == f"{node / 'txn-open-0'}: offset 15 is missing (log end)"


def test_text_names_the_same_things(node: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["cluster", str(node)]) == 1
    text = capsys.readouterr().out
    for part in ("cluster ", "metadata.version 30", "Brokers", "Topics", "Groups"):
        assert part in text


def test_without_a_metadata_log_topics_are_those_of_the_directories(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for case in ("root", "txn", "consumer-offsets"):
        shutil.copytree(authentic(f"1.1.1/{case}"), tmp_path, dirs_exist_ok=True)
    lines = lines_of(capsys, tmp_path)
    assert lines[0]["mode"] == "unknown"
    assert "txn" in {line["topic"] for line in lines if line["type"] == "topic"}


def test_history_of_a_topic_begins_with_its_creation(node: Path, capsys: pytest.CaptureFixture[str]) -> None:
    events = lines_of(capsys, node, "--history", "txn")
    assert [event["event"] for event in events if event["event"] != "setting changed"] == ["created", "partition added"]
    assert run(["cluster", "--history", "txn", str(node)]) == 0
    assert "created" in capsys.readouterr().out


def test_history_needs_a_metadata_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(authentic("1.1.1/root"), tmp_path, dirs_exist_ok=True)
    assert run(["cluster", "--history", "txn", str(tmp_path)]) == 2
    assert "metadata log" in capsys.readouterr().err


def test_keys_of_scram_users_are_printed_only_when_asked_for() -> None:
    image = MetadataImage()
    credential = {"name": "bob", "mechanism": 2, "salt": "s", "storedKey": "k", "serverKey": "v", "iterations": 4096}
    replay(image, "USER_SCRAM_CREDENTIAL_RECORD", credential)
    (line,) = image_lines(image)
    assert line == {"type": "scramUser", "name": "bob", "mechanism": "SCRAM-SHA-512", "iterations": 4096}
    (line,) = image_lines(image, with_secrets=True)
    assert line["storedKey"] == "k"


def test_problem_gives_status_1_and_is_said_on_standard_error(node: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = next((node / "__cluster_metadata-0").glob("*.log"))
    data = bytearray(log.read_bytes())
    data[-3] ^= 1
    log.write_bytes(data)
    assert run(["cluster", str(node)]) == 1
    assert "SEG-BAT" in capsys.readouterr().err


@pytest.mark.parametrize(("status", "state", "is_open"), [(0, "Empty", False), (1, "Ongoing", True), (9, "9", False)])
def test_transaction_is_open_while_it_waits_for_its_end(status: int, state: str, *, is_open: bool) -> None:
    fields = {"producerId": 7, "producerEpoch": 0, "transactionTimeoutMs": 1, "transactionStatus": status}
    partitions = [{"topic": "t", "partitionIds": [0, 2]}]
    line = transaction_line("tx", fields | {"transactionPartitions": partitions})
    assert (line["state"], line["isOpen"], line["partitions"]) == (state, is_open, {"t": [0, 2]})
    cluster = {"type": "cluster", "clusterId": None, "mode": "unknown", "features": {}}
    assert ("Open transactions" in list(cluster_text([cluster, line]))) is is_open


def test_lag_is_the_distance_to_the_log_end_offset(node: Path) -> None:
    cluster = open_cluster(node)
    for name, group in cluster.coordinators.groups.items():
        for key, lag in cluster.lag(name).items():
            copies = cluster.replicas.get(key)
            expected = None if copies is None else max(copies[0].log_end_offset - group.offsets[key].offset, 0)
            assert lag == expected


def test_configs_of_a_topic_go_with_it() -> None:
    image = MetadataImage()
    replay(image, TOPIC.type, TOPIC.fields)
    fields = {"resourceType": 2, "resourceName": "t", "name": "retention.ms", "value": "1"}
    replay(image, "CONFIG_RECORD", fields)
    assert image.configs == {ConfigResource(2, "t"): {"retention.ms": "1"}}
    replay(image, "REMOVE_TOPIC_RECORD", {"topicId": "id"})
    assert image == MetadataImage()

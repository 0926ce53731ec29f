"""Transactions that clients of several releases end, in logs and snapshots of brokers (chapters 32 and 50)."""

from __future__ import annotations

import base64
import json
import re
from typing import TYPE_CHECKING, Any, Final

import pytest
from helpers.made_partitions import make
from helpers.support import FIXTURES

from proofs.kafka.served import ISOLATIONS, digest_of
from seglog_format import open_partition, rebuild_indexes, recover, verify
from seglog_format.log.index_file import ProducerSnapshot
from seglog_format.state.producer_state import ProducerStates

if TYPE_CHECKING:
    from pathlib import Path

    from proofs.kafka.served import Isolation
    from seglog_format.model import ProducerStateEntry

WITNESS = json.loads((FIXTURES / "witnesses" / "transaction_epochs.json").read_text(encoding="utf-8"))
BROKERS: Final[dict[str, Any]] = WITNESS["brokers"]
BATCH = re.compile(r"producerId: (-?\d+) producerEpoch: (-?\d+) .* isTransactional: (\w+) isControl: (\w+)")
LOG = f"{0:020}.log"
END = 85

SAME, NEXT = [0, 0, 0], [1, 1, 1]
STEPS = {
    "3.9.1": {
        "kafka-clients 3.9.1": (SAME, [0, 1], [1, 0], [0, 1], [0]),
        "kafka-clients 4.4.0": (SAME, [0, 1], [1, 0], [0, 1], [0]),
        "librdkafka 2.16.0": (SAME,),
        "kafka-python 3.0.12": (SAME,),
    },
    "4.4.0": {
        "kafka-clients 3.9.1": (SAME, [0, 1], [1, 0], [0, 1], [0]),
        "kafka-clients 4.4.0": (NEXT, [1, 1], [1, 1], [1, 1], [1]),
        "librdkafka 2.16.0": (SAME,),
        "kafka-python 3.0.12": (SAME,),
    },
}
"""By broker and client: how much greater the epoch of each marker is than that of the data before it."""
WAYS = ("ends", "fenced", "fenced-goes-on", "timed-out", "stays-open")


def stored(broker: str, stage: str = "files") -> dict[str, bytes]:
    return {name: base64.b64decode(data) for name, data in BROKERS[broker][stage].items()}


def partition(root: Path, broker: str) -> Path:
    return make(root, stored(broker), clean=True)


def entries(data: bytes, root: Path) -> dict[int, ProducerStateEntry]:
    path = root / f"{END:020}.snapshot"
    path.write_bytes(data)
    return {each.producer_id: each for each in ProducerSnapshot.open(path).producers}


def replayed(directory: Path) -> dict[int, ProducerStateEntry]:
    """Return what a snapshot at the end of a log holds, from its batches alone."""
    states = ProducerStates()
    with open_partition(directory) as opened:
        for segment in opened.segments:
            states.replay(segment.ordered_frames(), segment.path)
    return {producer.producer_id: producer.to_entry() for producer in states.producers}


@pytest.mark.parametrize("broker", BROKERS)
def test_epochs_of_markers_by_broker_client_and_end(broker: str) -> None:
    found: dict[int, list[int]] = {}
    latest: dict[int, int] = {}
    for producer_id, epoch, _, is_control in map(fields, batches(broker)):
        if is_control:
            found.setdefault(producer_id, []).append(epoch - latest[producer_id])
        latest[producer_id] = epoch
    names = BROKERS[broker]["producers"]
    expected = {
        names[f"{client}, {way}"]: steps
        for client, ways in STEPS[broker].items()
        for way, steps in zip(WAYS, ways, strict=False)
    }
    assert found == expected


def batches(broker: str) -> list[str]:
    lines = [line for line in BROKERS[broker]["dumped"] if line.startswith("baseOffset")]
    return [line for line in lines if " isTransactional: true" in line]


def fields(line: str) -> tuple[int, int, bool, bool]:
    match = BATCH.search(line)
    assert match is not None
    return int(match[1]), int(match[2]), match[3] == "true", match[4] == "true"


@pytest.mark.parametrize("broker", BROKERS)
@pytest.mark.req("SEG-PSN-011", "SEG-PSN-012")
def test_snapshot_follows_from_the_batches(broker: str, tmp_path: Path) -> None:
    snapshot = stored(broker)[f"{END:020}.snapshot"]
    assert replayed(partition(tmp_path, broker)) == entries(snapshot, tmp_path)


@pytest.mark.parametrize("broker", BROKERS)
@pytest.mark.req("SEG-PSN-011", "SEG-PSN-012")
def test_recovery_writes_the_same_snapshot(broker: str, tmp_path: Path) -> None:
    directory = make(tmp_path, {LOG: stored(broker)[LOG]}, clean=True)
    recover(directory).apply()
    (made,) = directory.glob("*.snapshot")
    snapshot = stored(broker)[f"{END:020}.snapshot"]
    assert entries(made.read_bytes(), tmp_path) == entries(snapshot, tmp_path)


@pytest.mark.parametrize("broker", BROKERS)
@pytest.mark.parametrize("isolation", ISOLATIONS)
@pytest.mark.req("SEG-LKP-011", "SEG-LKP-012", "SEG-LKP-016")
def test_readers_get_what_a_consumer_got(broker: str, isolation: Isolation, tmp_path: Path) -> None:
    with open_partition(partition(tmp_path, broker)) as opened:
        end = opened.log_end_offset if isolation == "read_uncommitted" else opened.last_stable_offset
        count, digest = digest_of(opened.records(isolation=isolation))
    served = BROKERS[broker]["served"][isolation]
    assert {"begin": 0, "end": end, "records": count, "sha256": digest} == served


@pytest.mark.parametrize("broker", BROKERS)
@pytest.mark.req("SEG-TXN-006", "SEG-LKP-016")
def test_transaction_index_follows_from_the_batches(broker: str, tmp_path: Path) -> None:
    directory = make(tmp_path, {LOG: stored(broker)[LOG]})
    rebuild_indexes(directory).apply()
    (made,) = directory.glob("*.txnindex")
    assert made.read_bytes() == stored(broker)[f"{0:020}.txnindex"]


@pytest.mark.parametrize("broker", BROKERS)
def test_nothing_is_wrong_with_such_a_log(broker: str, tmp_path: Path) -> None:
    directory = partition(tmp_path, broker)
    assert [finding for finding in verify(directory) if finding.is_failure] == []


@pytest.mark.parametrize("broker", BROKERS)
def test_a_broker_that_starts_forgets_expired_producers_without_a_transaction(broker: str, tmp_path: Path) -> None:
    before = entries(stored(broker)[f"{END:020}.snapshot"], tmp_path)
    after = entries(stored(broker, "afterExpiration")[f"{END + 1:020}.snapshot"], tmp_path)
    opened = {number: entry for number, entry in before.items() if entry.current_txn_first_offset >= 0}
    newest = {number: entry for number, entry in after.items() if entry.last_offset >= END}
    assert len(opened) == 2
    assert len(newest) == 1
    assert after == opened | newest


@pytest.mark.parametrize("broker", BROKERS)
@pytest.mark.req("SEG-PSN-011")
def test_what_the_classes_of_0_11_and_1_1_store(broker: str, tmp_path: Path) -> None:
    """0.11 stores offset and timestamp of a marker as those of the last data; 1.1 stores neither."""
    snapshots = {
        release: entries(base64.b64decode(data), tmp_path) for release, data in BROKERS[broker]["oldClasses"].items()
    }
    now = entries(stored(broker)[f"{END:020}.snapshot"], tmp_path)
    markers, data_times = last_markers(tmp_path, broker)
    for number, entry in now.items():
        old, middle = snapshots["0.11.0.3"][number], snapshots["1.1.1"][number]
        is_marked = number in markers
        assert (old.last_offset, old.offset_delta) == (
            (markers[number], 0) if is_marked else (entry.last_offset, entry.offset_delta)
        )
        assert (old.producer_epoch, old.last_sequence, old.timestamp_ms) == (
            entry.producer_epoch,
            entry.last_sequence,
            entry.timestamp_ms,
        )
        assert (middle.producer_epoch, middle.last_sequence, middle.last_offset, middle.offset_delta) == (
            entry.producer_epoch,
            entry.last_sequence,
            entry.last_offset,
            entry.offset_delta,
        )
        assert middle.timestamp_ms == (data_times.get(number, -1) if is_marked else entry.timestamp_ms)


def last_markers(root: Path, broker: str) -> tuple[dict[int, int], dict[int, int]]:
    """Return the marker that ends a producer's batches, and the time of its last data in the latest epoch."""
    markers: dict[int, int] = {}
    times: dict[tuple[int, int], int] = {}
    latest: dict[int, int] = {}
    with open_partition(partition(root / "opened", broker)) as opened:
        for batch in opened.batches():
            header: Any = batch.header
            latest[header.producer_id] = header.producer_epoch
            if header.is_control:
                markers[header.producer_id] = header.base_offset
            else:
                markers.pop(header.producer_id, None)
                times[header.producer_id, header.producer_epoch] = header.max_timestamp_ms
    return markers, {number: times[number, epoch] for number, epoch in latest.items() if (number, epoch) in times}

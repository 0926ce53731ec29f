"""Producer states: what follows from batches, and the snapshots that real brokers wrote of it."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import pytest
from helpers.appends import Clock, contents, idempotent, marker, open_writer, snapshot, transactional
from helpers.support import bundled, vector

from seglog_format import Origin
from seglog_format.codec.control_record import EndMarker, end_marker_of
from seglog_format.codec.decode import decode_batch
from seglog_format.codec.framing import walk
from seglog_format.codec.side_files import decode_producer_snapshot, encode_producer_snapshot
from seglog_format.errors import AppendError, Location, UsageError
from seglog_format.model import INT32_MAX, ControlRecordType, Frame, ProducerStateEntry, RecordBatchHeader
from seglog_format.state.config import PRODUCER_EXPIRATION_MS, LogConfig
from seglog_format.state.producer_state import Producer, ProducerBatch, ProducerStates, producer_from
from seglog_format.storage.files import LOCAL_FILES
from seglog_format.writing.partition_log import load_log

if TYPE_CHECKING:
    from pathlib import Path

CASES = ["4.3.0/txn", "4.3.0/idem", "4.3.0/txn-open", "3.9.1/txn", "2.8.2/txn", "4.3.0/transaction-state"]


def header_of(data: bytes) -> RecordBatchHeader:
    header = decode_batch(data).header
    assert isinstance(header, RecordBatchHeader)
    return header


def append(states: ProducerStates, data: bytes, offset: int, origin: Origin = Origin.REPLICATION) -> tuple[object, ...]:
    header = header_of(offset.to_bytes(8, "big") + data[8:])
    change = states.changes([(header, end_marker_of(Frame(0, header, memoryview(data)), Location()))], origin)
    return states.apply(change, header.next_offset)


@pytest.mark.req("SEG-PSN-007")
def test_a_snapshot_that_kafka_wrote_byte_for_byte() -> None:
    decoded = decode_producer_snapshot(vector("V-25"), Location())
    assert encode_producer_snapshot(decoded.producers) == vector("V-25")
    states = ProducerStates()
    append(states, transactional(0, 1000, 1001, producer_id=77, producer_epoch=1), 0)
    append(states, transactional(0, 1000, producer_id=88), 2)
    assert snapshot(states.snapshot()) == set(decoded.producers)
    assert states.first_unstable_offset == 0


@pytest.mark.parametrize("name", CASES)
def test_each_snapshot_follows_from_the_log_before_it(name: str) -> None:
    (directory,) = (path for path in bundled(name).iterdir() if path.is_dir())
    expected = {int(file[:20]): snapshot(data) for file, data in contents(directory, ".snapshot").items()}
    states, found = ProducerStates(), {}
    for path in sorted(directory.glob("*.log")):
        for frame in walk(path.read_bytes()):
            if frame.header.base_offset in expected:
                found[frame.header.base_offset] = snapshot(states.snapshot())
            header = frame.header
            assert isinstance(header, RecordBatchHeader)
            change = states.changes([(header, end_marker_of(frame, Location()))], Origin.REPLICATION)
            states.apply(change, header.next_offset)
    found[states.end_offset] = snapshot(states.snapshot())
    assert {offset: found[offset] for offset in expected} == expected


@pytest.mark.parametrize("name", CASES)
def test_a_loaded_log_knows_what_its_last_snapshot_says(name: str, tmp_path: Path) -> None:
    (directory,) = (path for path in bundled(name).iterdir() if path.is_dir())
    for file, data in contents(directory, "").items():
        if not file.endswith(".snapshot"):
            tmp_path.joinpath(file).write_bytes(data)
    loaded = load_log(LOCAL_FILES, tmp_path, 0, LogConfig(), 0)
    assert loaded is not None
    *_, newest = contents(directory, ".snapshot").values()
    assert snapshot(loaded.producers.snapshot()) == snapshot(newest)


def test_a_damaged_snapshot_is_passed_over(tmp_path: Path) -> None:
    with open_writer(tmp_path) as writer:
        writer.append(idempotent(0))
        writer.roll()
        writer.append(idempotent(1))
    newest = tmp_path / "topic-0" / "00000000000000000002.snapshot"
    newest.write_bytes(newest.read_bytes()[:-1] + b"\0")
    with open_writer(tmp_path) as writer:
        assert writer.append(idempotent(2)).first_offset == 2


def test_aborted_transactions_are_listed_with_the_first_one_still_open() -> None:
    states = ProducerStates()
    append(states, transactional(0), 0)
    append(states, transactional(0, producer_id=5), 1)
    (aborted,) = append(states, marker(0), 2)
    assert aborted.last_stable_offset == 1  # type: ignore[attr-defined]
    (aborted,) = append(states, marker(0, producer_id=5), 3)
    assert (aborted.first_offset, aborted.last_offset, aborted.last_stable_offset) == (1, 3, 4)  # type: ignore[attr-defined]
    assert append(states, marker(0), 4) == ()
    append(states, transactional(1), 5)
    assert append(states, marker(1), 6) == ()
    assert states.first_unstable_offset is None


def test_a_marker_of_a_later_epoch_forgets_the_batches() -> None:
    states = ProducerStates()
    append(states, transactional(0, producer_epoch=1), 0)
    append(states, marker(1, producer_epoch=2, coordinator_epoch=4), 1)
    assert states.producers == (Producer(9, 2, (), 1500, 4, -1),)
    assert states.producers[0].to_entry() == ProducerStateEntry(9, 2, -1, -1, 0, 1500, 4, -1)
    assert producer_from(states.producers[0].to_entry()) == states.producers[0]


def test_an_emptied_marker_says_nothing() -> None:
    states = ProducerStates()
    header = header_of(marker(0))
    append(states, transactional(0), 0)
    states.apply(states.changes([(header, None)], Origin.REPLICATION), 1)
    assert states.first_unstable_offset == 0


def test_what_is_appended_together_is_one_change() -> None:
    """As in Java, the open transactions are those after the whole append."""
    states = ProducerStates()
    row = [
        (header_of(transactional(0)), None),
        (header_of((4).to_bytes(8, "big") + marker(0)[8:]), EndMarker(ControlRecordType.ABORT, 0, 1500)),
        (header_of((7).to_bytes(8, "big") + transactional(0, producer_id=5)[8:]), None),
    ]
    (aborted,) = states.apply(states.changes(row, Origin.REPLICATION), 8)
    assert (aborted.last_offset, aborted.last_stable_offset) == (4, 7)
    assert states.first_unstable_offset == 7


def test_followers_and_unknown_producers_are_not_held_to_sequences() -> None:
    states = ProducerStates()
    append(states, idempotent(7), 0)
    append(states, idempotent(3), 1)
    append(states, idempotent(3, producer_epoch=-1), 2)
    with pytest.raises(UsageError, match="SEG-APP-007"):
        append(ProducerStates(states.producers), idempotent(9, producer_epoch=-1), 3, Origin.CLIENT)


def test_sequences_wrap() -> None:
    batch = ProducerBatch(last_sequence=1, last_offset=10, offset_delta=3)
    assert (batch.first_sequence, batch.first_offset) == (INT32_MAX - 1, 7)


@pytest.mark.req("SEG-APP-007")
@pytest.mark.parametrize(
    ("latest", "base_sequence", "is_duplicate"),
    [
        (9, 8, True),
        (9, 0, True),
        (9, 11, False),
        (0, INT32_MAX, True),
        (INT32_MAX, 5, False),
        (INT32_MAX, INT32_MAX - 1, False),
    ],
    ids=["the latest", "an early one", "one is missing", "before the wrap", "after the wrap", "0 is expected"],
)
def test_a_refused_sequence_is_a_duplicate_or_leaves_a_gap(
    latest: int, base_sequence: int, *, is_duplicate: bool
) -> None:
    states = ProducerStates()
    append(states, idempotent(latest), 0)
    with pytest.raises(AppendError, match=r"expected \d+ \(SEG-APP-007\)$") as caught:
        append(states, idempotent(base_sequence), 1, Origin.CLIENT)
    assert (caught.value.is_duplicate, caught.value.requirement) == (is_duplicate, "SEG-APP-007")
    sent = pickle.loads(pickle.dumps(caught.value))  # noqa: S301 - our own
    assert (type(sent), str(sent), sent.is_duplicate) == (AppendError, str(caught.value), is_duplicate)


@pytest.mark.parametrize("is_open", [False, True], ids=["no transaction", "an open transaction"])
@pytest.mark.parametrize("more_ms", [-PRODUCER_EXPIRATION_MS - 1000, -1, 0, 1])
def test_an_opened_log_takes_any_sequence_of_a_producer_that_has_expired(
    more_ms: int, tmp_path: Path, *, is_open: bool
) -> None:
    """The cases `opened/producer-of-a-day-by-...` ask Kafka's classes; here the clock may also go backward."""
    clock = Clock(10**12)
    data = (transactional if is_open else idempotent)(77, clock.now_ms)
    with open_writer(tmp_path, clock) as writer:
        writer.append(data)
    clock.now_ms += PRODUCER_EXPIRATION_MS + more_ms
    with open_writer(tmp_path, clock) as writer:
        assert writer.append(data).is_duplicate == (is_open or more_ms < 0)

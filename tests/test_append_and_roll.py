"""Chapter 70: what may be appended, what becomes of it, and when a log goes on in a new segment."""

from __future__ import annotations

import gzip
import os
import struct
import zlib
from dataclasses import replace
from itertools import accumulate, product
from time import process_time
from typing import TYPE_CHECKING, Any

import pytest
from helpers.appends import (
    TRANSACTIONAL,
    Clock,
    base_offsets,
    contents,
    example,
    idempotent,
    marker,
    open_writer,
    produced,
    snapshot,
    transactional,
)
from helpers.batches import batch, patched, record
from helpers.messages import message, wrapper
from hypothesis import given, settings
from hypothesis import strategies as st

from seglog_format import BrokerGeneration, Origin, walk
from seglog_format.codec.decode import decode_batch
from seglog_format.errors import AppendError, CorruptRecordError, UsageError
from seglog_format.model import INT32_MAX, EpochStart, TimestampType
from seglog_format.names import INDEX_KINDS
from seglog_format.state.config import LogConfig
from seglog_format.state.producer_state import LeaderEpochs
from seglog_format.storage.files import LOCAL_FILES
from seglog_format.types import RollReason
from seglog_format.writing.active_segment import ActiveSegment
from seglog_format.writing.append import ActiveState, Incoming, as_follower, jitter_ms, new_base_offset, roll_reason

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

LOG = "00000000000000000000.log"
SIZE = len(produced())
LOG_APPEND_TIME = TimestampType.LOG_APPEND_TIME


def last_entry(path: Path) -> bytes:
    """Return the bytes of the last entry of ``topic-0``."""
    *_, data = contents(path / "topic-0", ".log").values()
    *_, frame = walk(data)
    return bytes(frame.data)


# What a leader does


@pytest.mark.req("SEG-APP-001", "SEG-APP-003", "SEG-APP-018", "SEG-APP-020")
def test_a_leader_gives_offset_and_epoch(tmp_path: Path) -> None:
    with open_writer(tmp_path, leader_epoch=3) as writer:
        writer.append(produced(*range(1000, 1010)))
        assert writer.append(example("produced")).first_offset == 10
        assert last_entry(tmp_path) == example("appended")
        assert writer.append(produced(1000, 1000)).first_offset == 13
        assert writer.append(produced()).first_offset == 15
        assert writer.log_end_offset == 16


@pytest.mark.req("SEG-APP-019")
def test_a_leader_does_not_compress_again(tmp_path: Path) -> None:
    section = b"".join(record(0, delta, b"k", b"v") for delta in range(2))
    sent = batch(gzip.compress(section, 0, mtime=7), 2, attributes=1, last_offset_delta=1, partition_leader_epoch=-1)
    with open_writer(tmp_path) as writer:
        writer.append(produced())
        writer.append(sent)
    assert last_entry(tmp_path)[61:] == sent[61:]


@pytest.mark.req("SEG-APP-003")
def test_a_leader_gives_offsets_to_messages(tmp_path: Path) -> None:
    with open_writer(tmp_path, index_interval_bytes=0) as writer:
        for _ in range(2):
            writer.append(message(0, b"k", b"a") + message(1, b"k", b"b"))
        relative = wrapper(message(0, magic=1), message(1, magic=1), offset=1, magic=1)
        writer.append(relative)
        assert last_entry(tmp_path) == struct.pack(">q", 5) + relative[8:]
        # Offsets inside a wrapper of magic 0 are absolute.
        writer.append(wrapper(message(0, value=b"a"), message(1, value=b"b"), offset=1, magic=0))
        found = decode_batch(last_entry(tmp_path))
        assert [(each.offset, each.value) for each in found.records] == [(6, b"a"), (7, b"b")]
        # Those of magic 1 that do not count from 0 are written anew, too.
        writer.append(wrapper(message(3, magic=1), message(7, magic=1), offset=7, magic=1))
        found = decode_batch(last_entry(tmp_path))
        assert [(each.offset, each.stored_offset) for each in found.records] == [(8, 0), (9, 1)]  # type: ignore[union-attr]
    with open_writer(tmp_path / "plain") as writer:
        writer.append(message(0, b"k", b"a") + message(1, b"k", b"b"))
        writer.append(message(0, b"k", b"c"))
    stored = contents(tmp_path / "plain" / "topic-0", ".log")[LOG]
    assert stored == message(0, b"k", b"a") + message(1, b"k", b"b") + message(2, b"k", b"c")


@pytest.mark.req("SEG-APP-010")
def test_log_append_time(tmp_path: Path) -> None:
    with open_writer(tmp_path, Clock(7777), leader_epoch=3, message_timestamp_type=LOG_APPEND_TIME) as writer:
        writer.append_as_follower(patched(produced(*range(1000, 1010)), 12, "i", 3, seal=False))
        writer.append(example("produced"))
        assert last_entry(tmp_path) == example("stamped")
        writer.append(message(0, b"k", b"a", magic=1, timestamp_ms=5))
    stamped = message(13, b"k", b"a", magic=1, timestamp_ms=7777, attributes=8)
    assert last_entry(tmp_path) == stamped


@pytest.mark.req("SEG-APP-026")
def test_a_leader_corrects_the_largest_timestamp(tmp_path: Path) -> None:
    wrong = patched(patched(example("produced"), 35, "q", 1), 21, "h", 0x180)
    with open_writer(tmp_path, leader_epoch=3) as writer:
        writer.append(produced(*range(1000, 1010)))
        writer.append(wrong)
    # Nothing but the timestamp differs, and bits that mean nothing are gone.
    assert last_entry(tmp_path) == example("appended")
    with open_writer(tmp_path) as writer:
        writer.append(patched(example("produced"), 21, "h", 0x180))
    assert decode_batch(last_entry(tmp_path)).header.unknown_attribute_bits == 0x180


@pytest.mark.req("SEG-APP-026")
def test_a_leader_corrects_the_timestamp_of_a_wrapper(tmp_path: Path) -> None:
    inner = [message(offset, None, b"a", magic=1, timestamp_ms=time) for offset, time in enumerate((5, 9, 7))]
    with open_writer(tmp_path) as writer:
        writer.append(wrapper(*inner, offset=2, magic=1, timestamp_ms=3))
    assert last_entry(tmp_path) == wrapper(*inner, offset=2, magic=1, timestamp_ms=9)


@pytest.mark.req("SEG-APP-016", "SEG-APP-025")
def test_leader_epochs(tmp_path: Path) -> None:
    checkpoint = tmp_path / "topic-0" / "leader-epoch-checkpoint"
    with open_writer(tmp_path, leader_epoch=3) as writer:
        assert checkpoint.read_bytes() == b""
        writer.append_as_follower(patched(produced(*range(1000, 1010)), 12, "i", -1, seal=False))
        assert checkpoint.read_bytes() == b""
        for epoch in (3, 3, 5):
            writer.become_leader(epoch)
            writer.append(example("produced"))
        assert checkpoint.read_bytes() == example("epochs")
        writer.become_leader(7)
        assert checkpoint.read_bytes().endswith(b"7 19\n")
        writer.become_leader(8)
        writer.append(produced())
        assert checkpoint.read_bytes() == b"0\n3\n3 10\n5 16\n8 19\n"
        writer.append(message())
        assert checkpoint.read_bytes() == b"0\n0\n"


@pytest.mark.req("SEG-APP-016")
def test_leader_epochs_that_contradict() -> None:
    epochs = LeaderEpochs([EpochStart(1, 0), EpochStart(4, 10)])
    assert epochs.assign(2, 5)
    assert epochs.entries == (EpochStart(1, 0), EpochStart(2, 5))
    assert not epochs.assign(2, 9)
    assert epochs.assign(2, 3)
    assert epochs.entries == (EpochStart(1, 0), EpochStart(2, 3))
    assert epochs.start_at(7)
    assert epochs.entries == (EpochStart(2, 7),)
    assert not epochs.start_at(7)
    assert epochs.truncate_to(7)
    assert not epochs.clear()
    out_of_order = LeaderEpochs([EpochStart(0, 100), EpochStart(1, 5)])
    assert out_of_order.assign(2, 50)
    assert out_of_order.entries == (EpochStart(1, 5), EpochStart(2, 50))


def test_many_leader_epochs_take_no_time_by_the_square_of_their_number() -> None:
    epochs, before = LeaderEpochs(), process_time()
    assert all(epochs.assign(number, number) for number in range(30_000))
    assert process_time() - before < 5
    assert len(epochs.entries) == 30_000


# What a leader refuses


def refused(writer: Any, data: bytes, requirement: str, **options: Any) -> None:  # noqa: ANN401
    before = writer.log_end_offset
    with pytest.raises(AppendError, match=requirement) as caught:
        writer.append(data, **options)
    assert caught.value.requirement == requirement
    assert writer.log_end_offset == before


@pytest.mark.req("SEG-APP-004")
def test_the_form_of_what_a_producer_sends(tmp_path: Path) -> None:
    control = marker(1)
    with open_writer(tmp_path) as writer:
        refused(writer, produced() + produced(base_offset=1), "SEG-APP-004")
        refused(writer, produced(base_offset=7), "SEG-APP-004")
        refused(writer, produced(last_offset_delta=2), "SEG-APP-004")
        refused(writer, patched(produced(1000, 1000), 23, "i", 0), "SEG-APP-004")
        refused(writer, patched(produced()[:61], 57, "i", 0), "SEG-APP-004")
        refused(writer, patched(produced(1000, 1000), SIZE + 3, "b", 4), "SEG-APP-004")  # offset deltas 0 and 2
        refused(writer, control, "SEG-APP-004")
        refused(writer, message() + message(1, magic=1), "SEG-APP-004")
        writer.append(control, origin=Origin.COORDINATOR)
        writer.append(message() + message(1))
    assert [frame.header.last_offset for frame in walk(contents(tmp_path / "topic-0", ".log")[LOG])] == [0, 1, 2]


@pytest.mark.req("SEG-APP-005")
def test_what_is_not_a_whole_entry_is_not_written(tmp_path: Path) -> None:
    with open_writer(tmp_path) as writer:
        writer.append(produced() + produced()[:-1])
        refused(writer, produced()[:-1], "SEG-APP-005")
        refused(writer, b"", "SEG-APP-005")
        writer.append(produced())
    assert contents(tmp_path / "topic-0", ".log")[LOG] == b"".join(
        patched(patched(produced(), 0, "q", offset, seal=False), 12, "i", 0, seal=False) for offset in range(2)
    )


@pytest.mark.req("SEG-APP-006", "SEG-APP-021")
def test_sizes(tmp_path: Path) -> None:
    with open_writer(tmp_path / "message", max_message_bytes=SIZE - 1) as writer:
        refused(writer, produced(), "SEG-APP-006")
        assert writer.append_as_follower(produced()) is not None
    with open_writer(tmp_path / "exact", max_message_bytes=SIZE, segment_bytes=2 * SIZE) as writer:
        writer.append(produced())
        writer.append_as_follower(produced(base_offset=1) + produced(base_offset=2))
        with pytest.raises(UsageError, match="SEG-APP-021"):
            writer.append_as_follower(b"".join(produced(base_offset=offset) for offset in (3, 4, 5)))
    with open_writer(tmp_path / "segment", segment_bytes=SIZE - 1) as writer:
        refused(writer, produced(), "SEG-APP-021")


@pytest.mark.req("SEG-APP-011", "SEG-APP-024")
def test_timestamps_of_producers(tmp_path: Path) -> None:
    limits = {"message_timestamp_before_max_ms": 500, "message_timestamp_after_max_ms": 100}
    with open_writer(tmp_path / "create", Clock(2000), **limits) as writer:
        refused(writer, produced(1499), "SEG-APP-024")
        refused(writer, produced(2000, 2101), "SEG-APP-024")
        refused(writer, produced(2000, attributes=8), "SEG-APP-011")
        writer.append(produced(1500, 2100))
        writer.append(produced(-1))
    with open_writer(tmp_path / "append", Clock(2000), message_timestamp_type=LOG_APPEND_TIME, **limits) as writer:
        writer.append(produced(1))
    with open_writer(tmp_path / "default", Clock(2000)) as writer:
        writer.append(produced(0, 3_602_000))
        refused(writer, produced(3_602_001), "SEG-APP-024")


@pytest.mark.req("SEG-APP-012")
def test_a_compacted_topic_has_keys(tmp_path: Path) -> None:
    with open_writer(tmp_path, cleanup_policy=frozenset({"compact", "delete"})) as writer:
        refused(writer, produced(key=None), "SEG-APP-012")
        writer.append(produced(key=b""))
    with open_writer(tmp_path / "delete") as writer:
        writer.append(produced(key=None))


@pytest.mark.req("SEG-APP-007")
def test_sequences(tmp_path: Path) -> None:
    with open_writer(tmp_path) as writer:
        refused(writer, idempotent(-1), "SEG-APP-007")
        writer.append(idempotent(INT32_MAX - 1, 1000, 1000))  # nothing is known: any sequence will do
        refused(writer, idempotent(INT32_MAX), "SEG-APP-007")
        refused(writer, idempotent(1), "SEG-APP-007")
        writer.append(idempotent(0, 1000, 1000, 1000))
        writer.append(idempotent(3))
        refused(writer, idempotent(4, producer_epoch=1), "SEG-APP-007")
        writer.append(idempotent(0, producer_epoch=1))
        refused(writer, idempotent(7, producer_epoch=1), "SEG-APP-007")
        writer.append(idempotent(7, producer_epoch=1), origin=Origin.COORDINATOR)
        writer.append(idempotent(5, producer_id=10))


@pytest.mark.req("SEG-APP-008")
def test_a_batch_that_is_sent_again(tmp_path: Path) -> None:
    with open_writer(tmp_path) as writer:
        first = writer.append(idempotent(0, 1000, 1000))
        for sequence in range(2, 6):
            writer.append(idempotent(sequence))
        again = writer.append(idempotent(0, 1000, 1000))
        assert again == replace(first, is_duplicate=True)
        assert (writer.append(idempotent(5)).first_offset, writer.log_end_offset) == (5, 6)
        refused(writer, idempotent(0), "SEG-APP-007")  # not the same sequences
        writer.append(idempotent(6))
        refused(writer, idempotent(0, 1000, 1000), "SEG-APP-007")  # the sixth last
    with open_writer(tmp_path) as writer:
        assert writer.append(idempotent(6)).is_duplicate
        refused(writer, idempotent(5), "SEG-APP-007")  # the snapshot knows only one


@pytest.mark.req("SEG-APP-009", "SEG-APP-022", "SEG-APP-023")
def test_epochs_and_transactions_of_producers(tmp_path: Path) -> None:
    coordinator = {"origin": Origin.COORDINATOR}
    with open_writer(tmp_path) as writer:
        writer.append(idempotent(0, producer_epoch=4))
        refused(writer, idempotent(0, producer_epoch=3), "SEG-APP-009")
        refused(writer, marker(1, producer_epoch=3), "SEG-APP-009", **coordinator)
        writer.append(transactional(1, producer_epoch=4))
        refused(writer, idempotent(2, producer_epoch=4), "SEG-APP-023")
        assert writer.last_stable_offset == 1
        writer.append(marker(1, producer_epoch=4, coordinator_epoch=7), **coordinator)
        assert writer.last_stable_offset == writer.log_end_offset == 3
        refused(writer, marker(1, producer_epoch=4, coordinator_epoch=6), "SEG-APP-022", **coordinator)
        writer.append(idempotent(2, producer_epoch=4))


@pytest.mark.req("SEG-APP-009")
def test_what_is_refused_changes_nothing(tmp_path: Path) -> None:
    with open_writer(tmp_path, segment_bytes=SIZE) as writer:
        writer.append(idempotent(0))
        before = contents(tmp_path / "topic-0", "")
        refused(writer, idempotent(5, attributes=TRANSACTIONAL), "SEG-APP-007")
        assert base_offsets(tmp_path) == [0]
        assert contents(tmp_path / "topic-0", "") == before
        assert writer.append(idempotent(1)).rolled is RollReason.SIZE


def test_damaged_bytes_are_refused_as_such(tmp_path: Path) -> None:
    with open_writer(tmp_path) as writer:
        with pytest.raises(CorruptRecordError, match="SEG-BAT-003"):
            writer.append(produced()[:-1] + b"\1")
        with pytest.raises(CorruptRecordError, match="SEG-BAT-003"):
            writer.append_as_follower(produced()[:-1] + b"\1")
        inner = message(crc=zlib.crc32(b""), magic=1)
        with pytest.raises(CorruptRecordError, match="SEG-MSG-016"):
            writer.append(wrapper(inner, offset=0, magic=1))
        assert writer.log_end_offset == 0


# What a follower does


@pytest.mark.req("SEG-APP-002")
def test_a_follower_takes_offsets_as_they_are(tmp_path: Path) -> None:
    with open_writer(tmp_path) as writer:
        taken = writer.append_as_follower(produced(base_offset=5) + produced(1000, 1000, base_offset=9))
        assert taken is not None
        assert (taken.first_offset, taken.last_offset, writer.log_end_offset) == (5, 10, 11)
        for data in (
            produced(base_offset=10),
            produced(base_offset=9, last_offset_delta=2),
            produced(base_offset=12) + produced(base_offset=12),
            message(10),
        ):
            with pytest.raises(UsageError, match="SEG-APP-002"):
                writer.append_as_follower(data)
        writer.append_as_follower(message(11))
        writer.append_as_follower(produced(base_offset=20))
        writer.append_as_follower(produced(base_offset=21, last_offset_delta=5, producer_id=3, base_sequence=77))
    frames = list(walk(contents(tmp_path / "topic-0", ".log")[LOG]))
    assert [frame.header.last_offset for frame in frames] == [5, 10, 11, 20, 26]
    assert bytes(frames[0].data) == produced(base_offset=5)


@pytest.mark.req("SEG-LOG-013")
def test_nobody_is_given_the_last_offset_of_all(tmp_path: Path) -> None:
    greatest = 2**63 - 2
    with open_writer(tmp_path) as writer:
        for data in (produced(base_offset=greatest + 1), produced(1, 1, base_offset=greatest), message(greatest + 1)):
            with pytest.raises(UsageError, match="SEG-LOG-013"):
                writer.append_as_follower(data)
        writer.append_as_follower(produced(base_offset=greatest - 1))
        with pytest.raises(UsageError, match="SEG-LOG-013"):
            writer.append(produced(1, 1))
        assert writer.append(produced()).last_offset == greatest
        with pytest.raises(UsageError, match="SEG-LOG-013"):
            writer.append(produced())
        assert writer.log_end_offset == greatest + 1


@pytest.mark.req("SEG-APP-014")
def test_a_follower_leaves_out_later_epochs(tmp_path: Path) -> None:
    row = [patched(produced(base_offset=n), 12, "i", epoch, seal=False) for n, epoch in enumerate((4, 5, 4))]
    with open_writer(tmp_path) as writer:
        taken = writer.append_as_follower(b"".join(row), leader_epoch=4)
        assert taken is not None
        assert taken.last_offset == 0
        assert writer.append_as_follower(b"".join(row[1:]), leader_epoch=4) is None
        writer.append_as_follower(b"".join(row[1:]))
        assert writer.log_end_offset == 3


# The files


@pytest.mark.parametrize("tail", [b"\0" * 17, b"x", produced()[:-1], bytes(400)])
@pytest.mark.req("SEG-APP-013")
def test_an_entry_is_written_behind_the_last_whole_one(tail: bytes, tmp_path: Path) -> None:
    with open_writer(tmp_path) as writer:
        writer.append(produced())
    with tmp_path.joinpath("topic-0", LOG).open("ab") as log:
        log.write(tail)
    with open_writer(tmp_path) as writer:
        writer.append(produced())
    assert [frame.position for frame in walk(contents(tmp_path / "topic-0", ".log")[LOG])] == [0, SIZE]


def four_batches() -> list[bytes]:
    return [bytes(frame.data) for frame in walk(example("four-batches"))]


def indexes(
    path: Path,
    calls: Sequence[Sequence[bytes]],
    *,
    leads: bool = False,
    **options: object,
) -> tuple[bytes, bytes]:
    """Offset and time index of a log from offset 10 on, each call given at once."""
    with open_writer(path, **options) as writer:  # type: ignore[arg-type]
        writer.append_as_follower(produced(*[1000] * 10, base_offset=0))
        writer.roll()
        for call in calls:
            if leads:
                writer.append(patched(b"".join(call), 0, "q", 0, seal=False))
            else:
                writer.append_as_follower(b"".join(call))
    (_, offset_index), (_, time_index) = (
        contents(path / "topic-0", ending).values() for ending in (".index", ".timeindex")
    )
    return offset_index, time_index


@pytest.mark.req("SEG-ROL-010")
def test_the_interval_is_passed_and_not_met(tmp_path: Path) -> None:
    offset_index, _ = indexes(tmp_path, [[batch] for batch in four_batches()], index_interval_bytes=77)
    assert offset_index == example("interval")
    offset_index, _ = indexes(tmp_path / "less", [[batch] for batch in four_batches()], index_interval_bytes=76)
    assert offset_index == example("unit-batch")


@pytest.mark.parametrize(
    ("generation", "name"),
    [
        (BrokerGeneration.V4_1, "unit-batch"),
        (BrokerGeneration.V3_7, "unit-append"),
        (BrokerGeneration.V2_0, "unit-append"),
        (BrokerGeneration.V0_11, "unit-append-first"),
    ],
)
@pytest.mark.req("SEG-ROL-011")
def test_what_a_unit_is(generation: BrokerGeneration, name: str, tmp_path: Path) -> None:
    first, *others = four_batches()
    offset_index, _ = indexes(tmp_path, [[first], others], index_interval_bytes=50, generation=generation)
    assert offset_index == example(name)


@pytest.mark.parametrize(
    ("generation", "leads", "name"),
    [
        (BrokerGeneration.V4_1, True, "time-batch"),
        (BrokerGeneration.V3_7, True, "time-batch"),
        (BrokerGeneration.V2_0, True, "time-record"),
        (BrokerGeneration.V2_0, False, "time-batch"),
        (BrokerGeneration.V0_11, True, "time-record"),
    ],
)
@pytest.mark.req("SEG-APP-015")
def test_what_a_time_index_names(generation: BrokerGeneration, leads: bool, name: str, tmp_path: Path) -> None:  # noqa: FBT001
    calls = [[batch] for batch in four_batches()]
    _, time_index = indexes(tmp_path, calls, leads=leads, index_interval_bytes=50, generation=generation)
    assert time_index == example(name)


@pytest.mark.req("SEG-ROL-013")
def test_preallocated_files(tmp_path: Path) -> None:
    sizing = {"segment_index_bytes": 103, "segment_bytes": 1000, "preallocate": True}
    sizes = {".log": 1000, ".index": 96, ".timeindex": 96}
    with open_writer(tmp_path, **sizing) as writer:
        assert {name[20:]: len(data) for name, data in contents(tmp_path / "topic-0", "x").items()} == {
            ".index": 96,
            ".timeindex": 96,
        }
        writer.append(produced())
        assert {
            ending: len(contents(tmp_path / "topic-0", "0" + ending)["0" * 20 + ending]) for ending in sizes
        } == sizes
        writer.roll()
        assert len(contents(tmp_path / "topic-0", "1.log")["00000000000000000001.log"]) == 1000
        assert not tmp_path.joinpath("topic-0", "00000000000000000001.index").exists()  # until something is appended
        writer.append(produced())
        assert tmp_path.joinpath("topic-0", "00000000000000000001.index").stat().st_size == 96
    assert [len(data) for data in contents(tmp_path / "topic-0", ".log").values()] == [SIZE, SIZE]
    with open_writer(tmp_path, segment_index_bytes=200):
        assert tmp_path.joinpath("topic-0", "00000000000000000001.index").stat().st_size == 200
    with open_writer(tmp_path / "old", generation=BrokerGeneration.V0_11, segment_index_bytes=100) as writer:
        writer.append(produced())
        writer.roll()
        assert tmp_path.joinpath("old", "topic-0", "00000000000000000001.index").stat().st_size == 96
    with open_writer(tmp_path / "oldest", generation=BrokerGeneration.V0_8) as writer:
        writer.append(message())
        writer.roll()
    assert {name[20:] for name in contents(tmp_path / "oldest" / "topic-0", "")} == {".log", ".index"}


def test_a_transaction_index_is_made_for_the_first_abort(tmp_path: Path) -> None:
    directory = tmp_path / "topic-0"
    with open_writer(tmp_path) as writer:
        writer.append(transactional(0))
        writer.append(transactional(0, producer_id=10))
        writer.append(marker(1), origin=Origin.COORDINATOR)
        assert not contents(directory, ".txnindex")
        writer.append(transactional(1))
        writer.roll()
        writer.append(marker(0), origin=Origin.COORDINATOR)
        writer.append(marker(0, producer_id=10), origin=Origin.COORDINATOR)
        writer.append(marker(0), origin=Origin.COORDINATOR)  # nothing was open
    assert contents(directory, ".txnindex") == {
        "00000000000000000004.txnindex": struct.pack(">hqqqq", 0, 9, 3, 4, 1) + struct.pack(">hqqqq", 0, 10, 1, 5, 6)
    }


# When a segment ends


def appended_and_rolled(writer: Any, times: Sequence[int]) -> list[RollReason | None]:  # noqa: ANN401
    return [writer.append(produced(time)).rolled for time in times]


@pytest.mark.req("SEG-ROL-001", "SEG-ROL-002")
def test_roll_by_size(tmp_path: Path) -> None:
    with open_writer(tmp_path, segment_bytes=3 * SIZE) as writer:
        assert appended_and_rolled(writer, [1000] * 7) == [None] * 3 + [RollReason.SIZE, None, None, RollReason.SIZE]
    assert base_offsets(tmp_path) == [0, 3, 6]
    with open_writer(tmp_path / "less", segment_bytes=3 * SIZE - 1) as writer:
        appended_and_rolled(writer, [1000] * 5)
    assert base_offsets(tmp_path / "less") == [0, 2, 4]


@given(
    st.lists(st.tuples(st.integers(1, 40), st.integers(0, 400)), min_size=1, max_size=30),
    st.integers(500, 1500),
    st.integers(1, 300),
)
@pytest.mark.req("SEG-ROL-001", "SEG-ROL-002", "SEG-ROL-003")
def test_roll_equals_a_short_model(appends: list[tuple[int, int]], segment_bytes: int, segment_ms: int) -> None:
    config = LogConfig(segment_bytes=segment_bytes, segment_ms=segment_ms)
    size, first = 0, -1
    state = ActiveState(0, 0, -1, 0)
    for length, time in appends:
        coming = Incoming(10 * length, time, 0, 0)
        expected = size + 10 * length > segment_bytes or (size > 0 and time - first > segment_ms)
        assert (roll_reason(state, coming, config, now_ms=0) is not None) == expected
        size, first = (10 * length, time) if expected or not size else (size + 10 * length, first)
        state = ActiveState(0, size, first, 0)


def roll_model(state: ActiveState, coming: Incoming, config: LogConfig, now_ms: int) -> RollReason | None:
    """Ten lines that say the same, with everything that counts."""
    by_clock = state.first_timestamp_ms < 0 or config.generation is BrokerGeneration.V0_8
    waited = now_ms - state.created_ms if by_clock else coming.max_timestamp_ms - state.first_timestamp_ms
    limit = min(config.segment_ms, config.max_compaction_lag_ms) if config.is_compacted else config.segment_ms
    rules = {
        RollReason.SIZE: state.size + coming.size > config.segment_bytes,
        RollReason.TIME: bool(state.size) and waited > limit - state.jitter_ms,
        RollReason.OFFSET_INDEX_FULL: state.is_offset_index_full,
        RollReason.TIME_INDEX_FULL: state.is_time_index_full,
        RollReason.OFFSET_SPAN: coming.last_offset not in range(state.base_offset, state.base_offset + 2**31),
    }
    return next((reason for reason, holds in rules.items() if holds), None)


NEAR = st.integers(-2, 2)
"""How far from a limit."""


@pytest.mark.req("SEG-ROL-001", "SEG-ROL-002", "SEG-ROL-003", "SEG-ROL-004", "SEG-ROL-005", "SEG-ROL-006")
@settings(max_examples=400)
@given(st.data())
def test_roll_for_any_reason_equals_the_model(data: st.DataObject) -> None:
    draw = data.draw
    config = LogConfig(
        segment_bytes=1000,
        segment_ms=100,
        max_compaction_lag_ms=90,
        cleanup_policy=frozenset(draw(st.sampled_from(({"delete"}, {"compact"})))),
        generation=draw(st.sampled_from(BrokerGeneration)),
    )
    state = ActiveState(
        base_offset=50,
        size=draw(st.sampled_from((0, 1, 900))),
        first_timestamp_ms=draw(st.sampled_from((-1, 0, 500))),
        created_ms=300,
        jitter_ms=draw(st.sampled_from((0, 10))),
        is_offset_index_full=draw(st.booleans()),
        is_time_index_full=draw(st.booleans()),
    )
    time = max(state.first_timestamp_ms, 0) + draw(st.sampled_from((80, 90, 100))) + draw(NEAR)
    last = draw(st.sampled_from((50, 50 + 2**31 - 1))) + draw(NEAR)
    coming = Incoming(1000 - state.size + draw(NEAR), draw(st.sampled_from((-1, time))), last, last)
    now_ms = state.created_ms + draw(st.sampled_from((80, 90, 100))) + draw(NEAR)
    assert roll_reason(state, coming, config, now_ms) is roll_model(state, coming, config, now_ms)


@pytest.mark.req("SEG-ROL-003")
def test_roll_by_the_time_in_the_records(tmp_path: Path) -> None:
    clock = Clock(5000)
    with open_writer(tmp_path, clock, segment_ms=100) as writer:
        reasons = appended_and_rolled(writer, [1000, 1100, 900, 1])
        clock.now_ms += 1000
        assert reasons + appended_and_rolled(writer, [1100, 1101]) == [None] * 5 + [RollReason.TIME]
    compacted = frozenset({"compact"})
    with open_writer(
        tmp_path / "compacted", segment_ms=100, max_compaction_lag_ms=50, cleanup_policy=compacted
    ) as writer:
        assert appended_and_rolled(writer, [1000, 1050, 1051]) == [None, None, RollReason.TIME]


@pytest.mark.req("SEG-ROL-004")
def test_where_the_time_of_a_segment_begins(tmp_path: Path) -> None:
    clock = Clock(5000)
    with open_writer(tmp_path, clock, segment_ms=100) as writer:
        appended_and_rolled(writer, [-1, 1000])
        clock.now_ms = 5100
        assert appended_and_rolled(writer, [3000]) == [None]
        clock.now_ms = 5101
        assert appended_and_rolled(writer, [3000]) == [RollReason.TIME]
    with open_writer(tmp_path, clock, segment_ms=100) as writer:
        assert appended_and_rolled(writer, [3100, 3101]) == [None, RollReason.TIME]
    row = produced(1000, base_offset=0) + produced(1050, base_offset=1)
    for generation, reason in ((BrokerGeneration.V4_1, RollReason.TIME), (BrokerGeneration.V3_7, None)):
        with open_writer(tmp_path / generation.value, segment_ms=100, generation=generation) as writer:
            writer.append_as_follower(row)
            assert appended_and_rolled(writer, [1101]) == [reason]
    clock = Clock(5000)
    with open_writer(tmp_path / "0.8", clock, segment_ms=100, generation=BrokerGeneration.V0_8) as writer:
        assert writer.append(message()).rolled is None
        clock.now_ms += 101
        assert writer.append(message()).rolled is RollReason.TIME


@pytest.mark.req("SEG-ROL-005", "SEG-ROL-017")
def test_roll_when_an_index_is_full(tmp_path: Path) -> None:
    small = {"index_interval_bytes": 0, "segment_index_bytes": 40}  # five entries, or three with the last
    with open_writer(tmp_path, **small) as writer:
        reasons = appended_and_rolled(writer, range(1000, 1006))
    assert reasons == [None] * 3 + [RollReason.TIME_INDEX_FULL, None, None]
    assert [len(data) // 12 for data in contents(tmp_path / "topic-0", ".timeindex").values()] == [2, 2]
    with open_writer(tmp_path / "offsets", **small) as writer:
        reasons = appended_and_rolled(writer, [1000] * 8)
    assert reasons == [None] * 6 + [RollReason.OFFSET_INDEX_FULL, None]
    assert [len(data) // 8 for data in contents(tmp_path / "offsets" / "topic-0", ".index").values()] == [5, 1]
    with open_writer(tmp_path / "none", segment_index_bytes=4) as writer:
        assert appended_and_rolled(writer, [1000] * 3) == [RollReason.OFFSET_INDEX_FULL] * 3
    assert base_offsets(tmp_path / "none") == [0, 1, 2]


@pytest.mark.req("SEG-ROL-005")
def test_no_entry_is_written_past_the_end_of_an_index(tmp_path: Path) -> None:
    row = b"".join(produced(1000 + offset, base_offset=offset) for offset in range(9))
    with open_writer(tmp_path, index_interval_bytes=0, segment_index_bytes=40) as writer:
        writer.append_as_follower(row)
        assert writer.append(produced()).rolled is RollReason.OFFSET_INDEX_FULL
    directory = tmp_path / "topic-0"
    assert [len(data) for data in contents(directory, ".index").values()] == [40, 0]
    (times, _) = contents(directory, ".timeindex").values()
    assert list(struct.iter_unpack(">qi", times)) == [(1001, 1), (1002, 2), (1008, 8)]


@pytest.mark.req("SEG-ROL-016")
@pytest.mark.parametrize(
    ("times", "reason"),
    [
        ((1004,), None),
        ((1004, 1005), RollReason.TIME_INDEX_FULL),  # three slots, the last of them for the end
        ((1000, 1000, 1000, 1000), None),
        ((1000, 1000, 1000, 1000, 1000), RollReason.OFFSET_INDEX_FULL),  # five slots, one of them taken
    ],
)
def test_roll_before_an_append_that_the_indexes_have_no_room_for(
    times: tuple[int, ...], reason: RollReason | None, tmp_path: Path
) -> None:
    row = b"".join(produced(time, base_offset=offset) for offset, time in enumerate(times, start=2))
    with open_writer(tmp_path, index_interval_bytes=0, segment_index_bytes=40) as writer:
        assert appended_and_rolled(writer, [1000, 1000]) == [None, None]
        taken = writer.append_as_follower(row)
    assert taken is not None
    assert taken.rolled is reason
    assert base_offsets(tmp_path) == ([0] if reason is None else [0, 2])


class IndexModel:
    """A short model of the indexes of a segment whose batches all have the same size."""

    def __init__(self, interval: int, index_bytes: int) -> None:
        self.interval = interval
        self.most, self.most_times = index_bytes // 8, index_bytes // 12 - 1
        self.offsets: list[tuple[int, int]] = []
        self.times = [(-1, 0)]
        self.largest = (-1, 0)
        self.passed = 0

    def add(self, number: int, timestamp_ms: int) -> RollReason | None:
        """Add a batch; return which index lacks a slot for an entry that is due."""
        reason = None
        if timestamp_ms > self.largest[0]:
            self.largest = (timestamp_ms, number)
        if self.passed > self.interval:
            self.passed = 0
            has_slot, has_time_slot = len(self.offsets) < self.most, len(self.times) <= self.most_times
            reason = None if has_time_slot else RollReason.TIME_INDEX_FULL
            reason = reason if has_slot else RollReason.OFFSET_INDEX_FULL
            if has_slot:
                self.offsets.append((number, number * SIZE))
            if has_time_slot and self.largest[0] > self.times[-1][0]:
                self.times.append(self.largest)
        self.passed += SIZE
        return reason


@pytest.mark.req("SEG-ROL-005", "SEG-ROL-014", "SEG-ROL-016")
@pytest.mark.parametrize("index_bytes", [16, 24, 32, 36, 40, 48, 60])
@pytest.mark.parametrize("interval", [0, SIZE])
@pytest.mark.parametrize("steps", [(1, 1), (0, 0), (3, -2)])
def test_grouped_batches_fill_the_indexes_as_single_ones_do(
    index_bytes: int, interval: int, steps: tuple[int, int], tmp_path: Path
) -> None:
    config = LogConfig(index_interval_bytes=interval, segment_index_bytes=index_bytes)
    for taken, count in product((1, 2, 3, 4, 5, 6), (2, 3, 6)):
        times = list(accumulate((steps[number % 2] for number in range(taken + count - 1)), initial=1000))
        row = b"".join(produced(time, base_offset=offset) for offset, time in enumerate(times))
        entries = as_follower(row, config, next_offset=0)
        model = IndexModel(interval, index_bytes)
        reasons = [model.add(number, time) for number, time in enumerate(times)][taken:]
        for size in (1, count):
            directory = tmp_path / f"{taken}-{count}-{size}"
            directory.mkdir()
            segment = ActiveSegment(LOCAL_FILES, directory, 0, config, opened_ms=0)
            for entry in entries[:taken]:
                segment.append([entry])
            if size == count:
                assert segment.lacks_room_for(entries[taken:]) is next(filter(None, reasons), None)
            for start in range(taken, taken + count, size):
                segment.append(entries[start : start + size])
            segment.seal()
            segment.close()
            index, time_index = (segment.path(kind).read_bytes() for kind in INDEX_KINDS[:2])
            final = [model.largest] if model.largest[0] > model.times[-1][0] else []
            assert list(struct.iter_unpack(">ii", index)) == model.offsets
            assert list(struct.iter_unpack(">qi", time_index)) == [*model.times[1:], *final]


@pytest.mark.req("SEG-ROL-006", "SEG-ROL-007")
def test_roll_by_the_span_of_offsets(tmp_path: Path) -> None:
    far = 2**31
    with open_writer(tmp_path) as writer:
        writer.append_as_follower(produced(base_offset=0))
        taken = writer.append_as_follower(produced(base_offset=far - 1))
        assert taken is not None
        assert taken.rolled is None
        taken = writer.append_as_follower(produced(base_offset=far + 5))
        assert taken is not None
        assert taken.rolled is RollReason.OFFSET_SPAN
        taken = writer.append_as_follower(message(2 * far + 7))
        assert taken is not None
        assert taken.rolled is RollReason.OFFSET_SPAN
    assert base_offsets(tmp_path) == [0, far + 5, far + 8]


@pytest.mark.parametrize(
    ("generation", "magic", "expected"),
    [
        (BrokerGeneration.V4_1, 2, 2**31 + 50),
        (BrokerGeneration.V2_0, 2, 2**31 + 50),
        (BrokerGeneration.V2_0, 1, 101),
        (BrokerGeneration.V0_11, 2, 101),
        (BrokerGeneration.V0_10_1, 1, 7),
        (BrokerGeneration.V0_8, 0, 7),
    ],
)
@pytest.mark.req("SEG-ROL-007")
def test_the_new_base_offset(generation: BrokerGeneration, magic: int, expected: int) -> None:
    coming = Incoming(100, 0, first_offset=2**31 + 50, last_offset=2**31 + 100, magic=magic)
    assert new_base_offset(7, coming, generation) == expected
    assert new_base_offset(2**32, coming, generation) == 2**32


@pytest.mark.req("SEG-ROL-008")
def test_jitter(tmp_path: Path) -> None:
    assert jitter_ms(LogConfig(segment_ms=100, segment_jitter_ms=1000), 0.999) == 99
    assert jitter_ms(LogConfig(segment_ms=100, segment_jitter_ms=40), 0.5) == 20
    with open_writer(tmp_path, segment_ms=100, segment_jitter_ms=40, random=0.5) as writer:
        assert appended_and_rolled(writer, [1000, 1080, 1081, 1161, 1162]) == [
            None,
            None,
            RollReason.TIME,
            None,
            RollReason.TIME,
        ]


@pytest.mark.req("SEG-ROL-009")
def test_files_of_the_new_segments_name_are_replaced(tmp_path: Path) -> None:
    directory = tmp_path / "topic-0"
    with open_writer(tmp_path) as writer:
        writer.append(produced())
        for ending in (".log", ".index", ".timeindex", ".txnindex"):
            directory.joinpath(f"00000000000000000001{ending}").write_bytes(b"old" * 100)
        assert writer.roll() == 1
        assert {
            name[20:]: data for name, data in contents(directory, "").items() if name.startswith("0" * 19 + "1")
        } == {
            ".log": b"",
            ".snapshot": bytes.fromhex("000148674bc700000000"),
        }
        with directory.joinpath("00000000000000000001.log").open("rb") as log:
            assert writer.roll() == 1  # the active segment is empty, and is made anew
            assert os.fstat(log.fileno()).st_nlink, "its name alone knows the log end offset after a power cut"
        writer.append(produced())
    assert base_offsets(tmp_path) == [0, 1]
    assert len(contents(directory, "1.log")["00000000000000000001.log"]) == SIZE


@pytest.mark.req("SEG-ROL-014", "SEG-ROL-018")
def test_the_end_of_a_segment(tmp_path: Path) -> None:
    with open_writer(tmp_path, preallocate=True, segment_bytes=5000) as writer:
        appended_and_rolled(writer, [1000, 1500, 1200])
        writer.roll()
        directory = tmp_path / "topic-0"
        assert directory.joinpath(LOG).stat().st_size == 3 * SIZE
        assert contents(directory, "0.timeindex") == {"00000000000000000000.timeindex": struct.pack(">qi", 1500, 1)}
        assert contents(directory, "0.index") == {"00000000000000000000.index": b""}


@pytest.mark.req("SEG-ROL-015")
def test_snapshots_when_a_segment_begins(tmp_path: Path) -> None:
    directory = tmp_path / "topic-0"
    with open_writer(tmp_path) as writer:
        writer.roll()
        assert not contents(directory, ".snapshot")
        writer.append(produced())
        writer.roll()
        assert contents(directory, ".snapshot") == {"00000000000000000001.snapshot": example("no-producers")}
        writer.append(idempotent(4, 1000, 1001))
        writer.roll()
        assert list(contents(directory, ".snapshot")) == [f"0000000000000000000{end}.snapshot" for end in (1, 3)]
    (producer,) = snapshot(contents(directory, "3.snapshot")["00000000000000000003.snapshot"])
    assert (producer.producer_id, producer.last_sequence, producer.last_offset, producer.offset_delta) == (9, 5, 2, 1)


@settings(max_examples=25)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=12))
@pytest.mark.req("SEG-APP-001")
def test_offsets_are_dense(counts: list[int]) -> None:
    from pathlib import Path
    from tempfile import TemporaryDirectory

    with TemporaryDirectory() as path, open_writer(Path(path), segment_bytes=300, index_interval_bytes=100) as writer:
        first = [writer.append(produced(*[1000] * count)).first_offset for count in counts]
    assert first == [0, *accumulate(counts)][:-1]

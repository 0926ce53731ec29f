"""Chapter 73: what becomes of the records and batches of segments that compaction rewrites."""

from __future__ import annotations

import gzip
import os
import struct
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

import pytest
from helpers.appends import example, marker
from helpers.batches import batch, patched, record
from helpers.made_partitions import checkpoint, content, make, names
from helpers.messages import LOG_APPEND_TIME, message, wrapper
from helpers.support import bundled

from seglog_format.cleaning.compaction_apply import compact_partition, explain_compaction
from seglog_format.codec.decode import decode_batch
from seglog_format.codec.framing import walk
from seglog_format.log.index_file import TransactionIndex
from seglog_format.model import AbortedTxn, RecordBatch, RecordBatchHeader
from seglog_format.state.config import LogConfig

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from proofs.kafka.oracle import Oracle

NOW = 500_000
CONFIG = LogConfig(cleanup_policy=frozenset({"compact"}), delete_retention_ms=1000)
CHAPTER = "73-compaction"
TRANSACTIONAL, CONTROL, STAMPED, HORIZON = 0x10, 0x20, 0x08, 0x40
ABORT, COMMIT = 0, 1
CLEANER = "cleaner-offset-checkpoint"
WITH_CLEANER = "4.1"
"""The release of the oracles whose cleaner is asked."""


pytestmark = pytest.mark.usefixtures("no_fsync")


Pair: TypeAlias = "tuple[str | None, str | None]"


def data(base: int, *pairs: Pair, times: tuple[int, ...] | None = None, **fields: int) -> bytes:
    """Return a batch with a record for each key and value."""
    times = times or (1000,) * len(pairs)
    rows = enumerate(zip(pairs, times, strict=True))
    section = b"".join(
        record(time - times[0], number, coded(key), coded(value)) for number, ((key, value), time) in rows
    )
    known = {
        "base_offset": base,
        "last_offset_delta": len(pairs) - 1,
        "base_timestamp_ms": times[0],
        "max_timestamp_ms": max(times),
    }
    return batch(section, len(pairs), **{**known, **fields})


def coded(text: str | None) -> bytes | None:
    return None if text is None else text.encode()


def of_producer(base: int, *pairs: Pair, attributes: int = 0) -> bytes:
    return data(base, *pairs, producer_id=9, producer_epoch=0, base_sequence=base, attributes=attributes)


def in_transaction(base: int, *pairs: Pair) -> bytes:
    return of_producer(base, *pairs, attributes=TRANSACTIONAL)


def end(base: int, kind: int, producer_id: int = 9) -> bytes:
    return patched(marker(kind, producer_id), 0, "q", base)


def tail(base: int) -> bytes:
    """Return what follows the dirty part: a batch of nobody."""
    return data(base, ("tail", "x"))


def log(root: Path, *batches: bytes, end_offset: int | None = None, files: dict[str, bytes] | None = None) -> Path:
    """Return a log with one segment to compact, which ends with a record that stays, and an active one."""
    found = list(walk(b"".join(batches)))
    last = found[-1].header.last_offset + 1
    active = last + 1 if end_offset is None else end_offset
    stays = () if end_offset is not None else (data(last, ("last", "x")),)
    parts = {"0.log": b"".join([*batches, *stays]), f"{active}.log": tail(active)}
    return make(root, {**parts, **(files or {})})


def compacted(directory: Path, now_ms: int = NOW, config: LogConfig = CONFIG, **options: int) -> list[RecordBatch]:
    """Return the batches of the first segment after a pass."""
    max_keys, expiration_ms = options.get("max_keys", 1000), options.get("producer_expiration_ms", 86_400_000)
    compact_partition(directory, config, now_ms=now_ms, max_keys=max_keys, producer_expiration_ms=expiration_ms)
    return batches(directory)


def batches(directory: Path) -> list[RecordBatch]:
    whole = (directory / f"{0:020d}.log").read_bytes()
    return [decode_batch(frame.data) for frame in walk(whole)]


def again(directory: Path, now_ms: int, config: LogConfig = CONFIG) -> list[RecordBatch]:
    """Return the same after one more pass, as if nothing had been cleaned."""
    (directory.parent / CLEANER).unlink()
    return compacted(directory, now_ms, config)


def kept(found: list[RecordBatch]) -> list[tuple[int, bytes | None, bytes | None]]:
    """Offset, key and value of every record but the last one."""
    rows = [(record.offset, record.key, record.value) for batch in found for record in batch.records]
    return [row for row in rows if row[1] != b"last"]


# Records


@pytest.mark.req("SEG-CMP-008")
def test_of_each_key_the_newest_record_stays(tmp_path: Path) -> None:
    directory = log(
        tmp_path, data(0, ("a", "1"), ("b", "2"), ("a", "3")), data(3, ("c", "4"), ("b", "5")), data(5, ("", "6"))
    )
    assert kept(compacted(directory)) == [(2, b"a", b"3"), (3, b"c", b"4"), (4, b"b", b"5"), (5, b"", b"6")]


@pytest.mark.req("SEG-CMP-008")
def test_what_the_active_segment_holds_makes_nothing_obsolete(tmp_path: Path) -> None:
    directory = log(tmp_path, data(0, ("tail", "old")))
    assert kept(compacted(directory)) == [(0, b"tail", b"old")]


@pytest.mark.req("SEG-CMP-008")
def test_records_of_the_clean_part_make_nothing_obsolete_and_become_it(tmp_path: Path) -> None:
    directory = log(tmp_path, data(0, ("a", "1"), ("b", "1"), ("a", "2")), data(3, ("b", "2")))
    checkpoint(directory, CLEANER, 3)
    assert kept(compacted(directory)) == [(0, b"a", b"1"), (2, b"a", b"2"), (3, b"b", b"2")]


@pytest.mark.req("SEG-CMP-007")
@pytest.mark.parametrize(
    ("max_keys", "end_offset", "expected"),
    [(1, 1, [0, 1, 2, 3, 4, 5]), (2, 3, [1, 2, 3, 4, 5]), (3, 5, [1, 3, 4, 5]), (4, 7, [3, 4, 5])],
)
def test_records_after_the_keys_that_can_be_remembered_stay(
    max_keys: int, end_offset: int, expected: list[int], tmp_path: Path
) -> None:
    pairs = [("a", "0"), ("a", "1"), ("b", "2"), ("b", "3"), ("c", "4"), ("a", "5")]
    directory = log(tmp_path, data(0, *pairs[:2]), data(2, *pairs[2:]))
    assert [row[0] for row in kept(compacted(directory, max_keys=max_keys))] == expected
    assert f"orders 0 {end_offset}\n" in (directory.parent / CLEANER).read_text(encoding="utf-8")


@pytest.mark.req("SEG-CMP-031")
@pytest.mark.parametrize(
    ("first", "end_offset"),
    [
        ([data(0, ("a", "0"), (None, "1"), ("b", "2"))], 1),
        ([data(0, ("a", "0"), (None, "1")), data(2, (None, "2"), (None, "3")), data(4, ("b", "4"))], 4),
        ([data(0, ("a", "0")), end(1, COMMIT), data(2, ("b", "2"))], 2),
        ([data(0, ("a", "0"))], 10),
    ],
    ids=["inside-a-batch", "after-batches-without-keys", "after-a-control-batch", "where-the-next-segment-begins"],
)
def test_a_pass_stops_after_what_it_has_read(first: list[bytes], end_offset: int, tmp_path: Path) -> None:
    parts = {"0.log": b"".join(first), "10.log": data(10, ("b", "10")), "20.log": tail(20)}
    directory = make(tmp_path, parts)
    compacted(directory, max_keys=1)
    assert f"orders 0 {end_offset}\n" in (directory.parent / CLEANER).read_text(encoding="utf-8")


@pytest.mark.req("SEG-CMP-028")
def test_there_even_records_without_a_key_stay(tmp_path: Path) -> None:
    directory = log(tmp_path, data(0, ("a", "0"), ("b", "1"), (None, "2")))
    assert kept(compacted(directory, max_keys=1)) == [(0, b"a", b"0"), (1, b"b", b"1"), (2, None, b"2")]


@pytest.mark.req("SEG-CMP-009")
def test_records_without_a_key_go(tmp_path: Path) -> None:
    directory = log(tmp_path, data(0, (None, "1"), ("a", "2")), data(2, (None, None)))
    assert kept(compacted(directory)) == [(1, b"a", b"2")]


# Tombstones


@pytest.mark.req("SEG-CMP-010", "SEG-CMP-011")
def test_a_tombstone_stays_until_its_horizon(tmp_path: Path) -> None:
    directory = log(tmp_path, data(0, ("a", "1"), ("b", "1")), data(2, ("a", None), ("c", "1")))
    first = compacted(directory)
    assert kept(first) == [(1, b"b", b"1"), (2, b"a", None), (3, b"c", b"1")]
    assert [one.header.delete_horizon_ms for one in first] == [None, NOW + 1000, None]
    second = again(directory, NOW + 999)
    assert second[1] == first[1]
    third = again(directory, NOW + 1000)
    assert kept(third) == [(1, b"b", b"1"), (3, b"c", b"1")]
    assert [one.header.delete_horizon_ms for one in third] == [None, NOW + 1000, None]


@pytest.mark.req("SEG-CMP-010", "SEG-CMP-008")
def test_a_tombstone_makes_older_records_obsolete_and_is_made_so_itself(tmp_path: Path) -> None:
    directory = log(tmp_path, data(0, ("a", "1"), ("b", None)), data(2, ("a", None), ("b", "2")))
    assert kept(compacted(directory)) == [(2, b"a", None), (3, b"b", b"2")]


@pytest.mark.req("SEG-CMP-011")
def test_the_time_of_the_records_is_what_it_was(tmp_path: Path) -> None:
    directory = log(tmp_path, data(0, ("a", None), ("b", "2"), times=(3000, 1000)))
    (changed, _) = compacted(directory)
    assert [one.timestamp_ms for one in changed.records] == [3000, 1000]
    assert (changed.header.base_timestamp_ms, changed.header.max_timestamp_ms) == (NOW + 1000, 3000)
    assert isinstance(changed.header, RecordBatchHeader)
    assert changed.header.attributes == HORIZON


@pytest.mark.req("SEG-CMP-011", "SEG-CMP-018", "SEG-CMP-019")
@pytest.mark.parametrize(("others", "name"), [(("a",), "cleaned"), (("a", "b"), "cleaned-more")])
def test_the_examples_of_the_chapter(others: tuple[str, ...], name: str, tmp_path: Path) -> None:
    newer = [data(104 + number, (key, "new")) for number, key in enumerate(others)]
    directory = log(tmp_path, example("dirty", CHAPTER), *newer, of_producer(120, ("p", "1")))
    compacted(directory)
    expected = example(name, CHAPTER)
    assert (directory / f"{0:020d}.log").read_bytes()[: len(expected)] == expected


@pytest.mark.req("SEG-CMP-012")
@pytest.mark.parametrize(("behind_ms", "expected"), [(1000, []), (999, [0])])
@pytest.mark.parametrize("magic", [0, 1])
def test_old_tombstones_go_with_the_age_of_their_segment(
    behind_ms: int, expected: list[int], magic: int, tmp_path: Path
) -> None:
    segments = {
        "0.log": message(0, b"a", None, magic=magic),
        "1.log": data(1, ("b", "1")),
        "2.log": data(2, ("c", "1")),
    }
    directory = make(tmp_path, {**segments, "3.log": tail(3)})
    for name, modified_ms in (("0.log", 50_000 - behind_ms), ("1.log", 50_000), ("2.log", 70_000)):
        os.utime(directory / f"{int(name[0]):020d}.log", ns=(modified_ms * 1_000_000,) * 2)
    checkpoint(directory, CLEANER, 2)
    assert [row[0] for row in kept(compacted(directory))] == [*expected, 1, 2]


@pytest.mark.req("SEG-CMP-012")
def test_old_tombstones_stay_where_nothing_is_clean(tmp_path: Path) -> None:
    directory = log(tmp_path, message(0, b"a", None, magic=1))
    os.utime(directory / f"{0:020d}.log", ns=(1_000_000, 1_000_000))
    (changed, _) = compacted(directory)
    assert changed.header.delete_horizon_ms == NOW + 1000


# Transactions


@pytest.mark.req("SEG-CMP-013")
def test_records_of_aborted_transactions_go_and_count_for_nothing(tmp_path: Path) -> None:
    directory = log(
        tmp_path,
        data(0, ("a", "1")),
        in_transaction(1, ("a", "2"), ("b", "2")),
        end(3, ABORT),
        of_producer(4, ("p", "1")),
    )
    assert [row for row in kept(compacted(directory)) if row[0] != 3] == [(0, b"a", b"1"), (4, b"p", b"1")]


@pytest.mark.req("SEG-CMP-013")
def test_records_of_committed_transactions_count(tmp_path: Path) -> None:
    directory = log(
        tmp_path, data(0, ("a", "1")), in_transaction(1, ("a", "2")), end(2, COMMIT), of_producer(3, ("p", "1"))
    )
    assert [row[0] for row in kept(compacted(directory))] == [1, 2, 3]


@pytest.mark.req("SEG-CMP-014", "SEG-CMP-026", "SEG-CMP-021")
def test_a_marker_stays_for_a_pass_and_until_its_horizon(tmp_path: Path) -> None:
    aborted = [in_transaction(0, ("a", "1")), in_transaction(1, ("b", "1")), end(2, ABORT)]
    directory = log(tmp_path, *aborted, of_producer(3, ("p", "1")))
    index = directory / f"{0:020d}.txnindex"
    first = compacted(directory)
    assert [(one.base_offset, one.header.delete_horizon_ms) for one in first[:1]] == [(2, None)]
    assert TransactionIndex.open(index, 0).entries == (AbortedTxn(0, 9, 0, 2, 3),)
    second = again(directory, NOW)
    assert [(one.base_offset, one.header.delete_horizon_ms) for one in second[:1]] == [(2, NOW + 1000)]
    assert not index.exists()
    assert again(directory, NOW + 999)[0] == second[0]
    assert again(directory, NOW + 1000)[0].base_offset == 3


@pytest.mark.req("SEG-CMP-014")
def test_the_marker_of_a_commit_stays_as_long_as_a_record_does(tmp_path: Path) -> None:
    directory = log(tmp_path, in_transaction(0, ("a", "1")), end(1, COMMIT), of_producer(2, ("p", "1")))
    compacted(directory)
    found = again(directory, NOW + 10_000)
    assert [(one.base_offset, one.header.delete_horizon_ms) for one in found[:2]] == [(0, None), (1, None)]


@pytest.mark.req("SEG-CMP-014")
def test_other_control_records_stay(tmp_path: Path) -> None:
    key, value = bytes([0, 0, 0, 2]), bytes.fromhex("000000000001010100")
    leader_change = batch(record(0, 0, key, value), attributes=CONTROL)
    directory = log(tmp_path, leader_change)
    before = batches(directory)[0]
    assert compacted(directory)[0] == before
    assert again(directory, NOW + 10_000)[0] == before


@pytest.mark.req("SEG-CMP-021")
def test_the_transaction_index_says_what_it_said(tmp_path: Path) -> None:
    """The first batch of the transaction may be gone since it was listed."""
    listed = struct.pack(">hqqqq", 0, 9, 0, 6, 4)
    batches_left = [in_transaction(5, ("a", "1")), end(6, ABORT), of_producer(7, ("p", "1"))]
    directory = log(tmp_path, *batches_left, files={"0.txnindex": listed})
    compacted(directory)
    assert (directory / f"{0:020d}.txnindex").read_bytes() == listed


# Batches


@pytest.mark.req("SEG-CMP-015")
def test_the_last_batch_of_a_producer_stays_without_its_records(tmp_path: Path) -> None:
    directory = log(
        tmp_path, of_producer(0, ("a", "1")), of_producer(1, ("a", "2"), ("b", "2")), data(3, ("a", "3"), ("b", "3"))
    )
    found = compacted(directory)
    assert [(one.base_offset, one.last_offset, len(one.records)) for one in found[:2]] == [(1, 2, 0), (3, 4, 2)]
    assert isinstance(found[0].header, RecordBatchHeader)
    assert (found[0].header.last_sequence, found[0].header.base_timestamp_ms) == (2, -1)


@pytest.mark.req("SEG-CMP-015")
def test_of_a_producer_that_is_forgotten_nothing_stays(tmp_path: Path) -> None:
    directory = log(tmp_path, of_producer(0, ("a", "1")), data(1, ("a", "3")))
    assert [one.base_offset for one in compacted(directory, producer_expiration_ms=NOW - 999)][:2] == [0, 1]
    assert [one.base_offset for one in again_forgotten(directory)][:1] == [1]


def again_forgotten(directory: Path) -> list[RecordBatch]:
    (directory.parent / CLEANER).unlink()
    return compacted(directory, producer_expiration_ms=NOW - 1000)


@pytest.mark.req("SEG-CMP-027")
def test_the_marker_of_a_producer_without_data_stays_without_its_record(tmp_path: Path) -> None:
    directory = log(tmp_path, end(0, COMMIT))
    assert compacted(directory)[0].header.delete_horizon_ms == NOW + 1000
    (emptied, _) = again(directory, NOW + 1000)
    assert (emptied.records, emptied.header.is_control, emptied.header.delete_horizon_ms) == ((), True, None)


@pytest.mark.req("SEG-CMP-015")
def test_other_batches_without_records_go(tmp_path: Path) -> None:
    directory = log(tmp_path, data(0, ("a", "1")), data(1, ("a", "2")))
    assert [one.base_offset for one in compacted(directory)] == [1, 2]


@pytest.mark.req("SEG-CMP-029")
def test_a_batch_without_records_keeps_all_but_codec_horizon_and_base_timestamp(tmp_path: Path) -> None:
    bits = 0x4000 | 64 | TRANSACTIONAL | 8 | 1
    section = gzip.compress(record(0, 0, b"a", b"1"))
    known = {"producer_id": 9, "producer_epoch": 3, "base_sequence": 4, "partition_leader_epoch": 5}
    known["last_offset_delta"] = 0
    full = batch(section, 1, attributes=bits, base_timestamp_ms=NOW + 1, max_timestamp_ms=1000, **known)
    directory = log(tmp_path, full, patched(end(1, COMMIT), 51, "h", 3), data(2, ("a", "2")))
    compacted(directory)
    emptied = next(iter(walk((directory / f"{0:020d}.log").read_bytes())))
    expected = batch(b"", 0, attributes=TRANSACTIONAL | 8, base_timestamp_ms=-1, max_timestamp_ms=1000, **known)
    assert bytes(emptied.data).hex(" ") == expected.hex(" ")


@pytest.mark.req("SEG-CMP-016")
def test_the_last_batch_stays_without_its_records(tmp_path: Path) -> None:
    directory = log(tmp_path, data(0, ("a", "1")), data(1, (None, "x"), attributes=0x4080), end_offset=2)
    found = compacted(directory)
    assert [(one.base_offset, len(one.records), one.next_offset) for one in found] == [(0, 1, 1), (1, 0, 2)]
    assert isinstance(found[1].header, RecordBatchHeader)
    assert found[1].header.attributes == 0
    assert (found[1].header.base_timestamp_ms, found[1].header.max_timestamp_ms) == (-1, 1000)


@pytest.mark.req("SEG-CMP-016")
def test_the_last_message_goes(tmp_path: Path) -> None:
    directory = log(tmp_path, message(0, b"a", b"1"), message(1, None, b"1"), end_offset=2)
    assert [one.next_offset for one in compacted(directory)] == [1]


@pytest.mark.req("SEG-CMP-017")
def test_a_batch_that_keeps_all_is_copied(tmp_path: Path) -> None:
    unusual = data(0, ("a", "1"), ("b", "2"), attributes=0x4080, max_timestamp_ms=77)
    directory = log(tmp_path, unusual)
    compacted(directory)
    assert (directory / f"{0:020d}.log").read_bytes()[: len(unusual)] == unusual


@pytest.mark.req("SEG-CMP-018")
def test_a_batch_that_loses_records_keeps_its_place(tmp_path: Path) -> None:
    whole = [("a", "1"), ("b", "2"), ("a", "3"), ("c", "4")]
    before = data(
        10, *whole, producer_id=7, producer_epoch=3, base_sequence=5, partition_leader_epoch=4, attributes=0x4080
    )
    directory = log(tmp_path, before, data(14, ("c", "5"), producer_id=7, producer_epoch=3, base_sequence=9))
    after = compacted(directory)[0].header
    assert isinstance(after, RecordBatchHeader)
    assert [record.offset for record in batches(directory)[0].records] == [11, 12]
    assert (after.base_offset, after.last_offset_delta, after.partition_leader_epoch) == (10, 3, 4)
    assert (after.producer_id, after.producer_epoch, after.base_sequence, after.last_sequence) == (7, 3, 5, 8)
    assert (after.records_count, after.attributes) == (2, 0)


@pytest.mark.req("SEG-CMP-019")
@pytest.mark.parametrize(
    ("attributes", "base_ms", "largest_ms", "times"),
    [(0, 2000, 2000, [2000, 1500]), (STAMPED, 9000, 9000, [9000, 9000])],
)
def test_timestamps_follow_what_stays(
    attributes: int, base_ms: int, largest_ms: int, times: list[int], tmp_path: Path
) -> None:
    largest = {"max_timestamp_ms": 9000} if attributes else {}
    before = data(0, ("a", "1"), ("b", "2"), ("c", "3"), times=(8000, 2000, 1500), attributes=attributes, **largest)
    after = compacted(log(tmp_path, before, data(3, ("a", "2"))))[0]
    assert (after.header.base_timestamp_ms, after.header.max_timestamp_ms) == (base_ms, largest_ms)
    assert [record.timestamp_ms for record in after.records] == times


@pytest.mark.req("SEG-CMP-020")
@pytest.mark.parametrize("magic", [0, 1])
def test_a_message_becomes_a_batch(magic: int, tmp_path: Path) -> None:
    directory = log(tmp_path, message(3, b"a", b"1", magic=magic, timestamp_ms=1234))
    compacted(directory)
    time = 1234 if magic else -1
    expected = batch(
        record(0, 0, b"a", b"1"),
        base_offset=3,
        partition_leader_epoch=-1,
        base_timestamp_ms=time,
        max_timestamp_ms=time,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
    )
    assert (directory / f"{0:020d}.log").read_bytes()[: len(expected)] == expected


@pytest.mark.req("SEG-CMP-020")
def test_what_is_left_of_a_wrapper_becomes_a_batch(tmp_path: Path) -> None:
    inner = [
        message(number, key, b"1", magic=1, timestamp_ms=100 * number)
        for number, key in enumerate((b"a", b"b", b"c", b"a"))
    ]
    (found, *_) = compacted(log(tmp_path, wrapper(*inner, offset=13, magic=1), data(14, ("a", "2"))))
    header = found.header
    assert isinstance(header, RecordBatchHeader)
    assert (header.magic, header.base_offset, header.last_offset_delta, header.codec_id) == (2, 11, 1, 2)
    assert [(one.offset, one.key, one.timestamp_ms) for one in found.records] == [(11, b"b", 100), (12, b"c", 200)]


@pytest.mark.req("SEG-CMP-020")
def test_a_stamped_message_stays_stamped(tmp_path: Path) -> None:
    (found, _) = compacted(log(tmp_path, message(0, b"a", b"1", magic=1, attributes=LOG_APPEND_TIME, timestamp_ms=77)))
    assert isinstance(found.header, RecordBatchHeader)
    assert (found.header.attributes, found.header.max_timestamp_ms) == (STAMPED, 77)


# Told in words


def test_every_record_is_accounted_for(tmp_path: Path) -> None:
    directory = log(tmp_path, data(0, ("a", "1"), (None, "x"), ("b", None)), data(3, ("a", "2")))
    before = content(directory)
    fates = list(explain_compaction(directory, CONFIG, now_ms=NOW))
    assert fates[0].explanation == (
        "batch 0 to 2: rewritten",
        "  offset 0: removed: a later record has its key",
        "  offset 1: removed: it has no key",
        "  offset 2: kept: a tombstone that is still retained",
    )
    assert [record.requirement for record in fates[0].records] == ["SEG-CMP-008", "SEG-CMP-009", "SEG-CMP-010"]
    assert content(directory) == before
    assert not [name for name in names(directory) if name.endswith(".deleted")]


def test_settings_of_the_indexes_are_followed(tmp_path: Path) -> None:
    every = replace(CONFIG, index_interval_bytes=0)
    directory = log(tmp_path, *(data(number, (f"k{number}", "1")) for number in range(4)))
    compacted(directory, config=every)
    assert len((directory / f"{0:020d}.index").read_bytes()) == 8 * 4


# What a broker did


@pytest.mark.req("SEG-CMP-006", "SEG-CMP-008", "SEG-CMP-010", "SEG-CMP-011", "SEG-CMP-018", "SEG-CMP-019")
def test_the_last_pass_of_a_broker(tmp_path: Path) -> None:
    """Its directory still has the files that the pass replaced."""
    broker = bundled("4.3.0/compact-codec") / "compact-codec-0"
    directory = tmp_path / "compact-codec-0"
    directory.mkdir()
    for base in (0, 660, 736):
        for path in broker.glob(f"{base:020d}.*.deleted"):
            (directory / path.stem).write_bytes(path.read_bytes())
    for path in broker.glob(f"{820:020d}.*"):
        (directory / path.name).write_bytes(path.read_bytes())
    (tmp_path / CLEANER).write_text("0\n1\ncompact-codec 0 736\n", encoding="utf-8")
    now_ms = 1_795_311_805_822 - 86_400_000
    compact_partition(directory, LogConfig(cleanup_policy=frozenset({"compact"}), segment_bytes=9000), now_ms=now_ms)
    assert sorted(directory.glob("*.log")) == [directory / f"{base:020d}.log" for base in (0, 736, 820)]
    for base in (0, 736):
        name = f"{base:020d}.log"
        assert list(fields_of(directory / name)) == list(fields_of(broker / name))
        assert (directory / name).with_suffix(".timeindex").read_bytes() == (broker / name).with_suffix(
            ".timeindex"
        ).read_bytes()


def fields_of(log_file: Path) -> Iterator[object]:
    """Everything but what depends on how an encoder compresses."""
    for frame in walk(log_file.read_bytes()):
        found = decode_batch(frame.data)
        assert isinstance(found.header, RecordBatchHeader)
        yield replace(found.header, batch_length=0, crc=0), found.records


# Kafka's Cleaner


@pytest.mark.parametrize(
    ("entries", "max_keys", "times", "left"),
    [
        pytest.param(
            [data(0, ("a", "0"), ("b", "1"), ("c", "2"), (None, "3"))],
            2,
            [NOW],
            4,
            marks=pytest.mark.req("SEG-CMP-028"),
            id="after the last key that fits",
        ),
        pytest.param(
            [in_transaction(0, ("a", "1")), in_transaction(1, ("b", "1")), end(2, ABORT), of_producer(3, ("p", "1"))],
            1000,
            [NOW, NOW, NOW + 999, NOW + 1000],
            1,
            marks=pytest.mark.req("SEG-CMP-026"),
            id="a marker before and at its horizon",
        ),
        pytest.param(
            [end(0, COMMIT)],
            1000,
            [NOW, NOW + 1000],
            0,
            marks=pytest.mark.req("SEG-CMP-027"),
            id="a marker of a producer without data",
        ),
    ],
)
def test_kafkas_cleaner_leaves_the_same_bytes_after_each_pass(
    entries: list[bytes], max_keys: int, times: list[int], left: int, oracles: dict[str, Oracle], tmp_path: Path
) -> None:
    ours, theirs = (log(tmp_path / side, *entries) for side in ("ours", "theirs"))
    question = {
        "directory": str(theirs),
        "config": {"cleanup.policy": "compact", "delete.retention.ms": "1000"},
        "mapSlots": max_keys,
    }
    for now_ms in times:
        (ours.parent / CLEANER).unlink(missing_ok=True)
        found = compacted(ours, now_ms, max_keys=max_keys)
        oracles[WITH_CLEANER].must("clean", nowMs=now_ms, **question)
        assert log_bytes(theirs) == log_bytes(ours), now_ms
    assert len(kept(found)) == left


def log_bytes(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in directory.glob("*.log")}

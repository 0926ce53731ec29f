"""What a served log answers: its bytes as they are stored, its offsets, and an error where it is damaged."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from helpers.made_partitions import entry, make
from helpers.serving import Served, serving
from helpers.support import bundled
from kio.schema.errors import ErrorCode

import seglog_format as seglog
from proofs.serve.client import FETCH, METADATA, Client
from seglog_format.model import GREATEST_OFFSET, INT64_MAX, Frame, TimestampOffset

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


NAMES = ("4.3.0/segs", "4.3.0/txn", "4.3.0/txn-open", "4.3.0/delrec", "3.9.1/compact", "0.10.2.2/mixed-segs")


def partition_of(name: str) -> Path:
    return next(bundled(name).glob("*-0"))


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving(*map(partition_of, NAMES)) as running:
        yield running


@pytest.fixture
def client(served: Served) -> Iterator[Client]:
    with served.client() as connected:
        yield connected


def stored(path: Path) -> bytes:
    """Return the entries of all segments, one after the other."""
    return b"".join(file.read_bytes() for file in sorted(path.glob("*.log")))


def fetched(client: Client, topic: str, **options: object) -> bytes:
    """All entries, fetch after fetch."""
    offset, parts = client.list_offset(topic, -2).offset, []
    while True:
        answer = client.fetch(topic, offset, **options)
        assert answer.error_code is ErrorCode.none
        if not answer.records:
            return b"".join(parts)
        parts.append(bytes(answer.records))
        offset = last_offset(parts[-1]) + 1


def last_offset(entries: bytes) -> int:
    from seglog_format.codec.framing import walk

    return max(frame.header.last_offset for frame in walk(entries))


@pytest.mark.parametrize("size", [1, 3000, 1 << 20])
@pytest.mark.parametrize("version", [4, 11, 12])
def test_the_bytes_of_all_segments_come_as_they_are_stored(client: Client, size: int, version: int) -> None:
    limit = {"partition_max_bytes": size}
    assert fetched(client, "segs", version=version, partition=limit) == stored(partition_of("4.3.0/segs"))


def test_messages_of_older_formats_come_as_they_are_stored(client: Client) -> None:
    assert fetched(client, "mixed-segs") == stored(partition_of("0.10.2.2/mixed-segs"))


def test_a_topic_is_known_by_its_id(client: Client) -> None:
    topic = client.ask(METADATA, 12, topics=[{"topic_id": None, "name": "txn"}]).topics[0]
    assert str(topic.topic_id) != "None"
    partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1 << 20}
    fields = {"max_wait": 0, "min_bytes": 1, "max_bytes": 1 << 20, "isolation_level": 0}
    answer = client.ask(FETCH, 17, **fields, topics=[{"topic_id": topic.topic_id, "partitions": [partition]}])
    assert answer.responses[0].topic_id == topic.topic_id
    assert stored(partition_of("4.3.0/txn")).startswith(answer.responses[0].partitions[0].records)


def test_copies_of_a_topic_have_ids_of_their_own(tmp_path: Path) -> None:
    for name in ("one-0", "other-0"):
        shutil.copytree(partition_of("4.3.0/txn"), tmp_path / name)
    with serving(tmp_path) as served, served.client() as client:
        topics = client.ask(METADATA, 12, topics=None).topics
        assert len({each.topic_id for each in topics}) == 2


def found(client: Client, topic: str, timestamp_ms: int) -> TimestampOffset | None:
    answer = client.list_offset(topic, timestamp_ms)
    return TimestampOffset(answer.timestamp, answer.offset) if answer.offset >= 0 else None


@pytest.mark.parametrize("name", NAMES)
def test_offsets_are_those_that_the_reference_reads(client: Client, name: str) -> None:
    with seglog.open_partition(partition_of(name)) as partition:
        topic = name.split("/")[1]
        assert client.list_offset(topic, -2).offset == partition.log_start_offset
        assert client.list_offset(topic, -1).offset == partition.log_end_offset
        assert client.list_offset(topic, -1, level=1).offset == partition.last_stable_offset
        for record in list(partition.records())[::25]:
            if record.timestamp_ms >= 0:
                assert found(client, topic, record.timestamp_ms) == partition.offset_for_timestamp(record.timestamp_ms)
        assert found(client, topic, -3) == partition.offset_for_timestamp(-3)


def test_no_record_is_that_young(client: Client) -> None:
    answer = client.list_offset("segs", 1 << 60)
    assert (answer.error_code, answer.timestamp, answer.offset) == (ErrorCode.none, -1, -1)


@pytest.mark.parametrize("name", ["4.3.0/txn", "4.3.0/txn-open"])
def test_committed_reading_ends_where_it_is_decided_and_names_what_was_aborted(client: Client, name: str) -> None:
    topic = name.split("/")[1]
    with seglog.open_partition(partition_of(name)) as partition:
        stable, aborted = partition.last_stable_offset, partition.aborted_transactions()
        offset, named = partition.log_start_offset, set()
        while (answer := client.fetch(topic, offset, isolation_level=1)).records:
            assert answer.last_stable_offset == stable
            named |= {(each.producer_id, each.first_offset) for each in answer.aborted_transactions}
            offset = last_offset(answer.records) + 1
        assert offset == stable
        assert named == {(each.producer_id, each.first_offset) for each in aborted}


@pytest.mark.parametrize("offset", [-1, 1 << 40])
def test_an_offset_outside_of_the_log_is_refused(client: Client, offset: int) -> None:
    assert client.fetch("segs", offset).error_code is ErrorCode.offset_out_of_range


def test_what_nobody_knows_has_its_errors(client: Client) -> None:
    assert client.fetch("nowhere", 0).error_code is ErrorCode.unknown_topic_or_partition
    assert client.fetch("segs", 0, number=7).error_code is ErrorCode.unknown_topic_or_partition
    assert client.fetch("../segs", 0).error_code is ErrorCode.unknown_topic_or_partition
    assert client.list_offset("segs", -1, number=-1).error_code is ErrorCode.unknown_topic_or_partition
    assert client.list_offset("segs", -9).offset == -1


def test_zstd_is_kept_from_clients_that_do_not_know_it() -> None:
    with serving(partition_of("4.3.0/codec-zstd")) as served, served.client() as client:
        assert client.fetch("codec-zstd", 0, version=9).error_code is ErrorCode.unsupported_compression_type
        assert client.fetch("codec-zstd", 0, version=10).records


def damaged(tmp_path: Path, name: str, *, position: int) -> Path:
    """Return a copy of a partition with one bit of its first log file changed."""
    path = tmp_path / partition_of(name).name
    shutil.copytree(partition_of(name), path)
    log = min(path.glob("*.log"))
    data = bytearray(log.read_bytes())
    data[position] ^= 1
    log.write_bytes(data)
    return path


def third_entry() -> Frame:
    with seglog.open_partition(partition_of("4.3.0/segs")) as partition:
        return list(partition.segments[0].frames())[2]


def test_a_wrong_checksum_ends_the_fetch_before_it_and_fails_the_next_one(tmp_path: Path) -> None:
    third = third_entry()
    path = damaged(tmp_path, "4.3.0/segs", position=third.position + 70)
    with serving(path) as served, served.client() as client:
        before = client.fetch("segs", 0)
        assert (before.error_code, len(before.records)) == (ErrorCode.none, third.position)
        for _ in range(2):
            after = client.fetch("segs", third.header.base_offset)
            assert (after.error_code, after.records) == (ErrorCode.corrupt_message, b"")
        assert client.fetch("segs", third.header.next_offset).records
        assert len(served.findings) == 1
        assert "SEG-BAT-003" in served.findings[0]


def test_a_fetch_at_an_end_that_hides_intact_batches_fails(tmp_path: Path) -> None:
    for name, hidden in {"hidden": b"\0" + entry(5, 5), "incomplete": entry(5, 5)[:-9]}.items():
        path = make(tmp_path / name, {"0.log": entry(0, 5) + hidden})
        with serving(path) as served, served.client() as client:
            assert client.fetch("orders", 0).records == entry(0, 5)
            answers = [client.fetch("orders", 5).error_code for _ in range(2)]
            assert answers == [ErrorCode.corrupt_message if name == "hidden" else ErrorCode.none] * 2
            said = ["after the last whole entry are not served", "SEG-LOG-004"][: 2 if name == "hidden" else 1]
            assert [text in finding for text, finding in zip(said, served.findings, strict=True)] == [True] * len(said)


@pytest.mark.parametrize("at", [8, 11, 16], ids=["size-too-large", "size-off-by-one", "magic"])
def test_nothing_is_served_from_where_the_walk_ends(tmp_path: Path, at: int) -> None:
    third = third_entry()
    path = damaged(tmp_path, "4.3.0/segs", position=third.position + at)
    with serving(path) as served, served.client() as client:
        assert len(client.fetch("segs", 0).records) == third.position
        assert client.fetch("segs", third.header.base_offset).error_code is ErrorCode.corrupt_message
        assert client.fetch("segs", third.header.next_offset).error_code is ErrorCode.corrupt_message
        following = sorted(path.glob("*.log"))[1]
        assert client.fetch("segs", int(following.stem)).records
        assert served.findings


def test_the_greatest_offset_is_served(tmp_path: Path) -> None:
    path = tmp_path / "last-0"
    path.mkdir()
    base = GREATEST_OFFSET - 1
    batch = seglog.encode_batch(seglog.build_batch([seglog.new_record(value=b"v")] * 2, base_offset=base))
    (path / f"{base:020}.log").write_bytes(batch)
    with serving(path) as served, served.client() as client:
        assert client.list_offset("last", -1).offset == INT64_MAX
        for offset, expected in ((base + 1, batch), (INT64_MAX, b"")):
            answer = client.fetch("last", offset)
            assert (answer.error_code, answer.high_watermark) == (ErrorCode.none, INT64_MAX)
            assert bytes(answer.records) == expected


def test_an_incomplete_tail_is_told_and_not_served(tmp_path: Path) -> None:
    path = tmp_path / "many-0"
    shutil.copytree(partition_of("4.3.0/many"), path)
    log = path / f"{0:020}.log"
    log.write_bytes(log.read_bytes()[:-5])
    with serving(path) as served, served.client() as client:
        end = client.list_offset("many", -1).offset
        assert end < 7000
        assert client.fetch("many", end).records == b""
        assert "after the last whole entry" in served.findings[0]


def test_a_file_that_goes_away_is_an_error_and_no_more(tmp_path: Path) -> None:
    path = tmp_path / "segs-0"
    shutil.copytree(partition_of("4.3.0/segs"), path)
    with serving(path) as served, served.client() as client:
        assert client.list_offset("segs", -1).offset > 0
        first, second, *_ = sorted(path.glob("*.log"))
        first.unlink()
        assert client.fetch("segs", 0).error_code in {ErrorCode.offset_out_of_range, ErrorCode.none}
        start = int(second.stem)
        assert client.fetch("segs", start).records

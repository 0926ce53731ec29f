"""A directory that changes while it is served, transactions without reading everything, and bytes as they are."""

from __future__ import annotations

import shutil
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest
from helpers.serving import serving
from helpers.support import bundled
from kio.schema.errors import ErrorCode

import seglog_format as seglog
from seglog_format.codec.build import new_record
from seglog_format.log import segment as segment_module
from seglog_format.serve import served_partition as served_transactions
from seglog_format.serve.catalog import CatalogOptions
from seglog_format.serve.served_partition import ServedTransactions
from seglog_format.state.config import LogConfig
from seglog_format.writing.writer import PartitionWriter

if TYPE_CHECKING:
    from pathlib import Path

    from proofs.serve.client import Client

SMALL = LogConfig(segment_bytes=2000, retention_ms=-1, file_delete_delay_ms=0)


def append(writer: PartitionWriter, count: int) -> None:
    for _ in range(count):
        writer.append([new_record(value=b"v" * 100, timestamp_ms=1_700_000_000_000)])


def values(client: Client, offset: int) -> list[int]:
    """Offsets of the batches from one on, fetch after fetch."""
    from seglog_format.codec.framing import walk

    found: list[int] = []
    while (answer := client.fetch("t", offset)).records:
        found += [frame.header.last_offset for frame in walk(answer.records)]
        offset = found[-1] + 1
    assert answer.error_code is ErrorCode.none
    return found


def test_records_and_segments_that_come_later_are_served(tmp_path: Path) -> None:
    with PartitionWriter(tmp_path / "data" / "t-0", SMALL) as writer:
        append(writer, 5)
        with serving(tmp_path / "data" / "t-0") as served, served.client() as client:
            assert values(client, 0) == list(range(5))
            append(writer, 3)
            assert values(client, 5) == [5, 6, 7]
            append(writer, 40)
            assert len(list((tmp_path / "data" / "t-0").glob("*.log"))) > 2
            assert values(client, 8) == list(range(8, 48))
            assert client.list_offset("t", -1).offset == 48
            assert values(client, 0) == list(range(48))


def test_a_consumer_that_waits_at_the_end_gets_what_another_process_appends(tmp_path: Path) -> None:
    with PartitionWriter(tmp_path / "data" / "t-0", SMALL) as writer:
        append(writer, 1)
        with serving(tmp_path / "data" / "t-0") as served, served.client() as client:
            threading.Timer(0.2, append, (writer, 1)).start()
            start = time.monotonic()
            assert client.fetch("t", 1, max_wait=20_000).records
            assert time.monotonic() - start < 10


def test_segments_that_go_are_gone(tmp_path: Path) -> None:
    path = tmp_path / "t-0"
    shutil.copytree(next(bundled("4.3.0/segs").glob("*-0")), path)
    with serving(path) as served, served.client() as client:
        assert client.fetch("t", 0).records
        first, second, *_ = sorted(path.glob("*.log"))
        first.rename(first.with_suffix(".log.deleted"))
        assert client.list_offset("t", -2).offset == int(second.stem)
        assert client.fetch("t", 0).error_code is ErrorCode.offset_out_of_range
        assert client.fetch("t", int(second.stem)).records


def test_a_log_that_was_cut_and_written_anew_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "data" / "t-0"
    with PartitionWriter(path, SMALL) as writer:
        append(writer, 6)
    with serving(path) as served, served.client() as client:
        assert values(client, 0) == list(range(6))
        log = path / f"{0:020}.log"
        data = log.read_bytes()
        size = len(data) // 6
        log.write_bytes(data[: 2 * size])
        assert client.list_offset("t", -1).offset == 2
        assert values(client, 0) == [0, 1]


def test_a_directory_that_goes_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "data" / "t-0"
    with PartitionWriter(path, SMALL) as writer:
        append(writer, 1)
    with serving(path) as served, served.client() as client:
        assert values(client, 0) == [0]
        shutil.rmtree(path)
        assert client.fetch("t", 1).error_code is ErrorCode.kafka_storage_error


@pytest.mark.parametrize(
    "name", ["4.3.0/txn", "4.3.0/txn-open", "3.9.1/compact-txn", "2.8.2/txn", "1.1.1/txn-open", "4.3.0/segs"]
)
def test_transactions_are_those_of_the_reference(name: str) -> None:
    with seglog.open_partition(next(bundled(name).glob("*-0"))) as partition:
        found = ServedTransactions().read_on(partition)
        assert found.aborted == partition.transactions.aborted
        assert found.last_stable_offset == partition.transactions.last_stable_offset
        assert found.damage is None


def copy_of_txn(tmp_path: Path) -> Path:
    path = tmp_path / "txn-0"
    shutil.copytree(next(bundled("4.3.0/txn").glob("*-0")), path)
    return path


@pytest.mark.parametrize("agrees", [True, False])
def test_checksums_of_data_are_only_needed_where_the_index_disagrees(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, agrees: bool
) -> None:
    path = copy_of_txn(tmp_path)
    if not agrees:
        for index in path.glob("*.txnindex"):
            index.write_bytes(index.read_bytes()[34:])
    scanned: list[Any] = []
    monkeypatch.setattr(segment_module, "verify_checksum", lambda *_: pytest.fail("only markers are read"))
    real = served_transactions.scan_transactions
    monkeypatch.setattr(served_transactions, "scan_transactions", lambda *given: scanned.append(1) or real(*given))
    with seglog.open_partition(path) as partition:
        found = ServedTransactions().read_on(partition)
        assert bool(scanned) is not agrees
        assert found.aborted == partition.transactions.aborted


def test_a_marker_that_damage_hides_keeps_what_follows_undecided(tmp_path: Path) -> None:
    path = copy_of_txn(tmp_path)
    with seglog.open_partition(path) as partition:
        segment = partition.segments[0]
        markers = [frame for frame in segment.frames() if frame.header.is_control]
        damaged, log = markers[0], segment.paths.log
        assert partition.transactions.aborted
    with log.open("r+b") as file:
        file.seek(damaged.position + 22)
        file.write(b"\x10")  # no control batch any more, and a checksum that is wrong
    with serving(path) as served, served.client() as client:
        answer = client.fetch("txn", 0, isolation_level=1)
        assert answer.last_stable_offset <= damaged.header.base_offset


def test_raw_bytes_come_with_their_damage(tmp_path: Path) -> None:
    path = tmp_path / "segs-0"
    shutil.copytree(next(bundled("4.3.0/segs").glob("*-0")), path)
    first, *_, last = sorted(path.glob("*.log"))
    data = bytearray(first.read_bytes())
    data[70] ^= 1
    first.write_bytes(data)
    last.write_bytes(last.read_bytes()[:-7])
    with serving(path, options=CatalogOptions(is_raw=True)) as served, served.client() as client:
        assert client.fetch("segs", 0).records == bytes(data)
        assert client.fetch("segs", 0, partition={"partition_max_bytes": 100}).records.startswith(data[:100])
        end = client.list_offset("segs", -1).offset
        tail = client.fetch("segs", end - 1)
        assert tail.error_code is ErrorCode.none
        assert tail.records
        assert last.read_bytes().endswith(tail.records)
        assert client.fetch("segs", end).records == tail.records
        assert served.findings == []

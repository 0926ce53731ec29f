"""Arrow's classic layouts: bytes are copied part by part, and the parts never show."""

from __future__ import annotations

import pickle
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa
from helpers.scans import assert_equal_reading, segment_directory
from helpers.support import authentic, authentic_names
from helpers.walking import each_of

from proofs.fuzz.random_logs import random_log
from seglog_format.codec.build import build_batch, new_record
from seglog_format.codec.encode import encode_batch
from seglog_format.columnar import block, run
from seglog_format.errors import UsageError
from seglog_format.log.partition import open_partition
from seglog_format.model import CompressionCodec

if TYPE_CHECKING:
    from pathlib import Path

LAYOUTS = ("binary", "large_binary")


@pytest.fixture(params=[1, 3, 40])
def _small_parts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "PART_ROWS", request.param)
    monkeypatch.setattr(run, "FIRST_CAPACITY", request.param)


@pytest.mark.usefixtures("_small_parts")
@pytest.mark.parametrize("layout", LAYOUTS)
@each_of("seed", range(12))
def test_logs_by_chance(seed: int, layout: str, tmp_path: Path) -> None:
    log = random_log(seed)
    directory = segment_directory(tmp_path / "chance-0", log.data, log.base_offset)
    assert_equal_reading(directory, layout=layout)
    assert_equal_reading(directory, layout=layout, batch_rows=7)
    assert_equal_reading(directory, layout=layout, threads=2)


@pytest.mark.usefixtures("_small_parts")
@each_of("name", authentic_names()[::6])
def test_what_brokers_wrote(name: str) -> None:
    for path in sorted({found.parent for found in authentic(name).rglob("*.log")}):
        assert_equal_reading(path, layout="binary")


@pytest.mark.parametrize("codec", CompressionCodec)
def test_a_batch_holds_as_many_rows_as_without_copying(codec: CompressionCodec, tmp_path: Path) -> None:
    """Parts, and entries that are larger than one, end no Arrow batch early."""
    data, offset = b"", 0
    for count in (5000, 3, run.PART_ROWS + 1, 1, 9000):
        records = [new_record(key=b"k" * (row % 20), value=b"v" * (row % 90), timestamp_ms=1) for row in range(count)]
        data += encode_batch(build_batch(records, base_offset=offset, codec=codec))
        offset += count
    with open_partition(segment_directory(tmp_path / "large-0", data)) as partition:
        views = list(partition.scan(["offset", "key", "value"], batch_rows=10_000))
        copies = list(partition.scan(["offset", "key", "value"], batch_rows=10_000, layout="binary"))
    assert [batch.num_rows for batch in copies] == [batch.num_rows for batch in views]
    assert pa.Table.from_batches(copies).to_pylist() == pa.Table.from_batches(views).to_pylist()


def test_a_batch_carries_no_more_than_its_rows(tmp_path: Path) -> None:
    records = [new_record(value=b"v" * 100, timestamp_ms=1) for _ in range(300)]
    data = encode_batch(build_batch(records, base_offset=0))
    with open_partition(segment_directory(tmp_path / "narrow-0", data)) as partition:
        (batch,) = partition.scan(["value"], layout="binary")
    assert len(pickle.dumps(batch)) < 2 * 300 * 104


@pytest.mark.parametrize("column", ["key", "value", "headers"])
def test_more_bytes_than_a_layout_can_hold(column: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(block.LARGEST, "binary", 1000)
    records = [
        new_record(key=b"k" * 30 * (column == "key"), value=b"v" * 30 * (column == "value"), headers=[(b"", b"h" * 30)])
        for _ in range(33)
    ]
    for count, is_small in ((33, True), (34, False)):
        data = encode_batch(build_batch([*records, records[0]][:count], base_offset=0))
        with open_partition(segment_directory(tmp_path / f"full-{count}", data)) as partition:
            if is_small:
                assert sum(batch.num_rows for batch in partition.scan([column], layout="binary")) == count
                continue
            with pytest.raises(UsageError, match="too large for layout 'binary': ask for 'large_binary'"):
                list(partition.scan([column], layout="binary"))
            assert sum(batch.num_rows for batch in partition.scan([column], layout="large_binary")) == count

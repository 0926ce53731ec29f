"""Scans of several log directories taken together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyarrow")

from helpers.scans import segment_directory

from seglog_format import open_log_directory
from seglog_format.codec.build import build_batch, new_record
from seglog_format.codec.encode import encode_batch

if TYPE_CHECKING:
    from pathlib import Path

COUNT = 7
BATCH = encode_batch(
    build_batch([new_record(value=b"value", timestamp_ms=number) for number in range(COUNT)], base_offset=0)
)


def test_partitions_of_several_directories_come_in_the_order_of_their_names(tmp_path: Path) -> None:
    for name in ("one/orders-1", "two/orders-0", "one/users-0"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        segment_directory(tmp_path / name, BATCH)
    directories = open_log_directory([tmp_path / "one", tmp_path / "two"])
    table = directories.scan(["topic", "partition", "offset"]).read_all()
    partitions = [("orders", 0), ("orders", 1), ("users", 0)]
    wanted = [(topic, partition, offset) for topic, partition in partitions for offset in range(COUNT)]
    assert list(zip(*(column.to_pylist() for column in table.columns), strict=True)) == wanted


@pytest.mark.parametrize("topics", [{"nobody"}, set()])
def test_a_scan_of_no_partition_has_columns_and_no_rows(tmp_path: Path, topics: set[str]) -> None:
    segment_directory(tmp_path / "orders-0", BATCH)
    table = open_log_directory(tmp_path).scan(["topic", "value"], topics=topics).read_all()
    assert (table.num_rows, table.column_names) == (0, ["topic", "value"])

"""Rows without a partition: refused, or spread as Kafka's producer spreads them.

The partitions of keys are the answers of Kafka's own class (`fixtures/make/partition_for_key.py`).
"""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa
from helpers.support import FIXTURES

from proofs.spark.readers import read, rows, struct_type
from seglog_format.errors import UsageError
from seglog_format.spark.source_parts import check_written_schema, parse_write_options
from seglog_format.spark.staging import STAGING, Stager, commit, partition_for_key

if TYPE_CHECKING:
    from pathlib import Path

WITNESS = json.loads((FIXTURES / "witnesses" / "partition_for_key.json").read_text(encoding="utf-8"))


def write(root: Path, columns: dict[str, Any], *, task: int = 0, **options: str) -> list[dict[str, Any]]:
    """Write rows by one task; return what is stored."""
    given = parse_write_options({"path": str(root), "topic": "orders", **options})
    stager = Stager(root / STAGING / "j" / f"task_{task}", given, task)
    stager.add(pa.RecordBatch.from_pydict(columns))
    commit(root, "j", stager.finish(), keeps_offsets="offset" in columns, interval_bytes=4096)
    return rows(read(root))


def test_a_key_has_the_partition_that_kafka_gives_it() -> None:
    assert WITNESS["releases"] == ["3.9.1", "4.4.0"]
    assert len(WITNESS["partitions_by_key"]) > 700
    for key, partitions in WITNESS["partitions_by_key"].items():
        found = [partition_for_key(bytes.fromhex(key), count) for count in WITNESS["counts"]]
        assert found == partitions, key


@pytest.mark.parametrize("names_some", [True, False])
def test_rows_with_keys_are_written_where_kafka_writes_them(names_some: bool, tmp_path: Path) -> None:  # noqa: FBT001
    count = WITNESS["counts"].index(16)
    keys = {bytes.fromhex(key): partitions[count] for key, partitions in WITNESS["partitions_by_key"].items()}
    columns = {"key": list(keys), "value": list(keys)}
    if names_some:  # the column is there: a named partition stays, null does not
        columns["partition"] = pa.array([7 if n % 10 == 0 else None for n in range(len(keys))], pa.int32())
    found = {row["value"]: row["partition"] for row in write(tmp_path, columns, partitions="16")}
    named = list(keys)[::10] if names_some else []
    assert found == {**keys, **dict.fromkeys(named, 7)}


@pytest.mark.parametrize("columns", [{}, {"partition": pa.array([None] * 1000, pa.int32())}])
def test_rows_without_key_are_spread_evenly_a_batch_at_a_time(columns: dict[str, Any], tmp_path: Path) -> None:
    values = [b"%d" % number + bytes(86) for number in range(1000)]
    found = write(tmp_path, {"value": values, **columns}, task=6, partitions="4", batchBytes="1000")
    counts = Counter(row["partition"] for row in found)
    assert sorted(counts) == [0, 1, 2, 3]
    assert max(counts.values()) - min(counts.values()) <= 10
    assert next(row["partition"] for row in found if row["value"] == values[0]) == 2, "task 6 of 4 partitions"
    assert sorted(row["value"] for row in found) == sorted(values)


@pytest.mark.parametrize(
    ("columns", "options", "message"),
    [
        ({"partition": pa.array([0, None], pa.int32())}, {}, "a row of orders has no partition: fill the column"),
        ({}, {}, "a row of orders has no partition: fill the column"),
        ({"partition": pa.array([1, 4], pa.int32())}, {"partitions": "4"}, "names partition 4, but the option"),
        ({"partition": pa.array([0, None], pa.int32()), "offset": [1, 2]}, {"partitions": "4"}, "no partition, though"),
        ({"partition": pa.array([0, 0], pa.int32()), "offset": [1, None]}, {}, "has no offset, though rows have"),
    ],
)  # fmt: skip
def test_rows_whose_partition_nobody_knows_are_refused(
    columns: dict[str, Any], options: dict[str, str], message: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=message):
        write(tmp_path, {"value": [b"a", b"b"], **columns}, **options)
    assert not list(tmp_path.glob("orders-*"))


def test_a_frame_without_partitions_is_refused_before_a_task_starts(tmp_path: Path) -> None:
    raw = {"path": str(tmp_path), "topic": "orders"}
    with pytest.raises(UsageError, match="rows have no partition: fill the column partition, or give the option"):
        check_written_schema(struct_type("`value` binary"), parse_write_options(raw))
    check_written_schema(struct_type("`value` binary"), parse_write_options({**raw, "partitions": "3"}))
    with pytest.raises(UsageError, match="column offset need a column partition"):
        check_written_schema(
            struct_type("`value` binary, `offset` bigint"), parse_write_options({**raw, "partitions": "3"})
        )
    with pytest.raises(UsageError, match="partitions"):
        parse_write_options({**raw, "partitions": "0"})

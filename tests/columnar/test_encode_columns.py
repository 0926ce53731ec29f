"""Batches from columns: the bytes that the reference writes for the same records."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyarrow")

import numpy as np
import pyarrow as pa
from helpers.scans import segment_directory
from hypothesis import given, settings
from hypothesis import strategies as st

from seglog_format.codec.build import build_batch, new_record
from seglog_format.codec.encode import encode_batch, encode_columns
from seglog_format.columnar.encode import BatchFields, encode
from seglog_format.errors import UsageError
from seglog_format.log.partition import open_partition
from seglog_format.model import INT64_MAX, CompressionCodec, Record

if TYPE_CHECKING:
    from pathlib import Path

CODECS = tuple(CompressionCodec)
SCHEMA = pa.schema(
    {
        "offset": pa.int64(),
        "timestamp": pa.int64(),
        "key": pa.binary(),
        "value": pa.binary(),
        "headers": pa.list_(pa.struct([("key", pa.binary()), ("value", pa.binary())])),
    }
)


def table_of(records: list[Record]) -> pa.Table:
    rows = [
        {
            "offset": record.offset,
            "timestamp": None if record.timestamp_ms == -1 else record.timestamp_ms,
            "key": record.key,
            "value": record.value,
            "headers": [{"key": header.key, "value": header.value} for header in record.headers],
        }
        for record in records
    ]
    return pa.Table.from_pylist(rows, SCHEMA)


def by_engine(records: list[Record], counts: list[int], codec: CompressionCodec, fields: dict[str, Any]) -> bytes:
    return b"".join(encode_columns(table_of(records), counts=counts, codec=codec, **fields))


def by_reference(records: list[Record], counts: list[int], codec: CompressionCodec, fields: dict[str, Any]) -> bytes:
    made, start = b"", 0
    sequence = fields.get("base_sequence", -1)
    named = dict(fields)
    for count in counts:
        part = records[start : start + count]
        named["base_sequence"] = sequence
        batch = build_batch(part, base_offset=part[0].offset, codec=codec, keeps_offsets=True, **named)
        made, start = made + encode_batch(batch), start + count
        sequence = sequence if sequence < 0 else (sequence + count) % 2**31
    return made


small = st.one_of(st.none(), st.binary(max_size=20), st.binary(min_size=60, max_size=140))
headers = st.lists(st.tuples(st.binary(max_size=70), small), max_size=3)
times = st.one_of(st.integers(-1, 2**40), st.just(-1), st.integers(2**62 - 5, 2**62))
fields = st.fixed_dictionaries(
    {
        "partition_leader_epoch": st.integers(-1, 2**31 - 1),
        "producer_id": st.integers(-1, INT64_MAX),
        "producer_epoch": st.integers(-1, 2**15 - 1),
        "base_sequence": st.one_of(st.integers(-1, 50), st.integers(2**31 - 9, 2**31 - 1)),
        "is_transactional": st.booleans(),
    }
)


@st.composite
def batches(draw: st.DrawFn) -> tuple[list[Record], list[int]]:
    counts = draw(st.lists(st.integers(1, 6), min_size=1, max_size=4))
    offset, records = draw(st.integers(0, 2**50)), []
    for _ in range(sum(counts)):
        made = new_record(key=draw(small), value=draw(small), timestamp_ms=draw(times), headers=draw(headers))
        records.append(Record(offset, made.timestamp_ms, made.key, made.value, made.headers))
        offset += draw(st.one_of(st.just(1), st.integers(1, 100_000)))
    return records, counts


@settings(max_examples=100)
@given(batches(), st.sampled_from(CODECS), fields)
def test_the_bytes_are_those_of_the_reference(
    made: tuple[list[Record], list[int]], codec: CompressionCodec, given_fields: dict[str, Any]
) -> None:
    assert by_engine(*made, codec, given_fields) == by_reference(*made, codec, given_fields)


def many(count: int) -> list[Record]:
    dice = random.Random(count)  # noqa: S311
    return [
        Record(number, 5 + number, dice.randbytes(9), dice.randbytes(dice.randrange(900))) for number in range(count)
    ]


@pytest.mark.parametrize("size", [1, 500, 16_384])
def test_batches_are_cut_by_size(size: int) -> None:
    records = many(400)
    made = b"".join(bytes(each) for each in encode(table_of(records), BatchFields(), batch_size=size))
    counts, position, start = [], 0, 0
    while position < len(made):
        counts.append(int.from_bytes(made[position + 57 : position + 61]))
        length = 12 + int.from_bytes(made[position + 8 : position + 12])
        assert length <= size or counts[-1] == 1
        position, start = position + length, start + counts[-1]
        if start < len(records):
            following = by_reference(records[start - counts[-1] : start + 1], [counts[-1] + 1], CODECS[0], {})
            assert len(following) > size, "one more would have fitted"
    assert made == by_reference(records, counts, CODECS[0], {})


def test_what_was_scanned_is_written_again(tmp_path: Path) -> None:
    records = many(3000)
    data = by_reference(records, [30] * 100, CODECS[0], {})
    with open_partition(segment_directory(tmp_path / "again-0", data)) as partition:
        for layout in ("view", "binary"):
            table = partition.scan(("offset", "timestamp", "key", "value", "headers"), layout=layout).read_all()
            again = b"".join(bytes(each) for each in encode(table, BatchFields(), counts=np.full(100, 30)))
            assert again == data


def test_columns_may_be_missing_and_a_record_larger_than_the_room() -> None:
    value = b"x" * 3_000_000
    made = b"".join(bytes(each) for each in encode(pa.table({"value": [value, b""]}), BatchFields(), base_offset=7))
    records = [Record(7, -1, None, value), Record(8, -1, None, b"")]
    assert made == by_reference(records, [1, 1], CODECS[0], {})
    assert not list(encode(pa.table({"value": pa.array([], pa.binary())}), BatchFields()))


@pytest.mark.parametrize(
    ("columns", "options"),
    [
        ({"what": [1]}, {}),
        ({"offset": [5, 5]}, {}),
        ({"offset": [-1]}, {}),
        ({"offset": [None]}, {"schema": pa.schema({"offset": pa.int64()})}),
        ({"timestamp": [-2]}, {}),
        ({"timestamp": [INT64_MAX]}, {}),
        ({"value": [b""]}, {"counts": [2]}),
        ({"value": [b""]}, {"counts": [1, 0]}),
        ({"value": [b""]}, {"batch_size": 0}),
        ({"value": [b""]}, {"codec": 1}),
        ({"offset": [0, 2**31]}, {"counts": [2]}),
    ],
)
def test_what_makes_no_batch_is_refused(columns: dict[str, Any], options: dict[str, Any]) -> None:
    table = pa.table(columns, schema=options.pop("schema", None))
    fields_given = BatchFields(codec=options.pop("codec", 0))
    if "counts" in options:
        options["counts"] = np.array(options["counts"])
    with pytest.raises(UsageError):
        list(encode(table, fields_given, **options))

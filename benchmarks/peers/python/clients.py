"""aiokafka and kafka-python as benchmark peers: their record classes, used as their fetchers do."""

from __future__ import annotations

import struct
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from aiokafka.record.default_records import DefaultRecordBatchBuilder
from aiokafka.record.memory_records import MemoryRecords
from answering import Request, Work, serve
from contents import Columns, Part, edges_of
from kafka.record.default_records import DefaultRecordBatchBuilder as PurePythonBuilder
from kafka.record.memory_records import MemoryRecords as PurePythonRecords

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

ROWS = 1 << 16
CRC_AT = 17


@cache
def data_of(path: str) -> bytes:
    """Return the bytes of a log; the last one is cached."""
    data_of.cache_clear()
    return Path(path).read_bytes()


def batches(request: Request) -> Iterator[Any]:
    """Yield every batch after a check of its CRC."""
    if request["how"] == "aiokafka":
        found = MemoryRecords(data_of(request["path"]))
        while found.has_next():
            yield checked(found.next_batch())
    else:
        pure = PurePythonRecords(data_of(request["path"]))
        while (batch := pure.next_batch()) is not None:
            yield checked(batch)


def checked(batch: Any) -> Any:  # noqa: ANN401 - two libraries
    """Return a batch if its CRC is right."""
    if not batch.validate_crc():
        msg = "a CRC is wrong"
        raise ValueError(msg)
    return batch


def records(request: Request) -> Iterator[Any]:
    """Yield every record."""
    for batch in batches(request):
        yield from batch


def prepared(request: Request) -> None:
    """Load the log into memory."""
    data_of(request["path"])


def crc(request: Request) -> Callable[[], None]:
    """Check every batch."""
    prepared(request)

    def run() -> None:
        for _ in batches(request):
            pass

    return run


def crc_parts(request: Request, _: object) -> Iterable[Part]:
    """Yield the stored CRCs; a wrong CRC has raised an error before."""
    at, found, data = 0, [], data_of(request["path"])
    while at < len(data):
        found.append(struct.unpack_from(">I", data, at + (CRC_AT if data[at + 16] > 1 else 12))[0])
        at += 12 + struct.unpack_from(">i", data, at + 8)[0]
    return [Part().then(np.array(found, np.uint64))]


def objects(request: Request) -> Callable[[], None]:
    """Read every field of every record."""
    prepared(request)

    def run() -> None:
        for batch in batches(request):
            for record in batch:
                record.offset, record.timestamp, record.key, record.value, record.headers  # noqa: B018 - looked at

    return run


def object_parts(request: Request, _: object) -> Iterable[Part]:
    """Yield the checksum of the records."""
    total, rows = Part(), []
    for record in records(request):
        rows.append(row_of(record))
        if len(rows) == ROWS:
            total, rows = total.then(words_of(rows)), []
    return [total.then(words_of(rows)) if rows else total]


def row_of(record: Any) -> tuple[int, ...]:  # noqa: ANN401 - two libraries
    """Return the values of a record that enter the checksum."""
    key, value = record.key, record.value
    sizes = [-1 if data is None else len(data) for data in (key, value)]
    return (record.offset, record.timestamp, *sizes, edges_of(key, value), len(record.headers))


def words_of(rows: list[tuple[int, ...]]) -> Any:  # noqa: ANN401 - an array
    """Return one word per row."""
    return Columns(*(np.array(column, np.int64) for column in zip(*rows, strict=True))).words()


def columns(request: Request) -> Callable[[], list[pa.RecordBatch]]:
    """Convert every record into Arrow columns; only the last batches are kept."""
    prepared(request)

    def run() -> list[pa.RecordBatch]:
        rows, made = [], []
        for batch in batches(request):
            rows += [(each.offset, each.timestamp, each.key, each.value, each.headers) for each in batch]
            if len(rows) >= ROWS:
                made, rows = [table_of(rows)], []
        return [*made, table_of(rows)] if rows else made

    return run


HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))
NUMBERS = [("offset", pa.int64()), ("timestamp", pa.int64())]
SCHEMA = pa.schema([*NUMBERS, ("key", pa.binary()), ("value", pa.binary()), ("headers", HEADERS)])


def table_of(rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    """Convert rows to columns."""
    turned = zip(*rows, strict=True)
    return pa.record_batch([pa.array(column, field.type) for column, field in zip(turned, SCHEMA, strict=True)], SCHEMA)


def encode(request: Request) -> Callable[[], list[bytes]]:
    """Encode the batches of a log again, from tuples."""
    given = encoder_input(request["path"])
    build = DefaultRecordBatchBuilder if request["how"] == "aiokafka" else PurePythonBuilder

    def run() -> list[bytes]:
        made = []
        for rows in given:
            builder = build(
                magic=2,
                compression_type=0,
                is_transactional=False,
                producer_id=-1,
                producer_epoch=-1,
                base_sequence=-1,
                batch_size=1 << 20,
            )
            for number, (timestamp, key, value) in enumerate(rows):
                builder.append(number, timestamp, key, value, [])
            made.append(builder.build())
        return made

    return run


@cache
def encoder_input(path: str) -> list[list[tuple[int, bytes, bytes]]]:
    """Return the records of every batch."""
    request = {"path": path, "how": "aiokafka"}
    return [[(each.timestamp, each.key, each.value) for each in batch] for batch in batches(request)]


def encoded_parts(_: Request, made: list[bytes]) -> Iterable[Part]:
    """Yield the CRCs of the encoded batches."""
    return [Part().then(np.array([struct.unpack_from(">I", each, CRC_AT)[0] for each in made], np.uint64))]


serve(
    f"aiokafka {version('aiokafka')}, kafka-python {version('kafka-python')}",
    {
        "crc": Work(crc, crc_parts),
        "objects": Work(objects, object_parts),
        "columns": Work(columns, object_parts),
        "encode": Work(encode, encoded_parts),
    },
    {},
)

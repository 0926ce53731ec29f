"""This package as a peer of the benchmarks: each work is one call of the public interface, named in `works`."""

from __future__ import annotations

import mmap
from collections import deque
from functools import partial
from importlib import metadata
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from answering import Request, Work, serve
from contents import Columns, Part, batch_words, edges_of
from crashed import Crashed
from datasets import INDEX_INTERVAL_BYTES, index_digest
from resident import peak_while

from seglog_format import Engine, RecoveryOptions, encode_columns, open_partition, recover, walk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import TypeVar

    from numpy.typing import NDArray

    from seglog_format.types import Message, Partition, Record

    Found = TypeVar("Found")

COLUMNS: Final = ("offset", "timestamp", "key", "value", "headers")
ENCODED: Final = ("offset", "timestamp", "key", "value")
BATCH_ROWS: Final = 1 << 16
OPENED: Final = "open"
TRUSTING: Final = "trusted"
BINARY: Final = "binary"
REFERENCE: Final = "reference"
KEPT: Final[dict[str, Any]] = {}
"""Objects that stay open for the next pass, by path."""


def kept(request: Request, name: str, make: Callable[[], Any]) -> Any:  # noqa: ANN401 - files and partitions
    """Return an object that stays open as long as requests are about the same log."""
    if KEPT.get("path") != request["path"]:
        KEPT.clear()
        KEPT["path"] = request["path"]
    if name not in KEPT:
        KEPT[name] = make()
    return KEPT[name]


def bytes_of(request: Request) -> memoryview:
    """Return the log, mapped."""
    data: memoryview = kept(request, "bytes", lambda: mapped(Path(request["path"])))
    return data


def mapped(path: Path) -> memoryview:
    """Return the bytes of a file, mapped."""
    with path.open("rb") as file:
        return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def opened(request: Request, *, mapped: bool = True) -> Partition:
    """Open the partition of the log, mapped as the logs of the other contenders are."""
    return open_partition(Path(request["path"]).parent, trust_indexes=TRUSTING in request["how"], mapped=mapped)


def partition_of(request: Request) -> Partition:
    """Return the partition of the log, which stays open."""
    partition: Partition = kept(request, f"partition {TRUSTING in request['how']}", lambda: opened(request))
    return partition


def reading(request: Request, read: Callable[[Partition], Found]) -> Callable[[], Found]:
    """Return a pass over the log: in a partition that stays open, or from opening it to closing it, as by default."""
    if request["how"] == OPENED:
        return lambda: read_once(request, read, mapped=False)
    partition = partition_of(request)
    return lambda: read(partition)


def read_once(request: Request, read: Callable[[Partition], Found], *, mapped: bool = True) -> Found:
    """Open the partition, read, and close it."""
    with opened(request, mapped=mapped) as partition:
        return read(partition)


# -- batches ---------------------------------------------------------------------------------------------------------


def scan(request: Request) -> Callable[[], None]:
    """Walk over the batches."""
    data = bytes_of(request)
    return lambda: deque(walk(data), 0) and None


def scan_parts(request: Request, _: object) -> Iterable[Part]:
    """Return the checksum of last offsets and sizes."""
    pairs = [(frame.header.last_offset, frame.header.size_in_bytes) for frame in walk(bytes_of(request))]
    offsets, sizes = np.array(pairs, np.int64).T
    return [Part().then(batch_words(offsets, sizes))]


def crc(request: Request) -> Callable[[], int]:
    """Verify every checksum by a scan of the offsets alone."""
    return reading(request, lambda partition: row_count(partition.scan(("offset",), batch_rows=BATCH_ROWS)))


def crc_parts(request: Request, rows: int) -> Iterable[Part]:
    """Return the checksum of the stored CRCs."""
    headers = [frame.header for frame in walk(bytes_of(request))]
    if rows != partition_of(request).log_end_offset:
        msg = f"a scan gave {rows} rows"
        raise ValueError(msg)
    return [Part().then(np.array([header.crc for header in headers], np.uint64))]


def row_count(reader: pa.RecordBatchReader) -> int:
    """Read to the end; no batch is kept."""
    return sum(batch.num_rows for batch in reader)


# -- records ---------------------------------------------------------------------------------------------------------


def rows_of(records: Iterable[Record | Message]) -> Part:
    """Return the checksum of records."""
    total, given = Part(), iter(records)
    while rows := [row_of(record) for record in islice(given, BATCH_ROWS)]:
        total = total.then(Columns(*(np.array(column, np.int64) for column in zip(*rows, strict=True))).words())
    return total


def row_of(record: Record | Message) -> tuple[int, ...]:
    """Return the values of a record that enter the checksum."""
    key, value = record.key, record.value
    sizes = [-1 if data is None else len(data) for data in (key, value)]
    return (record.offset, record.timestamp_ms, *sizes, edges_of(key, value), len(getattr(record, "headers", ())))


def visit(request: Request) -> Callable[[], None]:
    """Look at every field of every record."""
    engine = Engine.REFERENCE if request["how"] == REFERENCE else Engine.AUTO
    return reading(request, lambda partition: look_at_all(partition.records(engine=engine)))


def look_at_all(records: Iterable[Record | Message]) -> None:
    """Look at every field of every record."""
    for record in records:
        record.offset, record.timestamp_ms, record.key, record.value, record.headers  # noqa: B018 - looked at


def visit_parts(request: Request, _: object) -> Iterable[Part]:
    """Return the checksum of the records."""
    return [rows_of(partition_of(request).records())]


# -- columns ---------------------------------------------------------------------------------------------------------


def columns_of(partition: Partition, request: Request) -> pa.RecordBatchReader:
    """Start a scan of all columns."""
    layout = "binary" if request["how"] == BINARY else "view"
    return partition.scan(COLUMNS, batch_rows=BATCH_ROWS, layout=layout, threads=request.get("threads", 1))


def columns(request: Request) -> Callable[[], int]:
    """Read all columns, batch by batch; none is kept."""
    return reading(request, lambda partition: row_count(columns_of(partition, request)))


def columns_parts(request: Request, _: object) -> Iterable[Part]:
    """Return the checksum of the columns."""
    total = Part()
    for batch in columns_of(partition_of(request), request):
        total = total.then(words_of(batch))
    return [total]


def words_of(batch: pa.RecordBatch) -> NDArray[np.uint64]:
    """Return a word for each row."""
    key_sizes, key_ends = ends_of(batch.column("key"))
    value_sizes, value_ends = ends_of(batch.column("value"))
    headers = batch.column("headers")
    return Columns(
        batch.column("offset").to_numpy(),
        batch.column("timestamp").cast(pa.int64()).fill_null(-1).to_numpy(),
        key_sizes,
        value_sizes,
        key_ends | value_ends << 16,
        np.diff(headers.offsets.to_numpy()).astype(np.int64),
    ).words()


def ends_of(column: pa.Array) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return sizes, and first and last bytes."""
    whole = column.cast(pa.large_binary())
    bounds = np.frombuffer(whole.buffers()[1], np.int64, len(whole) + 1, whole.offset * 8)
    data = np.frombuffer(whole.buffers()[2] or b"\0", np.uint8).astype(np.int64)
    sizes, has_bytes = np.diff(bounds), np.diff(bounds) > 0
    first = np.where(has_bytes, data[np.minimum(bounds[:-1], len(data) - 1)], 0)
    last = np.where(has_bytes, data[np.maximum(bounds[1:], 1) - 1], 0)
    return np.where(whole.is_null().to_numpy(zero_copy_only=False), -1, sizes), first | last << 8


# -- batches, written ------------------------------------------------------------------------------------------------


def encoding(request: Request) -> Callable[[], Iterator[bytes]]:
    """Return a function that encodes a log from its columns, with the same number of records in each batch."""
    rows = partition_of(request).scan(ENCODED, layout="large_binary").read_all().combine_chunks()
    counts = [frame.header.records_count or 1 for frame in walk(bytes_of(request))]
    return lambda: encode_columns(rows, counts=counts)


def encode_all(request: Request) -> Callable[[], int]:
    """Encode the batches again; none is kept."""
    batches = kept(request, "encoding", lambda: encoding(request))
    return lambda: sum(len(some) for some in batches())


def encoded_parts(request: Request, _: object) -> Iterable[Part]:
    """Return the checksum of the CRCs of the new batches."""
    total = Part()
    for some in encoding(request)():
        total = total.then(np.array([frame.header.crc for frame in walk(some)], np.uint64))
    return [total]


# -- lookups ---------------------------------------------------------------------------------------------------------


def lookup_warm(request: Request) -> Callable[[], list[Any]]:
    """Find each of the offsets in an open partition."""
    partition = partition_of(request)
    return lambda: [first_from(partition, offset) for offset in request["offsets"]]


def lookup_cold(request: Request) -> Callable[[], list[Any]]:
    """Open the partition for each of the offsets."""
    return lambda: [read_once(request, partial(first_from, offset=offset)) for offset in request["offsets"]]


def first_from(partition: Partition, offset: int) -> Record | Message:
    """Return the first record at an offset or above."""
    return next(partition.records(offset))


def lookup_parts(_: Request, found: list[Any]) -> Iterable[Part]:
    """Return the checksum of the found records."""
    return [rows_of(found)]


def log_end(request: Request) -> Callable[[], int]:
    """Open the partition and return its log end offset."""
    return lambda: read_once(request, lambda partition: partition.log_end_offset)


def log_end_parts(_: Request, end: int) -> Iterable[Part]:
    """Return the log end offset."""
    return [Part(end, 1)]


def time_warm(request: Request) -> Callable[[], list[int]]:
    """Find each of the times in an open partition."""
    partition = partition_of(request)
    return lambda: [first_since(partition, time) for time in request["offsets"]]


def time_cold(request: Request) -> Callable[[], list[int]]:
    """Open the partition for each of the times."""
    return lambda: [read_once(request, partial(first_since, timestamp_ms=time)) for time in request["offsets"]]


def first_since(partition: Partition, timestamp_ms: int) -> int:
    """Return the offset of the first record that is not older."""
    found = partition.offset_for_timestamp(timestamp_ms)
    return -1 if found is None else found.offset


def times_parts(_: Request, found: list[int]) -> Iterable[Part]:
    """Return the sum of the found offsets."""
    return [Part(sum(found), len(found))]


# -- recovery --------------------------------------------------------------------------------------------------------


def crashed(request: Request) -> Crashed:
    """Return the partition that is recovered."""
    found: Crashed = kept(request, "crashed", lambda: Crashed(Path(request["path"])))
    return found


def recovery(request: Request) -> Callable[[], None]:
    """Recover a log as after a crash: verify it, and write its indexes and its producer snapshot."""
    log, options = crashed(request), RecoveryOptions(is_full_scan=True, interval_bytes=INDEX_INTERVAL_BYTES)

    def run() -> None:
        log.forget()
        if recover(log.directory, options=options).apply().plan.cut is not None:
            msg = "recovery has truncated the log"
            raise ValueError(msg)

    return run


def recovery_parts(request: Request, _: object) -> Iterable[Part]:
    """Return the digest of the written indexes, as `datasets.index_digest`."""
    return [Part(index_digest(crashed(request).directory), 1)]


# -- memory ----------------------------------------------------------------------------------------------------------


def memory(request: Request) -> dict[str, Any]:
    """Measure the bytes of anonymous memory before a scan, and their peak while it runs."""
    columns({**request, "path": request["warm_up"]})()
    return peak_while(columns(request))


serve(
    f"seglog-format {metadata.version('seglog-format')}",
    {
        "scan": Work(scan, scan_parts),
        "crc": Work(crc, crc_parts),
        "visit": Work(visit, visit_parts),
        "objects": Work(visit, visit_parts),
        "columns": Work(columns, columns_parts),
        "encode": Work(encode_all, encoded_parts),
        "lookup-warm": Work(lookup_warm, lookup_parts),
        "lookup-cold": Work(lookup_cold, lookup_parts),
        "log-end": Work(log_end, log_end_parts),
        "time-warm": Work(time_warm, times_parts),
        "time-cold": Work(time_cold, times_parts),
        "recover": Work(recovery, recovery_parts),
    },
    {"memory": memory},
)

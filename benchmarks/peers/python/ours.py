"""This package as a peer of the benchmarks: the columnar engine, and the reference for small data.

Works that the engine does not have yet are answered with "not built".
"""

from __future__ import annotations

import importlib
import threading
from collections import deque
from contextlib import suppress
from inspect import signature
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

import google_crc32c
import numpy as np
import pyarrow as pa
from answering import NotBuiltError, Request, Work, serve
from contents import Columns, Part, batch_words, edges_of
from datasets import INDEX_INTERVAL_BYTES
from peers import MEMORY

from seglog_format import open_partition, walk
from seglog_format.cli.version import VERSION
from seglog_format.codec.producer_snapshot import encode_producer_snapshot
from seglog_format.log.listing import SegmentFiles
from seglog_format.log.quick_lookup import record_at
from seglog_format.log.segment import LogSegment
from seglog_format.log.transactions import Transactions
from seglog_format.recovery.producers_at_volume import producers_of
from seglog_format.recovery.segment_files import encode_transaction_index
from seglog_format.recovery.segment_scan import scan_segment
from seglog_format.storage.file_bytes import open_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from numpy.typing import NDArray

    from seglog_format.types import Message, Partition, Record

COLUMNS: Final = ("offset", "timestamp", "key", "value", "headers")
BATCH_ROWS: Final = 1 << 16
NOT_BUILT: Final = "not built"
KEPT: Final[dict[str, Any]] = {}
"""What stays open for the next pass, by path."""


def kept(path: str, make: Callable[[Path], Any], name: str) -> Any:  # noqa: ANN401 - files and partitions
    """Something that stays open as long as the same log is asked for."""
    if KEPT.get("path") != path:
        KEPT.clear()
        KEPT["path"] = path
    if name not in KEPT:
        KEPT[name] = make(Path(path))
    return KEPT[name]


def bytes_of(request: Request) -> memoryview:
    """The log, mapped."""
    data: memoryview = kept(request["path"], open_bytes, "bytes").data
    return data


def partition_of(request: Request) -> Partition:
    """The partition of the log."""
    partition: Partition = kept(request["path"], lambda path: open_partition(path.parent), "partition")
    return partition


def engine(module: str, name: str) -> Any:  # noqa: ANN401 - whatever there is
    """Something of the columnar engine that may not be there yet, or not be installed."""
    try:
        return getattr(importlib.import_module(f"seglog_format.columnar.{module}"), name)
    except (ImportError, AttributeError) as error:
        raise NotBuiltError(NOT_BUILT) from error


def method_of(partition: Partition, name: str) -> Callable[..., Any]:
    """A method that may not be there yet."""
    found = getattr(partition, name, None)
    if found is None:
        raise NotBuiltError(NOT_BUILT)
    method: Callable[..., Any] = found
    return method


# -- batches ---------------------------------------------------------------------------------------------------------


def table(request: Request) -> Iterator[Any]:
    """Rows of the batch table, some thousands at a time."""
    end, data = 0, bytes_of(request)
    for part in engine("batch_table", "table_parts")(data, checksums=False):
        yield part
        end = part.end
    expect_end(end, data)


def expect_end(end: int, data: Any) -> None:  # noqa: ANN401 - whatever holds bytes
    """Refuse a pass that did not come to the end of the log."""
    if end != len(data):
        msg = f"what is regular ends at {end:,} of {len(data):,}"
        raise ValueError(msg)


def scan(request: Request) -> Callable[[], None]:
    """Walk over the batches."""
    if request["how"] == "reference":
        return lambda: deque(walk(bytes_of(request)), 0) and None
    bytes_of(request)
    engine("batch_table", "table_parts")
    return lambda: deque(table(request), 0) and None


def scan_parts(request: Request, _: object) -> Iterable[Part]:
    """Last offsets and sizes."""
    if request["how"] == "reference":
        pairs = [(frame.header.last_offset, frame.header.size_in_bytes) for frame in walk(bytes_of(request))]
        offsets, sizes = np.array(pairs, np.int64).T
        return [Part().then(batch_words(offsets, sizes))]
    total = Part()
    for part in table(request):
        total = total.then(batch_words(part.column("last_offset"), part.column("size")))
    return [total]


def crc(request: Request) -> Callable[[], None]:
    """Check every batch."""
    data, sound_size = bytes_of(request), engine("batch_table", "sound_size")
    return lambda: expect_end(sound_size(data), data)


def crc_parts(request: Request, _: object) -> Iterable[Part]:
    """The CRCs, checked."""
    crc(request)()
    total = Part()
    for part in table(request):
        total = total.then(part.column("crc").astype(np.uint64))
    return [total]


# -- records ---------------------------------------------------------------------------------------------------------


def rows_of(records: Iterable[Record | Message]) -> Part:
    """What records come to."""
    total, given = Part(), iter(records)
    while rows := [row_of(record) for record in islice(given, BATCH_ROWS)]:
        total = total.then(Columns(*(np.array(column, np.int64) for column in zip(*rows, strict=True))).words())
    return total


def row_of(record: Record | Message) -> tuple[int, ...]:
    """What the number of the contents is made of."""
    key, value = record.key, record.value
    sizes = [-1 if data is None else len(data) for data in (key, value)]
    return (record.offset, record.timestamp_ms, *sizes, edges_of(key, value), len(getattr(record, "headers", ())))


def visit(request: Request) -> Callable[[], None]:
    """Look at every field of every record, as the reference gives it."""
    partition = partition_of(request)

    def run() -> None:
        for record in partition.records():
            record.offset, record.timestamp_ms, record.key, record.value, record.headers  # noqa: B018 - looked at

    return run


def visit_parts(request: Request, _: object) -> Iterable[Part]:
    """What the records come to."""
    return [rows_of(partition_of(request).records())]


def objects(request: Request) -> Callable[[], None]:
    """As `visit`, with the engine at hand, so that records come from it however small the log is."""
    engine("objects", "make_objects")
    return visit(request)


# -- columns ---------------------------------------------------------------------------------------------------------


def reader_of(partition: Partition, request: Request) -> pa.RecordBatchReader:
    """A scan of all columns."""
    scan_method, threads = method_of(partition, "scan"), request.get("threads", 1)
    options = {"batch_rows": BATCH_ROWS, "layout": "binary" if request["how"] == "binary" else "view"}
    if threads > 1:
        options["threads"] = threads
    if not options.keys() <= signature(scan_method).parameters.keys():
        raise NotBuiltError(NOT_BUILT)
    found: pa.RecordBatchReader = scan_method(COLUMNS, **options)
    return found


def columns(request: Request) -> Callable[[], int]:
    """All columns, batch by batch; none is kept."""
    path = Path(request["path"]).parent
    if request["how"] == "open":

        def opened() -> int:
            with open_partition(path) as partition:
                return sum(batch.num_rows for batch in reader_of(partition, request))

        return opened
    partition = partition_of(request)
    reader_of(partition, request).close()
    return lambda: sum(batch.num_rows for batch in reader_of(partition, request))


def columns_parts(request: Request, _: object) -> Iterable[Part]:
    """What the columns hold."""
    total = Part()
    for batch in reader_of(partition_of(request), request):
        total = total.then(words_of(batch))
    return [total]


def words_of(batch: pa.RecordBatch) -> NDArray[np.uint64]:
    """One for each row."""
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
    """Sizes, and first and last bytes."""
    whole = column.cast(pa.large_binary())
    bounds = np.frombuffer(whole.buffers()[1], np.int64, len(whole) + 1, whole.offset * 8)
    data = np.frombuffer(whole.buffers()[2] or b"\0", np.uint8).astype(np.int64)
    sizes, has_bytes = np.diff(bounds), np.diff(bounds) > 0
    first = np.where(has_bytes, data[np.minimum(bounds[:-1], len(data) - 1)], 0)
    last = np.where(has_bytes, data[np.maximum(bounds[1:], 1) - 1], 0)
    return np.where(whole.is_null().to_numpy(zero_copy_only=False), -1, sizes), first | last << 8


# -- batches, written ------------------------------------------------------------------------------------------------


def encoding(request: Request) -> Callable[[], Iterator[Any]]:
    """Batches of a log from its columns, with as many records each as they had."""
    encode, fields = engine("encode", "encode"), engine("encode", "BatchFields")()
    partition = partition_of(request)
    rows = partition.scan(("offset", "timestamp", "key", "value"), layout="large_binary").read_all().combine_chunks()
    counts = np.concatenate([part.column("records_count").copy() for part in table(request)])
    return lambda: encode(rows, fields, counts=counts)


def encode_all(request: Request) -> Callable[[], int]:
    """Make the batches again; none is kept."""
    batches = kept(request["path"], lambda _: encoding(request), "encoding")
    return lambda: sum(len(some) for some in batches())


def encoded_parts(request: Request, _: object) -> Iterable[Part]:
    """The CRCs of what was made."""
    total = Part()
    for some in encoding(request)():
        made = engine("batch_table", "batch_table")(some.tobytes(), checksums=False)
        total = total.then(made.column("crc").astype(np.uint64))
    return [total]


# -- lookups ---------------------------------------------------------------------------------------------------------


def lookup_warm(request: Request) -> Callable[[], list[Any]]:
    """Find each of the offsets in an open partition."""
    partition = partition_of(request)
    return lambda: [found_in(partition, offset) for offset in request["offsets"]]


def lookup_cold(request: Request) -> Callable[[], list[Any]]:
    """Open the segment for each of the offsets, and find it by way of the index, as the others do."""
    path = Path(request["path"])
    files = SegmentFiles(0, path, path.with_suffix(".index"), path.with_suffix(".timeindex"))

    def run() -> list[Any]:
        found = []
        for offset in request["offsets"]:
            with LogSegment(files) as segment:
                found.append(record_at(segment, offset))
        return found

    return run


def found_in(partition: Partition, offset: int) -> Record | Message:
    """The first record at an offset or above."""
    return next(iter(partition.records(offset)))


def lookup_parts(_: Request, found: list[Any]) -> Iterable[Part]:
    """What was found."""
    return [rows_of(found)]


# -- recovery --------------------------------------------------------------------------------------------------------


def recover(request: Request) -> Callable[[], Any]:
    """Verify a log as after a crash, and write the indexes and what its producers have left."""
    volume, data = engine("index_volume", "ColumnarVolume")(), bytes_of(request)

    def run() -> Any:  # noqa: ANN401 - of the engine
        with TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as scratch:
            return recovered(volume, data, Path(scratch) / Path(request["path"]).stem)

    return run


def recovered(volume: Any, data: memoryview, stem: Path) -> Any:  # noqa: ANN401 - of the engine
    """The indexes, which are also written."""
    scan = scan_segment(data, 0, volume=volume)
    indexed = volume.indexed(data, 0, INDEX_INTERVAL_BYTES, stores_first_offset=False)
    if scan.cut is not None or indexed is None or indexed.end != len(data):
        msg = "recovery would cut something off"
        raise ValueError(msg)
    stem.with_suffix(".index").write_bytes(indexed.offset_index)
    stem.with_suffix(".timeindex").write_bytes(indexed.time_index)
    transactions = Transactions()
    transactions.replay(indexed.transaction_events())
    stem.with_suffix(".txnindex").write_bytes(encode_transaction_index(transactions.aborted))
    snapshot = encode_producer_snapshot(each.to_entry() for each in producers_of(indexed) or ())
    stem.with_suffix(".snapshot").write_bytes(snapshot)
    return indexed


def recover_parts(_: Request, found: Any) -> Iterable[Part]:  # noqa: ANN401 - of the engine
    """What was written, as `datasets.index_digest` sums it up."""
    offsets, times = map(google_crc32c.value, (found.offset_index, found.time_index))
    return [Part(offsets << 32 | times, 1)]


# -- memory ----------------------------------------------------------------------------------------------------------


def memory(request: Request) -> dict[str, Any]:
    """Bytes of memory that no file stands behind, before a scan and at most while it runs."""
    for warm_up in (True, False):
        if warm_up:
            columns({**request, "path": request["warm_up"]})()
            continue
        before, most, stop = anonymous_bytes(), [0], threading.Event()
        watch = threading.Thread(target=watched, args=(most, stop))
        watch.start()
        try:
            columns(request)()
        finally:
            stop.set()
            watch.join()
    return {"before": before, "peak": max(most[0], before)}


def watched(most: list[int], stop: threading.Event) -> None:
    """Look every few milliseconds."""
    while not stop.wait(0.004):
        most[0] = max(most[0], anonymous_bytes())


def anonymous_bytes() -> int:
    """As the kernel accounts for it."""
    with suppress(FileNotFoundError), Path("/proc/self/smaps_rollup").open(encoding="ascii") as file:
        for line in file:
            if line.startswith("Anonymous:"):
                return int(line.split()[1]) * 1024
    return 0


serve(
    f"seglog-format {VERSION}",
    {
        "scan": Work(scan, scan_parts),
        "crc": Work(crc, crc_parts),
        "visit": Work(visit, visit_parts),
        "objects": Work(objects, visit_parts),
        "columns": Work(columns, columns_parts),
        "encode": Work(encode_all, encoded_parts),
        "lookup-warm": Work(lookup_warm, lookup_parts),
        "lookup-cold": Work(lookup_cold, lookup_parts),
        "recover": Work(recover, recover_parts),
    },
    {"memory": memory},
)

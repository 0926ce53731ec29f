"""Rows of a table: Arrow batches of a scan, collected in groups of limited size."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from seglog_format.errors import FormatError, UndecodedRecordError, UsageError
from seglog_format.tables.formats import ICEBERG
from seglog_format.values.decoder import decoder_of
from seglog_format.values.schemas import AS_MAP, MAX_SHOWN
from seglog_format.values.shape import first_names

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from seglog_format.log.gaps import OnGap
    from seglog_format.log.partition import Partition
    from seglog_format.scan_statistics import ScanStatistics
    from seglog_format.tables.formats import Choice
    from seglog_format.tables.settings import TableSettings

GROUP_SIZE: Final = 32 * 2**20
"""Maximum bytes of Arrow buffers in a group, unless one batch alone has more."""
GROUP_ROWS: Final = 2**17
BATCH_ROWS: Final = 2**14
HEADERS: Final = pa.list_(pa.struct([pa.field("key", pa.binary(), nullable=False), pa.field("value", pa.binary())]))
HEADERS_MAP: Final = pa.map_(pa.string(), pa.binary())
TOPIC_TYPES: Final = {"topic": pa.string(), "partition": pa.int32()}
DAY_TYPE: Final = {"day": pa.date32()}

MIN_CALENDAR_MS: Final = -62_135_596_800_000
MAX_CALENDAR_MS: Final = 253_402_300_799_999
"""Times of the years 1 to 9999; readers of Iceberg tables refuse others."""
REASON: Final = "reason"
"""Column with the reason, in tables of records that cannot be decoded."""
NEVER_NULL: Final = frozenset({"topic", "partition", "offset", "headers", "file", "position", "reason"})


def table_schema(settings: TableSettings) -> pa.Schema:
    """Return the columns of the files of a table.

    Raises:
        UsageError: a decoded column of an Iceberg table has a type that Iceberg does not have.
    """
    types: dict[str, pa.DataType] = TOPIC_TYPES | {
        "offset": pa.int64(),
        "timestamp": pa.timestamp("us" if settings.format == ICEBERG else "ms", "UTC"),
        "timestamp_type": pa.int32(),
        "key": pa.binary(),
        "value": pa.binary(),
        "headers": HEADERS,
        "leader_epoch": pa.int32(),
        "file": pa.string(),
        "position": pa.int64(),
    }
    decoders = {name: decoder_of(form) for name, form in settings.forms.items()}
    types |= {name: decoder.type for name, decoder in decoders.items() if decoder is not None}
    types |= {"headers": HEADERS_MAP} if settings.choice.headers == AS_MAP else {}
    for name in settings.forms:
        if settings.format == ICEBERG:
            _refuse_foreign_types(name, types[name])
        else:
            types[name] = first_names(types[name])
    types |= {REASON: pa.string()} if settings.of else {}
    return pa.schema([pa.field(name, types[name], nullable=name not in NEVER_NULL) for name in settings.written])


def with_path_columns(schema: pa.Schema, settings: TableSettings) -> pa.Schema:
    """Return the columns of files with those that are in the names of their directories."""
    return pa.schema([*(pa.field(name, (TOPIC_TYPES | DAY_TYPE)[name]) for name in settings.in_path), *schema])


def _refuse_foreign_types(name: str, kind: pa.DataType) -> None:
    if pa.types.is_null(kind) or pa.types.is_decimal256(kind) or pa.types.is_duration(kind):
        hint = ", or times as written" if pa.types.is_duration(kind) else ""
        msg = f"an Iceberg table cannot hold the type {kind} of {name}: export to another format{hint}"
        raise UsageError(msg)
    inside = [kind.field(number) for number in range(kind.num_fields)]
    for each in inside:
        _refuse_foreign_types(f"{name}.{each.name}", each.type)


def groups_of(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Yield the rows of a scan in groups of about `GROUP_SIZE` bytes; no group is empty.

    Raises:
        FormatError: the scan met damage; all rows before it were yielded.
        UndecodedRecordError: the format of the table cannot hold a record; likewise.
    """
    held: list[pa.RecordBatch] = []
    size = rows = 0
    try:
        for batch in batches:
            if not len(batch):
                continue
            held.append(batch)
            size, rows = size + batch.get_total_buffer_size(), rows + len(batch)
            if size >= GROUP_SIZE or rows >= GROUP_ROWS:
                yield pa.Table.from_batches(held)
                held, size, rows = [], 0, 0
    except (FormatError, UndecodedRecordError):
        if held:
            yield pa.Table.from_batches(held)
        raise
    if held:
        yield pa.Table.from_batches(held)


def scanned_rows(
    partition: Partition,
    settings: TableSettings,
    offsets: tuple[int | None, int | None],
    on_gap: OnGap,
    statistics: ScanStatistics | None = None,
) -> Iterator[pa.RecordBatch]:
    """Read the columns of a table from a partition.

    Args:
        partition: to read.
        settings: of the table.
        offsets: first offset to read, and the one after the last; None for all.
        on_gap: called with missing offsets.
        statistics: adds the entries that are left to slower code.
    """
    options: dict[str, Any] = {
        "isolation": settings.isolation,
        "batch_rows": BATCH_ROWS,
        "layout": settings.layout,
        "statistics": statistics,
    }
    if (since_ms := settings.choice.since_ms) is not None:
        offsets = partition.start_not_older(since_ms, offsets[0], on_gap), offsets[1]
    batches = map(_with_plain_headers, partition.scan(settings.scanned, *offsets, on_gap=on_gap, **options))
    return _with_microseconds(batches) if settings.format == ICEBERG else batches


def _with_microseconds(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Yield batches with times in microseconds, as Iceberg has them.

    Raises:
        UndecodedRecordError: a time is out of range; the rows before it were yielded.
    """
    for batch in batches:
        number = batch.schema.get_field_index("timestamp")
        as_ms = batch.column(number).cast(pa.int64())
        outside = pc.or_(pc.less(as_ms, MIN_CALENDAR_MS), pc.greater(as_ms, MAX_CALENDAR_MS))
        first = pc.index(outside, pa.scalar(value=True)).as_py()
        inside = batch if first < 0 else batch.slice(0, first)
        yield inside.set_column(number, "timestamp", inside.column(number).cast(pa.timestamp("us", "UTC")))
        if first >= 0:
            offset = batch.column("offset")[first]
            msg = f"an Iceberg table cannot hold the time of offset {offset}: export to another format"
            raise UndecodedRecordError(msg)


def _with_plain_headers(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return a batch without views inside of lists: Arrow cannot write those to Parquet."""
    number = batch.schema.get_field_index("headers")
    if number < 0:
        return batch
    kind = batch.schema.field(number).type
    if kind.value_type.field("key").type != pa.binary_view():
        return batch
    field = pa.field("headers", HEADERS, nullable=False)
    return batch.set_column(number, field, batch.column(number).cast(HEADERS))


def with_partition(rows: pa.Table, settings: TableSettings, topic: str, partition: int) -> pa.Table:
    """Return rows with columns for topic and partition, unless names of directories contain these."""
    values = {"topic": topic, "partition": partition}
    for number, name in enumerate(name for name in TOPIC_TYPES if name not in settings.in_path):
        column = pa.repeat(pa.scalar(values[name], TOPIC_TYPES[name]), rows.num_rows)
        rows = rows.add_column(number, pa.field(name, TOPIC_TYPES[name], nullable=False), column)
    return rows


def by_day(rows: pa.Table) -> Iterator[tuple[str | None, pa.Table]]:
    """Yield rows by the day of their time in UTC (None for rows without a time), each in the original order."""
    times = rows.column("timestamp").combine_chunks()
    days = _as_ms(times).to_numpy(zero_copy_only=False).astype("datetime64[ms]").astype("datetime64[D]")
    if times.null_count:
        has_none = times.is_null().to_numpy(zero_copy_only=False)
        yield None, rows.filter(pa.array(has_none))
        days[has_none] = np.datetime64("NaT")
    for day in np.unique(days[~np.isnat(days)]):
        yield str(day), rows.filter(pa.array(days == day))


def chosen_rows(rows: pa.Table, choice: Choice) -> pa.Table:
    """Return the rows of the records that a table has."""
    if not choice.is_filter:
        return rows
    is_wanted = pa.scalar(value=True)
    if choice.keys is not None:
        is_wanted = pc.is_in(rows.column("key"), pa.array(choice.keys, pa.binary()))
    times = _as_ms(rows.column("timestamp"))
    if choice.since_ms is not None:
        is_wanted = pc.and_(is_wanted, pc.greater_equal(times, choice.since_ms))
    if choice.until_ms is not None:
        is_wanted = pc.and_(is_wanted, pc.less(times, choice.until_ms))
    return rows.filter(is_wanted)  # without those that have no timestamp, if there is a bound


def headers_as_map(column: pa.Array | pa.ChunkedArray) -> tuple[pa.Array, dict[int, str]]:
    """Return headers as maps; and the rows whose headers are no map, and null, with the reason."""
    reasons: dict[int, str] = {}
    maps: list[list[tuple[str, bytes | None]] | None] = []
    for row, headers in enumerate(column.to_pylist()):
        pairs: dict[str, bytes | None] = {}
        for each in headers:
            name = each["key"].decode("utf-8", "replace")
            if name.encode() != each["key"]:
                reasons[row] = f"headers: a map has text as keys, found {each['key'][:MAX_SHOWN]!r}"
            elif name in pairs:
                reasons[row] = f"headers: a map has each key once, found {name[:MAX_SHOWN]!r} twice"
            pairs[name] = each["value"]
        maps.append(None if row in reasons else list(pairs.items()))
    return pa.array(maps, HEADERS_MAP), reasons


def last_offset(rows: pa.Table) -> int:
    """Return the offset of the last row."""
    found: int = rows.column("offset")[-1].as_py()
    return found


def last_epoch(rows: pa.Table) -> int:
    """Return the leader epoch of the last row; -1 if it has none."""
    found: int | None = rows.column("leader_epoch")[-1].as_py()
    return -1 if found is None else found


def digest_of_last(rows: pa.Table) -> str:
    """Return a digest of the fields of the last row that compaction never changes: offset, time, key and value."""
    last = rows.slice(rows.num_rows - 1)
    time = _as_ms(last.column("timestamp"))
    values = [last.column("offset"), time, last.column("key"), last.column("value")]
    return hashlib.sha256(repr([column[0].as_py() for column in values]).encode()).hexdigest()


def _as_ms(times: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """Return times as milliseconds since 1970, whatever their unit."""
    return times.cast(pa.timestamp("ms", "UTC")).cast(pa.int64())

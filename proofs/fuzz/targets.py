"""Targets of fuzzing and bounds checks: the columnar engine and the reference read the same bytes, and must agree.

The first byte of an input selects the target (bits 0 to 2), whether checksums, and those in headers of lz4 frames, are
corrected before (bit 3), and the options of the target (bits 4 to 7).
"""

from __future__ import annotations

import struct
import warnings
import zlib
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

import google_crc32c
import numpy as np
import pyarrow as pa
import xxhash

from proofs.entries import is_sealed
from proofs.fuzz.broker_scans import broker_scan_by
from proofs.fuzz.codec_targets import libraries, lz4, snappy
from proofs.fuzz.delivered_rows import COLUMNS, row_of, rows_of
from proofs.fuzz.judging import LIMIT, LOG, SMALL_LIMIT, compare_results, outcome
from seglog_format import (
    CompressionCodec,
    Engine,
    build_batch,
    encode_batch,
    encode_columns,
    new_record,
    open_partition,
    walk,
)
from seglog_format.checks import verify_log
from seglog_format.codec.decode import decode_frame
from seglog_format.columnar.prefilter_entries import find_record
from seglog_format.engine import batch_tables, position_of, prefilter, recovery_kernels
from seglog_format.errors import FormatError, Location, MissingOffsetsWarning
from seglog_format.recovery.segment_scan import scan_segment, side_files_of
from seglog_format.types import IndexedOffset, IndexSettings, Record, Transactions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from seglog_format.engine import RecoveryKernels
    from seglog_format.types import Partition

SEALED: Final = 0x08
INT64_MAX: Final = 2**63 - 1
ENTRY_COLUMNS: Final = ("position", "codec", "timestamp_type", "sequence", "is_transactional", "batch_offset")
ENGINE: Final = recovery_kernels()


def ignore_gaps() -> None:
    """Suppress warnings of missing offsets in this process: most inputs are cut somewhere."""
    warnings.simplefilter("ignore", MissingOffsetsWarning)


# Checksums


def sealed(data: bytes) -> bytes:
    """Return the entries, as far as their sizes lead, with corrected checksums and headers of lz4 frames."""
    made, position = bytearray(data), 0
    while len(made) - position > 16:  # noqa: PLR2004 - positions of the format, here and below
        (size,) = struct.unpack_from(">i", made, position + 8)
        end, magic = min(position + 12 + size, len(made)), made[position + 16]
        if size < 5 or magic > 2:  # noqa: PLR2004
            break
        if magic == 2 and end - position > 61:  # noqa: PLR2004
            if made[position + 22] & 7 == CompressionCodec.LZ4:
                seal_frame(made, position + 61, end)
            made[position + 17 : position + 21] = google_crc32c.value(bytes(made[position + 21 : end])).to_bytes(4)
        elif magic < 2 and end - position > 16:  # noqa: PLR2004
            made[position + 12 : position + 16] = zlib.crc32(bytes(made[position + 16 : end])).to_bytes(4)
        position = end
    return bytes(made)


def seal_frame(data: bytearray, start: int, end: int) -> None:
    """Correct the checksum in the header of an lz4 frame."""
    last = start + 6 + (8 if end - start > 6 and data[start + 4] & 8 else 0)  # noqa: PLR2004
    if last < end:
        data[last] = xxhash.xxh32_intdigest(bytes(data[start + 4 : last])) >> 8 & 0xFF


# Targets that read logs


class Targets:
    """All targets.

    Args:
        directory: directory for a partition that is written again for each input that needs one.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory / "fuzz-0"
        self._directory.mkdir(parents=True, exist_ok=True)
        self._named: tuple[Callable[[bytes, int], str], ...] = (
            self.scan,
            self.objects,
            verify,
            recover,
            lz4,
            snappy,
            libraries,
            entries_or_rows,
        )

    def run(self, data: bytes) -> str:
        """Give one input to its target.

        Returns:
            A short form of the engine's result, which is the same on all machines.

        Raises:
            DifferenceError: the result of the reference differs.
            Exception: any error, which also is a finding.
        """
        if not data:
            return ""
        kind, content = data[0], data[1:]
        if kind & SEALED:
            content = sealed(content)
        return self._named[kind & 7](content, kind >> 4)

    def _partition(self, data: bytes, option: int) -> Partition:
        path = self._directory / f"{0:020d}.log"
        path.write_bytes(data)
        return open_partition(self._directory, limit=SMALL_LIMIT if option & 1 else LIMIT)

    def scan(self, data: bytes, option: int) -> str:
        """Compare Arrow rows. Options: a small limit; committed records; copied layout; from the middle on."""
        with self._partition(data, option) as partition:
            shared = bounds_of(partition, option)
            if isinstance(shared, str):
                return shared
            wanted = outcome(lambda: map(row_of, partition.records(**shared, engine=Engine.REFERENCE)))
            layout = "binary" if option & 4 else "view"
            found = outcome(lambda: rows_of(partition.scan(COLUMNS, batch_rows=8, layout=layout, **shared)))
            narrow = outcome(lambda: partition.scan((*ENTRY_COLUMNS, "key"), batch_rows=8, **shared))
            keys = [key for part in narrow[0] for key in part.column("key").to_pylist()]
            compare_results(
                "keys beside columns of entries", (keys, narrow[1]), ([row[2] for row in found[0]], found[1])
            )
            return compare_results("rows", found, wanted) + str([part.to_pylist() for part in narrow[0]])[-60:]

    def objects(self, data: bytes, option: int) -> str:
        """Compare records as objects. Options as for `scan`, without the third."""
        with self._partition(data, option) as partition:
            shared = bounds_of(partition, option)
            if isinstance(shared, str):
                return shared
            wanted = outcome(lambda: partition.records(**shared, engine=Engine.REFERENCE))
            found = outcome(lambda: partition.records(**shared, engine=Engine.COLUMNAR))
            return compare_results("records", found, wanted)


def bounds_of(partition: Partition, option: int) -> dict[str, Any] | str:
    """Return the range to read, or the error if a damaged log has no known range."""
    shared: dict[str, Any] = {"isolation": "read_committed"} if option & 2 else {}
    if option & 8:
        try:
            shared["from_offset"] = (partition.log_start_offset + partition.log_end_offset) // 2
        except FormatError as error:
            return str(error)
    return shared


def verify(data: bytes, option: int) -> str:
    """Compare findings. Options: a small limit; a base offset of 1."""
    log, limit, base_offset = LOG.holding(data), SMALL_LIMIT if option & 1 else LIMIT, option >> 1 & 1
    wanted = outcome(lambda: verify_log(log, base_offset=base_offset, limit=limit, engine=Engine.REFERENCE))
    found = outcome(lambda: verify_log(log, base_offset=base_offset, limit=limit, engine=Engine.COLUMNAR))
    return compare_results("findings", found, wanted)


def recover(data: bytes, option: int) -> str:
    """Compare recovered logs and side files. Options: an index entry for each; of first offsets; as brokers do."""
    log, base_offset = LOG.holding(data), 0
    settings = IndexSettings(
        0 if option & 1 else 200, IndexedOffset.FIRST if option & 2 else IndexSettings().indexed_offset
    )

    def answers(engine: RecoveryKernels | None) -> Iterator[object]:
        yield scan_segment(log, base_offset, "p", kernels=engine)
        transactions = Transactions(open_offsets={7: 0})
        if option & 4:
            yield broker_scan_by(engine, log, base_offset, settings, transactions)
        else:
            yield side_files_of(log, base_offset, settings, transactions=transactions, path="p", kernels=engine)
        yield transactions.aborted, transactions.open_offsets

    return compare_results("recovery", outcome(lambda: answers(ENGINE)), outcome(lambda: answers(None)))


def entries_or_rows(data: bytes, option: int) -> str:
    """Compare the tables of entries; or, by the first bit of the option, the encoding of rows."""
    return encoded(data, option) if option & 1 else entries(data)


def entries(data: bytes) -> str:
    """Compare the table of entries with the entries of the reference; it may end earlier, but not later."""
    log = LOG.holding(data)
    rows, end = table_of(log)
    wanted, _ = outcome(lambda: walk(log))
    frames = [[it.position, len(it.data), it.header.magic, it.header.last_offset, is_sealed(it.data)] for it in wanted]
    compare_results("entries", rows, frames[: len(rows)])
    find_records(log, wanted)
    ordered_end, last_offset = ENGINE.ordered_end(log, 0, INT64_MAX)
    ends = {0: -1} | {frame.end: frame.header.last_offset for frame in wanted}
    compare_results("the end of the order", last_offset, ends.get(ordered_end))
    sound = next((row[0] for row in rows if not row[4]), end)
    offsets = [row[3] for row in rows[:50]]
    if offsets == sorted(set(offsets)) and offsets[:1] >= [0]:
        for position, *_, offset, _ in rows[:50]:
            if (found := position_of(log, (0, INT64_MAX), offset)) is not None:
                compare_results("position of an offset", found, position)
    found = position_of(log, (0, INT64_MAX), rows[len(rows) // 2][3] if rows else 5)
    if found is not None and found not in [row[0] for row in rows]:
        compare_results("position of an offset", found, rows)
    return str((rows, sound, found))[-60:]


def find_records(log: memoryview, frames: list[Any]) -> None:
    """Compare where single records are found, by number and by time, in batches that the prefilter passes."""
    parts = prefilter()(log, 0, LIMIT, lambda *_: None).parts(0, None)
    passed = {position for part in parts for position in part.positions.tolist()}
    for frame in frames:
        if frame.position in passed and frame.header.magic == 2 and not frame.header.codec_id:  # noqa: PLR2004
            records = decode_frame(frame, at=Location(), limit=LIMIT).records[:30]
            starts = [*accumulate((record.size_in_bytes for record in records), initial=61)]
            batch = np.frombuffer(frame.data, np.uint8)
            for number, record in enumerate(records):
                first = next(each for each, other in enumerate(records) if other.timestamp_ms >= record.timestamp_ms)
                found = find_record(batch, number, -INT64_MAX - 1), find_record(batch, 0, record.timestamp_ms)
                compare_results("positions of a record", found, (starts[number], starts[first]))


def table_of(log: memoryview) -> tuple[list[list[Any]], int]:
    """Return position, size, magic, last offset and validity of each entry that the engine reads, and their end."""
    rows: list[list[Any]] = []
    end = 0
    for part in batch_tables()(log):
        rows += part.rows[:, [0, 1, 2, 4, 7]].tolist()
        end = part.end
    return [[*row, bool(is_sound)] for *row, is_sound in rows], end


def encoded(data: bytes, option: int) -> str:
    """Compare the encoding of rows from the input with that of the reference. Options: three bits, the codec."""
    codec = CompressionCodec((option >> 1) % 5)
    records = list(records_in(data))
    if not records:
        return ""
    reference = encode_batch(build_batch(records, base_offset=records[0].offset, codec=codec, keeps_offsets=True))
    rows = [
        (it.offset, it.timestamp_ms, it.key, it.value, [(header.key, header.value) for header in it.headers])
        for it in records
    ]
    columns = [pa.array(column, kind) for column, kind in zip(zip(*rows, strict=True), SCHEMA.types, strict=True)]
    parts = encode_columns(pa.Table.from_arrays(columns, schema=SCHEMA), codec=codec, counts=[len(rows)])
    return compare_results("encoded", b"".join(parts), reference)


SCHEMA: Final = pa.schema(
    {
        "offset": pa.int64(),
        "timestamp": pa.int64(),
        "key": pa.binary(),
        "value": pa.binary(),
        "headers": pa.list_(pa.struct([("key", pa.binary()), ("value", pa.binary())])),
    }
)


def records_in(data: bytes) -> Iterator[Record]:
    """Yield records that the input describes: a few bytes for sizes and numbers, then the content."""
    position, offset = 0, 0

    def taken(size: int) -> bytes:
        nonlocal position
        position += size
        return data[position - size : position].ljust(size, b"\0")

    def value() -> bytes | None:
        size = taken(1)[0]
        return None if size == 255 else taken(size)  # noqa: PLR2004

    while position < len(data):
        step, width, count = taken(3)
        offset += 1 + (step << (width >> 4))
        timestamp_ms = int.from_bytes(taken(width & 7)) & (1 << 50) - 1
        headers = [(value() or b"", value()) for _ in range(count & 3)]
        made = new_record(key=value(), value=value(), timestamp_ms=timestamp_ms, headers=headers)
        if offset > 2**31 - 2:
            return
        yield Record(offset, made.timestamp_ms, made.key, made.value, made.headers)


TARGETS: Final = ("scan", "objects", "verify", "recover", "lz4", "snappy", "libraries", "entries_or_rows")
"""Their names, by number."""

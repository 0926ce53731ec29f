"""Columns of a row's entry, held against what the reference says of the entry."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyarrow")

from helpers.scans import segment_directory
from helpers.support import authentic, authentic_names
from helpers.walking import each_of

from proofs.fuzz.random_logs import random_log
from seglog_format.codec.build import build_batch, build_message_entry, new_record
from seglog_format.codec.encode import encode_batch
from seglog_format.columnar import chunks, run
from seglog_format.columnar.schema import ENTRY_COLUMNS
from seglog_format.errors import FormatError
from seglog_format.log.partition import Partition, open_partition
from seglog_format.model import CompressionCodec, Message, RecordBatch, RecordBatchHeader, TimestampType

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

CODECS = tuple(CompressionCodec)
COLUMNS = ("offset", *ENTRY_COLUMNS)


def expected_rows(partition: Partition) -> Iterator[dict[str, Any]]:
    for segment in partition.segments:
        for batch in segment.batches():
            if not batch.header.is_control:
                yield from rows_of(batch, f"{segment.base_offset:020d}.log", partition.log_start_offset)


def rows_of(batch: RecordBatch, file: str, start: int) -> Iterator[dict[str, Any]]:
    header = batch.header
    is_batch = isinstance(header, RecordBatchHeader)
    kinds = {TimestampType.NO_TIMESTAMP_TYPE: None, TimestampType.CREATE_TIME: 0, TimestampType.LOG_APPEND_TIME: 1}
    for record in batch.records:
        if record.offset >= start:
            yield {
                "offset": record.offset,
                "timestamp_type": kinds[header.timestamp_type],
                "leader_epoch": header.partition_leader_epoch if is_batch else None,
                "producer_id": header.producer_id if is_batch else None,
                "producer_epoch": header.producer_epoch if is_batch else None,
                "sequence": record.sequence if is_batch else None,
                "is_transactional": header.is_transactional if is_batch else None,
                "batch_offset": header.base_offset if is_batch else None,
                "file": file,
                "position": batch.position,
                "codec": CompressionCodec(header.codec_id).label,
            }
            assert is_batch != isinstance(record, Message)


def assert_equal_columns(path: Path, **options: Any) -> None:
    with open_partition(path) as partition:
        rows = list(until_damage(expected_rows(partition)))
        batches = until_damage(partition.scan(COLUMNS, **options))
        assert [row for batch in batches for row in batch.to_pylist()] == rows
        for name in ENTRY_COLUMNS:
            batches = until_damage(partition.scan([name], **options))
            assert [value for batch in batches for value in batch.column(0).to_pylist()] == [row[name] for row in rows]


def until_damage(found: Iterable[Any]) -> Iterator[Any]:
    with suppress(FormatError):
        yield from found


@each_of("name", authentic_names())
def test_every_authentic_log_tells_the_same(name: str) -> None:
    for path in sorted({path.parent for path in authentic(name).rglob("*.log")}):
        assert_equal_columns(path)


@each_of("seed", range(25))
def test_logs_by_chance_tell_the_same(seed: int, tmp_path: Path) -> None:
    log = random_log(seed)
    directory = segment_directory(tmp_path / "chance-0", log.data, log.base_offset)
    assert_equal_columns(directory)
    assert_equal_columns(directory, batch_rows=7)
    assert_equal_columns(directory, threads=2)


@pytest.mark.parametrize("codec", [CompressionCodec.ZSTD, CompressionCodec.GZIP])
def test_what_is_left_to_the_reference_tells_the_same(
    codec: CompressionCodec, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for library in ("zstd_library", "gzip_library"):
        monkeypatch.setattr(chunks, library, lambda: None)
    monkeypatch.setattr(run.Run, "_decompress", nothing)
    data = encode_batch(
        build_batch(
            [new_record(value=b"v" * number, timestamp_ms=5) for number in range(9)],
            base_offset=0,
            codec=codec,
            producer_id=7,
            producer_epoch=2,
            base_sequence=2**31 - 4,
            partition_leader_epoch=3,
        )
    )
    messages = [new_record(value=b"v" * number, timestamp_ms=5) for number in range(9)]
    for magic in (0, 1):
        entry = build_message_entry(messages, magic=magic, base_offset=9 + 9 * magic, codec=CompressionCodec.GZIP)
        data += encode_batch(entry)
    assert_equal_columns(segment_directory(tmp_path / "judged-0", data))


def nothing(_: run.Run) -> Iterator[Any]:
    """Instead of `Run._decompress`: it cannot."""
    yield from ()
    return False


def test_sequence_numbers_go_around(tmp_path: Path) -> None:
    records = [new_record(value=b"v", timestamp_ms=5) for _ in range(6)]
    data = encode_batch(build_batch(records, base_offset=0, producer_id=7, producer_epoch=2, base_sequence=2**31 - 3))
    directory = segment_directory(tmp_path / "around-0", data)
    assert_equal_columns(directory)
    with open_partition(directory) as partition:
        found = partition.scan(["sequence"]).read_all().column(0).to_pylist()
    assert found == [2**31 - 3, 2**31 - 2, 2**31 - 1, 0, 1, 2]

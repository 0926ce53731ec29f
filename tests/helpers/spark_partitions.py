"""Partition directories for tests, with indexes that our own writer makes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog_format import LogConfig, PartitionWriter, new_record

if TYPE_CHECKING:
    from pathlib import Path

START_MS = 1_700_000_000_000


def partition(
    directory: Path,
    count: int = 400,
    *,
    value_size: int = 100,
    in_batch: int = 10,
    segment_bytes: int = 2**14,
    interval_bytes: int = 2**10,
) -> Path:
    """Return a partition of records a second apart; value ``7`` stands at offset 7, filled up with dots."""
    config = LogConfig(segment_bytes=segment_bytes, index_interval_bytes=interval_bytes)
    directory.parent.mkdir(parents=True, exist_ok=True)
    with PartitionWriter(directory, config) as writer:
        for first in range(0, count, in_batch):
            records = [
                new_record(
                    key=None if number % 5 == 0 else f"k{number}".encode(),
                    value=str(number).encode().ljust(value_size, b"."),
                    timestamp_ms=START_MS + 1000 * number,
                )
                for number in range(first, min(first + in_batch, count))
            ]
            writer.append(records)
    return directory


def topic_id(directory: Path, text: str) -> None:
    """Say which topic a partition belongs to."""
    (directory / "partition.metadata").write_text(f"version: 0\ntopic_id: {text}", encoding="utf-8")

"""Tables read back by other programs, for tests of exports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa

from seglog_format import CompressionCodec, encode_columns

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

DAY_MS = 86_400_000


def rows_of(table: Path) -> list[dict[str, Any]]:
    """Return all rows of a table of Parquet files, as DuckDB reads them, by topic, partition and offset."""
    if not any(table.rglob("*.parquet")):
        return []
    query = f"select * replace (epoch_ms(timestamp) as timestamp) from '{table}/**/*.parquet'"  # noqa: S608 - our own
    found = duckdb.sql(query).to_arrow_table().to_pylist()
    return sorted(found, key=lambda row: (row["topic"], row["partition"], row["offset"]))


def offsets_of(table: Path) -> list[int]:
    """Return the offsets of a table with one partition."""
    return [row["offset"] for row in rows_of(table)]


def make_log(  # noqa: PLR0913 - what a log of a test may be like
    directory: Path,
    offsets: Iterable[int],
    *,
    batch_size: int = 200,
    time_ms: int = 20_000 * DAY_MS,
    step_ms: int = 1,
    epoch: int = 0,
    codec: CompressionCodec = CompressionCodec.NONE,
    text: str = "value",
) -> Path:
    """Add a segment with a record for each offset to a partition directory."""
    wanted = list(offsets)
    rows = pa.table(
        {
            "offset": pa.array(wanted, pa.int64()),
            "timestamp": pa.array([time_ms + each * step_ms for each in wanted], pa.timestamp("ms", tz="UTC")),
            "key": pa.array([b"key %d" % (each % 7) for each in wanted]),
            "value": pa.array([f"{text} {each}".encode() for each in wanted]),
        }
    )
    directory.mkdir(parents=True, exist_ok=True)
    batches = encode_columns(
        rows, base_offset=wanted[0], batch_size=batch_size, codec=codec, partition_leader_epoch=epoch
    )
    (directory / f"{wanted[0]:020}.log").write_bytes(b"".join(batches))
    return directory

"""Indexes computed from logs, against those that Kafka wrote."""

from __future__ import annotations

from typing import TYPE_CHECKING

from helpers.support import authentic, authentic_expected, authentic_names, vector
from helpers.walking import each_of

from seglog_format.codec.decode import decode_frame
from seglog_format.codec.framing import walk
from seglog_format.errors import Location
from seglog_format.log.index_file import (
    IndexedOffset,
    IndexedRow,
    build_indexes,
    encode_offset_index,
    interval_bounds,
)

if TYPE_CHECKING:
    from pathlib import Path

    from seglog_format.log.index_file import BuiltIndexes


def test_the_vector_of_eight_batches() -> None:
    """Eight batches of 119 bytes and two records, timestamps 1000 + 100 i and one more, interval 100."""
    rows = [IndexedRow(119 * i, 119, 2 * i, 2 * i + 1, 1001 + 100 * i) for i in range(8)]
    built = build_indexes(rows, interval_bytes=100)
    assert encode_offset_index(built.offset_entries, 0) == vector("V-26-index")
    assert 100 in interval_bounds(rows, built.offset_entries)
    assert [entry.offset for entry in built.time_entries] == [3, 5, 7, 9, 11, 13, 15]


def rows_of(path: Path) -> list[IndexedRow]:
    rows = []
    for frame in walk(path.read_bytes()):
        first = frame.header.base_offset
        if first is None:
            first = decode_frame(frame, at=Location()).base_offset
        header = frame.header
        rows.append(IndexedRow(frame.position, len(frame.data), first, header.last_offset, header.max_timestamp_ms))
    return rows


def recovered_segment(name: str) -> tuple[Path, dict[str, list[list[int]]]]:
    """Return the last segment after recovery, which the broker scanned, and what Kafka reads in its indexes."""
    lines = {(line["type"], line["file"]): line for line in authentic_expected(name)}
    log = max((authentic(name) / "after").glob("crash-*-0/*.log"))
    stem = str(log.relative_to(authentic(name)))[: -len(".log")]
    kinds = {"offsetIndex": ".index", "timeIndex": ".timeindex"}
    found = {
        kind: lines[kind, stem + suffix]["entries"] for kind, suffix in kinds.items() if (kind, stem + suffix) in lines
    }
    return log, found


def as_lists(built: BuiltIndexes) -> dict[str, list[list[int]]]:
    return {
        "offsetIndex": [[entry.offset, entry.position] for entry in built.offset_entries],
        "timeIndex": [[entry.timestamp_ms, entry.offset] for entry in built.time_entries],
    }


OLD = ("0.8.2.2", "0.9.0.1", "0.10.2.2", "0.11.0.3", "1.1.1")


@each_of("name", [name for name in authentic_names() if "/crash-" in name])
def test_indexes_that_brokers_rebuilt(name: str) -> None:
    log, expected = recovered_segment(name)
    rows = rows_of(log)
    indexed_offset = IndexedOffset.FIRST if name.startswith(OLD) else IndexedOffset.LAST
    built = as_lists(build_indexes(rows, interval_bytes=1024, indexed_offset=indexed_offset))
    assert {kind: built[kind] for kind in expected} == expected

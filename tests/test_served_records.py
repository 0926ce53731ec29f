"""The records of every line's directories are those that the broker's own consumer got (`fixtures/make/lines.py`)."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from helpers.support import bundled, bundled_directory
from helpers.walking import each_of

from seglog_format import open_partition

if TYPE_CHECKING:
    from pathlib import Path

    from seglog_format.types import Record

    Isolation = Literal["read_uncommitted", "read_committed"]

CASES = sorted(
    path.parent.relative_to(path.parents[2]).as_posix().removeprefix("kafka-")
    for path in bundled_directory("").parent.glob("kafka-*/*/served.jsonl.gz")
)
LONGEST_INLINE = 256
COMPARED = ("offset", "timestamp", "key", "value", "headers")


@cache
def served(name: str) -> list[dict[str, Any]]:
    """Return what the consumer of the case's release got, and then where it stood."""
    with gzip.open(bundled_directory(name) / "served.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def blob(data: bytes | None) -> object:
    if data is None or len(data) <= LONGEST_INLINE:
        return None if data is None else base64.b64encode(data).decode()
    return {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}


def as_line(record: Record, names: set[str]) -> dict[str, Any]:
    """Return a record as the driver of the consumer prints it; clients of old releases print fewer fields."""
    line: dict[str, Any] = {
        "offset": record.offset,
        "timestamp": record.timestamp_ms,
        "key": blob(record.key),
        "value": blob(record.value),
        "headers": [[one.key.decode(), blob(one.value)] for one in record.headers],
    }
    return {field: value for field, value in line.items() if field in names and (value or field != "headers")}


def partition_of(name: str) -> Path:
    """Return the directory of the partition when the consumer read it."""
    root = bundled(name)
    return (root / "after" if (root / "after").is_dir() else root) / f"{name.split('/')[1]}-0"


def levels(name: str) -> list[Isolation]:
    """Return the isolation levels of the release's consumer."""
    return ["read_uncommitted"] if name.startswith("0.9.") else ["read_uncommitted", "read_committed"]


@each_of(("name", "isolation"), [(name, level) for name in CASES for level in levels(name)])
def test_records_and_end_are_those_of_the_consumer(name: str, isolation: Isolation) -> None:
    *theirs, end = [line for line in served(name) if line["isolation"] == isolation]
    names = {field for line in theirs for field in line} | {"headers"}
    with open_partition(partition_of(name)) as partition:
        begin = theirs[0]["offset"] if theirs else 0  # DeleteRecords cuts inside a segment
        found = [as_line(record, names) for record in partition.records(begin, isolation=isolation)]
        reached = partition.last_stable_offset if isolation == "read_committed" else partition.log_end_offset
    assert found == [{field: line[field] for field in COMPARED if field in line} for line in theirs]
    assert reached == end["position"]


def test_the_lines_have_such_cases() -> None:
    assert {name.split("/")[0] for name in CASES} == {"0.9.0.1", "0.11.0.3", "2.0.1", "3.0.2", "3.4.1", "4.0.1"}

"""The matrix of writers at a tiny size: that the logs hold the same records, not how quick they are read."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from helpers.messages import message, wrapper

from proofs.writers import making
from proofs.writers.cells import WRITERS, Cell, Kind, Way, Writer, cells_of
from proofs.writers.making import make_logs
from proofs.writers.requests import batches_to_encode, with_superseded
from proofs.writers.rows import BATCH_RECORDS, rows_of
from tools.docs import writers_part

pytest.importorskip("numpy")
pytest.importorskip("pyarrow")

REPOSITORY = Path(__file__).resolve().parent.parent
JAVA = Writer("Java", "kafka-clients", Way.ENCODER, (Kind.TRANSACTIONAL,), (1,))


def test_the_rows_of_a_seed_are_the_same_each_time() -> None:
    assert rows_of(1, 2) == rows_of(1, 2)
    assert rows_of(1, 2) != rows_of(2, 2)
    rows = [row for batch in rows_of(1, 2) for row in batch]
    assert len({row.key for row in rows}) == len(rows) == 2 * BATCH_RECORDS
    assert [row.timestamp_ms for row in rows] == sorted(row.timestamp_ms for row in rows)


def test_what_compaction_removes_comes_again_later() -> None:
    batches = rows_of(1, 3)
    older = with_superseded(batches)
    last = {row.key: row for batch in older for row in batch}
    assert list(last.values()) != [row for batch in batches for row in batch]
    assert sorted(last.values()) == sorted(row for batch in batches for row in batch)
    assert [len(batch) for batch in older] == [600, 600, 500]


def test_a_transaction_ends_with_a_marker_after_ten_batches() -> None:
    batches = list(batches_to_encode(Cell(JAVA, Kind.TRANSACTIONAL, "gzip"), rows_of(1, 11)))
    assert [number for number, batch in enumerate(batches) if batch.get("isControl")] == [10, 12]
    offsets = [int(record["offset"]) for batch in batches for record in batch["records"]]
    assert offsets == list(range(11 * BATCH_RECORDS + 2))


def test_messages_in_a_wrapper_of_magic_1_count_from_0() -> None:
    for codec, first in (("none", BATCH_RECORDS), ("lz4", 0)):
        second = list(batches_to_encode(Cell(JAVA, Kind.PLAIN, codec, 1), rows_of(1, 2)))[1]
        assert int(second["records"][0]["offset"]) == first


def test_no_two_cells_share_a_name() -> None:
    names = [cell.topic for writer in WRITERS for cell in cells_of(writer)]
    assert len(set(names)) == len(names)


def test_a_writer_whose_adapter_cannot_be_built_is_told_with_the_reason(tmp_path: Path) -> None:
    absent = Writer("nobody", "no-such-adapter", Way.CLIENT)
    made = list(make_logs(tmp_path, rows_of(1, 1), lambda _: None, [absent]))
    assert len(made) == len(list(cells_of(absent)))
    assert all("no adapter" in each.reason for each in made)


def test_the_benchmark_reads_what_was_written_and_compares_the_writers(tmp_path: Path) -> None:
    report = tmp_path / "writers.json"
    command = [sys.executable, str(REPOSITORY / "benchmarks" / "writers.py"), "--writers", "seglog-format"]
    command += ["--batches", "2", "--rounds", "1", "--report", str(report)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    reported = json.loads(report.read_text(encoding="utf-8"))
    assert [row["codec"] for row in reported["cells"]] == ["none", "gzip", "snappy", "lz4", "zstd"]
    assert all(row["ratio"] == 1.0 for row in reported["cells"])
    assert reported["missing"] == reported["below"] == []
    assert all(row["fallbacks"] == {} for row in reported["cells"])


def test_plain_messages_get_the_offsets_that_a_leader_would_give_them() -> None:
    sent = message(0, value=b"a", magic=1) + message(1, value=b"bc", magic=1)
    stored = making.with_offsets(sent, Cell(JAVA, Kind.PLAIN, "none", 1), 12)
    assert stored == message(10, value=b"a", magic=1) + message(11, value=b"bc", magic=1)


def test_of_a_wrapper_of_magic_1_only_its_own_offset_is_set() -> None:
    inner = (message(0, magic=1), message(1, magic=1))
    stored = making.with_offsets(wrapper(*inner, offset=1, magic=1), Cell(JAVA, Kind.PLAIN, "gzip", 1), 12)
    assert stored == wrapper(*inner, offset=11, magic=1)


def test_the_page_names_what_is_slow_and_what_is_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    row = {"writer": "Java", "version": "4", "kind": "plain", "codec": "lz4", "magic": 1, "ratio": 0.3}
    row |= {"recordsPerSecond": 3_000_000, "fallbacks": {"records": 2}, "libraryDecompressed": 5}
    row |= {"seconds": {"median": 2.0, "least": 1.9, "most": 2.2}}
    gone = {"writer": "kafkajs", "kind": "plain", "codec": "zstd", "magic": 2, "reason": "it has no zstd here"}
    report = json.loads(writers_part.REPORT.read_text(encoding="utf-8")) | {"cells": [row], "below": [row]}
    path = tmp_path / "writers.json"
    path.write_text(json.dumps(report | {"missing": [gone]}), encoding="utf-8")
    monkeypatch.setattr(writers_part, "REPORT", path)
    text = "\n".join(writers_part.lines())
    assert "| Java 4 | magic 1 | 3,000 (0.30, *f* 2, *l* 5) |" in text
    assert "Java 4, magic 1, lz4 (0.30)" in text
    assert "- kafkajs (plain, zstd): it has no zstd here" in text
    assert "slowest pass within 10% of the median" in text

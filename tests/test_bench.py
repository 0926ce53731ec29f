"""The benchmark at a tiny size: that all find the same contents, not how long they take."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("numpy")
pytest.importorskip("pyarrow")

REPOSITORY = Path(__file__).resolve().parent.parent
CLIENTS = REPOSITORY / "build" / "bench" / "peers" / "clients" / "built"
SETS = ("u100", "h100", "s100", "jlz4", "jzstd", "jsnappy", "jgzip", "m1u100", "m1lz4")


def bench(target: Path, programs: list[str], works: list[str]) -> list[dict[str, object]]:
    command = [sys.executable, str(REPOSITORY / "benchmarks" / "bench.py"), "--scale", "0.0002", "--rounds", "1"]
    command += ["--parts", "works", "--json", str(target), "--data", *SETS, "--programs", *programs, "--works", *works]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(target.read_text(encoding="utf-8"))
    assert not report["missing"]
    return report["results"]


def test_the_reference_finds_what_was_written(tmp_path: Path) -> None:
    results = bench(tmp_path / "bench.json", ["ours"], ["visit"])
    reference = [row for row in results if row["contender"] == "seglog-format reference"]
    assert len(reference) == len(SETS)
    assert all(row["agrees"] for row in reference)


@pytest.mark.skipif(not CLIENTS.exists(), reason="Python's clients are not built: make bench builds them")
def test_clients_of_kafka_find_what_was_written(tmp_path: Path) -> None:
    results = bench(tmp_path / "bench.json", ["clients"], ["crc", "objects", "encode"])
    assert {row["contender"] for row in results} == {"aiokafka", "kafka-python"}
    assert all(row["agrees"] for row in results)

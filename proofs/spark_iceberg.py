"""Spark reads Iceberg tables: every field of records of stock serializers, in each snapshot.

Iceberg is built for certain releases of Spark only. So a supported release is fetched, besides the installed one.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from pyiceberg.catalog.sql import SqlCatalog
from seglog_conformance.toolchains import child_processes

from proofs.harness import ROOT, Outcome
from proofs.serialized import KINDS, expected_rows, unpack_topics
from proofs.spark.maven import fetched
from proofs.spark.read_iceberg import plain
from seglog_format import LogConfig, PartitionWriter, encode_columns, export, open_partition

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from seglog_format.types import Message, Record

SPARK: Final = "pyspark==4.1.4"
ICEBERG: Final = "org.apache.iceberg:iceberg-spark-runtime-4.1_2.13:1.12.0"
HOME: Final = ROOT / "build" / "spark-iceberg"
READER: Final = ROOT / "proofs" / "spark" / "read_iceberg.py"
LONGEST_SECONDS: Final = 300
STEPS: Final = (100, 150, 400)
"""Where the log ends that a table is made of in several runs."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare nothing: there is one run."""
    del parser


def is_fetched() -> bool:
    """Return whether Spark and Iceberg have been fetched."""
    _, name, version = ICEBERG.split(":")
    return (HOME / "pyspark" / "pyspark").is_dir() and (HOME / f"{name}-{version}.jar").is_file()


def prove(_options: argparse.Namespace) -> Outcome:
    """Export to Iceberg tables, let Spark read each of their snapshots, and compare every field."""
    with tempfile.TemporaryDirectory(prefix="spark-iceberg-") as name:
        root = Path(name)
        unpack_topics(root / "logs")
        expected = {f"orders-{kind}": [_expected(root / "logs" / f"orders-{kind}-0", kind)] for kind in KINDS}
        for topic, kind in zip(tuple(expected), KINDS, strict=True):
            export(root / "logs", root / topic, topics=[topic], value=kind, format="iceberg", times="written")
        expected["plain"] = list(_in_steps(root / "more" / "plain-0", root / "plain"))
        found = _read([root / each for each in expected])
    failures = [
        f"{table}, snapshot {number}: {problem}"
        for table, snapshots in expected.items()
        for number, problem in enumerate(problems(snapshots, found[table]["snapshots"]))
        if problem
    ]
    facts = {
        "tables": len(expected),
        "snapshots": sum(map(len, expected.values())),
        "rows": sum(len(rows) for snapshots in expected.values() for rows in snapshots),
    }
    versions = {"spark": found["plain"]["version"], "iceberg-spark-runtime": ICEBERG.rpartition(":")[2]}
    return Outcome(facts, failures, versions)


def problems(expected: list[list[Any]], found: list[list[Any]]) -> Iterator[str]:
    """Yield the problem of each snapshot; empty for one with the expected rows."""
    if len(expected) != len(found):
        yield f"there are {len(found)}, not {len(expected)}"
    for rows, theirs in zip(expected, found, strict=False):
        differing = [name for row, their in zip(rows, theirs, strict=False) for name in row if row[name] != their[name]]
        yield f"{len(theirs)} rows, not {len(rows)}" if len(rows) != len(theirs) else ", ".join(sorted({*differing}))


def _expected(log: Path, kind: str | None = None) -> list[dict[str, Any]]:
    """Return the rows of a partition as the reference reads them, with decoded values."""
    with open_partition(log) as partition:
        records = list(partition.records())
    values = [record.value for record in records] if kind is None else expected_rows(kind)
    topic = log.name.rpartition("-")[0]
    return [_row(topic, record, value) for record, value in zip(records, values, strict=True)]


def _row(topic: str, record: Record | Message, value: Any) -> dict[str, Any]:  # noqa: ANN401 - decoded objects
    headers = [{"key": each.key, "value": each.value} for each in record.headers]
    row = {"topic": topic, "partition": 0, "offset": record.offset, "timestamp": record.timestamp_ms}
    row |= {"timestamp_type": 0, "key": record.key, "value": value, "headers": headers, "leader_epoch": 0}
    return {name: plain(each) for name, each in row.items()}


def _in_steps(log: Path, table: Path) -> Iterator[list[dict[str, Any]]]:
    """Let a log grow, and export it after each step; yield the rows of the table."""
    with PartitionWriter(log, LogConfig()) as writer:
        writer.become_leader(0)
        for first, end in zip((0, *STEPS), STEPS, strict=False):
            times = [1_700_000_000_000 + 10_000_000 * offset for offset in range(first, end)]
            values = [b"value %d" % offset if offset % 7 else None for offset in range(first, end)]
            columns = {"timestamp": pa.array(times, pa.timestamp("ms", "UTC")), "value": pa.array(values)}
            writer.append(b"".join(encode_columns(pa.table(columns), counts=[end - first])))
            export(log, table, format="iceberg", partition_by=["topic", "day"])
            yield _expected(log)


def _read(tables: Sequence[Path]) -> dict[str, Any]:
    """Return the rows that Spark reads, by the name of the table."""
    command = [sys.executable, str(READER), *map(_metadata_of, tables)]
    done = child_processes.run(
        command,
        directory=ROOT,
        changes=_environment(),
        capture_output=True,
        text=True,
        timeout=LONGEST_SECONDS,
        check=False,
    )
    if done.returncode:
        msg = f"Spark ended with {done.returncode}: {done.stderr[-2000:]}"
        raise RuntimeError(msg)
    return {table.name: json.loads(line) for table, line in zip(tables, done.stdout.splitlines(), strict=True)}


def _environment() -> dict[str, str]:
    """Fetch Spark and Iceberg, and return the environment in which Python finds them."""
    (jar,) = fetched([ICEBERG], HOME)
    packages = HOME / "pyspark"
    if not (packages / "pyspark").is_dir():
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(packages), SPARK]
        child_processes.run(pip, directory=ROOT, check=True)
    return {
        "PYTHONPATH": str(packages),
        "SPARK_HOME": str(packages / "pyspark"),
        "PYSPARK_SUBMIT_ARGS": f"--driver-class-path {jar} pyspark-shell",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "TZ": "UTC",
    }


def _metadata_of(table: Path) -> str:
    """Return the path of a table's newest metadata, from its catalog."""
    catalog = SqlCatalog("seglog", uri=f"sqlite:///{table}/catalog.db")
    try:
        found: str = catalog.load_table("seglog.records").metadata_location
    finally:
        catalog.close()
    return found

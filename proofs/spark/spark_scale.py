"""Measure memory, planning, bytes read and time of the data source for Spark as data grows.

The logs are valid: batches of 16 KiB with right offsets, times and checksums, and the indexes that a broker would
write. Memory is the kernel's peak for the Python processes of Spark, mapped files included. Bytes are the pages of
files that are in memory after a query, when none was before it.

The report is written after each section, with the load of the machine. ``--resume`` continues from there, and ``--anew
planning`` repeats a section, for example on an idle machine.
"""

from __future__ import annotations

import argparse
import os
import pickle
import struct
import sys
import tempfile
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from proofs.entries import sealed
from proofs.report_facts import proof_command, run_conditions
from proofs.spark.file_pages import evict, resident
from proofs.spark.readers import reader_of
from proofs.spark.session import Sections, load, quiet_session
from proofs.spark.watch import timed, watching
from seglog_format import build_batch, encode_batch, new_record

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pyspark.sql import DataFrame, SparkSession

MIB: Final = 2**20
SEGMENT: Final = 2**30
SEGMENTS, PARTITIONS = 10_000, 500
SMALL_BATCHES: Final = 4
"""Of each of the many segments."""
SIZES: Final = (512, 1024, 2048)
"""Of the logs whose reading is timed, in MiB."""
ROUNDS: Final = 3
RECORDS, VALUE = 32, 480
START_MS: Final = 1_700_000_000_000
DAY_MS, MINUTE_MS = 86_400_000, 60_000
MEMORY_LIMIT: Final = 512 * MIB
PLANNING_SECONDS: Final = 10
READ_SHARE: Final = 0.01
FIELDS: Final = {"base_offset": (0, ">q"), "base_timestamp": (27, ">q"), "max_timestamp": (35, ">q")}
SECTIONS: Final = ("planning", "reading", "whole_tasks", "many_segments", "point_queries")


# -- logs -----------------------------------------------------------------------------------------------------------


@cache
def template() -> bytearray:
    """Return a batch of about 16 KiB, whose records all differ."""
    values = (f"{number:08d} ".encode() + os.urandom(VALUE // 2).hex().encode() for number in range(RECORDS))
    records = [new_record(key=b"key-%d" % number, value=value, timestamp_ms=0) for number, value in enumerate(values)]
    return bytearray(encode_batch(build_batch(records)))


def batch(of: bytearray, base_offset: int, timestamp_ms: int) -> bytes:
    """Return the template at another offset and time."""
    for name, value in zip(FIELDS, (base_offset, timestamp_ms, timestamp_ms), strict=True):
        position, form = FIELDS[name]
        struct.pack_into(form, of, position, value)
    return sealed(of)


def write_segment(directory: Path, base_offset: int, count: int, times: tuple[int, int]) -> int:
    """Write a segment of `count` batches, with its indexes.

    Args:
        directory: directory of the partition.
        base_offset: base offset of the segment.
        count: number of batches.
        times: time of the first batch, and the step from one to the next in microseconds.

    Returns:
        The next offset.
    """
    directory.mkdir(parents=True, exist_ok=True)
    of, offset = template(), base_offset
    stem = directory / f"{base_offset:020d}"
    with (
        stem.with_suffix(".log").open("wb", MIB) as log,
        stem.with_suffix(".index").open("wb") as index,
        stem.with_suffix(".timeindex").open("wb") as time_index,
    ):
        for number in range(count):
            timestamp_ms = times[0] + number * times[1] // 1000
            last = offset + RECORDS - 1 - base_offset
            if number:  # a broker writes no index entry for the first batch
                index.write(struct.pack(">ii", last, number * len(of)))
                time_index.write(struct.pack(">qi", timestamp_ms, last))
            log.write(batch(of, offset, timestamp_ms))
            offset += RECORDS
    return offset


def large(root: Path, mebibytes: int) -> Path:
    """Write a partition of some MiB, in segments of at most a GiB, whose records span a day."""
    directory, offset, size = root / "large-0", 0, len(template())
    total = mebibytes * MIB // size
    step_us, done = DAY_MS * 1000 // total, 0
    while done < total and not directory.with_name("written").exists():
        count = min(SEGMENT // size, total - done)
        offset = write_segment(directory, offset, count, (START_MS + done * step_us // 1000, step_us))
        done += count
    directory.with_name("written").touch()
    return directory


def many(root: Path, segments: int, partitions: int) -> Path:
    """Write many small segments."""
    for number in range(0 if root.exists() else partitions):
        offset = 0
        for each in range(segments // partitions):
            times = (START_MS + each * DAY_MS, 1_000_000)
            offset = write_segment(root / f"many-{number}", offset, SMALL_BATCHES, times)
    return root


# -- measuring ------------------------------------------------------------------------------------------------------


def planning(root: Path, segments: int, partitions: int) -> dict[str, Any]:
    """Plan a read of many segments, whole and narrowed."""
    path = many(root / "many", segments, partitions)
    ways: dict[str, dict[str, str]] = {
        "all": {},
        "one_day_by_timestamp": {
            "startingTimestamp": str(START_MS + DAY_MS),
            "endingTimestamp": str(START_MS + 2 * DAY_MS),
        },
        "committed_only": {"isolationLevel": "read_committed"},
    }
    found: dict[str, Any] = {"segments": segments, "partitions": partitions, "load_average": load()["load_average"]}
    for name, options in ways.items():
        tasks, seconds = timed(reader_of(path, **options).partitions)
        found[name] = {"tasks": len(tasks), "pickled_bytes": len(pickle.dumps(tasks)), **seconds}
    return found


def reading(spark: SparkSession, path: Path, **options: str) -> dict[str, Any]:
    """Read every value; return the times, and the peak memory of the Python processes."""
    frame = spark.read.format("seglog").options(**options).load(str(path))
    query = frame.selectExpr("count(*)", "sum(length(value))")
    with watching() as watch:
        (row,), seconds = timed(query.collect)
    counted = {"records": row[0], "bytes_of_values": row[1], "tasks": frame.rdd.getNumPartitions()}
    return {**counted, **seconds, **watch.found(), "load_average": load()["load_average"]}


def in_turns(spark: SparkSession, root: Path, sizes: Sequence[int]) -> dict[str, Any]:
    """Read logs of several sizes in turns; return the round of each that took the least processor time."""
    logs = {size: large(root / f"large-{size}", size) for size in sizes}
    reading(spark, logs[sizes[0]])  # loads all code before the measurement
    rounds = [{size: reading(spark, path) for size, path in logs.items()} for _ in range(ROUNDS)]
    found = {}
    for size in sizes:
        every = [each[size] for each in rounds]
        peaks = {name: max(each[name] for each in every) for name in ("peak_rss_bytes", "peak_private_bytes")}
        found[str(size)] = min(every, key=lambda each: each["processor_seconds"]) | peaks
    return found


def whole_tasks(spark: SparkSession, root: Path, size: int) -> dict[str, Any]:
    """Read the largest log in tasks that cannot be cut: a whole partition, and whole segments."""
    path = large(root / f"large-{size}", size)
    found = {"committed_only": reading(spark, path, isolationLevel="read_committed")}
    for index in path.glob("*index"):
        index.rename(index.with_name(f"{index.name}.away"))
    try:
        found["without_indexes"] = reading(spark, path)
    finally:
        for index in path.glob("*.away"):
            index.rename(index.with_suffix(""))
    return found


def point_queries(spark: SparkSession, root: Path, size: int) -> dict[str, Any]:
    """Measure the bytes that a query for one offset, and queries for a minute, bring into memory."""
    directory = large(root / f"large-{size}", size)
    total = sum(path.stat().st_size for path in directory.iterdir())
    first_ms = START_MS + DAY_MS // 3
    last_ms = first_ms + MINUTE_MS

    def loaded(**options: str) -> DataFrame:
        return spark.read.format("seglog").options(pushedFilters="use", **options).load(str(directory))

    last = size * MIB // len(template()) * RECORDS
    minute = f"timestamp >= timestamp_millis({first_ms}) and timestamp < timestamp_millis({last_ms})"
    queries = {
        "one_offset": loaded().where(f"offset = {last * 2 // 3}"),
        "one_minute_by_options": loaded(startingTimestamp=str(first_ms), endingTimestamp=str(last_ms)),
        "one_minute_by_where": loaded().where(minute),
    }
    found: dict[str, Any] = {"bytes_of_files": total}
    for name, query in queries.items():
        evict(directory)
        before = resident(directory)
        count = query.count()
        read = resident(directory) - before
        found[name] = {
            "records": count,
            "in_memory_before": before,
            "bytes_read": read,
            "share": round(read / total, 6),
        }
    return found


def run(root: Path, sizes: Sequence[int], segments: int, partitions: int, report: Sections) -> None:
    """Run all sections that the report lacks."""
    report.section("planning", partial(planning, root, segments, partitions))
    if all(name in report.known for name in SECTIONS):
        return
    pushing = {"spark.sql.python.filterPushdown.enabled": "true"}
    spark = quiet_session("spark-scale", directory=root / "spark", settings=pushing)
    report.section("reading", lambda: in_turns(spark, root, sizes))
    report.section("whole_tasks", lambda: whole_tasks(spark, root, sizes[-1]))
    report.section("many_segments", lambda: reading(spark, many(root / "many", segments, partitions)))
    report.section("point_queries", lambda: point_queries(spark, root, sizes[-1]))
    spark.stop()


def failures(found: dict[str, Any]) -> list[str]:
    """Return the figures that exceed their limits."""
    readings = {**found["reading"], **found["whole_tasks"], "many_segments": found["many_segments"]}
    bad = [f"memory: {name}" for name, each in readings.items() if not 0 < each["peak_rss_bytes"] < MEMORY_LIMIT]
    plans = {name: each for name, each in found["planning"].items() if isinstance(each, dict)}
    bad += [f"planning: {name}" for name, each in plans.items() if each["wall_seconds"] >= PLANNING_SECONDS]
    points = {name: found["point_queries"][name] for name in ("one_offset", "one_minute_by_options")}
    bad += [f"bytes: {name}" for name, each in points.items() if each["share"] >= READ_SHARE or not each["records"]]
    return bad


def main() -> int:
    """Run and report; the exit status is 1 if a figure exceeds its limit."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="MiB of the logs, ascending")
    parser.add_argument("--segments", type=int, default=SEGMENTS)
    parser.add_argument("--partitions", type=int, default=PARTITIONS)
    parser.add_argument("--resume", action="store_true", help="go on with the sections that the report does not have")
    parser.add_argument("--anew", choices=SECTIONS, nargs="*", default=[], help="with --resume: make it again")
    parser.add_argument("--report", type=Path)
    options = parser.parse_args()
    sizes = tuple(map(int, options.sizes.split(",")))
    conditions = run_conditions(proof_command("spark-scale", options))
    report = Sections(options.report, conditions, resume=options.resume)
    wanted = {"commits", *SECTIONS} - {*options.anew}
    report.known = {name: each for name, each in report.known.items() if name in wanted}
    with tempfile.TemporaryDirectory(prefix="spark-scale-") as root:
        run(Path(root), sizes, options.segments, options.partitions, report)
    report.known["beyond_limits"] = failures(report.known)
    report.write()
    print(report.known["beyond_limits"])
    return int(bool(report.known["beyond_limits"]))


if __name__ == "__main__":
    sys.exit(main())

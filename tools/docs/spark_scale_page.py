"""The page about Spark and large data, from ``reports/spark-scale.json``: no number is written into it by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tools.reports import birth

if TYPE_CHECKING:
    from collections.abc import Iterator

REPORT: Final = Path(__file__).resolve().parents[2] / "reports" / "spark-scale.json"
PAGE: Final = "docs/explanation/spark-at-scale.md"
MIB, GIB, PIB = 2**20, 2**30, 2**50
CORES: Final = 1000
MAX_TASKS: Final = 10_000
"""Maximum tasks of a query by default; a test compares it with the data source."""
DRIVER_OF_SPARK: Final = "`spark.driver.memory`"

INTRODUCTION: Final = """\
# Spark at scale

Memory, planning and processor time of the [Spark data source](../how-to/query-with-spark.md) as data grows, with an
estimate for a petabyte. {birth} Each figure is that
of one run.

The logs were generated, with batches of 16 KiB, correct checksums and the indexes that a broker would write.

{load}

## Memory

The source maps files, and releases the pages that it has read every 64 MiB. So a task's memory does not depend on the
size of its segments. The table shows the peak of the largest Python process, mapped files included; the limit set for
it is 512 MiB. A task is one such process; Spark's settings determine the memory of Java.

| query | tasks | peak, MiB | private, MiB |
|---|---:|---:|---:|
"""

BUSY: Final = """\
Other work ran on the machine meanwhile (its load was up to {load}): wall-clock times say little, so processor time is
given beside them. That also varies: shared cores do less in a second."""

QUIET: Final = "The machine's load was {load} at most, the measuring itself included."
BUSY_FROM: Final = 3

QUERIES: Final = {
    "committed_only": "{largest} MiB, `read_committed`: a partition is one task",
    "without_indexes": "{largest} MiB without indexes: a segment is one task",
    "many_segments": "{segments:,} segments in {partitions} partitions",
}

PLANNING: Final = """\

## Planning

Spark plans the tasks on the driver. The source reads names, sizes and indexes, and only those parts of logs that an
index points at. {segments:,} segments in {partitions} partitions, at a load of {load_average}; the limit set for it is
ten seconds of wall-clock time:

| query | tasks | seconds | processor seconds | sent to Spark, bytes |
|---|---:|---:|---:|---:|
"""

PLANS: Final = {
    "all": "everything",
    "one_day_by_timestamp": "`startingTimestamp` and `endingTimestamp`, a twentieth of the records",
    "committed_only": "`isolationLevel` `read_committed`",
}

BYTES: Final = """\

## Bytes read by a selective query

A partition of {mebibytes:,} MiB whose records span a day, with none of it in memory before the query. The table counts
the pages that are in memory after it, including indexes and the system's read-ahead; the limit set for the first two is
one hundredth of the bytes:

| query | records | bytes | share |
|---|---:|---:|---:|
"""

POINTS: Final = {
    "one_offset": "`where offset = n`, push-down flag on",
    "one_minute_by_options": "a minute, by `startingTimestamp` and `endingTimestamp`",
    "one_minute_by_where": "a minute, by `where` on `timestamp`",
}

AFTER_BYTES: Final = """\

The last one must read to the end of the log: a filter asks for every record of that minute, and one that is out of
order may occur anywhere later. The options stop at the first later record.
"""

TIME: Final = """\

## Time

Counting records and adding up the lengths of their values, by all processes of Spark together, files in memory:

| log, MiB | tasks | seconds | processor seconds | on the line |
|---:|---:|---:|---:|---:|
"""

AFTER_TIME: Final = """\

The last column is the straight line fitted to all three: {fixed:.1f} seconds, and {per_gib:.2f} for each GiB. The
largest departure from it is {departure:.0%}. Starting tasks is in it, one for each 32 MiB here. The same log in a task
for each of its segments took {whole:.1f} seconds, and a petabyte is read in tasks that are larger still: so the line is
an upper bound for processor time.

## A petabyte on a thousand cores, on paper

No cluster has run this. The table extrapolates the line above, and names the source of all other values.

| what | on paper | from |
|---|---:|---|
| segments of 1 GiB | {segments:,} | 2<sup>50</sup> bytes |
| planning on the driver | {planning:,.0f} min | {per_segment:.2f} ms for each segment as measured, in one thread |
| sent from the driver to Spark in all | {pickled:,.0f} MiB | {pickled_each:.0f} bytes for each; see {driver} |
| tasks | {tasks:,} | no more than that are made by default; `splitBytes` asks for others |
| a task | {task:,.0f} GiB | read one segment after the other, with the memory above |
| processor time | {hours:,.0f} h | {per_gib:.2f} s for each GiB, which includes Spark's own part |
| by the clock, on 1,000 such cores | {clock:.1f} h | ten tasks for each core: up to a tenth more at the end |
| required disk throughput | {rate:,.0f} GiB/s | a GiB to each core in {per_gib:.2f} s; here it was in memory |

Three choices reduce the cost. Name columns in a schema: the source does not decode the others. Name offsets or times in
options: it does not open segments outside. And for checksums and counts, `option("table", "batches")` decodes no record
at all. Listing a million names over a network takes as long as that file system needs; give the path of a topic's
directories rather than of everything.
"""


def pages(notice: str) -> dict[str, str]:
    """Return the generated page by its path."""
    report = json.loads(REPORT.read_text(encoding="utf-8"))
    return {PAGE: notice + "".join(_parts(report))}


def _parts(report: dict[str, Any]) -> Iterator[str]:
    load = max(_loads(report))
    reported = (BUSY if load >= BUSY_FROM else QUIET).format(load=load)
    yield INTRODUCTION.format(birth=birth(report), load=reported)
    yield from _memory(report)
    planning = report["planning"]
    yield PLANNING.format(**planning)
    for name, text in PLANS.items():
        each = planning[name]
        seconds = f"{each['wall_seconds']:.1f} | {each['processor_seconds']:.1f}"
        yield f"| {text} | {each['tasks']:,} | {seconds} | {each['pickled_bytes']:,} |\n"
    points = report["point_queries"]
    yield BYTES.format(mebibytes=points["bytes_of_files"] // MIB)
    for name, text in POINTS.items():
        each = points[name]
        yield f"| {text} | {each['records']:,} | {each['bytes_read']:,} | {each['share']:.3%} |\n"
    yield AFTER_BYTES
    yield from _time(report)


def _loads(found: Any) -> Iterator[float]:  # noqa: ANN401 - from JSON
    """Yield the load averages of all sections."""
    if isinstance(found, dict):
        for name, each in found.items():
            yield from (each,) if name == "load_average" else _loads(each)


def _memory(report: dict[str, Any]) -> Iterator[str]:
    sizes = list(report["reading"])
    rows = {f"{int(size):,} MiB, cut into tasks": report["reading"][size] for size in sizes}
    values = {**report["planning"], "largest": f"{int(sizes[-1]):,}"}
    others = {**report["whole_tasks"], "many_segments": report["many_segments"]}
    rows |= {text.format(**values): others[name] for name, text in QUERIES.items()}
    for text, each in rows.items():
        peak, private = (each[name] // MIB for name in ("peak_rss_bytes", "peak_private_bytes"))
        yield f"| {text} | {each['tasks']:,} | {peak:,} | {private:,} |\n"


def line(points: list[tuple[float, float]]) -> tuple[float, float]:
    """Return the straight line nearest to some points: its value at 0, and its slope."""
    count = len(points)
    middle = sum(x for x, _ in points) / count, sum(y for _, y in points) / count
    climb = sum((x - middle[0]) * (y - middle[1]) for x, y in points) / sum((x - middle[0]) ** 2 for x, _ in points)
    return middle[1] - climb * middle[0], climb


def _time(report: dict[str, Any]) -> Iterator[str]:
    readings = {int(size): each for size, each in report["reading"].items()}
    points = [(size * MIB / GIB, each["processor_seconds"]) for size, each in readings.items()]
    fixed, per_gib = line(points)
    yield TIME
    for (size, each), (gib, seconds) in zip(readings.items(), points, strict=True):
        wall = f"{each['wall_seconds']:.1f}"
        yield f"| {size:,} | {each['tasks']} | {wall} | {seconds:.2f} | {fixed + per_gib * gib:.2f} |\n"
    planning, segments = report["planning"], PIB // GIB
    per_segment = planning["all"]["processor_seconds"] / planning["segments"]
    pickled = planning["all"]["pickled_bytes"] / planning["segments"]
    yield AFTER_TIME.format(
        fixed=fixed,
        per_gib=per_gib,
        departure=max(abs(seconds - fixed - per_gib * gib) / seconds for gib, seconds in points),
        whole=report["whole_tasks"]["without_indexes"]["processor_seconds"],
        segments=segments,
        planning=per_segment * segments / 60,
        per_segment=per_segment * 1000,
        pickled=pickled * segments / MIB,
        pickled_each=pickled,
        driver=DRIVER_OF_SPARK,
        tasks=MAX_TASKS,
        task=PIB / MAX_TASKS / GIB,
        hours=per_gib * segments / 3600,
        clock=per_gib * segments / 3600 / CORES,
        rate=CORES / per_gib,
    )

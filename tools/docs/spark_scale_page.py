"""The page about Spark and large data, from ``reports/spark-scale.json``: no number is written into it by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from seglog_format.spark.planning import MOST_TASKS

if TYPE_CHECKING:
    from collections.abc import Iterator

REPORT: Final = Path(__file__).resolve().parents[2] / "reports" / "spark-scale.json"
PAGE: Final = "docs/explanation/spark-at-scale.md"
MIB, GIB, PIB = 2**20, 2**30, 2**50
CORES: Final = 1000
DRIVER_OF_SPARK: Final = "`spark.driver.memory`"

INTRODUCTION: Final = """\
# Spark at scale

What the [data source for Spark](../how-to/query-with-spark.md) takes as data grows, and what follows for a petabyte.
Measured by `{command}` with {cores} cores.

The logs were made for it, with batches of 16 KiB, right checksums and the indexes that a broker would write.

{load}

## Memory

Files are mapped, and pages that were read are released every 64 MiB. So a task's memory does not depend on the size
of its segments. The peak of the largest Python process, mapped files included; the limit set for it is 512 MiB. A task
is one such process; Java's part is what Spark is given for it.

| query | tasks | peak, MiB | private, MiB |
|---|---:|---:|---:|
"""

BUSY: Final = """\
Other work ran on the machine meanwhile (its load was up to {load}): times by the clock say little, and processor time
is given beside them. It wavers, too: cores that are shared do less in a second."""

QUIET: Final = "The machine's load was {load} at most, the measuring itself included."
BUSY_FROM: Final = 3

QUERIES: Final = {
    "committed_only": "{largest} MiB, `read_committed`: a partition is one task",
    "without_indexes": "{largest} MiB without indexes: a segment is one task",
    "many_segments": "{segments:,} segments in {partitions} partitions",
}

PLANNING: Final = """\

## Planning

Spark asks for the tasks on the driver. Names, sizes and indexes are looked at, and of logs only what an index points
at. {segments:,} segments in {partitions} partitions, at a load of {load_average}; the limit set for it is ten seconds
by the clock:

| query | tasks | seconds | processor seconds | sent to Spark, bytes |
|---|---:|---:|---:|---:|
"""

PLANS: Final = {
    "all": "everything",
    "one_day_by_timestamp": "`startingTimestamp` and `endingTimestamp`, a twentieth of the records",
    "committed_only": "`isolationLevel` `read_committed`",
}

BYTES: Final = """\

## Bytes of a query for little

A partition of {mebibytes:,} MiB whose records span a day, nothing of it in memory before the query. Counted are the
pages that are in memory after it, indexes and what the system reads ahead included; the limit set for the first two is
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

The last one reads on to the end of the log, and has to: a filter asks for every record of that minute, and one that is
out of order may stand anywhere behind. The options stop at the first record that is younger.
"""

TIME: Final = """\

## Time

Counting records and adding up the lengths of their values, by all processes of Spark together, files in memory:

| log, MiB | tasks | seconds | processor seconds | of the line |
|---:|---:|---:|---:|---:|
"""

AFTER_TIME: Final = """\

The last column is the straight line through all three: {fixed:.1f} seconds, and {per_gib:.2f} for each GiB. The largest
departure from it is {departure:.0%}. Starting tasks is in it, one for each 32 MiB here. The same log in a task for each
of its segments took {whole:.1f} seconds, and a petabyte is read in tasks that are larger still: so the line is what it
takes at most, as far as processor time goes.

## A petabyte on a thousand cores, on paper

No cluster has run this. It is the line above carried on, with what does not come from it said beside it.

| what | on paper | from |
|---|---:|---|
| segments of 1 GiB | {segments:,} | 2<sup>50</sup> bytes |
| planning on the driver | {planning:,.0f} min | {per_segment:.2f} ms for each segment as measured, in one thread |
| what the driver sends to Spark in all | {pickled:,.0f} MiB | {pickled_each:.0f} bytes for each; see {driver} |
| tasks | {tasks:,} | no more than that are made by default; `splitBytes` asks for others |
| a task | {task:,.0f} GiB | read one segment after the other, with the memory above |
| processor time | {hours:,.0f} h | {per_gib:.2f} s for each GiB, which includes Spark's own part |
| by the clock, on 1,000 such cores | {clock:.1f} h | ten tasks for each core: up to a tenth more at the end |
| what the disks have to deliver | {rate:,.0f} GiB/s | a GiB to each core in {per_gib:.2f} s; here it was in memory |

Three things make less of it. Name columns in a schema: what is not named is not decoded. Name offsets or times in
options: segments outside are not opened. And `option("table", "batches")` decodes no record at all, where checksums and
counts are the question. Listing a million names over a network takes what that file system takes; give the path of a
topic's directories rather than of everything.
"""


def pages(notice: str) -> dict[str, str]:
    """Return the generated page by its path; none where there was no run yet.

    Args:
        notice: that it is generated.
    """
    if not REPORT.exists():
        return {}
    report = json.loads(REPORT.read_text(encoding="utf-8"))
    return {PAGE: notice + "".join(_parts(report))}


def _parts(report: dict[str, Any]) -> Iterator[str]:
    load = max(_loads(report))
    reported = (BUSY if load >= BUSY_FROM else QUIET).format(load=load)
    yield INTRODUCTION.format(command=report["command"], cores=report["cores"], load=reported)
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
    """Return the straight line nearest to some points: where it starts, and how it climbs."""
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
        tasks=MOST_TASKS,
        task=PIB / MOST_TASKS / GIB,
        hours=per_gib * segments / 3600,
        clock=per_gib * segments / 3600 / CORES,
        rate=CORES / per_gib,
    )

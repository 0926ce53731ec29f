"""Make tasks of a write die, fail and run twice: every row must be written once.

Some attempts raise an error after half of their rows, some kill their Python process. Others wait in the middle until
speculation has started a second attempt: then both go on and race, or the first is blocked until Spark ends it.
Afterwards the directory is verified, read by us, and given to a real broker, whose consumer must get the same rows.

Another write has the rows of the guide's example, but many more, in so many partitions that each task writes several.
"""

from __future__ import annotations

import base64
import os
import signal
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from seglog_conformance.toolchains import complaints

from proofs.harness import Outcome
from proofs.kafka.broker import TOPIC_CONFIG, Broker, replace_files
from proofs.kafka.oracle import TOOL_CHAIN, Oracle
from proofs.spark.cluster import WORKER_HOSTS, cluster
from proofs.spark.session import QUIET, load
from seglog_format import verify
from seglog_format.spark import prepared, session

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Iterator

    from pyspark.sql import Row, SparkSession

ROOT: Final = Path(__file__).resolve().parents[2]
RELEASE: Final = "4.1"
TOPIC: Final = "written"
PARTITIONS: Final = 3
TASKS: Final = 12
MANY_PARTITIONS: Final = 16
KINDS: Final = ("fails", "dies", "late", "raced", "held", "fine")
"""What happens to the first attempt of a task, in turn."""
DOUBLED: Final = ("raced", "held")
DOUBLE_SECONDS: Final = 240.0
"""Time limit for speculation to start a second attempt."""
HELD_SECONDS: Final = 120.0
"""Longer than a blocked attempt lives: Spark ends it as soon as the second attempt is done."""
CREATE_SECONDS: Final = 60


def trouble(noted: str) -> Callable[[Iterable[Row]], Iterator[Row]]:
    """Return rows unchanged, but make the first attempt of a task fail: in the middle, or when all is written.

    Args:
        noted: directory in which each attempt leaves a file that names its kind.
    """

    def through(rows: Iterable[Row]) -> Iterator[Row]:
        from pyspark import TaskContext  # noqa: PLC0415 - on the worker

        context = TaskContext.get()
        assert context is not None
        number, attempt = context.partitionId(), context.attemptNumber()
        kind = KINDS[number % len(KINDS)] if attempt == 0 else "again"
        Path(noted, f"{number}-{attempt}-{context.taskAttemptId()}-{kind}").touch()
        every = list(rows)
        yield from every[: len(every) // 2]
        if kind == "fails":
            msg = "made to fail"
            raise RuntimeError(msg)
        if kind == "dies":
            os.kill(os.getpid(), signal.SIGKILL)
        if kind in DOUBLED:
            wait_for_double(Path(noted), number)
        if kind == "held":
            time.sleep(HELD_SECONDS)
        yield from every[len(every) // 2 :]
        if kind == "late":
            msg = "made to fail in the end"
            raise RuntimeError(msg)

    return through


def wait_for_double(noted: Path, number: int) -> None:
    """Wait until another attempt of a task has started, or the time limit has passed."""
    deadline = time.monotonic() + DOUBLE_SECONDS
    while time.monotonic() < deadline and not any(noted.glob(f"{number}-[1-9]*")):
        time.sleep(0.05)


def write(spark: SparkSession, target: Path, noted: Path, count: int, *, codec: str, turn: int) -> None:
    """Write `count` rows in tasks whose first attempts fail."""
    noted.mkdir(parents=True)
    frame = spark.range(0, count, 1, TASKS).selectExpr(
        f"cast(concat({turn}, '-', id) as binary) as value",
        "case when id % 5 = 0 then null else cast(concat('k', id % 50) as binary) end as key",
        f"int(id % {PARTITIONS}) as partition",
        "timestamp_millis(1700000000000 + id) as timestamp",
    )
    troubled = spark.createDataFrame(frame.rdd.mapPartitions(trouble(str(noted))), frame.schema)
    writer = troubled.write.format("seglog").option("topic", TOPIC).option("codec", codec)
    writer.option("segmentBytes", "64k").mode("append").save(str(target))


def rows_of(spark: SparkSession, target: Path) -> Counter[tuple[int, str]]:
    """Return the count of each value in each partition."""
    frame = spark.read.format("seglog").load(str(target)).selectExpr("partition", "cast(value as string) as value")
    return Counter((row["partition"], row["value"]) for row in frame.collect())


def wrong_partitions(spark: SparkSession, target: Path, count: int) -> list[str]:
    """Write the guide's example with `count` rows, and return the partitions whose rows or offsets are wrong."""
    frame = spark.range(count).selectExpr("cast(id as string) as value", f"int(id % {MANY_PARTITIONS}) as partition")
    writer = prepared(frame).write.format("seglog").option("topic", "numbers").option("codec", "lz4")
    writer.mode("append").save(str(target))
    rows = (
        spark.read.format("seglog").load(str(target)).selectExpr("partition", "offset", "bigint(string(value)) as id")
    )
    summed = rows.groupBy("partition").agg({"*": "count", "offset": "max", "id": "sum"}).collect()
    found = {row["partition"]: (row["count(1)"], row["max(offset)"] + 1, row["sum(id)"]) for row in summed}
    wanted = {}
    for number in range(min(MANY_PARTITIONS, count)):
        ids = range(number, count, MANY_PARTITIONS)
        wanted[number] = (len(ids), len(ids), sum(ids))
    distinct = rows.selectExpr("partition", "offset").distinct().count()
    names = [f"numbers-{number}" for number in wanted.keys() | found.keys() if wanted.get(number) != found.get(number)]
    return sorted(names) + ([] if distinct == count else [f"{count - distinct} rows share an offset"])


def by_broker(target: Path, home: Path) -> Counter[tuple[int, str]]:
    """Return the same counts from a real broker's consumer."""
    home.mkdir()
    broker = Broker(RELEASE, home)
    found: Counter[tuple[int, str]] = Counter()
    with Oracle(RELEASE) as oracle:
        with broker.running():
            topics = {TOPIC: {"partitions": PARTITIONS, "config": TOPIC_CONFIG}}
            oracle.must("create", bootstrap=broker.address, topics=topics)
            deadline = time.monotonic() + CREATE_SECONDS
            while len(list(broker.logs.glob(f"{TOPIC}-*/partition.metadata"))) < PARTITIONS:
                assert time.monotonic() < deadline, "the broker makes no partitions"
                time.sleep(0.2)
        for number in range(PARTITIONS):
            replace_files(broker.logs / f"{TOPIC}-{number}", target / f"{TOPIC}-{number}")
        with broker.running():
            for number in range(PARTITIONS):
                asked = {"topic": TOPIC, "partition": number, "isolation": "read_committed"}
                answer = oracle.must("consume", bootstrap=broker.address, **asked)
                found.update((number, _text(record["value"])) for record in answer["records"])
    return found


def _text(value: str) -> str:
    return base64.b64decode(value).decode()


def run(root: Path, count: int, many: int) -> dict[str, Any]:
    """Write twice into one directory, and many rows into another; return the results."""
    python_path = os.pathsep.join([str(ROOT), str(ROOT / "tools")])
    os.environ["PYTHONPATH"] = python_path
    with cluster(root / "cluster", python_path) as master:
        found, ours, expected = written(root, master, count, many)
    target = root / "written"
    served = None if complaints(TOOL_CHAIN) else by_broker(target, root / "broker")
    return {
        **found,
        "missing": sum((expected - ours).values()),
        "twice_or_foreign": sum((ours - expected).values()),
        "segments": len(list(target.glob("*/*.log"))),
        "left_over": sorted(path.name for path in target.iterdir() if path.name.startswith("_")),
        "findings": [str(each.message) for each in verify(target) if each.severity.value != "note"][:20],
        "broker_differs": "no broker here" if served is None else sum(((served - ours) + (ours - served)).values()),
    }


Values = Counter[tuple[int, str]]


def written(root: Path, master: str, count: int, many: int) -> tuple[dict[str, Any], Values, Values]:
    """Write; return the numbers of attempts, the rows that we read, and the expected rows."""
    settings = {
        **QUIET,
        "spark.speculation": "true",
        "spark.speculation.interval": "200ms",
        "spark.speculation.multiplier": "1.5",
        "spark.speculation.quantile": "0.3",
        "spark.speculation.minTaskRuntime": "1s",
        "spark.executor.memory": "1g",
        "spark.local.dir": str(root / "spark"),
        "spark.sql.warehouse.dir": str(root / "warehouse"),
    }
    spark = session("spark-retries", master=master, settings=settings)
    target = root / "written"
    for turn, codec in enumerate(("none", "zstd")):
        write(spark, target, root / "noted" / str(turn), count, codec=codec, turn=turn)
    ours = rows_of(spark, target)
    wrong = wrong_partitions(spark, root / "many", many)
    spark.stop()
    attempts = [path.name.split("-") for path in (root / "noted").glob("*/*")]
    doubled = [attempt for number, attempt, *_ in attempts if KINDS[int(number) % len(KINDS)] in DOUBLED]
    found = {
        "hosts": len(WORKER_HOSTS),
        "rows": count * 2,
        "tasks": TASKS * 2,
        "attempts": len(attempts),
        "attempts_made_to": dict(Counter(kind for *_, kind in attempts if kind not in {"fine", "again"})),
        "held_back_until_doubled": doubled.count("0"),
        "speculative_duplicates": len(doubled) - doubled.count("0"),
        "many_rows": many,
        "many_partitions": MANY_PARTITIONS,
        "many_wrong": wrong,
    }
    return found, ours, Counter((each % PARTITIONS, f"{turn}-{each}") for turn in range(2) for each in range(count))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the proof's own options."""
    parser.add_argument("--count", type=int, default=6000, help="rows")
    parser.add_argument("--many", type=int, default=1_000_000, help="rows of the write in many partitions")


def prove(options: argparse.Namespace) -> Outcome:
    """Write with tasks that are killed, fail and run twice; no row may be missing or repeated."""
    with tempfile.TemporaryDirectory(prefix="spark-retries-") as root:
        found = run(Path(root), options.count, options.many)
    return Outcome({**load(), **found}, list(failures_of(found)))


def failures_of(found: dict[str, Any]) -> Iterator[str]:
    """Yield the failures in a result; it proves nothing if too few tasks ran twice."""
    if found["speculative_duplicates"] < found["held_back_until_doubled"]:
        yield "fewer tasks ran twice than were held back for it"
    for name in ("missing", "twice_or_foreign", "findings", "many_wrong"):
        if found[name]:
            yield f"{name}: {found[name]}"
    if found["broker_differs"] not in {0, "no broker here"}:
        yield f"rows that differ at a broker: {found['broker_differs']}"

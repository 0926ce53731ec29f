"""``make bench NAME=spark``: our data source for Spark against its Kafka connector, in one session on the same records.

A real broker gets the records, uncompressed and with zstd. The connector reads them through the broker, all others from
a copy of its directories. All take turns; a ratio is that of the medians, and that of the best rounds is reported
beside it. The report is written after each section, and ``--resume`` continues a stopped run.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
PEERS: Final = ROOT / "build" / "spark-peers"
"""Directory with pandas and aiokafka, which only the loop by hand needs."""
sys.path.append(str(PEERS))
os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(ROOT / "benchmarks"), str(PEERS)])

import google_crc32c  # noqa: E402
from harness import at_offset, java_version  # noqa: E402
from seglog_conformance.toolchains import child_processes  # noqa: E402
from spark_peers import Ceiling, by_hand, prepare_ceiling  # noqa: E402

from proofs.report_facts import BENCHMARKED, run_conditions  # noqa: E402
from proofs.spark.connector import Clients, connector, connector_session, new_broker, sink  # noqa: E402
from proofs.spark.file_pages import evict, resident  # noqa: E402 - paths come first
from proofs.spark.session import Sections  # noqa: E402
from seglog_format import LogConfig, PartitionWriter, build_batch, encode_batch, new_record  # noqa: E402
from seglog_format.spark import projection  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pyspark.sql import DataFrame, SparkSession

    from proofs.kafka.broker import Broker

    Case = Callable[[], object]

RECORDS: Final = 448_244
CODECS: Final = ("none", "zstd")
PARTITIONS: Final = 4
TOPIC_CONFIG: Final = {"retention.ms": "-1", "segment.bytes": str(32 * 2**20)}
TURN_BY_HAND: Final = 1
"""The only round with the loop by hand, which takes twenty times as long as the others."""
POINT_ROUNDS: Final = 7
POINT_WARM_UPS: Final = 5
"""Number of first rounds that do not count: in them, Java compiles the planning of such a query."""
LIFETIME_SECONDS: Final = 3600

TARGETS: Final = {
    ("none", "count", "connector"): 2.2,
    ("none", "sum", "connector"): 2.2,
    ("none", "materialise", "connector"): 2.2,
    ("none", "parquet", "connector"): 1.3,
    ("zstd", "sum", "connector"): 2.0,
    ("zstd", "materialise", "connector"): 2.0,
    ("zstd", "count", "connector"): 1.4,
    ("zstd", "parquet", "connector"): 1.5,
    ("none", "count", "by hand"): 4.0,
    ("none", "sum", "by hand"): 4.0,
    ("none", "materialise", "by hand"): 4.0,
}
"""Required ratio of our speed to a peer's."""
CEILING: Final = 1.25
"""Maximum ratio of our time to the ceiling's."""
POINT_SECONDS: Final = 0.5
POINT_RATIO: Final = 1.0
MIN_SHARE: Final = 0.01
"""Maximum share of the bytes of a large log that a query for one offset or one minute may read."""

BIG_SEGMENT: Final = 2**30
BIG_VALUE: Final = 1000
BIG_BATCH: Final = 16
BIG_STEP_MS: Final = 20
"""Milliseconds between records of the large log."""
START_MS: Final = 1_700_000_000_000


def records(spark: SparkSession, topic: str, count: int) -> DataFrame:
    """Return records with values of 200 to 1000 bytes that compress about like text, nearly all with a key."""
    size = "int(200 + pmod(xxhash64(id), 801))"
    text = "repeat(concat(sha2(string(id), 256), ' the quick brown fox jumps over it '), 11)"
    return spark.range(0, count, 1, 4).selectExpr(
        f"'{topic}' as topic",
        f"int(id % {PARTITIONS}) as partition",
        "case when id % 50 = 0 then null else cast(concat('key-', id % 10000) as binary) end as key",
        f"cast(substring({text}, 1, {size}) as binary) as value",
    )


def fill(spark: SparkSession, broker: Broker, count: int) -> None:
    """Send the records to the broker once for each codec."""
    Clients(spark, broker.address).create({name_of(codec): (PARTITIONS, TOPIC_CONFIG) for codec in CODECS})
    for codec in CODECS:
        options = {"kafka_compression_type": codec, "kafka_batch_size": "32768", "kafka_linger_ms": "50"}
        sink(records(spark, name_of(codec), count), broker.address, **options)


def name_of(codec: str) -> str:
    """Return the name of the topic of a codec."""
    return f"records-{codec}"


class Measuring:
    """The works of all peers.

    Attributes:
        spark: the session.
        broker: the broker with the records.
        logs: a copy of its directories.
        root: directory for written files.
    """

    def __init__(self, spark: SparkSession, broker: Broker, logs: Path, root: Path) -> None:
        self.spark = spark
        self.broker = broker
        self.logs = logs
        self.root = root

    def ours(self, codec: str, columns: tuple[str, ...] = ()) -> DataFrame:
        """Return a frame of our source, with the columns of the connector or only some."""
        reader = self.spark.read.format("seglog").option("subscribe", name_of(codec)).option("pushedFilters", "use")
        return (reader.schema(projection(*columns)) if columns else reader).load(str(self.logs))

    def peers(self, codec: str, *, with_by_hand: bool) -> dict[str, DataFrame]:
        """Return a frame of each peer."""
        found = {"seglog": self.ours(codec), "connector": connector(self.spark, self.broker.address, [name_of(codec)])}
        if codec == "none":
            found["ceiling"] = self.spark.read.format("ceiling").load(str(self.root / "ceiling"))
            if with_by_hand and (PEERS / "aiokafka").is_dir():
                found["by hand"] = by_hand(self.spark, str(self.logs), name_of(codec))
        return found

    def touch(self) -> None:
        """Read every file into memory: the system may have evicted some, which would slow down the first peer."""
        for directory in (self.broker.logs, self.logs, self.root / "ceiling"):
            for path in directory.rglob("*"):
                if path.is_file():
                    path.read_bytes()

    def works(self, frame: DataFrame) -> dict[str, Case]:
        """Return the works on a frame."""
        target = str(self.root / "parquet")
        return {
            "count": frame.count,
            "sum": lambda: frame.selectExpr("sum(length(value))").collect()[0][0],
            "materialise": lambda: frame.write.format("noop").mode("overwrite").save(),
            "parquet": lambda: frame.write.mode("overwrite").parquet(target),
        }

    def codec(self, codec: str, rounds: int) -> dict[str, dict[str, list[float]]]:
        """Return the seconds of each work of each peer, in turns; the first round does not count."""
        seconds: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        answers: dict[str, set[object]] = defaultdict(set)
        for turn in range(rounds + 1):
            frames = self.peers(codec, with_by_hand=turn == TURN_BY_HAND)
            self.touch()
            works = {peer: self.works(frame) for peer, frame in frames.items()}
            works["seglog, offset only"] = {"count": self.ours(codec, ("offset",)).count}
            works["seglog, value only"] = {
                "sum": self.works(self.ours(codec, ("value",)))["sum"],
            }
            for work in ("count", "sum", "materialise", "parquet"):
                for peer, known in works.items():
                    if work in known:
                        taken, answer = timed(known[work])
                        answers[work].add(answer)
                        if turn:
                            seconds[work][peer].append(taken)
        assert all(len(each) == 1 for each in answers.values()), answers
        return seconds

    def point(self, count: int) -> dict[str, list[float]]:
        """Return the seconds of a query for one offset."""
        offset = count // PARTITIONS // 2 + 77
        wanted = f"partition = 1 and offset = {offset}"
        topic = name_of("none")
        starts = json.dumps({topic: {str(each): offset if each == 1 else 0 for each in range(PARTITIONS)}})
        ends = json.dumps({topic: {str(each): offset + 1 if each == 1 else 0 for each in range(PARTITIONS)}})
        cases: dict[str, Case] = {
            "seglog": lambda: self.ours("none").where(wanted).collect(),
            "connector": lambda: connector(self.spark, self.broker.address, [topic]).where(wanted).collect(),
            "connector with offset options": lambda: connector(
                self.spark, self.broker.address, [topic], startingOffsets=starts, endingOffsets=ends
            ).collect(),
        }
        seconds: dict[str, list[float]] = defaultdict(list)
        for turn in range(POINT_WARM_UPS + POINT_ROUNDS):
            for name, case in cases.items():
                taken, found = timed(case)
                assert [row["offset"] for row in found] == [offset], name  # type: ignore[attr-defined]
                if turn >= POINT_WARM_UPS:
                    seconds[name].append(taken)
        return seconds


def in_turns(measuring: Measuring, codec: str, rounds: int) -> dict[str, Any]:
    """Return the results of a codec for the report."""
    return rounded(measuring.codec(codec, rounds))


def timed(case: Case) -> tuple[float, object]:
    """Return the seconds and the result of a call."""
    started = time.perf_counter()
    answer = case()
    return time.perf_counter() - started, answer


def make_big(directory: Path, size: int) -> int:
    """Write a log of about `size` bytes in segments of 1 GiB, a record each few milliseconds; return its count."""
    made = [new_record(value=os.urandom(BIG_VALUE), timestamp_ms=each * BIG_STEP_MS) for each in range(BIG_BATCH)]
    template = encode_batch(build_batch(made))
    config = LogConfig(segment_bytes=BIG_SEGMENT, retention_ms=-1)
    offset = 0
    with PartitionWriter(directory, config) as writer:
        for _ in range(size // len(template)):
            first_ms = START_MS + offset * BIG_STEP_MS
            data = bytearray(at_offset(template, offset))
            data[27:35] = first_ms.to_bytes(8, "big")
            data[35:43] = (first_ms + (BIG_BATCH - 1) * BIG_STEP_MS).to_bytes(8, "big")
            data[17:21] = google_crc32c.value(bytes(data[21:])).to_bytes(4, "big")
            writer.append_as_follower(bytes(data))
            offset += BIG_BATCH
    return offset


def big(spark: SparkSession, root: Path, size: int) -> dict[str, Any]:
    """Return the bytes of a large log that are read for one offset, and for one minute, as pages in memory."""
    logs = root / "big"
    count = make_big(logs / "big-0", size)
    total = sum(path.stat().st_size for path in logs.rglob("*") if path.suffix in {".log", ".index", ".timeindex"})
    minute = START_MS + count // 2 * BIG_STEP_MS

    def loaded(**options: str) -> DataFrame:
        return spark.read.format("seglog").options(pushedFilters="use", **options).load(str(logs))

    frame = loaded()
    between = f"timestamp >= timestamp_millis({minute}) and timestamp < timestamp_millis({minute + 60_000})"
    ending = loaded(endingTimestamp=str(minute + 60_000))
    in_order = loaded(maxLateness="0")
    cases = {
        "one offset": (frame.where(f"offset = {count * 2 // 3}"), 1),
        "one minute": (ending.where(between), 60_000 // BIG_STEP_MS),
        "one minute, by filters alone": (frame.where(between), 60_000 // BIG_STEP_MS),
        "one minute, by filters, records in order": (in_order.where(between), 60_000 // BIG_STEP_MS),
    }
    found: dict[str, Any] = {"bytes": total, "records": count}
    for name, (query, expected) in cases.items():
        evict(logs)
        before = resident(logs)
        taken, rows = timed(query.count)
        assert rows == expected, (name, rows)
        fetched = resident(logs) - before
        wanted = expected * (BIG_VALUE + 10)
        found[name] = {"bytes_read": fetched, "share": round(fetched / total, 5), "seconds_cold": round(taken, 3)}
        found[name]["bytes_of_the_answer"] = wanted
    shutil.rmtree(logs)
    return found


def ratios(codecs: Mapping[str, Any], point: Mapping[str, list[float]] | None) -> list[dict[str, Any]]:
    """Return the required and the measured ratios."""
    found: list[dict[str, Any]] = []
    for (codec, work, peer), wanted in TARGETS.items():
        times = codecs.get(codec, {}).get(work, {})
        if peer in times:
            ratio = compared(times[peer], times["seglog"])
            found.append({"what": f"{codec}: {work}, {peer} / seglog", "at_least": wanted, **ratio})
    for work, times in codecs.get("none", {}).items():
        if "ceiling" in times:
            ratio = compared(times["seglog"], times["ceiling"])
            found.append({"what": f"none: {work}, seglog / ceiling", "at_most": CEILING, **ratio})
    if point:
        found.append({"what": "one offset: connector with offset options / seglog", "at_least": POINT_RATIO}
                     | compared(point["connector with offset options"], point["seglog"]))  # fmt: skip
        seconds = statistics.median(point["seglog"])
        found.append({"what": "one offset: seconds of seglog", "at_most": POINT_SECONDS, "median": round(seconds, 3)})
    for each in found:
        each["is_met"] = each["median"] >= each["at_least"] if "at_least" in each else each["median"] <= each["at_most"]
    return found


def compared(ones: list[float], others: list[float]) -> dict[str, float]:
    """Return the ratios of the medians and of the best rounds."""
    median = statistics.median(ones) / statistics.median(others)
    return {"median": round(median, 2), "best": round(min(ones) / min(others), 2)}


def rounded(seconds: Mapping[str, Any]) -> dict[str, Any]:
    """Return seconds rounded to milliseconds."""
    return {
        name: [round(one, 3) for one in each] if isinstance(each, list) else rounded(each)
        for name, each in seconds.items()
    }


class Report(Sections):
    """The results so far, and the ratios."""

    def write(self) -> None:
        """Write the report in its present state."""
        codecs = {codec: self.known[f"seconds, {codec}"] for codec in CODECS if f"seconds, {codec}" in self.known}
        self.known["ratios"] = ratios(codecs, self.known.get("seconds, one offset"))
        super().write()


def run(root: Path, options: argparse.Namespace, report: Report) -> None:
    """Run all sections."""
    count = int(RECORDS * options.scale)
    child_processes.run(
        [sys.executable, "-m", "seglog_format.cli", "warm"], directory=ROOT, check=True, stdout=subprocess.DEVNULL
    )
    spark = connector_session("bench-spark", root)
    spark.dataSource.register(Ceiling)
    broker = new_broker(root / "broker", {})
    with broker.running(LIFETIME_SECONDS):
        report.conditions["versions"] |= {"java": java_version(), "spark": spark.version}
        fill(spark, broker, count)
        logs = root / "logs"
        shutil.copytree(broker.logs, logs, ignore=lambda _, names: [each for each in names if each.startswith(".")])
        prepare_ceiling(spark, str(logs), name_of("none"), root / "ceiling")
        measuring = Measuring(spark, broker, logs, root)
        for codec in CODECS:
            report.section(f"seconds, {codec}", partial(in_turns, measuring, codec, options.rounds))
        report.section("seconds, one offset", lambda: rounded(measuring.point(count)))
        report.known["data"] = {
            "records": count,
            "log_bytes": {
                codec: sum(path.stat().st_size for path in logs.glob(f"{name_of(codec)}-*/*.log")) for codec in CODECS
            },
        }
    report.section("large log", lambda: big(spark, root, int(2 * 2**30 * options.scale)))
    report.write()
    spark.stop()


def main() -> int:
    """Measure, and print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=1.0, help="of the data")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--resume", action="store_true", help="run only the sections that the report lacks")
    parser.add_argument("--note", default="", help="other work on the machine, for the report")
    parser.add_argument("--report", type=Path, default=ROOT / "build" / "bench-spark.json")
    options = parser.parse_args()
    command = f"make bench NAME=spark ARGS='--scale {options.scale:g} --rounds {options.rounds}'"
    conditions = run_conditions(
        command, versions={"connector": "spark-sql-kafka-0-10_2.13 4.2.0"}, measures=BENCHMARKED
    )
    report = Report(options.report, conditions, resume=options.resume)
    report.known["note"] = options.note
    with tempfile.TemporaryDirectory(prefix="bench-spark-") as root:
        run(Path(root), options, report)
    for each in report.known["ratios"]:
        wanted = f">= {each['at_least']}" if "at_least" in each else f"<= {each['at_most']}"
        print(f"{each['what']:45} {each['median']:6} {wanted:8} {'' if each['is_met'] else 'missed'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

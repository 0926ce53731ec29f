"""Compare the rows of the data source for Spark with those of Spark's Kafka connector.

A real broker gets twenty topics: every codec, headers, nulls, transactions that end, are aborted or stay open,
compaction, other timestamps, deleted records. The rows that the connector reads through the broker, in both isolation
levels, are compared with those that we read from the directories: while the broker runs, and after it has stopped.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from proofs.harness import Outcome
from proofs.kafka.waiting import wait_for
from proofs.spark.connector import RELEASE, Clients, connector, connector_session, new_broker, sink

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
from harness import java_version

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from pyspark.sql import DataFrame, SparkSession

    from proofs.kafka.broker import Broker

CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
ISOLATIONS: Final = ("read_uncommitted", "read_committed")
KEEP: Final = {"retention.ms": "-1", "segment.bytes": "1048576", "index.interval.bytes": "4096"}
COMPACT: Final = {
    **KEEP,
    "cleanup.policy": "compact",
    "min.cleanable.dirty.ratio": "0.0",
    "internal.segment.bytes": "65536",
    "max.compaction.lag.ms": "1000",
    "delete.retention.ms": "600000",
}
BROKER: Final = {
    "log.cleaner.enable": "true",
    "log.cleaner.backoff.ms": "500",
    "log.flush.start.offset.checkpoint.interval.ms": "500",
    "log.initial.task.delay.ms": "500",
    "log.segment.delete.delay.ms": "500",
}
TRANSACTION_RECORDS: Final = 8
CLEANING_SECONDS: Final = 120
LIFETIME_SECONDS: Final = 1800


@dataclass(frozen=True, slots=True)
class Topic:
    """One topic, with the way to fill it.

    Attributes:
        name: of the topic.
        kind: how it is filled.
        codec: codec of its producers.
        partitions: number of partitions.
        config: configuration of the topic.
    """

    name: str
    kind: str
    codec: str = "none"
    partitions: int = 2
    config: Mapping[str, str] = field(default_factory=lambda: KEEP)


def topics() -> list[Topic]:
    """Return all twenty topics."""
    return [
        *(Topic(f"plain-{codec}", "plain", codec, partitions=3) for codec in CODECS),
        *(Topic(f"transactions-{codec}", "transactions", codec) for codec in CODECS),
        *(Topic(f"compacted-{codec}", "compacted", codec, config=COMPACT) for codec in CODECS),
        Topic("compacted-transactions", "transactions", "lz4", config=COMPACT),
        Topic("append-time", "plain", "zstd", config={**KEEP, "message.timestamp.type": "LogAppendTime"}),
        Topic("recompressed", "plain", "lz4", config={**KEEP, "compression.type": "gzip"}),
        Topic("deleted-records", "deleted", "snappy", partitions=1),
        Topic("nothing", "nothing"),
    ]


def rows(spark: SparkSession, topic: Topic, count: int, keys: int) -> DataFrame:
    """Return the rows to produce to a topic: nulls, empty and unusual values, and headers of every kind."""
    some = _headers(("'trace'", "string(id)"), ("'ümlaut'", "null"))
    twice = _headers(("'a'", "'1'"), ("'a'", "''"), ("''", "'x'"))
    none = "cast(array() as array<struct<key:string,value:binary>>)"
    return spark.range(count).selectExpr(
        f"'{topic.name}' as topic",
        f"int(id % {topic.partitions}) as partition",
        f"case when id % 7 = 0 then null else cast(concat('k', id % {keys}) as binary) end as key"
        if topic.kind != "compacted"
        else f"cast(concat('k', id % {keys}) as binary) as key",
        "cast(case when id % 11 = 0 then null when id % 13 = 0 then ''"
        " else concat(id, '-', repeat(sha2(string(id), 256), int(id % 19))) end as binary) as value",
        f"case id % 4 when 0 then null when 1 then {some} when 2 then {twice} else {none} end as headers",
    )


def _headers(*pairs: tuple[str, str]) -> str:
    structs = (f"named_struct('key', {key}, 'value', cast({value} as binary))" for key, value in pairs)
    return f"array({', '.join(structs)})"


class Filling:
    """Fills the topics of a broker.

    Attributes:
        open: producers whose transactions stay open.
    """

    def __init__(self, spark: SparkSession, broker: Broker, count: int, seed: int) -> None:
        self.open: list[Any] = []
        self._spark = spark
        self._broker = broker
        self._clients = Clients(spark, broker.address)
        self._count = count
        self._dice = random.Random(seed)

    def fill(self, wanted: Sequence[Topic]) -> None:
        """Create topics and fill them."""
        self._clients.create({topic.name: (topic.partitions, topic.config) for topic in wanted})
        for topic in wanted:
            if topic.kind == "transactions":
                self._transactions(topic)
            elif topic.kind != "nothing":
                for _ in range(2):
                    self._plain(topic)
            if topic.kind == "deleted":
                self._clients.delete_records(topic.name, 0, self._count // 3)
        self._wait_for_cleaning([topic for topic in wanted if topic.config is COMPACT])

    def _plain(self, topic: Topic) -> None:
        frame = rows(self._spark, topic, self._count, keys=60)
        sink(frame, self._broker.address, kafka_compression_type=topic.codec, kafka_linger_ms="20")

    def _transactions(self, topic: Topic) -> None:
        """Run several producers at once, whose transactions are committed, aborted, or stay open."""
        producers = [
            self._clients.producer(
                transactional_id=f"{topic.name}-{number}",
                transaction_timeout_ms="800000",
                compression_type=topic.codec,
                linger_ms="5",
            )
            for number in range(3)
        ]
        for producer in producers:
            producer.initTransactions()
        for turn in range(self._count // (TRANSACTION_RECORDS * 10)):
            self._turn(topic, producers, turn)
        producers[0].beginTransaction()
        self._send(topic, producers[0], "open")
        producers[0].flush()
        self._send(topic, plain := self._clients.producer(compression_type=topic.codec), "behind")
        plain.close()
        self.open.append(producers[0])
        for producer in producers[1:]:
            producer.close()

    def _turn(self, topic: Topic, producers: Sequence[Any], turn: int) -> None:
        for producer in producers:
            producer.beginTransaction()
        for part in range(2):
            for number, producer in enumerate(producers):
                self._send(topic, producer, f"{turn}-{part}-{number}")
                producer.flush()
        for producer in producers:
            (producer.abortTransaction if self._dice.random() < 0.4 else producer.commitTransaction)()  # noqa: PLR2004 - a share

    def _send(self, topic: Topic, producer: Any, name: str) -> None:
        for number in range(TRANSACTION_RECORDS):
            key = f"k{self._dice.randrange(40)}".encode()
            value = None if number == 0 else f"{name}-{number}".encode() * self._dice.randrange(1, 20)
            record = self._clients.record(topic.name, key, value)
            if number % 3 == 0:
                record.headers().add("n", str(number).encode())
            producer.send(record)

    def _wait_for_cleaning(self, compacted: Sequence[Topic]) -> None:
        """Wait until the broker has compacted each of these topics and has deleted the old files."""
        checkpoint = self._broker.logs / "cleaner-offset-checkpoint"

        def is_cleaned() -> bool:
            lines = checkpoint.read_text().splitlines()[2:] if checkpoint.exists() else []
            done = {line.split()[0] for line in lines if line.split()[2] != "0"}
            return {topic.name for topic in compacted} <= done

        wait_for("compaction", is_cleaned, CLEANING_SECONDS)
        wait_for("deleted files", lambda: not any(self._broker.logs.glob("*/*.deleted")), CLEANING_SECONDS)


def compare(spark: SparkSession, ours: DataFrame, saved: Path) -> dict[str, Any]:
    """Compare the rows of both by topic; count rows without an equal one on the other side."""
    theirs = spark.read.parquet(str(saved))
    ours.persist()
    assert ours.schema.simpleString() == theirs.schema.simpleString(), (ours.schema, theirs.schema)
    counts = {
        name: {row["topic"]: row["count"] for row in frame.groupBy("topic").count().collect()}
        for name, frame in (("ours", ours), ("connector", theirs))
    }
    found = {
        "rows": sum(counts["ours"].values()),
        "topics_that_differ_in_number": sorted(
            topic
            for topic in counts["ours"].keys() | counts["connector"].keys()
            if counts["ours"].get(topic) != counts["connector"].get(topic)
        ),
        "only_ours": ours.exceptAll(theirs).count(),
        "only_connector": theirs.exceptAll(ours).count(),
        "headers_null": theirs.where("headers is null").count(),
        "keys_null": theirs.where("key is null").count(),
        "values_null": theirs.where("value is null").count(),
        "by_topic": dict(sorted(counts["ours"].items())),
    }
    ours.unpersist()
    return found


def say(text: str) -> None:
    """Print the progress of the run."""
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def run(root: Path, count: int, seed: int, wanted: Sequence[Topic]) -> dict[str, Any]:
    """Run everything; return the results by isolation level and state of the broker."""
    spark = connector_session("spark-equal", root)
    broker = new_broker(root / "broker", BROKER)
    names = [topic.name for topic in wanted]
    found: dict[str, Any] = {}
    with broker.running(LIFETIME_SECONDS):
        filling = Filling(spark, broker, count, seed)
        filling.fill(wanted)
        say("filled")
        wait_for("the log start checkpoint", lambda: _has_start(broker), CLEANING_SECONDS)
        for isolation in ISOLATIONS:
            frame = connector(spark, broker.address, names, includeHeaders="true", kafka_isolation_level=isolation)
            say(isolation)
            frame.coalesce(2).write.parquet(str(root / isolation))
            found[f"{isolation}, broker running"] = compare(
                spark, read(spark, broker, names, isolation), root / isolation
            )
        for producer in filling.open:
            producer.close(filling._clients.seconds(0))  # noqa: SLF001 - without an end marker
        layout = {
            name: {
                "segments": len(list(broker.logs.glob(f"{name}-*/*.log"))),
                "bytes": sum(path.stat().st_size for path in broker.logs.glob(f"{name}-*/*.log")),
            }
            for name in names
        }
    for isolation in ISOLATIONS:
        say(f"{isolation}, stopped")
        found[f"{isolation}, broker stopped"] = compare(spark, read(spark, broker, names, isolation), root / isolation)
    spark.stop()
    return {"topics": layout, "comparisons": found}


def _has_start(broker: Broker) -> bool:
    checkpoint = broker.logs / "log-start-offset-checkpoint"
    return checkpoint.exists() and "deleted-records 0" in checkpoint.read_text()


def read(spark: SparkSession, broker: Broker, names: Sequence[str], isolation: str) -> DataFrame:
    """Return our rows of some topics."""
    options = {"subscribe": ",".join(names), "includeHeaders": "true", "isolationLevel": isolation}
    return spark.read.format("seglog").options(splitBytes="1m", **options).load(str(broker.logs))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the proof's own options."""
    parser.add_argument("--count", type=int, default=1500, help="records of a topic, about half")
    parser.set_defaults(seed=7)


def prove(options: argparse.Namespace) -> Outcome:
    """Compare each row with the row that Spark's own connector reads from a broker with the same directory."""
    with tempfile.TemporaryDirectory(prefix="spark-equal-") as root:
        found = run(Path(root), options.count, options.seed, topics())
    failures = [
        f"{name}: {each[kind]} {kind}"
        for name, each in found["comparisons"].items()
        for kind in ("only_ours", "only_connector", "topics_that_differ_in_number")
        if each[kind]
    ]
    connector = "spark-sql-kafka-0-10_2.13 4.2.0, kafka-clients 3.9.2"
    return Outcome(found, failures, {"broker": RELEASE, "connector": connector, "java": java_version()})

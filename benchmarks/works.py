"""The measured works: each with its data, its contenders, and the ratio that the engine must reach."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, TypeAlias

from peers import Contender

OURS: Final = Contender("seglog-format", "ours")
COPIED: Final = Contender("seglog-format, binary", "ours", "binary")
OPENED: Final = Contender("seglog-format, opened each time, in windows", "ours", "open")
TRUSTING: Final = Contender("seglog-format, trusting indexes", "ours", "trusted")
REFERENCE: Final = Contender("seglog-format reference", "ours", "reference", 1 << 20)
MAPPED: Final = Contender("Java, mapped", "java", "mmap")
HEAP: Final = Contender("Java, in memory", "java-heap", "heap", 600 << 20)
FILE: Final = Contender("Java FileRecords", "java-file", "file")
JAVA_LOOP: Final = Contender("Java loop, in memory", "java-loop", "loop")
OLDEST: Final = Contender("Java of Kafka 2.1, in memory", "java-oldest", "heap", 600 << 20)
KRABKA: Final = Contender("krabka-protocol", "krabka", magics=(2,))
RUST: Final = Contender("kafka-protocol", "rust", magics=(2,))
FRANZ: Final = Contender("franz-go", "go", "franz-go")
SEGMENTIO: Final = Contender("kafka-go", "go", "kafka-go", 600 << 20)
SARAMA: Final = Contender("sarama", "go", "sarama", 600 << 20)
GO: Final = Contender("Go loop, hash/crc32", "go", "loop")
RUST_LOOP: Final = Contender("Rust loop, crc32c crate", "rust", magics=(2,))
AIOKAFKA: Final = Contender("aiokafka", "clients", "aiokafka", 600 << 20)
KAFKA_PYTHON: Final = Contender("kafka-python", "clients", "kafka-python", 110 << 20)

JAVA: Final = (MAPPED, HEAP, FILE)
EVERY: Final = (
    "u100", "u1k", "h100", "s100", "p100", "jlz4", "jzstd", "jsnappy", "jgzip", "m1u100", "m1lz4", "u100_1g",
)  # fmt: skip
TEXT: Final = ("jlz4", "jzstd", "jsnappy", "jgzip")
ONCE: Final = ("u100", "u1k", "h100", "s100", *TEXT, "m1u100", "m1lz4")
TWO_CORES: Final = ("u100", "u1k", *TEXT)
GROWING: Final = ("u100_8m", "u100_96m")
LOOKUPS: Final = (*GROWING, "u100")
RECOVERED: Final = ("u100", "p100", "s100", "jlz4")
ENDS: Final = ("u100", "s100", "m1u100", "u100_1g")


@dataclass(frozen=True, slots=True)
class Work:
    """A work, which is a table of the report.

    Attributes:
        name: name that peers know.
        title: title in tables.
        data: names of the sets.
        contenders: contenders that do it.
        call: call that a user of this package makes; our time is the time of this call.
        arrives_at: name of the set's checksum that the result must equal; empty if peers are compared with each other.
        threads: number of threads that share it.
        per_lookup: whether seconds are those of one lookup, not of the whole log.
    """

    name: str
    title: str
    data: tuple[str, ...]
    contenders: tuple[Contender, ...]
    call: str
    arrives_at: str = "records"
    threads: int = 1
    per_lookup: bool = False

    @property
    def key(self) -> str:
        """Return its name in the JSON report."""
        return self.name if self.threads == 1 else f"{self.name}-{self.threads}-threads"

    @property
    def turns(self) -> str:
        """Return the name of its group: works of one group take turns, because ratios compare them."""
        return "records" if self.name in {"visit", "columns"} else self.key


SCAN: Final = 'Partition.scan(("offset", "timestamp", "key", "value", "headers"))'
RECORDS: Final = "Partition.records()"
WORKS: Final = (
    Work("scan", "T1 walk over the batches", ONCE, (OURS, MAPPED, HEAP, FILE, RUST_LOOP, GO), "walk(log)", "batches"),
    Work(
        "crc",
        "T2 CRC of every batch",
        EVERY,
        (OURS, OPENED, *JAVA, OLDEST, RUST_LOOP, KRABKA, GO, AIOKAFKA, KAFKA_PYTHON),
        'Partition.scan(("offset",))',
        "crcs",
    ),
    Work(
        "visit",
        "T3 every record visited, CRC checked",
        EVERY,
        (*JAVA, JAVA_LOOP, OLDEST, RUST, KRABKA, FRANZ, SEGMENTIO, SARAMA, REFERENCE),
        "Partition.records(engine=Engine.REFERENCE)",
    ),
    Work("columns", "T4 columns, CRC checked", EVERY, (OURS, OPENED, COPIED, MAPPED, HEAP, RUST, AIOKAFKA), SCAN),
    Work("objects", "Python record objects", ONCE, (OURS, OPENED, AIOKAFKA, KAFKA_PYTHON), RECORDS),
    Work(
        "lookup-warm",
        "T5 point lookup, warm",
        LOOKUPS,
        (OURS, TRUSTING, MAPPED),
        "Partition.records(offset)",
        "",
        per_lookup=True,
    ),
    Work(
        "lookup-cold",
        "T5 point lookup, opened each time",
        LOOKUPS,
        (OURS, TRUSTING, MAPPED),
        "open_partition(path, mapped=True).records(offset)",
        "",
        per_lookup=True,
    ),
    Work(
        "log-end", "Log end offset", ENDS, (OURS, TRUSTING), "open_partition(path, mapped=True).log_end_offset", "end"
    ),
    Work(
        "time-warm",
        "Lookup by timestamp, warm",
        LOOKUPS,
        (OURS, TRUSTING, MAPPED),
        "Partition.offset_for_timestamp(timestamp_ms)",
        "",
        per_lookup=True,
    ),
    Work(
        "time-cold",
        "Lookup by timestamp, opened each time",
        LOOKUPS,
        (OURS, TRUSTING, MAPPED),
        "open_partition(path, mapped=True).offset_for_timestamp(timestamp_ms)",
        "",
        per_lookup=True,
    ),
    Work(
        "recover",
        "T6 verify and rebuild the indexes",
        RECOVERED,
        (OURS, FILE),
        "recover(path).apply()",
        "indexes",
    ),
    Work(
        "encode",
        "T7 encode batches",
        ("u100", "u1k"),
        (OURS, MAPPED, RUST, AIOKAFKA, KAFKA_PYTHON),
        "encode_columns(table)",
        "crcs",
    ),
    Work("visit", "T3 in two threads", TWO_CORES, (MAPPED, JAVA_LOOP, RUST, FRANZ), "", threads=2),
    Work("columns", "T4 in two threads", TWO_CORES, (OURS, OPENED, MAPPED, RUST), SCAN, threads=2),
)


@dataclass(frozen=True, slots=True)
class Target:
    """The speed required of us, as a ratio to the best of others.

    Attributes:
        title: title of the row.
        work: key of our work.
        against: key of the others' work.
        data: set of both.
        least: smallest ratio of speeds; the largest ratio of times if `is_time`.
        ours: name of our contender.
        rivals: contenders that count, if not all do.
        limit: physical limit of it: ``crc``, ``codec``, ``two cores`` or empty.
        is_time: whether the ratio compares times and is an upper bound.
        by_processor: whether the processor time of both counts, instead of the median pass.
    """

    title: str
    work: str
    against: str
    data: str
    least: float
    ours: str = OURS.name
    rivals: tuple[str, ...] = ()
    limit: str = "crc"
    is_time: bool = False
    by_processor: bool = False


Targets: TypeAlias = "tuple[Target, ...]"


def _goals(title: str, works: tuple[str, str], least: dict[str, float], rival: str, ours: str = OURS.name) -> Targets:
    """Return what processor time has to reach, against one rival."""
    return tuple(
        Target(title, *works, data, ratio, ours, (rival,), limit="", by_processor=True) for data, ratio in least.items()
    )


def _rows(title: str, work: str, against: str, least: dict[str, float], limit: str = "crc") -> Targets:
    return tuple(Target(title, work, against, data, ratio, limit=limit) for data, ratio in least.items())


OWN: Final = "own single thread"
SECOND_CORE: Final = "two cores"
TARGETS: Final = (
    *_rows("columns, against visiting", "columns", "visit", {"u100": 2.5, "u1k": 1.5, "h100": 2.5, "s100": 2.0}),
    *_rows("columns, against columns", "columns", "columns", {"u100": 3.5, "u1k": 3.0, "h100": 5.0, "s100": 2.5}),
    *_rows(
        "compressed columns, against visiting",
        "columns",
        "visit",
        {"jlz4": 1.6, "jzstd": 1.4, "jsnappy": 1.4, "jgzip": 2.0},
        "codec",
    ),
    *_rows("magic 1 columns, against visiting", "columns", "visit", {"m1u100": 1.3}, "crc32"),
    *_rows("magic 1 columns, against visiting", "columns", "visit", {"m1lz4": 1.3}, "codec"),
    Target("copied columns, against columns", "columns", "columns", "u100", 2.0, COPIED.name, limit="memcpy"),
    *_rows("CRC check", "crc", "crc", {"u100": 1.0, "s100": 1.0}),
    *_rows("verify and rebuild indexes", "recover", "recover", {"u100": 4.0, "p100": 4.0}),
    *_rows("encode from columns", "encode", "encode", {"u100": 2.2, "u1k": 1.2}),
    *(
        Target("trusted lookup, cold", "lookup-cold", "lookup-cold", data, 4.0, TRUSTING.name, limit="", is_time=True)
        for data in LOOKUPS
    ),
    *(
        Target("two threads against one", "columns-2-threads", "columns", data, least, rivals=(OWN,), limit=SECOND_CORE)
        for data, least in {"u100": 1.35, "u1k": 1.35, **dict.fromkeys(TEXT, 1.7)}.items()
    ),
    *_goals(
        "kept columns, against a loop",
        ("columns", "visit"),
        {"u100": 1.0, "h100": 1.0, "u1k": 0.9, "s100": 0.85, "jlz4": 0.85, "m1u100": 0.75},
        JAVA_LOOP.name,
    ),
    *_goals("one-shot columns", ("columns", "visit"), dict.fromkeys(EVERY, 1.7), FILE.name, OPENED.name),
    *_goals("recover and apply", ("recover", "recover"), dict.fromkeys(RECOVERED, 1.3), FILE.name),
    *_goals("Python record objects", ("objects", "objects"), dict.fromkeys(ONCE, 1.25), AIOKAFKA.name),
    Target("whole process verify", "verify", "verify", "u100", 6.0, limit="", is_time=False),
    Target("whole process verify", "verify", "verify", "u100_1g", 15.0, limit="", is_time=False),
)

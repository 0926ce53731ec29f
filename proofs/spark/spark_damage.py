"""Read damaged directories through Spark, in each of its three modes.

Each directory has one to three kinds of damage, at random positions. The intact part is known without a reader of ours:
every batch whose bytes were not changed. ``failfast`` must name a file, ``dropcorrupt`` must return exactly the intact
records, ``permissive`` the same and a marker, and the Spark session must survive.

The tasks that Spark would run read each directory in each mode, with a small split size. Then Spark itself reads all of
them in the two modes that skip damage, and some of them in the mode that refuses it: after each refusal it restarts
Python, which takes seconds.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from proofs.entries import sealed
from proofs.harness import Outcome
from proofs.spark.readers import read  # type: ignore[import-not-found]
from proofs.spark.session import load, quiet_session
from seglog_format import CompressionCodec, LogConfig, PartitionWriter, build_batch, new_record, walk
from seglog_format.errors import SeglogError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable

    from pyspark.sql import DataFrame, SparkSession

PREFIX: Final = 12
EPOCH_END: Final = 16
BATCHES: Final = 24
LARGEST: Final = 12
SHOWN: Final = 20
SPLIT: Final = "1k"
"""Split size so small that segments are split."""
CODECS: Final = tuple(CompressionCodec)


@dataclass
class Log:
    """One segment, as a list of intact and damaged batches.

    Attributes:
        parts: bytes of each part with the offsets of its records; None for damaged parts.
        is_reported: whether ``failfast`` must fail; a log whose end was cut off has no damage to report.
        kinds: kinds of damage.
        is_last: whether no segment follows.
    """

    parts: list[tuple[bytes, range | None]]
    is_last: bool = False
    is_reported: bool = False
    kinds: list[str] = field(default_factory=list)

    def allows(self, kind: Callable[[random.Random, Log], None]) -> bool:
        """Return whether a kind of damage is possible, with a known expected report."""
        if kind is cut:
            return self.parts[-1][1] is not None
        is_alone = len(self.parts) == 1
        return any(offsets is not None for _, offsets in self.parts) and not (
            is_alone and kind not in {flip, magic, codec}
        )

    def spoil(self, number: int, data: bytes) -> None:
        """Replace a batch by other bytes; a last batch whose size exceeds the file counts as cut off."""
        self.parts[number] = (data, None)
        claims = PREFIX + int.from_bytes(data[8:PREFIX], "big", signed=True)
        self.is_reported |= not (self.is_last and number == len(self.parts) - 1 and claims > len(data))


def flip(dice: random.Random, log: Log) -> None:
    """Flip a bit after the offset, outside of the leader epoch, which no checksum covers."""
    number = _intact(dice, log)
    data = bytearray(log.parts[number][0])
    data[dice.choice([*range(EPOCH_END, len(data))])] ^= 1 << dice.randrange(8)
    log.spoil(number, bytes(data))


def zero(dice: random.Random, log: Log) -> None:
    """Zero a run of bytes, as if it was never written."""
    number = _intact(dice, log)
    data = log.parts[number][0]
    start = dice.randrange(PREFIX, len(data) - 20)
    size = dice.randrange(16, len(data) - start)
    log.spoil(number, data[:start] + bytes(size) + data[start + size :])


def tear(dice: random.Random, log: Log) -> None:
    """Remove bytes."""
    number = _intact(dice, log)
    data = log.parts[number][0]
    start = dice.randrange(EPOCH_END + 1, len(data) - 1)
    log.spoil(number, data[:start] + data[start + dice.randrange(1, len(data) - start) :])


def size_field(dice: random.Random, log: Log) -> None:
    """Set a size that leads to another position."""
    number = _intact(dice, log)
    data = log.parts[number][0]
    size = dice.choice((-1, 0, 13, 48, 49, len(data) - PREFIX - 1, len(data) - PREFIX + 1, 2**31 - 1))
    log.spoil(number, data[:8] + size.to_bytes(4, "big", signed=True) + data[PREFIX:])


def magic(dice: random.Random, log: Log) -> None:
    """Set a magic that does not exist."""
    number = _intact(dice, log)
    data = bytearray(log.parts[number][0])
    data[EPOCH_END] = dice.choice((3, 4, 127, 128, 255))
    log.spoil(number, bytes(data))


def codec(dice: random.Random, log: Log) -> None:
    """Set a codec that does not exist, under a right checksum."""
    number = _intact(dice, log)
    data = bytearray(log.parts[number][0])
    data[22] = data[22] & ~7 | dice.choice((5, 6, 7))
    log.spoil(number, sealed(data))


def junk(dice: random.Random, log: Log) -> None:
    """Insert other bytes between two batches."""
    log.parts.insert(dice.randrange(len(log.parts) - 1), (dice.randbytes(dice.randrange(1, 300)), None))
    log.is_reported = True


def cut(dice: random.Random, log: Log) -> None:
    """Cut off the end, as a killed broker does; this is no damage to report."""
    data, _ = log.parts[-1]
    log.parts[-1] = (data[: dice.randrange(len(data))], None)


KINDS: Final[tuple[Callable[[random.Random, Log], None], ...]] = (
    flip, flip, zero, tear, size_field, magic, codec, junk, cut,
)  # fmt: skip


def _intact(dice: random.Random, log: Log) -> int:
    return dice.choice([number for number, (_, offsets) in enumerate(log.parts) if offsets is not None])


@dataclass(frozen=True, slots=True)
class Case:
    """A damaged directory.

    Attributes:
        topic: name of its topic.
        intact: offsets that must be read.
        is_reported: whether ``failfast`` must refuse the directory.
        kinds: kinds of damage.
    """

    topic: str
    intact: frozenset[int]
    is_reported: bool
    kinds: tuple[str, ...]


def make(root: Path, seed: int) -> Case:
    """Make a partition of several segments, one of which is damaged."""
    dice = random.Random(f"spark damage {seed}")
    topic = f"damaged-{seed}"
    directory = root / f"{topic}-0"
    total = _written(directory, dice)
    logs = sorted(path for path in directory.glob("*.log") if path.stat().st_size)
    path = dice.choice(logs)
    data = path.read_bytes()
    log = Log([(bytes(frame.data), range(*_offsets(frame.header))) for frame in walk(data)], is_last=path == logs[-1])
    kinds = [kind for kind in dice.sample(KINDS, dice.choice((1, 1, 2, 3))) if kind is not cut or path == logs[-1]]
    for kind in sorted(kinds or [flip], key=lambda each: each is cut):
        if log.allows(kind):
            kind(dice, log)
            log.kinds.append(kind.__name__)
    path.write_bytes(b"".join(part for part, _ in log.parts))
    lost = {each for frame in walk(data) for each in range(*_offsets(frame.header))}
    kept = {each for _, offsets in log.parts if offsets is not None for each in offsets}
    return Case(topic, frozenset(set(range(total)) - lost | kept), log.is_reported, tuple(log.kinds))


def _offsets(header: Any) -> tuple[int, int]:
    return header.base_offset, header.last_offset + 1


def _written(directory: Path, dice: random.Random) -> int:
    used, total = dice.choice(CODECS), 0
    config = LogConfig(segment_bytes=dice.choice((4096, 10**6)), index_interval_bytes=512)
    directory.parent.mkdir(parents=True, exist_ok=True)
    with PartitionWriter(directory, config) as writer:
        for _ in range(BATCHES):
            count = dice.randrange(1, LARGEST)
            made = [
                new_record(key=b"k", value=dice.randbytes(dice.randrange(100)), timestamp_ms=10**12 + each)
                for each in range(count)
            ]
            writer.append(build_batch(made, codec=used))
            total += count
    return total


class DamageChecker:
    """Compares the rows from Spark with the intact records.

    Attributes:
        failures: differences from the expected results.
        counts: numbers of events.
    """

    def __init__(self, spark: SparkSession, root: Path) -> None:
        self.failures: list[str] = []
        self.counts: Counter[str] = Counter()
        self._spark = spark
        self._root = root

    def read(self, mode: str, columns: str, **options: str) -> DataFrame:
        """Return the directories in a mode."""
        reader = self._spark.read.format("seglog").options(mode=mode, **options)
        return reader.schema(columns).load(str(self._root))

    def task_by_task(self, case: Case) -> None:
        """Read a directory in every mode, without a session."""
        options = {"subscribe": case.topic, "splitBytes": SPLIT}
        try:
            found: Any = read(self._root, ("offset", "value"), mode="failfast", **options).num_rows
        except SeglogError as error:
            found = refusal(case, error)
        self._expect(case, "failfast", "refused" if case.is_reported else len(case.intact), found)
        rows = read(self._root, ("offset", "value"), mode="dropcorrupt", **options).to_pylist()
        self._expect(case, "dropcorrupt", sorted(case.intact), sorted(row["offset"] for row in rows))
        rows = read(self._root, ("offset", "value", "_corrupt"), mode="permissive", **options).to_pylist()
        intact = sorted(row["offset"] for row in rows if row["_corrupt"] is None)
        self._expect(case, "permissive", sorted(case.intact), intact)
        if case.is_reported:
            self._expect(case, "permissive: a mark", expected=True, found=len(intact) < len(rows))

    def all_at_once(self, cases: Iterable[Case]) -> None:
        """Read all directories in one query for each mode that skips damage."""
        dropped: dict[str, list[int]] = defaultdict(list)
        for row in self.read("dropcorrupt", "topic string, offset long, value binary").collect():
            dropped[row["topic"]].append(row["offset"])
        marked: dict[str, list[int]] = defaultdict(list)
        marks: Counter[str] = Counter()
        corrupt = "_corrupt struct<file:string,position:bigint,size:bigint,requirement:string,message:string>"
        for row in self.read("permissive", f"topic string, offset long, value binary, {corrupt}").collect():
            if row["_corrupt"] is None:
                marked[row["topic"]].append(row["offset"])
            elif row["_corrupt"]["file"].endswith(".log") and row["_corrupt"]["requirement"].startswith("SEG-"):
                marks[row["topic"]] += 1
        for case in cases:
            for mode, rows in (("dropcorrupt", dropped), ("permissive", marked)):
                self._expect(case, f"{mode} through Spark", sorted(case.intact), sorted(rows[case.topic]))
            if case.is_reported:
                self._expect(case, "permissive: a mark through Spark", expected=True, found=marks[case.topic] > 0)

    def fail_fast(self, case: Case) -> None:
        """Read in the mode that refuses damage."""
        try:
            found: Any = self.read("failfast", "offset long, value binary", subscribe=case.topic).count()
        except Exception as error:  # noqa: BLE001 - whatever Spark makes of it
            found = refusal(case, error)
        self._expect(case, "failfast through Spark", "refused" if case.is_reported else len(case.intact), found)

    def _expect(self, case: Case, what: str, expected: object, found: object) -> None:
        self.counts[what] += 1
        if expected != found and len(self.failures) < SHOWN:
            text = f"{str(found)[:200]}, not {str(expected)[:200]}"
            self.failures.append(f"{case.topic} ({', '.join(case.kinds)}): {what}: {text}")


def refusal(case: Case, error: Exception) -> str:
    """Return ``refused`` if the text names file and requirement, else the text."""
    return "refused" if f"{case.topic}-0/0" in str(error) and "SEG-" in str(error) else str(error)[:300]


def run(spark: SparkSession, root: Path, count: int, seed: int, refusals: int = 2**31) -> dict[str, Any]:
    """Damage directories and read them; Spark reads `refusals` of them in the mode that refuses damage."""
    cases = [make(root / "logs", seed * 10**6 + number) for number in range(count)]
    checker = DamageChecker(spark, root / "logs")
    for case in cases:
        checker.task_by_task(case)
    print(dict(checker.counts), checker.failures, file=sys.stderr, flush=True)
    checker.all_at_once(cases)
    for case in cases[:refusals]:
        checker.fail_fast(case)
    alive = spark.range(10).selectExpr("sum(id)").collect()[0][0] == sum(range(10))
    return {
        "directories": count,
        "seed": seed,
        "damages": dict(sorted(Counter(kind for case in cases for kind in case.kinds).items())),
        "with_something_to_tell": sum(case.is_reported for case in cases),
        "checks": dict(sorted(checker.counts.items())),
        "spark_lives": alive,
        "failures": checker.failures,
    }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the proof's own options."""
    parser.add_argument("--count", type=int, default=200, help="directories")
    parser.add_argument("--refusals", type=int, default=10, help="directories that Spark reads in mode failfast")
    parser.set_defaults(seed=7)


def prove(options: argparse.Namespace) -> Outcome:
    """Damage directories, and compare the rows that Spark reads with the expected ones."""
    with tempfile.TemporaryDirectory(prefix="spark-damage-") as root:
        spark = quiet_session("spark-damage")
        found = run(spark, Path(root), options.count, options.seed, options.refusals)
        spark.stop()
    failures = [*found.pop("failures"), *([] if found["spark_lives"] else ["Spark answers no query any more"])]
    return Outcome({**load(), **found}, failures)

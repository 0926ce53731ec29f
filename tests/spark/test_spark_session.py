"""The few things that only Spark itself can show; all in one session."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyarrow")

from helpers.spark_partitions import partition
from helpers.support import REPOSITORY, authentic, authentic_names
from helpers.walking import each_of
from pyspark.errors import AnalysisException, PySparkException, PythonException, StreamingQueryException

from proofs.spark.readers import REFERENCE, reference_rows, rows_by_directory
from seglog_format.cli.main import run
from seglog_format.errors import FormatError
from seglog_format.spark import prepared, projection, session

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.xdist_group("spark")

ATTEMPTS = 6
PUSHDOWN = "spark.sql.python.filterPushdown.enabled"


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Provide a log directory with two partitions; read it, do not change it."""
    logs = tmp_path_factory.mktemp("spark-logs")
    partition(logs / "orders-0", 300)
    partition(logs / "orders-1", 40)
    return logs


def load(spark: SparkSession, path: Path, **options: str) -> DataFrame:
    return spark.read.format("seglog").options(**options).load(str(path))


def plan_of(frame: DataFrame) -> str:
    return str(frame._jdf.queryExecution().executedPlan().toString())  # type: ignore[operator]


def in_time(stream: Callable[[], object]) -> None:
    """Run a stream, and again if this machine is too busy: Spark gives its Python worker ten seconds to start."""
    for attempt in range(ATTEMPTS):
        try:
            stream()
        except StreamingQueryException as error:
            if "failed to connect back" not in str(error) or attempt == ATTEMPTS - 1:
                raise
        else:
            return


def test_it_registers_by_itself_with_the_schema_of_the_connector(spark: SparkSession, logs: Path) -> None:
    frame = load(spark, logs, includeHeaders="true")
    assert frame.schema.simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,timestamp:timestamp,"
        "timestampType:int,headers:array<struct<key:string,value:binary>>>"
    )
    assert frame.count() == 340


def test_every_authentic_log_reads_as_the_reference_reads_it(spark: SparkSession) -> None:
    paths, expected = [], []
    for name in authentic_names():
        try:
            expected.extend(reference_rows(authentic(name)))
        except FormatError:
            continue  # a damaged one
        paths.append(str(authentic(name)))
    reader = spark.read.format("seglog").options(replicas="all", recreatedTopics="keep", splitBytes="64k")
    table = reader.schema(projection(*REFERENCE)).load(paths).toArrow()
    assert rows_by_directory(table) == sorted(expected, key=lambda row: (row["directory"], row["offset"]))


@pytest.fixture
def pushing(spark: SparkSession) -> Iterator[None]:
    """Hand filters to the source."""
    spark.conf.set(PUSHDOWN, "true")
    yield
    spark.conf.set(PUSHDOWN, "false")


@pytest.mark.parametrize("is_on", [True, False])
def test_filters_work_with_the_default_configuration_and_are_pushed_with_another(
    spark: SparkSession, logs: Path, *, is_on: bool, request: pytest.FixtureRequest
) -> None:
    if is_on:
        request.getfixturevalue("pushing")
    loaded = load(spark, logs, splitBytes="4k", pushedFilters="use")
    frame = loaded.where("topic = 'orders' and partition = 1 and offset in (7, 9)")
    assert sorted(row.offset for row in frame.select("offset").collect()) == [7, 9]
    assert ("(partition" in plan_of(frame)) is not is_on, "Spark does not apply what was taken over"
    assert (frame.rdd.getNumPartitions() == 1) is is_on


@pytest.mark.parametrize("is_on", [True, False])
def test_a_frame_that_was_filtered_still_has_all_rows(
    spark: SparkSession, logs: Path, *, is_on: bool, request: pytest.FixtureRequest
) -> None:
    if is_on:
        request.getfixturevalue("pushing")
    frame = load(spark, logs)
    assert frame.where("partition = 1").count() == 40
    assert frame.count() == 340
    assert frame.where("offset < 10").join(frame, ["partition", "offset"]).count() == 20
    both = frame.where("partition = 1").union(frame.where("partition = 0 and offset = 7"))
    assert sorted(tuple(row) for row in both.groupBy("partition").count().collect()) == [(0, 1), (1, 40)]


@pytest.mark.usefixtures("pushing")
def test_spark_still_keeps_filters_for_the_next_query(spark: SparkSession, logs: Path) -> None:
    """Why the source ignores them by default; when this fails Spark has changed, and they can be used."""
    frame = load(spark, logs, pushedFilters="use")
    assert frame.where("partition = 1").count() == 40
    assert frame.count() == 40, "300 more are there"
    both = load(spark, logs, pushedFilters="use")
    assert both.where("partition = 1").union(both.where("partition = 0 and offset = 7")).count() == 2, "it would be 41"


@pytest.mark.usefixtures("pushing")
def test_times_are_compared_as_spark_does(spark: SparkSession, logs: Path) -> None:
    frame = load(spark, logs, pushedFilters="use").where(
        "timestamp between '2023-11-14 22:13:25' and '2023-11-14 22:13:27.5'"
    )
    assert sorted((row.partition, row.offset) for row in frame.collect()) == [
        (number, offset) for number in (0, 1) for offset in (5, 6, 7)
    ]


def test_a_schema_is_the_projection_and_a_wrong_one_an_error(spark: SparkSession, logs: Path) -> None:
    reader = spark.read.format("seglog").schema("offset long, timestamp timestamp, producerId long")
    assert reader.load(str(logs)).where("offset = 3").count() == 2
    with pytest.raises(AnalysisException, match="offset is bigint, not string"):
        spark.read.format("seglog").schema("offset string").load(str(logs)).collect()
    with pytest.raises(AnalysisException, match="did you mean startingOffsets"):
        load(spark, logs, startingOffset="latest")


ERRORS: dict[str, tuple[Callable[[SparkSession, Path], object], str]] = {
    "an option": (lambda spark, logs: load(spark, logs, startingOffset="latest"), "did you mean startingOffsets"),
    "a path": (lambda spark, logs: load(spark, logs / "absent"), "absent: No such file or directory"),
    "a path of a stream": (lambda spark, logs: spark.readStream.format("seglog").load(str(logs / "absent")), "absent"),
    "a pattern": (lambda spark, logs: load(spark, logs / "absent-*"), "absent-.: no directory matches"),
    "a value": (lambda spark, logs: load(spark, logs, assign='{"orders": [7]}').count(), "orders-7 is not below"),
    "a column": (lambda spark, logs: spark.read.format("seglog").schema("keys int").load(str(logs)).count(), "keys"),
    "a store": (lambda spark, _: load(spark, "hdfs://name/logs").count(), "Unable to load lib"),  # type: ignore[arg-type]
    "a write": (
        lambda spark, logs: spark.range(1).write.format("seglog").mode("append").save(str(logs / "new")),
        "unknown column 'id'",
    ),
    "a row": (
        lambda spark, logs: spark.sql("select 'x' value, 'orders' topic, int(null) partition")
        .write.format("seglog").mode("append").save(str(logs / "new")),
        "has no partition",
    ),
}  # fmt: skip


@each_of("name", sorted(ERRORS))
def test_an_error_is_one_sentence_without_lines_of_code(name: str, spark: SparkSession, logs: Path) -> None:
    called, text = ERRORS[name]
    with pytest.raises(PySparkException) as raised:
        called(spark, logs)
    assert re.search(text, str(raised.value))
    assert "Traceback" not in str(raised.value)
    assert sum(1 for line in str(raised.value).splitlines() if line.strip() and "SQLSTATE" not in line) <= 2


def test_an_error_of_other_code_keeps_its_lines(spark: SparkSession) -> None:
    from pyspark.sql.functions import udf

    with pytest.raises(PythonException, match="Traceback"):
        spark.range(1).select(udf(lambda number: 1 // number, useArrow=False)("id")).collect()


def test_sql_and_a_log_directory_without_partitions(spark: SparkSession, logs: Path, tmp_path: Path) -> None:
    spark.sql(f"create or replace temporary view v using seglog options (path '{logs}', subscribe 'orders')")
    assert spark.sql("select max(offset) from v where partition = 0").collect() == [(299,)]
    (tmp_path / "meta.properties").write_text("version=1\n", encoding="utf-8")
    assert load(spark, tmp_path).count() == 0


def test_damage_in_every_mode(spark: SparkSession, logs: Path, tmp_path: Path) -> None:
    shutil.copytree(logs / "orders-1", tmp_path / "orders-1")
    log = next((tmp_path / "orders-1").glob("*.log"))
    data = bytearray(log.read_bytes())
    data[-1] ^= 1
    log.write_bytes(data)
    with pytest.raises(PythonException) as raised:
        load(spark, tmp_path).collect()
    assert str(log) in str(raised.value)
    assert "dropcorrupt" in str(raised.value)
    assert "Traceback" not in str(raised.value)
    assert load(spark, tmp_path, mode="dropcorrupt").count() == 30
    marked = load(spark, tmp_path, mode="permissive").where("_corrupt is not null").select("_corrupt.*").collect()
    assert [(row.file, row.requirement) for row in marked] == [(str(log), "SEG-BAT-003")]


def test_tables(spark: SparkSession, logs: Path) -> None:
    assert load(spark, logs, table="batches").where("crcIsValid").agg({"recordsCount": "sum"}).collect() == [(340,)]
    segments: Any = load(spark, logs, table="segments").groupBy("partition").count().orderBy("partition")
    assert [row.partition for row in segments.collect()] == [0, 1]
    assert load(spark, logs, table="findings").where("severity = 'error'").count() == 0


IMPORTED = "import sys; import pyspark_seglog; assert not {'numba', 'numpy', 'pyarrow'} & set(sys.modules)"
ALONE = (
    "import sys; sys.modules['pyspark'] = None; import pyspark_seglog; print(hasattr(pyspark_seglog, 'DefaultSource'))"
)


def test_what_spark_imports_in_every_program_is_light_and_never_fails() -> None:
    subprocess.run([sys.executable, "-c", IMPORTED], check=True, cwd=REPOSITORY)
    alone = subprocess.run([sys.executable, "-c", ALONE], check=True, cwd=REPOSITORY, capture_output=True, text=True)
    assert alone.stdout == "False\n"


PAGES = ("query-with-spark.md", "keep-the-latest-state-with-spark.md", "export-to-iceberg.md")


def test_the_pages_are_what_happens(spark: SparkSession, started_in: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tools import demo_data

    demo_data.unpack(started_in / "demo")
    monkeypatch.chdir(started_in)
    for name in PAGES:
        page = (REPOSITORY / "docs" / "how-to" / name).read_text(encoding="utf-8")
        scope: dict[str, Any] = {}
        for block in re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
            code = compile(block, name, "exec")
            in_time(lambda code=code, scope=scope: exec(code, scope))  # noqa: S102 - that is what is tested
        assert scope["spark"] is spark


def test_the_tutorial_is_what_happens(spark: SparkSession, started_in: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tools import demo_data
    from tools.docs import spark_pages

    page = spark_pages.TUTORIAL.read_text(encoding="utf-8")
    assert spark is not None
    demo_data.unpack(started_in / "demo")
    monkeypatch.chdir(started_in)
    assert spark_pages.refreshed(page, in_time) == page, "python -m tools.docs.spark_pages writes it anew"
    assert (started_in / spark_pages.DRAWN).read_bytes() == spark_pages.CHART.read_bytes()


def test_another_python_of_the_workers_is_told(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    assert session("again") is spark  # what the first session set is no other Python
    monkeypatch.setenv("PYSPARK_PYTHON", "/nowhere/python3")
    with pytest.warns(RuntimeWarning, match="PYSPARK_PYTHON=/nowhere/python3, which does not exist"):
        session("again")


def test_a_stream_delivers_every_record_once_across_restarts(spark: SparkSession, tmp_path: Path) -> None:
    logs, out = tmp_path / "logs", tmp_path / "out"
    for count in (30, 75):
        partition(logs / "orders-0", count)
        frame = spark.readStream.format("seglog").schema("partition int, offset long").option(
            "startingOffsets", "earliest"
        ).option("maxOffsetsPerTrigger", "25").load(str(logs))  # fmt: skip
        writer = frame.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "checkpoint"))
        in_time(lambda writer=writer: writer.trigger(availableNow=True).start(str(out)).awaitTermination(300))
        found = [(row.partition, row.offset) for row in spark.read.parquet(str(out)).collect()]
        assert sorted(found) == [(0, offset) for offset in range(count)]
        shutil.rmtree(logs)


def test_what_is_written_is_read(spark: SparkSession, tmp_path: Path) -> None:
    frame = spark.range(5000).selectExpr(
        "concat(id, repeat('x', 100)) as value",
        "int(id % 3) as partition",
        "timestamp_millis(1700000000000 + id) as timestamp",
    )
    writer = prepared(frame).write.format("seglog").option("topic", "numbers").option("codec", "zstd")
    with pytest.raises(AnalysisException, match='use either the "Append"'):
        writer.save(str(tmp_path))
    for _ in range(2):
        writer.mode("append").save(str(tmp_path))
    found = load(spark, tmp_path).groupBy("partition").agg({"offset": "max", "value": "count"}).orderBy("partition")
    assert [tuple(row) for row in found.collect()] == [(0, 3333, 3334), (1, 3333, 3334), (2, 3331, 3332)]
    assert load(spark, tmp_path, table="findings").where("severity != 'note'").count() == 0
    copy = load(spark, tmp_path).drop("timestampType")
    prepared(copy).write.format("seglog").mode("append").save(str(tmp_path / "copy"))
    assert load(spark, tmp_path / "copy").drop("timestampType").exceptAll(copy).count() == 0


def test_jobs_as_commands(spark: SparkSession, logs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def job(*arguments: str) -> tuple[int, list[dict[str, Any]]]:
        status = run(["spark", arguments[0], "--json", *arguments[1:]])
        return status, [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    assert spark is not None
    assert job("verify", str(logs))[0] == 0
    status, found = job("stats", str(logs))
    assert [(row["partition"], row["records"], row["codecs"], row["damaged"]) for row in found] == [
        (0, 300, ["none"], 0),
        (1, 40, ["none"], 0),
    ]
    assert found[0]["from"].startswith("2023-11-14 22:13:20")
    status, found = job("to-parquet", str(logs), "-o", str(tmp_path / "parquet"))
    assert found[0]["records"] == 340
    assert sorted(path.name for path in (tmp_path / "parquet").glob("*/*")) == ["date=2023-11-14"]
    ends = '--option=endingOffsets={"orders":{"0":7,"1":40}}'
    status, found = job("restore", str(logs), "-o", str(tmp_path / "restored"), ends)
    assert found[0]["records"] == 47
    status, found = job("diff", str(logs / "orders-0"), str(tmp_path / "restored"), "--option=subscribe=orders")
    assert status == 1
    assert [(row["partition"], row["difference"]) for row in found].count((0, "left")) == 293
    assert [row["partition"] for row in found if row["difference"] == "right"] == [1] * 40
    assert job("diff", str(logs / "orders-1"), str(tmp_path / "restored" / "orders-1")) == (0, [])
    assert run(["spark", "stats", str(logs), "--option", "mode"]) == 2
    assert run(["spark", "stats", str(logs), "--option", "moode=x"]) == 2
    assert "did you mean mode" in capsys.readouterr().err
    assert run(["spark", "stats", str(tmp_path / "absent")]) == 2

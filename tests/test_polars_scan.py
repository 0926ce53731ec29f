"""A lazy frame over logs reads what a query needs: those columns, those offsets, decoded."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from helpers.exported import make_log
from helpers.serialized import make_topics
from helpers.support import authentic
from helpers.walking import each_of

from proofs.serialized import KINDS, expected_rows
from seglog_format import open_partition, read_schemas, scan_polars, value_decoder
from seglog_format.errors import UndecodedRecordError, UsageError
from seglog_format.log.partition import Partition
from seglog_format.tables.polars_scan import Offsets, offsets_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

EVERYTHING = Offsets()
offset = pl.col("offset")


@each_of(
    ("condition", "expected"),
    [
        (offset >= 5, (5, EVERYTHING.end)),
        (offset > 5, (6, EVERYTHING.end)),
        (offset < 5, (0, 5)),
        (offset <= 5, (0, 6)),
        (offset == 5, (5, 6)),
        (pl.lit(5) <= offset, (5, EVERYTHING.end)),
        (offset.is_between(3, 7), (3, 8)),
        ((offset >= 5) & (offset < 9) & (pl.col("key") == b"x"), (5, 9)),
        (offset.is_between(3, 7) & (offset > 4), (5, 8)),
        (offset != 5, EVERYTHING),
        ((offset >= 5) | (offset < 3), EVERYTHING),
        (~(offset >= 5), EVERYTHING),
        (offset + 1 >= 5, EVERYTHING),
        (offset >= pl.col("timestamp").cast(pl.Int64), EVERYTHING),
        (offset.is_in([5]), EVERYTHING),
        (offset.is_between(3, 7, closed="none"), (3, 8)),
        (offset >= 5.5, EVERYTHING),
        (pl.lit(value=True), EVERYTHING),
    ],
)
def test_condition_gives_a_range_that_holds_all_that_it_takes(condition: pl.Expr, expected: tuple[int, int]) -> None:
    assert tuple(offsets_of(condition)) == tuple(expected)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, ...]]:
    """Collect what scans are asked for from now on: columns, first offset, end."""
    found: list[tuple[Any, ...]] = []
    real: Callable[..., Any] = Partition.scan

    def scan(self: Partition, columns: Any, *offsets: Any, **options: Any) -> Any:  # noqa: ANN401 - passed on
        found.append((list(columns), *offsets))
        return real(self, columns, *offsets, **options)

    monkeypatch.setattr(Partition, "scan", scan)
    return found


def test_columns_and_offsets_are_pushed_down(tmp_path: Path, asked: list[tuple[Any, ...]]) -> None:
    make_log(tmp_path / "t-0", range(1000))
    frame = scan_polars(tmp_path / "t-0")
    asked.clear()
    found = frame.filter(offset.is_between(500, 502)).select("key").collect()
    assert found["key"].to_list() == [b"key %d" % (number % 7) for number in range(500, 503)]
    assert [(sorted(columns), *offsets) for columns, *offsets in asked] == [(["key", "offset"], 500, 503)]


def test_result_is_that_of_a_frame_of_everything(tmp_path: Path) -> None:
    for number in range(3):
        make_log(tmp_path / f"t-{number}", range(number * 10, 300))
    lazy = scan_polars(tmp_path)
    whole = lazy.collect()
    assert whole.height == 300 + 290 + 280
    assert whole.schema == lazy.collect_schema()
    for condition in (offset > 295, (offset < 12) & (pl.col("partition") == 1), pl.col("key") == b"key 3", offset < 0):
        assert lazy.filter(condition).collect().equals(whole.filter(condition))
    assert lazy.head(305).collect().equals(whole.head(305))
    assert lazy.select(pl.len()).collect().item() == whole.height
    assert lazy.group_by("partition").agg(offset.max()).sort("partition").collect()["offset"].to_list() == [299] * 3


def test_records_of_a_broker_are_those_of_a_scan() -> None:
    with open_partition(authentic("4.3.0/headers") / "headers-0") as partition:
        columns = ["offset", "timestamp", "key", "value", "headers"]
        expected = partition.scan(columns, layout="large_binary").read_all()
    found = scan_polars(authentic("4.3.0/headers"), columns).collect()
    assert found.equals(pl.DataFrame(expected))


def test_paths_that_are_no_logs_and_columns_that_are_not_there_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        scan_polars(tmp_path / "missing")
    make_log(tmp_path / "t-0", range(3))
    with pytest.raises(UsageError, match="nothing"):
        scan_polars(tmp_path / "t-0", ["nothing"])


# -- decoded


@pytest.fixture(scope="module")
def topics(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("serialized") / "logs"
    make_topics(directory)
    return directory


@pytest.mark.parametrize("kind", KINDS)
def test_scan_gives_decoded_values(kind: str, topics: Path) -> None:
    decoder = value_decoder(kind, f"orders-{kind}-value", read_schemas(topics / "_schemas-0"), times="written")
    with open_partition(topics / f"orders-{kind}-0") as partition:
        found = partition.scan(["value"], 3, value=decoder).read_all()
    assert found.schema.names == ["value"]
    ids = [row["id"] for row in found.column("value").to_pylist()]
    assert ids == [row["id"] for row in expected_rows(kind)[3:]]
    frame = scan_polars(topics / f"orders-{kind}-0", value=decoder)
    last = frame.filter(offset >= 3).select(pl.col("value").struct.field("id")).collect()
    assert last["id"].to_list() == ids


def test_what_cannot_be_decoded_ends_a_scan_or_is_reported(tmp_path: Path) -> None:
    make_log(tmp_path / "t-0", range(3))
    with open_partition(tmp_path / "t-0") as partition:
        with pytest.raises(UndecodedRecordError, match="offset 0: value: not JSON"):
            partition.scan(value=value_decoder("json")).read_all()
        reported: list[str] = []
        rows = partition.scan(
            ["value", "key"],
            key=value_decoder("string"),
            value=value_decoder("json"),
            on_undecoded=lambda error: reported.append(str(error).partition(":")[0]),
        ).read_all()
    assert rows.to_pydict() == {"value": [None] * 3, "key": ["key 0", "key 1", "key 2"]}
    assert reported == ["offset 0", "offset 1", "offset 2"]


@pytest.mark.parametrize("arguments", [("bytes",), ("xml",), ("avro", "orders-value")])
def test_decoders_that_cannot_be_are_refused(arguments: tuple[str, ...]) -> None:
    with pytest.raises(UsageError):
        value_decoder(*arguments)

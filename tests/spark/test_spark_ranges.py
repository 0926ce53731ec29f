"""Plans without Spark: for Spark 3.5, whose workers have no Python data sources, and for other programs."""

from __future__ import annotations

import pickle
import sys
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest
from helpers.spark_partitions import partition
from helpers.spark_plans import read

from seglog_format.errors import UsageError
from seglog_format.spark import PlannedRange, plan_ranges
from seglog_format.spark.columns import COLUMNS
from seglog_format.storage import child_processes

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def orders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Provide a log directory with ``orders-0`` of 400 records and ``orders-1`` of 40; read it, do not change it."""
    logs = tmp_path_factory.mktemp("orders")
    partition(logs / "orders-0")
    partition(logs / "orders-1", 40)
    return logs


def table(ranges: list[PlannedRange], *columns: str) -> pa.Table:
    """Read ranges as another process gets them."""
    return pa.Table.from_batches(batch for each in ranges for batch in pickle.loads(pickle.dumps(each)).read(*columns))


@pytest.mark.parametrize("name", sorted(COLUMNS))
def test_ranges_hold_the_rows_of_the_data_source(name: str, orders: Path) -> None:
    options = {"table": name, "splitBytes": "1k"} | ({"mode": "permissive"} if name == "records" else {})
    ranges, columns = plan_ranges([str(orders)], **options), tuple(COLUMNS[name])
    expected = read(orders, columns, **options)
    assert len(ranges) > 1
    assert table(ranges, *columns).equals(expected)
    assert table(ranges, *columns).schema.equals(expected.schema)


def test_columns_of_a_query_without_a_schema(orders: Path) -> None:
    ranges = plan_ranges(orders / "orders-1", includeHeaders="true", isolationLevel="read_committed")
    assert plan_ranges(str(orders / "orders-1"), includeHeaders="true", isolationLevel="read_committed") == ranges
    assert table(ranges).column_names[-2:] == ["timestampType", "headers"]
    assert table(ranges).num_rows == 40


@pytest.mark.parametrize(
    ("options", "columns", "message"),
    [
        ({"colour": "red"}, (), "unknown option .colour"),
        ({"subscribe": "payments"}, (), "payments is not below"),
        ({}, ("keys",), "unknown column .keys"),
        ({"mode": "permissive"}, ("key",), "_corrupt"),
    ],
)
def test_what_a_plan_refuses(options: dict[str, str], columns: tuple[str, ...], message: str, orders: Path) -> None:
    with pytest.raises(UsageError, match=message):
        list(plan_ranges([str(orders)], **options)[0].read(*columns))


def test_no_module_of_spark_is_needed(orders: Path) -> None:
    """Spark 3.5 lacks the modules of data sources, and a worker of another program lacks Spark."""
    program = (
        "import sys; sys.modules['pyspark'] = None\n"
        "from seglog_format.spark import plan_ranges\n"
        f"print(sum(len(b) for each in plan_ranges([{str(orders)!r}]) for b in each.read('offset')))"
    )
    ran = child_processes.run(
        [sys.executable, "-c", program], directory=orders, capture_output=True, text=True, check=True
    )
    assert ran.stdout.split() == ["440"]

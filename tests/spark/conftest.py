"""One Spark session for the whole run; it takes most of the time of these tests to start."""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def started_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Provide the directory that the programs of Spark are started in, and that relative paths of a query belong to."""
    return tmp_path_factory.mktemp("spark")


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory, started_in: Path) -> Iterator[SparkSession]:
    """Provide a session on two cores, as users get it from us."""
    from seglog_format.spark import session

    settings = {
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.warehouse.dir": str(tmp_path_factory.mktemp("warehouse")),
        "spark.sql.session.timeZone": "UTC",
        "spark.log.level": "OFF",
        "spark.python.authenticate.socketTimeout": "600s",  # machines that run tests are busy
        "spark.ui.showConsoleProgress": "false",
    }
    logging.getLogger("py4j").setLevel(logging.ERROR)
    with contextlib.chdir(started_in):
        made = session("seglog tests", master="local[2]", settings=settings)
    yield made
    made.stop()

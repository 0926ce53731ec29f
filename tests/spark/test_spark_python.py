"""Workers of Spark import the Spark that is installed, and not the archive that is put before it."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from seglog_format.errors import UsageError
from seglog_format.spark import sessions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SHOW_PATH = "import os, sys; print(os.environ.get('PYTHONPATH'), sys.prefix, sys.argv[1:])"


@pytest.fixture
def scratch(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Provide a directory for temporary files, whose name a shell would take apart."""
    directory = tmp_path / "it's $HOME"
    directory.mkdir()
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(directory))
    return directory


def _shown(program: str, path: str | None, *arguments: str) -> str:
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    run = subprocess.run(
        [program, "-c", SHOW_PATH, *arguments],
        env=variables if path is None else {**variables, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=True,
    )
    return run.stdout.removesuffix("\n")


def test_only_the_archives_of_spark_are_left_out(scratch: Path) -> None:
    spark = sessions.installed_spark()
    assert spark is not None
    program = sessions.worker_python("local[2]")
    assert Path(program).is_relative_to(scratch)
    path = f"{spark}/python/lib/pyspark.zip:/a b/*:{spark}/jars/spark-core.jar:/c"
    assert _shown(program, path, "d e", "*") == f"/a b/*:/c {sys.prefix} ['d e', '*']"
    assert _shown(program, f"{spark}/python/lib/pyspark.zip") == f" {sys.prefix} []"
    assert _shown(program, f"{spark}-other/x") == f"{spark}-other/x {sys.prefix} []"
    assert sessions.worker_python("local") == program


def test_other_machines_have_no_launcher_of_ours(scratch: Path) -> None:
    assert sessions.worker_python("spark://somewhere:7077") == sys.executable
    assert not list(scratch.iterdir())


def test_a_spark_that_is_found_by_a_path_stays_where_it_is(monkeypatch: pytest.MonkeyPatch, scratch: Path) -> None:
    other = ModuleSpec("pyspark", None, origin="/opt/spark/python/pyspark/__init__.py")
    for found in (other, ModuleSpec("pyspark", None), None):
        monkeypatch.setattr(sessions, "find_spec", lambda _, found=found: found)
        assert sessions.worker_python("local[*]") == sys.executable
    assert not list(scratch.iterdir())


def test_where_programs_may_not_be_started_from_there_is_no_launcher(
    monkeypatch: pytest.MonkeyPatch, scratch: Path
) -> None:
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert sessions.worker_python("local[2]") == sys.executable
    assert list(scratch.iterdir())


def test_nobody_else_s_directory_is_taken(monkeypatch: pytest.MonkeyPatch, scratch: Path) -> None:
    owner = scratch.stat().st_uid
    program = sessions.written("python", "bin/python", "")
    program.parent.parent.rename(scratch / program.parent.parent.name.replace(f"-{owner}-", f"-{owner + 1}-"))
    monkeypatch.setattr(os, "getuid", lambda: owner + 1)
    with pytest.raises(UsageError, match="belongs to another user"):
        sessions.written("python", "bin/python", "")


def test_workers_run_on_the_installed_spark(spark: SparkSession) -> None:
    def where(_: object) -> list[str]:
        import pyspark

        return [pyspark.__file__]

    (found,) = spark.sparkContext.parallelize([0], 1).mapPartitions(where).collect()
    assert Path(found) == sessions.installed_spark() / "__init__.py"  # type: ignore[operator]

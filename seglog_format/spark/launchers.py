"""Launcher scripts in a private temporary directory, because Spark takes only the path of a program."""

from __future__ import annotations

import os
import stat
import tempfile
from hashlib import sha256
from pathlib import Path

from seglog_format.errors import UsageError


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

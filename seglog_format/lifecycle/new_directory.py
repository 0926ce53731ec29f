"""Writing files into a directory that holds nothing yet."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

from seglog_format.errors import UsageError
from seglog_format.lifecycle.files import LOCAL_FILES, Files, write_file
from seglog_format.names import printable

if TYPE_CHECKING:
    from pathlib import Path

    from seglog_format.model import Buffer

FORBIDDEN: Final = frozenset("\0\\:")
"""What leads elsewhere on some system."""


def require_new(directory: Path) -> None:
    """Nothing is written over what is there.

    Raises:
        UsageError: the path is neither free nor an empty directory.
    """
    if directory.exists() and (not directory.is_dir() or any(directory.iterdir())):
        msg = f"{directory} is there already, and not an empty directory"
        raise UsageError(msg)


def write_new_file(directory: Path, name: str, data: Buffer, files: Files = LOCAL_FILES) -> Path:
    """Write one file below a directory, making directories on the way.

    Args:
        directory: stays above everything that is written.
        name: path below it, with slashes.
        data: the content.
        files: where.

    Returns:
        The path of the file.

    Raises:
        UsageError: the name leads out of the directory, or the file is there already.
        OSError: it did not work.
    """
    parts = PurePosixPath(name).parts
    if not parts or ".." in parts or parts[0] == "/" or FORBIDDEN & set(name):
        msg = f"{printable(name)!r} is no path below a directory"
        raise UsageError(msg)
    path = directory.joinpath(*parts)
    if files.exists(path):
        msg = f"{path} is there already"
        raise UsageError(msg)
    files.make_directory(path.parent)
    write_file(files, path, data)
    return path

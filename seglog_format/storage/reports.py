"""Atomic writing of a file to a path that the user chose."""

from __future__ import annotations

from secrets import token_hex
from typing import TYPE_CHECKING, Final

from seglog_format.errors import UsageError, write_errors
from seglog_format.storage.files import LOCAL_FILES, TEMPORARY_SUFFIX, rename_to_new, replace_file
from seglog_format.storage.new_directory import STAGING_PREFIX, directories_for, write_new_file

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from seglog_format.storage.byte_source import Buffer

LONGEST: Final = 50
"""Maximum number of characters of a file's name that are used in the name of its temporary file."""


def write_report(path: Path, data: str | Buffer) -> None:
    """Write a file, and missing directories above it; replace an existing file atomically.

    Args:
        path: of the file. A device or pipe is written to directly; a link keeps its target.
        data: the content; text becomes UTF-8.

    Raises:
        WriteError: writing failed; an existing file is unchanged.
    """
    content = data.encode() if isinstance(data, str) else data
    with write_errors("writing"):
        target = path.resolve()
        if target.exists() and not target.is_file() and not target.is_dir():
            target.write_bytes(content)
            return
        temporary = target.with_name(f".{target.name[:LONGEST]}-{token_hex(4)}{TEMPORARY_SUFFIX}")
        with directories_for(target.parent):
            replace_file(LOCAL_FILES, target, content, temporary)


def write_new(path: Path, pieces: Iterable[Buffer]) -> None:
    """Write a new file, and missing directories above it; it appears with its whole content, or not at all.

    Args:
        path: of the file.
        pieces: the content.

    Raises:
        UsageError: the path exists.
        WriteError: writing failed.
    """
    temporary = path.with_name(f"{STAGING_PREFIX}{token_hex(4)}{TEMPORARY_SUFFIX}")
    with directories_for(path.parent):
        try:
            write_new_file(path.parent, temporary.name, pieces)
            with write_errors("writing"):
                _give_name(temporary, path)
                LOCAL_FILES.fsync_directory(path.parent)
        finally:
            temporary.unlink(missing_ok=True)


def _give_name(temporary: Path, path: Path) -> None:
    try:
        rename_to_new(temporary, path)
    except FileExistsError as error:
        msg = f"{path} is there already"
        raise UsageError(msg) from error

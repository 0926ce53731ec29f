"""Atomic writing of a file to a path that the user chose."""

from __future__ import annotations

from secrets import token_hex
from typing import TYPE_CHECKING, Final

from seglog_format.errors import write_errors
from seglog_format.storage.files import LOCAL_FILES, TEMPORARY_SUFFIX, replace_file
from seglog_format.storage.new_directory import directories_for

if TYPE_CHECKING:
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

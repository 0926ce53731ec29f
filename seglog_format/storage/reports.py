"""Writing one file that a user asked for by its path: whole, or not at all."""

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
"""Characters of a file's name that its temporary file keeps: names must not become too long."""


def write_report(path: Path, data: str | Buffer) -> None:
    """Write a file, and the directories above it that are not there. A file that was there is replaced at once.

    Args:
        path: where to. A device or pipe is written to as it is; a link keeps leading where it leads.
        data: the content; text becomes UTF-8.

    Raises:
        WriteError: it did not work; a file that was there is as it was.
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

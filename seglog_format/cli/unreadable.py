"""The message about a file of which nothing could be read."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from seglog_format.log.foreign_files import foreign_at
from seglog_format.object_names import parse_object_name

if TYPE_CHECKING:
    from pathlib import Path

NOTHING_READABLE: Final = "nothing readable"
"""The state of a log with bytes and without an entry."""
LOG_HINT: Final = "the first batch is damaged, or the file is encrypted or no log"
OBJECT_HINT: Final = "an object of a remote store, encrypted or compressed"


def unreadable_text(name: str, size: int, path: Path | None = None) -> str:
    """Return the message about a log with bytes and without an entry.

    Args:
        name: of the file, for the message.
        size: in bytes.
        path: of the file, if its first bytes can be read there.
    """
    is_object = parse_object_name(PurePath(name).name) is not None
    hint = OBJECT_HINT if is_object else (path and foreign_at(path)) or LOG_HINT
    return f"{name}: nothing could be read of its {size:,} bytes; {hint}"

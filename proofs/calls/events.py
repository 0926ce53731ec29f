"""What a process did to its files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

EMPTIES: Final = "empties"
"""What a file that is created loses, if it was there already."""


@dataclass(frozen=True, slots=True)
class Event:
    """What happened to the file system, in the order in which calls returned; a sync also when it begins.

    Attributes:
        what: create, write, truncate, sync begins, sync, rename, link, remove, make directory, send.
        path: of the file or directory.
        more: the new path of what was renamed or linked; the text that was written; that creating empties.
    """

    what: str
    path: str
    more: str = ""

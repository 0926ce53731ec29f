"""Events of a process's files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

EMPTIES: Final = "empties"
"""Detail of a creation that empties a file which exists already."""


@dataclass(frozen=True, slots=True)
class Event:
    """An operation on the file system, in the order in which calls returned; a sync also when it begins.

    Attributes:
        what: create, write, truncate, sync begins, sync, rename, link, remove, make directory, send.
        path: of the file or directory.
        more: new path of a renamed or linked file; text that was written; or that the creation empties the file.
    """

    what: str
    path: str
    more: str = ""

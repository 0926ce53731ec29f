"""Operations on files that fail when a test says so."""

from __future__ import annotations

import errno
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(slots=True)
class Fault:
    """An operation that fails.

    Attributes:
        operation: its name in the file layer; a star for any.
        number: errno.
        ending: of the names of files that it is about.
        after: how many such operations work before.
        times: how many fail then.
        keep: bytes that a write gets done before it fails.
    """

    operation: str
    number: int = errno.EIO
    ending: str = ""
    after: int = 0
    times: int = 1
    keep: int = 0

    def strikes(self, operation: str, path: Path) -> bool:
        """Tell whether an operation fails; it has to be asked once for each."""
        if not operation or self.operation not in {"*", operation} or not path.name.endswith(self.ending):
            return False
        self.after -= 1
        return -self.times <= self.after < 0

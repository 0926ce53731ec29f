"""Operations on files that fail on request of a test."""

from __future__ import annotations

import errno
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(slots=True)
class Fault:
    """A fault in the file layer.

    Attributes:
        operation: name of the operation in the file layer; a star for any.
        number: errno of the failure.
        ending: suffix of the names of affected files.
        after: number of such operations that succeed first.
        times: number of operations that then fail.
        keep: number of bytes that a write stores before it fails.
    """

    operation: str
    number: int = errno.EIO
    ending: str = ""
    after: int = 0
    times: int = 1
    keep: int = 0

    def strikes(self, operation: str, path: Path) -> bool:
        """Return whether an operation fails; call this once per operation."""
        if not operation or self.operation not in {"*", operation} or not path.name.endswith(self.ending):
            return False
        self.after -= 1
        return -self.times <= self.after < 0

"""The maximum size of an entry that a reader loads whole into memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog_format.codec.compression import DEFAULT_OUTPUT_LIMIT
from seglog_format.errors import Location, RefusedError

if TYPE_CHECKING:
    from seglog_format.model import Frame


def refuse_large(frame: Frame, at: Location, limit: int) -> None:
    """Refuse an entry that is too large to be loaded whole into memory.

    Raises:
        RefusedError: it is larger than both the limit and `DEFAULT_OUTPUT_LIMIT` (SEG-COD-016).
    """
    most, size = max(limit, DEFAULT_OUTPUT_LIMIT), frame.header.size_in_bytes
    if size > most:
        at = at.at("size", 8, 4)
        raise RefusedError(at, "SEG-COD-016", expected=f"an entry of at most {most} bytes", found=size)

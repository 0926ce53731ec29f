"""The size of an entry that a reader takes into memory whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog_format.codec.compression import DEFAULT_OUTPUT_LIMIT
from seglog_format.errors import Location, RefusedError

if TYPE_CHECKING:
    from seglog_format.model import Frame


def refuse_large(frame: Frame, at: Location, limit: int) -> None:
    """Refuse an entry that is too large to be in memory whole.

    Raises:
        RefusedError: it has more bytes than the limit, and than `DEFAULT_OUTPUT_LIMIT` (SEG-COD-016).
    """
    most, size = max(limit, DEFAULT_OUTPUT_LIMIT), frame.header.size_in_bytes
    if size > most:
        at = at.at("size", 8, 4)
        raise RefusedError(at, "SEG-COD-016", expected=f"an entry of at most {most} bytes", found=size)

"""Text for people: escaped for terminals, sizes, times."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from seglog_format import names

EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
SIZE_UNITS: Final = ("B", "KiB", "MiB", "GiB", "TiB")
KIBI: Final = 1024


def printable(text: str) -> str:
    r"""Escape everything that could control a terminal, as ``\x1b``, ``\u202e`` and the like."""
    return text if text.isprintable() else names.printable(text, len(text))


def time_text(timestamp_ms: int) -> str:
    """Return an instant in UTC with milliseconds; the bare number if no calendar has it, ``-`` for none."""
    if timestamp_ms == -1:
        return "-"
    try:
        moment = EPOCH + timedelta(milliseconds=timestamp_ms)
    except OverflowError:
        return f"{timestamp_ms}ms"
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{timestamp_ms % 1000:03d}Z"


def size_text(size: int) -> str:
    """Return a size in the largest unit that keeps the number above 1: ``999 B``, ``1.5 KiB``."""
    if size < KIBI:
        return f"{size} B"
    amount, unit = float(size), 0
    while amount >= KIBI and unit < len(SIZE_UNITS) - 1:
        amount, unit = amount / KIBI, unit + 1
    return f"{amount:.1f} {SIZE_UNITS[unit]}"


def count_text(count: int, noun: str) -> str:
    """Return a count with its noun: ``1 batch``, ``2 batches``."""
    if count == 1:
        return f"1 {noun}"
    plural = noun + ("es" if noun.endswith(("ch", "x", "s")) else "s")
    if noun.endswith("y"):
        plural = noun[:-1] + "ies"
    return f"{count:,} {plural}"

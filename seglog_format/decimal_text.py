"""Decimal numbers in names and text files, as a broker's own parser accepts them (chapter 00)."""

from __future__ import annotations

import re
import unicodedata
from typing import Final

MAX_DIGITS: Final = len(str(2**63 - 1))
"""Number of digits of the greatest 64-bit number."""

SHORT: Final = 20
"""Number of digits in the name of a segment; texts of at most this length take the fast path."""

_NUMBER = re.compile(r"[+-]?\d+")


def is_decimal(text: str) -> bool:
    """Return whether the text is a decimal number as chapter 00 defines it, of any size.

    A broker's own parser accepts an optional sign, and decimal digits of any script in the Basic Multilingual Plane.
    """
    return bool(_NUMBER.fullmatch(text)) and (text.isascii() or max(text) <= "\uffff")


def parse_decimal(text: str, *, bits: int) -> int | None:
    """Return the value of a decimal number; None if the text is not a number, or the number exceeds the width.

    Args:
        text: any string, of any length.
        bits: width of the signed integer: 32 or 64.
    """
    is_short = len(text) <= SHORT and text.isascii() and text.isdigit()  # nearly all are
    value = int(text) if is_short else _value_of(text)
    return value if value is not None and -(1 << bits - 1) <= value < 1 << bits - 1 else None


def _value_of(text: str) -> int | None:
    """Return the value of a decimal number; None if the text is no number, or has far too many digits."""
    if not is_decimal(text):
        return None
    digits = "".join(str(unicodedata.decimal(each)) for each in text.lstrip("+-"))
    significant = digits.lstrip("0") or "0"
    if len(significant) > MAX_DIGITS:
        return None
    return -int(significant) if text[0] == "-" else int(significant)

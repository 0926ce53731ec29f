"""A field's value as text, for the terminal and for the HTML page."""

from __future__ import annotations

import codecs
from typing import TYPE_CHECKING, Final

from seglog_format.cli.render import printable

if TYPE_CHECKING:
    from seglog_format.inspection import Field

MAX_TEXT: Final = 60
MAX_DECODED: Final = 4096
"""Bytes by which a value is recognised as text."""
UTF8: Final = codecs.getincrementaldecoder("utf-8")
MAX_HEX: Final = 24
HEX_FIELDS: Final = {"crc", "attributes"}
"""Numbers shown in hex."""


def value_text(field: Field) -> str:
    """Return the value in a few characters: a number, the first bytes, or nothing for a group."""
    value = field.value
    if field.is_group or value == "":
        return ""
    if value is None:
        return "?" if field.failed else "null"
    if isinstance(value, bytes):
        return bytes_text(value)
    if field.name in HEX_FIELDS and isinstance(value, int):
        width = 2 * (field.end - field.start)
        return f"0x{value % 16**width:0{width}x}"
    return printable(str(value))


def bytes_text(value: bytes) -> str:
    """Return quoted text for printable UTF-8, else hex digits; long values are cut, with the size in front."""
    try:
        text = UTF8().decode(value[:MAX_DECODED], final=len(value) <= MAX_DECODED)
    except UnicodeDecodeError:
        text = ""
    if value and (not text or sum(not character.isprintable() for character in text) * 4 > len(text)):
        digits = value[:MAX_HEX].hex()
        return f"0x{digits}" if len(value) <= MAX_HEX else f"{len(value)} bytes 0x{digits}…"
    if len(text) <= MAX_TEXT:
        return f'"{printable(text)}"'
    return f'{len(value)} bytes "{printable(text[:MAX_TEXT])}…"'

"""Decoder of pasted bytes: hex in any common form, Base64, or raw bytes."""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from typing import Final

HEXDUMP_LINE: Final = re.compile(
    r"^(?:0x)?[0-9a-fA-F]{4,16}(?::|\s\s|\t)\s*((?:[0-9a-fA-F]{2}[ \t]{0,2}){1,32})(?:\s.*)?$"
)
"""A line of ``xxd``, ``hexdump -C`` and similar tools: position, bytes, and optionally the bytes as text."""

HEX_NOISE: Final = re.compile(r"0x|\\x|[\s,:;_\-\[\]{}()\"'<>]", re.IGNORECASE)
HEX_COMMENT: Final = re.compile(r"(?:^|\s)[;#][^\n]*")
HEX_DIGITS: Final = re.compile(r"(?:[0-9a-fA-F]{2})+")
BASE64_TEXT: Final = re.compile(r"[A-Za-z0-9+/_\-]+={0,2}")


def pasted_bytes(content: bytes) -> tuple[bytes, str]:
    """Decode pasted input.

    Args:
        content: hex digits, a hex dump, Base64, or raw bytes.

    Returns:
        The bytes, and their form: ``hex``, ``hex dump``, ``Base64`` or ``raw bytes``.
    """
    try:
        text = content.decode("ascii").strip()
    except UnicodeDecodeError:
        return content, "raw bytes"
    for name, reader in (("hex dump", _from_hexdump), ("hex", _from_hex), ("Base64", _from_base64)):
        data = reader(text)
        if data:
            return data, name
    return content, "raw bytes"


def _from_hexdump(text: str) -> bytes | None:
    lines = [line for line in text.splitlines() if line.strip()]
    matches = [HEXDUMP_LINE.match(line) for line in lines]
    # The last line of hexdump -C holds only the size; a star replaces lines that are equal to the one before.
    if len(matches) > 1 and matches[-1] is None and HEX_DIGITS.fullmatch(lines[-1].strip()):
        matches.pop()
    if not matches or not all(matches):
        return None
    return bytes.fromhex("".join(match[1] for match in matches if match))


def _from_hex(text: str) -> bytes | None:
    digits = HEX_NOISE.sub("", HEX_COMMENT.sub(" ", text))
    return bytes.fromhex(digits) if HEX_DIGITS.fullmatch(digits) else None


def _from_base64(text: str) -> bytes | None:
    joined = "".join(text.split())
    if not BASE64_TEXT.fullmatch(joined):
        return None
    plain = joined.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except binascii.Error:
        return None

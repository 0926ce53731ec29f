"""Bytes as JSON values."""

from __future__ import annotations

import hashlib
from base64 import b64encode
from typing import TYPE_CHECKING, Final

from seglog_format.lines.long import LongBytes

if TYPE_CHECKING:
    from collections.abc import Callable

    from seglog_format.lines.options import LineOptions

    ByteWriter = Callable[[bytes | None], object]


def as_utf8(value: bytes) -> object:
    """Return text if the bytes are UTF-8, else an object with their hex digits."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"hex": value.hex()}


def as_base64(value: bytes) -> object:
    """Return Base64 with padding."""
    return b64encode(value).decode("ascii")


def as_hex(value: bytes) -> object:
    """Return lower-case hex digits."""
    return value.hex()


def as_digest(value: bytes) -> object:
    """Return only the number of bytes, and their SHA-256."""
    return {"bytes": len(value), "sha256": hashlib.sha256(value).hexdigest()}


WRITERS: Final = {"utf8": as_utf8, "hex": as_hex, "base64": as_base64}


def byte_writer(options: LineOptions) -> ByteWriter:
    """Return the function that converts keys, values and headers to JSON values; null stays null, empty stays empty."""
    write = WRITERS[options.bytes_as]
    limit, long_over = options.digest_over, options.long_over

    def written(value: bytes | None) -> object:
        if value is None:
            return None
        if limit is not None and len(value) > limit:
            return as_digest(value)
        return write(value) if long_over is None or len(value) <= long_over else LongBytes(value, options.bytes_as)

    return written

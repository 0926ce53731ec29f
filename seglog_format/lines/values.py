"""Bytes as JSON values."""

from __future__ import annotations

import codecs
import hashlib
from base64 import b64encode
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from seglog_format.lines.options import BytesAs, LineOptions

    ByteWriter = Callable[[bytes | None], object]


# -- values too long for one JSON text, which are written in pieces or cut ---------------------------------------------


PIECE_SIZE: Final = 3 * 2**18
"""Bytes of a value converted to text at a time: a multiple of 3 for Base64."""
UTF8: Final = codecs.getincrementaldecoder("utf-8")


class LongBytes:
    """A key, value or header of very many bytes.

    Args:
        value: the bytes.
        bytes_as: their form.
    """

    def __init__(self, value: bytes, bytes_as: BytesAs) -> None:
        self._value = value
        self._bytes_as = "hex" if bytes_as == "utf8" and not _is_utf8(value) else bytes_as
        self._is_wrapped = self._bytes_as != bytes_as

    def __len__(self) -> int:
        """Return the number of bytes."""
        return len(self._value)

    def json_pieces(self, encode: Callable[[str], str]) -> Iterator[str]:
        """Yield the JSON text in pieces.

        Args:
            encode: encodes a string as JSON.
        """
        yield '{"hex":"' if self._is_wrapped else '"'
        for text in self._texts():
            yield encode(text)[1:-1]
        yield '"}' if self._is_wrapped else '"'

    def start(self, size: int) -> str:
        """Return the text of the first bytes; ``0x`` and hex digits if they are not text."""
        value = self._value[:size]
        match self._bytes_as:
            case "utf8":
                return UTF8().decode(value)
            case "base64":
                return b64encode(value[: size // 3 * 3]).decode("ascii")
            case _:
                return f"{'0x' if self._is_wrapped else ''}{value.hex()}"

    def _texts(self) -> Iterator[str]:
        if self._bytes_as == "utf8":
            yield from _decoded(self._value)
        else:
            for piece in _pieces(self._value):
                yield piece.hex() if self._bytes_as == "hex" else b64encode(piece).decode("ascii")


class LongList:
    """A list of very many items, each created during iteration.

    Args:
        items: returns a new iterator over the items.
        count: number of items.
    """

    def __init__(self, items: Callable[[], Iterator[Any]], count: int) -> None:
        self._items, self._count = items, count

    def __len__(self) -> int:
        """Return the number of items."""
        return self._count

    def __iter__(self) -> Iterator[Any]:
        return self._items()


def list_of(items: Callable[[], Iterator[Any]], count: int, long_over: int | None) -> list[Any] | LongList:
    """Return items as a list, or as a `LongList` if there are more than ``long_over``."""
    return list(items()) if long_over is None or count <= long_over else LongList(items, count)


def _pieces(value: bytes) -> Iterator[memoryview]:
    view = memoryview(value)
    return (view[start : start + PIECE_SIZE] for start in range(0, len(view), PIECE_SIZE))


def _decoded(value: bytes) -> Iterator[str]:
    decoder = UTF8()
    for piece in _pieces(value):
        yield decoder.decode(piece)
    yield decoder.decode(b"", final=True)


def _is_utf8(value: bytes) -> bool:
    try:
        for _ in _decoded(value):
            pass
    except UnicodeDecodeError:
        return False
    return True


# -- bytes as JSON values ----------------------------------------------------------------------------------------------


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

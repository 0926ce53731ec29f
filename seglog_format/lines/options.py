"""Options of `lines_of`, the opening of its files, values too long for one JSON text, and bytes as JSON values."""

from __future__ import annotations

import codecs
import hashlib
from base64 import b64encode
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from seglog_format.lines.sources import SourceKind
from seglog_format.log.entry_table import WantedRange
from seglog_format.model import DEFAULT_OUTPUT_LIMIT
from seglog_format.storage.byte_source import MAX_LOG_SIZE, MAX_WHOLE_SIZE, refuse_beyond, refuse_large_log, source_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from seglog_format.lines.sources import Source

    ByteWriter = Callable[[bytes | None], object]
    from seglog_format.storage.byte_source import Readable, SourceFile


BytesAs: TypeAlias = Literal["utf8", "hex", "base64"]
Line: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class LineOptions(WantedRange):
    """The keyword arguments of `lines_of` in one value, with an option for callers that write lines in pieces.

    Attributes:
        long_over: byte strings longer than this become `LongBytes`, lists of more items `LongList`; None for no limit.
    """

    bytes_as: BytesAs = "utf8"
    digest_over: int | None = None
    long_over: int | None = None
    raw: bool = False
    decode: bool = False
    decode_as: str | None = None
    records: bool = True
    limit: int = DEFAULT_OUTPUT_LIMIT

    def wants(self, source: Source) -> bool:
        """Return whether a file can hold a requested line."""
        is_log = source.kind is SourceKind.LOG and source.is_live
        return not self.is_window or (is_log and self.overlaps(source.base_offset, source.allowed.last + 1))


# -- opening of files for `lines_of` -----------------------------------------------------------------------------------


def opened(source: Source) -> SourceFile:
    """Open a file; refuse a log or an index larger than Kafka allows.

    Args:
        source: the file.

    Raises:
        UsageError: the file does not exist, or is not a regular file.
        UnreadableError: the user may not read the file, or the disk refuses it (SEG-PDR-022).
        RefusedError: the file is too large (SEG-LOG-010, SEG-PDR-020).
    """
    check = None
    if source.kind is SourceKind.LOG:
        check = refuse_large_log
    elif source.kind in {SourceKind.OFFSET_INDEX, SourceKind.TIME_INDEX}:
        check = partial(refuse_beyond, MAX_LOG_SIZE)
    return source.storage.open(source.path, check=check)


def whole(data: Readable, name: str) -> memoryview:
    """Return all bytes of a file.

    Raises:
        RefusedError: the file is too large (SEG-PDR-020).
    """
    stored = source_of(data)
    refuse_beyond(MAX_WHOLE_SIZE, stored.size, name)
    return stored.view(0, stored.size)


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

"""The bytes of Avro values: numbers, texts and other types without parts."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any, Final

from seglog_format.values.undecoded import UndecodedError

MAX_SHIFT: Final = 63
INT64: Final = range(-(2**63), 2**63)
INT32: Final = range(-(2**31), 2**31)
FLOAT: Final = struct.Struct("<f")
DOUBLE: Final = struct.Struct("<d")


class Input:
    """The bytes of a value, and the position of the next one to read."""

    __slots__ = ("data", "position")

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.position = 0


Read = Callable[[Input], Any]


def read_whole(read: Read, data: bytes) -> Any:  # noqa: ANN401 - decoded objects
    """Read a value that takes all bytes.

    Raises:
        UndecodedError: it takes fewer, or there are too few.
    """
    source = Input(data)
    try:
        value = read(source)
    except IndexError as error:
        msg = "not a value of its Avro schema: its bytes end early"
        raise UndecodedError(msg) from error
    except UndecodedError as error:
        msg = f"not a value of its Avro schema: {error}"
        raise UndecodedError(msg) from error
    if source.position != len(data):
        msg = f"{len(data) - source.position} bytes after the Avro value"
        raise UndecodedError(msg)
    return value


def read_long(source: Input) -> int:
    """Read a number of at most 64 bits."""
    data, position = source.data, source.position
    value = shift = 0
    while True:
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:  # noqa: PLR2004 - the highest bit says that more bytes follow
            break
        shift += 7
        if shift > MAX_SHIFT:
            msg = "a number takes more than ten bytes"
            raise UndecodedError(msg)
    source.position = position
    value = (value >> 1) ^ -(value & 1)
    return value if value in INT64 else _refuse_number(value)


def read_int(source: Input) -> int:
    """Read a number of at most 32 bits."""
    value = read_long(source)
    return value if value in INT32 else _refuse_number(value)


def _refuse_number(value: int) -> int:
    msg = f"the number {value} is out of range"
    raise UndecodedError(msg)


def taken(source: Input, size: int) -> bytes:
    """Read a number of bytes.

    Raises:
        UndecodedError: there are fewer.
    """
    position = source.position
    end = position + size
    if size < 0 or end > len(source.data):
        msg = f"its bytes end early: {size} wanted, {len(source.data) - position} left"
        raise UndecodedError(msg)
    source.position = end
    return source.data[position:end]


def read_bytes(source: Input) -> bytes:
    """Read bytes."""
    return taken(source, read_long(source))


def read_string(source: Input) -> str:
    """Read a text."""
    return read_bytes(source).decode()


def _boolean(source: Input) -> bool:
    (byte,) = taken(source, 1)
    if byte > 1:
        msg = f"the byte {byte} is neither true nor false"
        raise UndecodedError(msg)
    return byte == 1


def _float(source: Input) -> float:
    found: float = FLOAT.unpack(taken(source, FLOAT.size))[0]
    return found


def _double(source: Input) -> float:
    found: float = DOUBLE.unpack(taken(source, DOUBLE.size))[0]
    return found


def read_null(_source: Input) -> None:
    """Read null."""
    return


READS: Final[dict[str, Read]] = {
    "null": read_null,
    "boolean": _boolean,
    "int": read_int,
    "long": read_long,
    "float": _float,
    "double": _double,
    "bytes": read_bytes,
    "string": read_string,
}


def block_count(source: Input) -> int:
    """Return the number of items in the next block of an array or map; 0 at its end."""
    count = read_long(source)
    if count < 0:
        read_long(source)  # the size of the block in bytes
    return abs(count)

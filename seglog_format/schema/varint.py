"""Variable-length numbers, and byte strings with such lengths (chapter 31).

A signed number is zig-zag encoded (0, -1, 1, -2, ... become 0, 1, 2, 3, ...) and stored in groups of seven bits,
low group first; the top bit of a byte says that another follows. Compact arrays and strings of the KRaft control
records use the unsigned form.
"""

from __future__ import annotations

from typing import Any

from construct import Construct, IntegerError, SizeofError, Subconstruct, stream_read, stream_write

from seglog_format.schema.fields import SchemaError

VARINT_MAX_SIZE = {32: 5, 64: 10}


def unsigned_varint(value: int) -> bytes:
    """Return the shortest encoding of a number that is not negative."""
    groups = bytearray()
    while value > 0x7F:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    groups.append(value)
    return bytes(groups)


def zigzag(value: int) -> int:
    """Convert 0, -1, 1, -2, ... to 0, 1, 2, 3, ..."""
    return value << 1 if value >= 0 else (-value << 1) - 1


def unzigzag(value: int) -> int:
    """Convert 0, 1, 2, 3, ... to 0, -1, 1, -2, ..."""
    return value >> 1 if value & 1 == 0 else -(value >> 1) - 1


def varint_size(value: int) -> int:
    """Return the size of the shortest encoding of a signed number (SEG-REC-005)."""
    return max((zigzag(value).bit_length() + 6) // 7, 1)


class UnsignedVarint(Construct):
    """An unsigned number of at most ``bits`` bits; more bits in the last byte are dropped (SEG-REC-004)."""

    def __init__(self, bits: int) -> None:
        super().__init__()
        self.bits = bits
        self.type_name = f"uvarint{bits}"

    def _parse(self, stream: Any, context: Any, path: str) -> int:
        value = 0
        for group in range(VARINT_MAX_SIZE[self.bits]):
            byte = stream_read(stream, 1, path)[0]
            value |= (byte & 0x7F) << (7 * group)
            if byte < 0x80:
                return int(value & (1 << self.bits) - 1)
        limit = f"a varint of at most {VARINT_MAX_SIZE[self.bits]} bytes"
        raise SchemaError(limit, "a longer one", "SEG-REC-004")

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        if not 0 <= obj < 1 << self.bits:
            msg = f"a number of {self.bits} bits cannot hold the value"
            raise IntegerError(msg, path=path)
        data = unsigned_varint(obj)
        stream_write(stream, data, len(data), path)
        return obj


class Varint(UnsignedVarint):
    """A signed, zigzag encoded number."""

    def __init__(self, bits: int) -> None:
        super().__init__(bits)
        self.type_name = f"varint{bits}"

    def _parse(self, stream: Any, context: Any, path: str) -> int:
        return unzigzag(super()._parse(stream, context, path))

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        super()._build(zigzag(obj), stream, context, path)
        return obj


Varint32 = Varint(32)
Varint64 = Varint(64)
UnsignedVarint32 = UnsignedVarint(32)


class NullableBytes(Subconstruct):
    """Bytes after their length; any negative length means null (SEG-REC-007, SEG-MSG-007)."""

    type_name = "nullable bytes"

    def __init__(self, length: Construct) -> None:
        super().__init__(length)

    def _parse(self, stream: Any, context: Any, path: str) -> bytes | None:
        size = self.subcon._parsereport(stream, context, path)
        return None if size < 0 else bytes(stream_read(stream, size, path))

    def _build(self, obj: Any, stream: Any, context: Any, path: str) -> Any:
        self.subcon._build(-1 if obj is None else len(obj), stream, context, path)
        if obj is not None:
            stream_write(stream, obj, len(obj), path)
        return obj

    def _sizeof(self, context: Any, path: str) -> int:
        raise SizeofError(path=path)

"""Defaults of Avro fields: JSON, as the bytes that a writer would have written."""

from __future__ import annotations

import struct
from typing import Any, Final

from seglog_format.values.avro_schema import NO_DEFAULT, RECORDS, AvroType
from seglog_format.values.shape import BASE_CELLS
from seglog_format.values.undecoded import UndecodedError

BITS: Final = {"int": 31, "long": 63}
FLOATS: Final = {"float": struct.Struct("<f"), "double": struct.Struct("<d")}


def encoded_default(kind: AvroType, default: Any) -> bytes:  # noqa: ANN401 - any JSON
    """Return a default as a value of its type.

    In JSON, bytes are text with a code point of 0 to 255 for each. A union takes its first branch that the default
    fits; a record that omits fields gets their own defaults.

    Raises:
        UndecodedError: the default is not of the type, or stands for too many values.
    """
    writer = _Writer()
    writer.write(kind, default)
    return bytes(writer.found)


class _Writer:
    def __init__(self) -> None:
        self.found = bytearray()
        self._left = BASE_CELLS

    def write(self, kind: AvroType, value: Any) -> None:  # noqa: ANN401 - any JSON
        self._left -= 1
        if self._left < 0:
            msg = f"a default stands for more than {BASE_CELLS} values"
            raise UndecodedError(msg)
        try:
            self._write(kind, value)
        except (AttributeError, TypeError, ValueError, struct.error, OverflowError, KeyError) as error:
            msg = f"the default {value!r:.40} is no {kind.name or kind.kind}"
            raise UndecodedError(msg) from error

    def _write(self, kind: AvroType, value: Any) -> None:  # noqa: ANN401 - as above
        if kind.kind == "union":
            self._write_union(kind, value)
        elif kind.kind in RECORDS:
            for each in kind.fields:
                self.write(each.type, _item(value, each.name, each.default))
        elif kind.kind in {"array", "map"}:
            self._write_items(kind, value)
        elif kind.kind in FLOATS:
            self.found += FLOATS[kind.kind].pack(_number(value))
        elif kind.kind in BITS:
            self._write_long(_whole(value, BITS[kind.kind]))
        else:
            self._write_leaf(kind, value)

    def _write_leaf(self, kind: AvroType, value: Any) -> None:  # noqa: ANN401 - as above
        if kind.kind == "null":
            _require(value is None)
        elif kind.kind == "boolean":
            _require(isinstance(value, bool))
            self.found.append(value)
        elif kind.kind == "enum":
            self._write_long(kind.symbols.index(value))
        elif kind.kind == "fixed":
            _require(len(value) == kind.size)
            self.found += value.encode("latin-1")
        else:
            data = value.encode("utf-8" if kind.kind == "string" else "latin-1")
            self._write_long(len(data))
            self.found += data

    def _write_items(self, kind: AvroType, value: Any) -> None:  # noqa: ANN401 - as above
        assert kind.items is not None
        is_map = kind.kind == "map"
        _require(isinstance(value, dict if is_map else list))
        if value:
            self._write_long(len(value))
        for each in value.items() if is_map else value:
            if is_map:
                self._write_leaf(AvroType("string"), each[0])
            self.write(kind.items, each[1] if is_map else each)
        self.found.append(0)

    def _write_union(self, kind: AvroType, value: Any) -> None:  # noqa: ANN401 - as above
        before = len(self.found)
        for number, branch in enumerate(kind.branches):
            try:
                self._write_long(number)
                self.write(branch, value)
            except UndecodedError:
                del self.found[before:]
                if self._left < 0:
                    raise
            else:
                return
        raise ValueError

    def _write_long(self, value: int) -> None:
        left = value * 2 if value >= 0 else -value * 2 - 1
        while left > 0x7F:  # noqa: PLR2004 - seven bits in each byte
            self.found.append(left & 0x7F | 0x80)
            left >>= 7
        self.found.append(left)


def _item(value: Any, name: str, default: Any) -> Any:  # noqa: ANN401 - any JSON
    _require(isinstance(value, dict))
    found = value.get(name, default)
    _require(found is not NO_DEFAULT)
    return found


def _whole(value: Any, bits: int) -> int:  # noqa: ANN401 - as above
    _require(type(value) is int and -(2**bits) <= value < 2**bits)
    return int(value)


def _number(value: Any) -> float:  # noqa: ANN401 - as above
    _require(type(value) in {int, float})
    return float(value)


def _require(is_of_the_type: bool) -> None:  # noqa: FBT001 - a condition
    if not is_of_the_type:
        raise ValueError

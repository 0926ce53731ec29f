"""Reader of the values of a line; its errors name the number of the line."""

from __future__ import annotations

import binascii
from base64 import b64decode
from typing import TYPE_CHECKING, Any, Final, NoReturn

from seglog_format.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seglog_format.lines.options import BytesAs, Line

PAIR: Final = 2


class LineReader:
    """One line, or an object inside one.

    Args:
        line_number: from 1, for errors.
        line: the object.
        bytes_as: the form of bytes in it.

    All methods raise `UsageError` for invalid values.
    """

    def __init__(self, line_number: int, line: Line, bytes_as: BytesAs = "utf8") -> None:
        self._number = line_number
        self._line = line
        self._bytes_as = bytes_as
        if not isinstance(line, dict):
            self.refuse("this is not an object")

    def refuse(self, reason: str) -> NoReturn:
        """Raise an error about this line."""
        msg = f"line {self._number}: {reason}"
        raise UsageError(msg)

    def __contains__(self, name: str) -> bool:
        return self._line.get(name) is not None

    @property
    def type(self) -> str:
        """Type of the line."""
        return self.text("type")

    def _take(self, name: str) -> Any:  # noqa: ANN401 - a JSON value
        if name not in self._line:
            self.refuse(f"there is no {name!r}")
        return self._line[name]

    def text(self, name: str) -> str:
        """Return a text that UTF-8 can encode."""
        value = self._take(name)
        if not isinstance(value, str) or not _is_utf8(value):
            self.refuse(f"{name} is text, not {value!r}")
        return value

    def flag(self, name: str) -> bool:
        """Return a boolean; False if it is missing."""
        return self._line.get(name) is True

    def number(self, name: str, *, bits: int = 64) -> int:
        """Return a signed number of at most ``bits`` bits."""
        return self._checked(name, self._take(name), bits)

    def number_or(self, name: str, default: int, *, bits: int = 64) -> int:
        """Return a signed number, or the default if it is missing."""
        return self.number(name, bits=bits) if name in self else default

    def _checked(self, name: str, value: object, bits: int) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not -(1 << bits - 1) <= value < 1 << bits - 1:
            self.refuse(f"{name} is a number of {bits} bits, not {value!r}")
        return value

    def difference(self, name: str, value: int, origin: int, *, bits: int = 32) -> int:
        """Return a value minus an origin; the difference must fit ``bits`` bits."""
        return self._checked(f"{name} minus {origin}", value - origin, bits)

    def _list(self, name: str) -> list[Any]:
        value = self._take(name)
        if not isinstance(value, list):
            self.refuse(f"{name} is a list, not {value!r}")
        return value

    def inner(self, name: str) -> list[LineReader]:
        """Return the objects of a list."""
        return [LineReader(self._number, item, self._bytes_as) for item in self._list(name)]

    def pairs(self, name: str, base_offset: int, *, of_offset: int) -> list[Sequence[int]]:
        """Return the entries of an index.

        Args:
            name: of the list.
            base_offset: base of the relative offsets in the file.
            of_offset: index of the offset in a pair; the other number is a position after it, or a timestamp before it.
        """
        entries = [self._pair(name, entry) for entry in self._list(name)]
        for entry in entries:
            self.difference("offset", entry[of_offset], base_offset)
            self._checked(name, entry[1 - of_offset], 64 if of_offset else 32)
        return entries

    def _pair(self, name: str, entry: object) -> Sequence[int]:
        if not isinstance(entry, list) or len(entry) != PAIR:
            self.refuse(f"an entry of {name} is a pair, not {entry!r}")
        return [self._checked(name, number, 64) for number in entry]

    def data(self, name: str) -> bytes | None:
        """Return bytes, or None for null."""
        return self._bytes(name, self._take(name))

    def headers(self) -> list[tuple[bytes, bytes | None]]:
        """Return pairs of key and value; empty if the line has none."""
        if "headers" not in self:
            return []
        pairs = self._list("headers")
        if not all(isinstance(pair, list) and len(pair) == PAIR and pair[0] is not None for pair in pairs):
            self.refuse("headers are pairs, and their keys are not null")
        return [(self._bytes("headers", key) or b"", self._bytes("headers", value)) for key, value in pairs]

    def _bytes(self, name: str, value: object) -> bytes | None:
        if value is None:
            return None
        try:
            return _decoded(value, self._bytes_as)
        except (ValueError, binascii.Error):
            self.refuse(f"{name} is not bytes as {self._bytes_as}: {value!r:.60}")


def _is_utf8(text: str) -> bool:
    """Return whether a text has no lone surrogates, which JSON can contain."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _decoded(value: object, bytes_as: BytesAs) -> bytes:
    if isinstance(value, dict) and list(value) == ["hex"] and bytes_as == "utf8":
        value, bytes_as = value["hex"], "hex"
    if not isinstance(value, str):
        msg = "bytes must be text"
        raise ValueError(msg)  # noqa: TRY004 - the same error as for text that is not bytes
    match bytes_as:
        case "utf8":
            return value.encode()
        case "hex":
            return bytes.fromhex(value)
        case _:
            return b64decode(value, validate=True)

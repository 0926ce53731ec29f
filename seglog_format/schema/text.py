"""Building blocks for declarations of names and text files: lines, words, decimal numbers, properties.

Each parses any text as a string. `Checked` fields of the declaration add conditions, so every error names its
requirement. Bytes that are not UTF-8 become surrogates, which no condition accepts.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from construct import Adapter, Construct, If, RepeatUntil, SizeofError, Subconstruct

from seglog_format.names import parse_decimal, printable

if TYPE_CHECKING:
    import io
    from collections.abc import Callable, Iterator

FOUND_SIZE: Final = 60
"""Characters of a line or word shown in an error."""

# White space and line ends as brokers define them. `\v` and `\f` separate fields, but do not end lines.
_LINE = re.compile(rb"([^\r\n]*)(?:\r\n|\r|\n)?")
_FIRST_WORD = re.compile(rb"([^ \t\v\f\r\n]*)")
_WORD = re.compile(rb"[ \t\v\f]*([^ \t\v\f\r\n]*)")
_REST = re.compile(rb"[ \t\v\f]*([^\r\n]*)(?:\r\n|\r|\n)?")


class Shown(str):
    """Text from a file, which errors show shortened and escaped."""

    __slots__ = ()

    def __str__(self) -> str:
        return printable(self, FOUND_SIZE) or "nothing"


def plain(text: str) -> str:
    """Return the text as an ordinary string, for the model."""
    return text[:]


class Matched(Construct):
    """The first group of a pattern at this position, or nothing if it does not match."""

    def __init__(self, pattern: re.Pattern[bytes], type_name: str) -> None:
        super().__init__()
        self.pattern = pattern
        self.type_name = type_name

    def _parse(self, stream: io.BytesIO, context: Any, path: str) -> Shown:
        match = self.pattern.match(stream.getvalue(), stream.tell())
        if match is None:
            return Shown()
        stream.seek(match.end())
        return Shown(match[1].decode("utf-8", "surrogateescape"))


Line = Matched(_LINE, "line")
"""Text up to the end of the line: LF, CR, CRLF or the end of the file."""

FirstWord = Matched(_FIRST_WORD, "word")
"""Text up to white space; nothing if the line starts with white space."""

Word = Matched(_WORD, "word")
"""The next word of the same line; nothing if there is none."""

RestOfLine = Matched(_REST, "rest of line")
"""The rest of a line, without white space before it."""


class Decimal(Adapter):
    """A decimal number of so many bits, as chapter 00 defines it."""

    def __init__(self, subcon: Construct, bits: int) -> None:
        super().__init__(subcon)
        self.bits = bits
        self.type_name = f"decimal int{bits}"

    def _decode(self, obj: str, context: Any, path: str) -> int | None:
        return parse_decimal(obj, bits=self.bits)


def fits(bits: int) -> Callable[[str], bool]:
    """Return a condition for `Checked`: a decimal number of that width."""
    return lambda text: parse_decimal(text, bits=bits) is not None


def is_utf8(text: str) -> bool:
    """Return whether the bytes were UTF-8, as a condition for `Checked`."""
    return not any("\ud800" <= character <= "\udfff" for character in text)


def is_not_negative(value: int) -> bool:
    """Return whether a number is not negative, as a condition for `Checked`."""
    return value >= 0


class AtEnd(Subconstruct):
    """A field with a default, which may be missing at the end of the file."""

    def __init__(self, subcon: Construct, default: object) -> None:
        super().__init__(subcon)
        self.default = default
        self.type_name = getattr(subcon, "type_name", "")

    def _parse(self, stream: io.BytesIO, context: Any, path: str) -> Any:
        return self.default if is_at_end(stream) else self.subcon._parsereport(stream, context, path)


class UntilEnd(Subconstruct):
    """A structure repeated zero or more times, up to the end of the file."""

    type_name = "lines"

    def __init__(self, subcon: Construct) -> None:
        repeated = RepeatUntil(lambda _obj, _list, context: is_at_end(context._io), subcon)
        super().__init__(If(lambda context: not is_at_end(context._io), repeated))

    def _parse(self, stream: io.BytesIO, context: Any, path: str) -> Any:
        return self.subcon._parsereport(stream, context, path) or []

    def _sizeof(self, context: Any, path: str) -> int:
        msg = "as many lines as there are"
        raise SizeofError(msg, path=path)


def is_at_end(stream: io.BytesIO) -> bool:
    """Return whether nothing is left to read."""
    return stream.tell() >= stream.getbuffer().nbytes


class AfterColon(Adapter):
    """The part of a line after its first colon and white space."""

    type_name = "text"

    def _decode(self, obj: str, context: Any, path: str) -> str:
        return obj.partition(":")[2].lstrip(" \t\v\f")


class Property(Construct):
    """The value of one key of a Java properties file, anywhere in it; None if it is missing."""

    type_name = "property"

    def __init__(self, key: str) -> None:
        super().__init__()
        self.key = key

    def _parse(self, stream: io.BytesIO, context: Any, path: str) -> Shown | None:
        value = dict(properties(stream.getvalue()) or ()).get(self.key)
        return None if value is None else Shown(value)


_JSON_TYPES: Final = {int: "number", list: "list", str: "text"}


class Member(Construct):
    """One member of the JSON object in the file; None if it is missing."""

    def __init__(self, key: str, expected: type) -> None:
        super().__init__()
        self.key = key
        self.type = expected
        self.type_name = f"JSON {_JSON_TYPES[expected]}"

    def _parse(self, stream: io.BytesIO, context: Any, path: str) -> Any:
        value = (json_object(stream.getvalue()) or {}).get(self.key)
        if isinstance(value, str) and self.type is not str:
            return Shown(value)
        if isinstance(value, list | dict) and type(value) is not self.type:
            return Shown(f"a JSON {'list' if isinstance(value, list) else 'object'}")
        return value


def json_object(data: bytes) -> dict[str, Any] | None:
    """Parse a JSON object; return None if the bytes are anything else.

    The result is also None for nesting beyond the parser's limit, numbers of thousands of digits and invalid UTF-8.
    """
    try:
        value = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


# A backslash at the end of a line continues a logical line; it does not continue a comment.
_BLANK_OR_COMMENT = re.compile(r"[ \t\f]*(?:[#!][^\r\n]*)?(?:\r\n|\r|\n|\Z)")
_LOGICAL_LINE = re.compile(r"[ \t\f]*((?:\\(?:\r\n|.)|[^\\\r\n])*)(?:\r\n|\r|\n|\\?\Z)", re.DOTALL)
_CONTINUATION = re.compile(r"\\(?:\r\n|\r|\n)[ \t\f]*")
_PAIR = re.compile(r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*(.*)", re.DOTALL)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|[^u])", re.DOTALL)
_CONTROL = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}


def properties(data: bytes) -> list[tuple[str, str]] | None:
    """Return keys and values of a Java properties file, in file order; None if an escape is malformed."""
    pairs = [_PAIR.fullmatch(line) for line in _logical_lines(data.decode("iso-8859-1"))]
    found = [(match[1], match[2]) for match in pairs if match]
    if any("\\" in _ESCAPE.sub("", part) for pair in found for part in pair):
        return None
    return [(_unescaped(key), _unescaped(value)) for key, value in found]


def _logical_lines(text: str) -> Iterator[str]:
    position = 0
    while position < len(text):
        blank = _BLANK_OR_COMMENT.match(text, position)
        match = blank or _LOGICAL_LINE.match(text, position)
        assert match is not None
        position = match.end()
        line = "" if blank else _CONTINUATION.sub("", match[1])
        if line:
            yield line


def _unescaped(text: str) -> str:
    plain = _ESCAPE.sub(lambda match: _escaped_character(match[1]), text)
    # Two escapes may form one character as surrogates; a lone surrogate is replaced, since it is not text.
    return plain.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _escaped_character(escape: str) -> str:
    return chr(int(escape[1:], 16)) if escape[0] == "u" else _CONTROL.get(escape, escape)

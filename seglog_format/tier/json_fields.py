"""Fields of a JSON object from a hostile source: each is there and of its type, or the error names it."""

from __future__ import annotations

import base64
import binascii
import json
from typing import TYPE_CHECKING, Any, Final

from seglog_format.errors import CorruptIndexError
from seglog_format.names import printable

if TYPE_CHECKING:
    from seglog_format.errors import Location

SHOWN: Final = 60
"""Maximum characters of a wrong value in an error."""


class JsonFields:
    """The fields of one JSON object.

    Attributes:
        at: where the object is; the field is its dotted name, empty for the outermost one.
        requirement: id of the rule that a wrong field breaks.
    """

    def __init__(self, values: dict[str, Any], at: Location, requirement: str) -> None:
        self._values = values
        self.at = at
        self.requirement = requirement

    def has(self, name: str) -> bool:
        """Return whether a field is there and not null."""
        return self._values.get(name) is not None

    def text(self, name: str) -> str:
        """Return a string."""
        value = self._values.get(name)
        if not isinstance(value, str):
            raise self.wrong(name, "a string", value)
        return value

    def integer(self, name: str, least: int, most: int) -> int:
        """Return an integer in a range, both ends included."""
        value = self._values.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise self.wrong(name, f"an integer from {least} to {most}", value)
        return value

    def boolean(self, name: str) -> bool:
        """Return true or false."""
        value = self._values.get(name)
        if not isinstance(value, bool):
            raise self.wrong(name, "true or false", value)
        return value

    def base64(self, name: str) -> bytes:
        """Return the bytes of a string of base64."""
        return self.decoded(name, self.text(name))

    def decoded(self, name: str, text: str) -> bytes:
        """Return the bytes of some base64 in a field."""
        try:
            return base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            raise self.wrong(name, "base64", "other text") from None

    def inner(self, name: str) -> JsonFields:
        """Return an object in this one."""
        value = self._values.get(name)
        if not isinstance(value, dict):
            raise self.wrong(name, "an object", value)
        return JsonFields(value, self.at.at(self._dotted(name)), self.requirement)

    def items(self) -> list[tuple[str, Any]]:
        """Return names and values as they stand."""
        return list(self._values.items())

    def under(self, requirement: str) -> JsonFields:
        """Return the same fields under another rule."""
        return JsonFields(self._values, self.at, requirement)

    def wrong(self, name: str, expected: str, found: object) -> CorruptIndexError:
        """Return the error of a wrong field."""
        shown = "nothing" if found is None else printable(repr(found), SHOWN)
        return CorruptIndexError(self.at.at(self._dotted(name)), self.requirement, expected=expected, found=shown)

    def _dotted(self, name: str) -> str:
        return f"{self.at.field}.{name}" if self.at.field else name


def json_object(data: bytes, at: Location, requirement: str) -> JsonFields:
    """Parse the text of one JSON object.

    Args:
        data: UTF-8.
        at: where it starts.
        requirement: id of the rule that a wrong text or field breaks.

    Raises:
        CorruptIndexError: it is not UTF-8, no JSON, or no object.
    """
    try:
        value = json.loads(data.decode())
    except (ValueError, RecursionError) as error:
        position = getattr(error, "pos", getattr(error, "start", 0))
        raise CorruptIndexError(
            at.at("", position), requirement, expected="a JSON object in UTF-8", found=printable(str(error), SHOWN)
        ) from None
    if not isinstance(value, dict):
        raise CorruptIndexError(at, requirement, expected="a JSON object", found=type(value).__name__)
    return JsonFields(value, at, requirement)

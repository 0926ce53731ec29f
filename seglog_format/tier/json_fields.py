"""Fields of a JSON object from an untrusted source: if a field is missing or of another type, an error names it."""

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
"""Maximum number of characters of a wrong value in an error."""


class JsonFields:
    """The fields of one JSON object.

    Attributes:
        at: location of the object; its field is the dotted name of the object, empty for the outermost object.
        requirement: id of the rule that a wrong field breaks.
    """

    def __init__(self, values: dict[str, Any], at: Location, requirement: str) -> None:
        self._values = values
        self.at = at
        self.requirement = requirement

    def has(self, name: str) -> bool:
        """Return whether a field exists and is not null."""
        return self._values.get(name) is not None

    def text(self, name: str) -> str:
        """Return the value of a string field."""
        value = self._values.get(name)
        if not isinstance(value, str):
            raise self.wrong(name, "a string", value)
        return value

    def integer(self, name: str, least: int, most: int) -> int:
        """Return the value of an integer field, which must be in a range, both ends included."""
        value = self._values.get(name)
        if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
            raise self.wrong(name, f"an integer from {least} to {most}", value)
        return value

    def boolean(self, name: str) -> bool:
        """Return the value of a boolean field."""
        value = self._values.get(name)
        if not isinstance(value, bool):
            raise self.wrong(name, "true or false", value)
        return value

    def base64(self, name: str) -> bytes:
        """Return the bytes of a field in base64."""
        return self.decoded(name, self.text(name))

    def decoded(self, name: str, text: str) -> bytes:
        """Return the bytes of a base64 text that is part of a field."""
        try:
            return base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            raise self.wrong(name, "base64", "other text") from None

    def inner(self, name: str) -> JsonFields:
        """Return the object in a field."""
        value = self._values.get(name)
        if not isinstance(value, dict):
            raise self.wrong(name, "an object", value)
        return JsonFields(value, self.at.at(self._dotted(name)), self.requirement)

    def items(self) -> list[tuple[str, Any]]:
        """Return the names and values of all fields, unchecked."""
        return list(self._values.items())

    def under(self, requirement: str) -> JsonFields:
        """Return the same fields with the id of another rule."""
        return JsonFields(self._values, self.at, requirement)

    def wrong(self, name: str, expected: str, found: object) -> CorruptIndexError:
        """Return the error for a wrong field."""
        shown = "nothing" if found is None else printable(repr(found), SHOWN)
        return CorruptIndexError(self.at.at(self._dotted(name)), self.requirement, expected=expected, found=shown)

    def _dotted(self, name: str) -> str:
        return f"{self.at.field}.{name}" if self.at.field else name


def json_object(data: bytes, at: Location, requirement: str) -> JsonFields:
    """Parse the text of one JSON object.

    Args:
        data: UTF-8.
        at: location of its start.
        requirement: id of the rule that a wrong text or field breaks.

    Raises:
        CorruptIndexError: the data is not UTF-8, not JSON, or not an object.
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

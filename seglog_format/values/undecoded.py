"""The error of a decoder for bytes that it cannot decode."""

from __future__ import annotations

from typing import Final

MAX_REASON: Final = 200
"""Maximum characters of a reason."""
MAX_SHOWN: Final = 60
"""Maximum characters or bytes of a value in a reason."""


class UndecodedError(Exception):
    """The bytes do not match the schema. Callers of the package get the reason as text.

    Attributes:
        path: names of the fields that the value is in, with dots between; empty for the whole value.
    """

    path = ""

    def inside(self, name: str) -> UndecodedError:
        """Return the error of a field for the value that the field is in."""
        self.path = f"{name}.{self.path}".rstrip(".")
        return self

    def __str__(self) -> str:
        return f"{self.path}: {super().__str__()}" if self.path else super().__str__()


def reason_for(error: Exception) -> str:
    """Return why bytes or a schema cannot be decoded: one line that is valid text, with the class of other errors."""
    first = str(error).partition("\n")[0]
    text = first if isinstance(error, UndecodedError) else f"{type(error).__name__} {first}".rstrip()
    text = text.encode("utf-8", "backslashreplace").decode()
    return text if len(text) <= MAX_REASON else f"{text[:MAX_REASON]}..."

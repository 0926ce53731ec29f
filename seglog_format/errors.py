"""Errors: one family for mistakes of the caller, one for wrong bytes.

``UsageError`` means that a caller requested something impossible; an ``AppendError``, which is one, names the
requirement. ``FormatError`` describes what is wrong with the bytes: it always holds a `Location` and at least one
requirement id, and its text reads ``path:position: field: expected X, found Y [SEG-BAT-004]``.
"""

from __future__ import annotations

import os
import sys
import warnings
from contextlib import contextmanager
from dataclasses import dataclass, replace
from operator import index
from reprlib import repr as short
from typing import TYPE_CHECKING, Final, SupportsIndex

from seglog_format.field_names import kafka_name

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True, slots=True)
class Location:
    """A position in a file.

    Attributes:
        path: file name as the caller knows it; empty for bytes without a file.
        position: byte position in that file, 0 or greater.
        field: dotted name of the schema field, such as ``header.magic``; empty for a whole entry.
        size: number of bytes concerned; 0 if unknown.
    """

    path: str = ""
    position: int = 0
    field: str = ""
    size: int = 0

    def shifted(self, size: int) -> Location:
        """Return the location ``size`` bytes further on."""
        return replace(self, position=self.position + size)

    def at(self, field: str, position: int = 0, size: int = 0) -> Location:
        """Return the location of a field that starts ``position`` bytes after this location."""
        return replace(self, position=self.position + position, field=field, size=size)

    def __str__(self) -> str:
        text = f"{self.path or '<bytes>'}:{self.position}"
        return f"{text}: {kafka_name(self.field)}" if self.field else text


class SeglogError(Exception):
    """Base of every error that this package raises on purpose."""


class UsageError(SeglogError):
    """The caller made a mistake: a bad argument, an offset out of range, a path that does not exist."""


class OffsetOutOfRangeError(UsageError):
    """A requested offset is below the log start offset or above the log end offset (SEG-LKP-004)."""


class AppendError(UsageError):
    """Entries may not be appended to the log (chapter 70). Nothing of them was written.

    Attributes:
        requirement: id of the requirement that they break.
        is_duplicate: the producer has appended these sequences already, in a batch that is not remembered any more.
    """

    def __init__(self, text: str, requirement: str, *, is_duplicate: bool = False) -> None:
        super().__init__(text, requirement)
        self.requirement = requirement
        self.is_duplicate = is_duplicate

    def __str__(self) -> str:
        """Return what is wrong, and the requirement."""
        text, requirement = self.args
        return f"{text} ({requirement})"


class FormatError(SeglogError):
    """The bytes do not follow the specification, or cannot be read within the given limits.

    Attributes:
        location: file, position and field.
        requirements: ids of the broken requirements, the decisive one first.
        expected: short text of the requirement's demand.
        found: the value found instead.
    """

    def __init__(self, location: Location, *requirements: str, expected: str, found: object) -> None:
        if not requirements:
            msg = "a FormatError names at least one requirement"
            raise TypeError(msg)
        self.location = location
        self.requirements = requirements
        self.expected = expected
        self.found = str(found)
        super().__init__(f"{location}: expected {expected}, found {self.found} [{', '.join(requirements)}]")

    def __reduce__(self) -> tuple[object, ...]:
        """Return how to rebuild the error from its parts, so it can be sent between processes."""
        return _rebuild, (type(self), self.location, self.requirements, self.expected, self.found)


def _rebuild(
    kind: type[FormatError], location: Location, requirements: tuple[str, ...], expected: str, found: str
) -> FormatError:
    return kind(location, *requirements, expected=expected, found=found)


class CorruptRecordError(FormatError):
    """A batch, message or record is damaged: its checksum, length, count or order is wrong."""


class CorruptIndexError(FormatError):
    """An index, snapshot or checkpoint file is damaged. The log itself may be whole."""


class TruncatedError(FormatError):
    """The bytes end before the structure does."""


class UnsupportedVersionError(FormatError):
    """The bytes have a version that this specification does not describe. That is not damage."""


class RefusedError(FormatError):
    """Reading would exceed a limit set by the caller. The bytes may be valid (SEG-COD-016)."""


class UnreadableError(FormatError):
    """The disk refuses to read a file or a part of it, or the file became shorter during reading (SEG-PDR-022).

    The refused bytes, and those before and after them, may be valid. The location holds position and size of the
    refused bytes; the cause is the `OSError`, if there is one.
    """


class UndecodedRecordError(SeglogError):
    """A key or value does not match its schema, and the caller chose to stop at such a record."""


class WriteError(SeglogError):
    """A log could not be written: the disk is full, or fails. The cause is the `OSError`.

    Only records acknowledged before the error count as written, and the writer accepts no more records.
    """


def reason_of(error: OSError) -> str:
    """Return the system's error message, after the file's name if that is known."""
    name = os.fsdecode(error.filename) if isinstance(error.filename, (str, bytes, os.PathLike)) else ""
    reason = error.strerror or str(error) or type(error).__name__
    return f"{name}: {reason}" if name else reason


@contextmanager
def write_errors(work: str) -> Iterator[None]:
    """Turn an `OSError` raised in this block into a `WriteError`.

    Args:
        work: name of the interrupted work, such as ``recovery``.

    Raises:
        WriteError: an operation on files failed.
    """
    try:
        yield
    except OSError as error:
        msg = f"{work} stopped: {reason_of(error)}"
        raise WriteError(msg) from error


class MissingOffsetsWarning(UserWarning):
    """Offsets are missing from a log that is being read; reading continues after them.

    Pass ``on_gap`` to get a callback instead.
    """


# -- checks of a caller's arguments: each error names the argument, and the expected and the found value ---------------


def require_integer(name: str, value: object, *, bits: int = 64) -> None:
    """Check that an argument is a signed integer of some number of bits, from any library; booleans are refused.

    Raises:
        UsageError: it is not.
    """
    if isinstance(value, bool) or not isinstance(value, SupportsIndex):
        raise _wrong(name, f"an integer, found {_kind(value)}")
    if not -(2 ** (bits - 1)) <= index(value) < 2 ** (bits - 1):
        raise _wrong(name, f"an integer of {bits} bits, found {value}")


def require_offset(name: str, value: object) -> None:
    """Check that an argument is an integer of any size: the log decides which offsets exist.

    Raises:
        UsageError: it is not.
    """
    if type(value) is not int and (isinstance(value, bool) or not isinstance(value, SupportsIndex)):
        raise _wrong(name, f"an offset, found {_kind(value)}")


def require_offsets(*, from_offset: object, to_offset: object) -> None:
    """Check both ends of a range of offsets; None means the start or the end of the log.

    Raises:
        UsageError: one of them is neither an integer nor None.
    """
    if from_offset is not None:
        require_offset("from_offset", from_offset)
    if to_offset is not None:
        require_offset("to_offset", to_offset)


def require_bytes(name: str, value: object) -> None:
    """Check that an argument is bytes, or None for null.

    Raises:
        UsageError: it is not.
    """
    if value is not None and not isinstance(value, bytes | bytearray | memoryview):
        raise _wrong(name, f"bytes or None, found {_kind(value)}")


def require_instance(name: str, value: object, *kinds: type) -> None:
    """Check that an argument is an instance of one of the given types.

    Raises:
        UsageError: it is not.
    """
    if not isinstance(value, kinds):
        raise _wrong(name, f"{' or '.join(kind.__name__ for kind in kinds)}, found {_kind(value)}")


def _kind(value: object) -> str:
    return "None" if value is None else f"{type(value).__name__} {short(value)}"


def _wrong(name: str, text: str) -> UsageError:
    return UsageError(f"{name}: expected {text}")


PACKAGE: Final = __name__.partition(".")[0]


def warn_caller(text: str, category: type[Warning]) -> None:
    """Raise a Python warning that points at the line of the caller outside of this package."""
    warnings.warn(text, category, stacklevel=_caller_level())


def _caller_level() -> int:
    """Return the number of stack frames from the caller of this function to the first one outside this package."""
    level, frame = 1, sys._getframe(1)  # noqa: SLF001 - no other interface shows the caller of a generator
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == PACKAGE:
        level, frame = level + 1, frame.f_back
    return level

"""Checks of a caller's arguments: each error names the argument, and the expected and the found value."""

from __future__ import annotations

from abc import ABC, abstractmethod
from operator import index
from reprlib import repr as short
from typing import TYPE_CHECKING, Self, SupportsIndex

from seglog_format.errors import UsageError

if TYPE_CHECKING:
    from types import TracebackType


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


# -- a base class for objects with a `close` method that are used in a `with` statement --------------------------------


class Closing(ABC):
    """A context manager that closes itself at the end."""

    @abstractmethod
    def close(self) -> None:
        """Release all resources; a second call does nothing."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

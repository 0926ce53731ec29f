"""The arrays that kernels take: always of the same few types, so that each kernel is compiled once."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from seglog_format.storage.byte_source import Buffer

Bytes: TypeAlias = np.ndarray[tuple[int], np.dtype[np.uint8]]
Numbers: TypeAlias = np.ndarray[tuple[int], np.dtype[np.int64]]


def readable(data: Buffer) -> Bytes:
    """Bytes to read, without copying them: an array that cannot be written to, whatever it comes from."""
    array = np.frombuffer(data, np.uint8)
    array.flags.writeable = False
    return array


def read_only(array: Bytes) -> Bytes:
    """The same bytes, for reading."""
    view = array.view()
    view.flags.writeable = False
    return view


Table: TypeAlias = np.ndarray[tuple[int, int], np.dtype[np.int64]]
Region: TypeAlias = tuple[int, int]
"""Inside kernels: address and size of some bytes."""

"""The array types of kernel parameters: always the same few, so each kernel is compiled once."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np

if TYPE_CHECKING:
    from seglog_format.storage.byte_source import Buffer

Bytes: TypeAlias = np.ndarray[tuple[int], np.dtype[np.uint8]]
Numbers: TypeAlias = np.ndarray[tuple[int], np.dtype[np.int64]]


def readable(data: Buffer) -> Bytes:
    """Return bytes as a read-only array, without a copy."""
    array = np.frombuffer(data, np.uint8)
    array.flags.writeable = False
    return array


Table: TypeAlias = np.ndarray[tuple[int, int], np.dtype[np.int64]]
Region: TypeAlias = tuple[int, int]
"""Address and size of a range of bytes, for kernels."""

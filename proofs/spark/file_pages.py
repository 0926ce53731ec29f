"""The pages of files in memory: a count of the bytes that a query has read, mapped files included."""

from __future__ import annotations

import ctypes
import mmap
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def _files(directory: Path) -> Iterator[Path]:
    return (path for path in directory.rglob("*") if path.is_file() and path.stat().st_size)


def evict(directory: Path) -> None:
    """Evict all files below a directory from the page cache."""
    for path in _files(directory):
        descriptor = os.open(path, os.O_RDONLY)
        try:
            os.fsync(descriptor)
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(descriptor)


def resident(directory: Path) -> int:
    """Return how many bytes of the files below a directory are in memory: those read since the eviction."""
    return sum(map(_resident, _files(directory)))


def _resident(path: Path) -> int:
    libc, size = ctypes.CDLL(None, use_errno=True), path.stat().st_size
    pages = (ctypes.c_ubyte * -(-size // mmap.PAGESIZE))()
    with path.open("r+b") as file, mmap.mmap(file.fileno(), size) as mapped:
        view = (ctypes.c_char * size).from_buffer(mapped)
        if libc.mincore(ctypes.c_void_p(ctypes.addressof(view)), ctypes.c_size_t(size), pages):
            raise OSError(ctypes.get_errno(), "mincore")
        del view
    return sum(each & 1 for each in bytes(pages)) * mmap.PAGESIZE

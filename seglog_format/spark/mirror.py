"""Files behind an address as files of this machine: empty ones of the right size, filled where they are looked at.

Everything else reads paths, maps files, and knows nothing of it. What a query does not look at is not fetched; the
files have holes there, and take no room for them.
"""

from __future__ import annotations

import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path, PurePosixPath
from threading import Lock
from typing import TYPE_CHECKING, Final

from seglog_format.closing import Closing
from seglog_format.errors import UsageError
from seglog_format.spark.stores import Store
from seglog_format.storage.file_bytes import FILLERS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from io import FileIO

    from seglog_format.spark.stores import StoredFile

BLOCK_SIZE: Final = 2**17
"""Bytes that are fetched at least: fewer take a store as long."""
MOST_BLOCKS: Final = 64
"""So many are asked for in one request, at most."""
AT_ONCE: Final = 4
"""Requests to a store."""


def write_at(target: FileIO, data: bytes, position: int) -> None:
    """Write all bytes at a position."""
    target.seek(position)
    view = memoryview(data)
    while view:
        view = view[target.write(view) :]


class Mirrored:
    """A file of a mirror.

    Attributes:
        stored: what it stands for.
    """

    def __init__(self, stored: StoredFile) -> None:
        self.stored = stored
        self._is_here = bytearray(-(-stored.size // BLOCK_SIZE))

    def missing(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Position and size of what has to be fetched for the bytes between two positions."""
        first = max(start, 0) // BLOCK_SIZE
        last = -(-min(end, self.stored.size) // BLOCK_SIZE) if start < end else first
        while (first := self._is_here.find(0, first, last)) >= 0:
            stop = self._is_here.find(1, first, min(first + MOST_BLOCKS, last))
            stop = min(first + MOST_BLOCKS, last) if stop < 0 else stop
            position = first * BLOCK_SIZE
            yield position, min(stop * BLOCK_SIZE, self.stored.size) - position
            first = stop

    def came(self, position: int, size: int) -> None:
        """Note what was fetched."""
        first, last = position // BLOCK_SIZE, -(-(position + size) // BLOCK_SIZE)
        self._is_here[first:last] = b"\1" * (last - first)


class Mirror(Closing):
    """A directory whose files are those behind an address. A context manager, with which the directory goes.

    Attributes:
        path: of the directory on this machine.
    """

    def __init__(self, address: str, settings: Mapping[str, str], names: Iterable[str] | None = None) -> None:
        """Make the files, without their bytes.

        Args:
            address: of the directory.
            settings: of the file system.
            names: paths below the address of the files that are needed; by default of all that there are.

        Raises:
            UsageError: the store does not answer, has nothing there, or has a file that cannot be made here.
        """
        self._store = Store(address, settings)
        self._room = tempfile.TemporaryDirectory(prefix="seglog-")
        name = PurePosixPath(self._store.address).name
        self.path = Path(self._room.name).resolve() / (name if name not in {"", "..", "."} else "mirror")
        self._files: dict[str, Mirrored] = {}
        self._filling = Lock()
        self.path.mkdir()
        with ExitStack() as undo:
            undo.callback(self._room.cleanup)
            for stored in self._store.listed() if names is None else map(self._store.file, names):
                self._make(stored)
            undo.pop_all()
        FILLERS[self._root] = self.fill

    @property
    def _root(self) -> str:
        return f"{self.path}{os.sep}"

    def _make(self, stored: StoredFile) -> None:
        parts = PurePosixPath(stored.path).parts
        if not parts or ".." in parts or parts[0] == "/":
            msg = f"seglog: {self._store.address}: {stored.path!r} is no name of a file below it"
            raise UsageError(msg)
        path = self.path.joinpath(*parts)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("xb") as made:
                made.truncate(stored.size)
            if stored.modified is not None:
                os.utime(path, (stored.modified, stored.modified))
        except (OSError, ValueError) as error:
            msg = f"seglog: {self._store.address}/{stored.path} cannot be made here: {error}"
            raise UsageError(msg) from error
        self._files[str(path)] = Mirrored(stored)

    def fill(self, path: str, start: int, end: int) -> None:
        """Fetch what is missing of a file between two positions; a path that is none of its files is left alone.

        Raises:
            UsageError: the store does not answer, or the file has become shorter.
        """
        file = self._files.get(path)
        if file is None:
            return
        with self._filling:
            missing = list(file.missing(start, end))
            if missing:
                self._fetch(Path(path), file, missing)

    def _fetch(self, path: Path, file: Mirrored, missing: list[tuple[int, int]]) -> None:
        def read(part: tuple[int, int]) -> bytes:
            return self._store.read(file.stored.path, *part)

        try:
            with path.open("r+b", buffering=0) as target, ThreadPoolExecutor(min(AT_ONCE, len(missing))) as pool:
                for (position, size), data in zip(missing, pool.map(read, missing), strict=True):
                    write_at(target, data, position)
                    file.came(position, size)
        except OSError as error:
            msg = f"seglog: {self._store.address}/{file.stored.path}: no room for it in {path.parent}: {error.strerror}"
            raise UsageError(msg) from error

    def in_words(self, text: str) -> str:
        """A text that names files of this machine, with what they stand for instead."""
        return text.replace(str(self.path), self._store.address)

    def close(self) -> None:
        """Remove the files; a second call does nothing."""
        FILLERS.pop(self._root, None)
        self._room.cleanup()

"""The objects below an address or a local directory: listed once, and read in ranges with retries."""

from __future__ import annotations

import os
import time
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeVar

from seglog_format.errors import UsageError
from seglog_format.names import printable
from seglog_format.storage.file_bytes import read_range
from seglog_format.storage.log_storage import LOCAL
from seglog_format.storage.object_store import Store, StoredFile, is_address, shown_address

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

T = TypeVar("T")

ATTEMPTS: Final = 4
"""Maximum number of attempts of one request."""
FIRST_PAUSE: Final = 0.1
"""Pause before the second attempt in seconds; each later pause is twice as long."""
MAX_DEPTH: Final = 12
"""Maximum number of directories between a local folder and an object in it."""
FINAL: Final = (FileNotFoundError, NotADirectoryError, PermissionError)
"""Errors after which another attempt is useless."""


class Objects(Protocol):
    """Objects that can be listed and read."""

    @property
    def address(self) -> str:
        """The address or directory, without a slash at its end."""

    def listed(self) -> Iterable[StoredFile]:
        """Return all objects.

        Raises:
            UsageError: the store does not answer.
        """

    def read(self, path: str, start: int, size: int) -> bytes:
        """Read a range of an object; the whole range must exist.

        Raises:
            UsageError: the store does not answer, or there is no such object.
            UnreadableError: the disk refuses the object.
        """


class LocalObjects:
    """The files of a local folder and its subfolders, as objects; links are left out.

    Attributes:
        address: path of the folder.
    """

    def __init__(self, directory: str | os.PathLike[str]) -> None:
        self.address = os.fspath(directory).rstrip("/") or "/"
        self._root = Path(directory)

    def listed(self) -> Iterable[StoredFile]:
        """Return all files, in the order of their paths."""
        return sorted(self._below(self._root, "", 0), key=lambda file: file.path)

    def _below(self, directory: Path, prefix: str, depth: int) -> Iterator[StoredFile]:
        entries = LOCAL.entries(directory)
        for name in entries.files:
            if not LOCAL.is_link(directory / name):
                status = LOCAL.status(directory / name)
                yield StoredFile(prefix + name, status.size, status.modified)
        for name in entries.directories if depth < MAX_DEPTH else ():
            if not LOCAL.is_link(directory / name):
                yield from self._below(directory / name, f"{prefix}{name}/", depth + 1)

    def read(self, path: str, start: int, size: int) -> bytes:
        """Read a range of a file."""
        found = read_range(self._root / path, start, size)
        if len(found) != size:
            msg = f"{self.address}/{path}: ends before {start + size}"
            raise UsageError(msg)
        return found


def objects_at(address: str | os.PathLike[str], settings: Mapping[str, str] | None = None) -> Objects:
    """Return the objects at an address or in a local folder; nothing is listed yet.

    Args:
        address: such as ``s3://bucket/tier``, or a path.
        settings: of the file system of an address.

    Raises:
        UsageError: there is no reader for such addresses.
    """
    text = os.fspath(address)
    return Store(text, settings or {}) if is_address(text) else LocalObjects(address)


class Traffic(NamedTuple):
    """The number of fetched ranges and bytes.

    Attributes:
        requests: number of fetched ranges.
        size: number of bytes of all fetched ranges.
    """

    requests: int
    size: int


class ObjectFiles:
    """The objects of a store by path. It is thread-safe."""

    def __init__(self, objects: Objects) -> None:
        """List the store.

        Raises:
            UsageError: the store does not answer, or there are no objects.
        """
        self._objects = objects
        self.address = shown_address(objects.address)
        self.files = {file.path: file for file in retried(objects.listed)}
        self._lock = Lock()
        self._requests = 0
        self._size = 0

    @property
    def sizes(self) -> dict[str, int]:
        """Size of each object by its path."""
        return {path: file.size for path, file in self.files.items()}

    @property
    def traffic(self) -> Traffic:
        """The number of ranges and bytes fetched so far; failed attempts do not count."""
        with self._lock:
            return Traffic(self._requests, self._size)

    def name_of(self, path: str) -> str:
        """Return the name of an object that errors show."""
        return printable(f"{self.address}/{path}", 4096)

    def size(self, path: str) -> int:
        """Return the size of an object as listed.

        Raises:
            UsageError: there is no such object.
        """
        return self._file(path).size

    def read(self, path: str, start: int, size: int) -> bytes:
        """Read a range of an object.

        Raises:
            UsageError: there is no such object, it is shorter, or the store does not answer.
            UnreadableError: the disk refuses the object.
        """
        known = self._file(path).size
        if start + size > known:
            msg = f"{self.name_of(path)}: {known} bytes, too few for {size} at {start}"
            raise UsageError(msg)
        data = retried(lambda: self._objects.read(path, start, size))
        with self._lock:
            self._requests += 1
            self._size += size
        return data

    def _file(self, path: str) -> StoredFile:
        if path not in self.files:
            msg = f"{self.name_of(path)}: no such object"
            raise UsageError(msg)
        return self.files[path]


def retried(request: Callable[[], T]) -> T:
    """Make a request, and repeat it after an error that may be temporary.

    Raises:
        UsageError: the last attempt failed, or another attempt is useless.
    """
    pause = FIRST_PAUSE
    for _ in range(ATTEMPTS - 1):
        try:
            return request()
        except UsageError as error:
            if not isinstance(error.__cause__, OSError) or isinstance(error.__cause__, FINAL):
                raise
        time.sleep(pause)
        pause *= 2
    return request()

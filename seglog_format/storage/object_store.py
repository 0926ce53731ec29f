"""Object stores and other file systems with an address, through Arrow's file systems or fsspec."""

from __future__ import annotations

import os
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, TypeVar
from urllib.parse import quote, urlencode

from seglog_format.errors import UsageError
from seglog_format.names import printable
from seglog_format.storage.byte_source import read_range
from seglog_format.storage.log_storage import LOCAL

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from pyarrow import NativeFile
    from pyarrow.fs import FileInfo, FileSystem


SAME: Final = {"s3a": "s3", "s3n": "s3", "wasb": "abfs", "wasbs": "abfss"}
"""Arrow's schemes of file systems, by Hadoop's schemes."""
OF_ARROW: Final = frozenset({"s3", "gs", "gcs", "abfs", "abfss", "hdfs", "viewfs"})
"""Schemes that Arrow reads; fsspec reads all others."""
OF_HADOOP: Final = frozenset({"hdfs", "viewfs"})
HADOOP: Final = "; this needs Hadoop: set JAVA_HOME, HADOOP_HOME and CLASSPATH (hadoop classpath --glob), or mount it"
MAX_SILENCE: Final = 5
"""Seconds for which a store of S3 may send nothing. Arrow's library makes three attempts."""
SILENCE_SECONDS: Final = 20
"""Seconds for which any other store may send nothing before its first answer."""
MAX_OPEN: Final = 64
"""Maximum number of open files of a store."""
KEYS: Final = ("access_key", "secret_key")


def is_address(path: str) -> bool:
    """Return whether a path is an address, not a path of the local file system."""
    scheme, colon, rest = path.partition(":")
    return bool(colon) and rest.startswith("//") and scheme != "file"


def shown_address(address: str) -> str:
    """Return an address for messages: without the keys that may precede its bucket."""
    scheme, separator, rest = address.partition("://")
    return f"{scheme}{separator}{rest[len(_keys_before(scheme, rest)) :]}" if separator else address


def has_secret(address: str) -> bool:
    """Return whether an address has a user and a password, or the two keys of S3, before its bucket."""
    scheme, separator, rest = address.partition("://")
    return bool(separator) and ":" in _keys_before(scheme, rest)


def _keys_before(scheme: str, rest: str) -> str:
    """Return the keys before the bucket, with their ``@``; also if a secret has a slash that should be quoted."""
    before = rest.partition("/")[0]
    _, colon, port = before.partition(":")
    has_open_secret = "@" not in before and colon and (SAME.get(scheme, scheme) == "s3" or not port.isdecimal())
    keys, at, _ = (rest if has_open_secret else before).rpartition("@")
    return keys + at


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file of a store.

    Attributes:
        path: relative to the listed directory, with parts separated by ``/``.
        size: in bytes.
        modified: seconds since 1970; None if unknown.
    """

    path: str
    size: int
    modified: float | None = None


class Store:
    """Reads the files at and below an address.

    Attributes:
        address: the given address, without a slash at its end.
    """

    def __init__(self, address: str, settings: Mapping[str, str]) -> None:
        """Find the file system; it is not contacted yet.

        Args:
            address: such as ``s3a://bucket/kafka-logs``.
            settings: of the file system, such as ``endpoint_override`` and ``region`` for S3.

        Raises:
            UsageError: there is no reader for such addresses, or the settings are invalid.
        """
        self.address = address.rstrip("/")
        self._files, self._root = file_system_at(self.address, settings)
        self._open: dict[str, NativeFile] = {}

    def listed(self) -> Iterable[StoredFile]:
        """Return all files at and below the address, in the order of their paths.

        Raises:
            UsageError: the store does not answer, or there are no files.
        """
        from pyarrow.fs import FileSelector, FileType  # noqa: PLC0415 - Arrow is not needed for local paths

        with self._errors_of():
            self._require_answer()
            found = self._files.get_file_info(FileSelector(self._root, recursive=True))
        start = len(self._root) + 1
        files = [_described(info, info.path[start:]) for info in found if info.type == FileType.File]
        if not files:
            msg = f"seglog: {shown_address(self.address)}: there is nothing"
            raise UsageError(msg)
        return sorted(files, key=lambda file: file.path)

    def file(self, path: str) -> StoredFile:
        """Return the file with a path below the address, without its time of modification.

        Raises:
            UsageError: the store does not answer, or there is no such file.
        """
        with self._errors_of(path):
            return StoredFile(path, self._opened(path).size())

    def read(self, path: str, start: int, size: int) -> bytes:
        """Read a range of a file.

        Args:
            path: below the address.
            start: position of the first byte.
            size: number of bytes.

        Raises:
            UsageError: the store does not answer, or the file has become shorter.
        """
        with self._errors_of(path):
            found: bytes = self._opened(path).read_at(size, start)
        if len(found) != size:
            msg = f"seglog: {shown_address(self.address)}/{path} became shorter while it was read"
            raise UsageError(msg)
        return found

    def _opened(self, path: str) -> NativeFile:
        """Open a file, and ask the store for its size only once."""
        found = self._open.get(path)
        if found is None:
            if len(self._open) >= MAX_OPEN:
                self._open.clear()  # files that other threads are using stay open
            found = self._open[path] = self._files.open_input_file(f"{self._root}/{path}")
        return found

    def _require_answer(self) -> None:
        """Ask the store once, in a thread of its own: only requests to S3 end by themselves if nothing answers.

        Raises:
            TimeoutError: nothing has answered.
        """
        from pyarrow.fs import FileSelector  # noqa: PLC0415 - as above

        answered = Event()

        def ask() -> None:
            with suppress(Exception):  # the request that follows has the same error
                self._files.get_file_info(FileSelector(f"{self._root}/none", allow_not_found=True))  # a short answer
            answered.set()

        if self._files.type_name != "s3":
            Thread(target=ask, daemon=True).start()
            if not answered.wait(SILENCE_SECONDS):
                msg = f"nothing has answered for {SILENCE_SECONDS} seconds"
                raise TimeoutError(msg)

    @contextmanager
    def _errors_of(self, path: str = "") -> Iterator[None]:
        """Name the address in the errors of a request, in one line.

        Raises:
            UsageError: for any error of the store.
        """
        from pyarrow import ArrowException  # noqa: PLC0415 - as above

        try:
            yield
        except (OSError, ArrowException) as error:
            text = str(error).partition("\n")[0]
            msg = f"seglog: {shown_address(self.address)}{path and '/'}{path}: {text}"
            raise UsageError(msg) from error


def _described(info: FileInfo, path: str) -> StoredFile:
    return StoredFile(path, info.size, None if info.mtime is None else info.mtime.timestamp())


def file_system_at(address: str, settings: Mapping[str, str]) -> tuple[FileSystem, str]:
    """Return the file system of an address, without contacting it, and the path in it.

    Raises:
        UsageError: there is no file system for such addresses, or the settings are invalid.
    """
    from pyarrow.fs import FileSystem, FSSpecHandler, PyFileSystem  # noqa: PLC0415 - as above

    scheme, _, rest = address.partition("://")
    scheme = SAME.get(scheme, scheme)
    try:
        if scheme in OF_ARROW:
            files, root = FileSystem.from_uri(_with_settings(scheme, rest, settings))
            return _with_timeouts(files) if scheme == "s3" else files, root.rstrip("/")
        fsspec = import_module("fsspec")  # an optional dependency, only for such addresses

        files, root = fsspec.url_to_fs(address, **settings)
        return PyFileSystem(FSSpecHandler(files)), root.rstrip("/")
    except ImportError as error:
        msg = f"seglog: {shown_address(address)} needs fsspec: pip install fsspec, and its dependencies for {scheme}"
        raise UsageError(msg) from error
    except (OSError, ValueError, TypeError) as error:  # ArrowInvalid is a ValueError
        text = _without_keys(error, address, settings).partition("\n")[0]  # Arrow adds each place of a missing library
        msg = f"seglog: {shown_address(address)}: {text}{HADOOP if scheme in OF_HADOOP else ''}"
        raise UsageError(msg) from error


def _with_timeouts(files: FileSystem) -> FileSystem:
    """Return the same file system of S3, whose requests end if nothing answers; by default they wait for minutes."""
    remake, (options,) = files.__reduce__()
    return remake({**options, "connect_timeout": MAX_SILENCE, "request_timeout": MAX_SILENCE})


def _without_keys(error: Exception, address: str, settings: Mapping[str, str]) -> str:
    """Return the text of an error without the keys in the address, which Arrow may have quoted."""
    scheme, _, rest = address.partition("://")
    before = _keys_before(scheme, rest).removesuffix("@")
    keys = [before, *before.split(":"), *(settings.get(name, "") for name in KEYS)]
    text = str(error)
    for key in sorted({*keys, *(quote(key, safe="") for key in keys)} - {""}, key=len, reverse=True):
        text = text.replace(key, "***")
    return text


def _with_settings(scheme: str, rest: str, settings: Mapping[str, str]) -> str:
    """Return an address in Arrow's form: keys of S3 before the bucket, other settings after a question mark."""
    others = dict(settings)
    keys = [quote(others.pop(name), safe="") for name in KEYS if name in others]
    before = f"{':'.join(keys)}@" if keys else ""
    return f"{scheme}://{before}{rest}{'?' if others else ''}{urlencode(others)}"


# -- the objects below an address or a local directory: listed once, and read in ranges with retries -------------------


T = TypeVar("T")

ATTEMPTS: Final = 4
"""Maximum number of attempts of one request."""
FIRST_PAUSE: Final = 0.1
"""Pause before the second attempt in seconds; each later pause is twice as long."""
PATIENCE: Final = 10
"""Seconds after the first attempt, after which no other begins."""
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
    pause, last = FIRST_PAUSE, time.monotonic() + PATIENCE
    for _ in range(ATTEMPTS - 1):
        try:
            return request()
        except UsageError as error:
            cause = error.__cause__
            if not isinstance(cause, OSError) or isinstance(cause, FINAL) or time.monotonic() > last:
                raise
        time.sleep(pause)
        pause *= 2
    return request()

"""Object stores and other file systems with an address, through Arrow's file systems or fsspec."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, urlencode

from seglog_format.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pyarrow import NativeFile
    from pyarrow.fs import FileInfo, FileSystem

SAME: Final = {"s3a": "s3", "s3n": "s3", "wasb": "abfs", "wasbs": "abfss"}
"""Arrow's schemes of file systems, by Hadoop's schemes."""
OF_ARROW: Final = frozenset({"s3", "gs", "gcs", "abfs", "abfss", "hdfs", "viewfs"})
"""Schemes that Arrow reads; fsspec reads all others."""
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

        try:
            found = self._files.get_file_info(FileSelector(self._root, recursive=True))
        except OSError as error:
            raise self._error_of(error) from error
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
        try:
            return StoredFile(path, self._opened(path).size())
        except OSError as error:
            raise self._error_of(error, path) from error

    def read(self, path: str, start: int, size: int) -> bytes:
        """Read a range of a file.

        Args:
            path: below the address.
            start: position of the first byte.
            size: number of bytes.

        Raises:
            UsageError: the store does not answer, or the file has become shorter.
        """
        try:
            found: bytes = self._opened(path).read_at(size, start)
        except OSError as error:
            raise self._error_of(error, path) from error
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

    def _error_of(self, error: OSError, path: str = "") -> UsageError:
        return UsageError(f"seglog: {shown_address(self.address)}{path and '/'}{path}: {error}")


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
            return files, root.rstrip("/")
        fsspec = import_module("fsspec")  # an optional dependency, only for such addresses

        files, root = fsspec.url_to_fs(address, **settings)
        return PyFileSystem(FSSpecHandler(files)), root.rstrip("/")
    except ImportError as error:
        msg = f"seglog: {shown_address(address)} needs fsspec: pip install fsspec, and its dependencies for {scheme}"
        raise UsageError(msg) from error
    except (OSError, ValueError, TypeError) as error:  # ArrowInvalid is a ValueError
        msg = f"seglog: {shown_address(address)}: {_without_keys(error, address, settings)}"
        raise UsageError(msg) from error


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

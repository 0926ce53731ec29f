"""A directory or an address for the files of a table: each appears under its name when it is complete and on disk."""

from __future__ import annotations

import errno
import os
import sys
import tempfile
from contextlib import contextmanager, suppress
from copy import copy
from typing import TYPE_CHECKING, Any, Final, Protocol

from seglog_format.errors import UsageError, write_errors
from seglog_format.storage.files import LOCAL_FILES, TEMPORARY_SUFFIX, replace_file
from seglog_format.storage.object_store import file_system_at, shown_address

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path

    from seglog_format.storage.byte_source import Buffer
    from seglog_format.storage.files import FileHandle, Files


if sys.platform != "win32":
    import fcntl

MAX_DEPTH: Final = 4
"""Maximum number of directories between the root and a listed file."""
HIDDEN: Final = "."
"""Prefix of the names of unfinished files; readers of tables ignore such names."""


class OutputFile(Protocol):
    """A new file, which is hidden until `publish`."""

    @property
    def size(self) -> int:
        """Bytes written so far."""

    def write(self, data: Buffer) -> None:
        """Append bytes.

        Raises:
            WriteError: writing failed.
        """

    def publish(self) -> None:
        """Sync the file, then give it its name.

        Raises:
            WriteError: an operation failed; the file may exist or not.
        """

    def discard(self) -> None:
        """Remove the unfinished file; after `publish` do nothing. Never fails."""


class Output(Protocol):
    """A directory or address for the files of a table. Names are relative, with slashes. Methods raise `WriteError`."""

    @property
    def address(self) -> str:
        """The directory or address, for messages."""

    def beside(self, suffix: str) -> Output:
        """Return the output whose name is that of this one and a suffix."""

    def held(self) -> AbstractContextManager[None]:
        """Exclude other writers in this context, if this kind of output can.

        Raises:
            UsageError: another process is writing there.
        """

    def read(self, name: str) -> bytes | None:
        """Return the bytes of a small file; None if there is no such file."""

    def replace(self, name: str, data: Buffer) -> None:
        """Replace a small file atomically."""

    def create(self, name: str) -> OutputFile:
        """Begin a new file."""

    def listed(self) -> Iterator[str]:
        """Yield the names of all files, unfinished ones among them."""

    def remove(self, name: str) -> None:
        """Delete a file, which may be an unfinished one."""


class OutputDirectory:
    """A local directory for the files of a table. It is created with the first file.

    Args:
        root: the directory.
        files: the file layer.
    """

    def __init__(self, root: Path, files: Files = LOCAL_FILES) -> None:
        self._root = root
        self._files = files

    @property
    def address(self) -> str:
        """The path of the directory."""
        return str(self._root)

    def beside(self, suffix: str) -> OutputDirectory:
        """Return the output directory whose name is that of this one and a suffix."""
        root = self._root.absolute()
        return OutputDirectory(root.with_name(f"{root.name}-{suffix}"), self._files)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold a lock on the directory, which the system releases if the process ends."""
        with write_errors("writing"):
            self._make(self._root)
        if not self._files.is_local or sys.platform == "win32":
            yield
            return
        descriptor = os.open(self._root, os.O_RDONLY | os.O_CLOEXEC)
        try:
            _lock(descriptor, self.address)
            yield
        finally:
            os.close(descriptor)

    def read(self, name: str) -> bytes | None:
        """Return the bytes of a small file; None if there is no such file."""
        with write_errors("reading the table"):
            try:
                return self._files.read(self._root / name)
            except FileNotFoundError:
                return None
            except NotADirectoryError:
                msg = f"{self._root} is not a directory"
                raise UsageError(msg) from None

    def replace(self, name: str, data: Buffer) -> None:
        """Replace a small file atomically."""
        with write_errors("writing"):
            replace_file(self._files, self._root / name, data)

    def create(self, name: str) -> LocalOutput:
        """Begin a new file."""
        path = self._root / name
        with write_errors("writing"):
            self._make(path.parent)
            return LocalOutput(path, self._files)

    def listed(self) -> Iterator[str]:
        """Yield the names of all files."""
        with write_errors("listing"):
            yield from self._below(self._root, "", 0)

    def _below(self, directory: Path, prefix: str, depth: int) -> Iterator[str]:
        for name in self._files.names(directory):
            if depth < MAX_DEPTH and "=" in name:  # a directory of a partitioned table, or a file
                with suppress(NotADirectoryError):
                    yield from self._below(directory / name, f"{prefix}{name}/", depth + 1)
                    continue
            yield prefix + name

    def remove(self, name: str) -> None:
        """Delete a file."""
        with write_errors("removing"):
            self._files.remove(self._root / name)
            self._files.fsync_directory((self._root / name).parent)

    def _make(self, directory: Path) -> None:
        """Create a directory and those above it, and sync their names."""
        if self._files.exists(directory):
            return
        self._make(directory.parent)
        self._files.make_directory(directory)
        self._files.fsync_directory(directory.parent)


class LocalOutput:
    """A new file of a local directory; until it is published, it has a hidden name in the same directory."""

    def __init__(self, path: Path, files: Files) -> None:
        self._path = path
        self._hidden = path.with_name(f"{HIDDEN}{path.name}{TEMPORARY_SUFFIX}")
        self._files = files
        self._handle: FileHandle | None = files.create(self._hidden)
        self.size = 0

    def write(self, data: Buffer) -> None:
        """Append bytes."""
        assert self._handle is not None
        with write_errors("writing"):
            self._handle.write_at(self.size, data)
        self.size += memoryview(data).nbytes

    def publish(self) -> None:
        """Sync the bytes, rename the file, and sync its name."""
        handle, self._handle = self._handle, None
        assert handle is not None
        try:
            with write_errors("writing"):
                handle.fsync()
                self._files.publish(self._hidden, self._path)
                self._files.fsync_directory(self._path.parent)
        finally:
            handle.close()

    def discard(self) -> None:
        """Remove the unfinished file."""
        handle, self._handle = self._handle, None
        if handle is not None:
            handle.close()
            with suppress(OSError):
                self._files.remove(self._hidden)


def unhidden(name: str) -> str:
    """Return the final name of an unfinished file; any other name unchanged."""
    directory, slash, file = name.rpartition("/")
    is_hidden = file.startswith(HIDDEN) and file.endswith(TEMPORARY_SUFFIX)
    return f"{directory}{slash}{file[len(HIDDEN) : -len(TEMPORARY_SUFFIX)]}" if is_hidden else name


def _lock(descriptor: int, address: str) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in {errno.EWOULDBLOCK, errno.EACCES}:
            return  # a file system without locks
        msg = f"{address}: another process is writing there"
        raise UsageError(msg) from None


# -- an address in an object store for the files of a table -----------------------------------------------------------


COPY_SIZE: Final = 8 * 2**20
"""Maximum bytes sent at once."""


class TakesFiles(Protocol):
    """A store that accepts whole files."""

    def upload(self, name: str, file: Any) -> None:  # noqa: ANN401 - a temporary file
        """Send a whole file.

        Raises:
            WriteError: the upload failed.
        """


class OutputStore:
    """An address in an object store for the files of a table.

    A file is written to a local temporary file until it is complete, because a store keeps the sent part of an
    interrupted upload as an object. Stores have no locks: there must be only one writer.

    Args:
        address: such as ``s3://bucket/table``.

    Raises:
        UsageError: there is no writer for such addresses.
    """

    def __init__(self, address: str) -> None:
        self.address = shown_address(address).partition("?")[0]
        self._files, self._root = file_system_at(address.rstrip("/"), {})

    def beside(self, suffix: str) -> OutputStore:
        """Return the output whose address is that of this one and a suffix."""
        other = copy(self)
        other.address, other._root = f"{self.address}-{suffix}", f"{self._root}-{suffix}"  # noqa: SLF001 - its own
        return other

    @contextmanager
    def held(self) -> Iterator[None]:
        """Do nothing."""
        yield

    def read(self, name: str) -> bytes | None:
        """Return the bytes of a small object; None if there is no such object."""
        with write_errors(f"reading {self.address}"):
            try:
                with self._files.open_input_file(f"{self._root}/{name}") as file:
                    data: bytes = file.read()
            except FileNotFoundError:
                return None
        return data

    def replace(self, name: str, data: Buffer) -> None:
        """Replace a small object, which a store does atomically."""
        with self._upload(name) as stream:
            stream.write(data)

    def create(self, name: str) -> StoredOutput:
        """Begin a new object."""
        return StoredOutput(self, name)

    def listed(self) -> Iterator[str]:
        """Yield the names of all objects."""
        from pyarrow.fs import FileSelector, FileType  # noqa: PLC0415 - Arrow is not needed for local paths

        with write_errors(f"listing {self.address}"):
            found = self._files.get_file_info(FileSelector(self._root, recursive=True, allow_not_found=True))
        yield from (each.path[len(self._root) + 1 :] for each in found if each.type == FileType.File)

    def remove(self, name: str) -> None:
        """Delete an object."""
        with write_errors(f"removing from {self.address}"):
            self._files.delete_file(f"{self._root}/{name}")

    def upload(self, name: str, file: Any) -> None:  # noqa: ANN401 - a temporary file
        """Send a whole file."""
        with self._upload(name) as stream:
            while data := file.read(COPY_SIZE):
                stream.write(data)

    @contextmanager
    def _upload(self, name: str) -> Iterator[Any]:
        path = f"{self._root}/{name}"
        with write_errors(f"writing to {self.address}"), self._files.open_output_stream(path) as stream:
            yield stream


class StoredOutput:
    """A new object, kept in a temporary file until it is published.

    Attributes:
        size: bytes written so far.
    """

    def __init__(self, store: TakesFiles, name: str) -> None:
        self._store = store
        self._name = name
        self.size = 0
        with write_errors("writing a temporary file"):
            self._file: Any = tempfile.TemporaryFile()  # noqa: SIM115 - closed when it is published or discarded

    def write(self, data: Buffer) -> None:
        """Append bytes."""
        with write_errors("writing a temporary file"):
            self._file.write(data)
        self.size += memoryview(data).nbytes

    def publish(self) -> None:
        """Send the object."""
        with write_errors("reading a temporary file"):
            self._file.seek(0)
        self._store.upload(self._name, self._file)
        self._file.close()

    def discard(self) -> None:
        """Close the temporary file, which removes it."""
        self._file.close()

"""An address in an object store for the files of a table."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from copy import copy
from typing import TYPE_CHECKING, Any, Final, Protocol

from seglog_format.errors import write_errors
from seglog_format.storage.object_store import file_system_at, shown_address

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_format.storage.byte_source import Buffer

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

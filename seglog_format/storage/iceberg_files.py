"""Files of Iceberg tables: local files are synced, files in a store are uploaded when they are complete."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self

from pyiceberg.io.pyarrow import PyArrowFile, PyArrowFileIO

from seglog_format.errors import write_errors
from seglog_format.storage.files import LOCAL_FILES
from seglog_format.storage.output_directory import COPY_SIZE, StoredOutput

if TYPE_CHECKING:
    from pyiceberg.io import FileIO

SYNCED_IO_NAME: Final = "seglog_format.storage.iceberg_files.SyncedFileIO"
"""The name of `SyncedFileIO` in a catalog's configuration."""


class SyncedFileIO(PyArrowFileIO):
    """Local files that are on disk when they are closed: a catalog must not list files that a power cut removes."""

    def new_output(self, location: str) -> PyArrowFile:
        """Return a new file."""
        scheme, netloc, path = self.parse_location(location, self.properties)
        return _SyncedFile(location=location, path=path, fs=self.fs_by_scheme(scheme, netloc))


class _SyncedFile(PyArrowFile):
    def create(self, overwrite: bool = False) -> Any:  # noqa: ANN401, FBT001, FBT002 - as in the base class
        return _SyncedStream(super().create(overwrite), self._path)


class _SyncedStream:
    """An Arrow output stream that syncs its file when it is closed."""

    def __init__(self, stream: Any, path: str) -> None:  # noqa: ANN401 - Arrow is untyped
        self._stream = stream
        self._path = path

    def write(self, data: bytes) -> int:
        """Write bytes."""
        written: int = self._stream.write(data)
        return written

    def tell(self) -> int:
        """Return the position."""
        found: int = self._stream.tell()
        return found

    def close(self) -> None:
        """Close the file, then sync it and its name."""
        if not self._stream.closed:
            self._stream.close()
            _sync(Path(self._path))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _sync(path: Path) -> None:
    handle = LOCAL_FILES.open_append(path)
    try:
        handle.fsync()
    finally:
        handle.close()
    LOCAL_FILES.fsync_directory(path.parent)


class IcebergStore:
    """The location of a table's data files, in the file system that its catalog uses.

    Args:
        io: of the table.
        root: location of the files.
    """

    def __init__(self, io: FileIO, root: str) -> None:
        self._io = io
        self._root = root

    def create(self, name: str) -> StoredOutput:
        """Begin a new file."""
        return StoredOutput(self, name)

    def upload(self, name: str, file: Any) -> None:  # noqa: ANN401 - a temporary file
        """Send a whole file.

        Raises:
            WriteError: the upload failed.
        """
        location = f"{self._root}/{name}"
        with write_errors(f"writing {location}"), self._io.new_output(location).create() as stream:
            while data := file.read(COPY_SIZE):
                stream.write(data)

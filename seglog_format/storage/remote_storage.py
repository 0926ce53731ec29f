"""Logs in an object store: a listing of files, and files whose bytes are fetched when they are read."""

from __future__ import annotations

from functools import partial
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from seglog_format.errors import UsageError
from seglog_format.storage.directory_entries import DirectoryEntries
from seglog_format.storage.log_storage import FileStatus
from seglog_format.storage.remote_bytes import READ_AHEAD_SIZE, BlockCache, RemoteBytes

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import BinaryIO

    from seglog_format.storage.log_storage import LogStorage, SizeCheck
    from seglog_format.storage.object_store import Store, StoredFile


class RemoteStorage:
    """The files below an address; a `LogStorage`. Its paths start with `root`, and are not local paths.

    All files share one bounded cache of blocks.

    Attributes:
        root: the address as a path.
    """

    is_local: Final = False

    def __init__(self, store: Store, files: Iterable[StoredFile]) -> None:
        """Store the listing.

        Args:
            store: reads the files below the address.
            files: the listed files of the store.

        Raises:
            UsageError: a file has a name that leads out of its directory, such as ``..``.
        """
        self.root = Path(store.address)
        self._store = store
        self._cache = BlockCache()
        self._files: dict[Path, StoredFile] = {}
        self._directories: dict[Path, tuple[set[str], set[str]]] = {self.root: (set(), set())}
        for file in files:
            self._add(file)

    def _add(self, file: StoredFile) -> None:
        parts = PurePosixPath(file.path).parts
        if not parts or ".." in parts or parts[0] == "/":
            msg = f"seglog: {self._store.address}: {file.path!r} is not the path of a file below it"
            raise UsageError(msg)
        path = self.root.joinpath(*parts)
        self._files[path] = file
        self._directory(path.parent)[0].add(path.name)

    def _directory(self, path: Path) -> tuple[set[str], set[str]]:
        """Return the names of files and directories in a directory; add the directory if it is new."""
        if path not in self._directories:
            self._directories[path] = (set(), set())
            self._directory(path.parent)[1].add(path.name)
        return self._directories[path]

    def name_of(self, path: Path) -> str:
        """Return the address of a file or directory."""
        if path == self.root or not path.is_relative_to(self.root):
            return self._store.address if path == self.root else str(path)
        return f"{self._store.address}/{path.relative_to(self.root).as_posix()}"

    def entries(self, directory: Path) -> DirectoryEntries:
        """List a directory, without a request to the store.

        Raises:
            UsageError: there is no such directory.
        """
        if directory not in self._directories:
            raise self._absent(directory, "directory")
        files, directories = self._directories[directory]
        return DirectoryEntries(sorted(files), sorted(directories), ())

    def is_link(self, path: Path) -> bool:  # noqa: ARG002 - stores have none
        """Return False."""
        return False

    def tiered_end(self, path: Path) -> int | None:  # noqa: ARG002 - these are files of partition directories
        """Return None."""
        return None

    def status(self, path: Path) -> FileStatus:
        """Return size and time of a file, without a request to the store.

        Raises:
            UsageError: there is no such file.
        """
        file = self._file(path)
        return FileStatus(file.size, file.modified)

    def open(self, path: Path, *, mapped: bool = False, check: SizeCheck | None = None) -> RemoteBytes:  # noqa: ARG002
        """Open a file; nothing is fetched yet.

        Raises:
            UsageError: there is no such file.
        """
        file, name = self._file(path), self.name_of(path)
        if check is not None:
            check(file.size, name)
        return RemoteBytes(name, file.size, partial(self._store.read, file.path), self._cache)

    def _file(self, path: Path) -> StoredFile:
        if path not in self._files:
            raise self._absent(path, "file")
        return self._files[path]

    def _absent(self, path: Path, what: str) -> UsageError:
        return UsageError(f"seglog: {self.name_of(path)}: no such {what}")


def download(storage: LogStorage, directory: Path, target: Path) -> None:
    """Copy the files of a directory into an empty local one; files in its subdirectories are left out.

    Args:
        storage: the storage with the directory.
        directory: the directory to copy.
        target: a new local directory.

    Raises:
        UsageError: the store does not answer, or the copy cannot be written.
    """
    entries = storage.entries(directory)
    target.mkdir()
    for name in entries.directories:
        (target / name).mkdir()
    for name in entries.files:
        try:
            with (target / name).open("xb") as file:
                write_file_of(storage, directory / name, file)
        except (OSError, ValueError) as error:
            msg = f"seglog: {storage.name_of(directory / name)}: cannot be copied into {target.parent}: {error}"
            raise UsageError(msg) from error


def write_file_of(storage: LogStorage, path: Path, target: BinaryIO) -> None:
    """Write the bytes of a storage's file into an open file."""
    with storage.open(path) as source:
        source.expect(0, None)
        parts = range(0, source.size, READ_AHEAD_SIZE)
        target.writelines(source.view(position, position + READ_AHEAD_SIZE) for position in parts)

"""The storages that the files of a task are read from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog_format.spark.pieces import DirectoryTask
from seglog_format.storage.log_storage import LOCAL
from seglog_format.storage.object_store import Store, is_address
from seglog_format.storage.remote_storage import RemoteStorage

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from seglog_format.log.segment import LogSegment
    from seglog_format.spark.pieces import AnyTask, Piece
    from seglog_format.storage.log_storage import LogStorage


class TaskStorage:
    """The storage of each directory of a task: the local file system, or the store behind an address.

    Directories that are read whole are listed; of others only the status of files that the task names is requested.
    """

    def __init__(self, task: AnyTask, settings: Mapping[str, str]) -> None:
        """Request the status of the files that the task names.

        Args:
            task: the task to read.
            settings: of the file systems behind addresses.

        Raises:
            UsageError: a store does not answer, or lacks a file.
        """
        self._settings = settings
        self._remote: dict[str, RemoteStorage] = {}
        directory = task.path if isinstance(task, DirectoryTask) else task.directory
        if directory is not None and is_address(directory):
            store = Store(directory, settings)
            self._remote[directory] = RemoteStorage(store, store.listed())
        if not isinstance(task, DirectoryTask):
            for path, names in _named(task.pieces).items():
                if path not in self._remote:
                    store = Store(path, settings)
                    self._remote[path] = RemoteStorage(store, map(store.file, names))

    def of(self, directory: str) -> LogStorage:
        """Return the storage that holds a directory."""
        return self._remote.get(directory, LOCAL)

    def segment(self, piece: Piece) -> LogSegment:
        """Return the segment of a piece, with no file opened yet."""
        return piece.segment(self.of(_directory_of(piece.log)))


def _named(pieces: Iterable[Piece]) -> dict[str, dict[str, None]]:
    """Names of remote logs, by their directory and in order."""
    names: dict[str, dict[str, None]] = {}
    for piece in pieces:
        if is_address(piece.log):
            names.setdefault(_directory_of(piece.log), {})[piece.log.rpartition("/")[2]] = None
    return names


def _directory_of(log: str) -> str:
    return log.rpartition("/")[0]

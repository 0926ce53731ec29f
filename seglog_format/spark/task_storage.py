"""The storages that hold the files of a task."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from seglog_format.log.listing import list_partition
from seglog_format.log.offset_checkpoints import checkpointed_offset
from seglog_format.names import FileKind
from seglog_format.spark.pieces import DirectoryTask
from seglog_format.spark.remote import opened_tier
from seglog_format.storage.log_storage import LOCAL
from seglog_format.storage.object_store import Store, is_address
from seglog_format.storage.remote_storage import RemoteStorage

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seglog_format.log.listing import PartitionListing
    from seglog_format.log.segment import LogSegment
    from seglog_format.spark.options import ReadOptions
    from seglog_format.spark.pieces import AnyTask, Piece
    from seglog_format.storage.log_storage import LogStorage
    from seglog_format.tier.remote_store import RemoteTier


class TaskStorage:
    """The storage of each directory of a task: the local file system, or the store at an address.

    Directories that are read whole are listed; of other directories, only the status of the task's files is requested.
    """

    def __init__(self, task: AnyTask, options: ReadOptions) -> None:
        """Request the status of the files that the task names.

        Args:
            task: the task to read.
            options: of the query, with the settings of the file systems of addresses.

        Raises:
            UsageError: a store does not answer, or lacks a file.
        """
        settings = options.storage
        self._options = options
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

    @cached_property
    def tier(self) -> RemoteTier | None:
        """The remote store of the query, listed; None if it has none."""
        return opened_tier(self._options)

    def listing(self, directory: str) -> PartitionListing:
        """Return the files of a directory, those of its tiered segments included."""
        listing = list_partition(directory, self.of(directory))
        if self.tier is None:
            return listing
        return self.tier.joined(listing, checkpointed_offset(listing, FileKind.LOG_START_OFFSET_CHECKPOINT))[0]

    def segment(self, piece: Piece) -> LogSegment:
        """Return the segment of a piece, with no file opened yet."""
        if piece.remote is not None:
            return piece.segment(piece.remote.storage(self._options))
        return piece.segment(self.of(_directory_of(piece.log)))


def _named(pieces: Iterable[Piece]) -> dict[str, dict[str, None]]:
    """Return the names of remote logs by their directory, in order."""
    names: dict[str, dict[str, None]] = {}
    for piece in pieces:
        if piece.remote is None and is_address(piece.log):
            names.setdefault(_directory_of(piece.log), {})[piece.log.rpartition("/")[2]] = None
    return names


def _directory_of(log: str) -> str:
    return log.rpartition("/")[0]

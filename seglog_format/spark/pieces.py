"""The pieces of `.log` files that a task reads, each from the start of an entry to the start of another.

Pieces are cut where an offset index says that entries start, but the index is not trusted: a task that does not end
exactly where the next piece begins raises an error instead of losing or repeating records.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from seglog_format.errors import UsageError
from seglog_format.log.listing import SegmentFiles, checkpointed_offset, list_partition
from seglog_format.log.segment import LogSegment
from seglog_format.model import GREATEST_OFFSET, INT64_MAX
from seglog_format.names import FileKind
from seglog_format.storage.log_storage import LOCAL
from seglog_format.storage.object_store import ObjectFiles, Store, is_address, objects_at
from seglog_format.storage.remote_storage import RemoteStorage
from seglog_format.tier.joining import JoinedStorage
from seglog_format.tier.layout import KeyRing
from seglog_format.tier.layouts import layout_named
from seglog_format.tier.remote_store import RemoteTier, open_tier
from seglog_format.tier.tier import Tier

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seglog_format.log.listing import PartitionListing
    from seglog_format.spark.options import ReadOptions
    from seglog_format.storage.log_storage import LogStorage
    from seglog_format.storage.object_store import Objects, StoredFile
    from seglog_format.tier.joining import RemoteFile


@dataclass(frozen=True, slots=True)
class Piece:
    """Whole entries of one segment, or all of them.

    Attributes:
        topic, partition: of the records.
        log: path or address of the `.log` file; of a remote one, the name of its object.
        base_offset: of the segment.
        last_allowed: greatest possible offset in the piece.
        start: byte position of its first entry.
        end: byte position after its last; None for the end of the file.
        previous: last offset of the entry before it.
        from_offset: first offset to read.
        to_offset: first offset not to read.
        topic_id: of the topic; None if it has none.
        is_last: whether no other segment of the log follows.
        has_to_reach: whether the log has reached ``to_offset`` before: if it ends earlier, it was truncated meanwhile.
        limit: maximum bytes that one entry may decompress to.
        remote: opens a log in a remote store; None for any other log.
    """

    topic: str
    partition: int
    log: str
    base_offset: int
    last_allowed: int = GREATEST_OFFSET
    start: int = 0
    end: int | None = None
    previous: int = -1
    from_offset: int = 0
    to_offset: int = INT64_MAX
    topic_id: str | None = None
    is_last: bool = False
    has_to_reach: bool = False
    limit: int = 0
    remote: RemoteLog | None = None

    def segment(self, storage: LogStorage = LOCAL) -> LogSegment:
        """Return the segment, with no file opened yet.

        Args:
            storage: the storage with the log.
        """
        return LogSegment(
            SegmentFiles(self.base_offset, Path(self.log if self.remote is None else self.remote.path)),
            next_base_offset=self.last_allowed + 1,
            limit=self.limit,
            storage=storage,
        )


@dataclass(frozen=True, slots=True)
class Task:
    """Input of one Spark task.

    Attributes:
        pieces: in order.
        directory: path or address of the partition, if its transactions decide which records are read.
    """

    pieces: tuple[Piece, ...]
    directory: str | None = None


@dataclass(frozen=True, slots=True)
class DirectoryTask:
    """A partition directory for one task.

    Attributes:
        path: path or address of the directory.
        topic, partition: its name.
        topic_id: of the topic, if it is known.
        offsets: first offset to read, and the one after the last.
    """

    path: str
    topic: str
    partition: int
    topic_id: str | None
    offsets: tuple[int, int] = (0, INT64_MAX)


AnyTask: TypeAlias = Task | DirectoryTask


# -- segments of a remote store in queries: the driver lists them, and executors open them without a listing -----------


@dataclass(frozen=True, slots=True)
class RemoteLog:
    """A log in a remote store, as the driver sends it to an executor.

    Attributes:
        path: path of the log in its partition directory.
        file: its file in the store.
        layout: layout of the store.
        objects: objects of its segment.
    """

    path: str
    file: RemoteFile
    layout: str
    objects: tuple[StoredFile, ...]

    def storage(self, options: ReadOptions) -> LogStorage:
        """Return a storage with this log alone; nothing is fetched yet.

        Args:
            options: of the query, with the address of the store and the files of the keys.

        Raises:
            UsageError: there is no reader for the address, or no such layout.
        """
        files = ObjectFiles(_Listed(objects_at(_address(options), options.storage), self.objects))
        tier = Tier(files, layout_named(self.layout), KeyRing(options.remote_keys))
        path = Path(self.path)
        return JoinedStorage(LOCAL, path.parent, tier, {path.name: self.file})


class _Listed:
    """Objects that were listed before."""

    def __init__(self, objects: Objects, files: Iterable[StoredFile]) -> None:
        self.address, self._files = objects.address, tuple(files)
        self.read = objects.read

    def listed(self) -> Iterable[StoredFile]:
        return self._files


def opened_tier(options: ReadOptions) -> RemoteTier | None:
    """Open the remote store of a query, and list it; None if the query has none.

    Raises:
        UsageError: the store does not answer, or is empty.
    """
    if options.remote is None:
        return None
    return open_tier(options.remote, layout=options.remote_layout, keys=options.remote_keys, settings=options.storage)


def remote_log(segment: LogSegment, storage: LogStorage) -> RemoteLog | None:
    """Return the log of a segment in the form that an executor opens; None if the log is not in a remote store."""
    path = segment.paths.log
    file = storage.remote_file(path) if isinstance(storage, JoinedStorage) else None
    if file is None or not isinstance(storage, JoinedStorage):
        return None
    tier = storage.tier
    objects = tier.objects_of(file.part.segment.id).values()
    return RemoteLog(str(path), file, tier.layout.name, tuple(tier.files.files[each.path] for each in objects))


def _address(options: ReadOptions) -> str:
    if options.remote is None:
        msg = "seglog: a task reads a remote store, but the option remote is missing"
        raise UsageError(msg)
    return options.remote


# -- the storages that hold the files of a task ------------------------------------------------------------------------


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

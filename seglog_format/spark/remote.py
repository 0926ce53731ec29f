"""Segments of a remote store in queries: the driver lists them, and executors open them without a listing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from seglog_format.errors import UsageError
from seglog_format.storage.log_storage import LOCAL
from seglog_format.storage.object_store import ObjectFiles, objects_at
from seglog_format.tier.joining import JoinedStorage
from seglog_format.tier.layout import KeyRing
from seglog_format.tier.layouts import layout_named
from seglog_format.tier.remote_store import RemoteTier, open_tier
from seglog_format.tier.tier import Tier

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seglog_format.log.segment import LogSegment
    from seglog_format.spark.options import ReadOptions
    from seglog_format.storage.log_storage import LogStorage
    from seglog_format.storage.object_store import Objects, StoredFile
    from seglog_format.tier.joining import RemoteFile


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

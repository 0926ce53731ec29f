"""A remote store with the segments of tiered partitions, open for reading."""

from __future__ import annotations

from collections import OrderedDict
from threading import Lock
from typing import TYPE_CHECKING, Final, NamedTuple

from seglog_format.errors import UsageError
from seglog_format.object_names import FILE_KINDS, ObjectKind
from seglog_format.tier.chunked_bytes import DEFAULT_CACHE_SIZE, ChunkCache

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seglog_format.names import FileKind
    from seglog_format.storage.object_store import ObjectFiles, Traffic
    from seglog_format.tier.keys import KeyRing
    from seglog_format.tier.layout import OpenedSegment, StoredObject, TierLayout
    from seglog_format.tier.records import RemoteSegmentId

MAX_OPENED: Final = 4096
"""Maximum number of segments whose manifests are cached."""


class PartitionKey(NamedTuple):
    """A partition, identified by the topic's id: unlike the name, it cannot have a prefix."""

    topic_id: str
    partition: int


def key_of(segment: RemoteSegmentId) -> PartitionKey:
    """Return the partition of a segment."""
    return PartitionKey(segment.partition.topic_id, segment.partition.partition)


class Tier:
    """The objects of a store, grouped by segment. The store is never written to.

    Attributes:
        layout: of the objects.
        files: the objects.
        keys: private keys for encrypted segments.
        segments: for each partition and segment the objects by kind; segments in the order of start offsets and names.
        others: paths of objects that the layout does not recognize.
    """

    def __init__(
        self, files: ObjectFiles, layout: TierLayout, keys: KeyRing, cache_size: int = DEFAULT_CACHE_SIZE
    ) -> None:
        """Group the objects of a store by segment.

        Args:
            files: the objects.
            layout: of the objects.
            keys: private keys.
            cache_size: maximum bytes of decoded chunks to keep.
        """
        self.files, self.layout, self.keys = files, layout, keys
        self.cache = ChunkCache(cache_size)
        self.segments: dict[PartitionKey, dict[RemoteSegmentId, dict[ObjectKind, StoredObject]]] = {}
        self.others: list[str] = []
        self._lock = Lock()
        self._opened: OrderedDict[RemoteSegmentId, OpenedSegment] = OrderedDict()
        for path in files.files:
            stored = layout.parse(path)
            if stored is None:
                self.others.append(path)
                continue
            of_partition = self.segments.setdefault(key_of(stored.id), {})
            of_partition.setdefault(stored.id, {})[stored.kind] = stored

    @property
    def address(self) -> str:
        """The address or directory of the store."""
        return self.files.address

    @property
    def traffic(self) -> Traffic:
        """The number of requests so far, and of the bytes that they fetched."""
        return self.files.traffic

    def objects_of(self, segment: RemoteSegmentId) -> Mapping[ObjectKind, StoredObject]:
        """Return the objects of a segment; none if there are none.

        Only the id of the segment is compared, not the name of the topic: a prefix may precede it.
        """
        of_partition = self.segments.get(key_of(segment), {})
        if segment in of_partition:
            return of_partition[segment]
        return next((found for known, found in of_partition.items() if known.segment_id == segment.segment_id), {})

    def is_finished(self, segment: RemoteSegmentId) -> bool:
        """Return whether all objects exist that every finished segment has."""
        return self.layout.required(has_aborted=False) <= self.objects_of(segment).keys()

    def name_of(self, segment: RemoteSegmentId, kind: FileKind) -> str:
        """Return the name of the object that holds a file; if there is none, the name of the segment in this store."""
        objects = self.objects_of(segment)
        for object_kind, stored in objects.items():
            if FILE_KINDS.get(object_kind) is kind:
                return self.files.name_of(stored.path)
        named = objects.get(ObjectKind.INDEXES)
        return f"{self.address}: segment {segment.segment_id}" if named is None else self.files.name_of(named.path)

    def open(self, segment: RemoteSegmentId) -> OpenedSegment:
        """Open a segment; its manifest is fetched at most once.

        Raises:
            FormatError: an object does not follow the layout, or the upload was not finished.
            UsageError: there are no objects, or the store does not answer.
        """
        with self._lock:
            if segment in self._opened:
                self._opened.move_to_end(segment)
                return self._opened[segment]
        objects = self.objects_of(segment)
        if not objects:
            msg = f"{self.address}: no objects of segment {segment.segment_id}"
            raise UsageError(msg)
        found = self.layout.open(objects, self.files, self.keys, self.cache)
        with self._lock:
            self._opened[segment] = found
            if len(self._opened) > MAX_OPENED:
                self._opened.popitem(last=False)
        return found

    def __repr__(self) -> str:
        return f"Tier({self.address!r})"

"""A remote store with the segments of tiered partitions, open for reading; the list of what objects it holds."""

from __future__ import annotations

from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from threading import Lock
from typing import TYPE_CHECKING, Final, NamedTuple

from seglog_format.codec.framing import walk
from seglog_format.errors import FormatError, UsageError
from seglog_format.model import EpochStart
from seglog_format.names import FILE_KINDS, FileKind, ObjectKind, printable
from seglog_format.tier.chunked_bytes import DEFAULT_CACHE_SIZE, ChunkCache
from seglog_format.tier.segments import RemotePartitionId, RemoteSegment, RemoteSegments, SegmentState, SegmentUpdate

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from seglog_format.storage.object_store import ObjectFiles, Traffic
    from seglog_format.tier.layout import KeyRing, OpenedSegment, StoredObject, TierLayout
    from seglog_format.tier.segments import RemoteSegmentId


# -- the list of all segments in a remote store, including unreadable ones ---------------------------------------------


class StoredSummary(NamedTuple):
    """A segment of a store.

    Attributes:
        id: from the names of the objects, or from the manifest.
        start_offset: from the names of the objects.
        end_offset: last offset, inclusive; None if neither the manifest nor a record has it.
        epochs: leader epochs with their first offset in the segment.
        state: name of its state in the metadata topic; None without a record.
        size: size of the original log in bytes; None if unknown.
        stored_size: size of all its objects in bytes.
        objects: its objects, in the order of their paths.
        problem: why it cannot be read; None if no problem is known.
    """

    id: RemoteSegmentId
    start_offset: int
    end_offset: int | None
    epochs: tuple[EpochStart, ...]
    state: str | None
    size: int | None
    stored_size: int
    objects: tuple[StoredObject, ...]
    problem: str | None


def inventory(
    tier: Tier, known: Mapping[RemotePartitionId, RemoteSegments] | None = None, topic: str | None = None
) -> Iterator[StoredSummary]:
    """Yield the segments of a store, sorted by partition and start offset; only manifests are fetched.

    Args:
        tier: the store.
        known: remote segments from the metadata topic; None without it.
        topic: name of the only topic to list; None to list all.

    Raises:
        UsageError: the store does not answer.
    """
    for _, of_partition in sorted(tier.segments.items()):
        found = [_summary(tier, id_, known or {}) for id_ in of_partition]
        for each in sorted(found, key=lambda one: (one.start_offset, one.id)):
            if topic is None or each.id.partition.topic == topic:
                yield each


def _summary(tier: Tier, id_: RemoteSegmentId, known: Mapping[RemotePartitionId, RemoteSegments]) -> StoredSummary:
    objects = tuple(sorted(tier.objects_of(id_).values(), key=lambda stored: stored.path))
    size = sum(tier.files.size(stored.path) for stored in objects)
    try:
        facts, problem = tier.open(id_).facts, None
        found = StoredSummary(
            facts.id, facts.start_offset, facts.end_offset, facts.epochs, None, facts.size, size, objects, problem
        )
    except (FormatError, UsageError) as error:
        if isinstance(error.__cause__, OSError):
            raise
        found = StoredSummary(id_, objects[0].start_offset, None, (), None, None, size, objects, str(error))
    return _with_record(found, known)


def _with_record(found: StoredSummary, known: Mapping[RemotePartitionId, RemoteSegments]) -> StoredSummary:
    """Add the values from the record of a segment."""
    of_partition = known.get(found.id.partition)
    if of_partition is None:
        return found
    record = of_partition.segments.get(found.id) or of_partition.deleted.get(found.id)
    if record is None:
        return found
    end = record.end_offset if found.end_offset is None else found.end_offset
    return found._replace(end_offset=end, epochs=found.epochs or record.epochs, state=record.state.name)


# -- remote segments from their objects alone, without the metadata topic; which of them count is then a guess ---------


MAX_THREADS: Final = 8
"""Maximum number of manifests that are fetched concurrently."""


def remote_segments_of(tier: Tier, topic: str, topic_id: str | None, partition: int) -> RemoteSegments | None:
    """Return the remote segments of a partition, from the objects of finished segments; None if there are none.

    Args:
        tier: the remote store.
        topic: name of the topic.
        topic_id: its id; None to find it by the name.
        partition: number of the partition.

    Raises:
        FormatError: an object does not follow the layout.
        UsageError: the store does not answer, or several topics or topic ids match the name.
    """
    ids = [id_ for key, of_partition in tier.segments.items() for id_ in of_partition if key.partition == partition]
    whole = list(filter(tier.is_finished, ids))
    wanted = [id_ for id_ in whole if id_.partition.topic_id == topic_id] if topic_id else _named(whole, topic)
    if not wanted:
        return None
    with ThreadPoolExecutor(MAX_THREADS) as pool:
        opened = list(pool.map(tier.open, wanted))
    found = RemoteSegments(RemotePartitionId(topic, topic_id or wanted[0].partition.topic_id, partition))
    for segment in sorted(filter(None, map(segment_of, wanted, opened)), key=_noted):
        finished = SegmentUpdate(segment.id, SegmentState.COPY_SEGMENT_FINISHED)
        found.apply(segment)
        found.apply(finished)
    return found


def _named(ids: Sequence[RemoteSegmentId], topic: str) -> list[RemoteSegmentId]:
    """Return the segments of a topic by its name; if no object has exactly that name, a prefix may precede it."""
    exact = [id_ for id_ in ids if id_.partition.topic == topic]
    found = exact or [id_ for id_ in ids if id_.partition.topic.endswith(topic)]
    topics = sorted({(id_.partition.topic, id_.partition.topic_id) for id_ in found})
    if len(topics) > 1:
        listed = ", ".join(f"{printable(name)} ({topic_id})" for name, topic_id in topics)
        msg = (
            f"{topic}: {len(topics)} topics of the remote store fit this name: {listed}; the topic id, which "
            "partition.metadata has, is missing or cannot be read"
        )
        raise UsageError(msg)
    return found


def segment_of(id_: RemoteSegmentId, opened: OpenedSegment) -> RemoteSegment | None:
    """Return a segment from its objects, in the state of a begun upload; None if its end offset is not known."""
    facts = opened.facts
    end = _last_offset(opened) if facts.end_offset is None else facts.end_offset
    if end is None or end < facts.start_offset:
        return None
    return RemoteSegment(
        id_,
        SegmentState.COPY_SEGMENT_STARTED,
        facts.start_offset,
        end,
        facts.epochs or (EpochStart(0, facts.start_offset),),
        size=facts.size or 0,
        event_timestamp_ms=-1 if facts.noted_ms is None else facts.noted_ms,
        is_transaction_index_empty=FileKind.TRANSACTION_INDEX not in opened.kinds,
    )


def _noted(segment: RemoteSegment) -> tuple[int, int, int]:
    """Return a sort key for the order of uploads, as far as the objects show it."""
    return segment.event_timestamp_ms, segment.epochs[-1].epoch, segment.start_offset


def _last_offset(opened: OpenedSegment) -> int | None:
    """Walk the headers of a log, and return its last offset; None if there is no entry."""
    if FileKind.LOG not in opened.kinds:
        return None
    last = None
    try:
        with opened.open(FileKind.LOG) as source:
            for frame in walk(source, path=source.path):
                last = frame.header.last_offset
    except FormatError:
        return last
    return last


# -- a remote store with the segments of tiered partitions, open for reading -------------------------------------------


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

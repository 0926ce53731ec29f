"""The known layouts: two built-in ones, and those of installed packages."""

from __future__ import annotations

from collections import Counter
from functools import partial
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Final

from seglog_format.codec.checkpoints import decode_leader_epoch_checkpoint
from seglog_format.errors import Location, UsageError
from seglog_format.names import FileKind, printable
from seglog_format.object_names import FILE_KINDS, ObjectKind, ObjectName, parse_local_tier_directory, parse_object_name
from seglog_format.storage.file_bytes import MAX_WHOLE_SIZE, refuse_beyond, refuse_large_log
from seglog_format.tier.aiven_layout import AivenLayout
from seglog_format.tier.chunked_bytes import ChunkedBytes, equal_chunks
from seglog_format.tier.layout import SegmentFacts, StoredObject
from seglog_format.tier.records import RemotePartitionId, RemoteSegmentId
from seglog_format.tier.stored_segment import LogFile, SmallFile, StoredSegment

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from seglog_format.record_model import EpochStart
    from seglog_format.tier.chunked_bytes import Chunk, ChunkCache
    from seglog_format.tier.keys import KeyRing
    from seglog_format.tier.layout import ObjectReader, TierLayout


# -- the layout of LocalTieredStorage, Kafka's plug-in for tests: unchanged files of a segment (chapter 47) -----------


READ_SIZE: Final = 2**18
"""Bytes of one request: a smaller request takes as long."""

KINDS: Final = {**FILE_KINDS, ObjectKind.LEADER_EPOCHS: FileKind.LEADER_EPOCH_CHECKPOINT}
PARTS: Final = 2
"""Parts of a path: the directory of a partition, and the object."""


class LocalTierLayout:
    """The layout in which each file of a segment is stored unchanged in its own object.

    Attributes:
        name: ``local``.
    """

    name: Final = "local"

    def parse(self, path: str) -> StoredObject | None:
        """Recognize ``.../<topic>-<partition>-<topic id>/<start offset>-<segment id><suffix>`` (SEG-TIR-001)."""
        parts = path.rsplit("/", PARTS)[-PARTS:]
        name = parse_object_name(parts[-1])
        where = parse_local_tier_directory(parts[0]) if len(parts) == PARTS else None
        if name is None or name.kind not in KINDS or where is None:
            return None
        partition = RemotePartitionId(where.topic, where.topic_id, where.partition)
        return StoredObject(path, RemoteSegmentId(partition, name.segment_id), name.start_offset, name.kind)

    def path_of(self, segment: RemoteSegmentId, start_offset: int, kind: ObjectKind, prefix: str = "") -> str:
        """Return the path of an object."""
        topic, topic_id, partition = segment.partition
        return f"{prefix}{topic}-{partition}-{topic_id}/{ObjectName(start_offset, segment.segment_id, kind)}"

    def required(self, *, has_aborted: bool) -> frozenset[ObjectKind]:
        """Return all kinds; the transaction index only if the segment has aborted transactions."""
        return frozenset(KINDS) - (set() if has_aborted else {ObjectKind.TRANSACTION_INDEX})

    def open(
        self, objects: Mapping[ObjectKind, StoredObject], reader: ObjectReader, keys: KeyRing, cache: ChunkCache
    ) -> StoredSegment:
        """Open a segment; read only its leader epochs."""
        del keys  # nothing is encrypted
        some = next(iter(objects.values()))
        others = {
            KINDS[kind]: _small(stored, reader)
            for kind, stored in objects.items()
            if kind in KINDS and kind is not ObjectKind.LOG
        }
        stored_log = objects.get(ObjectKind.LOG)
        log = None if stored_log is None else _log(stored_log, reader, cache)
        epochs = _epochs(others.get(FileKind.LEADER_EPOCH_CHECKPOINT), some.start_offset)
        size = None if log is None else log.size
        return StoredSegment(SegmentFacts(some.id, some.start_offset, None, epochs, size), log, others)


def _small(stored: StoredObject, reader: ObjectReader) -> SmallFile:
    size = reader.size(stored.path)
    return SmallFile(reader.name_of(stored.path), size, partial(reader.read, stored.path, 0, size))


def _log(stored: StoredObject, reader: ObjectReader, cache: ChunkCache) -> LogFile:
    size, name = reader.size(stored.path), reader.name_of(stored.path)
    refuse_large_log(size, name)

    def fetch(chunk: Chunk) -> bytes:
        return reader.read(stored.path, chunk.stored_start, chunk.stored_size)

    return LogFile(name, size, lambda: ChunkedBytes(name, equal_chunks(READ_SIZE, size), fetch, cache))


def _epochs(file: SmallFile | None, start_offset: int) -> tuple[EpochStart, ...]:
    """Return the epochs of a segment, from the file with the epochs of the log up to its end; none without the file."""
    if file is None:
        return ()
    refuse_beyond(MAX_WHOLE_SIZE, file.size, file.name)
    entries = decode_leader_epoch_checkpoint(file.load(), Location(file.name)).entries
    return epochs_from(entries, start_offset)


def epochs_from(entries: tuple[EpochStart, ...], start_offset: int) -> tuple[EpochStart, ...]:
    """Return the epochs from an offset on; the epoch of that offset begins there."""
    before = [entry for entry in entries if entry.start_offset <= start_offset]
    after = tuple(entry for entry in entries if entry.start_offset > start_offset)
    return (*(entry._replace(start_offset=start_offset) for entry in before[-1:]), *after)


# -- the known layouts: two built-in ones, and those of installed packages --------------------------------------------


ENTRY_POINTS: Final = "seglog_format.tier_layouts"
"""The group of entry points of layouts: each is a class or another callable that returns a layout."""

BUILT_IN: Final[dict[str, type[LocalTierLayout | AivenLayout]]] = {
    LocalTierLayout.name: LocalTierLayout,
    AivenLayout.name: AivenLayout,
}


def layout_names() -> list[str]:
    """Return the names of all layouts."""
    return sorted({*BUILT_IN, *entry_points(group=ENTRY_POINTS).names})


def layout_named(name: str) -> TierLayout:
    """Return a layout by its name.

    Raises:
        UsageError: there is no layout of that name.
    """
    if name in BUILT_IN:
        return BUILT_IN[name]()
    found = entry_points(group=ENTRY_POINTS, name=name)
    if not found:
        msg = f"no layout {printable(name)!r}: there are {', '.join(layout_names())}"
        raise UsageError(msg)
    layout: TierLayout = next(iter(found)).load()()
    return layout


def layout_of(paths: Iterable[str], address: str) -> TierLayout:
    """Return the layout that recognizes the most objects.

    Args:
        paths: of the objects of a store.
        address: of the store, for errors.

    Raises:
        UsageError: no layout recognizes any object.
    """
    layouts = [layout_named(name) for name in layout_names()]
    counts: Counter[str] = Counter()
    for path in paths:
        counts.update(layout.name for layout in layouts if layout.parse(path) is not None)
    if not counts:
        msg = f"{printable(address)}: no object of a known layout ({', '.join(layout_names())})"
        raise UsageError(msg)
    best = counts.most_common(1)[0][0]
    return next(layout for layout in layouts if layout.name == best)

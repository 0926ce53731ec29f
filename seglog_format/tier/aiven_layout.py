"""The layout of the Aiven plug-in: a log in chunks, its indexes in one object, and a manifest (chapter 47)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from seglog_format.errors import CorruptIndexError, Location
from seglog_format.model import INT32_MAX
from seglog_format.object_names import ObjectKind, ObjectName, parse_object_name, parse_topic_directory
from seglog_format.storage.file_bytes import refuse_beyond
from seglog_format.tier.aiven_manifest import MAX_MANIFEST_SIZE, read_manifest
from seglog_format.tier.chunked_bytes import ChunkedBytes
from seglog_format.tier.envelope import IV_SIZE, TAG_SIZE, PieceCipher, decompressed_chunk
from seglog_format.tier.ids import RemotePartitionId, RemoteSegmentId
from seglog_format.tier.layout import SegmentFacts, StoredObject
from seglog_format.tier.stored_segment import LogFile, SmallFile, StoredSegment

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seglog_format.names import FileKind
    from seglog_format.tier.aiven_manifest import IndexSpan, Manifest
    from seglog_format.tier.chunk_cache import ChunkCache
    from seglog_format.tier.chunk_index import Chunk
    from seglog_format.tier.keys import KeyRing
    from seglog_format.tier.layout import ObjectReader

KINDS: Final = frozenset({ObjectKind.LOG, ObjectKind.INDEXES, ObjectKind.MANIFEST})
PARTS: Final = 3
"""Parts of a path that have a meaning: prefix and topic, partition, object."""


class AivenLayout:
    """The Aiven layout: three objects for each segment; the plug-in writes the manifest last.

    Attributes:
        name: ``aiven``.
    """

    name: Final = "aiven"

    def parse(self, path: str) -> StoredObject | None:
        """Recognize ``<prefix><topic>-<topic id>/<partition>/<start offset>-<segment id><suffix>`` (SEG-TIR-002).

        A path does not show where the prefix ends, unless it ends in a slash. So everything after the last slash counts
        as the topic.
        """
        parts = path.rsplit("/", PARTS)[-PARTS:]
        name = parse_object_name(parts[-1])
        if name is None or name.kind not in KINDS or len(parts) < PARTS:
            return None
        topic, partition = parse_topic_directory(parts[0]), parts[1]
        is_number = partition.isascii() and partition.isdecimal() and len(partition) <= len(str(INT32_MAX))
        if topic is None or not is_number:
            return None
        segment = RemoteSegmentId(RemotePartitionId(*topic, int(partition)), name.segment_id)
        return StoredObject(path, segment, name.start_offset, name.kind)

    def path_of(self, segment: RemoteSegmentId, start_offset: int, kind: ObjectKind, prefix: str = "") -> str:
        """Return the path of an object."""
        topic, topic_id, partition = segment.partition
        return f"{prefix}{topic}-{topic_id}/{partition}/{ObjectName(start_offset, segment.segment_id, kind)}"

    def required(self, *, has_aborted: bool) -> frozenset[ObjectKind]:
        """Return all three kinds."""
        del has_aborted  # the transaction index is in the object of indexes
        return KINDS

    def open(
        self, objects: Mapping[ObjectKind, StoredObject], reader: ObjectReader, keys: KeyRing, cache: ChunkCache
    ) -> StoredSegment:
        """Open a segment; read its manifest. The data key is unwrapped when encrypted bytes are first read."""
        some = next(iter(objects.values()))
        if ObjectKind.MANIFEST not in objects:
            at = Location(reader.name_of(some.path))
            raise CorruptIndexError(at, "SEG-TIR-006", expected="a manifest beside it", found="an unfinished upload")
        return _Opening(objects, reader, keys, cache).segment()


class _Opening:
    """Opens one segment."""

    def __init__(
        self, objects: Mapping[ObjectKind, StoredObject], reader: ObjectReader, keys: KeyRing, cache: ChunkCache
    ) -> None:
        self._objects, self._reader, self._keys, self._cache = objects, reader, keys, cache
        path = objects[ObjectKind.MANIFEST].path
        self._at = Location(reader.name_of(path))
        size = reader.size(path)
        refuse_beyond(MAX_MANIFEST_SIZE, size, self._at.path)
        self._manifest: Manifest = read_manifest(reader.read(path, 0, size), self._at)
        self._cipher: PieceCipher | None = None

    def segment(self) -> StoredSegment:
        """Read the manifest, and return the segment."""
        stored = self._objects[ObjectKind.MANIFEST]
        noted = self._manifest.segment or SegmentFacts(stored.id, stored.start_offset)
        # The names of objects identify the segment: the description in the manifest is only informative.
        facts = replace(noted, id=_identified(stored, noted), start_offset=stored.start_offset)
        return StoredSegment(replace(facts, size=self._manifest.chunks.size), self._log(), self._indexes())

    def _decrypted(self, piece: bytes, at: Location) -> bytes:
        encryption = self._manifest.encryption
        if encryption is None:
            return piece
        if self._cipher is None:
            key = self._keys.data_key(encryption.key_id, encryption.wrapped_key, self._at)
            self._cipher = PieceCipher(key, encryption.aad)
        return self._cipher.decrypt(piece, at)

    def _log(self) -> LogFile | None:
        stored = self._objects.get(ObjectKind.LOG)
        if stored is None:
            return None
        name, chunks = self._reader.name_of(stored.path), self._manifest.chunks

        def opened() -> ChunkedBytes:
            self._require_size(stored, chunks.stored_size)
            return ChunkedBytes(name, chunks, fetch, self._cache)

        def fetch(chunk: Chunk) -> bytes:
            at = Location(name, chunk.stored_start, f"chunk {chunk.number}", chunk.stored_size)
            data = self._decrypted(self._reader.read(stored.path, chunk.stored_start, chunk.stored_size), at)
            if self._manifest.is_compressed:
                return decompressed_chunk(data, chunk.size, at)
            if len(data) != chunk.size:
                raise CorruptIndexError(at, "SEG-TIR-006", expected=f"{chunk.size} bytes of a log", found=len(data))
            return data

        return LogFile(name, chunks.size, opened)

    def _indexes(self) -> dict[FileKind, SmallFile]:
        stored = self._objects.get(ObjectKind.INDEXES)
        if stored is None:
            return {}
        return {kind: self._index(stored, kind, span) for kind, span in self._manifest.indexes.items()}

    def _index(self, stored: StoredObject, kind: FileKind, span: IndexSpan) -> SmallFile:
        name = self._reader.name_of(stored.path)
        wrapping = IV_SIZE + TAG_SIZE if self._manifest.encryption is not None and span.size else 0
        at = Location(name, span.position, kind.name.lower(), span.size)

        def load() -> bytes:
            if not span.size:
                return b""
            self._require_size(stored, self._manifest.indexes_size)
            return self._decrypted(self._reader.read(stored.path, span.position, span.size), at)

        return SmallFile(name, max(span.size - wrapping, 0), load)

    def _require_size(self, stored: StoredObject, expected: int) -> None:
        """Refuse an object of another size than in its manifest (SEG-TIR-006)."""
        size = self._reader.size(stored.path)
        if size != expected:
            at = Location(self._reader.name_of(stored.path), size=size)
            raise CorruptIndexError(at, "SEG-TIR-006", expected=f"{expected} bytes, as in the manifest", found=size)


def _identified(stored: StoredObject, noted: SegmentFacts) -> RemoteSegmentId:
    """Return the id of a segment from the name of its object; take the topic from the manifest if the name ends in it.

    The name alone does not separate a prefix that does not end in a slash from the topic.
    """
    named, found = stored.id.partition, noted.id.partition
    ends_alike = named.topic.endswith(found.topic) and named.topic_id == found.topic_id
    return RemoteSegmentId(named._replace(topic=found.topic), stored.id.segment_id) if ends_alike else stored.id

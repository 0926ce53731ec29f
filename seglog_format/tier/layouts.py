"""The known layouts: two built-in ones, of which one is that of the Aiven plug-in, and those of installed packages."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Final

from seglog_format.codec.checkpoints import decode_leader_epoch_checkpoint
from seglog_format.codec.compression import decompress
from seglog_format.codec.compression.zstd import decompress_whole
from seglog_format.errors import (
    CorruptIndexError,
    CorruptRecordError,
    FormatError,
    Location,
    RefusedError,
    UnsupportedVersionError,
    UsageError,
)
from seglog_format.model import INT32_MAX, INT64_MAX, CompressionCodec, EpochStart
from seglog_format.names import (
    FILE_KINDS,
    FileKind,
    ObjectKind,
    ObjectName,
    parse_decimal,
    parse_local_tier_directory,
    parse_object_name,
    parse_topic_directory,
    printable,
)
from seglog_format.storage.byte_source import MAX_WHOLE_SIZE, refuse_beyond, refuse_large_log
from seglog_format.tier.chunked_bytes import ChunkedBytes, ChunkIndex, equal_chunks, json_object, read_chunk_index
from seglog_format.tier.layout import LogFile, SegmentFacts, SmallFile, StoredObject, StoredSegment
from seglog_format.tier.segments import RemotePartitionId, RemoteSegmentId

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from seglog_format.tier.chunked_bytes import Chunk, ChunkCache, JsonFields
    from seglog_format.tier.layout import KeyRing, ObjectReader, TierLayout


# -- manifests of the Aiven plug-in ------------------------------------------------------------------------------------


MAX_MANIFEST_SIZE: Final = 16 * 2**20
VERSION: Final = "1"

INDEX_NAMES: Final = {
    "offset": FileKind.OFFSET_INDEX,
    "timestamp": FileKind.TIME_INDEX,
    "producerSnapshot": FileKind.PRODUCER_SNAPSHOT,
    "leaderEpoch": FileKind.LEADER_EPOCH_CHECKPOINT,
    "transaction": FileKind.TRANSACTION_INDEX,
}
"""Files in the object of indexes, by their names in a manifest, in the order of their bytes; the last is optional."""


@dataclass(frozen=True, slots=True)
class IndexSpan:
    """The position and size of an index in the object of indexes, as stored."""

    position: int
    size: int


@dataclass(frozen=True, slots=True)
class Encryption:
    """The encryption of a segment, from its manifest.

    Attributes:
        key_id: id of the key pair that wraps the data key.
        wrapped_key: the data key of this segment, wrapped by RSA.
        aad: additional data that every piece of the segment is authenticated with.
    """

    key_id: str
    wrapped_key: bytes
    aad: bytes


@dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest.

    Attributes:
        chunks: of the log.
        indexes: spans in the object of indexes; without an entry for a transaction index that does not exist.
        is_compressed: whether each chunk of the log is a zstd frame; indexes are never compressed.
        encryption: of the segment; None if it is not encrypted.
        segment: informative description of the segment; None if the manifest has none.
    """

    chunks: ChunkIndex
    indexes: Mapping[FileKind, IndexSpan]
    is_compressed: bool
    encryption: Encryption | None
    segment: SegmentFacts | None

    @property
    def indexes_size(self) -> int:
        """Size of the object of indexes in bytes."""
        return max((span.position + span.size for span in self.indexes.values()), default=0)


def read_manifest(data: bytes, at: Location) -> Manifest:
    """Decode a manifest; unknown fields are ignored.

    Args:
        data: the bytes of the object.
        at: location of its start.

    Raises:
        UnsupportedVersionError: its version is not "1" (SEG-TIR-003).
        CorruptIndexError: a field is missing, wrong, or contradicts another.
        RefusedError: it is larger than any manifest can be.
    """
    refuse_beyond(MAX_MANIFEST_SIZE, len(data), at.path)
    fields = json_object(data, at, "SEG-TIR-003")
    version = fields.text("version")
    if version != VERSION:
        raise UnsupportedVersionError(at.at("version"), "SEG-TIR-003", expected=f'"{VERSION}"', found=repr(version))
    return Manifest(
        read_chunk_index(fields.inner("chunkIndex").under("SEG-TIR-004")),
        _indexes(fields.inner("segmentIndexes")),
        fields.boolean("compression"),
        _encryption(fields.inner("encryption")) if fields.has("encryption") else None,
        _segment(fields.inner("remoteLogSegmentMetadata")) if fields.has("remoteLogSegmentMetadata") else None,
    )


def _indexes(fields: JsonFields) -> dict[FileKind, IndexSpan]:
    """Return the spans of the indexes; there must be no gaps between them."""
    spans, end = {}, 0
    for name, kind in INDEX_NAMES.items():
        if kind is FileKind.TRANSACTION_INDEX and not fields.has(name):
            continue
        span = fields.inner(name)
        position, size = span.integer("position", 0, INT32_MAX), span.integer("size", 0, INT32_MAX)
        if position != end:
            raise span.wrong(name="position", expected=f"{end}, where the index before it ends", found=position)
        spans[kind] = IndexSpan(position, size)
        end = position + size
    return spans


def _encryption(fields: JsonFields) -> Encryption:
    """Read the wrapped data key; errors do not show any part of it."""
    key_id, colon, wrapped = fields.text("dataKey").partition(":")
    if not colon or not key_id:
        at = fields.at.at("encryption.dataKey")
        raise CorruptIndexError(at, "SEG-TIR-009", expected="<key pair id>:<base64>", found="no colon")
    return Encryption(key_id, fields.decoded("dataKey", wrapped), fields.base64("aad"))


def _segment(fields: JsonFields) -> SegmentFacts:
    outer = fields.inner("remoteLogSegmentId")
    partition = outer.inner("topicIdPartition")
    named = partition.inner("topicPartition")
    start = fields.integer("startOffset", 0, INT64_MAX)
    number = named.integer("partition", 0, INT32_MAX)
    whose = RemotePartitionId(named.text("topic"), partition.text("topicId"), number)
    return SegmentFacts(
        RemoteSegmentId(whose, outer.text("id")),
        start,
        fields.integer("endOffset", start, INT64_MAX),
        _epochs_of_manifest(fields.inner("segmentLeaderEpochs")),
        noted_ms=fields.integer("eventTimestampMs", -1, INT64_MAX),
    )


def _epochs_of_manifest(fields: JsonFields) -> tuple[EpochStart, ...]:
    found = []
    for name, offset in fields.items():
        epoch = _int32(name)
        if epoch is None or not isinstance(offset, int) or not 0 <= offset <= INT64_MAX:
            raise fields.wrong(name, "a leader epoch and its first offset", offset)
        found.append(EpochStart(epoch, offset))
    return tuple(sorted(found))


def _int32(digits: str) -> int | None:
    is_short = digits.isascii() and digits.isdecimal() and len(digits) <= len(str(INT32_MAX))
    return parse_decimal(digits, bits=32) if is_short else None


# -- decryption and decompression of stored bytes (chapter 47) ---------------------------------------------------------


IV_SIZE: Final = 12
TAG_SIZE: Final = 16


class PieceCipher:
    """Decrypts the pieces of one segment by AES-GCM; a piece is IV, encrypted bytes and tag."""

    def __init__(self, data_key: bytes, aad: bytes) -> None:
        """Create a cipher; the key is kept in memory.

        Args:
            data_key: 32 bytes.
            aad: additional data that each piece is authenticated with.

        Raises:
            UsageError: the package for decryption is not installed.
        """
        try:
            from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - only encrypted segments need it
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - as above
        except ImportError as error:
            msg = "encrypted segments need the extra tier: pip install 'seglog-format[tier]'"
            raise UsageError(msg) from error
        self._cipher, self._wrong_tag, self._aad = AESGCM(data_key), InvalidTag, aad

    def decrypt(self, piece: bytes | memoryview, at: Location) -> bytes:
        """Return the decrypted bytes of a piece.

        Raises:
            CorruptRecordError: the piece is too short, or its tag is wrong (SEG-TIR-008).
        """
        if len(piece) < IV_SIZE + TAG_SIZE:
            raise CorruptRecordError(
                at, "SEG-TIR-008", expected=f"{IV_SIZE} bytes of IV, {TAG_SIZE} of tag", found=len(piece)
            )
        view = memoryview(piece)
        try:
            return self._cipher.decrypt(view[:IV_SIZE], view[IV_SIZE:], self._aad)
        except self._wrong_tag:
            expected = "bytes that the data key of this segment authenticates"
            raise CorruptRecordError(at, "SEG-TIR-008", expected=expected, found="others") from None

    def __repr__(self) -> str:
        return "PieceCipher()"


def decompressed_chunk(data: bytes | memoryview, size: int, at: Location) -> bytes:
    """Decompress a chunk of a log.

    Args:
        data: one zstd frame.
        size: number of bytes that it has to decompress to.
        at: location of the chunk in its object.

    Raises:
        CorruptRecordError: the data is no zstd frame, or decompresses to another size (SEG-TIR-007).
    """
    whole = decompress_whole(data, size)
    if whole is not None:
        return whole
    try:
        found = decompress(CompressionCodec.ZSTD, data, magic=2, at=at, limit=size)
    except RefusedError:
        raise CorruptRecordError(at, "SEG-TIR-007", expected=f"{size} bytes of a log", found="more") from None
    except FormatError as error:
        raise CorruptRecordError(
            at, "SEG-TIR-007", *error.requirements, expected=error.expected, found=error.found
        ) from None
    if len(found) != size:
        raise CorruptRecordError(at, "SEG-TIR-007", expected=f"{size} bytes of a log", found=len(found))
    return found


# -- the layout of the Aiven plug-in -----------------------------------------------------------------------------------


AIVEN_KINDS: Final = frozenset({ObjectKind.LOG, ObjectKind.INDEXES, ObjectKind.MANIFEST})
AIVEN_PARTS: Final = 3
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
        parts = ["", "", *path.rsplit("/", AIVEN_PARTS)][-AIVEN_PARTS:]
        name, topic, partition = parse_object_name(parts[-1]), parse_topic_directory(parts[0]), _int32(parts[1])
        if name is None or name.kind not in AIVEN_KINDS or topic is None or partition is None:
            return None
        segment = RemoteSegmentId(RemotePartitionId(*topic, partition), name.segment_id)
        return StoredObject(path, segment, name.start_offset, name.kind)

    def path_of(self, segment: RemoteSegmentId, start_offset: int, kind: ObjectKind, prefix: str = "") -> str:
        """Return the path of an object."""
        topic, topic_id, partition = segment.partition
        return f"{prefix}{topic}-{topic_id}/{partition}/{ObjectName(start_offset, segment.segment_id, kind)}"

    def required(self, *, has_aborted: bool) -> frozenset[ObjectKind]:
        """Return all three kinds."""
        del has_aborted  # the transaction index is in the object of indexes
        return AIVEN_KINDS

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

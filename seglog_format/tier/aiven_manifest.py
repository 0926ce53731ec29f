"""Manifests of the Aiven plug-in: where objects hold the parts of a segment, and how they are encoded (chapter 47)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from seglog_format.errors import CorruptIndexError, UnsupportedVersionError
from seglog_format.model import INT32_MAX, INT64_MAX
from seglog_format.names import FileKind
from seglog_format.state_model import EpochStart
from seglog_format.storage.file_bytes import refuse_beyond
from seglog_format.tier.chunk_index import ChunkIndex, read_chunk_index
from seglog_format.tier.ids import RemotePartitionId, RemoteSegmentId
from seglog_format.tier.json_fields import json_object
from seglog_format.tier.layout import SegmentFacts

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seglog_format.errors import Location
    from seglog_format.tier.json_fields import JsonFields


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
        _epochs(fields.inner("segmentLeaderEpochs")),
        noted_ms=fields.integer("eventTimestampMs", -1, INT64_MAX),
    )


def _epochs(fields: JsonFields) -> tuple[EpochStart, ...]:
    found = []
    for name, offset in fields.items():
        is_number = name.isascii() and name.isdecimal() and len(name) <= len(str(INT32_MAX))
        if not is_number or not isinstance(offset, int) or not 0 <= offset <= INT64_MAX:
            raise fields.wrong(name, "a leader epoch and its first offset", offset)
        found.append(EpochStart(int(name), offset))
    return tuple(sorted(found))

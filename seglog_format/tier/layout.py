"""The protocol of layouts: how a broker's plug-in names objects and encodes their content.

A layout is found by its name among the entry points of the group ``seglog_format.tier_layouts``; two are built in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seglog_format.names import FileKind
    from seglog_format.object_names import ObjectKind
    from seglog_format.record_model import EpochStart
    from seglog_format.storage.byte_source import SourceFile
    from seglog_format.tier.chunked_bytes import ChunkCache
    from seglog_format.tier.keys import KeyRing
    from seglog_format.tier.records import RemoteSegmentId


class StoredObject(NamedTuple):
    """An object of a store that a layout recognizes.

    Attributes:
        path: relative to the root of the store, with parts separated by ``/``.
        id: of the segment that the object belongs to.
        start_offset: of that segment.
        kind: of the content.
    """

    path: str
    id: RemoteSegmentId
    start_offset: int
    kind: ObjectKind


@dataclass(frozen=True, slots=True)
class SegmentFacts:
    """The description of a segment by its objects, without a record of `__remote_log_metadata`.

    Attributes:
        id: from the names of the objects.
        start_offset: from the names of the objects.
        end_offset: last offset, inclusive; None if only the log shows it.
        epochs: leader epochs with their first offset in the segment, in order; empty if no object has them.
        size: of the original log in bytes; None if there is no log and no manifest.
        noted_ms: recorded time at which the plug-in began to write the objects; None if there is none.
    """

    id: RemoteSegmentId
    start_offset: int
    end_offset: int | None = None
    epochs: tuple[EpochStart, ...] = ()
    size: int | None = None
    noted_ms: int | None = None


class ObjectReader(Protocol):
    """The interface by which layouts read the objects of a store: in ranges, unless an object is small."""

    def name_of(self, path: str) -> str:
        """Return the name of an object that errors show."""

    def size(self, path: str) -> int:
        """Return the size of an object in bytes.

        Raises:
            UsageError: there is no such object, or the store does not answer.
        """

    def read(self, path: str, start: int, size: int) -> bytes:
        """Read a range of an object; the whole range must exist.

        Raises:
            UsageError: there is no such object, the store does not answer, or the object is shorter.
        """


class OpenedSegment(Protocol):
    """The files of a segment, as they were before the upload. Nothing is fetched until it is read."""

    @property
    def facts(self) -> SegmentFacts:
        """The description of the segment by its objects."""

    @property
    def kinds(self) -> frozenset[FileKind]:
        """Kinds of the stored files; leader epochs and producer snapshot are those at the segment's end."""

    def name_of(self, kind: FileKind) -> str:
        """Return the name of the object that holds a file, for errors."""

    def size(self, kind: FileKind) -> int:
        """Return the original size of a file in bytes."""

    def open(self, kind: FileKind) -> SourceFile:
        """Open a file of `kinds`.

        Raises:
            FormatError: the objects do not follow the layout.
            UsageError: a decryption key is missing, or the store does not answer.
        """


class TierLayout(Protocol):
    """The way in which a plug-in names objects and encodes their content."""

    @property
    def name(self) -> str:
        """The name by which users choose the layout."""

    def parse(self, path: str) -> StoredObject | None:
        """Recognize an object by its path; return None if it does not belong to this layout.

        Args:
            path: below the root of the store.
        """

    def path_of(self, segment: RemoteSegmentId, start_offset: int, kind: ObjectKind, prefix: str = "") -> str:
        """Return the path of an object below the root of the store.

        Args:
            segment: the segment that the object belongs to.
            start_offset: of the segment.
            kind: of the content.
            prefix: text that the plug-in puts before the names of objects.
        """

    def required(self, *, has_aborted: bool) -> frozenset[ObjectKind]:
        """Return the kinds of objects that every finished segment has.

        Args:
            has_aborted: whether it is known that the segment has aborted transactions.
        """

    def open(
        self, objects: Mapping[ObjectKind, StoredObject], reader: ObjectReader, keys: KeyRing, cache: ChunkCache
    ) -> OpenedSegment:
        """Open a segment; read its manifest, if it has one.

        Args:
            objects: of the segment, by kind; at least one.
            reader: of the store.
            keys: for encrypted segments.
            cache: of chunks, shared by the logs of a store.

        Raises:
            FormatError: an object is missing, or does not follow the layout.
            UsageError: the store does not answer.
        """

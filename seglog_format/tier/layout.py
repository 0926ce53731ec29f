"""The protocol of layouts: how the plug-in of a broker names and wraps what it stores.

A layout is found by its name among the entry points of the group ``seglog_format.tier_layouts``; two are built in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seglog_format.names import FileKind
    from seglog_format.object_names import ObjectKind
    from seglog_format.state_model import EpochStart
    from seglog_format.storage.byte_source import SourceFile
    from seglog_format.tier.chunk_cache import ChunkCache
    from seglog_format.tier.ids import RemoteSegmentId
    from seglog_format.tier.keys import KeyRing


class StoredObject(NamedTuple):
    """An object of a store that a layout recognizes.

    Attributes:
        path: below the root of the store, its parts separated by ``/``.
        id: of the segment that it belongs to.
        start_offset: of that segment.
        kind: of the content.
    """

    path: str
    id: RemoteSegmentId
    start_offset: int
    kind: ObjectKind


@dataclass(frozen=True, slots=True)
class SegmentFacts:
    """What the objects of a segment say of it, without a record of `__remote_log_metadata`.

    Attributes:
        id: by the names of the objects.
        start_offset: by the names of the objects.
        end_offset: last offset, inclusive; None if only the log says it.
        epochs: leader epochs with their first offset in the segment, in order; empty if no object says them.
        size: of the original log in bytes; None if there is no log and no manifest.
        noted_ms: when the plug-in began to write the objects, as they note it; None if they do not.
    """

    id: RemoteSegmentId
    start_offset: int
    end_offset: int | None = None
    epochs: tuple[EpochStart, ...] = ()
    size: int | None = None
    noted_ms: int | None = None


class ObjectReader(Protocol):
    """The objects of a store, as layouts read them: ranges only, unless an object is small."""

    def name_of(self, path: str) -> str:
        """Return the name of an object in errors."""

    def size(self, path: str) -> int:
        """Return the size of an object in bytes.

        Raises:
            UsageError: there is no such object, or the store does not answer.
        """

    def read(self, path: str, start: int, size: int) -> bytes:
        """Read a range of an object, all of which exists.

        Raises:
            UsageError: there is no such object, the store does not answer, or the object is shorter.
        """


class OpenedSegment(Protocol):
    """The files of a segment, as they were before the upload. Nothing is fetched until it is read."""

    @property
    def facts(self) -> SegmentFacts:
        """What the objects say of the segment."""

    @property
    def kinds(self) -> frozenset[FileKind]:
        """The files that there are; leader epochs and producer snapshot are those at the segment's end."""

    def name_of(self, kind: FileKind) -> str:
        """Return the name of the object that holds a file, for errors."""

    def size(self, kind: FileKind) -> int:
        """Return the original size of a file in bytes."""

    def open(self, kind: FileKind) -> SourceFile:
        """Open a file of `kinds`.

        Raises:
            FormatError: the objects do not follow the layout.
            UsageError: a key is not at hand, or the store does not answer.
        """


class TierLayout(Protocol):
    """How a plug-in names objects and wraps their content."""

    @property
    def name(self) -> str:
        """Name by which users choose it."""

    def parse(self, path: str) -> StoredObject | None:
        """Recognize an object by its path; return None if it is none of this layout.

        Args:
            path: below the root of the store.
        """

    def path_of(self, segment: RemoteSegmentId, start_offset: int, kind: ObjectKind, prefix: str = "") -> str:
        """Return the path of an object below the root of the store.

        Args:
            segment: that it belongs to.
            start_offset: of the segment.
            kind: of the content.
            prefix: what the plug-in puts in front of the names of objects, unchanged.
        """

    def required(self, *, has_aborted: bool) -> frozenset[ObjectKind]:
        """Return the kinds of objects that a finished segment has at least.

        Args:
            has_aborted: whether it is known that the segment has aborted transactions.
        """

    def open(
        self, objects: Mapping[ObjectKind, StoredObject], reader: ObjectReader, keys: KeyRing, cache: ChunkCache
    ) -> OpenedSegment:
        """Open the envelope of a segment: its manifest, if it has one.

        Args:
            objects: its objects, by kind; at least one.
            reader: of the store.
            keys: for encrypted segments.
            cache: of chunks, shared by the logs of a store.

        Raises:
            FormatError: an object is missing, or does not follow the layout.
            UsageError: the store does not answer.
        """

"""Producer snapshot files: the producer states of a log at one offset (chapter 50)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self

from seglog_format.codec.decoders import decoders_of
from seglog_format.codec.side_files import decode_producer_snapshot
from seglog_format.errors import FormatError, Location
from seglog_format.names import parse_file_name
from seglog_format.storage.byte_source import MemoryBytes
from seglog_format.storage.file_bytes import MAX_WHOLE_SIZE, refuse_beyond
from seglog_format.storage.log_storage import LOCAL

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Collection, Iterable

    from seglog_format.log.listing import NamedFile
    from seglog_format.record_model import ProducerStateEntry
    from seglog_format.storage.byte_source import ByteSource
    from seglog_format.storage.log_storage import LogStorage


@dataclass(frozen=True, slots=True)
class ProducerSnapshot:
    """The producers of a snapshot file.

    Attributes:
        version: 1.
        crc: checksum as stored, 0 to 4294967295.
        producers: one entry for each producer id, in file order; the order has no meaning.
        path: of the file; empty for bytes in memory.
    """

    version: int
    crc: int
    producers: tuple[ProducerStateEntry, ...]
    path: str = ""

    @property
    def offset(self) -> int:
        """The offset in the name of the file: batches below it are included."""
        return _offset(Path(self.path))

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, storage: LogStorage = LOCAL) -> Self:
        """Read a snapshot file.

        Raises:
            UsageError: the path does not exist or is not a regular file.
            FormatError: as for `from_bytes`. A broker ignores such a file, and so may a reader (SEG-PSN-005).
        """
        with storage.open(Path(path), check=partial(refuse_beyond, MAX_WHOLE_SIZE)) as source:
            return cls.from_source(source, source.path)

    @classmethod
    def from_bytes(cls, data: bytes | bytearray | memoryview, path: str = "") -> Self:
        """Decode a snapshot; ``path`` names the bytes in error messages.

        Raises:
            TruncatedError: fewer than 10 bytes (SEG-PSN-003).
            UnsupportedVersionError: a version other than 1 (SEG-PSN-001).
            CorruptIndexError: the checksum or the size is wrong (SEG-PSN-002, SEG-PSN-003).
            RefusedError: more than 64 MiB (SEG-PDR-020).
        """
        return cls.from_source(MemoryBytes(data, path), path)

    @classmethod
    def from_source(cls, source: ByteSource, path: str = "") -> Self:
        """Decode a snapshot from a source of bytes, as `from_bytes` does."""
        refuse_beyond(MAX_WHOLE_SIZE, source.size, path)
        decoders = decoders_of(source)
        decode = decode_producer_snapshot if decoders is None else decoders.producer_snapshot
        snapshot = decode(source.view(0, source.size), Location(path))
        return cls(snapshot.version, snapshot.crc, snapshot.producers, path)


def newest_readable_snapshot(
    paths: Iterable[Path], open_snapshot: Callable[[Path], ProducerSnapshot] = ProducerSnapshot.open
) -> ProducerSnapshot | None:
    """Return the readable snapshot with the greatest offset in its name (SEG-PSN-005).

    Args:
        paths: of snapshot files.
        open_snapshot: reads a snapshot file.

    Returns:
        The snapshot, or None if the state must be computed from the start of the log.

    Raises:
        UsageError: one of the files does not exist.
    """
    for path in sorted(paths, key=_offset, reverse=True):
        try:
            return open_snapshot(path)
        except FormatError:
            continue  # a broker also deletes it, and tries the next older one
    return None


def without_strays(snapshots: Iterable[NamedFile], base_offsets: Collection[int]) -> list[NamedFile]:
    """Return the snapshots that a broker keeps when it loads a log, ascending (SEG-RCV-035).

    It keeps those at which a segment begins, and the newest one if that is above all base offsets.
    """
    found = sorted(snapshots, key=lambda file: file.base_offset)
    newest = found[-1:] if found and found[-1].base_offset > max(base_offsets, default=-1) else []
    return [file for file in found if file.base_offset in base_offsets or file in newest]


def _offset(path: Path) -> int:
    name = parse_file_name(path.name)
    assert name is not None
    return name.base_offset

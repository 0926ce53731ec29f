"""All decoders by declaration, and bytes and files that carry them, for the reference engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seglog_format.codec.decoders import DeclaredBytes, DeclaredFile, Decoders
from seglog_format.codec.reference import containers, control_records, framing, messages
from seglog_format.codec.reference.checksum import computed_crc
from seglog_format.codec.reference.index_entries import decode_transaction_index, slots
from seglog_format.codec.reference.producer_snapshot import decode_producer_snapshot
from seglog_format.codec.reference.records import decode_first_record, read_records
from seglog_format.storage.byte_source import source_of

if TYPE_CHECKING:
    from pathlib import Path

    from seglog_format.storage.byte_source import Readable, SourceFile
    from seglog_format.storage.directory_entries import DirectoryEntries
    from seglog_format.storage.log_storage import FileStatus, LogStorage, SizeCheck

BY_DECLARATION: Final = Decoders(
    frame_at=framing.frame_at,
    whole_frame=framing.whole_frame,
    computed_crc=computed_crc,
    records=read_records,
    first_record=decode_first_record,
    messages=messages.BY_DECLARATION,
    containers=containers.BY_DECLARATION,
    controls=control_records.BY_DECLARATION,
    slots=slots,
    transaction_index=decode_transaction_index,
    producer_snapshot=decode_producer_snapshot,
)


def declared(data: Readable, path: str = "") -> DeclaredBytes:
    """Return bytes that the declarations parse.

    Args:
        data: bytes in memory, or a source of them.
        path: file name for errors about bytes in memory.
    """
    return DeclaredBytes(source_of(data, path), BY_DECLARATION)


class DeclaredStorage:
    """A storage with files that the declarations parse.

    Args:
        storage: opens the files.
    """

    def __init__(self, storage: LogStorage) -> None:
        self._storage = storage

    @property
    def is_local(self) -> bool:
        """Return whether paths are those of the local file system."""
        return self._storage.is_local

    def name_of(self, path: Path) -> str:
        """Return the name of a file or directory in errors and rows."""
        return self._storage.name_of(path)

    def entries(self, directory: Path) -> DirectoryEntries:
        """List a directory."""
        return self._storage.entries(directory)

    def is_link(self, path: Path) -> bool:
        """Return whether a path is a symbolic link."""
        return self._storage.is_link(path)

    def tiered_end(self, path: Path) -> int | None:
        """Return the offset after a remote segment; as `LogStorage.tiered_end`."""
        return self._storage.tiered_end(path)

    def status(self, path: Path) -> FileStatus:
        """Return size and time of a file."""
        return self._storage.status(path)

    def open(self, path: Path, *, mapped: bool = False, check: SizeCheck | None = None) -> SourceFile:
        """Open a regular file; as `LogStorage.open`."""
        return DeclaredFile(self._storage.open(path, mapped=mapped, check=check), BY_DECLARATION)

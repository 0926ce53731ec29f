"""A partition directory together with the files of its remote segments, as one storage to read logs from."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from seglog_format.arguments import Closing
from seglog_format.codec.framing import walk
from seglog_format.errors import FormatError, Location
from seglog_format.names import FileKind, segment_file_name
from seglog_format.storage.byte_source import Window
from seglog_format.storage.log_storage import DirectoryEntries, FileStatus
from seglog_format.tier.stored_segment import MemoryFile

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from pathlib import Path

    from seglog_format.storage.byte_source import SourceFile
    from seglog_format.storage.log_storage import LogStorage, SizeCheck
    from seglog_format.tier.layout import OpenedSegment
    from seglog_format.tier.segments import SegmentPart
    from seglog_format.tier.tier import Tier


# -- a part of a log: the entries of a range of offsets, if other segments are used for the rest -----------------------


class SlicedBytes(Closing):
    """A part of a file, from one position to another, that is read like a whole file; a `SourceFile`.

    Attributes:
        path: of the whole file.
        size: size of the part in bytes.
    """

    def __init__(self, source: SourceFile, start: int, end: int) -> None:
        self._source, self._start = source, start
        self.path = source.path
        self.size = end - start

    def expect(self, start: int, end: int | None) -> None:
        """Announce a sequential read of a range."""
        self._source.expect(start + self._start, min(self.size, end or self.size) + self._start)

    def view(self, start: int, end: int) -> memoryview:
        """Return the bytes from one position to another, fewer at the end of the part."""
        return self._source.view(start + self._start, min(end, self.size) + self._start)

    def window(self, position: int, at_least: int = 0) -> Window:
        """Return a part that holds the byte at a position."""
        start, data = self._source.window(position + self._start, min(at_least, self.size - position))
        cut = max(self._start - start, 0)
        data = data[cut : self._start + self.size - start]
        return Window(start + cut - self._start, data)

    def forget(self) -> None:
        """Release memory, as the whole file does."""
        self._source.forget()

    def release_before(self, position: int) -> None:
        """Release memory from time to time, as the whole file does."""
        self._source.release_before(position + self._start)

    def close(self) -> None:
        """Close the whole file."""
        self._source.close()


def slice_of(source: SourceFile, first_offset: int, last_offset: int) -> tuple[int, int]:
    """Return the positions at which the entries of a range of offsets begin and end in a log.

    Args:
        source: the log.
        first_offset: first offset of the range.
        last_offset: last offset of the range, inclusive.

    Raises:
        FormatError: at damage after which no entry can be found.
    """
    start: int | None = None
    end = 0
    for frame in walk(source, path=source.path):
        header = frame.header
        if header.last_offset < first_offset:
            end = frame.end
            continue
        first = header.last_offset if header.base_offset is None else header.base_offset
        if first > last_offset:
            break
        start = frame.position if start is None else start
        end = frame.end
    return end if start is None else start, end


# -- a partition directory together with the files of its remote segments ----------------------------------------------


PLAIN_KINDS = (FileKind.LOG, FileKind.OFFSET_INDEX, FileKind.TIME_INDEX)


class RemoteFile(NamedTuple):
    """A file of a remote segment, as a partition directory would have it.

    Attributes:
        part: the segment, with the offsets that it is used for.
        kind: of the file.
        is_cut: whether only a part of its log is used.
    """

    part: SegmentPart
    kind: FileKind
    is_cut: bool


class JoinedStorage:
    """A `LogStorage` that adds the files of remote segments to one directory of another storage.

    A file that is in both is read from the other storage. Nothing of a remote segment is fetched, not even its
    manifest, before one of its files is opened.

    Attributes:
        directory: the partition directory.
        tier: the remote store.
    """

    def __init__(self, storage: LogStorage, directory: Path, tier: Tier, files: Mapping[str, RemoteFile]) -> None:
        """Create a storage for remote files.

        Args:
            storage: the storage that holds the directory.
            directory: of the partition.
            tier: the remote store.
            files: remote files by their names in the directory; see `remote_files`.
        """
        self._storage, self.tier, self._files = storage, tier, files
        self.directory = directory
        self._cuts: dict[str, tuple[int, int]] = {}

    @property
    def is_local(self) -> bool:
        """Whether the directory is in the local file system."""
        return self._storage.is_local

    def name_of(self, path: Path) -> str:
        """Return the name of a file or directory that errors and rows show; for a remote file, that of its object."""
        file = self._file(path)
        if file is None:
            return self._storage.name_of(path)
        return self.tier.name_of(file.part.segment.id, file.kind)

    def entries(self, directory: Path) -> DirectoryEntries:
        """List a directory, without a request to the remote store."""
        files, directories, skipped = self._storage.entries(directory)
        if directory == self.directory:
            files = sorted({*files, *self._files})
        return DirectoryEntries(files, directories, skipped)

    def is_link(self, path: Path) -> bool:
        """Return whether a path is a symbolic link."""
        return self._file(path) is None and self._storage.is_link(path)

    def tiered_end(self, path: Path) -> int | None:
        """Return the offset after the used part of a remote segment; None for a local file."""
        file = self._file(path)
        return None if file is None else file.part.last_offset + 1

    def status(self, path: Path) -> FileStatus:
        """Return size and time of a file; for a remote log, those that it had before the upload."""
        file = self._file(path)
        if file is None:
            return self._storage.status(path)
        if file.kind is not FileKind.LOG:
            opened = self._opened(file)
            return FileStatus(opened.size(file.kind) if file.kind in opened.kinds else 0, None)
        if file.is_cut:
            start, end = self._cut(path.name, file)
            return FileStatus(end - start, None)
        return FileStatus(file.part.segment.size or self._opened(file).size(FileKind.LOG), None)

    def open(self, path: Path, *, mapped: bool = False, check: SizeCheck | None = None) -> SourceFile:
        """Open a file for reading.

        Raises:
            UsageError: there is no such file, a decryption key is missing, or the remote store does not answer.
            FormatError: the remote store lacks the file (SEG-PDR-028), or an object does not follow its layout.
        """
        file = self._file(path)
        if file is None:
            return self._storage.open(path, mapped=mapped, check=check)
        opened = self._opened(file)
        if file.kind is FileKind.TRANSACTION_INDEX and file.kind not in opened.kinds:
            return MemoryFile(b"", self.name_of(path))  # not all brokers record that there is none
        if file.kind not in opened.kinds:
            expected = f"its {file.kind.value} in the remote store"
            raise FormatError(Location(self.name_of(path)), "SEG-PDR-028", expected=expected, found="none")
        if check is not None:
            check(opened.size(file.kind), self.name_of(path))
        source = opened.open(file.kind)
        if file.kind is FileKind.LOG and file.is_cut:
            return SlicedBytes(source, *self._cut(path.name, file))
        return source

    def remote_file(self, path: Path) -> RemoteFile | None:
        """Return the remote file at a path; None if the file is local."""
        return self._file(path)

    def _file(self, path: Path) -> RemoteFile | None:
        return self._files.get(path.name) if path.parent == self.directory else None

    def _opened(self, file: RemoteFile) -> OpenedSegment:
        return self.tier.open(file.part.segment.id)

    def _cut(self, name: str, file: RemoteFile) -> tuple[int, int]:
        """Return start and end position of the used part of a log."""
        if name not in self._cuts:
            with self._opened(file).open(FileKind.LOG) as source:
                self._cuts[name] = slice_of(source, file.part.first_offset, file.part.last_offset)
        return self._cuts[name]


def remote_files(parts: Iterable[SegmentPart], local_names: Collection[str]) -> dict[str, RemoteFile]:
    """Return the files of remote segments by their names in the directory, except those that are also local.

    Args:
        parts: the remote segments, with the offsets that each is used for; in order.
        local_names: names of the files in the directory.
    """
    return {name: file for name, file in _named(parts) if name not in local_names}


def _named(parts: Iterable[SegmentPart]) -> Iterable[tuple[str, RemoteFile]]:
    """Yield the names that the files of remote segments have in a partition directory."""
    for number, part in enumerate(parts):
        segment = part.segment
        # The first part is not cut at its start: readers skip the records below the log start offset.
        starts_late = number > 0 and part.first_offset > segment.start_offset
        is_cut = starts_late or part.last_offset < segment.end_offset
        base = part.first_offset if starts_late else segment.start_offset
        # The stored indexes are relative to the base offset of the whole segment.
        kinds = [FileKind.LOG] if starts_late else [*PLAIN_KINDS]
        if not segment.is_transaction_index_empty:
            kinds.append(FileKind.TRANSACTION_INDEX)
        for kind in kinds:
            yield segment_file_name(base, kind), RemoteFile(part, kind, is_cut)
        if not is_cut:
            after = segment_file_name(segment.end_offset + 1, FileKind.PRODUCER_SNAPSHOT)
            yield after, RemoteFile(part, FileKind.PRODUCER_SNAPSHOT, is_cut=False)

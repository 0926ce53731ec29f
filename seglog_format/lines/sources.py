"""The files below a path, and the kind of each."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum, auto
from pathlib import Path
from typing import TYPE_CHECKING, Final

from seglog_format.errors import FormatError, SeglogError, UsageError
from seglog_format.log.entry_table import OffsetRange
from seglog_format.log.listing import list_log_directory, list_partition
from seglog_format.log.path_kind import is_log_directory, partition_name, unnamed_base_offset
from seglog_format.model import GREATEST_OFFSET
from seglog_format.names import (
    FILE_KINDS,
    FIXED_NAMES,
    TEMPORARY_SUFFIXES,
    FileKind,
    parse_cached_index,
    parse_file_name,
    parse_object_name,
    segment_file_name,
)
from seglog_format.storage.file_reader import note_refusals
from seglog_format.storage.log_storage import LOCAL, stays_inside

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_format.storage.log_storage import LogStorage


class SourceKind(Enum):
    """The kind of a file."""

    LOG = auto()
    OFFSET_INDEX = auto()
    TIME_INDEX = auto()
    TRANSACTION_INDEX = auto()
    PRODUCER_SNAPSHOT = auto()
    OTHER = auto()


KINDS: Final = {
    FileKind.LOG: SourceKind.LOG,
    FileKind.METADATA_SNAPSHOT: SourceKind.LOG,
    FileKind.BOOTSTRAP_SNAPSHOT: SourceKind.LOG,
    FileKind.OFFSET_INDEX: SourceKind.OFFSET_INDEX,
    FileKind.TIME_INDEX: SourceKind.TIME_INDEX,
    FileKind.TRANSACTION_INDEX: SourceKind.TRANSACTION_INDEX,
    FileKind.PRODUCER_SNAPSHOT: SourceKind.PRODUCER_SNAPSHOT,
}
KINDS_BY_ENDING: Final = {kind.value: source_kind for kind, source_kind in KINDS.items() if kind.value[0] == "."}


@dataclass(frozen=True, slots=True)
class Source:
    """A file to read.

    Attributes:
        path: its path.
        name: its name in lines: its path below the given directory, with ``/`` between the parts.
        kind: its kind.
        base_offset: from its name; 0 if the name has none.
        next_base_offset: of the next log in the same directory; None for the last one and for other files.
        is_live: whether readers of its directory open it: its name has no suffix of a file being added or removed, or
            it is a replacement whose swap is not finished (SEG-PDR-010).
        size: its size when it was listed.
        storage: opens the file.
    """

    path: Path
    name: str
    kind: SourceKind
    base_offset: int = 0
    next_base_offset: int | None = None
    is_live: bool = True
    size: int = 0
    storage: LogStorage = LOCAL

    @property
    def allowed(self) -> OffsetRange:
        """The offsets that it can hold; a metadata snapshot begins at 0."""
        last = GREATEST_OFFSET if self.next_base_offset is None else self.next_base_offset - 1
        return OffsetRange(self.base_offset if _is_log(self) else 0, last)

    @property
    def directory(self) -> str:
        """Name of the file's directory, which contains the name of the topic."""
        return self.path.absolute().parent.name


def sources_of(path: str | Path) -> list[Source]:
    """List the regular files below a path, or the file itself, in the order of their names.

    Args:
        path: a file, a partition directory or a log directory.

    Raises:
        UsageError: the path does not exist, or is neither a file nor a directory.
        OSError: a directory cannot be listed.
    """
    root = Path(path)
    try:
        mode = root.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        msg = f"{root}: no such file or directory"
        raise UsageError(msg) from None
    if stat.S_ISREG(mode):
        found = source_of(root, root.name, root.stat().st_size)
        base_offset = unnamed_base_offset(root) if found.kind is SourceKind.OTHER else None
        return [found if base_offset is None else replace(found, kind=SourceKind.LOG, base_offset=base_offset)]
    if not stat.S_ISDIR(mode):
        msg = f"{root}: neither a file nor a directory"
        raise UsageError(msg)
    return _as_opened(list(_below(root, root, "", set())))


def sources_in(directory: Path, storage: LogStorage) -> list[Source]:
    """List the files of one directory of a storage, in the order of their names.

    Raises:
        UsageError: the directory does not exist.
    """
    found = []
    for name in storage.entries(directory).files:
        size = 0
        with suppress(UsageError, FormatError):  # errors are reported when the file is read
            size = storage.status(directory / name).size
        found.append(replace(source_of(directory / name, name, size), storage=storage))
    return _as_opened(found)


def _below(root: Path, directory: Path, prefix: str, seen: set[tuple[int, int]]) -> Iterator[Source]:
    """Yield the files of a directory and its subdirectories.

    Links that lead out of the root are skipped, but a partition directory may be one: brokers open it.
    """
    status = directory.stat()
    if (status.st_dev, status.st_ino) in seen:
        return  # a symbolic link to a directory that was already visited
    seen.add((status.st_dev, status.st_ino))
    with os.scandir(directory) as entries:
        found = sorted(entries, key=lambda entry: (entry.is_symlink(), entry.name))
    is_skipping, is_outside = False, directory != root and not stays_inside(root, directory)
    for entry in found:
        path, name = Path(entry.path), prefix + entry.name
        shown = path if entry.is_symlink() else entry  # an entry of a loop of links raises an error
        leads_out = is_outside or (entry.is_symlink() and not stays_inside(root, path))
        if leads_out and not path.is_file() and (is_outside or not (shown.is_dir() and partition_name(entry.name))):
            is_skipping = True
            continue
        is_directory, is_file = shown.is_dir(), shown.is_file()
        is_skipping |= entry.name in FIXED_NAMES if is_directory else partition_name(entry.name) is not None
        if is_directory and os.access(path, os.R_OK | os.X_OK):
            yield from _below(root, path, f"{name}/", seen)
        elif is_directory or is_file:  # reading a directory as a file fails with a clear error
            yield source_of(path, name, _size_of(entry))
        else:
            is_skipping = True
    if is_skipping:  # a listing records the logs and partitions that it skips
        if is_log_directory(directory):  # the logs in directories with other names are read
            note_refusals(list_log_directory(directory, is_subject=False).blocked)
        else:
            list_partition(directory)


def _size_of(entry: os.DirEntry[str]) -> int:
    """Return the size of a file; 0 if the user may not read it."""
    with suppress(OSError):
        return entry.stat().st_size
    return 0


def source_of(path: Path, name: str, size: int) -> Source:
    """Return the source for a file of a log directory, or for an object of a remote store, by its name alone."""
    stored = parse_object_name(path.name) or parse_cached_index(path.name)
    if stored is not None:
        of_object = FILE_KINDS.get(stored.kind)
        source_kind = SourceKind.OTHER if of_object is None else KINDS[of_object]
        return Source(path, name, source_kind, stored.start_offset, size=size)
    try:
        parsed = parse_file_name(path.name)
    except FormatError:
        parsed = None
    if parsed is None:
        return Source(path, name, _kind_by_ending(path.name), size=size)
    kind = KINDS.get(parsed.kind, SourceKind.OTHER)
    return Source(path, name, kind, max(parsed.base_offset, 0), is_live=not parsed.suffix, size=size)


def has_known_name(file_name: str) -> bool:
    """Return whether a name is that of a file of this format, or of an object of a remote store."""
    if file_name == FileKind.METADATA_SNAPSHOT.value or parse_object_name(file_name) is not None:
        return True
    with suppress(FormatError):
        return parse_file_name(file_name) is not None
    return False


def _kind_by_ending(file_name: str) -> SourceKind:
    """Return the kind of a file by its suffix, for a name that brokers do not write, such as ``bad.log``."""
    if file_name == FileKind.METADATA_SNAPSHOT.value:
        return SourceKind.OTHER  # the offset checkpoint of a task of Kafka Streams, which is text
    plain = next((file_name.removesuffix(end) for end in TEMPORARY_SUFFIXES if file_name.endswith(end)), file_name)
    return next((kind for end, kind in KINDS_BY_ENDING.items() if plain.endswith(end)), SourceKind.OTHER)


def _as_opened(sources: list[Source]) -> list[Source]:
    """Mark the logs that readers of each directory open, and sort them by the names that brokers give in the end.

    Readers open some files under temporary or short names, and skip the files that these replace (SEG-PDR-010,
    SEG-PDR-018).
    """
    known: set[Path] = set()
    opened: dict[Path, tuple[int, int | None]] = {}
    directories = {source.path.parent: source.storage for source in sources if _is_log(source)}
    for directory, storage in directories.items():
        with suppress(SeglogError):
            listing = list_partition(directory, storage)
            known.update(file.path for file in listing.files)
            opened |= {files.log: (files.base_offset, after) for files, after in listing.with_following}

    def marked(source: Source) -> Source:
        if source.path in opened:
            base_offset, after = opened[source.path]
            return replace(source, is_live=True, base_offset=base_offset, next_base_offset=after)
        return replace(source, is_live=False) if _is_log(source) and source.path in known else source

    def usual_name(source: Source) -> str:
        if source.path not in opened:
            return source.name
        return source.name.removesuffix(source.path.name) + segment_file_name(source.base_offset, FileKind.LOG)

    return sorted(map(marked, sources), key=usual_name)


def _is_log(source: Source) -> bool:
    return FileKind.LOG.value in source.path.suffixes

"""The kind of a path: a log directory, a partition directory, a file, or none of these (chapters 10 and 11).

Every command and every function that takes a path uses this module, so all of them agree. A directory that is neither
a log directory nor a partition directory is refused: an empty mount point must not pass as a healthy log, and a
recovery must not write into it.
"""

from __future__ import annotations

import shlex
import stat
from contextlib import suppress
from enum import Enum
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from seglog_format.errors import FormatError, SeglogError, UsageError
from seglog_format.log.foreign_files import foreign_at, foreign_kind, unnamed_base_offset
from seglog_format.log.listing import LOG_DIRECTORY_KINDS
from seglog_format.names import (
    FIXED_NAMES,
    FileKind,
    parse_file_name,
    parse_partition_directory,
    printable,
    segment_file_name,
)
from seglog_format.object_names import parse_object_name
from seglog_format.storage.log_storage import LOCAL, DirectoryEntries, scan_directory

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator

    from seglog_format.names import PartitionDirectoryName
    from seglog_format.storage.log_storage import LogStorage

ROOT_KINDS: Final = (LOG_DIRECTORY_KINDS | {FileKind.BOOTSTRAP_SNAPSHOT}) - {FileKind.LOCK}
"""Kinds of files that only a log directory has; not the lock file, because other programs also use ``.lock``."""

MAX_LOOKED_AT: Final = 200
"""Maximum number of subdirectories of a refused directory that are searched for a directory to suggest."""

MAX_NAMED: Final = 2

OBJECT_DEPTH: Final = 4
"""Maximum depth of directories that are searched for objects of a remote store."""


class PathKind(Enum):
    """The kind of a path."""

    FILE = "a file"
    PARTITION = "a partition directory"
    LOG_DIRECTORY = "a log directory"


def path_kind(path: str | os.PathLike[str]) -> PathKind:
    """Return the kind of a path; no file is opened.

    A log directory has a file that only log directories have, or it holds a partition directory and no file of a
    partition. A partition directory holds a file with the name of a partition's file, or it is empty and its own name
    is that of a partition.

    Args:
        path: any path.

    Raises:
        UsageError: the path does not exist, is of no such kind, or cannot be read.
    """
    return _kind_and_entries(path)[0]


def _kind_and_entries(path: str | os.PathLike[str]) -> tuple[PathKind, DirectoryEntries]:
    given = Path(path)
    mode = _mode(given)
    if stat.S_ISREG(mode):
        return PathKind.FILE, DirectoryEntries([], [], ())
    if not stat.S_ISDIR(mode):
        msg = f"{printable(str(path))}: neither a file nor a directory"
        raise UsageError(msg)
    entries = scan_directory(given)
    return directory_kind(given, entries=entries), entries


def directory_kind(
    directory: Path, storage: LogStorage = LOCAL, *, entries: DirectoryEntries | None = None
) -> PathKind:
    """Return the kind of a directory; no file is opened.

    Args:
        directory: path of the directory.
        storage: the storage that holds it.
        entries: what it holds, if that is known.

    Raises:
        UsageError: it is neither a log directory nor a partition directory, or cannot be read.
    """
    entries = storage.entries(directory) if entries is None else entries
    kind = kind_of_entries(directory, entries, storage)
    if kind is None:
        raise UsageError(_refusal(directory, entries, storage))
    return kind


def _mode(path: Path) -> int:
    try:
        return path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError, ValueError):
        msg = f"{printable(str(path))}: no such file or directory"
        raise UsageError(msg) from None
    except OSError as error:
        msg = f"{printable(str(path))}: {error.strerror}"
        raise UsageError(msg) from error


def kind_of_entries(directory: Path, entries: DirectoryEntries, storage: LogStorage = LOCAL) -> PathKind | None:
    """Return the kind of a directory with these entries; None if it is neither a log nor a partition directory."""
    if _has_root_file(entries):
        # A misplaced checkpoint must not hide the segments beside it.
        is_partition = _has_log(entries) and not any(map(partition_name, entries.directories))
        return PathKind.PARTITION if is_partition else PathKind.LOG_DIRECTORY
    if _is_partition(directory, entries):
        return PathKind.PARTITION
    # Those with the name of a partition come first, so the first test usually succeeds.
    by_name = sorted(entries.directories, key=lambda name: partition_name(name) is None)
    has_link = any(partition_name(entry.name) for entry in entries.skipped)
    is_log_directory = has_link or any(_is_partition_at(directory / name, storage) for name in by_name)
    return PathKind.LOG_DIRECTORY if is_log_directory else None


def _has_root_file(entries: DirectoryEntries) -> bool:
    if entries.files == [FileKind.LOCK.value] and not entries.directories:
        return True  # a writer has just created the directory
    return any(FIXED_NAMES.get(name) in ROOT_KINDS for name in entries.files)


def _has_log(entries: DirectoryEntries) -> bool:
    """Return whether there is a file with the name of a log."""
    for name in entries.files:
        with suppress(FormatError):
            parsed = parse_file_name(name)
            if parsed is not None and parsed.kind is FileKind.LOG:
                return True
    return False


def partition_name(name: str) -> PartitionDirectoryName | None:
    """Parse the name of a directory; return None if it is not that of a partition directory."""
    with suppress(FormatError):
        return parse_partition_directory(name)
    return None


def _is_partition(directory: Path, entries: DirectoryEntries) -> bool:
    names = [*entries.files, *entries.directories, *(entry.name for entry in entries.skipped)]
    is_named = partition_name(directory.absolute().name) is not None
    return (is_named and not names) or any(_is_of_partition(name, misnamed_counts=is_named) for name in names)


def _is_of_partition(file_name: str, *, misnamed_counts: bool) -> bool:
    """Return whether a file has a name that only files of partitions have."""
    try:
        parsed = parse_file_name(file_name)
    except FormatError:  # other programs also have files with names that end in .log or .index
        return misnamed_counts
    return parsed is not None and parsed.kind not in ROOT_KINDS and parsed.kind is not FileKind.LOCK


def _is_partition_at(directory: Path, storage: LogStorage) -> bool:
    """Return whether a path is a partition directory; if it cannot be listed, its name decides."""
    try:
        entries = storage.entries(directory)
    except UsageError:
        return partition_name(directory.name) is not None
    return _is_partition(directory, entries) and (_has_log(entries) or not _has_root_file(entries))


def require_readable(path: str | os.PathLike[str]) -> None:
    """Refuse a path without a kind, unless it is a directory that directly holds log directories.

    Raises:
        UsageError: the path is refused, or cannot be read.
    """
    try:
        path_kind(path)
    except UsageError:
        directory = Path(path)
        if not directory.is_dir() or not any(is_log_directory(directory / name) for name in _directories(directory)):
            raise


def _directories(directory: Path) -> list[str]:
    with suppress(UsageError):
        return scan_directory(directory).directories
    return []


def is_log_directory(directory: Path) -> bool:
    """Return whether a path is a log directory; False also if it cannot be listed."""
    with suppress(UsageError):
        return kind_of_entries(directory, scan_directory(directory)) is PathKind.LOG_DIRECTORY
    return False


def require_partition(path: str | os.PathLike[str]) -> DirectoryEntries:
    """Return what a partition directory holds; refuse a path that is none.

    Raises:
        UsageError: the path is something else, or cannot be read.
    """
    return _require(path, PathKind.PARTITION)


def require_log_directory(path: str | os.PathLike[str]) -> None:
    """Refuse a path that is not a log directory.

    Raises:
        UsageError: the path is something else, or cannot be read.
    """
    _require(path, PathKind.LOG_DIRECTORY)


def require_directory(path: Path) -> None:
    """Refuse a file, and say what it is, or how to make a partition directory of a log.

    Raises:
        UsageError: the path is a file, is neither of both directories, or cannot be read.
    """
    if path_kind(path) is not PathKind.FILE:
        return
    hint, base_offset = foreign_at(path), unnamed_base_offset(path)
    if hint is None and base_offset is not None:
        name = parse_file_name(path.name)
        start = base_offset if name is None or name.base_offset is None else name.base_offset
        log = f"my-topic-0/{segment_file_name(start, FileKind.LOG)}"
        hint = f"for this log alone: mkdir my-topic-0; cp {shlex.quote(str(path))} {log}"
    msg = f"{path}: a file, not a partition directory or a log directory{'' if hint is None else f'; {hint}'}"
    raise UsageError(msg)


def _require(path: str | os.PathLike[str], wanted: PathKind) -> DirectoryEntries:
    kind, entries = _kind_and_entries(path)
    if kind is not wanted:
        hint = _example(Path(path)) if kind is PathKind.LOG_DIRECTORY else ""
        msg = f"{printable(str(path))}: {kind.value}, not {wanted.value}{hint}"
        raise UsageError(msg)
    return entries


def _example(log_directory: Path) -> str:
    """Return a hint that names a partition directory in use; empty if there is none."""
    names = partitions_in_use(log_directory)
    return f"; name a partition in it, such as {printable(str(log_directory / str(names[0])))}" if names else ""


def partitions_in_use(path: str | os.PathLike[str]) -> list[PartitionDirectoryName] | None:
    """Return the partitions of a log directory that are in use, in order of name; None for a partition directory.

    Raises:
        UsageError: the path is neither, or cannot be read.
    """
    directory = Path(path)
    if not directory.is_dir() or (kind := kind_of_entries(directory, entries := scan_directory(directory))) is None:
        kind = path_kind(path)  # raises, unless the path is a file
        msg = f"{printable(str(path))}: {kind.value}, not a directory"
        raise UsageError(msg)
    if kind is PathKind.PARTITION:
        return None
    return [found for found in map(partition_name, entries.directories) if found is not None and not found.state]


def _refusal(directory: Path, entries: DirectoryEntries, storage: LogStorage) -> str:
    """Return why a directory is refused, and what the user may have meant."""
    shown = printable(storage.name_of(directory))
    if not (entries.files or entries.directories or entries.skipped):
        return f"{shown}: an empty directory, without any Kafka files; is a disk not mounted?"
    if _holds_objects(directory, entries, storage, OBJECT_DEPTH):
        return f"{shown}: objects of a remote store, not a log; seglog tier ls lists them"
    found = (foreign_kind(name, path=str(directory / name)) for name in sorted(entries.files))
    foreign = next(filter(None, found), None)
    if foreign is not None:
        return f"{shown}: no file of this format, but {foreign}"
    nested = list(islice(_nested(directory, entries, storage), MAX_LOOKED_AT))
    hint = ""
    if nested:
        named = " or ".join(printable(storage.name_of(path)) for path in nested[:MAX_NAMED])
        hint = f"; did you mean {named}{', or another below it' if len(nested) > MAX_NAMED else ''}?"
    return (
        f"{shown}: neither a log directory nor a partition directory: no meta.properties or checkpoint, no"
        f" <topic>-<partition> directory, no file of a segment{hint}"
    )


def _holds_objects(directory: Path, entries: DirectoryEntries, storage: LogStorage, depth: int) -> bool:
    """Return whether a directory, or one of its first subdirectories, holds objects of a remote store."""
    if any(parse_object_name(name) is not None for name in entries.files):
        return True
    for name in entries.directories[:MAX_NAMED] if depth else ():
        with suppress(SeglogError):
            if _holds_objects(directory / name, storage.entries(directory / name), storage, depth - 1):
                return True
    return False


def _nested(directory: Path, entries: DirectoryEntries, storage: LogStorage) -> Iterator[Path]:
    """Yield log and partition directories among the first subdirectories, then among those one level below."""
    children = [directory / name for name in entries.directories[:MAX_LOOKED_AT]]
    grandchildren: list[Path] = []
    for path in chain(children, islice(grandchildren, MAX_LOOKED_AT)):
        with suppress(UsageError):
            inner = storage.entries(path)
            if kind_of_entries(path, inner, storage) is not None:
                yield path
            elif path.parent == directory:
                grandchildren += [path / name for name in inner.directories[:MAX_LOOKED_AT]]

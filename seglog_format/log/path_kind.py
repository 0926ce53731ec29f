"""The kind of a path: a log directory, a partition directory, a file, or none of these (chapters 10 and 11).

Every command and every function that takes a path uses this module, so all of them agree. A directory that is neither
a log directory nor a partition directory is refused: an empty mount point must not pass as a healthy log, and a
recovery must not write into it.
"""

from __future__ import annotations

import re
import shlex
import stat
from bisect import bisect_right
from contextlib import suppress
from enum import Enum
from itertools import chain, islice
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from seglog_format.codec.decode import checksum_is_valid
from seglog_format.codec.framing import frame_at
from seglog_format.errors import FormatError, Location, SeglogError, UnreadableError, UsageError
from seglog_format.log.listing import LOG_DIRECTORY_KINDS, list_log_directory, list_partition
from seglog_format.model import INT64_MAX, Frame
from seglog_format.names import (
    FIXED_NAMES,
    STANDARD_INPUT,
    FileKind,
    parse_file_name,
    parse_object_name,
    parse_partition_directory,
    printable,
    segment_file_name,
)
from seglog_format.storage.log_storage import LOCAL, DirectoryEntries, scan_directory

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator

    from seglog_format.log.listing import SegmentFiles
    from seglog_format.log.reading import LogReader
    from seglog_format.log.segment import LogSegment
    from seglog_format.names import PartitionDirectoryName
    from seglog_format.storage.log_storage import LogStorage

FIRST_SIZE: Final = 8
"""Number of first bytes that show the kind of a file."""

UNKNOWN: Final = "of no known kind: neither its name nor its first bytes are those of a file of this format"

NAMES: Final = (
    (re.compile(r"\d+\.kafka"), "a log of Kafka 0.7, whose format is another one"),
    (re.compile(r"\d+-\d+-v\d+\.log"), "a segment of Redpanda, whose format is another one"),
)
PACKED: Final = (
    (b"\x1f\x8b\x08", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"\x04\x22\x4d\x18", "lz4"),
    (b"\xfd7zXZ\0", "xz"),
    (b"BZh", "bzip2"),
    (b"PK\x03\x04", "zip"),
)
"""What files begin with that a program has compressed whole, and the program. No log begins so: its first 8 bytes are
an offset, which would be far above any that was written."""
UNPACKED: Final = frozenset({"gzip", "zstd"})
"""The programs whose files are unpacked by the commands that take a file."""
PIECE_SIZE: Final = 4096
"""Compressed bytes that are unpacked at once: zstd makes a block of 128 KiB of four bytes."""
PACKED_ENDINGS: Final = {".gz": "gzip", ".tgz": "gzip", ".zst": "zstd", ".lz4": "lz4", ".xz": "xz", ".bz2": "bzip2"}


def foreign_kind(name: str, first: bytes = b"", *, path: str = "") -> str | None:
    """Return what a file is that is not of this format; None if neither name nor content shows it.

    Args:
        name: of the file, without its directory.
        first: its first bytes, `FIRST_SIZE` or more; empty if they are not known: then the ending of the name counts.
        path: of the file, for the command that unpacks it; by default the name.
    """
    for pattern, text in NAMES:
        if pattern.fullmatch(name):
            return text
    if (program := packer_of(first)) is not None:
        return _packed_text(program, path or name)
    if name.endswith(".tar") and not first.startswith(b"\0"):  # a log begins with an offset, an archive with a name
        return f"an archive: unpack it first: tar -xf {_quoted(path or name)}"
    by_name = next((program for ending, program in PACKED_ENDINGS.items() if name.endswith(ending)), None)
    return None if by_name is None or first else _packed_text(by_name, path or name)


def packer_of(first: bytes) -> str | None:
    """Return the program that has compressed a file whole, by its first bytes; None for any other file."""
    return next((program for magic, program in PACKED if first.startswith(magic)), None)


def _packed_text(program: str, path: str) -> str:
    """Return what a packed file is, and the command that reads it; an archive may hold many files."""
    unpack = "unzip -p" if program == "zip" else f"{program} -dc"
    if path.rpartition("/")[2] == STANDARD_INPUT:
        return f"compressed with {program}: unpack it first: {unpack} | seglog dump {STANDARD_INPUT}"
    command = f"tar -xf {_quoted(path)}" if _holds_archive(path) else f"{unpack} {_quoted(path)} | seglog dump -"
    return f"compressed with {program}: unpack it first: {command}"


def _holds_archive(name: str) -> bool:
    """Return whether a packed file holds an archive, by its name."""
    return name.endswith(".tgz") or ".tar." in name


def packed_with(path: Path) -> str | None:
    """Return the program that has compressed a file, if commands unpack it: one of `UNPACKED`.

    None for a file with a name of this format, whose bytes break its rules, and for an archive.
    """
    with suppress(OSError, FormatError):
        if path.is_file() and parse_file_name(path.name) is None and parse_object_name(path.name) is None:
            with path.open("rb") as file:
                first = file.read(FIRST_SIZE)
            program = packer_of(first)
            return program if program in UNPACKED and not _holds_archive(path.name) else None
    return None


def is_archive(path: Path) -> bool:
    """Return whether a file is an archive that commands unpack: a tar, also one that gzip has packed."""
    with suppress(OSError):
        return path.name.endswith((".tar", ".tar.gz", ".tgz")) and path.is_file() and foreign_at(path) is not None
    return False


def unpacked_name(name: str) -> str:
    """Return the name of a packed file without the ending of the program."""
    stem, dot, ending = name.rpartition(".")
    return stem if stem and f"{dot}{ending}" in PACKED_ENDINGS else name


def unpacked(path: Path, program: str) -> Iterator[bytes]:
    """Yield the bytes that a program of `UNPACKED` has compressed, in pieces of bounded size.

    Raises:
        UnreadableError: the compressed bytes are damaged, or end too early, or the disk refuses them.
    """
    count = 0
    try:
        with path.open("rb") as file:
            for piece in _inflated(file) if program == "gzip" else _frames(file):
                count += len(piece)
                yield piece
    except (OSError, EOFError, ValueError) as error:
        step, expected = f"{program} -dc {_quoted(str(path))} > part.log", f"bytes that {program} has compressed"
        found = f"damage after {count} of them: {str(error) or 'it ends too early'}; what is before it: {step}"
        raise UnreadableError(Location(str(path)), "SEG-PDR-022", expected=expected, found=found) from error


def _inflated(file: BinaryIO) -> Iterator[bytes]:
    import gzip  # noqa: PLC0415 - loaded for a packed file
    import zlib  # noqa: PLC0415

    with gzip.GzipFile(fileobj=file) as content:
        try:
            while piece := content.read(1 << 20):
                yield piece
        except zlib.error as error:
            raise ValueError(error) from error


def _frames(file: BinaryIO) -> Iterator[bytes]:
    import zstandard  # noqa: PLC0415 - loaded for a packed file

    data = file.read(PIECE_SIZE)
    while data:
        frame = zstandard.ZstdDecompressor().decompressobj()
        try:
            while data and not frame.eof:
                yield frame.decompress(data)
                data = frame.unused_data if frame.eof else file.read(PIECE_SIZE)
        except zstandard.ZstdError as error:
            raise ValueError(error) from error
        if not frame.eof:
            raise EOFError
        data = data or file.read(PIECE_SIZE)


def _quoted(path: str) -> str:
    return shlex.quote(f"./{path}" if path.startswith("-") else path)


def foreign_at(path: Path) -> str | None:
    """Return what a file is that is not of this format; None if nothing shows it, or it cannot be read."""
    try:
        with path.open("rb") as file:
            first = file.read(FIRST_SIZE)
    except OSError:
        first = b""
    return foreign_kind(path.name, first, path=str(path))


def unnamed_base_offset(path: Path) -> int | None:
    """Return the base offset of a log whose name has none: its first offset, or 0 if only decompression shows that.

    None if the file does not begin with an entry that has a right checksum: nothing shows that it is a log. Standard
    input always counts as one.
    """
    with suppress(SeglogError), LOCAL.open(path) as source:
        frame = frame_at(source, 0, source.size, path.name)
        if isinstance(frame, Frame) and checksum_is_valid(frame):
            return max(frame.header.base_offset or 0, 0)
    return 0 if path.name == STANDARD_INPUT else None


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
        hint = "; standard input takes the place of a file, not of a directory" if str(path) == STANDARD_INPUT else ""
        msg = f"{printable(str(path))}: no such file or directory{hint}"
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
    hint, base_offset, program = foreign_at(path), unnamed_base_offset(path), packed_with(path)
    with suppress(FormatError):
        name = parse_file_name(path.name if program is None else unpacked_name(path.name))
        is_log = base_offset is not None or (program is not None and name is not None and name.kind is FileKind.LOG)
        base_offset = name.base_offset if is_log and name is not None and name.base_offset >= 0 else base_offset
    if base_offset is not None and (hint is None or program is not None):
        log, copied = f"my-topic-0/{segment_file_name(base_offset, FileKind.LOG)}", shlex.quote(str(path))
        how = f"cp {copied} {log}" if program is None else f"{program} -dc {copied} > {log}"
        hint = f"for this log alone: mkdir my-topic-0; {how}"
    msg = f"{path}: a file, not a partition directory or a log directory{'' if hint is None else f'; {hint}'}"
    raise UsageError(msg)


def _require(path: str | os.PathLike[str], wanted: PathKind) -> DirectoryEntries:
    kind, entries = _kind_and_entries(path)
    if kind is not wanted:
        foreign = foreign_at(Path(path)) if kind is PathKind.FILE else None
        hint = _example(Path(path)) if kind is PathKind.LOG_DIRECTORY else f"; {foreign}" if foreign else ""
        if kind is PathKind.PARTITION:
            hint = f"; name the log directory that it is in: {printable(str(Path(path).parent))}"
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
    logs = (directory / name for name in sorted(entries.files)[:MAX_LOOKED_AT] if storage is LOCAL)
    if log := next((path for path in logs if unnamed_base_offset(path) is not None), None):
        return f"{shown}: no file with a name of this format, but one that holds a log: seglog ls {_quoted(str(log))}"
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


# -- the number of bytes of logs to read, on which the choice of an engine depends -------------------------------------


def size_of_logs(path: Path) -> int:
    """Return the number of bytes of the logs at a path; a directory that cannot be listed counts as 0.

    Args:
        path: a file, a partition directory or a log directory.

    Raises:
        UsageError: it is nothing of Kafka's; see `path_kind`.
    """
    kind = path_kind(path)
    if kind is PathKind.FILE:
        return path.stat().st_size
    if kind is PathKind.PARTITION:
        return _size_of_partition(path)
    return sum(_size_of_partition(entry.path) for entry in list_log_directory(path, is_subject=False).partitions)


def _size_of_partition(path: Path) -> int:
    with suppress(SeglogError, OSError):
        return size_of_segments(list_partition(path).segments)
    return 0


def size_of_segments(segments: Iterable[SegmentFiles]) -> int:
    """Return the number of bytes of the logs of segments; a log that was removed meanwhile counts as 0."""
    return sum(files.log.stat().st_size for files in segments if files.log.is_file())


def size_from(reader: LogReader, offset: int, enough: int, end: int = INT64_MAX) -> int:
    """Estimate the number of bytes of the entries in a range of offsets; stop counting beyond ``enough``.

    The offset indexes show what the first segment holds before the range and the last one after it; those bytes do not
    count. So looking up a record never loads the columnar engine. A wrong index makes reading slower, nothing else.

    Args:
        reader: of the log.
        offset: first offset of the range.
        enough: number of bytes above which the exact count makes no difference.
        end: end of the range, exclusive.
    """
    total = 0
    for number, segment in enumerate(reader.segments_from(offset)):
        if segment.base_offset >= end:
            break
        size = segment.size
        if total + size > enough:
            first = _indexed_position(segment, offset, 0) if number == 0 else 0
            last = size if end > segment.allowed.last else _indexed_position(segment, end, 1)
            size = max(last - first, 0)
        total += size
        if total > enough:
            break
    return total


def _indexed_position(segment: LogSegment, offset: int, following: int) -> int:
    """Return the position in the last index entry up to an offset, or in the entry ``following`` entries after it.

    Without such an entry, it is the start of the log if ``following`` is 0, else its end. The result is a position in
    the log even if the index holds another one.
    """
    with suppress(SeglogError):
        entries = () if segment.offset_index is None else segment.offset_index.raw_entries()
        number = bisect_right(entries, offset, key=attrgetter("offset")) - 1 + following
        if 0 <= number < len(entries):
            return min(max(entries[number].position, 0), segment.size)
    return segment.size if following else 0

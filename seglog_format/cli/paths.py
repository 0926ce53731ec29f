"""Partitions and log files at a path of the command line."""

from __future__ import annotations

from contextlib import suppress
from pathlib import PurePath
from typing import TYPE_CHECKING, Final

from seglog_format.errors import FormatError, UsageError
from seglog_format.lines.sources import SourceKind, has_known_name, sources_of
from seglog_format.log.directory import LogDirectory
from seglog_format.log.listing import SegmentFiles, list_log_directory, list_partition
from seglog_format.log.path_kind import UNKNOWN, PathKind, foreign_at, path_kind, unnamed_base_offset
from seglog_format.names import DELETE_STATE, FileKind, parse_file_name, parse_object_name

if TYPE_CHECKING:
    from pathlib import Path

    from seglog_format.log.listing import PartitionEntry


def log_directory_at(path: Path) -> LogDirectory | None:
    """Return the log directory at a path; None if it is a file or a partition directory.

    Raises:
        UsageError: the path is none of these; see `path_kind`.
    """
    if path_kind(path) is PathKind.LOG_DIRECTORY:
        return LogDirectory(list_log_directory(path))
    return None


def kept_partitions(path: Path, directory: LogDirectory) -> list[PartitionEntry]:
    """Return the partitions in the log directory at a path that no broker has marked for deletion.

    If there is none, it reports that, since a command that handles each partition would end without output.
    """
    from seglog_format.cli.output import diagnose

    entries = [entry for entry in directory.listing.partitions if entry.name.state != DELETE_STATE]
    if not entries:
        diagnose(f"{path}: a log directory without a partition; there is nothing to do")
    return entries


def partition_directory_at(path: Path) -> Path:
    """Return the one partition directory at a path: itself, or the only one of a log directory.

    Raises:
        UsageError: there are several, or none.
    """
    directory = log_directory_at(path)
    if directory is None:
        return path if path.is_dir() else path.absolute().parent
    entries: list[PartitionEntry] = list(directory.partitions.values())
    if len(entries) == 1:
        return entries[0].path
    some = ", ".join(entry.path.name for entry in entries[:3])
    msg = f"{path}: a log directory; name one of its {len(entries)} partitions, such as {some}"
    raise UsageError(msg)


def segment_files_at(path: Path) -> SegmentFiles:
    """Return a log file with the indexes beside it; under a name without an offset, by its content.

    Raises:
        UsageError: neither the name nor the content is that of a log.
    """
    kind = sources_of(path)[0].kind
    if kind is not SourceKind.LOG:
        is_known = kind is not SourceKind.OTHER or has_known_name(path.name)
        msg = f"{path}: {foreign_at(path) or ('a file of this format, but no log' if is_known else UNKNOWN)}"
        raise UsageError(msg)
    for files in list_partition(path.absolute().parent).segments:
        if files.log.name == path.name:
            return SegmentFiles(
                files.base_offset, path, files.offset_index, files.time_index, files.transaction_index, files.snapshot
            )
    return SegmentFiles(_base_offset_of(path), path)


def _base_offset_of(path: Path) -> int:
    """Return the offset in the name of a log or of an object of a remote store; if there is none, the first offset."""
    stored = parse_object_name(path.name)
    if stored is not None:
        return stored.start_offset
    with suppress(FormatError):
        parsed = parse_file_name(path.name)
        if parsed is not None and parsed.kind is FileKind.LOG:
            return max(parsed.base_offset, 0)
    return unnamed_base_offset(path) or 0


NOTHING_READABLE: Final = "nothing readable"
"""The state of a log with bytes and without an entry."""
LOG_HINT: Final = "the first batch is damaged, or the file is encrypted or no log"
OBJECT_HINT: Final = "an object of a remote store, encrypted or compressed"


def unreadable_text(name: str, size: int, path: Path | None = None) -> str:
    """Return the message about a log with bytes and without an entry.

    Args:
        name: of the file, for the message.
        size: in bytes.
        path: of the file, if its first bytes can be read there.
    """
    is_object = parse_object_name(PurePath(name).name) is not None
    hint = OBJECT_HINT if is_object else (path and foreign_at(path)) or LOG_HINT
    return f"{name}: nothing could be read of its {size:,} bytes; {hint}"


def progress_total(path: Path) -> int:
    """Return the bytes of a file, or of all logs below a directory. `size_of_logs` would note what it cannot list."""
    with suppress(OSError):  # the work itself reports what cannot be read
        return sum(each.stat().st_size for each in ([path] if path.is_file() else path.rglob("*.log")))
    return 0

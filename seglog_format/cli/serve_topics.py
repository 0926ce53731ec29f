"""Topics that ``seglog serve --writable`` creates before it starts, so an empty directory can be served."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seglog_format.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

MAX_PARTITIONS: Final = 10_000


def create_topics(paths: tuple[Path, ...], wanted: tuple[str, ...], *, writable: bool) -> None:
    """Create topics in a directory that is empty or missing; do nothing if all of them exist already.

    Args:
        paths: what is served; the only log directory if there is anything to create.
        wanted: ``topic`` or ``topic:partitions``.
        writable: whether producers may append.

    Raises:
        UsageError: creation is not allowed; there are several directories, or there are other files in the directory;
            or a name or a number is invalid.
    """
    if not wanted:
        return
    if not writable or len(paths) != 1:
        msg = "--create needs --writable and one log directory"
        raise UsageError(msg)
    from seglog_format.names import partition_directory_name
    from seglog_format.writing.log_writer import LogWriter

    (path,) = paths
    partitions = [partition for each in wanted for partition in _partitions(each)]
    if all((path / partition_directory_name(*partition)).is_dir() for partition in partitions):
        return
    if path.exists() and any(path.iterdir()):
        msg = f"{path}: --create is for an empty directory, and this one has files"
        raise UsageError(msg)
    with LogWriter(path) as writer:
        for topic, number in partitions:
            writer.open(topic, number)


def empty_root(paths: tuple[Path, ...], *, writable: bool) -> Path | None:
    """Return the one log directory to serve if it is empty, and topics may be created in it; None otherwise.

    An empty directory with the name of a partition is that partition.

    Args:
        paths: what is served.
        writable: whether producers may append.
    """
    if not writable or len(paths) != 1 or not paths[0].is_dir() or any(paths[0].iterdir()):
        return None
    from seglog_format.log.path_kind import partition_name

    return None if partition_name(paths[0].absolute().name) else paths[0]


def _partitions(wanted: str) -> list[tuple[str, int]]:
    topic, _, digits = wanted.partition(":")
    if digits and not (digits.isascii() and digits.isdecimal() and 1 <= int(digits) <= MAX_PARTITIONS):
        msg = f"--create {wanted}: the number of partitions must be from 1 to {MAX_PARTITIONS}"
        raise UsageError(msg)
    return [(topic, number) for number in range(int(digits or 1))]

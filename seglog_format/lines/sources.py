"""Which files there are below a path, and what each of them is."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum, auto
from pathlib import Path
from typing import TYPE_CHECKING, Final

from seglog_format.errors import FormatError, UsageError
from seglog_format.names import TEMPORARY_SUFFIXES, FileKind, parse_file_name
from seglog_format.storage.directory_entries import stays_inside

if TYPE_CHECKING:
    from collections.abc import Iterator


class SourceKind(Enum):
    """How a file is read."""

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
    """One file to read.

    Attributes:
        path: where it is.
        name: what lines call it: its path below the directory that was given, with ``/`` between the parts.
        kind: how it is read.
        base_offset: from its name; 0 where the name says none.
        next_base_offset: of the next log in the same directory; None for the last one and for other files.
        is_live: its name has none of the suffixes of files that come or go.
        size: bytes when it was listed.
    """

    path: Path
    name: str
    kind: SourceKind
    base_offset: int = 0
    next_base_offset: int | None = None
    is_live: bool = True
    size: int = 0

    @property
    def directory(self) -> str:
        """Name of the directory that holds the file, which tells its topic."""
        return self.path.absolute().parent.name


def sources_of(path: str | Path) -> list[Source]:
    """The regular files below a path, or the file itself, in the order of their names.

    Args:
        path: a file, a partition directory or a log directory.

    Raises:
        UsageError: there is no such path, or it is neither a file nor a directory.
        OSError: a directory cannot be listed.
    """
    root = Path(path)
    try:
        mode = root.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        msg = f"{root}: no such file or directory"
        raise UsageError(msg) from None
    if stat.S_ISREG(mode):
        return [source_of(root, root.name, root.stat().st_size)]
    if not stat.S_ISDIR(mode):
        msg = f"{root}: neither a file nor a directory"
        raise UsageError(msg)
    return _with_next_base_offsets(sorted(_below(root, root, "", set()), key=lambda source: source.name))


def _below(root: Path, directory: Path, prefix: str, seen: set[tuple[int, int]]) -> Iterator[Source]:
    """The files of a directory and those below; a directory that a link leads to outside the root is left out."""
    here = directory.stat()
    if (here.st_dev, here.st_ino) in seen:
        return  # a symbolic link that leads back
    seen.add((here.st_dev, here.st_ino))
    with os.scandir(directory) as entries:
        found = sorted(entries, key=lambda entry: (entry.is_symlink(), entry.name))
    for entry in found:
        path, name = Path(entry.path), prefix + entry.name
        if entry.is_symlink() and not path.is_file() and not stays_inside(root, path):
            continue
        if entry.is_dir() and os.access(path, os.R_OK | os.X_OK):
            yield from _below(root, path, f"{name}/", seen)
        elif entry.is_dir() or entry.is_file():  # who reads a directory as a file is told why that does not work
            yield source_of(path, name, _size_of(entry))


def _size_of(entry: os.DirEntry[str]) -> int:
    """Bytes of a file; 0 where nobody may know."""
    with suppress(OSError):
        return entry.stat().st_size
    return 0


def source_of(path: Path, name: str, size: int) -> Source:
    """What one file is, by its name alone."""
    try:
        parsed = parse_file_name(path.name)
    except FormatError:
        parsed = None
    if parsed is None:
        return Source(path, name, _kind_by_ending(path.name), size=size)
    kind = KINDS.get(parsed.kind, SourceKind.OTHER)
    return Source(path, name, kind, max(parsed.base_offset, 0), is_live=not parsed.suffix, size=size)


def _kind_by_ending(file_name: str) -> SourceKind:
    """A file that is not named as a broker would name it, such as a copy called ``bad.log``, is read all the same."""
    plain = next((file_name.removesuffix(end) for end in TEMPORARY_SUFFIXES if file_name.endswith(end)), file_name)
    return next((kind for end, kind in KINDS_BY_ENDING.items() if plain.endswith(end)), SourceKind.OTHER)


def _with_next_base_offsets(sources: list[Source]) -> list[Source]:
    """The same files, each log knowing where the next one of its directory starts."""
    following: dict[Path, int] = {}
    result = []
    for source in reversed(sources):
        changed = source
        if source.path.suffix == ".log":
            changed = replace(source, next_base_offset=following.get(source.path.parent))
            following[source.path.parent] = source.base_offset
        result.append(changed)
    return result[::-1]

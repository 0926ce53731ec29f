"""Writers of files into an empty directory."""

from __future__ import annotations

import glob
import os
import secrets
import shutil
import sys
import tempfile
from contextlib import closing, contextmanager, suppress
from itertools import takewhile
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Final

from seglog_format.errors import UsageError, write_errors
from seglog_format.names import MAX_NAME_SIZE, printable
from seglog_format.storage.files import LOCAL_FILES, TEMPORARY_SUFFIX, FileHandle, Files
from seglog_format.storage.rename_to_new import rename_to_new

if sys.platform != "win32":
    import fcntl

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from seglog_format.storage.byte_source import Buffer

STAGING_PREFIX: Final = ".seglog-"
MAX_OF_A_NAME: Final = 40
"""Characters of a directory's name that are in that of its staging directory."""

FORBIDDEN: Final = frozenset("\0\\:")
"""Names that lead elsewhere on some system."""


def require_new(directory: Path) -> None:
    """Refuse a directory that is not empty.

    Raises:
        UsageError: the path exists and is no empty directory.
        WriteError: the directory cannot be read.
    """
    with write_errors("looking for a place to write to"):
        is_new = not directory.exists() or (directory.is_dir() and not any(directory.iterdir()))
    if not is_new:
        msg = f"{directory} is there already, and not an empty directory"
        raise UsageError(msg)


@contextmanager
def all_or_nothing(directory: Path) -> Iterator[Path]:
    """Fill a new directory with everything that this block creates, or, after a failure, with nothing.

    At the end everything is on disk. A missing directory is filled under another name beside it and then renamed, so
    it appears at once. What a run left there that was killed is removed when the next one begins.

    Args:
        directory: new or empty; a missing one is created.

    Yields:
        A directory to write to, on the same file system.

    Raises:
        UsageError: the path exists and is no empty directory.
        WriteError: the directory could not be made, or what was written could not be moved.
    """
    require_new(directory)
    with (_inside if directory.exists() else _beside)(directory) as staging:
        yield staging


@contextmanager
def _inside(directory: Path) -> Iterator[Path]:
    """Fill an empty directory, which may be where a disk is mounted: its content is moved up at the end."""
    with write_errors("writing"):
        staging = Path(tempfile.mkdtemp(prefix=STAGING_PREFIX, suffix=TEMPORARY_SUFFIX, dir=directory))
    try:
        yield staging
        with write_errors("writing"):
            _sync_all(staging)
        _move_up(staging)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


@contextmanager
def _beside(directory: Path) -> Iterator[Path]:
    """Fill a directory that gets its name when it is complete."""
    prefix = f"{STAGING_PREFIX}{directory.name[:MAX_OF_A_NAME]}-"
    staging = directory.with_name(f"{prefix}{secrets.token_hex(4)}{TEMPORARY_SUFFIX}")
    with directories_for(directory.parent):
        _remove_abandoned(directory.parent, prefix)
        with write_errors("writing"):
            staging.mkdir()
        try:
            with _held(staging):
                yield staging
                with write_errors("writing"):
                    _sync_all(staging)
                    rename_to_new(staging, directory)
                    LOCAL_FILES.fsync_directory(directory.parent)
        finally:
            shutil.rmtree(staging, ignore_errors=True)


@contextmanager
def _held(staging: Path) -> Iterator[None]:
    """Hold a lock that says other runs that this one is alive; Windows opens no directories, and has no such locks."""
    if sys.platform == "win32":
        yield
        return
    descriptor = os.open(staging, os.O_RDONLY)
    try:
        with suppress(OSError):  # file systems without locks
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)


def _remove_abandoned(parent: Path, prefix: str) -> None:
    """Remove what runs left that were killed: directories of this prefix that no process holds."""
    for path in parent.glob(f"{glob.escape(prefix)}*{TEMPORARY_SUFFIX}"):
        if path.is_dir() and not path.is_symlink() and _is_abandoned(path):
            shutil.rmtree(path, ignore_errors=True)


def _is_abandoned(staging: Path) -> bool:
    if sys.platform == "win32":
        return False
    try:
        descriptor = os.open(staging, os.O_RDONLY)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True


def _sync_all(directory: Path) -> None:
    """Sync everything below a directory to disk."""
    for above, _, names in os.walk(directory):
        for path in (Path(above, name) for name in names):
            if not path.is_symlink():
                with closing(LOCAL_FILES.open_append(path)) as handle:
                    handle.fsync()
        LOCAL_FILES.fsync_directory(Path(above))


def _move_up(staging: Path) -> None:
    """Move everything in a directory to the one above it; move it back if that fails."""
    moved: list[Path] = []
    try:
        with write_errors("writing"):
            for path in sorted(staging.iterdir()):
                rename_to_new(path, staging.parent / path.name)
                moved.append(path)
            LOCAL_FILES.fsync_directory(staging.parent)
    except BaseException:
        for path in moved:
            (staging.parent / path.name).rename(path)
        raise


@contextmanager
def directories_for(path: Path) -> Iterator[None]:
    """Create a directory and those above it, and sync their names to disk.

    After a failure in this block, created directories that are empty are removed.

    Raises:
        WriteError: they could not be created.
    """
    made: list[Path] = []
    try:
        with write_errors("writing"):
            absent = list(takewhile(lambda each: not each.exists(), (path, *path.absolute().parents)))
            for each in reversed(absent):
                each.mkdir(exist_ok=True)
                made.append(each)
                LOCAL_FILES.fsync_directory(each.parent)
        yield
    except BaseException:
        with suppress(OSError):
            for each in reversed(made):
                each.rmdir()
        raise


def write_new_file(directory: Path, name: str, pieces: Iterable[Buffer], files: Files = LOCAL_FILES) -> int:
    """Write one file below a directory; create directories on the way.

    Args:
        directory: the directory above everything that is written.
        name: path below it, with slashes.
        pieces: the content.
        files: where.

    Returns:
        Bytes written.

    Raises:
        UsageError: the name leads out of the directory, or the file exists.
        WriteError: it did not work.
    """
    parts = PurePosixPath(name).parts
    if not parts or ".." in parts or parts[0] == "/" or FORBIDDEN & set(name):
        msg = f"{printable(name)!r} is no path below a directory"
        raise UsageError(msg)
    path = directory.joinpath(*parts)
    if max(len(os.fsencode(part)) for part in parts) > MAX_NAME_SIZE:
        msg = f"{printable(name)!r}: a file name has at most {MAX_NAME_SIZE} bytes"
        raise UsageError(msg)
    with write_errors("writing"):
        files.make_directory(path.parent)
        handle = _created(path, files)
    size = 0
    try:
        for piece in pieces:
            with write_errors("writing"):
                handle.write(piece)
            size += memoryview(piece).nbytes
        with write_errors("writing"):
            handle.fsync()
    finally:
        handle.close()
    return size


def _created(path: Path, files: Files) -> FileHandle:
    try:
        return files.create_new(path)
    except FileExistsError as error:
        msg = f"{path} is there already"
        raise UsageError(msg) from error

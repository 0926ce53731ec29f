"""Writers of files into an empty directory, and of one file to a path that the user chose."""

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
from secrets import token_hex
from typing import TYPE_CHECKING, Final

from seglog_format.errors import UsageError, write_errors
from seglog_format.names import MAX_NAME_SIZE, printable
from seglog_format.storage.files import LOCAL_FILES, TEMPORARY_SUFFIX, FileHandle, Files, rename_to_new, replace_file

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from seglog_format.storage.byte_source import Buffer


if sys.platform != "win32":
    import fcntl

STAGING_PREFIX: Final = ".seglog-"
MAX_OF_A_NAME: Final = 40
"""Maximum number of characters of a directory's name that are used in the name of its staging directory."""

FORBIDDEN: Final = frozenset("\0\\:")
"""Parts of a path that lead out of a directory on some system."""


def require_new(directory: Path) -> None:
    """Refuse a directory that is not empty.

    Raises:
        UsageError: the path exists and is not an empty directory.
        WriteError: the directory cannot be read.
    """
    with write_errors("reading the directory to write to"):
        is_new = not directory.exists() or (directory.is_dir() and not any(directory.iterdir()))
    if not is_new:
        msg = f"{directory} is there already, and is not an empty directory"
        raise UsageError(msg)


@contextmanager
def all_or_nothing(directory: Path) -> Iterator[Path]:
    """Fill a new directory with all files that this block creates; after a failure, with none.

    At the end all files are on disk. If the directory does not exist, a staging directory beside it is filled and then
    renamed, so the directory appears with all files at once. A staging directory that a killed run left is removed when
    the next run begins.

    Args:
        directory: new or empty; a missing one is created.

    Yields:
        A directory to write to, on the same file system.

    Raises:
        UsageError: the path exists and is not an empty directory.
        WriteError: the directory could not be created, or files could not be moved into it.
    """
    require_new(directory)
    with (_staged_inside if directory.exists() else _staged_beside)(directory) as staging:
        yield staging


@contextmanager
def _staged_inside(directory: Path) -> Iterator[Path]:
    """Fill a staging directory inside an empty directory, which may be a mount point; at the end move its content."""
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
def _staged_beside(directory: Path) -> Iterator[Path]:
    """Fill a staging directory beside a missing directory, and rename it when it is complete."""
    prefix = f"{STAGING_PREFIX}{directory.name[:MAX_OF_A_NAME]}-"
    staging = directory.with_name(f"{prefix}{secrets.token_hex(4)}{TEMPORARY_SUFFIX}")
    with directories_for(directory.parent):
        _remove_abandoned(directory.parent, prefix)
        with write_errors("writing"):
            staging.mkdir()
        try:
            with _locked(staging):
                yield staging
                with write_errors("writing"):
                    _sync_all(staging)
                    rename_to_new(staging, directory)
                    _sync_parent(directory)
        finally:
            shutil.rmtree(staging, ignore_errors=True)


def _sync_parent(directory: Path) -> None:
    """Sync the name of a new directory to disk; remove the directory again if that fails."""
    try:
        LOCAL_FILES.fsync_directory(directory.parent)
    except OSError:
        shutil.rmtree(directory, ignore_errors=True)
        raise


@contextmanager
def _locked(staging: Path) -> Iterator[None]:
    """Hold a lock on a staging directory, which shows other runs that it is in use; do nothing on Windows."""
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
    """Remove the staging directories that killed runs left: those with this prefix that no process has locked."""
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
    """Sync all files and directories below a directory to disk."""
    for above, _, names in os.walk(directory):
        for path in (Path(above, name) for name in names):
            if not path.is_symlink():
                with closing(LOCAL_FILES.open_append(path)) as handle:
                    handle.fsync()
        LOCAL_FILES.fsync_directory(Path(above))


def _move_up(staging: Path) -> None:
    """Move the content of a directory to the directory above it; move it back if that fails."""
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
        WriteError: a directory could not be created.
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
    """Write one new file below a directory, and create missing directories above it.

    Args:
        directory: the directory that the file must be in, at any depth.
        name: path below that directory, with slashes.
        pieces: the content.
        files: the file layer to write through.

    Returns:
        Bytes written.

    Raises:
        UsageError: the name leads out of the directory, or the file exists.
        WriteError: the file could not be written.
    """
    parts = PurePosixPath(name).parts
    if not parts or ".." in parts or parts[0] == "/" or FORBIDDEN & set(name):
        msg = f"{printable(name)!r} is not a path below a directory"
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


# -- atomic writing of a file to a path that the user chose -----------------------------------------------------------


LONGEST: Final = 50
"""Maximum number of characters of a file's name that are used in the name of its temporary file."""


def write_report(path: Path, data: str | Buffer) -> None:
    """Write a file, and missing directories above it; replace an existing file atomically.

    Args:
        path: of the file. A device or pipe is written to directly; a link keeps its target.
        data: the content; text becomes UTF-8.

    Raises:
        WriteError: writing failed; an existing file is unchanged.
    """
    content = data.encode() if isinstance(data, str) else data
    with write_errors("writing"):
        target = path.resolve()
        if target.exists() and not target.is_file() and not target.is_dir():
            target.write_bytes(content)
            return
        temporary = target.with_name(f".{target.name[:LONGEST]}-{token_hex(4)}{TEMPORARY_SUFFIX}")
        with directories_for(target.parent):
            replace_file(LOCAL_FILES, target, content, temporary)


def write_new(path: Path, pieces: Iterable[Buffer]) -> None:
    """Write a new file, and missing directories above it; it appears with its whole content, or not at all.

    Args:
        path: of the file.
        pieces: the content.

    Raises:
        UsageError: the path exists.
        WriteError: writing failed.
    """
    temporary = path.with_name(f"{STAGING_PREFIX}{token_hex(4)}{TEMPORARY_SUFFIX}")
    with directories_for(path.parent):
        try:
            write_new_file(path.parent, temporary.name, pieces)
            with write_errors("writing"):
                _give_name(temporary, path)
                LOCAL_FILES.fsync_directory(path.parent)
        finally:
            temporary.unlink(missing_ok=True)


def _give_name(temporary: Path, path: Path) -> None:
    try:
        rename_to_new(temporary, path)
    except FileExistsError as error:
        msg = f"{path} is there already"
        raise UsageError(msg) from error

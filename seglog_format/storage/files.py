"""The file layer, through which logs and their side files are written.

`LocalFiles` is the local file system. Tests replace it by a layer that loses unsynced data, has no free space, or fails
at a chosen operation.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
import sys
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import chain
from typing import TYPE_CHECKING, Final, Protocol

from seglog_format.errors import FormatError, Location, WriteError
from seglog_format.storage.byte_source import Buffer, FileBytes, SourceFile, refuse_whole
from seglog_format.storage.copying import copy_file
from seglog_format.storage.file_reader import FileReader, open_regular

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path


# -- renaming that never replaces a file -------------------------------------------------------------------------------


AT_WORKING_DIRECTORY: Final = -100
NO_REPLACE: Final = 1
"""Constants of Linux's `renameat2`: relative paths as usual, and an error if the target exists."""

WITHOUT_SUPPORT: Final = frozenset({errno.ENOSYS, errno.EINVAL, errno.EPERM, errno.EOPNOTSUPP, errno.ENOTSUP})
"""Errors of file systems that cannot rename without replacing, or cannot link."""


def rename_to_new(path: Path, target: Path) -> None:
    """Rename a file to an unused name, atomically if the system and the file system can.

    Args:
        path: of the file.
        target: in a directory of the same file system.

    Raises:
        FileExistsError: the name is used, perhaps by a broken symbolic link; nothing has changed.
        OSError: renaming failed.
    """
    if sys.platform == "win32":
        path.rename(target)  # on Windows, this never replaces a file
    elif not _rename_at_once(path, target):
        _link_to_new(path, target)


@cache
def _renameat2() -> Callable[[bytes, bytes], int] | None:
    """Return Linux's `renameat2`, set not to replace a file; None if the C library lacks it."""
    try:
        library = ctypes.CDLL(None, use_errno=True)
        function = library.renameat2
    except (OSError, AttributeError, TypeError):
        return None
    function.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint)
    return lambda path, target: int(function(AT_WORKING_DIRECTORY, path, AT_WORKING_DIRECTORY, target, NO_REPLACE))


def _rename_at_once(path: Path, target: Path) -> bool:
    """Rename a file unless the target exists; return False if the file system cannot do that atomically."""
    rename = _renameat2()
    if rename is None:
        return False
    if rename(os.fsencode(path), os.fsencode(target)) == 0:
        return True
    number = ctypes.get_errno()
    if number in WITHOUT_SUPPORT:
        return False
    raise OSError(number, os.strerror(number), str(path), None, str(target))


def _link_to_new(path: Path, target: Path) -> None:
    """Rename a file by a hard link; on a file system without hard links, check for the name and then rename.

    Between check and rename no other writer can use the name: writers hold a lock.
    """
    try:
        os.link(path, target, follow_symlinks=False)
    except (OSError, NotImplementedError) as error:
        if not isinstance(error, NotImplementedError) and error.errno not in WITHOUT_SUPPORT:
            raise
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target)) from error
        path.rename(target)
    else:
        path.unlink()


# -- the file layer ----------------------------------------------------------------------------------------------------


TEMPORARY_SUFFIX: Final = ".tmp"
"""Suffix of a file that is written to replace another one; brokers remove or ignore such files."""

ZEROS: Final = bytes(1 << 20)
NS_PER_MS: Final = 1_000_000


class FileHandle(Protocol):
    """A file that is open for writing."""

    @property
    def size(self) -> int:
        """Current size of the file."""

    def write(self, data: Buffer) -> None:
        """Append bytes to the end of the file.

        Raises:
            OSError: writing failed; any part of the bytes may have been written.
        """

    def write_at(self, position: int, data: Buffer) -> None:
        """Write bytes at a position, overwriting existing ones and extending the file if necessary.

        Raises:
            OSError: writing failed; any part of the bytes may have been written.
        """

    def truncate(self, size: int) -> None:
        """Truncate the file, or extend it by zeros."""

    def fsync(self) -> None:
        """Sync everything that was written to disk.

        Raises:
            OSError: any part of the written bytes may be missing from the disk, and a second call does not help.
        """

    def close(self) -> None:
        """Close the file; closing it again does nothing."""


class Files(Protocol):
    """The operations on files that writing needs. All of them raise `OSError` when they fail."""

    @property
    def is_local(self) -> bool:
        """Return whether the files can also be read by their paths without this object, as recovery does."""

    def create(self, path: Path, size: int = 0) -> FileHandle:
        """Create a file of so many zeros, open for writing; replace one of the same name."""

    def create_new(self, path: Path, size: int = 0) -> FileHandle:
        """Create a file of so many zeros, open for writing.

        Raises:
            FileExistsError: the name is used, perhaps by a symbolic link.
        """

    def open_append(self, path: Path) -> FileHandle:
        """Open an existing file for writing."""

    def read(self, path: Path) -> bytes:
        """Return the bytes written to a file so far."""

    def open(self, path: Path) -> SourceFile:
        """Open a file for reading through windows, with memory use independent of its size."""

    def size(self, path: Path) -> int:
        """Return the size of a file."""

    def rename(self, path: Path, target: Path) -> None:
        """Rename a file or directory atomically; replace a file of that name."""

    def publish(self, path: Path, target: Path) -> None:
        """Rename a file to an unused name. After a crash it has the old name, the new one, or both.

        Raises:
            FileExistsError: the name is used; nothing has changed.
        """

    def remove(self, path: Path) -> None:
        """Delete a file."""

    def fsync_directory(self, path: Path) -> None:
        """Sync names that were created, changed or removed in a directory to disk."""

    def names(self, path: Path) -> list[str]:
        """Return the names in a directory, sorted."""

    def make_directory(self, path: Path) -> None:
        """Create a directory, and those above it; an existing one is no error."""

    def remove_directory(self, path: Path) -> None:
        """Delete an empty directory."""

    def exists(self, path: Path) -> bool:
        """Return whether there is a file or directory of that name."""

    def modified_ms(self, path: Path) -> int:
        """Return the time of the last write to a file, in milliseconds since 1970."""

    def set_modified_ms(self, path: Path, timestamp_ms: int) -> None:
        """Set the time of the last write to a file."""


class LocalHandle:
    """A file of the local file system, open for writing. Errors name its path.

    Before its first change, a copy takes the place of a file that has other names (hard links): these keep its bytes.
    """

    def __init__(self, descriptor: int, path: Path) -> None:
        self._descriptor: int | None = descriptor
        self._is_own = False
        self.path = path

    def __del__(self) -> None:
        self.close()

    @property
    def size(self) -> int:
        """Current size of the file."""
        return os.fstat(self._open_descriptor()).st_size

    def write(self, data: Buffer) -> None:
        """Append bytes to the end of the file."""
        self.write_at(self.size, data)

    def write_at(self, position: int, data: Buffer) -> None:
        """Write all of the bytes, in several calls if the system writes only a part."""
        rest = memoryview(data)
        with _naming(self.path):
            while rest:
                written = _write(self._own_descriptor(), rest, position)
                position, rest = position + written, rest[written:]

    def truncate(self, size: int) -> None:
        """Truncate the file, or extend it by zeros."""
        with _naming(self.path):
            os.ftruncate(self._own_descriptor(), size)

    def fsync(self) -> None:
        """Sync everything that was written to disk."""
        with _naming(self.path):
            os.fsync(self._open_descriptor())

    def close(self) -> None:
        """Close the file; closing it again does nothing."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            os.close(descriptor)

    def detach(self) -> int:
        """Return the descriptor of the open file; the caller closes it."""
        descriptor, self._descriptor = self._open_descriptor(), None
        return descriptor

    def _own_descriptor(self) -> int:
        descriptor = self._open_descriptor()
        if not self._is_own:
            if os.fstat(descriptor).st_nlink > 1:
                _part_from_other_names(self.path)
                own = _open(self.path, os.O_RDWR)
                os.dup2(own, descriptor, inheritable=False)
                os.close(own)
            self._is_own = True
        return descriptor

    def _open_descriptor(self) -> int:
        if self._descriptor is None:
            msg = "the file is closed"
            raise OSError(msg)
        return self._descriptor


@contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Add the path of an open file to errors that operations on it raise."""
    try:
        yield
    except OSError as error:
        error.filename = str(path)
        raise


def _write(descriptor: int, data: memoryview, position: int) -> int:
    if sys.platform == "win32":
        os.lseek(descriptor, position, os.SEEK_SET)
        return os.write(descriptor, data)
    return os.pwrite(descriptor, data, position)


class LocalFiles:
    """The local file system. It changes no symbolic link, and does not write through one."""

    is_local: Final = True

    def create(self, path: Path, size: int = 0) -> LocalHandle:
        """Create a file of so many zeros, open for writing; replace one of the same name."""
        if _has_other_names(path):
            path.unlink()
        handle = LocalHandle(_open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC), path)
        if size:
            handle.truncate(size)
        return handle

    def create_new(self, path: Path, size: int = 0) -> LocalHandle:
        """Create a file of so many zeros, open for writing, under an unused name."""
        handle = LocalHandle(_open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL), path)
        if size:
            handle.truncate(size)
        return handle

    def open_append(self, path: Path) -> LocalHandle:
        """Open an existing file for writing."""
        return LocalHandle(_open(path, os.O_RDWR), path)

    def read(self, path: Path) -> bytes:
        """Return the bytes of a regular file; refuse anything else."""
        descriptor, _ = open_regular(path)
        with os.fdopen(descriptor, "rb") as file:
            return file.read()

    def open(self, path: Path) -> FileBytes:
        """Open a regular file for reading through windows; refuse anything else."""
        descriptor, size = open_regular(path)
        return FileBytes(str(path), size, FileReader(str(path), descriptor, size))

    def size(self, path: Path) -> int:
        """Return the size of a file."""
        return path.stat().st_size

    def rename(self, path: Path, target: Path) -> None:
        """Rename a file or directory atomically; replace a file of that name."""
        _require_no_link(path)
        _require_no_link(target)
        path.replace(target)

    def publish(self, path: Path, target: Path) -> None:
        """Rename a file to an unused name, atomically if the file system can."""
        rename_to_new(path, target)

    def remove(self, path: Path) -> None:
        """Delete a file."""
        _require_no_link(path)
        path.unlink()

    def fsync_directory(self, path: Path) -> None:
        """Sync the directory's names to disk; do nothing on Windows, which has no such call."""
        if sys.platform == "win32":
            return
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            with _naming(path):
                os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def names(self, path: Path) -> list[str]:
        """Return the names in a directory, sorted."""
        return sorted(os.listdir(path))  # noqa: PTH208 - only names are needed

    def make_directory(self, path: Path) -> None:
        """Create a directory, and those above it; an existing one is no error."""
        path.mkdir(parents=True, exist_ok=True)

    def remove_directory(self, path: Path) -> None:
        """Delete an empty directory."""
        path.rmdir()

    def exists(self, path: Path) -> bool:
        """Return whether there is a file or directory of that name."""
        return path.exists()

    def modified_ms(self, path: Path) -> int:
        """Return when a file was last written, in milliseconds since 1970."""
        return path.stat().st_mtime_ns // NS_PER_MS

    def set_modified_ms(self, path: Path, timestamp_ms: int) -> None:
        """Set when a file was last written."""
        os.utime(path, ns=(timestamp_ms * NS_PER_MS,) * 2)


def _open(path: Path, flags: int) -> int:
    more = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0)
    try:
        return os.open(path, flags | more, 0o644)
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise _link_error(path) from error


def _part_from_other_names(path: Path) -> None:
    temporary = path.with_name(path.name + TEMPORARY_SUFFIX)
    temporary.unlink(missing_ok=True)
    try:
        copy_file(path, temporary)
        temporary.chmod(stat.S_IMODE(path.stat().st_mode))
        with closing(LocalHandle(_open(temporary, os.O_RDWR), temporary)) as handle:
            handle.fsync()
        temporary.replace(path)
    except (OSError, WriteError):
        temporary.unlink(missing_ok=True)
        raise
    LocalFiles().fsync_directory(path.parent)


def _has_other_names(path: Path) -> bool:
    """Return whether a regular file has several hard links."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return False
    return status.st_nlink > 1 and stat.S_ISREG(status.st_mode)


def _require_no_link(path: Path) -> None:
    if path.is_symlink():
        raise _link_error(path)


def _link_error(path: Path) -> OSError:
    return OSError(errno.ELOOP, "a symbolic link, which is neither changed nor written through", str(path))


LOCAL_FILES: Final = LocalFiles()


def replace_file(files: Files, path: Path, data: Buffer, temporary: Path | None = None) -> None:
    """Replace a file; after a crash it has the complete old or new content (SEG-CKP-014).

    Args:
        files: the file layer.
        path: of the file.
        data: the new content.
        temporary: path of the file that is written first, and removed on failure; by default a file in the same
            directory with a name that ends in ``.tmp``.

    Raises:
        OSError: an operation failed; the old file is unchanged, or the new file is there but may not be on disk yet.
    """
    temporary = temporary or path.with_name(path.name + TEMPORARY_SUFFIX)
    try:
        write_file(files, temporary, data)
        files.rename(temporary, path)
    except OSError:
        with suppress(OSError):
            files.remove(temporary)
        raise
    files.fsync_directory(path.parent)


def write_file(files: Files, path: Path, data: Buffer) -> None:
    """Write a new file and sync its bytes, but not its name, to disk."""
    handle = files.create(path)
    try:
        handle.write(data)
        handle.fsync()
    finally:
        handle.close()


# -- file changes as values: they are planned, can be shown, and are carried out in order ------------------------------


COPIED_SIZE: Final = 4 * 2**20
"""Maximum bytes copied at once."""


class FileStep(Protocol):
    """One file change. `requirement` is the id of the rule that requires it."""

    @property
    def path(self) -> Path:
        """The file that changes."""

    @property
    def requirement(self) -> str:
        """Id of the rule; empty for a step that only makes earlier ones durable."""

    @property
    def text(self) -> str:
        """Short description of the change."""

    def apply(self, files: Files) -> None:
        """Carry out the step.

        Raises:
            OSError: an operation on files failed.
        """


@dataclass(frozen=True, slots=True)
class Remove:
    """Delete a file."""

    path: Path
    requirement: str

    @property
    def text(self) -> str:
        """Short description of the change."""
        return "remove"

    def apply(self, files: Files) -> None:
        """Carry out the step."""
        files.remove(self.path)


@dataclass(frozen=True, slots=True)
class Rename:
    """Rename a file, and by default replace an existing file of the new name.

    Attributes:
        path, target: old and new path.
        requirement: id of the rule.
        replaces: whether to replace a file that has the new name; if False, the step fails.
    """

    path: Path
    target: Path
    requirement: str
    replaces: bool = True

    @property
    def text(self) -> str:
        """Short description of the change."""
        return f"rename to {self.target.name}"

    def apply(self, files: Files) -> None:
        """Carry out the step."""
        if self.replaces:
            files.rename(self.path, self.target)
        else:
            files.publish(self.path, self.target)


@dataclass(frozen=True, slots=True)
class Truncate:
    """Truncate a file; the change is on disk when the step ends."""

    path: Path
    size: int
    requirement: str

    @property
    def text(self) -> str:
        """Short description of the change."""
        return f"cut to {self.size} bytes"

    def apply(self, files: Files) -> None:
        """Carry out the step."""
        handle = files.open_append(self.path)
        try:
            handle.truncate(self.size)
            handle.fsync()
        finally:
            handle.close()


@dataclass(frozen=True, slots=True)
class Replace:
    """Replace the content of a file; after a crash the file has the complete old or new content."""

    path: Path
    data: bytes = field(repr=False)
    requirement: str

    @property
    def text(self) -> str:
        """Short description of the change."""
        return f"write {len(self.data)} bytes"

    def apply(self, files: Files) -> None:
        """Carry out the step."""
        replace_file(files, self.path, self.data)


@dataclass(frozen=True, slots=True)
class Copy:
    """Copy a part of a file to a new file, whose content is on disk when the step ends."""

    source: Path
    start: int
    end: int
    path: Path
    requirement: str

    @property
    def text(self) -> str:
        """Short description of the change."""
        return f"write bytes {self.start} to {self.end} of {self.source.name}"

    def apply(self, files: Files) -> None:
        """Carry out the step."""
        handle = files.create(self.path)
        try:
            with files.open(self.source) as source:
                for start in range(self.start, self.end, COPIED_SIZE):
                    handle.write(source.view(start, min(start + COPIED_SIZE, self.end)))
            handle.fsync()
        finally:
            handle.close()


@dataclass(frozen=True, slots=True)
class Settle:
    """Sync the names in a directory to disk before the next step."""

    path: Path
    requirement: str = ""

    @property
    def text(self) -> str:
        """Short description of the change."""
        return "flush names"

    def apply(self, files: Files) -> None:
        """Carry out the step."""
        files.fsync_directory(self.path)


def apply_steps(steps: Iterable[FileStep], files: Files) -> None:
    """Carry out steps in order.

    Raises:
        OSError: a step failed; the steps before it are done, and a new plan continues from there.
    """
    for step in steps:
        step.apply(files)


def settled(steps: Iterable[FileStep], directory: Path) -> tuple[FileStep, ...]:
    """Add a sync of the directory after the steps, if there are any."""
    found = tuple(steps)
    return (*found, Settle(directory)) if found else ()


def require_no_links(steps: Iterable[FileStep]) -> None:
    """Refuse steps on a file that is a symbolic link, or whose directory is one (SEG-PDR-031).

    Raises:
        FormatError: a step would change a symbolic link, or write through it.
    """
    for step in steps:
        paths = () if isinstance(step, Settle) else (step.path, getattr(step, "target", step.path))
        for path in chain.from_iterable((path, path.parent) for path in paths):
            if path.is_symlink():
                location, found = Location(str(path)), f"a symbolic link; to {step.text} has to be done at its target"
                raise FormatError(location, "SEG-PDR-031", expected="a file of its own to change", found=found)


# -- reading of small files through the file layer ---------------------------------------------------------------------


def read_small(files: Files, path: Path) -> bytes:
    """Return the bytes of a file that is decoded whole, such as a checkpoint.

    Raises:
        OSError: the file does not exist, or cannot be read.
        RefusedError: it is too large (see `refuse_whole`).
    """
    refuse_whole(files.size(path), str(path))
    return files.read(path)

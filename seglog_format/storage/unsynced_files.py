"""Files that are written without waiting for the disk, by a process that can be stopped."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

from seglog_format.storage.files import LocalFiles, LocalHandle

if TYPE_CHECKING:
    from pathlib import Path

    from seglog_format.storage.byte_source import Buffer


class UnsyncedHandle(LocalHandle):
    """A file that is never synced, and takes nothing any more once its process is stopped."""

    def __init__(self, handle: LocalHandle, files: UnsyncedFiles) -> None:
        super().__init__(handle.detach(), handle.path)
        self._files = files

    def write_at(self, position: int, data: Buffer) -> None:
        """Write bytes at a position."""
        self._files.check()
        super().write_at(position, data)

    def truncate(self, size: int) -> None:
        """Cut the file, or lengthen it by zeros."""
        self._files.check()
        super().truncate(size)

    def fsync(self) -> None:
        """Do not wait."""
        self._files.check()


class UnsyncedFiles(LocalFiles):
    """The file system as it is, for what may be made again if the power fails.

    Attributes:
        is_stopped: nothing is written any more, as if the process had ended; files that are open can be closed.
    """

    def __init__(self) -> None:
        self.is_stopped = False

    def stop(self) -> None:
        """From now on every operation that changes a file fails."""
        self.is_stopped = True

    def check(self) -> None:
        """Fail if stopped.

        Raises:
            OSError: always the same.
        """
        if self.is_stopped:
            raise OSError(errno.EIO, "the process was stopped")

    def create(self, path: Path, size: int = 0) -> UnsyncedHandle:
        """A new file of so many zeros, open for writing; it replaces one of the same name."""
        self.check()
        return UnsyncedHandle(super().create(path, size), self)

    def create_new(self, path: Path, size: int = 0) -> UnsyncedHandle:
        """A new file of so many zeros, open for writing; nothing has its name."""
        self.check()
        return UnsyncedHandle(super().create_new(path, size), self)

    def open_append(self, path: Path) -> UnsyncedHandle:
        """An existing file, open for writing."""
        self.check()
        return UnsyncedHandle(super().open_append(path), self)

    def rename(self, path: Path, target: Path) -> None:
        """Give a file or directory another name at once."""
        self.check()
        super().rename(path, target)

    def publish(self, path: Path, target: Path) -> None:
        """Give a file a name that nothing has yet."""
        self.check()
        super().publish(path, target)

    def remove(self, path: Path) -> None:
        """Delete a file."""
        self.check()
        super().remove(path)

    def fsync_directory(self, path: Path) -> None:
        """Do not wait."""
        del path
        self.check()

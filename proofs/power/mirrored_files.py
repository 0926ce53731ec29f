"""A simulated disk with a real directory as its mirror, for code that reads directories itself."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seglog_format import Environment

if TYPE_CHECKING:
    from pathlib import Path

    from proofs.power.simulated_files import Buffer, SimulatedFiles
    from seglog_format.types import FileHandle, Files, SourceFile

LOCAL: Final = Environment().files


class MirroredHandle:
    """A file that is written on the simulated disk, and then on the real one."""

    def __init__(self, simulated: FileHandle, real: FileHandle) -> None:
        self._simulated = simulated
        self._real = real

    @property
    def size(self) -> int:
        """Return the size of the file in bytes."""
        return self._real.size

    def write(self, data: Buffer) -> None:
        """Append bytes to the end of the file."""
        self.write_at(self.size, data)

    def write_at(self, position: int, data: Buffer) -> None:
        """Write at a position."""
        self._simulated.write_at(position, data)
        self._real.write_at(position, data)

    def truncate(self, size: int) -> None:
        """Truncate the file, or extend it with zeros."""
        self._simulated.truncate(size)
        self._real.truncate(size)

    def fsync(self) -> None:
        """Sync the simulated file; the real one needs none."""
        self._simulated.fsync()

    def close(self) -> None:
        """Close both files."""
        self._simulated.close()
        self._real.close()


class MirroredFiles:
    """A simulated disk, and a real directory with the files as programs see them.

    Code that reads directories itself, such as recovery, reads the real one; the simulated disk knows what a power cut
    leaves. The root of the simulated disk is the real directory.
    """

    is_local: Final = True

    def __init__(self, simulated: SimulatedFiles) -> None:
        self.simulated = simulated
        self._both: tuple[Files, Files] = (simulated, LOCAL)

    def create(self, path: Path, size: int = 0) -> MirroredHandle:
        """Create a file, and return it."""
        simulated = self.simulated.create(path, size)
        return MirroredHandle(simulated, LOCAL.create(path, size))

    def create_new(self, path: Path, size: int = 0) -> MirroredHandle:
        """Create a file under a name that is free."""
        simulated = self.simulated.create_new(path, size)
        return MirroredHandle(simulated, LOCAL.create_new(path, size))

    def open_append(self, path: Path) -> MirroredHandle:
        """Open an existing file for appends."""
        simulated = self.simulated.open_append(path)
        return MirroredHandle(simulated, LOCAL.open_append(path))

    def read(self, path: Path) -> bytes:
        """Return the bytes of a file."""
        return LOCAL.read(path)

    def open(self, path: Path) -> SourceFile:
        """Open a file for reading."""
        return LOCAL.open(path)

    def size(self, path: Path) -> int:
        """Return the size of a file in bytes."""
        return LOCAL.size(path)

    def rename(self, path: Path, target: Path) -> None:
        """Rename a file."""
        for files in self._both:
            files.rename(path, target)

    def publish(self, path: Path, target: Path) -> None:
        """Give a file a name that is free."""
        for files in self._both:
            files.publish(path, target)

    def remove(self, path: Path) -> None:
        """Delete a file."""
        for files in self._both:
            files.remove(path)

    def fsync_directory(self, path: Path) -> None:
        """Sync the names on the simulated disk."""
        self.simulated.fsync_directory(path)

    def names(self, path: Path) -> list[str]:
        """Return the names in a directory."""
        return LOCAL.names(path)

    def make_directory(self, path: Path) -> None:
        """Create a directory."""
        for files in self._both:
            files.make_directory(path)

    def remove_directory(self, path: Path) -> None:
        """Delete an empty directory."""
        for files in self._both:
            files.remove_directory(path)

    def exists(self, path: Path) -> bool:
        """Return whether a file or directory with that name exists."""
        return LOCAL.exists(path)

    def modified_ms(self, path: Path) -> int:
        """Return when a file was last modified."""
        return LOCAL.modified_ms(path)

    def set_modified_ms(self, path: Path, timestamp_ms: int) -> None:
        """Set when a file was last modified."""
        for files in self._both:
            files.set_modified_ms(path, timestamp_ms)

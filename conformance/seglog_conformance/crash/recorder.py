"""A FUSE file system that passes everything on to a directory, and writes down what changes it, in order.

``python -m seglog_conformance.crash.recorder DIRECTORY MOUNT_POINT OPERATIONS [SYNC_SECONDS]``. The process under it
needs no change. Syncs only have to be recorded: that the directory below is not synced does not matter. A write to
``.marker`` in the mount point is no file: its JSON becomes a marker among the operations.
"""

from __future__ import annotations

import errno
import itertools
import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import mfusepy

if TYPE_CHECKING:
    from seglog_conformance.protocol import Json

MARKER: Final = "/.marker"
HIDDEN: Final = ".fuse_hidden"
"""How libfuse names a file that is removed while a process has it open."""
NO_FILE: Final = (1 << 64) - 1
ATTRIBUTES: Final = ("st_mode", "st_size", "st_uid", "st_gid", "st_nlink", "st_blocks")
TIMES: Final = ("st_atime", "st_mtime", "st_ctime")
STATISTICS: Final = ("f_bavail", "f_bfree", "f_blocks", "f_bsize", "f_files", "f_ffree", "f_frsize", "f_namemax")


class Recorder(mfusepy.Operations):
    """The file system.

    Args:
        directory: the directory that holds the files.
        log: file for the operations, a JSON object to a line.
        sync_seconds: how long a sync takes, for races that only a slow disk shows.
    """

    use_ns = True

    def __init__(self, directory: Path, log: Path, sync_seconds: float = 0.0) -> None:
        self._root = str(directory)
        self._log = log.open("w", encoding="utf-8", buffering=1)
        self._sync_seconds = sync_seconds
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._nodes = {"/": 0}

    # What changes nothing

    def getattr(self, path: str, _file: Any = None) -> Json:  # noqa: ANN401 - libfuse's structure
        """Return the attributes of a file."""
        if path == MARKER:
            return {"st_mode": 0o100600, "st_size": 0, "st_nlink": 1, "st_uid": os.getuid()}
        status = os.lstat(self._below(path))
        times = {name: getattr(status, f"{name}_ns") for name in TIMES}
        return {name: getattr(status, name) for name in ATTRIBUTES} | times

    def readdir(self, path: str, _file: Any) -> list[str]:  # noqa: ANN401 - as above
        """Return the names in a directory."""
        return [".", "..", *os.listdir(self._below(path))]  # noqa: PTH208 - only names

    def open(self, path: str, file: Any) -> int:  # noqa: ANN401 - as above
        """Open a file, for reading as well: the kernel fills pages before it changes them."""
        if path == MARKER:
            file.fh, file.direct_io = NO_FILE, 1
            return 0
        is_read = file.flags & os.O_ACCMODE == os.O_RDONLY
        file.fh = os.open(self._below(path), os.O_RDONLY if is_read else os.O_RDWR)
        if file.flags & os.O_TRUNC:
            self.truncate(path, 0)
        return 0

    def read(self, _path: str, size: int, position: int, file: Any) -> bytes:  # noqa: ANN401 - as above
        """Read a file."""
        return b"" if file.fh == NO_FILE else os.pread(file.fh, size, position)

    def release(self, _path: str, file: Any) -> int:  # noqa: ANN401 - as above
        """Close a file."""
        if file.fh != NO_FILE:
            os.close(file.fh)
        return 0

    def statfs(self, path: str) -> dict[str, int]:
        """Return the statistics of the file system below."""
        found = os.statvfs(self._below(path))
        return {name: getattr(found, name) for name in STATISTICS}

    def chmod(self, path: str, mode: int) -> int:
        """Change the mode of a file, which is not recorded: no power cut loses what it protects."""
        Path(self._below(path)).chmod(mode)
        return 0

    # Contents

    def write(self, path: str, data: bytes, position: int, file: Any) -> int:  # noqa: ANN401 - as above
        """Write, or note a marker."""
        with self._lock:
            if path == MARKER:
                self._note("marker", event=json.loads(data))
                return len(data)
            node = self._nodes[path]
            written = os.pwrite(file.fh, data, position)
            is_mapped = bool(file.writepage)
            self._note("write", path, node=node, position=position, data=data[:written].hex(), isMapped=is_mapped)
            return written

    def truncate(self, path: str, size: int, _file: Any = None) -> int:  # noqa: ANN401 - as above
        """Give a file another length."""
        if path != MARKER:
            with self._lock:
                os.truncate(self._below(path), size)
                self._note("resize", path, node=self._nodes[path], size=size)
        return 0

    def fallocate(self, path: str, mode: int, position: int, size: int, file: Any) -> int:  # noqa: ANN401 - as above
        """Allocate blocks; only the new length is recorded."""
        if mode:
            raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
        with self._lock:
            os.posix_fallocate(file.fh, position, size)
            self._note("resize", path, node=self._nodes[path], size=os.fstat(file.fh).st_size)
        return 0

    def utimens(self, path: str, times: tuple[int, int] | None = None) -> int:
        """Set the times of a file, which count as changed with its last content."""
        if path != MARKER:
            os.utime(self._below(path), ns=times or (time.time_ns(),) * 2)
        return 0

    def fsync(self, path: str, data_only: int, _file: Any) -> int:  # noqa: ANN401 - as above
        """Note a sync, and take as long as a disk: what is written meanwhile is not covered."""
        if path != MARKER:
            with self._lock:
                self._note("sync", path, node=self._nodes[path], dataOnly=bool(data_only))
            time.sleep(self._sync_seconds)
        return 0

    def fsyncdir(self, path: str, _data_only: int, _file: Any) -> int:  # noqa: ANN401 - as above
        """Note a sync of a directory."""
        return self.fsync(path, 0, None)

    # Names

    def create(self, path: str, mode: int, file: Any) -> int:  # noqa: ANN401 - as above
        """Create a file, or empty one that is there."""
        with self._lock:
            is_new = not os.path.lexists(self._below(path))
            file.fh = os.open(self._below(path), os.O_RDWR | os.O_CREAT | os.O_TRUNC, mode)
            if is_new:
                self._note_made("create", path)
            else:
                self._note("resize", path, node=self._nodes[path], size=0)
        return 0

    def mkdir(self, path: str, mode: int) -> int:
        """Make a directory."""
        with self._lock:
            Path(self._below(path)).mkdir(mode)
            self._note_made("mkdir", path)
        return 0

    def link(self, path: str, target: str) -> int:
        """Give the file `target` the other name `path`."""
        with self._lock:
            os.link(self._below(target), self._below(path))
            node = self._nodes[path] = self._nodes[target]
            self._note("link", path, changes=[self._change(path, node)])
        return 0

    def unlink(self, path: str) -> int:
        """Remove a name."""
        with self._lock:
            Path(self._below(path)).unlink()
            self._note_gone("unlink", path)
            del self._nodes[path]
        return 0

    def rmdir(self, path: str) -> int:
        """Remove a directory."""
        with self._lock:
            Path(self._below(path)).rmdir()
            self._note_gone("rmdir", path)
            del self._nodes[path]
        return 0

    def rename(self, old: str, new: str) -> int:
        """Rename a file or directory; libfuse does that to an open file that the process removes."""
        with self._lock:
            replaces = os.path.lexists(self._below(new))
            Path(self._below(old)).rename(self._below(new))
            if Path(new).name.startswith(HIDDEN):
                self._note_gone("unlink", old)
            else:
                changes = [self._change(old, None), self._change(new, self._nodes[old])]
                self._note("rename", old, to=new, changes=changes, replaces=replaces)
            moved = [path for path in self._nodes if path == old or path.startswith(f"{old}/")]
            for path in moved:
                self._nodes[new + path.removeprefix(old)] = self._nodes.pop(path)
        return 0

    def _below(self, path: str) -> str:
        return self._root + path

    def _change(self, path: str, node: int | None) -> list[Any]:
        above, _, name = path.rpartition("/")
        return [self._nodes[above or "/"], name, node]

    def _note_made(self, operation: str, path: str) -> None:
        node = self._nodes[path] = next(self._numbers)
        self._note(operation, path, node=node, changes=[self._change(path, node)])

    def _note_gone(self, operation: str, path: str) -> None:
        if not Path(path).name.startswith(HIDDEN):
            self._note(operation, path, changes=[self._change(path, None)])

    def _note(self, operation: str, path: str = "", **fields: Any) -> None:  # noqa: ANN401 - JSON
        line = {"op": operation, "path": path, "time": time.time_ns(), **fields}
        self._log.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    _directory, _mount_point, _log_path, *_rest = sys.argv[1:]
    mfusepy.FUSE(
        Recorder(Path(_directory), Path(_log_path), *map(float, _rest)), _mount_point, foreground=True, raw_fi=True
    )

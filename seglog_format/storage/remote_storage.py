"""Logs in an object store: a listing of files, and files whose bytes are fetched when they are read."""

from __future__ import annotations

from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path, PurePosixPath
from threading import Lock
from typing import TYPE_CHECKING, Final

from seglog_format.errors import UsageError
from seglog_format.storage.byte_source import Closing, Window
from seglog_format.storage.log_storage import DirectoryEntries, FileStatus

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import BinaryIO

    from seglog_format.storage.log_storage import LogStorage, SizeCheck
    from seglog_format.storage.object_store import Store, StoredFile


# -- the bytes of a remote file: fetched in blocks when they are read, and kept in a cache of bounded size -------------


BLOCK_SIZE: Final = 2**17
"""Minimum bytes of a request: a smaller request takes as long."""
MAX_REQUEST_BLOCKS: Final = 64
"""Maximum number of blocks of one request."""
MAX_REQUESTS: Final = 4
"""Maximum number of concurrent requests to a store."""
READ_AHEAD_SIZE: Final = MAX_REQUESTS * MAX_REQUEST_BLOCKS * BLOCK_SIZE
"""Bytes fetched at once in a range that `expect` announced."""
MAX_WINDOW_SIZE: Final = 4 * 2**20
"""Maximum bytes fetched at once if windows follow each other, but no read was announced."""
MAX_CACHE_SIZE: Final = 80 * 2**20
"""Maximum bytes of cached blocks: somewhat more than a Spark task reads, unless a log has no index to split it by."""
NOTHING: Final = memoryview(b"")


class BlockCache:
    """The most recently used blocks of remote files.

    Args:
        max_size: maximum bytes to keep; the blocks of one read are kept until it ends.

    Attributes:
        lock: has to be held while blocks are looked up, fetched and added.
    """

    def __init__(self, max_size: int = MAX_CACHE_SIZE) -> None:
        self.lock = Lock()
        self._max_size = max_size
        self._size = 0
        self._by_block: dict[tuple[str, int], Window] = {}
        self._by_use: OrderedDict[tuple[str, int], Window] = OrderedDict()

    def find(self, path: str, block: int) -> Window | None:
        """Return the fetched bytes that contain a block; None if the block is not cached."""
        found = self._by_block.get((path, block))
        if found is not None:
            self._by_use.move_to_end((path, found.start))
        return found

    def has(self, path: str, block: int) -> bool:
        """Return whether a block is cached."""
        return (path, block) in self._by_block

    def add(self, path: str, fetched: Window) -> None:
        """Add fetched bytes of a file: whole blocks, except for the last block of the file."""
        for block in _blocks_of(fetched):
            self._by_block[path, block] = fetched
        self._by_use[path, fetched.start] = fetched
        self._size += len(fetched.data)

    def trim(self) -> None:
        """Drop the least recently used blocks, down to the maximum."""
        while self._size > self._max_size:
            (path, _), dropped = self._by_use.popitem(last=False)
            self._size -= len(dropped.data)
            for block in _blocks_of(dropped):
                del self._by_block[path, block]


def _blocks_of(fetched: Window) -> range:
    return range(fetched.start // BLOCK_SIZE, -(-(fetched.start + len(fetched.data)) // BLOCK_SIZE))


class RemoteBytes(Closing):
    """A remote file that is open for reading; a `SourceFile`.

    Attributes:
        path: name of the file.
        size: size of the file when it was listed.
    """

    def __init__(
        self, path: str, size: int, read: Callable[[int, int], bytes], cache: BlockCache | None = None
    ) -> None:
        """Open a file; nothing is fetched yet.

        Args:
            path: name of the file for errors; unique among the files that share the cache.
            size: in bytes.
            read: called with a position and a number of bytes; fetches these bytes.
            cache: of blocks, shared with other files.
        """
        self.path = path
        self.size = size
        self._read = read
        self._cache = BlockCache() if cache is None else cache
        self._window = Window(0, NOTHING)
        self._next_size = BLOCK_SIZE
        self._expected = (0, 0)

    def expect(self, start: int, end: int | None) -> None:
        """Announce a sequential read: the range is fetched in few large requests.

        Args:
            start: position of the first byte.
            end: position after the last; None for the end of the file.
        """
        self._expected = (start, self.size if end is None else min(end, self.size))

    def view(self, start: int, end: int) -> memoryview:
        """Return the bytes from one position to another in one piece, up to the end of the file.

        Raises:
            UsageError: the store does not answer, or the file has become shorter.
        """
        end = min(end, self.size)
        first, data = self._window
        if first <= start and end <= first + len(data):
            return data[start - first : end - first]
        return self._bytes(start, end, end) if start < end else NOTHING

    def window(self, position: int, at_least: int = 0) -> Window:
        """Return a part of the file that holds the byte at a position, and bytes after it.

        Args:
            position: of the first byte needed.
            at_least: number of bytes needed; fewer are returned at the end of the file.

        Raises:
            UsageError: the store does not answer, or the file has become shorter.
        """
        end = min(position + max(at_least, 1), self.size)
        if self._holds(position, end):
            return self._window
        if position >= end:
            return Window(position, NOTHING)
        follows = self._window.start <= position <= self._window.start + len(self._window.data)
        self._next_size = min(2 * self._next_size, MAX_WINDOW_SIZE) if follows else BLOCK_SIZE
        data = self._bytes(position, end, min(max(position + self._next_size, end), self.size))
        return self._window if self._holds(position, end) else Window(position, data)

    def _holds(self, start: int, end: int) -> bool:
        return self._window.start <= start and end <= self._window.start + len(self._window.data)

    def _bytes(self, start: int, end: int, stop: int) -> memoryview:
        """Return the bytes up to ``end``; if some must be fetched, fetch up to ``stop``."""
        first, last = self._expected
        if first <= start < last:
            stop = max(end, min(start - start % BLOCK_SIZE + READ_AHEAD_SIZE, last))
        with self._cache.lock:
            self._fetch(start, end, stop)
            parts = list(self._parts(start, end))
            self._cache.trim()
        self._window = parts[-1]
        pieces = [data[max(start - position, 0) : end - position] for position, data in parts]
        return pieces[0] if len(pieces) == 1 else memoryview(b"".join(pieces))

    def _parts(self, start: int, end: int) -> Iterator[Window]:
        while start < end:
            found = self._cache.find(self.path, start // BLOCK_SIZE)
            assert found is not None
            yield found
            start = found.start + len(found.data)

    def _fetch(self, start: int, end: int, stop: int) -> None:
        if not any(self._missing(start, end)):
            return
        missing = list(self._missing(start, stop))
        with ThreadPoolExecutor(min(MAX_REQUESTS, len(missing))) as pool:
            for (position, _), data in zip(missing, pool.map(self._read_part, missing), strict=True):
                self._cache.add(self.path, Window(position, memoryview(data)))

    def _read_part(self, part: tuple[int, int]) -> bytes:
        return self._read(*part)

    def _missing(self, start: int, end: int) -> Iterator[tuple[int, int]]:
        """Yield position and size of each request for the missing parts of a range."""
        blocks = range(start // BLOCK_SIZE, -(-end // BLOCK_SIZE))
        first: int | None = None
        for block in (*blocks, blocks.stop):
            is_missing = block < blocks.stop and not self._cache.has(self.path, block)
            if first is not None and (not is_missing or block - first == MAX_REQUEST_BLOCKS):
                position = first * BLOCK_SIZE
                yield position, min(block * BLOCK_SIZE, self.size) - position
                first = None
            if is_missing and first is None:
                first = block

    def forget(self) -> None:
        """Do nothing: the size of the block cache is bounded."""

    def release_before(self, position: int) -> None:
        """Do nothing, as `forget`."""

    def close(self) -> None:
        """Drop the last window; views of it stay valid."""
        self._window = Window(0, NOTHING)


# -- logs in an object store -------------------------------------------------------------------------------------------


class RemoteStorage:
    """The files below an address; a `LogStorage`. Its paths start with `root`, and are not local paths.

    All files share one bounded cache of blocks.

    Attributes:
        root: the address as a path.
    """

    is_local: Final = False

    def __init__(self, store: Store, files: Iterable[StoredFile]) -> None:
        """Store the listing.

        Args:
            store: reads the files below the address.
            files: the listed files of the store.

        Raises:
            UsageError: a file has a name that leads out of its directory, such as ``..``.
        """
        self.root = Path(store.address)
        self._store = store
        self._cache = BlockCache()
        self._files: dict[Path, StoredFile] = {}
        self._directories: dict[Path, tuple[set[str], set[str]]] = {self.root: (set(), set())}
        for file in files:
            self._add(file)

    def _add(self, file: StoredFile) -> None:
        parts = PurePosixPath(file.path).parts
        if not parts or ".." in parts or parts[0] == "/":
            msg = f"seglog: {self._store.address}: {file.path!r} is not the path of a file below it"
            raise UsageError(msg)
        path = self.root.joinpath(*parts)
        self._files[path] = file
        self._directory(path.parent)[0].add(path.name)

    def _directory(self, path: Path) -> tuple[set[str], set[str]]:
        """Return the names of files and directories in a directory; add the directory if it is new."""
        if path not in self._directories:
            self._directories[path] = (set(), set())
            self._directory(path.parent)[1].add(path.name)
        return self._directories[path]

    def name_of(self, path: Path) -> str:
        """Return the address of a file or directory."""
        if path == self.root or not path.is_relative_to(self.root):
            return self._store.address if path == self.root else str(path)
        return f"{self._store.address}/{path.relative_to(self.root).as_posix()}"

    def entries(self, directory: Path) -> DirectoryEntries:
        """List a directory, without a request to the store.

        Raises:
            UsageError: there is no such directory.
        """
        if directory not in self._directories:
            raise self._absent(directory, "directory")
        files, directories = self._directories[directory]
        return DirectoryEntries(sorted(files), sorted(directories), ())

    def is_link(self, path: Path) -> bool:  # noqa: ARG002 - stores have none
        """Return False."""
        return False

    def tiered_end(self, path: Path) -> int | None:  # noqa: ARG002 - these are files of partition directories
        """Return None."""
        return None

    def status(self, path: Path) -> FileStatus:
        """Return size and time of a file, without a request to the store.

        Raises:
            UsageError: there is no such file.
        """
        file = self._file(path)
        return FileStatus(file.size, file.modified)

    def open(self, path: Path, *, mapped: bool = False, check: SizeCheck | None = None) -> RemoteBytes:  # noqa: ARG002
        """Open a file; nothing is fetched yet.

        Raises:
            UsageError: there is no such file.
        """
        file, name = self._file(path), self.name_of(path)
        if check is not None:
            check(file.size, name)
        return RemoteBytes(name, file.size, partial(self._store.read, file.path), self._cache)

    def _file(self, path: Path) -> StoredFile:
        if path not in self._files:
            raise self._absent(path, "file")
        return self._files[path]

    def _absent(self, path: Path, what: str) -> UsageError:
        return UsageError(f"seglog: {self.name_of(path)}: no such {what}")


def download(storage: LogStorage, directory: Path, target: Path) -> None:
    """Copy the files of a directory into an empty local one; files in its subdirectories are left out.

    Args:
        storage: the storage with the directory.
        directory: the directory to copy.
        target: a new local directory.

    Raises:
        UsageError: the store does not answer, or the copy cannot be written.
    """
    entries = storage.entries(directory)
    target.mkdir()
    for name in entries.directories:
        (target / name).mkdir()
    for name in entries.files:
        try:
            with (target / name).open("xb") as file:
                write_file_of(storage, directory / name, file)
        except (OSError, ValueError) as error:
            msg = f"seglog: {storage.name_of(directory / name)}: cannot be copied into {target.parent}: {error}"
            raise UsageError(msg) from error


def write_file_of(storage: LogStorage, path: Path, target: BinaryIO) -> None:
    """Write the bytes of a storage's file into an open file."""
    with storage.open(path) as source:
        source.expect(0, None)
        parts = range(0, source.size, READ_AHEAD_SIZE)
        target.writelines(source.view(position, position + READ_AHEAD_SIZE) for position in parts)

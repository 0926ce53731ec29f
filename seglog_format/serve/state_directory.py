"""The directory for committed offsets: private to a server, and outside of the directories that it serves."""

from __future__ import annotations

import os
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Final

from seglog_format.codec.checksum import crc32c
from seglog_format.errors import UsageError
from seglog_format.log.directory_lock import DirectoryLock
from seglog_format.names import FileKind
from seglog_format.storage.byte_source import Closing

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

PRIVATE: Final = 0o700
"""Mode of the directory: committed offsets show which group reads which topic, so only its owner may read it."""


def default_directory(paths: Iterable[Path]) -> Path:
    """Return the directory for a server of these paths: in the user's state directory, named by a hash."""
    base = os.environ.get("XDG_STATE_HOME", "")
    root = Path(base) if base.startswith("/") else Path("~/.local/state").expanduser()
    text = "\n".join(sorted(str(path.resolve()) for path in paths)).encode(errors="surrogateescape")
    return root / "seglog" / "serve" / f"{zlib.crc32(text):08x}{crc32c(text):08x}"


def check_directory(directory: Path, served: Iterable[Path]) -> None:
    """Check that a directory is outside of the served directories, and of the log directories that hold them.

    Raises:
        UsageError: it is inside one of them.
    """
    resolved = directory.resolve()
    for path in served:
        for around in _around(path.resolve()):
            if around == resolved or around in resolved.parents:
                msg = f"--state {directory} is in {around}, which is served: give another directory, or none"
                raise UsageError(msg)


def _around(path: Path) -> Iterator[Path]:
    yield path
    if (path.parent / FileKind.META_PROPERTIES.value).exists():
        yield path.parent


class StateDirectory(Closing):
    """A directory for one server's state, locked until it is closed.

    Attributes:
        path: the directory.

    Args:
        path: created if missing, for its owner alone.

    Raises:
        UsageError: another server uses it.
        OSError: it cannot be created or written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        path.mkdir(mode=PRIVATE, parents=True, exist_ok=True)
        try:
            self._lock = DirectoryLock(path)
        except UsageError as error:
            msg = f"{path} is in use by another server: give this one another --state directory, or --state none"
            raise UsageError(msg) from error

    def close(self) -> None:
        """Unlock the directory."""
        self._lock.close()

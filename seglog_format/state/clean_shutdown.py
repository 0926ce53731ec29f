"""The clean-shutdown file while a log directory that was closed is changed (chapter 71)."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from seglog_format.names import FileKind
from seglog_format.storage.files import replace_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from seglog_format.storage.files import Files


@contextmanager
def opened_for_change(root: Path, partition: Path, files: Files, *, is_changed: bool = True) -> Iterator[None]:
    """Take the clean-shutdown file away, and write it again when all changes are on the disk (SEG-FLS-010).

    After a change that failed it stays away, so that the next start recovers.

    Args:
        root: the log directory.
        partition: a directory whose names change; what is written into its files is synced by whoever writes.
        files: the file layer that changes go through.
        is_changed: whether anything is to change.

    Raises:
        OSError: it did not work.
    """
    path = root / FileKind.CLEAN_SHUTDOWN.value
    if not is_changed or not files.exists(path):
        yield
        return
    data = files.read(path)
    files.remove(path)
    files.fsync_directory(root)
    yield
    files.fsync_directory(partition)
    replace_file(files, path, data)

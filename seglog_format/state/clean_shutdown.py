"""Handling of the clean-shutdown file while a closed log directory is changed (chapter 71)."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from seglog_format.names import FileKind
from seglog_format.storage.files import read_small, replace_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from seglog_format.storage.files import Files


@contextmanager
def opened_for_change(root: Path, partition: Path, files: Files, *, is_changed: bool = True) -> Iterator[None]:
    """Remove the clean-shutdown file, and write it again after all changes are on disk (SEG-FLS-010).

    After a failed change it is not written, so the next broker that starts recovers the log.

    Args:
        root: the log directory.
        partition: the directory in which files are changed; its names are synced here, their content by the caller.
        files: the file layer that changes go through.
        is_changed: whether anything will change.

    Raises:
        OSError: an operation on files failed.
        RefusedError: the clean-shutdown file is far larger than brokers write it; nothing was changed (SEG-PDR-020).
    """
    path = root / FileKind.CLEAN_SHUTDOWN.value
    if not is_changed or not files.exists(path):
        yield
        return
    data = read_small(files, path)
    files.remove(path)
    files.fsync_directory(root)
    yield
    files.fsync_directory(partition)
    replace_file(files, path, data)

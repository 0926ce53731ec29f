"""Reading of small files through the file layer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog_format.storage.file_bytes import MAX_WHOLE_SIZE, refuse_beyond

if TYPE_CHECKING:
    from pathlib import Path

    from seglog_format.storage.files import Files


def read_small(files: Files, path: Path) -> bytes:
    """Return the bytes of a file that is decoded whole, such as a checkpoint.

    Raises:
        OSError: the file does not exist, or cannot be read.
        RefusedError: it is larger than `MAX_WHOLE_SIZE` (SEG-PDR-020).
    """
    refuse_beyond(MAX_WHOLE_SIZE, files.size(path), str(path))
    return files.read(path)

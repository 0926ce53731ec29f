"""Unpack an archive."""

from __future__ import annotations

import tarfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def unpack_archive(archive: Path | str, target: Path) -> None:
    """Extract all of a tar archive, compressed or not, and nothing outside the directory.

    Python before 3.11.4 lacks the filter that ensures this; the archives are the repository's own.

    Args:
        archive: archive to read.
        target: directory, created if it is missing.
    """
    target.mkdir(parents=True, exist_ok=True)
    with tarfile.open(archive) as files:
        files.extraction_filter = getattr(tarfile, "data_filter", None)
        files.extractall(target)  # noqa: S202 - as above

"""Unpack an archive."""

from __future__ import annotations

import tarfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def unpack_archive(archive: Path | str, target: Path) -> None:
    """Extract all of a tar archive, compressed or not, and nothing outside the directory.

    Python before 3.11.4 does not know the filter that sees to that; the archives are the repository's own.

    Args:
        archive: to read.
        target: directory; made where it is missing.
    """
    target.mkdir(parents=True, exist_ok=True)
    with tarfile.open(archive) as files:
        files.extraction_filter = getattr(tarfile, "data_filter", None)
        files.extractall(target)  # noqa: S202 - as above

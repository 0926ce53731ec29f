"""The manifest: the changes of a write, stored in the log directory until they are done.

Other programs may have changed the file since. So every name in it is checked before it becomes a path.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, Final

from seglog_format.errors import UsageError
from seglog_format.names import FileKind, require_written_directory, segment_file_name

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

STAGING: Final = "_seglog_staging"
MANIFEST: Final = "_seglog_commit."
SUFFIX: Final = ".json"
_JOB = re.compile(r"[A-Za-z0-9_-]{1,100}")


@dataclass(frozen=True, slots=True)
class Placement:
    """A staged file, and the segment that it becomes.

    Attributes:
        directory: name of the partition directory.
        file: path of the staged file below the log directory, with slashes.
        base: base offset of the segment.
        keeps: whether the file already has its final offsets.
    """

    directory: str
    file: str
    base: int
    keeps: bool


@dataclass(frozen=True, slots=True)
class Manifest:
    """The changes of a write.

    Attributes:
        job: its name.
        interval: bytes between index entries.
        segments: the new segments.
    """

    job: str
    interval: int
    segments: tuple[Placement, ...]

    def encoded(self) -> bytes:
        """Encode it as JSON."""
        return json.dumps(asdict(self)).encode()


def staging_path(root: Path, job: str) -> Path:
    """Return the directory where a write stages its files.

    Raises:
        UsageError: the job's name could lead out of the log directory.
    """
    return root / STAGING / _checked_job(job)


def manifest_path(root: Path, job: str) -> Path:
    """Return the path of a write's manifest.

    Raises:
        UsageError: the job's name could lead out of the log directory.
    """
    return root / f"{MANIFEST}{_checked_job(job)}{SUFFIX}"


def read_manifest(path: Path) -> Manifest:
    """Read a manifest and check every name in it.

    Raises:
        UsageError: it is no manifest, or a name in it leads out of its directory.
    """
    try:
        return _parsed(json.loads(path.read_text(encoding="utf-8")), path)
    except (ValueError, TypeError, KeyError, RecursionError, UsageError) as error:
        msg = f"seglog: {path} is no manifest of a write: {error!r}: remove it if it is not yours"
        raise UsageError(msg) from error


def _parsed(values: Mapping[str, Any], path: Path) -> Manifest:
    job = _checked_job(values["job"])
    if manifest_path(path.parent, job) != path:
        msg = f"job {job} has another manifest"
        raise UsageError(msg)
    return Manifest(job, int(values["interval"]), tuple(_placement(each, job) for each in values["segments"]))


def _placement(values: Mapping[str, Any], job: str) -> Placement:
    placement = Placement(
        str(values["directory"]), str(values["file"]), int(values["base"]), keeps=bool(values["keeps"])
    )
    require_written_directory(placement.directory)
    segment_file_name(placement.base, FileKind.LOG)
    parts = PurePosixPath(placement.file).parts
    if parts[:2] != (STAGING, job) or ".." in parts or "\0" in placement.file or "\\" in placement.file:
        msg = f"{placement.file!r} is no staged file"
        raise UsageError(msg)
    return placement


def _checked_job(job: object) -> str:
    if not isinstance(job, str) or not _JOB.fullmatch(job):
        msg = f"{job!r} is no name of a write"
        raise UsageError(msg)
    return job

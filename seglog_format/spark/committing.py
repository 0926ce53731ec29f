"""On the driver: the commit of a write, which makes all staged files segments, or none of them.

A manifest is written first, and removed at the end. Its steps can be repeated from any point at which a driver
died: `finish_commits` repeats them, and so does the next write. A batch's checksum does not cover offsets and leader
epochs, so they are set in place; to set them again changes nothing.
"""

from __future__ import annotations

import logging
import shutil
import stat
import struct
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from seglog_format.codec.checkpoints import decode_leader_epoch_checkpoint, encode_leader_epoch_checkpoint
from seglog_format.codec.framing import walk
from seglog_format.errors import SeglogError, UsageError
from seglog_format.log.index_file import IndexedRow, build_indexes, encode_offset_index, encode_time_index
from seglog_format.log.listing import list_partition
from seglog_format.log.partition import Partition
from seglog_format.model import GREATEST_OFFSET
from seglog_format.names import FileKind, partition_directory_name, segment_file_name
from seglog_format.record_model import EpochStart
from seglog_format.spark.staging import (
    MANIFEST,
    STAGING,
    SUFFIX,
    Manifest,
    Placement,
    manifest_path,
    read_manifest,
    staging_path,
)
from seglog_format.state.directory_lock import DirectoryLock
from seglog_format.state.root_files import opened_for_change
from seglog_format.storage.byte_source import open_bytes, read_whole
from seglog_format.storage.files import LOCAL_FILES, replace_file

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Iterator, Sequence

    from seglog_format.spark.staging import Staged

LOGGER: Final = logging.getLogger(__name__)

BASE_OFFSET: Final = struct.Struct(">q")
LEADER_EPOCH: Final = struct.Struct(">i")
EPOCH_POSITION: Final = 12


def commit(root: Path, job: str, staged: Sequence[Staged], *, keeps_offsets: bool, interval_bytes: int) -> int:
    """Turn staged files into segments of a log directory.

    Args:
        root: the log directory.
        job: unique name of this write.
        staged: in the order in which they are to be appended.
        keeps_offsets: whether the files already have their final offsets.
        interval_bytes: bytes between index entries.

    Returns:
        The number of new segments.

    Raises:
        UsageError: a broker or another writer holds the directory, a name is not valid for a partition, the log has
            these offsets already, or a staged file is gone. Nothing has changed.
    """
    root.mkdir(parents=True, exist_ok=True)
    with closing(DirectoryLock(root)):
        _finish_all(root)
        manifest = Manifest(job, interval_bytes, tuple(_placed(root, staged, keeps_offsets)))
        replace_file(LOCAL_FILES, manifest_path(root, job), manifest.encoded())
        _apply(root, manifest)
        _remove_manifest(root, job)
    if (root / STAGING).exists():
        LOGGER.warning(
            "seglog: %s has files of other writes, and no broker starts from %s with them: if none of these writes is"
            " running, seglog_format.spark.finish_commits removes them",
            *(root / STAGING, root),
        )
    with suppress(PermissionError):  # without permission to read it, this user has not made the directory
        LOCAL_FILES.fsync_directory(root.parent)
    return len(staged)


def finish_commits(path: str | os.PathLike[str]) -> int:
    """Finish the writes whose driver died during the commit, and remove the files of those that had not come to it.

    A write that is still running then fails, and changes nothing.

    Args:
        path: of a log directory.

    Returns:
        The number of finished writes.

    Raises:
        UsageError: a broker or another writer holds the directory, or a manifest in it was not made by a writer.
    """
    root = Path(path)
    with closing(DirectoryLock(root)):
        finished = _finish_all(root)
        shutil.rmtree(root / STAGING, ignore_errors=True)
        return finished


def abort(root: Path, job: str) -> None:
    """Remove the files that a write has staged."""
    shutil.rmtree(staging_path(root, job), ignore_errors=True)
    _remove_if_empty(root / STAGING)


def _finish_all(root: Path) -> int:
    found = sorted(root.glob(f"{MANIFEST}*{SUFFIX}"))
    for path in found:
        manifest = read_manifest(path)
        _apply(root, manifest)
        _remove_manifest(root, manifest.job)
    return len(found)


def _remove_manifest(root: Path, job: str) -> None:
    abort(root, job)
    manifest_path(root, job).unlink()
    LOCAL_FILES.fsync_directory(root)


def _remove_if_empty(directory: Path) -> None:
    if directory.is_dir() and not any(directory.iterdir()):
        directory.rmdir()


def _placed(root: Path, staged: Iterable[Staged], keeps_offsets: bool) -> Iterator[Placement]:  # noqa: FBT001
    """Yield the target of each file, with its offsets."""
    ends: dict[Path, int] = {}
    for each in sorted(staged, key=lambda one: (one.topic, one.partition, one.first if keeps_offsets else 0)):
        directory = root / partition_directory_name(each.topic, each.partition)
        end = ends[directory] if directory in ends else _log_end(directory)
        if keeps_offsets and each.first < end:
            msg = (
                f"seglog: {directory.name} has offsets up to {end - 1}, and rows bring {each.first} again; rows of"
                " one partition have to be in one task: write seglog_format.spark.prepared(frame)"
            )
            raise UsageError(msg)
        base = each.first if keeps_offsets else end
        last = base + each.last - each.first
        if last > GREATEST_OFFSET:
            msg = f"seglog: {directory.name}: offset {last} is above {GREATEST_OFFSET} (SEG-LOG-013)"
            raise UsageError(msg)
        _require_free(directory / segment_file_name(base, FileKind.LOG))
        if not Path(each.path).is_file():
            msg = f"seglog: {each.path} is gone: finish_commits, or someone, removed the files of a running write"
            raise UsageError(msg)
        ends[directory] = last + 1
        file = Path(each.path).relative_to(root).as_posix()
        yield Placement(directory.name, file, base, keeps_offsets)


def _require_free(path: Path) -> None:
    """Check that no segment has this name, except for an empty log, which a new partition has."""
    with suppress(FileNotFoundError):
        found = path.lstat()
        if found.st_size or not stat.S_ISREG(found.st_mode):
            msg = f"seglog: {path} is there already, and is not replaced: does the log need recovery?"
            raise UsageError(msg)


def _log_end(directory: Path) -> int:
    if not directory.is_dir():
        return 0
    with Partition(list_partition(directory)) as partition:
        return partition.log_end_offset


def _apply(root: Path, manifest: Manifest) -> None:
    """Carry out a manifest; steps done before are skipped."""
    with opened_for_change(root, root, LOCAL_FILES):
        for each in manifest.segments:
            source, directory = root / each.file, root / each.directory
            if source.exists():  # else an earlier run has moved it
                directory.mkdir(exist_ok=True)
                _publish(source, directory, each, manifest.interval)
                LOCAL_FILES.fsync_directory(directory)
        LOCAL_FILES.fsync_directory(root)


def _publish(source: Path, directory: Path, placement: Placement, interval_bytes: int) -> None:
    """Turn a staged file into a segment; if the file has both names already, remove the first."""
    if not source.resolve().is_relative_to(directory.parent.resolve() / STAGING):
        msg = f"seglog: {source} is a link that leads out of {STAGING}"
        raise UsageError(msg)
    base = placement.base
    log = directory / segment_file_name(base, FileKind.LOG)
    if log.exists() and log.samefile(source):
        source.unlink()
        return
    _require_free(log)
    epoch = _leader_epoch(directory, base)
    rows = _numbered(source, None if placement.keeps else base, epoch)
    built = build_indexes(rows, interval_bytes=interval_bytes)
    indexes = {
        FileKind.OFFSET_INDEX: encode_offset_index(built.offset_entries, base),
        FileKind.TIME_INDEX: encode_time_index(built.time_entries, base),
    }
    for kind, data in indexes.items():
        replace_file(LOCAL_FILES, directory / segment_file_name(base, kind), data)
    log.unlink(missing_ok=True)  # an empty log
    LOCAL_FILES.publish(source, log)


def _leader_epoch(directory: Path, base: int) -> int:
    """Return the latest leader epoch of a partition; 0 if it has none."""
    path = directory / FileKind.LEADER_EPOCH_CHECKPOINT.value
    try:
        entries = decode_leader_epoch_checkpoint(read_whole(path)).entries
    except SeglogError:
        entries = ()
    if entries:
        return entries[-1].epoch
    replace_file(LOCAL_FILES, path, encode_leader_epoch_checkpoint([EpochStart(0, base)]))
    return 0


def _numbered(path: Path, base: int | None, epoch: int) -> list[IndexedRow]:
    """Set offsets, unless they are kept, and leader epochs of a file's batches; return the index entries."""
    rows = []
    with closing(LOCAL_FILES.open_append(path)) as file, open_bytes(path) as source:
        for frame in walk(source, path=str(path)):
            header = frame.header
            first = header.base_offset if base is None else base
            assert first is not None
            last = first + header.last_offset - (header.base_offset or 0)
            rows.append(IndexedRow(frame.position, frame.end - frame.position, first, last, header.max_timestamp_ms))
            file.write_at(frame.position, BASE_OFFSET.pack(first))
            file.write_at(frame.position + EPOCH_POSITION, LEADER_EPOCH.pack(epoch))
            base = None if base is None else last + 1
        file.fsync()
    return rows

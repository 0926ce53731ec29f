"""On the driver: staged files become segments, all of them or none.

A manifest is written first, and is gone when all is done. What it says can be done again from any point where a driver
died: `finish_commits` does, and so does the next write. Offsets and leader epochs stand outside of a batch's checksum,
so they are set in place, and are the same however often that is done.
"""

from __future__ import annotations

import json
import mmap
import os
import shutil
import struct
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from seglog_format.codec.checkpoints import decode_leader_epoch_checkpoint, encode_leader_epoch_checkpoint
from seglog_format.codec.framing import walk
from seglog_format.errors import SeglogError, UsageError
from seglog_format.lifecycle.directory_lock import DirectoryLock
from seglog_format.lifecycle.index_build import IndexedRow, build_indexes, encode_offset_index, encode_time_index
from seglog_format.log.file_bytes import read_whole
from seglog_format.log.listing import list_partition
from seglog_format.log.partition import Partition
from seglog_format.names import FileKind, partition_directory_name, segment_file_name
from seglog_format.small_model import EpochStart

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from seglog_format.spark.staging import Staged

STAGING: Final = "_seglog_staging"
MANIFEST: Final = "_seglog_commit."
BASE_OFFSET: Final = struct.Struct(">q")
LEADER_EPOCH: Final = struct.Struct(">i")
EPOCH_POSITION: Final = 12


def commit(root: Path, job: str, staged: Sequence[Staged], *, keeps_offsets: bool, interval_bytes: int) -> int:
    """Make staged files segments of a log directory.

    Args:
        root: the log directory.
        job: name of this write, which no other has.
        staged: in the order in which they are to be appended.
        keeps_offsets: their offsets are the true ones.
        interval_bytes: between index entries.

    Returns:
        How many segments were made.

    Raises:
        UsageError: a broker or another writer holds the directory, or offsets are there already.
    """
    root.mkdir(parents=True, exist_ok=True)
    with closing(DirectoryLock(root)):
        _finish_all(root)
        manifest = {"job": job, "interval": interval_bytes, "segments": _placed(root, staged, keeps_offsets)}
        _write_at_once(root / f"{MANIFEST}{job}.json", json.dumps(manifest).encode())
        _apply(root, manifest)
        _remove_manifest(root, job)
    return len(staged)


def finish_commits(path: str | os.PathLike[str]) -> int:
    """Finish what writers had begun to commit when they died.

    Args:
        path: of a log directory.

    Returns:
        How many writes were finished.

    Raises:
        UsageError: a broker or another writer holds the directory.
    """
    root = Path(path)
    with closing(DirectoryLock(root)):
        return _finish_all(root)


def abort(root: Path, job: str) -> None:
    """Remove what a write has staged."""
    shutil.rmtree(root / STAGING / job, ignore_errors=True)
    _remove_if_empty(root / STAGING)


def _finish_all(root: Path) -> int:
    found = sorted(root.glob(f"{MANIFEST}*.json"))
    for path in found:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        _apply(root, manifest)
        _remove_manifest(root, manifest["job"])
    return len(found)


def _remove_manifest(root: Path, job: str) -> None:
    abort(root, job)
    (root / f"{MANIFEST}{job}.json").unlink()
    _sync_directory(root)


def _remove_if_empty(directory: Path) -> None:
    if directory.is_dir() and not any(directory.iterdir()):
        directory.rmdir()


def _placed(root: Path, staged: Iterable[Staged], keeps_offsets: bool) -> list[dict[str, Any]]:  # noqa: FBT001
    """Where each file goes, and with which offsets and leader epoch."""
    ends: dict[tuple[str, int], int] = {}
    placed = []
    for each in sorted(staged, key=lambda one: (one.topic, one.partition, one.first if keeps_offsets else 0)):
        directory = root / partition_directory_name(each.topic, each.partition)
        key = each.topic, each.partition
        end = ends[key] if key in ends else _log_end(directory)
        if keeps_offsets and each.first < end:
            msg = (
                f"seglog: {directory.name} has offsets up to {end - 1}, and rows bring {each.first} again; rows of"
                " one partition have to be in one task: write seglog_format.spark.prepared(frame)"
            )
            raise UsageError(msg)
        base = each.first if keeps_offsets else end
        ends[key] = base + each.last - each.first + 1
        file = str(Path(each.path).relative_to(root))
        placed.append({"directory": directory.name, "file": file, "base": base, "keeps": keeps_offsets})
    return placed


def _log_end(directory: Path) -> int:
    if not directory.is_dir():
        return 0
    with Partition(list_partition(directory)) as partition:
        return partition.log_end_offset


def _apply(root: Path, manifest: dict[str, Any]) -> None:
    """Do what a manifest says; what was done already stays as it is."""
    for each in manifest["segments"]:
        source, directory, base = root / each["file"], root / each["directory"], each["base"]
        if not source.exists():
            continue  # renamed before
        directory.mkdir(exist_ok=True)
        epoch = _leader_epoch(directory, base)
        rows = _numbered(source, None if each["keeps"] else base, epoch)
        built = build_indexes(rows, interval_bytes=manifest["interval"])
        name = segment_file_name(base, FileKind.OFFSET_INDEX)
        _write_at_once(directory / name, encode_offset_index(built.offset_entries, base))
        name = segment_file_name(base, FileKind.TIME_INDEX)
        _write_at_once(directory / name, encode_time_index(built.time_entries, base))
        source.replace(directory / segment_file_name(base, FileKind.LOG))
        _sync_directory(directory)
    _sync_directory(root)


def _leader_epoch(directory: Path, base: int) -> int:
    """The latest leader epoch of a partition; a partition that has none yet starts with epoch 0."""
    path = directory / FileKind.LEADER_EPOCH_CHECKPOINT.value
    try:
        entries = decode_leader_epoch_checkpoint(read_whole(path)).entries
    except SeglogError:
        entries = ()
    if entries:
        return entries[-1].epoch
    _write_at_once(path, encode_leader_epoch_checkpoint([EpochStart(0, base)]))
    return 0


def _numbered(path: Path, base: int | None, epoch: int) -> list[IndexedRow]:
    """Give the batches of a file their offsets, unless they have them, and leader epoch; and tell what to index."""
    rows = []
    with path.open("r+b") as file, closing(mmap.mmap(file.fileno(), 0)) as mapped:
        for frame in list(walk(memoryview(mapped).toreadonly(), path=str(path))):
            header = frame.header
            first = header.base_offset if base is None else base
            assert first is not None
            last = first + header.last_offset - (header.base_offset or 0)
            BASE_OFFSET.pack_into(mapped, frame.position, first)
            LEADER_EPOCH.pack_into(mapped, frame.position + EPOCH_POSITION, epoch)
            rows.append(IndexedRow(frame.position, frame.end - frame.position, first, last, header.max_timestamp_ms))
            base = None if base is None else last + 1
        del frame
        mapped.flush()
        os.fsync(file.fileno())
    return rows


def _write_at_once(path: Path, data: bytes) -> None:
    new = path.with_name(f"{path.name}.new")
    with new.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    new.replace(path)
    _sync_directory(path.parent)


def _sync_directory(path: Path) -> None:
    if os.name == "nt":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)

"""A log directory with known records, and a process that cuts, empties, removes and restores its files.

Each file holds a prefix of its right bytes, zeros after it for a moment, or nothing. So whatever a reader delivers at
an offset is what the log held there, or it is wrong.
"""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from seglog_conformance.toolchains import child_processes

from proofs.harness import ROOT
from seglog_format import (
    ControlRecordType,
    LogConfig,
    PartitionWriter,
    build_batch,
    build_end_marker,
    encode_batch,
    new_record,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

CHANGED: Final = ("shaken-0", "shaken-1")
"""Partitions whose files change."""
CALM: Final = "calm-0"
"""A partition whose files do not change."""
TIME_MS: Final = 1_700_000_000_000
BATCH_RECORDS: Final = 8
MAX_PAUSE_SECONDS: Final = 0.02
HOWS: Final = ("cut", "cut", "cut", "zeros", "remove", "replace")


def value_of(topic: str, number: int, offset: int) -> bytes:
    """Return the value of the record at an offset, which no other record has."""
    return b"%s-%d:%d:" % (topic.encode(), number, offset) + b"abcdefgh" * (offset * 7919 % 40)


def make(root: Path, records: int) -> None:
    """Write a log directory with the partitions of `CHANGED` and `CALM`, in segments of some hundred batches."""
    for name in (*CHANGED, CALM):
        topic, _, number = name.rpartition("-")
        config = LogConfig(segment_bytes=512 << 10, retention_ms=-1, index_interval_bytes=1024)
        with PartitionWriter(root / name, config) as writer:
            offset = 0
            while offset < records:
                offset += _append(writer, topic, int(number), offset)


def _append(writer: PartitionWriter, topic: str, number: int, offset: int) -> int:
    """Append a batch, and after each third one the end of its transaction; return the number of offsets."""
    turn = offset // BATCH_RECORDS
    transaction = turn % 3
    producer = {"producer_id": transaction, "producer_epoch": 0, "is_transactional": True, "base_sequence": offset}
    batch = build_batch(
        [
            new_record(value=value_of(topic, number, each), timestamp_ms=TIME_MS + each)
            for each in range(offset, offset + BATCH_RECORDS)
        ],
        base_offset=offset,
        partition_leader_epoch=0,
        **(producer if transaction == 2 else {}),  # noqa: PLR2004 - one of three
    )
    writer.append_as_follower(encode_batch(batch))
    if transaction != 2:  # noqa: PLR2004 - as above
        return BATCH_RECORDS
    end = build_end_marker(
        ControlRecordType.ABORT if turn % 2 else ControlRecordType.COMMIT,
        producer_id=transaction,
        producer_epoch=0,
        coordinator_epoch=0,
        timestamp_ms=TIME_MS + offset,
        base_offset=offset + BATCH_RECORDS,
        partition_leader_epoch=0,
    )
    writer.append_as_follower(encode_batch(end))
    return BATCH_RECORDS + 1


@contextmanager
def changing(truth: Path, root: Path, seed: int) -> Iterator[None]:
    """Let another process change files of a log directory; restore all of them at the end.

    Args:
        truth: a directory that does not change.
        root: a copy of it.
        seed: of the changes.
    """
    child = child_processes.start(
        [sys.executable, "-m", "proofs.shrinking.changing", str(truth), str(root), str(seed)],
        directory=ROOT,
        changes={"PYTHONPATH": str(ROOT)},
        stdin=subprocess.PIPE,
    )
    try:
        yield
    finally:
        child.kill()
        child.communicate()
        restore(truth, root)


def restore(truth: Path, root: Path) -> None:
    """Give every file its right bytes again."""
    for path in _files(truth):
        target = root / path.relative_to(truth)
        target.unlink(missing_ok=True)
        shutil.copy2(path, target)


def _files(truth: Path) -> list[Path]:
    partitions = (path for name in CHANGED for path in (truth / name).iterdir())
    checkpoints = (path for path in truth.iterdir() if path.is_file() and not path.name.startswith("."))
    return sorted([*partitions, *checkpoints])


def change(path: Path, right: bytes, how: str, dice: random.Random) -> None:
    """Change a file in one of the ways `HOWS`, and restore it in a few steps."""
    size = dice.randrange(len(right) + 1)
    if how == "remove":
        path.unlink()
        size = 0
    elif how == "replace":
        other = path.with_name(f".{path.name}")
        other.write_bytes(right[:size])
        other.replace(path)
    else:
        os.truncate(path, size)
        if how == "zeros":
            os.truncate(path, len(right))
    _pause(dice)
    if how == "zeros":
        with path.open("r+b") as file:
            file.write(right)
        return
    while size < len(right):
        step = dice.choice((1, 1000, len(right)))
        with path.open("ab") as file:
            file.write(right[size : size + step])
        size += max(1, step)
        if step > 1:
            _pause(dice)


def _pause(dice: random.Random) -> None:
    time.sleep(dice.random() * MAX_PAUSE_SECONDS)


def main() -> None:
    """Change files until this process or its parent ends."""
    truth, root, dice = Path(sys.argv[1]), Path(sys.argv[2]), random.Random(int(sys.argv[3]))
    contents = {root / path.relative_to(truth): path.read_bytes() for path in _files(truth)}
    paths = sorted(contents)
    logs = [path for path in paths if path.suffix == ".log"]
    parent = os.getppid()
    while os.getppid() == parent:
        path = dice.choice(dice.choice((logs, paths)))
        with suppress(FileNotFoundError):  # a command may delete what is not its own; it is checked elsewhere
            change(path, contents[path], dice.choice(HOWS), dice)


if __name__ == "__main__":
    main()

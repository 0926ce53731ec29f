"""Appends for tests: batches written out by hand, a clock that stands still, writers with small settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from helpers.batches import batch, record
from helpers.spec_examples import examples
from seglog_format.codec.side_files import decode_producer_snapshot
from seglog_format.errors import Location
from seglog_format.state.config import LogConfig
from seglog_format.storage.environment import Environment
from seglog_format.storage.files import LOCAL_FILES, Files
from seglog_format.writing.writer import PartitionWriter

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from seglog_format.model import ProducerStateEntry

TRANSACTIONAL, CONTROL = 0x10, 0x20


class Clock:
    """What time it is, as a test says."""

    def __init__(self, now_ms: int = 2000) -> None:
        self.now_ms = now_ms

    def __call__(self) -> int:
        return self.now_ms


def produced(*times: int, key: bytes | None = b"k", value: bytes = b"v", **fields: int) -> bytes:
    """Return a batch as a producer sends it, one record for each time."""
    times = times or (1000,)
    section = b"".join(record(time - times[0], delta, key, value) for delta, time in enumerate(times))
    values = {
        "partition_leader_epoch": -1,
        "last_offset_delta": len(times) - 1,
        "base_timestamp_ms": times[0],
        "max_timestamp_ms": max(times),
    }
    return batch(section, len(times), **{**values, **fields})


def idempotent(sequence: int, *times: int, producer_id: int = 9, producer_epoch: int = 0, **fields: int) -> bytes:
    """Return a batch of an idempotent producer."""
    return produced(*times, producer_id=producer_id, producer_epoch=producer_epoch, base_sequence=sequence, **fields)


def transactional(sequence: int, *times: int, **fields: int) -> bytes:
    """Return a batch of a transaction."""
    return idempotent(sequence, *times, attributes=TRANSACTIONAL, **fields)


def marker(kind: int, producer_id: int = 9, producer_epoch: int = 0, coordinator_epoch: int = 0) -> bytes:
    """Return the end of a transaction: 0 ABORT, 1 COMMIT."""
    key = bytes([0, 0, 0, kind])
    value = bytes(2) + coordinator_epoch.to_bytes(4, "big")
    return batch(
        record(0, 0, key, value),
        attributes=TRANSACTIONAL | CONTROL,
        base_timestamp_ms=1500,
        max_timestamp_ms=1500,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=-1,
    )


def example(name: str, chapter: str = "70-append-and-roll") -> bytes:
    """Return the bytes of a named example of a chapter."""
    (found,) = (block.data for block in examples() if block.chapter == chapter and block.options.get("name") == name)
    return found


def open_writer(
    path: Path,
    clock: Callable[[], int] | None = None,
    *,
    files: Files = LOCAL_FILES,
    random: float = 0.0,
    leader_epoch: int | None = None,
    **settings: object,
) -> PartitionWriter:
    """Return a writer of the partition directory ``topic-0`` under a path."""
    environment = Environment(files=files, clock=clock or Clock(), random=lambda: random)
    config = LogConfig(**settings)  # type: ignore[arg-type]
    return PartitionWriter(path / "topic-0", config, environment=environment, leader_epoch=leader_epoch)


def contents(path: Path, ending: str) -> dict[str, bytes]:
    """Return the files of a partition directory whose names end so."""
    return {file.name: file.read_bytes() for file in sorted(path.glob("*" + ending))}


def base_offsets(path: Path) -> list[int]:
    """Of the segments below ``topic-0``."""
    return [int(name[:20]) for name in contents(path / "topic-0", ".log")]


def snapshot(data: bytes) -> set[ProducerStateEntry]:
    """Return the producers of a snapshot; their order means nothing."""
    return set(decode_producer_snapshot(data, Location()).producers)

"""What the template in Python calls, over the public API."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seglog_format import build_batch, decode_batch, encode_batch, new_record, open_partition, rebuild_indexes, walk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_format.types import Message, RecordBatch
    from seglog_format.types import Record as Decoded

__version__ = "1"


class Batch(list["Record"]):
    """The records of a batch."""

    base_offset = 0
    is_control = False


class Record:
    """A record, as the template wants it."""

    def __init__(self, one: Decoded | Message) -> None:
        self.offset, self.timestamp, self.key, self.value = one.offset, one.timestamp_ms, one.key, one.value
        self.headers = [(pair.key, pair.value) for pair in one.headers]


def batches(data: bytes) -> Iterator[Batch]:
    for frame in walk(data):
        decoded = decode_batch(frame.data)
        batch = Batch(Record(one) for one in decoded.records)
        batch.base_offset, batch.is_control = decoded.base_offset, decoded.header.is_control
        yield batch


def find(directory: str, offset: int) -> RecordBatch | None:
    with open_partition(directory) as partition:
        return next((batch for batch in partition.batches() if offset <= batch.last_offset), None)


def encode(batch: dict[str, Any], records: list[tuple[int, int, bytes | None, bytes | None, list[Any]]]) -> bytes:
    made = [
        new_record(key=key, value=value, headers=headers, timestamp_ms=timestamp)
        for _, timestamp, key, value, headers in records
    ]
    epoch = batch["partitionLeaderEpoch"]
    return encode_batch(build_batch(made, base_offset=int(batch["baseOffset"]), partition_leader_epoch=epoch))


def indexes(log: bytes, base_offset: int, interval_bytes: int) -> dict[str, bytes]:
    with tempfile.TemporaryDirectory() as root:
        directory = Path(root, "topic-0")
        directory.mkdir()
        (directory / f"{base_offset:020}.log").write_bytes(log)
        rebuild_indexes(directory, interval_bytes=interval_bytes).apply()
        return {path.suffix: path.read_bytes() for path in directory.iterdir() if path.suffix != ".log"}

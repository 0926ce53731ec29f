"""The batches of stock producers: the endpoint's part of ``encode``.

The Produce requests of ``seglog serve --writable`` end in this module, and no file is written: a batch is kept as it
was received. Only base offset and leader epoch are filled in, as a broker does with every batch that it accepts; no
checksum covers them.
"""

from __future__ import annotations

import struct
from itertools import pairwise
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from seglog_format.serve.writing import Writers
from seglog_format.writing.partition_log import Appended

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seglog_conformance.protocol import Json

MAGIC: Final = 2
"""Magic of the batches that producers send in the supported versions of Produce."""
MAX_CAPTURED: Final = 1000
"""Maximum batches of one request to encode."""

BASE_OFFSET: Final = struct.Struct(">q")
LEADER_EPOCH: Final = struct.Struct(">i")
LEADER_EPOCH_POSITION: Final = 12
LAST_OFFSET_DELTA: Final = struct.Struct(">i")
LAST_OFFSET_DELTA_POSITION: Final = 23


def unreported(batches: Sequence[Json]) -> Json | None:
    """Return the answer that skips a request if no producer can express its batches; None if producers can.

    Args:
        batches: batches of a request to encode.
    """
    for batch in batches:
        magic = batch.get("magic", MAGIC)
        if magic != MAGIC:
            return {"skip": {"feature": f"magic:{magic}"}}
        reason = next((reason for is_wanted, reason in _inexpressible(batch) if is_wanted), None)
        if reason is not None:
            return {"skip": {"reason": f"a producer sets no {reason}"}}
    if any(str(one.get("nextOffset")) != str(other["baseOffset"]) for one, other in pairwise(batches)):
        return {"skip": {"reason": "a producer sets no offsets: two batches have a gap between them"}}
    if len({batch.get("partitionLeaderEpoch") for batch in batches}) > 1:
        return {"skip": {"reason": "a producer sets no leader epochs"}}
    return None


def _inexpressible(batch: Json) -> tuple[tuple[bool, str], ...]:
    """Return values that only brokers and cleaners write, or give to a producer, and whether a batch has them."""
    records = batch["records"]
    base = int(batch.get("baseOffset") or 0)
    offsets = [int(record["offset"]) for record in records]
    return (
        (bool(batch.get("isControl")), "control batches"),
        (batch.get("timestampType") == "LogAppendTime", "time of the append"),
        (batch.get("deleteHorizonMs") is not None, "delete horizon"),
        (not records, "empty batches"),
        (bool(batch.get("isTransactional")), "transactions without a coordinator, and there is none"),
        (int(batch.get("producerId", -1)) != -1, "producer id, epoch or first sequence of its own"),
        (offsets != list(range(base, base + len(records))), "offsets"),
        (int(batch.get("lastOffset", base + len(records) - 1)) != base + len(records) - 1, "last offset"),
    )


class Captured:
    """The log of a producer: the batches that it has sent.

    Attributes:
        log_start_offset: start offset of the log.
    """

    def __init__(self, start: int, leader_epoch: int) -> None:
        """Begin a log.

        Args:
            start: offset of its first record.
            leader_epoch: leader epoch for the batches.
        """
        self.log_start_offset = start
        self._end = start
        self._epoch = leader_epoch
        self._batches: list[bytes] = []
        self._taking = Lock()

    @property
    def data(self) -> bytes:
        """The batches, in the order in which they were received."""
        with self._taking:
            return b"".join(self._batches)

    def take(self, data: bytes) -> Appended:
        """Keep a batch without any check."""
        with self._taking:
            first, delta = self._end, LAST_OFFSET_DELTA.unpack_from(data, LAST_OFFSET_DELTA_POSITION)[0]
            if len(self._batches) < MAX_CAPTURED:
                self._batches.append(_as_stored(data, first, self._epoch))
            self._end = max(first + delta + 1, first)
            return Appended(first, max(first + delta, first))


def _as_stored(data: bytes, base_offset: int, leader_epoch: int) -> bytes:
    stored = bytearray(data)
    BASE_OFFSET.pack_into(stored, 0, base_offset)
    LEADER_EPOCH.pack_into(stored, LEADER_EPOCH_POSITION, leader_epoch)
    return bytes(stored)


class Capturing(Writers):
    """Takes the batches that producers send to the present topic, and writes no file."""

    def __init__(self) -> None:
        super().__init__()
        self._shown: tuple[str, Captured] | None = None

    def show(self, topic: str, captured: Captured | None) -> None:
        """Accept batches for a topic; with None, for no topic."""
        self._shown = None if captured is None else (topic, captured)

    def find(self, topic: str, number: int) -> Any:  # noqa: ANN401 - in place of a writer, for `append` alone
        """Return the log of a topic; None if its batches are not accepted."""
        shown = self._shown
        return shown[1] if shown is not None and (topic, number) == (shown[0], 0) else None

    def check(self, writer: Any, data: bytes, limits: object) -> Any:  # noqa: ANN401, ARG002 - what `find` gives
        """Return the bytes without a check: the suite judges them."""
        return data

    def append(self, writer: Any, checked: Any) -> Appended:  # noqa: ANN401 - as above
        """Keep the batch of a producer."""
        kept: Appended = writer.take(checked)
        return kept

"""The answers that a stock consumer must get from a partition directory, by our reading of it."""

from __future__ import annotations

import hashlib
import struct
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from seglog_format.types import Message, Partition, Record, RecordBatch, Transactions

Isolation: TypeAlias = Literal["read_uncommitted", "read_committed"]
ISOLATIONS: Final[tuple[Isolation, ...]] = ("read_uncommitted", "read_committed")

Answer: TypeAlias = dict[str, Any]
"""An answer of ``Served.java``: begin and end offset, number of records, and a digest over them."""


def expected_answers(partition: Partition, isolation: Isolation, ending: int = 0) -> list[Answer]:
    """Return the answers that a consumer may get: one, and one more for each open transaction that may have ended.

    An available coordinator aborts them after their timeout, with one more offset for each.

    Args:
        partition: partition that the consumer reads.
        isolation: isolation level of the consumer.
        ending: number of open transactions of the coordinator for the partition, even if they wrote nothing to it.
    """
    opened = len(partition.transactions.open_offsets)
    most = max(opened, ending)
    start, end = partition.log_start_offset, partition.log_end_offset
    if isolation == "read_uncommitted":
        answer = _answer(start, end, partition.records(on_gap=_ignore))
        return [answer | {"end": end + ended} for ended in range(most + 1)]
    ended = _answer(start, end, _without_open(partition))
    finished = [ended | {"end": end + count} for count in range(opened, most + 1)]
    waiting = _answer(start, partition.last_stable_offset, partition.records(isolation=isolation, on_gap=_ignore))
    return [waiting, *finished]


def answer_of_nothing(end: int) -> Answer:
    """Return the answer for a log without records that begins and ends at an offset."""
    return {"begin": end, "end": end, "records": 0, "sha256": hashlib.sha256().hexdigest()}


def with_end(answers: Sequence[Answer], held: int, end: int | None) -> list[Answer]:
    """Return answers for a log that ends where the old one did, although the records before that end are lost."""
    return [
        answer if end is None or answer["end"] < held else answer | {"end": answer["end"] - held + end}
        for answer in answers
    ]


def _answer(begin: int, end: int, records: Iterable[Record | Message]) -> Answer:
    count, digest = digest_of(records)
    return {"begin": begin, "end": end, "records": count, "sha256": digest}


def _without_open(partition: Partition) -> Iterator[Record | Message]:
    """Yield the records that remain when each open transaction has been aborted."""
    for batch in partition.batches():
        if not _is_hidden(batch, partition.transactions):
            yield from (record for record in batch.records if record.offset >= partition.log_start_offset)


def _is_hidden(batch: RecordBatch, transactions: Transactions) -> bool:
    header = batch.header
    if getattr(header, "is_control", False):
        return True
    if not getattr(header, "is_transactional", False):
        return False
    is_open = transactions.open_offsets.get(header.producer_id, header.next_offset) <= header.last_offset
    return is_open or transactions.is_aborted(header)


def digest_of(records: Iterable[Record | Message]) -> tuple[int, str]:
    """Return the number of records, and a digest over them, as ``Served.java`` computes it."""
    digest, count = hashlib.sha256(), 0
    for record in records:
        digest.update(struct.pack(">qq", record.offset, record.timestamp_ms))
        headers = getattr(record, "headers", ())
        for part in (record.key, record.value):
            _add(digest, part)
        digest.update(struct.pack(">i", len(headers)))
        for header in headers:
            _add(digest, header.key)
            _add(digest, header.value)
        count += 1
    return count, digest.hexdigest()


def _ignore(_gap: object) -> None:
    """Ignore a gap: the broker lacks the same records."""


def _add(digest: hashlib._Hash, data: bytes | None) -> None:
    digest.update(struct.pack(">i", -1 if data is None else len(data)) + (data or b""))

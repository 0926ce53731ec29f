"""Requests to an encoder, batch by batch, in the adapter protocol."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from proofs.writers.cells import MAGIC_2, Kind
from proofs.writers.rows import BATCH_RECORDS, Row

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from proofs.writers.cells import Cell

BATCHES_OF_TRANSACTION: Final = 10
PRODUCER_ID: Final = 7000
COORDINATOR_EPOCH: Final = 1
COMMIT_KEY: Final = bytes((0, 0, 0, 1))
COMMIT_VALUE: Final = bytes(2) + COORDINATOR_EPOCH.to_bytes(4, "big")
LIVE_TO_SUPERSEDED: Final = 5
"""Of a log to be compacted, so many records stay for each one that goes."""

Json = dict[str, Any]


def batch_of(rows: Sequence[Row], base_offset: int, codec: str, **fields: object) -> Json:
    """Describe a batch.

    Args:
        rows: its records, whose offsets follow each other.
        base_offset: offset of the first.
        codec: name of the codec.
        fields: further fields of the header.
    """
    records = [
        {
            "offset": str(offset),
            "timestamp": str(row.timestamp_ms),
            "key": _hexed(row.key),
            "value": _hexed(row.value),
            "headers": [[_hexed(key), _hexed(value)] for key, value in row.headers],
        }
        for offset, row in enumerate(rows, base_offset)
    ]
    ends = {"baseOffset": str(base_offset), "lastOffset": records[-1]["offset"], "recordsCount": len(rows)}
    times = {"baseTimestamp": records[0]["timestamp"], "maxTimestamp": records[-1]["timestamp"]}
    return {"magic": MAGIC_2, "codec": codec, "partitionLeaderEpoch": 0, **ends, **times, "records": records, **fields}


def _hexed(data: bytes | None) -> str | None:
    return None if data is None else data.hex()


def batches_to_encode(cell: Cell, batches: Sequence[Sequence[Row]], producer_id: int = PRODUCER_ID) -> Iterator[Json]:
    """Describe the batches of a cell in order, control batches included.

    Batches for a server have offsets from 0, as a producer sends them; other batches have the offsets of the log.

    Args:
        cell: the log.
        batches: rows of each batch.
        producer_id: producer id, if the kind requires one.
    """
    match cell.kind:
        case Kind.TRANSACTIONAL:
            yield from _transactional(cell, batches, producer_id)
        case Kind.COMPACTED:
            yield from _at_offsets(cell, with_superseded(batches))
        case Kind.LOG_APPEND_TIME:
            for batch in _at_offsets(cell, batches):
                yield batch | {"timestampType": "LogAppendTime"}
        case Kind.IDEMPOTENT:
            for number, rows in enumerate(batches):
                yield batch_of(rows, 0, cell.codec, **produced_by(producer_id, number * BATCH_RECORDS))
        case _ if cell.is_served:
            yield from (batch_of(rows, 0, cell.codec) for rows in batches)
        case _:
            yield from _at_offsets(cell, batches)


def is_relative(cell: Cell) -> bool:
    """Return whether messages in a wrapper have offsets from 0, so a leader only sets the offset of the wrapper."""
    return cell.magic == 1 and cell.codec != "none"


def _at_offsets(cell: Cell, batches: Sequence[Sequence[Row]]) -> Iterator[Json]:
    offset = 0
    for rows in batches:
        yield batch_of(rows, 0 if is_relative(cell) else offset, cell.codec, magic=cell.magic)
        offset += len(rows)


def produced_by(producer_id: int, sequence: int) -> Json:
    """Return the fields of a batch by which a broker knows its producer."""
    return {"producerId": str(producer_id), "producerEpoch": 0, "baseSequence": sequence}


def _transactional(cell: Cell, batches: Sequence[Sequence[Row]], producer_id: int) -> Iterator[Json]:
    offset = 0
    for number, rows in enumerate(batches):
        fields = produced_by(producer_id, number * BATCH_RECORDS) | {"isTransactional": True}
        yield batch_of(rows, offset, cell.codec, **fields)
        offset += len(rows)
        if (number + 1) % BATCHES_OF_TRANSACTION == 0 or number + 1 == len(batches):
            marker = Row(COMMIT_KEY, COMMIT_VALUE, rows[-1].timestamp_ms)
            yield batch_of([marker], offset, "none", **fields, isControl=True) | {"baseSequence": -1}
            offset += 1


def with_superseded(batches: Sequence[Sequence[Row]]) -> list[list[Row]]:
    """Return the batches with older records between theirs, whose keys come again in the next batch."""
    found = []
    for number, rows in enumerate(batches):
        following = batches[number + 1] if number + 1 < len(batches) else ()
        older = [Row(row.key, b"superseded", 0) for row in following[::LIVE_TO_SUPERSEDED]]
        mixed = []
        for index, row in enumerate(rows):
            if index % LIVE_TO_SUPERSEDED == 0 and older:
                mixed.append(older.pop()._replace(timestamp_ms=row.timestamp_ms))
            mixed.append(row)
        found.append(mixed)
    return found

"""End markers of transactions in control batches (chapter 32)."""

from __future__ import annotations

import io
from dataclasses import dataclass
from typing import Final

from seglog_algorithms.damage import Damage
from seglog_algorithms.entries import NO_PRODUCER, Entry
from seglog_algorithms.records import NO_CODEC, Decompress, first_record, parsed, records_of
from seglog_format.schema.control_record import ControlRecordKey, EndTransactionMarker

ABORT: Final = 0
COMMIT: Final = 1


@dataclass(frozen=True, slots=True)
class Marker:
    """The end of a transaction.

    Attributes:
        type: `ABORT` or `COMMIT`.
        coordinator_epoch: of the transaction coordinator that wrote it.
        timestamp_ms: of the record.
    """

    type: int
    coordinator_epoch: int
    timestamp_ms: int


def marker_of(entry: Entry, decompress: Decompress) -> Marker | None:
    """Return the end marker in an entry. Its checksum is not checked.

    Raises:
        Damage: the control record of a producer cannot be read.
    """
    if not entry.is_control or entry.producer_id <= NO_PRODUCER:  # SEG-LKP-016
        return None
    if entry.header.records_count == 0:  # SEG-CTL-007
        return None
    if entry.header.records_count > 1 and entry.codec == NO_CODEC:
        record = first_record(entry)
    else:
        record = records_of(entry, decompress)[0]
    type_ = control_type(record.key, entry.position)
    if type_ not in {ABORT, COMMIT}:  # SEG-CTL-003
        return None
    if record.value is None:  # SEG-CTL-004
        raise Damage("SEG-CTL-004", entry.position, "null value")
    value = parsed(EndTransactionMarker, io.BytesIO(record.value), entry.position)  # SEG-CTL-004
    return Marker(type_, value.coordinatorEpoch, record.timestamp_ms)


def control_type(key: bytes | None, at: int = -1) -> int:
    """Return the type in the key of a control record; a version above 0 is read as 0 (SEG-CTL-002)."""
    if key is None:  # SEG-CTL-001
        raise Damage("SEG-CTL-001", at, "null key")
    return int(parsed(ControlRecordKey, io.BytesIO(key), at).type)

"""End markers of transactions in control batches of producers (chapter 32)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from seglog_format.codec.control_record import controls_of, decode_control_record
from seglog_format.codec.decode import decode_marker
from seglog_format.model import END_MARKER_TYPES, NO_PRODUCER_ID

if TYPE_CHECKING:
    from seglog_format.codec.decoders import ControlReader
    from seglog_format.errors import Location
    from seglog_format.model import BatchHeader, ControlRecordType, Frame
    from seglog_format.record_model import Message, Record


@dataclass(frozen=True, slots=True)
class EndMarker:
    """The end of a transaction.

    Attributes:
        kind: `ABORT` or `COMMIT`.
        coordinator_epoch: of the transaction coordinator that wrote it.
        timestamp_ms: of the control record.
    """

    kind: ControlRecordType
    coordinator_epoch: int
    timestamp_ms: int


def _is_of_producer(header: BatchHeader) -> bool:
    """Return whether an entry is a control batch with a producer id; control batches of KRaft have none."""
    return header.is_control and header.producer_id > NO_PRODUCER_ID


def lacks_end_marker(header: BatchHeader, marker: EndMarker | None) -> bool:
    """Return whether a control batch of a producer has a record that is not an end marker."""
    return marker is None and _is_of_producer(header) and header.records_count != 0


def end_marker_of(frame: Frame, at: Location) -> EndMarker | None:
    """Read the end marker in an entry, as brokers do. The caller verifies the checksum.

    Args:
        frame: the entry.
        at: its location.

    Returns:
        None if the entry ends no transaction: it is not a control batch of a producer, compaction removed its
        record (SEG-CTL-007), or the record is of another type (SEG-CTL-003).

    Raises:
        FormatError: the control record cannot be read.
    """
    if not _is_of_producer(frame.header):
        return None
    record = decode_marker(frame, at=at)
    return None if record is None else marker_in(record, at, controls_of(frame))


def marker_in(record: Record | Message, at: Location, reader: ControlReader | None = None) -> EndMarker | None:
    """Read a control record as an end marker; None if it is of another type (SEG-CTL-003).

    Raises:
        FormatError: key or value does not fit its layout.
    """
    control = decode_control_record(record.key, record.value, at, reader)
    if control.type not in END_MARKER_TYPES:
        return None
    assert control.type is not None
    epoch = control.fields["coordinatorEpoch"]
    assert isinstance(epoch, int)
    return EndMarker(control.type, epoch, record.timestamp_ms)

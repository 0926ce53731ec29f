"""Decoders of control records (chapter 32): of keys and end markers by hand, of the values of KRaft by declaration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NoReturn

from seglog_format.codec.decode import decode_marker
from seglog_format.codec.framing import ControlReader, decoders_of
from seglog_format.errors import CorruptRecordError, Location
from seglog_format.layouts import CONTROL_RECORD_KEY_LAYOUT, END_TRANSACTION_MARKER_LAYOUT
from seglog_format.model import END_MARKER_TYPES, NO_PRODUCER_ID, ControlRecord, ControlRecordType
from seglog_format.schema.fixed_fields import CONTROL_RECORD_KEY, END_TRANSACTION_MARKER

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seglog_format.model import BatchHeader, Frame, Message, Record
    from seglog_format.packing import FixedLayout, Packer


VERSION_SIZE = 2
EARLY_LEADER_CHANGE_TYPE = 3
"""Type of LEADER_CHANGE in Kafka 2.8, which wrote no other control records into its metadata log."""


def controls_of(frame: Frame) -> ControlReader:
    """Return the parsers of the control records of an entry."""
    decoders = decoders_of(frame)
    return PLAIN if decoders is None else decoders.controls


def decode_control_record(
    key: bytes | None, value: bytes | None, at: Location, reader: ControlReader | None = None
) -> ControlRecord:
    """Decode a record of a batch whose control bit is set.

    Args:
        key: of the record: version and type.
        value: of the record.
        at: location of the record; positions in errors are relative to the start of its key or value.
        reader: parses keys and end markers; None for that of the plain engine. Declarations parse values of KRaft.

    Returns:
        The record; without fields if its type is unknown (SEG-CTL-003).

    Raises:
        CorruptRecordError: the key (SEG-CTL-001) or the value (SEG-CTL-004, SEG-CTL-006) does not fit its layout.
    """
    reader = reader or PLAIN
    version, type_id = _key(key, at, reader)
    kind = ControlRecordType(type_id) if type_id in set(ControlRecordType) else None
    fields = {} if kind is None else _fields(kind, value, _part(at, "value"), reader)
    return ControlRecord(version, type_id, kind, fields)


def hidden_data(frame: Frame, records: Iterable[Record | Message], at: Location) -> CorruptRecordError | None:
    """Return the error of a key that no control record has (SEG-CTL-001), if an entry has a control bit and such a key.

    Readers leave out the records of the entry, which may be data.
    """
    try:
        for number, record in enumerate(records if frame.header.is_control else ()):
            _key(record.key, at.at(f"records[{number}]"), controls_of(frame))
    except CorruptRecordError as error:
        return error
    return None


def _key(key: bytes | None, at: Location, reader: ControlReader) -> tuple[int, int]:
    if key is None:
        raise CorruptRecordError(_part(at, "key"), "SEG-CTL-001", expected="version and type", found="null")
    return reader.key(key, _part(at, "key"))


def decode_early_control_record(key: bytes | None, value: bytes | None, at: Location) -> ControlRecord:
    """Decode a control record of the metadata log of Kafka 2.8, where type 3 is LEADER_CHANGE (SEG-CTL-008).

    Args:
        key: of the record: version and type.
        value: of the record, in the layout of that release.
        at: location of the record, as of `decode_control_record`.

    Raises:
        CorruptRecordError: the key (SEG-CTL-001) or the value (SEG-CTL-006) does not fit its layout.
    """
    from seglog_format.codec.protocol import decode_message  # noqa: PLC0415 - loads the declarations
    from seglog_format.schema.control_record import EARLY_LEADER_CHANGE  # noqa: PLC0415 - as above

    version, type_id = PLAIN.key(key or b"", _part(at, "key"))
    if type_id != EARLY_LEADER_CHANGE_TYPE:
        return ControlRecord(version, type_id, None, {})
    fields = decode_message(EARLY_LEADER_CHANGE, 0, value or b"", _part(at, "value"))
    return ControlRecord(version, type_id, ControlRecordType.LEADER_CHANGE, fields)


def _part(at: Location, name: str) -> Location:
    return at.at(f"{at.field}.{name}" if at.field else name)


def _fields(kind: ControlRecordType, value: bytes | None, at: Location, reader: ControlReader) -> dict[str, object]:
    return _marker(value, at, reader) if kind in END_MARKER_TYPES else _kraft_value(kind, value, at)


def _marker(value: bytes | None, at: Location, reader: ControlReader) -> dict[str, object]:
    if value is None:
        raise CorruptRecordError(at, "SEG-CTL-004", expected="version and coordinator epoch", found="null")
    version, epoch = reader.marker(value, at)
    return {"version": version, "coordinatorEpoch": epoch}


def _kraft_value(kind: ControlRecordType, value: bytes | None, at: Location) -> dict[str, object]:
    """Decode a KRaft value; versions above the known ones are read as the latest of them (SEG-CTL-012)."""
    from seglog_format.codec.protocol import decode_message  # noqa: PLC0415 - loads the declarations
    from seglog_format.schema.control_record import KRAFT_VALUES  # noqa: PLC0415 - as above

    definition = KRAFT_VALUES[kind]
    if value is None:
        raise CorruptRecordError(at, "SEG-CTL-006", expected=definition.name, found="null")
    version = int.from_bytes(value[:VERSION_SIZE], "big", signed=True)
    return decode_message(definition, min(max(version, 0), definition.latest), value, at)


# -- end markers of transactions in control batches of producers (chapter 32) ------------------------------------------


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


# -- hand-written parsers of keys of control records and of end markers (chapter 32) ----------------------------------


def read_key(key: bytes, at: Location) -> tuple[int, int]:
    """Return version and type id of a control record.

    Raises:
        CorruptRecordError: it is cut short, or the version is negative (SEG-CTL-001).
    """
    return _versioned(CONTROL_RECORD_KEY, CONTROL_RECORD_KEY_LAYOUT, key, at, "SEG-CTL-001")


def read_marker(value: bytes, at: Location) -> tuple[int, int]:
    """Return version and coordinator epoch of an end marker.

    Raises:
        CorruptRecordError: it is cut short, or the version is negative (SEG-CTL-004).
    """
    return _versioned(END_TRANSACTION_MARKER, END_TRANSACTION_MARKER_LAYOUT, value, at, "SEG-CTL-004")


def _versioned(packer: Packer, layout: FixedLayout, data: bytes, at: Location, requirement: str) -> tuple[int, int]:
    if len(data) < packer.size:
        _refuse_cut_short(layout, data, at, requirement)
    version, other = packer.unpack_from(data)
    if version < 0:
        _refuse_version(layout, data, at, requirement)
    return version, other


def _refuse_cut_short(layout: FixedLayout, data: bytes, at: Location, requirement: str) -> NoReturn:
    for name in layout.codes:
        if layout.end(name) > len(data):
            found = f"the end after {len(data) - layout.position(name)}"
            raise CorruptRecordError(_field(layout, name, data, at), requirement, expected="more bytes", found=found)
        if name == "version":
            _refuse_version(layout, data, at, requirement)
    raise AssertionError


def _refuse_version(layout: FixedLayout, data: bytes, at: Location, requirement: str) -> None:
    version = layout.slot("version").read(data)
    if version < 0:
        at = _field(layout, "version", data, at)
        raise CorruptRecordError(at, requirement, expected="a version of 0 or more", found=version)


def _field(layout: FixedLayout, name: str, data: bytes, at: Location) -> Location:
    start = layout.position(name)
    return at.at(f"{at.field}.{name}" if at.field else name, start, len(data) - start)


PLAIN: Final = ControlReader(read_key, read_marker)

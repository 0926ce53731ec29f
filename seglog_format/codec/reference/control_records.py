"""Parsers of keys of control records and of end markers by their declarations (chapter 32)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seglog_format.codec.decoders import ControlReader
from seglog_format.codec.parse import parse
from seglog_format.schema.control_record import ControlRecordKey, EndTransactionMarker

if TYPE_CHECKING:
    from seglog_format.errors import Location


def read_key(key: bytes, at: Location) -> tuple[int, int]:
    """Return version and type id of a control record.

    Raises:
        CorruptRecordError: it is cut short, or the version is negative (SEG-CTL-001).
    """
    found = parse(ControlRecordKey, key, at, requirement="SEG-CTL-001")
    return found.version, found.type


def read_marker(value: bytes, at: Location) -> tuple[int, int]:
    """Return version and coordinator epoch of an end marker.

    Raises:
        CorruptRecordError: it is cut short, or the version is negative (SEG-CTL-004).
    """
    found = parse(EndTransactionMarker, value, at, requirement="SEG-CTL-004")
    return found.version, found.coordinatorEpoch


BY_DECLARATION: Final = ControlReader(read_key, read_marker)

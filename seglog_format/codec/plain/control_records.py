"""Hand-written parsers of keys of control records and of end markers (chapter 32)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NoReturn

from seglog_format.codec.decoders import ControlReader
from seglog_format.errors import CorruptRecordError
from seglog_format.layouts import CONTROL_RECORD_KEY_LAYOUT, END_TRANSACTION_MARKER_LAYOUT
from seglog_format.schema.fixed_fields import CONTROL_RECORD_KEY, END_TRANSACTION_MARKER

if TYPE_CHECKING:
    from seglog_format.errors import Location
    from seglog_format.packing import FixedLayout, Packer


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

"""Conversions between the package's values and the protocol's."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from seglog_format.errors import FormatError, OffsetOutOfRangeError, RefusedError, SeglogError

if TYPE_CHECKING:
    from seglog_conformance.protocol import Json

LONG: Final = frozenset(
    {
        "baseOffset",
        "lastOffset",
        "nextOffset",
        "baseTimestamp",
        "maxTimestamp",
        "deleteHorizonMs",
        "producerId",
        "offset",
        "timestamp",
        "firstOffset",
        "lastStableOffset",
        "lastTimestamp",
        "currentTxnFirstOffset",
        "timestampDelta",
        "entries",
        "startOffset",
        "logStartOffset",
        "segments",
    }
)
"""Fields of 64 bits, which are decimal strings in the protocol."""

NOT_ON_WIRE: Final = frozenset({"type", "file"})
"""Fields of the package's lines that answers do not have."""


def wire(line: Json) -> Json:
    """Return a line of the package's JSON output in the format of an answer."""
    return {name: _value(name, value) for name, value in line.items() if name not in NOT_ON_WIRE}


def _value(name: str, value: Any) -> Any:  # noqa: ANN401 - any JSON value
    match value:
        case bool():
            return value
        case int() if name in LONG:
            return str(value)
        case dict():
            return wire(value)
        case list() if name != "headers":
            return [_value(name, item) for item in value]
        case _:
            return value


REQUIREMENT: Final = re.compile(r"SEG-[A-Z]{3}-[0-9]{3}")
CLASSES: Final = {
    "SEG-BAT-002": "length",
    "SEG-BAT-003": "crc",
    "SEG-BAT-004": "magic",
    "SEG-BAT-005": "offset",
    "SEG-BAT-006": "offset",
    "SEG-BAT-007": "count",
    "SEG-BAT-008": "count",
    "SEG-BAT-009": "offset",
    "SEG-COD-016": "limit",
    "SEG-LOG-003": "length",
    "SEG-MSG-004": "crc",
    "SEG-MSG-016": "crc",
    "SEG-REC-004": "varint",
    "SEG-REC-005": "varint",
}
AREAS: Final = {
    "APP": "policy",
    "BAT": "attributes",
    "CKP": "text",
    "COD": "compression",
    "CTL": "control",
    "IDX": "index",
    "LDR": "text",
    "LKP": "offset",
    "LOG": "length",
    "MSG": "length",
    "PDR": "name",
    "PSN": "index",
    "REC": "length",
    "TIX": "index",
    "TXN": "index",
}


def _requirement_of(error: SeglogError) -> str:
    """Return the rule of a refusal: of invalid bytes the first rule, of a wrong use the one in its text."""
    if isinstance(error, FormatError):
        return error.requirements[0]
    if isinstance(error, OffsetOutOfRangeError):
        return "SEG-LKP-004"
    return requirement_in(str(error))


def requirement_in(text: str) -> str:
    """Return the first requirement id in a text; empty if there is none."""
    named = REQUIREMENT.search(text)
    return named.group() if named else ""


def rejection(error: SeglogError) -> Json:
    """Return a refusal in the format of the protocol."""
    reject: Json = {"class": "policy", "message": str(error), "error": type(error).__name__}
    if isinstance(error, FormatError):
        first = error.requirements[0]
        reject["class"] = CLASSES.get(first, AREAS.get(first[4:7], "other"))
        reject["at"] = error.location.position
    requirement = _requirement_of(error)
    if requirement:
        reject["requirement"] = requirement
    if isinstance(error, RefusedError):
        reject["class"] = "limit"
    return {"ok": False, "reject": reject}

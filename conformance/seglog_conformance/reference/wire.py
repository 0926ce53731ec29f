"""Between the package's values and what crosses the wire."""

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
"""Fields of 64 bits: decimal strings on the wire."""

NOT_ON_WIRE: Final = frozenset({"type", "file"})
"""What lines of files say and answers do not."""


def wire(line: Json) -> Json:
    """Return a line of the JSON vocabulary as an answer has it."""
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
    """Return the rule that a refusal rests on: of broken bytes the first, of a use the one that its text names."""
    if isinstance(error, FormatError):
        return error.requirements[0]
    if isinstance(error, OffsetOutOfRangeError):
        return "SEG-LKP-004"
    return requirement_in(str(error))


def requirement_in(text: str) -> str:
    """Return the first id of a requirement in a text; empty where there is none."""
    named = REQUIREMENT.search(text)
    return named.group() if named else ""


def rejection(error: SeglogError) -> Json:
    """Return a refusal as the protocol has it."""
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

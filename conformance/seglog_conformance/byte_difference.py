"""The first difference of two encodings, described by the field at that position."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seglog_conformance.verdicts import Difference
from seglog_format.errors import FormatError
from seglog_format.inspection.entries import entry_blocks

if TYPE_CHECKING:
    from seglog_format.inspection.entries import Field

FOLLOWING: Final = frozenset({"crc", "batch_length", "message_size"})
"""Fields whose values follow from other bytes: they differ wherever another field does."""
MAX_BYTES: Final = 16
"""Number of bytes to show if no field is known, or the field is long."""


def byte_difference(name: str, expected: str, found: str) -> Difference:
    """Return the first position at which two encodings differ: the field there, with its value and bytes in each.

    A size or a checksum, which follows from the other bytes, is named only if no other field differs.

    Args:
        name: name of the bytes.
        expected: hex.
        found: hex of other bytes.
    """
    one, other = bytes.fromhex(expected), bytes.fromhex(found)
    shorter = min(len(one), len(other))
    differing = [at for at in range(shorter) if one[at] != other[at]]
    named = {at: field.name for field in _fields_of(one) if field.name in FOLLOWING for at in _positions(field)}
    causes = [at for at in differing if at not in named]
    position = next(iter(causes or differing), shorter)
    fields = [_field_at(data, position) for data in (one, other)]
    label = next((f" ({field.name})" for field in fields if field is not None), "")
    texts = [_shown(data, field, position) for data, field in zip((one, other), fields, strict=True)]
    return Difference(f"{name} from byte {position} of {len(one)}{label}", *texts)


def nearest_part(name: str, wanted: str, found: str) -> Difference:
    """Return the difference after the longest prefix of the expected bytes that occurs anywhere in the other bytes."""
    length = next(size for size in range(len(wanted), -1, -2) if wanted[:size] in found)
    start = found.find(wanted[:length]) + length
    sizes = slice(length, length + 2 * MAX_BYTES), slice(start, start + 2 * MAX_BYTES)
    texts = (wanted[sizes[0]], found[sizes[1]] or "the end")
    return Difference(f"{name} from byte {start // 2}, after {length // 2} right bytes of a part", *texts)


def _field_at(data: bytes, position: int) -> Field | None:
    """Return the smallest field that holds a position; None if the bytes cannot be parsed."""
    holding = [field for field in _fields_of(data) if position in _positions(field)]
    return min(holding, key=lambda field: field.end - field.start, default=None)


def _positions(field: Field) -> range:
    return range(field.start, field.end)


def _fields_of(data: bytes) -> list[Field]:
    """Return the fields of the first entry that are no groups; none if the bytes cannot be parsed."""
    try:
        blocks, _ = entry_blocks(memoryview(data), name="data", start=0, count=None)
    except FormatError:
        return []
    return [field for field in blocks[0].fields if not field.is_group]


def _shown(data: bytes, field: Field | None, position: int) -> str:
    """Return a value with its bytes, or the bytes alone."""
    if field is None:
        return data[position : position + MAX_BYTES].hex() or "the end"
    text = data[field.start : field.end].hex()
    is_number = isinstance(field.value, int)
    return f"{field.value} ({text})" if is_number else data[position : min(field.end, position + MAX_BYTES)].hex()

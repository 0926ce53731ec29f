"""Damage of a generated partition, done after all its files are written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seglog_format.codec.framing import walk
from seglog_format.errors import UsageError
from seglog_format.generation.recipe_model import FAULT
from seglog_format.layouts import MESSAGE_V0_HEADER_LAYOUT, MESSAGE_V1_HEADER_LAYOUT, RECORD_BATCH_HEADER_LAYOUT
from seglog_format.names import FileKind, segment_file_name
from seglog_format.schema.fixed_fields import MAGIC_POSITION, OFFSET_INDEX_ENTRY
from seglog_format.storage.files import LOCAL_FILES, write_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from seglog_format.generation.recipe_model import Fault, SeededRandom

CRC_POSITIONS: Final = {
    0: MESSAGE_V0_HEADER_LAYOUT.position("crc"),
    1: MESSAGE_V1_HEADER_LAYOUT.position("crc"),
    2: RECORD_BATCH_HEADER_LAYOUT.position("crc"),
}
"""Byte position of the checksum of an entry, by magic."""

FLIPPED: Final = 0xFF
MISSING_INDEX: Final = "missing-index"


def apply_fault(partition: Path, fault: Fault, rng: SeededRandom) -> Path:
    """Damage a partition.

    Args:
        partition: its directory.
        fault: the kind of damage.
        rng: random numbers, for random bytes.

    Returns:
        The path of the damaged file.

    Raises:
        UsageError: the partition has no such batch, byte or index.
    """
    logs = sorted(partition.glob("*.log"))
    if fault.kind == "crc@batch":
        return _damage_crc(logs, fault)
    if fault.kind == MISSING_INDEX or fault.kind in INDEX_DAMAGE:
        return _damage_index(logs[-1], fault)
    data = logs[-1].read_bytes()
    write_file(LOCAL_FILES, logs[-1], LOG_DAMAGE[fault.kind](data, fault, rng))
    return logs[-1]


def _damage_crc(logs: list[Path], fault: Fault) -> Path:
    """Damage the checksum of one entry, counted from 0 through all segments."""
    left = fault.number
    for log in logs:
        data = bytearray(log.read_bytes())
        positions = [frame.position for frame in walk(bytes(data))]
        if left < len(positions):
            start = positions[left]
            data[start + CRC_POSITIONS[data[start + MAGIC_POSITION]]] ^= FLIPPED
            write_file(LOCAL_FILES, log, data)
            return log
        left -= len(positions)
    raise _refused(fault, "the partition has fewer batches")


def _refused(fault: Fault, reason: str) -> UsageError:
    return UsageError(f"fault {fault.text!r}: {reason}")


def _truncated(data: bytes, fault: Fault, _rng: SeededRandom) -> bytes:
    _check_size(data, fault)
    return data[: fault.number]


def _cut_short(data: bytes, fault: Fault, _rng: SeededRandom) -> bytes:
    _check_size(data, fault)
    return data[: len(data) - fault.number]


def _flipped(data: bytes, fault: Fault, _rng: SeededRandom) -> bytes:
    _check_size(data, fault, least=1)
    changed = bytearray(data)
    changed[fault.number] ^= FLIPPED
    return bytes(changed)


def _check_size(data: bytes, fault: Fault, least: int = 0) -> None:
    if fault.number > len(data) - least:
        reason = f"the last segment has {len(data)} bytes"
        raise _refused(fault, reason)


def _with_zeros(data: bytes, fault: Fault, _rng: SeededRandom) -> bytes:
    return data + bytes(fault.number)


def _with_junk(data: bytes, fault: Fault, rng: SeededRandom) -> bytes:
    return data + rng.data(fault.number)


LOG_DAMAGE: Final[dict[str, Callable[[bytes, Fault, SeededRandom], bytes]]] = {
    "truncate@byte": _truncated,
    "truncate@last": _cut_short,
    "flip@byte": _flipped,
    "zero-tail": _with_zeros,
    "junk-tail": _with_junk,
}


def _damage_index(log: Path, fault: Fault) -> Path:
    base_offset = int(log.stem)
    index = log.with_name(segment_file_name(base_offset, FileKind.OFFSET_INDEX))
    if not index.is_file():
        raise _refused(fault, "the last segment has no offset index")
    if fault.kind == MISSING_INDEX:
        LOCAL_FILES.remove(index)
    else:
        write_file(LOCAL_FILES, index, INDEX_DAMAGE[fault.kind](index.read_bytes(), log, fault))
    return index


def _stale(data: bytes, log: Path, _fault: Fault) -> bytes:
    """Return an index as if the log had been longer before: its last entry points beyond the log's end."""
    last_offset = max((frame.header.last_offset for frame in walk(log.read_bytes())), default=int(log.stem))
    used = data.rstrip(b"\0")
    size = -(-len(used) // OFFSET_INDEX_ENTRY.size) * OFFSET_INDEX_ENTRY.size
    return data[:size] + OFFSET_INDEX_ENTRY.pack(last_offset + 1 - int(log.stem), log.stat().st_size)


def _with_zero_slots(data: bytes, _log: Path, fault: Fault) -> bytes:
    return data + bytes(fault.number * OFFSET_INDEX_ENTRY.size)


INDEX_DAMAGE: Final[dict[str, Callable[[bytes, Path, Fault], bytes]]] = {
    "stale-index": _stale,
    "zero-index-tail": _with_zero_slots,
}


def fault_forms() -> list[str]:
    """Return the faults as recipes write them, with N for a number; an optional number is in square brackets."""
    return sorted(_form(kind) for kind in ("crc@batch", MISSING_INDEX, *LOG_DAMAGE, *INDEX_DAMAGE))


def _form(kind: str) -> str:
    if not FAULT.fullmatch(f"{kind}:1"):
        return kind
    return f"{kind}[:N]" if FAULT.fullmatch(kind) else f"{kind}:N"

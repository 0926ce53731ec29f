"""Indexes, producer snapshots and text files with all their fields."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from construct import Array, Struct

from seglog_format.codec.checksum import crc32c
from seglog_format.codec.producer_snapshot import CHECKED_POSITION
from seglog_format.inspection.fields import Block, Field, fields_of
from seglog_format.inspection.notes import time_note
from seglog_format.lines.sources import SourceKind
from seglog_format.names import OFFSET_CHECKPOINT_KINDS, FileKind
from seglog_format.schema.checkpoints import LeaderEpochCheckpoint, OffsetCheckpoint, PartitionMetadata
from seglog_format.schema.fields import Doc
from seglog_format.schema.offset_index import OffsetIndexEntry
from seglog_format.schema.producer_snapshot import ProducerSnapshot
from seglog_format.schema.time_index import TimeIndexEntry
from seglog_format.schema.tracing import trace
from seglog_format.schema.transaction_index import TransactionIndexEntry

if TYPE_CHECKING:
    from collections.abc import Callable

    from construct import Construct

SLOTS: Final[dict[SourceKind, tuple[Construct, str]]] = {
    SourceKind.OFFSET_INDEX: (OffsetIndexEntry, "SEG-IDX-001"),
    SourceKind.TIME_INDEX: (TimeIndexEntry, "SEG-TIX-001"),
    SourceKind.TRANSACTION_INDEX: (TransactionIndexEntry, "SEG-TXN-001"),
}

TEXTS: Final[dict[str, Construct]] = {
    FileKind.LEADER_EPOCH_CHECKPOINT.value: LeaderEpochCheckpoint,
    FileKind.PARTITION_METADATA.value: PartitionMetadata,
    **dict.fromkeys((kind.value for kind in OFFSET_CHECKPOINT_KINDS), OffsetCheckpoint),
}
"""Declarations of text files, by name."""


def slots_block(
    kind: SourceKind, data: memoryview, *, base_offset: int, first: int, count: int | None
) -> tuple[Block, int]:
    """Return slots of an index file.

    Args:
        kind: of the index.
        data: the whole file.
        base_offset: of its segment.
        first: first slot to show.
        count: number of slots to show; None for all slots, with the zeros at the end as one field.

    Returns:
        The block, and the position after it.
    """
    declaration, requirement = SLOTS[kind]
    size = declaration.sizeof()
    end = _end_of_slots(data, size) if count is None else min(first + count, len(data) // size)
    doc = Doc("Entries, one after the other.", requirement)
    part = data[first * size : end * size]
    traced = trace(Struct("entries" / Array(end - first, declaration) * doc), part)
    fields = fields_of(traced.spans, shift=0, depth=0, note=_slot_note(base_offset))
    shown = end * size
    if count is None and shown < len(data):
        rest = len(data) - shown
        zeros = f"{rest // size} slots of zeros" if rest >= size else f"{rest} bytes that are no whole slot"
        fields.append(Field("tail", len(part), len(part) + rest, note=zeros))
        part, shown = data[first * size :], len(data)
    return Block(f"bytes {first * size} to {shown}", part, first * size, fields), shown


def _end_of_slots(data: memoryview, size: int) -> int:
    """Return the number of slots up to the last one that is not zero."""
    whole = bytes(data[: len(data) // size * size])
    return -(-len(whole.rstrip(b"\0")) // size)


def _slot_note(base_offset: int) -> Callable[[str, object], str]:
    def note(name: str, value: object) -> str:
        if name.endswith("relative_offset") and isinstance(value, int):
            return f"offset {base_offset + value}"
        return time_note(name, value)

    return note


def snapshot_block(data: memoryview) -> Block:
    """Return a block with a whole producer snapshot."""
    traced = trace(ProducerSnapshot, data)
    stored = traced.value.crc if traced.value is not None else None
    computed = crc32c(data[CHECKED_POSITION:])

    def note(name: str, value: object) -> str:
        if name == "crc" and stored is not None:
            return "right" if stored == computed else f"WRONG: computed {computed:08x}"
        return time_note(name, value)

    fields = fields_of(traced.spans, shift=0, depth=0, note=note)
    block = Block(f"{len(data)} bytes", data, fields=fields)
    end = max((one.end for one in fields), default=0)
    if traced.error is not None:
        block.problems.append("the snapshot ends inside an entry [SEG-PSN-003]")
    elif end < len(data):
        fields.append(Field("left over", end, len(data), value=bytes(data[end:]), failed=True))
        block.problems.append(f"{len(data) - end} bytes follow the last entry [SEG-PSN-003]")
    if stored is not None and stored != computed:
        block.problems.append(f"crc: expected {computed:08x}, found {stored:08x} [SEG-PSN-002]")
    return block


def text_block(data: memoryview, name: str) -> Block:
    """Return a block with a text file: its fields if its name is that of a checkpoint and it is valid, else its lines.

    Args:
        data: the whole file.
        name: of the file, which may have directories before it.
    """
    declaration = TEXTS.get(name.rpartition("/")[2])
    traced = None if declaration is None else trace(declaration, data)
    if traced is None or traced.error is not None:
        return Block(f"{len(data)} bytes", data, fields=_lines(data))
    return Block(f"{len(data)} bytes", data, fields=fields_of(traced.spans, shift=0, depth=0, note=_no_note))


def _no_note(_name: str, _value: object) -> str:
    return ""


def _lines(data: memoryview) -> list[Field]:
    fields, start = [], 0
    for number, line in enumerate(bytes(data).splitlines(keepends=True), 1):
        fields.append(Field(f"line {number}", start, start + len(line), value=line.rstrip(b"\r\n")))
        start += len(line)
    return fields

"""The entries of a log with all their fields: batches, messages, and their decompressed content."""

from __future__ import annotations

from contextlib import suppress
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Final

from construct import Array, Struct

from seglog_format.codec.compression import decompress
from seglog_format.codec.decode import computed_crc, decode_frame
from seglog_format.codec.framing import walk
from seglog_format.codec.reference import declared
from seglog_format.errors import FormatError, Location, RefusedError
from seglog_format.inspection.fields import Block, Field, fields_of, mark_groups
from seglog_format.inspection.notes import RecordNotes, entry_note, time_note
from seglog_format.model import Frame, RecordBatchHeader, TailKind
from seglog_format.schema.fields import Doc
from seglog_format.schema.fixed_fields import MAGIC_POSITION, RECORD_BATCH_HEADER_SIZE
from seglog_format.schema.message_set import MESSAGES
from seglog_format.schema.record import Record as RecordSchema
from seglog_format.schema.record_batch import (
    RecordBatchHeader as RecordBatchHeaderSchema,
)
from seglog_format.schema.tracing import Trace, trace

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_format.model import BatchHeader, Tail
    from seglog_format.storage.byte_source import ByteSource, Readable

DECLARATIONS: Final = {0: MESSAGES[0], 1: MESSAGES[1], 2: RecordBatchHeaderSchema}
MAX_PREFIX_SIZE: Final = 1 << 20
"""Maximum bytes shown of an entry that is truncated or invalid."""

MAX_REST_SIZE: Final = 1 << 20
"""Maximum bytes shown after the last entry; a preallocated or damaged log may end in gigabytes of such bytes."""

MAX_SHOWN_SIZE: Final = 1 << 20
"""Maximum bytes of records shown field by field; of a larger batch only the header and the size are shown."""

COMPRESSED: Final = Doc("Compressed: the decompressed bytes are shown below.", "SEG-COD-001")
TOO_LARGE: Final = f"more than {MAX_SHOWN_SIZE:,} bytes, not shown here"
RECORDS: Final = Doc("The records, one after the other.", "SEG-BAT-008")


def entry_blocks(data: Readable, *, name: str, start: int, count: int | None) -> tuple[list[Block], int]:
    """Return entries of a log as blocks.

    Args:
        data: bytes of the log.
        name: of the file, for problem texts.
        start: position of the first entry to show.
        count: number of entries to show; None for all entries, and the bytes after the last.

    Returns:
        A block with the entries, one with the content of each compressed entry, and the position after the last
        entry shown.
    """
    source = declared(data)
    block = Block("", memoryview(b""), start)
    derived: list[Block] = []
    frames = walk(source, start, path=name)
    shown = 0
    try:
        for frame in islice(frames, count):
            derived += _add_entry(block, frame, name)
            frames.position = frame.end
            shown += 1
    except FormatError as problem:
        _add_unreadable(block, source, frames.position, str(problem))
        end, rest_size = source.size, source.size - frames.position
    else:
        end, rest_size = frames.position, 0
        if (count is None or shown < count) and frames.tail.size:
            _add_tail(block, source, frames.tail)
            end, rest_size = source.size, frames.tail.size
    if not shown:
        block.problems += _enclosing_entry(source, start, name)
    block.data = source.view(start, frames.position + min(rest_size, MAX_REST_SIZE))
    block.title = f"bytes {start} to {end} of {name}"
    mark_groups(block.fields)
    return [block, *derived], end


def _enclosing_entry(source: ByteSource, position: int, name: str) -> Iterator[str]:
    """Yield a text with the entry that a position is inside of; nothing if it is between entries, or after damage."""
    with suppress(FormatError):
        frame = next((one for one in walk(source, path=name) if one.end > position), None)
        if frame is not None and frame.position < position:
            yield f"position {position} is inside the {_kind(frame)} at {frame.position}, which ends at {frame.end}"


def _kind(frame: Frame) -> str:
    return "batch" if isinstance(frame.header, RecordBatchHeader) else "message"


def _add_entry(block: Block, frame: Frame, name: str) -> list[Block]:
    """Add an entry's fields to the block; return blocks with its decompressed content."""
    at = frame.position - block.position
    block.fields.append(
        Field(f"{_kind(frame)} @{frame.position}", at, at + frame.header.size_in_bytes, note=_offsets(frame))
    )
    problem = _problem(frame, name)
    if problem:
        block.problems.append(problem)
        block.fields[-1].failed = True
    computed = computed_crc(frame)
    traced = trace(DECLARATIONS[frame.header.magic], frame.data)
    block.fields += fields_of(
        traced.spans, shift=at, depth=1, note=lambda name, value: entry_note(name, value, frame.header, computed)
    )
    _mark_failed(block.fields, "crc", failed=computed != frame.header.crc)
    return _add_content(block, frame, traced)


def _offsets(frame: Frame) -> str:
    header = frame.header
    if header.base_offset is None:
        return f"wrapper up to offset {header.last_offset}"
    if header.base_offset == header.last_offset:
        return f"offset {header.last_offset}"
    return f"offsets {header.base_offset} to {header.last_offset}"


def _problem(frame: Frame, name: str) -> str:
    try:
        decode_frame(frame, at=Location(name, frame.position))
    except FormatError as problem:
        return str(problem)
    return ""


def _mark_failed(fields: list[Field], name: str, *, failed: bool) -> None:
    """Mark the last field of that name as failed."""
    next(one for one in reversed(fields) if one.name == name).failed = failed


def _add_content(block: Block, frame: Frame, traced: Trace) -> list[Block]:
    """Add the records after the header to the block, or return separate blocks with their decompressed content."""
    header, at = frame.header, frame.position - block.position
    if not isinstance(header, RecordBatchHeader):
        return _wrapped(frame, traced) if header.codec_id else []
    stored = frame.data[RECORD_BATCH_HEADER_SIZE:]
    start, end = at + RECORD_BATCH_HEADER_SIZE, at + header.size_in_bytes
    if header.codec_id == 0 and len(stored) <= MAX_SHOWN_SIZE:
        block.fields += _records(stored, header, shift=start, depth=1)
        return []
    doc, note = (COMPRESSED, "compressed") if header.codec_id else (RECORDS, TOO_LARGE)
    block.fields.append(Field("records", start, end, 1, bytes(stored), note, doc, doc.requirements))
    if header.codec_id == 0:
        return []
    return _decompressed(stored, header, f"records of batch @{frame.position}")


def _wrapped(frame: Frame, traced: Trace) -> list[Block]:
    value = traced.value.value if traced.value is not None else None
    return (
        []
        if value is None
        else _decompressed(memoryview(value), frame.header, f"messages in message @{frame.position}")
    )


def _decompressed(stored: memoryview, header: BatchHeader, title: str) -> list[Block]:
    """Return a block with the decompressed content; none if decompression fails, which is already reported."""
    try:
        data = decompress(header.codec_id, stored, magic=header.magic, at=Location(title), limit=MAX_SHOWN_SIZE)
    except RefusedError:
        return [Block(f"{title}, decompressed: {TOO_LARGE}", memoryview(b""), is_derived=True)]
    except FormatError:
        return []
    view = memoryview(data)
    fields = _records(view, header, shift=0, depth=0) if isinstance(header, RecordBatchHeader) else _messages(view)
    mark_groups(fields)
    return [Block(f"{title}, decompressed: {len(view)} bytes", view, fields=fields, is_derived=True)]


def _records(data: memoryview, header: RecordBatchHeader, *, shift: int, depth: int) -> list[Field]:
    """Return the fields of consecutive records, and of the bytes after them."""
    traced = trace(_records_declaration(max(header.records_count, 0)), data)
    fields = fields_of(traced.spans, shift=shift, depth=depth, note=RecordNotes(header))
    end = max((one.end for one in fields), default=shift)
    if traced.error is None and end < shift + len(data):
        rest = bytes(data[end - shift :])
        fields.append(Field("left over", end, shift + len(data), depth, rest, "beyond the last record", failed=True))
    return fields


@lru_cache(maxsize=256)
def _records_declaration(count: int) -> Struct:
    """Return a declaration of a number of records; cached, because making its traced copy costs more than its use."""
    return Struct("records" / Array(count, RecordSchema) * RECORDS)


def _messages(data: memoryview) -> list[Field]:
    """Return the fields of messages inside a wrapper, each declared by its magic."""
    fields: list[Field] = []
    for index, (start, end, magic) in enumerate(_inner(data)):
        fields.append(Field(f"[{index}]", start, end))
        traced = trace(MESSAGES[magic], data[start:end])
        fields += fields_of(traced.spans, shift=start, depth=1, note=time_note)
    return fields


def _inner(data: memoryview) -> Iterator[tuple[int, int, int]]:
    """Yield start, end and magic of consecutive messages, up to the first truncated one."""
    start = 0
    while start + MAGIC_POSITION < len(data):
        size = int.from_bytes(data[start + 8 : start + 12], signed=True)
        magic = data[start + MAGIC_POSITION]
        end = start + 12 + size
        if size < 0 or end > len(data) or magic not in MESSAGES:
            return
        yield start, end, magic
        start = end


def _add_unreadable(block: Block, source: ByteSource, position: int, problem: str) -> None:
    """Add the readable fields of the prefix, at bytes that are not an entry."""
    at, end = position - block.position, source.size - block.position
    block.problems.append(problem)
    block.fields.append(Field("unreadable", at, end, note="no entry can be found from here on", failed=True))
    _add_prefix(block, at, source.view(position, position + MAX_PREFIX_SIZE))


def _add_prefix(block: Block, at: int, rest: memoryview) -> None:
    magic = rest[MAGIC_POSITION] if len(rest) > MAGIC_POSITION else 2
    traced = trace(DECLARATIONS.get(magic, RecordBatchHeaderSchema), rest)
    block.fields += fields_of(traced.spans, shift=at, depth=1, note=time_note)


def _add_tail(block: Block, source: ByteSource, tail: Tail) -> None:
    """Add the bytes after the last whole entry."""
    at = tail.position - block.position
    words = {TailKind.PARTIAL: "an entry that is cut short", TailKind.ZEROS: "zeros, as preallocation leaves them"}
    remark = words.get(tail.kind, "trailing bytes that readers ignore")
    block.fields.append(Field("tail", at, at + tail.size, note=remark, value=""))
    if tail.kind is TailKind.PARTIAL:
        _add_prefix(block, at, source.view(tail.position, tail.position + min(tail.size, MAX_PREFIX_SIZE)))

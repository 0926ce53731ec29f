"""The entries of a log with all their fields, positions and meanings: batches, messages, decompressed content."""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from itertools import islice, pairwise
from typing import TYPE_CHECKING, Final

from construct import Array, Struct

from seglog_format.codec.compression import decompress
from seglog_format.codec.control_record import decode_control_record
from seglog_format.codec.decode import computed_crc, decode_frame
from seglog_format.codec.framing import walk
from seglog_format.codec.plain import record_timestamp
from seglog_format.codec.reference import declared
from seglog_format.errors import FormatError, Location, RefusedError
from seglog_format.model import (
    CODEC_MASK,
    CONTROL_BIT,
    DELETE_HORIZON_BIT,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
    CompressionCodec,
    ControlRecordType,
    Frame,
    RecordBatchHeader,
    TailKind,
)
from seglog_format.schema.fields import Doc
from seglog_format.schema.fixed_fields import MAGIC_POSITION, RECORD_BATCH_HEADER_SIZE
from seglog_format.schema.message_set import MESSAGES
from seglog_format.schema.record import Record as RecordSchema
from seglog_format.schema.record_batch import RecordBatchHeader as RecordBatchHeaderSchema
from seglog_format.schema.tracing import Trace, trace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from seglog_format.model import BatchHeader, Tail
    from seglog_format.schema.tracing import Span
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


# -- fields with their positions, as a flat list in stored order whose depths form a tree -----------------------------


NAME_PART: Final = re.compile(r"\[\d+\]|[^.\[]+")


@dataclass(slots=True)
class Field:
    """One field, or a group of fields.

    Attributes:
        name: within its group, such as ``magic`` or ``[3]``.
        start: position of its first byte in the block.
        end: position after its last byte; ``start`` for an empty field.
        depth: nesting level; 0 for the outermost.
        value: a number, bytes, None for null; an empty string for a group.
        note: short meaning of the value; may be empty.
        doc: the schema's documentation; may be empty.
        requirements: ids of requirements.
        is_group: whether it contains the deeper fields that follow.
        failed: whether reading stopped here, or the value is wrong.
    """

    name: str
    start: int
    end: int
    depth: int = 0
    value: object = ""
    note: str = ""
    doc: str = ""
    requirements: tuple[str, ...] = ()
    is_group: bool = False
    failed: bool = False


@dataclass(slots=True)
class Block:
    """A range of bytes and its fields.

    Attributes:
        title: heading.
        data: the bytes.
        position: of the first byte in the file; 0 for decompressed bytes.
        fields: in stored order.
        problems: reasons why reading stopped, and errors, as sentences with requirement ids.
        is_derived: whether the bytes were decompressed, so they are not in the file.
    """

    title: str
    data: memoryview
    position: int = 0
    fields: list[Field] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    is_derived: bool = False


@dataclass(slots=True)
class Inspection:
    """The blocks to show, and a remark about bytes that are not shown.

    Attributes:
        title: name of the file.
        blocks: the selected bytes, each block followed by its decompressed content.
        remark: the number of bytes not shown, or the way in which the bytes were found; may be empty.
    """

    title: str
    blocks: list[Block]
    remark: str = ""

    @property
    def problems(self) -> list[str]:
        """Problems of all blocks."""
        return [problem for block in self.blocks for problem in block.problems]


def fields_of(
    spans: Iterable[Span], *, shift: int, depth: int, note: Callable[[str, object], str] | None = None
) -> list[Field]:
    """Convert the spans of a traced parse to fields; elements of arrays become groups.

    Args:
        spans: in stored order.
        shift: position in the block at which the traced structure starts.
        depth: of the structure's own fields.
        note: returns the meaning of a value, given the field's dotted name and its value.
    """
    tree = _Tree(shift, depth)
    for span in spans:
        if isinstance(span.value, list) and not span.value:
            continue  # an array without elements has no bytes
        parts = NAME_PART.findall(span.name)
        tree.open_groups(parts, span)
        tree.fields.append(
            Field(
                name=parts[-1],
                start=shift + span.start,
                end=shift + span.end,
                depth=depth + len(parts) - 1,
                value="" if isinstance(span.value, list) else span.value,
                note=note(span.name, span.value) if note and not span.failed else "",
                doc=str(span.doc),
                requirements=span.doc.requirements,
                failed=span.failed,
            )
        )
    mark_groups(tree.fields)
    return tree.fields


def mark_groups(fields: list[Field]) -> None:
    """Set `is_group` of each field that is followed by a deeper one."""
    for one, following in pairwise(fields):
        if following.depth > one.depth:
            one.is_group = True
            one.value = ""


class _Tree:
    """Collects fields, and the groups that array elements form."""

    def __init__(self, shift: int, depth: int) -> None:
        self.shift = shift
        self.depth = depth
        self.fields: list[Field] = []
        self.groups: dict[tuple[str, ...], Field] = {}

    def open_groups(self, parts: list[str], span: Span) -> None:
        """Add a group for every array element around the field, and extend it over the field."""
        for level in range(1, len(parts)):
            path = tuple(parts[:level])
            if not path[-1].startswith("["):
                continue
            if path not in self.groups:
                start = self.shift + span.start
                self.groups[path] = Field(path[-1], start, start, self.depth + level - 1, is_group=True)
                self.fields.append(self.groups[path])
            group = self.groups[path]
            group.end = max(group.end, self.shift + span.end)
            group.failed = group.failed or span.failed


# -- short meanings of field values -----------------------------------------------------------------------------------


BATCH_FLAGS: Final = {
    TIMESTAMP_TYPE_BIT: "LogAppendTime",
    TRANSACTIONAL_BIT: "transactional",
    CONTROL_BIT: "control",
    DELETE_HORIZON_BIT: "delete horizon",
}
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
RECORD_DEPTH: Final = 2
"""Number of parts in the name of a record's own field, such as ``records[0].key``."""

CONTROL_KEY_SIZE: Final = 4

MESSAGE_FLAGS: Final = {TIMESTAMP_TYPE_BIT: "LogAppendTime"}


def entry_note(name: str, value: object, header: BatchHeader, computed_crc: int) -> str:
    """Return the note on a field of an outermost entry."""
    if name == "attributes":
        return attributes_note(header)
    if name == "crc":
        return "right" if computed_crc == header.crc else f"WRONG: computed {computed_crc:08x}"
    if name == "last_offset_delta":
        return f"last offset {header.last_offset}"
    return time_note(name, value)


def attributes_note(header: BatchHeader) -> str:
    """Return the codec and the flags that are set."""
    flags = BATCH_FLAGS if isinstance(header, RecordBatchHeader) else MESSAGE_FLAGS if header.magic else {}
    names = [codec_note(header.codec_id), *(flag for bit, flag in flags.items() if header.attributes & bit)]
    if header.unknown_attribute_bits:
        names.append(f"undefined bits {header.unknown_attribute_bits:#x}")
    return ", ".join(names)


def codec_note(codec_id: int) -> str:
    """Return the codec's name, or a text that the codec is undefined."""
    try:
        codec = CompressionCodec(codec_id & CODEC_MASK)
    except ValueError:
        return f"undefined codec {codec_id}"
    return codec.label if codec else "no compression"


def time_note(name: str, value: object) -> str:
    """Return the date and time in a field named ``..._ms``."""
    if not name.endswith("_ms") or not isinstance(value, int):
        return ""
    if value == NO_TIMESTAMP:
        return "none"
    try:
        moment = EPOCH + timedelta(milliseconds=value)
    except OverflowError:
        return "a time that no calendar has"
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


class RecordNotes:
    """Notes on the fields of a batch's records, in order."""

    def __init__(self, header: RecordBatchHeader) -> None:
        self.header = header
        self.key: bytes | None = None

    def __call__(self, name: str, value: object) -> str:
        """Return the note on one field, by its dotted name."""
        parts = name.split(".")
        field = parts[-1]
        if field == "offset_delta" and isinstance(value, int):
            return f"offset {self.header.base_offset + value}"
        if field == "timestamp_delta" and isinstance(value, int):
            return time_note("timestamp_ms", record_timestamp(self.header, value))
        if self.header.is_control and len(parts) == RECORD_DEPTH and (value is None or isinstance(value, bytes)):
            return self._control(field, value)
        return ""

    def _control(self, field: str, value: bytes | None) -> str:
        if field == "key":
            self.key = value
            return control_type_name(value or b"")
        try:
            control = decode_control_record(self.key, value, Location())
        except FormatError as problem:
            return f"expected {problem.expected}"
        return ", ".join(f"{name} {value}" for name, value in control.fields.items())


def control_type_name(key: bytes) -> str:
    """Return the name of a control record's type, such as ``COMMIT``, by its key; empty if the type is unknown."""
    number = int.from_bytes(key[2:4], signed=True) if len(key) >= CONTROL_KEY_SIZE else -1
    return ControlRecordType(number).name if number in set(ControlRecordType) else ""

"""The input of an inspection: a part of a file, or pasted bytes."""

from __future__ import annotations

import binascii
import re
from base64 import b64decode
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from construct import Array, Struct

from seglog_format.codec.checksum import crc32c
from seglog_format.codec.decode import checksum_is_valid
from seglog_format.codec.framing import frame_at, walk
from seglog_format.codec.side_files import CHECKED_POSITION
from seglog_format.errors import CorruptRecordError, FormatError, Location, UsageError
from seglog_format.inspection.entries import Block, Field, Inspection, entry_blocks, fields_of, time_note
from seglog_format.lines.options import opened, whole
from seglog_format.lines.sources import SourceKind, sources_of
from seglog_format.model import Frame
from seglog_format.names import OFFSET_CHECKPOINT_KINDS, FileKind
from seglog_format.schema.checkpoints import LeaderEpochCheckpoint, OffsetCheckpoint, PartitionMetadata
from seglog_format.schema.fields import Doc
from seglog_format.schema.fixed_fields import MAGIC_POSITION
from seglog_format.schema.offset_index import OffsetIndexEntry
from seglog_format.schema.producer_snapshot import ProducerSnapshot
from seglog_format.schema.time_index import TimeIndexEntry
from seglog_format.schema.tracing import trace
from seglog_format.schema.transaction_index import TransactionIndexEntry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from construct import Construct

    from seglog_format.lines.sources import Source
    from seglog_format.storage.byte_source import SourceFile


# -- search for entries in bytes with other content, such as a whole fetch response ------------------------------------


MAX_CHECKED_SIZE: Final = 1 << 28
"""Maximum bytes whose checksums a search computes, which limits its time."""


def runs_of_entries(data: memoryview) -> list[tuple[int, int]]:
    """Find runs of consecutive entries with right checksums.

    Args:
        data: any bytes.

    Returns:
        Start and end of each run of entries. If no entry has a right checksum, the one run that starts at the first
        plausible size and magic, and extends to the end; empty if there is no such position.
    """
    runs = list(_valid_runs(data))
    if runs:
        return runs
    plausible = next((position for position in _candidates(data) if _frame(data, position)), None)
    return [] if plausible is None else [(plausible, len(data))]


def _valid_runs(data: memoryview) -> Iterator[tuple[int, int]]:
    budget = MAX_CHECKED_SIZE
    end = 0
    for position in _candidates(data):
        if position < end:
            continue
        frame = _frame(data, position)
        if frame is None:
            continue
        budget -= len(frame.data)
        if budget < 0:
            return
        if checksum_is_valid(frame):
            end = _end_of_run(data, frame)
            yield position, end


def _end_of_run(data: memoryview, frame: Frame | None) -> int:
    """Return the end of the last whole entry of a run; its checksum may be wrong."""
    end = 0
    while frame is not None:
        end = frame.end
        frame = _frame(data, end)
    return end


def _candidates(data: memoryview) -> Iterator[int]:
    """Yield positions at which size and magic could be those of an entry."""
    content = bytes(data)
    for magic_position in range(MAGIC_POSITION, len(content)):
        if content[magic_position] <= 2 and content[magic_position - 8] < 0x80:  # noqa: PLR2004 - magic 0 to 2; a size that is not negative
            yield magic_position - MAGIC_POSITION


def _frame(data: memoryview, position: int) -> Frame | None:
    try:
        frame = frame_at(data, position, len(data))
    except FormatError:
        return None
    return frame if isinstance(frame, Frame) else None


# -- indexes, producer snapshots and text files with all their fields --------------------------------------------------


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


# -- the input of an inspection ----------------------------------------------------------------------------------------


MAX_TEXT_SIZE: Final = 1 << 20
USUAL_ENTRIES: Final = 1
USUAL_SLOTS: Final = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The part of a file to show.

    Attributes:
        position: byte at which an entry or a slot starts.
        offset: an offset in the first batch to show.
        batch: number of the first batch or slot to show, from 0.
        count: number of batches, messages or slots; None for as many as usually fit a screen.
        whole: whether to show everything from the start position on.
    """

    position: int | None = None
    offset: int | None = None
    batch: int | None = None
    count: int | None = None
    whole: bool = False

    def limit(self, usual: int | None) -> int | None:
        """Return the maximum number to show; ``usual`` unless the user gave a number."""
        return None if self.whole else self.count or usual


def inspect_file(path: Path, selection: Selection) -> Inspection:
    """Return fields and bytes of a file.

    Args:
        path: of a file.
        selection: the part to show.

    Raises:
        UsageError: the file does not exist, is a directory, or does not have the selected part.
        FormatError: the log is damaged before the selected part.
    """
    if path.is_dir():
        first = min((one.name for one in path.glob("*.log")), default="")
        msg = f"{path}: a directory; name one of its files{f', such as {first}' if first else ''}"
        raise UsageError(msg)
    (source,) = sources_of(path)
    with opened(source) as content:
        return _inspect(source, content, selection)


def _inspect(source: Source, content: SourceFile, selection: Selection) -> Inspection:
    if source.kind in SLOTS:
        return _inspect_slots(source, whole(content, source.name), selection)
    if source.kind is SourceKind.PRODUCER_SNAPSHOT:
        return Inspection(source.name, [snapshot_block(whole(content, source.name))])
    if source.kind is SourceKind.OTHER and _is_text(content):
        return Inspection(source.name, [text_block(whole(content, source.name), source.name)])
    start = _start(content, source.name, selection)
    blocks, end = entry_blocks(content, name=source.name, start=start, count=selection.limit(USUAL_ENTRIES))
    return Inspection(source.name, blocks, _remark(content.size - end))


def _is_text(content: SourceFile) -> bool:
    return content.size <= MAX_TEXT_SIZE and b"\0" not in bytes(content.view(0, content.size))


def _remark(left: int) -> str:
    return f"{left:,} bytes follow" if left else ""


def _inspect_slots(source: Source, data: memoryview, selection: Selection) -> Inspection:
    size = SLOTS[source.kind][0].sizeof()
    first = selection.batch or 0
    if selection.offset is not None:
        msg = f"{source.name}: an index is inspected by position or by slot, not by offset"
        raise UsageError(msg)
    if selection.position is not None:
        first = selection.position // size
    if first and first >= len(data) // size:
        msg = f"{source.name}: no slot {first}; there are {len(data) // size}"
        raise UsageError(msg)
    block, end = slots_block(
        source.kind, data, base_offset=source.base_offset, first=first, count=selection.limit(USUAL_SLOTS)
    )
    return Inspection(source.name, [block], _remark(len(data) - end))


def _start(content: SourceFile, name: str, selection: Selection) -> int:
    """Return the position of the first selected entry."""
    if selection.position is not None:
        if not 0 <= selection.position < max(content.size, 1):
            msg = f"{name}: no position {selection.position}; there are {content.size} bytes"
            raise UsageError(msg)
        return selection.position
    if selection.offset is None and selection.batch is None:
        return 0
    for index, frame in enumerate(walk(content, path=name)):
        if index == selection.batch or (selection.offset is not None and frame.header.last_offset >= selection.offset):
            return frame.position
    wanted = f"offset {selection.offset}" if selection.batch is None else f"batch {selection.batch}"
    msg = f"{name}: no {wanted}"
    raise UsageError(msg)


def inspect_pasted(content: bytes, selection: Selection, *, name: str = "<stdin>") -> Inspection:
    """Return fields and bytes of pasted entries: a batch, a message set, or a fetch response around them.

    Args:
        content: hex, a hex dump, Base64, or raw bytes.
        selection: only its ``count`` is used.
        name: title of the bytes.

    Raises:
        CorruptRecordError: the content has no entry.
    """
    data, written_as = pasted_bytes(content)
    view = memoryview(data)
    runs = runs_of_entries(view)
    if not runs:
        found = f"none in {len(data)} bytes ({written_as})"
        raise CorruptRecordError(Location(name), "SEG-LOG-001", expected="a record batch or a message", found=found)
    blocks: list[Block] = []
    for start, end in runs:
        blocks += entry_blocks(view[:end], name=name, start=start, count=selection.limit(None))[0]
    positions = ", ".join(str(start) for start, _ in runs)
    return Inspection(name, blocks, f"{len(data)} bytes read as {written_as}; entries found at {positions}")


# -- decoder of pasted bytes: hex in any common form, Base64, or raw bytes --------------------------------------------


HEXDUMP_LINE: Final = re.compile(
    r"^(?:0x)?[0-9a-fA-F]{4,16}(?::|\s\s|\t)\s*((?:[0-9a-fA-F]{2}[ \t]{0,2}){1,32})(?:\s.*)?$"
)
"""A line of ``xxd``, ``hexdump -C`` and similar tools: position, bytes, and optionally the bytes as text."""

HEX_NOISE: Final = re.compile(r"0x|\\x|[\s,:;_\-\[\]{}()\"'<>]", re.IGNORECASE)
HEX_COMMENT: Final = re.compile(r"(?:^|\s)[;#][^\n]*")
HEX_DIGITS: Final = re.compile(r"(?:[0-9a-fA-F]{2})+")
BASE64_TEXT: Final = re.compile(r"[A-Za-z0-9+/_\-]+={0,2}")


def pasted_bytes(content: bytes) -> tuple[bytes, str]:
    """Decode pasted input.

    Args:
        content: hex digits, a hex dump, Base64, or raw bytes.

    Returns:
        The bytes, and their form: ``hex``, ``hex dump``, ``Base64`` or ``raw bytes``.
    """
    try:
        text = content.decode("ascii").strip()
    except UnicodeDecodeError:
        return content, "raw bytes"
    for name, reader in (("hex dump", _from_hexdump), ("hex", _from_hex), ("Base64", _from_base64)):
        data = reader(text)
        if data:
            return data, name
    return content, "raw bytes"


def _from_hexdump(text: str) -> bytes | None:
    lines = [line for line in text.splitlines() if line.strip()]
    matches = [HEXDUMP_LINE.match(line) for line in lines]
    # The last line of hexdump -C holds only the size; a star replaces lines that are equal to the one before.
    if len(matches) > 1 and matches[-1] is None and HEX_DIGITS.fullmatch(lines[-1].strip()):
        matches.pop()
    if not matches or not all(matches):
        return None
    return bytes.fromhex("".join(match[1] for match in matches if match))


def _from_hex(text: str) -> bytes | None:
    digits = HEX_NOISE.sub("", HEX_COMMENT.sub(" ", text))
    return bytes.fromhex(digits) if HEX_DIGITS.fullmatch(digits) else None


def _from_base64(text: str) -> bytes | None:
    joined = "".join(text.split())
    if not BASE64_TEXT.fullmatch(joined):
        return None
    plain = joined.replace("-", "+").replace("_", "/").rstrip("=")
    try:
        return b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    except binascii.Error:
        return None

"""The input of an inspection: a part of a file, or pasted bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from seglog_format.codec.framing import walk
from seglog_format.errors import CorruptRecordError, Location, UsageError
from seglog_format.inspection.entries import entry_blocks
from seglog_format.inspection.fields import Block, Inspection
from seglog_format.inspection.pasted import pasted_bytes
from seglog_format.inspection.search import runs_of_entries
from seglog_format.inspection.side_files import SLOTS, slots_block, snapshot_block, text_block
from seglog_format.lines.opening import opened, whole
from seglog_format.lines.sources import SourceKind, sources_of

if TYPE_CHECKING:
    from pathlib import Path

    from seglog_format.lines.sources import Source
    from seglog_format.storage.byte_source import SourceFile

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

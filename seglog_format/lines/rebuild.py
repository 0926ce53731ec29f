"""Conversion of lines to files: the output of ``seglog dump --json``, or lines written by hand.

Sizes and checksums are computed again. Data that the vocabulary lacks is lost: unknown attribute bits, the producers'
timestamps if the broker set the time (unless the lines are those of ``dump --raw``), and the bytes after the last whole
entry of a log.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain, groupby
from typing import TYPE_CHECKING, Final

from seglog_format.codec.encode import encode_batch
from seglog_format.codec.producer_snapshot import encode_producer_snapshot
from seglog_format.errors import FormatError, UsageError
from seglog_format.lines.read import LineReader
from seglog_format.lines.rebuild_batch import rebuilt_batch
from seglog_format.model import AbortedTxn, OffsetPosition, TimestampOffset
from seglog_format.names import FileKind, parse_file_name, segment_file_name
from seglog_format.schema.fixed_fields import TRANSACTION_INDEX_ENTRY
from seglog_format.state.index_build import IndexedRow, build_indexes, encode_offset_index, encode_time_index
from seglog_format.state_model import ProducerStateEntry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from seglog_format.lines.options import BytesAs, Line
    from seglog_format.record_model import RecordBatch

NO_OFFSET: Final = -1
INDEX_KINDS: Final = (FileKind.OFFSET_INDEX, FileKind.TIME_INDEX)


@dataclass(slots=True)
class RebuiltFile:
    """A file made from lines.

    Attributes:
        name: path below a directory, with slashes.
        pieces: its bytes; those of a log are created during iteration, which is possible once.
        rows: facts about the entries of a log, for its indexes; complete after iteration over the pieces.
    """

    name: str
    pieces: Iterable[bytes]
    rows: list[IndexedRow] = field(default_factory=list)

    @property
    def data(self) -> bytes:
        """All its bytes."""
        data = b"".join(self.pieces)
        self.pieces = (data,)
        return data


def rebuilt_files(lines: Iterable[Line], *, bytes_as: BytesAs = "utf8") -> Iterator[RebuiltFile]:
    """Make files from lines; a log without lines for its indexes also gets an offset and a time index.

    Args:
        lines: the lines of each file are consecutive.
        bytes_as: form of keys, values and headers in the lines.

    Yields:
        The files, in the order of the lines, then the missing indexes. The caller should iterate over the pieces
        of a file before it takes the next one; otherwise they are kept in memory.

    Raises:
        UsageError: a line is not in the vocabulary, or describes damage or omitted bytes.
    """
    logs, names = [], set()
    readers = (LineReader(number, line, bytes_as) for number, line in enumerate(lines, 1))
    for name, group in groupby(readers, key=lambda reader: reader.text("file")):
        made = _file(name, group)
        if made is None:
            continue
        if name in names:
            msg = f"the lines of {name} are not next to each other"
            raise UsageError(msg)
        names.add(name)
        yield made
        if not isinstance(made.pieces, tuple):
            made.pieces = tuple(made.pieces)
        logs += [made] if made.rows else []
    for log in logs:
        indexes = _indexes(log)
        if not any(index.name in names for index in indexes):
            yield from indexes


def _file(name: str, lines: Iterator[LineReader]) -> RebuiltFile | None:
    """Return the file; None if the lines do not describe its content."""
    heading = next(lines)
    first = next(lines, None) if heading.type == "file" else heading
    if first is None:
        return RebuiltFile(name, (b"",)) if heading.number_or("bytes", 0) == 0 else None
    if first.type in {"batch", "record", "logEnd"}:
        log = RebuiltFile(name, ())
        log.pieces = _entries(chain((first,), lines), log.rows)
        return log
    make = SIDE_FILES.get(first.type)
    if make is None:
        first.refuse(f"{first.type!r} is no line of a file")
    return RebuiltFile(name, (make(first, _base_offset(name)),))


def _base_offset(name: str) -> int:
    try:
        parsed = parse_file_name(name.rpartition("/")[2])
    except FormatError as error:
        raise UsageError(str(error)) from error
    return 0 if parsed is None else max(parsed.base_offset, 0)


def _entries(lines: Iterable[LineReader], rows: list[IndexedRow]) -> Iterator[bytes]:
    """Yield the entries of a log, and add a row for each."""
    position = 0
    for batch in _batches(lines):
        data = encode_batch(batch)
        rows.append(
            IndexedRow(position, len(data), batch.base_offset, batch.last_offset, batch.header.max_timestamp_ms)
        )
        position += len(data)
        yield data


def _batches(lines: Iterable[LineReader]) -> Iterator[RecordBatch]:
    """Yield a batch for each batch line with its record lines."""
    header: LineReader | None = None
    records: list[LineReader] = []
    for line in lines:
        if line.type == "record" and header is not None:
            records.append(line)
        elif line.type in {"batch", "logEnd"}:
            if header is not None:
                yield rebuilt_batch(header, records)
            header, records = (line, []) if line.type == "batch" else (None, [])
        else:
            line.refuse(f"a line of type {line.type!r} is not allowed here")
    if header is not None:
        yield rebuilt_batch(header, records)


def _indexes(log: RebuiltFile) -> list[RebuiltFile]:
    """Return both indexes of a log, as recovery would write them; none for a file that is not a segment."""
    directory, slash, file_name = log.name.rpartition("/")
    parsed = parse_file_name(file_name)
    if parsed is None or parsed.kind is not FileKind.LOG or parsed.suffix:
        return []
    built = build_indexes(log.rows)
    base = parsed.base_offset
    data = encode_offset_index(built.offset_entries, base), encode_time_index(built.time_entries, base)
    paths = (f"{directory}{slash}{segment_file_name(base, kind)}" for kind in INDEX_KINDS)
    return [RebuiltFile(path, (content,)) for path, content in zip(paths, data, strict=True)]


def _offset_index(line: LineReader, base_offset: int) -> bytes:
    entries = [OffsetPosition(*pair) for pair in line.pairs("entries", base_offset, of_offset=0)]
    return encode_offset_index(entries, base_offset)


def _time_index(line: LineReader, base_offset: int) -> bytes:
    entries = [TimestampOffset(*pair) for pair in line.pairs("entries", base_offset, of_offset=1)]
    return encode_time_index(entries, base_offset)


def _transaction_index(line: LineReader, _base_offset: int) -> bytes:
    return b"".join(_aborted(entry) for entry in line.inner("aborted"))


def _aborted(line: LineReader) -> bytes:
    entry = AbortedTxn(
        line.number("version", bits=16),
        line.number("producerId"),
        line.number("firstOffset"),
        line.number("lastOffset"),
        line.number("lastStableOffset"),
    )
    return TRANSACTION_INDEX_ENTRY.pack(
        entry.version, entry.producer_id, entry.first_offset, entry.last_offset, entry.last_stable_offset
    )


def _snapshot(line: LineReader, _base_offset: int) -> bytes:
    return encode_producer_snapshot(_producer(entry) for entry in line.inner("producers"))


def _producer(line: LineReader) -> ProducerStateEntry:
    batches = line.inner("batches")
    newest = batches[-1] if batches else None
    return ProducerStateEntry(
        line.number("producerId"),
        line.number("producerEpoch", bits=16),
        newest.number("lastSequence", bits=32) if newest else -1,
        newest.number("lastOffset") if newest else NO_OFFSET,
        newest.number("offsetDelta", bits=32) if newest else 0,
        line.number("lastTimestamp"),
        line.number("coordinatorEpoch", bits=32),
        line.number_or("currentTxnFirstOffset", NO_OFFSET),
    )


def _text(line: LineReader, _base_offset: int) -> bytes:
    return line.text("text").encode()


SIDE_FILES: Final[dict[str, Callable[[LineReader, int], bytes]]] = {
    "offsetIndex": _offset_index,
    "timeIndex": _time_index,
    "transactionIndex": _transaction_index,
    "producerSnapshot": _snapshot,
    "text": _text,
}

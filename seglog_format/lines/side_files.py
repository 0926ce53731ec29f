"""Lines of files other than logs: indexes, producer snapshots, text files."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

from seglog_format.errors import FormatError, UnreadableError
from seglog_format.lines.options import list_of
from seglog_format.lines.sources import SourceKind
from seglog_format.log.index_file import OffsetIndex, TimeIndex, TransactionIndex
from seglog_format.log.producer_snapshot import ProducerSnapshot
from seglog_format.storage.byte_source import source_of
from seglog_format.storage.file_bytes import MAX_WHOLE_SIZE, max_text_size, refuse_beyond, refuse_whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from seglog_format.lines.options import Line
    from seglog_format.lines.sources import Source
    from seglog_format.model import AbortedTxn
    from seglog_format.record_model import ProducerStateEntry
    from seglog_format.storage.byte_source import Readable

"""Maximum bytes of a file of unknown kind whose content is shown."""


def file_line(source: Source, data: Readable) -> Line:
    """Return the line with size and SHA-256 of a file, or with the error if the disk refuses to read it."""
    stored, position, digest = source_of(data), 0, hashlib.sha256()
    line: Line = {"type": "file", "file": source.name, "bytes": stored.size, "sha256": None}
    while position < stored.size:
        try:
            start, known = stored.window(position)
        except UnreadableError as problem:
            return line | {"error": str(problem)}
        digest.update(known[position - start :])
        position = start + len(known)
    return line | {"sha256": digest.hexdigest()}


def offset_index_lines(source: Source, data: Readable, long_over: int | None = None) -> Iterator[Line]:
    """Yield all entries before the trailing zeros, whether or not a reader would use them."""
    index = OffsetIndex(source_of(data, source.name), source.base_offset)
    yield _index_line("offsetIndex", source, index, long_over, lambda entry: [entry.offset, entry.position])


def time_index_lines(source: Source, data: Readable, long_over: int | None = None) -> Iterator[Line]:
    """Yield all entries before the trailing zeros, whether or not a reader would use them."""
    index = TimeIndex(source_of(data, source.name), source.base_offset)
    yield _index_line("timeIndex", source, index, long_over, lambda entry: [entry.timestamp_ms, entry.offset])


def _index_line(
    kind: str,
    source: Source,
    index: OffsetIndex | TimeIndex,
    long_over: int | None,
    numbers: Callable[[Any], list[int]],
) -> Line:
    line: Line = {
        "type": kind,
        "file": source.name,
        "fileBytes": index.file_size,
        "entryCount": index.slot_count,
        "trailingZeroEntries": index.trailing_zero_count,
    }
    entries = index.raw_entries()
    try:
        refuse_beyond(MAX_WHOLE_SIZE, len(entries) * index.file_size // max(1, index.slot_count), source.name)
    except FormatError as problem:
        return line | {"entries": [], "error": str(problem)}
    return line | {"entries": list_of(lambda: map(numbers, entries), len(entries), long_over)}


def transaction_index_lines(source: Source, data: Readable, _long_over: int | None = None) -> Iterator[Line]:
    """Yield aborted transactions, or the error of an unreadable file."""
    line: Line = {"type": "transactionIndex", "file": source.name}
    try:
        index = TransactionIndex.from_source(source_of(data), source.base_offset, source.name)
    except FormatError as problem:
        yield line | {"aborted": [], "error": str(problem)}
    else:
        yield line | {"aborted": [_aborted(entry) for entry in index.entries]}


def _aborted(entry: AbortedTxn) -> Line:
    return {
        "version": entry.version,
        "producerId": entry.producer_id,
        "firstOffset": entry.first_offset,
        "lastOffset": entry.last_offset,
        "lastStableOffset": entry.last_stable_offset,
    }


def producer_snapshot_lines(source: Source, data: Readable, _long_over: int | None = None) -> Iterator[Line]:
    """Yield producers in stored order, or the error of an unreadable file."""
    line: Line = {"type": "producerSnapshot", "file": source.name}
    try:
        snapshot = ProducerSnapshot.from_source(source_of(data), source.name)
    except FormatError as problem:
        yield line | {"error": str(problem)}
    else:
        yield line | {"producers": [_producer(entry) for entry in snapshot.producers]}


def _producer(entry: ProducerStateEntry) -> Line:
    return {
        "producerId": entry.producer_id,
        "producerEpoch": entry.producer_epoch,
        "coordinatorEpoch": entry.coordinator_epoch,
        "lastTimestamp": entry.timestamp_ms,
        "currentTxnFirstOffset": None if entry.current_txn_first_offset < 0 else entry.current_txn_first_offset,
        "batches": [] if entry.last_offset < 0 else [_last_batch(entry)],
    }


def _last_batch(entry: ProducerStateEntry) -> Line:
    return {
        "lastSequence": entry.last_sequence,
        "lastOffset": entry.last_offset,
        "offsetDelta": entry.offset_delta,
        "timestamp": entry.timestamp_ms,
    }


def text_lines(source: Source, data: Readable, _long_over: int | None = None) -> Iterator[Line]:
    """Yield the content of a small UTF-8 text file; nothing for other files."""
    stored = source_of(data)
    refuse_whole(stored.size, source.name)
    if stored.size > max_text_size(source.name):
        return
    try:
        text = bytes(stored.view(0, stored.size)).decode()
    except UnicodeDecodeError:
        return
    if "\0" not in text:
        yield {"type": "text", "file": source.name, "text": text}


SIDE_FILE_LINES: Final[dict[SourceKind, Callable[[Source, Readable, int | None], Iterator[Line]]]] = {
    SourceKind.OFFSET_INDEX: offset_index_lines,
    SourceKind.TIME_INDEX: time_index_lines,
    SourceKind.TRANSACTION_INDEX: transaction_index_lines,
    SourceKind.PRODUCER_SNAPSHOT: producer_snapshot_lines,
    SourceKind.OTHER: text_lines,
}

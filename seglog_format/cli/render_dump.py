"""The JSON vocabulary as text for people."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from seglog_format.cli.output import SHOWN_SIZE, count_text, json_text, printable, time_text
from seglog_format.lines.options import LongBytes, LongList

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Line = dict[str, Any]


def text_of(line: Line) -> Iterator[str]:
    """Yield the lines of text for one object; safe to print."""
    return RENDERERS[line["type"]](line)


def value_text(value: object) -> str:
    """Return a key, value or header as text: ``null``, ``0x`` and hex digits for bytes that are no text."""
    if value is None:
        return "null"
    if isinstance(value, LongBytes):
        return f"{len(value)} bytes {value_text(value.start(SHOWN_SIZE))}…"
    if isinstance(value, dict):
        return f"0x{value['hex']}" if "hex" in value else f"<{value['bytes']} bytes, sha256 {value['sha256']}>"
    text = printable(str(value))
    plain = text and text == text.strip() and text != "null" and not text.startswith("0x")
    return text if plain else f'"{text}"'


def file_heading(line: Line) -> str:
    """Return the name of the file that a line is from."""
    return f"{printable(line['file'])}:"


def file_text(line: Line) -> Iterator[str]:
    """Yield name and size."""
    size = line.get("error") or count_text(line["bytes"], "byte")
    yield f"{file_heading(line)} {printable(size)}"


def batch_text(line: Line) -> Iterator[str]:
    """Yield one line on a batch, and one on why it cannot be read."""
    yield "  " + ", ".join(_batch_parts(line))
    for key, reason in (("invalid", "invalid"), ("refused", "refused"), ("outOfOrder", "out of order")):
        if key in line:
            yield f"    {reason}: {printable(line[key])}"


def _batch_parts(line: Line) -> Iterator[str]:
    base = line.get("baseOffset")
    yield f"@{line['position']}: offsets {'?' if base is None else base} to {line['lastOffset']}"
    yield count_text(line["sizeInBytes"], "byte")
    if line["recordsCount"] is not None:
        yield count_text(line["recordsCount"], "record")
    yield f"magic {line['magic']}"
    yield line["codec"]
    yield f"{line['timestampType']} {time_text(line['maxTimestamp'])}"
    yield f"crc {line['crc']:08x}"
    yield from _producer_parts(line)


def _producer_parts(line: Line) -> Iterator[str]:
    if line["producerId"] != -1:
        yield f"producer {line['producerId']} epoch {line['producerEpoch']}"
        if line["baseSequence"] != -1:
            yield f"sequence {line['baseSequence']} to {line['lastSequence']}"
    if line["partitionLeaderEpoch"] != -1:
        yield f"leader epoch {line['partitionLeaderEpoch']}"
    if line["isTransactional"]:
        yield "transactional"
    if line["isControl"]:
        yield "control"
    if line["deleteHorizonMs"] is not None:
        yield f"delete horizon {time_text(line['deleteHorizonMs'])}"
    if not line["isValid"]:
        yield "DAMAGED"


def record_text(line: Line) -> Iterator[str]:
    """Yield one line on a record, and one on its decoded content."""
    what = f"{value_text(line['key'])} = {value_text(line['value'])}"
    decoded = line.get("decoded") or {"error": None}
    if line.get("control") is not None:
        what = line["control"]
    elif "error" not in decoded:
        what = json_text(decoded)
    yield f"    {line['offset']}  {time_text(line['timestamp'])}  {what}{_record_suffix(line)}"
    if "invalid" in line:
        yield f"      invalid: {printable(line['invalid'])}"
    if line.get("control") is not None and len(decoded) > 1:
        yield f"      {json_text(decoded)}"
    elif decoded.get("error"):
        yield f"      not decoded: {printable(decoded['error'])}"


def _record_suffix(line: Line) -> str:
    parts = []
    if "headers" in line:
        parts.append(_headers_text(line["headers"]))
    if line.get("sequence", -1) != -1:
        parts.append(f"sequence {line['sequence']}")
    if "coordinatorEpoch" in line:
        parts.append(f"coordinator epoch {line['coordinatorEpoch']}")
    if "attributes" in line:
        parts.append(
            f"attributes {line['attributes']:#04x} deltas {line['timestampDelta']} ms, {line['offsetDelta']} offsets"
        )
    if line.get("isValid") is False:
        parts.append("DAMAGED")
    return "".join(f"  {part}" for part in parts)


def _headers_text(headers: list[list[object]] | LongList) -> str:
    shown = [f"{value_text(key)}: {value_text(value)}" for key, value in islice(headers, SHOWN_SIZE)]
    more = [f"… {len(headers)} headers"] if len(headers) > SHOWN_SIZE else []
    return "{" + ", ".join(shown + more) + "}"


def log_end_text(line: Line) -> Iterator[str]:
    """Yield what was read, and why the walk ended."""
    records = "" if line["records"] is None else f", {count_text(line['records'], 'record')}"
    yield (
        f"  end: {count_text(line['batches'], 'batch')}{records},"
        f" {line['scannedBytes']:,} of {count_text(line['fileBytes'], 'byte')}"
    )
    if line["error"]:
        yield f"    {printable(line['error'])}"


def offset_index_text(line: Line) -> Iterator[str]:
    """Yield entries, one per line."""
    yield _index_head("offset index", line)
    for offset, position in line["entries"]:
        yield f"    offset {offset} -> position {position}"


def time_index_text(line: Line) -> Iterator[str]:
    """Yield entries, one per line."""
    yield _index_head("time index", line)
    for timestamp, offset in line["entries"]:
        yield f"    {time_text(timestamp)} -> offset {offset}"


def _index_head(kind: str, line: Line) -> str:
    zeros = line["trailingZeroEntries"]
    return f"  {kind}: {count_text(line['entryCount'] - zeros, 'entry')}, {count_text(zeros, 'zero slot')}"


def transaction_index_text(line: Line) -> Iterator[str]:
    """Yield aborted transactions, one per line."""
    yield f"  transaction index: {count_text(len(line['aborted']), 'aborted transaction')}"
    if "error" in line:
        yield f"    {printable(line['error'])}"
    for entry in line["aborted"]:
        yield (
            f"    producer {entry['producerId']}: offsets {entry['firstOffset']} to {entry['lastOffset']},"
            f" last stable offset {entry['lastStableOffset']}"
        )


def producer_snapshot_text(line: Line) -> Iterator[str]:
    """Yield producers, one per line."""
    if "error" in line:
        yield f"  producer snapshot: {printable(line['error'])}"
        return
    yield f"  producer snapshot: {count_text(len(line['producers']), 'producer')}"
    for producer in line["producers"]:
        yield "    " + ", ".join(_snapshot_parts(producer))


def _snapshot_parts(producer: Line) -> Iterator[str]:
    yield f"producer {producer['producerId']} epoch {producer['producerEpoch']}"
    for batch in producer["batches"]:
        yield f"last offset {batch['lastOffset']}"
        yield f"last sequence {batch['lastSequence']}"
    yield time_text(producer["lastTimestamp"])
    if producer["currentTxnFirstOffset"] is not None:
        yield f"open transaction since offset {producer['currentTxnFirstOffset']}"
    if producer["coordinatorEpoch"] != -1:
        yield f"coordinator epoch {producer['coordinatorEpoch']}"


def text_text(line: Line) -> Iterator[str]:
    """Yield the lines of a text file."""
    for text in line["text"].splitlines():
        yield f"    {printable(text)}"


RENDERERS: Final[dict[str, Callable[[Line], Iterator[str]]]] = {
    "file": file_text,
    "batch": batch_text,
    "record": record_text,
    "logEnd": log_end_text,
    "offsetIndex": offset_index_text,
    "timeIndex": time_index_text,
    "transactionIndex": transaction_index_text,
    "producerSnapshot": producer_snapshot_text,
    "text": text_text,
}

"""``seglog dump``: the content of files; and the JSON vocabulary as text for people."""

from __future__ import annotations

from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import click

from seglog_format.cli.main import FINDINGS, UNREADABLE
from seglog_format.cli.options import (
    PATH_OR_INPUT,
    joined_listing,
    json_option,
    limit_option,
    range_option,
    remote_options,
)
from seglog_format.cli.output import (
    LONG_SIZE,
    SHOWN_SIZE,
    GapLines,
    count_text,
    diagnose,
    json_text,
    printable,
    progress,
    time_text,
    write_json,
    write_lines,
    write_text,
)
from seglog_format.cli.paths import unreadable_text
from seglog_format.lines.options import LongBytes, LongList
from seglog_format.log.listing import CLEANED
from seglog_format.log.path_kind import UNKNOWN, foreign_at
from seglog_format.names import DECODED_TOPICS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from seglog_format.cli.options import RemoteChoice
    from seglog_format.lines import LineOptions
    from seglog_format.log.listing import PartitionListing

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


EPILOG = """\b
Examples:
  seglog dump my-topic-0 --from 1000 --to 1010
  seglog dump --json my-topic-0 --from 1000 | jq 'select(.type == "record")'
  seglog dump --json --bytes base64 my-topic-0/00000000000000000000.log
  seglog dump --decode __consumer_offsets-7
  seglog dump --decode-as __consumer_offsets copied/00000000000000000000.log
  seglog dump 00000000000000000000.log.gz
  kubectl exec my-broker -- cat FILE | seglog dump -"""


@click.command(epilog=EPILOG)
@click.argument("path", type=PATH_OR_INPUT)
@json_option
@range_option
@click.option("--no-records", "records", is_flag=True, flag_value=False, default=True, help="Print batches only.")
@click.option("--decode", is_flag=True, help="Decode the records of Kafka's own topics, and control records.")
@click.option(
    "--decode-as",
    type=click.Choice(DECODED_TOPICS),
    metavar="TOPIC",
    help="Decode the records as those of this topic of Kafka's own, whatever the directory is called.",
)
@click.option("--raw", is_flag=True, help="Also print each record's attributes and deltas as stored.")
@click.option(
    "--bytes",
    "bytes_as",
    type=click.Choice(["utf8", "hex", "base64"]),
    default="utf8",
    show_default=True,
    help="How to print keys, values and headers.",
)
@click.option("--digest-over", type=int, metavar="N", help="Print size and SHA-256 of bytes longer than N.")
@limit_option
@remote_options
def command(
    path: Path,
    *,
    as_json: bool,
    remote: RemoteChoice | None,
    decode: bool,
    **choices: Any,  # noqa: ANN401 - click passes what the options gave
) -> int:
    """Print the content of the files at PATH: batches, records, index entries, snapshots, checkpoints.

    PATH is a file, a partition directory, a log directory, or a directory that holds log directories. A file under
    another name is read as a log if it begins with a whole batch; if it does not, the exit status is 3. With - as PATH,
    standard input is read as a log.

    With --from, --to, --since or --until, only batches and records are printed, without those of files due for removal.
    A damaged batch is named and skipped; the exit status is 1 then. It is also 1 if a batch is out of order, which ends
    every other reader, or if offsets are missing, which standard error names: between two segments, unless the log is
    compacted, or where the files beside a log prove that it was longer. It is 3 if --limit refuses a batch, which is
    also skipped. If no batch has these offsets or times, standard error says so, and the exit status is 1. A --to that
    is not above --from is refused.

    TIME is milliseconds, an ISO time, or how long ago: 2h, 30m, 7d. Of batches before the first that is not older than
    --since, only headers are read. --until does not end the reading: a later record may have an earlier time.

    Text shows the first 4,096 bytes of a longer key, value or header, and the first 4,096 headers of a record; --json
    prints all of them.
    """
    from seglog_format.lines import LineOptions
    from seglog_format.log.path_kind import require_readable

    require_readable(path)
    joined = joined_listing(path, remote)
    status = 0
    render = write_json if as_json else _TextWriter()
    long_over = LONG_SIZE if as_json else SHOWN_SIZE
    decode = decode or choices["decode_as"] is not None
    options = LineOptions(**choices, decode=decode, long_over=long_over)
    gaps = GapLines(options, joined=joined, as_json=as_json)
    last = None
    for line in _lines(path, options, joined, gaps):
        render(line)
        status = max(status, _status(line, path))
        last = line["type"]
    if not status and _is_of_no_known_kind(path, is_text=last == "text"):
        diagnose(f"{path}: {UNKNOWN}")
        return UNREADABLE
    if last is None and options.is_window:
        diagnose(f"{path}: no batch or record {'of these times' if options.has_times else 'at these offsets'}")
        status = FINDINGS
    return max(status, FINDINGS) if gaps.is_any_missing else status


def _lines(path: Path, options: LineOptions, joined: PartitionListing | None, gaps: GapLines) -> Iterator[Line]:
    from seglog_format.lines import lines_of_source, sources_of
    from seglog_format.lines.sources import sources_in

    found = sources_of(path) if joined is None else sources_in(joined.path, joined.storage)
    sources = [source for source in found if options.wants(source)]
    sizes = [source.size for source in sources]
    done = 0
    with progress("Reading", sum(sizes)) as advance:
        for source, size in zip(sources, sizes, strict=True):
            if path.is_dir():
                gaps.begin(source)
            for line in lines_of_source(source, options, partial(setattr, gaps, "reached")):
                if line["type"] == "batch":
                    advance(done + line["position"])
                    if line["isValid"] and "outOfOrder" not in line:
                        gaps.come_to(source, line["position"], line.get("baseOffset"))
                    gaps.reached = line["nextOffset"]
                yield line
            if path.is_dir():
                gaps.end(source)
            done += size
            advance(done)
    if path.is_dir():
        gaps.finish(path)


def _status(line: Line, path: Path) -> int:
    """Return the exit status for a line; report a file that cannot be read on standard error."""
    if line["type"] == "file":
        problem = line.get("error") or _foreign(_file(path, line))
        if problem is not None:
            diagnose(f"{line['file']}: {problem}")
            return UNREADABLE
    if line["type"] == "logEnd" and is_unreadable(line):
        diagnose(unreadable_text(line["file"], line["fileBytes"], _file(path, line)))
        return 0 if line["file"].endswith(CLEANED) else FINDINGS  # compaction had not written its first batch
    if line.get("refused"):
        return UNREADABLE
    if line.get("zeroBytes"):
        return 0  # its error is what Kafka's reader says of zeros
    is_bad = any(line.get(key) for key in ("invalid", "error", "outOfOrder"))
    return FINDINGS if is_bad or line.get("isValid") is False else 0


def _file(path: Path, line: Line) -> Path:
    return path / line["file"] if path.is_dir() else path


def _foreign(path: Path) -> str | None:
    """Return what a file of no known kind is; None if that is not known either, or the file has a kind."""
    from seglog_format.lines.sources import SourceKind, source_of

    return foreign_at(path) if source_of(path, path.name, 0).kind is SourceKind.OTHER else None


def is_unreadable(line: Line) -> bool:
    """Return whether a log holds bytes of which none could be read, and neither zeros nor an error says why."""
    return not line["batches"] and line["fileBytes"] > line["zeroBytes"] and line["error"] is None


def _is_of_no_known_kind(path: Path, *, is_text: bool) -> bool:
    """Return whether a path is a file that neither its name nor its content makes known."""
    from seglog_format.lines.sources import SourceKind, has_known_name, sources_of

    if not path.is_file() or sources_of(path)[0].kind is not SourceKind.OTHER:
        return False
    return not has_known_name(path.name) or not (is_text or path.stat().st_size == 0)


class _TextWriter:
    """Writes lines as text, those of each file below its name."""

    def __init__(self) -> None:
        self.file = ""

    def __call__(self, line: Line) -> None:
        if line["file"] != self.file and line["type"] != "file":
            write_text(file_heading(line))
        self.file = line["file"]
        write_lines(text_of(line))

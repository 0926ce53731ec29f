"""``seglog dump``: the content of files."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

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
    diagnose,
    progress,
    write_json,
    write_lines,
    write_text,
)
from seglog_format.cli.paths import unreadable_text
from seglog_format.log.path_kind import UNKNOWN, foreign_at
from seglog_format.names import DECODED_TOPICS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from seglog_format.cli.options import RemoteChoice
    from seglog_format.lines import LineOptions
    from seglog_format.log.listing import PartitionListing

    Line = dict[str, Any]

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
        return FINDINGS
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
        from seglog_format.cli.render_dump import file_heading, text_of

        if line["file"] != self.file and line["type"] != "file":
            write_text(file_heading(line))
        self.file = line["file"]
        write_lines(text_of(line))

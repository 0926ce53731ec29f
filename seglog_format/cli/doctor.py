"""``seglog doctor``: what is wrong with log directories, whom it hurts, and what to do next."""

from __future__ import annotations

from textwrap import wrap
from typing import TYPE_CHECKING, Any, Final

import click

from seglog_format.cli.main import DONE, FINDINGS, UNREADABLE, PassingOver
from seglog_format.cli.options import PATH_OR_ARCHIVE, json_option, limit_option, remote_options, to_timestamp_ms
from seglog_format.cli.output import (
    count_text,
    diagnose,
    printable,
    size_text,
    styled,
    terminal_width,
    write_json,
    write_lines,
    write_text,
)
from seglog_format.cli.resurrect import RELEASES

if TYPE_CHECKING:
    from pathlib import Path

    from seglog_format.cli.options import RemoteChoice
    from seglog_format.doctor.sizes import Sizes
    from seglog_format.doctor.statements import Statement

EPILOG: Final = """\b
Examples:
  seglog doctor /var/lib/kafka/data-1 /var/lib/kafka/data-2
  seglog doctor my-topic-0
  seglog doctor --json /var/lib/kafka/data | jq 'select(.kind == "no start")'"""

WIDTH: Final = 120
"""Maximum width of a sentence."""
TOP: Final = 10
"""Maximum number of producers that text shows."""


@click.command(epilog=EPILOG)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=PATH_OR_ARCHIVE)
@click.option("--now", callback=to_timestamp_ms, metavar="TIME", help="Assume this time: milliseconds or an ISO time.")
@click.option(
    "--version",
    "version",
    type=click.Choice(RELEASES),
    help="The brokers that shall start: also say which directories, features and settings they do not accept.",
)
@click.option("--sizes", "with_sizes", is_flag=True, help="Also print what each partition consists of.")
@remote_options
@limit_option
@json_option
def command(  # noqa: PLR0913 - one for each option
    paths: tuple[Path, ...],
    *,
    now: int | None,
    version: str | None,
    with_sizes: bool,
    remote: RemoteChoice | None,
    limit: int,
    as_json: bool,
) -> int:
    """Say what is wrong with the log directories or partition directories PATHS, worst first.

    Each statement names the evidence (a file, a position, a rule), who is hurt by it, and the command to go on with. It
    says whether a broker starts, and what it then cuts, removes or forgets; which offsets are missing; what damage
    there is; which transactions are open, and which of them hang; which timestamps in the future hold back retention;
    and which segments of a tiered partition brokers cannot copy. Name all log directories of a broker, or of a cluster,
    to have them compared. Nothing is changed.

    With --sizes, every record is decoded, and a line for each partition says how many batches, records and bytes it
    has, by codec and producer, which record is the largest, and how many batches have one record.

    The exit status is 0 if nothing is wrong, 1 if something is, also if a start of a broker cuts an incomplete batch or
    zeros off the end of a log, and 3 if something could not be read.
    """
    from seglog_format.doctor.examination import Examination
    from seglog_format.storage.environment import system_clock
    from seglog_format.tier.local_metadata import LocalMetadataTopic

    passing = PassingOver("things")
    known = LocalMetadataTopic() if remote is None else remote.open()
    at_ms = system_clock() if now is None else now
    examination = Examination(paths, now_ms=at_ms, remote=known, limit=limit, guard=passing.errors_of, version=version)
    statements = examination.statements()
    for number, each in enumerate(statements, 1):
        if as_json:
            write_json(as_object(each))
        else:
            _write(number, each)
    if not as_json:
        write_text(count_text(len(statements), "statement") if statements else "nothing is wrong")
    for sizes in examination.sizes() if with_sizes else ():
        if as_json:
            write_json(sizes.as_object())
        else:
            _write_sizes(sizes)
    for remark in examination.remarks:
        diagnose(remark)
    status = FINDINGS if statements else DONE
    return max(status, passing.status(), UNREADABLE if examination.unread else DONE)


def _write(number: int, one: Statement) -> None:
    first, *more = wrap(
        f"{number}. {one.kind.value}: {printable(one.what)}",
        min(terminal_width() or WIDTH, WIDTH),
        subsequent_indent="   ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    write_text(first.replace(f"{one.kind.value}:", f"{styled(one.kind.value, 'bold')}:", 1))
    write_lines(more)
    rules = f" [{', '.join(one.requirements)}]" if one.requirements else ""
    offset = "" if one.offset is None else f", offset {one.offset}"
    write_text(f"   evidence  {printable(str(one.where))}{offset}{rules}")
    write_text(f"   hurt      {', '.join(each.value for each in one.hurt)}")
    write_text(f"   next      {printable(one.next_step)}")


def _write_sizes(one: Sizes) -> None:
    counts = (
        f"{count_text(one.whole.batches, 'batch')}, {count_text(one.records, 'record')}, {size_text(one.whole.size)}"
    )
    write_text(f"{printable(str(one.path))}: {counts}; {count_text(one.single, 'batch')} of one record")
    if one.largest_record_offset is not None:
        batch = f"largest batch {size_text(one.largest_batch)}, {printable(str(one.largest_batch_at))}"
        write_text(f"  largest record {size_text(one.largest_record)}, offset {one.largest_record_offset}; {batch}")
    for name, share in (*one.codecs.items(), *((f"producer {number}", each) for number, each in one.by_size()[:TOP])):
        write_text(f"  {name}: {count_text(share.batches, 'batch')}, {size_text(share.size)}")
    if one.unread:
        write_text(f"  {count_text(one.unread, 'batch')} cannot be decoded")


def as_object(one: Statement) -> dict[str, Any]:
    """Return a statement for JSON."""
    from seglog_format.field_names import kafka_name

    return {
        "type": "statement",
        "kind": one.kind.value,
        "rank": one.rank,
        "what": one.what,
        "file": one.where.path,
        "position": one.where.position,
        "field": kafka_name(one.where.field),
        "requirements": list(one.requirements),
        "hurt": [each.value for each in one.hurt],
        "offset": one.offset,
        "offsets": None if one.offsets is None else one.offsets.as_object(),
        "next": one.next_step,
    }

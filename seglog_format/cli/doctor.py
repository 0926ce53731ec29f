"""``seglog doctor``: what is wrong with log directories, whom it hurts, and what to do next."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from seglog_format.cli.exit_status import DONE, FINDINGS, UNREADABLE
from seglog_format.cli.lookup import to_timestamp_ms
from seglog_format.cli.options import PATH, json_option
from seglog_format.cli.output import count_text, diagnose, printable, styled, write_json, write_text
from seglog_format.cli.passing_over import PassingOver
from seglog_format.cli.tier_options import remote_options

if TYPE_CHECKING:
    from pathlib import Path

    from seglog_format.cli.tier_options import RemoteChoice
    from seglog_format.doctor.statements import Statement

EPILOG: Final = """\b
Examples:
  seglog doctor /var/lib/kafka/data-1 /var/lib/kafka/data-2
  seglog doctor my-topic-0
  seglog doctor --json /var/lib/kafka/data | jq 'select(.kind == "no start")'"""


@click.command(epilog=EPILOG)
@click.argument("paths", metavar="PATH...", nargs=-1, required=True, type=PATH)
@click.option("--now", callback=to_timestamp_ms, metavar="TIME", help="Assume this time: milliseconds or an ISO time.")
@remote_options
@json_option
def command(paths: tuple[Path, ...], *, now: int | None, remote: RemoteChoice | None, as_json: bool) -> int:
    """Say what is wrong with the log directories or partition directories PATHS, worst first.

    Each statement names the evidence (a file, a position, a rule), who is hurt by it, and the command to go on with. It
    says whether a broker starts, and what it then cuts, removes or forgets; which offsets are missing; what damage
    there is; which transactions are open, and which of them hang; and which timestamps in the future hold back
    retention. Name all log directories of a broker, or of a cluster, to have them compared. Nothing is changed.

    The exit status is 0 if nothing is wrong, 1 if something is, and 3 if something could not be read.
    """
    from seglog_format.doctor.examination import Examination
    from seglog_format.storage.environment import system_clock
    from seglog_format.tier.local_metadata import LocalMetadataTopic

    passing = PassingOver("things")
    known = LocalMetadataTopic() if remote is None else remote.open()
    at_ms = system_clock() if now is None else now
    examination = Examination(paths, now_ms=at_ms, remote=known, guard=passing.errors_of)
    statements = examination.statements()
    for number, each in enumerate(statements, 1):
        if as_json:
            write_json(as_object(each))
        else:
            _write(number, each)
    for remark in examination.remarks:
        diagnose(remark)
    if not as_json:
        write_text(f"{count_text(len(statements), 'statement')}" if statements else "nothing is wrong")
    status = FINDINGS if statements else DONE
    return max(status, passing.status(), UNREADABLE if examination.unread else DONE)


def _write(number: int, one: Statement) -> None:
    write_text(f"{number}. {styled(one.kind.value, 'bold')}: {printable(one.what)}")
    rules = f" [{', '.join(one.requirements)}]" if one.requirements else ""
    offset = "" if one.offset is None else f", offset {one.offset}"
    write_text(f"   evidence  {printable(str(one.where))}{offset}{rules}")
    write_text(f"   hurt      {', '.join(each.value for each in one.hurt)}")
    write_text(f"   next      {printable(one.next_step)}")


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

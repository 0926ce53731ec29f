"""``seglog lookup``: the position of an offset or a timestamp, and how a reader finds it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from seglog_format.cli.main import FINDINGS
from seglog_format.cli.options import (
    json_option,
    offset_of,
    path_argument,
    remote_options,
    showing_warnings,
    to_timestamp_ms,
)
from seglog_format.cli.output import diagnose, write_json, write_line, write_text

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from seglog_format.cli.lookup_steps import Step
    from seglog_format.cli.options import RemoteChoice

EPILOG: Final = """\b
Examples:
  seglog lookup my-topic-0 4711
  seglog lookup --explain my-topic-0 --offset 4711
  seglog lookup --trust-indexes my-topic-0 4711
  seglog lookup --explain my-topic-0 --timestamp 2026-01-31T12:00:00Z
  seglog lookup my-topic-0 --timestamp -1
  seglog lookup --explain --remote s3://bucket/tier my-topic-0 4711"""


@click.command(epilog=EPILOG, context_settings={"ignore_unknown_options": True})
@path_argument
@click.argument("number", metavar="[OFFSET]", type=offset_of, required=False)
@click.option("--offset", type=offset_of, metavar="N", help="Find this offset.")
@click.option(
    "--timestamp",
    callback=to_timestamp_ms,
    metavar="TIME",
    help="Find the first record that is not older: milliseconds or an ISO time; -1 is the end of the log, -2 its start,"
    " -3 the record with the greatest timestamp.",
)
@click.option("--explain", is_flag=True, help="Print every step.")
@click.option(
    "--trust-indexes",
    is_flag=True,
    help="Start at an index entry that looks right, as brokers do, instead of proving it by a walk.",
)
@json_option
@remote_options
def command(  # noqa: PLR0913 - an option each
    path: Path,
    *,
    number: int | None,
    offset: int | None,
    timestamp: int | None,
    explain: bool,
    trust_indexes: bool,
    as_json: bool,
    remote: RemoteChoice | None,
) -> int:
    """Find an OFFSET or a timestamp in the partition directory at PATH, or in one log file.

    With --explain, each step is printed: file list, index entry, walk, batch, record, and its requirement. The
    exit status is 1 when there is no such record.

    No index is trusted by default: the walk that proves an entry reads the header of each batch before it in its
    segment, about a second for some hundred thousand. With --trust-indexes a lookup takes no longer in a large segment
    than in a small one, but a manipulated index can mislead it.

    With --remote, indexes are trusted, and the number of requests and of fetched bytes is reported.
    """
    from seglog_format.cli.lookup_steps import lookup_offset, lookup_timestamp, opened

    given = [value for value in (number, offset, timestamp) if value is not None]
    if len(given) != 1:
        msg = "give one offset or one timestamp"
        raise click.UsageError(msg)
    steps: list[Step] | None = [] if explain else None
    look_up = lookup_offset if timestamp is None else lookup_timestamp
    store = None if remote is None else remote.open()
    with showing_warnings():
        found = opened(path, trust_indexes=trust_indexes, remote=store)
    with found as partition:
        try:
            answer = look_up(partition, given[0], steps)
        finally:
            _write_steps(steps or (), as_json=as_json)
    if store is not None:
        answer |= {"fetched": {"requests": store.traffic.requests, "bytes": store.traffic.size}}
    _write_answer(answer, as_json=as_json)
    return 0 if answer["found"] else FINDINGS


def _write_steps(steps: Iterable[Step], *, as_json: bool) -> None:
    from seglog_format.cli.lookup_steps import step_text

    for step in steps:
        write_line(
            {"type": "step", "step": step.name, "text": step.text, "requirements": list(step.requirements)}
            if as_json
            else step_text(step)
        )


def _write_answer(answer: dict[str, Any], *, as_json: bool) -> None:
    from seglog_format.cli.lookup_steps import answer_text

    if as_json:
        write_json(answer)
        return
    write_text(answer_text(answer))
    if "fetched" in answer:
        diagnose(f"{answer['fetched']['bytes']:,} bytes fetched in {answer['fetched']['requests']} requests")

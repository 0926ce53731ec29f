"""``seglog anonymise``: a copy of a directory that is fit to share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from seglog_format.cli.main import FINDINGS
from seglog_format.cli.options import PATH, json_option, path_argument
from seglog_format.cli.output import count_text, progress, write_line
from seglog_format.cli.paths import progress_total

if TYPE_CHECKING:
    from pathlib import Path

    from seglog_format.generation.anonymise import NotUnderstood

EPILOG = """\b
Examples:
  seglog anonymise my-topic-0 -o shared/my-topic-0
  seglog anonymise /var/lib/kafka/data -o shared"""


@click.command(epilog=EPILOG)
@path_argument
@click.option("-o", "--output", type=PATH, required=True, metavar="DIR", help="Write here: a new or empty directory.")
@json_option
def command(path: Path, *, output: Path, as_json: bool) -> int:
    """Copy a log directory or partition directory, and replace its content by other bytes.

    Offsets, sizes, codecs, producers, transactions, and damage stay. Keys, values, headers, names, ids and hosts are
    replaced; equal ones stay equal. Times move by one difference. Compressed batches get other sizes. Bytes that
    cannot be read are replaced by random ones and listed; the exit status is then 1.
    """
    from seglog_format.generation.anonymise import anonymise

    with progress("Copying", progress_total(path)) as report:
        made = anonymise(path, output, report=report)
    for one in made.not_understood:
        fields = {"file": one.path, "position": one.position, "bytes": one.size, "problem": one.problem}
        write_line({"type": "notUnderstood", **fields, "isMissing": one.is_missing} if as_json else _text(one))
    write_line(
        {"type": "anonymised", "partitions": made.partitions, "files": made.files}
        if as_json
        else f"{count_text(made.files, 'file')} in {count_text(made.partitions, 'partition')}"
    )
    return FINDINGS if made.not_understood else 0


def _text(one: NotUnderstood) -> str:
    if one.is_missing:
        return f"{one.path or '.'}: left out: {one.problem}"
    return f"{one.path}:{one.position}: {one.size} bytes became random: {one.problem}"

"""``seglog diff``: comparison of the records of two files or directories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from seglog_format.cli.main import DONE, FINDINGS, UNREADABLE
from seglog_format.cli.options import PATH, json_option, limit_option, range_option
from seglog_format.cli.output import write_line

if TYPE_CHECKING:
    from pathlib import Path

    from seglog_format.cli.differences import Comparison

EPILOG: Final = """\b
Examples:
  seglog diff backup/my-topic-0 /var/lib/kafka/data/my-topic-0
  seglog diff before.log after.log
  seglog diff --from 1000 --to 2000 backup/my-topic-0 my-topic-0
  seglog diff --json backup data | jq .offset"""

USUAL_COUNT: Final = 10


@click.command(epilog=EPILOG)
@click.argument("first", type=PATH)
@click.argument("second", type=PATH)
@click.option("--count", default=USUAL_COUNT, show_default=True, metavar="N", help="Differences to print; 0 for all.")
@range_option
@json_option
@limit_option
def command(first: Path, second: Path, *, count: int, as_json: bool, **choices: Any) -> int:  # noqa: ANN401 - click passes what the options gave
    """Compare the records of FIRST and SECOND by offset: log files, partition directories or log directories.

    Records are equal if timestamp, key, value, headers, sequence and control type are equal; batching and
    compression do not matter. Damaged batches are not compared, and the last line says which offsets that are; the
    comparison goes on after them. With --since or --until, only records of these times are compared. The exit status is
    1 when anything differs, and 3 when damage kept records from it.
    """
    from seglog_format.cli.differences import compared
    from seglog_format.lines import LineOptions

    status = DONE
    for comparison in compared(first, second, LineOptions(**choices)):
        _write(comparison, count, as_json=as_json)
        status = max(status, _status(comparison))
    return status


def _status(comparison: Comparison) -> int:
    if comparison.is_damaged:
        return UNREADABLE
    return FINDINGS if comparison.is_different else DONE


def _write(comparison: Comparison, count: int, *, as_json: bool) -> None:
    from seglog_format.cli.differences import difference_text, summary_text

    for number, difference in enumerate(comparison, 1):
        if count and number > count:
            continue
        write_line(difference.as_object() if as_json else difference_text(difference))
    write_line(summary_object(comparison) if as_json else summary_text(comparison))


def summary_object(comparison: Comparison) -> dict[str, Any]:
    """Return the totals of a comparison for JSON."""
    return {
        "type": "comparison",
        "name": comparison.name,
        "equal": comparison.equal,
        "different": comparison.different,
        "problems": comparison.problems,
        "notComparedFrom": next((each.first_offset for each in comparison.not_compared), None),
        "notCompared": [each.as_object() for each in comparison.not_compared],
    }

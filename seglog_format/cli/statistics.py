"""The option ``--stats``: how many entries compiled code left to slower code, and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click

from seglog_format.cli.output import diagnose, write_json

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable

    from seglog_format.scan_statistics import FallbackCause, ScanStatistics

CommandT = TypeVar("CommandT", bound="Callable[..., Any]")


def stats_option(what: str) -> Callable[[CommandT], CommandT]:
    """Return the option ``--stats``.

    Args:
        what: the text of its help.
    """
    return click.option("--stats", is_flag=True, help=what)


def left_text(fallbacks: Counter[FallbackCause]) -> str:
    """Return how many entries were left to slower code, by cause."""
    from seglog_format.cli.render import count_text

    causes = ", ".join(f"{cause.value} {count}" for cause, count in fallbacks.items())
    return f"{count_text(fallbacks.total(), 'entry')} left to slower code{f' ({causes})' if causes else ''}"


def write_statistics(counts: dict[str, int], fallbacks: Counter[FallbackCause], text: str, *, as_json: bool) -> None:
    """Report what compiled code did: on standard error as text, or as one more object of JSON.

    Args:
        counts: what it did, by the name in JSON.
        fallbacks: what it left, by cause.
        text: the counts in words.
        as_json: whether output is JSON.
    """
    if as_json:
        by_cause = {cause.value: count for cause, count in fallbacks.items()}
        write_json({"type": "statistics", **counts, "fallbacks": by_cause})
    else:
        diagnose(f"{text}, {left_text(fallbacks)}")


def write_scan_statistics(statistics: ScanStatistics, *, as_json: bool) -> None:
    """Report what scans left to slower code; see `write_statistics`."""
    count = statistics.library_decompressed
    text = f"{count} decompressed by a library"
    write_statistics({"libraryDecompressed": count}, statistics.fallbacks, text, as_json=as_json)

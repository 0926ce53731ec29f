"""The summary at the start of the performance page: four sentences and one table, from ``reports/bench.json``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

OURS: Final = ("seglog-format", "seglog verify")
KAFKA_TOOL: Final = "kafka-dump-log"
KAFKA_CLASSES: Final = "Java"

Row = dict[str, Any]


class Work(NamedTuple):
    """A row of the table: its title, the work and the data set in the report, and the unit."""

    title: str
    work: str
    data: str
    unit: str = "MB/s"


VERIFY: Final = Work("verify: a whole process checks a log", "verify", "u100_1g")
SCAN: Final = Work("scan: every record into columns", "columns", "u100")
LOOKUP: Final = Work("lookup: one offset in an open segment", "lookup-warm", "u100", "lookups/s")
ENCODE: Final = Work("encode: columns into batches", "encode", "u100")

CLOSE: Final = """\
The figures are medians of one run at commit `{commit}`, on {date}, on a machine with {cores} cores ({processor}),
with the log in memory; targets, limits and method follow below."""


def lines(report: dict[str, Any]) -> Iterator[str]:
    """Yield the sentences and the table.

    Args:
        report: report of `make bench`.
    """
    yield ""
    yield from _sentences(report)
    yield CLOSE.format(**report["made"]["machine"], date=report["made"]["date"], commit=report["made"]["commit"][:8])
    yield ""
    yield "| work | data | unit | seglog-format | best other library | Kafka's own |"
    yield "|---|---|---|---:|---|---|"
    yield from (_table_row(report["results"], work) for work in (VERIFY, SCAN, LOOKUP, ENCODE))
    yield ""
    yield "Kafka's own is the tool `kafka-dump-log --deep-iteration`, or a Java program with Kafka's classes where"
    yield "there is no such tool. A dash means that no contender of that kind does this work."


def _sentences(report: dict[str, Any]) -> Iterator[str]:
    """Yield a sentence for each of verify, scan and lookup that was measured."""
    results = report["results"]
    bytes_of = {each["name"]: each["bytes"] for each in report["data"]}
    ours, kafka = (_best(results, VERIFY, which) for which in (_is_ours, _is_kafka))
    if ours and kafka:
        yield (
            f"`seglog verify` checks a log of {bytes_of[VERIFY.data] / 1e6:,.0f} MB at {_median(ours):,.0f} MB/s, "
            f"including the start of the process;\n`{kafka['contender']}` reads it at {_median(kafka):,.0f} MB/s."
        )
    ours, kafka = (_best(results, SCAN, which) for which in (_is_ours, _is_kafka))
    if ours and kafka:
        yield (
            f"`scan` reads records with values of 100 bytes into Arrow columns at {_median(ours):,.0f} MB/s in one "
            f"thread; Kafka's classes\nfill columns at {_median(kafka):,.0f} MB/s."
        )
    ours, kafka = (_best(results, LOOKUP, which) for which in (_is_ours, _is_kafka))
    if ours and kafka:
        yield (
            f"Finding an offset in an open segment takes {ours['median'] * 1e6:.1f} µs; a program with Kafka's classes "
            f"takes {kafka['median'] * 1e6:.1f} µs."
        )


def _table_row(results: Sequence[Row], work: Work) -> str:
    ours, *others = (_best(results, work, which) for which in (_is_ours, _is_library, _is_kafka))
    cells = [f"**{_median(ours):,.0f}**" if ours else "not in this run", *map(_named, others)]
    return f"| {work.title} | `{work.data}` | {work.unit} | {' | '.join(cells)} |"


def _named(row: Row | None) -> str:
    return f"{_median(row):,.0f} ({row['contender']})" if row else "-"


def _best(results: Sequence[Row], work: Work, which: Callable[[Row], bool]) -> Row | None:
    """Return the fastest contender of a kind, by its median; None if none was measured."""
    rows = [row for row in results if (row["work"], row["data"]) == (work.work, work.data) and "median" in row]
    return max(filter(which, rows), key=_median, default=None)


def _median(row: Row) -> float:
    """Return the speed of the median pass."""
    return float(row.get("megabytesPerSecond") or row["lookupsPerSecond"])


def _is_ours(row: Row) -> bool:
    return row["contender"] in OURS


def _is_kafka(row: Row) -> bool:
    return str(row["contender"]).startswith((KAFKA_TOOL, KAFKA_CLASSES))


def _is_library(row: Row) -> bool:
    return row.get("program", "ours") != "ours" and not _is_kafka(row)

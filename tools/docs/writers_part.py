"""The part of the performance page about the writers of logs, from ``reports/writers.json``."""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tools.docs.spreads import distances
from tools.reports import birth

if TYPE_CHECKING:
    from collections.abc import Iterator

REPORT: Final = Path(__file__).resolve().parents[2] / "reports" / "writers.json"

TEXT: Final = """
## Who wrote the log

The same {records:,} records, {recordsOfBatch} to a batch, written by real producers: whole clients through `seglog
serve --writable`, encoders of libraries through a small client to the same server. Transactions (of ten batches,
committed), the time of the append and messages of magic 0 and 1 are in the file as the named library encoded them;
Kafka's own cleaner compacted the compacted logs, and removed a sixth of their records.

{birth} Each log is opened, read to its end and closed, by `{call}`; before that, every record
was compared with the intended one. The logs of a codec take turns; the median of {rounds} passes counts, in processor
time. {spread} Each cell has thousands of records a second and the ratio to the best writer of the same codec.{marks}
"""

MARKS: Final = """ After the
ratio, *f* and a number say how many entries the fallback decoder read, *l* and a number how many a library had to
decompress for the kernel."""


def lines() -> Iterator[str]:
    """Yield the section."""
    report = json.loads(REPORT.read_text(encoding="utf-8"))
    marks = MARKS if any(map(_mark, report["cells"])) else ""
    yield TEXT.format(
        **report, birth=birth(report), spread=distances([row["seconds"] for row in report["cells"]]), marks=marks
    ).rstrip()
    yield from _table(report["cells"])
    yield from _verdict(report)
    yield from _missing(report["missing"])


def _table(cells: list[dict[str, Any]]) -> Iterator[str]:
    codecs = list(dict.fromkeys(row["codec"] for row in cells))
    found = {(_writer(row), row["codec"]): row for row in cells}
    yield ""
    yield f"| writer | log | {' | '.join(codecs)} |"
    yield f"|---|---|{'---:|' * len(codecs)}"
    for writer in dict.fromkeys(map(_writer, cells)):
        speeds = [_speed(found.get((writer, codec))) for codec in codecs]
        yield f"| {' | '.join([*writer, *speeds])} |"


def _writer(row: dict[str, Any]) -> tuple[str, str]:
    """Return the name with the version, and the kind of the log."""
    kind = row["kind"] if row["magic"] > 1 else f"magic {row['magic']}"
    return f"{row['writer']} {row['version']}", kind


def _speed(row: dict[str, Any] | None) -> str:
    return "-" if row is None else f"{row['recordsPerSecond'] / 1000:,.0f} ({row['ratio']:.2f}{_mark(row)})"


def _mark(row: dict[str, Any]) -> str:
    """Return the entries of a log that slower code read or decompressed; empty if there were none."""
    counts = {"f": sum(row["fallbacks"].values()), "l": row["libraryDecompressed"]}
    return "".join(f", *{letter}* {count:,}" for letter, count in counts.items() if count)


def _verdict(report: dict[str, Any]) -> Iterator[str]:
    yield ""
    below = [f"{', '.join(_writer(row))}, {row['codec']} ({row['ratio']:.2f})" for row in report["below"]]
    yield f"Below {report['leastRatio']} of the best: {', '.join(below) or 'none'}."
    lz4 = report["aiokafkaLz4"]
    if lz4["ratio"] is not None:
        yield f"aiokafka's lz4 reaches {lz4['ratio']:.2f} of {lz4['against']}'s; the target is {lz4['atLeast']}."


def _missing(missing: list[dict[str, Any]]) -> Iterator[str]:
    if not missing:
        return
    yield ""
    yield "Not measured:"
    yield ""
    for (writer, reason), rows in groupby(missing, key=lambda row: (row["writer"], row["reason"])):
        kinds = dict.fromkeys(f"{_kind(row)}, {row['codec']}" for row in rows)
        yield f"- {writer} ({'; '.join(kinds)}): {reason}"


def _kind(row: dict[str, Any]) -> str:
    return row["kind"] if row["magic"] > 1 else f"magic {row['magic']}"

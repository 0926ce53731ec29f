"""The page and the picture of ``make bench``, from ``reports/bench.json``: no number is written into them by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tools.docs import performance_summary, writers_part
from tools.docs.pictures import ACCENT, EDGE, INK, PAPER, SOFT, box, text
from tools.docs.spreads import distances
from tools.reports import birth

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

REPORT: Final = Path(__file__).resolve().parents[2] / "reports" / "bench.json"
PAGE: Final = "docs/explanation/performance.md"
PICTURE: Final = "docs/assets/performance.svg"
OURS: Final = "seglog-format"

TITLES: Final = {
    "scan": "Walking over the batches",
    "crc": "Checking the CRC of every batch",
    "visit": "Visiting every record, CRC checked",
    "columns": "Every record into columns, CRC checked",
    "objects": "Every record as a Python object",
    "lookup-warm": "Finding one offset in an open segment",
    "lookup-cold": "Opening a segment and finding one offset",
    "time-warm": "Finding one time in an open segment",
    "time-cold": "Opening a segment and finding one time",
    "log-end": "Opening a segment and finding its end",
    "recover": "Verifying a segment and rebuilding its indexes",
    "encode": "Encoding batches",
    "visit-2-threads": "Visiting every record, two threads",
    "columns-2-threads": "Every record into columns, two threads",
    "verify": "A whole process that verifies a log",
}

PARTS: Final = {"memory": "Memory", "articles": "Claims of articles"}

PICTURE_LINE: Final = "![Speeds of reading every record, by data set](../assets/performance.svg)"

METHOD: Final = """\

## How this was measured

{birth}

There are {rounds} rounds of each work, after one that is not counted and whose result is checked. All contenders read
the same files from the page cache, made from seed {seed}, in one thread unless stated otherwise. Visiting and columns,
in one thread and in two, take turns with each other. Speeds and ratios are those of the median pass; limits of the
machine and claims of articles are those of the best one. {spread} Figures of a busy machine vary; ratios vary less. The
load of the machine includes the benchmark itself.

- "Visiting" a record means reading at least its offset, its time and the sizes of its key and value, with the checksum
  verified. Each contender computes one number for the whole log from these, the first and last bytes and the number of
  headers; it must equal the number with which the log was written.
- "Columns" hold offset, time, key, value and headers, 65,536 rows at a time; earlier rows are not kept. The same number
  is computed from them in a pass that is not counted.
- Peers that need a log as bytes in memory load it before the clock starts; mapped files stay mapped. seglog-format maps
  the log too (`open_partition(path, mapped=True)`), except where a row names a command or says "in windows", as calls
  read by default.
- Reads with an emptied page cache still come from a virtual disk, which may have a cache of its own.
"""

BAR, GAP, LEFT, RIGHT, TOP = 13, 14, 96, 110, 64
WIDTH: Final = 900
COLOURS: Final = {"ours": ACCENT, "columns": "#1d4ed8", "visit": "#93c5fd"}
LEGEND: Final = {
    "ours": "seglog-format, columns",
    "columns": "best of the others, columns",
    "visit": "best of the others, visiting only",
}


def pages(notice: str) -> dict[str, str]:
    """Return the generated files, by path."""
    report = json.loads(REPORT.read_text(encoding="utf-8"))
    return {PAGE: page(report, notice), PICTURE: picture(report["results"])}


def page(report: dict[str, Any], notice: str) -> str:
    """Return the page about the measurements.

    Args:
        report: report of `make bench`.
        notice: says that the page is generated.
    """
    sections = (_versions, _left_out, _data, _ratios, _limits, _works, _memory, _articles)
    lines = [f"{notice}# Performance", *performance_summary.lines(report), "", PICTURE_LINE]
    facts = {**report, "birth": birth(report), "seed": report["made"]["seed"], "spread": distances(report["results"])}
    lines.append(METHOD.format(**facts).rstrip())
    for section in sections:
        lines += section(report)
    lines += writers_part.lines()
    return "\n".join(lines) + "\n"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]], words: int = 1) -> Iterator[str]:
    """Yield the lines of a table: columns of words first, then columns of numbers."""
    yield ""
    yield f"| {' | '.join(head)} |"
    yield "|" + "---|" * words + "---:|" * (len(head) - words)
    yield from (f"| {' | '.join(row)} |" for row in rows)


def _versions(report: dict[str, Any]) -> Iterator[str]:
    yield ""
    versions = dict(report["made"]["versions"])
    versions.pop("seglog-format", None)
    taking_part = dict.fromkeys([f"Python {versions.pop('python')}", *versions.values()])
    yield f"Taking part: {'; '.join(taking_part)}."
    for name, reason in report.get("missing", {}).items():
        yield from ("", f"Not taking part: {name}, {reason}.")


def _left_out(report: dict[str, Any]) -> Iterator[str]:
    """Yield the works that the reported run did not measure."""
    there = {row["work"] for row in report["results"]}
    missing = [title for work, title in TITLES.items() if work not in there]
    missing += [title for part, title in PARTS.items() if not report.get(part)]
    if missing:
        yield from ("", f"Not in this run: {'; '.join(title[0].lower() + title[1:] for title in missing)}.")


def _data(report: dict[str, Any]) -> Iterator[str]:
    yield from ("", "## The data")
    rows = [
        (f"`{each['name']}`", each["about"], *(f"{each[key]:,}" for key in ("bytes", "records", "batches")))
        for each in report["data"]
    ]
    yield from _table(("set", "holds", "bytes", "records", "batches"), rows, 2)


def _ratios(report: dict[str, Any]) -> Iterator[str]:
    yield from ("", "## Targets: ratios to the best of the others", "")
    yield "Throughput of the columnar engine relative to the fastest other implementation on the same machine, and to"
    yield "hardware limits; for lookups, the fraction of the time. A target beyond the limit of the machine is replaced"
    yield "by 85 % of that limit, and the table says so. Processor time is that of all threads of a program, with its"
    yield "compiler and garbage collector, from the request to the answer. Rows against seconds or MB have the part of"
    yield "it that commands, or first calls of processes, took: processor time, or the peak of memory."
    rows = [(row["title"], f"`{row['data']}`", _asked(row), *_reached(row)) for row in report["ratios"]]
    yield from _table(("work", "data", "target", "against", "ratio", "by processor time", "of the limit"), rows, 4)
    for other in report.get("otherProcessors", []):
        yield from ("", f"The same on another kind of processor. {birth(other)}")
        rows = [(row["title"], f"`{row['data']}`", *_reached(row)) for row in other["ratios"]]
        yield from _table(("work", "data", "against", "ratio", "by processor time", "of the limit"), rows, 3)


def _asked(row: dict[str, Any]) -> str:
    asked = f"at most {row['atMost']}" if "atMost" in row else f"at least {row['atLeast']}"
    return f"{row['limited']:.2f}, 85 % of the limit ({asked})" if "limited" in row else asked


def _reached(row: dict[str, Any]) -> tuple[str, str, str, str]:
    if "ratio" not in row:
        return (row["note"], "missed" if "met" in row else "-", "-", "-")
    processor = f"{row['processorRatio']:.2f}" if "processorRatio" in row else "-"
    ratio = f"**{row['ratio']:.2f}**" if row["met"] else f"{row['ratio']:.2f}, missed"
    return (row["against"], ratio, processor, f"{row['shareOfLimit']:.0%}" if "shareOfLimit" in row else "-")


def _limits(report: dict[str, Any]) -> Iterator[str]:
    yield from ("", "## Limits of the machine", "")
    yield "Megabytes of log a second, one thread: memory, checksums, and each codec alone over the batches of a set."
    kinds = {**report["limits"]["megabytesPerSecond"], **report["limits"]["codecs"]}
    rows = [
        (kind, name, f"{speed:,.0f}") for kind, ways in kinds.items() for name, speed in ways.items() if name != "best"
    ]
    yield from _table(("limit", "way", "MB/s"), rows, 2)
    gains = [(f"`{name}`", f"{gain['times']:.2f}") for name, gain in report["limits"].get("twoCores", {}).items()]
    if gains:
        yield from ("", "Speedup of two processes over one at the same work, an upper bound for any two threads:")
        yield from _table(("data", "times"), gains)


def _works(report: dict[str, Any]) -> Iterator[str]:
    for work, title in TITLES.items():
        rows = [row for row in report["results"] if row["work"] == work]
        if not rows:
            continue
        sets = list(dict.fromkeys(row["data"] for row in rows))
        known = {(row["contender"], row["data"]): row for row in rows}
        unit = "lookups a second" if work.startswith(("lookup", "time")) else "MB/s"
        yield from ("", f"## {title}, {unit}")
        for call in dict.fromkeys(row["call"] for row in rows if "call" in row):
            yield from ("", f"The timed call of seglog-format is `{call}`.")
        names = dict.fromkeys(row["contender"] for row in rows)
        cells = [(name, *(_speed(known.get((name, each), {})) for each in sets)) for name in names]
        yield from _table(("", *(f"`{each}`" for each in sets)), cells)


def _speed(row: dict[str, Any]) -> str:
    speed = row.get("megabytesPerSecond", row.get("lookupsPerSecond"))
    return f"{speed:,.0f}" if speed is not None else "not built" if row.get("note") == "not built" else "-"


def _memory(report: dict[str, Any]) -> Iterator[str]:
    if not report.get("memory"):
        return
    yield from ("", "## Memory", "")
    yield "Private memory of the process, not backed by files, before a scan of all columns and at its peak."
    rows = [
        (f"`{row['data']}`", *(f"{row[key] / 1e6:,.0f}" for key in ("bytes", "before", "peak")))
        if "peak" in row
        else (f"`{row['data']}`", row["note"], "-", "-")
        for row in report["memory"]
    ]
    yield from _table(("data, repeated", "log, MB", "before, MB", "peak, MB"), rows)


def _articles(report: dict[str, Any]) -> Iterator[str]:
    if not report.get("articles"):
        return
    yield from ("", "## Claims of articles", "")
    yield "Claims that are often repeated, with the time of the second way relative to the first on this machine."
    rows = []
    for row in report["articles"]:
        ways = ", ".join(f"{name} {figure:.3g}" for name, figure in row["ways"].items())
        sizes = ", ".join(f"{row[key]:,} bytes {key.removesuffix('Bytes')}" for key in row if key.endswith("Bytes"))
        rows.append((row["claim"], f"{ways} {row['unit']}", sizes, f"{row['ratio']:.2f}"))
    yield from _table(("claim", "measured", "sizes", "times"), rows, 3)


def picture(results: Sequence[dict[str, Any]]) -> str:
    """Return a picture with bars for our columns, and the best columns and the best visit of others, by data set.

    Args:
        results: results in the report.
    """
    sets = [row["data"] for row in results if row["work"] == "columns" and row["contender"] == OURS]
    bars = {name: _bars(results, name) for name in sets}
    longest = max((speed for found in bars.values() for speed, _ in found.values()), default=1.0)
    group = BAR * len(COLOURS) + GAP
    height = TOP + group * len(sets) + GAP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img">',
        "<title>Speeds of reading every record, by data set</title>",
        box(0.5, 0.5, WIDTH - 1, height - 1, PAPER, EDGE, title="MB of log a second, one thread, CRC checked"),
        text(16, 26, "MB of log a second, one thread, every record, CRC checked", size=14),
    ]
    for number, (kind, words) in enumerate(LEGEND.items()):
        x = 16 + 240 * number
        parts += [box(x, 38, 12, 12, COLOURS[kind], COLOURS[kind], title=words), text(x + 18, 48, words, fill=SOFT)]
    for number, (name, found) in enumerate(bars.items()):
        y = TOP + group * number
        parts.append(text(16, y + BAR * 2, name, mono=True))
        parts += _drawn(found, y, (WIDTH - LEFT - RIGHT) / longest)
    return "\n".join([*parts, "</svg>", ""])


def _bars(results: Sequence[dict[str, Any]], data: str) -> dict[str, tuple[float, str]]:
    """Return speed and name of the fastest contender, by kind of bar."""
    found: dict[str, tuple[float, str]] = {}
    for row in results:
        if row["data"] == data and "megabytesPerSecond" in row and row["work"] in {"columns", "visit"}:
            is_ours = row["contender"] == OURS
            kind = "ours" if is_ours and row["work"] == "columns" else row["work"]
            if is_ours or row["program"] != "ours":
                found[kind] = max(found.get(kind, (0.0, "")), (row["megabytesPerSecond"], row["contender"]))
    return {kind: found[kind] for kind in COLOURS if kind in found}


def _drawn(found: dict[str, tuple[float, str]], y: float, scale: float) -> Iterator[str]:
    for number, (kind, (speed, name)) in enumerate(found.items()):
        top, width = y + number * BAR, max(1.0, speed * scale)
        yield box(LEFT, top, round(width, 1), BAR - 2, COLOURS[kind], COLOURS[kind], title=f"{name}: {speed:,.0f} MB/s")
        yield text(LEFT + width + 6, top + BAR - 4, f"{speed:,.0f}", size=10, fill=INK if kind == "ours" else SOFT)

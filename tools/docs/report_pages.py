"""Pages whose figures come from ``reports/``: no number is written into a document by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tools.reports import birth

if TYPE_CHECKING:
    from collections.abc import Iterator

REPORTS = Path(__file__).resolve().parents[2] / "reports"

SPEED = """\
# Speed

The writer is a reference: it is written to be read, checks each record as a leader does, and is slow. These figures say
how slow, in terms of Kafka's own classes, which appended the same batches in the same run, in turns: median of {rounds}
rounds, files in memory, no flush.

{birth} Kafka {versions[kafka]}, {versions[java]}. Figures of a busy machine vary; ratios vary less.

`LogSegment.append` writes bytes and index entries only. `UnifiedLog.appendAsLeader` does what `append` does: it checks
the batch, gives offsets, follows producers, and then writes. `append_as_follower` takes offsets unchanged, and looks
into no record.
"""


def speed_page(notice: str) -> str:
    """Return the page about the speed of appends, from ``reports/append.json``."""
    report = json.loads((REPORTS / "append.json").read_text(encoding="utf-8"))
    return "\n".join(
        [
            notice + SPEED.format(**report, birth=birth(report), versions=report["made"]["versions"]).rstrip(),
            *_cases(report["cases"]),
            "",
        ]
    )


def _cases(cases: list[dict[str, Any]]) -> Iterator[str]:
    for case in cases:
        yield ""
        size, count = case["batchBytes"], case["recordsPerBatch"]
        yield f"## Records of {case['valueBytes']} bytes, {count} to a batch of {size:,} bytes"
        yield ""
        yield "| who | MB/s | appends/s |"
        yield "|---|---:|---:|"
        for name, speed in case["peers"].items():
            yield f"| `{name}` | {speed['megabytesPerSecond']:,.1f} | {speed['appendsPerSecond']:,} |"
        yield ""
        yield "| ratio of speeds | |"
        yield "|---|---:|"
        yield from (f"| {_code(name)} | {ratio:.4f} |" for name, ratio in case["ratios"].items())


def _code(ratio_name: str) -> str:
    return " to ".join(f"`{name}`" for name in ratio_name.split(" / "))

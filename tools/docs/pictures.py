"""The picture of a partition directory on the front page, drawn from a bundled fixture.

Plain SVG 1.1 with hex colours and no fonts of its own: it looks the same on a light and on a dark page.
"""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from html import escape
from pathlib import Path
from typing import Any

Line = dict[str, Any]

REPOSITORY = Path(__file__).resolve().parents[2]
CASE = REPOSITORY / "fixtures" / "kafka-4.3.0" / "segs"
SEGMENT = "00000000000000000102"
WANTED_OFFSET = 140

WIDTH, HEIGHT = 900, 468
INK, SOFT, PAPER, EDGE, ACCENT = "#1e293b", "#64748b", "#fbfcfe", "#cbd5e1", "#c2410c"
FILLS = {
    ".log": ("#dbeafe", "#1d4ed8"),
    ".index": ("#fef3c7", "#b45309"),
    ".timeindex": ("#dcfce7", "#15803d"),
    ".snapshot": ("#f3e8ff", "#7e22ce"),
}
MEANING = {
    ".log": "record batches",
    ".index": "offset to position",
    ".timeindex": "timestamp to offset",
    ".snapshot": "producer state",
}
MONO = "ui-monospace,SFMono-Regular,Menlo,Consolas,monospace"
SANS = "system-ui,-apple-system,Segoe UI,Helvetica,Arial,sans-serif"


def text(x: float, y: float, words: str, *, size: int = 12, fill: str = INK, mono: bool = False, more: str = "") -> str:
    """Return one line of text."""
    family = MONO if mono else SANS
    style = f'font-family="{family}" font-size="{size}" fill="{fill}"'
    return f'<text x="{x:g}" y="{y:g}" {style}{more}>{escape(words)}</text>'


def box(
    x: float, y: float, width: float, height: float, fill: str, stroke: str, *, title: str, heavy: bool = False
) -> str:
    """Return a rectangle with its meaning as the tooltip."""
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="3" fill="{fill}" stroke="{stroke}"'
        f' stroke-width="{2.5 if heavy else 1}"><title>{escape(title)}</title></rect>'
    )


def expected_lines() -> dict[str, list[Line]]:
    """Return what Kafka reads from the fixture, by line type."""
    lines = defaultdict(list)
    with gzip.open(CASE / "expected.jsonl.gz", "rt", encoding="utf-8") as file:
        for line in map(json.loads, file):
            lines[line["type"]].append(line)
    return lines


def partition_picture() -> str:
    """Return the whole picture: on the left the files, on the right how one offset is found in them."""
    lines = expected_lines()
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-labelledby="t d">',
        '<title id="t">A partition directory, and how an offset is found in it</title>',
        '<desc id="d">File names of three segments, with one segment opened: offset index, log and time index.</desc>',
        f'<rect x="1" y="1" width="{WIDTH - 2}" height="{HEIGHT - 2}" rx="10" fill="{PAPER}" stroke="{EDGE}"/>',
        *_listing(lines["file"]),
        *_steps(lines),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _listing(files: list[Line]) -> list[str]:
    chosen = ("00000000000000000048", SEGMENT, "00000000000000000156")
    parts = [
        text(24, 36, "segs-0/", size=15, mono=True, more=' font-weight="600"'),
        text(96, 36, "one partition of one topic", fill=SOFT),
        text(24, 60, "...", mono=True, fill=SOFT),
    ]
    y = 66.0
    for stem in chosen:
        if stem == SEGMENT:
            parts.append(
                box(16, y + 4, 306, 90, "#ffffff", ACCENT, title="the segment that holds offset 140", heavy=True)
            )
        for suffix in FILLS:
            size = next(line["bytes"] for line in files if line["file"] == f"segs-0/{stem}{suffix}")
            y += 21
            parts += _file(stem, suffix, f"{size:,}", y)
        y += 13
    parts.append(text(24, y + 12, "...", mono=True, fill=SOFT))
    for name in ("leader-epoch-checkpoint", "partition.metadata"):
        y += 22
        parts.append(text(24, y + 10, name, mono=True))
    parts.append(text(24, y + 48, "A segment is named by the offset it starts with.", fill=SOFT))
    return parts


def _file(stem: str, suffix: str, size: str, y: float) -> list[str]:
    fill, stroke = FILLS[suffix]
    return [
        box(24, y - 11, 12, 12, fill, stroke, title=MEANING[suffix]),
        text(44, y, stem + suffix, mono=True),
        text(314, y, size, mono=True, fill=SOFT, more=' text-anchor="end"'),
    ]


def _steps(lines: dict[str, list[Line]]) -> list[str]:
    entries = _entries(lines["offsetIndex"])
    times = _entries(lines["timeIndex"])
    batches = [line for line in lines["batch"] if SEGMENT in line["file"]]
    floor = max(entry for entry in entries if entry[0] <= WANTED_OFFSET)
    return [
        text(352, 36, f"Where is offset {WANTED_OFFSET}?", size=15, more=' font-weight="600"'),
        text(352, 66, "1", fill=ACCENT, size=14, more=' font-weight="700"'),
        text(370, 66, f"By file name: the last segment that does not start after {WANTED_OFFSET} is {int(SEGMENT)}."),
        text(352, 98, "2", fill=ACCENT, size=14, more=' font-weight="700"'),
        text(370, 98, f"By the offset index: its last entry that is not after {WANTED_OFFSET} says where to start."),
        *_index_row(112, ".index", [f"{offset} at {position:,}" for offset, position in entries], entries.index(floor)),
        text(352, 190, "3", fill=ACCENT, size=14, more=' font-weight="700"'),
        text(370, 190, "By reading: forward from there to the first batch that does not end before it."),
        *_log(batches, floor[1]),
        text(352, 358, "The time index leads from a timestamp to an offset."),
        *_index_row(372, ".timeindex", [f"{timestamp} is {offset}" for timestamp, offset in times]),
    ]


def _entries(indexes: list[Line]) -> list[tuple[int, int]]:
    index = next(line for line in indexes if SEGMENT in line["file"])
    return [(first, second) for first, second in index["entries"]]


def _index_row(y: float, suffix: str, labels: list[str], chosen: int = -1) -> list[str]:
    fill, stroke = FILLS[suffix]
    parts = [text(370, y + 24, f"{int(SEGMENT)}{suffix}", mono=True, fill=stroke)]
    for number, label in enumerate(labels):
        x = 490 + 196 * number
        heavy = number == chosen
        parts.append(box(x, y + 4, 186, 32, fill, ACCENT if heavy else stroke, title=MEANING[suffix], heavy=heavy))
        parts.append(text(x + 93, y + 24, label, mono=True, more=' text-anchor="middle"'))
    return parts


def _log(batches: list[Line], start: int) -> list[str]:
    fill, stroke = FILLS[".log"]
    end = batches[-1]["position"] + batches[-1]["sizeInBytes"]
    scale = 516 / end
    parts = [text(352, 222, f"{int(SEGMENT)}.log", mono=True, fill=stroke)]
    target = 0.0
    for batch in batches:
        position, size = batch["position"], batch["sizeInBytes"]
        first, last = batch["baseOffset"], batch["lastOffset"]
        x, width = 352 + position * scale, size * scale
        found = first <= WANTED_OFFSET <= last
        target = x if found else target
        title = f"batch of offsets {first} to {last}: {size} bytes at position {position}"
        parts.append(box(x, 232, width - 2, 44, ACCENT if found else fill, ACCENT if found else stroke, title=title))
        ink = "#ffffff" if found else INK
        middle = x + width / 2 - 1
        parts.append(text(middle, 251, str(first), mono=True, fill=ink, more=' text-anchor="middle"'))
        parts.append(text(middle, 267, f"to {last}", mono=True, fill=ink, size=11, more=' text-anchor="middle"'))
    return parts + _scan(352 + start * scale, target, start, batches)


def _scan(x: float, target: float, start: int, batches: list[Line]) -> list[str]:
    position = next(batch["position"] for batch in batches if batch["lastOffset"] >= WANTED_OFFSET)
    return [
        f'<path d="M{x + 6:g} 284 v10 H{target + 22:g} v-8" fill="none" stroke="{ACCENT}" stroke-width="2"/>',
        f'<path d="M{target + 17:g} 288 l5 -8 l5 8 z" fill="{ACCENT}"/>',
        text(x, 312, f"start at {start:,}", mono=True, size=11, fill=ACCENT, more=' text-anchor="middle"'),
        text(target + 22, 312, f"found at {position:,}", mono=True, size=11, fill=ACCENT),
    ]

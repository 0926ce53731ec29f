"""The page on tiered partitions, with two pictures of a broker's files in ``fixtures/tiered/lts-4.4.0``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from tools.docs.pictures import ACCENT, EDGE, INK, PAPER, SOFT, box, text

CASE: Final = Path(__file__).resolve().parents[2] / "fixtures" / "tiered" / "lts-4.4.0" / "expected.json"
PAGE: Final = "docs/explanation/tiered-partitions.md"
ONE_LOG: Final = "docs/assets/tiered-partition.svg"
LINEAGE: Final = "docs/assets/tiered-lineage.svg"
WIDTH: Final = 880
LEFT, RIGHT = 130, 850
REMOTE: Final = ("#dbeafe", "#1d4ed8")
LOCAL: Final = ("#dcfce7", "#15803d")
VOID: Final = ("#f1f5f9", "#94a3b8")
BAR: Final = 26
CUT_AT: Final = 303
"""Offset at which the disk lost the end of the log, in the fixture; see chapter 46."""

TEXT: Final = """\
# How a partition is tiered

With tiered storage the log of a partition is in two places, and a third one says what counts. No tool that reads one
of them alone can show what a consumer gets. The pictures are drawn from what a broker of Kafka 4.4.0 left behind.

## Disk and store

![Segments of a partition in a remote store and on a disk, and what a consumer gets](../assets/tiered-partition.svg)

A broker copies each segment to the store when it is no longer active and all its transactions have ended. Later it
deletes the local copy; until then the segment is in both places. So the local log begins at offset {local}, while
consumers may read from {begin} on. That is no loss, and `seglog ls` says what is not here and why. The checkpoint file
`log-start-offset-checkpoint` has the start of the whole log.

Here a client deleted records up to {begin}. The object that holds offset {begin} begins at {first} and stays whole;
the log start offset alone hides the records before it. Objects that lie wholly below it are deleted.

A transaction may begin in a remote segment and end in a later one. If that one is lost, for example with the disk, no
reader can know whether the transaction was committed: its records are undecided, and `read_committed` ends before them.
The producer snapshot that is stored with each segment says which transactions were open at its end, so `seglog` fetches
that one object where no segment follows, and no log.

## The topic that says what counts

The store has no list. It also holds attempts that failed, copies that are void, and objects that the
broker failed to delete.

The internal topic `__remote_log_metadata` has a record for the beginning of each copy and one for each change of its
state: copying started, finished, deletion started, finished. [Chapter 46](../spec/46-remote-log-metadata.md) has its
records and rules.

## Leader epochs decide

![Segments that were copied before and after a log lost its end](../assets/tiered-lineage.svg)

This log had been copied up to offset {lost} when its disk lost the end: it was cut at {cut}, and the broker became
leader again in a new epoch. It went on to write other records with the same offsets, and copied them. All the grey
segments are still in the store, and in the state *finished*. Neither the longest segment nor the newest one is always
right. The leader epoch checkpoint on the leader's disk decides: it covers the whole log, and says in which epoch each
offset was written; the segment that holds this offset *in that epoch* answers.

Without the metadata topic the choice is a guess from the objects: each has the leader epochs of the whole log up to its
end, and the one with the highest epoch wins. `seglog` then warns that it guesses.

## Inside an object

LocalTieredStorage stores files unchanged. [Aiven's plug-in](https://github.com/Aiven-Open/tiered-storage-for-apache-kafka)
(as of November 2026) cuts a log into chunks of equal size, compresses and encrypts each by itself, and puts them into
one object; a second object has the indexes, and a manifest says where each piece is. To read one batch, `seglog`
fetches the manifest, an index, and the chunk or two that hold the batch. [Chapter 47](../spec/47-tier-layouts.md) has
every field.

To go on: [read my bucket](../how-to/read-my-bucket.md), [audit it](../how-to/audit-my-bucket.md),
[query it with Spark](../how-to/query-with-spark.md#tiered-storage).
"""


def pages(notice: str) -> dict[str, str]:
    """Return the page and its pictures, by path below the repository."""
    case = json.loads(CASE.read_text(encoding="utf-8"))
    orders = next(each for each in case["partitions"] if each["topic"] == "orders")
    segments = finished(case, "orders")
    values = {
        "begin": orders["begin"],
        "local": orders["earliestLocal"],
        "first": segments[0]["startOffset"],
        "lost": max(each["endOffset"] for each in finished(case, "diverged") if each["overlappedBy"]),
        "cut": CUT_AT,
    }
    return {PAGE: notice + TEXT.format(**values), ONE_LOG: _one_log(orders, segments), LINEAGE: _lineage(case)}


def finished(case: dict[str, Any], topic: str) -> list[dict[str, Any]]:
    """Return the finished segments of a topic, in order."""
    return [each for each in case["segments"] if each["topic"] == topic and each["state"] == "COPY_SEGMENT_FINISHED"]


class _Drawing:
    """A drawing over an axis of offsets.

    Args:
        end: the last offset of the axis.
        height: of the picture.
        title: title of the picture.
    """

    def __init__(self, end: int, height: int, title: str) -> None:
        self._end, self._height, self._title = end, height, title
        self._parts: list[str] = []

    def x(self, offset: float) -> float:
        """Return the x coordinate of an offset."""
        return round(LEFT + (RIGHT - LEFT) * offset / self._end, 1)

    def label(self, y: float, words: str) -> None:
        """Write the label of a row."""
        self._parts.append(text(24, y + BAR / 2 + 4, words))

    def bar(self, start: int, end: int, y: float, colours: tuple[str, str], title: str) -> None:
        """Draw a bar from one offset up to another, exclusive."""
        self._parts.append(box(self.x(start), y, self.x(end) - self.x(start) - 1, BAR, *colours, title=title))

    def mark(self, offset: int, y: float, to: float, words: str, *, at_end: bool = False) -> None:
        """Draw a line through rows at an offset, with words below it."""
        x = self.x(offset)
        line = f'<line x1="{x:g}" y1="{y:g}" x2="{x:g}" y2="{to:g}" stroke="{ACCENT}" stroke-width="1.5"/>'
        more = ' text-anchor="end"' if at_end else ""
        self._parts += [line, text(x + (-4 if at_end else 4), to, words, fill=ACCENT, more=more)]

    def note(self, x: float, y: float, words: str) -> None:
        """Write an explanation."""
        self._parts.append(text(x, y, words, fill=SOFT))

    def svg(self) -> str:
        """Return the picture."""
        size, inner = f"0 0 {WIDTH} {self._height}", f'width="{WIDTH - 2}" height="{self._height - 2}"'
        head = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="{size}" role="img" aria-label="{self._title}">',
            f'<rect x="1" y="1" {inner} rx="10" fill="{PAPER}" stroke="{EDGE}"/>',
            text(24, 32, self._title, size=14, fill=INK),
        ]
        return "\n".join([*head, *self._parts, "</svg>"]) + "\n"


def _shown(start: int, end: int) -> str:
    return f"offsets {start} to {end - 1}"


def _one_log(partition: dict[str, Any], segments: list[dict[str, Any]]) -> str:
    begin, end, local = partition["begin"], partition["end"], partition["earliestLocal"]
    drawing = _Drawing(end, 250, "orders-0: one log in two places")
    spans = [(each["startOffset"], each["endOffset"] + 1) for each in segments]
    drawing.label(60, "remote store")
    for span in spans:
        drawing.bar(*span, 60, REMOTE, _shown(*span))
    drawing.label(105, "disk")
    both = [span for span in spans if span[0] >= local]
    for span in [*both, (both[-1][1], end)]:
        drawing.bar(*span, 105, LOCAL, _shown(*span))
    drawing.label(150, "a consumer gets")
    drawing.bar(begin, local, 150, REMOTE, _shown(begin, local))
    drawing.bar(local, end, 150, LOCAL, _shown(local, end))
    drawing.mark(begin, 52, 200, f"log start offset {begin}")
    drawing.mark(local, 52, 200, f"local log start offset {local}", at_end=True)
    drawing.mark(both[-1][1], 52, 220, f"copied up to {both[-1][1] - 1}", at_end=True)
    drawing.note(
        LEFT, 236, f"The segments from {local} to {both[-1][1] - 1} are in both places; the last one is active."
    )
    return drawing.svg()


def _lineage(case: dict[str, Any]) -> str:
    partition = next(each for each in case["partitions"] if each["topic"] == "diverged")
    drawing = _Drawing(partition["end"], 240, "diverged-0: what was copied before and after the log was cut")
    drawing.label(60, "void")
    drawing.label(105, "of the log")
    for each in finished(case, "diverged"):
        span = (each["startOffset"], each["endOffset"] + 1)
        epochs = ", ".join(f"epoch {epoch} from {start}" for epoch, start in epochs_of(each))
        row, colours = (60, VOID) if each["overlappedBy"] else (105, REMOTE)
        drawing.bar(*span, row, colours, f"{_shown(*span)}; {epochs}")
    starts = [(0, 0), (2, 260), (4, CUT_AT)]
    drawing.label(150, "leader epochs")
    for (epoch, start), (_, stop) in zip(starts, [*starts[1:], (6, partition["end"])], strict=True):
        drawing.bar(start, stop, 150, LOCAL, f"epoch {epoch}: {_shown(start, stop)}")
        drawing.note(drawing.x(start) + 4, 167, str(epoch))
    drawing.mark(CUT_AT, 52, 200, f"cut here, at {CUT_AT}")
    drawing.note(
        LEFT, 226, "Epoch 2 was copied up to 458, and ends at 302 by the checkpoint: what lies behind is void."
    )
    return drawing.svg()


def epochs_of(segment: dict[str, Any]) -> list[tuple[int, int]]:
    """Return the leader epochs of a segment, as numbers and first offsets."""
    return sorted((int(epoch), start) for epoch, start in segment["segmentLeaderEpochs"].items())

"""The pages on why the log is built as it is and what it takes at scale, with the figures of ``reports/why.json``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from seglog_format import LogConfig
from seglog_format.cli.structures import structures
from tools.docs.pictures import ACCENT, EDGE, INK, PAPER, SOFT, box, text
from tools.docs.spreads import shown
from tools.reports import birth

if TYPE_CHECKING:
    from collections.abc import Iterator

REPORT: Final = Path(__file__).resolve().parents[2] / "reports" / "why.json"
WHY: Final = "docs/explanation/why-segments.md"
SCALE: Final = "docs/explanation/scale.md"
PICTURE: Final = "docs/assets/why-segments.svg"
WIDTH, HEIGHT = 860, 300
WHITE: Final = "#ffffff"
MIDDLE: Final = ' text-anchor="middle"'
ACTIVE: Final = 5
START, FOUND = 6, 8
"""Numbers of batches in the picture: the batch that the index leads to, and the batch with the offset."""
LOG: Final = ("#dbeafe", "#1d4ed8")
INDEX: Final = ("#fef3c7", "#b45309")

WHY_TEXT: Final = """\
# Why segments, a sparse index, and files that are read in order

A log could be one file with one entry in an index for each record. Kafka's is neither. Each of the four choices below
has a measurable benefit, and a price.

![A log in segments, with a sparse index over one of them](../assets/why-segments.svg)

## Segments: deleting the oldest records is cheap

A file can be truncated at its end, but not at its beginning. A log in one file would have to be rewritten to delete its
oldest records. In segments, retention deletes the oldest ones whole, and touches no byte of the others.

| {log_mib:.0f} MiB of log, the oldest {part_mib:.0f} MiB deleted | seconds (range) | bytes written |
|---|---:|---:|
| in {segments[segments]} segments: one is removed | {remove} | 0 |
| in one file: the rest is copied | {rewrite} | {segments[rewrittenBytes]:,} |

Segments make other operations cheap. After a crash, a broker scans only the segments above the recovery point: [how
crashes are survived](crash-recovery.md). Compaction replaces a few segments at a time, and never the active one: [what
compaction keeps](compaction.md). A closed segment never changes, so it can be copied to another store unmodified. And
positions in a file below 2 GiB fit in 32 bits, which keeps index entries small.

The price: retention is coarse. A record is kept until its whole segment may be deleted, and segments are deleted oldest
first only (SEG-RET-001). Each segment is several files, which matters with many partitions: [what grows with
what](scale.md).

## A sparse index: small enough to stay in memory

The records of a log are in the order of their offsets, and each entry states its size. So an index need not name each
record: it leads to a nearby entry, and the reader scans the rest. Kafka adds an entry of 8 bytes once more than
{interval:,} bytes were written since the latest one.

A log of {index[logBytes]:,} bytes in {index[batches]:,} batches of {batch_bytes:,} bytes:

| index | entries | bytes | share of the log | passed by a lookup, bytes |
|---|---:|---:|---:|---:|
| none | 0 | 0 | 0.00% | {index[passedBytes][none]:,} |
| **sparse** | {index[entries]:,} | {index[sparseBytes]:,} | {sparse_share:.2%} | {index[passedBytes][sparse]:,} |
| of each batch | {index[batches]:,} | {index[everyBatchBytes]:,} | {batch_share:.2%} | 0 |
| of each record | {index[records]:,} | {index[everyRecordBytes]:,} | {record_share:.2%} | 0 |

The last column is the mean, over {lookups:,} random lookups, of the bytes scanned before reaching the target batch.
With the sparse index that is less than one read of a disk, and costs nothing extra: batches can only be read whole, and
the reader will ask for the following bytes next. With batches larger than the interval each batch has its entry, and a
lookup scans nothing.

An index of that size is mapped into memory and stays there, and a binary search in it touches few pages. It can be
rebuilt from the log, so it needs no flush and no checksum: [how lookup works](how-lookup-works.md).

## Files that are read and written in order

A broker appends to the end of one file for each partition, and consumers read from some position onwards. The operating
system reads ahead for sequential reads, and combines sequential writes. It can do neither for random access.

| {sequential[blocks]:,} reads of {sequential[blockBytes]:,} bytes, none in the page cache | seconds (range) |
|---|---:|
| in order | {in_order} |
| shuffled | {out_of_order} |

Shuffled, the same blocks of the same file took {shuffled:.1f} times as long. This disk is virtual, and its host may
have another cache; on a spinning disk the difference is far larger.

The price: a broker with thousands of partitions appends to thousands of files, and the disk no longer gets one
sequential stream. A consumer that reads old records brings old pages into the page cache, which evict new ones.

## Zero copy: stored as it is sent

Records are stored on disk in the form in which they are sent, compression included. So a broker need not decode them to
send them: it names a file, a position and a size, and the operating system moves the pages to the socket.

| {zero_mib:.0f} MiB from the page cache to a socket on the same machine | processor time, seconds (range) |
|---|---:|
| `sendfile` | {sendfile} |
| reading into memory, sending from there | {read_and_send} |

The copy takes {copies:.1f} times the processor time, before any byte is decoded; decoding and encoding the records
would cost many times that. The benefit for a client depends on the rest of the path, and on the load of the machine:
[how a request reaches the log](client-access-path.md) has figures of whole fetches with `sendfile` and without.

The price: on an encrypted connection the bytes have to pass through the program after all, and a consumer gets whole
batches, with records before the requested offset, which it drops.

## How this was measured

{birth} Each time is the median of {rounds} rounds, with
the least and the most. Bytes and processor time depend little on other processes; seconds do.
"""

SCALE_TEXT: Final = """\
# What grows with what

As a log grows, different costs grow at different rates. The format sets limits; they apply to brokers and tools alike.

## Limits of the format

| what | limit | because |
|---|---|---|
| offsets of a partition | 2<sup>63</sup> - 1 | int64; at a million records a second, 292,000 years |
| a segment | 2<sup>31</sup> - 1 bytes | positions of index entries are int32: SEG-IDX-003 |
| offsets of a segment | 2<sup>31</sup> - 1 above its base offset | relative offsets are int32: SEG-IDX-002; a segment rolls before |
| an entry of a log | 2<sup>31</sup> - 1 bytes after its size field | int32; by default brokers take 1,048,588 bytes |
| records of a batch | 2<sup>31</sup> - 1 | int32 |
| an offset index | 10,485,760 bytes, 1,310,720 entries by default | a full index rolls the segment; at an entry each 4,096 bytes, a segment of 5 GB would fill it |

## Files

A segment of Kafka 4 is a `.log`, an `.index` and a `.timeindex`; a `.snapshot` at its start, and a `.txnindex` where a
transaction was aborted. With 1 GiB to a segment, a tebibyte is 1,024 segments, and some four thousand files. The
indexes of the active segment have their full size, 20 MB together, even if they hold a single entry; the part not yet
written takes no space on disk ([offset index](../spec/40-offset-index.md)).

A broker keeps each log file open, and maps each index that it has used. That is up to two mappings for a segment, so
brokers with many segments need a higher limit of mappings in the operating system.

## Opening

Finding a segment needs only the list of names. So only the list grows with the number of segments; the lookup in the
segment costs the same however many there are.

| segments of one batch each | listing names, ms (range) | opening, and reading one record from the middle, ms (range) |
|---:|---:|---:|
{scale_rows}

The table shows the processor time of this project's reference reader in Python, which does not compare with a broker.
The growth matters: {segment_factor:.0f} times the segments cost {open_factor:.0f} times as much here, since each name
is parsed; only one log is read.

The same applies to many partitions: `seglog serve` lists directories when it starts, and opens a log when a client asks
for it; the time to its first answer is measured [with a thousand of them](client-access-path.md#what-it-costs). A
broker opens every log on startup. After an unclean shutdown it scans, for each partition, the segments from the
recovery point on: [how crashes are survived](crash-recovery.md).

## Memory

| work | held in memory |
|---|---|
| scanning a log, checking it | one entry at a time; a compressed one is decompressed, up to a limit that a reader sets |
| a lookup | pages of the index that a binary search touches |
| filtering aborted transactions | transactions that are open at the same time, and the aborted ones of the segments read |
| state of producers | an entry of {state_size} bytes in a `.snapshot` for each producer that was seen within the expiry time |
| compaction | a map of each key's last offset, 24 bytes for a key in Kafka: a hash of 16 and an offset of 8 |

None of these grows with the size of the log. The tests check that for our own readers: a log of twice the size takes no
more memory.

## What does not scale

- **Many small partitions**: files, mappings and list entries grow with their number, and a broker's appends are spread
  over as many files. The number of partitions makes no difference to records, but it does to file systems.
- **Small batches**: a batch has a header of 61 bytes. A record of 100 bytes alone in a batch grows by more than half,
  compression finds nothing to repeat, and index entries are written as often as the interval allows.
- **Long transactions**: the last stable offset stays at their start, and `read_committed` consumers wait there.
- **Compacted topics with ever new keys**: compaction never removes a record, and each pass copies all retained records
  besides the new ones.

{birth} Each time is the median of {rounds} rounds, with
the least and the most.
"""  # noqa: E501 - rows of tables


def pages(notice: str) -> dict[str, str]:
    """Return both pages and the picture, by path below the repository."""
    report = json.loads(REPORT.read_text(encoding="utf-8"))
    facts = _facts(report)
    return {WHY: notice + WHY_TEXT.format(**facts), SCALE: notice + SCALE_TEXT.format(**facts), PICTURE: _picture()}


def _facts(report: dict[str, Any]) -> dict[str, Any]:
    segments, index = report["segments"], report["index"]
    seconds, taken = report["sequential"]["seconds"], report["zeroCopy"]["processorSeconds"]
    rows = report["scale"]
    return {
        **report,
        "log_mib": segments["logBytes"] / 2**20,
        "part_mib": segments["logBytes"] / segments["segments"] / 2**20,
        "interval": LogConfig().index_interval_bytes,
        "state_size": next(each.size for each in structures() if each.name == "ProducerStateEntry"),
        "lookups": index["lookups"],
        "batch_bytes": round(index["logBytes"] / index["batches"]),
        "sparse_share": index["sparseBytes"] / index["logBytes"],
        "batch_share": index["everyBatchBytes"] / index["logBytes"],
        "record_share": index["everyRecordBytes"] / index["logBytes"],
        "remove": shown(segments["removeSeconds"], 4),
        "rewrite": shown(segments["rewriteSeconds"], 4),
        "in_order": shown(seconds["inOrder"], 3),
        "out_of_order": shown(seconds["shuffled"], 3),
        "sendfile": shown(taken["sendfile"], 3),
        "read_and_send": shown(taken["readAndSend"], 3),
        "shuffled": seconds["shuffled"]["median"] / seconds["inOrder"]["median"],
        "zero_mib": report["zeroCopy"]["bytes"] / 2**20,
        "copies": taken["readAndSend"]["median"] / taken["sendfile"]["median"],
        "scale_rows": "\n".join(map(_scale_row, rows)),
        "segment_factor": rows[-1]["segments"] / rows[0]["segments"],
        "open_factor": rows[-1]["openAndFindSeconds"]["median"] / rows[0]["openAndFindSeconds"]["median"],
        "birth": birth(report),
    }


def _scale_row(row: dict[str, Any]) -> str:
    listing, opening = shown(row["listSeconds"], 1, 1000), shown(row["openAndFindSeconds"], 0, 1000)
    return f"| {row['segments']:,} | {listing} | {opening} |"


def _picture() -> str:
    reported = "A log in six segments, the oldest deleted whole; below, one segment whose index names every third batch"
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-labelledby="t d">',
        '<title id="t">A log in segments, with a sparse index over one of them</title>',
        f'<desc id="d">{reported}.</desc>',
        f'<rect x="1" y="1" width="{WIDTH - 2}" height="{HEIGHT - 2}" rx="10" fill="{PAPER}" stroke="{EDGE}"/>',
        *_segments(),
        *_index(),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _segments() -> Iterator[str]:
    yield text(24, 30, "one partition, oldest segment first", fill=SOFT)
    for number in range(ACTIVE + 1):
        x, name = 24 + 136 * number, f"{number * 1000:,}"
        oldest, active = number == 0, number == ACTIVE
        title = "removed whole" if oldest else "written to at its end" if active else "closed: never changes again"
        stroke = EDGE if oldest else ACCENT if active else LOG[1]
        yield box(x, 42, 126, 44, WHITE if oldest else LOG[0], stroke, title=title, heavy=active)
        yield text(x + 63, 61, f"offsets from {name}", size=11, fill=SOFT if oldest else INK, more=MIDDLE)
        words = "deleted whole" if oldest else "appended to" if active else "closed"
        yield text(x + 63, 77, words, size=11, fill=ACCENT if active or oldest else SOFT, more=MIDDLE)
    yield f'<path d="M432 88 L24 210 M558 88 L836 210" stroke="{EDGE}" stroke-width="1" fill="none"/>'


def _index() -> Iterator[str]:
    width = 58
    for number in range(14):
        x = 24 + width * number
        chosen, start = number == FOUND, number == START
        yield box(
            x, 210, width - 4, 34, ACCENT if chosen else LOG[0], ACCENT if chosen or start else LOG[1], title="a batch"
        )
        offsets = f"{3000 + number * 10}"
        yield text(x + 27, 231, offsets, size=11, mono=True, fill=WHITE if chosen else INK, more=MIDDLE)
        if number % 3 == 0 and number:
            yield box(x - 8, 128, 70, 26, *INDEX, title="an index entry of 8 bytes: an offset and a position")
            yield text(x + 27, 145, f"{3000 + number * 10}", size=11, mono=True, more=MIDDLE)
            yield f'<path d="M{x + 27} 154 V206 m-4 -6 l4 6 l4 -6" fill="none" stroke="{INDEX[1]}"/>'
    yield text(24, 145, "sparse index", fill=INDEX[1])
    start, found = (24 + width * number + 27 for number in (START, FOUND))
    yield f'<path d="M{start} 250 v12 H{found} v-12" fill="none" stroke="{ACCENT}"/>'
    words = "where is 3,085? 3,060 is the last entry at or below it; from there two batches are skipped, by their sizes"
    yield text(430, 281, words, size=12, fill=ACCENT, more=MIDDLE)

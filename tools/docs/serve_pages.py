"""The page about the path of a request through a server, with a picture and the figures of ``reports/serve.json``."""

from __future__ import annotations

import json
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from proofs.report_facts import spread
from tools.docs.pictures import ACCENT, EDGE, INK, PAPER, SOFT, box, text
from tools.docs.spreads import shown
from tools.reports import birth

if TYPE_CHECKING:
    from collections.abc import Iterator

REPORT: Final = Path(__file__).resolve().parents[2] / "reports" / "serve.json"
PAGE: Final = "docs/explanation/client-access-path.md"
PICTURE: Final = "docs/assets/client-access-path.svg"
WIDTH, HEIGHT = 860, 330
WHITE: Final = "#ffffff"

TEXT: Final = """\
# How a request reaches the log

A request from a consumer passes three stages before it reaches a file. `seglog serve` is built like a broker in this
respect, and the picture shows how it works.

![Acceptor, processors, request queue, I/O threads and log](../assets/client-access-path.svg)

## Stage 1: the acceptor

One thread listens. It accepts connections and hands each to one of the processors, in turn. It reads nothing, so no
client can block it. When there are too many connections, it closes the new one.

## Stage 2: the processors

A processor serves many connections, and waits for all of them at once. It reads the bytes that have arrived, and puts
each complete request into the queue. Then it reads nothing more from that connection until it has sent the response.
This one rule keeps responses in the order of the requests, and also provides back-pressure: a client that doesn't read
its responses can't send more requests, and holds at most one response buffer. The memory for all clients together is
limited: beyond the limit, the processor closes the connection that has held the most bytes for the longest time.

A processor also sends responses. It never waits for a client: it sends as much as the socket accepts now, and continues
when the socket accepts more. So a slow reader slows down only itself.

## Stage 3: the queues

All requests pass through bounded queues, from which the I/O threads take them. When a queue is full, the processors
stop reading, the operating system stops accepting bytes, and clients wait. Without this bound the server would buffer
without limit and run out of memory.

There are three queues, by how long a response may take. Requests that read no log have their own threads, and so have
those that read one. Slow requests share one thread: large requests, lookups by timestamp, the first read of a
partition, batches of many records. They wait for each other, and no other request waits for them.

The I/O threads access the logs. For a fetch, they find the entry with the offset, count how many whole entries fit, and
verify the checksums of those that were not verified before. The response names a file, a position and a size. It holds
no record. One of these threads takes all requests as long as it keeps up with them; the others wake when a request has
waited for a hundredth of a second. Each handover to another thread costs a context switch, and Python runs one thread
at a time anyway.

## The file

The processor sends the header of the response from memory, and the records with `sendfile`: the operating system moves
them from its page cache to the socket. The server never copies the records into the program, and never decodes them:
only producer and consumer need to agree on their format and compression.

This is why a log is stored in the form in which it is sent, why a fetch starts at a whole entry, possibly with records
before the requested offset, and why a consumer has to skip those.

At the end of a log a fetch waits: the server sets the request aside, and resumes it when records are appended or its
timeout expires. Meanwhile the thread handles other requests.

## What it costs

One log of {log_mib} MiB in batches of {batch_bytes:,} bytes, on the same machine at the same time: the median of
{rounds} rounds, in turns, with the least and the most. A client fetches a mebibyte at a time and discards it; several
clients are several processes.
"""

MEASURED: Final = """\

Fetched one by one, batches arrived at 1/{single:.0f} of the speed of a mebibyte at a time: a request costs the same
whatever its size.

The server's own memory was {memory[own_mib]:.0f} MiB, and at most {memory[peak_mib_with_mapped_files]:.0f} MiB
including the pages of the log that it had mapped. With {first_byte_ms[partitions]:,} partitions in the directory, the
first byte of a log arrived {wall} ms after the start of the process, the median of {first_byte_ms[starts]} starts with
the least and the most. By then a start had used {on_a_processor} ms of processor time. Nearly all of it is spent
loading code: Python with the library of the command line and nothing else takes {bare} ms here. The server lists
directories at its start, and opens no log before a client asks for it. The load was {first_byte_ms[load_average]}.

{birth} The broker was Kafka {kafka}.{caveat}
"""

CAVEAT: Final = """ So other processes had the cores most of the time: these figures show that it works, and say little
about its speed."""


def pages(notice: str) -> dict[str, str]:
    """Return the page and its picture, by path below the repository."""
    report = json.loads(REPORT.read_text(encoding="utf-8"))
    return {
        PAGE: notice + TEXT.format(**report) + _table(report) + MEASURED.format(**_ratios(report)),
        PICTURE: _picture(),
    }


def _ratios(report: dict[str, Any]) -> dict[str, Any]:
    rates, machine, first = report["megabytes_a_second"], report["made"]["machine"], report["first_byte_ms"]
    large, small = (median(rates[work]["seglog serve"]) for work in ("1 client", "one batch a fetch"))
    return {
        **report,
        "birth": birth(report),
        "kafka": report["made"]["versions"]["kafka"],
        "caveat": CAVEAT if machine["loadAverage"] > 2 * machine["cores"] else "",
        "single": large / small,
        "wall": shown(spread(first["wall"])),
        "on_a_processor": shown(spread(first["on_a_processor"])),
        "bare": shown(spread(first["python_with_click_alone"])),
    }


def _table(report: dict[str, Any]) -> str:
    lines = ["", "| MB/s | `seglog serve` | Kafka broker | ratio |", "|---|---:|---:|---:|"]
    for work, peers in report["megabytes_a_second"].items():
        ours, theirs = (spread(peers[name]) for name in ("seglog serve", "Kafka broker"))
        lines.append(f"| {work} | {shown(ours)} | {shown(theirs)} | {ours['median'] / theirs['median']:.2f} |")
    return "\n".join(lines) + "\n"


def _picture() -> str:
    reported = "Clients connect to an acceptor; processors read requests into one queue; I/O threads look into logs"
    head = 'viewBox="0 0 10 10" refX="9" refY="5" markerUnits="userSpaceOnUse" markerWidth="8" markerHeight="8"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-labelledby="t d">',
        '<title id="t">The way of a request through a server</title>',
        f'<desc id="d">{reported}; answers go back, and log bytes go from file to socket.</desc>',
        f'<defs><marker id="a" {head} orient="auto"><path d="M0 0 10 5 0 10z" fill="{INK}"/></marker></defs>',
        f'<rect x="1" y="1" width="{WIDTH - 2}" height="{HEIGHT - 2}" rx="10" fill="{PAPER}" stroke="{EDGE}"/>',
        *_stations(),
        *_ways(),
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def _stations() -> Iterator[str]:
    for number in range(4):
        yield from _station((24, 60 + 52 * number, 84, 34), "client", "any program that speaks the protocol")
    yield from _station((168, 24, 104, 40), "acceptor", "one thread: takes connections, gives them away in turn")
    for number in range(2):
        title = "one thread for many connections: reads requests, sends answers"
        yield from _station((168, 110 + 76 * number, 104, 46), f"processor {number}", title)
    yield from _station(
        (356, 122, 120, 96), "request queue", "of limited length: when it is full, nothing more is read"
    )
    for number in range(4):
        yield from _station(
            (560, 76 + 48 * number, 104, 34), f"I/O thread {number}", "finds entries, verifies checksums"
        )
    for number, name in enumerate(("00…000.log", "00…426.log", "00…853.log")):
        yield from _station((742, 94 + 54 * number, 96, 36), name, "entries in the form in which they are sent")
    yield from (
        text(x, y, door, size=13, fill=ACCENT) for x, y, door in ((168, 16, "1"), (168, 102, "2"), (356, 114, "3"))
    )


def _station(corners: tuple[float, float, float, float], words: str, title: str) -> list[str]:
    x, y, width, height = corners
    is_door = words.partition(" ")[0] in {"acceptor", "processor", "request"}
    return [
        box(x, y, width, height, WHITE, ACCENT if is_door else EDGE, title=title, heavy=is_door),
        text(x + width / 2, y + height / 2 + 4, words, more=' text-anchor="middle"'),
    ]


def _ways() -> Iterator[str]:
    yield from (_arrow(f"M108 {77 + 52 * number} 164 {133 + 76 * (number // 2)}") for number in range(4))
    yield _arrow("M108 70 164 44", dashed=True)
    yield _arrow("M220 64 220 106", dashed=True)
    yield from (_arrow(f"M272 {128 + 76 * number} 352 {150 + 40 * number}") for number in range(2))
    yield from (_arrow(f"M476 {152 + 12 * number} 556 {93 + 48 * number}") for number in range(4))
    yield from (_arrow(f"M664 {141 + 48 * number} 738 {112 + 54 * number}") for number in range(2))
    yield _arrow("M790 240 C790 300 500 306 330 300 C250 296 224 280 220 236", heavy=True)
    yield text(420, 322, "sendfile: from the file to the socket, never through the program", fill=SOFT)
    yield _arrow("M612 268 C600 290 300 290 244 236", dashed=True)
    yield text(300, 258, "answers: file, position, size", fill=SOFT)


def _arrow(path: str, *, dashed: bool = False, heavy: bool = False) -> str:
    dashes = ' stroke-dasharray="4 3"' if dashed else ""
    colour, width = (ACCENT, 3) if heavy else (INK, 1)
    line = f'stroke="{colour}" stroke-width="{width}"{dashes}'
    return f'<path d="{path}" fill="none" {line} marker-end="url(#a)"/>'

"""Build `fixtures/handbook/`: the example directories of the articles, byte by byte.

This module uses nothing of the package: it packs the messages with `struct` and computes checksums with `zlib.crc32`,
so the package never reads its own output here. ``tools/fixtures.py`` calls `build`.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import shutil
import struct
import zlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PREFIX_SIZE = 12
OVERHEAD = 26
"""Bytes of a magic 0 message with a null key and an empty value."""
DIGEST_OVER = 256

ARTICLE_SEGMENT = 368769
TOPICS = ("report_push", "launch_info")
PARTITIONS = 4
FIRST_POSITIONS = (0, 139, 497, 830, 1262, 1407, 1508, 1686)
"""Positions of the messages 368770 to 368777, as the articles print them."""
USUAL_SIZE = 100
ENDS = {0: (0, 1, 2, 3, 368768, 368769), 368769: range(368770, 369001), 737337: range(737338, 737342)}
"""Segments of `report_push-0` by name, with the offsets in them: each name is the last offset before."""
INDEXED = {
    0: (2, 368768),
    368769: (368770, 368772, 368775, 368777, *range(368787, 369000, 10)),
    737337: (737338, 737340),
}

LISTED = (10574524, 11172372, 11792716, 12382702, 13022594, 13645244)
"""Base offsets of the files of `nginx_services-0` in article A's listing."""
LISTED_SIZES = {
    10574524: (1073716822, 239264),
    11172372: (1073724203, 310712),
    11792716: (1073728042, 235992),
    12382702: (1073726160, 255968),
    13022594: (1073718237, 249464),
    13645244: (1073715210, 273096),
}
"""Bytes of each log and its index in the listing: those of a broker, unlike the files here."""
LISTED_PARTITIONS = 16
LISTED_END = 13645246

Segment = list[tuple[int, bytes]]


def message(offset: int, size: int) -> bytes:
    """Return a magic 0 message of exactly `size` bytes: null key, readable value."""
    text = f"message {offset} ".encode()
    value = text.ljust(size - OVERHEAD, b".")[: size - OVERHEAD]
    checked = struct.pack(">bbii", 0, 0, -1, len(value)) + value
    return struct.pack(">qiI", offset, len(checked) + 4, zlib.crc32(checked)) + checked


def sizes(base: int) -> Iterator[int]:
    """Yield sizes of a segment's messages without end: those of the article first, then the usual one."""
    if base == ARTICLE_SEGMENT:
        yield from (end - start for start, end in itertools.pairwise(FIRST_POSITIONS))
    while True:
        yield USUAL_SIZE


def segment(base: int) -> Segment:
    """Return the messages of a segment of `report_push-0`."""
    return [(offset, message(offset, size)) for offset, size in zip(ENDS[base], sizes(base), strict=False)]


def listed_segment(base: int) -> Segment:
    """Return two messages for a listed file: at its first offset, and at the last offset before the next file."""
    following = [*LISTED[1:], LISTED_END][LISTED.index(base)]
    return [(offset, message(offset, 64)) for offset in (base, following - 1)]


def positions(messages: Segment) -> dict[int, int]:
    """Return the byte positions by offset."""
    result, position = {}, 0
    for offset, data in messages:
        result[offset] = position
        position += len(data)
    return result


def index(base: int, messages: Segment, indexed: tuple[int, ...]) -> bytes:
    """Return the offset index: offset less base, byte position; 32 bits each."""
    where = positions(messages)
    return b"".join(struct.pack(">ii", offset - base, where[offset]) for offset in indexed)


def write_pair(directory: Path, base: int, messages: Segment, indexed: tuple[int, ...]) -> None:
    """Write one `.log` and one `.index` file."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / f"{base:020d}.log").write_bytes(b"".join(data for _, data in messages))
    (directory / f"{base:020d}.index").write_bytes(index(base, messages, indexed))


def write_segments(root: Path) -> None:
    """Write `report_push-0` with its three segments; the other partitions are empty."""
    for base in ENDS:
        write_pair(root / "report_push-0", base, segment(base), INDEXED[base])
    for topic in TOPICS:
        for partition in range(PARTITIONS):
            if (topic, partition) != ("report_push", 0):
                write_pair(root / f"{topic}-{partition}", 0, [], ())


def write_listing(root: Path) -> None:
    """Write `nginx_services-0` with its six pairs; the other partitions are empty."""
    for base in LISTED:
        write_pair(root / "nginx_services-0", base, listed_segment(base), ())
    for partition in range(1, LISTED_PARTITIONS):
        write_pair(root / f"nginx_services-{partition}", 0, [], ())


# The lines that a reader returns, from the lists above and not from the bytes.


def expected(root: Path) -> Iterator[dict[str, Any]]:
    """Yield the lines of `expected.jsonl`, file by file in the order of their paths."""
    for path in sorted(path for path in root.rglob("*") if path.is_file()):
        name = path.relative_to(root).as_posix()
        data = path.read_bytes()
        yield {"type": "file", "file": name, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
        base = int(path.stem)
        messages, indexed = content(path.parent.name, base)
        yield from log_lines(name, messages) if path.suffix == ".log" else index_lines(name, messages, indexed)


def content(directory: str, base: int) -> tuple[Segment, tuple[int, ...]]:
    """Return messages and indexed offsets of one segment."""
    if directory == "report_push-0":
        return segment(base), INDEXED[base]
    return (listed_segment(base), ()) if directory == "nginx_services-0" else ([], ())


def log_lines(name: str, messages: Segment) -> Iterator[dict[str, Any]]:
    """Yield the lines of a `.log` file."""
    position = 0
    for offset, data in messages:
        yield batch_line(name, position, offset, data)
        yield record_line(name, position, offset, data)
        position += len(data)
    count = len(messages)
    end = {"batches": count, "records": count, "scannedBytes": position, "fileBytes": position, "error": None}
    yield {"type": "logEnd", "file": name, **end}


def batch_line(name: str, position: int, offset: int, data: bytes) -> dict[str, Any]:
    """Return the line of an outermost message."""
    return {
        "type": "batch",
        "file": name,
        "position": position,
        "sizeInBytes": len(data),
        "magic": 0,
        "baseOffset": offset,
        "lastOffset": offset,
        "nextOffset": offset + 1,
        "crc": zlib.crc32(data[16:]),
        "codec": "none",
        "timestampType": "NoTimestampType",
        "maxTimestamp": -1,
        "recordsCount": None,
        "producerId": -1,
        "producerEpoch": -1,
        "baseSequence": -1,
        "lastSequence": -1,
        "isTransactional": False,
        "isControl": False,
        "partitionLeaderEpoch": -1,
        "deleteHorizonMs": None,
        "isValid": True,
    }


def record_line(name: str, position: int, offset: int, data: bytes) -> dict[str, Any]:
    """Return the line of the message itself."""
    value = data[OVERHEAD:]
    shown: object = base64.b64encode(value).decode()
    if len(value) > DIGEST_OVER:
        shown = {"bytes": len(value), "sha256": hashlib.sha256(value).hexdigest()}
    fields = {"timestamp": -1, "key": None, "value": shown, "innerMagic": 0, "crc": zlib.crc32(data[16:])}
    return {"type": "record", "file": name, "position": position, "offset": offset, **fields, "isValid": True}


def index_lines(name: str, messages: Segment, indexed: tuple[int, ...]) -> Iterator[dict[str, Any]]:
    """Yield the line of an `.index` file."""
    where = positions(messages)
    entries = [[offset, where[offset]] for offset in indexed]
    sizes = {"fileBytes": 8 * len(entries), "entryCount": len(entries), "trailingZeroEntries": 0}
    yield {"type": "offsetIndex", "file": name, **sizes, "entries": entries}


# Answers of lookups. `sought` is the segment that the offset belongs to by the names of the files, `indexEntry`
# the floor entry in it, `segment` and `position` where the read starts, `firstOffset` the first offset it delivers.


def found(offset: int, sought: int, entry: list[int], segment: int, position: int, first: int) -> dict[str, Any]:
    """Return a lookup that finds a message."""
    answer = {"sought": sought, "indexEntry": entry, "segment": segment, "position": position, "firstOffset": first}
    return {"offset": offset, "outcome": "found", **answer}


SEGMENT_LOOKUPS = (
    {"offset": -1, "outcome": "outOfRange"},
    found(0, 0, [0, 0], 0, 0, 0),
    found(1, 0, [0, 0], 0, 100, 1),
    found(3, 0, [2, 200], 0, 300, 3),
    found(4, 0, [2, 200], 0, 400, 368768),
    found(368768, 0, [368768, 400], 0, 400, 368768),
    found(368769, 368769, [368769, 0], 368769, 0, 368770),
    found(368770, 368769, [368770, 0], 368769, 0, 368770),
    found(368771, 368769, [368770, 0], 368769, 139, 368771),
    found(368775, 368769, [368775, 1407], 368769, 1407, 368775),
    found(368776, 368769, [368775, 1407], 368769, 1508, 368776),
    found(368777, 368769, [368777, 1686], 368769, 1686, 368777),
    found(368786, 368769, [368777, 1686], 368769, 2586, 368786),
    found(368969, 368769, [368967, 20686], 368769, 20886, 368969),
    found(369000, 368769, [368997, 23686], 368769, 23986, 369000),
    found(369001, 368769, [368997, 23686], 737337, 0, 737338),
    found(737336, 368769, [368997, 23686], 737337, 0, 737338),
    found(737337, 737337, [737337, 0], 737337, 0, 737338),
    found(737341, 737337, [737340, 200], 737337, 300, 737341),
    {"offset": 737342, "outcome": "end"},
    {"offset": 737343, "outcome": "outOfRange"},
)

LISTING_LOOKUPS = (
    {"offset": 0, "outcome": "outOfRange"},
    {"offset": 10574523, "outcome": "outOfRange"},
    found(10574524, 10574524, [10574524, 0], 10574524, 0, 10574524),
    found(10574525, 10574524, [10574524, 0], 10574524, 64, 11172371),
    found(11172371, 10574524, [10574524, 0], 10574524, 64, 11172371),
    found(11172372, 11172372, [11172372, 0], 11172372, 0, 11172372),
    found(11792715, 11172372, [11172372, 0], 11172372, 64, 11792715),
    found(12382702, 12382702, [12382702, 0], 12382702, 0, 12382702),
    found(13022593, 12382702, [12382702, 0], 12382702, 64, 13022593),
    found(13645243, 13022594, [13022594, 0], 13022594, 64, 13645243),
    found(13645244, 13645244, [13645244, 0], 13645244, 0, 13645244),
    found(13645245, 13645244, [13645244, 0], 13645244, 64, 13645245),
    {"offset": 13645246, "outcome": "end"},
    {"offset": 13645247, "outcome": "outOfRange"},
)

# The claims of the articles: the file, the number that they look up in its index, the entry that they take, the
# position at which they then read, and the offset of the message there (None: no message starts there).
ARTICLE_LOOKUPS = (
    {"article": "A", "offset": 368776, "segment": 368769, "relative": 368776, "entry": [228, 23686], "position": 23686},
    {"article": "B", "offset": 368776, "segment": 368769, "relative": 368776, "entry": [228, 23686], "position": 23686},
    {"article": "C", "offset": 368776, "segment": 368769, "relative": 7, "entry": [6, 1407], "position": 1508},
    {"article": "D", "offset": 368776, "segment": 368769, "relative": 6, "entry": [6, 1407], "position": 1407},
    {"article": "E", "offset": 368776, "segment": 368769, "relative": 7, "entry": [6, 1407], "position": 1508},
    {"article": "A", "offset": 368769, "segment": 368769, "relative": 368769, "entry": [228, 23686], "position": 23686},
    {"article": "C", "offset": 368769, "segment": 0, "relative": 368769, "entry": [368768, 400], "position": 500},
    {"article": "E", "offset": 368769, "segment": 0, "relative": 368769, "entry": [368768, 400], "position": 500},
    {"article": "E", "offset": 368969, "segment": 368769, "relative": 200, "entry": [198, 20686], "position": 20886},
)

SEGMENTS_CASE = """\
producer = "tools/handbook_fixtures.py"
version = "magic 0"
source = "The example of articles C, D and E, packed byte by byte; not written by a broker."
about = \"\"\"
Partition report_push-0 with the segments 0, 368769 and 737337, named as the articles name files: by the last offset of
the segment before. 0.log is short: it jumps from offset 3 to 368768 (gaps are legal) and ends at 368769.
In 368769.log the messages 368770 to 368777 are at 0, 139, 497, 830, 1262, 1407, 1508 and 1686, then messages of 100
bytes follow up to 369000; its index starts (1, 0) (3, 497) (6, 1407) (8, 1686). The other directories are empty.
A reader that goes by Kafka's rules finds every message but 368769: that offset belongs to 368769.log, which starts at
368770. So the one requirement that breaks is that a base offset is above every offset before it.\"\"\"
states = ["built"]
magics = [0]
codecs = ["none"]
requirements = ["SEG-IDX-008", "SEG-LKP-001", "SEG-LKP-002", "SEG-LKP-004", "SEG-LKP-005", "SEG-MSG-001", "SEG-PDR-014"]
violates = ["SEG-PDR-013"]
"""

LISTING_CASE = """\
producer = "tools/handbook_fixtures.py"
version = "magic 0"
source = "The directory listing of article A, by its names; not written by a broker."
about = \"\"\"
Topic nginx_services with 16 partitions, of which partition 0 has six pairs of files from 10574524 on. Their content is
cut down to two messages of 64 bytes each: the first offset of the file and the last before the next file. The last
file ends at 13645245. For the search in a list of files; the first segment does not start at 0. `sizes.json` has the
sizes that the listing shows.\"\"\"
states = ["built"]
magics = [0]
codecs = ["none"]
requirements = ["SEG-LKP-001", "SEG-LKP-004", "SEG-LKP-005", "SEG-PDR-005", "SEG-PDR-014"]
"""


def write_sizes(path: Path) -> None:
    """Write the sizes of article A's listing, by base offset."""
    rows = [f' "{base}": {{"log": {log}, "index": {index}}}' for base, (log, index) in LISTED_SIZES.items()]
    path.write_text("{\n" + ",\n".join(rows) + "\n}\n", encoding="utf-8")


def write_case(target: Path, text: str, lookups: dict[str, Any]) -> None:
    """Write description and expectations of a case whose files are written."""
    lines = (json.dumps(line, separators=(",", ":")) + "\n" for line in expected(target / "files"))
    (target / "expected.jsonl").write_text("".join(lines), encoding="utf-8")
    (target / "case.toml").write_text(text, encoding="utf-8")
    rows = {key: [json.dumps(row) for row in value] for key, value in lookups.items() if key != "directory"}
    parts = [f' "directory": "{lookups["directory"]}"']
    parts += [f' "{key}": [\n  ' + ",\n  ".join(value) + "\n ]" for key, value in rows.items()]
    (target / "lookups.json").write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


def build(fixtures: Path) -> None:
    """Replace `fixtures/handbook`."""
    root = fixtures / "handbook"
    shutil.rmtree(root, ignore_errors=True)
    write_segments(root / "segments" / "files")
    write_listing(root / "listing" / "files")
    segments = {"directory": "report_push-0", "lookups": SEGMENT_LOOKUPS, "articles": ARTICLE_LOOKUPS}
    write_case(root / "segments", SEGMENTS_CASE, segments)
    write_case(root / "listing", LISTING_CASE, {"directory": "nginx_services-0", "lookups": LISTING_LOOKUPS})
    write_sizes(root / "listing" / "sizes.json")

"""Families 38 to 40, and the reading half of 19: what brokers keep on disk, and how it is searched and repaired."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from suite_cases.batches import (
    COUNT,
    CRC,
    LAST_OFFSET_DELTA,
    LENGTH,
    LOG_APPEND_TIME,
    MAGIC,
    Batch,
    Rec,
    with_field,
)
from suite_cases.casefile import Family, Json, Terms, lay, must, should
from suite_cases.codecs import gzip
from suite_cases.control import data, empty, marker
from suite_cases.messages import Msg, Wrapper
from suite_cases.primitives import flipped, replaced

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from suite_cases.casefile import Unit

INTERVAL: Final = 4096
KINDS: Final = (".log", ".index", ".timeindex", ".txnindex")


def name_of(base: int, kind: str = ".log") -> str:
    """The name of a segment file."""
    return f"{base:020}{kind}"


def bytes_of(units: Iterable[Unit | bytes]) -> bytes:
    """Entries one behind the other."""
    return b"".join(unit if isinstance(unit, bytes) else unit.encoded() for unit in units)


def last_offset(unit: Unit) -> int:
    """The last offset of an entry."""
    return unit.next_offset - 1


def largest_timestamp(unit: Unit) -> int:
    """The largest timestamp of an entry, as its header says."""
    return int(unit.answer(0)["maxTimestamp"])


def offset_index(units: Sequence[Unit], interval: int, base: int = 0) -> bytes:
    """The offset index of a segment whose entries are each a unit of the sparse rule."""
    rows, since, position = b"", 0, 0
    for unit in units:
        if since > interval:
            rows += struct.pack(">ii", last_offset(unit) - base, position)
            since = 0
        size = len(unit.encoded())
        since, position = since + size, position + size
    return rows


def time_index(units: Sequence[Unit], interval: int, base: int = 0) -> bytes:
    """The time index of the same segment, once it is closed."""
    rows, since, written = b"", 0, -1
    newest = (-1, base)
    for unit in units:
        if largest_timestamp(unit) > newest[0]:
            newest = (largest_timestamp(unit), last_offset(unit))
        if since > interval:
            since = 0
            if newest[0] > written:
                rows, written = rows + time_entry(*newest, base), newest[0]
        since += len(unit.encoded())
    return rows + (time_entry(*newest, base) if newest[0] > written else b"")


def time_entry(timestamp: int, offset: int, base: int = 0) -> bytes:
    """A row of a time index."""
    return struct.pack(">qi", timestamp, offset - base)


def aborted(producer_id: int, first: int, last: int, stable: int) -> bytes:
    """A row of a transaction index."""
    return struct.pack(">hqqqq", 0, producer_id, first, last, stable)


def row(count: int, size: int = 3, *, base: int = 0, start: int = 1000, step: int = 10) -> list[Batch]:
    """Batches of some records each, one behind the other."""
    recs = tuple(Rec(key=b"k%d" % at, value=b"value", time=at) for at in range(size))
    return [Batch(base=base + at * size, recs=recs, base_timestamp=start + at * step) for at in range(count)]


ROW: Final = row(5)
SIZE: Final = len(ROW[0].encoded())


def index_building() -> Family:
    """Family 38."""
    flags = {
        "SPARSE_RULE": {
            "effect": "An entry comes after strictly more than the interval, never for the first batch, and names the last offset of a batch. Another "
            "rule gives indexes that brokers read and that no broker would write.",
            "links": [],
        },
        "TIME_ENTRY": {
            "effect": "A time index entry that is too high hides records from lookups, one that is missing keeps expired segments or deletes young ones.",
            "links": [],
        },
    }
    family = Family(38, "index-build", "Building indexes", "facts 4.2 and 4.3", flags=flags)
    terms = must("SEG-ROL-010", "SEG-ROL-011", "SEG-RCV-025", flags=("SPARSE_RULE",), since="4.1")

    def build(
        name: str,
        why: str,
        units: Sequence[Unit],
        *,
        interval: int = 100,
        base: int = 0,
        terms: Terms = terms,
        txn: bytes | None = None,
    ) -> None:
        files = {
            ".index": offset_index(units, interval, base).hex(),
            ".timeindex": time_index(units, interval, base).hex(),
        }
        if txn is not None:
            files[".txnindex"] = txn.hex()
        request = {"data": bytes_of(units).hex(), "baseOffset": str(base), "indexIntervalBytes": interval}
        family.add(name, "index", "valid", why, terms, request=request, expect={"files": files})

    value = bytes(19)
    eight = [
        Batch(
            base=2 * at,
            recs=(Rec(key=b"k", value=value), Rec(key=b"k", value=value, time=1)),
            base_timestamp=1000 + 100 * at,
        )
        for at in range(8)
    ]
    eight = [
        replace(one, recs=(replace(one.recs[0], value=bytes(18 + 119 - len(one.encoded()) + 1)), one.recs[1]))
        for one in eight
    ]
    build(
        "eight-batches",
        "Eight batches of 119 bytes, as a broker indexed them.",
        eight,
        terms=must(
            "SEG-ROL-010", "SEG-ROL-011", "SEG-RCV-025", flags=("SPARSE_RULE",), since="4.1", source="vector V-26"
        ),
    )
    for interval, why in (
        (0, "An interval of 0: every batch but the first."),
        (SIZE - 1, "One byte less than a batch: every batch but the first."),
        (SIZE, "Exactly a batch is not more than the interval: every second one."),
        (SIZE + 1, "One byte more: every second one."),
        (2 * SIZE, "Two batches exactly."),
        (2 * SIZE - 1, "One byte less than two batches."),
        (100_000, "The interval is never reached: no entry, and the time index has its last one only."),
    ):
        build(f"interval-{interval}", why, row(9), interval=interval)
    build("default-interval", "With 4,096 bytes as brokers have it.", row(120), interval=INTERVAL)
    build("one-batch", "A segment with a single batch has no entry.", row(1), interval=0)
    build("two-batches", "The second one is indexed.", row(2), interval=0)
    build("no-batch", "An empty segment has empty indexes.", [], interval=0)
    build(
        "base-offset",
        "Offsets in an index count from the base of the segment.",
        row(6, base=5_000_000_000),
        base=5_000_000_000,
    )
    build("base-below-first", "The first batch is far above the name of the segment.", row(6, base=900), base=100)
    build(
        "widest-span",
        "The greatest relative offset there is.",
        [Batch(base=10), Batch(base=20), Batch(base=10 + 2**31 - 1)],
        base=10,
        interval=0,
    )
    gaps = [replace(one, last_delta=40, base=one.base * 20) for one in row(6)]
    build("compacted", "The entry names the last offset of a batch, also where that record is gone.", gaps)
    uneven = [Batch(base=at, recs=(Rec(value=bytes(50 * (at % 4))),), base_timestamp=1000 + at) for at in range(12)]
    build("uneven-sizes", "Batches of different sizes.", uneven, interval=150)
    long = [*row(2), Batch(base=6, recs=(Rec(value=bytes(3000)),), base_timestamp=3000), *row(2, base=7, start=4000)]
    build("long-batch", "A batch that is longer than the interval by itself.", long)
    _indexed_times(build)
    _indexed_transactions(build)
    return family


def _indexed_times(build: Callable[..., None]) -> None:
    time = must("SEG-APP-015", "SEG-TIX-004", flags=("TIME_ENTRY",), since="4.1")
    build(
        "times-descend",
        "Timestamps go down: the first batch has the largest, and one entry says it all.",
        row(6, start=9000, step=-500),
        terms=time,
    )
    build("times-equal", "All the same: the first batch that has it counts.", row(6, step=0), terms=time)
    zigzag = [
        replace(one, base_timestamp=at)
        for one, at in zip(row(7), (1000, 5000, 2000, 6000, 6000, 100, 9000), strict=True)
    ]
    build("times-up-and-down", "Entries only where the largest grew.", zigzag, terms=time, interval=0)
    build(
        "times-up-and-down-sparse",
        "The same with fewer entries: the largest may stand before the batch that is indexed.",
        zigzag,
        terms=time,
        interval=SIZE,
    )
    build(
        "no-times",
        "Records without a time leave no entry.",
        row(5, start=-10_000, step=0)
        and [replace(one, base_timestamp=-1, recs=(Rec(),), base=at) for at, one in enumerate(row(5))],
        terms=time,
    )
    build(
        "time-zero",
        "The time 0 is a time.",
        [replace(one, base_timestamp=0, recs=(Rec(),), base=at) for at, one in enumerate(row(3))],
        terms=time,
        interval=0,
    )
    build(
        "last-batch-newest",
        "Only the closing entry knows the last batch.",
        [*row(3), *row(1, base=9, start=99_000)],
        terms=time,
        interval=1000,
    )
    stamped = [replace(one, attributes=LOG_APPEND_TIME, max_timestamp=7000 + at) for at, one in enumerate(row(5))]
    build("log-append-time", "The broker's time counts.", stamped, terms=time)
    build(
        "within-a-batch",
        "The largest timestamp is that of the first record; the entry names the last offset of the batch.",
        [Batch(base=3 * at, recs=(Rec(time=50), Rec(), Rec()), base_timestamp=1000 + at) for at in range(5)],
        terms=time,
    )
    build(
        "empty-batches",
        "An empty batch is a unit like any other, with the time that its header kept.",
        [*row(2), empty(6, 4, max_timestamp=5000), *row(2, base=11), empty(17, 0, max_timestamp=-1), *row(1, base=18)],
        terms=time,
        interval=60,
    )
    build(
        "magic-1",
        "Messages of magic 1, each a unit.",
        [Msg(offset=at, timestamp=1000 + at, value=bytes(30)) for at in range(6)],
    )
    build(
        "magic-0",
        "Messages of magic 0 have no time: the time index stays empty.",
        [Msg(magic=0, offset=at, value=bytes(30)) for at in range(6)],
    )
    wrappers = [
        Wrapper(
            offset=3 * at + 2,
            inner=tuple(Msg(offset=one, timestamp=1000 * at + one) for one in range(3)),
            offsets=(3 * at, 3 * at + 1, 3 * at + 2),
            compress=gzip,
        )
        for at in range(4)
    ]
    build("wrappers", "A wrapper is one unit; its offset is the last.", wrappers, interval=60)
    build(
        "mixed",
        "All three formats in one segment.",
        [Msg(magic=0, offset=0), Msg(offset=1), *row(3, base=2, start=3000)],
        interval=30,
    )


def _indexed_transactions(build: Callable[..., None]) -> None:
    txn = must("SEG-TXN-009", "SEG-TXN-003", "SEG-RCV-025", since="0.11")
    open_one = [
        data(0, b"a", b"b", producer_id=77),
        data(2, b"c", producer_id=88),
        marker("ABORT", 3, producer_id=77, producer_epoch=2),
    ]
    build(
        "aborted",
        "An aborted transaction while another one is open since offset 2.",
        open_one,
        terms=txn,
        txn=aborted(77, 0, 3, 2),
    )
    build(
        "aborted-alone",
        "No other one is open: what is stable ends behind the marker.",
        [open_one[0], marker("ABORT", 2, producer_id=77)],
        terms=txn,
        txn=aborted(77, 0, 2, 3),
    )
    two = [
        data(0, b"a", producer_id=1),
        data(1, b"b", producer_id=2),
        marker("ABORT", 2, producer_id=2),
        data(3, b"c", producer_id=1, sequence=1),
        marker("ABORT", 4, producer_id=1),
    ]
    build(
        "two-aborted",
        "In the order of their markers, not of their beginnings.",
        two,
        terms=txn,
        txn=aborted(2, 1, 2, 0) + aborted(1, 0, 4, 5),
    )
    build(
        "committed",
        "A committed transaction leaves nothing.",
        [open_one[0], marker("COMMIT", 2, producer_id=77)],
        terms=txn,
    )


def lookups() -> Family:
    """Family 39."""
    flags = {
        "INDEX_TRUST": {
            "effect": "Nothing guards an index. A reader that believes a stale or torn one starts in the middle of a record or behind the offset asked for, "
            "and skips data without a word.",
            "links": [],
        },
        "TIME_ORDER": {
            "effect": "Timestamps need not be in order. A search that stops at the first time above the one asked for skips records.",
            "links": [],
        },
    }
    family = Family(39, "lookup", "Finding offsets and times", "facts 4.2, 4.3 and 6", flags=flags)
    log = bytes_of(ROW)
    good = {name_of(0): log, name_of(0, ".index"): offset_index(ROW, 0), name_of(0, ".timeindex"): time_index(ROW, 0)}
    plain = must("SEG-LKP-001", "SEG-LKP-002")

    def find(name: str, why: str, terms: Terms, files: dict[str, bytes], found: Json | None, **asked: int) -> None:
        request = {
            "files": {key: content.hex() for key, content in files.items()},
            **{key: str(number) for key, number in asked.items()},
        }
        family.add(name, "lookup", "valid", why, terms, request=request, expect={"found": found})

    def place(at: int, size: int = SIZE, units: Sequence[Batch] = ROW) -> Json:
        return {"position": at * size, "baseOffset": str(units[at].base)}

    for offset in (0, 2, 3, 7, 12, 14):
        at = offset // 3
        entry = _floor(offset)
        find(
            f"offset-{offset}",
            "The entry that holds the offset, from its first byte, whatever the index says first.",
            plain,
            good,
            {"entry": entry, **place(at)},
            offset=offset,
        )
        find(
            f"offset-{offset}-without-index",
            "The same without an index.",
            must("SEG-LKP-002", "SEG-IDX-009"),
            {name_of(0): log},
            place(at),
            offset=offset,
        )
    out = must("SEG-LKP-004", "SEG-LKP-005")
    find("at-the-end", "The end of the log holds nothing yet.", out, good, None, offset=15)
    holes = [replace(one, base=one.base * 10) for one in ROW]
    gap = {name_of(0): bytes_of(holes), name_of(0, ".index"): offset_index(holes, 0)}
    for offset, at in ((3, 1), (29, 1), (33, 2), (100, 4)):
        find(
            f"gap-{offset}",
            "The offset is missing: the next entry counts.",
            plain,
            gap,
            place(at, units=holes),
            offset=offset,
        )
    short = [replace(one, last_delta=7, base=one.base * 3) for one in ROW]
    find(
        "gap-inside-a-batch",
        "The offset belonged to a record that is gone; its batch counts.",
        plain,
        {name_of(0): bytes_of(short)},
        place(1, units=short),
        offset=15,
    )
    later = row(3, base=100)
    two = {name_of(0): log, name_of(100): bytes_of(later)}
    find(
        "next-segment",
        "The gap before the next segment leads into it.",
        plain,
        two,
        {"position": 0, "baseOffset": "100"},
        offset=50,
    )
    find(
        "second-segment",
        "The segment with the greatest base that is not above.",
        plain,
        two,
        {"position": SIZE, "baseOffset": "103"},
        offset=104,
    )
    find(
        "base-of-second-segment",
        "The offset that the file is named after is in that file.",
        plain,
        two,
        {"position": 0, "baseOffset": "100"},
        offset=100,
    )
    find(
        "last-of-first-segment",
        "The last offset of the segment before.",
        plain,
        two,
        {"position": 4 * SIZE, "baseOffset": "12"},
        offset=14,
    )
    three = {name_of(0): log, name_of(15): b"", name_of(15 + 40): bytes_of(row(1, base=60))}
    find(
        "empty-segment-between",
        "A segment may be empty: the next one counts.",
        plain,
        three,
        {"position": 0, "baseOffset": "60"},
        offset=20,
    )
    indexes = {
        "same-position": struct.pack(">iiii", 5, SIZE, 8, SIZE),
        "empty": b"",
        "preallocated": offset_index(ROW, 0) + bytes(800),
        "only-zeros": bytes(80),
        "torn-entry": offset_index(ROW, 0) + b"\0\0\0",
        "stale-shorter": offset_index(ROW[:2], 0),
        "position-past-the-end": struct.pack(">ii", 1, 1_000_000),
        "position-mid-batch": struct.pack(">ii", 2, SIZE // 2),
        "position-negative": struct.pack(">ii", 2, -5),
        "offset-negative": struct.pack(">ii", -3, SIZE),
        "too-far": struct.pack(">ii", 1, 4 * SIZE),
        "descending": offset_index(ROW, 0)[8:16] + offset_index(ROW, 0)[:8],
        "of-another-log": struct.pack(">iiii", 0, 10, 2, 20),
        "all-ones": b"\xff" * 64,
    }
    broken = {
        "position-past-the-end": "SEG-IDX-003",
        "position-mid-batch": "SEG-IDX-003",
        "position-negative": "SEG-IDX-003",
        "offset-negative": "SEG-IDX-002",
        "too-far": "SEG-IDX-006",
        "descending": "SEG-IDX-004",
        "of-another-log": "SEG-IDX-003",
        "same-position": "SEG-IDX-005",
    }
    for name, content in indexes.items():
        files = {name_of(0): log, name_of(0, ".index"): content}
        trust = should(
            "SEG-IDX-009", "SEG-IDX-010", *((broken[name],) if name in broken else ()), flags=("INDEX_TRUST",)
        )
        for offset in (1, 8, 14):
            find(
                f"index-{name}-offset-{offset}",
                "Whatever the index says, the answer is the one that the log gives.",
                trust,
                files,
                place(offset // 3),
                offset=offset,
            )
    harmless = must("SEG-IDX-009", "SEG-IDX-008", flags=("INDEX_TRUST",))
    sparse = {name_of(0): log, name_of(0, ".index"): struct.pack(">ii", 5, SIZE)}
    find(
        "sparse-index",
        "One entry for the whole log: walk on from there.",
        harmless,
        sparse,
        {"entry": {"offset": "5", "position": SIZE}, **place(4)},
        offset=13,
    )
    wide = {name_of(0): log, name_of(0, ".index"): struct.pack(">ii", 8, SIZE)}
    find(
        "offset-of-a-later-batch",
        "An older broker's entry: the offset is that of a later batch than the position.",
        harmless,
        wide,
        {"entry": {"offset": "8", "position": SIZE}, **place(2)},
        offset=8,
    )
    first = {name_of(0): log, name_of(0, ".index"): struct.pack(">ii", 3, SIZE)}
    find(
        "first-offset-entry",
        "A broker before 2.0 stored the first offset of the batch.",
        harmless,
        first,
        {"entry": {"offset": "3", "position": SIZE}, **place(1)},
        offset=3,
    )
    _times(find)
    return family


def _floor(offset: int) -> Json:
    """The entry of the dense index of `ROW` that a lookup begins with."""
    found = {"offset": "0", "position": 0}
    for at, batch in list(enumerate(ROW))[1:]:
        if last_offset(batch) <= offset:
            found = {"offset": str(last_offset(batch)), "position": at * SIZE}
    return found


def _times(find: Callable[..., None]) -> None:
    log, index = bytes_of(ROW), time_index(ROW, 0)
    terms = must("SEG-LKP-008")
    good = {name_of(0): log, name_of(0, ".index"): offset_index(ROW, 0), name_of(0, ".timeindex"): index}

    def found(offset: int, timestamp: int) -> Json:
        return {"offset": str(offset), "timestamp": str(timestamp)}

    for timestamp, entry, at in (
        (1011, (-1, 0), 4),
        (1012, (1012, 5), 5),
        (1039, (1032, 11), 12),
        (1042, (1042, 14), 14),
    ):
        answer = {"entry": {"timestamp": str(entry[0]), "offset": str(entry[1])}, "offset": str(at)}
        why = "The search begins at the last entry that is not younger; without one, at the start."
        find(f"time-entry-{timestamp}", why, must("SEG-TIX-008"), good, answer, timestamp=timestamp)
    for timestamp, offset, at in (
        (0, 0, 1000),
        (1000, 0, 1000),
        (1001, 1, 1001),
        (1003, 3, 1010),
        (1012, 5, 1012),
        (1039, 12, 1040),
        (1042, 14, 1042),
    ):
        find(
            f"time-{timestamp}",
            "The first record, in offset order, that is not older.",
            terms,
            good,
            found(offset, at),
            timestamp=timestamp,
        )
        find(
            f"time-{timestamp}-without-indexes",
            "The same without indexes.",
            must("SEG-LKP-008", "SEG-IDX-009"),
            {name_of(0): log},
            found(offset, at),
            timestamp=timestamp,
        )
    find("time-after-all", "Nothing is that young.", terms, good, None, timestamp=1043)
    mixed = [replace(one, base_timestamp=start) for one, start in zip(ROW, (1000, 5000, 2000, 6000, 100), strict=True)]
    files = {
        name_of(0): bytes_of(mixed),
        name_of(0, ".index"): offset_index(mixed, 0),
        name_of(0, ".timeindex"): time_index(mixed, 0),
    }
    unordered = must("SEG-LKP-008", "SEG-TIX-004", flags=("TIME_ORDER",))
    for timestamp, offset, at in (
        (50, 0, 1000),
        (1500, 3, 5000),
        (2001, 3, 5000),
        (5001, 4, 5001),
        (5003, 9, 6000),
        (6002, 11, 6002),
    ):
        find(
            f"unordered-{timestamp}",
            "Times are not in order: the lowest offset counts, not the nearest time.",
            unordered,
            files,
            found(offset, at),
            timestamp=timestamp,
        )
    inside = [Batch(base=0, recs=(Rec(time=90), Rec(time=0), Rec(time=50))), Batch(base=3, base_timestamp=2000)]
    for timestamp, offset, at in ((1000, 0, 1090), (1091, 3, 2000)):
        find(
            f"unordered-in-a-batch-{timestamp}",
            "Times inside one batch are not in order.",
            unordered,
            {name_of(0): bytes_of(inside)},
            found(offset, at),
            timestamp=timestamp,
        )
    equal = row(4, step=0, size=1)
    find(
        "equal-times",
        "Several records have the time: the first of them.",
        terms,
        {name_of(0): bytes_of(equal)},
        found(0, 1000),
        timestamp=1000,
    )
    bad = {
        "offset-negative": time_entry(1000, -3),
        "empty": b"",
        "preallocated": index + bytes(120),
        "torn": index[:-5],
        "of-the-future": time_entry(10**15, 14),
        "offset-too-high": time_entry(1000, 14),
        "offset-past-the-end": time_entry(1000, 900),
        "descending": index[12:24] + index[:12],
        "all-ones": b"\xff" * 48,
    }
    broken = {"descending": "SEG-TIX-002", "offset-too-high": "SEG-TIX-004", "offset-negative": "SEG-TIX-003"}
    for name, content in bad.items():
        trust = should(
            "SEG-IDX-009", "SEG-TIX-009", *((broken[name],) if name in broken else ()), flags=("INDEX_TRUST",)
        )
        for timestamp, offset, at in ((1011, 4, 1011), (1042, 14, 1042)):
            find(
                f"time-index-{name}-{timestamp}",
                "Whatever the time index says, the answer is the one that the log gives.",
                trust,
                {name_of(0): log, name_of(0, ".timeindex"): content},
                found(offset, at),
                timestamp=timestamp,
            )
    stamped = [replace(one, attributes=LOG_APPEND_TIME, max_timestamp=8000 + at) for at, one in enumerate(ROW)]
    find(
        "log-append-time",
        "The broker's time is sought, and all records of a batch have it.",
        must("SEG-LKP-008", "SEG-BAT-011"),
        {name_of(0): bytes_of(stamped)},
        found(6, 8002),
        timestamp=8002,
    )
    controlled = [data(0, b"a"), marker("COMMIT", 1, at=5000), data(2, b"b", sequence=1)]
    find(
        "control-record",
        "The record of a marker counts, too.",
        must("SEG-LKP-018"),
        {name_of(0): bytes_of(controlled)},
        found(1, 5000),
        timestamp=4000,
    )
    special = {"latest": (-1, {"offset": "15"}), "earliest": (-2, {"offset": "0"})}
    for name, (timestamp, answer) in special.items():
        find(
            name,
            f"The time {timestamp} asks for the {name} offset.",
            must("SEG-LKP-009", needs=("specialTimestamps",)),
            good,
            answer,
            timestamp=timestamp,
        )
    find(
        "largest",
        "The time -3 asks for the first record with the largest time.",
        must("SEG-LKP-013", since="3.0", needs=("specialTimestamps",)),
        files,
        found(11, 6002),
        timestamp=-3,
    )
    old = [Msg(magic=0, offset=at) for at in range(3)]
    find(
        "no-times",
        "Messages without times are never found by one.",
        must("SEG-LKP-008", "SEG-MSG-008", since="0.10.1", needs=("magic:0",)),
        {name_of(0): bytes_of(old)},
        None,
        timestamp=0,
    )


def recoveries() -> Family:
    """Family 40."""
    flags = {
        "CUT_TOO_MUCH": {
            "effect": "Recovery that cuts more than the damage demands loses acknowledged records.",
            "links": [],
        },
        "CUT_TOO_LITTLE": {
            "effect": "Recovery that leaves damage, or what follows it, puts the next append where no reader gets to.",
            "links": [],
        },
        "ORDER_REPAIR": {
            "effect": "Brokers empty a whole segment over an offset out of order where an index entry is due, and let it pass elsewhere. Cutting before it keeps what is whole.",
            "links": [],
        },
    }
    family = Family(40, "recovery", "Recovery and truncation", "facts 5.5, 5.6 and 7", flags=flags)
    whole = bytes_of(ROW)
    many = must("SEG-RCV-003", flags=("CUT_TOO_LITTLE",))

    def recover(
        name: str,
        why: str,
        terms: Terms,
        files: dict[str, bytes],
        left: dict[str, bytes | None],
        end: int,
        *,
        removed: int | None = None,
        **options: str | bool,
    ) -> None:
        request = {
            "files": {key: content.hex() for key, content in files.items()},
            "options": {"indexIntervalBytes": 100, **options},
        }
        expect: Json = {
            "nextOffset": str(end),
            "files": {key: None if content is None else content.hex() for key, content in left.items()},
        }
        if removed is not None:
            expect["truncatedBytes"] = removed
        family.add(name, "recover", "valid", why, terms, request=request, expect=expect)

    def cut(name: str, why: str, log: bytes, kept: int, *, terms: Terms = many, units: Sequence[Unit] = ROW) -> None:
        """One segment of which some entries are kept."""
        good = list(units[:kept])
        left = {
            name_of(0): bytes_of(good),
            name_of(0, ".index"): offset_index(good, 100),
            name_of(0, ".timeindex"): time_index(good, 100),
        }
        recover(
            name,
            why,
            terms,
            {name_of(0): log},
            left,
            good[-1].next_offset if good else 0,
            removed=len(log) - len(bytes_of(good)),
        )

    keep = must("SEG-RCV-003", "SEG-RCV-025", flags=("CUT_TOO_MUCH",))
    cut("whole", "Nothing is damaged: nothing goes, and the indexes are built anew.", whole, 5, terms=keep)
    for at in range(5):
        cut(
            f"flipped-batch-{at}", "One bit: everything from that batch on goes.", flipped(whole, at * SIZE + 70, 2), at
        )
        cut(f"crc-batch-{at}", "A wrong checksum.", replaced(whole, at * SIZE + CRC[0], "I", 7), at)
        cut(
            f"length-0-batch-{at}",
            "A length of 0 with data behind it.",
            replaced(whole, at * SIZE + LENGTH[0], "i", 0),
            at,
        )
        cut(f"length-negative-batch-{at}", "A negative length.", replaced(whole, at * SIZE + LENGTH[0], "i", -1), at)
        cut(f"magic-negative-batch-{at}", "A negative magic.", replaced(whole, at * SIZE + MAGIC[0], "b", -1), at)
    for at in (1, 3):
        for number in (14, 48, SIZE - 13, SIZE - 11):
            cut(
                f"length-{number}-batch-{at}",
                "A length that is not right.",
                replaced(whole, at * SIZE + LENGTH[0], "i", number),
                at,
            )
        cut(
            f"length-past-the-end-batch-{at}",
            "A length past the end of the file: all that is behind it counts as its own.",
            replaced(whole, at * SIZE + LENGTH[0], "i", 10**6),
            at,
        )
    for count in (1, 7, 8, 11, 12, 16, 17, 18, 40, 61, SIZE - 1):
        cut(
            f"tail-of-{count}", "The last batch is cut short: it goes.", whole + row(1, base=15)[0].encoded()[:count], 5
        )
    for count in (1, 12, 17, 18, 100, 5000):
        cut(f"zeros-{count}", "Zeros at the end, as preallocation leaves them.", whole + bytes(count), 5)
    for count in (3, 17, 18, 60):
        cut(f"garbage-{count}", "Garbage at the end.", whole + b"\xa5" * count, 5)
    cut("nothing", "An empty segment stays.", b"", 0, terms=keep)
    cut("only-zeros", "A preallocated file that was never written to.", bytes(4096), 0)
    _kept_by_recovery(cut)
    _recovered_directories(recover)
    _order(family)
    _truncations(family)
    return family


def _kept_by_recovery(cut: Callable[..., None]) -> None:
    """What recovery must not cut, whatever a reader will say to it."""
    stays = must("SEG-RCV-005", flags=("CUT_TOO_MUCH",))
    odd: dict[str, tuple[str, Batch]] = {
        "unknown-codec": (
            "A codec that does not exist.",
            Batch(base=6, attributes=6, recs=(Rec(), Rec(), Rec()), base_timestamp=1020),
        ),
        "bad-gzip": (
            "Data that does not decompress.",
            Batch(base=6, codec="gzip", stored=b"no gzip", recs=(Rec(), Rec(), Rec()), base_timestamp=1020),
        ),
        "bad-records": (
            "Records that cannot be read.",
            Batch(base=6, stored=b"\1\2\3", recs=(Rec(), Rec(), Rec()), base_timestamp=1020),
        ),
        "unknown-attributes": (
            "Attribute bits that mean nothing.",
            Batch(base=6, attributes=0x180, recs=(Rec(), Rec(), Rec()), base_timestamp=1020),
        ),
        "empty-batch": ("An empty batch.", empty(6, 2)),
        "gap": ("A gap before it.", Batch(base=7, recs=(Rec(), Rec()), base_timestamp=1020)),
    }
    for name, (why, batch) in odd.items():
        log = [*ROW[:2], batch, *ROW[3:]]
        cut(
            f"keeps-{name}",
            f"{why} The checksum is right, so it stays: a broker keeps it, and so do the other replicas.",
            bytes_of(log),
            5,
            terms=stays,
            units=log,
        )
    counted = with_field(ROW[2].encoded(), COUNT, 99)
    units = [*ROW[:2], Batch(**{**vars(ROW[2]), "count": 99}), *ROW[3:]]
    assert units[2].encoded() == counted
    cut(
        "keeps-wrong-count", "A wrong count under a right checksum stays.", bytes_of(units), 5, terms=stays, units=units
    )
    for magic in (0, 1):
        old = [Msg(magic=magic, offset=at, timestamp=1000 + at, value=bytes(40)) for at in range(5)]
        terms = must("SEG-RCV-003", "SEG-MSG-004", needs=(f"magic:{magic}",), since="0.8" if magic == 0 else "0.10")
        cut(f"magic-{magic}-whole", "Old messages stay.", bytes_of(old), 5, terms=terms, units=old)
        size = len(old[0].encoded())
        cut(
            f"magic-{magic}-flipped",
            "One bit of an old message.",
            flipped(bytes_of(old), 3 * size + 40, 1),
            3,
            terms=terms,
            units=old,
        )
    committed = [data(0, b"a"), marker("COMMIT", 1), data(2, b"b", sequence=1)]
    cut(
        "transactions",
        "Markers are read on the way, and stay.",
        bytes_of(committed),
        3,
        terms=must("SEG-RCV-008", flags=("CUT_TOO_MUCH",)),
        units=committed,
    )
    epochs = [replace(one, leader_epoch=at) for at, one in enumerate(ROW)]
    cut(
        "leader-epochs",
        "The leader epoch is outside the checksum and may grow.",
        bytes_of(epochs),
        5,
        terms=must("SEG-RCV-003", "SEG-BAT-010"),
        units=epochs,
    )


def _recovered_directories(recover: Callable[..., None]) -> None:
    """More than one file."""
    first, second, third = ROW, row(3, base=15), row(2, base=24)
    files = {name_of(0): bytes_of(first), name_of(15): bytes_of(second), name_of(24): bytes_of(third)}
    drop = must("SEG-RCV-004", flags=("CUT_TOO_LITTLE",))
    indexes = {name_of(base, ".index"): b"" for base in (0, 15, 24)}
    bare, files = files, {**files, **indexes}
    logs = dict(bare)
    recover(
        "segments-whole",
        "Three segments without damage.",
        must("SEG-RCV-002", "SEG-RCV-025"),
        files,
        dict(logs),
        30,
        removed=0,
    )
    recover(
        "damage-in-the-first",
        "What comes after a cut is dropped.",
        drop,
        {**files, name_of(0): flipped(files[name_of(0)], 2 * SIZE + 70)},
        {name_of(0): bytes_of(first[:2]), name_of(15): None, name_of(24): None},
        6,
    )
    recover(
        "damage-in-the-second",
        "The first stays, the third goes.",
        drop,
        {**files, name_of(15): flipped(files[name_of(15)], 70)},
        {name_of(0): files[name_of(0)], name_of(15): b"", name_of(24): None},
        15,
    )
    recover(
        "tail-in-the-second",
        "A segment that ends in part of a batch was cut, too.",
        drop,
        {**files, name_of(15): files[name_of(15)] + b"\0\0\0"},
        {name_of(15): files[name_of(15)], name_of(24): None},
        24,
    )
    below = {**bare, name_of(0): flipped(files[name_of(0)], 70)}
    recover(
        "clean-damage-without-index",
        "A segment that is scanned only because it has no index is cut, and what follows stays: it was closed cleanly.",
        must("SEG-RCV-004", "SEG-RCV-006", flags=("CUT_TOO_MUCH",)),
        below,
        {name_of(0): b"", name_of(15): files[name_of(15)], name_of(24): files[name_of(24)]},
        30,
        cleanShutdown=True,
    )
    named = {
        name_of(base, kind): make(units, 100, base)
        for base, units in ((0, first), (15, second), (24, third))
        for kind, make in ((".index", offset_index), (".timeindex", time_index))
    }
    trusted = must("SEG-RCV-002", "SEG-CKP-011", flags=("CUT_TOO_MUCH",))
    recover(
        "below-the-recovery-point",
        "The damage is below the recovery point: nobody looks, and nothing goes.",
        trusted,
        {**below, **named},
        below,
        30,
        removed=0,
        recoveryPoint="15",
    )
    recover(
        "recovery-point-inside",
        "The segment that holds the recovery point is scanned from its start.",
        must("SEG-RCV-002", flags=("CUT_TOO_LITTLE",)),
        {**below, **named},
        {name_of(0): b"", name_of(15): None, name_of(24): None},
        0,
        recoveryPoint="14",
    )
    clean = must("SEG-RCV-001", "SEG-LDR-003", flags=("CUT_TOO_MUCH",))
    recover(
        "clean-shutdown",
        "After a clean shutdown nothing is scanned.",
        clean,
        {**below, **named},
        below,
        30,
        removed=0,
        cleanShutdown=True,
    )
    recover(
        "clean-without-index",
        "A segment without an index is scanned all the same.",
        must("SEG-RCV-006"),
        bare,
        {name_of(0, ".index"): offset_index(first, 100)},
        30,
        cleanShutdown=True,
    )
    rebuilt = must("SEG-RCV-025", flags=("CUT_TOO_LITTLE",))
    for name, content in (
        ("garbage", b"\xa5" * 40),
        ("odd-size", b"\0" * 13),
        ("stale", offset_index(first[:3], 0)),
        ("preallocated", bytes(1024)),
        ("empty", b""),
    ):
        recover(
            f"index-{name}",
            "Indexes of a scanned segment are built anew, whatever was there.",
            rebuilt,
            {name_of(0): bytes_of(first), name_of(0, ".index"): content},
            {name_of(0, ".index"): offset_index(first, 100)},
            15,
        )
        recover(
            f"time-index-{name}",
            "Time indexes, too.",
            rebuilt,
            {name_of(0): bytes_of(first), name_of(0, ".timeindex"): content},
            {name_of(0, ".timeindex"): time_index(first, 100)},
            15,
        )
    orphan = should("SEG-RCV-026")
    recover(
        "orphan-index",
        "An index without a log is removed.",
        orphan,
        {**files, name_of(99, ".index"): bytes(16), name_of(99, ".timeindex"): bytes(12)},
        {name_of(99, ".index"): None, name_of(99, ".timeindex"): None, name_of(0): files[name_of(0)]},
        30,
    )
    recover(
        "cleaned-files",
        "Files of a compaction that did not end are removed.",
        should("SEG-RCV-020"),
        {**files, name_of(0) + ".cleaned": b"half"},
        {name_of(0) + ".cleaned": None, name_of(0): files[name_of(0)]},
        30,
    )
    swap = must("SEG-RCV-021", "SEG-PDR-010", since="3.0")
    compacted = [replace(ROW[0], recs=ROW[0].recs[:1], last_delta=2), *ROW[1:]]
    recover(
        "swap-files",
        "A replacement that was complete is finished.",
        swap,
        {**files, name_of(0) + ".swap": bytes_of(compacted)},
        {name_of(0): bytes_of(compacted), name_of(0) + ".swap": None, name_of(15): files[name_of(15)]},
        30,
    )
    recover(
        "swap-and-cleaned",
        "A cleaned file shows that the replacement was not complete: the old files count.",
        swap,
        {**files, name_of(15) + ".swap": bytes_of(second[:1]), name_of(0) + ".cleaned": b"half"},
        {name_of(0): files[name_of(0)], name_of(15): files[name_of(15)], name_of(15) + ".swap": None},
        30,
    )
    merged = [*first[:1], *second[-1:]]
    recover(
        "swap-over-two",
        "One file replaces two segments.",
        swap,
        {**files, name_of(0) + ".swap": bytes_of(merged)},
        {name_of(0): bytes_of(merged), name_of(15): None, name_of(24): files[name_of(24)]},
        30,
    )
    gone = must("SEG-RCV-007")
    recover(
        "ends-below-the-log-start",
        "The log ends below its start: it begins anew there.",
        gone,
        files,
        {name_of(0): None, name_of(15): None, name_of(24): None, name_of(500): b""},
        500,
        logStartOffset="500",
    )
    recover(
        "no-segment",
        "A log without a segment gets an empty one.",
        should("SEG-RCV-030"),
        {"partition.metadata": b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"},
        {name_of(0): b""},
        0,
    )
    snapshot = bytes.fromhex("000148674bc700000000")
    beyond = must("SEG-RCV-027")
    recover(
        "snapshot-above-the-end",
        "A producer snapshot above the end of the log is removed.",
        beyond,
        {**files, name_of(500, ".snapshot"): snapshot},
        {name_of(500, ".snapshot"): None},
        30,
    )
    recover(
        "snapshot-damaged",
        "One that cannot be read is removed.",
        must("SEG-RCV-027", "SEG-PSN-005"),
        {**files, name_of(24, ".snapshot"): snapshot[:-1] + b"\1"},
        {name_of(0): files[name_of(0)]},
        30,
    )
    epochs = must("SEG-RCV-028")
    recover(
        "epochs-above-the-end",
        "Leader epochs that begin at the end or above are removed.",
        epochs,
        {**files, "leader-epoch-checkpoint": b"0\n3\n0 0\n1 30\n2 40\n"},
        {"leader-epoch-checkpoint": b"0\n1\n0 0\n"},
        30,
    )
    newer = [replace(one, leader_epoch=4) for one in row(2, base=24)]
    recover(
        "epochs-missing",
        "Epochs of scanned batches are added.",
        epochs,
        {**files, name_of(24): bytes_of(newer), "leader-epoch-checkpoint": b"0\n1\n0 0\n"},
        {"leader-epoch-checkpoint": b"0\n2\n0 0\n4 24\n"},
        30,
    )
    left_alone = must("SEG-PDR-011")
    recover(
        "other-files",
        "Files with other names are left alone.",
        left_alone,
        {**files, "notes.txt": b"mine", "00000000000000000000.bak": b"old"},
        {"notes.txt": b"mine", "00000000000000000000.bak": b"old", name_of(0): files[name_of(0)]},
        30,
    )


def _order(family: Family) -> None:
    """Offsets that go back: two ways to repair that brokers and this specification know."""
    back = [*ROW[:3], replace(ROW[3], base=2), ROW[4]]
    log = bytes_of(back)
    for interval, name in ((100, "where-an-entry-is-due"), (4096, "where-no-entry-is-due")):
        good = ROW[:3]
        cut = {"branch": "cut", "nextOffset": "9", "files": {name_of(0): bytes_of(good).hex()}}
        others: list[Json] = [
            {"branch": "emptied", "nextOffset": "0", "files": {name_of(0): ""}},
            {"branch": "kept", "nextOffset": "15", "files": {name_of(0): log.hex()}},
        ]
        terms = should("SEG-RCV-023", flags=("ORDER_REPAIR",))
        request = {
            "files": {name_of(0): log.hex(), name_of(0, ".index"): ""},
            "options": {"indexIntervalBytes": interval},
        }
        family.add(
            f"offset-back-{name}",
            "recover",
            "acceptable",
            "The offset of the fourth batch lies in the first.",
            terms,
            request=request,
            expect={"allowed": [cut, *others]},
        )
    family.add(
        "negative-last-delta",
        "recover",
        "acceptable",
        "A batch that ends before it begins.",
        should("SEG-RCV-023", flags=("ORDER_REPAIR",)),
        request={
            "files": {
                name_of(0, ".index"): "",
                name_of(0): (bytes_of(ROW[:2]) + with_field(ROW[2].encoded(), LAST_OFFSET_DELTA, -1)).hex(),
            },
            "options": {"indexIntervalBytes": 100},
        },
        expect={
            "allowed": [
                {"branch": "cut", "nextOffset": "6", "files": {name_of(0): bytes_of(ROW[:2]).hex()}},
                {"branch": "emptied", "nextOffset": "0", "files": {name_of(0): ""}},
            ]
        },
    )


def _truncations(family: Family) -> None:
    first, second = ROW, row(3, base=15)
    files = {
        name_of(0): bytes_of(first), name_of(0, ".index"): offset_index(first, 100), name_of(0, ".timeindex"): time_index(first, 100),
        name_of(15): bytes_of(second), name_of(15, ".index"): offset_index(second, 100, 15), name_of(15, ".timeindex"): time_index(second, 100, 15),
    }  # fmt: skip

    def truncate(
        name: str,
        why: str,
        terms: Terms,
        offset: int,
        end: int,
        left: dict[str, bytes | None],
        *,
        given: dict[str, bytes] | None = None,
    ) -> None:
        request = {"files": {key: content.hex() for key, content in (given or files).items()}, "offset": str(offset)}
        expect = {
            "nextOffset": str(end),
            "files": {key: None if content is None else content.hex() for key, content in left.items()},
        }
        family.add(f"truncate-{name}", "truncate", "valid", why, terms, request=request, expect=expect)

    terms = must("SEG-TRN-001")
    truncate(
        "between-batches",
        "Whole batches from the offset on go.",
        terms,
        9,
        9,
        {name_of(0): bytes_of(first[:3]), name_of(15): None},
    )
    truncate(
        "inside-a-batch",
        "A batch goes as a whole, and the log ends at the offset all the same.",
        terms,
        10,
        10,
        {name_of(0): bytes_of(first[:3]), name_of(15): None},
    )
    truncate(
        "last-offset-of-a-batch",
        "Its last record is at the offset: the batch goes.",
        terms,
        11,
        11,
        {name_of(0): bytes_of(first[:3])},
    )
    truncate(
        "in-the-second-segment",
        "The first segment stays.",
        terms,
        18,
        18,
        {name_of(0): bytes_of(first), name_of(15): bytes_of(second[:1])},
    )
    truncate(
        "at-a-segment",
        "The base offset of the second segment: it stays, empty.",
        terms,
        15,
        15,
        {name_of(0): bytes_of(first), name_of(15): b""},
    )
    truncate(
        "last-of-the-first",
        "The offset before it: the second segment goes.",
        terms,
        14,
        14,
        {name_of(0): bytes_of(first[:4]), name_of(15): None},
    )
    nothing = must("SEG-TRN-002")
    everything = {key: content for key, content in files.items() if key.endswith(".log")}
    truncate("at-the-end", "The end of the log: nothing changes.", nothing, 24, 24, everything)
    moved = {name_of(100): bytes_of(row(3, base=100))}
    truncate(
        "below-the-first",
        "Below the first segment: everything goes, and an empty segment begins there.",
        nothing,
        50,
        50,
        {name_of(100): None, name_of(50): b""},
        given=moved,
    )
    truncate("to-0", "To the very start.", terms, 0, 0, {name_of(0): b"", name_of(15): None})
    index = must("SEG-TRN-003")
    kept = [
        struct.pack(
            ">ii",
            int.from_bytes(offset_index(first, 100)[at : at + 4], "big"),
            int.from_bytes(offset_index(first, 100)[at + 4 : at + 8], "big"),
        )
        for at in range(0, len(offset_index(first, 100)), 8)
    ]
    for offset in (3, 9, 13):
        rows = b"".join(one for one in kept if int.from_bytes(one[:4], "big") < offset)
        times = b"".join(
            entry
            for entry in (time_index(first, 100)[at : at + 12] for at in range(0, len(time_index(first, 100)), 12))
            if int.from_bytes(entry[8:], "big") < offset
        )
        truncate(
            f"index-entries-{offset}",
            "Entries of both indexes from the offset on go.",
            index,
            offset,
            offset,
            {name_of(0, ".index"): rows, name_of(0, ".timeindex"): times},
        )
    transactions = [
        data(0, b"a", producer_id=1),
        marker("ABORT", 1, producer_id=1),
        data(2, b"b", producer_id=1, sequence=1),
        marker("ABORT", 3, producer_id=1),
        *row(1, base=4),
    ]
    given = {name_of(0): bytes_of(transactions), name_of(0, ".txnindex"): aborted(1, 0, 1, 2) + aborted(1, 2, 3, 4)}
    truncate(
        "aborted-transactions",
        "Transactions that ended there or later go.",
        index,
        3,
        3,
        {name_of(0, ".txnindex"): aborted(1, 0, 1, 2)},
        given=given,
    )
    side = must("SEG-TRN-004")
    snapshot = bytes.fromhex("000148674bc700000000")
    given = {
        **files,
        name_of(15, ".snapshot"): snapshot,
        name_of(24, ".snapshot"): snapshot,
        "leader-epoch-checkpoint": b"0\n3\n0 0\n1 9\n2 16\n",
    }
    truncate(
        "snapshots-and-epochs",
        "Snapshots above the offset go, and epochs that begin there or above.",
        side,
        16,
        16,
        {
            name_of(15, ".snapshot"): snapshot,
            name_of(24, ".snapshot"): None,
            "leader-epoch-checkpoint": b"0\n2\n0 0\n1 9\n",
        },
        given=given,
    )


def reads(family: Family) -> None:
    """The reading half of family 19: fetches, and what read_committed leaves out."""

    def fetch(
        name: str,
        why: str,
        terms: Terms,
        units: Sequence[Unit | bytes] | dict[str, bytes],
        offset: int,
        offsets: Iterable[int],
        end: int,
        **more: str | int,
    ) -> None:
        files = units if isinstance(units, dict) else {name_of(0): bytes_of(units)}
        records = []
        for key in sorted(files):
            found = [
                unit
                for unit in (units if not isinstance(units, dict) else ROW + row(3, base=15))
                if not isinstance(unit, bytes)
            ]
            records = [record for answer in lay(found)[1] for record in answer["records"]]
            assert key
        wanted = [record for record in records if int(record["offset"]) in set(offsets)]
        request = {"files": {key: content.hex() for key, content in files.items()}, "offset": str(offset), **more}
        family.add(
            name, "read", "valid", why, terms, request=request, expect={"records": wanted, "nextOffset": str(end)}
        )

    batch = must("SEG-LKP-003", "SEG-LKP-002")
    for offset in (0, 1, 5, 14):
        fetch(
            f"read-from-{offset}",
            "Records below the offset asked for are dropped, those of the same batch above it are not.",
            batch,
            ROW,
            offset,
            range(offset, 15),
            15,
        )
    fetch("read-at-the-end", "At the end there is nothing, and no error.", must("SEG-LKP-005"), ROW, 15, (), 15)
    for offset in (16, 1000):
        family.add(
            f"read-beyond-{offset}",
            "read",
            "invalid",
            "Beyond the end is out of range.",
            must("SEG-LKP-004"),
            request={"files": {name_of(0): bytes_of(ROW).hex()}, "offset": str(offset)},
            expect={"reject": {"class": "offset"}},
        )
    family.add(
        "read-below",
        "read",
        "invalid",
        "Below the first segment is out of range.",
        must("SEG-LKP-004"),
        request={"files": {name_of(100): bytes_of(row(2, base=100)).hex()}, "offset": "99"},
        expect={"reject": {"class": "offset"}},
    )
    sized = must("SEG-LKP-006")
    for limit, end in ((2 * SIZE, 6), (2 * SIZE + SIZE - 1, 6), (SIZE, 3), (3 * SIZE, 9)):
        fetch(
            f"read-{limit}-bytes",
            "Only whole entries within the limit.",
            sized,
            ROW,
            0,
            range(end),
            end,
            maxBytes=limit,
        )
    fetch("read-1-byte", "The first entry is answered whatever its size.", sized, ROW, 4, (4, 5), 6, maxBytes=1)
    two = {name_of(0): bytes_of(ROW), name_of(15): bytes_of(row(3, base=15))}
    fetch(
        "read-ends-with-the-segment",
        "One read does not go on into the next segment.",
        must("SEG-LKP-007"),
        two,
        9,
        range(9, 15),
        15,
    )
    fetch("read-next-segment", "The next one begins there.", must("SEG-LKP-007"), two, 15, range(15, 24), 24)
    holes = [replace(one, base=one.base * 10, last_delta=7) for one in ROW]
    fetch(
        "read-in-a-gap",
        "The first record may be above the offset asked for, and the next offset is behind the last batch.",
        must("SEG-LKP-002", "SEG-LKP-007"),
        holes,
        15,
        [offset for one in holes[1:] for offset in range(one.base, one.base + 3)],
        128,
    )
    fetch(
        "read-empty-batch",
        "An empty batch gives nothing and moves on.",
        must("SEG-BAT-018", "SEG-LKP-007"),
        [empty(0, 9)],
        0,
        (),
        10,
    )
    control = [data(0, b"a"), marker("COMMIT", 1), data(2, b"b", sequence=1)]
    fetch("read-control", "Control records are never delivered.", must("SEG-CTL-009"), control, 0, (0, 2), 3)
    _damaged_reads(family)
    _directory_reads(family)
    _committed_reads(family, fetch)


def _committed_reads(family: Family, fetch: Callable[..., None]) -> None:
    committed = {"isolation": "read_committed"}
    done = must("SEG-LKP-011")
    stable = must("SEG-LKP-012")
    fetch(
        "committed",
        "A committed transaction is delivered.",
        done,
        [data(0, b"a"), marker("COMMIT", 1)],
        0,
        (0,),
        2,
        **committed,
    )
    fetch(
        "aborted",
        "An aborted one is not.",
        done,
        [data(0, b"a"), marker("ABORT", 1), data(2, b"b", sequence=1), marker("COMMIT", 3)],
        0,
        (2,),
        4,
        **committed,
    )
    fetch(
        "aborted-uncommitted-read",
        "Who does not ask for committed data gets it.",
        must("SEG-CTL-009"),
        [data(0, b"a"), marker("ABORT", 1)],
        0,
        (0,),
        2,
    )
    fetch(
        "open",
        "What is open is not read yet.",
        stable,
        [data(0, b"a", transactional=False), data(1, b"b", sequence=1)],
        0,
        (0,),
        1,
        **committed,
    )
    fetch(
        "open-hides-later",
        "Nothing behind the first open transaction is read, finished or not.",
        stable,
        [
            data(0, b"a", producer_id=1),
            data(1, b"b", producer_id=2),
            marker("COMMIT", 2, producer_id=2),
            data(3, b"c", producer_id=3, transactional=False),
        ],
        0,
        (),
        0,
        **committed,
    )
    two_open = [
        data(0, b"a", producer_id=1),
        data(1, b"b", producer_id=2),
        marker("ABORT", 2, producer_id=1),
        data(3, b"c", producer_id=2, sequence=1),
        marker("COMMIT", 4, producer_id=2),
    ]
    fetch("interleaved", "Two at once: each by its own marker.", done, two_open, 0, (1, 3), 5, **committed)
    again = [
        data(0, b"a"),
        marker("ABORT", 1),
        data(2, b"b", sequence=1),
        marker("COMMIT", 3),
        data(4, b"c", sequence=2),
        marker("ABORT", 5),
    ]
    fetch(
        "abort-commit-abort",
        "One producer, three transactions: each marker ends one.",
        done,
        again,
        0,
        (2,),
        6,
        **committed,
    )
    fetch(
        "from-inside",
        "The read begins inside an aborted transaction.",
        done,
        [data(0, b"a"), data(1, b"b", sequence=1), marker("ABORT", 2), data(3, b"c", transactional=False, sequence=2)],
        1,
        (3,),
        4,
        **committed,
    )
    plain = [
        data(0, b"a", producer_id=1),
        data(1, b"p", producer_id=5, transactional=False),
        Batch(base=2),
        marker("ABORT", 3, producer_id=1),
    ]
    fetch(
        "plain-between",
        "Data without a transaction stands between, and is delivered.",
        done,
        plain,
        0,
        (1, 2),
        4,
        **committed,
    )
    fenced = [
        data(0, b"a"),
        marker("ABORT", 1, producer_epoch=3),
        replace(data(2, b"b"), producer_epoch=4),
        marker("COMMIT", 3, producer_epoch=4),
    ]
    fetch(
        "fenced",
        "The marker carries a higher epoch than the data that it ends.",
        must("SEG-LKP-016"),
        fenced,
        0,
        (2,),
        4,
        **committed,
    )
    fetch(
        "marker-without-data",
        "A marker of a producer that wrote nothing here.",
        done,
        [marker("ABORT", 0), data(1, b"b"), marker("COMMIT", 2)],
        0,
        (1,),
        3,
        **committed,
    )
    fetch(
        "empty-control-batch",
        "A control batch without a record ends nothing.",
        must("SEG-CTL-007", "SEG-LKP-012"),
        [
            data(0, b"a"),
            empty(1, 0, attributes=0x30, producer_id=9, producer_epoch=2),
            data(2, b"b", sequence=1),
            marker("COMMIT", 3),
        ],
        0,
        (0, 2),
        4,
        **committed,
    )
    stale = {name_of(0): bytes_of(again), name_of(0, ".txnindex"): b""}
    _with_index(
        family,
        "txn-index-empty",
        "The index of aborted transactions is empty, but the log knows better.",
        stale,
        again,
        (2,),
    )
    _with_index(
        family,
        "txn-index-right",
        "The index of aborted transactions, as a broker wrote it.",
        {**stale, name_of(0, ".txnindex"): aborted(9, 0, 1, 2) + aborted(9, 4, 5, 6)},
        again,
        (2,),
    )
    out_of_order = {**stale, name_of(0, ".txnindex"): aborted(9, 4, 5, 6) + aborted(9, 0, 1, 2)}
    _with_index(
        family, "txn-index-out-of-order", "Its entries are not in order.", out_of_order, again, (2,), rule="SEG-TXN-004"
    )
    backwards = {**stale, name_of(0, ".txnindex"): aborted(9, 3, 1, 2)}
    _with_index(
        family,
        "txn-index-backwards",
        "A transaction ends before it begins.",
        backwards,
        again,
        (2,),
        rule="SEG-TXN-005",
    )
    _with_index(
        family,
        "txn-index-torn",
        "Its last entry is cut.",
        {**stale, name_of(0, ".txnindex"): aborted(9, 0, 1, 2) + aborted(9, 4, 5, 6)[:20]},
        again,
        (2,),
    )


def _directory_reads(family: Family) -> None:
    """What counts as part of a log, and where it starts and ends."""

    def read(
        name: str,
        why: str,
        terms: Terms,
        files: dict[str, bytes],
        units: Sequence[Batch],
        offset: int,
        end: int,
        **options: str,
    ) -> None:
        records = [
            record for answer in lay(units)[1] for record in answer["records"] if offset <= int(record["offset"]) < end
        ]
        request: Json = {"files": {key: content.hex() for key, content in files.items()}, "offset": str(offset)}
        if options:
            request["options"] = options
        family.add(
            name, "read", "valid", why, terms, request=request, expect={"records": records, "nextOffset": str(end)}
        )

    log = bytes_of(ROW)
    start = must("SEG-LKP-010", "SEG-CKP-010", needs=("logStartOffset",))
    read(
        "read-log-start",
        "Records below the log start offset are hidden, also within a batch.",
        start,
        {name_of(0): log},
        ROW,
        5,
        15,
        logStartOffset="5",
    )
    below = {"files": {name_of(0): log.hex()}, "offset": "4", "options": {"logStartOffset": "5"}}
    family.add(
        "read-below-log-start",
        "read",
        "invalid",
        "An offset below the log start offset is out of range, though its record is there.",
        must("SEG-LKP-010", "SEG-LKP-004", needs=("logStartOffset",)),
        request=below,
        expect={"reject": {"class": "offset"}, "records": []},
    )
    low = {name_of(100): bytes_of(row(2, base=100))}
    read(
        "read-log-start-below-the-first",
        "A checkpoint below the first segment does not count.",
        must("SEG-CKP-010", needs=("logStartOffset",)),
        low,
        row(2, base=100),
        100,
        106,
        logStartOffset="7",
    )
    end = must("SEG-LKP-015", "SEG-LKP-005")
    for base in (15, 40):
        read(
            f"read-empty-last-segment-{base}",
            "The last segment is empty: its name says where the log ends.",
            end,
            {name_of(0): log, name_of(base): b""},
            [],
            base,
            base,
        )
    family.add(
        "read-beyond-an-empty-last-segment",
        "read",
        "invalid",
        "Beyond the name of an empty last segment is out of range.",
        must("SEG-LKP-015", "SEG-LKP-004"),
        request={"files": {name_of(0): log.hex(), name_of(40): ""}, "offset": "41"},
        expect={"reject": {"class": "offset"}, "records": []},
    )
    compacted = [replace(ROW[0], recs=ROW[0].recs[:1], last_delta=2), *ROW[1:]]
    swap = must("SEG-PDR-010", since="3.0")
    read(
        "read-swap",
        "A complete replacement counts, and not the file that it replaces.",
        swap,
        {name_of(0): log, name_of(0) + ".swap": bytes_of(compacted)},
        compacted,
        0,
        15,
    )
    undone = {name_of(0): log, name_of(0) + ".swap": bytes_of(ROW[:1]), name_of(0) + ".cleaned": b""}
    read(
        "read-swap-and-cleaned", "A cleaned file shows that the replacement was not complete.", swap, undone, ROW, 0, 15
    )
    left = {name_of(0): log, name_of(0) + ".cleaned": bytes_of(ROW[:1]), name_of(15) + ".deleted": log}
    read("read-deleted-and-cleaned", "Neither is part of the log.", must("SEG-PDR-009"), left, ROW, 0, 15)
    read(
        "read-two-names",
        "Of two files with one offset the one with twenty digits counts.",
        must("SEG-PDR-019"),
        {name_of(0): log, "0.log": bytes_of(ROW[:1])},
        ROW,
        0,
        15,
    )
    read(
        "read-other-files",
        "Other files do not matter.",
        must("SEG-PDR-011"),
        {name_of(0): log, "notes.txt": b"x", "00000000000000000000.bak": log},
        ROW,
        0,
        15,
    )
    low_entry = {"files": {name_of(5): log.hex()}, "offset": "5"}
    answers = [record for answer in lay(ROW)[1] for record in answer["records"] if int(record["offset"]) >= 5]  # noqa: PLR2004 - the base
    family.add(
        "read-entries-below-the-base",
        "read",
        "acceptable",
        "The first entry is below the name of its file: damage to some, data to others.",
        should("SEG-LOG-008", flags=("OUT_OF_PLACE",)),
        request=low_entry,
        expect={
            "allowed": [
                {"branch": "refused", "reject": {"class": "offset"}, "records": []},
                {"branch": "delivered", "records": answers, "nextOffset": "15"},
            ]
        },
    )
    over = {"files": {name_of(0): log.hex(), name_of(10): bytes_of(row(3, base=10)).hex()}, "offset": "9"}
    family.add(
        "read-overlapping-segments",
        "read",
        "acceptable",
        "A segment goes on past the base of the next one.",
        should("SEG-PDR-013", flags=("OUT_OF_PLACE",)),
        request=over,
        expect={
            "allowed": [
                {"branch": "refused", "reject": {"class": "offset"}, "records": []},
                {
                    "branch": "delivered",
                    "records": [record for answer in lay(ROW)[1][3:] for record in answer["records"]],
                    "nextOffset": "15",
                },
            ]
        },
    )


def _with_index(
    family: Family,
    name: str,
    why: str,
    files: dict[str, bytes],
    units: Sequence[Batch],
    offsets: tuple[int, ...],
    *,
    rule: str = "SEG-IDX-009",
) -> None:
    right = name == "txn-index-right"
    terms = must("SEG-LKP-011", "SEG-TXN-007") if right else should("SEG-LKP-011", rule, flags=("TXN_INDEX_TRUST",))
    records = [record for answer in lay(units)[1] for record in answer["records"] if int(record["offset"]) in offsets]
    request = {
        "files": {key: content.hex() for key, content in files.items()},
        "offset": "0",
        "isolation": "read_committed",
    }
    family.add(
        name,
        "read",
        "valid",
        why,
        terms,
        request=request,
        expect={"records": records, "nextOffset": str(units[-1].next_offset)},
    )


def _damaged_reads(family: Family) -> None:
    records = [record for answer in lay(ROW)[1] for record in answer["records"]]
    for at in (1, 3):
        files = {name_of(0): flipped(bytes_of(ROW), at * SIZE + 70).hex()}
        family.add(
            f"read-damaged-{at}",
            "read",
            "acceptable",
            "A read that begins at a damaged batch says so, or recovery has cut the log there before; nothing from it on is delivered.",
            must("SEG-LKP-014", flags=("RECOVERS_ON_OPEN",)),
            request={"files": files, "offset": str(3 * at)},
            expect={
                "allowed": [
                    {"branch": "refused", "reject": {"class": "crc"}, "records": []},
                    {"branch": "recovered", "records": [], "nextOffset": str(3 * at)},
                ]
            },
        )
        family.add(
            f"read-damaged-{at}-verified",
            "read",
            "invalid",
            "Nobody has cut the log: a read that begins at a damaged batch says so.",
            must("SEG-LKP-014", needs=("verifiedRead",)),
            request={"files": files, "offset": str(3 * at)},
            expect={"reject": {"class": "crc"}, "records": []},
        )
        before = records[: 3 * at]
        family.add(
            f"read-up-to-damage-{at}",
            "read",
            "acceptable",
            "A read that comes to a damaged batch delivers what stands before it, with the error or with the next read.",
            must("SEG-LKP-014", flags=("LATE_ERROR",)),
            request={"files": files, "offset": "0"},
            expect={
                "allowed": [
                    {"branch": "delivered", "records": before, "nextOffset": str(3 * at)},
                    {"branch": "refused", "reject": {"class": "crc"}, "records": before},
                ]
            },
        )
    past = replaced(bytes_of(ROW), SIZE + LAST_OFFSET_DELTA[0], "i", 1)
    family.add(
        "read-hidden-offset",
        "read",
        "invalid",
        "A damaged last offset delta makes an offset look missing: only the checksum of that batch shows it.",
        must("SEG-LKP-017"),
        request={"files": {name_of(0): past.hex()}, "offset": "5"},
        expect={"reject": {"class": "crc"}, "records": []},
    )


def families() -> list[Family]:
    """All of this module."""
    return [index_building(), lookups(), recoveries()]

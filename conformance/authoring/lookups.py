"""Family 39: finding offsets and times, with indexes good and bad."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from authoring.batches import LOG_APPEND_TIME, Batch, Rec
from authoring.casefile import Basis, Family, Json, hexed, must, should
from authoring.control import data, marker
from authoring.messages import Msg
from authoring.segments import ROW, SIZE, bytes_of, last_offset, name_of, offset_index, row, time_entry, time_index
from authoring.trusting import add_trusting
from authoring.whole import forged, listed, passed_over

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


PROOF: Final = ("provesIndexes",)
PLAUSIBLE: Final = frozenset(
    {"of-another-log", "offset-negative", "position-mid-batch", "position-past-the-end", "too-far"}
)
"""Offset indexes that pass a look at their size and last entry: nothing but the log tells that they are wrong."""
OUT_OF_ORDER: Final = frozenset(
    {"preallocated", "descending", "equal-offsets", "equal-times", "offset-back", "same-offset"}
)
"""Entries that a search by halves goes astray in."""


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
        "LOOSE_VERSION": {
            "effect": "Brokers look at one byte of the version of a transaction index entry; a later format would be misread.",
            "links": [],
        },
        "HIDDEN_RECORD": {
            "effect": "Brokers look for the largest time among records below the log start offset, too, and answer with one that nobody can read.",
            "links": [],
        },
    }
    family = Family(39, "lookup", "Finding offsets and times", "facts 4.2, 4.3 and 6", flags=flags)
    log = bytes_of(ROW)
    good = {name_of(0): log, name_of(0, ".index"): offset_index(ROW, 0), name_of(0, ".timeindex"): time_index(ROW, 0)}
    plain = must("SEG-LKP-001", "SEG-LKP-002")

    def find(
        name: str,
        why: str,
        basis: Basis,
        files: dict[str, bytes],
        found: Json | None,
        *,
        options: Json | None = None,
        **asked: int,
    ) -> None:
        request: Json = {
            "files": hexed(files),
            **{key: str(number) for key, number in asked.items()},
            **({"options": options} if options else {}),
        }
        family.add(name, "lookup", "valid", why, basis, request=request, expect={"found": found})

    def position_of(at: int, size: int = SIZE, units: Sequence[Batch] = ROW) -> Json:
        return {"position": at * size, "baseOffset": str(units[at].base)}

    for offset in (0, 2, 3, 7, 12, 14):
        at = offset // 3
        entry = _floor(offset)
        for name, why, basis, given, found in (
            (f"offset-{offset}", "A lookup finds the first byte of the entry that contains the offset; the index only says where the search begins.", plain, good, {"entry": entry, **position_of(at)}),
            (f"offset-{offset}-without-index", "A lookup without an index finds the same entry.", must("SEG-LKP-002", "SEG-IDX-009"), {name_of(0): log}, position_of(at)),
        ):  # fmt: skip
            find(name, why, basis, given, found, offset=offset)
    out = must("SEG-LKP-004", "SEG-LKP-005")
    find("at-the-end", "No entry is at the log end offset yet.", out, good, None, offset=15)
    holes = [replace(one, base=one.base * 10) for one in ROW]
    gap = {name_of(0): bytes_of(holes), name_of(0, ".index"): offset_index(holes, 0)}
    for offset, at in ((3, 1), (29, 1), (33, 2), (100, 4)):
        why = "The offset is missing: a lookup finds the next entry."
        find(f"gap-{offset}", why, plain, gap, position_of(at, units=holes), offset=offset)
    short = [replace(one, last_delta=7, base=one.base * 3) for one in ROW]
    later = row(3, base=100)
    two = {name_of(0): log, name_of(100): bytes_of(later)}
    three = {name_of(0): log, name_of(15): b"", name_of(15 + 40): bytes_of(row(1, base=60))}
    for name, why, given, found, offset in (
        ("gap-inside-a-batch", "The offset belonged to a record that was removed: a lookup finds the batch that contained it.", {name_of(0): bytes_of(short)}, position_of(1, units=short), 15),
        ("next-segment", "The offset is missing between two segments: a lookup finds the first entry of the next segment.", two, {"position": 0, "baseOffset": "100"}, 50),
        ("second-segment", "A lookup begins in the segment with the greatest base offset that is not above the offset.", two, {"position": SIZE, "baseOffset": "103"}, 104),
        ("base-of-second-segment", "The base offset of a segment is in that segment.", two, {"position": 0, "baseOffset": "100"}, 100),
        ("last-of-first-segment", "The last offset before a base offset is in the segment before.", two, {"position": 4 * SIZE, "baseOffset": "12"}, 14),
        ("empty-segment-between", "A segment is empty: a lookup continues in the next one.", three, {"position": 0, "baseOffset": "60"}, 20),
    ):  # fmt: skip
        find(name, why, plain, given, found, offset=offset)
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
            "SEG-IDX-009",
            "SEG-IDX-010",
            *((broken[name],) if name in broken else ()),
            flags=("INDEX_TRUST",),
            needs=PROOF if name in PLAUSIBLE else (),
        )
        for offset in (1, 8, 14):
            why = "Whatever the offset index contains, a lookup finds the entry that the log contains."
            find(f"index-{name}-offset-{offset}", why, trust, files, position_of(offset // 3), offset=offset)
    _usable_entries(find, log)
    harmless = must("SEG-IDX-009", "SEG-IDX-008", flags=("INDEX_TRUST",))
    sparse = {name_of(0): log, name_of(0, ".index"): struct.pack(">ii", 5, SIZE)}
    wide = {name_of(0): log, name_of(0, ".index"): struct.pack(">ii", 8, SIZE)}
    first = {name_of(0): log, name_of(0, ".index"): struct.pack(">ii", 3, SIZE)}
    for name, why, given, found, offset in (
        ("sparse-index", "The index has one entry for the whole log: a lookup reads the log from there.", sparse, {"entry": {"offset": "5", "position": SIZE}, **position_of(4)}, 13),
        ("offset-of-a-later-batch", "An older broker wrote this index entry: its offset belongs to a later batch than its position.", wide,
         {"entry": {"offset": "8", "position": SIZE}, **position_of(2)}, 8),
        ("first-offset-entry", "A broker before 2.0 wrote this index entry, with the first offset of the batch.", first, {"entry": {"offset": "3", "position": SIZE}, **position_of(1)}, 3),
    ):  # fmt: skip
        find(name, why, harmless, given, found, offset=offset)
    _times(find)
    return family


def _usable_entries(find: Callable[..., None], log: bytes) -> None:
    """Which entries of an index count."""
    basis = should("SEG-IDX-010", "SEG-IDX-008", flags=("INDEX_TRUST",))
    proved = replace(basis, needs=PROOF)
    dense = offset_index(ROW, 0)
    rows = {
        "preallocated": (dense + bytes(800), (14, 4)),
        "descending": (dense[8:16] + dense[:8], (8, 2)),
        "equal-offsets": (struct.pack(">iiii", 5, SIZE, 5, 2 * SIZE), (5, 1)),
        "zero-first": (struct.pack(">iiii", 0, 0, 8, 2 * SIZE), (8, 2)),
        "torn": (dense + b"\0\0\0", (14, 4)),
    }
    for name, (content, (offset, at)) in rows.items():
        found = {"entry": {"offset": str(offset), "position": at * SIZE}, "position": 4 * SIZE, "baseOffset": "12"}
        why = (
            "Entries from the first one on whose offset does not grow are ignored; the search begins at the "
            "last entry before it."
        )
        ground = proved if name in OUT_OF_ORDER else basis
        find(f"usable-{name}", why, ground, {name_of(0): log, name_of(0, ".index"): content}, found, offset=14)
    basis = should("SEG-TIX-009", "SEG-TIX-008", flags=("INDEX_TRUST",))
    proved = replace(basis, needs=PROOF)
    times = time_index(ROW, 0)
    rows = {
        "preallocated": (times + bytes(1200), (1042, 14)),
        "descending": (times[12:24] + times[:12], (1022, 8)),
        "equal-times": (time_entry(1012, 5) + time_entry(1012, 8), (1012, 5)),
        "offset-back": (time_entry(1012, 8) + time_entry(1022, 5), (1012, 8)),
        "same-offset": (time_entry(1012, 8) + time_entry(1022, 8), (1022, 8)),
        "torn": (times + bytes(7), (1042, 14)),
    }
    for name, (content, (timestamp, offset)) in rows.items():
        found = {"entry": {"timestamp": str(timestamp), "offset": str(offset)}, "offset": "14", "timestamp": "1042"}
        why = (
            "Time index entries are ignored from the first one on whose timestamp does not grow, or whose "
            "offset is smaller."
        )
        find(f"usable-times-{name}", why, proved if name in OUT_OF_ORDER else basis, {name_of(0): log, name_of(0, ".timeindex"): content}, found, timestamp=1042)  # fmt: skip


def _floor(offset: int) -> Json:
    """Return the entry of the dense index of `ROW` that a lookup begins with."""
    found = {"offset": "0", "position": 0}
    for at, batch in list(enumerate(ROW))[1:]:
        if last_offset(batch) <= offset:
            found = {"offset": str(last_offset(batch)), "position": at * SIZE}
    return found


def _times(find: Callable[..., None]) -> None:
    log, index = bytes_of(ROW), time_index(ROW, 0)
    basis = must("SEG-LKP-008")
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
        why = (
            "The search begins at the last time index entry that is not later than the timestamp, or else at the start."
        )
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
        for name, reason, terms, given in (
            (f"time-{timestamp}", "A search by time finds the first record, in offset order, with that timestamp or a later one.", basis, good),
            (f"time-{timestamp}-without-indexes", "A search by time finds the same record without indexes.", must("SEG-LKP-008", "SEG-IDX-009"), {name_of(0): log}),
        ):  # fmt: skip
            find(name, reason, terms, given, found(offset, at), timestamp=timestamp)
    find("time-after-all", "No record has that timestamp or a later one.", basis, good, None, timestamp=1043)
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
        reason = "Timestamps are not in order: the lowest offset counts, not the nearest timestamp."
        find(f"unordered-{timestamp}", reason, unordered, files, found(offset, at), timestamp=timestamp)
    inside = [Batch(base=0, recs=(Rec(time=90), Rec(time=0), Rec(time=50))), Batch(base=3, base_timestamp=2000)]
    for timestamp, offset, at in ((1000, 0, 1090), (1091, 3, 2000)):
        find(f"unordered-in-a-batch-{timestamp}", "Timestamps inside one batch are not in order.", unordered, {name_of(0): bytes_of(inside)}, found(offset, at), timestamp=timestamp)  # fmt: skip
    equal = row(4, step=0, size=1)
    reason = "Several records have that timestamp: a search by time finds the first of them."
    find("equal-times", reason, basis, {name_of(0): bytes_of(equal)}, found(0, 1000), timestamp=1000)
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
                "Whatever the time index contains, a search by time finds the record that the log contains.",
                trust,
                {name_of(0): log, name_of(0, ".timeindex"): content},
                found(offset, at),
                timestamp=timestamp,
            )
    stamped = [replace(one, attributes=LOG_APPEND_TIME, max_timestamp=8000 + at) for at, one in enumerate(ROW)]
    controlled = [data(0, b"a"), marker("COMMIT", 1, at=5000), data(2, b"b", sequence=1)]
    for name, reason, terms, given, its_found, timestamp in (
        ("log-append-time", "With LogAppendTime, all records of a batch have the broker's timestamp: a search by time finds the first of them.",
         must("SEG-LKP-008", "SEG-BAT-011"), {name_of(0): bytes_of(stamped)}, found(6, 8002), 8002),
        ("control-record", "A search by time also finds control records.", must("SEG-LKP-018"), {name_of(0): bytes_of(controlled)}, found(1, 5000), 4000),
    ):  # fmt: skip
        find(name, reason, terms, given, its_found, timestamp=timestamp)
    special = {"latest": (-1, {"offset": "15"}), "earliest": (-2, {"offset": "0"})}
    for name, (timestamp, answer) in special.items():
        reason = f"The time {timestamp} asks for the {name} offset."
        find(name, reason, must("SEG-LKP-009", needs=("specialTimestamps",)), good, answer, timestamp=timestamp)
    ties = row(4, step=0)
    tied = {name_of(0): bytes_of(ties)}
    for name, reason, given, its_found in (
        ("largest", "The time -3 asks for the first record with the largest time.", files, found(11, 6002)),
        ("largest-of-several", "Several records have the largest timestamp: the time -3 finds the first of them.", tied, found(2, 1002)),
    ):  # fmt: skip
        find(name, reason, must("SEG-LKP-013", since="3.0", needs=("specialTimestamps",)), given, its_found, timestamp=-3)  # fmt: skip
    old = [Msg(offset=at, timestamp=1000 + at, value=bytes(60)) for at in range(5)]
    size = len(old[0].encoded())
    for offset in (0, 2, 4):
        find(
            f"long-messages-{offset}",
            "Messages of magic 1 that are as long as a batch.",
            must("SEG-LKP-001", since="0.10", needs=("magic:1",)),
            {name_of(0): bytes_of(old)},
            {"position": offset * size, "baseOffset": str(offset)},
            offset=offset,
        )
    find(
        "earliest-local",
        "The time -4 asks for the earliest offset on this disk.",
        must("SEG-LKP-009", since="3.4", needs=("specialTimestamps", "earliestLocal")),
        good,
        {"offset": "0"},
        timestamp=-4,
    )
    start = {"options": {"logStartOffset": "5"}}
    needs = ("specialTimestamps", "logStartOffset")
    hidden = must("SEG-LKP-010", "SEG-LKP-008", needs=("logStartOffset",))
    for name, reason, terms, its_found, timestamp in (
        ("earliest-after-deletion", "The earliest offset is the log start offset, not the first that is there.", must("SEG-LKP-009", needs=needs), {"offset": "5"}, -2),
        ("time-after-deletion", "Records below the log start offset are not found by their times.", hidden, found(5, 1012), 0),
    ):  # fmt: skip
        find(name, reason, terms, good, its_found, timestamp=timestamp, **start)
    old = [Msg(magic=0, offset=at) for at in range(3)]
    find(
        "no-times",
        "A search by time never finds messages without timestamps.",
        must("SEG-LKP-008", "SEG-MSG-008", since="0.10.1", needs=("magic:0",)),
        {name_of(0): bytes_of(old)},
        None,
        timestamp=0,
    )


def families() -> list[Family]:
    """All of this module."""
    family = lookups()
    forged(family)
    add_trusting(family)
    passed_over(family)
    listed(family)
    return [family]

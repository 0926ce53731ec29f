"""What recovery says beside what it does, segments that are split, and names that are odd (part of family 40)."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import TYPE_CHECKING

from authoring.batches import CONTROL, TRANSACTIONAL, Batch, Rec
from authoring.casefile import must, should
from authoring.control import control_key, data, marker, marker_value
from authoring.primitives import flipped
from authoring.repairs import ALL, FIRST, KEEPS_INTERVAL, SECOND, Repairs, epochs, lone_control, segment, snapshot
from authoring.segments import SIZE, aborted, bytes_of, name_of, row

if TYPE_CHECKING:
    from authoring.casefile import Family

FAR = 2**31


def splits(family: Family) -> None:
    """Add the cases."""
    to = Repairs(family)
    _far_and_late(to)
    _split(to)
    _remarks(to)
    _one_offset(to)
    _names(to)


def bare(units: list[Batch], base: int = 0) -> dict[str, bytes]:
    """Return a log whose indexes are empty."""
    return {name_of(base): bytes_of(units), name_of(base, ".index"): b"", name_of(base, ".timeindex"): b""}


def _split(to: Repairs) -> None:
    rule = should("SEG-RCV-022", "SEG-LOG-009")
    why = "Recovery splits the segment before offsets that its index cannot contain."
    near, far = Batch(base=0), Batch(base=FAR, base_timestamp=2000)
    last = Batch(base=FAR + 5, base_timestamp=3000)
    widest = replace(far, recs=(Rec(), Rec(delta=FAR - 1)))
    for name, units, cut in (
        ("widest-entry", [near, widest], 1),
        ("ends-too-far", [near, replace(far, base=FAR - 1, recs=(Rec(), Rec()))], 1),
        ("second-of-three", [near, far, last], 1),
        ("third-of-three", [near, Batch(base=7), far], 2),
    ):
        parts = {**segment(units[:cut]), **segment(units[cut:], units[cut].base)}
        to.recover(f"split-{name}", why, rule, bare(units), {**parts, **epochs((0, 0))}, units[-1].next_offset)
    three = [near, far, replace(last, base=2 * FAR + 1)]
    parts = {**segment(three[:1]), **segment(three[1:2], FAR), **segment(three[2:], 2 * FAR + 1)}
    to.recover("split-in-three", why, rule, bare(three), {**parts, **epochs((0, 0))}, 2 * FAR + 2)
    first, second = Batch(base=50), replace(far, base=50 + FAR)
    above = {**segment([first], 50), **segment([second], 50 + FAR)}
    to.recover("split-base-50", why, rule, bare([first, second], 50), {**above, **epochs((0, 50))}, 51 + FAR)
    edge = replace(far, base=49 + FAR)
    kept = segment([first, edge], 50)
    fits = must("SEG-RCV-003", "SEG-LOG-009")
    to.recover("no-split-base-50", "The segment ends with the greatest offset that its index can contain: it is not split.", fits, bare([first, edge], 50), {**kept, **epochs((0, 50))}, 50 + FAR, plan={"remarks": []})  # fmt: skip
    backwards = replace(far, base=FAR + 5, last_delta=-1)
    for name, reason, requirement, files in (
        ("split-entry-that-ends-before-it-begins", "The entry at the split ends before it begins: brokers do not start.", "SEG-LOG-009", bare([near, backwards])),
        ("split-with-a-tail", "Bytes after the last entry: brokers fail to split the segment.", "SEG-LOG-005", {**bare([near, far]), name_of(0): bytes_of([near, far]) + bytes(5)}),
        ("split-and-a-smaller-offset-behind", "A smaller offset follows the offset at the split: brokers fail to split the segment.", "SEG-LOG-009", bare([near, far, Batch(base=9)])),
    ):  # fmt: skip
        to.stops(name, reason, should(requirement, "SEG-RCV-022"), files)


def _remarks(to: Repairs) -> None:
    """Add what a plan says of what it leaves alone, and where brokers do otherwise."""
    clean = should("SEG-RCV-024")
    for name, rest in (("zeros", bytes(30)), ("half", Batch(base=30).encoded()[:-1])):
        files = {**ALL, name_of(24): ALL[name_of(24)] + rest}
        cut = {"baseOffset": "24", "position": 2 * SIZE, "nextOffset": "30"}
        to.recover(
            f"clean-with-{name}-behind",
            "By the specification, a tail after the last whole batch is removed; the plan has no remark on it.",
            clean,
            files,
            {**ALL, **epochs((0, 24))},
            30,
            modes="t",
            cleanShutdown=True,
            plan={"scanned": [], "cuts": [cut], "dropped": [], "remarks": []},
        )
    far = [Batch(base=0), Batch(base=FAR, base_timestamp=2000)]
    parts = {**segment(far[:1]), **segment(far[1:], FAR)}
    position = len(far[0].encoded())
    to.recover(
        "split-is-remarked",
        "The plan has a remark on the offset that makes a broker split the segment.",
        should("SEG-LOG-009", "SEG-RCV-022"),
        bare(far),
        {**parts, **epochs((0, 0))},
        FAR + 1,
        modes="t",
        plan={"remarks": [{"at": position, "requirement": "SEG-LOG-009"}]},
    )
    for at in (0, 2):
        files = {**ALL, name_of(15): flipped(ALL[name_of(15)], at * SIZE + 70)}
        to.recover(
            f"nothing-to-remark-{at}",
            "A cut adds no remark to the plan; brokers cut the same.",
            must("SEG-RCV-003", "SEG-RCV-004"),
            files,
            {**segment(FIRST), **segment(SECOND[:at], 15), **epochs((0, 0))},
            15 + 3 * at,
            plan={"remarks": [], "differences": [], "dropped": ["24"], "scanned": ["0", "15"]},
        )
    snapshotless = [data(0, b"a"), marker("COMMIT", 1)]
    to.recover(
        "committed-and-nothing-listed",
        "A committed transaction is not listed in the index of aborted transactions.",
        must("SEG-RCV-025", "SEG-TXN-001"),
        segment(snapshotless),
        {**segment(snapshotless), **epochs((0, 0), (3, 1))},
        2,
        plan={"cuts": [], "remarks": [], "differences": []},
    )


def _one_offset(to: Repairs) -> None:
    """Add a segment of one offset, and the snapshot from where it begins."""
    rows, one, ended = segment([*FIRST[:1]]), segment([data(3, b"a")], 3), segment([marker("ABORT", 4)], 4)
    shot = {name_of(3, ".snapshot"): snapshot((8, -1))}
    to.recover(
        "snapshot-of-a-segment-of-one-offset",
        "The only batch of a segment opens a transaction, which is still open in the next segment.",
        must("SEG-RCV-025", "SEG-TXN-001"),
        {**rows, **one, **ended, **shot},
        {**rows, **one, **ended, **shot, name_of(4, ".txnindex"): aborted(9, 3, 4, 5), **epochs((3, 4))},
        5,
        recoveryPoint="4",
    )


def _names(to: Repairs) -> None:
    rule = must("SEG-PDR-005")
    good = {**segment(FIRST), **segment(SECOND, 15)}
    left = {**good, **epochs((0, 0))}
    for name, unusual in (("log", "15.log"), ("index", "15.index"), ("of-the-first", "0.log")):
        extra = {unusual: b"other bytes"}
        why = "A file with the right name exists: recovery leaves the one with too few digits unchanged."
        to.recover(f"name-twice-{name}", why, rule, {**good, **extra}, {**left, **extra}, 24, modes="t")
    stray = {"77.snapshot.deleted": b"x", "77.txnindex": b""}
    to.recover("name-of-an-orphan", "Recovery removes an index without a log, also if its name has too few digits.", should("SEG-RCV-026"), {**good, **stray}, left, 24, modes="t")  # fmt: skip


def _far_and_late(to: Repairs) -> None:
    rows = [*row(8), replace(row(9)[8], base=12, base_timestamp=9000)]
    to.recover(
        "order-late-time-behind-two-entries",
        "The largest timestamp has a smaller offset than the last time index entry: brokers empty the segment.",
        should("SEG-RCV-023"),
        {name_of(0): bytes_of(rows), name_of(0, ".index"): b""},
        segment([]),
        0,
        modes="b",
        indexIntervalBytes=3 * SIZE - 1,
    )
    begun = segment([data(0, b"a"), *row(1, base=1)])
    outside = segment([data(4, b"x", transactional=False, sequence=1)], 4)
    crossed = [
        data(0, b"a", producer_id=1),
        data(1, b"b", producer_id=2),
        *row(1, base=2),
        marker("ABORT", 5, producer_id=1),
        marker("ABORT", 3, producer_id=2),
    ]
    unusual = lone_control(2**31 + 1, control_key(5), marker_value(0))
    far = [Batch(base=0), Batch(base=2**31, base_timestamp=2000), unusual]
    for name, why, basis, files, named in (
        ("outside-of-a-transaction-of-the-segment-before", "A batch is not part of the transaction that its producer opened in an earlier segment: brokers do not start.",
         should("SEG-APP-023", "SEG-RCV-008"), {**begun, **outside}, {"recoveryPoint": "4"}),
        ("abort-before-the-last-one", "An abort marker has a smaller offset than the abort marker before it: brokers do not start.", should("SEG-TXN-004", "SEG-RCV-023"),
         {name_of(0): bytes_of(crossed), name_of(0, ".index"): b""}, {"indexIntervalBytes": 4096}),
        ("split-and-then-stopped", "A broker splits the segment first; then it finds a control record that it cannot start with.", should("SEG-CTL-003", "SEG-RCV-022"),
         {name_of(0): bytes_of(far), name_of(0, ".index"): b"", name_of(0, ".timeindex"): b""}, {}),
    ):  # fmt: skip
        to.stops(name, why, basis, files, **named)
    behind = Batch(
        base=4,
        stored=Rec(key=control_key(0), value=marker_value(0)).encoded() + b"\0",
        recs=(Rec(key=control_key(0), value=marker_value(0)),),
        producer_id=9,
        producer_epoch=2,
        attributes=CONTROL | TRANSACTIONAL,
    )
    good = [data(0, b"a"), *row(1, base=1)]
    to.recover(
        "marker-with-bytes-behind-cut-before",
        "By the specification, recovery removes an end marker with one more byte after its record.",
        must("SEG-RCV-008", "SEG-BAT-008"),
        segment([*good, behind, *row(1, base=5)]),
        {**segment(good), **epochs((0, 0))},
        4,
        modes="t",
    )
    last = {name_of(4, ".snapshot"): snapshot((8, -1))}
    opened, ended = segment([*row(1, base=0), *row(1, 1, base=3), data(4, b"a")]), segment([marker("ABORT", 5)], 5)
    to.recover(
        "snapshot-at-the-last-batch",
        "The last batch of the segment, after the snapshot, opens a transaction, which is then open.",
        must("SEG-RCV-025", "SEG-TXN-001"),
        {**opened, **ended, **last},
        {**opened, **ended, name_of(5, ".txnindex"): aborted(9, 4, 5, 6), **epochs((3, 5))},
        6,
        recoveryPoint="5",
    )
    long, tail = row(40), row(20, base=120)
    rows = b"".join(struct.pack(">ii", 3 * at + 2, at * SIZE) for at in (3, 4, 20))
    guessed = max(value for value in (1, 2, 4, 8, 16, 32, 64, 128, *range(10, 100, 10), 100) if value <= SIZE - 1)
    unusual_index = {**segment(long), name_of(0, ".index"): rows}
    to.recover(
        "interval-of-no-rule",
        "No interval explains the index: recovery uses the greatest round one that its closest entries allow.",
        should("SEG-RCV-025", needs=KEEPS_INTERVAL),
        {**unusual_index, **segment(tail, 120, interval=9_999_999)},
        {**unusual_index, **segment(tail, 120, interval=guessed), **epochs((0, 120))},
        180,
        indexIntervalBytes=None,
        recoveryPoint="120",
    )
    wide = [Batch(base=at, recs=(Rec(value=bytes(5000)),), base_timestamp=1000 + at) for at in range(12)]
    size = len(wide[0].encoded())
    rows = b"".join(struct.pack(">ii", at, at * size) for at in (3, 4, 9))
    wide_index = {**segment(wide), name_of(0, ".index"): rows}
    more = [Batch(base=at, recs=(Rec(value=bytes(1500)),), base_timestamp=1000 + at) for at in range(12, 24)]
    for name, why, basis, files, left, end, named in (
        ("interval-of-no-rule-and-wide", "No interval explains the index, whose entries are far apart: recovery uses the default of brokers.",
         should("SEG-RCV-025", needs=KEEPS_INTERVAL), {**wide_index, **segment(more, 12, interval=9_999_999)},
         {**wide_index, **segment(more, 12, interval=4096), **epochs((0, 12))}, 24, {"indexIntervalBytes": None, "recoveryPoint": "12"}),
        ("metadata-log", "Recovery scans the whole metadata log, also after a clean shutdown of the log directory.", must("SEG-RCV-002"), ALL, {**ALL, **epochs((0, 0))},
         30, {"plan": {"scanned": ["0", "15", "24"]}, "topic": "__cluster_metadata", "cleanShutdown": True}),
    ):  # fmt: skip
        to.recover(name, why, basis, files, left, end, **named)

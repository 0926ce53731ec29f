"""Cases for faults that an implementation written from the text alone had, and that no other case showed."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from authoring.appends import HOUR, NOW, ask_leader, sent
from authoring.batches import DELETE_HORIZON, LAST_OFFSET_DELTA, Batch, Rec, with_field
from authoring.casefile import Basis, Json, hexed, lay, must, should
from authoring.control import LEADER_CHANGE, data, kraft, marker
from authoring.encodings import add_encoding
from authoring.producers import States
from authoring.repairs import ALL, FIRST, SECOND, Files, Repairs, epochs, segment, snapshot
from authoring.segments import ROW, SIZE, aborted, bytes_of, name_of, row

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from authoring.casefile import Family

HIGHEST: Final = 2**63 - 1
PAST: Final = replace(ROW[1], base=HIGHEST - 2)
"""A batch that ends at the greatest offset, after which no other follows."""
BEFORE: Final = replace(ROW[0], base=HIGHEST - 5)
UNIQUE: Final = "0123456789abcdef0123456789abcdef"


def corners(families: Mapping[str, Family]) -> None:
    """Add the cases to their families.

    Args:
        families: all of them, by name.
    """
    _lookups(families["lookup"])
    _reads(families["transactions"])
    _repairs(Repairs(families["recovery"]))
    _names(families["files"])
    _appends(families["append-policy"])
    _retention(families["decisions"])
    _encodings(families["encoding"])
    families["delete-horizon"].valid(
        "base-of-minus-1",
        "The base timestamp is -1 and no delete horizon: the timestamps of the records are counted from it all the same.",
        must("SEG-BAT-012"),
        Batch(base=3, recs=(Rec(), Rec(time=1001)), base_timestamp=-1),
    )


def _encodings(family: Family) -> None:
    for name, why, basis, batches in (
        ("control-of-no-transaction", "A control batch of a quorum is not part of a transaction: its transactional bit is clear.", must("SEG-BAT-001", "SEG-CTL-006"),
         kraft("LEADER_CHANGE", LEADER_CHANGE)),
        ("horizon-of-0", "A delete horizon of 0 is one: bit 6 is set.", must("SEG-BAT-013"), Batch(base=3, recs=(Rec(time=1000), Rec(time=1001)), attributes=DELETE_HORIZON, base_timestamp=0)),
    ):  # fmt: skip
        add_encoding(family, name, why, basis, batches)


def _lookups(family: Family) -> None:
    def finds(name: str, why: str, basis: Basis, files: Files, found: Json | None, **asked: str) -> None:
        family.add(
            name, "lookup", "valid", why, basis, request={"files": hexed(files), **asked}, expect={"found": found}
        )

    special = ("specialTimestamps",)
    twice = Batch(base=3, recs=tuple(Rec(time=time) for time in (0, 5, 5, 1)), base_timestamp=2000)
    rows = ((7, 0, 3, 2), (8, 2, 5, 4), (7, 4, 9, 10))
    files = {name_of(0): bytes_of(ROW), name_of(0, ".txnindex"): b"".join(aborted(*one) for one in rows)}
    names = ("producerId", "firstOffset", "lastOffset", "lastStableOffset")
    listed = [{key: str(value) for key, value in zip(names, one, strict=True)} for one in rows]
    basis = must("SEG-TXN-007", needs=("abortedLookup",))
    for name, why, terms, given, found, named in (
        ("latest-of-an-empty-segment", "The last segment is empty and begins after a gap: its name is the log end offset.",
         must("SEG-LKP-015", "SEG-LKP-009", needs=special), {name_of(0): bytes_of(ROW), name_of(40): b""}, {"offset": "40"}, {"timestamp": "-1"}),
        ("usable-negative-first", "The first index entry has a negative offset: it ends the index, and the search begins at the start.",
         should("SEG-IDX-010", "SEG-IDX-008", flags=("INDEX_TRUST",), needs=("provesIndexes",)),
         {name_of(0): bytes_of(ROW), name_of(0, ".index"): struct.pack(">iiii", -3, SIZE, 5, SIZE)},
         {"entry": {"offset": "0", "position": 0}, "position": 4 * SIZE, "baseOffset": "12"}, {"offset": "14"}),
        ("largest-twice-in-a-batch", "Two records of a batch have the largest timestamp: the time -3 finds the first of them.",
         must("SEG-LKP-013", since="3.0", needs=special), {name_of(0): bytes_of([ROW[0], twice])}, {"offset": "4", "timestamp": "2005"}, {"timestamp": "-3"}),
        ("aborted-begins-at-the-end", "A transaction that begins where the range ends is not part of it.", basis,
         {**files, name_of(0, ".txnindex"): aborted(7, 0, 3, 1) + aborted(8, 2, 5, 4)}, {"aborted": [{**listed[0], "lastStableOffset": "1"}], "isComplete": True},
         {"fromOffset": "0", "toOffset": "2"}),
        ("aborted-all-before", "All aborted transactions end before the range; the last of them was the last one that was open.", basis, files,
         {"aborted": [], "isComplete": True}, {"fromOffset": "10", "toOffset": "10"}),
    ):  # fmt: skip
        finds(name, why, terms, given, found, **named)


def _reads(family: Family) -> None:
    def read(
        name: str, why: str, basis: Basis, files: Files, units: Sequence[Batch], offset: int, end: int, **more: str
    ) -> None:
        records = [record for answer in lay(units)[1] for record in answer["records"]]
        records = [record for record in records if offset <= int(record["offset"]) < end]
        request = {"files": hexed(files), "offset": str(offset), **more}
        expect = {"records": records, "nextOffset": str(end)}
        family.add(name, "read", "valid", why, basis, request=request, expect=expect)

    plain = Batch(recs=(Rec(value=b"plain"),))
    held = [plain, data(1, b"open"), replace(plain, base=2)]
    swapped = {
        name_of(0): bytes_of(FIRST),
        name_of(15): bytes_of(SECOND),
        name_of(24): bytes_of(row(2, base=24)),
        name_of(15, ".log.swap"): bytes_of(SECOND[1:]),
    }
    for name, why, rule, files, units, end, named in (
        ("plain-behind-an-open-transaction", "A record of no transaction follows an open one: read_committed holds it back.", "SEG-LKP-012", {name_of(0): bytes_of(held)},
         held, 1, {"isolation": "read_committed"}),
        ("read-below-a-swap-file", "A .swap file replaces only files from its base offset on: the segment before it stays.", "SEG-PDR-010", swapped, FIRST, 15, {}),
    ):  # fmt: skip
        read(name, why, must(rule), files, units, 0, end, **named)
    past = {name_of(BEFORE.base): bytes_of([BEFORE, PAST])}
    family.add(
        "read-past-the-greatest-offset",
        "read",
        "invalid",
        "An entry ends at 2^63 - 1, and no offset follows: a read that begins at it reports an error.",
        must("SEG-LOG-013", "SEG-LKP-014", needs=("verifiedRead",)),
        request={"files": hexed(past), "offset": str(PAST.base)},
        expect={"reject": {"class": "offset"}, "records": []},
    )


def _repairs(to: Repairs) -> None:
    """Ask all who recover by the text what otherwise only those are asked who report a plan."""
    cut = must("SEG-RCV-032", "SEG-LOG-006")
    for name, base, delta in (("back", 2, 2), ("equal", 6, 2)):
        units = [*FIRST[:3], replace(FIRST[3], base=base, last_delta=delta), FIRST[4]]
        to.recover(
            f"order-{name}-cut",
            "By the specification, recovery cuts a segment before the first entry that ends no higher than the one before.",
            cut,
            {name_of(0): bytes_of(units), name_of(0, ".index"): b""},
            {**segment(FIRST[:3]), **epochs((0, 0))},
            9,
            modes="t",
        )
    short = with_field(FIRST[2].encoded(), LAST_OFFSET_DELTA, -1)
    for name, why, basis, files, left, end in (
        ("order-past-the-greatest-cut", "By the specification, recovery cuts a segment before an entry that ends at 2^63 - 1.", must("SEG-RCV-032", "SEG-LOG-013"),
         segment([BEFORE, PAST], BEFORE.base), {**segment([BEFORE], BEFORE.base), **epochs((0, BEFORE.base))}, PAST.base),
        ("order-negative-delta-cut", "By the specification, recovery removes a batch that ends before it begins.", cut,
         {name_of(0): bytes_of(FIRST[:2]) + short, name_of(0, ".index"): b""}, {**segment(FIRST[:2]), **epochs((0, 0))}, 6),
    ):  # fmt: skip
        to.recover(name, why, basis, files, left, end, modes="t")
    log = bytearray(bytes_of(FIRST))
    log[SIZE + 16] = 3
    kept = {**segment(FIRST), name_of(0): bytes(log)}
    ended = [data(15, b"a"), marker("ABORT", 16)]
    right = {**segment(FIRST), **segment(ended, 15)}
    index = name_of(15, ".txnindex")
    alone = {**segment([data(0, b"a"), marker("COMMIT", 1)]), **epochs((0, 0), (3, 1))}
    for name, why, basis, files, left, end, named in (
        ("magic-3-stays", "An entry of a magic that this text does not know has a right size and checksum: recovery keeps it.", must("SEG-RCV-038"), kept, {**kept, **epochs((0, 0))}, 15, {}),
        ("transactions-of-another-segment-after-a-clean-shutdown", "A transaction index names an end below its segment: it is built again, also after a clean shutdown.",
         must("SEG-RCV-034"), {**right, index: aborted(9, 3, 5, 6), name_of(17, ".snapshot"): snapshot((9, -1), last_offset=15, time=1234)},
         {**right, index: aborted(9, 15, 16, 17), name_of(17, ".snapshot"): snapshot((9, -1), last_offset=15, time=1234), **epochs((0, 15), (3, 16))}, 17,
         {"cleanShutdown": True}),
        ("clean-tail-cut", "By the specification, a tail after the last whole batch is removed, also after a clean shutdown.", should("SEG-RCV-024"),
         {**ALL, name_of(24): ALL[name_of(24)] + bytes(5), **epochs((0, 0))}, {**ALL, **epochs((0, 0))}, 30, {"cleanShutdown": True}),
        ("clean-without-a-snapshot", "After a clean shutdown, a log with batches of producers and without a snapshot gets one at its end.", should("SEG-PSN-010"), alone,
         {**alone, name_of(2, ".snapshot"): snapshot((9, -1), time=1234)}, 2, {"cleanShutdown": True}),
    ):  # fmt: skip
        to.recover(name, why, basis, files, left, end, modes="t", **named)


def _names(family: Family) -> None:
    marked = must("SEG-PDR-003", since="")
    for name, text, why in (
        ("empty-unique", "my-topic-3.-delete", "The unique part of a marked directory is empty."),
        ("white-space", f"my topic-3.{UNIQUE}-delete", "The name of a marked directory contains a space."),
    ):
        family.add(
            f"name-directory-{name}",
            "parse",
            "invalid",
            why,
            marked,
            request={"kind": "name", "name": text},
            expect={"reject": {"class": "name"}},
        )
    rows = struct.pack(">iiiiii", 3, 119, 0, 0, 5, 238)
    family.add(
        "index-zeros-between",
        "parse",
        "valid",
        "Only zeros at the end of an index are preallocated: a slot of zeros between others is shown.",
        must("SEG-IDX-011"),
        request={"kind": "index", "name": name_of(100, ".index"), "data": rows.hex()},
        expect={
            "object": {
                "fileBytes": len(rows),
                "entryCount": 3,
                "trailingZeroEntries": 0,
                "entries": [["103", 119], ["100", 0], ["105", 238]],
            }
        },
    )


def _appends(family: Family) -> None:
    good = sent()
    ask_leader(
        family,
        "followed-by-a-cut-batch",
        "valid",
        "A whole batch and the first bytes of another: a leader takes the first.",
        must("SEG-APP-005", flags=("APPEND_POLICY",)),
        good.encoded() + good.encoded()[:50],
    )
    clock = must("SEG-APP-024", since="4.0", flags=("CLOCKS",))
    for name, result, late in (("at-the-default", "valid", HOUR), ("past-the-default", "invalid", HOUR + 1)):
        why = "Without a setting, a timestamp may be one hour after the clock of the leader, and no more."
        ask_leader(family, f"after-{name}", result, why, clock, replace(good, base_timestamp=NOW + late).encoded())
    seen = [replace(data(0, b"t"), recs=(Rec(key=b"one", value=b"t"),))]
    why = "A coordinator writes sequence 0 each time: the second batch is no duplicate of the first."
    States(family).takes("coordinator-again", why, "SEG-APP-007", seen, data(0, b"u"), origin="coordinator")


def _retention(family: Family) -> None:
    """Ask for the example of SEG-RET-001: each rule counts from where the one before has stopped."""
    listing = [
        {
            "baseOffset": str(base),
            "nextOffset": str(base + 10),
            "size": "100",
            "largestTimestamp": str(time),
            "modified": "0",
        }
        for base, time in ((0, 1000), (10, 1000), (20, 1000), (30, 3_601_000))
    ]
    for name, limit, gone in (("three-rules", "60000", 3), ("start-then-size", "-1", 2)):
        family.add(
            f"retain-{name}",
            "decide",
            "valid",
            "By size, only the segments count that the log start offset leaves.",
            must("SEG-RET-001", flags=("RETENTION_RULES",)),
            request={
                "what": "retain",
                "listing": listing,
                "config": {"retention.ms": limit, "retention.bytes": "200"},
                "now": "3601000",
                "logStartOffset": "10",
                "highWatermark": "40",
            },
            expect={
                "decision": "delete",
                "segments": ["0", "10", "20"][:gone],
                "logStartOffset": str(gone * 10),
                "rollsFirst": False,
            },
        )

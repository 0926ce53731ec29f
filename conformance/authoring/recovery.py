"""Family 40: what recovery and truncation leave."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import TYPE_CHECKING

from authoring.batches import COUNT, CRC, LAST_OFFSET_DELTA, LENGTH, MAGIC, Batch, Rec, with_field
from authoring.casefile import Basis, Family, Json, hexed, must, should
from authoring.control import data, empty, marker
from authoring.messages import Msg
from authoring.own_files import own_recoveries
from authoring.primitives import flipped, replaced
from authoring.repairs import repairs
from authoring.segments import ROW, SIZE, aborted, bytes_of, name_of, offset_index, row, time_index
from authoring.splits import splits

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from authoring.casefile import Unit


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
        "UNREADABLE_MARKER": {
            "effect": "Brokers keep an end marker that they cannot read, cut what follows it, and do not start. Cutting before it lets them start.",
            "links": [],
        },
    }
    family = Family(40, "recovery", "Recovery and truncation", "facts 5.5, 5.6 and 7", flags=flags)
    whole = bytes_of(ROW)
    many = must("SEG-RCV-003", flags=("CUT_TOO_LITTLE",))

    def recover(
        name: str,
        why: str,
        basis: Basis,
        files: dict[str, bytes],
        left: dict[str, bytes | None],
        end: int,
        *,
        removed: int | None = None,
        **options: str | bool,
    ) -> None:
        request = {"files": hexed(files), "options": {"indexIntervalBytes": 100, **options}}
        expect: Json = {
            "nextOffset": str(end),
            "files": {key: None if content is None else content.hex() for key, content in left.items()},
        }
        if removed is not None:
            expect["truncatedBytes"] = removed
        family.add(name, "recover", "valid", why, basis, request=request, expect=expect)

    def cut(name: str, why: str, log: bytes, kept: int, *, basis: Basis = many, units: Sequence[Unit] = ROW) -> None:
        """One segment of which some entries are kept."""
        good = list(units[:kept])
        left = {
            name_of(0): bytes_of(good),
            name_of(0, ".index"): offset_index(good, 100),
            name_of(0, ".timeindex"): time_index(good, 100),
        }
        end, removed = good[-1].next_offset if good else 0, len(log) - len(bytes_of(good))
        recover(name, why, basis, {name_of(0): log}, left, end, removed=removed)
        by_text = replace(basis, needs=(*basis.needs, "recovery:by-the-text"))
        recover(f"{name}-by-the-text", why, by_text, {name_of(0): log}, left, end, removed=removed, likeBroker=False)

    keep = must("SEG-RCV-003", "SEG-RCV-025", flags=("CUT_TOO_MUCH",))
    cut("whole", "Nothing is damaged: recovery removes nothing and rebuilds the indexes.", whole, 5, basis=keep)
    for at in range(5):
        for name, why, log in (
            (f"flipped-batch-{at}", "One bit of a batch was changed: recovery cuts the log before that batch.", flipped(whole, at * SIZE + 70, 2)),
            (f"crc-batch-{at}", "A batch has a wrong checksum: recovery cuts the log before it.", replaced(whole, at * SIZE + CRC[0], "I", 7)),
            (f"length-0-batch-{at}", "A length is 0, with data after it: recovery cuts the log there.", replaced(whole, at * SIZE + LENGTH[0], "i", 0)),
            (f"length-negative-batch-{at}", "A length is negative: recovery cuts the log there.", replaced(whole, at * SIZE + LENGTH[0], "i", -1)),
            (f"magic-negative-batch-{at}", "A magic is negative: recovery cuts the log there.", replaced(whole, at * SIZE + MAGIC[0], "b", -1)),
        ):  # fmt: skip
            cut(name, why, log, at)
    for at in (1, 3):
        for number in (14, 48, SIZE - 13, SIZE - 11):
            why = "A length is wrong: recovery cuts the log there."
            cut(f"length-{number}-batch-{at}", why, replaced(whole, at * SIZE + LENGTH[0], "i", number), at)
        why = "A length reaches past the end of the file: recovery removes the rest of the file, which may contain whole batches."
        cut(f"length-past-the-end-batch-{at}", why, replaced(whole, at * SIZE + LENGTH[0], "i", 10**6), at)
    for count in (1, 7, 8, 11, 12, 16, 17, 18, 40, 61, SIZE - 1):
        why = "The last batch is cut short: recovery removes it."
        cut(f"tail-of-{count}", why, whole + row(1, base=15)[0].encoded()[:count], 5)
    for count in (1, 12, 17, 18, 100, 5000):
        cut(f"zeros-{count}", "Zeros of preallocation are at the end: recovery removes them.", whole + bytes(count), 5)
    for count in (3, 17, 18, 60):
        cut(f"garbage-{count}", "Garbage is at the end: recovery removes it.", whole + b"\xa5" * count, 5)
    cut("nothing", "Recovery keeps an empty segment.", b"", 0, basis=keep)
    cut("only-zeros", "A preallocated file that was never written to.", bytes(4096), 0)
    _kept_by_recovery(cut)
    _recovered_directories(recover)
    _order(family)
    _truncations(family)
    repairs(family)
    splits(family)
    own_recoveries(family)
    return family


def _kept_by_recovery(cut: Callable[..., None]) -> None:
    """Add what recovery must not cut, whatever a reader will say to it."""
    stays = must("SEG-RCV-005", flags=("CUT_TOO_MUCH",))
    unusual: dict[str, tuple[str, Batch]] = {
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
            "Attribute bits without a meaning.",
            Batch(base=6, attributes=0x180, recs=(Rec(), Rec(), Rec()), base_timestamp=1020),
        ),
        "empty-batch": ("An empty batch.", empty(6, 2)),
        "gap": ("Offsets are missing before a batch.", Batch(base=7, recs=(Rec(), Rec()), base_timestamp=1020)),
    }
    for name, (why, batch) in unusual.items():
        log = [*ROW[:2], batch, *ROW[3:]]
        reason = (
            f"{why} The checksum is right, so recovery keeps the batch: a broker and the other replicas do the same."
        )
        cut(f"keeps-{name}", reason, bytes_of(log), 5, basis=stays, units=log)
    counted = with_field(ROW[2].encoded(), COUNT, 99)
    units = [*ROW[:2], Batch(**{**vars(ROW[2]), "count": 99}), *ROW[3:]]
    assert units[2].encoded() == counted
    why = "A batch with a wrong records count and a right checksum stays."
    cut("keeps-wrong-count", why, bytes_of(units), 5, basis=stays, units=units)
    for magic in (0, 1):
        old = [Msg(magic=magic, offset=at, timestamp=1000 + at, value=bytes(40)) for at in range(5)]
        basis = must("SEG-RCV-003", "SEG-MSG-004", needs=(f"magic:{magic}",), since="0.8" if magic == 0 else "0.10")
        size = len(old[0].encoded())
        for name, why, its_log, kept in (
            (f"magic-{magic}-whole", "Recovery keeps undamaged messages of magic 0 and 1.", bytes_of(old), 5),
            (f"magic-{magic}-flipped", "One bit of a message was changed: recovery cuts the log before it.", flipped(bytes_of(old), 3 * size + 40, 1), 3),
        ):  # fmt: skip
            cut(name, why, its_log, kept, basis=basis, units=old)
    committed = [data(0, b"a"), marker("COMMIT", 1), data(2, b"b", sequence=1)]
    epochs = [replace(one, leader_epoch=at) for at, one in enumerate(ROW)]
    for name, why, its_log, kept, terms, batches in (
        ("transactions", "Recovery reads end markers and keeps them.", bytes_of(committed), 3, must("SEG-RCV-008", flags=("CUT_TOO_MUCH",)), committed),
        ("leader-epochs", "The leader epoch is outside the checksum and may grow.", bytes_of(epochs), 5, must("SEG-RCV-003", "SEG-BAT-010"), epochs),
    ):  # fmt: skip
        cut(name, why, its_log, kept, basis=terms, units=batches)


def _recovered_directories(recover: Callable[..., None]) -> None:
    """More than one file."""
    first, second, third = ROW, row(3, base=15), row(2, base=24)
    files = {name_of(0): bytes_of(first), name_of(15): bytes_of(second), name_of(24): bytes_of(third)}
    drop = must("SEG-RCV-004", flags=("CUT_TOO_LITTLE",))
    indexes = {name_of(base, ".index"): b"" for base in (0, 15, 24)}
    bare, files = files, {**files, **indexes}
    logs = dict(bare)
    below = {**bare, name_of(0): flipped(files[name_of(0)], 70)}
    named = {
        name_of(base, kind): make(units, 100, base)
        for base, units in ((0, first), (15, second), (24, third))
        for kind, make in ((".index", offset_index), (".timeindex", time_index))
    }
    trusted = must("SEG-RCV-002", "SEG-CKP-011", flags=("CUT_TOO_MUCH",))
    clean = must("SEG-RCV-001", "SEG-LDR-003", flags=("CUT_TOO_MUCH",))
    for name, why, basis, given, left, end, options in (
        ("segments-whole", "Three segments without damage.", must("SEG-RCV-002", "SEG-RCV-025"), files, dict(logs), 30, {"removed": 0}),
        ("damage-in-the-first", "Recovery cuts a segment and drops all segments after it.", drop, {**files, name_of(0): flipped(files[name_of(0)], 2 * SIZE + 70)},
         {name_of(0): bytes_of(first[:2]), name_of(15): None, name_of(24): None}, 6, {}),
        ("damage-in-the-second", "The second segment is damaged: recovery keeps the first and drops the third.", drop,
         {**files, name_of(15): flipped(files[name_of(15)], 70)}, {name_of(0): files[name_of(0)], name_of(15): b"", name_of(24): None}, 15, {}),
        ("tail-in-the-second", "A segment that ends with part of a batch is also cut, and the segments after it are dropped.", drop,
         {**files, name_of(15): files[name_of(15)] + b"\0\0\0"}, {name_of(15): files[name_of(15)], name_of(24): None}, 24, {}),
        ("clean-damage-without-index", "After a clean shutdown, recovery cuts a segment without an index, but keeps the segments after it.",
         must("SEG-RCV-004", "SEG-RCV-006", flags=("CUT_TOO_MUCH",)), below, {name_of(0): b"", name_of(15): files[name_of(15)], name_of(24): files[name_of(24)]}, 30,
         {"cleanShutdown": True}),
        ("below-the-recovery-point", "The damage is below the recovery point: recovery does not scan there and removes nothing.", trusted, {**below, **named}, below, 30,
         {"removed": 0, "recoveryPoint": "15"}),
        ("recovery-point-inside", "The segment that holds the recovery point is scanned from its start.", must("SEG-RCV-002", flags=("CUT_TOO_LITTLE",)),
         {**below, **named}, {name_of(0): b"", name_of(15): None, name_of(24): None}, 0, {"recoveryPoint": "14"}),
        ("clean-shutdown", "After a clean shutdown, recovery scans nothing.", clean, {**below, **named}, below, 30, {"removed": 0, "cleanShutdown": True}),
        ("clean-without-index", "Recovery scans a segment without an index, also after a clean shutdown.", must("SEG-RCV-006"), bare,
         {name_of(0, ".index"): offset_index(first, 100)}, 30, {"cleanShutdown": True}),
    ):  # fmt: skip
        recover(name, why, basis, given, left, end, **options)
    rebuilt = must("SEG-RCV-025", flags=("CUT_TOO_LITTLE",))
    for name, content in (
        ("garbage", b"\xa5" * 40),
        ("odd-size", b"\0" * 13),
        ("stale", offset_index(first[:3], 0)),
        ("preallocated", bytes(1024)),
        ("empty", b""),
    ):
        for case, why, given, left in (
            (f"index-{name}", "Recovery rebuilds the offset index of a scanned segment, whatever it contained.",
             {name_of(0): bytes_of(first), name_of(0, ".index"): content}, {name_of(0, ".index"): offset_index(first, 100)}),
            (f"time-index-{name}", "Recovery rebuilds the time index of a scanned segment, whatever it contained.",
             {name_of(0): bytes_of(first), name_of(0, ".timeindex"): content}, {name_of(0, ".timeindex"): time_index(first, 100)}),
        ):  # fmt: skip
            recover(case, why, rebuilt, given, left, 15)
    orphan = should("SEG-RCV-026")
    swap = must("SEG-RCV-021", "SEG-PDR-010", since="3.0")
    compacted = [replace(ROW[0], recs=ROW[0].recs[:1], last_delta=2), *ROW[1:]]
    merged = [*first[:1], *second[-1:]]
    for name, why, basis, given, left in (
        ("orphan-index", "An index without a log is removed.", orphan, {**files, name_of(99, ".index"): bytes(16), name_of(99, ".timeindex"): bytes(12)},
         {name_of(99, ".index"): None, name_of(99, ".timeindex"): None, name_of(0): files[name_of(0)]}),
        ("cleaned-files", "Recovery removes the `.cleaned` files of an unfinished compaction.", should("SEG-RCV-020"), {**files, name_of(0) + ".cleaned": b"half"},
         {name_of(0) + ".cleaned": None, name_of(0): files[name_of(0)]}),
        ("swap-files", "The `.swap` files are a complete replacement: recovery finishes it.", swap, {**files, name_of(0) + ".swap": bytes_of(compacted)},
         {name_of(0): bytes_of(compacted), name_of(0) + ".swap": None, name_of(15): files[name_of(15)]}),
        ("swap-and-cleaned", "A `.cleaned` file shows that the replacement was not complete: recovery keeps the old files.", swap,
         {**files, name_of(15) + ".swap": bytes_of(second[:1]), name_of(0) + ".cleaned": b"half"},
         {name_of(0): files[name_of(0)], name_of(15): files[name_of(15)], name_of(15) + ".swap": None}),
        ("swap-over-two", "One `.swap` file replaces two segments.", swap, {**files, name_of(0) + ".swap": bytes_of(merged)},
         {name_of(0): bytes_of(merged), name_of(15): None, name_of(24): files[name_of(24)]}),
    ):  # fmt: skip
        recover(name, why, basis, given, left, 30)
    gone = must("SEG-RCV-007")
    recover(
        "ends-below-the-log-start",
        "The log ends below its log start offset: an empty segment begins at that offset.",
        gone,
        files,
        {name_of(0): None, name_of(15): None, name_of(24): None, name_of(500): b""},
        500,
        logStartOffset="500",
    )
    snapshot = bytes.fromhex("000148674bc700000000")
    beyond = must("SEG-RCV-027")
    newer = [replace(one, leader_epoch=4) for one in row(2, base=24)]
    left_alone = must("SEG-PDR-011")
    for name, why, basis, given, left, end in (
        ("no-segment", "A log without a segment gets an empty one.", should("SEG-RCV-030"), {"partition.metadata": b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"}, {name_of(0): b""}, 0),
        ("snapshot-above-the-end", "A producer snapshot above the end of the log is removed.", beyond, {**files, name_of(500, ".snapshot"): snapshot}, {name_of(500, ".snapshot"): None}, 30),
        ("snapshot-damaged", "Recovery removes a producer snapshot that cannot be read.", must("SEG-RCV-027", "SEG-PSN-005"),
         {**files, name_of(24, ".snapshot"): snapshot[:-1] + b"\1"}, {name_of(0): files[name_of(0)]}, 30),
        ("epochs-above-the-end", "Recovery removes leader epochs that begin at the log end offset or above.", must("SEG-RCV-028"),
         {**files, "leader-epoch-checkpoint": b"0\n3\n0 0\n1 30\n2 40\n"}, {"leader-epoch-checkpoint": b"0\n1\n0 0\n"}, 30),
        ("epochs-missing", "Recovery adds the leader epochs of scanned batches.", must("SEG-RCV-036"),
         {**files, name_of(24): bytes_of(newer), "leader-epoch-checkpoint": b"0\n1\n0 0\n"}, {"leader-epoch-checkpoint": b"0\n2\n0 0\n4 24\n"}, 30),
        ("other-files", "Files with other names are left alone.", left_alone, {**files, "notes.txt": b"mine", "00000000000000000000.bak": b"old"},
         {"notes.txt": b"mine", "00000000000000000000.bak": b"old", name_of(0): files[name_of(0)]}, 30),
    ):  # fmt: skip
        recover(name, why, basis, given, left, end)


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
        basis = should("SEG-RCV-023", flags=("ORDER_REPAIR",))
        request = {
            "files": {name_of(0): log.hex(), name_of(0, ".index"): ""},
            "options": {"indexIntervalBytes": interval},
        }
        family.add(
            f"offset-back-{name}",
            "recover",
            "acceptable",
            "Offsets go back: the base offset of the fourth batch is inside the first.",
            basis,
            request=request,
            expect={"allowed": [cut, *others]},
        )
    family.add(
        "negative-last-delta",
        "recover",
        "acceptable",
        "The last offset delta of a batch is negative: the batch ends before it begins.",
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
        basis: Basis,
        offset: int,
        end: int,
        left: dict[str, bytes | None],
        *,
        given: dict[str, bytes] | None = None,
    ) -> None:
        request = {"files": hexed(given or files), "offset": str(offset)}
        expect = {
            "nextOffset": str(end),
            "files": {key: None if content is None else content.hex() for key, content in left.items()},
        }
        family.add(f"truncate-{name}", "truncate", "valid", why, basis, request=request, expect=expect)

    basis = must("SEG-TRN-001")
    nothing = must("SEG-TRN-002")
    everything = {key: content for key, content in files.items() if key.endswith(".log")}
    for name, why, terms, offset, end, left in (
        ("between-batches", "Truncation removes whole batches from the offset on.", basis, 9, 9, {name_of(0): bytes_of(first[:3]), name_of(15): None}),
        ("inside-a-batch", "Truncation inside a batch removes the whole batch; the log end offset is still the requested one.", basis, 10, 10, {name_of(0): bytes_of(first[:3]), name_of(15): None}),
        ("last-offset-of-a-batch", "The last record of a batch is at the offset: truncation removes the batch.", basis, 11, 11, {name_of(0): bytes_of(first[:3])}),
        ("in-the-second-segment", "Truncation in the second segment keeps the first one.", basis, 18, 18, {name_of(0): bytes_of(first), name_of(15): bytes_of(second[:1])}),
        ("at-a-segment", "Truncation to the base offset of the second segment keeps that segment, empty.", basis, 15, 15, {name_of(0): bytes_of(first), name_of(15): b""}),
        ("last-of-the-first", "Truncation to the offset before a base offset removes that segment.", basis, 14, 14, {name_of(0): bytes_of(first[:4]), name_of(15): None}),
        ("at-the-end", "Truncation to the log end offset changes nothing.", nothing, 24, 24, everything),
    ):  # fmt: skip
        truncate(name, why, terms, offset, end, left)
    moved = {name_of(100): bytes_of(row(3, base=100))}
    why = "Truncation below the first segment removes everything and creates an empty segment there."
    truncate("below-the-first", why, nothing, 50, 50, {name_of(100): None, name_of(50): b""}, given=moved)
    truncate("to-0", "Truncation to offset 0 removes all records.", basis, 0, 0, {name_of(0): b"", name_of(15): None})
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
            "Truncation removes the entries of both indexes from the offset on.",
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
        "Truncation removes aborted transactions that ended at the offset or later.",
        must("SEG-TRN-006"),
        3,
        3,
        {name_of(0, ".txnindex"): aborted(1, 0, 1, 2)},
        given=given,
    )
    side = must("SEG-TRN-004", "SEG-TRN-007")
    snapshot = bytes.fromhex("000148674bc700000000")
    given = {
        **files,
        name_of(15, ".snapshot"): snapshot,
        name_of(24, ".snapshot"): snapshot,
        "leader-epoch-checkpoint": b"0\n3\n0 0\n1 9\n2 16\n",
    }
    truncate(
        "snapshots-and-epochs",
        "Truncation removes snapshots above the offset, and leader epochs that begin at the offset or above.",
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


def families() -> list[Family]:
    """All of this module."""
    return [recoveries()]

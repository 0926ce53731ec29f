"""Family 19: transactions as bytes, and what fetches deliver of a log."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from authoring.batches import LAST_OFFSET_DELTA, Batch
from authoring.casefile import Basis, Family, Json, hexed, lay, may, must, should
from authoring.control import data, empty, marker, transactions
from authoring.primitives import flipped, replaced
from authoring.segments import ROW, SIZE, aborted, bytes_of, name_of, row
from authoring.trusting import add_trusting
from authoring.whole import whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from authoring.casefile import Unit


def reads(family: Family) -> None:
    """Add the reading half of family 19: fetches, and what read_committed leaves out."""

    def fetch(
        name: str,
        why: str,
        basis: Basis,
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
        request = {"files": hexed(files), "offset": str(offset), **more}
        family.add(
            name, "read", "valid", why, basis, request=request, expect={"records": wanted, "nextOffset": str(end)}
        )

    batch = must("SEG-LKP-003", "SEG-LKP-002")
    for offset in (0, 1, 5, 14):
        why = "A fetch starts inside a batch: records below the fetch offset are dropped, later ones of the batch are delivered."
        fetch(f"read-from-{offset}", why, batch, ROW, offset, range(offset, 15), 15)
    why = "A fetch at the log end offset returns no record and no error."
    fetch("read-at-the-end", why, must("SEG-LKP-005"), ROW, 15, (), 15)
    for offset in (16, 1000):
        family.add(
            f"read-beyond-{offset}",
            "read",
            "invalid",
            "An offset above the log end offset is out of range.",
            must("SEG-LKP-004"),
            request={"files": {name_of(0): bytes_of(ROW).hex()}, "offset": str(offset)},
            expect={"reject": {"class": "offset"}},
        )
    family.add(
        "read-below",
        "read",
        "invalid",
        "An offset below the first segment is out of range.",
        must("SEG-LKP-004"),
        request={"files": {name_of(100): bytes_of(row(2, base=100)).hex()}, "offset": "99"},
        expect={"reject": {"class": "offset"}},
    )
    sized = must("SEG-LKP-006")
    for limit, end in ((2 * SIZE, 6), (2 * SIZE + SIZE - 1, 6), (SIZE, 3), (3 * SIZE, 9)):
        why = "A fetch returns only whole entries within its size limit."
        fetch(f"read-{limit}-bytes", why, sized, ROW, 0, range(end), end, maxBytes=limit)
    why = "A fetch returns the first entry also if it is larger than the size limit."
    fetch("read-1-byte", why, sized, ROW, 4, (4, 5), 6, maxBytes=1)
    two = {name_of(0): bytes_of(ROW), name_of(15): bytes_of(row(3, base=15))}
    holes = [replace(one, base=one.base * 10, last_delta=7) for one in ROW]
    control = [data(0, b"a"), marker("COMMIT", 1), data(2, b"b", sequence=1)]
    for name, why, basis, units, offset, offsets, end in (
        ("read-ends-with-the-segment", "One fetch does not continue into the next segment.", must("SEG-LKP-007"), two, 9, range(9, 15), 15),
        ("read-next-segment", "The next fetch begins in the next segment.", must("SEG-LKP-007"), two, 15, range(15, 24), 24),
        ("read-in-a-gap", "The first record may be above the fetch offset; the next offset is the one after the last batch.", must("SEG-LKP-002", "SEG-LKP-007"), holes,
         15, [offset for one in holes[1:] for offset in range(one.base, one.base + 3)], 128),
        ("read-empty-batch", "An empty batch has no records, but the next offset is the one after it.", must("SEG-BAT-018", "SEG-LKP-007"), [empty(0, 9)], 0, (), 10),
        ("read-control", "Control records are never delivered.", must("SEG-CTL-009"), control, 0, (0, 2), 3),
    ):  # fmt: skip
        fetch(name, why, basis, units, offset, offsets, end)
    _damaged_reads(family)
    _directory_reads(family)
    _committed_reads(family, fetch)


def _committed_reads(family: Family, fetch: Callable[..., None]) -> None:
    committed = {"isolation": "read_committed"}
    done = must("SEG-LKP-011")
    stable = must("SEG-LKP-012")
    for name, why, units, offsets, end in (
        ("committed", "A read_committed reader gets the records of a committed transaction.", [data(0, b"a"), marker("COMMIT", 1)], (0,), 2),
        ("aborted", "A read_committed reader does not get the records of an aborted transaction.", [data(0, b"a"), marker("ABORT", 1), data(2, b"b", sequence=1), marker("COMMIT", 3)], (2,), 4),
    ):  # fmt: skip
        fetch(name, why, done, units, 0, offsets, end, **committed)
    why = "A read_uncommitted reader gets the records of an aborted transaction."
    fetch("aborted-uncommitted-read", why, must("SEG-CTL-009"), [data(0, b"a"), marker("ABORT", 1)], 0, (0,), 2)
    two_open = [
        data(0, b"a", producer_id=1),
        data(1, b"b", producer_id=2),
        marker("ABORT", 2, producer_id=1),
        data(3, b"c", producer_id=2, sequence=1),
        marker("COMMIT", 4, producer_id=2),
    ]
    both_open = [Batch(base=0), data(1, b"a", producer_id=1), data(2, b"b", producer_id=2), Batch(base=3)]
    other_end = [*both_open[:3], marker("COMMIT", 3, producer_id=2), data(4, b"c", producer_id=2, sequence=1)]
    again = [
        data(0, b"a"),
        marker("ABORT", 1),
        data(2, b"b", sequence=1),
        marker("COMMIT", 3),
        data(4, b"c", sequence=2),
        marker("ABORT", 5),
    ]
    plain = [
        data(0, b"a", producer_id=1),
        data(1, b"p", producer_id=5, transactional=False),
        Batch(base=2),
        marker("ABORT", 3, producer_id=1),
    ]
    fenced = [
        data(0, b"a"),
        marker("ABORT", 1, producer_epoch=3),
        replace(data(2, b"b"), producer_epoch=4),
        marker("COMMIT", 3, producer_epoch=4),
    ]
    for name, why, basis, units, offset, offsets, end in (
        ("open", "A read_committed reader does not get the records of an open transaction yet.", stable, [data(0, b"a", transactional=False), data(1, b"b", sequence=1)], 0, (0,), 1),
        ("open-hides-later", "A read_committed reader gets nothing after the start of the first open transaction, not even finished transactions.", stable,
         [data(0, b"a", producer_id=1), data(1, b"b", producer_id=2), marker("COMMIT", 2, producer_id=2), data(3, b"c", producer_id=3, transactional=False)], 0, (), 0),
        ("two-open", "Two transactions are open: read_committed ends where the first of them began.", stable, both_open, 0, (0,), 1),
        ("first-still-open", "The second transaction has ended, the first is still open: read_committed ends where the first began.", stable, other_end, 0, (0,), 1),
        ("interleaved", "Two transactions are interleaved: each ends with the marker of its own producer.", done, two_open, 0, (1, 3), 5),
        ("abort-commit-abort", "One producer has three transactions: each marker ends one of them.", done, again, 0, (2,), 6),
        ("from-inside", "The fetch begins inside an aborted transaction.", done,
         [data(0, b"a"), data(1, b"b", sequence=1), marker("ABORT", 2), data(3, b"c", transactional=False, sequence=2)], 1, (3,), 4),
        ("plain-between", "Records without a transaction are between those of an aborted one, and are delivered.", done, plain, 0, (1, 2), 4),
        ("fenced", "The marker carries a higher epoch than the data that it ends.", must("SEG-LKP-016"), fenced, 0, (2,), 4),
        ("marker-without-data", "An end marker of a producer without records in this log.", done, [marker("ABORT", 0), data(1, b"b"), marker("COMMIT", 2)], 0, (1,), 3),
        ("empty-control-batch", "A control batch without a record ends nothing.", must("SEG-CTL-007", "SEG-LKP-012"),
         [data(0, b"a"), empty(1, 0, attributes=0x30, producer_id=9, producer_epoch=2), data(2, b"b", sequence=1), marker("COMMIT", 3)], 0, (0, 2), 4),
    ):  # fmt: skip
        fetch(name, why, basis, units, offset, offsets, end, **committed)
    stale = {name_of(0): bytes_of(again), name_of(0, ".txnindex"): b""}
    for name, why, files in (
        ("txn-index-empty", "The index of aborted transactions is empty, but the log contains an abort marker: the log counts.", stale),
        ("txn-index-right", "The index of aborted transactions, as a broker wrote it.", {**stale, name_of(0, ".txnindex"): aborted(9, 0, 1, 2) + aborted(9, 4, 5, 6)}),
    ):  # fmt: skip
        _with_index(family, name, why, files, again, (2,))
    out_of_order = {**stale, name_of(0, ".txnindex"): aborted(9, 4, 5, 6) + aborted(9, 0, 1, 2)}
    backwards = {**stale, name_of(0, ".txnindex"): aborted(9, 3, 1, 2)}
    for name, why, files, rule in (
        ("txn-index-out-of-order", "The entries in the index of aborted transactions are not in order.", out_of_order, "SEG-TXN-004"),
        ("txn-index-backwards", "A transaction in the index of aborted transactions ends before it begins.", backwards, "SEG-TXN-005"),
    ):  # fmt: skip
        _with_index(family, name, why, files, again, (2,), rule=rule)
    _with_index(
        family,
        "txn-index-torn",
        "The last entry in the index of aborted transactions is cut short.",
        {**stale, name_of(0, ".txnindex"): aborted(9, 0, 1, 2) + aborted(9, 4, 5, 6)[:20]},
        again,
        (2,),
    )


def _directory_reads(family: Family) -> None:
    """Add what counts as part of a log, and where it starts and ends."""

    def read(
        name: str,
        why: str,
        basis: Basis,
        files: dict[str, bytes],
        units: Sequence[Batch],
        offset: int,
        end: int,
        **options: str,
    ) -> None:
        records = [
            record for answer in lay(units)[1] for record in answer["records"] if offset <= int(record["offset"]) < end
        ]
        request: Json = {"files": hexed(files), "offset": str(offset)}
        if options:
            request["options"] = options
        family.add(
            name, "read", "valid", why, basis, request=request, expect={"records": records, "nextOffset": str(end)}
        )

    log = bytes_of(ROW)
    start = must("SEG-LKP-010", "SEG-CKP-010", needs=("logStartOffset",))
    reason = "Records below the log start offset are hidden, also within a batch."
    read("read-log-start", reason, start, {name_of(0): log}, ROW, 5, 15, logStartOffset="5")
    below = {"files": {name_of(0): log.hex()}, "offset": "4", "options": {"logStartOffset": "5"}}
    family.add(
        "read-below-log-start",
        "read",
        "invalid",
        "An offset below the log start offset is out of range, though its record is there.",
        must("SEG-LKP-004", "SEG-LKP-010", "SEG-CKP-010", needs=("logStartOffset",)),
        request=below,
        expect={"reject": {"class": "offset"}, "records": []},
    )
    low = {name_of(100): bytes_of(row(2, base=100))}
    read(
        "read-log-start-below-the-first",
        "A log start offset below the first segment has no effect.",
        must("SEG-CKP-010", needs=("logStartOffset",)),
        low,
        row(2, base=100),
        100,
        106,
        logStartOffset="7",
    )
    request: Json = {"files": hexed(low), "offset": "50", "options": {"logStartOffset": "7"}}
    why = "An offset above the log start offset, but below the first segment, is out of range."
    refused: Json = {"reject": {"class": "offset"}, "records": []}
    family.add(
        "read-between-checkpoint-and-first",
        "read",
        "invalid",
        why,
        must("SEG-LKP-004", "SEG-CKP-010", needs=("logStartOffset",)),
        request=request,
        expect=refused,
    )
    gap = {name_of(0): log, name_of(100): bytes_of(row(3, base=100))}
    reason = "The offset is missing between two segments: the read continues with the next segment."
    read("read-gap-between-segments", reason, must("SEG-LKP-002"), gap, row(3, base=100), 50, 109)
    end = must("SEG-LKP-015", "SEG-LKP-005")
    for base in (15, 40):
        reason = "The last segment is empty: the log ends at its base offset."
        read(f"read-empty-last-segment-{base}", reason, end, {name_of(0): log, name_of(base): b""}, [], base, base)
    family.add(
        "read-beyond-an-empty-last-segment",
        "read",
        "invalid",
        "An offset above the base offset of an empty last segment is out of range.",
        must("SEG-LKP-004", "SEG-LKP-015"),
        request={"files": {name_of(0): log.hex(), name_of(40): ""}, "offset": "41"},
        expect={"reject": {"class": "offset"}, "records": []},
    )
    compacted = [replace(ROW[0], recs=ROW[0].recs[:1], last_delta=2), *ROW[1:]]
    swap = must("SEG-PDR-010", since="3.0")
    undone = {name_of(0): log, name_of(0) + ".swap": bytes_of(ROW[:1]), name_of(0) + ".cleaned": b""}
    left = {name_of(0): log, name_of(0) + ".cleaned": bytes_of(ROW[:1]), name_of(15) + ".deleted": log}
    for name, reason, basis, files, units in (
        ("read-swap", "A `.swap` file is a complete replacement: a reader uses it instead of the file that it replaces.", swap,
         {name_of(0): log, name_of(0) + ".swap": bytes_of(compacted)}, compacted),
        ("read-swap-and-cleaned", "A `.cleaned` file shows that the replacement was not complete: a reader uses the old file.", swap, undone, ROW),
        ("read-deleted-and-cleaned", "A `.deleted` and a `.cleaned` file are no part of the log.", must("SEG-PDR-009"), left, ROW),
        *((f"read{suffix.replace('.', '-')}-behind{where}", f"A `{suffix}` file that the log would go on with is no part of it.", must("SEG-PDR-009"),
           {name_of(0): log, f"{name_of(15)}{suffix}": bytes_of(row(3, base=15))}, ROW) for suffix in (".deleted", ".cleaned") for where in ("", "-the-end")),
        ("read-two-names", "Two files have the same base offset: a reader uses the one with twenty digits in its name.", must("SEG-PDR-019"), {name_of(0): log, "0.log": bytes_of(ROW[:1])}, ROW),
    ):  # fmt: skip
        read(name, reason, basis, files, units, 15 * name.endswith("-the-end"), 15)
    tail = should("SEG-LOG-002")
    for name, rest in (
        ("garbage-17", b"\xa5" * 17),
        ("garbage-12", b"\xa5" * 12),
        ("zeros-17", bytes(17)),
        ("bad-size-17", b"\xff" * 16 + b"\2"),
    ):
        reason = "Up to seventeen bytes at the end of a file are too few for an entry; a reader delivers all entries before them."
        read(f"read-before-{name}", reason, tail, {name_of(0): log + rest}, ROW, 0, 15)
    for count in (18, 100, 5000):
        zeros = may("SEG-LOG-005")
        reason = "Zeros of a preallocated file are the end of the log."
        read(f"read-before-zeros-{count}", reason, zeros, {name_of(0): log + bytes(count)}, ROW, 0, 15)
    beyond = {name_of(0): log, "99999999999999999999.log": log, "-0000000000000000005.index": b""}
    for name, reason, basis, files in (
        ("read-misnamed-files", "A file whose name has a number that is not a valid offset is no part of the log.", should("SEG-PDR-011", "SEG-PDR-007"), beyond),
        ("read-other-files", "A reader ignores files with other names.", must("SEG-PDR-011"), {name_of(0): log, "notes.txt": b"x", "00000000000000000000.bak": log}),
    ):  # fmt: skip
        read(name, reason, basis, files, ROW, 0, 15)
    low_entry = {"files": {name_of(5): log.hex()}, "offset": "5"}
    answers = [record for answer in lay(ROW)[1] for record in answer["records"] if int(record["offset"]) >= 5]  # noqa: PLR2004 - the base
    over = {"files": {name_of(0): log.hex(), name_of(10): bytes_of(row(3, base=10)).hex()}, "offset": "9"}
    for name, reason, rule, asked, expect in (
        ("read-entries-below-the-base", "The first entry begins below the base offset in its file name: a reader reports damage or delivers it.", "SEG-LOG-008", low_entry,
         {"allowed": [{"branch": "refused", "reject": {"class": "offset"}, "records": []}, {"branch": "delivered", "records": answers, "nextOffset": "15"}]}),
        ("read-overlapping-segments", "A segment contains offsets above the base offset of the next segment.", "SEG-PDR-013", over,
         {"allowed": [{"branch": "refused", "reject": {"class": "offset"}, "records": []}, {"branch": "delivered", "records": [record for answer in lay(ROW)[1][3:] for record in answer["records"]], "nextOffset": "15"}]}),
    ):  # fmt: skip
        family.add(
            name, "read", "acceptable", reason, should(rule, flags=("OUT_OF_PLACE",)), request=asked, expect=expect
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
    basis = must("SEG-LKP-011", "SEG-TXN-007") if right else should("SEG-LKP-011", rule, flags=("TXN_INDEX_TRUST",))
    records = [record for answer in lay(units)[1] for record in answer["records"] if int(record["offset"]) in offsets]
    request = {"files": hexed(files), "offset": "0", "isolation": "read_committed"}
    family.add(
        name,
        "read",
        "valid",
        why,
        basis,
        request=request,
        expect={"records": records, "nextOffset": str(units[-1].next_offset)},
    )


def _damaged_reads(family: Family) -> None:
    records = [record for answer in lay(ROW)[1] for record in answer["records"]]
    for at in (1, 3):
        files = {name_of(0): flipped(bytes_of(ROW), at * SIZE + 70).hex()}
        before = records[: 3 * at]
        for name, result, why, basis, request, expect in (
            (f"read-damaged-{at}", "acceptable",
             "A read that begins at a damaged batch reports an error, or finds a log that recovery has cut there; it delivers nothing.",
             must("SEG-LKP-014", flags=("RECOVERS_ON_OPEN",)), {"files": files, "offset": str(3 * at)},
             {"allowed": [{"branch": "refused", "reject": {"class": "crc"}, "records": []}, {"branch": "recovered", "records": [], "nextOffset": str(3 * at)}]}),
            (f"read-damaged-{at}-verified", "invalid", "Recovery has not cut the log: a read that begins at a damaged batch reports an error.",
             must("SEG-BAT-003", "SEG-LKP-014", needs=("verifiedRead",)), {"files": files, "offset": str(3 * at)}, {"reject": {"class": "crc"}, "records": []}),
            (f"read-up-to-damage-{at}", "acceptable",
             "A read that reaches a damaged batch delivers the records before it; the error comes with them or with the next read.",
             must("SEG-LKP-014", flags=("LATE_ERROR",)), {"files": files, "offset": "0"},
             {"allowed": [{"branch": "delivered", "records": before, "nextOffset": str(3 * at)}, {"branch": "refused", "reject": {"class": "crc"}, "records": before}]}),
        ):  # fmt: skip
            family.add(name, "read", result, why, basis, request=request, expect=expect)
    for size in (1, 16, 17):
        for offset in (0, 15):
            family.add(
                f"read-from-{offset}-before-{size}-bytes",
                "read",
                "valid",
                "Bytes at the end of a file that are too few for an entry are not damage.",
                should("SEG-LOG-002"),
                request={"files": {name_of(0): (bytes_of(ROW) + b"\xa5" * size).hex()}, "offset": str(offset)},
                expect={"records": records if offset == 0 else [], "nextOffset": "15"},
            )
    past = replaced(bytes_of(ROW), SIZE + LAST_OFFSET_DELTA[0], "i", 1)
    for name, result, why, basis, request, expect in (
        ("read-at-the-end-behind-damage", "invalid", "Only a batch with a wrong checksum shows that the log ends at the fetch offset: a reader must not trust it.",
         must("SEG-BAT-003", "SEG-LKP-017", needs=("verifiedRead",)), {"files": {name_of(0): flipped(bytes_of(ROW), 4 * SIZE + 70).hex()}, "offset": "15"},
         {"reject": {"class": "crc"}, "records": []}),
        ("read-at-the-end-behind-damage-before", "valid", "The last batch is valid and shows where the log ends: earlier damage does not matter.",
         must("SEG-LKP-017", needs=("verifiedRead",)), {"files": {name_of(0): flipped(bytes_of(ROW), 3 * SIZE + 70).hex()}, "offset": "15"},
         {"records": [], "nextOffset": "15"}),
        ("read-hidden-offset", "invalid", "A damaged last offset delta makes an offset look missing: only the checksum of that batch shows it.",
         must("SEG-BAT-003", "SEG-LKP-017"), {"files": {name_of(0): past.hex()}, "offset": "5"}, {"reject": {"class": "crc"}, "records": []}),
    ):  # fmt: skip
        family.add(name, "read", result, why, basis, request=request, expect=expect)


def families() -> list[Family]:
    """All of this module."""
    family = transactions()
    reads(family)
    whole(family)
    add_trusting(family)
    return [family]

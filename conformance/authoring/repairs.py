"""What recovery and truncation leave of every file (part of family 40)."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from authoring.batches import BASE_OFFSET, CONTROL, LAST_OFFSET_DELTA, TRANSACTIONAL, Batch, Rec, with_field
from authoring.casefile import Basis, Json, hexed, must, should
from authoring.codecs import gzip
from authoring.control import control_key, data, marker, marker_value
from authoring.messages import Msg, Wrapper
from authoring.primitives import crc32c, flipped
from authoring.segments import SIZE, aborted, bytes_of, name_of, offset_index, row, time_index

if TYPE_CHECKING:
    from collections.abc import Sequence

    from authoring.casefile import Family, Unit

INTERVAL: Final = 100
EPOCHS: Final = "leader-epoch-checkpoint"
POINTS: Final = "recovery-point-offset-checkpoint"
STARTS: Final = "log-start-offset-checkpoint"
MARKS: Final = "replication-offset-checkpoint"
FIRST, SECOND, THIRD = row(5), row(3, base=15), row(2, base=24)
SOURCE: Final = "facts 5.5, 5.6 and 7; every file put together by hand"
Files = dict[str, bytes]


def segment(units: Sequence[Unit | Batch], base: int = 0, interval: int = INTERVAL, **kinds: bool) -> Files:
    """Return a log with the indexes that a broker makes for it."""
    made = {
        ".log": bytes_of(units),
        ".index": offset_index(units, interval, base),
        ".timeindex": time_index(units, interval, base),
    }
    return {name_of(base, kind): content for kind, content in made.items() if kinds.get(kind[1:], True)}


def logs(files: Files) -> Files:
    """Return the logs alone."""
    return {name: content for name, content in files.items() if name.endswith(".log")}


def epochs(*starts: tuple[int, int]) -> Files:
    """Return a leader epoch checkpoint."""
    lines = "".join(f"{epoch} {offset}\n" for epoch, offset in starts)
    return {EPOCHS: f"0\n{len(starts)}\n{lines}".encode()}


def offsets(*rows: tuple[str, int, int]) -> bytes:
    """Return an offset checkpoint."""
    lines = "".join(f"{topic} {partition} {offset}\n" for topic, partition, offset in rows)
    return f"0\n{len(rows)}\n{lines}".encode()


def snapshot(*producers: tuple[int, int], last_offset: int = 0, sequence: int = 0, time: int = 1000) -> bytes:
    """Return a producer snapshot: ids, first offsets of what is open, or -1; newest offset of each, or -1."""
    rows = (struct.pack(">qhiqiqiq", one, 2, sequence, last_offset, 0, time, 7, first) for one, first in producers)
    body = struct.pack(">i", len(producers)) + b"".join(rows)
    return struct.pack(">hI", 1, crc32c(body)) + body


EMPTY: Final = snapshot()
ALL: Final = {**segment(FIRST), **segment(SECOND, 15), **segment(THIRD, 24)}


class Repairs:
    """Adds cases to a family, each of which says what every file is afterwards."""

    def __init__(self, family: Family) -> None:
        self.family = family

    def recover(
        self,
        name: str,
        why: str,
        basis: Basis,
        files: Files,
        left: Files,
        end: int,
        *,
        modes: str = "bt",
        plan: Json | None = None,
        beside: dict[str, bytes | None] | None = None,
        root: Files | None = None,
        is_refusable: bool = False,
        by_broker: Files | None = None,
        **options: Any,  # noqa: ANN401
    ) -> None:
        """Add what recovery leaves: like a broker (``b``), and by the text (``t``).

        What a broker may refuse to start with is refusable. ``by_broker`` is what a broker leaves, if it is not ``left``.
        """
        options = {"indexIntervalBytes": INTERVAL, "checkpoints": hexed(root) if root else None, **options}
        options = {key: value for key, value in options.items() if value is not None}
        more: Json = {}
        needs = []
        if plan is not None:
            more["plan"] = plan
            needs.append("plan")
        if beside is not None:
            more["checkpoints"] = {key: None if value is None else value.hex() for key, value in beside.items()}
            needs.append("checkpoints")
        for mode, suffix, feature in (("b", "", "like-brokers"), ("t", "-by-the-text", "by-the-text")):
            if mode in modes:
                said = {} if mode == "b" else {"likeBroker": False}
                request = {"files": hexed(files), "options": {**options, **said}}
                own = replace(basis, needs=(*basis.needs, *needs, f"recovery:{feature}"), source=SOURCE)
                result = "acceptable" if is_refusable else "valid"
                files_left = left if mode == "t" or by_broker is None else by_broker
                expected = {"nextOffset": str(end), "names": sorted(files_left), "files": hexed(files_left), **more}
                branches = [{"branch": "started", **expected}, {"branch": "refused", "reject": {"class": "other"}}]
                found = {"allowed": branches} if is_refusable else expected
                self.family.add(f"all-{name}{suffix}", "recover", result, why, own, request=request, expect=found)

    def stops(
        self,
        name: str,
        why: str,
        basis: Basis,
        files: Files,
        *,
        is_by_text: bool = False,
        **options: Any,  # noqa: ANN401
    ) -> None:
        """Add a directory with which a broker does not start, or, by the text, nothing is changed."""
        feature, suffix = ("by-the-text", "-by-the-text") if is_by_text else ("like-brokers", "")
        said = {"likeBroker": False} if is_by_text else {}
        own = replace(basis, needs=(*basis.needs, f"recovery:{feature}"), source=SOURCE)
        request = {"files": hexed(files), "options": {"indexIntervalBytes": INTERVAL, **options, **said}}
        expect = {"reject": {"class": "other"}}
        self.family.add(f"all-{name}{suffix}", "recover", "invalid", why, own, request=request, expect=expect)

    def truncate(
        self,
        name: str,
        why: str,
        basis: Basis,
        offset: int,
        files: Files,
        left: Files,
        *,
        end: int | None = None,
        beside: dict[str, bytes | None] | None = None,
        root: Files | None = None,
        unlike: Sequence[str] = (),
        **options: Any,  # noqa: ANN401
    ) -> None:
        """Add what truncating leaves; files that are unlike a broker's are told apart by their names alone."""
        options = {"checkpoints": hexed(root), **options} if root else options
        expect: Json = {
            "nextOffset": str(offset if end is None else end),
            "names": sorted(left),
            "files": hexed({file: content for file, content in left.items() if file not in unlike}),
        }
        needs = (*basis.needs, *(() if beside is None else ("checkpoints",)))
        if beside is not None:
            expect["checkpoints"] = {key: None if value is None else value.hex() for key, value in beside.items()}
        request = {"files": hexed(files), "offset": str(offset), **({"options": options} if options else {})}
        own = replace(basis, needs=needs, source=SOURCE)
        self.family.add(f"truncate-all-{name}", "truncate", "valid", why, own, request=request, expect=expect)

    def refused(self, name: str, why: str, basis: Basis, offset: int, files: Files) -> None:
        """Add what cannot be truncated."""
        request = {"files": hexed(files), "offset": str(offset)}
        own = replace(basis, source=SOURCE)
        expect = {"reject": {"class": "offset"}}
        self.family.add(f"truncate-all-{name}", "truncate", "invalid", why, own, request=request, expect=expect)


KEEPS_INTERVAL: Final = ("keepsInterval",)
"""What is not told in the request is found in the indexes that are there: a broker knows it from its settings."""


def repairs(family: Family) -> None:
    """Add the cases."""
    to = Repairs(family)
    _epochs(to)
    _snapshots(to)
    _starts(to)
    _leftovers(to)
    _transactions(to)
    _settings(to)
    _strict_order(to)
    _markers(to)
    _believed(to)
    _truncated(to)
    _unusual(to)
    _rare(to)


def _epochs(to: Repairs) -> None:
    above, added, below = must("SEG-RCV-028"), must("SEG-RCV-036"), must("SEG-RCV-037")

    def keeps(name: str, why: str, basis: Basis, given: Files, left: Files, **options: Any) -> None:  # noqa: ANN401
        to.recover(f"epochs-{name}", why, basis, {**ALL, **given}, {**ALL, **left}, 30, **options)

    keeps("none", "Without a leader epoch checkpoint, recovery creates it from the scanned batches.", added, {}, epochs((0, 0)))  # fmt: skip
    keeps("right", "The leader epoch checkpoint is right: recovery does not change it.", above, epochs((0, 0), (3, 15)), epochs((0, 0), (3, 15)))  # fmt: skip
    why = "An epoch begins at the log end offset, without a batch: recovery removes it."
    keeps("at-the-end", why, above, epochs((0, 0), (3, 29), (4, 30)), epochs((0, 0), (3, 29)))
    keeps("one-above", "All leader epochs begin above the log end offset.", above, epochs((7, 30)), epochs((0, 0)), by_broker={**ALL, **epochs()})  # fmt: skip
    for start, left in ((1, ((2, 1), (3, 15))), (7, ((2, 7), (3, 15))), (14, ((2, 14), (3, 15))), (15, ((3, 15),)), (16, ((3, 16),))):  # fmt: skip
        why = "Of the epochs that begin before the log start offset, the last one then begins there."
        keeps(f"log-start-{start}", why, below, epochs((2, 0), (3, 15)), epochs(*left), logStartOffset=str(start))
    for name, why, given, left, log_start_offset in (
        ("log-start-below", "The first epoch begins above the log start offset: it stays unchanged.", epochs((2, 5), (3, 15)), epochs((2, 5), (3, 15)), "3"),
        ("log-start-three", "Two epochs have ended before the log start offset: recovery removes them.", epochs((1, 0), (2, 3), (3, 6), (5, 20)), epochs((3, 8), (5, 20)), "8"),
    ):  # fmt: skip
        keeps(name, why, below, given, left, logStartOffset=log_start_offset)
    grown = [replace(one, leader_epoch=epoch) for one, epoch in zip(FIRST, (0, 2, 2, 5, 6), strict=True)]
    for name, given in (
        ("found", {}),
        ("found-beyond-known", epochs((0, 0))),
        ("found-and-known", epochs((0, 0), (2, 3), (5, 9))),
        ("empty-file", {EPOCHS: b""}),
    ):
        to.recover(
            f"epochs-{name}",
            "Recovery adds each leader epoch at the base offset of its first batch.",
            added,
            {**segment(grown), **given},
            {**segment(grown), **epochs((0, 0), (2, 3), (5, 9), (6, 12))},
            15,
        )
    back = [replace(one, leader_epoch=epoch) for one, epoch in zip(FIRST, (4, 3, 4, 5, 5), strict=True)]
    none = [replace(one, leader_epoch=-1) for one in FIRST]
    cut = {name_of(0): flipped(bytes_of(grown), 2 * SIZE + 70)}
    for name, why, basis, files, left, end in (
        ("epochs-known-is-newer", "Recovery adds neither an epoch that the checkpoint has already, nor an earlier one.", added, {**segment(grown), **epochs((5, 1))},
         {**segment(grown), **epochs((5, 1), (6, 12))}, 15),
        ("epochs-back", "A batch with an earlier epoch than the batch before adds no epoch.", added, segment(back), {**segment(back), **epochs((4, 0), (5, 9))}, 15),
        ("epochs-minus-1", "The batches have no leader epoch (-1): recovery creates no checkpoint.", added, segment(none), segment(none), 15),
        ("epochs-of-what-stays", "Recovery removes the leader epochs that begin after the cut.", above,
         {**segment(grown), **cut, **epochs((0, 0), (2, 3), (4, 6), (5, 9))}, {**segment(grown[:2]), **epochs((0, 0), (2, 3))}, 6),
    ):  # fmt: skip
        to.recover(name, why, basis, files, left, end)
    hidden = {**segment(grown), **epochs((0, 0), (9, 15))}
    later = "An epoch beyond the log end is later than that of the last batch"
    to.recover("epochs-hidden", f"{later}: brokers remove it and do not look for the others.", above, hidden, {**segment(grown), **epochs((0, 0))}, 15, modes="b")  # fmt: skip
    to.recover("epochs-hidden", f"{later}: by the specification, recovery removes it first and finds the others.", added, hidden, {**segment(grown), **epochs((0, 0), (2, 3), (5, 9), (6, 12))}, 15, modes="t")  # fmt: skip
    broken = {EPOCHS: b"0\n2\n0 0\n"}
    to.stops("epochs-unreadable", "The leader epoch checkpoint cannot be read: brokers do not start.", should("SEG-CKP-002", "SEG-RCV-036"), {**ALL, **broken})  # fmt: skip
    to.recover("epochs-unreadable", "By the specification, recovery leaves an unreadable leader epoch checkpoint unchanged.", should("SEG-RCV-028"), {**ALL, **broken}, {**ALL, **broken}, 30, modes="t")  # fmt: skip


def _snapshots(to: Repairs) -> None:
    basis = must("SEG-RCV-027")

    def at(*bases: int, content: bytes = EMPTY) -> Files:
        return {name_of(base, ".snapshot"): content for base in bases}

    for name, given, left, by_broker in (
        ("at-segments", (0, 15, 24), (0, 15, 24), (15, 24)),
        ("between", (7, 15, 20), (15,), (15,)),
        ("last-one-behind", (15, 26), (15, 26), (15,)),
        ("two-behind", (25, 26), (26,), ()),
        ("at-the-end", (24, 30), (24, 30), (24, 30)),
        ("above-the-end", (24, 31), (24,), (24,)),
        ("behind-and-above", (26, 31), (), ()),
        ("one-below-all", (3,), (), ()),
    ):
        to.recover(
            f"snapshots-{name}",
            "Snapshots at base offsets stay, and the newest above them all; brokers keep none at the log start.",
            basis,
            {**ALL, **at(*given)},
            {**ALL, **at(*left), **epochs((0, 0))},
            30,
            by_broker={**ALL, **at(*by_broker), **epochs((0, 0))},
        )
    bad = EMPTY[:-1] + b"\1"
    for name, why, rule, files, left, end, named in (
        ("snapshots-unreadable", "Recovery removes unreadable snapshots.", "SEG-PSN-005", {**ALL, **at(15), **at(24, 30, content=bad)}, {**ALL, **at(15), **epochs((0, 0))}, 30, {}),
        ("snapshots-of-dropped-segments", "Recovery drops the snapshot together with its segment.", "SEG-RCV-004",
         {**ALL, name_of(0): flipped(ALL[name_of(0)], 70), **at(0, 15, 24)}, {**segment([]), **at(0)}, 0, {"by_broker": segment([])}),
    ):  # fmt: skip
        to.recover(name, why, must("SEG-RCV-027", rule), files, left, end, **named)


def _starts(to: Repairs) -> None:
    gone = must("SEG-RCV-007")
    for start in (31, 500):
        to.recover(
            f"log-start-{start}",
            "The log ends below its log start offset: it is emptied, begins at that offset, and has no epochs.",
            gone,
            {**ALL, **epochs((0, 0), (3, 15))},
            {**segment([], start), EPOCHS: b"0\n0\n"},
            start,
            logStartOffset=str(start),
        )
    for name, why, files, left, end, log_start_offset in (
        ("log-start-at-the-end", "The log ends at its log start offset: recovery removes nothing.", {**ALL, **epochs((3, 0))}, {**ALL, **epochs((3, 30))}, 30, "30"),
        ("log-start-above-a-cut", "After the cut, the log ends below its log start offset.", {**ALL, name_of(15): flipped(ALL[name_of(15)], 70)}, segment([], 20), 20, "20"),
    ):  # fmt: skip
        to.recover(name, why, gone, files, left, end, logStartOffset=log_start_offset)
    nothing = {"partition.metadata": b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"}
    for start in (0, 77):
        to.recover(
            f"nothing-from-{start}",
            "A log without a segment gets an empty one at its log start offset.",
            should("SEG-RCV-030"),
            nothing,
            {**nothing, **segment([], start)},
            start,
            logStartOffset=str(start),
        )


def _leftovers(to: Repairs) -> None:
    left = {**ALL, **epochs((0, 0))}
    orphan = {name_of(99, kind): bytes(24) for kind in (".index", ".timeindex", ".txnindex")}
    to.recover("orphans", "Indexes without a log are removed.", should("SEG-RCV-026"), {**ALL, **orphan}, left, 30)
    for suffix in (".cleaned", ".deleted"):
        rest = {name_of(15, kind) + suffix: b"half" for kind in (".log", ".index", ".timeindex")}
        to.recover(f"leftover{suffix.replace('.', '-')}", "Recovery removes `.cleaned` and `.deleted` files.", should("SEG-RCV-020"), {**ALL, **rest}, left, 30)  # fmt: skip
    compacted = [replace(FIRST[0], recs=FIRST[0].recs[:1], last_delta=2), *FIRST[1:]]
    made = {f"{name}.swap": content for name, content in segment(compacted).items()}
    stale = {**ALL, name_of(0, ".txnindex"): aborted(1, 0, 1, 2), name_of(15, ".timeindex"): bytes(24)}
    for name, why, basis, files, kept in (
        ("swap", "The `.swap` files are a complete replacement: recovery finishes it, with its indexes.", must("SEG-RCV-021", since="3.0"), {**ALL, **made}, {**left, **segment(compacted)}),
        ("swap-and-cleaned", "A `.cleaned` file shows that the replacement was not complete: recovery keeps the old files.", must("SEG-RCV-021", since="3.0"),
         {**ALL, **{f"{name}.swap": content for name, content in segment(SECOND[:1], 15).items()}, name_of(0) + ".cleaned": b"x"}, left),
        ("swap-above-cleaned", "The `.swap` files have a lower base offset than the `.cleaned` file: they are a complete replacement.", must("SEG-RCV-021", since="3.0"),
         {**ALL, **made, name_of(15) + ".cleaned": b"x"}, {**left, **segment(compacted)}),
        ("others", "Recovery leaves other files unchanged.", must("SEG-PDR-011"),
         {**ALL, "notes.txt": b"mine", "partition.metadata": b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"},
         {**left, "notes.txt": b"mine", "partition.metadata": b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ"}),
        ("stale", "Recovery rebuilds all indexes of a scanned segment; without an abort, that of transactions is empty.", must("SEG-RCV-025"), stale, {**left, name_of(0, ".txnindex"): b""}),
    ):  # fmt: skip
        to.recover(name, why, basis, files, kept, 30)


def _transactions(to: Repairs) -> None:
    basis = must("SEG-RCV-025", "SEG-TXN-001")
    begun = [data(0, b"a", b"b"), *row(1, base=2)]
    ended = [
        marker("ABORT", 5),
        data(6, b"c", sequence=2),
        marker("COMMIT", 7),
        data(8, b"d", sequence=3),
        marker("ABORT", 9),
    ]
    first, second = segment(begun), segment(ended, 5)
    index = {name_of(5, ".txnindex"): aborted(9, 0, 5, 6) + aborted(9, 8, 9, 10)}
    for name, why, left, named in (
        ("aborted-across-segments", "An aborted transaction that began in an earlier segment is listed with the segment in which it ends.", {**first, **second, **index, **epochs((0, 0), (3, 5))}, {}),
        ("aborted-from-the-recovery-point", "The first segment is not scanned, but its open transaction is known in the second.",
         {**first, **second, **index, **epochs((3, 5))}, {"recoveryPoint": "5"}),
    ):  # fmt: skip
        to.recover(name, why, basis, {**first, **second}, left, 10, **named)
    for name, content, row_of in (
        ("snapshot", snapshot((9, 0)), index),
        ("snapshot-of-others", snapshot((4, 1)), {name_of(5, ".txnindex"): aborted(9, 8, 9, 1)}),
        ("snapshot-with-nothing-open", snapshot((9, -1)), {name_of(5, ".txnindex"): aborted(9, 8, 9, 10)}),
    ):
        shot = {name_of(5, ".snapshot"): content}
        to.recover(
            f"aborted-{name}",
            "The producer snapshot says which transactions are open at the start of the segment.",
            basis,
            {**first, **second, **shot},
            {**first, **second, **shot, **row_of, **epochs((3, 5))},
            10,
            recoveryPoint="5",
        )
    interleaved = [
        data(0, b"a", producer_id=1),
        data(1, b"b", producer_id=2),
        marker("ABORT", 2, producer_id=2),
        data(3, b"c", producer_id=3),
        marker("ABORT", 4, producer_id=1),
        marker("COMMIT", 5, producer_id=3),
    ]
    whole = segment(interleaved)
    for name, why, files, left, end, named in (
        ("aborted-unreadable-snapshot", "An unreadable snapshot is ignored: open transactions are found in the log.",
         {**first, **second, name_of(5, ".snapshot"): snapshot((9, 3))[:-1]}, {**first, **second, **index, **epochs((3, 5))}, 10, {"recoveryPoint": "5"}),
        ("aborted-interleaved", "Each aborted transaction is listed with the last stable offset at the time of its marker.", whole,
         {**whole, name_of(0, ".txnindex"): aborted(2, 1, 2, 0) + aborted(1, 0, 4, 3), **epochs((0, 0), (3, 2))}, 6, {}),
    ):  # fmt: skip
        to.recover(name, why, basis, files, left, end, **named)
    known = {name_of(10, ".snapshot"): snapshot((9, -1), last_offset=8, sequence=3, time=1234)}
    below = aborted(9, 0, 4, 5)
    for name, entries in (("", below), ("-behind-another", aborted(9, 0, 5, 6) + below)):
        to.recover(
            f"aborted-below-the-segment{name}",
            "A listed transaction ended before the segment: recovery scans it, also after a clean shutdown.",
            must("SEG-RCV-006"),
            {**first, **second, name_of(5, ".txnindex"): entries},
            {**first, **second, **index, **epochs((3, 5)), **known},
            10,
            cleanShutdown=True,
            plan={"scanned": ["5"], "cuts": [], "dropped": []},
        )
    right = {**first, **second, name_of(5, ".txnindex"): aborted(9, 0, 5, 6)}
    to.recover(
        "aborted-at-the-base",
        "A listed transaction ended with the first batch of the segment: the index is valid.",
        must("SEG-RCV-006"),
        right,
        {**right, **known},
        10,
        by_broker=right,
        cleanShutdown=True,
        plan={"scanned": [], "cuts": [], "dropped": []},
    )


def _settings(to: Repairs) -> None:
    """Add what a rebuilt index is like where the caller does not say."""
    basis = should("SEG-RCV-025", needs=KEEPS_INTERVAL)
    long = row(40)
    tail = row(20, base=120)
    big = [Batch(base=at, recs=(Rec(value=bytes(1500)),), base_timestamp=1000 + at) for at in range(12)]
    small = (0, 50, 100, 128, 150, 200, 256, 300, 500, 512, 1000, 1024, 2000)
    for interval in (*small, 8192):
        first = long if interval in small else big
        start = first[-1].next_offset
        after = tail if first is long else [replace(one, base=start + at) for at, one in enumerate(big)]
        known = segment(first, interval=interval)
        to.recover(
            f"interval-{interval}",
            "The index of an earlier segment shows the index interval; recovery uses the same.",
            basis,
            {**known, **segment(after, start, interval=9_999_999)},
            {**known, **segment(after, start, interval=interval), **epochs((0, start))},
            after[-1].next_offset,
            indexIntervalBytes=None,
            recoveryPoint=str(start),
        )
    unusual = {**segment(long), name_of(0, ".index"): struct.pack(">ii", 9, 77)}
    for name, why, files, left, end, named in (
        ("interval-unknown", "No index shows the index interval: recovery uses the default of brokers.", {name_of(0): bytes_of(big)}, {**segment(big, interval=4096), **epochs((0, 0))}, 12, {}),
        ("interval-of-another-log", "An index that does not fit its log shows no index interval.", {**unusual, **segment(tail, 120, interval=9_999_999)},
         {**unusual, **segment(tail, 120, interval=4096), **epochs((0, 120))}, 180, {"recoveryPoint": "120"}),
    ):  # fmt: skip
        to.recover(name, why, basis, files, left, end, indexIntervalBytes=None, **named)
    _first_offsets(to, long, tail)


def _first_offsets(to: Repairs, long: list[Batch], tail: list[Batch]) -> None:
    basis = should("SEG-RCV-025", since="0.11", needs=KEEPS_INTERVAL)

    def early(units: Sequence[Unit], base: int) -> bytes:
        """As brokers before 2.0 wrote them: each entry names the first offset of its batch."""
        rows, start = offset_index(units, INTERVAL, base), {}
        position = 0
        for unit in units:
            start[position] = int(unit.answer(0)["baseOffset"])
            position += len(unit.encoded())
        found = (struct.unpack(">ii", rows[at : at + 8]) for at in range(0, len(rows), 8))
        return b"".join(struct.pack(">ii", start[start_of_entry] - base, start_of_entry) for _, start_of_entry in found)

    old = {**segment(long), name_of(0, ".index"): early(long, 0)}
    to.recover(
        "first-offsets",
        "The index of an earlier segment has first offsets of batches: rebuilt indexes have them as well.",
        basis,
        {**old, **segment(tail, 120, interval=9_999_999)},
        {**old, **segment(tail, 120), name_of(120, ".index"): early(tail, 120), **epochs((0, 120))},
        180,
        recoveryPoint="120",
    )
    for magic, count in ((0, 2), (0, 3), (1, 2), (1, 3)):
        packs = []
        for last in range(count - 1, 20 * count, count):
            within = range(last - count + 1, last + 1)
            inner = tuple(Msg(magic=magic, offset=at - within[0] * magic, timestamp=1000 + at) for at in within)
            packs.append(Wrapper(magic=magic, offset=last, inner=inner, offsets=tuple(within), compress=gzip))
        start = 10 * count
        old = {**segment(packs[:10]), name_of(0, ".index"): early(packs[:10], 0)}
        to.recover(
            f"first-offsets-of-wrappers-{magic}-of-{count}",
            "The index of an earlier segment has the first offsets of wrappers: rebuilt indexes have them as well.",
            replace(basis, needs=(*basis.needs, f"magic:{magic}", "codec:gzip")),
            {**old, **segment(packs[10:], start, interval=9_999_999)},
            {**old, **segment(packs[10:], start), name_of(start, ".index"): early(packs[10:], start)},
            20 * count,
            recoveryPoint=str(start),
        )
    for magic, kinds in ((0, (".log", ".index")), (1, (".log", ".index", ".timeindex"))):
        messages = [Msg(magic=magic, offset=at, timestamp=1000 + at, value=bytes(60)) for at in range(9)]
        made = segment(messages)
        given = {name: made[name] for name in (name_of(0), name_of(0, ".index"))}
        to.recover(
            f"magic-{magic}-without-time-index",
            "Old messages with an offset index, but without a time index: brokers before 0.10.1 wrote them.",
            should("SEG-RCV-025", since="0.8", needs=(f"magic:{magic}",)),
            given,
            {name: content for name, content in made.items() if name.endswith(kinds)},
            9,
        )
    without = {name_of(0): bytes_of(FIRST), name_of(0, ".index"): ALL[name_of(0, ".index")]}
    clean = must("SEG-RCV-006", "SEG-PDR-012")
    for name, why, left, modes in (
        ("no-time-index-like-broker", "The time index of an unscanned segment is missing: brokers create it and leave it empty.",
         {**without, **segment(SECOND, 15), name_of(0, ".timeindex"): b""}, "b"),
        ("no-time-index-built", "By the specification, recovery builds the missing time index from the log.", {**segment(FIRST), **segment(SECOND, 15)}, "t"),
    ):  # fmt: skip
        to.recover(name, why, clean, {**without, **segment(SECOND, 15)}, left, 24, modes=modes, cleanShutdown=True)


def _strict_order(to: Repairs) -> None:
    """Offsets that go back, each way by itself."""
    back = [*FIRST[:3], replace(FIRST[3], base=2), FIRST[4]]
    files = {name_of(0): bytes_of(back), name_of(0, ".index"): b""}
    rule = should("SEG-RCV-023")
    emptied = {"baseOffset": "0", "position": 0, "nextOffset": "0", "requirements": ["SEG-RCV-023", "SEG-LOG-006"]}
    cut = {"baseOffset": "0", "position": 3 * SIZE, "nextOffset": "9", "requirements": ["SEG-RCV-032", "SEG-LOG-006"]}
    for name, why, basis, left, end, modes, named in (
        ("order-emptied", "An index entry is due where offsets go back: brokers empty the segment.", rule, {**segment([])}, 0, "b",
         {"plan": {"scanned": ["0"], "cuts": [emptied], "dropped": []}, "cleanShutdown": False}),
        ("order-cut", "By the specification, recovery cuts the segment before the offset that goes back.", must("SEG-RCV-032", "SEG-LOG-006"),
         {**segment(FIRST[:3]), **epochs((0, 0))}, 9, "t",
         {"plan": {"scanned": ["0"], "cuts": [cut], "dropped": [], "remarks": [{"at": 3 * SIZE, "requirement": "SEG-LOG-006"}], "differences": [{"at": 0, "requirement": "SEG-RCV-023"}]}}),
        ("order-kept", "Offsets go back where no index entry is due: brokers do not notice it.", rule, {**segment(back, interval=4096), **epochs((0, 0))}, 15, "b", {"indexIntervalBytes": 4096}),
    ):  # fmt: skip
        to.recover(name, why, basis, files, left, end, modes=modes, **named)
    low = with_field(SECOND[0].encoded(), BASE_OFFSET, 14)
    below = {name_of(15): low + bytes_of(SECOND[1:]), name_of(15, ".index"): b""}
    misnamed = must("SEG-RCV-032", "SEG-LOG-008")
    why = "By the specification, only the file name is wrong: recovery refuses and removes nothing."
    to.stops("order-below-the-base", why, misnamed, below, is_by_text=True)
    short = bytes_of(FIRST[:2]) + with_field(FIRST[2].encoded(), LAST_OFFSET_DELTA, -1)
    to.recover(
        "order-negative-delta",
        "By the specification, recovery removes a batch that ends before it begins.",
        must("SEG-RCV-032", "SEG-LOG-008"),
        {name_of(0): short, name_of(0, ".index"): b""},
        {**segment(FIRST[:2]), **epochs((0, 0))},
        6,
        modes="t",
        plan={"remarks": [{"at": 2 * SIZE, "requirement": "SEG-LOG-008"}]},
    )
    tail = ALL[name_of(24)] + bytes(7)
    for name, content, rule, found in (
        ("tail", tail, "SEG-RCV-033", "SEG-LOG-005"),
        ("checksum", ALL[name_of(24)] + flipped(row(1, base=30)[0].encoded(), 70), "SEG-RCV-003", "SEG-BAT-003"),
    ):
        to.recover(
            f"reason-{name}",
            "The plan names the requirements that a cut follows from.",
            must(rule),
            {**ALL, name_of(24): content},
            {**ALL, **epochs((0, 0))},
            30,
            plan={
                "scanned": ["0", "15", "24"],
                "cuts": [{"baseOffset": "24", "position": 2 * SIZE, "nextOffset": "30", "requirements": [rule, found]}],
                "dropped": [],
            },
        )


def lone_control(base: int, key: bytes | None, value: bytes, **fields: Any) -> Batch:  # noqa: ANN401
    """Return a control batch of one record."""
    given = {"producer_id": 9, "producer_epoch": 2, "attributes": CONTROL | TRANSACTIONAL, **fields}
    return Batch(base=base, recs=(Rec(key=key, value=value),), **given)


def _markers(to: Repairs) -> None:
    rule = must("SEG-RCV-008")
    good = [data(0, b"a"), *row(1, base=1)]
    for name, unusual, found in (
        ("short-key", lone_control(4, b"\0", marker_value(0)), "SEG-CTL-001"),
        ("null-key", lone_control(4, None, marker_value(0)), "SEG-CTL-001"),
        ("short-value", lone_control(4, control_key(0), b"\0"), "SEG-CTL-004"),
    ):
        rest = row(1, base=5)
        position = len(bytes_of(good))
        cut = {"baseOffset": "0", "position": position, "nextOffset": "4", "requirements": ["SEG-RCV-008", found]}
        for case, why, basis, left, end, modes, named in (
            (f"marker-{name}-cut-behind", "An end marker cannot be read: brokers keep it, cut the log after it, and do not start.",
             should(found, "SEG-RCV-008", flags=("UNREADABLE_MARKER",)), {**segment([*good, unusual]), **epochs((0, 0))}, 5, "b", {"is_refusable": True}),
            (f"marker-{name}-cut-before", "By the specification, recovery also removes the end marker that cannot be read.", rule, {**segment(good), **epochs((0, 0))}, 4,
             "t", {"plan": {"cuts": [cut], "remarks": [{"at": position, "requirement": found}], "differences": [{"at": position, "requirement": "SEG-RCV-008"}]}}),
        ):  # fmt: skip
            to.recover(case, why, basis, segment([*good, unusual, *rest]), left, end, modes=modes, **named)
    packed = Batch(
        base=4,
        codec="gzip",
        stored=b"no gzip",
        recs=(Rec(),),
        producer_id=9,
        producer_epoch=2,
        attributes=CONTROL | TRANSACTIONAL,
    )
    why = "An end marker cannot be decompressed: brokers do not start."
    to.stops("marker-compressed", why, should("SEG-COD-002", "SEG-RCV-008"), segment([*good, packed]))
    kept = segment([*good, packed, *row(1, base=5)])
    to.recover(
        "marker-compressed-kept",
        "By the specification, an end marker that cannot be decompressed stays, with a remark.",
        should("SEG-RCV-008"),
        kept,
        {**kept, **epochs((0, 0))},
        8,
        modes="t",
        plan={"cuts": [], "remarks": [{"at": len(bytes_of(good)), "requirement": "SEG-COD-002"}]},
    )
    unusual = lone_control(4, control_key(5), marker_value(0))
    kept = segment([*good, unusual, *row(1, base=5)])
    to.recover(
        "marker-unknown-kept",
        "By the specification, a control record of an unknown type stays, with a remark.",
        should("SEG-RCV-008"),
        kept,
        {**kept, **epochs((0, 0))},
        8,
        modes="t",
        plan={"cuts": [], "remarks": [{"at": len(bytes_of(good)), "requirement": "SEG-CTL-003"}]},
    )
    unknown = lone_control(4, control_key(5), marker_value(0))
    outside = data(4, b"x", transactional=False, sequence=1)
    for name, why, requirement, files in (
        ("marker-unknown", "A control batch has a producer id, but ends no transaction: brokers do not start.", "SEG-CTL-003", segment([*good, unknown])),
        ("outside-of-its-transaction", "A batch is not part of its producer's open transaction: brokers do not start.", "SEG-APP-023", segment([*good, outside])),
    ):  # fmt: skip
        to.stops(name, why, should(requirement, "SEG-RCV-008"), files)
    closed = [data(0, b"a"), marker("COMMIT", 1), data(2, b"x", transactional=False, sequence=1)]
    others = [*good, data(4, b"x", transactional=False, producer_id=8), lone_control(5, None, b"", producer_id=-1)]
    zero = [data(0, b"a", producer_id=0), marker("ABORT", 1, producer_id=0)]
    for name, why, basis, files, left, end in (
        ("after-its-transaction", "The transaction has ended: its producer may append without one.", rule, segment(closed), {**segment(closed), **epochs((0, 0), (3, 1))}, 3),
        ("of-other-producers", "Batches of another producer, and control batches without one, do not affect the open transaction.", rule, segment(others), {**segment(others), **epochs((0, 0))}, 6),
        ("producer-0", "A producer id of 0 is a valid id.", must("SEG-RCV-025", "SEG-TXN-001"), segment(zero),
         {**segment(zero), name_of(0, ".txnindex"): aborted(0, 0, 1, 2), **epochs((0, 0), (3, 1))}, 2),
    ):  # fmt: skip
        to.recover(name, why, basis, files, left, end)


def _believed(to: Repairs) -> None:
    clean = must("SEG-RCV-001", "SEG-LDR-003")
    to.recover("clean", "After a clean shutdown, recovery changes nothing.", clean, ALL, ALL, 30, cleanShutdown=True)
    damaged = {**ALL, name_of(0): flipped(ALL[name_of(0)], 70)}
    for point, scanned in ((0, 3), (14, 3), (15, 2), (16, 2), (23, 2), (24, 1), (30, 1), (99, 1)):
        bases = ["0", "15", "24"][3 - scanned :]
        to.recover(
            f"recovery-point-{point}",
            "Recovery trusts all segments below the one that contains the recovery point.",
            must("SEG-RCV-002"),
            ALL,
            {**ALL, **epochs((0, int(bases[0])))},
            30,
            plan={"scanned": bases, "cuts": [], "dropped": []},
            recoveryPoint=str(point),
        )
    for name, why, files, left, named in (
        ("recovery-point-of-another-partition", "Checkpoint entries of other partitions have no effect.", ALL, {**ALL, **epochs((0, 0))},
         {"plan": {"scanned": ["0", "15", "24"]}, "root": {POINTS: offsets(("topic", 1, 30), ("other", 0, 30)), STARTS: offsets(("other", 0, 99))}}),
        ("damage-below-the-recovery-point", "Recovery does not scan below the recovery point and finds no damage there.", damaged, {**damaged, **epochs((0, 24))}, {"recoveryPoint": "29"}),
    ):  # fmt: skip
        to.recover(name, why, must("SEG-RCV-002"), files, left, 30, **named)
    bare = {**damaged}
    del bare[name_of(0, ".index")]
    ends = {**ALL, name_of(24): ALL[name_of(24)] + bytes(5)}
    hidden = flipped(bytes_of(FIRST), 70)
    alone = {**segment(FIRST), name_of(0): hidden}
    for name, why, basis, files, left, end, named in (
        ("no-index-and-damage", "After a clean shutdown, recovery cuts a segment without an index and keeps the segments after it.", must("SEG-RCV-004", "SEG-RCV-006"),
         bare, {**ALL, **segment([])}, 30, {"plan": {"scanned": ["0"], "dropped": []}}),
        ("clean-with-a-tail", "By the specification, a tail after the last whole batch is removed, also after a clean shutdown.", should("SEG-RCV-024"), ends,
         {**ALL, **epochs((0, 24))}, 30,
         {"modes": "t", "plan": {"scanned": [], "cuts": [{"baseOffset": "24", "position": 2 * SIZE, "nextOffset": "30", "requirements": ["SEG-RCV-024", "SEG-LOG-005"]}]}}),
        ("clean-with-a-tail-kept", "After a clean shutdown, a broker keeps the tail after the last whole batch.", clean, ends, ends, 30, {"modes": "b"}),
        ("clean-and-damaged", "After a clean shutdown, recovery does not verify checksums.", clean, alone, alone, 15, {}),
    ):  # fmt: skip
        to.recover(name, why, basis, files, left, end, cleanShutdown=True, **named)
    broken = with_field(FIRST[4].encoded(), (8, "i"), 3, seal=False)
    stopped = {**segment(FIRST), name_of(0): bytes_of(FIRST[:4]) + broken}
    why = "The log is damaged from the last index entry on: brokers find no log end offset and do not start."
    to.stops("clean-and-no-way-to-the-end", why, should("SEG-LOG-003", "SEG-RCV-001"), stopped, cleanShutdown=True)
    early = {
        **segment(FIRST),
        name_of(0): with_field(FIRST[0].encoded(), (8, "i"), 3, seal=False) + bytes_of(FIRST[1:]),
    }
    why = "The damage is before the last index entry: after a clean shutdown, brokers do not read there."
    to.recover("clean-and-damaged-before-the-last-entry", why, clean, early, early, 15, modes="b", cleanShutdown=True)


def _truncated(to: Repairs) -> None:
    files = {**segment(FIRST), **segment(SECOND, 15)}
    others = [("other", 0, 29), ("topic", 1, 28)]
    for offset, kept in ((9, _short(FIRST[:3], 9)), (20, {**segment(FIRST), **_short(SECOND[:1], 20, 15)})):
        given = {
            POINTS: offsets(("topic", 0, 24), *others),
            STARTS: offsets(("topic", 0, 12), *others),
            MARKS: offsets(("topic", 0, 27), *others),
        }
        lowered = {
            POINTS: offsets(("topic", 0, offset), *others),
            STARTS: offsets(("topic", 0, min(12, offset)), *others),
            MARKS: given[MARKS],
        }
        why = "Truncation lowers checkpoints above the new end to it, but not those of other partitions."
        to.truncate(f"checkpoints-{offset}", why, must("SEG-TRN-005"), offset, files, kept, beside=lowered, root=given)
    broken = b"0\n2\ntopic 0 24\n"
    for name, why, offset, left, beside, root in (
        ("checkpoints-below", "Truncation does not change checkpoints that are not above the new end.", 20, {**segment(FIRST), **_short(SECOND[:1], 20, 15)},
         {POINTS: offsets(("topic", 0, 20)), STARTS: offsets(("topic", 0, 0)), MARKS: None}, {POINTS: offsets(("topic", 0, 20)), STARTS: offsets(("topic", 0, 0))}),
        ("checkpoint-unreadable", "Truncation leaves an unreadable checkpoint unchanged and still lowers the other one.", 9, _short(FIRST[:3], 9),
         {POINTS: broken, STARTS: offsets(("topic", 0, 9)), MARKS: None}, {POINTS: broken, STARTS: offsets(("topic", 0, 12))}),
    ):  # fmt: skip
        to.truncate(name, why, must("SEG-TRN-005"), offset, files, left, beside=beside, root=root)
    nothing = must("SEG-TRN-002")
    high = {POINTS: offsets(("topic", 0, 99)), STARTS: offsets(("topic", 0, 98))}
    for offset in (24, 25, 1000):
        why = "Truncation to the log end offset or above changes nothing, not even a checkpoint."
        to.truncate(f"at-{offset}", why, nothing, offset, files, files, end=24, beside=high, root=high)
    moved = {**segment(row(3, base=100), 100), **epochs((4, 100)), name_of(100, ".snapshot"): EMPTY}
    side = must("SEG-TRN-004")
    shots = {name_of(base, ".snapshot"): EMPTY for base in (0, 15, 18, 20, 21, 24)}
    for name, why, basis, offset, directory, left, named in (
        ("below-the-first", "Truncation below the first segment removes everything, also all leader epochs.", nothing, 50, moved, {name_of(50): b"", EPOCHS: b"0\n0\n"}, {}),
        ("to-the-base", "Truncation to the base offset of the first segment keeps that segment, empty.", nothing, 100, moved,
         {**segment([], 100), EPOCHS: b"0\n0\n", name_of(100, ".snapshot"): EMPTY}, {"unlike": [name_of(100, ".snapshot")]}),
        ("snapshots", "Truncation removes snapshots above the offset and keeps one at the offset.", side, 20, {**files, **shots},
         {**segment(FIRST), **_short(SECOND[:1], 20, 15), **{name: content for name, content in shots.items() if name < name_of(21)}},
         {"unlike": [name_of(base, ".snapshot") for base in (0, 18)]}),
    ):  # fmt: skip
        to.truncate(name, why, basis, offset, directory, left, **named)
    for offset, left in ((16, ((0, 0), (1, 9))), (17, ((0, 0), (1, 9), (2, 16))), (9, ((0, 0),)), (1, ((0, 0),))):
        kept = {
            16: {**segment(FIRST), **_short([], 16, 15)},
            17: {**segment(FIRST), **_short([], 17, 15)},
            9: _short(FIRST[:3], 9),
            1: _short([], 1),
        }[offset]
        to.truncate(
            f"epochs-{offset}",
            "Truncation removes leader epochs that begin at the offset or above.",
            must("SEG-TRN-007"),
            offset,
            {**files, **epochs((0, 0), (1, 9), (2, 16))},
            {**kept, **epochs(*left)},
        )
    ended = [data(0, b"a"), marker("ABORT", 1), data(2, b"b", sequence=1), marker("ABORT", 3), *row(1, base=4)]
    for offset, rows in ((3, aborted(9, 0, 1, 2)), (4, aborted(9, 0, 1, 2) + aborted(9, 2, 3, 4)), (1, b"")):
        count = {3: 3, 4: 4, 1: 1}[offset]
        to.truncate(
            f"aborted-{offset}",
            "Truncation removes aborted transactions that ended at the offset or above.",
            must("SEG-TRN-006"),
            offset,
            {name_of(0): bytes_of(ended), name_of(0, ".txnindex"): aborted(9, 0, 1, 2) + aborted(9, 2, 3, 4)},
            {name_of(0): bytes_of(ended[:count]), name_of(0, ".txnindex"): rows},
        )
    zeros = {
        **files,
        name_of(15, ".index"): ALL[name_of(15, ".index")] + bytes(80),
        name_of(15, ".timeindex"): ALL[name_of(15, ".timeindex")] + bytes(120),
    }
    why = "Zeros of a preallocated index are not entries."
    to.truncate("preallocated", why, must("SEG-TRN-003"), 20, zeros, {**segment(FIRST), **_short(SECOND[:1], 20, 15)})
    to.refused("negative", "Truncation to an offset below 0 is refused.", must("SEG-TRN-001"), -1, files)
    to.refused("nothing", "A directory without a log cannot be truncated.", must("SEG-TRN-001"), 0, {"notes.txt": b""})


def _short(units: Sequence[Batch], offset: int, base: int = 0) -> Files:
    """Return a segment of the full log that was cut: its indexes have the entries below the offset."""
    whole = {0: segment(FIRST), 15: segment(SECOND, 15)}[base]
    rows, times = whole[name_of(base, ".index")], whole[name_of(base, ".timeindex")]
    kept = [rows[at : at + 8] for at in range(0, len(rows), 8)]
    kept = [one for one in kept if base + struct.unpack(">ii", one)[0] < offset]
    timed = [times[at : at + 12] for at in range(0, len(times), 12)]
    timed = [one for one in timed if base + struct.unpack(">qi", one)[1] < offset]
    return {
        name_of(base): bytes_of(units),
        name_of(base, ".index"): b"".join(kept),
        name_of(base, ".timeindex"): b"".join(timed),
    }


def _unusual(to: Repairs) -> None:
    """Add what is found once in a thousand directories."""
    high = [*FIRST[:4], replace(FIRST[4], base=2, base_timestamp=5000)]
    short = {name.lstrip("0"): content for name, content in segment(SECOND, 15).items()}
    gone = Batch(base=4, recs=(), last_delta=0, producer_id=9, producer_epoch=2, attributes=CONTROL | TRANSACTIONAL)
    kept = segment([data(0, b"a"), *row(1, base=1), gone, *row(1, base=5)])
    far = [Batch(base=0), Batch(base=2**31 - 1)]
    for name, why, basis, files, remains, end, named in (
        ("order-late-time", "An offset that goes back has the largest timestamp, though no index entry is due: brokers empty the segment.", should("SEG-RCV-023"),
         {name_of(0): bytes_of(high), name_of(0, ".index"): b""}, segment([]), 0,
         {"modes": "b", "plan": {"cuts": [{"baseOffset": "0", "position": 0, "nextOffset": "0", "requirements": ["SEG-RCV-023", "SEG-LOG-006"]}]}, "indexIntervalBytes": 3 * SIZE - 1}),
        ("empty-without-time-index", "An empty log has an offset index, but no time index.", must("SEG-RCV-025"), {name_of(0): b"", name_of(0, ".index"): b""}, segment([]), 0, {}),
        ("names-with-few-digits", "File names have too few digits: recovery renames the files, because a broker would not find such indexes.", must("SEG-PDR-005"),
         {**segment(FIRST), **short}, {**segment(FIRST), **segment(SECOND, 15), **epochs((0, 0))}, 24, {"modes": "t"}),
        ("marker-removed", "Compaction removed the end marker and kept its empty batch: that is valid.", must("SEG-RCV-008"), kept, {**kept, **epochs((0, 0))}, 8,
         {"plan": {"cuts": [], "remarks": [], "differences": []}}),
        ("offsets-as-far-as-they-go", "The segment ends with the greatest offset that its index can contain.", must("SEG-RCV-003", "SEG-LOG-009"), segment(far),
         {**segment(far), **epochs((0, 0))}, 2**31, {"plan": {"cuts": [], "remarks": []}}),
    ):  # fmt: skip
        to.recover(name, why, basis, files, remains, end, **named)
    for name, cut in (("first", 0), ("second", 1)):
        logs_cut = {name_of(0): bytes_of(FIRST), name_of(15): bytes_of(SECOND), name_of(24): bytes_of(THIRD)}
        broken = name_of(0 if cut == 0 else 15)
        logs_cut[broken] = flipped(logs_cut[broken], SIZE + 70)
        left = segment(FIRST[:1]) if cut == 0 else {**segment(FIRST), **segment(SECOND[:1], 15)}
        to.recover(
            f"cut-in-the-{name}",
            "The plan contains the cut, its requirements, and the segments that are dropped after it.",
            must("SEG-RCV-003", "SEG-RCV-004"),
            {**ALL, **logs_cut},
            {**left, **epochs((0, 0))},
            (3, 18)[cut],
            plan={
                "scanned": [["0"], ["0", "15"]][cut],
                "cuts": [
                    {
                        "baseOffset": ("0", "15")[cut],
                        "position": SIZE,
                        "nextOffset": ("3", "18")[cut],
                        "requirements": ["SEG-RCV-003", "SEG-BAT-003"],
                    }
                ],
                "dropped": [["15", "24"], ["24"]][cut],
            },
        )
    point = {**ALL, name_of(15): flipped(ALL[name_of(15)], 70)}
    for name, why, files, remains, end, recovery_point, plan in (
        ("recovery-point-and-an-index-that-is-missing", "A cut below the recovery point, for a missing index, drops no segments; a cut above it does.",
         {name: content for name, content in {**ALL, name_of(0): flipped(ALL[name_of(0)], 70), name_of(15): flipped(ALL[name_of(15)], 70)}.items() if name != name_of(0, ".index")},
         {**segment([]), **segment([], 15)}, 15, "20", {"scanned": ["0", "15"], "dropped": ["24"]}),
        ("recovery-point-above-an-index-that-is-missing", "A segment without an index, below the recovery point, is cut; the segment after it stays.",
         {name: content for name, content in point.items() if name != name_of(15, ".index")}, {**ALL, **segment([], 15), **epochs((0, 24))}, 30, "24",
         {"scanned": ["15", "24"], "dropped": []}),
    ):  # fmt: skip
        to.recover(
            name, why, must("SEG-RCV-004", "SEG-RCV-006"), files, remains, end, recoveryPoint=recovery_point, plan=plan
        )


def _rare(to: Repairs) -> None:
    """Add what only one more batch, or one number less, shows."""
    back = [*FIRST[:3], replace(FIRST[3], base=2), FIRST[4]]
    to.recover(
        "order-kept-one-byte-short",
        "Offsets go back one byte before an index entry is due: brokers do not notice it.",
        should("SEG-RCV-023"),
        {name_of(0): bytes_of(back), name_of(0, ".index"): b""},
        {**segment(back, interval=SIZE), **epochs((0, 0))},
        15,
        modes="b",
        indexIntervalBytes=SIZE,
    )
    looks = replace(data(0, b"a"), recs=(Rec(key=control_key(0), value=marker_value(0)),))
    begun, ended = segment([looks, *row(1, base=1)]), segment([marker("ABORT", 4), *row(1, base=5)], 4)
    index = {name_of(4, ".txnindex"): aborted(9, 0, 4, 5)}
    for name, point, found in (("", None, epochs((0, 0), (3, 4))), ("-not-scanned", "4", epochs((3, 4)))):
        to.recover(
            f"data-that-looks-like-a-marker{name}",
            "A record that looks like an end marker, but is not in a control batch, ends no transaction.",
            must("SEG-RCV-025", "SEG-TXN-001"),
            {**begun, **ended},
            {**begun, **ended, **index, **found},
            8,
            recoveryPoint=point,
            plan={"cuts": [], "dropped": [], "remarks": []},
        )
    two = [data(0, b"a"), marker("ABORT", 1), data(2, b"b", sequence=1)]
    first, second = segment(two), segment([marker("ABORT", 3)], 3)
    grown = [replace(one, leader_epoch=epoch) for one, epoch in zip(FIRST, (0, 2, 2, 5, 6), strict=True)]
    wide = [Batch(base=0), Batch(base=2**31, base_timestamp=2000), Batch(base=2**31 + 5, base_timestamp=3000)]
    parts = {**segment(wide[:1]), **segment(wide[1:], 2**31)}
    clean = must("SEG-RCV-002")
    for name, why, basis, files, left, end, named in (
        ("aborts-of-the-segment-before", "An aborted transaction that ended in an earlier segment is listed there, not again.", must("SEG-RCV-025", "SEG-TXN-001"),
         {**first, **second}, {**first, **second, name_of(3, ".txnindex"): aborted(9, 2, 3, 4), **epochs((3, 3))}, 4, {"recoveryPoint": "3"}),
        ("aborts-of-both-segments", "Each segment lists the aborted transactions that end in it.", must("SEG-RCV-025", "SEG-TXN-001"), {**first, **second},
         {**first, **second, name_of(0, ".txnindex"): aborted(9, 0, 1, 2), name_of(3, ".txnindex"): aborted(9, 2, 3, 4), **epochs((0, 0), (3, 1))}, 4, {}),
        ("epochs-known-begins-later", "The checkpoint has the epoch of a batch already, with a later start offset: it stays unchanged.", must("SEG-RCV-036"),
         {**segment(grown), **epochs((0, 0), (2, 3), (6, 14))}, {**segment(grown), **epochs((0, 0), (2, 3), (6, 14))}, 15, {}),
        ("offsets-too-far-for-an-index", "Offsets are too far from the base offset for an index: the segment is split before them.", should("SEG-RCV-022", "SEG-LOG-009"),
         {name_of(0): bytes_of(wide), name_of(0, ".index"): b"", name_of(0, ".timeindex"): b""}, {**parts, **epochs((0, 0))}, 2**31 + 6, {"modes": "bt"}),
        ("nothing-differs", "Nothing is damaged: the plan lists no difference to brokers.", clean, ALL, {**ALL, **epochs((0, 0))}, 30,
         {"modes": "t", "plan": {"cuts": [], "remarks": [], "differences": []}}),
        ("cut-like-brokers", "Brokers cut and drop the same: the plan lists no difference to them.", must("SEG-RCV-003", "SEG-RCV-004"),
         {**ALL, name_of(15): flipped(ALL[name_of(15)], SIZE + 70)}, {**segment(FIRST), **segment(SECOND[:1], 15), **epochs((0, 0))}, 18,
         {"modes": "t", "plan": {"differences": []}}),
    ):  # fmt: skip
        to.recover(name, why, basis, files, left, end, **named)

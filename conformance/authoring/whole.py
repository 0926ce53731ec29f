"""All that is delivered of a log, and damage on the way (parts of families 19 and 39)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from authoring.batches import MAX_TIMESTAMP, Batch, Rec, with_field
from authoring.casefile import Basis, Json, hexed, lay, must, should
from authoring.control import data, empty, marker
from authoring.messages import Msg
from authoring.primitives import flipped
from authoring.repairs import snapshot
from authoring.segments import ROW, SIZE, aborted, bytes_of, name_of, row

if TYPE_CHECKING:
    from collections.abc import Sequence

    from authoring.casefile import Family, Unit

Files = dict[str, bytes]


def _records(units: Sequence[Unit], offsets: Sequence[int] | range) -> list[Json]:
    found = [record for answer in lay(units)[1] for record in answer["records"]]
    return [record for record in found if int(record["offset"]) in set(offsets)]


def whole(family: Family) -> None:
    """Family 19: reads without an offset, from the log start to the end."""

    def reads(
        name: str,
        why: str,
        basis: Basis,
        files: Files,
        units: Sequence[Unit],
        offsets: Sequence[int] | range,
        end: int | None,
        *,
        tells_end: bool = True,
        **request: Any,  # noqa: ANN401
    ) -> None:
        own = replace(basis, needs=(*basis.needs, "readAll"))
        expect: Json = {"records": _records(units, offsets)}
        if end is None:
            expect["reject"] = {"class": "other"}
        elif tells_end:
            expect["nextOffset"] = str(end)
        body = {"files": hexed(files), **request}
        result = "invalid" if end is None else "valid"
        family.add(f"whole-{name}", "read", result, why, own, request=body, expect=expect)

    second = row(3, base=15)
    both, files = [*ROW, *second], {name_of(0): bytes_of(ROW), name_of(15): bytes_of(second)}
    plain = must("SEG-LKP-007")
    for name, why, terms, given, units, offsets, end in (
        ("log", "A read of the whole log continues from segment to segment to the end.", plain, files, both, range(24), 24),
        ("nothing", "A log without records.", plain, {name_of(40): b""}, [], (), 40),
        ("empty-batch-last", "An empty batch at the end moves the log end offset.", must("SEG-BAT-018"), {name_of(0): bytes_of([*ROW, empty(15, 4)])}, ROW, range(15), 20),
    ):  # fmt: skip
        reads(name, why, terms, given, units, offsets, end)
    hidden = must("SEG-LKP-010", needs=("logStartOffset",))
    for start in (5, 15, 17, 23):
        options = {"options": {"logStartOffset": str(start)}}
        reads(f"from-log-start-{start}", "A read of the whole log begins at the log start offset, also inside a batch.", hidden, files, both, range(start, 24), 24, **options)  # fmt: skip
    reads("log-start-at-the-end", "The log start offset is at the end of the log: all records are hidden.", hidden, files, both, (), 24, options={"logStartOffset": "24"})  # fmt: skip
    log = [data(0, b"a"), marker("ABORT", 1), data(2, b"b", sequence=1), marker("COMMIT", 3), data(4, b"c", sequence=2)]
    committed = {"isolation": "read_committed"}
    reads("committed", "With read_committed, a read leaves out aborted and open transactions.", must("SEG-LKP-011", "SEG-LKP-012"), {name_of(0): bytes_of(log)}, log, (2,), 5, tells_end=False, **committed)  # fmt: skip
    why = "With read_uncommitted, a read delivers all records but the control records."
    reads("uncommitted", why, must("SEG-CTL-009"), {name_of(0): bytes_of(log)}, log, (0, 2, 4), 5)
    verified = ("verifiedRead",)
    for at in (0, 1, 4):
        damaged = {**files, name_of(0): flipped(files[name_of(0)], at * SIZE + 70)}
        basis = must("SEG-BAT-003", "SEG-LKP-014", needs=verified)
        reads(f"damaged-{at}", "A read of the whole log delivers all records before the damage, and then reports the damage.", basis, damaged, both, range(at * 3), None)  # fmt: skip
    low = {name_of(100): bytes_of([Batch(base=100), Batch(base=99, recs=(Rec(), Rec(), Rec()))])}
    reads("below-the-base", "An entry that begins below the base offset in its file name does not belong there: the reader refuses it.", must("SEG-LOG-008", needs=verified), low, [Batch(base=100)], (100,), None)  # fmt: skip
    first = {name_of(100): bytes_of([Batch(base=99, recs=(Rec(), Rec()))])}
    reads("begins-below-the-base", "The first entry begins below the base offset in the file name, and ends above it.", must("SEG-LOG-008", needs=verified), first, [], (), None)  # fmt: skip
    for reach in (15, 16, 30):
        over = [*ROW[:4], replace(ROW[4], recs=(Rec(), Rec(), Rec()), last_delta=reach - 12)]
        lying = {**files, name_of(0): bytes_of(over)}
        reads(f"into-the-next-{reach}", "An entry ends at or above the base offset of the next segment: the two contradict each other.", must("SEG-PDR-013", needs=verified), lying, over, range(12), None)  # fmt: skip
    twice = {name_of(0): bytes_of([*ROW[:3], replace(ROW[3], base=8)])}
    back = [*ROW[:3], replace(ROW[3], base=6)]
    reads("overlapping", "An entry begins at an offset inside the entry before, and ends after it.", should("SEG-LKP-014"), twice, [*ROW[:3], replace(ROW[3], base=8)], range(11), 11)  # fmt: skip
    reads("going-back", "An entry ends no later than the entry before it.", must("SEG-LOG-006", "SEG-LKP-014", needs=verified), {name_of(0): bytes_of(back)}, ROW, range(9), None)  # fmt: skip
    _undecided(family, reads)


def _undecided(family: Family, reads: Any) -> None:  # noqa: ANN401
    """Damage between a transaction and its marker."""
    basis = must("SEG-BAT-003", "SEG-LKP-014", needs=("verifiedRead",))
    committed = {"isolation": "read_committed"}
    bad = flipped(Batch(base=2).encoded(), 65)
    cases: dict[str, tuple[str, list[Unit], list[Unit]]] = {
        "before-the-marker": ("The marker after the damage cannot be trusted to end the transaction that is open before the damage.", [Batch(base=0), data(1, b"a")], [marker("COMMIT", 3)]),
        "open": ("The damaged part may contain the marker that ends the open transaction.", [Batch(base=0), data(1, b"a")], []),
        "plain": ("No transaction is open: read_committed delivers all records before the damage.", [Batch(base=0), Batch(base=1)], [Batch(base=3)]),
    }  # fmt: skip
    for name, (why, before, behind) in cases.items():
        files = {name_of(0): bytes_of([*before, bad, *behind])}
        offsets = (0,) if name != "plain" else (0, 1)
        reads(f"undecided-{name}", why, basis, files, before, offsets, None, **committed)
        at = len(offsets)
        request = {"files": hexed(files), "offset": str(at), **committed}
        expect = {"reject": {"class": "crc"}, "records": []}
        family.add(f"read-undecided-{name}", "read", "invalid", f"{why} A read from there reports the damage.", basis, request=request, expect=expect)  # fmt: skip
    hiding = [data(0, b"a"), Batch(base=1)]
    files = {name_of(0): bytes_of(hiding) + flipped(marker("COMMIT", 2).encoded(), 60)}
    why = "The end marker itself is damaged: the transaction is still undecided."
    reads("damaged-marker", why, basis, files, hiding, (), None, **committed)
    turned = bytes_of([data(0, b"a"), data(1, b"b", sequence=1)]) + bytes_of([marker("COMMIT", 2)])
    size = len(data(0, b"a").encoded())
    files = {name_of(0): flipped(turned, size + 22, 4)}
    why = "A damaged batch looks like data outside of a transaction."
    reads("damaged-attributes", why, basis, files, [], (), None, **committed)


def passed_over(family: Family) -> None:
    """Family 39: damage that a search by time passes, and what stands at the edges of segments."""
    verified = ("verifiedRead",)
    damaged = must("SEG-BAT-003", "SEG-LKP-014", needs=verified)

    def finds(name: str, why: str, basis: Basis, files: Files, expect: Json, **asked: Any) -> None:  # noqa: ANN401
        request = {"files": hexed(files), **asked}
        result = "acceptable" if "allowed" in expect else "invalid" if "reject" in expect else "valid"
        family.add(name, "lookup", result, why, basis, request=request, expect=expect)

    log = bytes_of(ROW)
    refused = {"reject": {"class": "crc"}}
    for at in (0, 1, 2):
        files = {name_of(0): flipped(log, at * SIZE + 70)}
        why = "A search by time passes a damaged batch, which may have contained the record."
        finds(f"time-past-damage-{at}", why, damaged, files, refused, timestamp="1030")
    files = {name_of(0): flipped(log, 4 * SIZE + 70)}
    finds("time-before-damage", "The damage is after the record that the search by time finds.", must("SEG-LKP-008"), files, {"found": {"offset": "9", "timestamp": "1030"}}, timestamp="1030")  # fmt: skip
    finds("time-after-all-with-damage", "No record has so late a timestamp, but a damaged batch may have contained one.", damaged, files, refused, timestamp="9999")  # fmt: skip
    lowered = with_field(ROW[1].encoded(), MAX_TIMESTAMP, 1005, seal=False)
    files = {name_of(0): bytes_of([ROW[0], lowered, *ROW[2:]])}
    finds("time-hidden-by-damage", "The maximum timestamp in a damaged header is too early, so that a search by time would pass the batch.", damaged, files, refused, timestamp="1011")  # fmt: skip
    special = replace(damaged, needs=(*verified, "specialTimestamps"))
    for at in (0, 4):
        files = {name_of(0): flipped(log, at * SIZE + 70)}
        why = "A damaged batch may contain the record with the largest timestamp."
        finds(f"largest-with-damage-{at}", why, special, files, refused, timestamp="-3")
    two = {name_of(0): log, name_of(15): bytes_of(row(3, base=15, start=5000))}
    finds("time-in-the-second-segment", "The first segment has no record with so late a timestamp: the search continues in the second.", must("SEG-LKP-008"), two, {"found": {"offset": "18", "timestamp": "5010"}}, timestamp="5005")  # fmt: skip
    finds("largest-in-the-first-segment", "The record with the largest timestamp is not in the last segment.", must("SEG-LKP-013", since="3.0", needs=("specialTimestamps",)), {name_of(0): log, name_of(15): bytes_of(row(3, base=15, start=10))}, {"found": {"offset": "14", "timestamp": "1042"}}, timestamp="-3")  # fmt: skip
    finds("largest-hidden", "The record with the largest timestamp is below the log start offset and should not be found; brokers find it.", must("SEG-LKP-013", "SEG-LKP-010", since="3.0", flags=("HIDDEN_RECORD",), needs=("specialTimestamps", "logStartOffset")), {name_of(0): bytes_of(row(3, start=1000, step=-100))}, {"allowed": [{"branch": "above", "found": {"offset": "5", "timestamp": "902"}}, {"branch": "like brokers", "found": {"offset": "2", "timestamp": "1002"}}]}, timestamp="-3", options={"logStartOffset": "4"})  # fmt: skip
    finds("largest-of-none", "No record has a timestamp.", must("SEG-LKP-013", since="3.0", needs=("specialTimestamps", "magic:0")), {name_of(0): bytes_of([Msg(magic=0, offset=0)])}, {"found": None}, timestamp="-3")  # fmt: skip
    finds("tiered", "The time -5 asks for the latest tiered offset; this log has no remote segments.", must("SEG-LKP-009", since="3.9", needs=("specialTimestamps", "earliestLocal")), two, {"found": None}, timestamp="-5")  # fmt: skip
    finds("pending-upload", "The time -6 asks for the first offset that is still to be uploaded; this log has no remote segments.", must("SEG-LKP-009", since="4.4", needs=("specialTimestamps", "earliestLocal")), two, {"found": None}, timestamp="-6")  # fmt: skip
    needs = ("specialTimestamps",)
    finds("latest-of-two", "The latest offset is the end of the last segment.", must("SEG-LKP-009", needs=needs), two, {"found": {"offset": "24"}}, timestamp="-1")  # fmt: skip
    finds("latest-of-none", "The latest offset of an empty log is its base offset.", must("SEG-LKP-009", needs=needs), {name_of(77): b""}, {"found": {"offset": "77"}}, timestamp="-1")  # fmt: skip
    low = {name_of(100): bytes_of([Batch(base=100), Batch(base=99, recs=(Rec(), Rec(), Rec()))])}
    finds("entry-below-the-base", "An entry begins below the base offset in its file name.", must("SEG-LOG-008", needs=verified), low, {"reject": {"class": "offset"}}, offset="101")  # fmt: skip
    over = {name_of(0): bytes_of([*ROW[:4], replace(ROW[4], last_delta=3)]), name_of(15): bytes_of(row(3, base=15))}
    finds("entry-into-the-next", "An entry ends at or above the base offset of the next segment.", must("SEG-PDR-013", needs=verified), over, {"reject": {"class": "offset"}}, offset="13")  # fmt: skip


def forged(family: Family) -> None:
    """Family 39: an index that leads into a value which looks like an entry."""
    for name, base, flip in (("checksum", 3, True), ("offset-above", 5, True), ("first-of-the-segment", 0, True)):
        inner = Batch(base=base, recs=tuple(Rec(value=b"forged") for _ in range(8 - base))).encoded()
        lure = flipped(inner, 65) if flip else inner
        host = Batch(base=3, recs=(Rec(), Rec(value=lure), Rec()))
        units = [ROW[0], host, *ROW[2:]]
        log = bytes_of(units)
        entry = (2).to_bytes(4, "big") + log.index(lure).to_bytes(4, "big")
        for offset in (4, 5):
            basis = should("SEG-IDX-009", "SEG-IDX-003", flags=("INDEX_TRUST",), needs=("provesIndexes",))
            request = {"files": hexed({name_of(0): log, name_of(0, ".index"): entry}), "offset": str(offset)}
            why = "The index leads to bytes inside a value that look like an entry; their checksum is wrong."
            family.add(f"index-forged-{name}-{offset}", "lookup", "valid", why, basis, request=request, expect={"found": {"position": SIZE, "baseOffset": "3"}})  # fmt: skip


def listed(family: Family) -> None:
    """Family 39: which aborted transactions a range meets, and which snapshot is taken."""
    source = "facts 4.6"

    def meets(
        name: str, why: str, files: Files, start: int, end: int, found: Sequence[tuple[int, ...]], *, complete: bool
    ) -> None:
        names = ("producerId", "firstOffset", "lastOffset", "lastStableOffset")
        reported = [{key: str(value) for key, value in zip(names, one, strict=True)} for one in found]
        request = {"files": hexed(files), "fromOffset": str(start), "toOffset": str(end)}
        basis = must("SEG-TXN-007", needs=("abortedLookup",), source=source)
        family.add(f"aborted-{name}", "lookup", "valid", why, basis, request=request, expect={"found": {"aborted": reported, "isComplete": complete}})  # fmt: skip

    one, two, three = (7, 0, 3, 2), (8, 2, 6, 5), (9, 5, 9, 10)
    index = b"".join(aborted(*entry) for entry in (one, two, three))
    files = {name_of(0): bytes_of(ROW), name_of(0, ".txnindex"): index}
    for start, end, found, complete in (
        (0, 1, (one,), True),
        (0, 2, (one,), True),
        (0, 3, (one, two), True),
        (3, 4, (one, two), True),
        (4, 5, (two,), True),
        (4, 6, (two, three), True),
        (6, 7, (two, three), True),
        (7, 8, (three,), True),
        (0, 10, (one, two, three), True),
        (0, 11, (one, two, three), False),
        (10, 12, (), False),
        (9, 10, (three,), True),
    ):
        why = (
            "A range includes aborted transactions that end at its start or later and begin below its end; an "
            "entry whose last stable offset reaches the end completes the search."
        )
        meets(f"{start}-to-{end}", why, files, start, end, found, complete=complete)
    later = [*row(3, base=15)]
    late = (4, 12, 20, 21)
    both = {**files, name_of(15): bytes_of(later), name_of(15, ".txnindex"): aborted(*late)}
    for name, reason, given, start, end, found, complete in (
        ("goes-on", "The index of the first segment does not complete the search: it continues in the next one.", both, 8, 14, (three, late), True),
        ("second-segment", "The search begins in the segment that contains the start of the range.", both, 15, 17, (late,), True),
        ("beyond-the-second", "No index entry shows that there are no more aborted transactions: the search is not complete.", both, 16, 24, (late,), False),
        ("no-index", "A segment without an index of aborted transactions has none.", {name_of(0): bytes_of(ROW)}, 0, 15, (), False),
    ):  # fmt: skip
        meets(name, reason, given, start, end, found, complete=complete)
    _newest(family)


def _newest(family: Family) -> None:
    log = {name_of(0): bytes_of(ROW), name_of(15): bytes_of(row(3, base=15))}
    good, other = snapshot((9, -1)), snapshot((7, -1), (8, 3))
    broken = {"checksum": good[:-1] + b"\1", "cut": good[:-4], "nothing": b"", "version": b"\0\2" + good[2:]}

    def newest(name: str, why: str, files: Files, found: Json | None) -> None:
        basis = must("SEG-PSN-005", needs=("newestSnapshot",), source="facts 4.5")
        request = {"files": hexed({**log, **files}), "newest": "snapshot"}
        family.add(f"snapshot-{name}", "lookup", "valid", why, basis, request=request, expect={"found": found})

    both = {name_of(15, ".snapshot"): good, name_of(24, ".snapshot"): other}
    why = "The newest snapshot is the one with the greatest offset."
    newest("newest", why, both, {"baseOffset": "24", "producers": ["7", "8"]})
    newest("none", "The log has no producer snapshot.", {}, None)
    for name, content in broken.items():
        older = {"baseOffset": "15", "producers": ["9"]}
        newest(f"passed-over-{name}", "The newest snapshot cannot be read: the one before it is used.", {**both, name_of(24, ".snapshot"): content}, older)  # fmt: skip
    newest("all-broken", "None of the snapshots can be read.", {name_of(24, ".snapshot"): broken["cut"], name_of(15, ".snapshot"): b"x"}, None)  # fmt: skip

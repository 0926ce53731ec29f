"""Logs that nobody has open, and a pass of compaction: scenarios that Kafka's cleaner plays, too."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from authoring.batches import CONTROL, DELETE_HORIZON, LOG_APPEND_TIME, TRANSACTIONAL, Batch, Rec
from authoring.casefile import hexed, must, should
from authoring.codecs import gzip, lz4_frame, xerial, zstd
from authoring.control import LEADER_CHANGE, control_record, empty, marker
from authoring.messages import Msg, Wrapper
from authoring.repairs import snapshot
from authoring.scenarios import NOW, SMALL, Scenario, keyed
from authoring.segments import aborted, bytes_of, name_of, offset_index, row, time_index

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from authoring.casefile import Basis, Unit

INT32_MAX: Final = 2**31 - 1
EMPTY_SNAPSHOT: Final = bytes.fromhex("000148674bc700000000")
SETTINGS: Final = {**SMALL, "cleanup.policy": "compact", "delete.retention.ms": "5000"}


@dataclass(frozen=True)
class Log:
    """Segments of a log, each a row of entries, and when they were written."""

    segments: Sequence[tuple[int, Sequence[Unit]]]
    modified: Sequence[int] = ()
    more: tuple[tuple[str, bytes], ...] = ()

    def files(self) -> dict[str, bytes]:
        """Every segment with its indexes."""
        found = dict(self.more)
        for base, units in self.segments:
            found[name_of(base)] = bytes_of(units)
            found[name_of(base, ".index")] = offset_index(units, 100, base)
            found[name_of(base, ".timeindex")] = time_index(units, 100, base)
        return found

    def times(self) -> dict[str, str]:
        """Return when each log was written."""
        times = self.modified or [NOW + 1000 * at for at in range(len(self.segments))]
        return {name_of(base): str(at) for (base, _), at in zip(self.segments, times, strict=True)}


def part(base: int, key: str, sequence: int = 0) -> Batch:
    """Return a batch of a transaction."""
    producer = {"producer_id": 9, "producer_epoch": 2, "base_sequence": sequence}
    return replace(keyed(base, key, **producer), attributes=TRANSACTIONAL)


def ended(kind: str, base: int, producer_epoch: int = 2) -> Batch:
    """Its end."""
    return marker(kind, base, at=NOW, producer_epoch=producer_epoch)


ABC: Final = (0, [keyed(0, "a", "b", "c"), keyed(3, "a", "d")])
LATER: Final = (10, [keyed(10, "b", "e"), keyed(12, "e", "a")])
LAST: Final = keyed(1000, "z", start=NOW)


def scenario(
    name: str,
    why: str,
    basis: Basis,
    *segments: tuple[int, Sequence[Unit]],
    now: int = NOW + 100_000,
    modified: Sequence[int] = (),
    more: tuple[tuple[str, bytes], ...] = (),
    config: dict[str, str] | None = None,
    active: tuple[int, Sequence[Unit]] = (1000, (LAST,)),
    over: tuple[tuple[str, bytes | None], ...] = (),
    **options: str | int,
) -> Scenario:
    """Return a pass over some segments and an active one."""
    log = Log([*segments, active], modified, more)
    request = {
        "files": hexed(log.files()),
        "config": {**SETTINGS, **(config or {})},
        "now": str(now),
        "options": {"modified": log.times(), **options},
    }
    return Scenario(f"compact-{name}", "compact", why, basis, request, over)


def compact_scenarios() -> Iterator[Scenario]:
    """Yield logs that nobody has open, and a pass of compaction."""
    yield from _records()
    yield from _tombstones()
    yield from _messages()
    yield from _transactions()
    yield from _producers()
    yield from _reach()
    yield from _groups()
    yield from _dirty_edges()
    yield from _emptied_edges()
    yield from _group_edges()
    yield from _rewritten()
    yield from _where_it_stops()
    yield from _kept_markers()


def _records() -> Iterator[Scenario]:
    """Which records stay, and what becomes of their batches."""
    which = must("SEG-CMP-008", "SEG-CMP-018", "SEG-CMP-019")
    yield scenario("newest", "Compaction keeps the newest record of each key.", which, ABC, LATER)
    yield scenario("active-does-not-count", "Compaction ignores the records of the active segment.", must("SEG-CMP-002", "SEG-CMP-008"), ABC, LATER, active=(1000, [keyed(1000, "a", "b", "c")]))  # fmt: skip
    yield scenario("same-key-in-a-batch", "Compaction keeps only the newest record of a key also within a batch.", which, (0, [keyed(0, "a", "a", "b", "a")]))  # fmt: skip
    yield scenario("no-key", "Compaction removes records without a key.", must("SEG-CMP-009"), (0, [keyed(0, "a", "-", "b"), keyed(3, "-")]))  # fmt: skip
    yield scenario("untouched", "A batch that keeps all its records is copied unchanged, also its unknown attribute bits.", must("SEG-CMP-017"), (0, [replace(keyed(0, "a", "b"), attributes=0x80), keyed(2, "c")]))  # fmt: skip
    for codec, compress in (("gzip", gzip), ("snappy", xerial)):
        whole = replace(keyed(0, "a", "b"), attributes=0x80, codec=codec, compress=compress)
        why = "A compressed batch that keeps all its records is copied unchanged, also its unknown attribute bits."
        config = {"index.interval.bytes": "4096"}
        yield scenario(f"untouched-{codec}", why, must("SEG-CMP-017"), (0, [whole, keyed(2, "c")]), config=config)
    yield scenario(
        "bits-are-cleared",
        "Attribute bits without a meaning are cleared if a batch is rewritten.",
        must("SEG-CMP-018"),
        (0, [replace(keyed(0, "a", "b"), attributes=0x180), keyed(2, "a")]),
    )
    yield scenario(
        "log-append-time",
        "With LogAppendTime, a rewritten batch keeps the broker's timestamp.",
        must("SEG-CMP-019"),
        (0, [replace(keyed(0, "a", "b", "c"), attributes=LOG_APPEND_TIME, max_timestamp=NOW + 77), keyed(3, "c")]),
    )
    yield scenario("times", "The base and maximum timestamps of a rewritten batch are those of its remaining records.", must("SEG-CMP-019"), (0, [keyed(0, "a", "b", "c"), keyed(3, "a", start=NOW + 50), keyed(4, "c", start=NOW - 50)]))  # fmt: skip
    headers = Batch(recs=(Rec(key=b"a", headers=((b"h", b"1"), (b"h", None))), Rec(key=b"b")), base_timestamp=NOW)
    yield scenario("headers", "Remaining records keep their headers.", which, (0, [headers, keyed(2, "b")]))


def _tombstones() -> Iterator[Scenario]:
    """Tombstones, and what they wait for."""
    tombs = must("SEG-CMP-010", "SEG-CMP-011", since="3.1")
    yield scenario("tombstone-waits", "Compaction keeps a tombstone and gives its batch a delete horizon.", tombs, (0, [keyed(0, "a"), keyed(1, "a-", "b")]))  # fmt: skip
    for codec, compress in (("gzip", gzip), ("snappy", xerial)):
        yield scenario(
            f"tombstone-waits-{codec}",
            "Compaction keeps a tombstone and gives its batch a delete horizon, also a compressed one.",
            tombs,
            (0, [replace(keyed(0, "a-", "b"), codec=codec, compress=compress), keyed(2, "c")]),
            batches=True,
        )
    yield scenario("tombstone-replaced", "Compaction removes a tombstone if a newer record has its key.", tombs, (0, [keyed(0, "a-", "b"), keyed(2, "a")]))  # fmt: skip
    for name, horizon in (("passed", NOW + 99_999), ("reached", NOW + 100_000), ("ahead", NOW + 100_001)):
        waiting = Batch(
            attributes=DELETE_HORIZON,
            base_timestamp=horizon,
            max_timestamp=NOW + 1,
            recs=(Rec(key=b"a", value=None, time=NOW - horizon), Rec(key=b"b", time=NOW + 1 - horizon)),
        )
        yield scenario(f"horizon-{name}", "Compaction removes a tombstone when the clock has reached its delete horizon.", tombs, (0, [waiting]))  # fmt: skip
        yield scenario(f"horizon-{name}-partly", "Other records in the batch do not change the delete horizon of a tombstone.", tombs, (0, [waiting, keyed(2, "b")]))  # fmt: skip


def _messages() -> Iterator[Scenario]:
    """Messages of magic 0 and 1."""
    old = must("SEG-CMP-020", since="4.0")
    plain = [
        Msg(offset=at, magic=1, timestamp=NOW + at, key=key, value=b"v%d" % at)
        for at, key in enumerate((b"a", b"b", b"a"))
    ]
    yield scenario("messages", "Remaining messages of magic 0 and 1 are converted to batches.", old, (0, [*plain, keyed(3, "c")]))  # fmt: skip
    zeros = [Msg(offset=at, magic=0, key=key, value=b"v%d" % at) for at, key in enumerate((b"a", b"b", b"a"))]
    yield scenario("messages-without-time", "Converted messages of magic 0 have no timestamp.", old, (0, [*zeros, keyed(3, "c")]))  # fmt: skip
    yield scenario("messages-tombstones", "Tombstones in messages stay while no part of the log is clean.", must("SEG-CMP-012"), (0, [Msg(offset=0, magic=1, timestamp=NOW, key=b"a", value=None), keyed(1, "b")]))  # fmt: skip
    tomb = [Msg(offset=10, magic=1, timestamp=NOW, key=b"x", value=None), keyed(11, "b")]
    for name, at in (("older", 4999), ("exactly", 5000), ("younger", 5001)):
        yield _in_the_clean_part(name, at, tomb)
    wrapped = Wrapper(inner=(replace(tomb[0], offset=0),), offset=10, codec="gzip", compress=gzip)
    empty_value = replace(tomb[0], value=b"")
    for name, one in (("magic-0", replace(tomb[0], magic=0)), ("wrapper", wrapped), ("empty-value", empty_value)):
        yield _in_the_clean_part(f"{name}-exactly", 5000, [one, keyed(11, "b")])
    inner = [Msg(offset=at, timestamp=NOW + at, key=key, value=b"v") for at, key in enumerate((b"a", b"b", b"c", b"a"))]
    for codec, compress in (("gzip", gzip), ("snappy", xerial)):
        wrapper = Wrapper(inner=tuple(inner), codec=codec, compress=compress, offset=3)
        yield scenario(
            f"wrapper-{codec}",
            "The remaining messages of a wrapper become one batch with its codec, which ends at the last of them.",
            old,
            (0, [wrapper, keyed(4, "a", "q")]),
            batches=True,
        )
        yield scenario(
            f"batch-{codec}",
            "A rewritten batch keeps its codec.",
            must("SEG-CMP-018"),
            (0, [replace(keyed(0, "a", "b", "c"), codec=codec, compress=compress), keyed(3, "a")]),
            batches=True,
        )


def _in_the_clean_part(name: str, at: int, entries: Sequence[Unit]) -> Scenario:
    """Return a tombstone of a message in a segment that was written at a time, two segments before the clean end."""
    why = "A tombstone in a message is removed if its segment is old enough, relative to the last clean segment."
    segments = (0, [keyed(0, "a")]), (10, entries), (20, [keyed(20, "q")]), (30, [keyed(30, "r")])
    modified = [NOW, NOW + at, NOW + 10_000, NOW + 20_000, NOW + 30_000]
    return scenario(f"old-tombstone-{name}", why, must("SEG-CMP-012"), *segments, modified=modified, cleanerOffset="30")


def _transactions() -> Iterator[Scenario]:
    """Transactions and their ends."""
    control = must("SEG-CMP-013", "SEG-CMP-014", since="3.1")
    listed = ((name_of(0, ".txnindex"), aborted(9, 0, 4, 4)),)
    undone = [part(0, "a"), keyed(1, "a"), part(2, "b", 1), keyed(3, "b"), ended("ABORT", 4)]
    done = [part(0, "a"), keyed(1, "c"), ended("COMMIT", 2), keyed(3, "a")]
    yield scenario("aborted", "Compaction removes aborted records; they do not replace older records of their keys.", control, (0, undone), more=listed)  # fmt: skip
    yield scenario("aborted-newer", "An aborted record does not replace an older record of its key.", control, (0, [keyed(0, "a"), part(1, "a"), ended("ABORT", 2)]), more=((name_of(0, ".txnindex"), aborted(9, 1, 2, 2)),))  # fmt: skip
    yield scenario("committed", "Compaction treats committed records like others.", control, (0, done))
    yield scenario("marker-alone", "An end marker without remaining records gets a delete horizon.", control, (0, [keyed(0, "a"), ended("COMMIT", 1), keyed(2, "b")]))  # fmt: skip
    for name, horizon in (("reached", NOW + 100_000), ("ahead", NOW + 100_001)):
        kept = ended("COMMIT", 1)
        waiting = replace(
            kept,
            attributes=CONTROL | TRANSACTIONAL | DELETE_HORIZON,
            base_timestamp=horizon,
            max_timestamp=NOW,
            recs=tuple(replace(rec, time=NOW - horizon) for rec in kept.recs),
        )
        yield scenario(
            f"marker-horizon-{name}",
            "Compaction removes an end marker when the clock has reached its delete horizon.",
            must("SEG-CMP-014", "SEG-CMP-026", since="3.1"),
            (0, [keyed(0, "a"), waiting, keyed(2, "b")]),
        )
    yield scenario(
        "marker-in-another-segment",
        "An aborted transaction is listed with the segment of its marker, as it was before.",
        must("SEG-CMP-021"),
        (0, [part(0, "a"), keyed(1, "q")]),
        (10, [keyed(10, "c"), ended("ABORT", 11), keyed(12, "d")]),
        more=((name_of(10, ".txnindex"), aborted(9, 0, 11, 11)),),
        config={"segment.bytes": "150"},
    )
    yield scenario(
        "open-transaction",
        "Compaction does not touch the segment in which an open transaction begins, nor later ones.",
        must("SEG-CMP-003"),
        (0, [keyed(0, "a", "b")]),
        (10, [keyed(10, "a"), part(11, "x")]),
        (20, [keyed(20, "b")]),
    )
    yield scenario(
        "marker-of-a-longer-transaction",
        "The index entry of an aborted transaction stays unchanged, although its first batches were removed.",
        must("SEG-CMP-021"),
        (0, [keyed(0, "a"), part(2, "b", 1), keyed(3, "q"), ended("ABORT", 4)]),
        over=((name_of(0, ".txnindex"), aborted(9, 1, 4, 4)),),
    )
    change = Batch(base=1, recs=(control_record(2, LEADER_CHANGE),), attributes=CONTROL, base_timestamp=NOW)
    yield scenario("other-control-records", "Compaction keeps control records that end no transaction.", must("SEG-CMP-014"), (0, [keyed(0, "a"), change, keyed(2, "a")]))  # fmt: skip


def _producers() -> Iterator[Scenario]:
    """Yield what a producer rests on."""
    rests = must("SEG-CMP-015")
    idem = {"producer_id": 9, "producer_epoch": 0}
    yield scenario("producer-last-batch", "The last batch of a producer stays as an empty batch.", rests, (0, [keyed(0, "a", base_sequence=0, **idem), keyed(1, "a", base_sequence=1, **idem), keyed(2, "a")]))  # fmt: skip
    yield scenario("producer-older-batch", "A batch before the last one of its producer is removed if it has no records left.", rests, (0, [keyed(0, "a", base_sequence=0, **idem), keyed(1, "b", base_sequence=1, **idem), keyed(2, "a")]))  # fmt: skip
    yield scenario("producer-forgotten", "A producer without a batch for more than a day does not keep its last batch.", rests, (0, [keyed(0, "a", base_sequence=0, **idem), keyed(1, "a")]), now=NOW + 86_400_000 + 100_000)  # fmt: skip
    yield scenario("producer-on-the-edge", "The last batch of the producer is exactly a day old.", rests, (0, [keyed(0, "a", base_sequence=0, **idem), keyed(1, "a")]), now=NOW + 86_400_000)  # fmt: skip
    for age in (86_399_999, 86_400_000):
        state = snapshot((9, -1), last_offset=0, time=NOW)
        yield scenario(f"producer-of-a-snapshot-{age}", "The last batch of the producer is a day old, or a millisecond less, and a snapshot says so.", rests, (0, [keyed(0, "a", base_sequence=0, **idem), keyed(1, "a")]), now=NOW + age, over=((name_of(1001, ".snapshot"), state),))  # fmt: skip
    bumped = [part(0, "a"), ended("COMMIT", 1), ended("COMMIT", 2, producer_epoch=3), keyed(3, "a")]
    yield scenario("producer-marker", "A producer with only end markers in its epoch keeps them.", rests, (0, bumped), config={"delete.retention.ms": "0"})  # fmt: skip


def _reach() -> Iterator[Scenario]:
    """Yield how far a pass goes."""
    ends = must("SEG-CMP-016", since="4.0")
    yield scenario("end-kept", "An emptied batch that is not the end of the dirty part is removed.", ends, (0, [keyed(0, "a"), keyed(1, "-")]))  # fmt: skip
    emptied = (0, [keyed(0, "a"), keyed(999, "-")])
    yield scenario("end-of-all", "An emptied batch at the end of the log, at the high watermark.", ends, emptied, active=(1000, ()))  # fmt: skip
    yield scenario("end-before-the-active", "An emptied batch before the active segment.", ends, emptied)
    yield scenario("end-of-a-segment", "An emptied batch at the end of a segment, but not of the dirty part.", ends, (0, [keyed(0, "a"), keyed(1, "-")]), LATER)  # fmt: skip
    few = must("SEG-CMP-007", "SEG-CMP-028")
    for keys in (2, 3, 4):
        yield scenario(f"keys-{keys}", "The cleaner can remember only this number of keys in one pass.", few, ABC, LATER, (20, [keyed(20, "f", "a")]), mostKeys=keys)  # fmt: skip
    start = must("SEG-CMP-001")
    for name, offset in (
        ("0", 0),
        ("inside", 4),
        ("second", 10),
        ("gap", 7),
        ("active", 1000),
        ("end", 1001),
        ("above", 2000),
    ):
        yield scenario(f"cleaner-offset-{name}", "The dirty part begins at the cleaner offset.", start, ABC, LATER, cleanerOffset=str(offset))  # fmt: skip
    lag = must("SEG-CMP-004")
    for name, ms in (("young", 100_000 + 1), ("exactly", 100_000), ("old", 99_997)):
        yield scenario(f"lag-{name}", "Segments with records newer than `min.compaction.lag.ms` stay.", lag, ABC, LATER, config={"min.compaction.lag.ms": str(ms)})  # fmt: skip
    yield scenario("high-watermark", "Compaction does not touch segments at or above the high watermark.", must("SEG-CMP-003"), ABC, LATER, highWatermark="10")  # fmt: skip
    yield scenario("high-watermark-inside", "Compaction does not touch the segment that contains the high watermark, nor later ones.", must("SEG-CMP-003"), ABC, LATER, highWatermark="11")  # fmt: skip


def _groups() -> Iterator[Scenario]:
    """Which segments become one."""
    group = must("SEG-CMP-006", "SEG-CMP-022", "SEG-CMP-024")
    three = [(base, [keyed(base, f"k{base}")]) for base in (0, 10, 20)]
    one = len(bytes_of(three[0][1]))
    snapshots = tuple((name_of(base, ".snapshot"), EMPTY_SNAPSHOT) for base in (10, 20, 1000))
    for name, size in (("two", 2 * one), ("one", 2 * one - 1), ("three", 3 * one)):
        yield scenario(f"group-{name}", "Neighbouring segments are merged while they fit in one.", group, *three, config={"segment.bytes": str(size)}, more=snapshots)  # fmt: skip
    indexed = [(base, row(4, 1, base=base, start=NOW + base)) for base in (0, 10, 20)]
    for name, size in (("fits", 64), ("too-small", 40)):
        yield scenario(f"group-index-{name}", "Neighbouring segments are merged while their indexes fit in one.", group, *indexed, config={"segment.index.bytes": str(size)})  # fmt: skip
    yield scenario("group-empty", "An empty segment is merged with its neighbours.", group, (0, [keyed(0, "a")]), (10, []), (20, [keyed(20, "b")]), more=snapshots)  # fmt: skip
    top = 5 + INT32_MAX
    still = [(base, row(4, 1, base=base, start=NOW, step=0)) for base in (0, 10, 20)]
    for name, size in (("fits", 48), ("too-small", 47)):
        why = "Both indexes have to fit; without new timestamps, the time index is nearly empty."
        config = {"segment.index.bytes": str(size), "index.interval.bytes": "0"}
        yield scenario(f"group-still-{name}", why, group, *still, config=config)
    yield scenario(
        "group-span",
        "Segments are merged only if their offsets fit in one index.",
        group,
        *((base, [keyed(base, "k")]) for base in (0, top - 5, top + 10)),
        active=(top + 20, [keyed(top + 20, "z")]),
    )
    yield scenario("empty-batches", "Compaction removes empty batches without a producer id.", should("SEG-CMP-015"), (0, [keyed(0, "a"), empty(1, 3), keyed(5, "b")]))  # fmt: skip
    yield scenario("all-gone", "Compaction leaves no record of a segment.", group, (0, [keyed(0, "a"), keyed(1, "b")]), (10, [keyed(10, "a", "b")]), config={"segment.bytes": "150"})  # fmt: skip


def _dirty_edges() -> Iterator[Scenario]:
    """Yield where the dirty part begins and ends, shown by what is left: not everybody reports a plan."""
    start = must("SEG-CMP-001")
    later = (10, [keyed(10, "a", "a"), keyed(12, "b")]), (20, [keyed(20, "b")])
    for offset in (0, 9):
        why = "The cleaner offset is below the first segment: the dirty part begins at the log start offset."
        yield scenario(f"cleaner-offset-below-{offset}", why, start, *later, cleanerOffset=str(offset))
    for offset in (0, 10):
        why = "The cleaner offset is below the log start offset: the dirty part begins at the log start offset."
        options = {"cleanerOffset": str(offset), "logStartOffset": "12"}
        epochs = (("leader-epoch-checkpoint", b"0\n1\n0 12\n"),)
        yield scenario(f"cleaner-offset-{offset}-below-the-log-start", why, start, *later, over=epochs, **options)
    lag = must("SEG-CMP-004")
    aged = [(base, [keyed(base, "a", start=NOW)]) for base in (0, 10, 20)]
    for ms in (99_999, 100_000, 100_001):
        why = "The largest timestamp of a segment may be as old as `min.compaction.lag.ms`, to the millisecond."
        yield scenario(f"lag-of-{ms}", why, lag, *aged, config={"min.compaction.lag.ms": str(ms)})
    untimed = [(base, [keyed(base, "a", start=-1)]) for base in (0, 10, 20)]
    for name, at in (("old", 0), ("young", 60_000)):
        yield scenario(
            f"lag-without-timestamps-{name}",
            "A segment without timestamps is as old as its file.",
            lag,
            *untimed,
            modified=[NOW, NOW + at, NOW + at, NOW + at],
            config={"min.compaction.lag.ms": "50000"},
        )
    for name, keys in (("one", ("a",)), ("more", ("a", "b", "c"))):
        yield scenario(
            f"lag-of-the-clean-part-{name}",
            "A segment of the clean part is younger than `min.compaction.lag.ms`: only dirty ones count.",
            lag,
            (0, [keyed(0, *keys, start=NOW + 90_000)]),
            (10, [keyed(10, "b", "b")]),
            (20, [keyed(20, "b")]),
            config={"min.compaction.lag.ms": "50000"},
            cleanerOffset="10",
        )
    clean = must("SEG-CMP-008", "SEG-CMP-001")
    twice = (0, [keyed(0, "a", "a", "b"), keyed(3, "d", "d", "e")])
    for name, offset in (("segment", 10), ("batch", 3), ("record", 2), ("last-record", 5)):
        yield scenario(
            f"keys-of-the-clean-part-{name}",
            "Only keys of the dirty part count: a record of the clean part stays though a clean one after it has its key.",
            clean,
            twice,
            (10, [keyed(10, "c", "b")]),
            cleanerOffset=str(offset),
        )
    for kind in ("COMMIT", "ABORT"):
        yield scenario(
            f"{kind.lower()}-in-the-active",
            "A transaction that ends in the active segment is not open: what it left below is compacted.",
            must("SEG-CMP-003", "SEG-CMP-013"),
            (0, [keyed(0, "a"), part(1, "b"), keyed(2, "a")]),
            active=(1000, (ended(kind, 1000), keyed(1001, "b"))),
        )
    yield scenario(
        "open-in-the-active",
        "A transaction that begins in the active segment keeps nothing below it.",
        must("SEG-CMP-003"),
        (0, [keyed(0, "a", "b"), keyed(2, "a")]),
        active=(1000, (keyed(1000, "b"), part(1001, "x"))),
    )


def _emptied_edges() -> Iterator[Scenario]:
    """Yield what an emptied batch keeps of its header, and what a converted message does."""
    rests = must("SEG-CMP-029", "SEG-CMP-015")
    idem = {"producer_id": 9, "producer_epoch": 0, "base_sequence": 0}
    packed = replace(keyed(0, "a", "a", **idem), codec="gzip", compress=gzip)
    stamped = replace(keyed(0, "a", **idem), attributes=LOG_APPEND_TIME, max_timestamp=NOW + 77)
    for name, one in (
        ("gzip", packed),
        ("stamped", stamped),
        ("snappy-stamped", replace(stamped, codec="snappy", compress=xerial)),
        ("unknown-bits", replace(keyed(0, "a", **idem), attributes=0x180)),
    ):
        why = "An emptied batch names no codec and keeps the origin of its timestamps."
        yield scenario(f"emptied-{name}", why, rests, (0, [one, keyed(2, "a")]))
    markers = must("SEG-CMP-027")
    for name, epochs in (("older", (2, 3)), ("oldest", (1, 2, 3)), ("same", (3, 3))):
        yield scenario(
            f"marker-of-the-{name}-epoch",
            "A producer has only markers: those of its present epoch stay, without their record once that has expired.",
            markers,
            (0, [keyed(0, "a"), *(_expired(at, epoch) for at, epoch in enumerate(epochs, 1)), keyed(9, "b")]),
        )
    for name, after in (("alone", ()), ("then-another", (part(3, "c", 1), ended("COMMIT", 4, 3)))):
        yield scenario(
            f"marker-of-a-later-epoch-{name}",
            "A marker ends the transaction of its producer id, also under a later epoch.",
            must("SEG-CMP-014"),
            (0, [part(0, "a"), ended("COMMIT", 1, 3), keyed(2, "b"), *after]),
        )
    old = must("SEG-CMP-020", since="4.0")
    inner = [Msg(offset=at, timestamp=NOW + at, key=key, value=b"v") for at, key in enumerate((b"a", b"b", b"c"))]
    for name, one in (
        ("plain", Msg(offset=2, timestamp=NOW + 5, attributes=LOG_APPEND_TIME, key=b"b")),
        (
            "wrapper",
            Wrapper(
                inner=tuple(inner),
                offset=2,
                timestamp=NOW + 50,
                attributes=LOG_APPEND_TIME,
                codec="gzip",
                compress=gzip,
            ),
        ),
    ):
        yield scenario(f"messages-stamped-{name}", "Converted messages keep the timestamp of a broker, and that it is one.", old, (0, [one, keyed(3, "a", "q")]), batches=True)  # fmt: skip


def _expired(base: int, producer_epoch: int = 2, kind: str = "COMMIT") -> Batch:
    """Return an end marker whose delete horizon the clock has reached."""
    kept, horizon = ended(kind, base, producer_epoch), NOW + 100_000
    recs = tuple(replace(rec, time=NOW - horizon) for rec in kept.recs)
    return replace(
        kept, attributes=CONTROL | TRANSACTIONAL | DELETE_HORIZON, base_timestamp=horizon, max_timestamp=NOW, recs=recs
    )


def _group_edges() -> Iterator[Scenario]:
    """Yield segments of the same size, and empty ones beyond the span of an index."""
    group = must("SEG-CMP-006")
    same = [(base, [keyed(base, key)]) for base, key in ((0, "k"), (10, "l"), (20, "m"), (30, "n"))]
    one = len(bytes_of(same[0][1]))
    for name, size in (("exactly", 2 * one), ("below", 2 * one - 1), ("three", 3 * one)):
        why = "The logs of a group may have `segment.bytes` together, and not one byte more."
        yield scenario(f"group-of-equals-{name}", why, group, *same, config={"segment.bytes": str(size)})
    for name, base, above in (("next", 5, INT32_MAX + 20), ("far", INT32_MAX + 10, INT32_MAX + 30)):
        yield scenario(
            f"group-empty-{name}",
            "An empty segment has no offsets that could be too far from the first one of its group.",
            group,
            (0, [keyed(0, "k")]),
            (base, []),
            active=(above, [keyed(above, "z")]),
        )


def _rewritten() -> Iterator[Scenario]:
    """Yield batches of each codec that lose a record, that get a delete horizon, and that have reached theirs."""
    headers = ((b"h", None), (b"", b""), (b"h", b"1"), (b"n", None))
    kept = (
        Rec(key=b"b", headers=headers),
        Rec(key=b"c", value=b"", delta=40_000, time=2**33),
        Rec(key=b"", delta=70_000),
    )
    which, tombs = must("SEG-CMP-018", "SEG-CMP-019"), must("SEG-CMP-011", "SEG-CMP-018", since="3.1")
    horizon = NOW + 100_000
    config = {"index.interval.bytes": "4096"}
    for codec, compress in {"none": None, "gzip": gzip, "snappy": xerial, "lz4": lz4_frame, "zstd": zstd}.items():
        whole = Batch(recs=(Rec(key=b"a"), *kept), base_timestamp=NOW, codec=codec, compress=compress)
        waiting = replace(whole, recs=(Rec(key=b"a", value=None), *kept))
        reached = replace(waiting, attributes=DELETE_HORIZON, base_timestamp=horizon)
        for name, basis, one, rest in (
            ("rewritten", which, whole, keyed(80_000, "a")),
            ("waits", tombs, waiting, keyed(80_000, "d")),
            ("reached", tombs, reached, keyed(80_000, "d")),
        ):
            yield scenario(
                f"numbers-{name}-{codec}",
                "A batch that is written anew keeps its codec, and each number, header and empty value of what stays.",
                basis,
                (0, [one, rest]),
                active=(100_000, (keyed(100_000, "z"),)),
                config=config,
                batches=True,
            )


def _where_it_stops() -> Iterator[Scenario]:
    """Yield what stands exactly where the map of keys is full, and where the dirty part begins inside of a batch."""
    few = must("SEG-CMP-007", "SEG-CMP-028")
    why = "The map of keys is full: the record at the offset where the pass stops stays, whatever it is."
    goes = "A batch that loses all records is removed, also where the pass stops: only the end of the dirty part stays."
    horizon = NOW + 100_000
    dead = (Rec(key=b"c", value=None, time=NOW - horizon), Rec(key=b"a", time=NOW - horizon))
    tomb = Batch(base=2, attributes=DELETE_HORIZON, base_timestamp=horizon, max_timestamp=NOW, recs=dead)
    for name, text, most, *log in (
        ("no-key", why, 2, keyed(0, "a", "b"), keyed(2, "-", "c", "a")),
        ("no-key-alone", why, 1, keyed(0, "a"), keyed(1, "-", "c"), keyed(3, "a")),
        ("no-keys", why, 2, keyed(0, "a", "b", "-", "-", "c"), keyed(5, "a", "-")),
        ("tombstone", why, 2, keyed(0, "a", "b"), tomb),
        ("emptied", goes, 2, keyed(0, "a", "b"), keyed(2, "-"), keyed(3, "c", "a")),
        ("emptied-of-two", goes, 1, keyed(0, "a"), keyed(1, "-", "-"), keyed(3, "b", "a")),
    ):
        assert isinstance(most, int)
        yield scenario(f"stops-at-{name}", text, few, (0, log), (10, [keyed(10, "b")]), mostKeys=most)
    clean = must("SEG-CMP-008", "SEG-CMP-001", since="3.1")
    why = "The dirty part begins inside of a batch: the records from there on replace older ones."
    for offset in (2, 3, 4):
        log = [keyed(0, "a", "b"), keyed(2, "a", "b", "c"), keyed(5, "d")]
        yield scenario(f"dirty-from-{offset}-of-a-batch", why, clean, (0, log), cleanerOffset=str(offset))


def _kept_markers() -> Iterator[Scenario]:
    """Yield end markers with and without a batch of their transaction: the first, or a later one of the producer."""
    control = must("SEG-CMP-014", "SEG-CMP-026", since="3.1")
    for kind in ("COMMIT", "ABORT"):
        expired, name = _expired(1, kind=kind), kind.lower()
        why = "A marker stays while a batch of its transaction does, also past its delete horizon."
        yield scenario(f"expired-marker-{name}", why, control, (0, [part(0, "x"), expired, keyed(2, "y")]))
        yield scenario(f"expired-marker-{name}-apart", why, control, (0, [part(0, "x")]), (1, [expired, keyed(2, "y")]))
        why = "A marker ends one transaction: a later one without a batch is not needed."
        again = [part(0, "x"), ended(kind, 1), keyed(2, "y"), ended(kind, 3), keyed(4, "z")]
        yield scenario(f"second-marker-{name}", why, control, (0, again))

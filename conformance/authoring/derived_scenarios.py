"""Part of family 51: logs that Kafka's own classes write and compact, where what is usual once occurs at its limits."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any, Final

from authoring import compact_scenarios, write_scenarios
from authoring.batches import DELETE_HORIZON, TRANSACTIONAL, Batch, Rec
from authoring.casefile import must, should
from authoring.codecs import gzip
from authoring.control import marker
from authoring.repairs import snapshot
from authoring.scenarios import NOW, append, batch, follow, keyed, sent
from authoring.segments import aborted, name_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from authoring.scenarios import Scenario

INT32_MAX: Final = 2**31 - 1
LOOK: Final = {"do": "look"}
EDGES: Final = (127, 128, 255, 256, 32767, 32768, 65535, 65536)


def derived_scenarios() -> Iterator[Scenario]:
    """Yield what Kafka's classes are asked."""
    for scenario in (*_cleaned(), *_written(), *_timed(), *_stopped(), *_known()):
        yield replace(scenario, name=f"derived-{scenario.name}")


def of(base: int, *pairs: tuple[bytes | None, bytes | None], **fields: object) -> Batch:
    """Return a batch of records with these keys and values."""
    recs = tuple(Rec(key=key, value=value, time=at) for at, (key, value) in enumerate(pairs))
    return Batch(base=base, recs=recs, base_timestamp=NOW, **fields)  # type: ignore[arg-type]


def _cleaned() -> Iterator[Scenario]:
    """Yield empty keys and values in the cleaner, and transactions from offset 0 on."""
    clean = compact_scenarios.scenario
    keys = must("SEG-CMP-008", "SEG-CMP-009")
    empty_key = "An empty key is a key like any other: its newest record stays."
    yield clean("empty-key", empty_key, keys, (0, [of(0, (b"", b"1"), (b"a", b"2"), (b"", b"3")), keyed(3, "a")]))
    yield clean("empty-key-later", empty_key, keys, (0, [of(0, (b"", b"1"), (b"a", b"2"))]), (10, [of(10, (b"", b"3"))]))  # fmt: skip
    yield clean("empty-key-and-none", empty_key, keys, (0, [of(0, (b"", b"1"), (None, b"2"), (b"b", b"3")), of(3, (None, b"4"))]))  # fmt: skip
    yield clean("empty-key-zero-key", empty_key, keys, (0, [of(0, (b"", b"1"), (b"\0", b"2"), (b"\0\0", b"3"))]))
    tombs = must("SEG-CMP-010", "SEG-CMP-011", since="3.1")
    yield clean("empty-key-tombstone", "A tombstone of the empty key.", tombs, (0, [of(0, (b"", b"1"), (b"a", b"2")), of(2, (b"", None))]))  # fmt: skip
    empty_value = "An empty value is no tombstone: the record stays, and its batch gets no delete horizon."
    yield clean("empty-value", empty_value, tombs, (0, [of(0, (b"a", b"1"), (b"b", b"2")), of(2, (b"a", b""))]))
    yield clean("empty-value-beside-tombstone", empty_value, tombs, (0, [of(0, (b"a", b"1")), of(1, (b"a", b""), (b"b", None))]))  # fmt: skip
    yield clean("empty-value-replaced", empty_value, tombs, (0, [of(0, (b"a", b""), (b"b", b"")), of(2, (b"a", b"1"))]))
    yield clean("empty-value-at-once", empty_value, tombs, (0, [of(0, (b"a", b"")), of(1, (b"b", None))]), config={"delete.retention.ms": "0"})  # fmt: skip
    yield clean("empty-value-gzip", empty_value, tombs, (0, [of(0, (b"a", b""), (b"c", b"x"), codec="gzip", compress=gzip), keyed(2, "c")]), batches=True)  # fmt: skip
    horizon = NOW + 100_000
    waiting = Batch(
        attributes=DELETE_HORIZON,
        base_timestamp=horizon,
        max_timestamp=NOW + 1,
        recs=(Rec(key=b"a", value=None, time=NOW - horizon), Rec(key=b"b", value=b"", time=NOW + 1 - horizon)),
    )
    yield clean("empty-value-at-the-horizon", "At the delete horizon the tombstone goes, and the empty value stays.", tombs, (0, [waiting]))  # fmt: skip
    since_0 = must("SEG-CMP-003")
    why = "A transaction is open since offset 0: nothing is compacted."
    first = compact_scenarios.part(0, "x")
    yield clean("open-since-0", why, since_0, (0, [first, keyed(1, "a", "a")]), (10, [keyed(10, "a")]))
    yield clean("open-since-0-others-ended", why, since_0, (0, [first, keyed(1, "a"), keyed(2, "a")]), (10, [keyed(10, "a"), replace(compact_scenarios.ended("COMMIT", 11), producer_id=8)]))  # fmt: skip
    yield clean("ended-since-0", "A transaction from offset 0 on has ended: its records are compacted.", must("SEG-CMP-008", "SEG-CMP-014"), (0, [first, keyed(1, "x"), compact_scenarios.ended("COMMIT", 2)]))  # fmt: skip
    control = must("SEG-CMP-013", "SEG-CMP-014", since="3.1")

    def ended_twice(first: str, second: str) -> tuple[int, list[Batch]]:
        one, other = compact_scenarios.ended(first, 1), compact_scenarios.ended(second, 3)
        return 0, [compact_scenarios.part(0, "a"), one, compact_scenarios.part(2, "a", 1), other, keyed(4, "z")]

    yield clean("commit-then-abort", "One producer commits, then aborts: the committed record stays.", control, ended_twice("COMMIT", "ABORT"), more=((name_of(0, ".txnindex"), aborted(9, 2, 3, 4)),))  # fmt: skip
    yield clean("abort-then-commit", "One producer aborts, then commits: the committed record stays.", control, ended_twice("ABORT", "COMMIT"), more=((name_of(0, ".txnindex"), aborted(9, 0, 1, 2)),))  # fmt: skip
    which = must("SEG-CMP-008", "SEG-CMP-018", "SEG-CMP-019")
    limits = "The numbers of the records that stay are at the limits of their types."
    many = tuple((b"h", b"%d" % at) for at in range(300))
    headed = Batch(
        recs=(Rec(key=b"a", headers=many), Rec(key=b"b"), Rec(key=b"c", headers=((b"n" * 300, b"v" * 300),))),
        base_timestamp=NOW,
    )
    yield clean("limits-headers", limits, which, (0, [headed, keyed(3, "b")]))
    long = Batch(
        recs=(*(Rec(key=b"%d" % size + b"k" * size, value=b"v" * size) for size in EDGES[:4]), Rec(key=b"z")),
        base_timestamp=NOW,
    )
    yield clean("limits-lengths", limits, which, (0, [long, keyed(5, "z")]))
    spread = Batch(recs=tuple(Rec(key=b"k%d" % delta, delta=delta) for delta in (0, *EDGES)), base_timestamp=NOW)
    yield clean("limits-offsets", limits, which, (0, [spread, keyed(70_000, "k0")]), active=(100_000, (keyed(100_000, "z"),)))  # fmt: skip
    early = [of(at, (b"%d" % at, b"v")) for at in range(4)]
    timed = [replace(one, base_timestamp=time) for one, time in zip(early, (0, INT32_MAX + 1, 2**32, NOW), strict=True)]
    yield clean("limits-times", limits, which, (0, [*timed, keyed(4, "0", "1")]))
    far = {"producer_id": 2**53 + 1, "producer_epoch": 2**15 - 1, "base_sequence": INT32_MAX}
    yield clean("limits-producer", "The last batch of a producer stays, with the numbers of the producer.", must("SEG-CMP-015"), (0, [keyed(0, "a", **far), keyed(1, "a")]))  # fmt: skip


def _written() -> Iterator[Scenario]:
    """Yield sequences over epochs, and transactions from offset 0 on, while the log is open."""
    write = write_scenarios.scenario
    same = "A newer epoch begins with sequences that the older one has used: the batch is no duplicate."
    once = must("SEG-APP-008", "SEG-ROL-015")
    yield write("newer-epoch", same, once, append(sent(7, 0)), append(sent(7, 0, epoch=1)), append(sent(7, 0, epoch=1)))
    yield write("newer-epoch-longer", same, once, append(sent(7, 0, count=3)), append(sent(7, 3, count=3)), append(sent(7, 0, count=3, epoch=5)), {"do": "roll"}, append(sent(7, 3, epoch=5)))  # fmt: skip
    wraps = must("SEG-APP-007", "SEG-ROL-015")
    yield write("wraps", "After the greatest sequence comes 0.", wraps, append(sent(7, INT32_MAX - 1, count=2)), append(sent(7, 0, count=2)), append(sent(7, INT32_MAX - 1, count=2)))  # fmt: skip
    yield write("wraps-inside", "A batch has the greatest sequence and those from 0 on.", wraps, append(sent(7, INT32_MAX - 1, count=4)), append(sent(7, 3)), append(sent(7, 2)), append(sent(7, INT32_MAX - 1, count=4)))  # fmt: skip
    for last in (127, 255, 32767, 65535):
        yield write(f"sequence-{last}", f"The last sequence is {last}.", wraps, append(sent(7, last)), append(sent(7, last + 2)), append(sent(7, last + 1)), append(sent(7, last)))  # fmt: skip
    listed = must("SEG-TXN-003", "SEG-ROL-015")
    why = "A transaction is open since offset 0, while others end."
    opened, other = sent(7, 0, attributes=TRANSACTIONAL), sent(8, 0, attributes=TRANSACTIONAL)

    def ended(kind: str, producer: int) -> Batch:
        return replace(marker(kind, 0, producer_id=producer, producer_epoch=0, at=NOW), base=0)

    coordinator: dict[str, Any] = {"origin": "coordinator"}
    yield write("open-since-0", why, listed, append(opened), append(other), append(ended("ABORT", 8), **coordinator), LOOK)  # fmt: skip
    yield write("open-since-0-alone", why, listed, append(opened), {"do": "roll"}, append(sent(9, 0)), LOOK)
    yield write("commits-and-aborts", "Only aborted transactions are listed, never a committed one.", listed, append(opened), append(other), append(ended("COMMIT", 7), **coordinator), append(ended("ABORT", 8), **coordinator), append(sent(7, 1, attributes=TRANSACTIONAL)), append(ended("COMMIT", 7), **coordinator))  # fmt: skip
    yield write("commits-alone", "Only aborted transactions are listed, never a committed one.", listed, append(opened), append(ended("COMMIT", 7), **coordinator), append(other), append(ended("COMMIT", 8), **coordinator))  # fmt: skip
    limits = must("SEG-ROL-010", "SEG-ROL-011", since="4.1")
    text = "The numbers of a log are at the limits of their types."
    at = [follow(Batch(base=base, base_timestamp=NOW + at)) for at, base in enumerate((0, *EDGES, INT32_MAX))]
    yield write("limits-offsets", text, limits, *at, index_interval_bytes="0")
    times = [append(Batch(base_timestamp=time), now=NOW) for time in (0, INT32_MAX, INT32_MAX + 1, 2**32, NOW)]
    yield write("limits-times", text, limits, *times, index_interval_bytes="0", segment_ms=str(2**62))
    trimmed = should("SEG-ROL-014", "SEG-ROL-018")
    why = "A segment is preallocated while it is active: its log is trimmed when it ends."
    for name, steps in (
        ("rolled", (append(sent(7, 0)), {"do": "roll"}, append(sent(7, 1)))),
        ("full", tuple(append(sent(7, at, count=20)) for at in range(0, 100, 20))),
        ("follower", (follow(sent(7, 0)), {"do": "roll"}, follow(sent(7, 1, base=1)))),
    ):
        yield write(f"preallocated-{name}", why, trimmed, *steps, preallocate="true", segment_bytes="1200")
    producers = must("SEG-ROL-015", "SEG-FLS-004")
    for producer in (127, 256, 65536, 2**31, 2**32, 2**53 + 1, 2**63 - 1):
        yield write(f"limits-producer-{producer}", text, producers, append(sent(producer, 0, count=2, epoch=2**15 - 1)))


def _timed() -> Iterator[Scenario]:
    """Yield which timestamp or epoch counts: the first, the largest, the last."""
    write = write_scenarios.scenario

    def at(base: int, *times: int, **fields: int) -> Batch:
        return batch(*(NOW + time for time in times), base=base, **fields)

    first = must("SEG-ROL-003", "SEG-ROL-004")
    why = "The time of a segment begins with its first batch, and an append counts with its largest timestamp."
    nameless = Batch(base_timestamp=-1, max_timestamp=-1, recs=(Rec(key=b"a", value=b"v"),))
    for name, later in (("one", 1000), ("two", 2000)):
        yield write(f"first-without-time-{name}", why, first, append(nameless), append(at(0, 0)), append(at(0, later)), append(at(0, 2 * later)), LOOK, segment_ms=str(later))  # fmt: skip
        yield write(f"first-is-not-largest-{name}", why, first, append(at(0, later)), append(at(0, 0)), append(at(0, later + 500)), append(at(0, 2 * later)), LOOK, segment_ms=str(later))  # fmt: skip
        yield write(f"largest-is-first-{name}", why, first, follow(at(0, 0)), follow(at(1, later + 1), at(2, 0)), follow(at(3, 1), at(4, 2 * later + 2), at(5, 2)), LOOK, segment_ms=str(later))  # fmt: skip
        yield write(f"lag-of-no-compaction-{name}", "Only in a compacted topic the lag of compaction ends segments.", first, append(at(0, 0)), append(at(0, later)), append(at(0, 2 * later)), max_compaction_lag_ms=str(later - 1))  # fmt: skip
    named = must("SEG-APP-015", "SEG-ROL-011")
    why = "Of several entries or records with the largest timestamp the time index names the first."
    yield write("same-largest-in-one-append", why, named, follow(at(0, 5), at(1, 5), at(2, 5)), follow(at(3, 9, 9), at(5, 9)), index_interval_bytes="0")  # fmt: skip
    yield write("same-largest-in-appends", why, named, follow(at(0, 5), at(1, 3), at(2, 5)), append(at(0, 5)), append(at(0, 6, 6)), index_interval_bytes="0")  # fmt: skip
    epochs = must("SEG-APP-017", "SEG-CKP-006")
    why = "A leader goes on under the newest epoch of the log."
    yield write("same-epoch", why, epochs, append(at(0, 0), leaderEpoch=5), append(at(0, 1), leaderEpoch=5), {"do": "roll"}, append(at(0, 3), leaderEpoch=5))  # fmt: skip
    state = must("SEG-PSN-011", "SEG-ROL-015")
    why = "A batch outside of transactions changes the state of a producer whose transaction is open."
    opened = sent(7, 0, attributes=TRANSACTIONAL)
    for name, count in (("one", 1), ("two", 2)):
        yield write(f"plain-in-a-transaction-{name}", why, state, follow(opened), follow(sent(7, 1, count=count, base=1)), {"do": "roll"}, LOOK)  # fmt: skip
    full = must("SEG-ROL-016", "SEG-ROL-011")
    why = "An index has no slot left: it gets no entry, and the next append begins a segment."
    for slots in (1, 2):
        yield write(f"slots-{slots}", why, full, *(append(at(0, time)) for time in range(4)), {"do": "roll"}, LOOK, segment_index_bytes=str(12 * slots), index_interval_bytes="0")  # fmt: skip


def _stopped() -> Iterator[Scenario]:
    """Yield passes of the cleaner that stop within a log, and markers whose batches remain."""
    clean = compact_scenarios.scenario
    part, ended = compact_scenarios.part, compact_scenarios.ended
    stops = must("SEG-CMP-028", "SEG-CMP-016")
    why = "The map of keys is full: the pass stops, and from there on every record stays."
    log = [keyed(0, "a", "b"), keyed(2, "a", "b"), keyed(4, "a", "b", "c"), keyed(7, "a")]
    for most in (1, 2, 3):
        yield clean(f"stops-after-{most}-keys", why, stops, (0, log), (10, [keyed(10, "b", "c")]), mostKeys=most)  # fmt: skip
    dirty = must(
        "SEG-CMP-008", since="3.1"
    )  # a broker of 2.8 leaves the snapshot of a segment that is merged into another
    why = "The first dirty offset is inside of a batch: all its records count."
    for offset in (1, 3, 5):
        yield clean(f"dirty-inside-{offset}", why, dirty, (0, log), (10, [keyed(10, "z")]), cleanerOffset=str(offset))  # fmt: skip
    markers = must("SEG-CMP-014", "SEG-CMP-021", since="3.1")
    why = "A marker stays as long as a batch of its transaction does, also past its delete horizon."
    for name, kind in (("commit", "COMMIT"), ("abort", "ABORT")):
        yield clean(f"marker-of-a-batch-{name}", why, markers, (0, [part(0, "x"), ended(kind, 1), part(2, "y", 1), ended(kind, 3)]), (10, [keyed(10, "z")]), config={"delete.retention.ms": "0"})  # fmt: skip
    lag = should("SEG-CMP-025", since="3.1")
    for name, wait in (("one", "1"), ("long", "100000")):
        yield clean(f"lag-of-the-active-{name}", "The active segment does not count for the greatest lag.", lag, (0, [keyed(0, "a", "b")]), (10, [keyed(10, "a")]), config={"max.compaction.lag.ms": wait})  # fmt: skip


def _known() -> Iterator[Scenario]:
    """Yield what is known of producers by one of two snapshots, and at the limit of their age."""
    clean, write, rests = compact_scenarios.scenario, write_scenarios.scenario, must("SEG-CMP-015")
    why = "A producer expires when its last batch is a day old, as a snapshot knows it."
    for producer, more in product((0, 10), (-1, 0, 1)):
        log = (0, [keyed(0, "a", base_sequence=0, producer_id=producer, producer_epoch=2), keyed(1, "a")])
        over = ((name_of(1001, ".snapshot"), snapshot((producer, -1), last_offset=0, time=NOW)),)
        yield clean(f"producer-{producer}-of-a-day-by-{more}", why, rests, log, now=NOW + 86_400_000 + more, over=over)
    two = {name_of(base): replace(keyed(base, "a"), base=base).encoded() for base in (0, 1)}
    two |= {name_of(base, ending): b"" for base in (0, 1) for ending in (".index", ".timeindex")}
    why = "The newest snapshot says which producers there are, not an older one."
    for sequence, older in product((70, 71, 78), ((name_of(1, ".snapshot"), 70), (name_of(1, ".snapshot"), 77))):
        shots = (
            (older[0], snapshot((9, -1), last_offset=0, sequence=older[1], time=NOW)),
            (name_of(2, ".snapshot"), snapshot((9, -1), last_offset=1, sequence=147 - older[1], time=NOW)),
        )
        yield write(f"newer-of-{older[1]}-then-{sequence}", why, must("SEG-PSN-005", "SEG-APP-007"), append(sent(9, sequence, epoch=2)), LOOK, files=two, over=shots, options={"cleanShutdown": True})  # fmt: skip
    why = "A log that is opened forgets a producer whose last batch is a day old, unless its transaction is open."
    for more, first in product((-1, 0, 1), (-1, 0)):
        shot = snapshot((9, first), last_offset=1, sequence=77, time=NOW - 86_400_000 - more)
        asked = append(sent(9, 5, epoch=2)), append(sent(9, 78, epoch=2)), LOOK
        name = f"producer-of-a-day-by-{more}-{'open' if first == 0 else 'alone'}"
        yield write(name, why, should("SEG-PSN-005", "SEG-APP-007"), *asked, files=two, over=((name_of(2, ".snapshot"), shot),), options={"cleanShutdown": True})  # fmt: skip

"""Logs while they are open: scenarios that Kafka's classes play, too."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from authoring.batches import TRANSACTIONAL
from authoring.casefile import hexed, may, must, should
from authoring.control import marker
from authoring.scenarios import NOW, Scenario, append, batch, follow, sent, settings_of
from authoring.segments import bytes_of, name_of, row

if TYPE_CHECKING:
    from collections.abc import Iterator

    from authoring.casefile import Basis, Json

INT32_MAX: Final = 2**31 - 1
LOOK: Final = {"do": "look"}
ONE: Final = batch(NOW)
SIZE: Final = len(ONE.encoded())
EMPTY_SNAPSHOT: Final = bytes.fromhex("000148674bc700000000")


def scenario(
    name: str,
    why: str,
    basis: Basis,
    *steps: Json,
    files: dict[str, bytes] | None = None,
    over: tuple[tuple[str, bytes | None], ...] = (),
    options: Json | None = None,
    **config: str,
) -> Scenario:
    """Return a log that is opened, written to, and closed."""
    request = {
        "files": hexed(files or {}),
        "config": settings_of(config),
        "now": str(NOW),
        "steps": list(steps),
        "options": options or {},
    }
    return Scenario(f"write-{name}", "write", why, basis, request, over)


def write_scenarios() -> Iterator[Scenario]:
    """Yield logs while they are open."""
    yield from _sparse()
    yield from _rolls()
    yield from _producers()
    yield from _epochs_and_flushes()
    yield from _retention()
    yield from _opened()


def _opened() -> Iterator[Scenario]:
    """Yield logs that are opened again, and go on: their end, times, producers and epochs come from their files."""

    def log(*times: int, base: int = 0) -> dict[str, bytes]:
        units = [replace(batch(NOW + time), base=base + at) for at, time in enumerate(times)]
        return {name_of(base): bytes_of(units), name_of(base, ".index"): b"", name_of(base, ".timeindex"): b""}

    clean: Json = {"cleanShutdown": True}
    why = "The last segment is empty: the log goes on at the offset in its name."
    ends = must("SEG-LKP-015", "SEG-APP-013")
    for name, files in (("one", {**log(0, 1), **log(base=2)}), ("a-gap", {**log(0, 1), **log(base=9)})):
        yield scenario(f"opened-empty-behind-{name}", why, ends, append(ONE), LOOK, append(ONE), files=files, options=clean)  # fmt: skip
    why = "The time of a segment that is opened again begins with its first batch, whatever the largest time is."
    first = must("SEG-ROL-003", "SEG-ROL-004")
    for name, times in (("last", (0, 10, 900)), ("middle", (0, 900, 10)), ("first", (900, 0, 10))):
        for limit in (1000, 1901):
            yield scenario(
                f"opened-largest-is-{name}-{limit}",
                why,
                first,
                append(batch(NOW + limit)),
                append(batch(NOW + limit + 1)),
                LOOK,
                files=log(*times),
                options=clean,
                segment_ms="1000",
            )
    why = "Of several batches with the largest timestamp, the time index names the first, also when the log is opened again."
    named = must("SEG-ROL-014", "SEG-APP-015")
    for name, times in (("two", (5, 5)), ("three", (1, 9, 9, 3, 9)), ("beside-later", (9, 9, 1))):
        yield scenario(f"opened-same-largest-{name}", why, named, append(batch(NOW + 2)), {"do": "roll"}, LOOK, files=log(*times), options=clean, index_interval_bytes="4096")  # fmt: skip
    why = "Of the `.deleted` files, those of metadata snapshots stay when a log is opened."
    leaves = should("SEG-RCV-020", since="3.7")
    for offset in (1, 40):
        rest = (f"{offset:020}-0000000001.checkpoint.deleted", f"{name_of(0)}.deleted")
        over = tuple((name, b"half") for name in rest)
        name = f"opened-with-deleted-{offset}"
        yield scenario(name, why, leaves, append(ONE), LOOK, files=log(0), over=over, options=clean)
    why = "A log that starts inside of a segment is opened: of the leader epochs up to there only the last is left, and it begins there."
    for start, starts in (("2", "0 0\n1 1\n"), ("3", "0 0\n4 3\n")):
        yield scenario(f"opened-start-inside-{start}", why, must("SEG-RCV-037"), LOOK, files=log(1, 2, 3, 4), over=(("leader-epoch-checkpoint", f"0\n2\n{starts}".encode()),), options={**clean, "logStartOffset": start})  # fmt: skip
    why = "A preallocated log is trimmed when its segment ends."
    trims = should("SEG-ROL-018")
    for count in (1, 2):
        yield scenario(f"preallocated-{count}", why, trims, *(append(ONE) for _ in range(count)), {"do": "roll"}, append(ONE), {"do": "roll"}, LOOK, preallocate="true", segment_bytes="1000")  # fmt: skip


def _sparse() -> Iterator[Scenario]:
    """Yield how often there are index entries."""
    sparse = must("SEG-ROL-010")
    for interval in (0, SIZE - 1, SIZE, SIZE + 1, 2 * SIZE):
        yield scenario(
            f"interval-{interval}",
            "An index entry is due when more bytes than the interval follow the last entry.",
            sparse,
            *(append(ONE) for _ in range(6)),
            LOOK,
            index_interval_bytes=str(interval),
        )
    yield scenario(
        "interval-after-opening",
        "When a log is opened again, the bytes since the last index entry may be counted from 0.",
        may("SEG-ROL-012"),
        *(append(ONE) for _ in range(4)),
        files={name_of(0): bytes_of(row(3, start=NOW)), name_of(0, ".index"): b"", name_of(0, ".timeindex"): b""},
        options={"cleanShutdown": True},
        index_interval_bytes="200",
    )
    together = [batch(NOW, base=0), batch(NOW + 5, base=1), batch(NOW + 3, base=2), batch(NOW + 9, base=3)]
    yield scenario(
        "interval-several-batches",
        "Each batch of an append may get an index entry.",
        must("SEG-ROL-011"),
        follow(*together),
        follow(batch(NOW, base=4), batch(NOW + 99, base=5)),
        index_interval_bytes="100",
    )
    yield scenario(
        "time-index-order",
        "Smaller timestamps give no time index entry; the last entry is added when the segment ends.",
        should("SEG-ROL-014"),
        *(append(batch(NOW + at)) for at in (10, 5, 30, 20, 31, 2)),
        {"do": "roll"},
        append(batch(NOW)),
        index_interval_bytes="0",
    )
    yield scenario(
        "no-timestamps",
        "Without timestamps, the time index has no entries.",
        should("SEG-ROL-014"),
        *(append(batch(-1)) for _ in range(3)),
        {"do": "roll"},
        index_interval_bytes="0",
    )
    yield scenario(
        "index-sizes",
        "Indexes are preallocated while a segment is active, and cut to their entries when it ends.",
        should("SEG-ROL-013", "SEG-ROL-014"),
        append(ONE),
        LOOK,
        append(ONE),
        {"do": "roll"},
        LOOK,
        append(ONE),
        index_interval_bytes="0",
        segment_index_bytes="100",
    )


def _rolls() -> Iterator[Scenario]:
    """Yield when a segment ends."""
    for slots, size_of_index, rule in (("offset", "24", "SEG-ROL-005"), ("time", "36", "SEG-ROL-017")):
        yield scenario(
            f"{slots}-index-full",
            "A segment is rolled when one of its indexes is full.",
            must(rule),
            *(append(batch(-1 if slots == "offset" else NOW + at)) for at in range(9)),
            index_interval_bytes="0",
            segment_index_bytes=size_of_index,
        )
    yield scenario(
        "roll-by-size",
        "A segment is rolled before the append that does not fit into it.",
        must("SEG-ROL-002", "SEG-ROL-007"),
        *(append(ONE) for _ in range(7)),
        segment_bytes=str(3 * SIZE),
    )
    yield scenario(
        "roll-by-time-of-the-first-entry",
        "The age of a segment begins with the timestamp of its first entry, also in an append of several entries.",
        must("SEG-ROL-003", "SEG-ROL-004"),
        follow(batch(NOW, base=0), batch(NOW + 900, base=1)),
        follow(batch(NOW + 1000, base=2)),
        follow(batch(NOW + 1001, base=3)),
        segment_ms="1000",
    )
    yield scenario(
        "roll-by-time-without-timestamps",
        "Without timestamps, the clock decides when a segment is rolled.",
        must("SEG-ROL-003", "SEG-ROL-004"),
        append(batch(-1), now=NOW),
        append(batch(-1), now=NOW + 1000),
        append(batch(-1), now=NOW + 2001),
        segment_ms="1000",
    )
    yield scenario(
        "roll-after-opening",
        "The age of an existing segment also begins with the timestamp of its first entry.",
        must("SEG-ROL-003", "SEG-ROL-004"),
        append(batch(NOW + 500)),
        append(batch(NOW + 1200)),
        files={name_of(0): bytes_of(row(3, start=NOW)), name_of(0, ".index"): b"", name_of(0, ".timeindex"): b""},
        options={"cleanShutdown": True},
        segment_ms="1000",
    )
    yield scenario("roll-an-empty-segment", "An empty active segment is created again.", must("SEG-ROL-007"), {"do": "roll"}, {"do": "roll"}, append(ONE))  # fmt: skip
    yield scenario(
        "roll-after-a-gap",
        "The base offset of a new segment is its first offset.",
        must("SEG-ROL-007"),
        follow(batch(NOW, base=0)),
        follow(batch(NOW, base=50)),
        follow(batch(NOW, base=70)),
        segment_bytes=str(SIZE),
    )
    yield scenario(
        "roll-by-span",
        "An offset too large for the index rolls the segment.",
        must("SEG-ROL-006"),
        follow(batch(NOW, base=0)),
        follow(batch(NOW, base=INT32_MAX)),
        follow(batch(NOW, base=INT32_MAX + 1)),
    )
    why = "The first offset of an append fits into the index, and its last one does not: the segment is rolled."
    for base in (0, 100):
        name, files = f"roll-by-span-of-the-last-from-{base}", {name_of(base): b""}
        steps = (follow(batch(NOW, base=base)), follow(batch(NOW, NOW, base=base + INT32_MAX)))
        yield scenario(name, why, must("SEG-ROL-006"), *steps, files=files)


def _producers() -> Iterator[Scenario]:
    """Yield what is known of producers, and stored."""
    snapshots = must("SEG-ROL-015", "SEG-FLS-004")
    yield scenario(
        "snapshots",
        "The log writes a producer snapshot with each new segment, and when it is closed.",
        snapshots,
        append(sent(7, 0)),
        append(sent(7, 1, count=3)),
        {"do": "roll"},
        LOOK,
        append(sent(7, 4)),
        {"do": "roll"},
        {"do": "roll"},
        append(sent(7, 5)),
    )
    yield scenario("closed-at-once", "A log is opened and closed without an append.", snapshots)
    yield scenario(
        "producer-goes-on",
        "The log loads the state of producers when it is opened.",
        must("SEG-PSN-001", "SEG-APP-008"),
        append(sent(7, 3)),
        append(sent(7, 2)),
        append(sent(7, 4)),
        files={
            name_of(0): bytes_of([replace(sent(7, 0, count=3), base=0)]),
            name_of(0, ".index"): b"",
            name_of(0, ".timeindex"): b"",
        },
        options={"cleanShutdown": True},
    )
    yield scenario(
        "aborted-transaction",
        "An aborted transaction is listed with the segment of its marker.",
        should("SEG-ROL-014", "SEG-TXN-001"),
        append(sent(7, 0, attributes=TRANSACTIONAL)),
        {"do": "roll"},
        append(sent(8, 0, attributes=TRANSACTIONAL)),
        append(replace(marker("ABORT", 0, producer_id=7, producer_epoch=0, at=NOW), base=0), origin="coordinator"),
        append(replace(marker("COMMIT", 0, producer_id=8, producer_epoch=0, at=NOW), base=0), origin="coordinator"),
        append(sent(7, 1, attributes=TRANSACTIONAL)),
        append(replace(marker("ABORT", 0, producer_id=7, producer_epoch=0, at=NOW), base=0), origin="coordinator"),
        {"do": "roll"},
    )
    yield from _known_producers()


def _known_producers() -> Iterator[Scenario]:
    """Yield what is known of producers when a log is opened."""
    clean = {"cleanShutdown": True}
    two = {
        name_of(0): replace(sent(7, 0, count=3), base=0).encoded(),
        name_of(3): replace(sent(7, 3, count=2), base=3).encoded(),
        **{name_of(base, ending): b"" for base in (0, 3) for ending in (".index", ".timeindex")},
    }
    yield scenario(
        "producer-after-a-snapshot",
        "The log loads the state of producers from the newest snapshot, and the rest from later batches.",
        must("SEG-PSN-001", "SEG-APP-008"),
        append(sent(7, 9)),
        append(sent(7, 5)),
        append(sent(7, 3, count=2)),
        files=two,
        over=((name_of(5, ".snapshot"), None),),
        options=clean,
    )
    yield scenario(
        "stray-snapshots",
        "Snapshots that are not at a base offset are removed, except the newest.",
        must("SEG-PSN-001"),
        LOOK,
        append(sent(7, 5)),
        files=two,
        over=tuple((name_of(base, ".snapshot"), EMPTY_SNAPSHOT) for base in (1, 4, 99)),
        options=clean,
    )
    yield scenario(
        "marker-of-an-unknown-producer",
        "An end marker of a producer without other batches also belongs to the producer state.",
        must("SEG-PSN-001", "SEG-FLS-004"),
        append(replace(marker("COMMIT", 0, producer_id=7, producer_epoch=4, at=NOW), base=0), origin="coordinator"),
    )
    undone = [
        replace(sent(7, 0, attributes=TRANSACTIONAL), base=0),
        replace(marker("ABORT", 1, producer_id=7, producer_epoch=0, at=NOW), base=1, leader_epoch=0),
    ]
    yield scenario(
        "transaction-index-goes-on",
        "Further aborted transactions are added to an existing index of them.",
        should("SEG-TXN-001"),
        append(sent(7, 1, attributes=TRANSACTIONAL)),
        append(replace(marker("ABORT", 0, producer_id=7, producer_epoch=0, at=NOW), base=0), origin="coordinator"),
        files={name_of(0): bytes_of(undone), name_of(0, ".index"): b"", name_of(0, ".timeindex"): b""},
        options=clean,
    )
    open_from_0 = [sent(8, 0, attributes=TRANSACTIONAL), sent(7, 0, attributes=TRANSACTIONAL, base=1)]
    yield scenario(
        "transaction-open-from-0",
        "A snapshot says that a transaction is open from offset 0: this is the last stable offset of later aborts.",
        must("SEG-PSN-001", "SEG-TXN-006"),
        append(replace(marker("ABORT", 0, producer_id=7, producer_epoch=0, at=NOW), base=0), origin="coordinator"),
        files={name_of(0): bytes_of(open_from_0), name_of(0, ".index"): b"", name_of(0, ".timeindex"): b""},
        options=clean,
    )


def _epochs_and_flushes() -> Iterator[Scenario]:
    """Leader epochs, and flushes."""
    epochs = must("SEG-APP-016", "SEG-CKP-006")
    yield scenario(
        "leader-epochs",
        "Each leader epoch begins with its first batch.",
        epochs,
        append(ONE, leaderEpoch=3),
        append(ONE, leaderEpoch=3),
        append(ONE, leaderEpoch=5),
        {"do": "lead", "leaderEpoch": 8},
        LOOK,
        append(ONE, leaderEpoch=9),
    )
    yield scenario(
        "leader-epochs-follow",
        "A follower takes the leader epochs of the batches that it copies.",
        epochs,
        follow(batch(NOW, base=0, leader_epoch=2), batch(NOW, base=1, leader_epoch=4)),
        follow(batch(NOW, base=2, leader_epoch=4)),
        follow(batch(NOW, base=3, leader_epoch=7)),
    )
    yield scenario(
        "flush-messages",
        "The log is flushed after `flush.messages` records.",
        must("SEG-FLS-001"),
        append(ONE),
        append(ONE),
        append(ONE),
        append(batch(NOW, NOW + 1)),
        append(batch(NOW, NOW + 1)),
        flush_messages="3",
    )
    yield scenario(
        "flush",
        "After a flush, the recovery point is the log end offset.",
        must("SEG-FLS-002"),
        append(ONE),
        append(batch(NOW, NOW + 1)),
        {"do": "flush"},
        append(ONE),
        {"do": "flush"},
        {"do": "roll"},
        append(ONE),
    )


def _retention() -> Iterator[Scenario]:
    """Retention while the log is open."""
    retention = must("SEG-RET-009", "SEG-RET-010")
    three = [step for at in range(3) for step in (append(sent(7, at, leader_epoch=at)), {"do": "roll"})]
    yield scenario("retain-by-size", "Retention deletes segments with their indexes and snapshots.", retention, *three, {"do": "retain"}, LOOK, append(ONE), retention_bytes=str(SIZE))  # fmt: skip
    yield scenario(
        "retain-all",
        "All segments are too old: a new segment is rolled, and the producer state stays.",
        must("SEG-RET-006", "SEG-RET-009"),
        append(sent(7, 0)),
        append(sent(7, 1)),
        {"do": "retain", "now": str(NOW + 10_000)},
        LOOK,
        append(sent(7, 2)),
        retention_ms="1000",
    )
    yield scenario("retain-none", "No segment is too old.", must("SEG-RET-003"), *three, {"do": "retain", "now": str(NOW + 10_000)}, retention_ms="20000")  # fmt: skip
    yield scenario(
        "retain-leader-epochs",
        "Retention removes the leader epochs of deleted segments.",
        must("SEG-RET-011"),
        *(step for at in range(4) for step in (append(ONE, leaderEpoch=2 * at), {"do": "roll"})),
        {"do": "retain"},
        retention_bytes=str(SIZE),
    )

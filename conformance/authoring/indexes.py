"""Family 38: indexes as brokers build them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from authoring.batches import (
    LOG_APPEND_TIME,
    Batch,
    Rec,
)
from authoring.casefile import Basis, Family, must
from authoring.codecs import gzip
from authoring.control import data, empty, marker
from authoring.messages import Msg, Wrapper
from authoring.segments import (
    INTERVAL,
    SIZE,
    aborted,
    bytes_of,
    offset_index,
    row,
    time_index,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from authoring.casefile import Unit


def index_building() -> Family:
    """Family 38."""
    flags = {
        "SPARSE_RULE": {
            "effect": "An entry comes after strictly more than the interval, never for the first batch, and names the last offset of a batch. Another "
            "rule gives indexes that brokers read and that no broker would write.",
            "links": [],
        },
        "TIME_ENTRY": {
            "effect": "A time index entry that is too high hides records from lookups, one that is missing keeps expired segments or deletes young ones.",
            "links": [],
        },
    }
    family = Family(38, "index-build", "Building indexes", "facts 4.2 and 4.3", flags=flags)
    basis = must("SEG-ROL-010", "SEG-ROL-011", "SEG-RCV-025", flags=("SPARSE_RULE",), since="4.1")

    def build(
        name: str,
        why: str,
        units: Sequence[Unit],
        *,
        interval: int = 100,
        base: int = 0,
        basis: Basis = basis,
        txn: bytes | None = None,
    ) -> None:
        files = {
            ".index": offset_index(units, interval, base).hex(),
            ".timeindex": time_index(units, interval, base).hex(),
        }
        if txn is not None:
            files[".txnindex"] = txn.hex()
        request = {"data": bytes_of(units).hex(), "baseOffset": str(base), "indexIntervalBytes": interval}
        family.add(name, "index", "valid", why, basis, request=request, expect={"files": files})

    value = bytes(19)
    eight = [
        Batch(
            base=2 * at,
            recs=(Rec(key=b"k", value=value), Rec(key=b"k", value=value, time=1)),
            base_timestamp=1000 + 100 * at,
        )
        for at in range(8)
    ]
    eight = [
        replace(one, recs=(replace(one.recs[0], value=bytes(18 + 119 - len(one.encoded()) + 1)), one.recs[1]))
        for one in eight
    ]
    build(
        "eight-batches",
        "Eight batches of 119 bytes, as a broker indexed them.",
        eight,
        basis=must(
            "SEG-ROL-010", "SEG-ROL-011", "SEG-RCV-025", flags=("SPARSE_RULE",), since="4.1", source="vector V-26"
        ),
    )
    for interval, why in (
        (0, "An interval of 0: every batch but the first."),
        (SIZE - 1, "One byte less than a batch: every batch but the first."),
        (SIZE, "Exactly a batch is not more than the interval: every second one."),
        (SIZE + 1, "One byte more: every second one."),
        (2 * SIZE, "Two batches exactly."),
        (2 * SIZE - 1, "One byte less than two batches."),
        (100_000, "The interval is never reached: no entry, and the time index has its last one only."),
    ):
        build(f"interval-{interval}", why, row(9), interval=interval)
    build("default-interval", "With 4,096 bytes as brokers have it.", row(120), interval=INTERVAL)
    build("one-batch", "A segment with a single batch has no entry.", row(1), interval=0)
    build("two-batches", "The second one is indexed.", row(2), interval=0)
    build("no-batch", "An empty segment has empty indexes.", [], interval=0)
    build(
        "base-offset",
        "Offsets in an index count from the base of the segment.",
        row(6, base=5_000_000_000),
        base=5_000_000_000,
    )
    build("base-below-first", "The first batch is far above the name of the segment.", row(6, base=900), base=100)
    build(
        "widest-span",
        "The greatest relative offset there is.",
        [Batch(base=10), Batch(base=20), Batch(base=10 + 2**31 - 1)],
        base=10,
        interval=0,
    )
    gaps = [replace(one, last_delta=40, base=one.base * 20) for one in row(6)]
    build("compacted", "The entry names the last offset of a batch, also where that record is gone.", gaps)
    uneven = [Batch(base=at, recs=(Rec(value=bytes(50 * (at % 4))),), base_timestamp=1000 + at) for at in range(12)]
    build("uneven-sizes", "Batches of different sizes.", uneven, interval=150)
    long = [*row(2), Batch(base=6, recs=(Rec(value=bytes(3000)),), base_timestamp=3000), *row(2, base=7, start=4000)]
    build("long-batch", "A batch that is longer than the interval by itself.", long)
    _indexed_times(build)
    _indexed_transactions(build)
    return family


def _indexed_times(build: Callable[..., None]) -> None:
    time = must("SEG-APP-015", "SEG-TIX-004", flags=("TIME_ENTRY",), since="4.1")
    build(
        "times-descend",
        "Timestamps go down: the first batch has the largest, and one entry says it all.",
        row(6, start=9000, step=-500),
        basis=time,
    )
    build("times-equal", "All the same: the first batch that has it counts.", row(6, step=0), basis=time)
    zigzag = [
        replace(one, base_timestamp=at)
        for one, at in zip(row(7), (1000, 5000, 2000, 6000, 6000, 100, 9000), strict=True)
    ]
    build("times-up-and-down", "Entries only where the largest grew.", zigzag, basis=time, interval=0)
    build(
        "times-up-and-down-sparse",
        "The same with fewer entries: the largest may stand before the batch that is indexed.",
        zigzag,
        basis=time,
        interval=SIZE,
    )
    build(
        "no-times",
        "Records without a time leave no entry.",
        row(5, start=-10_000, step=0)
        and [replace(one, base_timestamp=-1, recs=(Rec(),), base=at) for at, one in enumerate(row(5))],
        basis=time,
    )
    build(
        "time-zero",
        "The time 0 is a time.",
        [replace(one, base_timestamp=0, recs=(Rec(),), base=at) for at, one in enumerate(row(3))],
        basis=time,
        interval=0,
    )
    build(
        "last-batch-newest",
        "Only the closing entry knows the last batch.",
        [*row(3), *row(1, base=9, start=99_000)],
        basis=time,
        interval=1000,
    )
    stamped = [replace(one, attributes=LOG_APPEND_TIME, max_timestamp=7000 + at) for at, one in enumerate(row(5))]
    build("log-append-time", "The broker's time counts.", stamped, basis=time)
    build(
        "within-a-batch",
        "The largest timestamp is that of the first record; the entry names the last offset of the batch.",
        [Batch(base=3 * at, recs=(Rec(time=50), Rec(), Rec()), base_timestamp=1000 + at) for at in range(5)],
        basis=time,
    )
    build(
        "empty-batches",
        "An empty batch is a unit like any other, with the time that its header kept.",
        [*row(2), empty(6, 4, max_timestamp=5000), *row(2, base=11), empty(17, 0, max_timestamp=-1), *row(1, base=18)],
        basis=time,
        interval=60,
    )
    build(
        "magic-1",
        "Messages of magic 1, each a unit.",
        [Msg(offset=at, timestamp=1000 + at, value=bytes(30)) for at in range(6)],
    )
    build(
        "magic-0",
        "Messages of magic 0 have no time: the time index stays empty.",
        [Msg(magic=0, offset=at, value=bytes(30)) for at in range(6)],
    )
    wrappers = [
        Wrapper(
            offset=3 * at + 2,
            inner=tuple(Msg(offset=one, timestamp=1000 * at + one) for one in range(3)),
            offsets=(3 * at, 3 * at + 1, 3 * at + 2),
            compress=gzip,
        )
        for at in range(4)
    ]
    build("wrappers", "A wrapper is one unit; its offset is the last.", wrappers, interval=60)
    build(
        "mixed",
        "All three formats in one segment.",
        [Msg(magic=0, offset=0), Msg(offset=1), *row(3, base=2, start=3000)],
        interval=30,
    )


def _indexed_transactions(build: Callable[..., None]) -> None:
    txn = must("SEG-TXN-009", "SEG-TXN-003", "SEG-RCV-025", since="0.11")
    open_one = [
        data(0, b"a", b"b", producer_id=77),
        data(2, b"c", producer_id=88),
        marker("ABORT", 3, producer_id=77, producer_epoch=2),
    ]
    build(
        "aborted",
        "An aborted transaction while another one is open since offset 2.",
        open_one,
        basis=txn,
        txn=aborted(77, 0, 3, 2),
    )
    build(
        "aborted-alone",
        "No other one is open: what is stable ends behind the marker.",
        [open_one[0], marker("ABORT", 2, producer_id=77)],
        basis=txn,
        txn=aborted(77, 0, 2, 3),
    )
    two = [
        data(0, b"a", producer_id=1),
        data(1, b"b", producer_id=2),
        marker("ABORT", 2, producer_id=2),
        data(3, b"c", producer_id=1, sequence=1),
        marker("ABORT", 4, producer_id=1),
    ]
    build(
        "two-aborted",
        "In the order of their markers, not of their beginnings.",
        two,
        basis=txn,
        txn=aborted(2, 1, 2, 0) + aborted(1, 0, 4, 5),
    )
    build(
        "committed",
        "A committed transaction leaves nothing.",
        [open_one[0], marker("COMMIT", 2, producer_id=77)],
        basis=txn,
    )


def families() -> list[Family]:
    """All of this module."""
    return [index_building()]

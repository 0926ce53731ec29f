"""Family 38: indexes as brokers build them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from authoring.batches import LOG_APPEND_TIME, Batch, Rec
from authoring.casefile import Basis, Family, must
from authoring.codecs import gzip
from authoring.control import data, empty, marker
from authoring.messages import Msg, Wrapper
from authoring.segments import INTERVAL, SIZE, aborted, bytes_of, offset_index, row, time_index

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
    basis = must("SEG-ROL-010", "SEG-ROL-011", "SEG-RCV-025", flags=("SPARSE_RULE",))

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
        basis=must("SEG-ROL-010", "SEG-ROL-011", "SEG-RCV-025", flags=("SPARSE_RULE",), source="vector V-26"),
    )
    for interval, why in (
        (0, "With an interval of 0, every batch but the first gets an index entry."),
        (SIZE - 1, "The interval is one byte less than a batch: every batch but the first gets an entry."),
        (SIZE, "The interval is exactly one batch, and more bytes are required: every second batch gets an entry."),
        (SIZE + 1, "The interval is one byte more than a batch: every second batch gets an entry."),
        (2 * SIZE, "The interval is exactly two batches."),
        (2 * SIZE - 1, "The interval is one byte less than two batches."),
        (100_000, "The interval is never reached: the offset index has no entry, the time index only the last one."),
    ):
        build(f"interval-{interval}", why, row(9), interval=interval)
    gaps = [replace(one, last_delta=40, base=one.base * 20) for one in row(6)]
    uneven = [Batch(base=at, recs=(Rec(value=bytes(50 * (at % 4))),), base_timestamp=1000 + at) for at in range(12)]
    long = [*row(2), Batch(base=6, recs=(Rec(value=bytes(3000)),), base_timestamp=3000), *row(2, base=7, start=4000)]
    for name, why, units, named in (
        ("default-interval", "The interval is 4,096 bytes, the default of brokers.", row(120), {"interval": INTERVAL}),
        ("one-batch", "A segment with a single batch has no entry.", row(1), {"interval": 0}),
        ("two-batches", "The second of two batches gets an entry.", row(2), {"interval": 0}),
        ("no-batch", "An empty segment has empty indexes.", [], {"interval": 0}),
        ("base-offset", "Offsets in an index count from the base of the segment.", row(6, base=5_000_000_000), {"base": 5_000_000_000}),
        ("base-below-first", "The first batch is far above the base offset of the segment.", row(6, base=900), {"base": 100}),
        ("widest-span", "The greatest relative offset there is.", [Batch(base=10), Batch(base=20), Batch(base=10 + 2**31 - 1)], {"base": 10, "interval": 0}),
        ("compacted", "An index entry has the last offset of a batch, also if that record was removed.", gaps, {}),
        ("uneven-sizes", "Batches of different sizes.", uneven, {"interval": 150}),
        ("long-batch", "A batch that is longer than the interval by itself.", long, {}),
    ):  # fmt: skip
        build(name, why, units, **named)
    _indexed_times(build)
    _indexed_transactions(build)
    return family


def _indexed_times(build: Callable[..., None]) -> None:
    time = must("SEG-APP-015", "SEG-TIX-004", flags=("TIME_ENTRY",))
    zigzag = [
        replace(one, base_timestamp=at)
        for one, at in zip(row(7), (1000, 5000, 2000, 6000, 6000, 100, 9000), strict=True)
    ]
    stamped = [replace(one, attributes=LOG_APPEND_TIME, max_timestamp=7000 + at) for at, one in enumerate(row(5))]
    wrappers = [
        Wrapper(
            offset=3 * at + 2,
            inner=tuple(Msg(offset=one, timestamp=1000 * at + one) for one in range(3)),
            offsets=(3 * at, 3 * at + 1, 3 * at + 2),
            compress=gzip,
        )
        for at in range(4)
    ]
    for name, why, units, named in (
        ("times-descend", "Timestamps decrease: the first batch has the largest one, so the time index has one entry.", row(6, start=9000, step=-500), {"basis": time}),
        ("times-equal", "All timestamps are equal: the time index entry names the first batch.", row(6, step=0), {"basis": time}),
        ("times-up-and-down", "The time index gets an entry only where the largest timestamp has grown.", zigzag, {"basis": time, "interval": 0}),
        ("times-up-and-down-sparse", "With fewer entries, the largest timestamp may be in a batch before the one that is indexed.", zigzag, {"basis": time, "interval": SIZE}),
        ("no-times", "Records without a timestamp give no time index entry.",
         row(5, start=-10_000, step=0) and [replace(one, base_timestamp=-1, recs=(Rec(),), base=at) for at, one in enumerate(row(5))], {"basis": time}),
        ("time-zero", "A timestamp of 0 is valid and gets an entry.", [replace(one, base_timestamp=0, recs=(Rec(),), base=at) for at, one in enumerate(row(3))], {"basis": time, "interval": 0}),
        ("last-batch-newest", "Only the entry that is added when the segment ends includes the last batch.", [*row(3), *row(1, base=9, start=99_000)], {"basis": time, "interval": 1000}),
        ("log-append-time", "With LogAppendTime, the time index has the broker's timestamps.", stamped, {"basis": time}),
        ("within-a-batch", "The largest timestamp is that of the first record; the entry names the last offset of the batch.",
         [Batch(base=3 * at, recs=(Rec(time=50), Rec(), Rec()), base_timestamp=1000 + at) for at in range(5)], {"basis": time}),
        ("empty-batches", "An empty batch is indexed like any other, with the maximum timestamp in its header.",
         [*row(2), empty(6, 4, max_timestamp=5000), *row(2, base=11), empty(17, 0, max_timestamp=-1), *row(1, base=18)], {"basis": time, "interval": 60}),
        ("magic-1", "Messages of magic 1 are indexed one by one.", [Msg(offset=at, timestamp=1000 + at, value=bytes(30)) for at in range(6)], {}),
        ("magic-0", "Messages of magic 0 have no time: the time index stays empty.", [Msg(magic=0, offset=at, value=bytes(30)) for at in range(6)], {}),
        ("wrappers", "A wrapper is indexed as one entry; its offset is that of its last message.", wrappers, {"interval": 60}),
        ("mixed", "All three formats in one segment.", [Msg(magic=0, offset=0), Msg(offset=1), *row(3, base=2, start=3000)], {"interval": 30}),
    ):  # fmt: skip
        build(name, why, units, **named)


def _indexed_transactions(build: Callable[..., None]) -> None:
    txn = must("SEG-TXN-009", "SEG-TXN-003", "SEG-RCV-025", since="0.11")
    open_one = [
        data(0, b"a", b"b", producer_id=77),
        data(2, b"c", producer_id=88),
        marker("ABORT", 3, producer_id=77, producer_epoch=2),
    ]
    two = [
        data(0, b"a", producer_id=1),
        data(1, b"b", producer_id=2),
        marker("ABORT", 2, producer_id=2),
        data(3, b"c", producer_id=1, sequence=1),
        marker("ABORT", 4, producer_id=1),
    ]
    for name, why, units, named in (
        ("aborted", "An aborted transaction while another one is open since offset 2.", open_one, {"txn": aborted(77, 0, 3, 2)}),
        ("aborted-alone", "No other transaction is open: the last stable offset is the one after the marker.", [open_one[0], marker("ABORT", 2, producer_id=77)], {"txn": aborted(77, 0, 2, 3)}),
        ("two-aborted", "Aborted transactions are listed in the order of their markers, not of their first offsets.", two, {"txn": aborted(2, 1, 2, 0) + aborted(1, 0, 4, 5)}),
        ("committed", "A committed transaction is not listed in the index of aborted transactions.", [open_one[0], marker("COMMIT", 2, producer_id=77)], {}),
    ):  # fmt: skip
        build(name, why, units, basis=txn, **named)


def families() -> list[Family]:
    """All of this module."""
    return [index_building()]

"""Cases of another shape for faults that otherwise one single case shows."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import TYPE_CHECKING

from authoring.batches import LOG_APPEND_TIME, Batch, Rec
from authoring.casefile import may, must, should
from authoring.codecs import (
    LZ4_BLOCK_CHECKSUM,
    LZ4_END,
    LZ4_PLAIN,
    XERIAL,
    gzip,
    lz4_frame,
    lz4_header,
    lz4_packed,
    lz4_stored,
    xerial,
)
from authoring.compressed import GOOD, far_copy, halves, packed, refused
from authoring.control import LEADER_CHANGE, data, kraft, marker
from authoring.encodings import add_encoding
from authoring.messages import Msg, Wrapper
from authoring.segments import aborted, bytes_of, offset_index, time_index

if TYPE_CHECKING:
    from collections.abc import Mapping

    from authoring.casefile import Family


def shapes(families: Mapping[str, Family]) -> None:
    """Add the cases to their families.

    Args:
        families: all of them, by name.
    """
    _times(families)
    _codecs(families)
    _wrappers(families["magic-1-wrappers"])
    _transactions(families["index-build"])
    _tails(families["tails"])
    _damage(families)
    _encodings(families["encoding"])
    _retention(families["decisions"])
    keys = (b"\xfe", b"\xff"), (b"a\x80", b"a\x81")
    families["header-key-not-utf8"].valid(
        "keys-that-are-one-text",
        "Keys that become the same text when bytes are replaced stay apart as bytes.",
        should("SEG-REC-011", needs=("magic:2", "bytesKeys"), flags=("HEADER_KEY_BYTES",)),
        Batch(recs=tuple(Rec(headers=((first, b"1"), (second, b"2"))) for first, second in keys)),
    )


def _times(families: Mapping[str, Family]) -> None:
    families["timestamps"].valid(
        "sum-wraps-below",
        "The least base timestamp and a negative delta wrap around to the greatest timestamps.",
        should("SEG-BAT-012"),
        Batch(base_timestamp=-(2**63), recs=(Rec(time=-1), Rec(time=-1000), Rec()), max_timestamp=2**63 - 1),
    )
    stamped = families["log-append-time"]
    ended = marker("ABORT", 3)
    for name, batch, rules in (
        ("marker", ended, ()),
        ("leader-change", kraft("LEADER_CHANGE", LEADER_CHANGE), ("SEG-CTL-006",)),
    ):
        stamped.valid(
            f"stamped-{name}",
            "LogAppendTime: a control record has the maximum timestamp of its batch, as any other.",
            must("SEG-BAT-011", *rules, flags=("STAMPED",), needs=("control",)),
            replace(batch, attributes=batch.attributes | LOG_APPEND_TIME, max_timestamp=9999),
        )


def _codecs(families: Mapping[str, Family]) -> None:
    def framed(block: bytes) -> bytes:
        return XERIAL + struct.pack(">I", len(block)) + block

    families["snappy-xerial"].valid(
        "copy-of-four-distance-bytes",
        "A block contains a copy whose distance takes four bytes.",
        must("SEG-COD-003", flags=("XERIAL",)),
        packed(
            "snappy", lambda data: framed(far_copy(data)), (Rec(value=bytes(range(32))), Rec(value=bytes(range(32))))
        ),
    )
    for name, count in (("one", 1), ("three", 3)):
        families["lz4"].valid(
            f"checksums-of-stored-blocks-{name}",
            "Every block has a checksum, and none is compressed.",
            must("SEG-COD-012"),
            packed(
                "lz4",
                lambda data, count=count: (
                    lz4_header(LZ4_PLAIN | LZ4_BLOCK_CHECKSUM)
                    + b"".join(lz4_stored(part, checksum=True) for part in halves(data, count))
                    + LZ4_END
                ),
            ),
        )


def _wrappers(family: Family) -> None:
    both = {"since": "0.10"}
    family.valid(
        "offset-0-with-gaps",
        "A compacted wrapper at offset 0 with more than one message: a reader takes the offsets inside as absolute.",
        should("SEG-MSG-013", **both),
        Wrapper(
            offset=0,
            inner=(Msg(offset=2), Msg(offset=5, key=None)),
            offsets=(2, 5),
            codec="snappy",
            compress=xerial,
        ),
        more=Msg(offset=9),
    )
    for name, times in (("all", (-1, -1)), ("first", (-1, 1003)), ("last", (1003, -1))):
        family.valid(
            f"no-timestamp-{name}",
            "CreateTime: a message without a timestamp does not get that of the wrapper.",
            must("SEG-MSG-015", **both),
            Wrapper(
                offset=11,
                inner=tuple(Msg(offset=at, timestamp=time) for at, time in enumerate(times)),
                offsets=(10, 11),
                timestamp=5000,
                compress=gzip,
            ),
        )


def _transactions(family: Family) -> None:
    """Transactions of several batches begin with the first of them."""
    first = [data(3 * at, b"a", b"b", b"c", sequence=3 * at) for at in range(3)]
    other = [data(9, b"z", producer_id=4), data(10, b"d", sequence=9)]
    for name, units, row in (
        ("alone", [*first, marker("ABORT", 9)], aborted(9, 0, 9, 10)),
        ("among-others", [*first, *other, marker("ABORT", 11)], aborted(9, 0, 11, 9)),
    ):
        files = {
            ".index": offset_index(units, 100, 0).hex(),
            ".timeindex": time_index(units, 100, 0).hex(),
            ".txnindex": row.hex(),
        }
        family.add(
            f"aborted-of-several-batches-{name}",
            "index",
            "valid",
            "An aborted transaction of several batches begins at the first offset of the first one.",
            must("SEG-TXN-009", "SEG-TXN-003", "SEG-RCV-025"),
            request={"data": bytes_of(units).hex(), "baseOffset": "0", "indexIntervalBytes": 100},
            expect={"files": files},
        )


def _tails(family: Family) -> None:
    """Bytes behind the last entry that are enough for one, and zeros that are not the rest of the file."""
    damaged = must("SEG-LOG-003", needs=("magic:2",))
    for count in (18, 19, 26):
        family.invalid(
            f"garbage-{count}",
            "The bytes at the end are enough for an entry, and contain an impossible size.",
            damaged,
            "length",
            GOOD,
            struct.pack(">qi", 7, -1) + b"\x02" * (count - 12),
            more=False,
        )
    for zeros in (18, 61, 4096):
        family.invalid(
            f"zeros-{zeros}-then-a-byte",
            "Zeros with one other byte after them do not last up to the end of the file.",
            damaged,
            "length",
            GOOD,
            bytes(zeros) + b"\1",
            more=False,
        )


def _damage(families: Mapping[str, Family]) -> None:
    for number in (-1, -2, -(2**31)):
        families["records-count"].invalid(
            f"count-{number}-of-nothing",
            "The records count is negative, and no bytes follow the header.",
            should("SEG-BAT-007", needs=("magic:2",)),
            "count",
            GOOD,
            Batch(base=10, recs=(), last_delta=0, count=number, stored=b"", max_timestamp=-1).encoded(),
        )
    for block in (0x41, 0x42, 0x44, 0x48, 0x10, 0x20):
        refused(
            families["lz4"],
            f"block-descriptor-{block:02x}",
            "The frame header has a block size code that does not exist, or a reserved bit is set.",
            should("SEG-COD-006"),
            "lz4",
            lambda data, block=block: lz4_header(block=block) + lz4_packed(data) + LZ4_END,
        )
    for count in (3, 5, 12):
        families["lz4"].valid(
            f"{count}-zeros-behind",
            "A decoder ignores bytes after the end mark.",
            may("SEG-COD-011"),
            packed("lz4", lambda data, count=count: lz4_frame(data) + bytes(count)),
        )
    for count in (17, 18, 19):
        families["gzip"].valid(
            f"junk-{count}-bytes",
            "A decoder ignores bytes after the last gzip member that do not begin another member.",
            may("SEG-COD-018"),
            packed("gzip", lambda data, count=count: gzip(data) + b"j" * count),
        )


def _encodings(family: Family) -> None:
    for name, count in (("one-record", 1), ("three-records", 3)):
        add_encoding(
            family,
            f"greatest-offset-{name}",
            "The batch ends at the greatest offset that a record may have.",
            must("SEG-LOG-013", "SEG-BAT-001"),
            Batch(base=2**63 - 1 - count, recs=tuple(Rec(time=at) for at in range(count))),
        )


def _retention(family: Family) -> None:
    """Each number of a listing at the limits of smaller types."""

    def keeps(name: str, first: int, size: int, time: int, gone: int, *, start: int = 0, **config: int) -> None:
        bases = [first + 10 * at for at in range(3)]
        listing = [
            {
                "baseOffset": str(base),
                "nextOffset": str(base + 10),
                "size": str(size),
                "largestTimestamp": str(time),
                "modified": "0",
            }
            for base in bases
        ]
        family.add(
            f"retain-limit-{name}",
            "decide",
            "valid",
            "A number of the listing needs more bits than a smaller type has.",
            must("SEG-RET-001", flags=("RETENTION_RULES",)),
            request={
                "what": "retain",
                "listing": listing,
                "config": {f"retention.{key}": str(number) for key, number in ({"ms": -1} | config).items()},
                "now": str(time + 1000),
                "logStartOffset": str(first + start),
                "highWatermark": str(first + 30),
            },
            expect={
                "decision": "delete" if gone else "keep",
                "segments": [str(base) for base in bases[:gone]],
                "logStartOffset": str(first + max(start, 10 * gone)),
                "rollsFirst": False,
            },
        )

    for bits in (31, 32, 53, 62):
        at = 2**bits + 1
        keeps(f"offset-{bits}-bits", at, 100, 1000, 1, start=10)
        keeps(f"offset-{bits}-bits-kept", at, 100, 1000, 0, start=9)
        keeps(f"time-{bits}-bits-kept", 0, 100, at, 0, ms=1000)
    largest = 2**31 - 1
    keeps("size-two-of-three", 0, largest, 1000, 1, bytes=2 * largest)
    keeps("size-one-byte-more", 0, largest, 1000, 0, bytes=2 * largest + 1)

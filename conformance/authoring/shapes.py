"""Cases of another shape for faults that otherwise one single case shows."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import TYPE_CHECKING

from authoring.batches import LOG_APPEND_TIME, Batch, Rec
from authoring.casefile import hexed, lay, may, must, should
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
from authoring.control import LEADER_CHANGE, control_key, data, kraft, marker, marker_value
from authoring.encodings import add_encoding
from authoring.messages import Msg, Wrapper
from authoring.primitives import crc32c
from authoring.repairs import ALL, FIRST, SECOND, Repairs, epochs, segment, snapshot
from authoring.scenario_cases import ScenarioCases
from authoring.scenarios import NOW, append, batch
from authoring.segments import aborted, bytes_of, name_of, offset_index, time_index

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

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
    _recoveries(Repairs(families["recovery"]))
    _wrapped(families["encoding"])
    _flushed(families["decisions"])
    _committed(families["transactions"])
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
    for name, unit, rules in (
        ("marker", ended, ()),
        ("leader-change", kraft("LEADER_CHANGE", LEADER_CHANGE), ("SEG-CTL-006",)),
    ):
        stamped.valid(
            f"stamped-{name}",
            "LogAppendTime: a control record has the maximum timestamp of its batch, as any other.",
            must("SEG-BAT-011", *rules, flags=("STAMPED",), needs=("control",)),
            replace(unit, attributes=unit.attributes | LOG_APPEND_TIME, max_timestamp=9999),
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
            offset=0, inner=(Msg(offset=2), Msg(offset=5, key=None)), offsets=(2, 5), codec="snappy", compress=xerial
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
        why = "Zeros with one other byte after them do not last up to the end of the file."
        family.invalid(f"zeros-{zeros}-then-a-byte", why, damaged, "length", GOOD, bytes(zeros) + b"\1", more=False)


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


def _recoveries(to: Repairs) -> None:
    """Ask what recovery leaves alone, and what it goes by."""
    shut = should("SEG-RCV-024")
    for name, base in (("first", 0), ("second", 15)):
        files = {**ALL, name_of(base): ALL[name_of(base)] + bytes(5)}
        reason = "After a clean shutdown only the end of the last segment is looked at: a tail of another one stays."
        to.recover(f"clean-tail-of-the-{name}-segment", reason, shut, files, files, 30, cleanShutdown=True)
    for name, tail in (("size", struct.pack(">qi", 30, -1) + bytes(8)), ("magic", struct.pack(">qiib", 30, 2, 0, 2))):
        to.recover(
            f"clean-tail-of-an-impossible-{name}",
            "By the specification, a tail that cannot be an entry is removed, also after a clean shutdown.",
            shut,
            {**ALL, name_of(24): ALL[name_of(24)] + tail, **epochs((0, 0))},
            {**ALL, **epochs((0, 0))},
            30,
            modes="t",
            cleanShutdown=True,
        )
    opened, ended = [Batch(), data(1, b"a")], [marker("ABORT", 2), Batch(base=3)]
    right = {**segment(opened), **segment(ended, 2), name_of(2, ".txnindex"): aborted(9, 1, 2, 3)}
    lists = [(name_of(2, ".snapshot"), snapshot((9, 1), last_offset=1, time=1234))]
    for name, more in (("end", ()), ("both", lists)):
        above = {name_of(4, ".snapshot"): snapshot((9, -1), last_offset=1, time=1234), **dict(more)}
        kept = {key: content for key, content in right.items() if not key.endswith("2.txnindex")}
        to.recover(
            f"index-by-the-snapshot-below-{name}",
            "The transactions that a segment ends are those of the snapshot at its base offset, not of a later one.",
            must("SEG-RCV-025", "SEG-TXN-009"),
            {**kept, **above},
            {**right, **above, **epochs((3, 2))},
            4,
            recoveryPoint="2",
        )
    for name, spare in (("end", (15,)), ("inside", (15, 20))):
        replaced = {name_of(0, ".log.swap"): bytes_of([*FIRST[1:], *SECOND])}
        covered = {name_of(at, ".snapshot"): snapshot((9, -1), last_offset=2) for at in spare}
        to.recover(
            f"swap-covers-snapshots-{name}",
            "A finished replacement removes all files of the segments that it replaces, also their snapshots.",
            must("SEG-PDR-010", "SEG-RCV-021"),
            {**segment(FIRST), **segment(SECOND, 15), **replaced, **covered},
            {**segment([*FIRST[1:], *SECOND]), **epochs((0, 3))},
            24,
        )
    ends = should("SEG-RCV-008")
    for name, number in (("6", 6), ("32767", 2**15 - 1)):
        control = replace(marker("COMMIT", 1), recs=(Rec(key=control_key(number), value=marker_value(7)),))
        kept = segment([data(0, b"a"), control, Batch(base=2)])
        why = "By the specification, a control record of an unknown type stays."
        to.recover(f"marker-of-type-{name}-stays", why, ends, kept, {**kept, **epochs((0, 0), (3, 1))}, 3, modes="t")
    packed = replace(marker("ABORT", 1), codec="snappy", stored=b"no snappy")
    kept = segment([data(0, b"a"), packed, Batch(base=2)])
    why = "By the specification, an end marker that cannot be decompressed stays."
    to.recover("abort-that-is-no-snappy-stays", why, ends, kept, {**kept, **epochs((0, 0), (3, 1))}, 3, modes="t")
    wrapped = [
        Batch(producer_id=9, producer_epoch=2, base_sequence=2**31 - at, recs=(Rec(), Rec(), Rec())) for at in (1, 2)
    ]
    for name, one, last in (("first", wrapped[0], 1), ("second", wrapped[1], 0)):
        alone = {**segment([one]), **epochs((0, 0))}
        row = struct.pack(">qhiqiqiq", 9, 2, last, 2, 2, 1000, -1, -1)
        body = struct.pack(">i", 1) + row
        to.recover(
            f"snapshot-of-a-sequence-that-wraps-after-the-{name}",
            "The last sequence of a producer follows the greatest one: it is counted from 0 again.",
            must("SEG-BAT-017", "SEG-PSN-010"),
            alone,
            {**alone, name_of(3, ".snapshot"): struct.pack(">hI", 1, crc32c(body)) + body},
            3,
            modes="t",
            cleanShutdown=True,
        )


def _committed(family: Family) -> None:
    """Ask what `read_committed` hides where transactions and segments cross."""

    def reads(name: str, why: str, segments: Mapping[int, list[Batch]], offsets: Collection[int], end: int) -> None:
        units = [unit for one in segments.values() for unit in one]
        found = [record for answer in lay(units)[1] for record in answer["records"]]
        family.add(
            name,
            "read",
            "valid",
            why,
            must("SEG-LKP-011", "SEG-LKP-012"),
            request={
                "files": hexed({name_of(base): bytes_of(one) for base, one in segments.items()}),
                "offset": "0",
                "isolation": "read_committed",
            },
            expect={
                "records": [record for record in found if int(record["offset"]) in offsets],
                "nextOffset": str(end),
            },
        )

    across = "A transaction is aborted in a later segment: its records in the segment before are hidden as well."
    reads(
        "aborted-in-the-next-segment",
        across,
        {0: [Batch(), data(1, b"a")], 2: [marker("ABORT", 2), Batch(base=3)]},
        {0},
        2,
    )
    far = {
        0: [data(0, b"a"), Batch(base=1)],
        2: [Batch(base=2)],
        3: [data(3, b"b", sequence=1), marker("ABORT", 4), Batch(base=5)],
    }
    reads("aborted-two-segments-later", across, far, {1}, 2)


def _wrapped(family: Family) -> None:
    """Ask for wrappers whose keys are seen: no reader tells them."""
    for name, codec, compress, number in (("gzip", "gzip", gzip, 1), ("snappy", "snappy", xerial, 2)):
        add_encoding(
            family,
            f"wrapper-without-a-key-{name}",
            "The key of a wrapper is null.",
            should("SEG-MSG-023", since="0.10"),
            Wrapper(
                offset=11,
                inner=tuple(Msg(offset=at, timestamp=1000 + at) for at in range(2)),
                offsets=(10, 11),
                codec=codec,
                compress=compress,
            ),
            exact=False,
        )
        family.cases[-1]["expect"]["contains"] = struct.pack(">bbqi", 1, number, 1001, -1).hex()


def _flushed(family: Family) -> None:
    """Ask for the recovery point after appends that wait for the disk."""
    one, wait = append(batch(NOW)), append(batch(NOW), acks="flushed")
    basis = must("SEG-FLS-002", needs=("together",))
    for name, steps, points in (
        ("each", (one, wait, one), (0, 2, 2)),
        ("after-a-roll", (one, {"do": "roll"}, wait), (0, None, 2)),
    ):
        expect = {"steps": [{} if point is None else {"recoveryPoint": str(point)} for point in points]}
        why = "An append that waits for the disk flushes the log: the recovery point is its end."
        ScenarioCases(family).write(f"flushed-moves-the-recovery-point-{name}", why, basis, expect, *steps)

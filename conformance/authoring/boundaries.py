"""Cases on each side of limits that planted faults moved by one: lengths in compressed data, indexes, lookups."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from authoring.batches import TRANSACTIONAL, Batch, Rec
from authoring.casefile import hexed, lay, may, must, should
from authoring.codecs import (
    LZ4_BLOCK_CHECKSUM,
    LZ4_CONTENT_CHECKSUM,
    LZ4_END,
    LZ4_MAGIC,
    LZ4_PLAIN,
    XERIAL,
    gzip,
    lz4_frame_v0,
    lz4_header,
    lz4_packed,
    lz4_stored,
    xerial,
    xxh32,
    zstd,
)
from authoring.compressed import halves, packed, refused
from authoring.control import LEADER_CHANGE, control_key, data, empty, marker, marker_value
from authoring.encodings import NOW, add_encoding
from authoring.messages import Msg, Wrapper
from authoring.repairs import ALL, FIRST, SECOND, Repairs, epochs, segment, snapshot
from authoring.segments import aborted, bytes_of, name_of, offset_index, row, time_index

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from authoring.casefile import Basis, Family, Json, Unit

PATTERN: Final = bytes((7 * at + at // 256) % 256 for at in range(2400))
"""Bytes in which no long part occurs twice."""
SHORT_LITERAL: Final = 60
SHORT_DISTANCE: Final = 2**11


def boundaries(families: Mapping[str, Family]) -> None:
    """Add the cases to their families.

    Args:
        families: all of them, by name.
    """
    _snappy(families["snappy-xerial"])
    _lz4(families["lz4"])
    _damaged_streams(families)
    _limits(families["bombs"])
    _transactions(families["index-build"])
    _lookups(families["lookup"])
    _encodings(families["encoding"])
    _reads(families["transactions"])
    _files(families["files"])
    _retention(families["decisions"])
    _truncations(Repairs(families["recovery"]))


# -- lengths of literals and copies ------------------------------------------------------------------------------------


def _literal(content: bytes) -> bytes:
    """Return a snappy literal, with its size in the fewest bytes."""
    number = len(content) - 1
    if number < SHORT_LITERAL:
        return bytes([number << 2]) + content
    more = number.to_bytes(1 if number < 2**8 else 2, "little")
    return bytes([59 + len(more) << 2]) + more + content


def _framed(parts: bytes, size: int) -> bytes:
    block = (bytes([size]) if size < 2**7 else bytes([size & 127 | 128, size >> 7])) + parts
    return XERIAL + struct.pack(">I", len(block)) + block


def _snappy(family: Family) -> None:
    basis = must("SEG-COD-003", flags=("XERIAL",))
    for count in (1, 59, 60, 61, 255, 256, 257, 300):
        family.valid(
            f"literal-of-{count}",
            "A literal as long as a size in its tag, in one further byte or in two can say, or longer by one.",
            basis,
            packed(
                "snappy",
                lambda raw, count=count: _framed(_literal(raw[:count]) + _literal(raw[count:]), len(raw)),
                (Rec(value=PATTERN[:600]),),
            ),
        )
    for distance, length in (
        (1, 4),
        (1, 11),
        (1, 12),
        (1, 64),
        (4, 1),
        (300, 64),
        (2047, 11),
        (2047, 4),
        (2048, 4),
        (2048, 64),
    ):
        value = (PATTERN[:distance] * 65)[: distance + length]

        def copied(raw: bytes, value: bytes = value, distance: int = distance, length: int = length) -> bytes:
            start = raw.index(value) + distance
            copy = (
                bytes([distance >> 8 << 5 | length - 4 << 2 | 1, distance & 255])
                if distance < SHORT_DISTANCE and 4 <= length <= 11  # noqa: PLR2004 - what one byte can say
                else bytes([length - 1 << 2 | 2]) + struct.pack("<H", distance)
            )
            return _framed(_literal(raw[:start]) + copy + _literal(raw[start + length :]), len(raw))

        family.valid(
            f"copy-of-{length}-from-{distance}",
            "A copy whose length and distance are the greatest or smallest that its bytes can say.",
            basis,
            packed("snappy", copied, (Rec(key=None, value=value),)),
        )


def _extended(number: int) -> bytes:
    """Return the bytes that continue a length of an lz4 token; none below 15."""
    return b"" if number < 15 else b"\xff" * ((number - 15) // 255) + bytes([(number - 15) % 255])  # noqa: PLR2004


def _lz4_token(literals: bytes, match: int | None) -> bytes:
    """Return a sequence: literals, and a match of a length with what is one byte before; none at the end."""
    token = min(len(literals), 15) << 4 | (0 if match is None else min(match - 4, 15))
    rest = b"" if match is None else b"\1\0" + _extended(match - 4)
    return bytes([token]) + _extended(len(literals)) + literals + rest


def _lz4_blocks(*blocks: bytes, flags: int = LZ4_PLAIN) -> bytes:
    return lz4_header(flags) + b"".join(struct.pack("<I", len(one)) + one for one in blocks) + LZ4_END


def _lz4(family: Family) -> None:
    basis = must("SEG-COD-012")
    for count in (15, 16, 268, 269, 270, 271, 523, 524, 525, 526):
        family.valid(
            f"literals-of-{count}",
            "So many literals that the bytes of their length end at 0, 254 or 255, or one more.",
            basis,
            packed(
                "lz4",
                lambda raw, count=count: _lz4_blocks(_lz4_token(raw[:count], None), _lz4_token(raw[count:], None)),
                (Rec(value=PATTERN[:600]),),
            ),
        )
    for count in (4, 18, 19, 20, 272, 273, 274, 275, 528, 529):
        value = b"a" * (count + 1) + PATTERN[:16]

        def matched(raw: bytes, value: bytes = value, count: int = count) -> bytes:
            start = raw.index(value) + 1
            return _lz4_blocks(_lz4_token(raw[:start], count) + _lz4_token(raw[start + count :], None))

        why = "A match so long that the bytes of its length end at 0, 254 or 255, or one more."
        family.valid(f"match-of-{count}", why, basis, packed("lz4", matched, (Rec(key=None, value=value),)))
    full = (Rec(value=bytes(2**16 - 20)),)
    size = len(packed("none", bytes, full).encoded()) - 61
    full = (Rec(value=bytes(2**16 - 20 + 2**16 - size)),)
    family.valid(
        "stored-block-of-64-kib",
        "A stored block has exactly the size that the frame header allows.",
        basis,
        packed("lz4", lambda raw: lz4_header() + lz4_stored(raw) + LZ4_END, full),
    )


# -- damage and oddities in streams ------------------------------------------------------------------------------------


def _damaged_streams(families: Mapping[str, Family]) -> None:
    lz4, bad = families["lz4"], families["bad-compression"]
    header = should("SEG-COD-006")
    for name, flags, more in (("without-one", LZ4_PLAIN | 1, b""), ("of-0", LZ4_PLAIN | 1, bytes(4))):
        refused(
            lz4,
            f"dictionary-{name}",
            "The bit of the frame header that announces a dictionary is set: no broker reads such a frame.",
            header,
            "lz4",
            lambda raw, flags=flags, more=more: (
                LZ4_MAGIC
                + bytes([flags, 0x40])
                + more
                + xxh32(bytes([flags, 0x40]) + more)[1:2]
                + lz4_packed(raw)
                + LZ4_END
            ),
        )
    for count in (0, 3):
        refused(
            lz4,
            f"content-checksum-cut-at-{count}",
            "The header announces a checksum of the content, and the data ends before or within it.",
            should("SEG-COD-010"),
            "lz4",
            lambda raw, count=count: (
                lz4_header(LZ4_PLAIN | LZ4_CONTENT_CHECKSUM) + lz4_packed(raw) + LZ4_END + xxh32(raw)[:count]
            ),
        )
    for name, blocks in (
        ("second", lambda one, two: lz4_packed(one, checksum=True) + lz4_packed(two) + b"\1\2\3\4"),
        ("stored", lambda one, two: lz4_stored(one, checksum=True) + lz4_stored(two) + b"\1\2\3\4"),
        ("of-zero", lambda one, two: lz4_packed(one) + bytes(4) + lz4_packed(two, checksum=True)),
    ):
        refused(
            lz4,
            f"wrong-block-checksum-{name}",
            "The checksum of one of two blocks is wrong.",
            should("SEG-COD-012"),
            "lz4",
            lambda raw, blocks=blocks: lz4_header(LZ4_PLAIN | LZ4_BLOCK_CHECKSUM) + blocks(*halves(raw)) + LZ4_END,
        )
    basis = must("SEG-COD-002", flags=("BAD_STREAM",))
    for name, one, two in (("first", 1, 0), ("last", 0, -1)):
        refused(
            bad,
            f"gzip-wrong-size-of-the-{name}-member",
            "The size in the trailer of one of two members is wrong.",
            basis,
            "gzip",
            lambda raw, one=one, two=two: b"".join(
                gzip(part)[:-4] + struct.pack("<I", len(part) + wrong)
                for part, wrong in zip(halves(raw), (one, two), strict=True)
            ),
        )
    for name, more in (("by-one", 1), ("less-by-one", -1), ("by-300", 300)):
        refused(
            bad,
            f"snappy-size-wrong-{name}",
            "The size in front of a block is not that of its content.",
            must("SEG-COD-003", flags=("BAD_STREAM",)),
            "snappy",
            lambda raw, more=more: _framed(_literal(raw), len(raw) + more),
        )
    for name, order in (("inside", (0, b"", b"", 1)), ("last", (0, 1, b"", b""))):
        families["gzip"].valid(
            f"two-empty-members-{name}",
            "Two of four gzip members are empty: a reader goes on behind them.",
            must("SEG-COD-017", flags=("GZIP_MEMBERS",)),
            packed(
                "gzip",
                lambda raw, order=order: b"".join(gzip(halves(raw)[at] if isinstance(at, int) else at) for at in order),
            ),
        )
    for number in (1, 15):
        skipped = bytes([0x50 | number]) + bytes.fromhex("2a4d18") + struct.pack("<I", 3) + b"abc"
        families["zstd"].valid(
            f"skippable-{number}-between-and-behind",
            "Skippable frames with other magic numbers follow each frame: a reader passes over them.",
            should("SEG-COD-023", flags=("ZSTD_FRAMES",), since="2.1"),
            packed("zstd", lambda raw, skipped=skipped: b"".join(zstd(part) + skipped for part in halves(raw))),
        )
    old = families["lz4-header-checksum"]
    for count in (1, 2):
        inner = tuple(Msg(offset=at, timestamp=1000 + at, value=b"other") for at in range(count))
        old.invalid(
            f"magic-1-broken-variant-of-{count}",
            "The wrong header checksum of magic 0 is an error in magic 1.",
            must("SEG-COD-007", needs=("magic:1", "codec:lz4"), flags=("LZ4_HC",), since="0.10"),
            "compression",
            Msg(offset=3),
            Wrapper(offset=10 + count, inner=inner, codec="lz4", compress=lz4_frame_v0).encoded(),
            more=Msg(offset=90),
        )


def _limits(family: Family) -> None:
    """Ask for two batches that together are above the caller's limit, each below it."""
    for codec, compress in (("gzip", gzip), ("snappy", xerial)):
        one = packed(codec, compress)
        family.valid(
            f"limit-{codec}-of-two-batches",
            "The caller's limit is that of one batch: two batches that together have more are delivered.",
            must("SEG-COD-016", flags=("BOMB",), needs=("limit",)),
            one,
            replace(one, base=20),
            options={"limit": len(one.section())},
        )


# -- the transactions of a segment -------------------------------------------------------------------------------------


def _transactions(family: Family) -> None:
    def build(name: str, why: str, units: Sequence[Unit], *rows: bytes) -> None:
        files = {".index": offset_index(units, 100, 0).hex(), ".timeindex": time_index(units, 100, 0).hex()}
        family.add(
            name,
            "index",
            "valid",
            why,
            must("SEG-TXN-009", "SEG-TXN-003", "SEG-RCV-025", since="0.11"),
            request={"data": bytes_of(units).hex(), "baseOffset": "0", "indexIntervalBytes": 100},
            expect={"files": files | ({".txnindex": b"".join(rows).hex()} if rows else {})},
        )

    why = "Producer id 0 is a producer as any other."
    for name, units, found in (
        ("alone", [data(0, b"a", producer_id=0), marker("ABORT", 1, producer_id=0)], (aborted(0, 0, 1, 2),)),
        ("open", [data(0, b"a", producer_id=0), data(1, b"b"), marker("ABORT", 2)], (aborted(9, 1, 2, 0),)),
    ):
        build(f"aborted-producer-0-{name}", why, units, *found)
    why = "Batches outside of transactions begin none, and an ABORT after them ends nothing."
    plain = replace(data(0, b"a"), attributes=0)
    build("not-transactional-then-abort", why, [plain, marker("ABORT", 1), Batch(base=2)])
    later = data(2, b"b", sequence=1)
    build("not-transactional-then-aborted", why, [plain, Batch(base=1), later, marker("ABORT", 3)], aborted(9, 2, 3, 4))
    why = "The end marker has a newer producer epoch: it ends the transaction that was begun in the one before."
    for name, kind, rows in (("abort", "ABORT", (aborted(9, 0, 1, 2),)), ("commit", "COMMIT", ())):
        units = [data(0, b"a"), marker(kind, 1, producer_epoch=3), Batch(base=2), marker("ABORT", 3, producer_epoch=3)]
        build(f"epoch-of-the-marker-{name}", why, units, *rows)
    why = "A control batch that compaction has emptied ends no transaction."
    emptied = replace(empty(1, 0, producer_id=9, producer_epoch=2), attributes=TRANSACTIONAL | 0x20)
    for name, kind, rows in (("abort", "ABORT", (aborted(9, 0, 2, 3),)), ("commit", "COMMIT", ())):
        build(f"empty-control-then-{name}", why, [data(0, b"a"), emptied, marker(kind, 2)], *rows)
    why = "Aborted transactions are listed in the order of their markers, not of their first offsets or producers."
    first = [data(at, b"a", producer_id=at + 1) for at in range(3)]
    for name, order in (("3-1-2", (3, 1, 2)), ("2-3-1", (2, 3, 1))):
        opened = {1: 0, 2: 1, 3: 2}
        units, rows = [*first], []
        for at, producer in enumerate(order, 3):
            units.append(marker("ABORT", at, producer_id=producer))
            begun = opened.pop(producer)
            rows.append(aborted(producer, begun, at, min(opened.values(), default=at + 1)))
        build(f"three-aborted-{name}", why, units, *rows)


# -- lookups at the ends of a log --------------------------------------------------------------------------------------


def _lookups(family: Family) -> None:
    def find(
        name: str, why: str, basis: Basis, logs: Mapping[int, Sequence[Unit]], timestamp: int, found: Json
    ) -> None:
        files = hexed({name_of(base): bytes_of(units) for base, units in logs.items()})
        request = {"files": files, "timestamp": str(timestamp)}
        family.add(name, "lookup", "valid", why, basis, request=request, expect={"found": found})
        where = ("baseOffset", "entry", "position", *(() if "timestamp" in found else ("timestamp",)))
        family.cases[-1]["untold"] = [f"found.{one}" for one in where]

    special = must("SEG-LKP-009", needs=("specialTimestamps",))
    gone = [replace(one, base=one.base + 5) for one in row(2)]
    for name, logs, start in (("alone", {0: gone}, 0), ("at-3", {3: gone}, 3), ("empty", {7: []}, 7)):
        why = "The first records of the first segment are gone: the earliest offset is the base offset of the segment."
        find(f"earliest-of-a-segment-{name}", why, special, logs, -2, {"offset": str(start)})
    tails: dict[str, tuple[list[Batch], int]] = {
        "without-its-last-records": ([*row(2), replace(row(1, base=6)[0], last_delta=9)], 16),
        "without-records": ([*row(2), empty(6, 4)], 11),
        "of-a-marker": ([data(0, b"a"), marker("COMMIT", 1)], 2),
    }
    for name, (units, end) in tails.items():
        why = "The last batch ends above its last record: the latest offset is the one after the batch."
        find(f"latest-after-a-batch-{name}", why, special, {0: units}, -1, {"offset": str(end)})
    timed = must("SEG-LKP-008", needs=())
    three = {0: row(2), 6: row(2, base=6, start=5000), 12: row(2, base=12, start=3000)}
    for name, time, at, found in (("second", 4000, 6, 5000), ("third", 1013, 6, 5000), ("last", 5012, 11, 5012)):
        why = "The first record at or after the time is in a later segment than the first."
        find(f"time-in-three-segments-{name}", why, timed, three, time, {"offset": str(at), "timestamp": str(found)})
    largest = must("SEG-LKP-013", since="3.0", needs=("specialTimestamps",))
    for name, order, at in (("first", (9000, 5000, 3000), 5), ("middle", (1000, 5000, 3000), 11)):
        logs = {6 * number: row(2, base=6 * number, start=start) for number, start in enumerate(order)}
        why = "The largest timestamp of three segments is not in the last one."
        find(
            f"largest-in-the-{name}-of-three",
            why,
            largest,
            logs,
            -3,
            {"offset": str(at), "timestamp": str(max(order) + 12)},
        )


# -- encoders ----------------------------------------------------------------------------------------------------------


def _encodings(family: Family) -> None:
    for name, unit in (
        ("data", replace(data(0, b"a", producer_id=0), leader_epoch=-1)),
        ("marker", replace(marker("COMMIT", 0, producer_id=0), leader_epoch=-1)),
        ("abort", replace(marker("ABORT", 0, producer_id=0), leader_epoch=-1)),
    ):
        why = "Producer id 0 is a producer as any other, also in a transaction."
        add_encoding(family, f"producer-0-{name}", why, must("SEG-BAT-001"), unit)
    for name, times in (("first", (9, 0, 5)), ("middle", (0, 9, 5))):
        for magic, stamp in ((1, 0),):
            add_encoding(
                family,
                f"wrapper-time-of-the-{name}",
                "The timestamp of a wrapper is the largest inside, which is not that of the last message.",
                must("SEG-MSG-015", since="0.10"),
                Wrapper(
                    magic=magic,
                    offset=12,
                    inner=tuple(Msg(offset=at, timestamp=NOW + time) for at, time in enumerate(times)),
                    offsets=(10, 11, 12),
                    attributes=stamp,
                    compress=gzip,
                ),
                exact=False,
            )
    for magic, count in ((0, 2), (1, 2), (0, 1), (1, 1), (0, 3), (1, 3)):
        offsets = tuple(range(10, 10 + count))
        for codec, compress, begins in (
            ("snappy", xerial, ["82534e4150505900"]),
            ("lz4", lz4_frame_v0, _headers(old=magic == 0)),
        ):
            wrapper = Wrapper(
                magic=magic,
                offset=offsets[-1],
                inner=tuple(
                    Msg(magic=magic, offset=at if magic else 10 + at, timestamp=NOW, value=b"value" * 20)
                    for at in range(count)
                ),
                offsets=offsets,
                codec=codec,
                compress=compress,
            )
            add_encoding(
                family,
                f"codec-{codec}-header-magic-{magic}{'' if count == 2 else f'-of-{count}'}",  # noqa: PLR2004
                "The frame begins as clients of that time expect it: they refuse another header.",
                may("SEG-COD-003" if codec == "snappy" else "SEG-COD-007", since="0.10" if magic else "0.8.0"),
                wrapper,
                exact=False,
            )
            case = family.cases[-1]
            batches = case["expect"]["batches"]
            if len(begins) == 1:
                case["expect"]["contains"] = begins[0]
            else:
                branches = [{"branch": text, "batches": batches, "contains": text} for text in begins]
                case["result"], case["expect"] = "acceptable", {"allowed": branches}
                effect = "Clients of that time refuse a frame whose header has another checksum or descriptor."
                family.flags["LZ4_HEADER"], case["flags"] = {"effect": effect, "links": []}, ["LZ4_HEADER"]


def _headers(*, old: bool) -> list[str]:
    """Return the headers of lz4 frames of independent blocks, without content size, that are right for a magic."""
    found = []
    for flags in (0x60, 0x64, 0x70, 0x74):
        for block in (0x40, 0x50, 0x60, 0x70):
            described = bytes([flags, block])
            checksum = xxh32((LZ4_MAGIC if old else b"") + described)[1:2]
            found.append((LZ4_MAGIC + described + checksum).hex())
    return found


# -- fetches -----------------------------------------------------------------------------------------------------------


def _reads(family: Family) -> None:
    def fetch(
        name: str, why: str, basis: Basis, units: Sequence[Unit], offsets: Sequence[int], end: int, **more: object
    ) -> None:
        records = [record for answer in lay(units)[1] for record in answer["records"]]
        family.add(
            name,
            "read",
            "valid",
            why,
            basis,
            request={"files": hexed({name_of(0): bytes_of(units)}), "offset": "0", **more},
            expect={
                "records": [record for record in records if int(record["offset"]) in offsets],
                "nextOffset": str(end),
            },
        )

    committed = {"isolation": "read_committed"}
    mixed = [
        data(0, b"a"),
        marker("ABORT", 1),
        data(2, b"b", sequence=1),
        marker("COMMIT", 3),
        Batch(base=4),
        data(5, b"c", sequence=2),
        Batch(base=6),
    ]
    ends = [0]
    for unit in mixed:
        ends.append(ends[-1] + len(unit.encoded()))
    sized = must("SEG-LKP-006", "SEG-LKP-011", "SEG-LKP-012")
    for count, kept in ((1, ()), (3, (2,)), (4, (2,)), (5, (2, 4)), (7, (2, 4))):
        for name, size in (("exactly", ends[count]), ("less-by-one", ends[count] - 1)):
            whole = max(count - (name != "exactly"), 1)
            fetch(
                f"committed-in-the-size-of-{count}-{name}",
                "A fetch of committed records keeps to its size, and leaves out what was aborted or is open.",
                sized,
                mixed,
                [at for at in kept if at < whole],
                min(whole, 5),
                maxBytes=size,
                **committed,
            )
    why = "A control record of another type, or an unreadable one, ends no transaction, also if it names the producer."
    for name, key, value in (
        ("leader-change", control_key(2), LEADER_CHANGE),
        ("snapshot-header", control_key(3), struct.pack(">hq", 0, 5) + b"\0"),
        ("of-type-9", control_key(9), marker_value(7)),
    ):
        other = replace(marker("ABORT", 1), recs=(Rec(key=key, value=value),))
        for kind, kept, listed in (("ABORT", (4,), aborted(9, 0, 3, 4)), ("COMMIT", (0, 2, 4), b"")):
            units = [data(0, b"a"), other, data(2, b"b", sequence=1), marker(kind, 3), Batch(base=4)]
            fetch(f"committed-{name}-before-{kind.lower()}", why, must("SEG-LKP-016"), units, kept, 5, **committed)
            beside = {name_of(0, ".index"): b"", name_of(0, ".timeindex"): time_index(units, 4096)}
            beside |= {name_of(0, ".txnindex"): listed, name_of(5, ".snapshot"): snapshot((9, -1), last_offset=2)}
            family.cases[-1]["request"]["files"] |= hexed(beside)
    why = "A transactional batch that compaction has emptied belongs to a transaction like any other."
    emptied = replace(empty(1, 2, producer_id=9, producer_epoch=2), attributes=TRANSACTIONAL)
    for name, more, kept, end in (
        ("open", (), (0,), 1),
        ("committed", (marker("COMMIT", 5),), (0, 4), 6),
        ("aborted", (data(5, b"a", sequence=3), marker("ABORT", 6)), (0, 4), 7),
    ):
        units = [Batch(), emptied, Batch(base=4), *more]
        fetch(f"committed-after-an-empty-batch-{name}", why, must("SEG-LKP-012"), units, kept, end, **committed)


# -- small files, decisions and truncation -----------------------------------------------------------------------------


def _files(family: Family) -> None:
    for kind, size, entry, rule in (
        ("index", 8, ["103", 119], "SEG-IDX-011"),
        ("timeindex", 12, ["1101", "103"], "SEG-TIX-010"),
    ):
        row = struct.pack(">ii", 3, 119) if kind == "index" else struct.pack(">qi", 1101, 3)
        for count in (1, 2):
            family.add(
                f"{kind}-with-{count}-free",
                "parse",
                "valid",
                "Slots of zeros at the end are no entries, also if there are one or two of them.",
                must(rule),
                request={"kind": kind, "name": name_of(100, f".{kind}"), "data": (row + bytes(count * size)).hex()},
                expect={
                    "object": {
                        "fileBytes": size * (count + 1),
                        "entryCount": 1 + count,
                        "trailingZeroEntries": count,
                        "entries": [entry],
                    }
                },
            )


def listed(rows: Sequence[tuple[int, int, int]]) -> list[Json]:
    """Return a listing of segments of ten offsets: size, largest timestamp and time of the last write of each."""
    return [
        {
            "baseOffset": str(10 * at),
            "nextOffset": str(10 * at + 10),
            "size": str(size),
            "largestTimestamp": str(time),
            "modified": str(modified),
        }
        for at, (size, time, modified) in enumerate(rows)
    ]


def _retention(family: Family) -> None:
    def decide(
        name: str, why: str, rows: Sequence[tuple[int, int, int]], gone: int, now: int = 10_000, **config: int
    ) -> None:
        family.add(
            f"retain-{name}",
            "decide",
            "valid",
            why,
            must("SEG-RET-001", flags=("RETENTION_RULES",)),
            request={
                "what": "retain",
                "listing": listed(rows),
                "config": {
                    f"retention.{key}": str(number) for key, number in ({"ms": -1, "bytes": -1} | config).items()
                },
                "now": str(now),
                "logStartOffset": "0",
                "highWatermark": str(10 * len(rows)),
            },
            expect={
                "decision": "delete" if gone else "keep",
                "segments": [str(10 * at) for at in range(gone)],
                "logStartOffset": str(10 * gone),
                "rollsFirst": False,
            },
        )

    new, old = 9_990, 1_000
    why = "Removal by time goes on where removal by size has stopped, and not the other way round."
    decide("size-then-time-behind", why, [(100, new, 0), (100, old, 0), (100, new, 0)], 2, ms=100, bytes=200)
    decide("time-behind-one-that-stays", why, [(100, new, 0), (100, old, 0), (100, new, 0)], 0, ms=100, bytes=300)
    decide("time-then-size-too-few", why, [(100, old, 0), (100, new, 0), (100, new, 0)], 1, ms=100, bytes=200)
    why = "A timestamp of 0 is one: the age counts from it, not from the last write. With -1, it counts from there."
    for name, time, modified, gone in (
        ("0-of-a-new-file", 0, new, 1),
        ("minus-1-of-a-new-file", -1, new, 0),
        ("minus-1-of-an-old-file", -1, old, 1),
        ("1-of-a-new-file", 1, new, 1),
    ):
        decide(f"time-{name}", why, [(100, time, modified), (100, new, new)], gone, ms=100)


def _truncations(to: Repairs) -> None:
    stray = {name_of(at, ".snapshot"): snapshot((9, -1), last_offset=2) for at in (24, 27, 30)}
    why = "Snapshots above the offset are removed, those of removed segments and others."
    kept = {**segment(FIRST), **segment(SECOND, 15), **segment((), 24), **epochs((0, 0))}
    left = {**kept, name_of(24, ".snapshot"): stray[name_of(24, ".snapshot")]}
    to.truncate("at-24-with-snapshots", why, must("SEG-TRN-004"), 24, {**ALL, **stray, **epochs((0, 0))}, left)
    beside = {name_of(at, ".snapshot"): snapshot((9, -1), last_offset=2) for at in (15, 18, 21, 25)}
    cut = {name: data for name, data in ALL.items() if name < name_of(15, "")}
    cut |= {**segment((), 15), **epochs((0, 0)), name_of(15, ".snapshot"): beside[name_of(15, ".snapshot")]}
    given = {**ALL, **stray, **beside, **epochs((0, 0))}
    to.truncate("at-15-with-snapshots-between", why, must("SEG-TRN-004"), 15, given, cut)

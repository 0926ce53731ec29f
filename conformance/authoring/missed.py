"""Cases for planted faults that no other case showed, or that one case alone showed."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from authoring.batches import CONTROL, DELETE_HORIZON, LOG_APPEND_TIME, TRANSACTIONAL, Batch, Rec
from authoring.casefile import hexed, lay, must, should
from authoring.codecs import LZ4_END, ZSTD_MAGIC, gzip, lz4_header, lz4_packed, xerial, zstd, zstd_block
from authoring.compressed import GOOD, TEXT, halves, packed, refused
from authoring.control import LEADER_CHANGE, control_key, empty, kraft, marker, marker_value
from authoring.damage import COMPRESSORS
from authoring.encodings import NOW, add_encoding
from authoring.messages import Msg, Wrapper
from authoring.primitives import flipped, sized
from authoring.repairs import ALL, FIRST, THIRD, Repairs, epochs, segment
from authoring.segments import SIZE, bytes_of, name_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from authoring.casefile import Family

BLOCKS: Final = {
    "snappy": lambda data: xerial(data, len(data) // 3 + 1),
    "lz4": lambda data: lz4_header() + b"".join(lz4_packed(part) for part in halves(data, 3)) + LZ4_END,
    "gzip": lambda data: b"".join(gzip(part) for part in halves(data, 3)),
    "zstd": lambda data: b"".join(zstd(part) for part in halves(data, 3)),
}
"""What makes a stream of three parts, by codec."""


def missed(families: Mapping[str, Family]) -> None:
    """Add the cases to their families.

    Args:
        families: all of them, by name.
    """
    _lookups(families["lookup"])
    _offsets(families["offset-order"])
    _wrappers(families["magic-1-wrappers"])
    _limits(families["bombs"])
    _windows(families["zstd"])
    _encodings(families["encoding"])
    _strict(families["encoding"])
    _clean_tails(Repairs(families["recovery"]))
    _control(families["transactions"], Repairs(families["recovery"]))
    _headers(families)
    _checksums(families["crc"])
    _lengths(families)


def _lookups(family: Family) -> None:
    """Ask for offsets of records that are gone, above the last record of a batch and not above its last offset."""
    cleaned = [replace(one, base=10 * at, last_delta=9) for at, one in enumerate(FIRST)]
    for name, offset, at in (("first", 8, 0), ("last", 49, 4)):
        family.add(
            f"above-all-records-of-the-{name}-batch",
            "lookup",
            "valid",
            "The last records of a batch are gone: the batch still contains their offsets.",
            must("SEG-LKP-002", "SEG-BAT-016"),
            request={"files": hexed({name_of(0): bytes_of(cleaned)}), "offset": str(offset)},
            expect={"found": {"position": at * SIZE, "baseOffset": str(10 * at)}},
        )


def _offsets(family: Family) -> None:
    above = should("SEG-REC-014", "SEG-REC-012", flags=("HEADER_OFFSETS",))
    recs = (Rec(), Rec(delta=5))
    for name, unit in (("alone", Batch(base=10, recs=recs, last_delta=1)), ("compressed", packed("gzip", gzip, recs))):
        why = "A record has an offset above the last offset of its batch, and no other batch has it: it is delivered."
        family.valid(
            f"record-beyond-the-last-delta-{name}", why, above, replace(unit, last_delta=1), more=Batch(base=100)
        )


def _wrappers(family: Family) -> None:
    def limits(name: str, offsets: range, below: str, at: str) -> None:
        inner = tuple(Msg(offset=offset, timestamp=1000 + number) for number, offset in enumerate(offsets))
        wrapper = Wrapper(offset=offsets[-1], inner=inner, codec="snappy", compress=xerial)
        family.invalid(
            f"one-below-the-last-of-{name}",
            f"The wrapper's offset is one less than the last relative one inside{below}",
            should("SEG-MSG-014", needs=("magic:1", "codec:snappy"), since="0.10"),
            "offset",
            Msg(offset=0),
            replace(wrapper, offset=offsets[-1] - 1).encoded(),
            more=Msg(offset=90),
        )
        why = f"The wrapper's offset is the last relative one inside{at}"
        family.valid(f"at-the-last-of-{name}", why, must("SEG-MSG-014", "SEG-MSG-012", since="0.10"), wrapper)

    for count in (3, 6):
        limits(str(count), range(count), ": the first message would be at -1.", ": the first message is at 0.")
    for name, offsets in (("5-to-7", range(5, 8)), ("1-to-3", range(1, 4))):
        limits(name, offsets, ", and no message would be below 0.", ", and the first is not 0.")


def _limits(family: Family) -> None:
    for codec, compress in BLOCKS.items():
        batch = packed(codec, compress, TEXT)
        size = len(batch.section())
        family.invalid(
            f"limit-{codec}-of-all-parts",
            "Each part of the stream is below the caller's limit, all of them are above it: the reader refuses it.",
            must("SEG-COD-016", flags=("BOMB",), needs=("limit", "magic:2", f"codec:{codec}")),
            "limit",
            GOOD,
            batch.encoded(),
            options={"limit": size - 1},
        )
        for kind, exact in (("all-parts", batch), ("one-part", packed(codec, COMPRESSORS[codec], TEXT))):
            family.valid(
                f"limit-{codec}-exactly-{kind}",
                "The content is exactly as large as the caller's limit: it is not above it.",
                must("SEG-COD-016", flags=("BOMB",), needs=("limit",)),
                exact,
                options={"limit": size},
            )

    sized_whole = Batch(base=5, recs=(Rec(value=bytes(500)), Rec()))
    for name, limit in (("one-byte", 1), ("all-but-one", len(sized_whole.section()) - 1)):
        family.valid(
            f"limit-without-a-codec-{name}",
            "The limit is for what is decompressed: records that are not compressed may be more than that.",
            should("SEG-COD-016", flags=("BOMB",), needs=("limit",)),
            sized_whole,
            options={"limit": limit},
        )


def _windows(family: Family) -> None:
    for name, given in (("64-mib", 0x80), ("120-mib", 0x87), ("128-mib", 0x88)):
        family.valid(
            f"window-of-{name}",
            "The window of a frame may be as large as 128 MiB, whatever its content needs.",
            must("SEG-COD-022", since="2.1"),
            packed("zstd", lambda data, given=given: ZSTD_MAGIC + bytes((0, given)) + zstd_block(data)),
        )
    for name, given in (("144-mib", 0x89), ("192-mib", 0x8C), ("240-mib", 0x8F), ("288-mib", 0x91), ("1-gib", 0xA0)):
        refused(
            family,
            f"window-of-{name}",
            "The window of a frame is larger than 128 MiB: a decoder would have to set it aside for three records.",
            should("SEG-COD-022", since="2.1"),
            "zstd",
            lambda data, given=given: ZSTD_MAGIC + bytes((0, given)) + zstd_block(data),
        )


def _encodings(family: Family) -> None:
    far = 2**32 + 5
    for name, codec, times in (
        ("later", "none", (0, far)),
        ("earlier", "none", (0, -far)),
        ("gzip", "gzip", (0, far, 5)),
        ("lz4", "lz4", (0, -far, 5)),
    ):
        add_encoding(
            family,
            f"time-delta-of-33-bits-{name}",
            "A timestamp delta needs more than 32 bits, of which the lower ones look like another one.",
            must("SEG-BAT-012"),
            Batch(
                leader_epoch=-1,
                base_timestamp=NOW,
                codec=codec,
                compress=COMPRESSORS.get(codec),
                recs=tuple(Rec(value=b"the same words again and again, " * 8, time=time) for time in times),
            ),
            exact=codec == "none",
        )
    for name, bits, codec in (
        ("transactional", TRANSACTIONAL, "none"),
        ("stamped", LOG_APPEND_TIME, "none"),
        ("gzip", 0, "gzip"),
        ("zstd-transactional", TRANSACTIONAL, "zstd"),
    ):
        add_encoding(
            family,
            f"delete-horizon-{name}",
            "A delete horizon is written whatever the other attributes of the batch are.",
            must("SEG-BAT-013"),
            Batch(
                leader_epoch=4,
                attributes=DELETE_HORIZON | bits,
                base_timestamp=501_000,
                max_timestamp=2000,
                producer_id=9,
                producer_epoch=0,
                base_sequence=0,
                codec=codec,
                compress=COMPRESSORS.get(codec),
                recs=(Rec(value=None, time=-499_000), Rec(time=-499_500)),
            ),
            exact=name == "transactional",
        )
    for name, key in (("a-byte", b"\xff"), ("cut-short", b"a\xe2\x82"), ("a-surrogate", b"\xed\xa0\x80")):
        add_encoding(
            family,
            f"header-key-{name}",
            "The bytes of a header key that are not UTF-8 are written as they were given.",
            should("SEG-REC-011"),
            Batch(leader_epoch=-1, recs=(Rec(headers=((key, b"1"), (b"ok", None))),)),
        )
        family.cases[-1]["needs"] = sorted({*family.cases[-1]["needs"], "bytesKeys"})
    effect = "Kafka's consumer refuses a batch that names a codec, if no stream of that codec follows its header."
    family.flags["EMPTY_STREAM"] = {"effect": effect, "links": []}
    for codec, begins in (("gzip", "1f8b08"), ("lz4", "04224d18")):
        add_encoding(
            family,
            f"empty-batch-{codec}",
            "A batch without records is to be compressed: a stream without content follows its header, or it has no codec.",
            should("SEG-BAT-018", "SEG-BAT-001", flags=("EMPTY_STREAM",)),
            replace(empty(100, 4, leader_epoch=-1), codec=codec, stored=b""),
            exact=False,
        )
        case = family.cases[-1]
        (batch,) = case["expect"]["batches"]
        compressed = {"branch": "a stream without content", "batches": [batch], "contains": begins}
        plain = {"branch": "no codec", "batches": [{**batch, "codec": "none"}]}
        case["result"], case["expect"] = "acceptable", {"allowed": [compressed, plain]}


def _strict(family: Family) -> None:
    """Ask encoders that look at the offsets they are given to refuse what no writer may write."""
    for name, kind, rule, why, deltas in (
        ("order-back", "order", "SEG-REC-013", "The second record has a smaller offset than the first.", (1, 0)),
        ("order-twice", "order", "SEG-REC-013", "Two records have the same offset.", (0, 0)),
        ("below-the-base", "range", "SEG-REC-014", "A record has an offset below the base offset.", (-1, 0)),
        ("beyond-31-bits", "range", "SEG-REC-014", "An offset delta needs more than 31 bits.", (0, 2**31)),
    ):
        last = max(1, *deltas)
        add_encoding(
            family,
            f"strict-{name}",
            f"{why} No writer may write that: the encoder refuses it.",
            should(rule),
            Batch(
                base=10,
                leader_epoch=-1,
                recs=tuple(Rec(delta=delta) for delta in deltas),
                last_delta=min(last, 2**31 - 1),
            ),
        )
        case = family.cases[-1]
        case["result"], case["expect"] = "invalid", {"reject": {"class": "policy"}}
        case["needs"] = sorted({*case["needs"], f"strictEncode:{kind}"})
        case["request"]["batches"][0]["lastOffset"] = str(10 + last)
        case["request"]["batches"][0]["nextOffset"] = str(11 + last)
        case["request"]["options"] = {"strict": True}


def _clean_tails(to: Repairs) -> None:
    """After a clean shutdown a tail is removed, and damage before it stays; an unfinished text file goes."""
    for name, base in (("first", 0), ("last", 24)):
        damaged = {**ALL, name_of(base): flipped(ALL[name_of(base)], 70), **epochs((0, 0))}
        to.recover(
            f"clean-tail-and-damage-in-the-{name}-segment",
            "By the specification, recovery removes the tail after a clean shutdown, and checks nothing else.",
            should("SEG-RCV-024"),
            {**damaged, name_of(24): damaged[name_of(24)] + b"\1\2\3\4\5"},
            damaged,
            30,
            modes="t",
            cleanShutdown=True,
        )

    for name, before, start in (("second", FIRST, 0), ("first-and-second", (), 24)):
        gap = {**segment(before), **segment((), 15), **segment(THIRD, 24), **epochs((0, start))}
        why = "An empty segment that is not the last is part of the log: recovery keeps it."
        to.recover(f"empty-{name}-stays", why, must("SEG-RCV-004"), gap, gap, 30)
    whole = {**ALL, **epochs((0, 0))}
    for name in ("partition.metadata", "leader-epoch-checkpoint"):
        to.recover(
            f"removes-tmp-of-{name.replace('.', '-')}",
            "By the specification, recovery removes a file that was being written.",
            should("SEG-RCV-020"),
            {**whole, f"{name}.tmp": b"0\n"},
            whole,
            30,
            modes="t",
        )


def _control(reads: Family, to: Repairs) -> None:
    """Control records of a quorum that cannot be read stop neither recovery nor a read; a wrong checksum does."""
    leader = kraft("LEADER_CHANGE", LEADER_CHANGE, 0)
    first = replace(marker("COMMIT", 0), leader_epoch=0)
    for name, unit in (
        ("commit", replace(first, base=1)),
        ("abort", replace(marker("ABORT", 1), leader_epoch=0)),
        ("leader-change", replace(leader, base=1, leader_epoch=0)),
    ):
        kept = segment([first])
        to.recover(
            f"wrong-checksum-of-{name}",
            "The checksum of a control batch is verified as any other: the log is cut in front of it.",
            must("SEG-RCV-008", "SEG-BAT-003"),
            {**kept, name_of(0): kept[name_of(0)] + flipped(unit.encoded(), len(unit.encoded()) - 2)},
            {**kept, **epochs((0, 0))},
            1,
        )

    def control(key: bytes | None, value: bytes | None) -> Batch:
        return Batch(base=1, recs=(Rec(key=key, value=value),), attributes=CONTROL, leader_epoch=3)

    later = Batch(base=2, leader_epoch=3)
    for name, unit in (
        ("of-type-9", control(control_key(9), b"\xff")),
        ("without-a-value", control(control_key(2), None)),
        ("cut-short", control(control_key(2), LEADER_CHANGE[:3])),
        ("of-version-minus-1", control(control_key(2), struct.pack(">h", -1) + LEADER_CHANGE[2:])),
    ):
        kept = segment([leader, unit, later])
        why = "Recovery reads control records of producers alone: one of a quorum stays, whatever is in it."
        to.recover(
            f"quorum-record-{name}-stays", why, must("SEG-RCV-008", "SEG-CTL-006"), kept, {**kept, **epochs((3, 0))}, 3
        )
    for name, value in (("cut-short", LEADER_CHANGE[:3]), ("of-version-minus-1", struct.pack(">h", -1))):
        kept = segment([leader, replace(control(control_key(2), value), producer_id=9, producer_epoch=2), later])
        to.recover(
            f"quorum-record-of-a-producer-{name}-stays",
            "By the specification, a control record of a producer that is no end marker stays, whatever is in it.",
            should("SEG-RCV-008", "SEG-CTL-006"),
            kept,
            {**kept, **epochs((3, 0))},
            3,
            modes="t",
        )
    for name, isolation in (("uncommitted", "read_uncommitted"), ("committed", "read_committed")):
        units = [leader, control(control_key(9), b"\xff"), later]
        reads.add(
            f"control-of-an-unknown-type-{name}",
            "read",
            "valid",
            "A control record of an unknown type is not delivered, and the read goes on behind it.",
            must("SEG-CTL-009"),
            request={"files": hexed({name_of(0): bytes_of(units)}), "offset": "0", "isolation": isolation},
            expect={"records": lay(units)[1][2]["records"], "nextOffset": "3"},
        )


def _headers(families: Mapping[str, Family]) -> None:
    """Ask for numbers of a header that no broker writes, at the limits of their types, and for a horizon of 0."""
    plain = families["plain-batches"]
    for name, number in (("minus-2", -2), ("least", -(2**15))):
        plain.valid(
            f"producer-epoch-{name}",
            "No producer has such an epoch: a reader reports it with its sign, and delivers the records.",
            should("SEG-BAT-001", "SEG-BAT-020"),
            Batch(producer_id=9, producer_epoch=number, base_sequence=0),
        )
    for name, number in (("minus-2", -2), ("least", -(2**31))):
        why = "No leader has such an epoch: a reader reports it with its sign, and delivers the records."
        plain.valid(f"leader-epoch-{name}", why, should("SEG-BAT-001", "SEG-BAT-021"), Batch(leader_epoch=number))
    for name, time in (("0", 0), ("1", 1), ("greatest", 2**63 - 1)):
        families["delete-horizon"].valid(
            f"horizon-{name}",
            "A delete horizon is any number of milliseconds, also 0.",
            must("SEG-BAT-013"),
            Batch(attributes=DELETE_HORIZON, base_timestamp=time, recs=(Rec(), Rec(value=None)), max_timestamp=time),
        )
    below = should("SEG-BAT-005", needs=("magic:2",))
    for name, base, delta, recs in (("minus-1-empty", -1, 0, ()), ("minus-1-of-a-record-at-0", -1, 1, (Rec(delta=1),))):
        unit = Batch(base=base, recs=recs, last_delta=delta, max_timestamp=1000)
        why = "A negative base offset, and no record below 0."
        families["offset-order"].invalid(f"base-offset-{name}", why, below, "offset", GOOD, unit.encoded())
    for name, unit in (
        ("two-records", Batch(attributes=TRANSACTIONAL, recs=(Rec(), Rec()))),
        ("gzip", Batch(attributes=TRANSACTIONAL, codec="gzip", compress=gzip, recs=(Rec(), Rec()))),
    ):
        why = "The transactional bit is set without a producer id: this is unusual, but every record can be read."
        families["transactions"].valid(f"transactional-without-producer-{name}", why, should("SEG-BAT-022"), unit)


def _checksums(family: Family) -> None:
    """Ask for each kind of batch where its checksum is the only thing wrong, and for the last entry of a log."""
    kinds = {
        "gzip": Batch(base=10, codec="gzip", compress=gzip, recs=(Rec(), Rec())),
        "marker": marker("COMMIT", 10),
        "empty": empty(10, 4),
    }
    basis = must("SEG-BAT-003", needs=("crc", "magic:2"), flags=("CRC",))
    for name, unit in kinds.items():
        whole, needs = unit.encoded(), (*basis.needs, f"codec:{unit.codec}") if unit.codec != "none" else basis.needs
        own = replace(basis, needs=needs)
        for change, bad in (("0", whole[:17] + bytes(4) + whole[21:]), ("top-bit", flipped(whole, 17, 7))):
            why = (
                "The stored checksum is another one, in one of its bits or in all: it is compared whole, in any batch."
            )
            family.invalid(f"{change}-of-{name}", why, own, "crc", GOOD, bad)
        why = "The damaged batch is the last entry of the log: it is verified as any other."
        family.invalid(f"last-{name}", why, own, "crc", GOOD, flipped(whole, 20, 0), more=False)
    for magic in (0, 1):
        one = Msg(magic=magic, offset=4)
        for change, bad in (
            ("0", one.encoded()[:12] + bytes(4) + one.encoded()[16:]),
            ("top-bit", flipped(one.encoded(), 12, 7)),
        ):
            family.invalid(
                f"{change}-of-magic-{magic}",
                "The stored checksum of the last message of the log is another one.",
                must("SEG-MSG-004", needs=("crc", f"magic:{magic}"), flags=("CRC",)),
                "crc",
                Msg(magic=magic, offset=3),
                bad,
                more=False,
            )


def _lengths(families: Mapping[str, Family]) -> None:
    """Ask for fields of a control record that are longer than needed, and for unusual varints in other fields."""
    control = families["control-records"]
    needs = ("control",)
    for kind in ("ABORT", "COMMIT"):
        unit = marker(kind, 5)
        for count in (1, 2, 100):
            more = b"m" * count
            for part, key, value in (
                ("key", control_key(int(kind == "COMMIT"), more=more), marker_value(7)),
                ("value", control_key(int(kind == "COMMIT")), marker_value(7, more=more)),
            ):
                control.valid(
                    f"{kind.lower()}-{part}-and-{count}-bytes",
                    "The key or value of an end marker may have more bytes after its known fields.",
                    must("SEG-CTL-001", "SEG-CTL-004", needs=needs),
                    replace(unit, recs=(replace(unit.recs[0], key=key, value=value),)),
                )
    varints = families["varints"]
    dropped = should("SEG-REC-004", flags=("OVERLONG",))
    for name, raw in (
        ("key-length", b"\0\0\0" + b"\x82\x80\x80\x80\x70" + b"k" + sized(b"v") + b"\0"),
        ("value-length", b"\0\0\0" + sized(b"k") + b"\x82\x80\x80\x80\x70" + b"v" + b"\0"),
        ("header-count", b"\0\0\0" + sized(b"k") + sized(b"v") + b"\x80\x80\x80\x80\x70"),
    ):
        why = "The fifth byte of a varint has bits beyond 32; a reader drops them, as Java does."
        varints.valid(f"bits-beyond-32-{name}", why, dropped, Batch(recs=(Rec(raw=sized(raw)), Rec(key=b"z"))))
    for name, last, time in (("0", b"\x7e", 0), ("minus-1", b"\x7e", -1)):
        digits = (b"\x80" if time == 0 else b"\x81") + b"\x80" * 8 + last
        raw = b"\0" + digits + b"\0" + sized(b"k") + sized(b"v") + b"\0"
        varints.valid(
            f"bits-beyond-64-{name}-first",
            "The tenth byte of a varint has bits beyond 64; a reader drops them, as Java does.",
            dropped,
            Batch(recs=(Rec(raw=sized(raw), time=time), Rec(key=b"z"))),
        )
    order = should("SEG-REC-013", "SEG-REC-012", flags=("BACKWARDS",))
    back = (Rec(delta=2), Rec(delta=0), Rec(delta=1))
    families["offset-order"].backwards(
        "deltas-go-back-gzip",
        "The records of a batch are out of order: a reader delivers them in stored order.",
        order,
        Batch(base=10, recs=back, last_delta=2, codec="gzip", compress=gzip),
    )

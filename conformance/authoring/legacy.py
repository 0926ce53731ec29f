"""Families 22 to 25: messages of magic 0 and 1, plain and in wrappers."""

from __future__ import annotations

from dataclasses import replace

from authoring.casefile import Family, lay, may, must, should
from authoring.codecs import gzip, lz4_frame, lz4_frame_v0, snappy_block, xerial, zstd
from authoring.messages import LOG_APPEND_TIME, Msg, Wrapper, message, moved, resealed
from authoring.primitives import replaced, sized32


def plain_messages() -> Family:
    """Family 22."""
    family = Family(
        22,
        "plain-messages",
        "Plain messages of magic 0 and 1",
        "facts 2.2",
        flags={
            "OLD_FORMAT": {
                "effect": "Logs from before 0.11 hold such messages to this day, and brokers since 4.0 still serve them.",
                "links": [],
            }
        },
    )
    for magic, rule, vector, since in ((0, "SEG-MSG-001", "V-01", "0.8"), (1, "SEG-MSG-002", "V-02", "0.10")):
        both = {"since": since, "flags": ("OLD_FORMAT",)}
        basis = must(rule, "SEG-MSG-004", **both)
        three = (
            Msg(magic=magic, offset=10, key=None, value=b"a"),
            Msg(magic=magic, offset=11, value=None, timestamp=1005),
            Msg(magic=magic, offset=12, value=b"vv", timestamp=1003),
        )
        name = f"magic-{magic}"
        why = "Three messages as a broker wrote them."
        family.valid(f"{name}-three", why, must(rule, "SEG-MSG-007", source=f"vector {vector}", **both), *three)
        for label, key, value in (
            ("null-key", None, b"v"),
            ("empty-key", b"", b"v"),
            ("null-value", b"k", None),
            ("empty-value", b"k", b""),
            ("both-null", None, None),
            ("both-empty", b"", b""),
        ):
            family.valid(
                f"{name}-{label}",
                "Null and empty keys and values also stay distinct in messages.",
                must("SEG-MSG-007", **both),
                Msg(magic=magic, offset=3, key=key, value=value),
            )
        for case, why, *units in (
            (f"{name}-binary", "Key and value contain every byte value.", Msg(magic=magic, key=bytes(range(256)), value=bytes(range(256)))),
            (f"{name}-gap", "Offsets are missing between the messages.", Msg(magic=magic, offset=5), Msg(magic=magic, offset=90), Msg(magic=magic, offset=2**40)),
        ):  # fmt: skip
            family.valid(case, why, basis, *units)
        family.valid(
            f"{name}-greatest-offset",
            "The greatest offset that another offset can follow.",
            should("SEG-MSG-025", **both),
            Msg(magic=magic, offset=2**63 - 2),
            more=False,
        )
        family.valid(
            f"{name}-bytes-behind-the-value",
            "The value ends before the message does; brokers go by the length of the value.",
            may("SEG-MSG-006", **both),
            Msg(magic=magic, offset=3, behind=b"junk"),
        )
        for bits in (0x10, 0x40, -0x80):
            family.valid(
                f"{name}-attributes-{bits & 0xFF:02x}",
                "A reader returns attribute bits that have no meaning.",
                may("SEG-MSG-020", **both),
                Msg(magic=magic, offset=3, attributes=bits),
            )
        _reported_attributes(family, magic)
        _negative_lengths(family, magic, both)
        _damaged(family, magic, both)
    _timestamps(family)
    mixed = must("SEG-LOG-011", since="0.11", flags=("OLD_FORMAT",))
    why = "A topic whose format was changed: each entry is read by its own magic."
    family.valid("magic-0-then-1", why, mixed, Msg(magic=0, offset=1), Msg(magic=1, offset=2))
    return family


def _reported_attributes(family: Family, magic: int) -> None:
    """Add the byte as it is stored, by those who tell it."""
    for number in (-128, -1 & ~0x7, 0x70):
        data, (answer,) = lay([Msg(magic=magic, attributes=number)])
        answer["records"][0]["attributes"] = number
        family.add(
            f"magic-{magic}-attributes-told-{number}",
            "decode",
            "valid",
            "The attributes are a signed byte.",
            may("SEG-MSG-020", since="0.10" if magic else "0.8", needs=(f"magic:{magic}", "recordAttributes")),
            request={"data": data.hex(), "options": {"crc": True}},
            expect={"batches": [answer], "consumed": len(data), "tail": None},
        )


def _negative_lengths(family: Family, magic: int, both: dict[str, object]) -> None:
    start = 18 if magic == 0 else 26
    for number in (-2, -(2**31)):
        null_key = Msg(magic=magic, offset=3, key=None, value=b"v")
        data = resealed(replaced(null_key.encoded(), start, "i", number))
        answer = {**null_key.answer(0), "crc": int.from_bytes(data[12:16], "big")}
        answer["records"][0]["crc"] = answer["crc"]
        why = "Any negative length of a key or value means null."
        _given(family, f"magic-{magic}-key-length-of-{number}", why, may("SEG-MSG-007", **both), magic, data, answer)


def _given(
    family: Family, name: str, why: str, basis: object, magic: int, data: bytes, answer: dict[str, object]
) -> None:
    after = Msg(magic=magic, offset=9)
    request = {"data": (data + after.encoded()).hex(), "options": {"crc": True}}
    expect = {"batches": [answer, after.answer(len(data))], "consumed": len(data) + len(after.encoded()), "tail": None}
    basis = type(basis)(**{**vars(basis), "needs": (f"magic:{magic}",)})
    family.add(name, "decode", "valid", why, basis, request=request, expect=expect)


def _damaged(family: Family, magic: int, both: dict[str, object]) -> None:
    needs = (f"magic:{magic}",)
    start = 18 if magic == 0 else 26
    good, last = Msg(magic=magic, offset=3), Msg(magic=magic, offset=9)
    whole = Msg(magic=magic, offset=4).encoded()
    past = should("SEG-MSG-005", needs=needs, **both)
    for number in (2, 100, 2**31 - 1):
        bad = resealed(replaced(whole, start, "i", number))
        why = "The key runs past the end of the message; a reader must not allocate memory of that length."
        family.invalid(f"magic-{magic}-key-length-{number}", why, past, "length", good, bad, more=last)
        bad = resealed(replaced(whole, start + 5, "i", number))
        why = "The value runs past the end of the message."
        family.invalid(f"magic-{magic}-value-length-{number}", why, past, "length", good, bad, more=last)
    small = should("SEG-MSG-003", needs=needs, **both)
    for size in (14, 18, 21) if magic else ():
        bad = resealed(whole[: 12 + size])
        why = "A message of magic 1 needs 22 bytes; this one has fewer, under a right checksum."
        family.invalid(f"magic-1-size-{size}", why, small, "length", good, bad, more=last)


def _timestamps(family: Family) -> None:
    both = {"since": "0.10", "flags": ("OLD_FORMAT",)}
    for number in (-1, 0, 2**31, 2**53 + 1, -5):
        why = "A timestamp has 64 bits; -1 means none."
        family.valid(f"magic-1-timestamp-{number}", why, must("SEG-MSG-002", **both), Msg(offset=3, timestamp=number))
    for name, why, basis, unit in (
        ("magic-1-log-append-time", "Attribute bit 3 is set: the broker set the timestamp.", must("SEG-MSG-002", **both), Msg(offset=3, attributes=LOG_APPEND_TIME)),
        ("magic-0-bit-3", "Attribute bit 3 has no meaning in magic 0, which has no timestamps.", must("SEG-MSG-008", since="0.8"), Msg(magic=0, offset=3, attributes=LOG_APPEND_TIME)),
    ):  # fmt: skip
        family.valid(name, why, basis, unit)


def inner_messages(count: int, magic: int = 1, first: int = 0) -> tuple[Msg, ...]:
    """Messages to be wrapped, with the offsets that stand inside."""
    return tuple(
        Msg(magic=magic, offset=first + at, key=b"k%d" % at, value=b"v%d" % at, timestamp=1000 + at)
        for at in range(count)
    )


def relative_wrappers() -> Family:
    """Family 23."""
    family = Family(
        23,
        "magic-1-wrappers",
        "Wrappers of magic 1: relative offsets, holes",
        "facts 2.2",
        flags={
            "INNER_MAGIC": {
                "effect": "The cleaner of 0.10.0 and 0.10.1.0 mixed both formats in one wrapper. Read as the wrapper's own format, such a message is cut in the wrong places.",
                "links": ["https://issues.apache.org/jira/browse/KAFKA-4298"],
            },
            "RELATIVE": {
                "effect": "The offsets inside are relative, and the wrapper has the last absolute one. Taken for absolute, every message of a "
                "compressed topic begins at 0 again; counted from the front, a compacted wrapper gives wrong offsets.",
                "links": [],
            },
        },
    )
    both = {"since": "0.10", "flags": ("RELATIVE",)}
    basis = must("SEG-MSG-012", **both)
    for codec, compress in (("gzip", gzip), ("snappy", xerial), ("lz4", lz4_frame)):
        for count in (1, 3, 50):
            family.valid(
                f"{codec}-{count}",
                "The wrapper has the offset of the last message; a reader counts the other offsets back from it.",
                basis,
                Wrapper(
                    offset=99 + count,
                    inner=inner_messages(count),
                    offsets=tuple(range(100, 100 + count)),
                    codec=codec,
                    compress=compress,
                ),
            )
    family.valid(
        "bare-snappy",
        "The value of the wrapper is one raw snappy block.",
        basis,
        Wrapper(offset=12, inner=inner_messages(3), offsets=(10, 11, 12), codec="snappy", compress=snappy_block),
    )
    holes = {
        "middle-missing": ((0, 2), 12, (10, 12)),
        "first-missing": ((1, 2), 12, (11, 12)),
        "last-missing": ((0, 1), 11, (10, 11)),
        "only-one-left": ((5,), 15, (15,)),
        "wide": ((0, 1000, 2**31 - 1), 2**31 + 9, (10, 1010, 2**31 + 9)),
    }
    for name, (stored, offset, offsets) in holes.items():
        inner = tuple(moved(one, at) for one, at in zip(inner_messages(len(stored)), stored, strict=True))
        why = "Compaction removed messages; the wrapper has the offset of the last one left, and the others count back from it."
        family.valid(f"hole-{name}", why, basis, Wrapper(offset=offset, inner=inner, offsets=offsets, compress=gzip))
    for name, why, unit in (
        ("starts-above-0", "The relative offsets begin at 7; only their distance from the last counts.", Wrapper(offset=20, inner=inner_messages(3, first=7), offsets=(18, 19, 20), compress=gzip)),
        ("absolute-inside", "Absolute offsets inside a wrapper give the right offsets by the same rule.", Wrapper(offset=12, inner=inner_messages(3, first=10), offsets=(10, 11, 12), compress=gzip)),
    ):  # fmt: skip
        family.valid(name, why, basis, unit)
    family.valid(
        "offset-0",
        "A wrapper at offset 0 with more than one message: a reader takes the offsets inside as absolute.",
        should("SEG-MSG-013", **both),
        Wrapper(offset=0, inner=inner_messages(3), offsets=(0, 1, 2), compress=gzip),
        more=Msg(offset=9),
    )
    null = (Msg(key=None, value=b"a"), Msg(offset=1, value=None), Msg(offset=2, key=b"", value=b""))
    mixed = (Msg(magic=0, offset=0, value=b"old"), Msg(magic=1, offset=1, value=b"new"))
    for name, why, terms, *units in (
        ("offset-0-one-message", "One message at offset 0.", basis, Wrapper(offset=0, inner=inner_messages(1), offsets=(0,), compress=gzip)),
        ("above-2-53", "The sum of the wrapper's offset and a relative offset needs 64 bits.", basis,
         Wrapper(offset=2**53 + 3, inner=inner_messages(3), offsets=(2**53 + 1, 2**53 + 2, 2**53 + 3), compress=gzip)),
        ("null-and-empty", "Null and empty inside a wrapper.", must("SEG-MSG-007", **both), Wrapper(offset=12, inner=null, offsets=(10, 11, 12), compress=gzip)),
        ("wrapper-with-key", "The key of the wrapper belongs to no message.", should("SEG-MSG-023", **both),
         Wrapper(offset=12, inner=inner_messages(3), offsets=(10, 11, 12), compress=gzip, key=b"odd")),
        ("two-wrappers", "Each wrapper is the base for its own messages only.", basis, Wrapper(offset=12, inner=inner_messages(3), offsets=(10, 11, 12), compress=gzip),
         Wrapper(offset=14, inner=inner_messages(2), offsets=(13, 14), compress=gzip)),
        ("magic-0-inside", "The cleaner of 0.10.0 left messages of magic 0 in wrappers of magic 1: the wrapper says how offsets count.",
         must("SEG-MSG-017", "SEG-MSG-008", since="0.10", flags=("INNER_MAGIC",)), Wrapper(offset=21, inner=mixed, offsets=(20, 21), compress=gzip)),
        ("small-wrapper-timestamp", "The wrapper's timestamp is earlier than that of a message inside; each message keeps its own.", should("SEG-MSG-021", **both),
         Wrapper(offset=12, inner=inner_messages(3), offsets=(10, 11, 12), compress=gzip, timestamp=5)),
    ):  # fmt: skip
        family.valid(name, why, terms, *units)
    family.backwards(
        "offsets-not-in-order",
        "Offsets inside a wrapper are not in order: a reader delivers the messages in stored order.",
        should("SEG-MSG-022", "SEG-MSG-012", **both),
        Wrapper(
            offset=12,
            inner=tuple(moved(one, at) for one, at in zip(inner_messages(3), (1, 0, 2), strict=True)),
            offsets=(11, 10, 12),
            compress=gzip,
        ),
    )
    _wrapper_ends(family, 1, both)
    _mixed_wrappers(family, 1, both)
    _bad_wrappers(family, 1, both)
    for offset in (1, 2):
        bad = Wrapper(offset=offset, inner=inner_messages(4), compress=gzip).encoded()
        family.invalid(
            f"offset-{offset}-below-the-last",
            "The wrapper's offset is less than the relative one inside: the first message would be below 0.",
            should("SEG-MSG-014", needs=("magic:1", "codec:gzip"), **both),
            "offset",
            Msg(offset=0),
            bad,
            more=Msg(offset=90),
        )
    return family


def absolute_wrappers() -> Family:
    """Family 24."""
    family = Family(
        24,
        "magic-0-wrappers",
        "Wrappers of magic 0: absolute offsets",
        "facts 2.2",
        flags={
            "ABSOLUTE": {
                "effect": "In magic 0 the offsets inside are absolute. Counted back from the wrapper they come out right only as long as nothing was compacted.",
                "links": [],
            }
        },
    )
    both = {"since": "0.8", "flags": ("ABSOLUTE",)}
    basis = must("SEG-MSG-011", **both)
    for codec, compress in (("gzip", gzip), ("snappy", xerial), ("lz4", lz4_frame_v0)):
        for count in (1, 3, 50):
            family.valid(
                f"{codec}-{count}",
                "The offsets inside a wrapper of magic 0 are the absolute offsets of the messages.",
                basis,
                Wrapper(magic=0, inner=inner_messages(count, 0, 100), codec=codec, compress=compress),
            )
    holes = tuple(moved(one, at) for one, at in zip(inner_messages(3, 0), (10, 17, 90), strict=True))
    mixed = (Msg(magic=1, offset=20, value=b"new", timestamp=77), Msg(magic=0, offset=21, value=b"old"))
    for name, why, terms, *units in (
        ("holes", "Offsets are missing between the messages of a wrapper.", basis, Wrapper(magic=0, inner=holes, compress=gzip)),
        ("from-0", "A log begins with a wrapper.", basis, Wrapper(magic=0, inner=inner_messages(3, 0), compress=gzip)),
        ("other-wrapper-offset", "The wrapper has another offset than its last message; a reader computes nothing from it.", should("SEG-MSG-024", "SEG-MSG-011", **both),
         Wrapper(magic=0, offset=30, inner=inner_messages(3, 0, 10), compress=gzip)),
        ("above-2-53", "Offsets of 64 bits inside.", basis, Wrapper(magic=0, inner=inner_messages(2, 0, 2**53 + 1), compress=gzip)),
        ("two-wrappers", "Two wrappers in a row.", basis, Wrapper(magic=0, inner=inner_messages(2, 0, 10), compress=gzip), Wrapper(magic=0, inner=inner_messages(2, 0, 12), compress=gzip)),
        ("no-timestamps", "Messages of magic 0 have no timestamps.", must("SEG-MSG-008", **both), Wrapper(magic=0, inner=inner_messages(2, 0, 10), compress=gzip)),
        ("magic-1-inside", "A message of magic 1 is in a wrapper of magic 0: its offset is absolute, its layout is that of magic 1.", should("SEG-MSG-017", **both),
         Wrapper(magic=0, inner=mixed, compress=gzip)),
    ):  # fmt: skip
        family.valid(name, why, terms, *units)
    _wrapper_ends(family, 0, both)
    _mixed_wrappers(family, 0, both)
    _bad_wrappers(family, 0, both)
    return family


def _wrapper_ends(family: Family, magic: int, both: dict[str, object]) -> None:
    """Add a last message inside that is cut short."""
    inner = inner_messages(3, magic, 10 if magic == 0 else 0)
    whole = Msg(magic=magic, offset=inner[-1].offset + 1).encoded()
    for count in (1, 11, 12, 20, len(whole) - 1):
        family.valid(
            f"last-one-cut-{count}",
            "The last message in the wrapper is cut short: a reader drops it and delivers the others.",
            may("SEG-MSG-019", **both),
            Wrapper(magic=magic, offset=12, inner=inner, offsets=(10, 11, 12), compress=gzip, behind=whole[:count]),
        )


def _mixed_wrappers(family: Family, magic: int, both: dict[str, object]) -> None:
    """Add each order of both magics inside, with and without bit 3 of the wrapper and of the messages."""
    basis = should("SEG-MSG-017", "SEG-MSG-008", "SEG-MSG-015", **both)
    for magics in ("0", "1", "01", "10", "001", "110"):
        one = [
            Msg(magic=int(each), offset=at + (0 if magic else 30), timestamp=70 + at) for at, each in enumerate(magics)
        ]
        for bit, bits_inside, codec, compress in (
            (0, 0, "gzip", gzip),
            (0, LOG_APPEND_TIME, "snappy", xerial),
            (LOG_APPEND_TIME, 0, "gzip", gzip),
            (LOG_APPEND_TIME, LOG_APPEND_TIME, "snappy", xerial),
        ):
            last = 29 + len(magics)
            family.valid(
                f"inside-{magics}-bits-{bit}-{bits_inside}",
                "The wrapper's magic says how offsets count and what bit 3 means, that of a message which fields it has.",
                basis,
                Wrapper(
                    magic=magic,
                    inner=tuple(replace(each, attributes=bits_inside) for each in one),
                    offset=last,
                    offsets=tuple(range(30, last + 1)),
                    attributes=bit,
                    timestamp=5000,
                    codec=codec,
                    compress=compress,
                ),
            )


def _bad_wrappers(family: Family, magic: int, both: dict[str, object]) -> None:
    needs = (f"magic:{magic}", "codec:gzip")
    good, last = Msg(magic=magic, offset=3), Msg(magic=magic, offset=90)
    first = 10 if magic == 0 else 0

    def around(content: bytes) -> bytes:
        return Wrapper(
            magic=magic, offset=12, inner=inner_messages(1, magic, first), compress=lambda _: gzip(content)
        ).encoded()

    for bits in range(1, 8):
        family.invalid(
            f"inner-codec-{bits}",
            "A message in the wrapper names a codec: only one level of wrappers is allowed, whatever the codec is.",
            should("SEG-MSG-010", needs=needs, **both),
            "compression",
            good,
            around(b"".join(Msg(magic=magic, offset=first + at, attributes=at * bits).encoded() for at in range(2))),
            more=last,
        )
    for offset in (-1, -(2**31), -(2**63)):
        moved_away = Wrapper(magic=magic, offset=offset, inner=inner_messages(2, magic, first), compress=gzip)
        family.invalid(
            f"wrapper-offset-{offset}",
            "The offset of the wrapper is negative.",
            should("SEG-MSG-025", needs=needs, **both),
            "offset",
            good,
            moved_away.encoded(),
            more=last,
        )
    nothing = should("SEG-MSG-009", needs=needs, **both)
    null = message(magic, 12, 1, 1000, sized32(None) + sized32(None))
    for name, why, basis, reject, unit in (
        ("null-value", "A wrapper has a null value, and therefore no compressed data.", nothing, "compression", null),
        ("empty-value", "A wrapper has an empty value, which is not compressed data.", should("SEG-COD-002", needs=needs, **both), "compression",
         message(magic, 12, 1, 1000, sized32(None) + sized32(b""))),
        ("nothing-inside", "The wrapper contains no message: it decompresses to no bytes.", nothing, "count", around(b"")),
        ("only-a-cut-message", "The only message in the wrapper is cut short.", nothing, "count", around(Msg(magic=magic, offset=first).encoded()[:-1])),
    ):  # fmt: skip
        family.invalid(name, why, basis, reject, good, unit, more=last)
    small = should("SEG-MSG-003", needs=needs, **both)
    for number in (-1, 0, 13):
        family.invalid(
            f"inner-size-{number}",
            "A message in the wrapper is smaller than its fixed fields.",
            small,
            "length",
            good,
            around(
                inner_messages(1, magic, first)[0].encoded()
                + replaced(Msg(magic=magic, offset=first + 1).encoded(), 8, "i", number)
            ),
            more=last,
        )
    inside = Msg(magic=magic, offset=first, value=b"v" * 60).encoded()
    for name, why, basis, reject, unit in (
        ("zstd", "Codec zstd is newer than magic 0 and 1: no reader supports it there.", should("SEG-MSG-018", needs=(f"magic:{magic}",), **both), "compression",
         message(magic, 12, 4, 1000, sized32(None) + sized32(zstd(Msg(magic=magic, offset=first).encoded())))),
        ("magic-2-inside", "A message of magic 2 inside a wrapper.", should("SEG-MSG-026", needs=needs, **both), "magic", around(resealed(replaced(inside, 16, "b", 2)))),
        ("inner-key-too-long", "The key of a message in the wrapper runs past the end of that message.", should("SEG-MSG-005", needs=needs, **both), "length",
         around(resealed(replaced(inside, 18 if magic == 0 else 26, "i", 1000)))),
    ):  # fmt: skip
        family.invalid(name, why, basis, reject, good, unit, more=last)


def stamped_wrappers() -> Family:
    """Family 25."""
    family = Family(
        25,
        "magic-1-log-append-time",
        "Wrappers of magic 1 with LogAppendTime",
        "facts 2.2",
        flags={
            "WRAPPER_TIME": {
                "effect": "The broker stamps the wrapper alone. A reader that goes by the bits of the messages inside reports the producer's time.",
                "links": [],
            }
        },
    )
    both = {"since": "0.10", "flags": ("WRAPPER_TIME",)}
    basis = must("SEG-MSG-015", **both)
    r1, r3 = Msg(offset=0, key=None, value=b"a"), Msg(offset=1, value=b"vv", timestamp=1003)
    v_05 = bytes.fromhex(
        "1f8b08000000000000ff63608003f147aaedb71839201ce18eff400064302642a519815872d5fc566b841290683690602a2b0300a1f44c1b48000000"
    )
    family.valid(
        "stamped-by-a-broker",
        "LogAppendTime: both messages have the wrapper's timestamp, 5000.",
        must("SEG-MSG-015", source="vector V-05", **both),
        Wrapper(
            offset=11,
            inner=tuple(replace(one, attributes=LOG_APPEND_TIME, timestamp=5000) for one in (r1, r3)),
            offsets=(10, 11),
            attributes=LOG_APPEND_TIME,
            timestamp=5000,
            compress=lambda _: v_05,
        ),
    )
    for codec, compress in (("snappy", xerial), ("lz4", lz4_frame)):
        family.valid(
            codec,
            "LogAppendTime in a wrapper with another codec.",
            basis,
            Wrapper(
                offset=11,
                inner=(r1, r3),
                offsets=(10, 11),
                attributes=LOG_APPEND_TIME,
                timestamp=5000,
                codec=codec,
                compress=compress,
            ),
        )
    stamped = tuple(Msg(offset=at, attributes=LOG_APPEND_TIME, timestamp=40 + at) for at in range(2))
    for name, why, terms, unit in (
        ("bits-inside-too", "Attribute bit 3 is also set inside; the wrapper's timestamp counts.", basis,
         Wrapper(offset=11, inner=stamped, offsets=(10, 11), attributes=LOG_APPEND_TIME, timestamp=5000, compress=gzip)),
        ("bits-inside-only", "Attribute bit 3 is set only inside: the wrapper has CreateTime, so each message has its own timestamp.", basis,
         Wrapper(offset=11, inner=stamped, offsets=(10, 11), timestamp=41, compress=gzip)),
        ("wrapper-before-the-messages", "LogAppendTime: the broker's clock is behind the producer's.", basis,
         Wrapper(offset=11, inner=(r1, r3), offsets=(10, 11), attributes=LOG_APPEND_TIME, timestamp=3, compress=gzip)),
        ("messages-without-time", "LogAppendTime: the messages have no timestamps of their own.", basis,
         Wrapper(offset=11, inner=tuple(Msg(offset=at, timestamp=-1) for at in range(2)), offsets=(10, 11), attributes=LOG_APPEND_TIME, timestamp=5000, compress=gzip)),
        ("magic-0-inside", "A message of magic 0 in a wrapper with LogAppendTime still has no timestamp.", should("SEG-MSG-008", "SEG-MSG-015", **both),
         Wrapper(offset=11, inner=(Msg(magic=0, offset=0), r3), offsets=(10, 11), attributes=LOG_APPEND_TIME, timestamp=5000, compress=gzip)),
    ):  # fmt: skip
        family.valid(name, why, terms, unit)
    return family


def families() -> list[Family]:
    """All of this module."""
    return [plain_messages(), relative_wrappers(), absolute_wrappers(), stamped_wrappers()]

"""Families 26 to 29 and 37: checksums, lengths, magic, counts, and how a log ends."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Final

from authoring.batches import (
    BASE_OFFSET,
    CONTROL,
    COUNT,
    CRC,
    FIELDS,
    LAST_OFFSET_DELTA,
    LEADER_EPOCH,
    LENGTH,
    MAGIC,
    Batch,
    Rec,
    with_field,
)
from authoring.casefile import LAST, Family, Json, lay, may, must, should
from authoring.codecs import gzip, lz4_frame, xerial, zstd
from authoring.control import LEADER_CHANGE, data, kraft, marker
from authoring.messages import Msg, Wrapper
from authoring.plain import THREE
from authoring.primitives import crc32, crc32c, flipped, replaced

INT32_MAX: Final = 2**31 - 1
GOOD: Final = Batch(base=3)
WHOLE: Final = THREE.encoded()
CRC_NEEDS: Final = ("crc", "magic:2")
COMPRESSORS: Final = {"gzip": gzip, "snappy": xerial, "lz4": lz4_frame, "zstd": zstd}


def checksums() -> Family:
    """Family 26."""
    family = Family(
        26,
        "crc",
        "Checksums",
        "facts 2.2 and 2.3",
        flags={
            "CRC": {
                "effect": "The checksum is all there is against damage on disk and on the way. A client that does not look delivers changed records as good ones.",
                "links": [],
            },
            "OUTSIDE_CRC": {
                "effect": "Leaders write offset and epoch into sealed batches. A reader that checksums them refuses every batch of every broker.",
                "links": [],
            },
            "INNER_CRC": {
                "effect": "Brokers look at the checksums inside a wrapper only when it is produced, so the consumer is the last who can notice. Kafka's "
                "consumer refuses such a message; delivered, it is changed data.",
                "links": [],
            },
        },
    )
    basis = must("SEG-BAT-003", needs=CRC_NEEDS, flags=("CRC",))
    why = "One bit of the field {} was changed: a reader that does not verify the checksum delivers changed data."
    for name, (position, code) in FIELDS.items():
        if position >= FIELDS["attributes"][0]:
            for byte_position in sorted({0, struct.calcsize(code) - 1}):
                bad = flipped(WHOLE, position + byte_position, 1 if name == "attributes" and byte_position else 0)
                family.invalid(
                    f"flip-{name}-byte-{byte_position}", why.format(name.replace("-", " ")), basis, "crc", GOOD, bad
                )
    for byte_position in range(4):
        family.invalid(f"flip-crc-byte-{byte_position}", "The stored checksum is damaged, the data is not.", basis, "crc", GOOD, flipped(WHOLE, CRC[0] + byte_position, 7))  # fmt: skip
    for byte_position, part in (
        (61, "record-length"),
        (67, "value"),
        (72, "key-of-the-second"),
        (len(WHOLE) - 1, "last-byte"),
    ):
        reason = "One bit of the records was changed: a record that looks valid is not the one that was sent."
        family.invalid(f"flip-{part}", reason, basis, "crc", GOOD, flipped(WHOLE, byte_position, 0))
    others = {
        "zero": 0,
        "all-ones": 2**32 - 1,
        "crc-32": crc32(WHOLE[21:]),
        "from-magic-on": crc32c(WHOLE[16:]),
        "whole-batch": crc32c(WHOLE),
        "records-only": crc32c(WHOLE[61:]),
        "not-inverted": crc32c(WHOLE[21:]) ^ (2**32 - 1),
        "other-byte-order": int.from_bytes(crc32c(WHOLE[21:]).to_bytes(4, "big"), "little"),
    }
    for name, value in others.items():
        reason = "The checksum is of another kind or over other bytes, as a writer with a wrong definition computes it."
        family.invalid(f"wrong-{name}", reason, basis, "crc", GOOD, with_field(WHOLE, CRC, value, seal=False))
    reason = "The first batch is damaged; nothing before it can be delivered."
    family.invalid("first-batch", reason, basis, "crc", flipped(WHOLE, 70))
    reason = "The last batch is damaged, and nothing follows."
    family.invalid("last-batch", reason, basis, "crc", GOOD, flipped(WHOLE, 70), more=False)
    reason = "The third of four batches is damaged: a reader may deliver the two before it."
    family.invalid("third-batch", reason, basis, "crc", GOOD, Batch(base=4), flipped(WHOLE, 70))
    for codec, compress in COMPRESSORS.items():
        packed = Batch(base=10, codec=codec, compress=compress, recs=(Rec(value=b"abc" * 50), Rec())).encoded()
        for name, reason, unit in (
            (f"compressed-{codec}", "The checksum covers the compressed bytes: a reader finds the damage before it decompresses them.", flipped(packed, len(packed) - 3)),
            (f"compressed-{codec}-whole-stream", "The checksum is wrong and the compressed stream is valid: only the checksum shows the damage.",
             with_field(packed, CRC, crc32c(packed[21:]) ^ 1 << 9, seal=False)),
        ):  # fmt: skip
            family.invalid(name, reason, must("SEG-BAT-003", needs=(*CRC_NEEDS, f"codec:{codec}"), flags=("CRC",)), "crc", GOOD, unit)  # fmt: skip
    _control(family)
    _outside(family)
    _legacy(family)
    _inside(family)
    return family


def _control(family: Family) -> None:
    """Control batches: a reader that hides their records has to look at their checksums all the same."""
    for name, batch in (
        ("commit", marker("COMMIT", 10)),
        ("abort", marker("ABORT", 10)),
        ("leader-change", kraft("LEADER_CHANGE", LEADER_CHANGE, 10)),
        ("transactional-data", data(10, b"a", b"b")),
    ):
        whole = batch.encoded()
        family.invalid(
            f"control-{name}" if batch.attributes & CONTROL else name,
            "One bit near the end of the batch was changed: a reader that trusts the batch ends another "
            "transaction, or none.",
            must("SEG-BAT-003", needs=CRC_NEEDS, flags=("CRC",)),
            "crc",
            GOOD,
            flipped(whole, len(whole) - 2),
        )


def _outside(family: Family) -> None:
    basis = must("SEG-BAT-010", flags=("OUTSIDE_CRC",))
    for name, field, number in (("base-offset", BASE_OFFSET, 500), ("leader-epoch", LEADER_EPOCH, 77)):
        sealed_at_position = with_field(THREE.encoded(), field, number, seal=False)
        other = Batch(**{**vars(THREE), "base" if name == "base-offset" else "leader_epoch": number})
        assert other.encoded() == sealed_at_position
        why = f"A leader writes its own {name.replace('-', ' ')} into each batch; the checksum does not cover it and stays right."
        family.valid(f"other-{name}", why, basis, other)


def _legacy(family: Family) -> None:
    for magic, rule_since in ((0, "0.8"), (1, "0.10")):
        needs = ("crc", f"magic:{magic}")
        basis = must("SEG-MSG-004", needs=needs, flags=("CRC",), since=rule_since)
        good, last = Msg(magic=magic, offset=3), Msg(magic=magic, offset=9)
        whole = Msg(magic=magic, offset=4).encoded()
        for byte_position, name in (
            (12, "crc"),
            (17, "attributes"),
            (len(whole) - 1, "value"),
            (len(whole) - 6, "key"),
        ):
            why = "One bit of a message was changed: its checksum shows it."
            family.invalid(
                f"magic-{magic}-flip-{name}", why, basis, "crc", good, flipped(whole, byte_position, 4), more=last
            )
        for name, why, value in (
            (f"magic-{magic}-crc-32c", "The message has a CRC-32C, as record batches have it: this is the wrong polynomial for messages.", crc32c(whole[16:])),
            (f"magic-{magic}-whole-entry", "The checksum also covers offset and size, which is wrong.", crc32(whole[:12] + whole[16:])),
        ):  # fmt: skip
            family.invalid(name, why, basis, "crc", good, replaced(whole, 12, "I", value), more=last)
    family.invalid(
        "magic-1-flip-timestamp",
        "One bit of the timestamp was changed: the checksum covers it.",
        must("SEG-MSG-004", needs=("crc", "magic:1"), flags=("CRC",), since="0.10"),
        "crc",
        Msg(offset=3),
        flipped(Msg(offset=4).encoded(), 20),
        more=Msg(offset=9),
    )


def _inside(family: Family) -> None:
    """Checksums of messages in a wrapper: of the first, of the last, and of the only one."""
    for magic, rule_since in ((0, "0.8"), (1, "0.10")):
        inner = tuple(Msg(magic=magic, offset=4 + at if magic == 0 else at) for at in range(3))
        basis = must(
            "SEG-MSG-016", needs=("crc", f"magic:{magic}", "codec:gzip"), flags=("INNER_CRC",), since=rule_since
        )

        def wrapper(damaged: int, *, count: int = 3, magic: int = magic, inner: tuple[Msg, ...] = inner) -> bytes:
            """Return a wrapper of which one message has one wrong bit in its value."""
            last_byte = (damaged + 1) * len(inner[0].encoded()) - 1
            return Wrapper(
                magic=magic,
                offset=3 + count,
                inner=inner[:count],
                offsets=tuple(range(4, 4 + count)),
                compress=lambda content: gzip(flipped(content, last_byte, 3)),
            ).encoded()

        why = "The wrapper is whole, {} is damaged: its value is changed, and only its own checksum shows it."
        for name, subject, entry in (
            ("inside-a-wrapper-first", "the first message inside", wrapper(0)),
            ("inside-a-wrapper-last", "the last message inside", wrapper(2)),
            ("inside-a-wrapper-only", "the only message inside", wrapper(0, count=1)),
        ):
            family.invalid(f"magic-{magic}-{name}", why.format(subject), basis, "crc", Msg(magic=magic, offset=3), entry, more=Msg(magic=magic, offset=9))  # fmt: skip


def lengths() -> Family:
    """Family 27."""
    family = Family(
        27,
        "batch-length",
        "Batch lengths",
        "facts 2.1 and 7",
        flags={
            "BATCH_LENGTH": {
                "effect": "A length that leads backwards or nowhere makes a careless reader loop, read the same batch twice, or allocate gigabytes.",
                "links": [],
            }
        },
    )
    framing = must("SEG-LOG-003", needs=("magic:2",), flags=("BATCH_LENGTH",))
    for number in (-(2**31), -100, -13, -12, -1, 1, 2, 13):
        why = "An entry cannot be smaller than its own fixed fields; nothing after it can be found."
        family.invalid(f"length-{number}", why, framing, "length", GOOD, replaced(WHOLE, *LENGTH, number))
    why = "A size of 0 with data after it is damage, not the end of a log."
    family.invalid("length-0", why, framing, "length", GOOD, replaced(WHOLE, *LENGTH, 0))
    small = must("SEG-BAT-002", needs=("magic:2",), flags=("BATCH_LENGTH",))
    for number in (14, 15, 21, 40, 48):
        why = "The length is less than the header of a batch: the next entry would begin inside that header."
        family.invalid(f"length-{number}", why, small, "length", GOOD, replaced(WHOLE, *LENGTH, number))
    checked = must("SEG-BAT-003", needs=CRC_NEEDS, flags=("BATCH_LENGTH",))
    for number, name in (
        (len(WHOLE) - 13, "one-less"),
        (len(WHOLE) - 11, "one-more"),
        (49, "header-only"),
        (len(WHOLE) - 12 + 68, "next-batch-too"),
    ):
        why = "The length is wrong, so the batch ends in the wrong place; the checksum shows it."
        family.invalid(f"length-{name}", why, checked, "crc", GOOD, replaced(WHOLE, *LENGTH, number))
    bare = Batch(base=10, stored=b"", recs=(), last_delta=2, count=3).encoded()
    reason = "The header counts records, but there are none; the checksum is right."
    family.invalid(
        "records-missing", reason, must("SEG-BAT-008", flags=("BATCH_LENGTH",), needs=("magic:2",)), "count", GOOD, bare
    )
    basis = should("SEG-LOG-004", flags=("BATCH_LENGTH",), needs=("partialTail",))
    past = replaced(WHOLE, *LENGTH, INT32_MAX)
    log, answers = lay([GOOD, past])
    size = len(GOOD.encoded())
    family.either(
        "length-2147483647",
        "The greatest length: with the twelve bytes before it, it overflows 32 bits. A reader must not allocate "
        "memory for it.",
        should("SEG-LOG-004", flags=("BATCH_LENGTH",), needs=("magic:2", "partialTail")),
        log,
        [
            {"branch": "tail", "batches": answers, "consumed": size, "tail": {"class": "partial", "at": size}},
            {"branch": "refused", "reject": {"class": "length"}, "batches": answers},
        ],
    )
    for number, name in ((1_000_000, "million"), (200, "200")):
        damaged = replaced(WHOLE, *LENGTH, number)
        family.valid(
            f"length-{name}",
            "The length leads past the end of the data: a reader takes the entry for one cut short, and must not "
            "allocate memory for it.",
            basis,
            GOOD,
            damaged,
            more=False,
            tail={"class": "partial", "at": len(GOOD.encoded())},
        )
    for magic, since in ((0, "0.8"), (1, "0.10")):
        whole = Msg(magic=magic, offset=4).encoded()
        rows = (-1, 0, 1, 13)
        for number in rows:
            family.invalid(
                f"magic-{magic}-size-{number}",
                "The size is less than the 14 bytes of the smallest message.",
                must("SEG-LOG-003", needs=(f"magic:{magic}",), flags=("BATCH_LENGTH",), since=since),
                "length",
                Msg(magic=magic, offset=3),
                replaced(whole, 8, "i", number),
                more=Msg(magic=magic, offset=9),
            )
    return family


def magics() -> Family:
    """Family 28."""
    family = Family(
        28,
        "unknown-magic",
        "Magic 3, 127, negative",
        "facts 2.1 and 7",
        flags={
            "UNKNOWN_MAGIC": {
                "effect": "A format of the future, or one flipped bit outside the checksum. Read as the nearest known format it gives records that nobody wrote.",
                "links": [],
            }
        },
    )
    basis = must("SEG-BAT-004", needs=("magic:2",), flags=("UNKNOWN_MAGIC",))
    for number in (3, 4, 9, 66, 126, 127, -1, -2, -126, -128):
        why = "The magic does not exist; the checksum is right."
        family.invalid(f"magic-{number}", why, basis, "magic", GOOD, replaced(WHOLE, *MAGIC, number))
    family.invalid("first-of-all", "The first entry has an unknown magic.", basis, "magic", replaced(WHOLE, *MAGIC, 3))
    why = "The last entry has an unknown magic."
    family.invalid("last-of-all", why, basis, "magic", GOOD, replaced(WHOLE, *MAGIC, 3), more=False)
    empty = Batch(base=10, recs=(), base_timestamp=-1, last_delta=4).encoded()
    why = "An empty batch has an unknown magic."
    family.invalid("empty-batch", why, basis, "magic", GOOD, replaced(empty, *MAGIC, 3))
    for number in (0, 1):
        family.invalid(
            f"batch-as-magic-{number}",
            "One changed bit turns the magic of a batch into that of a message; the checksum does not fit a message.",
            must("SEG-MSG-004", needs=("crc", "magic:2", f"magic:{number}"), flags=("UNKNOWN_MAGIC",)),
            "crc",
            GOOD,
            replaced(WHOLE, *MAGIC, number),
        )
    message = Msg(offset=4, value=b"v" * 40).encoded()
    family.invalid(
        "message-as-batch",
        "One changed bit turns the magic of a message into that of a batch; the checksum does not fit a batch.",
        must("SEG-BAT-003", needs=("crc", "magic:1", "magic:2"), flags=("UNKNOWN_MAGIC",)),
        "crc",
        Msg(offset=3),
        replaced(message, *MAGIC, 2),
        more=Msg(offset=9),
    )
    cut = replaced(WHOLE, *MAGIC, 3)[:40]
    data, answers = lay([GOOD, cut])
    size = len(GOOD.encoded())
    family.either(
        "cut-short",
        "An entry of unknown magic is cut short: a reader reports either a tail or an unknown format.",
        should("SEG-LOG-004", "SEG-BAT-004", flags=("UNKNOWN_MAGIC",), needs=("magic:2", "partialTail")),
        data,
        [
            {"branch": "tail", "batches": answers, "consumed": size, "tail": {"class": "partial", "at": size}},
            {"branch": "refused", "reject": {"class": "magic"}, "batches": answers},
        ],
    )
    return family


def counts() -> Family:
    """Family 29."""
    family = Family(
        29,
        "records-count",
        "Record counts",
        "facts 2.3 and 7",
        flags={
            "RECORDS_COUNT": {
                "effect": "The count is what a reader allocates and loops by. Wrong, it loses records without a word, or takes gigabytes.",
                "links": [],
            }
        },
    )
    basis = must("SEG-BAT-008", needs=("magic:2",), flags=("RECORDS_COUNT",))
    rows = {
        "one-less": 2,
        "two-less": 1,
        "one-more": 4,
        "many-more": 1000,
        "a-million": 1_000_000,
        "2147483647": INT32_MAX,
    }
    hostile = should("SEG-BAT-008", needs=("magic:2",), flags=("RECORDS_COUNT",))
    for name, number in rows.items():
        family.invalid(
            f"count-{name}",
            "The records count is not the number of records, three; the checksum is right.",
            hostile if number > len(WHOLE) else basis,
            "count",
            GOOD,
            with_field(WHOLE, COUNT, number),
        )
    negative = should("SEG-BAT-007", needs=("magic:2",), flags=("RECORDS_COUNT",))
    for number in (-1, -2, -3, -(2**31)):
        why = "The records count is negative."
        family.invalid(f"count-{number}", why, negative, "count", GOOD, with_field(WHOLE, COUNT, number))
    for codec, compress in COMPRESSORS.items():
        packed = Batch(base=10, codec=codec, compress=compress, recs=THREE.recs).encoded()
        needs = ("magic:2", f"codec:{codec}")
        for name, number in (("one-less", 2), ("one-more", 4), ("2147483647", INT32_MAX)):
            family.invalid(
                f"{codec}-count-{name}",
                "The records count is not the number of compressed records; the checksum is right.",
                (should if number == INT32_MAX else must)("SEG-BAT-008", needs=needs, flags=("RECORDS_COUNT",)),
                "count",
                GOOD,
                with_field(packed, COUNT, number),
            )
        family.invalid(
            f"{codec}-count-negative",
            "The records count of a compressed batch is negative.",
            should("SEG-BAT-007", needs=needs, flags=("RECORDS_COUNT",)),
            "count",
            GOOD,
            with_field(packed, COUNT, -1),
        )
    junk = Batch(base=10, stored=THREE.section() + b"\0" * 5, recs=THREE.recs).encoded()
    for name, why, terms, unit in (
        ("bytes-behind-the-records", "Five zero bytes follow the last record that the count includes.", hostile, junk),
        ("bytes-only", "The count says one record, but the only byte is a record length of 0.", replace(hostile, req=("SEG-REC-003", *hostile.req)),
         Batch(base=10, stored=b"\0", recs=(Rec(),)).encoded()),
    ):  # fmt: skip
        family.invalid(name, why, terms, "count", GOOD, unit)
    packed = Batch(
        base=10, codec="gzip", compress=gzip, stored=gzip(THREE.section() + bytes(9)), recs=THREE.recs
    ).encoded()
    family.invalid(
        "bytes-behind-compressed-records",
        "Nine zero bytes follow the last record inside the compressed data.",
        should("SEG-BAT-008", needs=("magic:2", "codec:gzip"), flags=("RECORDS_COUNT",)),
        "count",
        GOOD,
        packed,
    )
    compacted = Batch(base=10, recs=(Rec(delta=2), Rec(delta=7)), last_delta=9)
    why = "Compaction left two records of ten offsets: the records count need not match the offsets."
    family.valid("fewer-than-offsets", why, may("SEG-BAT-019"), compacted)
    return family


def tails() -> Family:
    """Family 37."""
    family = Family(
        37,
        "tails",
        "How a log ends: cut, zeros, garbage",
        "facts 2.1 and 7",
        flags={
            "CUT": {
                "effect": "A fetch answer is cut at its size limit wherever that falls, so nearly every one ends in part of a batch. A reader that fails there "
                "delivers nothing; one that goes on reads behind the end.",
                "links": [],
            },
            "FILE_OR_MEMORY": {
                "effect": "A log on disk may end in a few bytes of anything, and in zeros up to its preallocated size; in the answer to a fetch a size of 0 is "
                "damage. Brokers read the two with different code, and a library may read as either.",
                "links": [],
            },
        },
    )
    _cuts(family)
    for count in (1, 7, 11):
        for name, why, its_rest, kind in (
            (f"zeros-{count}", "A few zero bytes at the end are too short for an entry's size; they end the log.", bytes(count), "zeros"),
            (f"garbage-{count}", "A few bytes at the end are too short for an entry's size; they end the log.", b"\xa5" * count, "garbage"),
        ):  # fmt: skip
            _tail(family, name, why, its_rest, kind)
    for count in (12, 16, 17, 18, 61, 100, 4096):
        why = "Zeros follow the last batch, as a crash leaves them in a preallocated file."
        _either_tail(family, f"zeros-{count}", why, bytes(count), "zeros", "SEG-LOG-005")
    for count in (12, 16, 17):
        rest = struct.pack(">qi", 7, -1) + b"\x02" * (count - 12)
        why = "The bytes at the end are too few for an entry, but contain an impossible size."
        _either_tail(family, f"garbage-{count}", why, rest, "garbage", "SEG-LOG-002")
    damaged = must("SEG-LOG-003", needs=("magic:2",))
    for name, why, unit in (
        ("zeros-then-a-batch", "Zeros with data after them are damage: a reader that ends there silently loses that data.", bytes(64)),
        ("garbage-then-a-batch", "Garbage with a valid batch after it.", b"\xa5" * 40),
    ):  # fmt: skip
        family.invalid(name, why, damaged, "length", GOOD, unit)
    family.invalid(
        "garbage-40", "Forty bytes that cannot be an entry.", damaged, "length", GOOD, b"\xa5" * 40, more=False
    )
    why = "An empty log, or an empty answer to a fetch, is valid."
    family.valid("nothing", why, must("SEG-LOG-001", needs=("magic:2",)), b"", more=False)
    return family


def _cuts(family: Family) -> None:
    second = Batch(base=4, recs=(Rec(), Rec(value=None, time=3)), leader_epoch=1)
    for count in range(1, len(second.encoded())):
        why = "The last batch is cut short; a reader delivers the batches before it."
        _tail(family, f"magic-2-cut-{count}", why, second.encoded()[:count], "partial")
    for magic, since in ((0, "0.8"), (1, "0.10")):
        first, last = Msg(magic=magic, offset=3), Msg(magic=magic, offset=4)
        for count in range(1, len(last.encoded())):
            basis = should("SEG-LOG-004", flags=("CUT",), since=since)
            family.valid(
                f"magic-{magic}-cut-{count}",
                "The last message is cut short; a reader delivers the messages before it.",
                basis,
                first,
                last.encoded()[:count],
                more=False,
                tail={"class": "partial", "at": len(first.encoded())},
            )
    for count in (5, 12, 17, 30, 60):
        family.valid(
            f"only-a-cut-batch-{count}",
            "The only batch of the log is cut short: no record, and no error.",
            should("SEG-LOG-004", flags=("CUT",), needs=("magic:2",)),
            GOOD.encoded()[:count],
            more=False,
            tail={"class": "partial", "at": 0},
        )
    for codec, compress in COMPRESSORS.items():
        packed = Batch(base=4, codec=codec, compress=compress, recs=THREE.recs).encoded()
        why = "A compressed batch is cut short inside its data; a reader must not decompress it."
        _tail(family, f"{codec}-cut-in-the-data", why, packed[:-2], "partial", f"codec:{codec}")


def _tail(family: Family, name: str, why: str, rest: bytes, kind: str, *needs: str) -> None:
    at = len(GOOD.encoded())
    family.valid(
        name,
        why,
        should(
            "SEG-LOG-004" if kind == "partial" else "SEG-LOG-002",
            flags=("CUT",) if kind == "partial" else (),
            needs=needs,
        ),
        GOOD,
        rest,
        more=False,
        tail={"class": kind, "at": at},
    )


def _either_tail(family: Family, name: str, why: str, rest: bytes, kind: str, rule: str) -> None:
    data, answers = lay([GOOD, rest])
    at = len(GOOD.encoded())
    ends: Json = {"branch": "end", "batches": answers, "consumed": at, "tail": {"class": kind, "at": at}}
    basis = (may if rule == "SEG-LOG-005" else should)(rule, flags=("FILE_OR_MEMORY",), needs=("magic:2",))
    family.either(
        name, why, basis, data, [ends, {"branch": "refused", "reject": {"class": "length"}, "batches": answers}]
    )


def families() -> list[Family]:
    """All of this module."""
    return [checksums(), lengths(), magics(), counts(), tails()]


__all__ = ["COMPRESSORS", "GOOD", "LAST", "LAST_OFFSET_DELTA", "WHOLE", "families"]

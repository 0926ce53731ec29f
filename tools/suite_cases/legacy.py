"""Families 22 to 25: messages of magic 0 and 1, plain and in wrappers."""

from __future__ import annotations

from suite_cases.casefile import Family, may, must, should
from suite_cases.messages import LOG_APPEND_TIME, Msg, resealed
from suite_cases.primitives import replaced


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
        terms = must(rule, "SEG-MSG-004", **both)
        three = (
            Msg(magic=magic, offset=10, key=None, value=b"a"),
            Msg(magic=magic, offset=11, value=None, timestamp=1005),
            Msg(magic=magic, offset=12, value=b"vv", timestamp=1003),
        )
        name = f"magic-{magic}"
        family.valid(
            f"{name}-three",
            "Three messages as a broker wrote them.",
            must(rule, "SEG-MSG-007", source=f"vector {vector}", **both),
            *three,
        )
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
                "Null and empty are kept apart here, too.",
                must("SEG-MSG-007", **both),
                Msg(magic=magic, offset=3, key=key, value=value),
            )
        family.valid(
            f"{name}-binary",
            "Every byte value in key and value.",
            terms,
            Msg(magic=magic, key=bytes(range(256)), value=bytes(range(256))),
        )
        family.valid(
            f"{name}-gap",
            "Offsets with holes.",
            terms,
            Msg(magic=magic, offset=5),
            Msg(magic=magic, offset=90),
            Msg(magic=magic, offset=2**40),
        )
        family.valid(
            f"{name}-greatest-offset",
            "The greatest offset there is.",
            should("SEG-MSG-025", **both),
            Msg(magic=magic, offset=2**63 - 1),
            more=False,
        )
        family.valid(
            f"{name}-bytes-behind-the-value",
            "The value ends before the message does; brokers go by the length of the value.",
            should("SEG-MSG-006", **both),
            Msg(magic=magic, offset=3, behind=b"junk"),
        )
        for bits in (0x10, 0x40, -0x80):
            family.valid(
                f"{name}-attributes-{bits & 0xFF:02x}",
                "Attribute bits without a meaning are handed on.",
                may("SEG-MSG-020", **both),
                Msg(magic=magic, offset=3, attributes=bits),
            )
        _negative_lengths(family, magic, both)
        _damaged(family, magic, both)
    _timestamps(family)
    mixed = must("SEG-LOG-011", since="0.11", flags=("OLD_FORMAT",))
    family.valid(
        "magic-0-then-1",
        "A topic whose format was changed: each entry is read by its own magic.",
        mixed,
        Msg(magic=0, offset=1),
        Msg(magic=1, offset=2),
    )
    return family


def _negative_lengths(family: Family, magic: int, both: dict[str, object]) -> None:
    start = 18 if magic == 0 else 26
    for number in (-2, -(2**31)):
        null_key = Msg(magic=magic, offset=3, key=None, value=b"v")
        data = resealed(replaced(null_key.encoded(), start, "i", number))
        answer = {**null_key.answer(0), "crc": int.from_bytes(data[12:16], "big")}
        answer["records"][0]["crc"] = answer["crc"]
        _given(
            family,
            f"magic-{magic}-key-length-of-{number}",
            "Any negative length is null.",
            should("SEG-MSG-007", **both),
            magic,
            data,
            answer,
        )


def _given(
    family: Family, name: str, why: str, terms: object, magic: int, data: bytes, answer: dict[str, object]
) -> None:
    after = Msg(magic=magic, offset=9)
    request = {"data": (data + after.encoded()).hex(), "options": {"crc": True}}
    expect = {"batches": [answer, after.answer(len(data))], "consumed": len(data) + len(after.encoded()), "tail": None}
    terms = type(terms)(**{**vars(terms), "needs": (f"magic:{magic}",)})
    family.add(name, "decode", "valid", why, terms, request=request, expect=expect)


def _damaged(family: Family, magic: int, both: dict[str, object]) -> None:
    needs = (f"magic:{magic}",)
    start = 18 if magic == 0 else 26
    good, last = Msg(magic=magic, offset=3), Msg(magic=magic, offset=9)
    whole = Msg(magic=magic, offset=4).encoded()
    past = must("SEG-MSG-005", needs=needs, **both)
    for number in (2, 100, 2**31 - 1):
        bad = resealed(replaced(whole, start, "i", number))
        family.invalid(
            f"magic-{magic}-key-length-{number}",
            "The key runs past the end of the message; its length is no reason to allocate.",
            past,
            "length",
            good,
            bad,
            more=last,
        )
        bad = resealed(replaced(whole, start + 5, "i", number))
        family.invalid(
            f"magic-{magic}-value-length-{number}",
            "The value runs past the end of the message.",
            past,
            "length",
            good,
            bad,
            more=last,
        )
    small = must("SEG-MSG-003", needs=needs, **both)
    for size in (14, 18, 21) if magic else ():
        bad = resealed(whole[: 12 + size])
        family.invalid(
            f"magic-1-size-{size}",
            "A message of magic 1 needs 22 bytes; this one has fewer, under a right checksum.",
            small,
            "length",
            good,
            bad,
            more=last,
        )


def _timestamps(family: Family) -> None:
    both = {"since": "0.10", "flags": ("OLD_FORMAT",)}
    for number in (-1, 0, 2**31, 2**53 + 1, -5):
        family.valid(
            f"magic-1-timestamp-{number}",
            "A timestamp of 64 bits; -1 is none.",
            must("SEG-MSG-002", **both),
            Msg(offset=3, timestamp=number),
        )
    family.valid(
        "magic-1-log-append-time",
        "Bit 3: the broker set the time.",
        must("SEG-MSG-002", **both),
        Msg(offset=3, attributes=LOG_APPEND_TIME),
    )
    family.valid(
        "magic-0-bit-3",
        "Bit 3 means nothing in magic 0: there is no time.",
        must("SEG-MSG-008", since="0.8"),
        Msg(magic=0, offset=3, attributes=LOG_APPEND_TIME),
    )


def families() -> list[Family]:
    """All of this module."""
    return [plain_messages()]

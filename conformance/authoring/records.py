"""Families 30 to 34: damage inside records, under checksums that are right."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from authoring.batches import BASE_OFFSET, LAST_OFFSET_DELTA, Batch, Rec, with_field
from authoring.casefile import Basis, Family, above_position, lay, must, should
from authoring.codecs import gzip
from authoring.damage import GOOD, WHOLE
from authoring.messages import Msg, Wrapper
from authoring.primitives import sized, uvarint, varint

if TYPE_CHECKING:
    from collections.abc import Callable

INT32_MAX: Final = 2**31 - 1
INT64_MAX: Final = 2**63 - 1
PLAIN: Final = b"\0\0\0" + sized(b"k") + sized(b"v") + b"\0"
"""Everything of a record after its length."""


class Bad:
    """Adds records that have to be refused, plain and compressed, first and in the middle of a batch."""

    def __init__(self, family: Family, basis: Basis, reject: str) -> None:
        self.family = family
        self.basis = basis
        self.reject = reject

    def add(self, name: str, why: str, raw: bytes, *, compressed: bool = False) -> None:
        """One record alone in a batch; with ``compressed``, a second case with gzip."""
        basis = Basis(**{**vars(self.basis), "needs": ("magic:2",)})
        self.family.invalid(name, why, basis, self.reject, GOOD, Batch(base=10, recs=(Rec(raw=raw),)).encoded())
        if compressed:
            basis = Basis(**{**vars(self.basis), "needs": ("magic:2", "codec:gzip")})
            batch = Batch(base=10, recs=(Rec(), Rec(raw=raw), Rec()), codec="gzip", compress=gzip)
            reason = f"{why} The record is between others in compressed data."
            self.family.invalid(f"{name}-compressed", reason, basis, self.reject, GOOD, batch.encoded())


def record_lengths() -> Family:
    """Family 30."""
    family = Family(
        30,
        "record-length",
        "Record lengths: negative, short, long, padded",
        "facts 2.4",
        flags={
            "RECORD_LENGTH": {
                "effect": "One reader skips by the length, another parses the fields; where they disagree the rest of the batch is read as something else.",
                "links": [],
            }
        },
    )
    negative = Bad(family, should("SEG-REC-002", flags=("RECORD_LENGTH",)), "length")
    for number in (-1, -2, -64, -(2**31)):
        negative.add(
            f"length-{number}", "The record length is negative.", varint(number) + PLAIN, compressed=number == -1
        )
    other = Bad(family, should("SEG-REC-001", flags=("RECORD_LENGTH",)), "length")
    other.add("length-0", "A record length of 0 leaves no room for the fields.", varint(0) + PLAIN, compressed=True)
    for number in (1, 2, len(PLAIN) // 2, len(PLAIN) - 1):
        why = "The record length ends before the last field."
        other.add(f"length-{number}", why, varint(number) + PLAIN, compressed=number == len(PLAIN) // 2)
    for count in (1, 2, 50):
        why = "Bytes between the last field and the end of the record: there is no room for unknown fields."
        other.add(f"padded-by-{count}", why, sized(PLAIN + bytes(count)), compressed=count == 1)
    past = Bad(family, should("SEG-REC-001", flags=("RECORD_LENGTH",)), "length")
    for number in (len(PLAIN) + 1, 2 * len(PLAIN), 1_000_000):
        why = "The record length leads past the end of the batch."
        past.add(f"length-{number}", why, varint(number) + PLAIN, compressed=number == 2 * len(PLAIN))
    greatest = Bad(family, should("SEG-REC-001", flags=("RECORD_LENGTH",)), "length")
    why = "The greatest possible record length; a reader must not allocate memory for it."
    greatest.add(f"length-{INT32_MAX}", why, varint(INT32_MAX) + PLAIN, compressed=True)
    stops_in = {1: "SEG-BAT-012", 2: "SEG-REC-012"}
    for count in range(1, len(PLAIN)):
        rule = should(*filter(None, (stops_in.get(count), "SEG-REC-006")), flags=("RECORD_LENGTH",))
        cut = Bad(family, rule, "length")
        why = "The record ends before its last field, and its length agrees with that."
        cut.add(f"cut-after-{count}", why, sized(PLAIN[:count]))
    swallow = sized(PLAIN[:-1] + b"\2" + sized(b"h") + sized(b"x" * 30))
    bad = Batch(
        base=10, recs=(Rec(raw=sized(PLAIN)[:1].replace(b"\x10", varint(len(PLAIN) + 9)) + PLAIN), Rec(), Rec())
    ).encoded()
    family.invalid(
        "two-records-in-one-length",
        "The length of the first record includes the second record.",
        should("SEG-REC-001", flags=("RECORD_LENGTH",), needs=("magic:2",)),
        "length",
        GOOD,
        bad,
    )
    assert swallow
    family.valid(
        "length-in-five-bytes",
        "The record length takes more bytes than it needs, which is allowed.",
        should("SEG-REC-005"),
        Batch(recs=(Rec(raw=varint(len(PLAIN), 5) + PLAIN), Rec(key=b"z"))),
    )
    return family


def field_lengths() -> Family:
    """Family 31."""
    family = Family(
        31,
        "field-lengths",
        "Key, value and header lengths past the end",
        "facts 2.4",
        flags={
            "FIELD_LENGTH": {
                "effect": "A length of two thousand million in a batch of a hundred bytes: allocated at once, it ends the process.",
                "links": [],
            }
        },
    )
    bad = Bad(family, should("SEG-REC-006", flags=("FIELD_LENGTH",)), "length")

    def key(number: int) -> bytes:
        return sized(b"\0\0\0" + varint(number) + b"k" + sized(b"v") + b"\0")

    def value(number: int) -> bytes:
        return sized(b"\0\0\0" + sized(b"k") + varint(number) + b"v" + b"\0")

    def header_key(number: int) -> bytes:
        return sized(b"\0\0\0" + sized(b"k") + sized(b"v") + varint(1) + varint(number) + b"h" + sized(b"x"))

    def header_value(number: int) -> bytes:
        return sized(b"\0\0\0" + sized(b"k") + sized(b"v") + varint(1) + sized(b"h") + varint(number) + b"x")

    makers: dict[str, Callable[[int], bytes]] = {"key": key, "value": value, "header-key": header_key, "header-value": header_value}  # fmt: skip
    for name, make in makers.items():
        for number in (20, 1000, 1_000_000, INT32_MAX):
            why = f"The {name.replace('-', ' ')} is longer than the rest of the record."
            bad.add(f"{name}-{number}", why, make(number), compressed=number in {20, INT32_MAX})
    off = Bad(family, should("SEG-REC-001", flags=("FIELD_LENGTH",)), "length")
    why = "The value length is one less than the size of the value: its last byte becomes the count of headers."
    off.add("value-one-less", why, sized(b"\0\0\0" + sized(b"k") + varint(2) + b"\0\0\0" + b"\0"))
    negative = Bad(family, should("SEG-REC-009", flags=("FIELD_LENGTH",)), "length")
    for number in (-1, -2, -(2**31)):
        raw = sized(b"\0\0\0" + sized(b"k") + sized(b"v") + varint(1) + varint(number) + sized(b"x"))
        negative.add(f"header-key-{number}", "A header key cannot be null.", raw, compressed=number == -1)
    into = Batch(
        base=10, recs=(Rec(raw=sized(b"\0\0\0" + sized(b"k") + varint(12) + b"v" + b"\0")), Rec(), Rec())
    ).encoded()
    family.invalid(
        "value-into-the-next-record",
        "The value length includes the next record, whose bytes are there: only the record length shows the error.",
        should("SEG-REC-001", flags=("FIELD_LENGTH",), needs=("magic:2",)),
        "length",
        GOOD,
        into,
    )
    return family


def header_counts() -> Family:
    """Family 32."""
    family = Family(
        32,
        "header-count",
        "Header counts: negative, huge",
        "facts 2.4",
        flags={
            "HEADER_COUNT": {
                "effect": "Readers set aside an array of as many headers as the count says; 2147483647 of them end the process.",
                "links": [],
            }
        },
    )

    def counted(number: int, *pairs: tuple[bytes, bytes]) -> bytes:
        body = b"".join(sized(name) + sized(content) for name, content in pairs)
        return sized(PLAIN[:-1] + varint(number) + body)

    negative = Bad(family, should("SEG-REC-008", flags=("HEADER_COUNT",)), "count")
    for number in (-1, -2, -64, -(2**31)):
        negative.add(f"count-{number}", "A negative count of headers.", counted(number), compressed=number == -1)
    huge = Bad(family, should("SEG-REC-006", flags=("HEADER_COUNT",)), "count")
    for number in (1, 2, 1000, 50_000, INT32_MAX):
        why = "The header count is above 0, but the record has no header."
        huge.add(f"count-{number}-of-none", why, counted(number), compressed=number in {1, INT32_MAX})
    for number in (2, INT32_MAX):
        why = "The header count is above 1, but the record has one header."
        huge.add(f"count-{number}-of-one", why, counted(number, (b"h", b"x")))
    fewer = Bad(family, should("SEG-REC-001", flags=("HEADER_COUNT",)), "count")
    for name, op, result, named in (
        ("count-0-of-one", "The header count is 0, but the record has a header.", counted(0, (b"h", b"x")), {"compressed": True}),
        ("count-1-of-two", "The header count is 1, but the record has two headers.", counted(1, (b"h", b"x"), (b"i", b"y")), {}),
    ):  # fmt: skip
        fewer.add(name, op, result, **named)
    missing = Bad(family, should("SEG-REC-006", flags=("HEADER_COUNT",)), "length")
    missing.add("no-count", "The record ends before its count of headers.", sized(PLAIN[:-1]), compressed=True)
    for name, op, result in (
        ("header-without-value", "The record ends after the key of a header, without its value.", sized(PLAIN[:-1] + varint(1) + sized(b"h"))),
        ("header-without-key-bytes", "The record ends inside the key of a header.", sized(PLAIN[:-1] + varint(1) + varint(3) + b"h")),
    ):  # fmt: skip
        missing.add(name, op, result)
    return family


def varints() -> Family:
    """Family 33."""
    family = Family(
        33,
        "varints",
        "Varints: overlong, overflowing, unterminated",
        "facts 2.4",
        flags={
            "OVERLONG": {
                "effect": "Brokers and the Java client take longer forms. A reader that refuses them loses data that others deliver.",
                "links": [],
            },
            "VARINT_END": {
                "effect": "A varint without an end makes a reader shift past the width of its numbers, or run on into the next record.",
                "links": [],
            },
        },
    )
    fields: dict[str, Callable[[bytes], bytes]] = {
        "timestamp-delta": lambda number: b"\0" + number + b"\0" + sized(b"k") + sized(b"v") + b"\0",
        "offset-delta": lambda number: b"\0\0" + number + sized(b"k") + sized(b"v") + b"\0",
        "key-length": lambda number: b"\0\0\0" + number + sized(b"v") + b"\0",
        "value-length": lambda number: b"\0\0\0" + sized(b"k") + number + b"\0",
        "headers-count": lambda number: b"\0\0\0" + sized(b"k") + sized(b"v") + number,
    }
    for name, body in fields.items():
        for size in (2, 3, 5) + ((9, 10) if name == "timestamp-delta" else ()):
            rec = Rec(
                key=b"" if name == "key-length" else b"k",
                value=b"" if name == "value-length" else b"v",
                raw=sized(body(varint(0, size))),
            )
            family.valid(
                f"{name}-in-{size}-bytes",
                "A varint of 0 may take more bytes than it needs.",
                should("SEG-REC-005", "SEG-REC-004", flags=("OVERLONG",)),
                Batch(recs=(rec, Rec(key=b"z"))),
            )
        width = 10 if name == "timestamp-delta" else 5
        bad = Bad(family, should("SEG-REC-004", flags=("VARINT_END",)), "varint")
        for case, op, result, named in (
            (f"{name}-in-{width + 1}-bytes", f"A varint of {width + 1} bytes is one byte too long.", sized(body(varint(0, width + 1))), {"compressed": name == "offset-delta"}),
            (f"{name}-without-end", "A varint without an end: every byte says that another follows.", sized(body(b"\xff" * 20)), {}),
        ):  # fmt: skip
            bad.add(case, op, result, **named)
    bad = Bad(family, should("SEG-REC-004", flags=("VARINT_END",)), "varint")
    why = "The varint of the record length takes six bytes, one more than allowed."
    bad.add("length-in-6-bytes", why, varint(len(PLAIN), 6) + PLAIN, compressed=True)
    bad.add("length-without-end", "The varint of the record length has no end.", b"\x80" * 30)
    end = Bad(family, should("SEG-REC-006", flags=("VARINT_END",)), "varint")
    why = "The varint at the end of the batch is unfinished: its last byte says that another follows."
    end.add("last-byte-says-more", why, sized(PLAIN[:-1] + b"\x80"))
    only = Bad(family, should("SEG-REC-002", "SEG-REC-006", flags=("VARINT_END",)), "varint")
    why = "The records of the batch are one byte, which says that another byte of a varint follows."
    only.add("only-a-length-that-says-more", why, b"\x80")
    dropped = should("SEG-REC-004", flags=("OVERLONG",))
    high = Rec(key=b"k", value=b"v", raw=sized(fields["offset-delta"](b"\x80\x80\x80\x80\x70")))
    top = Rec(key=b"k", value=b"v", raw=sized(fields["timestamp-delta"](b"\x80" * 9 + b"\x7e")))
    for name, why, unit in (
        ("bits-beyond-32", "The fifth byte of a varint has bits beyond 32; a reader drops them, as Java does.", Batch(recs=(high, Rec(key=b"z")))),
        ("bits-beyond-64", "The tenth byte of a varint has bits beyond 64; a reader drops them, as Java does.", Batch(recs=(top, Rec(key=b"z")))),
    ):  # fmt: skip
        family.valid(name, why, dropped, unit)
    widest = ((2**31 - 1, "greatest"), (-(2**31), "least"))
    for number, name in widest:
        rec = (
            Rec(key=None, value=b"v", raw=sized(b"\0\0\0" + varint(number) + sized(b"v") + b"\0"))
            if number < 0
            else Rec(delta=number)
        )
        last = None if number > 0 else 0
        why = "A varint of five bytes with the greatest or smallest 32-bit number."
        family.valid(f"{name}-of-32-bits", why, must("SEG-REC-004"), Batch(recs=(rec,), last_delta=last))
    family.valid(
        "zig-zag-order",
        "Varints are zigzag numbers, whose lowest bit is the sign: 0, -1, 1, -2, 2.",
        must("SEG-BAT-012", "SEG-REC-004"),
        Batch(
            recs=tuple(Rec(time=number) for number in (0, -1, 1, -2, 2, 63, -64, 64, -65, 8191, -8192, 8192)),
            base_timestamp=100_000,
        ),
    )
    assert uvarint(300) == b"\xac\x02"
    return family


def offsets() -> Family:
    """Family 34."""
    family = Family(
        34,
        "offset-order",
        "Offsets overflowing, going backwards, beyond the last delta",
        "facts 2.3 and 7",
        flags={
            "HEADER_OFFSETS": {
                "effect": "Brokers and the Java client do not look at these fields, and hand on whatever they lead to. A reader that computes with them "
                "jumps to an offset below 0 or reads the same batch for ever.",
                "links": [],
            },
            "BACKWARDS": {
                "effect": "Offsets that go back break every search. Some readers deliver what stands there, some stop; a position that moves back is a loop.",
                "links": [],
            },
        },
    )
    headers = {
        "base-offset-minus-1": (BASE_OFFSET, -1, "SEG-BAT-005", "A negative base offset."),
        "base-offset-least": (
            BASE_OFFSET,
            -(2**63),
            "SEG-BAT-005",
            "The smallest 64-bit base offset, which is negative.",
        ),
        "last-delta-minus-1": (
            LAST_OFFSET_DELTA,
            -1,
            "SEG-BAT-006",
            "A negative last offset delta: the last offset would be below the base offset.",
        ),
        "last-delta-least": (
            LAST_OFFSET_DELTA,
            -(2**31),
            "SEG-BAT-006",
            "The smallest 32-bit last offset delta, which is negative.",
        ),
        "last-offset-overflows": (
            BASE_OFFSET,
            INT64_MAX - 1,
            "SEG-BAT-009",
            "Base offset plus last offset delta overflows 64 bits.",
        ),
    }
    for name, (field, number, rule, why) in headers.items():
        family.invalid(name, why, should(rule, needs=("magic:2",), flags=("HEADER_OFFSETS",)), "offset", GOOD, with_field(WHOLE, field, number))  # fmt: skip
    beyond = should("SEG-REC-014", "SEG-REC-012", flags=("HEADER_OFFSETS",))
    family.backwards(
        "record-beyond-the-last-delta",
        "A record has an offset that a later batch also has: a reader delivers it with that offset.",
        beyond,
        Batch(base=10, recs=(Rec(), Rec(delta=5)), last_delta=1),
    )
    why = "A negative offset delta: the offset of the record is below the base offset of its batch."
    family.valid("record-below-the-base", why, beyond, Batch(base=10, recs=(Rec(delta=-2), Rec(delta=1)), last_delta=1))
    order = should("SEG-REC-013", "SEG-REC-012", flags=("BACKWARDS",))
    for name, why, recs, last_delta in (
        ("deltas-go-back", "The records of a batch are out of order: a reader delivers them in stored order.", (Rec(delta=2), Rec(delta=0), Rec(delta=1)), 2),
        ("delta-twice", "Two records of a batch have the same offset: a reader delivers both.", (Rec(delta=0), Rec(delta=0, value=b"w")), 1),
    ):  # fmt: skip
        family.backwards(name, why, order, Batch(base=10, recs=recs, last_delta=last_delta))
    for name, deltas, base in (("record-below-0", (-11,), 10), ("record-above-2-63", (2,), INT64_MAX - 1)):
        batch = Batch(base=base, recs=tuple(Rec(delta=delta) for delta in deltas), last_delta=0)
        family.invalid(name, "The offset delta leads below 0 or above 64 bits.", should("SEG-REC-014", needs=("magic:2",), flags=("HEADER_OFFSETS",)), "offset", GOOD, batch.encoded())  # fmt: skip
    rows = {
        "back": (Batch(base=20), Batch(base=10), "The second batch has a smaller offset than the first."),
        "same": (Batch(base=10), Batch(base=10), "Two batches have the same offset."),
        "overlap": (
            Batch(base=10, recs=(Rec(), Rec(), Rec())),
            Batch(base=11, recs=(Rec(), Rec(), Rec())),
            "The second batch begins at an offset inside the first.",
        ),
        "magic-1-back": (Msg(offset=20), Msg(offset=10), "The second message has a smaller offset than the first."),
    }
    for name, (first, second, why) in rows.items():
        log = [first, second, Batch(base=40)]
        data, answers = lay(log)
        magics = {f"magic:{answer['magic']}" for answer in answers}
        rest = {"consumed": len(data), "tail": None}
        rules = ("SEG-LOG-007",) if name == "overlap" else ("SEG-LOG-006",)
        family.either(
            f"batches-{name}",
            why,
            should(*rules, needs=tuple(magics), flags=("BACKWARDS",)),
            data,
            [
                {"branch": "delivered", "batches": answers, **rest},
                {"branch": "without what is below the position", "batches": above_position(answers), **rest},
                {"branch": "refused", "reject": {"class": "offset"}, "batches": answers[:1]},
            ],
        )
    for offset in (-1, -(2**63)):
        family.invalid(
            f"magic-1-offset-{offset}",
            "A message with a negative offset.",
            should("SEG-MSG-025", needs=("magic:1",), flags=("HEADER_OFFSETS",), since="0.10"),
            "offset",
            Msg(offset=3),
            Msg(offset=offset).encoded(),
            more=Msg(offset=9),
        )
    for name, numbers in (("negative", (5, -4)), ("first-minus-1", (-1, 5)), ("least", (5, -(2**63)))):
        inner = tuple(Msg(magic=0, offset=number) for number in numbers)
        family.invalid(
            f"magic-0-{name}-inside",
            "A message with a negative offset in a wrapper.",
            should("SEG-MSG-025", needs=("magic:0", "codec:gzip"), flags=("HEADER_OFFSETS",), since="0.8"),
            "offset",
            Msg(magic=0, offset=3),
            Wrapper(magic=0, offset=5, inner=inner, compress=gzip).encoded(),
            more=Msg(magic=0, offset=9),
        )
    return family


def families() -> list[Family]:
    """All of this module."""
    return [record_lengths(), field_lengths(), header_counts(), varints(), offsets()]

"""Family 49: what a consumer does after its first error."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from authoring.batches import CRC, LENGTH, MAGIC, Batch, Rec, with_field
from authoring.casefile import Family, should
from authoring.codecs import gzip, lz4_frame
from authoring.control import marker
from authoring.messages import Msg, Wrapper
from authoring.primitives import crc32c, flipped

COMPRESSORS: Final = {"gzip": gzip, "lz4": lz4_frame}
RECS: Final = (Rec(value=b"a"), Rec(value=b"b"), Rec(value=b"c"))
LEAD: Final = Batch(recs=RECS)
SECOND: Final = Batch(base=LEAD.next_offset, recs=RECS)
BASIS: Final = should("SEG-LKP-014", needs=("afterError", "magic:2"), flags=("GOES_ON",))
SUMS: Final = replace(BASIS, req=("SEG-BAT-003", "SEG-LKP-014"), needs=("crc", *BASIS.needs))
TOO_LONG: Final = b"\x7e" + RECS[1].body()
"""A record that begins well and whose length leads out of its batch."""


def with_bad_sum(batch: Batch) -> bytes:
    """Return a batch of which nothing but the checksum is wrong."""
    data = batch.encoded()
    return with_field(data, CRC, crc32c(data[21:]) ^ 1 << 9, seal=False)


def after_an_error() -> Family:
    """Family 49."""
    family = Family(
        49,
        "after-an-error",
        "After the first error",
        "KafkaConsumer 4.1.1 and 4.4.0, by wire",
        flags={
            "GOES_ON": {
                "effect": "A consumer that goes on behind the damage has lost these records for good as soon as its position is committed; one that goes "
                "back hands out records twice.",
                "links": [],
            }
        },
    )
    _checksums(family)
    _contents(family)
    _messages(family)
    return family


def _checksums(family: Family) -> None:
    why = "{}: after the error, the consumer's position is before it."
    at = SECOND.base
    distant = replace(SECOND, base=10)
    for name, reason, after, *units in (
        ("second-batch", why.format("The second batch is damaged"), at, LEAD, with_bad_sum(SECOND)),
        ("first-batch", why.format("The first batch is damaged"), 0, with_bad_sum(LEAD)),
        ("behind-a-gap", "Offsets are missing before the damaged batch: after the error, the consumer's position is at or before the batch.", distant.base, LEAD, with_bad_sum(distant)),
        ("control-batch", why.format("A control batch is damaged"), at, LEAD, with_bad_sum(marker("COMMIT", at))),
    ):  # fmt: skip
        family.invalid(name, reason, SUMS, "crc", *units, after=after)
    for codec, compress in COMPRESSORS.items():
        packed = replace(SECOND, codec=codec, compress=compress)
        basis = replace(SUMS, needs=(*SUMS.needs, f"codec:{codec}"))
        reason = (
            "The checksum of a compressed batch is wrong: after the error, the consumer's position is before the batch."
        )
        family.invalid(f"{codec}-batch", reason, basis, "crc", LEAD, with_bad_sum(packed), after=at)


def _contents(family: Family) -> None:
    base = SECOND.base
    for name, why, basis, reject, unit, after in (
        ("record-too-long", "The second record of a batch cannot be read: after the error, the consumer's position is before it or its batch.",
         replace(BASIS, req=("SEG-REC-001", *BASIS.req)), "length", replace(SECOND, recs=(RECS[0], Rec(raw=TOO_LONG), RECS[2])).encoded(), base + 1),
        ("gzip-stream", "A compressed stream is damaged, the checksum is right: after the error, the consumer's position is before its batch.",
         replace(BASIS, req=("SEG-COD-002", *BASIS.req), needs=(*BASIS.needs, "codec:gzip")), "compression",
         replace(SECOND, codec="gzip", stored=flipped(gzip(SECOND.section()), 0)).encoded(), base),
        ("unknown-magic", "A batch has an unknown magic: after the error, the consumer's position is before it.", replace(BASIS, req=("SEG-BAT-004", *BASIS.req)), "magic",
         with_field(SECOND.encoded(), MAGIC, 3), base),
        ("impossible-size", "A batch length is impossible, so the next entry cannot be found: the consumer's position is before the batch.",
         replace(BASIS, req=("SEG-LOG-003", *BASIS.req)), "length", with_field(SECOND.encoded(), LENGTH, 1), base),
    ):  # fmt: skip
        family.invalid(name, why, basis, reject, LEAD, unit, after=after)


def _messages(family: Family) -> None:
    for magic in (0, 1):
        basis = replace(SUMS, req=("SEG-MSG-004", "SEG-LKP-014"), needs=("afterError", "crc", f"magic:{magic}"))
        damaged = flipped(Msg(magic=magic, offset=4).encoded(), -1)
        inner = tuple(Msg(magic=magic, offset=4 + at if magic == 0 else at) for at in range(3))
        size = len(inner[0].encoded())
        wrapper = Wrapper(
            magic=magic,
            offset=6,
            inner=inner,
            offsets=(4, 5, 6),
            compress=lambda content, at=2 * size - 1: gzip(flipped(content, at, 3)),
        )
        for name, why, terms, unit, after in (
            (f"magic-{magic}-message", "A message is damaged: after the error, the consumer's position is before it.", basis, damaged, 4),
            (f"magic-{magic}-inside-a-wrapper", "The second of three messages in a wrapper is damaged: the consumer's position is before it or before the wrapper.",
             replace(basis, req=("SEG-MSG-016", "SEG-LKP-014"), needs=(*basis.needs, "codec:gzip")), wrapper.encoded(), 5),
        ):  # fmt: skip
            family.invalid(
                name, why, terms, "crc", Msg(magic=magic, offset=3), unit, more=Msg(magic=magic, offset=9), after=after
            )


def families() -> list[Family]:
    """Family 49."""
    return [after_an_error()]

"""Family 42: what encoders write."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from authoring.batches import LOG_APPEND_TIME, Batch, Rec
from authoring.casefile import Basis, Family, Json, lay, may, must, should
from authoring.codecs import gzip
from authoring.control import CLEANED, data, empty, marker
from authoring.damage import COMPRESSORS
from authoring.messages import Msg, Wrapper
from authoring.primitives import DIGEST_OVER

NOW: Final = 1_700_000_000_000
HOUR: Final = 3_600_000
INT32_MAX: Final = 2**31 - 1


def add_encoding(
    family: Family, name: str, why: str, basis: Basis, *batches: Batch | Msg | Wrapper, exact: bool = True
) -> None:
    """Add what an encoder is asked to write.

    Args:
        family: that gets the case.
        name: of the case.
        why: what breaks in practice.
        basis: of the case.
        batches: to write.
        exact: whether every byte is fixed; otherwise what a reader makes of the bytes is compared.
    """
    data, answers = lay(batches)
    asked = []
    for unit, answer in zip(batches, answers, strict=True):
        kept = {key: value for key, value in answer.items() if key not in {"position", "sizeInBytes", "crc", "isValid"}}
        records = [
            {key: value for key, value in record.items() if key not in {"isValid", "crc"}} | content
            for record, content in zip(answer["records"], _contents(unit), strict=True)
        ]
        asked.append({**kept, "records": records})
    free = [{key: value for key, value in answer.items() if key not in _left_out(answer)} for answer in answers]
    magics = {f"magic:{answer['magic']}" for answer in answers} | {f"codec:{answer['codec']}" for answer in answers}
    basis = replace(basis, needs=tuple(magics - {"codec:none"}))
    expect: Json = {"data": data.hex()} if exact else {"batches": free}
    family.add(name, "encode", "valid", why, basis, request={"batches": asked}, expect=expect)


def encodings() -> Family:
    """Family 42."""
    flags = {
        "MINIMAL_VARINT": {"effect": "Longer varints are read by all, and make every batch larger.", "links": []},
        "MAX_TIMESTAMP": {
            "effect": "Time lookups and retention go by the maximum timestamp of the header; a wrong one hides records or keeps them.",
            "links": [],
        },
    }
    family = Family(
        42,
        "encoding",
        "Encoding: sizes, maximum timestamp, sequences, minimal varints",
        "facts 2.3 and 2.4",
        flags=flags,
    )

    def encode(name: str, why: str, basis: Basis, *batches: Batch | Msg | Wrapper, exact: bool = True) -> None:
        add_encoding(family, name, why, basis, *batches, exact=exact)

    layout = must("SEG-BAT-001", "SEG-BAT-003")
    r1, r2, r3 = Rec(key=None, value=b"a"), Rec(key=b"k", value=None, time=5), Rec(key=b"k", value=b"vv", time=3)
    three = Batch(base=10, leader_epoch=-1, recs=(r1, r2, r3))
    why = "Every byte of an uncompressed batch is fixed."
    encode("three-records", why, must("SEG-BAT-001", "SEG-BAT-003", source="vector V-06"), three)
    stamped = replace(three, attributes=LOG_APPEND_TIME, max_timestamp=7777)
    why = "LogAppendTime: every record has the maximum timestamp of the batch."
    encode("log-append-time", why, must("SEG-BAT-011", flags=("MAX_TIMESTAMP",)), stamped, exact=False)
    late = Batch(leader_epoch=-1, base_timestamp=1900, recs=(Rec(), Rec(time=-900), Rec(time=-860)))
    for name, why, basis, batches in (
        ("maximum-is-not-the-last", "The maximum timestamp is that of the first record.", should("SEG-BAT-015", flags=("MAX_TIMESTAMP",)), late),
        ("one-record", "One record.", layout, Batch(leader_epoch=-1)),
        ("headers", "Headers with a null value.", must("SEG-REC-010", "SEG-REC-007", source="vector V-08"), Batch(base=10, leader_epoch=-1, recs=(Rec(headers=((b"h", b"x"), (b"n", None))),))),
    ):  # fmt: skip
        encode(name, why, basis, batches)
    for name, rec in (
        ("null-key", Rec(key=None)),
        ("null-value", Rec(value=None)),
        ("empty", Rec(key=b"", value=b"")),
        ("both-null", Rec(key=None, value=None)),
    ):
        encode(name, "Null is written as -1, empty as 0.", must("SEG-REC-007"), Batch(leader_epoch=-1, recs=(rec,)))
    minimal = should("SEG-REC-005", flags=("MINIMAL_VARINT",))
    for count in (64, 65, 200):
        encode(
            f"records-{count}",
            "Varints of deltas take as few bytes as they need.",
            minimal,
            Batch(leader_epoch=-1, recs=tuple(Rec(key=b"%d" % at, time=at) for at in range(count))),
        )
    for size in (63, 64, 8191, 8192):
        encode(
            f"value-of-{size}-bytes",
            "Varints of lengths take as few bytes as they need.",
            minimal,
            Batch(leader_epoch=-1, recs=(Rec(value=b"v" * size),))
            if size < DIGEST_OVER
            else Batch(leader_epoch=-1, recs=tuple(Rec(value=b"v" * (size // 4)) for _ in range(4))),
        )
    for delta in (63, 64, -64, -65, 2**31, -(2**40)):
        encode(
            f"time-delta-{delta}",
            "Timestamp deltas have 64 bits.",
            must("SEG-BAT-012"),
            Batch(leader_epoch=-1, base_timestamp=NOW, recs=(Rec(), Rec(time=delta))),
        )
    for name, why, basis, batches, named in (
        ("producer", "Producer id, epoch and sequence.", must("SEG-BAT-017", "SEG-BAT-001"),
         Batch(leader_epoch=-1, producer_id=2**53 + 1, producer_epoch=7, base_sequence=INT32_MAX, recs=(r1, r2)), {}),
        ("epoch-without-producer", "Without a producer id, the producer epoch is -1; the sequence may be any.", should("SEG-BAT-020"), Batch(leader_epoch=-1), {"exact": False}),
    ):  # fmt: skip
        encode(name, why, basis, batches, **named)
    family.cases[-1]["expect"]["batches"][0]["producerEpoch"] = -1
    for name, why, basis, *batches in (
        ("transactional", "The bit of a transaction.", layout, replace(data(0, b"a", b"b"), leader_epoch=-1)),
        ("no-timestamp", "Without a time.", must("SEG-BAT-012"), Batch(leader_epoch=-1, base_timestamp=-1, recs=(Rec(),))),
        ("compacted", "Offsets with gaps.", must("SEG-REC-012", "SEG-BAT-016"), Batch(base=100, leader_epoch=4, last_delta=3, base_timestamp=1500, recs=(Rec(delta=2),))),
        ("empty-batch", "A batch without records.", must("SEG-BAT-018", source="vector V-20"), empty(100, 4, leader_epoch=3, producer_id=9, producer_epoch=2, base_sequence=0)),
        ("delete-horizon", "With a delete horizon.", must("SEG-BAT-013", source="vector V-22"), CLEANED),
        ("commit", "An end marker.", must("SEG-CTL-004", source="vector V-13"), marker("COMMIT", 5)),
        ("two-batches", "Two batches.", layout, Batch(leader_epoch=-1, recs=(r1,)), Batch(base=1, leader_epoch=-1, recs=(replace(r2, time=0), r3))),
    ):  # fmt: skip
        encode(name, why, basis, *batches)
    words = tuple(Rec(value=b"the same words again and again, " * 8, time=at) for at in range(3))
    for codec, compress in COMPRESSORS.items():
        encode(
            f"codec-{codec}",
            "Compressed records, which compression made smaller, can be decompressed again.",
            must("SEG-COD-001", "SEG-BAT-003"),
            Batch(base=0, leader_epoch=-1, codec=codec, compress=compress, recs=words),
            exact=False,
        )
    for name, why, basis, recs in (
        ("codec-snappy-blocks", "Framed snappy has blocks of 32 KiB of data: no byte is lost at their boundaries.", must("SEG-COD-001", "SEG-BAT-003"), _long(12)),
        ("codec-snappy-header", "Snappy in the frames that Kafka's own producers write; one raw block can be read as well.", may("SEG-COD-003"), words),
    ):  # fmt: skip
        encode(
            name,
            why,
            basis,
            Batch(base=0, leader_epoch=-1, codec="snappy", compress=COMPRESSORS["snappy"], recs=recs),
            exact=False,
        )
    family.cases[-1]["expect"]["contains"] = "82534e41505059000000000100000001"
    for name, why, rule, since, batches, its_batches in (
        ("magic-1", "Messages of magic 1.", "SEG-MSG-002", "0.10", Msg(offset=10, key=None, value=b"a"), Msg(offset=11, value=None, timestamp=1005)),
        ("magic-0", "Messages of magic 0.", "SEG-MSG-001", "0.8", Msg(magic=0, offset=10, key=None, value=b"a", timestamp=-1), Msg(magic=0, offset=11, value=None, timestamp=-1)),
    ):  # fmt: skip
        encode(name, why, must(rule, "SEG-MSG-004", since=since), batches, its_batches)
    inner = tuple(Msg(offset=at, timestamp=1000 + at) for at in range(3))
    encode(
        "magic-1-wrapper",
        "A wrapper of magic 1 has relative offsets inside.",
        must("SEG-MSG-012", since="0.10"),
        Wrapper(offset=12, inner=inner, offsets=(10, 11, 12), compress=gzip),
        exact=False,
    )
    return family


def _contents(unit: Batch | Msg | Wrapper) -> list[Json]:
    """Return keys, values and headers in full, where an answer may have digests of them."""
    if isinstance(unit, Batch):
        return [{**_content(rec.key, rec.value), **_headers(rec)} for rec in unit.placed]
    return [_content(one.key, one.value) for one in (unit.inner if isinstance(unit, Wrapper) else (unit,))]


def _content(key: bytes | None, value: bytes | None) -> Json:
    return {"key": None if key is None else key.hex(), "value": None if value is None else value.hex()}


def _headers(rec: Rec) -> Json:
    pairs = [[name.hex(), None if content is None else content.hex()] for name, content in rec.headers]
    return {"headers": pairs} if pairs else {}


def _left_out(answer: Json) -> set[str]:
    """Return the fields of a batch that a compressor decides, or that are free where there is no producer."""
    free = {"producerEpoch", "baseSequence", "lastSequence"} if answer["producerId"] == "-1" else set()
    return {"position", "sizeInBytes", "crc", "baseTimestamp", *free}


def _long(count: int) -> tuple[Rec, ...]:
    """Return records of 3000 bytes, no two of which are the same."""
    return tuple(Rec(key=None, value=(b"%06d " % at) * 428 + b"end.") for at in range(count))


def families() -> list[Family]:
    """All of this module."""
    return [encodings()]

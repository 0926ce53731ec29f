"""What an append writes: the bytes that a leader or a follower puts into the log (part of family 41)."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from authoring.batches import CONTROL, LOG_APPEND_TIME, TRANSACTIONAL, Batch, Rec
from authoring.casefile import Basis, Json, lay, must, should
from authoring.codecs import LZ4_PLAIN, XERIAL, ZSTD_MAGIC, lz4_header, lz4_stored, xerial, xxh32, zstd_block
from authoring.control import control_key, empty, marker_value
from authoring.damage import COMPRESSORS
from authoring.messages import Msg, Wrapper
from authoring.primitives import flipped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from authoring.casefile import Family, Unit

NOW: Final = 1_700_000_000_000
DAY: Final = 86_400_000
STAMPED: Final = {"message.timestamp.type": "LogAppendTime"}
TRUSTED: Final = {"message.timestamp.after.max.ms": str(2**63 - 1)}
UNSTABLE: Final = ("crc", "sizeInBytes")
SOURCE: Final = "facts 2.3, 5.1 and 7; bytes put together by hand"


def entry(unit: Unit, first: int, at: int | None = None, *, bytes_count: bool = True) -> Json:
    """Return what is written for one entry: its bytes, or what they read as where a compressor decides about them."""
    answer = unit.answer(0)
    found: Json = {
        "firstOffset": str(first),
        "lastOffset": answer["lastOffset"],
        "maxTimestamp": answer["maxTimestamp"],
        "maxTimestampOffset": answer["lastOffset"] if at is None else str(at),
    }
    if bytes_count:
        return {"data": unit.encoded().hex(), **found}
    records = [{key: item for key, item in record.items() if key != "crc"} for record in answer["records"]]
    kept = {key: item for key, item in answer.items() if key not in UNSTABLE}
    return {**found, "batches": [{**kept, "records": records}]}


class Written:
    """Adds cases to a family."""

    def __init__(self, family: Family) -> None:
        self.family = family

    def ask(self, name: str, why: str, basis: Basis, data: bytes, expect: Json, **request: Any) -> None:  # noqa: ANN401
        """One append."""
        needs = (*basis.needs, "appended", f"policy:{request.get('policy', 'append')}")
        basis = replace(basis, needs=needs, source=basis.source or SOURCE)
        request = {"data": data.hex(), "policy": "append", "now": str(NOW), **request}
        result = "acceptable" if "allowed" in expect else "invalid" if "reject" in expect else "valid"
        self.family.add(f"writes-{name}", "validate", result, why, basis, request=request, expect=expect)

    def leads(
        self,
        name: str,
        why: str,
        basis: Basis,
        units: Sequence[Unit | bytes],
        entries: Sequence[Json],
        offset: int = 700,
        *,
        is_refusable: bool = False,
        **request: Any,  # noqa: ANN401
    ) -> None:
        """Add an append of a leader at an offset, in epoch 6; one that is refusable, newer brokers do not take."""
        given = {"baseOffset": str(offset), "leaderEpoch": 6, **request}
        expect: Json = {"accept": True, "entries": list(entries)}
        if is_refusable:
            expect = {
                "allowed": [{"branch": "written", **expect}, {"branch": "refused", "reject": {"class": "policy"}}]
            }
        self.ask(name, why, basis, lay(units)[0], expect, **given)

    def follows(
        self,
        name: str,
        why: str,
        basis: Basis,
        units: Sequence[Unit | bytes],
        entries: Sequence[Json],
        offset: int,
        **request: Any,  # noqa: ANN401
    ) -> None:
        """Add an append of a follower, of what a leader wrote."""
        given = {"policy": "replicate", "baseOffset": str(offset), **request}
        self.ask(name, why, basis, lay(units)[0], {"accept": True, "entries": list(entries)}, **given)

    def refuses(self, name: str, why: str, basis: Basis, units: Sequence[Unit | bytes], **request: Any) -> None:  # noqa: ANN401
        """Add an append that is refused."""
        self.ask(name, why, basis, lay(units)[0], {"reject": {"class": "policy"}}, **request)


def appended(family: Family) -> None:
    """Add the cases."""
    to = Written(family)
    _batches(to)
    _stamped(to)
    _messages(to)
    _limits(to)
    _followers(to)
    _overlapping(to)
    _coordinators(to)
    _frames(to)


def _sent(*recs: Rec, **fields: Any) -> Batch:  # noqa: ANN401
    return Batch(recs=recs, leader_epoch=-1, base_timestamp=NOW, **fields)


def _placed(batch: Batch, **fields: Any) -> Batch:  # noqa: ANN401
    return replace(batch, base=700, leader_epoch=6, **fields)


TIMES: Final = (Rec(time=5), Rec(time=40), Rec(time=40, key=None), Rec(time=-7, headers=((b"h", b""),)))


def _batches(to: Written) -> None:
    basis = must("SEG-APP-001", "SEG-APP-003", flags=("APPEND_POLICY",))
    batch = _sent(*TIMES)
    placed = _placed(batch)
    to.leads(
        "offsets",
        "A leader sets base offset and leader epoch; the checksum and the deltas stay.",
        must("SEG-APP-001", "SEG-APP-003", "SEG-APP-018", "SEG-APP-020", flags=("APPEND_POLICY",)),
        [batch],
        [entry(placed, 700)],
    )
    one = _sent(Rec())
    for count, offset in ((1, 0), (1, 2**40), (1, 2**63 - 2), (2, 2**63 - 3), (20, 2**63 - 21)):
        many = replace(one, recs=one.recs * count)
        reason = "A leader assigns offsets of 64 bits, up to the last one of a log."
        to.leads(
            f"at-{offset}", reason, basis, [many], [entry(replace(many, base=offset, leader_epoch=6), offset)], offset
        )
    to.refuses(
        "past-the-last-offset",
        "The first record gets the last possible offset; none is left for the second.",
        must("SEG-LOG-013", "SEG-BAT-009", flags=("APPEND_POLICY",)),
        [_sent(Rec(), Rec())],
        baseOffset=str(2**63 - 1),
    )
    for codec, compress in COMPRESSORS.items():
        packed = replace(batch, codec=codec, compress=compress)
        to.leads(
            f"codec-{codec}",
            "A leader writes compressed data as the producer sent it.",
            must("SEG-APP-019", flags=("APPEND_POLICY",)),
            [packed],
            [entry(_placed(packed), 700)],
        )
    idempotent = replace(batch, producer_id=9, producer_epoch=3, base_sequence=5, attributes=TRANSACTIONAL)
    unusual = replace(batch, attributes=0x100)
    for name, why, terms, units, entries in (
        ("transactional", "A leader does not change producer id, epoch and sequence.", basis, [idempotent], [entry(_placed(idempotent), 700)]),
        ("unknown-bits-kept", "If a leader does not rewrite the header, attribute bits without a meaning stay.", must("SEG-APP-020", flags=("APPEND_POLICY",)), [unusual],
         [entry(_placed(unusual), 700)]),
    ):  # fmt: skip
        to.leads(name, why, terms, units, entries)
    right = must("SEG-APP-026", flags=("APPEND_POLICY",))
    for name, given in (("above", NOW + 41), ("below", NOW + 39), ("none", -1)):
        wrong = replace(batch, max_timestamp=given)
        why = "A leader corrects a wrong maximum timestamp, and then the checksum."
        to.leads(f"maximum-timestamp-{name}", why, right, [wrong], [entry(placed, 700)])
    for name, why, terms, units in (
        ("maximum-timestamp-and-unknown-bits", "If a leader rewrites the header, it clears attribute bits without a meaning.", right, [replace(unusual, max_timestamp=NOW)]),
        ("part-behind", "A leader does not write bytes after the batch.", must("SEG-APP-005", flags=("APPEND_POLICY",)), [batch, b"\0\0\0"]),
    ):  # fmt: skip
        to.leads(name, why, terms, units, [entry(placed, 700)])
    offsets = must("SEG-APP-015", flags=("APPEND_POLICY",))
    for generation, at in (("2.0", 701), ("0.11", 701), ("0.10.1", 701), ("3.7", 703), ("4.1", 703)):
        to.leads(
            f"largest-{generation}",
            "Up to 3.6, the time index has the offset of the record with the largest timestamp, later the last of "
            "its batch.",
            offsets,
            [batch],
            [entry(placed, 700, at)],
            config={"generation": generation, **TRUSTED},
        )
    for name, times, first in (
        ("first", (40, 5, 30), 0),
        ("tied", (5, 40, 40, 40, 7), 1),
        ("descends", (9, 8, 7, 6), 0),
    ):
        one = _sent(*(Rec(time=time) for time in times), producer_id=9, producer_epoch=3, base_sequence=5)
        for generation, at in (("2.0", 700 + first), ("0.11", 700 + first), ("4.1", 699 + len(times))):
            to.leads(
                f"largest-{name}-{generation}",
                "Up to 3.6, the time index has the offset of the first record with the largest timestamp, later the last of "
                "its batch.",
                offsets,
                [one],
                [entry(_placed(one), 700, at)],
                config={"generation": generation, **TRUSTED},
            )
    packed = replace(batch, codec="gzip", compress=COMPRESSORS["gzip"])
    why = "For a compressed batch, the time index has the last offset of the batch in every version."
    to.leads("largest-compressed", why, offsets, [packed], [entry(_placed(packed), 700)], config={"generation": "2.0"})


def _stamped(to: Written) -> None:
    basis = must("SEG-APP-010", flags=("APPEND_POLICY",))
    batch = _sent(*TIMES)
    for name, given, codec in (("plain", batch, "none"), ("gzip", batch, "gzip")):
        unit = given if codec == "none" else replace(given, codec=codec, compress=COMPRESSORS[codec])
        stamped = _placed(unit, attributes=LOG_APPEND_TIME, max_timestamp=NOW + DAY)
        why = "LogAppendTime: a leader writes its clock and the timestamp type into the header; the deltas stay."
        to.leads(
            f"log-append-time-{name}", why, basis, [unit], [entry(stamped, 700)], config=STAMPED, now=str(NOW + DAY)
        )
    same = replace(batch, max_timestamp=NOW + 3)
    none = Batch(recs=(Rec(), Rec()), leader_epoch=-1, base_timestamp=-1)
    transactional = replace(batch, attributes=TRANSACTIONAL, producer_id=4, producer_epoch=0, base_sequence=0)
    for name, why, terms, units, entries, named in (
        ("log-append-time-same-number", "LogAppendTime: a leader sets the timestamp type, also if the maximum timestamp stays the same.", basis, [same],
         [entry(_placed(same, attributes=LOG_APPEND_TIME), 700)], {"config": STAMPED, "now": str(NOW + 3)}),
        ("log-append-time-in-2-0", "With LogAppendTime, all records have the same timestamp: the time index has the last offset.",
         must("SEG-APP-015", flags=("APPEND_POLICY",)), [batch], [entry(_placed(batch, attributes=LOG_APPEND_TIME, max_timestamp=NOW), 700)],
         {"config": {**STAMPED, "generation": "2.0"}}),
        ("no-timestamps", "A leader takes records without timestamps unchanged.", must("SEG-APP-026", flags=("APPEND_POLICY",)), [none], [entry(replace(none, base=700, leader_epoch=6), 700)], {}),
        ("log-append-time-transactional", "LogAppendTime: a leader does not change the other attribute bits.", basis, [transactional],
         [entry(_placed(transactional, attributes=TRANSACTIONAL | LOG_APPEND_TIME, max_timestamp=NOW), 700)], {"config": STAMPED}),
    ):  # fmt: skip
        to.leads(name, why, terms, units, entries, **named)


def _messages(to: Written) -> None:
    for magic in (0, 1):
        old = {"since": "0.8" if magic == 0 else "0.10", "needs": (f"magic:{magic}",), "flags": ("APPEND_POLICY",)}
        basis = must("SEG-APP-003", "SEG-APP-001", **old)
        sent = [Msg(magic=magic, offset=at, timestamp=NOW + at, value=b"v%d" % at) for at in range(3)]
        placed = [replace(one, offset=700 + at) for at, one in enumerate(sent)]
        why = "A leader assigns the next offset to each message."
        to.leads(f"magic-{magic}", why, basis, sent, [entry(one, one.offset) for one in placed])
        relative = [replace(one, offset=at if magic else 700 + at) for at, one in enumerate(sent)]
        offsets = (700, 701, 702)
        for codec in ("gzip", "snappy"):
            wrapper = Wrapper(magic=magic, inner=tuple(relative), codec=codec, compress=COMPRESSORS[codec])
            right = replace(wrapper, offset=702, offsets=offsets)
            why = "The offsets inside a wrapper are right: a leader does not compress it again."
            to.leads(f"magic-{magic}-{codec}-kept", why, basis, [replace(wrapper, offset=2)], [entry(right, 700)])
            first = relative[0].offset
            fields: tuple[dict[str, Any], ...] = ({"key": b"", "value": None}, {"key": None, "value": b""}, {})
            unusual = tuple(replace(one, **field) for one, field in zip(relative, fields, strict=True))
            for name, stored, inner in (
                ("above", (1, 2, 3), relative),
                ("far", (50, 51, 52), relative),
                ("gap", (0, 2, 3), relative),
                ("gap-behind", (0, 1, 5), relative),
                ("of-the-other-magic", (700 - 2 * first, 701 - 2 * first, 702 - 2 * first), relative),
                ("null-and-empty", (1, 2, 3), unusual),
                ("null-and-empty-gap", (0, 1, 3), unusual[::-1]),
            ):
                moved = tuple(replace(one, offset=first + at) for one, at in zip(inner, stored, strict=True))
                placed_inside = tuple(replace(one, offset=two.offset) for one, two in zip(inner, relative, strict=True))
                to.leads(
                    f"magic-{magic}-{codec}-offsets-{name}",
                    "The offsets inside a wrapper are wrong: a leader rewrites it.",
                    basis,
                    [replace(wrapper, inner=moved, offset=max(90, moved[-1].offset))],
                    [entry(replace(right, inner=placed_inside), 700, bytes_count=False)],
                )
        first_wrong = (replace(relative[0], offset=relative[0].offset + 1), *relative[1:])
        single = Wrapper(magic=magic, inner=first_wrong, compress=COMPRESSORS["gzip"], offset=2)
        right = Wrapper(magic=magic, inner=tuple(relative), compress=COMPRESSORS["gzip"], offset=702, offsets=offsets)
        second = [*relative, replace(sent[0], offset=3 if magic else 703)]
        for name, why, units, entries, named in (
            (f"magic-{magic}-one-offset-wrong", "One offset inside a wrapper is wrong: a leader rewrites it.", [single], [entry(right, 700, bytes_count=False)], {}),
            (f"magic-{magic}-two-wrappers", "The offsets of the second wrapper continue after those of the first.",
             [replace(right, offset=2, offsets=None), Wrapper(magic=magic, inner=(replace(second[3], offset=0 if magic else 703),), compress=COMPRESSORS["gzip"])],
             [entry(right, 700), entry(Wrapper(magic=magic, inner=(replace(second[3], offset=0 if magic else 703),), compress=COMPRESSORS["gzip"], offset=703, offsets=(703,)), 703)],
             {"is_refusable": True}),
        ):  # fmt: skip
            to.leads(name, why, basis, units, entries, **named)
    _stamped_messages(to)


def _stamped_messages(to: Written) -> None:
    old = must("SEG-APP-010", since="0.10", needs=("magic:1",), flags=("APPEND_POLICY",))
    message = Msg(timestamp=NOW)
    marked = Msg(timestamp=NOW, attributes=-128)
    zero = Msg(magic=0, timestamp=-1)
    inner = tuple(Msg(offset=at, timestamp=NOW + at) for at in range(3))
    wrapper = Wrapper(inner=inner, compress=COMPRESSORS["gzip"], offset=2)
    placed = replace(wrapper, offset=702, offsets=(700, 701, 702))
    for name, why, basis, units, entries, named in (
        ("magic-1-log-append-time", "LogAppendTime: a leader writes its clock into the message.", old, [message],
         [entry(replace(message, offset=700, timestamp=NOW + 9, attributes=LOG_APPEND_TIME), 700)], {"config": STAMPED, "now": str(NOW + 9)}),
        ("magic-1-unknown-bit", "The highest attribute bit of a message has no meaning; a leader does not change it.", replace(old, req=("SEG-APP-003",)), [marked],
         [entry(replace(marked, offset=700), 700)], {}),
        ("magic-0-log-append-time", "LogAppendTime changes nothing in a message of magic 0, which has no timestamp.",
         must("SEG-APP-010", since="0.8", needs=("magic:0",), flags=("APPEND_POLICY",)), [zero], [entry(replace(zero, offset=700), 700)], {"config": STAMPED}),
        ("magic-1-wrapper-log-append-time", "LogAppendTime: a leader writes its clock into the wrapper and does not change the messages inside.", old, [wrapper],
         [entry(replace(placed, attributes=LOG_APPEND_TIME, timestamp=NOW + 9), 700)], {"config": STAMPED, "now": str(NOW + 9)}),
    ):  # fmt: skip
        to.leads(name, why, basis, units, entries, **named)
    for name, given in (("above", NOW + 5), ("below", NOW)):
        to.leads(
            f"magic-1-wrapper-maximum-{name}",
            "A leader writes the largest timestamp of the messages inside into the wrapper.",
            old,
            [replace(wrapper, timestamp=given)],
            [entry(replace(placed, timestamp=NOW + 2), 700)],
        )
    bad = Wrapper(inner=(inner[0],), compress=lambda data: COMPRESSORS["gzip"](flipped(data, 30)))
    to.refuses(
        "magic-1-wrong-inner-checksum",
        "A leader refuses a wrapper with a message that has a wrong checksum.",
        must("SEG-MSG-016", since="0.10", needs=("magic:1",), flags=("APPEND_POLICY",)),
        [bad],
    )
    several = [replace(message, offset=at) for at in range(2)]
    to.follows(
        "magic-1-followed",
        "A follower writes messages as its leader wrote them.",
        must("SEG-APP-002", since="0.10", needs=("magic:1",), flags=("APPEND_POLICY",)),
        [replace(one, offset=40 + one.offset) for one in several],
        [entry(replace(one, offset=40 + one.offset), 40 + one.offset) for one in several],
        40,
    )
    to.refuses(
        "two-magics",
        "A leader refuses messages of two magics in one append.",
        must("SEG-APP-004", flags=("APPEND_POLICY",), needs=("magic:0", "magic:1")),
        [Msg(magic=0), Msg(magic=1, offset=1)],
    )


def _limits(to: Written) -> None:
    basis = must("SEG-APP-021", flags=("APPEND_POLICY",))
    batch = _sent(Rec(value=bytes(40)))
    size = len(batch.encoded())
    why = "A batch is exactly as large as `segment.bytes` allows."
    to.leads("segment-bytes", why, basis, [batch], [entry(_placed(batch), 700)], config={"segment.bytes": str(size)})
    why = "A batch is larger than `segment.bytes` allows."
    to.refuses("segment-bytes-one-less", why, basis, [batch], config={"segment.bytes": str(size - 1)})
    messages = [Msg(timestamp=NOW, offset=at) for at in range(3)]
    old = must("SEG-APP-021", since="0.10", needs=("magic:1",), flags=("APPEND_POLICY",))
    length = len(messages[0].encoded())
    to.leads(
        "messages-of-a-segment",
        "All messages of one append together are exactly as large as a segment may be.",
        old,
        messages,
        [entry(replace(one, offset=700 + one.offset), 700 + one.offset) for one in messages],
        config={"segment.bytes": str(3 * length), "max.message.bytes": str(length)},
    )
    for name, why, terms, units, config in (
        ("messages-larger-than-a-segment", "Each message fits in a segment, but all messages of the append together do not.", old, messages, {"segment.bytes": str(3 * length - 1)}),
        ("messages-larger-than-allowed", "The second message is larger than `max.message.bytes` allows.", replace(old, req=("SEG-APP-006",)),
         [messages[0], replace(messages[1], value=b"vv")], {"max.message.bytes": str(length)}),
    ):  # fmt: skip
        to.refuses(name, why, terms, units, config=config)


def _followers(to: Written) -> None:
    basis = must("SEG-APP-002", flags=("APPEND_POLICY",))
    first = Batch(base=40, recs=(Rec(), Rec(time=5)), leader_epoch=2)
    second = Batch(base=45, recs=(Rec(),), leader_epoch=3, attributes=0x100)
    both = [entry(first, 40), entry(second, 45)]
    for offset in (0, 39, 40):
        why = "A follower writes every byte as its leader wrote it, gaps between offsets included."
        to.follows(f"as-leader-wrote-{offset}", why, basis, [first, second], both, offset, config=STAMPED)
    for name, why, units, base_offset in (
        ("below-the-end", "The batch begins below the end of the log.", [first], "41"),
        ("offsets-back", "The second batch begins inside the first.", [first, replace(second, base=41)], "40"),
        ("same-offsets", "The second batch has the offsets of the first again.", [first, first], "40"),
    ):  # fmt: skip
        to.refuses(name, why, basis, units, policy="replicate", baseOffset=base_offset)
    to.follows("next-offset", "The second batch begins at the offset after the first.", basis, [first, replace(second, base=42)], [entry(first, 40), entry(replace(second, base=42), 42)], 40)  # fmt: skip
    epoch = should("SEG-APP-014", flags=("APPEND_POLICY",))
    for limit, count in ((3, 2), (2, 1)):
        why = "A follower leaves out batches of a later leader epoch than that of its fetch."
        to.follows(f"until-epoch-{limit}", why, epoch, [first, second], both[:count], 40, leaderEpoch=limit)
    third = replace(first, base=50)
    for name, why, units, entries in (
        ("behind-a-later-epoch", "A follower also leaves out all batches after one of a later leader epoch.", [first, second, third], both[:1]),
        ("all-of-a-later-epoch", "All batches have a later leader epoch than the fetch: the follower writes nothing.", [second], []),
    ):  # fmt: skip
        to.follows(name, why, epoch, units, entries, 40, leaderEpoch=2)
    to.refuses(
        "ends-before-it-begins",
        "The second batch ends where the first does.",
        basis,
        [first, replace(second, base=42, last_delta=-1)],
        policy="replicate",
        baseOffset="40",
    )
    emptied = empty(60, 63, leader_epoch=2)
    to.follows(
        "emptied", "A follower writes an empty batch that compaction left.", basis, [emptied], [entry(emptied, 60)], 50
    )
    for name, why, terms, units, named in (
        ("damaged-batch", "A batch with a wrong checksum is refused.", must("SEG-BAT-003", flags=("APPEND_POLICY",)), [first, flipped(second.encoded(), 65)], {"baseOffset": "40"}),
        ("nothing-whole", "The append contains only part of a batch.", must("SEG-APP-005", needs=("strictAppend",), flags=("APPEND_POLICY",)), [first.encoded()[:-1]], {}),
    ):  # fmt: skip
        to.refuses(name, why, terms, units, policy="replicate", **named)
    for magic in (0, 1):
        old = must("SEG-APP-002", since="0.8", needs=(f"magic:{magic}",), flags=("APPEND_POLICY",))
        inner = tuple(Msg(magic=magic, offset=at if magic else 80 + at, timestamp=NOW + at) for at in range(3))
        wrapper = Wrapper(magic=magic, inner=inner, offset=82, offsets=(80, 81, 82), compress=COMPRESSORS["gzip"])
        for offset in (80, 82):
            reason = "A follower only sees the wrapper's offset, which is that of its last message."
            to.follows(
                f"magic-{magic}-wrapper-{offset}", reason, old, [wrapper], [entry(wrapper, 82)], offset, leaderEpoch=1
            )
        to.refuses(
            f"magic-{magic}-wrapper-83", "The wrapper ends below the end of the log.", old, [wrapper], policy="replicate", baseOffset="83"
        )  # fmt: skip
    to.refuses(
        "segment-bytes-replicated",
        "A batch is larger than `segment.bytes` allows.",
        must("SEG-APP-021", flags=("APPEND_POLICY",)),
        [first],
        policy="replicate",
        baseOffset="40",
        config={"segment.bytes": "70"},
    )


def _overlapping(to: Written) -> None:
    """Offsets of what a follower takes over: of the first entry both ends count, of the others the last."""
    basis = must("SEG-APP-002", flags=("APPEND_POLICY",))
    first = Batch(base=10, recs=(Rec(), Rec(), Rec()))
    for base in (11, 12):
        units = [first, Batch(base=base, recs=(Rec(), Rec(), Rec()))]
        reason = "The second entry begins inside the first and ends after it: brokers only compare where entries end."
        to.follows(f"begins-inside-at-{base}", reason, basis, units, [entry(one, one.base) for one in units], 10)
    given: Json = {"policy": "replicate", "baseOffset": "10"}
    inside = [first, Batch(base=11, recs=(Rec(), Rec()))]
    to.refuses("ends-inside", "The second entry ends where the first does.", basis, inside, **given)
    to.refuses("begins-below", "The entry begins below the end of the log.", basis, [replace(first, base=9)], **given)
    for delta in (-3, -1, -2):
        why = "The entry begins at the end of the log or above, but ends below it."
        to.refuses(f"ends-below-{-delta}", why, basis, [replace(first, base=9 - delta, last_delta=delta)], **given)  # fmt: skip


def _coordinators(to: Written) -> None:
    marker = Batch(
        recs=(Rec(key=control_key(1), value=marker_value(0)),),
        attributes=CONTROL | TRANSACTIONAL,
        producer_id=9,
        producer_epoch=0,
        base_timestamp=NOW,
        leader_epoch=-1,
    )
    basis = should("SEG-APP-004", flags=("APPEND_POLICY",))
    why = "A coordinator, which is part of the broker, may append end markers."
    to.leads("marker", why, basis, [marker], [entry(_placed(marker), 700)], origin="coordinator")
    several = [_sent(Rec()), replace(_sent(Rec(), Rec()), base=55)]
    to.leads(
        "several-batches",
        "A coordinator appends several batches at once; brokers take only one.",
        basis,
        several,
        [entry(_placed(several[0]), 700), entry(replace(several[1], base=701, leader_epoch=6), 701)],
        is_refusable=True,
        origin="coordinator",
    )
    bare = _sent(Rec(), producer_id=9, producer_epoch=0)
    why = "For an append of a coordinator, the sequence is not checked."
    to.leads("no-sequence", why, basis, [bare], [entry(_placed(bare), 700)], origin="coordinator")
    sequence = must("SEG-APP-007", flags=("APPEND_POLICY",))
    for producer, base in ((0, 0), (9, 2**31 - 1)):
        own = _sent(Rec(), Rec(), producer_id=producer, producer_epoch=0, base_sequence=base)
        why = "An unknown producer may begin with any sequence from 0 on."
        to.leads(f"sequence-{base}-of-{producer}", why, sequence, [own], [entry(_placed(own), 700)])
    for producer in (0, 1, 2**31, 2**63 - 1):
        for name, bits in (("plain", 0), ("transactional", TRANSACTIONAL)):
            to.refuses(
                f"producer-{producer}-no-sequence-{name}",
                "A producer id from 0 on is a valid id, so a sequence is required.",
                sequence,
                [_sent(Rec(), producer_id=producer, producer_epoch=0, attributes=bits)],
            )


def _frames(to: Written) -> None:
    """Compressed data that is odd at one end; the leader looks into it before it keeps it as it is."""
    recs = (Rec(value=bytes(range(256)) + b"x" * 50),)
    for name, codec, rule, compress in (
        ("gzip-half-a-header-behind", "gzip", "SEG-COD-002", _half_a_member),
        ("zstd-size-in-two-bytes", "zstd", "SEG-COD-014", _sized_frame),
        ("zstd-window-128-mib", "zstd", "SEG-COD-022", lambda data: ZSTD_MAGIC + b"\x00\x88" + zstd_block(data)),
        ("zstd-window-1-kib", "zstd", "SEG-COD-014", lambda data: ZSTD_MAGIC + b"\x00\x00" + zstd_block(data)),
    ):
        batch = _sent(*recs, codec=codec, compress=compress)
        why = "The compressed frame is unusual, but still allowed: a leader takes it."
        to.leads(name, why, must(rule, flags=("APPEND_POLICY",)), [batch], [entry(_placed(batch), 700)])
    for size in (8, 15):
        batch = _sent(*recs, codec="snappy", compress=lambda data, size=size: xerial(data) + XERIAL[:size])
        basis = must("SEG-COD-003", flags=("APPEND_POLICY",))
        reason = "A second xerial header is cut short: a leader refuses the batch."
        to.refuses(f"snappy-second-header-cut-at-{size}", reason, basis, [batch])
    for cut in (1, 3, 4):
        batch = _sent(*recs, codec="lz4", compress=lambda data, cut=cut: _summed_frame(data)[:-cut])
        basis = must("SEG-COD-010", flags=("APPEND_POLICY",))
        reason = "The content checksum of the lz4 frame is cut short: a leader refuses the batch."
        to.refuses(f"lz4-content-checksum-cut-by-{cut}", reason, basis, [batch])


def _half_a_member(data: bytes) -> bytes:
    return COMPRESSORS["gzip"](data) + b"\x1f\x8b\x08\x08" + bytes(6) + b"x" * 20


def _sized_frame(data: bytes) -> bytes:
    return ZSTD_MAGIC + b"\x60" + (len(data) - 256).to_bytes(2, "little") + zstd_block(data)


def _summed_frame(data: bytes) -> bytes:
    return lz4_header(LZ4_PLAIN | 4) + lz4_stored(data) + bytes(4) + xxh32(data)

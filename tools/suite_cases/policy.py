"""Families 41, 42, 44 and 45: what is appended, encoded, rolled and deleted, and what compaction leaves."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from suite_cases.batches import (
    BASE_OFFSET,
    CONTROL,
    COUNT,
    DELETE_HORIZON,
    LAST_OFFSET_DELTA,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    Batch,
    Rec,
    with_field,
)
from suite_cases.casefile import Family, Json, Terms, lay, must, should
from suite_cases.codecs import gzip, xerial, zstd
from suite_cases.control import control_key, data, empty, marker, marker_value
from suite_cases.damage import COMPRESSORS
from suite_cases.messages import Msg, Wrapper
from suite_cases.primitives import DIGEST_OVER, flipped

if TYPE_CHECKING:
    from collections.abc import Sequence

NOW: Final = 1_700_000_000_000
HOUR: Final = 3_600_000
INT32_MAX: Final = 2**31 - 1


def sent(*recs: Rec, **fields: object) -> Batch:
    """A batch as a producer sends it."""
    return Batch(recs=recs or (Rec(), Rec()), leader_epoch=-1, base_timestamp=NOW, **fields)  # type: ignore[arg-type]


def appends() -> Family:
    """Family 41."""
    flags = {
        "APPEND_POLICY": {
            "effect": "What a leader lets in stays for all time: later brokers, cleaners and clients have to live with it.",
            "links": [],
        },
        "LENIENT_LEADER": {
            "effect": "Brokers let this pass: they write nothing, put it right, or do not look. A leader may be stricter.",
            "links": [],
        },
        "CLOCKS": {
            "effect": "A time in the far future keeps its segment for ever and rolls the log at once.",
            "links": [],
        },
    }
    family = Family(41, "append-policy", "What a broker takes on produce", "facts 2.3, 5.1 and 7", flags=flags)

    def ask(name: str, result: str, why: str, terms: Terms, content: bytes, **config: str) -> None:
        request = {
            "data": content.hex(),
            "policy": "append",
            "now": str(NOW),
            "config": {key.replace("_", "."): value for key, value in config.items()},
        }
        accepted, refused = {"accept": True}, {"reject": {"class": "policy"}}
        branches = {"allowed": [{"branch": "refused", **refused}, {"branch": "accepted", **accepted}]}
        expect: Json = {"valid": accepted, "invalid": refused, "acceptable": branches}[result]
        family.add(name, "validate", result, why, terms, request=request, expect=expect)

    def takes(name: str, why: str, terms: Terms, content: bytes, **config: str) -> None:
        ask(name, "valid", why, terms, content, **config)

    def refuses(name: str, why: str, terms: Terms, content: bytes, **config: str) -> None:
        ask(name, "invalid", why, terms, content, **config)

    def may_refuse(name: str, why: str, rule: str, content: bytes) -> None:
        ask(name, "acceptable", why, should(rule, flags=("LENIENT_LEADER",)), content)
        ask(f"{name}-strict", "invalid", why, must(rule, flags=("APPEND_POLICY",), needs=("strictAppend",)), content)

    single = must("SEG-APP-004", flags=("APPEND_POLICY",))
    plain = sent()
    takes("plain", "A batch as every producer sends it.", single, plain.encoded())
    takes("one-record", "One record.", single, sent(Rec()).encoded())
    for codec, compress in COMPRESSORS.items():
        takes(
            f"codec-{codec}",
            "Compressed by the producer.",
            single,
            replace(plain, codec=codec, compress=compress).encoded(),
        )
    takes(
        "idempotent",
        "With producer id, epoch and sequence.",
        single,
        replace(plain, producer_id=9, producer_epoch=0, base_sequence=0).encoded(),
    )
    takes(
        "transactional",
        "In a transaction.",
        single,
        replace(plain, attributes=TRANSACTIONAL, producer_id=9, producer_epoch=0, base_sequence=5).encoded(),
    )
    takes(
        "leader-epoch",
        "The epoch that the producer wrote is not looked at.",
        single,
        replace(plain, leader_epoch=77).encoded(),
    )
    takes(
        "unknown-bits",
        "Attribute bits without a meaning are let in.",
        single,
        replace(plain, attributes=0x100).encoded(),
    )
    takes("headers", "With headers.", single, sent(Rec(headers=((b"a", None),))).encoded())
    takes(
        "wrong-maximum-timestamp",
        "The leader puts the maximum timestamp right.",
        must("SEG-APP-010", flags=("APPEND_POLICY",)),
        replace(plain, max_timestamp=NOW + 5).encoded(),
    )
    refuses(
        "base-offset-5",
        "A new batch begins at offset 0; the leader gives the offsets.",
        single,
        with_field(plain.encoded(), BASE_OFFSET, 5),
    )
    refuses("gap", "A record is missing: the offsets would not be dense.", single, sent(Rec(), Rec(delta=2)).encoded())
    refuses(
        "last-delta-too-large",
        "The last offset delta says more than there is.",
        single,
        with_field(plain.encoded(), LAST_OFFSET_DELTA, 5),
    )
    refuses("last-delta-too-small", "It says less.", single, with_field(plain.encoded(), LAST_OFFSET_DELTA, 0))
    may_refuse(
        "deltas-twice",
        "Two records with one delta.",
        "SEG-APP-004",
        sent(Rec(delta=0), Rec(delta=0), last_delta=1).encoded(),
    )
    may_refuse("deltas-back", "Deltas that go back.", "SEG-APP-004", sent(Rec(delta=1), Rec(delta=0)).encoded())
    refuses("empty", "No record at all.", single, empty(0, 0, leader_epoch=-1).encoded())
    refuses(
        "count-too-large",
        "A count that does not fit.",
        must("SEG-APP-004", "SEG-BAT-008", flags=("APPEND_POLICY",)),
        with_field(plain.encoded(), COUNT, 3),
    )
    refuses("two-batches", "Two batches at once.", single, plain.encoded() + replace(plain, base=2).encoded())
    refuses(
        "control",
        "A control batch from a producer.",
        single,
        Batch(
            recs=(Rec(key=control_key(1), value=marker_value(0)),),
            attributes=CONTROL | TRANSACTIONAL,
            producer_id=9,
            producer_epoch=0,
            base_timestamp=NOW,
        ).encoded(),
    )
    refuses(
        "no-sequence",
        "A producer id without a sequence.",
        must("SEG-APP-004", "SEG-APP-007", flags=("APPEND_POLICY",)),
        replace(plain, producer_id=9, producer_epoch=0).encoded(),
    )
    damaged = must("SEG-BAT-003", flags=("APPEND_POLICY",))
    refuses("wrong-crc", "A wrong checksum.", damaged, flipped(plain.encoded(), 65))
    may_refuse("nothing", "Nothing at all.", "SEG-APP-005", b"")
    may_refuse("only-a-part", "Part of a batch.", "SEG-APP-005", plain.encoded()[:-1])
    takes(
        "part-behind",
        "Bytes behind the batch are trimmed, not written.",
        must("SEG-APP-005", flags=("APPEND_POLICY",)),
        plain.encoded() + b"\0\0\0",
    )
    refuses(
        "unknown-codec",
        "A codec that does not exist.",
        must("SEG-COD-001", flags=("APPEND_POLICY",)),
        replace(plain, attributes=5).encoded(),
    )
    refuses(
        "bad-gzip",
        "Data that does not decompress.",
        must("SEG-COD-002", flags=("APPEND_POLICY",)),
        replace(plain, codec="gzip", stored=b"no gzip at all").encoded(),
    )
    refuses(
        "bad-record",
        "A record that cannot be read.",
        must("SEG-REC-006", flags=("APPEND_POLICY",)),
        replace(plain, stored=b"\x10\0\0\0\1\x7f").encoded(),
    )
    may_refuse(
        "log-append-time",
        "It is for the broker to set LogAppendTime.",
        "SEG-APP-011",
        replace(plain, attributes=LOG_APPEND_TIME).encoded(),
    )
    _sizes(takes, refuses, plain)
    _clocks(takes, refuses)
    _keys(takes, refuses)
    return family


def _sizes(takes: object, refuses: object, plain: Batch) -> None:
    assert callable(takes)
    assert callable(refuses)
    terms = must("SEG-APP-006", flags=("APPEND_POLICY",))
    size = len(plain.encoded())
    takes(
        "max-message-bytes",
        "Exactly as large as allowed, prefix included.",
        terms,
        plain.encoded(),
        max_message_bytes=str(size),
    )
    refuses(
        "max-message-bytes-one-less",
        "One byte more than allowed.",
        terms,
        plain.encoded(),
        max_message_bytes=str(size - 1),
    )
    refuses("max-message-bytes-0", "Nothing is allowed.", terms, plain.encoded(), max_message_bytes="0")


def _keys(takes: object, refuses: object) -> None:
    assert callable(takes)
    assert callable(refuses)
    keys = must("SEG-APP-012", flags=("APPEND_POLICY",))
    refuses(
        "compacted-null-key",
        "A compacted topic asks for keys.",
        keys,
        sent(Rec(), Rec(key=None)).encoded(),
        cleanup_policy="compact",
    )
    takes("compacted-empty-key", "An empty key is a key.", keys, sent(Rec(key=b"")).encoded(), cleanup_policy="compact")
    takes("null-key", "Other topics do not.", keys, sent(Rec(key=None)).encoded(), cleanup_policy="delete")
    refuses(
        "compacted-and-deleted-null-key",
        "With both policies a key is needed, too.",
        keys,
        sent(Rec(key=None)).encoded(),
        cleanup_policy="compact,delete",
    )
    takes(
        "compacted-tombstone",
        "A tombstone has a key and no value.",
        keys,
        sent(Rec(value=None)).encoded(),
        cleanup_policy="compact",
    )


def _clocks(takes: object, refuses: object) -> None:
    assert callable(takes)
    assert callable(refuses)
    terms = must("SEG-APP-011", flags=("CLOCKS",))

    def at(timestamp: int) -> bytes:
        return Batch(recs=(Rec(),), leader_epoch=-1, base_timestamp=timestamp).encoded()

    limits = {"message_timestamp_after_max_ms": str(HOUR), "message_timestamp_before_max_ms": str(2 * HOUR)}
    takes("time-ahead", "As far ahead as allowed.", terms, at(NOW + HOUR), **limits)
    refuses("time-too-far-ahead", "A millisecond further.", terms, at(NOW + HOUR + 1), **limits)
    takes("time-behind", "As far behind as allowed.", terms, at(NOW - 2 * HOUR), **limits)
    refuses("time-too-far-behind", "A millisecond further.", terms, at(NOW - 2 * HOUR - 1), **limits)
    takes("no-time", "No time at all is always fine.", terms, at(-1), **limits)
    takes(
        "stamped-topic",
        "Where the broker sets the time, the producer's does not matter.",
        terms,
        at(NOW + 99 * HOUR),
        message_timestamp_type="LogAppendTime",
        **limits,
    )
    mixed = Batch(recs=(Rec(), Rec(time=HOUR + 1)), leader_epoch=-1, base_timestamp=NOW).encoded()
    refuses("second-record-too-far-ahead", "The second record of the batch is too far ahead.", terms, mixed, **limits)


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

    def encode(name: str, why: str, terms: Terms, *batches: Batch | Msg | Wrapper, exact: bool = True) -> None:
        bytes_and_answers = lay(batches)
        asked = []
        for answer in bytes_and_answers[1]:
            kept = {
                key: value for key, value in answer.items() if key not in {"position", "sizeInBytes", "crc", "isValid"}
            }
            records = [
                {key: value for key, value in record.items() if key not in {"isValid", "crc"}}
                for record in answer["records"]
            ]
            asked.append({**kept, "records": records})
        answers = [
            {
                key: value
                for key, value in answer.items()
                if key not in {"position", "sizeInBytes", "crc", "baseTimestamp"}
            }
            for answer in bytes_and_answers[1]
        ]
        magics = {f"magic:{answer['magic']}" for answer in answers} | {f"codec:{answer['codec']}" for answer in answers}
        terms = replace(terms, needs=tuple(magics - {"codec:none"}))
        expect: Json = {"data": bytes_and_answers[0].hex()} if exact else {"batches": answers}
        family.add(name, "encode", "valid", why, terms, request={"batches": asked}, expect=expect)

    layout = must("SEG-BAT-001", "SEG-BAT-003")
    r1, r2, r3 = Rec(key=None, value=b"a"), Rec(key=b"k", value=None, time=5), Rec(key=b"k", value=b"vv", time=3)
    three = Batch(base=10, leader_epoch=-1, recs=(r1, r2, r3))
    encode(
        "three-records",
        "Every byte of an uncompressed batch is fixed.",
        must("SEG-BAT-001", "SEG-BAT-003", source="vector V-06"),
        three,
    )
    stamped = replace(three, attributes=LOG_APPEND_TIME, max_timestamp=7777)
    encode(
        "log-append-time",
        "Stamped: every record reads as the maximum timestamp.",
        must("SEG-BAT-011", flags=("MAX_TIMESTAMP",)),
        stamped,
        exact=False,
    )
    late = Batch(leader_epoch=-1, base_timestamp=1900, recs=(Rec(), Rec(time=-900), Rec(time=-860)))
    encode(
        "maximum-is-not-the-last",
        "The maximum timestamp is that of the first record.",
        should("SEG-BAT-015", flags=("MAX_TIMESTAMP",)),
        late,
    )
    encode("one-record", "One record.", layout, Batch(leader_epoch=-1))
    encode(
        "headers",
        "Headers with a null value.",
        must("SEG-REC-010", "SEG-REC-007", source="vector V-08"),
        Batch(base=10, leader_epoch=-1, recs=(Rec(headers=((b"h", b"x"), (b"n", None))),)),
    )
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
            "Deltas take as few bytes as they need.",
            minimal,
            Batch(leader_epoch=-1, recs=tuple(Rec(key=b"%d" % at, time=at) for at in range(count))),
        )
    for size in (63, 64, 8191, 8192):
        encode(
            f"value-of-{size}-bytes",
            "Lengths take as few bytes as they need.",
            minimal,
            Batch(leader_epoch=-1, recs=(Rec(value=b"v" * size),))
            if size < DIGEST_OVER
            else Batch(leader_epoch=-1, recs=tuple(Rec(value=b"v" * (size // 4)) for _ in range(4))),
        )
    for delta in (63, 64, -64, -65, 2**31, -(2**40)):
        encode(
            f"time-delta-{delta}",
            "Time deltas have 64 bits.",
            must("SEG-BAT-012"),
            Batch(leader_epoch=-1, base_timestamp=NOW, recs=(Rec(), Rec(time=delta))),
        )
    encode(
        "producer",
        "Producer id, epoch and sequence.",
        must("SEG-BAT-017", "SEG-BAT-001"),
        Batch(leader_epoch=-1, producer_id=2**53 + 1, producer_epoch=7, base_sequence=INT32_MAX, recs=(r1, r2)),
    )
    encode("transactional", "The bit of a transaction.", layout, replace(data(0, b"a", b"b"), leader_epoch=-1))
    encode(
        "no-timestamp", "Without a time.", must("SEG-BAT-012"), Batch(leader_epoch=-1, base_timestamp=-1, recs=(Rec(),))
    )
    encode(
        "compacted",
        "Offsets with gaps.",
        must("SEG-REC-012", "SEG-BAT-016"),
        Batch(base=100, leader_epoch=4, last_delta=3, base_timestamp=1500, recs=(Rec(delta=2),)),
    )
    encode(
        "empty-batch",
        "A batch without records.",
        must("SEG-BAT-018", source="vector V-20"),
        empty(100, 4, leader_epoch=3, producer_id=9, producer_epoch=2, base_sequence=0),
    )
    encode(
        "delete-horizon",
        "With a delete horizon.",
        must("SEG-BAT-013", source="vector V-22"),
        Batch(
            base=100,
            leader_epoch=4,
            last_delta=3,
            attributes=DELETE_HORIZON,
            base_timestamp=501_000,
            max_timestamp=2000,
            producer_id=9,
            producer_epoch=0,
            base_sequence=0,
            recs=(Rec(key=b"b", value=None, delta=1, time=-499_000), Rec(key=b"c", value=b"3", delta=2, time=-499_500)),
        ),
    )
    encode("commit", "An end marker.", must("SEG-CTL-004", source="vector V-13"), marker("COMMIT", 5))
    encode(
        "two-batches",
        "Two batches.",
        layout,
        Batch(leader_epoch=-1, recs=(r1,)),
        Batch(base=1, leader_epoch=-1, recs=(replace(r2, time=0), r3)),
    )
    words = tuple(Rec(value=b"the same words again and again, " * 8, time=at) for at in range(3))
    for codec, compress in COMPRESSORS.items():
        encode(
            f"codec-{codec}",
            "What was compressed, because it got smaller, can be read again.",
            must("SEG-COD-001", "SEG-BAT-003"),
            Batch(base=0, leader_epoch=-1, codec=codec, compress=compress, recs=words),
            exact=False,
        )
    encode(
        "magic-1",
        "Messages of magic 1.",
        must("SEG-MSG-002", "SEG-MSG-004", since="0.10"),
        Msg(offset=10, key=None, value=b"a"),
        Msg(offset=11, value=None, timestamp=1005),
    )
    encode(
        "magic-0",
        "Messages of magic 0.",
        must("SEG-MSG-001", "SEG-MSG-004", since="0.8"),
        Msg(magic=0, offset=10, key=None, value=b"a", timestamp=-1),
        Msg(magic=0, offset=11, value=None, timestamp=-1),
    )
    inner = tuple(Msg(offset=at, timestamp=1000 + at) for at in range(3))
    encode(
        "magic-1-wrapper",
        "A wrapper of magic 1 has relative offsets inside.",
        must("SEG-MSG-012", since="0.10"),
        Wrapper(offset=12, inner=inner, offsets=(10, 11, 12), compress=gzip),
        exact=False,
    )
    return family


def decisions() -> Family:
    """Family 44."""
    flags = {
        "ROLL_RULES": {
            "effect": "A segment that is rolled too late cannot be indexed or deleted; one that is rolled too early multiplies open files.",
            "links": [],
        },
        "RETENTION_RULES": {
            "effect": "One segment too many is data lost for good; one too few is a full disk.",
            "links": [],
        },
    }
    family = Family(44, "decisions", "When a log rolls, and what retention takes", "facts 5.2 and 5.3", flags=flags)
    _rolls(family)
    _retention(family)
    return family


def _rolls(family: Family) -> None:
    flags = {"flags": ("ROLL_RULES",), "since": "4.1"}

    def roll(
        name: str,
        why: str,
        terms: Terms,
        reason: str | None,
        *,
        active: Json | None = None,
        incoming: Json | None = None,
        config: dict[str, str] | None = None,
        now: int = 5000,
        base: int = 9,
    ) -> None:
        listing = [
            {
                "baseOffset": "0",
                "nextOffset": "9",
                "size": "231",
                "firstTimestamp": "1000",
                "created": "1000",
                **(active or {}),
            }
        ]
        given = {"size": "77", "maxTimestamp": "1500", "firstOffset": "9", "lastOffset": "11", **(incoming or {})}
        request = {"what": "roll", "listing": listing, "incoming": given, "config": config or {}, "now": str(now)}
        expect: Json = (
            {"decision": "keep"} if reason is None else {"decision": "roll", "reason": reason, "baseOffset": str(base)}
        )
        family.add(f"roll-{name}", "decide", "valid", why, terms, request=request, expect=expect)

    size = must("SEG-ROL-002", "SEG-ROL-001", **flags)
    roll("nothing", "Nothing asks for it.", must("SEG-ROL-001", **flags), None)
    roll("size-fits", "The segment gets exactly as large as it may.", size, None, config={"segment.bytes": "308"})
    roll("size-one-more", "One byte more: it ends before.", size, "size", config={"segment.bytes": "307"})
    roll(
        "size-of-an-empty-one",
        "An empty segment takes what fits into it.",
        size,
        None,
        active={"size": "0"},
        config={"segment.bytes": "77"},
    )
    time = must("SEG-ROL-003", "SEG-ROL-004", **flags)
    week = {"segment.ms": "1000"}
    roll("time-within", "Exactly as long as allowed.", time, None, config=week, incoming={"maxTimestamp": "2000"})
    roll("time-over", "A millisecond more.", time, "time", config=week, incoming={"maxTimestamp": "2001"})
    roll(
        "time-of-records-not-clock",
        "The clock is far ahead, the records are not: nothing happens.",
        time,
        None,
        config=week,
        incoming={"maxTimestamp": "1500"},
        now=10**12,
    )
    roll(
        "time-old-record",
        "A record from the past never ends a segment.",
        time,
        None,
        config=week,
        incoming={"maxTimestamp": "5"},
    )
    roll(
        "time-empty",
        "An empty segment is never too old.",
        time,
        None,
        config=week,
        active={"size": "0"},
        incoming={"maxTimestamp": "99999"},
    )
    roll(
        "time-jitter",
        "The jitter lets it end earlier.",
        time,
        "time",
        config=week,
        active={"jitter": "300"},
        incoming={"maxTimestamp": "1701"},
    )
    roll(
        "time-jitter-within",
        "But not earlier than that.",
        time,
        None,
        config=week,
        active={"jitter": "300"},
        incoming={"maxTimestamp": "1700"},
    )
    roll(
        "time-without-timestamps",
        "Without timestamps the clock counts, from when the segment was opened.",
        time,
        "time",
        config=week,
        active={"firstTimestamp": "-1"},
        incoming={"maxTimestamp": "-1"},
        now=2001,
    )
    roll(
        "time-without-timestamps-within",
        "Exactly as long by the clock.",
        time,
        None,
        config=week,
        active={"firstTimestamp": "-1"},
        incoming={"maxTimestamp": "-1"},
        now=2000,
    )
    roll(
        "time-compacted",
        "On a compacted topic the lag may be the shorter span.",
        time,
        "time",
        config={"segment.ms": "100000", "cleanup.policy": "compact", "max.compaction.lag.ms": "400"},
        incoming={"maxTimestamp": "1401"},
    )
    full = must("SEG-ROL-005", **flags)
    roll(
        "offset-index-full",
        "No slot is left in the offset index.",
        full,
        "offset index full",
        active={"isOffsetIndexFull": True},
    )
    roll(
        "time-index-full",
        "Only the last slot is left in the time index.",
        full,
        "time index full",
        active={"isTimeIndexFull": True},
    )
    span = must("SEG-ROL-006", **flags)
    roll(
        "span-fits",
        "The greatest relative offset there is.",
        span,
        None,
        incoming={"firstOffset": str(INT32_MAX), "lastOffset": str(INT32_MAX)},
    )
    roll(
        "span-one-more",
        "One more does not fit an index.",
        span,
        "offset span",
        incoming={"firstOffset": str(INT32_MAX + 1), "lastOffset": str(INT32_MAX + 1)},
        base=INT32_MAX + 1,
    )
    order = must("SEG-ROL-001", "SEG-ROL-002", **flags)
    roll(
        "size-before-time",
        "Both hold: the size is named first.",
        order,
        "size",
        config={"segment.bytes": "300", "segment.ms": "1"},
        incoming={"maxTimestamp": "99999"},
    )
    named = must("SEG-ROL-007", **flags)
    roll(
        "base-is-the-end",
        "The new segment is named after the end of the log.",
        named,
        "size",
        config={"segment.bytes": "300"},
    )
    roll(
        "base-after-a-gap",
        "Or after the first offset that comes, where that is greater.",
        named,
        "size",
        config={"segment.bytes": "300"},
        incoming={"firstOffset": "50", "lastOffset": "55"},
        base=50,
    )
    roll(
        "base-of-old-messages",
        "For old messages it is what fits the index below the last offset.",
        named,
        "size",
        config={"segment.bytes": "300"},
        incoming={"firstOffset": str(INT32_MAX + 100), "lastOffset": str(INT32_MAX + 100), "magic": 1},
        base=100,
    )


def _retention(family: Family) -> None:
    flags = {"flags": ("RETENTION_RULES",)}
    bases = (0, 10, 20, 30)

    def keep(
        name: str,
        why: str,
        terms: Terms,
        gone: int,
        *,
        config: dict[str, str],
        start: int = 0,
        mark: int = 40,
        now: int = 10_000,
        sizes: Sequence[int] = (100, 100, 100, 50),
        times: Sequence[int] = (1000, 2000, 3000, 4000),
        modified: Sequence[int] = (0, 0, 0, 0),
        left: int | None = None,
        rolls: bool = False,
        end: int = 40,
    ) -> None:
        ends = (*bases[1:], end)
        listing = [
            {
                "baseOffset": str(base),
                "nextOffset": str(until),
                "size": str(size),
                "largestTimestamp": str(time),
                "modified": str(changed),
            }
            for base, until, size, time, changed in zip(bases, ends, sizes, times, modified, strict=True)
        ]
        request = {
            "what": "retain",
            "listing": listing,
            "config": config,
            "now": str(now),
            "logStartOffset": str(start),
            "highWatermark": str(mark),
        }
        after = left if left is not None else max(start, (*bases, end)[gone])
        expect = {
            "decision": "delete" if gone else "keep",
            "segments": [str(base) for base in bases[:gone]],
            "logStartOffset": str(after),
            "rollsFirst": rolls,
        }
        family.add(f"retain-{name}", "decide", "valid", why, terms, request=request, expect=expect)

    off = {"retention.ms": "-1", "retention.bytes": "-1"}
    time = must("SEG-RET-003", **flags)
    keep("nothing", "No limit is set.", must("SEG-RET-001", **flags), 0, config=off)
    keep(
        "time-first", "The first segment is too old by a millisecond.", time, 1, config={**off, "retention.ms": "8999"}
    )
    keep("time-exactly", "Exactly as old as allowed: it stays.", time, 0, config={**off, "retention.ms": "9000"})
    keep("time-three", "Three are too old.", time, 3, config={**off, "retention.ms": "6500"})
    keep(
        "time-prefix",
        "A young segment keeps the old ones behind it.",
        time,
        1,
        config={**off, "retention.ms": "5000"},
        times=(1000, 9000, 2000, 9500),
    )
    keep(
        "time-future",
        "A record of the future keeps its segment, and all after it.",
        time,
        0,
        config={**off, "retention.ms": "1"},
        times=(10**12, 1, 2, 3),
    )
    keep(
        "time-all",
        "All are too old: a new segment is begun first, then all go.",
        must("SEG-RET-006", "SEG-RET-003", **flags),
        4,
        config={**off, "retention.ms": "100"},
        rolls=True,
        left=40,
    )
    old = must("SEG-RET-004", **flags)
    keep(
        "file-time",
        "Without timestamps the file's own time counts.",
        old,
        1,
        config={**off, "retention.ms": "5000"},
        times=(-1, -1, 9000, 9000),
        modified=(1000, 9000, 0, 0),
    )
    keep(
        "file-time-not-used",
        "With timestamps the file's time does not count.",
        old,
        0,
        config={**off, "retention.ms": "5000"},
        times=(9000, 9000, 9000, 9000),
        modified=(0, 0, 0, 0),
    )
    size = must("SEG-RET-005", **flags)
    keep(
        "size-first",
        "Without the first there is still as much as asked for.",
        size,
        1,
        config={**off, "retention.bytes": "250"},
    )
    keep(
        "size-one-less",
        "One byte less would be left than asked for: it stays.",
        size,
        0,
        config={**off, "retention.bytes": "251"},
    )
    keep("size-two", "Two may go.", size, 2, config={**off, "retention.bytes": "150"})
    keep("size-three", "Three may go.", size, 3, config={**off, "retention.bytes": "50"})
    keep(
        "size-0",
        "A limit of 0: all of it.",
        must("SEG-RET-005", "SEG-RET-006", **flags),
        4,
        config={**off, "retention.bytes": "0"},
        rolls=True,
        left=40,
    )
    mark = must("SEG-RET-002", **flags)
    keep(
        "high-watermark",
        "What is not on all replicas yet stays.",
        mark,
        1,
        config={**off, "retention.ms": "100"},
        mark=15,
    )
    keep(
        "high-watermark-at-the-end",
        "The high watermark is at the base of the next one: it may go.",
        mark,
        2,
        config={**off, "retention.ms": "100"},
        mark=20,
    )
    keep("high-watermark-0", "Nothing is replicated.", mark, 0, config={**off, "retention.ms": "100"}, mark=0)
    keep(
        "active-and-empty",
        "The active segment is empty: it stays.",
        mark,
        3,
        config={**off, "retention.ms": "100"},
        sizes=(100, 100, 100, 0),
        end=30,
        mark=30,
        times=(1000, 2000, 3000, -1),
    )
    start = must("SEG-RET-008", **flags)
    keep("log-start", "The log starts inside the third segment: two may go.", start, 2, config=off, start=25)
    keep("log-start-at-a-base", "It starts where the third begins.", start, 2, config=off, start=20)
    keep("log-start-before-a-base", "One offset before.", start, 1, config=off, start=19)
    keep(
        "log-start-beyond",
        "It starts in the active segment, which never goes by this rule.",
        start,
        3,
        config=off,
        start=40,
    )
    keep(
        "log-start-stays",
        "What is left begins below the log start offset: that stays.",
        must("SEG-RET-007", **flags),
        1,
        config={**off, "retention.ms": "8999"},
        start=15,
        left=15,
    )
    keep(
        "only-compacted",
        "Neither time nor size count for a topic that is only compacted.",
        must("SEG-RET-001", **flags),
        0,
        config={"retention.ms": "1", "retention.bytes": "0", "cleanup.policy": "compact"},
    )
    keep(
        "only-compacted-log-start",
        "The log start offset counts for it all the same.",
        must("SEG-RET-001", **flags),
        1,
        config={"retention.ms": "1", "retention.bytes": "0", "cleanup.policy": "compact"},
        start=12,
    )
    keep(
        "size-then-time",
        "First by size, and on by time.",
        must("SEG-RET-001", **flags),
        2,
        config={"retention.bytes": "250", "retention.ms": "7999"},
    )


def compaction() -> Family:
    """Family 45."""
    flags = {
        "COMPACTED": {
            "effect": "Compacted topics hold the state of applications. A reader that stumbles over what the cleaner leaves rebuilds it wrong, or never gets to the end.",
            "links": [],
        },
    }
    family = Family(45, "compaction-results", "What compaction leaves for a reader", "facts 5.7", flags=flags)
    terms = must("SEG-REC-012", "SEG-BAT-016", flags=("COMPACTED",))
    producer = {"producer_id": 9, "producer_epoch": 0, "base_sequence": 0, "leader_epoch": 4}
    before = Batch(
        base=100,
        **producer,
        recs=(
            Rec(key=b"a", value=b"1"),
            Rec(key=b"b", value=None, time=1000),
            Rec(key=b"c", value=b"3", time=500),
            Rec(key=b"a", value=b"4", time=600),
        ),
    )
    source = {"flags": ("COMPACTED",)}
    family.valid(
        "before",
        "Four records, as a producer wrote them.",
        must("SEG-REC-012", "SEG-BAT-016", source="vector V-21", **source),
        before,
    )
    horizon = Batch(
        base=100,
        **producer,
        last_delta=3,
        attributes=DELETE_HORIZON,
        base_timestamp=501_000,
        max_timestamp=2000,
        recs=(Rec(key=b"b", value=None, delta=1, time=-499_000), Rec(key=b"c", value=b"3", delta=2, time=-499_500)),
    )
    family.valid(
        "tombstone-kept",
        "Two are left, one of them a tombstone with a horizon.",
        must("SEG-BAT-013", "SEG-REC-012", source="vector V-22", since="3.1", **source),
        horizon,
    )
    one = Batch(base=100, **producer, last_delta=3, base_timestamp=1500, recs=(Rec(key=b"c", value=b"3", delta=2),))
    family.valid("one-kept", "One is left.", must("SEG-REC-012", "SEG-BAT-016", source="vector V-23", **source), one)
    none = empty(100, 3, leader_epoch=4, max_timestamp=2000, producer_id=9, producer_epoch=0, base_sequence=0)
    family.valid(
        "none-kept",
        "None is left, but the producer is remembered.",
        must("SEG-BAT-018", "SEG-BAT-016", source="vector V-24", **source),
        none,
    )
    family.valid(
        "whole-log",
        "A log after several rounds: each kind of rest, with gaps between.",
        terms,
        Batch(base=3, recs=(Rec(),), last_delta=9),
        replace(none, base=40),
        one,
        replace(horizon, base=300),
        empty(900, 50),
    )
    family.valid(
        "first-offset-far-above",
        "The first batch is far above the name of the segment.",
        terms,
        Batch(base=5_000_000, recs=(Rec(delta=77),), last_delta=99),
    )
    for codec, compress in COMPRESSORS.items():
        family.valid(
            f"recompressed-{codec}",
            "A batch that lost records is compressed again with its old codec.",
            terms,
            replace(
                one,
                codec=codec,
                compress=compress,
                last_delta=30,
                recs=(Rec(key=b"c", delta=2), Rec(key=b"d", delta=17, time=4)),
            ),
        )
    family.valid(
        "recompressed-horizon",
        "The same with a horizon.",
        must("SEG-BAT-013", "SEG-REC-012", since="3.1", **source),
        replace(horizon, codec="zstd", compress=zstd),
    )
    aborted = [
        replace(data(0, b"a"), recs=(), base_timestamp=-1, max_timestamp=1000),
        marker("ABORT", 1),
        data(5, b"c", sequence=2),
        marker("COMMIT", 9),
    ]
    family.valid(
        "aborted-data-gone",
        "The data of an aborted transaction is gone, its marker is left.",
        must("SEG-BAT-018", "SEG-CTL-009", **source),
        *aborted,
    )
    family.valid(
        "marker-as-empty-batch",
        "A marker that is no more than an empty control batch.",
        must("SEG-CTL-007", "SEG-BAT-018", **source),
        data(0, b"a"),
        empty(1, 0, attributes=CONTROL | TRANSACTIONAL, producer_id=9, producer_epoch=2),
        data(2, b"b", sequence=1),
    )
    stamped = Batch(
        base=10, attributes=LOG_APPEND_TIME, max_timestamp=9000, last_delta=4, recs=(Rec(delta=1), Rec(delta=3, time=7))
    )
    family.valid(
        "log-append-time",
        "The broker's time survives the cleaning.",
        must("SEG-BAT-011", "SEG-REC-012", **source),
        stamped,
    )
    sequence = Batch(
        base=10,
        producer_id=9,
        producer_epoch=0,
        base_sequence=INT32_MAX - 1,
        last_delta=4,
        recs=(Rec(delta=1), Rec(delta=4)),
    )
    family.valid(
        "sequences",
        "Sequences count with the offsets, gaps included, past the greatest.",
        must("SEG-REC-015", "SEG-BAT-017", **source),
        sequence,
    )
    survivors = Wrapper(
        offset=18, inner=(Msg(offset=1), Msg(offset=4), Msg(offset=7)), offsets=(12, 15, 18), compress=gzip
    )
    family.valid(
        "magic-1-survivors",
        "A wrapper that lost messages at both ends: its offset is that of the last one left.",
        must("SEG-MSG-012", since="0.10", **source),
        survivors,
    )
    old = Wrapper(magic=0, inner=tuple(Msg(magic=0, offset=at) for at in (12, 15, 18)), codec="snappy", compress=xerial)
    family.valid("magic-0-survivors", "The same in magic 0.", must("SEG-MSG-011", since="0.8", **source), old)
    converted = Batch(
        base=12, codec="gzip", compress=gzip, base_timestamp=-1, recs=(Rec(), Rec(delta=3), Rec(delta=6)), last_delta=6
    )
    family.valid(
        "converted-by-4.0",
        "Cleaners since 4.0 make batches of old messages: no time, no producer.",
        must("SEG-REC-012", "SEG-BAT-012", since="4.0", **source),
        converted,
    )
    long = [Batch(base=1000 * at, recs=(Rec(key=b"k%d" % at),), last_delta=999 if at % 2 else 500) for at in range(12)]
    family.valid("sparse-log", "Twelve records are left of twelve thousand.", terms, *long)
    return family


def families() -> list[Family]:
    """All of this module."""
    return [appends(), encodings(), decisions(), compaction()]

"""Family 41: what a broker takes on produce."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from authoring.batches import (
    BASE_OFFSET,
    CONTROL,
    COUNT,
    LAST_OFFSET_DELTA,
    LOG_APPEND_TIME,
    TRANSACTIONAL,
    Batch,
    Rec,
    with_field,
)
from authoring.casefile import Basis, Family, Json, must, should
from authoring.codecs import gzip
from authoring.control import control_key, empty, marker_value
from authoring.damage import COMPRESSORS
from authoring.messages import Msg, Wrapper
from authoring.primitives import flipped
from authoring.producers import producers
from authoring.written import appended

if TYPE_CHECKING:
    from collections.abc import Callable

NOW: Final = 1_700_000_000_000
HOUR: Final = 3_600_000
INT32_MAX: Final = 2**31 - 1


def sent(*recs: Rec, **fields: object) -> Batch:
    """Return a batch as a producer sends it."""
    return Batch(recs=recs or (Rec(), Rec()), leader_epoch=-1, base_timestamp=NOW, **fields)  # type: ignore[arg-type]


def ask_leader(family: Family, name: str, result: str, why: str, basis: Basis, content: bytes, **config: str) -> None:
    """Add a case: what a leader does with the bytes of a producer; settings of the topic have underscores for dots."""
    request = {
        "data": content.hex(),
        "policy": "append",
        "now": str(NOW),
        "config": {key.replace("_", "."): value for key, value in config.items()},
    }
    accepted, refused = {"accept": True}, {"reject": {"class": "policy"}}
    branches = {"allowed": [{"branch": "refused", **refused}, {"branch": "accepted", **accepted}]}
    expect: Json = {"valid": accepted, "invalid": refused, "acceptable": branches}[result]
    family.add(name, "validate", result, why, basis, request=request, expect=expect)


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

    def takes(name: str, why: str, basis: Basis, content: bytes, **config: str) -> None:
        ask_leader(family, name, "valid", why, basis, content, **config)

    def refuses(name: str, why: str, basis: Basis, content: bytes, **config: str) -> None:
        ask_leader(family, name, "invalid", why, basis, content, **config)

    def may_refuse(name: str, why: str, rule: str, content: bytes, *needs: str) -> None:
        ask_leader(family, name, "acceptable", why, should(rule, flags=("LENIENT_LEADER",), needs=needs), content)
        strict = must(rule, flags=("APPEND_POLICY",), needs=("strictAppend", *needs))
        ask_leader(family, f"{name}-strict", "invalid", why, strict, content)

    single = must("SEG-APP-004", flags=("APPEND_POLICY",))
    plain = sent()
    takes("plain", "A leader takes a usual batch of a producer.", single, plain.encoded())
    takes("one-record", "A leader takes a batch of one record.", single, sent(Rec()).encoded())
    for codec, compress in COMPRESSORS.items():
        why = "A leader takes a batch that the producer compressed."
        takes(f"codec-{codec}", why, single, replace(plain, codec=codec, compress=compress).encoded())
    for name, why, basis, content in (
        ("idempotent", "A leader takes a batch with producer id, epoch and sequence.", single, replace(plain, producer_id=9, producer_epoch=0, base_sequence=0).encoded()),
        ("transactional", "A leader takes a batch of a transaction.", single, replace(plain, attributes=TRANSACTIONAL, producer_id=9, producer_epoch=0, base_sequence=5).encoded()),
        ("leader-epoch", "A leader ignores the leader epoch in a batch of a producer.", single, replace(plain, leader_epoch=77).encoded()),
        ("unknown-bits", "A leader takes a batch with attribute bits that have no meaning.", single, replace(plain, attributes=0x100).encoded()),
        ("headers", "A leader takes a batch of records with headers.", single, sent(Rec(headers=((b"a", None),))).encoded()),
        ("wrong-maximum-timestamp", "A leader takes a batch with a wrong maximum timestamp and corrects it.", must("SEG-APP-026", flags=("APPEND_POLICY",)),
         replace(plain, max_timestamp=NOW + 5).encoded()),
    ):  # fmt: skip
        takes(name, why, basis, content)
    for name, why, content in (
        ("base-offset-5", "A batch of a producer has to begin at offset 0; the leader assigns the offsets.", with_field(plain.encoded(), BASE_OFFSET, 5)),
        ("gap", "A leader refuses a batch in which an offset is missing.", sent(Rec(), Rec(delta=2)).encoded()),
        ("last-delta-too-large", "The last offset delta is larger than that of the last record.", with_field(plain.encoded(), LAST_OFFSET_DELTA, 5)),
        ("last-delta-too-small", "The last offset delta is smaller than that of the last record.", with_field(plain.encoded(), LAST_OFFSET_DELTA, 0)),
    ):  # fmt: skip
        refuses(name, why, single, content)
    for name, why, content in (
        ("deltas-twice", "Two records have the same offset delta.", sent(Rec(delta=0), Rec(delta=0), last_delta=1).encoded()),
        ("deltas-back", "The offset deltas of the records decrease.", sent(Rec(delta=1), Rec(delta=0)).encoded()),
    ):  # fmt: skip
        may_refuse(name, why, "SEG-APP-004", content)
    for name, why, basis, content in (
        ("empty", "A leader refuses a batch without records.", single, empty(0, 0, leader_epoch=-1).encoded()),
        ("count-too-large", "The records count is not the number of records.", must("SEG-BAT-008", "SEG-APP-004", flags=("APPEND_POLICY",)), with_field(plain.encoded(), COUNT, 3)),
        ("two-batches", "A leader refuses two batches in one append.", single, plain.encoded() + replace(plain, base=2).encoded()),
    ):  # fmt: skip
        refuses(name, why, basis, content)
    alone = "Each of the batches could be appended alone, but not together."
    idempotent = replace(plain, producer_id=9, producer_epoch=0, base_sequence=0)
    for name, one in (("", plain), ("-idempotent", idempotent)):
        second = replace(one, base_sequence=2) if name else one
        for count in (2, 3):
            refuses(f"{count}-batches-from-0{name}", alone, single, one.encoded() + second.encoded() * (count - 1))
    damaged = must("SEG-BAT-003", flags=("APPEND_POLICY",))
    for name, why, basis, content in (
        ("control", "A leader refuses a control batch of a producer.", single,
         Batch(recs=(Rec(key=control_key(1), value=marker_value(0)),), attributes=CONTROL | TRANSACTIONAL, producer_id=9, producer_epoch=0, base_timestamp=NOW).encoded()),
        ("no-sequence", "A leader refuses a batch with a producer id and without a sequence.", must("SEG-APP-007", "SEG-APP-004", flags=("APPEND_POLICY",)),
         replace(plain, producer_id=9, producer_epoch=0).encoded()),
        ("wrong-crc", "A batch with a wrong checksum is refused.", damaged, flipped(plain.encoded(), 65)),
    ):  # fmt: skip
        refuses(name, why, basis, content)
    may_refuse("nothing", "The append contains no bytes.", "SEG-APP-005", b"")
    may_refuse("only-a-part", "The append contains only part of a batch.", "SEG-APP-005", plain.encoded()[:-1])
    why = "A leader does not write the bytes after the last whole batch."
    takes("part-behind", why, must("SEG-APP-005", flags=("APPEND_POLICY",)), plain.encoded() + b"\0\0\0")
    for name, why, rule, content in (
        ("unknown-codec", "A leader refuses a codec that does not exist.", "SEG-COD-001", replace(plain, attributes=5).encoded()),
        ("bad-gzip", "A leader refuses data that cannot be decompressed.", "SEG-COD-002", replace(plain, codec="gzip", stored=b"no gzip at all").encoded()),
        ("bad-record", "A leader refuses a record that cannot be read.", "SEG-REC-006", replace(plain, stored=b"\x10\0\0\0\1\x7f").encoded()),
    ):  # fmt: skip
        refuses(name, why, must(rule, flags=("APPEND_POLICY",)), content)
    _log_append_times(may_refuse, plain)
    _sizes(takes, refuses, plain)
    _clocks(takes, refuses)
    _keys(takes, refuses)
    return family


def _log_append_times(may_refuse: Callable[..., None], plain: Batch) -> None:
    stamped = {"offset": 0, "timestamp": NOW, "attributes": LOG_APPEND_TIME}
    wrapped = Wrapper(inner=(Msg(timestamp=NOW),), compress=gzip, **stamped)  # type: ignore[arg-type]
    for name, content in (
        ("log-append-time", replace(plain, attributes=LOG_APPEND_TIME)),
        ("log-append-time-of-a-message", Msg(**stamped)),  # type: ignore[arg-type]
        ("log-append-time-of-a-wrapper", wrapped),
    ):
        needs = () if isinstance(content, Batch) else ("magic:1",)
        may_refuse(
            name, "Only a broker may set LogAppendTime, not a producer.", "SEG-APP-011", content.encoded(), *needs
        )


def _read(family: Family) -> None:
    """Add appends that a reader takes which asks for whole entries and nothing else."""

    def read(name: str, why: str, content: bytes, rule: str = "") -> None:
        level = must if rule == "SEG-BAT-003" else should
        basis = level(rule or "SEG-LOG-004", flags=("APPEND_POLICY",), needs=("policy:read",))
        result, expect = ("invalid", {"reject": {"class": "length"}}) if rule else ("valid", {"accept": True})
        request = {"data": content.hex(), "policy": "read"}
        family.add(f"read-{name}", "validate", result, why, basis, request=request, expect=expect)

    one, two = sent().encoded(), sent(Rec()).encoded()
    read("nothing", "No bytes are no entries, which is valid.", b"")
    read("one", "One whole entry is valid.", one)
    read("two", "Two whole entries are valid, whatever the offset of the second.", one + two)
    for count in (1, 11, 12, 16, 17, 18, 60, 61, len(one) - 1):
        read(f"first-{count}-bytes", "Part of an entry is refused.", one[:count], "SEG-LOG-004")
        read(f"and-{count}-bytes", "A whole entry and part of another are refused.", two + one[:count], "SEG-LOG-004")
    for count in (1, 11, 17):
        read(f"and-{count}-zeros", "A whole entry and zeros after it are refused.", one + bytes(count), "SEG-LOG-004")
    read("wrong-crc", "A batch with a wrong checksum is refused.", flipped(one, 65), "SEG-BAT-003")


def _sizes(takes: object, refuses: object, plain: Batch) -> None:
    assert callable(takes)
    assert callable(refuses)
    basis = must("SEG-APP-006", flags=("APPEND_POLICY",))
    size = len(plain.encoded())
    why = "The batch, including offset and length, is exactly as large as `max.message.bytes` allows."
    takes("max-message-bytes", why, basis, plain.encoded(), max_message_bytes=str(size))
    for name, why, max_message_bytes in (
        ("max-message-bytes-one-less", "The batch is one byte larger than `max.message.bytes` allows.", str(size - 1)),
        ("max-message-bytes-0", "With `max.message.bytes=0`, a leader refuses every batch.", "0"),
    ):  # fmt: skip
        refuses(name, why, basis, plain.encoded(), max_message_bytes=max_message_bytes)


def _keys(takes: object, refuses: object) -> None:
    assert callable(takes)
    assert callable(refuses)
    keys = must("SEG-APP-012", flags=("APPEND_POLICY",))
    why = "A compacted topic refuses a record without a key."
    refuses("compacted-null-key", why, keys, sent(Rec(), Rec(key=None)).encoded(), cleanup_policy="compact")
    for name, why, content, cleanup_policy in (
        ("compacted-empty-key", "A compacted topic takes a record with an empty key.", sent(Rec(key=b"")).encoded(), "compact"),
        ("null-key", "A topic that is not compacted takes a record without a key.", sent(Rec(key=None)).encoded(), "delete"),
    ):  # fmt: skip
        takes(name, why, keys, content, cleanup_policy=cleanup_policy)
    why = "A topic with both cleanup policies also refuses a record without a key."
    refuses("compacted-and-deleted-null-key", why, keys, sent(Rec(key=None)).encoded(), cleanup_policy="compact,delete")
    why = "A compacted topic takes a tombstone: a key and a null value."
    takes("compacted-tombstone", why, keys, sent(Rec(value=None)).encoded(), cleanup_policy="compact")


def _clocks(takes: object, refuses: object) -> None:
    assert callable(takes)
    assert callable(refuses)
    basis = must("SEG-APP-024", flags=("CLOCKS",))

    def at(timestamp: int) -> bytes:
        return Batch(recs=(Rec(),), leader_epoch=-1, base_timestamp=timestamp).encoded()

    limits = {"message_timestamp_after_max_ms": str(HOUR), "message_timestamp_before_max_ms": str(2 * HOUR)}
    takes(
        "time-ahead", "The timestamp is exactly as far ahead of the clock as allowed.", basis, at(NOW + HOUR), **limits
    )
    reason = "The timestamp is a millisecond further from the clock than allowed."
    refuses("time-too-far-ahead", reason, basis, at(NOW + HOUR + 1), **limits)
    reason = "The timestamp is exactly as far behind the clock as allowed."
    takes("time-behind", reason, basis, at(NOW - 2 * HOUR), **limits)
    reason = "The timestamp is a millisecond further from the clock than allowed."
    refuses("time-too-far-behind", reason, basis, at(NOW - 2 * HOUR - 1), **limits)
    takes("no-time", "A record without a timestamp is never too far from the clock.", basis, at(-1), **limits)
    reason = "With LogAppendTime, the producer's timestamp may be any."
    takes("stamped-topic", reason, basis, at(NOW + 99 * HOUR), message_timestamp_type="LogAppendTime", **limits)
    default = must("SEG-APP-024", since="4.0", flags=("CLOCKS",))
    for codec, compress in {"none": None, **COMPRESSORS}.items():
        for name, at in (("first", 0), ("second", 1), ("middle", 2), ("last", 4)):
            for direction, time in (("ahead", HOUR + 1), ("behind", -2 * HOUR - 1)):
                recs = tuple(Rec(time=time if number == at else number) for number in range(5))
                far = Batch(recs=recs, leader_epoch=-1, base_timestamp=NOW, codec=codec, compress=compress).encoded()
                why = f"One record of the batch is too far {direction}, and the others are not."
                refuses(f"{name}-record-too-far-{direction}-{codec}", why, basis, far, **limits)
                if direction == "ahead":
                    why = "Without a setting, a timestamp may be one hour after the clock of the leader, and no more."
                    refuses(f"{name}-record-past-the-default-{codec}", why, default, far)


def families() -> list[Family]:
    """All of this module."""
    family = appends()
    _read(family)
    appended(family)
    producers(family)
    return [family]

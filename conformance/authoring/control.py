"""Families 17 to 21: empty batches, control records, transactions, attributes."""

from __future__ import annotations

import struct
from dataclasses import replace
from typing import Any, Final

from authoring.batches import CONTROL, COUNT, DELETE_HORIZON, LOG_APPEND_TIME, TRANSACTIONAL, Batch, Rec, with_field
from authoring.casefile import Family, lay, may, must, should
from authoring.codecs import gzip
from authoring.primitives import uvarint

TYPES: Final = ("ABORT", "COMMIT", "LEADER_CHANGE", "SNAPSHOT_HEADER", "SNAPSHOT_FOOTER", "KRAFT_VERSION", "KRAFT_VOTERS")  # fmt: skip
NO_TAGS: Final = b"\0"
MARKER: Final = CONTROL | TRANSACTIONAL
CLEANED: Final = Batch(
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
)
"""Two records that a cleaner kept, one of them a tombstone with a delete horizon (vector V-22)."""


def control_key(kind: int, version: int = 0, more: bytes = b"") -> bytes:
    """Return the key of a control record."""
    return struct.pack(">hh", version, kind) + more


def marker_value(coordinator_epoch: int, version: int = 0, more: bytes = b"") -> bytes:
    """Return the value of an end marker."""
    return struct.pack(">hi", version, coordinator_epoch) + more


def control_record(kind: int, value: bytes, **fields: Any) -> Rec:  # noqa: ANN401 - fields of Rec
    """Return a control record of a known type."""
    return Rec(key=control_key(kind), value=value, control=(("control", TYPES[kind]),), **fields)


def marker(
    kind: str,
    base: int,
    *,
    epoch: int = 7,
    producer_id: int = 9,
    producer_epoch: int = 2,
    at: int = 1234,
    leader_epoch: int = 3,
) -> Batch:
    """Return the batch that ends a transaction."""
    rec = control_record(TYPES.index(kind), marker_value(epoch))
    rec = replace(rec, control=(*rec.control, ("coordinatorEpoch", epoch)))
    return Batch(
        base=base,
        recs=(rec,),
        attributes=MARKER,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_timestamp=at,
        leader_epoch=leader_epoch,
    )


def kraft(kind: str, value: bytes, base: int = 5) -> Batch:
    """Return a control batch of a metadata log."""
    rec = control_record(TYPES.index(kind), value)
    return Batch(base=base, recs=(rec,), attributes=CONTROL, base_timestamp=1234, leader_epoch=3)


def data(base: int, *values: bytes, producer_id: int = 9, transactional: bool = True, sequence: int = 0) -> Batch:
    """Return a batch of a producer."""
    recs = tuple(Rec(key=b"p%d" % producer_id, value=value) for value in values)
    return Batch(
        base=base,
        recs=recs,
        attributes=TRANSACTIONAL if transactional else 0,
        producer_id=producer_id,
        producer_epoch=2,
        base_sequence=sequence,
    )


def voters(*ids: int) -> bytes:
    """Return a compact array of voters, as version 0 of LEADER_CHANGE has it."""
    return uvarint(len(ids) + 1) + b"".join(struct.pack(">i", one) + NO_TAGS for one in ids)


LEADER_CHANGE: Final = struct.pack(">hi", 0, 1) + voters(1, 2) + voters(2) + NO_TAGS
SNAPSHOT_HEADER: Final = struct.pack(">hq", 0, 99) + NO_TAGS
SNAPSHOT_FOOTER: Final = struct.pack(">h", 0) + NO_TAGS
KRAFT_VERSION: Final = struct.pack(">hh", 0, 1) + NO_TAGS
ENDPOINT: Final = uvarint(2) + b"C" + uvarint(2) + b"h" + struct.pack(">H", 9093) + NO_TAGS
VOTER: Final = struct.pack(">iqq", 1, 1, 2) + uvarint(2) + ENDPOINT + struct.pack(">hh", 0, 1) + NO_TAGS + NO_TAGS
KRAFT_VOTERS: Final = struct.pack(">h", 0) + uvarint(2) + VOTER + NO_TAGS
KRAFT_VALUES: Final = {
    "LEADER_CHANGE": LEADER_CHANGE,
    "SNAPSHOT_HEADER": SNAPSHOT_HEADER,
    "SNAPSHOT_FOOTER": SNAPSHOT_FOOTER,
    "KRAFT_VERSION": KRAFT_VERSION,
    "KRAFT_VOTERS": KRAFT_VOTERS,
}


def empty(base: int, last_delta: int, **fields: Any) -> Batch:  # noqa: ANN401 - fields of Batch
    """Return a batch that lost all its records."""
    return Batch(base=base, recs=(), last_delta=last_delta, base_timestamp=-1, **{"max_timestamp": 1234, **fields})


def empty_batches() -> Family:
    """Family 17."""
    family = Family(
        17,
        "empty-batches",
        "Empty batches",
        "facts 2.3 and 5.7",
        flags={
            "EMPTY_BATCH": {
                "effect": "A batch without records moves the position of a consumer and delivers nothing. A client that waits for "
                "a record never gets past it, and asks for the same offset for ever.",
                "links": ["https://issues.apache.org/jira/browse/KAFKA-5490"],
            },
            "COUNT_ZERO": {"effect": "Brokers and clients do not look at bytes behind a count of 0.", "links": []},
        },
    )
    basis = must("SEG-BAT-018", "SEG-BAT-016", flags=("EMPTY_BATCH",))
    producer = {"producer_id": 9, "producer_epoch": 2, "base_sequence": 0}
    for name, why, terms, *units in (
        ("of-a-producer", "The cleaner removed all five records of a producer and kept the empty batch; the next offset is 105.",
         must("SEG-BAT-018", "SEG-BAT-016", flags=("EMPTY_BATCH",), source="vector V-20", smoke=True), empty(100, 4, leader_epoch=3, **producer)),
        ("after-cleaning", "The cleaner removed all four records of a batch.", must("SEG-BAT-018", "SEG-BAT-016", flags=("EMPTY_BATCH",), source="vector V-24"),
         empty(100, 3, leader_epoch=4, max_timestamp=2000, producer_id=9, producer_epoch=0, base_sequence=0)),
        ("without-a-producer", "The cleaner keeps the last batch of a pass as an empty one, also if it has no producer id.", basis, empty(7, 0)),
        ("first-in-the-log", "The log begins with an empty batch.", basis, empty(0, 9), Batch(base=10)),
        ("between-two", "An empty batch is between two others; the reader delivers the one after it.", basis, Batch(base=0), empty(1, 4), Batch(base=6)),
        ("three-in-a-row", "Three empty batches precede a batch with records.", basis, empty(0, 4), empty(5, 0), empty(6, 93)),
    ):  # fmt: skip
        family.valid(name, why, terms, *units)
    for name, why, *units in (
        ("last-in-the-log", "An empty batch ends the answer to a fetch: the reader has to move its position past it.", Batch(base=0), empty(1, 4)),
        ("alone", "The whole answer to a fetch is an empty batch.", empty(50, 9)),
    ):  # fmt: skip
        family.valid(name, why, basis, *units, more=False)
    for name, why, terms, unit in (
        ("log-append-time", "An empty batch keeps its timestamp type.", basis, empty(3, 1, attributes=LOG_APPEND_TIME)),
        ("transactional", "An empty batch may be part of a transaction.", basis, empty(3, 1, attributes=TRANSACTIONAL, **producer)),
        ("control", "The cleaner removed an end marker and kept its batch: a control batch without a record ends no transaction.",
         must("SEG-CTL-007", "SEG-BAT-018", flags=("EMPTY_BATCH",)), empty(3, 0, attributes=MARKER, producer_id=9, producer_epoch=2)),
        ("greatest-last-delta", "An empty batch may cover more than two thousand million offsets.", basis, empty(0, 2**31 - 1)),
        ("no-timestamps", "An empty batch may have no timestamp.", basis, empty(0, 2, max_timestamp=-1)),
    ):  # fmt: skip
        family.valid(name, why, terms, unit)
    unusual = replace(empty(3, 1), codec="gzip", stored=b"")
    log, answers = lay([unusual, unusual.follower()])
    family.either(
        "codec-without-data",
        "The attributes name a codec, but an empty batch has no compressed data: a reader must not start a decoder.",
        should("SEG-BAT-018", flags=("COUNT_ZERO",), needs=("magic:2", "codec:gzip")),
        log,
        [
            {"branch": "empty", "batches": answers, "consumed": len(log), "tail": None},
            {"branch": "refused", "reject": {"class": "compression"}, "batches": []},
        ],
    )
    rest = with_field(Batch(base=3).encoded(), COUNT, 0)
    behind = Batch(base=4)
    header = {
        **empty(3, 0, leader_epoch=0, max_timestamp=1000).answer(0),
        "sizeInBytes": len(rest),
        "baseTimestamp": "1000",
        "crc": int.from_bytes(rest[17:21], "big"),
    }
    answers = [header, behind.answer(len(rest))]
    whole = len(rest) + len(behind.encoded())
    family.either(
        "count-zero-with-records",
        "The records count is 0 and a record follows: a reader ignores it, as brokers do, or refuses the batch; it "
        "must not deliver the record.",
        should("SEG-BAT-008", flags=("COUNT_ZERO",), needs=("magic:2",)),
        rest + behind.encoded(),
        [
            {"branch": "refused", "reject": {"class": "count"}, "batches": []},
            {"branch": "passed-over", "batches": answers, "consumed": whole, "tail": None},
        ],
    )
    return family


def control_records() -> Family:
    """Family 18."""
    family = Family(
        18,
        "control-records",
        "Control records",
        "facts 2.6",
        flags={
            "CONTROL_AS_DATA": {
                "effect": "A control record that is delivered as data hands the application four bytes of key and six of value that "
                "nobody sent.",
                "links": [],
            },
            "UNKNOWN_CONTROL": {
                "effect": "New types come with new brokers; a client that fails over one stops for good at that offset.",
                "links": [],
            },
            "BAD_CONTROL": {
                "effect": "A control record that cannot be read is an error to some and a record of no known type to others; its "
                "offset counts in any case.",
                "links": [],
            },
        },
    )
    needs = ("control",)
    basis = must("SEG-CTL-009", "SEG-CTL-004", needs=needs, flags=("CONTROL_AS_DATA",))
    for kind, name in (("COMMIT", "V-13"), ("ABORT", "V-14")):
        family.valid(
            kind.lower(),
            f"The marker that a coordinator writes for {kind.lower()}.",
            must(
                "SEG-CTL-009",
                "SEG-CTL-004",
                flags=("CONTROL_AS_DATA",),
                source=f"vector {name}",
                smoke=kind == "COMMIT",
            ),
            marker(kind, 5),
        )
    for name, why, terms, *units in (
        ("data-commit-data", "The marker takes an offset between two batches of data.", basis, data(0, b"a", b"b"), marker("COMMIT", 2), data(3, b"c", sequence=2)),
        ("data-abort-data", "An aborted transaction stays in the log; a read_uncommitted reader delivers its data, but not the marker.", basis, data(0, b"a"),
         marker("ABORT", 1), data(2, b"b", sequence=1)),
        ("stamped-by-a-broker", "With LogAppendTime, a control record also has the maximum timestamp of its batch.", must("SEG-BAT-011", "SEG-CTL-009", needs=needs),
         replace(marker("COMMIT", 5), attributes=MARKER | LOG_APPEND_TIME, max_timestamp=7777)),
    ):  # fmt: skip
        family.valid(name, why, terms, *units)
    vectors = dict(zip(KRAFT_VALUES, ("V-15", "V-16", "V-17", "V-18", "V-19"), strict=True))
    for kind, value in KRAFT_VALUES.items():
        base = 0 if kind == "SNAPSHOT_HEADER" else 5
        family.valid(
            kind.lower().replace("_", "-"),
            f"A {kind} record of a metadata log.",
            must(
                "SEG-CTL-009",
                "SEG-CTL-006",
                needs=needs,
                since="3.8" if kind.startswith("KRAFT") else "3.0",
                source=f"vector {vectors[kind]}",
            ),
            kraft(kind, value, base),
        )
    several = Batch(
        base=0,
        attributes=CONTROL,
        recs=tuple(
            control_record(TYPES.index(kind), KRAFT_VALUES[kind])
            for kind in ("LEADER_CHANGE", "KRAFT_VERSION", "KRAFT_VOTERS")
        ),
    )
    why = "KRaft writes several control records in one batch."
    family.valid("three-in-a-batch", why, must("SEG-CTL-009", "SEG-CTL-006", needs=needs, since="3.8"), several)
    _unusual_keys(family)
    _unusual_values(family)
    compressed = replace(marker("COMMIT", 5), codec="gzip", compress=gzip)
    plain = replace(marker("COMMIT", 5), attributes=CONTROL)
    two = replace(marker("COMMIT", 5), recs=marker("COMMIT", 5).recs * 2)
    keyed = Batch(base=5, recs=(Rec(key=control_key(1), value=marker_value(7)),))
    for name, why, terms, unit in (
        ("compressed-marker", "Brokers never write compressed control batches, but read them: a reader has to decompress this one.",
         should("SEG-BAT-023", "SEG-CTL-009", needs=(*needs, "codec:gzip")), compressed),
        ("marker-not-transactional", "The transactional bit is missing; the control bit alone makes a batch a control batch.", should("SEG-CTL-005", "SEG-CTL-009", needs=needs), plain),
        ("two-markers-in-a-batch", "No broker writes two markers in one batch; a reader still takes both for control records.", should("SEG-CTL-005", "SEG-CTL-009", needs=needs), two),
        ("looks-like-a-marker", "Key and value look like those of an end marker, but the control bit is not set: the reader delivers the record as data.", must("SEG-CTL-009", "SEG-CTL-010"), keyed),
    ):  # fmt: skip
        family.valid(name, why, terms, unit)
    return family


def _unusual_keys(family: Family) -> None:
    needs = ("control",)

    def unusual(key: bytes, label: str, *, value: bytes = b"", kind: int = CONTROL) -> Batch:
        rec = Rec(key=key, value=value, control=(("control", label),))
        return Batch(base=5, recs=(rec,), attributes=kind)

    for kind in (7, 100, 32767, -1):
        family.valid(
            f"unknown-type-{kind}",
            "A reader skips a control record of an unknown type; its offset still counts.",
            may("SEG-CTL-003", needs=needs, flags=("UNKNOWN_CONTROL",)),
            unusual(control_key(kind), "UNKNOWN"),
        )
    for name, why, basis, unit in (
        ("unknown-type-odd-value", "A control record of an unknown type may have any value, also null.", may("SEG-CTL-003", needs=needs, flags=("UNKNOWN_CONTROL",)),
         replace(unusual(control_key(9), "UNKNOWN"), recs=(Rec(key=control_key(9), value=None, control=(("control", "UNKNOWN"),)),))),
        ("key-version-1", "A reader reads a later version of the control record key as version 0.", must("SEG-CTL-002", needs=needs),
         replace(marker("COMMIT", 5), recs=(replace(marker("COMMIT", 5).recs[0], key=control_key(1, version=1)),))),
        ("long-key", "The control record key may have more bytes after its known fields.", must("SEG-CTL-001", needs=needs),
         replace(marker("ABORT", 5), recs=(replace(marker("ABORT", 5).recs[0], key=control_key(0, more=b"more")),))),
    ):  # fmt: skip
        family.valid(name, why, basis, unit)
    short = {
        "null-key": (None, "The key is null."),
        "empty-key": (b"", "The key is empty."),
        "short-key": (b"\0\0\0", "The key has three bytes."),
        "negative-key-version": (control_key(1, version=-1), "The version of the key is negative."),
    }
    for name, (key, why) in short.items():
        _unreadable(family, name, why, "SEG-CTL-001", Rec(key=key, value=marker_value(7)))


def _unreadable(family: Family, name: str, why: str, rule: str, rec: Rec) -> None:
    """Add a control record that a reader refuses, or delivers without a type; what follows is whole."""
    batch = Batch(
        base=5, recs=(replace(rec, control=(("control", None),)),), attributes=MARKER, producer_id=9, producer_epoch=2
    )
    log, answers = lay([batch, batch.follower()])
    family.either(
        name,
        f"{why} A reader reports it or continues; it must not take the record for an end marker or for data.",
        should(rule, needs=("control", "magic:2"), flags=("BAD_CONTROL",)),
        log,
        [
            {"branch": "refused", "reject": {"class": "control"}, "batches": []},
            {"branch": "passed-over", "batches": answers, "consumed": len(log), "tail": None},
        ],
    )


def _unusual_values(family: Family) -> None:
    needs = ("control",)

    def with_value(value: bytes | None) -> Batch:
        whole = marker("COMMIT", 5)
        return replace(whole, recs=(replace(whole.recs[0], value=value),))

    for name, why, unit in (
        ("long-value", "The value of an end marker may have more bytes after the coordinator epoch.", with_value(marker_value(7, more=b"more"))),
        ("value-version-1", "A later version of an end marker's value begins with the same fields.", with_value(marker_value(7, version=1))),
    ):  # fmt: skip
        family.valid(name, why, must("SEG-CTL-004", needs=needs), unit)
    for name, value in (
        ("null-value", None),
        ("short-value", b"\0\0\0\0\0"),
        ("empty-value", b""),
        ("negative-value-version", marker_value(7, version=-1)),
    ):
        rec = Rec(key=control_key(1), value=value)
        _unreadable(family, name, "The value of a COMMIT cannot be read.", "SEG-CTL-004", rec)
    voter = struct.pack(">iqq", 1, 1, 2) + NO_TAGS
    later = struct.pack(">hi", 9, 1) + uvarint(3) + voter * 2 + uvarint(2) + voter + NO_TAGS
    newer = struct.pack(">h", 9) + SNAPSHOT_FOOTER[2:]
    tagged = struct.pack(">h", 0) + uvarint(2) + uvarint(7) + uvarint(1) + b"x" + uvarint(9) + uvarint(2) + b"yz"
    for name, why, basis, unit in (
        ("coordinator-epoch-minus-1", "The coordinator epoch may be any number.", should("SEG-CTL-004", needs=needs), marker("COMMIT", 5, epoch=-1)),
        ("leader-change-version-above", "A reader reads a later version of LEADER_CHANGE as version 1, the latest known one; read as version 0, it makes no sense.",
         must("SEG-CTL-012", needs=needs, since="3.9"), kraft("LEADER_CHANGE", later)),
        ("leader-change-version-1", "Version 1 of LEADER_CHANGE has the directory id of each voter.", must("SEG-CTL-006", needs=needs, since="3.9"),
         kraft("LEADER_CHANGE", struct.pack(">h", 1) + later[2:])),
        ("kraft-version-above", "A reader reads a later version of a KRaft control record as the latest version that it supports.",
         must("SEG-CTL-012", needs=needs, since="3.0"), kraft("SNAPSHOT_FOOTER", newer)),
        ("kraft-unknown-tags", "A reader skips unknown tagged fields by their size.", must("SEG-CTL-011", needs=needs, since="3.0"), kraft("SNAPSHOT_FOOTER", tagged)),
        ("kraft-bytes-behind", "A reader ignores bytes after the last field of a KRaft control record.", must("SEG-CTL-013", needs=needs, since="3.0"),
         kraft("KRAFT_VERSION", KRAFT_VERSION + b"more")),
    ):  # fmt: skip
        family.valid(name, why, basis, unit)


def horizons() -> Family:
    """Family 20."""
    family = Family(
        20,
        "delete-horizon",
        "Delete horizon, unknown attribute bits",
        "facts 2.3",
        flags={
            "HORIZON": {
                "effect": "The base timestamp of such a batch is when its tombstones may go. The deltas count from there, so a reader that "
                "assumes small or positive deltas fails on every compacted topic.",
                "links": [],
            },
            "UNKNOWN_BITS": {
                "effect": "Brokers look at the low byte of the attributes only. A reader that refuses what it does not know stops at data that "
                "the broker serves.",
                "links": [],
            },
        },
    )
    basis = must("SEG-BAT-013", flags=("HORIZON",), since="3.1")
    for name, why, terms, unit in (
        ("cleaned-by-a-broker", "A tombstone and a record, as the cleaner wrote them.", must("SEG-BAT-013", flags=("HORIZON",), since="3.1", source="vector V-22", smoke=True), CLEANED),
        ("horizon-far-ahead", "The delete horizon is years after the records: timestamp deltas take six bytes.", basis,
         Batch(attributes=DELETE_HORIZON, base_timestamp=4_000_000_000_000, max_timestamp=1_600_000_000_001, recs=(Rec(value=None, time=-2_400_000_000_000), Rec(time=-2_399_999_999_999)))),
        ("marker-with-horizon", "An end marker also gets a delete horizon before the cleaner removes it.", basis,
         replace(marker("COMMIT", 5), attributes=MARKER | DELETE_HORIZON, base_timestamp=90_000, max_timestamp=1234, recs=(replace(marker("COMMIT", 5).recs[0], time=1234 - 90_000),))),
        ("horizon-and-log-append-time", "With LogAppendTime, records have the maximum timestamp; the base timestamp is still the delete horizon.",
         must("SEG-BAT-013", "SEG-BAT-011", flags=("HORIZON",), since="3.1"),
         Batch(attributes=DELETE_HORIZON | LOG_APPEND_TIME, base_timestamp=70_000, max_timestamp=5000, recs=(Rec(value=None, time=-69_000),))),
        ("horizon-of-a-record-without-time", "A record without a timestamp has none in a batch with a delete horizon either.", basis,
         Batch(attributes=DELETE_HORIZON, base_timestamp=70_000, max_timestamp=-1, recs=(Rec(value=None, time=-70_001),))),
    ):  # fmt: skip
        family.valid(name, why, terms, unit)
    unknown = may("SEG-BAT-014", flags=("UNKNOWN_BITS",))
    for bit in range(7, 15):
        family.valid(f"bit-{bit}", f"Attribute bit {bit} means nothing.", unknown, Batch(attributes=1 << bit))
    for name, why, terms, unit in (
        ("bit-15", "Attribute bit 15 has no meaning; it makes the signed number negative.", unknown, Batch(attributes=-(1 << 15))),
        ("all-unknown-bits", "All attribute bits without a meaning are set.", unknown, Batch(attributes=-(1 << 7), recs=(Rec(), Rec(value=None)))),
        ("unknown-bits-and-gzip", "The codec is in the low three bits of the attributes, whatever the other bits are.", unknown, Batch(attributes=1 << 8, codec="gzip", compress=gzip)),
        ("all-known-bits", "Time type, transaction and horizon together.", must("SEG-BAT-013", "SEG-BAT-011", since="3.1"),
         Batch(attributes=LOG_APPEND_TIME | TRANSACTIONAL | DELETE_HORIZON, producer_id=3, producer_epoch=0, base_sequence=0)),
    ):  # fmt: skip
        family.valid(name, why, terms, unit)
    return family


def record_attributes() -> Family:
    """Family 21."""
    family = Family(
        21,
        "record-attributes",
        "The attributes byte of a record",
        "facts 2.4",
        flags={
            "RECORD_ATTRIBUTES": {
                "effect": "The byte is reserved. Who gives it the meaning of the batch's attributes decompresses, or drops, a plain record.",
                "links": [],
            }
        },
    )
    basis = may("SEG-REC-003", flags=("RECORD_ATTRIBUTES",))
    for bits in (0x01, 0x04, 0x08, 0x20, 0x7F, 0x80, 0xFF):
        why = "A reader ignores the attributes byte of a record and delivers the record unchanged."
        family.valid(f"bits-{bits:02x}", why, basis, Batch(recs=(Rec(attributes=bits), Rec(key=b"z"))))
    family.valid(
        "in-a-compressed-batch",
        "A reader also ignores the attributes byte of a record in compressed data.",
        basis,
        Batch(codec="gzip", compress=gzip, recs=(Rec(attributes=2), Rec())),
    )
    return family


def transactions() -> Family:
    """Family 19, the bytes; what read_committed makes of them is in `reading`."""
    family = Family(
        19,
        "transactions",
        "Transactions, and the index of aborted ones",
        "facts 2.6, 4.4 and 6",
        flags={
            "OUT_OF_PLACE": {
                "effect": "An entry stands in a file that is not named for it; searches by name never find it there.",
                "links": [],
            },
            "TXN_INDEX_TRUST": {
                "effect": "Brokers believe this index. Where it is wrong, aborted records are delivered as committed, or committed ones are not.",
                "links": [],
            },
            "RECOVERS_ON_OPEN": {
                "effect": "A library that recovers a log whenever it opens one has cut the damage off before anybody reads.",
                "links": [],
            },
            "LATE_ERROR": {
                "effect": "An error may come with the records before the damage or with the read after them; it must come.",
                "links": [],
            },
        },
    )
    basis = must("SEG-CTL-009", "SEG-BAT-001")
    for name, why, terms, *units in (
        ("two-producers-interleaved", "Two transactions are interleaved; the producer id shows which batch belongs to which.", basis, data(0, b"a", producer_id=9),
         data(1, b"x", producer_id=11), marker("ABORT", 2, producer_id=11), data(3, b"b", sequence=1), marker("COMMIT", 4)),
        ("coordinator-data", "A group coordinator writes offsets in transactions with base sequence 0 each time.", must("SEG-BAT-017", "SEG-REC-015"), data(0, b"o1"),
         data(1, b"o2"), marker("COMMIT", 2)),
        ("transactional-without-producer", "The transactional bit is set without a producer id: this is unusual, but every record can be read.", should("SEG-BAT-022"),
         Batch(attributes=TRANSACTIONAL)),
        ("sequence-without-producer", "Without a producer id, a reader ignores the base sequence.", should("SEG-BAT-020"), Batch(base_sequence=0)),
        ("epoch-without-producer", "Without a producer id, a reader ignores the producer epoch.", should("SEG-BAT-020"), Batch(producer_epoch=4)),
        ("producer-without-sequence", "Data with a producer id and without a sequence is unusual, but can be read.", should("SEG-BAT-024"), Batch(producer_id=9, producer_epoch=0)),
    ):  # fmt: skip
        family.valid(name, why, terms, *units)
    return family


def families() -> list[Family]:
    """All of this module."""
    return [empty_batches(), control_records(), horizons(), record_attributes()]

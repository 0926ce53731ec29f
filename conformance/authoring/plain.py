"""Families 1 to 9: batches that are not compressed and not special."""

from __future__ import annotations

from authoring.batches import LOG_APPEND_TIME, Batch, Rec
from authoring.casefile import Family, lay, may, must, should
from authoring.primitives import sized, varint

R1 = Rec(key=None, value=b"a")
R2 = Rec(key=b"k", value=None, time=5)
R3 = Rec(key=b"k", value=b"vv", time=3)
THREE = Batch(base=10, leader_epoch=-1, recs=(R1, R2, R3))
TWO_HEADERS = Batch(base=10, leader_epoch=-1, recs=(Rec(headers=((b"h", b"x"), (b"n", None))),))
INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1
OFFSETS = must("SEG-BAT-016", "SEG-REC-012")


def plain_batches() -> Family:
    """Family 1."""
    family = Family(1, "plain-batches", "Plain batches and deltas", "facts 2.3 and 2.4")

    for name, why, basis, unit in (
        ("one-record", "One record is the smallest batch that a producer sends; a reader that fails here can read nothing.", must("SEG-BAT-001", "SEG-BAT-003", "SEG-LOG-001", smoke=True), Batch()),
        ("three-records", "Three records as a broker writes them; each offset and timestamp is a delta.", must("SEG-BAT-001", "SEG-BAT-012", "SEG-REC-012", source="vector V-06", smoke=True), THREE),
    ):  # fmt: skip
        family.valid(name, why, basis, unit)
    for name, base in (("zero", 0), ("one", 1), ("large", 123_456_789_012)):
        why = "Offsets start at the base offset of the batch, wherever that is."
        family.valid(f"base-offset-{name}", why, must("SEG-BAT-001", "SEG-REC-012"), Batch(base=base, recs=(R1, R2)))
    for count in (2, 63, 64, 65, 200):
        recs = tuple(Rec(key=b"%d" % at, value=b"v%d" % at, time=at) for at in range(count))
        reason = "From the 65th record on, an offset delta takes two bytes; a reader that expects one byte misreads the record."
        family.valid(
            f"records-{count}", reason, must("SEG-BAT-008", "SEG-REC-012", "SEG-REC-004"), Batch(base=7, recs=recs)
        )
    for size in (63, 64, 127, 8191, 8192, 20_000):
        family.valid(
            f"value-of-{size}-bytes",
            "The length of a value takes one, two or three bytes; these values test each number of bytes and its "
            "limits.",
            must("SEG-REC-001", "SEG-REC-006"),
            Batch(recs=(Rec(value=bytes(at % 251 for at in range(size))),)),
        )
    twelve = tuple(Batch(base=3 * at, recs=(R1, R2, R3), leader_epoch=at) for at in range(4))
    nested = Batch(base=5, recs=(Rec(value=b"inner"),)).encoded()
    for name, why, basis, *units in (
        ("leader-epoch-of-minus-one", "A batch that a producer sends has no leader epoch yet; the checksum does not cover this field.", must("SEG-BAT-010"), Batch(leader_epoch=-1)),
        ("leader-epoch-of-2147483647", "The leader epoch may be any 32-bit number; the checksum does not cover it.", must("SEG-BAT-010"), Batch(leader_epoch=INT32_MAX)),
        ("four-batches", "Batches follow each other without padding; a reader continues at the byte after each batch.", must("SEG-LOG-001", "SEG-BAT-016"), *twelve),
        ("every-byte-value", "Keys and values are bytes, not text: a reader must not change any byte value.", must("SEG-REC-006", "SEG-BAT-001"),
         Batch(recs=(Rec(key=bytes(range(256)), value=bytes(range(255, -1, -1))),))),
        ("value-holds-a-batch", "A value may contain whole batches; a reader that searches for batch headers delivers records that no producer sent.",
         must("SEG-LOG-001", "SEG-BAT-016"), Batch(recs=(Rec(value=nested + nested),))),
        ("time-deltas-descend", "Timestamps of a batch need not be in order, so deltas may be negative.", must("SEG-BAT-012"),
         Batch(recs=(Rec(time=0), Rec(time=-1), Rec(time=-64), Rec(time=-65), Rec(time=-900)), max_timestamp=1000)),
        ("same-key-often", "Records with equal content are separate records; a reader must not merge them.", must("SEG-BAT-008", "SEG-REC-012"), Batch(recs=(Rec(), Rec(), Rec()))),
        ("producer-fields", "An idempotent producer sets producer id, epoch and sequence; the sequence grows with the offset.",
         must("SEG-BAT-001", "SEG-BAT-017", "SEG-REC-015"), Batch(base=40, producer_id=9, producer_epoch=2, base_sequence=7, recs=(R1, R2, R3))),
        ("sequence-wraps", "After sequence 2147483647 comes 0; a reader that computes a negative number takes the next batch for out of order.",
         must("SEG-BAT-017", "SEG-REC-015"), Batch(producer_id=9, producer_epoch=0, base_sequence=INT32_MAX - 1, recs=(R1, R2, R3))),
        ("sequence-ends-at-the-greatest", "The last sequence may be 2147483647 exactly.", must("SEG-BAT-017"), Batch(producer_id=9, producer_epoch=0, base_sequence=INT32_MAX - 2, recs=(R1, R2, R3))),
    ):  # fmt: skip
        family.valid(name, why, basis, *units)
    return family


def null_and_empty() -> Family:
    """Family 2."""
    family = Family(
        2,
        "null-and-empty",
        "Null and empty keys and values",
        "facts 2.4",
        flags={
            "TOMBSTONE": {
                "effect": "A null value deletes its key in a compacted topic; an empty value is data. "
                "A reader that mixes them up deletes, or brings back, a record.",
                "links": [],
            }
        },
    )
    basis = must("SEG-REC-007", flags=("TOMBSTONE",))
    contents = {"null": None, "empty": b"", "some": b"x"}
    for key_name, key in contents.items():
        for value_name, value in contents.items():
            family.valid(
                f"key-{key_name}-value-{value_name}",
                f"Key: {key_name}, value: {value_name}. A reader returns both unchanged.".replace("some", "not empty"),
                basis,
                Batch(recs=(Rec(key=key, value=value),)),
            )
    every = tuple(Rec(key=key, value=value) for key in contents.values() for value in contents.values())
    why = (
        "All nine combinations in one batch: a reader that reuses a buffer must not return bytes of an earlier record."
    )
    family.valid("all-in-one-batch", why, basis, Batch(base=3, recs=every))
    for number in (-2, -7, -64, -65, -(2**31)):
        for part in ("key", "value"):
            rec = Rec(key=None, value=b"v") if part == "key" else Rec(key=b"k", value=None)
            body = b"\0\0\0" + (varint(number) + sized(b"v") if part == "key" else sized(b"k") + varint(number)) + b"\0"
            unusual = Rec(key=rec.key, value=rec.value, raw=sized(body))
            why = "Brokers read any negative length as null; a reader that accepts only -1 refuses data that brokers serve."
            family.valid(f"{part}-length-of-{number}", why, may("SEG-REC-007"), Batch(recs=(unusual,)))
    why = "Null key, empty value, no headers: the smallest possible record, of seven bytes."
    family.valid("smallest-record", why, must("SEG-REC-007", "SEG-REC-001"), Batch(recs=(Rec(key=None, value=b""),)))
    return family


def headers() -> Family:
    """Family 3."""
    family = Family(
        3,
        "header-order",
        "Header order, duplicates, empty keys",
        "facts 2.4",
        flags={
            "HEADER_MAP": {
                "effect": "A map of headers loses repeated keys and their order, which tracing and "
                "schema headers rely on.",
                "links": [],
            }
        },
    )
    basis = must("SEG-REC-010", flags=("HEADER_MAP",))
    rows = {
        "one": (((b"a", b"1"),), "One header."),
        "order-kept": (
            ((b"b", b"1"), (b"a", b"2"), (b"c", b"3")),
            "Headers come back in the order in which they were written, not sorted.",
        ),
        "repeated-key": (((b"a", b"1"), (b"a", b"2")), "The same key twice is two headers; the last one does not win."),
        "repeated-pair": (((b"a", b"1"), (b"a", b"1")), "The same pair twice is still two headers."),
        "repeated-apart": (
            ((b"a", b"1"), (b"b", b"x"), (b"a", b"2")),
            "Headers with the same key keep their places, also when other headers are between them.",
        ),
        "empty-key": (((b"", b"1"),), "A header key may be empty."),
        "two-empty-keys": (((b"", b"1"), (b"", b"2")), "Two empty keys are two headers."),
        "empty-value": (((b"a", b""),), "An empty header value is not null."),
        "empty-key-and-value": (((b"", b""),), "A header with an empty key and an empty value is still a header."),
        "binary-value": (((b"a", bytes(range(256))),), "Header values are bytes, not text."),
        "text-beyond-ascii": (
            (("grüße".encode(), b"1"), ("日本".encode(), b"2")),
            "Keys are UTF-8, and their length counts bytes, not characters.",
        ),
        "long-key": (
            ((b"k" * 300, b"v"),),
            "A header key may be longer than 127 bytes; its length then takes two bytes.",
        ),
    }
    for name, (pairs, why) in rows.items():
        family.valid(name, why, basis, Batch(recs=(Rec(headers=pairs), Rec())))
    for count in (63, 64, 200):
        pairs = tuple((b"h%d" % at, b"%d" % at) for at in range(count))
        why = "The count of headers is a varint; from 64 on it takes two bytes."
        family.valid(f"headers-{count}", why, basis, Batch(recs=(Rec(headers=pairs),)))
    family.valid(
        "on-some-records-only",
        "Headers belong to one record; a reader must not return them with the next one.",
        basis,
        Batch(recs=(Rec(), Rec(headers=((b"a", b"1"),)), Rec(), Rec(headers=((b"b", b"2"), (b"a", b"3"))))),
    )
    return family


def null_header_values() -> Family:
    """Family 4."""
    family = Family(
        4,
        "null-header-value",
        "Null header values",
        "facts 2.4",
        flags={
            "NULL_HEADER": {
                "effect": "Producers send null header values; a reader that reads a length of -1 as a number "
                "of bytes takes the rest of the batch for something else.",
                "links": [],
            }
        },
    )
    basis = must("SEG-REC-007", "SEG-REC-010", flags=("NULL_HEADER",))
    family.valid(
        "after-a-full-one",
        "A full header, then a null one, as a broker wrote them.",
        must("SEG-REC-007", "SEG-REC-010", flags=("NULL_HEADER",), source="vector V-08", smoke=True),
        TWO_HEADERS,
    )
    rows = {
        "alone": (((b"n", None),), "A single header whose value is null."),
        "first": (
            ((b"n", None), (b"a", b"1")),
            "The first header has a null value: the next key starts right after the length of that value.",
        ),
        "null-and-empty": (
            ((b"n", None), (b"e", b"")),
            "A null value and an empty value in the same record stay distinct.",
        ),
        "repeated": (
            ((b"n", None), (b"n", None), (b"n", b"1")),
            "Headers with the same key, two of them with a null value.",
        ),
        "empty-key": (((b"", None),), "An empty key with a null value."),
        "many": (tuple((b"n%d" % at, None) for at in range(70)), "Seventy headers without a value."),
    }
    for name, (pairs, why) in rows.items():
        family.valid(name, why, basis, Batch(recs=(Rec(headers=pairs), Rec(key=b"z", value=b"z"))))
    for number in (-2, -65, -(2**31)):
        raw = b"\0\0\0" + sized(b"k") + sized(b"v") + varint(1) + sized(b"n") + varint(number)
        family.valid(f"length-of-{number}", "Any negative length of a header value means null.", may("SEG-REC-007"), Batch(recs=(Rec(headers=((b"n", None),), raw=sized(raw)),)))  # fmt: skip
    return family


def header_keys() -> Family:
    """Family 5."""
    family = Family(
        5,
        "header-key-not-utf8",
        "Header keys that are not UTF-8",
        "facts 2.4",
        flags={
            "HEADER_KEY_BYTES": {
                "effect": "Brokers store header keys unread. A client that refuses the batch over one makes "
                "the partition unreadable; one that replaces characters hands on another key.",
                "links": [],
            }
        },
    )
    basis = may("SEG-REC-011", needs=("magic:2",), flags=("HEADER_KEY_BYTES",))
    rows = {
        "lone-continuation": (b"\x80", "A continuation byte without a byte that begins a character."),
        "byte-ff": (b"\xff", "A byte that never occurs in UTF-8."),
        "cut-character": (b"a\xe6\x97", "A character of several bytes that is cut short."),
        "surrogate": (b"\xed\xa0\x80", "A surrogate by itself, as modified UTF-8 has it."),
        "overlong-slash": (b"\xc0\xaf", "An overlong form."),
        "latin-1": (b"gr\xfc\xdfe", "Text in Latin-1."),
    }
    for name, (key, why) in rows.items():
        branches = {
            "bytes": key,
            "replaced": key.decode(errors="replace").encode(),
            "replaced-once": b"\xef\xbf\xbd",
            "text-of-bytes": key.decode("latin-1").encode(),
        }
        keys = {
            branch: found
            for branch, found in branches.items()
            if found not in list(branches.values())[: list(branches).index(branch)]
        }
        batch = Batch(recs=(Rec(headers=((key, b"1"), (b"ok", b"2"))),))
        after = batch.follower()
        allowed = []
        for branch, found in keys.items():
            answers = lay([batch, after])[1]
            answers[0]["records"][0]["headers"][0][0] = found.hex()
            size = len(batch.encoded() + after.encoded())
            allowed.append({"branch": branch, "batches": answers, "consumed": size, "tail": None})
        reason = f"{why} The record is whole and has to be delivered, with the key as bytes or as the nearest text."
        family.either(name, reason, basis, batch.encoded() + after.encoded(), allowed)
    for name, why, terms, unit in (
        ("kept-as-bytes", "A reader that returns header keys as bytes returns the bytes of the log unchanged.",
         should("SEG-REC-011", needs=("magic:2", "bytesKeys"), flags=("HEADER_KEY_BYTES",)), Batch(recs=(Rec(headers=tuple((key, b"1") for key, _ in rows.values())),))),
        ("zero-byte", "A zero byte is valid UTF-8 and does not end the key.", must("SEG-REC-010"), Batch(recs=(Rec(headers=((b"a\x00b", b"1"), (b"ok", b"2"))),))),
    ):  # fmt: skip
        family.valid(name, why, terms, unit)
    return family


def large_numbers() -> Family:
    """Family 6."""
    family = Family(
        6,
        "above-2-53",
        "Offsets and producer ids above 2^53",
        "facts 2.3",
        flags={
            "DOUBLE": {
                "effect": "Numbers above 2^53 lose their last digits in a double; two offsets become one, "
                "and a consumer skips or repeats records.",
                "links": [],
            }
        },
    )
    for name, base in (
        ("2-53", 2**53),
        ("2-53-plus-1", 2**53 + 1),
        ("2-62", 2**62 + 3),
        ("near-the-end", INT64_MAX - 10),
    ):
        family.valid(
            f"offset-{name}",
            "An offset above 2^53 keeps all its digits; a floating-point number would round it.",
            must("SEG-REC-012", "SEG-BAT-016", flags=("DOUBLE",)),
            Batch(base=base, recs=(R1, R2, R3)),
        )
    family.valid(
        "offset-last",
        "The greatest possible offset; no other batch can follow it.",
        should("SEG-BAT-009", "SEG-REC-012", flags=("DOUBLE",)),
        Batch(base=INT64_MAX - 1),
        more=False,
    )
    for name, number in (("2-53-plus-1", 2**53 + 1), ("greatest", INT64_MAX), ("2-31", 2**31)):
        family.valid(
            f"producer-id-{name}",
            "A producer id is a 64-bit number; a floating-point number would round it.",
            must("SEG-BAT-001", flags=("DOUBLE",)),
            Batch(producer_id=number, producer_epoch=1, base_sequence=0),
        )
    for name, why, basis, unit in (
        ("timestamp-2-53-plus-1", "A timestamp is a 64-bit number; a floating-point number would round it.", must("SEG-BAT-012", flags=("DOUBLE",)),
         Batch(base_timestamp=2**53 + 1, recs=(Rec(), Rec(time=1)))),
        ("delta-2-53-plus-1", "A timestamp delta above 2^53 takes eight bytes of a varint.", must("SEG-BAT-012", "SEG-REC-004", flags=("DOUBLE",)), Batch(recs=(Rec(), Rec(time=2**53 + 1)))),
        ("producer-epoch-32767", "The greatest producer epoch.", must("SEG-BAT-001"), Batch(producer_id=1, producer_epoch=32767, base_sequence=0)),
    ):  # fmt: skip
        family.valid(name, why, basis, unit)
    return family


def offset_deltas() -> Family:
    """Family 7."""
    family = Family(
        7,
        "offset-deltas",
        "Offset deltas up to 2^31-1, and gaps",
        "facts 2.3 and 5.7",
        flags={
            "COUNTED_OFFSETS": {
                "effect": "Compaction takes records out of a batch. Who counts records instead of adding deltas gives "
                "every later record a wrong offset, and commits it.",
                "links": [],
            }
        },
    )
    basis = must("SEG-REC-012", "SEG-BAT-016", flags=("COUNTED_OFFSETS",))
    rows = {
        "first-missing": (
            (1, 2),
            2,
            "The first record was removed: the base offset of the batch belongs to no record.",
        ),
        "last-missing": ((0, 1), 2, "The last record was removed: the next offset is still the one after it."),
        "middle-missing": ((0, 2), 2, "A record in the middle was removed."),
        "only-the-middle": ((1,), 2, "Only the middle record is left."),
        "only-the-last": ((9,), 9, "Only the last of ten records is left."),
        "gap-of-64": ((0, 64), 64, "The offset delta of the second record takes two bytes."),
        "gap-of-8192": ((0, 8192), 8192, "The offset delta of the second record takes three bytes."),
        "gap-of-2-20": ((0, 2**20), 2**20, "The offset delta of the second record takes four bytes."),
        "delta-2-31-minus-1": ((0, INT32_MAX), INT32_MAX, "The greatest offset delta; a sum in 32 bits overflows."),
        "far-behind-the-last-record": (
            (0,),
            10_000,
            "One of ten thousand records is left; the next offset is far after its offset.",
        ),
        "greatest-last-delta": ((0, 1), INT32_MAX, "The last offset delta has its greatest possible value."),
    }
    for name, (deltas, last, why) in rows.items():
        recs = tuple(Rec(value=b"%d" % delta, delta=delta) for delta in deltas)
        family.valid(name, why, basis, Batch(base=100, last_delta=last, recs=recs, base_sequence=0, producer_id=5, producer_epoch=0))  # fmt: skip
    for name, why, terms, *units in (
        ("cleaned-by-a-broker", "The cleaner left one of four records in this batch.",
         must("SEG-REC-012", "SEG-BAT-016", flags=("COUNTED_OFFSETS",), source="vector V-23", smoke=True),
         Batch(base=100, leader_epoch=4, last_delta=3, base_timestamp=1500, producer_id=9, producer_epoch=0, base_sequence=0, recs=(Rec(key=b"c", value=b"3", delta=2),))),
        ("gap-between-batches", "Offsets may be missing between two batches: because of markers, compaction, or a follower that started later.",
         must("SEG-BAT-016", "SEG-LOG-001"), Batch(base=3), Batch(base=500), Batch(base=2**40)),
        ("base-offset-above-2-31", "Base offset plus offset delta needs 64 bits.", OFFSETS, Batch(base=2**31 - 1, recs=(R1, R2, R3)), Batch(base=2**32 - 2, recs=(R1, R2, R3))),
    ):  # fmt: skip
        family.valid(name, why, terms, *units)
    return family


def timestamps() -> Family:
    """Family 8."""
    family = Family(
        8,
        "timestamps",
        "Timestamps: negative, far apart, none",
        "facts 2.3",
        flags={
            "DELTA_32": {
                "effect": "Timestamp deltas have 64 bits; in 32 bits a record gets a time decades away, and "
                "retention and lookups go wrong.",
                "links": [],
            }
        },
    )
    basis = must("SEG-BAT-012")
    wide = must("SEG-BAT-012", "SEG-REC-004", flags=("DELTA_32",))
    for name, why, terms, unit in (
        ("none", "Base timestamp -1 and delta 0: the record has no timestamp.", basis, Batch(base_timestamp=-1)),
        ("some-without", "Some records have no timestamp: base timestamp plus delta is -1.", basis, Batch(base_timestamp=1000, recs=(Rec(), Rec(time=-1001), Rec(time=3)), max_timestamp=1003)),
        ("zero", "The first of January 1970 is a time like any other.", basis, Batch(base_timestamp=0)),
        ("before-1970", "A timestamp below -1 is not valid, but brokers keep it; a reader must not report it as damage.", must("SEG-BAT-012"),
         Batch(base_timestamp=-86_400_000, recs=(Rec(), Rec(time=10)), max_timestamp=-86_399_990)),
    ):  # fmt: skip
        family.valid(name, why, terms, unit)
    for name, delta in (("2-31-minus-1", INT32_MAX), ("2-31", 2**31), ("2-32", 2**32), ("2-40", 2**40)):
        for case, why, unit in (
            (f"delta-{name}", "Records of one batch may be weeks or years apart.", Batch(recs=(Rec(), Rec(time=delta)))),
            (f"delta-minus-{name}", "Timestamp deltas may be negative, and as large.", Batch(base_timestamp=1_700_000_000_000, recs=(Rec(), Rec(time=-delta)), max_timestamp=1_700_000_000_000)),
        ):  # fmt: skip
            family.valid(case, why, wide, unit)
    for name, why, terms, unit in (
        ("greatest", "The greatest possible timestamp.", must("SEG-BAT-012"), Batch(base_timestamp=INT64_MAX)),
        ("delta-of-64-bits", "The longest possible varint of a timestamp delta: ten bytes.", must("SEG-BAT-012", "SEG-REC-004", flags=("DELTA_32",)),
         Batch(base_timestamp=0, recs=(Rec(), Rec(time=INT64_MAX), Rec(time=-(2**63))), max_timestamp=INT64_MAX)),
        ("sum-wraps", "Base timestamp plus delta overflows 64 bits and wraps around as in Java; wider numbers give another timestamp.", should("SEG-BAT-012"),
         Batch(base_timestamp=INT64_MAX, recs=(Rec(time=1),), max_timestamp=INT64_MAX)),
        ("wrong-maximum", "The maximum timestamp in the header is not that of any record; each record keeps its own timestamp.", must("SEG-BAT-012"),
         Batch(recs=(Rec(), Rec(time=7)), max_timestamp=999_999)),
        ("base-is-no-record", "The base timestamp need not be that of the first record.", basis, Batch(base_timestamp=5000, recs=(Rec(time=-4000), Rec(time=-3000)))),
    ):  # fmt: skip
        family.valid(name, why, terms, unit)
    return family


def log_append_time() -> Family:
    """Family 9."""
    family = Family(
        9,
        "log-append-time",
        "LogAppendTime",
        "facts 2.3",
        flags={
            "STAMPED": {
                "effect": "The broker stamps the header and leaves the deltas as they were. Who adds them up anyway tells the "
                "producer's time as the broker's.",
                "links": [],
            }
        },
    )
    basis = must("SEG-BAT-011", flags=("STAMPED",))
    for name, why, terms, *units in (
        ("stamped-by-a-broker", "LogAppendTime: all three records have the maximum timestamp of the batch, 7777.",
         must("SEG-BAT-011", flags=("STAMPED",), source="vector V-07", smoke=True),
         Batch(base=10, leader_epoch=-1, recs=(R1, R2, R3), attributes=LOG_APPEND_TIME, max_timestamp=7777)),
        ("before-the-producer", "The broker's clock is behind the producer's: the append time is earlier than the producer's time of any record.", basis,
         Batch(base_timestamp=9000, recs=(Rec(), Rec(time=500)), attributes=LOG_APPEND_TIME, max_timestamp=8000)),
        ("no-producer-time", "The producer set no timestamp; the broker did.", basis, Batch(base_timestamp=-1, attributes=LOG_APPEND_TIME, max_timestamp=1_700_000_000_000)),
        ("stamp-of-minus-one", "The append time is -1: no record has a timestamp.", should("SEG-BAT-011", flags=("STAMPED",)),
         Batch(recs=(Rec(), Rec(time=5)), attributes=LOG_APPEND_TIME, max_timestamp=-1)),
        ("wild-deltas", "With LogAppendTime, readers ignore the timestamp deltas, whatever their sizes.", basis,
         Batch(recs=(Rec(time=2**40), Rec(time=-(2**40)), Rec(time=-1)), attributes=LOG_APPEND_TIME, max_timestamp=123)),
        ("both-kinds-in-a-log", "The topic's message.timestamp.type was changed: each batch has its own timestamp type.", basis, Batch(base=0, recs=(R1, R2)),
         Batch(base=2, recs=(R1, R2), attributes=LOG_APPEND_TIME, max_timestamp=50), Batch(base=4, recs=(R1, R2))),
        ("stamp-above-2-53", "The append time has 64 bits.", must("SEG-BAT-011", flags=("STAMPED",)), Batch(attributes=LOG_APPEND_TIME, max_timestamp=2**53 + 1)),
    ):  # fmt: skip
        family.valid(name, why, terms, *units)
    return family


def families() -> list[Family]:
    """All of this module."""
    return [
        plain_batches(),
        null_and_empty(),
        headers(),
        null_header_values(),
        header_keys(),
        large_numbers(),
        offset_deltas(),
        timestamps(),
        log_append_time(),
    ]

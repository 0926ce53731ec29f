"""What the records of Kafka's own topics say, and that nonsense in them is none of the format's (part of family 18)."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final

from authoring.batches import Batch, Rec
from authoring.casefile import Json, must

if TYPE_CHECKING:
    from authoring.casefile import Family

OFFSETS: Final = "__consumer_offsets"
STATES: Final = "__transaction_state"
METADATA: Final = "__cluster_metadata"
NOTHING: Final[Json] = {"kind": None}
UUID: Final = struct.pack(">qq", 1, 2)
UUID_TEXT: Final = "AAAAAAAAAAEAAAAAAAAAAg"


def _short(number: int) -> bytes:
    return struct.pack(">h", number)


def _text(value: str) -> bytes:
    return _short(len(value)) + value.encode()


def _compact(value: str) -> bytes:
    return bytes([len(value) + 1]) + value.encode()


KEY: Final = _short(1) + _text("g") + _text("t") + struct.pack(">i", 5)
NAMED: Final = {"group": "g", "topic": "t", "partition": "5"}
COMMIT: Final = _short(3) + struct.pack(">qi", 60, 2) + _text("") + struct.pack(">q", 1000)
TOPIC: Final = b"\1\2\0" + _compact("t") + UUID + b"\0"


def own_topics(family: Family) -> None:
    """Add the cases."""

    def says(name: str, why: str, topic: str, key: bytes | None, value: bytes | None, decoded: Json | None) -> None:
        rec = Rec(key=key, value=value, control=() if decoded is None else (("decoded", decoded),))
        basis = must("SEG-CTL-010", needs=("applicationRecords",), source="message definitions of Kafka 4.1")
        family.valid(f"own-{name}", why, basis, Batch(base=5, recs=(rec,)), more=False, options={"topic": topic})

    sound = "The record itself is valid, whatever its application wrote."
    for name, why, topic, key, value, decoded in (
        ("offset-commit", "A record of `__consumer_offsets` with a committed offset of a group.", OFFSETS, KEY, COMMIT,
         {"kind": "offsetCommit", "version": "1", "key": NAMED, "valueVersion": "3", "value": {"offset": "60", "leaderEpoch": "2", "metadata": "", "commitTimestamp": "1000"}}),
        ("offset-deletion", "A tombstone of `__consumer_offsets` deletes a committed offset.", OFFSETS, KEY, None, {"kind": "offsetCommit", "version": "1", "key": NAMED, "value": None}),
        ("topic", "A topic record of the metadata log.", METADATA, None, TOPIC, {"kind": "TOPIC_RECORD", "version": "0", "data": {"name": "t", "topicId": UUID_TEXT}}),
        ("unknown-metadata", "A metadata record of an unknown type is returned undecoded.", METADATA, None, b"\1\x63\2\xab", {"kind": "UNKNOWN", "apiKey": "99", "version": "2", "hex": "ab"}),
    ):  # fmt: skip
        says(name, why, topic, key, value, decoded)
    state = _short(0) + struct.pack(">qhib", 9, 2, 60000, 1) + struct.pack(">i", 1) + _text("t")
    state += struct.pack(">ii", 1, 3) + struct.pack(">qq", 1000, 900)
    says(
        "transaction-state",
        "A record of `__transaction_state` with the state of a transaction.",
        STATES,
        _short(0) + _text("tx"),
        state,
        {
            "kind": "transactionState",
            "version": "0",
            "key": {"transactionalId": "tx"},
            "valueVersion": "0",
            "value": {
                "producerId": "9",
                "producerEpoch": "2",
                "transactionTimeoutMs": "60000",
                "transactionStatus": "1",
                "transactionPartitions": [{"topic": "t", "partitionIds": ["3"]}],
                "transactionLastUpdateTimestampMs": "1000",
                "transactionStartTimestampMs": "900",
            },
        },
    )
    for name, topic, key, value in (
        ("cut-key", OFFSETS, KEY[:-1], COMMIT),
        ("short-key", OFFSETS, b"\0", b"\xff"),
        ("cut-value", OFFSETS, KEY, COMMIT[:-1]),
        ("empty-value", OFFSETS, KEY, b""),
        ("cut-state", STATES, _short(0) + _text("tx"), state[:-1]),
        ("null-metadata", METADATA, None, None),
        ("empty-metadata", METADATA, None, b""),
        ("frame-version-2", METADATA, None, b"\2" + TOPIC[1:]),
        ("cut-metadata", METADATA, None, TOPIC[:-1]),
        ("bytes-behind-metadata", METADATA, None, TOPIC + b"more"),
    ):
        says(name, f"Key or value does not fit the format of its topic. {sound}", topic, key, value, NOTHING)
    says(
        "other-topic", "The topic is not one of Kafka's own: its records are not decoded.", "orders", KEY, COMMIT, None
    )

"""Records of Kafka's own topics, decoded for people to read."""

from __future__ import annotations

import json
import struct
from functools import cache
from typing import Any

import pytest
from helpers.batches import batch, record, zigzag_varint
from helpers.support import authentic, authentic_expected
from helpers.walking import each_of
from hypothesis import given
from hypothesis import strategies as st

from seglog_format.checks.verify import verify_log
from seglog_format.codec.coordinator_records import decode_application_record
from seglog_format.codec.decode import decode_frame
from seglog_format.codec.framing import walk
from seglog_format.errors import Location
from seglog_format.model import Record
from seglog_format.schema.coordinator_records import CODES, CONSUMER_OFFSETS_RECORDS, TRANSACTION_STATE_RECORDS
from seglog_format.schema.metadata_records import METADATA_RECORDS
from seglog_format.schema.protocol import declaration

OFFSETS, TRANSACTIONS, METADATA = "__consumer_offsets", "__transaction_state", "__cluster_metadata"
SHARES = "__share_group_state"
UUID, UUID_TEXT = struct.pack(">qq", 1, 2), "AAAAAAAAAAEAAAAAAAAAAg"


def decode(topic: str, key: bytes | None, value: bytes | None) -> dict[str, Any]:
    found = decode_application_record(topic, key, value)
    assert found is not None
    json.dumps(found, allow_nan=False)
    return found


def short(number: int) -> bytes:
    return struct.pack(">h", number)


def text(value: str | None) -> bytes:
    """Return a string of the form before flexible versions."""
    return short(-1) if value is None else short(len(value)) + value.encode()


def compact(value: bytes | str | None) -> bytes:
    """Bytes or a string of flexible versions, shorter than 127."""
    if value is None:
        return b"\0"
    data = value.encode() if isinstance(value, str) else value
    return bytes([len(data) + 1]) + data


def data_records(directory: str, name: str) -> list[Record]:
    """Return the data records of one log, straight from its bytes."""
    content = (authentic(directory) / name).read_bytes()
    batches = [decode_frame(frame, at=Location()) for frame in walk(content)]
    found = [one for each in batches if not each.header.is_control for one in each.records]
    return [one for one in found if isinstance(one, Record)]


@cache
def log_of(case: str) -> str:
    """Return the one log of a case."""
    files = {line["file"] for line in authentic_expected(case) if line["type"] == "batch"}
    return min(name for name in files if name.endswith("00000000000000000000.log"))


def decoded(case: str, topic: str) -> list[dict[str, Any]]:
    return [decode(topic, one.key, one.value) for one in data_records(case, log_of(case))]


def topic_id(case: str) -> str:
    """Return what the broker wrote into ``partition.metadata`` of a case."""
    (path,) = authentic(case).glob("*/partition.metadata")
    return path.read_text().split("topic_id: ")[1].strip()


KEY = short(1) + text("g") + text("t") + struct.pack(">i", 5)
NAMED = {"group": "g", "topic": "t", "partition": 5}

OFFSET_VALUES = [
    (
        short(0) + struct.pack(">q", 60) + text("m") + struct.pack(">q", 1000),
        {"offset": 60, "metadata": "m", "commitTimestamp": 1000},
    ),
    (
        short(1) + struct.pack(">q", 60) + text("") + struct.pack(">qq", 1000, 2000),
        {"offset": 60, "metadata": "", "commitTimestamp": 1000, "expireTimestamp": 2000},
    ),
    (
        short(2) + struct.pack(">q", 60) + text("") + struct.pack(">q", 1000),
        {"offset": 60, "metadata": "", "commitTimestamp": 1000},
    ),
    (
        short(3) + struct.pack(">qi", 60, 2) + text("") + struct.pack(">q", 1000),
        {"offset": 60, "leaderEpoch": 2, "metadata": "", "commitTimestamp": 1000},
    ),
    (
        short(4) + struct.pack(">qi", 60, 2) + compact("") + struct.pack(">q", 1000) + b"\1\0\x10" + UUID,
        {"offset": 60, "leaderEpoch": 2, "metadata": "", "commitTimestamp": 1000, "topicId": UUID_TEXT},
    ),
]


@pytest.mark.parametrize(("value", "fields"), OFFSET_VALUES)
def test_offset_commits(value: bytes, fields: dict[str, Any]) -> None:
    found = decode(OFFSETS, KEY, value)
    version = int.from_bytes(value[:2], "big")
    assert found == {"type": "offsetCommit", "version": 1, "key": NAMED, "valueVersion": version, "value": fields}


def test_deletions() -> None:
    assert decode(OFFSETS, KEY, None) == {"type": "offsetCommit", "version": 1, "key": NAMED, "value": None}
    assert decode(OFFSETS, short(0) + KEY[2:], None)["version"] == 0


def member(version: int) -> bytes:
    data = text("m") + (text("i") if version > 2 else b"") + text("c") + text("/h")
    data += struct.pack(">i", 300) if version > 0 else b""
    return data + struct.pack(">i", 10) + struct.pack(">i", 2) + b"su" + struct.pack(">i", 0)


@pytest.mark.parametrize("version", range(4))
def test_group_metadata(version: int) -> None:
    value = short(version) + text("consumer") + struct.pack(">i", 3) + text("range") + text(None)
    value += struct.pack(">q", 1000) if version > 1 else b""
    found = decode(OFFSETS, short(2) + text("g"), value + struct.pack(">i", 1) + member(version))
    assert (found["type"], found["key"], found["valueVersion"]) == ("groupMetadata", {"group": "g"}, version)
    fields = found["value"]
    assert (fields["protocolType"], fields["generation"], fields["leader"]) == ("consumer", 3, None)
    assert fields.get("currentStateTimestamp", -1) == (1000 if version > 1 else -1)
    (one,) = fields["members"]
    assert (one["memberId"], one["clientHost"], one["sessionTimeout"]) == ("m", "/h", 10)
    assert (one["subscription"], one["assignment"]) == ("c3U=", "")
    assert (one.get("groupInstanceId"), one.get("rebalanceTimeout")) == (
        "i" if version > 2 else None,
        300 if version > 0 else None,
    )


def test_consumer_group_member() -> None:
    key = short(5) + text("g") + text("m")
    classic = b"\x01" + struct.pack(">i", 45) + b"\2" + compact("range") + compact(b"x") + b"\0" + b"\0"
    value = short(0) + compact(None) + compact("r") + compact("c") + compact("/h") + b"\2" + compact("t")
    value += compact(None) + struct.pack(">i", 300) + compact(None)
    found = decode(OFFSETS, key, value + b"\1\0" + bytes([len(classic)]) + classic)
    assert found["type"] == "consumerGroupMemberMetadata"
    assert found["value"]["subscribedTopicNames"] == ["t"]
    assert found["value"]["classicMemberMetadata"] == {
        "sessionTimeoutMs": 45,
        "supportedProtocols": [{"name": "range", "metadata": "eA=="}],
    }
    assert decode(OFFSETS, key, value + b"\1\0\1\0")["value"]["classicMemberMetadata"] is None
    assert "classicMemberMetadata" not in decode(OFFSETS, key, value + b"\0")["value"]


def test_consumer_group_assignment() -> None:
    partitions = b"\2" + UUID + b"\3" + struct.pack(">ii", 0, 4) + b"\0"
    value = short(0) + struct.pack(">iib", 7, 6, 1) + partitions + b"\1" + b"\0"
    found = decode(OFFSETS, short(8) + text("g") + text("m"), value)
    assert found["value"] == {
        "memberEpoch": 7,
        "previousMemberEpoch": 6,
        "state": 1,
        "assignedPartitions": [{"topicId": UUID_TEXT, "partitions": [0, 4]}],
        "partitionsPendingRevocation": [],
    }


def test_transaction_states() -> None:
    key = short(0) + text("tx")
    value = short(0) + struct.pack(">qhib", 9, 2, 60000, 1) + struct.pack(">i", 1) + text("t")
    value += struct.pack(">ii", 1, 3) + struct.pack(">qq", 1000, 900)
    fields = decode(TRANSACTIONS, key, value)["value"]
    assert fields["transactionPartitions"] == [{"topic": "t", "partitionIds": [3]}]
    assert (fields["producerId"], fields["producerEpoch"], fields["transactionStatus"]) == (9, 2, 1)
    flexible = short(1) + struct.pack(">qhib", 9, 2, 60000, 0) + b"\0" + struct.pack(">qq", 1000, -1)
    fields = decode(TRANSACTIONS, key, flexible + b"\2" + b"\0\x08" + struct.pack(">q", 8) + b"\2\2\0\2")["value"]
    assert (fields["transactionPartitions"], fields["previousProducerId"]) == (None, 8)
    assert fields["clientTransactionVersion"] == 2


@pytest.mark.parametrize("version", [-1, 18, 24, 2**15 - 1])
def test_kinds_that_are_not_described(version: int) -> None:
    assert decode(OFFSETS, short(version) + b"anything", b"") == {"type": "unknown", "unknownVersion": version}


def test_versions_that_are_not_described() -> None:
    assert decode(OFFSETS, KEY, short(5) + b"anything")["value"] == {"unknownVersion": 5}
    assert decode(OFFSETS, KEY, short(-1))["value"] == {"unknownVersion": -1}
    assert decode(OFFSETS, None, b"") == {"type": "unknown", "key": None}


def test_metadata_records() -> None:
    assert decode(METADATA, None, b"\1\2\0" + compact("t") + UUID + b"\0") == {
        "type": "TOPIC_RECORD",
        "version": 0,
        "data": {"name": "t", "topicId": UUID_TEXT},
    }
    change = (
        b"\1\5\0" + struct.pack(">i", 3) + UUID + b"\2" + b"\0\5\2" + struct.pack(">i", 7) + b"\1\4" + short(-1) * 2
    )
    assert decode(METADATA, None, change)["data"] == {
        "partitionId": 3,
        "topicId": UUID_TEXT,
        "isr": [7],
        "leader": -1,
    }


def test_metadata_that_is_not_described() -> None:
    assert decode(METADATA, None, b"\1\x63\2\xab") == {
        "type": "UNKNOWN",
        "apiKey": 99,
        "version": 2,
        "hex": "ab",
    }
    assert decode(METADATA, None, b"\1\2\7\xab") == {"type": "TOPIC_RECORD", "version": 7, "hex": "ab"}


def test_numbers_that_json_does_not_know() -> None:
    quota = b"\1\x0e\0" + b"\2" + compact("user") + compact(None) + b"\0" + compact("k")
    for stored, shown in ((float("nan"), "NaN"), (float("-inf"), "-Infinity"), (1.5, 1.5)):
        data = decode(METADATA, None, quota + struct.pack(">d", stored) + b"\1\0")["data"]
        assert (data["value"], data["remove"]) == (shown, True)


@pytest.mark.req("SEG-CTL-010")
@pytest.mark.parametrize(
    ("topic", "key", "value", "failed_field"),
    [
        (OFFSETS, b"\0", b"", "key.version at byte 0: "),
        (OFFSETS, KEY[:-1], b"", "key.partition at byte "),
        (OFFSETS, KEY, b"", "value.version at byte 0: "),
        (OFFSETS, KEY, short(0) + bytes(8) + short(-1) + bytes(8), "value.metadata at byte 8: "),
        (METADATA, None, None, "value at byte 0: expected a metadata record, found null"),
        (METADATA, None, b"", "value.frameVersion at byte 0: "),
        (METADATA, None, b"\2\2\0", "value.frameVersion at byte 0: expected 0 or 1, found 2"),
        (METADATA, None, b"\1\x14\0\0more", "value at byte 0: expected the end of NO_OP_RECORD, found 4 more bytes"),
        (METADATA, None, b"\1\x14\0", "value.taggedFields at byte 0: "),
    ],
)
def test_bytes_that_do_not_fit(topic: str, key: bytes | None, value: bytes | None, failed_field: str) -> None:
    found = decode(topic, key, value)
    assert list(found) == ["error"]
    assert found["error"].startswith(failed_field)


@pytest.mark.req("SEG-CTL-010")
def test_a_record_is_sound_whatever_it_says() -> None:
    assert decode_application_record(OFFSETS, b"\0", b"\xff") == {
        "error": "key.version at byte 0: expected more bytes, found the end after 1"
    }
    assert list(verify_log(batch(record(key=b"\0", value=b"\xff")))) == []


def test_other_topics() -> None:
    assert decode_application_record("orders", KEY, b"") is None


@pytest.mark.parametrize("version", ["1.1.1", "2.8.2", "3.9.1", "4.3.0"])
def test_offsets_that_brokers_wrote(version: str) -> None:
    records = decoded(f"{version}/consumer-offsets", OFFSETS)
    commits = [one for one in records if one["type"] == "offsetCommit"]
    groups = [one for one in records if one["type"] == "groupMetadata"]
    assert len(commits) + len(groups) == len(records)
    assert commits[0]["key"] == {"group": "group-A", "topic": "plain", "partition": 0}
    assert commits[0]["value"]["offset"] == 60
    states = [one["value"]["protocolType"] for one in groups if one["value"] and one["value"]["members"]]
    assert set(states) == {"consumer"}
    assert not any("unknown" in str(one) or "error" in one for one in records)


def test_topic_ids_agree_with_the_partition() -> None:
    plain = topic_id("4.3.0/plain")
    commits = [one for one in decoded("4.3.0/consumer-offsets", OFFSETS) if one["type"] == "offsetCommit"]
    of_plain = {one["value"]["topicId"] for one in commits if one["value"] and one["key"]["topic"] == "plain"}
    assert of_plain == {plain}
    topics = [one["data"] for one in decoded("4.3.0/cluster-metadata", METADATA) if one["type"] == "TOPIC_RECORD"]
    assert {one["topicId"] for one in topics if one["name"] == "plain"} == {plain}


@pytest.mark.parametrize("version", ["1.1.1", "2.8.2", "3.9.1", "4.3.0"])
def test_transaction_states_that_brokers_wrote(version: str) -> None:
    records = decoded(f"{version}/transaction-state", TRANSACTIONS)
    assert {one["type"] for one in records} == {"transactionState"}
    assert {one["valueVersion"] for one in records} == {1 if version == "4.3.0" else 0}
    assert {one["value"]["transactionTimeoutMs"] for one in records} == {60000}
    partitions = [one["value"]["transactionPartitions"] for one in records if one["value"]["transactionPartitions"]]
    assert {row["topic"] for rows in partitions for row in rows} <= {
        "txn",
        "txn-open",
        "compact-txn",
        "crash-txn",
        OFFSETS,
    }


@pytest.mark.parametrize("version", ["3.9.1", "4.3.0"])
def test_metadata_that_controllers_wrote(version: str) -> None:
    records = decoded(f"{version}/cluster-metadata", METADATA)
    assert all("data" in one for one in records)
    kinds = {one["type"] for one in records}
    assert {"REGISTER_BROKER_RECORD", "TOPIC_RECORD", "PARTITION_RECORD", "CONFIG_RECORD", "NO_OP_RECORD"} <= kinds
    broker = next(one["data"] for one in records if one["type"] == "REGISTER_BROKER_RECORD")
    assert broker["endPoints"] == [{"name": "PLAINTEXT", "host": "127.0.0.1", "port": 19300, "securityProtocol": 0}]
    assert not any("unknownTaggedFields" in str(one) for one in records)
    topics = {one["data"]["topicId"] for one in records if one["type"] == "TOPIC_RECORD"}
    assert {one["data"]["topicId"] for one in records if one["type"] == "PARTITION_RECORD"} == topics


def numbers_at(value: Any, path: str) -> set[int]:  # noqa: ANN401 - decoded JSON
    """Return the numbers of a field, in all elements of the arrays on its path."""
    name, _, rest = path.partition(".")
    inner = value[name.removesuffix("[]")]
    if not rest:
        return {inner}
    return {number for each in (inner if name.endswith("[]") else [inner]) for number in numbers_at(each, rest)}


def test_codes_that_brokers_wrote_have_names() -> None:
    records = [*decoded("4.4.0/share-group-state", SHARES), *decoded("4.4.0/consumer-offsets", OFFSETS)]
    seen: dict[str, set[int]] = {}
    for one in records:
        for path in CODES.get(one["type"], {}) if one["value"] else ():
            seen.setdefault(one["type"], set()).update(numbers_at(one["value"], path))
    assert seen.keys() == CODES.keys() - {"transactionState"}
    for kind, numbers in seen.items():
        (names,) = CODES[kind].values()
        assert numbers <= names.keys()
    assert seen["shareSnapshot"] | seen["shareUpdate"] == {0, 2, 4}
    assert seen["streamsGroupCurrentMemberAssignment"] == {1}


KINDS = [*CONSUMER_OFFSETS_RECORDS.values(), *TRANSACTION_STATE_RECORDS.values()]
DEFINITIONS = [one.value for one in KINDS] + [*METADATA_RECORDS.values()]


@each_of("definition", DEFINITIONS, ids=lambda one: str(one.name))
def test_every_version_can_be_declared(definition: Any) -> None:  # noqa: ANN401 - untyped in the schema
    names = [{row.name for row in declaration(definition, version).subcons} for version in range(definition.latest + 1)]
    declared = {field.name for field in definition.fields if field.tag is None and field.until is None}
    assert declared <= names[-1]


@given(
    st.sampled_from([OFFSETS, TRANSACTIONS, METADATA]),
    st.none() | st.binary(max_size=30) | st.builds(lambda n, b: short(n) + b, st.integers(0, 16), st.binary()),
    st.none()
    | st.binary(max_size=60)
    | st.builds(lambda n, b: short(n) + b, st.integers(0, 4), st.binary(max_size=60))
    | st.builds(lambda n, v, b: bytes([1, n, v]) + b, st.integers(0, 30), st.integers(0, 4), st.binary(max_size=60)),
)
def test_any_bytes(topic: str, key: bytes | None, value: bytes | None) -> None:
    decode(topic, key, value)


SOUND: list[tuple[str, bytes | None, bytes]] = [
    *((OFFSETS, KEY, value) for value, _ in OFFSET_VALUES),
    (METADATA, None, b"\1\2\0" + compact("t") + UUID + b"\0"),
    (METADATA, None, b"\1\5\0" + bytes(4) + UUID + b"\2" + b"\0\5\2" + bytes(4) + b"\1\4" + bytes(4)),
    (OFFSETS, short(8) + text("g") + text("m"), short(0) + bytes(9) + b"\2" + UUID + b"\2" + bytes(4) + b"\0\1\0"),
]


@pytest.mark.parametrize(("topic", "key", "value"), SOUND)
def test_every_cut_and_every_flipped_byte(topic: str, key: bytes | None, value: bytes) -> None:
    for position in range(len(value)):
        decode(topic, key, value[:position])
        for byte in (0x00, 0x7F, 0x80, 0xFF, value[position] ^ 1):
            decode(topic, key, value[:position] + bytes([byte]) + value[position + 1 :])
    for position in range(len(key or b"")):
        assert key is not None
        decode(topic, key[:position], value)
        decode(topic, key[:position] + b"\xff" + key[position + 1 :], value)


def test_a_count_costs_no_memory() -> None:
    huge = b"\1\3\0" + bytes(4) + UUID + b"\xff\xff\xff\xff\x0f" + zigzag_varint(1)
    assert "error" in decode(METADATA, None, huge)

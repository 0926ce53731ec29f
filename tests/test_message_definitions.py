"""Messages in Kafka's own topics: what its classes of 4.4.0 wrote and read, and the tables taken from its jars."""

from __future__ import annotations

import base64
import contextlib
import json
import os
import struct
import tarfile
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from helpers import batches
from helpers.support import AUTHENTIC, FIXTURES, authentic, need
from hypothesis import given
from hypothesis import strategies as st

from proofs.stored_messages import reading, writing
from proofs.stored_messages.content import Content
from seglog_format import PartitionWriter, new_record, verify
from seglog_format.cli.main import seglog
from seglog_format.codec.control_record import decode_early_control_record
from seglog_format.codec.coordinator_records import decode_application_record
from seglog_format.codec.protocol import decode_message, encode_message
from seglog_format.errors import FormatError, Location, UsageError
from seglog_format.names import DECODED_TOPICS
from seglog_format.schema import protocol
from seglog_format.schema.coordinator_records import COORDINATOR_TOPICS
from seglog_format.schema.metadata_records import FRAMED_TOPICS, METADATA_RECORDS
from tools import message_definitions, message_fixtures
from tools.docs import message_coverage

if TYPE_CHECKING:
    from pathlib import Path

    from seglog_format.schema.protocol import MessageDefinition

Line = dict[str, Any]
MESSAGES = FIXTURES / "messages"
FULL = AUTHENTIC / message_fixtures.RELEASE
FORMATTED = AUTHENTIC.parent / f"kafka-{message_fixtures.RELEASE}"
KINDS = list(message_fixtures.read(MESSAGES / "kinds.jsonl.gz"))
RECORDS = list(message_fixtures.read(MESSAGES / "records.jsonl.gz"))
OFFSETS = "__consumer_offsets"
LEADER_CHANGE_OF_2_8 = bytes.fromhex(
    "00000000000000000000004d0000000102c83b5553002000000000000001a20eb58bb9000001a20eb58bb9ffffffffffffff"
    "ffffffffffffff0000000136000000080000000322000000010200000001000200000001000000"
)
PARTITION_OF_2_8 = (
    "000300000000010000000000000001000000000000000200000002000000010000000200000001000000010000000000000000"
    "000000010000000300000004"
)


def stored(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def parts(line: Line) -> list[tuple[MessageDefinition, int, bytes, object]]:
    """Definition, version, bytes and JSON of key and value; without what stands before a message."""
    value = base64.b64decode(line["valueBytes"])
    if line["where"] in COORDINATOR_TOPICS:
        kind = COORDINATOR_TOPICS[line["where"]][line["keyType"]]
        key = base64.b64decode(line["keyBytes"])
        return [(kind.key, 0, key[2:], line["key"]), (kind.value, line["version"], value[2:], line["value"])]
    if line["where"] in FRAMED_TOPICS:
        definition = FRAMED_TOPICS[line["where"]][line["apiKey"]]
        return [(definition, line["version"], value[3:], line["value"])]
    rows = {row["name"]: row for name in message_definitions.TABLE_NAMES for row in protocol.rows(name)}
    definition = protocol.message(line["kind"], rows[line["kind"]], broker="")
    size = 2 if "16-bit version first" in line["where"] and not has_own_version(rows[line["kind"]]) else 0
    return [(definition, line["version"], value[size:], line["value"])]


def has_own_version(row: Line) -> bool:
    return bool(row["fields"]) and row["fields"][0]["name"] == "version"


def check_kind(line: Line) -> None:
    for definition, version, data, expected in parts(line):
        assert decode_message(definition, version, data, Location()) == expected
        assert encode_message(definition, version, expected) == data  # type: ignore[arg-type]
    if line["where"] in COORDINATOR_TOPICS.keys() | FRAMED_TOPICS.keys():
        found = decode(line["where"], line.get("keyBytes"), line["valueBytes"])
        assert found.get("value", found.get("data")) == line["value"]
        assert "layoutOf" not in found


def decode(topic: str, key: str | None, value: str | None) -> Line:
    found = decode_application_record(topic, stored(key), stored(value))
    assert found is not None
    return found


def check_record(line: Line, found: Line) -> None:
    """Hold what we decode against what Kafka's converters print, field by field."""
    if "keyType" in line:
        assert (found["version"], found["key"]) == (line["keyType"], line["key"])
        assert (found.get("valueVersion"), found["value"]) == (line.get("valueVersion"), line["value"])
        ours = [(each["path"], each["version"], each["value"]) for each in found.get("embedded", [])]
        assert ours == [(each["path"], each["version"], each["json"]) for each in line.get("embedded", [])]
    else:
        assert (found["type"], found["version"], found["data"]) == (line["typeName"], line["version"], line["value"])


# What Kafka's classes wrote


@pytest.mark.req("SEG-CTL-010")
def test_every_kind_and_version_is_read_and_written() -> None:
    for line in KINDS:
        check_kind(line)
    assert len({line["kind"] for line in KINDS}) == 66
    assert len({(line["kind"], line["version"]) for line in KINDS}) == 93


@pytest.mark.skipif(not FULL.is_dir(), reason=f"the full collection is not at {AUTHENTIC}")
def test_all_messages_of_the_full_collection() -> None:
    for line in message_fixtures.read(FULL / "kinds.jsonl.gz"):
        check_kind(line)


@pytest.mark.req("SEG-CTL-010")
def test_records_that_brokers_wrote() -> None:
    for line in RECORDS:
        check_record(line, decode(line["topic"], line["keyBytes"], line["valueBytes"]))
    assert {line["case"] for line in RECORDS} == set(message_fixtures.CASES)


@pytest.mark.req("SEG-CTL-010")
def test_records_that_the_classes_of_every_release_wrote() -> None:
    lines = list(message_fixtures.read(MESSAGES / "releases.jsonl.gz"))
    assert {line["release"] for line in lines} == set(message_definitions.RELEASES)
    assert [difference for line in lines for difference in reading.differences(line)] == []


def test_a_record_that_is_decoded_otherwise_is_noticed() -> None:
    line = next(iter(message_fixtures.read(MESSAGES / "releases.jsonl.gz")))
    assert not reading.differences(line)
    (difference,) = reading.differences(line | {"value": {}})
    assert difference.startswith("2.8.2 ")


def test_bytes_that_two_layouts_fit_are_told_apart_from_wrong_ones() -> None:
    value = b"\1\x0a\0" + b"\2o" + b"\3\2a\1" + bytes(24) + b"\1" + b"\0"
    line = {"release": "3.5.2", "topic": "__cluster_metadata", "kind": "DelegationTokenRecord", "version": 0}
    line |= {
        "valueBytes": base64.b64encode(value).decode(),
        "prefix": 3,
        "value": {"owner": "o", "renewers": ["a", ""]},
    }
    assert reading.differences(line)
    assert reading.fits_another_layout(line)
    zero = {"owner": "o", "requester": "\2a", "renewers": []}
    zero |= dict.fromkeys(("issueTimestamp", "maxTimestamp", "expirationTimestamp"), 0) | {"tokenId": ""}
    assert not reading.fits_another_layout(line | {"value": zero})
    assert not reading.fits_another_layout(line | {"release": "3.6.2"})
    assert reading.differences(line | {"value": zero}) == []
    missing = next(each for each in message_fixtures.read(MESSAGES / "releases.jsonl.gz") if each["version"])
    assert not reading.fits_another_layout(missing | {"value": {}})


def test_the_classes_of_the_newest_release_write_what_is_decoded() -> None:
    newest = message_definitions.RELEASES[-1]
    need("Kafka's generated classes", ["java"])
    found = list(writing.written(jars((newest,)), newest, seed=2, styles=("most",)))
    assert {line["topic"] for line in found} == COORDINATOR_TOPICS.keys() | FRAMED_TOPICS.keys()
    assert [difference for line in found for difference in reading.differences(line)] == []


def test_content_of_a_message_is_what_its_definition_allows() -> None:
    tagged = {"name": "Tag", "type": "int16", "versions": "1+", "taggedVersions": "1+", "tag": 0, "default": "-1"}
    parts = {"name": "Parts", "type": "[]Part", "versions": "0+", "nullableVersions": "1+", "fields": [
        {"name": "Size", "type": "int8", "versions": "0+"}]}  # fmt: skip
    definition = definition_of([{"name": "Text", "type": "string", "versions": "0"}, parts, tagged], "0-1")
    least = Content(definition, 1, "least", "")
    assert least.fields() == {"parts": None, "tag": -1}
    assert least.stored(least.fields()) == {"parts": None}
    assert least.words(least.fields()) == "{ 2 parts ~ tag =-1"
    most = Content(definition, 0, "most", "")
    assert (fields := most.fields()).keys() == {"text", "parts"}
    assert most.words({"text": "ab", "parts": [{"size": -7}]}) == "{ 2 text =YWI= parts [ 1 { 1 size =-7"
    assert most.stored(fields) == fields


@pytest.mark.parametrize("topic", sorted({line["topic"] for line in RECORDS}))
def test_the_command_decodes_every_record(topic: str, tmp_path: Path) -> None:
    lines = [line for line in RECORDS if line["topic"] == topic]
    directory = tmp_path / f"{topic}-0"
    with PartitionWriter(directory) as writer:
        for line in lines:
            writer.append([new_record(key=stored(line["keyBytes"]), value=stored(line["valueBytes"]), timestamp_ms=1)])
    result = CliRunner().invoke(seglog, ["dump", "--decode", "--json", str(directory)])
    assert result.exit_code == 0
    dumped = [json.loads(line) for line in result.output.splitlines()]
    for line, record in zip(lines, [each for each in dumped if each["type"] == "record"], strict=True):
        check_record(line, record["decoded"])


def test_the_command_knows_all_topics_that_are_decoded() -> None:
    assert set(DECODED_TOPICS) == COORDINATOR_TOPICS.keys() | FRAMED_TOPICS.keys()


def test_a_log_outside_its_directory_is_decoded_as_the_topic_that_is_named(tmp_path: Path) -> None:
    line = next(line for line in RECORDS if line["topic"] == OFFSETS)
    with PartitionWriter(tmp_path / "copy-0") as writer:
        writer.append([new_record(key=stored(line["keyBytes"]), value=stored(line["valueBytes"]), timestamp_ms=1)])
    (log,) = (tmp_path / "copy-0").glob("*.log")
    for options, expected in (["--decode"], None), (["--decode-as", OFFSETS], line):
        result = CliRunner().invoke(seglog, ["dump", "--json", *options, str(log)])
        (record,) = (found for found in map(json.loads, result.output.splitlines()) if found["type"] == "record")
        if expected is None:
            assert record["decoded"] is None
        else:
            check_record(expected, record["decoded"])


@pytest.mark.skipif(not FULL.is_dir(), reason=f"the full collection is not at {AUTHENTIC}")
@pytest.mark.parametrize("case", message_fixtures.CASES)
def test_the_command_decodes_every_record_of_the_full_collection(case: str) -> None:
    root = authentic(f"{message_fixtures.RELEASE}/{case}")
    result = CliRunner().invoke(seglog, ["dump", "--decode", "--json", str(root)])
    dumped: dict[tuple[str, int], Line] = {}
    for line in map(json.loads, result.output.splitlines()):
        if line["type"] == "record":
            dumped[line["file"], line["offset"]] = line
    for line in message_fixtures.read(FULL / f"{case}.decoded.jsonl.gz"):
        found = dumped[line["file"], line["offset"]]
        if "control" in line:
            assert found["control"] == line["control"]
            assert {**found["decoded"], "type": None} == {**line.get("value", found["decoded"]), "type": None}
        else:
            check_record(line, found["decoded"])


@pytest.mark.skipif(not FORMATTED.is_dir(), reason=f"newly formatted directories are not at {FORMATTED}")
def test_records_that_the_format_tool_wrote(tmp_path: Path) -> None:
    with tarfile.open(FORMATTED / "formatted.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    expected = list(message_fixtures.read(FORMATTED / "formatted.decoded.jsonl.gz"))
    found: dict[tuple[str, int], Line] = {}
    for node in tmp_path.iterdir():
        result = CliRunner().invoke(seglog, ["dump", "--decode", "--json", str(node)])
        for line in map(json.loads, result.output.splitlines()):
            if line["type"] == "record":
                found[f"{node.name}/{line['file']}", line["offset"]] = line
    assert len(found) == len(expected) == 56
    for line in expected:
        record = found[line["file"], line["offset"]]
        if "control" in line:
            assert record["control"] == line["control"]
        else:
            check_record(line, record["decoded"])


# The wrong ones of old, and edges


def test_null_in_a_tagged_structure_is_0_and_present_is_1() -> None:
    absent = next(line for line in RECORDS if line["value"] and line["value"].get("classicMemberMetadata", 1) is None)
    assert base64.b64decode(absent["valueBytes"]).endswith(b"\1\0\1\0")
    definition = COORDINATOR_TOPICS[OFFSETS][5].value
    there = absent["value"] | {"classicMemberMetadata": {"sessionTimeoutMs": 1, "supportedProtocols": []}}
    assert encode_message(definition, 0, there).endswith(b"\1\0\7\1" + struct.pack(">i", 1) + b"\1\0")


def test_null_in_a_structure_that_is_not_tagged_is_a_negative_byte() -> None:
    definition = COORDINATOR_TOPICS[OFFSETS][19].value
    line = next(line for line in KINDS if line["value"].get("userEndpoint", 1) is None)
    data = encode_message(definition, 0, line["value"] | {"clientTags": [], "processId": ""})
    assert data.endswith(b"\1\xff\1\0")


def test_unknown_tagged_fields_are_written_again() -> None:
    definition = COORDINATOR_TOPICS[OFFSETS][3].value
    data = struct.pack(">i", 7) + b"\2" + b"\0\x08" + bytes(8) + b"\x09\2xy"
    fields = decode_message(definition, 0, data, Location())
    assert fields == {"epoch": 7, "metadataHash": 0, "unknownTaggedFields": [{"tag": 9, "data": "eHk="}]}
    assert encode_message(definition, 0, fields) == data


@pytest.mark.parametrize(
    "fields", [{}, {"epoch": "x"}, {"epoch": 2**40}, {"epoch": 1, "unknownTaggedFields": [{"tag": 9, "data": "?"}]}]
)
def test_fields_that_cannot_be_written(fields: Line) -> None:
    with pytest.raises(UsageError, match=r"^ConsumerGroupMetadataValue of version 0 cannot be written: "):
        encode_message(COORDINATOR_TOPICS[OFFSETS][3].value, 0, fields)


@pytest.mark.parametrize(
    ("data", "line", "fields"),
    [
        (b"\5n\0\7\0\x14more", None, None),
        (b"\2n\0\x14\0", "", {"name": "n", "featureLevel": 20}),
        (b"\2n\0\1\0\x14\0", "3.2", {"name": "n", "minFeatureLevel": 1, "maxFeatureLevel": 20}),
    ],
)
def test_a_version_that_had_another_layout_in_early_releases(
    data: bytes, line: str | None, fields: Line | None
) -> None:
    """`FeatureLevelRecord` of version 0 had two levels up to 3.2, and has one since."""
    found = decode_application_record("__cluster_metadata", None, b"\1\x0c\0" + data)
    assert found is not None
    assert found.get("data") == fields
    assert found.get("layoutOf", "") == (line or "")


@pytest.mark.parametrize(
    ("data", "name", "fields"),
    [
        ("00020000066f726465727300000000000000010000000000000002", "TOPIC_RECORD", {"name": "orders"}),
        (
            PARTITION_OF_2_8,
            "PARTITION_RECORD",
            {"replicas": [1, 2], "isr": [1], "leader": 1, "leaderEpoch": 3, "partitionEpoch": 4},
        ),
        ("0004000200066f7264657273000161000162", "CONFIG_RECORD", {"resourceName": "orders", "value": "b"}),
        (
            "000000000000010000000000000003000000000000000400000000000000090000000000000000000172",
            "REGISTER_BROKER_RECORD",
            {"brokerId": 1, "brokerEpoch": 9, "endPoints": [], "features": [], "rack": "r"},
        ),
        (
            "000e0000000001000475736572ffff00016b3ff800000000000000",
            "QUOTA_RECORD",
            {"key": "k", "value": 1.5, "entity": [{"entityType": "user", "entityName": None}]},
        ),
        ("000700000000010000000000000002", "FENCE_BROKER_RECORD", {"id": 1, "epoch": 2}),
        (
            "0005000000000100000000000000010000000000000002010104ffffffff",
            "PARTITION_CHANGE_RECORD",
            {"partitionId": 1, "leader": -1},
        ),
    ],
)
def test_frames_of_the_early_access(data: str, name: str, fields: Line) -> None:
    """Bytes by `MetadataRecordSerde` of Kafka 2.8.2."""
    found = decode_application_record("__cluster_metadata", None, bytes.fromhex(data))
    assert found is not None
    assert found["type"] == name
    assert fields.items() <= found["data"].items()  # type: ignore[attr-defined]


@pytest.mark.req("SEG-CTL-010")
def test_the_metadata_log_of_the_early_access(tmp_path: Path) -> None:
    """A node of Kafka 2.8.2 wrote it, in a directory by another name; its own DumpLogSegments printed the values."""
    expected = list(message_fixtures.read(MESSAGES / "early-access.jsonl.gz"))
    directory = tmp_path / "@metadata-0"
    directory.mkdir()
    log = directory / "00000000000000000000.log"
    log.write_bytes(LEADER_CHANGE_OF_2_8)
    for line in expected:
        one = batches.record(key=stored(line["keyBytes"]), value=stored(line["valueBytes"]))
        log.write_bytes(log.read_bytes() + batches.batch(one, base_offset=line["offset"]))
    result = CliRunner().invoke(seglog, ["dump", "--decode", "--json", str(tmp_path)])
    control, *found = (line for line in map(json.loads, result.output.splitlines()) if line["type"] == "record")
    assert control["decoded"] == {
        "type": "LEADER_CHANGE",
        "version": 0,
        "leaderId": 1,
        "voters": [{"voterId": 1}],
        "grantingVoters": [{"voterId": 1}],
    }
    for line, each in zip(expected, found, strict=True):
        check_record(line, each["decoded"])
    assert "SEG-PDR-002" not in {one.requirement for one in verify(tmp_path)}


def test_other_control_records_of_the_early_access_are_unknown() -> None:
    found = decode_early_control_record(b"\0\0\0\2", b"", Location())
    assert (found.label, found.fields) == ("UNKNOWN", {})


def test_frames_of_the_early_access_with_a_later_type() -> None:
    found = decode_application_record("__cluster_metadata", None, b"\0\x1d\0\xff")
    assert found == {"type": "UNKNOWN", "apiKey": 29, "version": 0, "hex": "ff"}


def test_what_groups_of_others_embed_is_left_alone() -> None:
    line = next(each for each in RECORDS if each.get("embedded") and each["keyType"] == 2)
    value = base64.b64decode(line["valueBytes"])
    connect = value.replace(b"\0\x08consumer", b"\0\x08connects", 1)
    found = decode_application_record(OFFSETS, stored(line["keyBytes"]), connect)
    assert found is not None
    assert "embedded" not in found


def test_bytes_that_are_no_consumer_protocol_are_passed_over() -> None:
    line = next(each for each in RECORDS if each.get("embedded") and each["keyType"] == 2)
    changed = json.loads(json.dumps(line["value"]))
    changed["members"][0]["subscription"] = "AAMAAAAC"
    definition = COORDINATOR_TOPICS[OFFSETS][2].value
    value = struct.pack(">h", line["valueVersion"]) + encode_message(definition, line["valueVersion"], changed)
    found = decode_application_record(OFFSETS, stored(line["keyBytes"]), value)
    assert found is not None
    assert "members[0].subscription" not in [each["path"] for each in found.get("embedded", [])]


@given(st.sampled_from(KINDS), st.data())
def test_damaged_messages_are_refused_or_read(line: Line, data: st.DataObject) -> None:
    for definition, version, good, _ in parts(line):
        position = data.draw(st.integers(0, max(len(good) - 1, 0)))
        bad = good[:position] + data.draw(st.binary(max_size=3)) + good[position + 1 :]
        with contextlib.suppress(FormatError):
            json.dumps(decode_message(definition, version, bad, Location()), allow_nan=False)


# The tables


def test_the_tables_are_plain_facts() -> None:
    allowed = {"name", "type", "versions", "nullable", "tag", "default", "fields"}
    heads = {"name", "since", "until", "type", "versions", "flexible", "fields", "earlier"}

    def names(fields: list[Line]) -> set[str]:
        return set().union(*(set(each) | names(each.get("fields", [])) for each in fields))

    for name in message_definitions.TABLE_NAMES:
        for each in protocol.rows(name):
            assert set(each) <= heads
            assert names(each["fields"]) <= allowed


def test_what_a_definition_says() -> None:
    found = message_definitions.layout(
        {
            "apiKey": 7,
            "name": "ThingRecord",
            "validVersions": "0-2",
            "flexibleVersions": "1+",
            "fields": [
                {"name": "Id", "type": "int32", "versions": "0+", "about": "text that is not taken"},
                {"name": "Parts", "type": "[]Part", "versions": "1+", "nullableVersions": "1+", "taggedVersions": "1+",
                 "tag": "3", "default": "null"},
            ],
            "commonStructs": [{"name": "Part", "versions": "0+", "fields": [
                {"name": "Size", "type": "int64", "versions": "0+", "default": -1}]}],
        }
    )  # fmt: skip
    assert found == {
        "type": 7,
        "versions": "0-2",
        "flexible": "1+",
        "fields": [
            {"name": "id", "type": "int32"},
            {
                "name": "parts",
                "type": "[]struct",
                "versions": "1+",
                "nullable": True,
                "tag": 3,
                "default": "null",
                "fields": [{"name": "size", "type": "int64", "default": "-1"}],
            },
        ],
    }


def definition_of(fields: list[Line], versions: str = "0") -> Line:
    return {"apiKey": 7, "name": "ThingRecord", "validVersions": versions, "flexibleVersions": "0+", "fields": fields}


def test_a_layout_that_changed_without_a_version_is_kept_beside_the_newest() -> None:
    first = {"name": "A", "type": "int8", "versions": "0+"}
    second = {"name": "B", "type": "int8", "versions": "0+"}
    tagged = {"name": "C", "type": "int8", "versions": "0+", "taggedVersions": "0+", "tag": 0}
    later = {"name": "D", "type": "int8", "versions": "1+"}
    releases = {"3.5.2": definition_of([first, second]), "3.6.2": definition_of([first])}
    releases |= {"3.7.2": definition_of([first, tagged]), "4.4.0": definition_of([first, tagged, later], "0-1")}
    (found,) = message_definitions.messages_of({"ThingRecord": releases})
    assert (found["since"], found["versions"], "until" in found) == ("3.5", "0-1", False)
    assert found["earlier"] == [
        {"since": "3.5", "until": "3.5", "versions": "0", "flexible": "0+", "fields": [
            {"name": "a", "type": "int8"}, {"name": "b", "type": "int8"}]}
    ]  # fmt: skip


def test_coverage_is_counted() -> None:
    assert message_coverage.coverage() == (66, 66, 93, 93)


def test_coverage_notices_a_missing_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    message_coverage.coverage.cache_clear()
    monkeypatch.delitem(METADATA_RECORDS, 5)
    try:
        assert message_coverage.coverage() == (65, 66, 90, 93)
    finally:
        message_coverage.coverage.cache_clear()


def test_coverage_of_every_release_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    message_coverage.sentence_of_releases.cache_clear()
    assert message_coverage.sentence_of_releases().endswith("of 816 records, 816 are decoded.")
    message_coverage.sentence_of_releases.cache_clear()
    monkeypatch.delitem(METADATA_RECORDS, 5)
    try:
        assert message_coverage.sentence_of_releases().endswith("of 816 records, 784 are decoded.")
    finally:
        message_coverage.sentence_of_releases.cache_clear()


def test_kinds_of_all_groups() -> None:
    assert sorted(COORDINATOR_TOPICS[OFFSETS]) == [*range(18), *range(19, 24)]


def jars(releases: tuple[str, ...]) -> Path:
    """Return the jars of some releases. Those of the newest are fetched in CI, a few megabytes; all are 200."""
    jar_directory = message_definitions.WORK / "jars"
    names = [f"{name}-{release}.jar" for release in releases for name in message_definitions.artifacts_of(release)]
    if all((jar_directory / name).is_file() for name in names):
        return jar_directory
    if len(releases) > 1 or not os.environ.get("CI"):
        pytest.skip("the jars are not here; python -m tools.message_definitions fetches them")
    need("Kafka's definitions", ["java", "mvn"])
    return message_definitions.fetch(releases)


def test_the_tables_are_those_of_the_newest_release() -> None:
    newest = message_definitions.RELEASES[-1]
    found = defaultdict(dict)
    for table, definition in message_definitions.definitions(jars((newest,)), newest):
        found[table][definition["name"]] = message_definitions.layout(definition)
    for name in message_definitions.TABLE_NAMES:
        rows = {row["name"]: row for row in protocol.rows(name) if "until" not in row}
        plain = {key: {part: row[part] for part in row if part in found[name][key]} for key, row in rows.items()}
        assert plain == found[name]


def test_the_tables_are_those_of_all_releases() -> None:
    found = message_definitions.derive(jars(message_definitions.RELEASES))
    assert {name: (message_definitions.TABLES / name).read_text(encoding="utf-8") for name in found} == found

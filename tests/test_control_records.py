"""Chapter 32: control records."""

from __future__ import annotations

import base64
import struct
from typing import TYPE_CHECKING, Any

import pytest
from helpers.batches import batch, record
from helpers.decoders import decode_batch
from helpers.support import authentic_expected, authentic_names, vector
from helpers.walking import each_of
from hypothesis import given
from hypothesis import strategies as st

from seglog_format.checks.verify import verify_log
from seglog_format.codec.control_record import decode_control_record
from seglog_format.errors import CorruptRecordError, FormatError, Location
from seglog_format.log.partition import open_partition
from seglog_format.model import ControlRecord, ControlRecordType
from seglog_format.schema.control_record import KRAFT_VALUES, KRaftVoters, LeaderChangeV1
from seglog_format.schema.fields import layout
from seglog_format.schema.tracing import trace

if TYPE_CHECKING:
    from pathlib import Path


CONTROL, TRANSACTIONAL = 0x20, 0x10
MARKER = struct.pack(">hi", 0, 7)
DIRECTORY = struct.pack(">qq", 1, 2)
DIRECTORY_TEXT = "AAAAAAAAAAEAAAAAAAAAAg"

VALUES: dict[str, tuple[str, dict[str, Any]]] = {
    "V-13": ("COMMIT", {"version": 0, "coordinatorEpoch": 7}),
    "V-14": ("ABORT", {"version": 0, "coordinatorEpoch": 7}),
    "V-15": (
        "LEADER_CHANGE",
        {
            "version": 0,
            "leaderId": 1,
            "voters": [{"voterId": 1}, {"voterId": 2}],
            "grantingVoters": [{"voterId": 2}],
        },
    ),
    "V-16": ("SNAPSHOT_HEADER", {"version": 0, "lastContainedLogTimestamp": 99}),
    "V-17": ("SNAPSHOT_FOOTER", {"version": 0}),
    "V-18": ("KRAFT_VERSION", {"version": 0, "kRaftVersion": 1}),
    "V-19": (
        "KRAFT_VOTERS",
        {
            "version": 0,
            "voters": [
                {
                    "voterId": 1,
                    "voterDirectoryId": DIRECTORY_TEXT,
                    "endpoints": [{"name": "C", "host": "h", "port": 9093}],
                    "kRaftVersionFeature": {"minSupportedVersion": 0, "maxSupportedVersion": 1},
                }
            ],
        },
    ),
}


def key(kind: int, version: int = 0) -> bytes:
    return struct.pack(">hh", version, kind)


def decode(key: bytes | None, value: bytes | None) -> ControlRecord:
    return decode_control_record(key, value, Location())


def refusal(key: bytes | None, value: bytes | None) -> FormatError:
    with pytest.raises(CorruptRecordError) as caught:
        decode(key, value)
    return caught.value


def stored(name: str) -> tuple[bytes, bytes]:
    """Key and value of the one record in a vector."""
    (one,) = decode_batch(vector(name)).records
    assert one.key is not None
    assert one.value is not None
    return one.key, one.value


def control_batch(*rows: tuple[bytes | None, bytes | None], **fields: int) -> bytes:
    section = b"".join(record(0, delta, *row) for delta, row in enumerate(rows))
    marker = {"attributes": CONTROL | TRANSACTIONAL, "producer_id": 9, "producer_epoch": 2}
    return batch(section, len(rows), **(marker | fields))


def found(data: bytes) -> list[str]:
    return [finding.requirement for finding in verify_log(data)]


@pytest.mark.parametrize("name", VALUES)
def test_vectors(name: str) -> None:
    label, fields = VALUES[name]
    one = decode(*stored(name))
    assert (one.version, one.label, one.fields) == (0, label, fields)
    assert found(vector(name)) == []


@pytest.mark.req("SEG-CTL-001")
@pytest.mark.parametrize("short", [b"", b"\0", b"\0\0", b"\0\0\0"])
def test_short_keys(short: bytes) -> None:
    assert refusal(short, MARKER).requirements == ("SEG-CTL-001",)
    assert found(control_batch((short, MARKER)))[0] == "SEG-CTL-001"


@pytest.mark.req("SEG-CTL-001")
def test_null_key() -> None:
    error = refusal(None, MARKER)
    assert (error.requirements, error.location.field) == (("SEG-CTL-001",), "key")
    assert found(control_batch((None, MARKER)))[0] == "SEG-CTL-001"


@pytest.mark.req("SEG-CTL-001")
@pytest.mark.parametrize("version", [-1, -(2**15)])
def test_negative_key_version(version: int) -> None:
    error = refusal(key(1, version), MARKER)
    assert (error.requirements, error.location.field, error.found) == (
        ("SEG-CTL-001",),
        "key.version",
        str(version),
    )


@pytest.mark.req("SEG-CTL-001")
def test_long_key() -> None:
    assert decode(key(1) + b"more", MARKER).label == "COMMIT"


@pytest.mark.req("SEG-CTL-002")
@pytest.mark.parametrize("version", [1, 2**15 - 1])
def test_higher_key_versions(version: int) -> None:
    one = decode(key(0, version), MARKER)
    assert (one.version, one.label, one.fields["coordinatorEpoch"]) == (version, "ABORT", 7)


@pytest.mark.req("SEG-CTL-003")
@pytest.mark.parametrize("kind", [-(2**15), -1, 7, 99, 2**15 - 1])
@pytest.mark.parametrize("value", [None, b"", b"anything"])
def test_unknown_types(kind: int, value: bytes | None) -> None:
    one = decode(key(kind), value)
    assert (one.type_id, one.type, one.label, one.fields) == (kind, None, "UNKNOWN", {})
    assert found(control_batch((key(kind), value))) == ["SEG-CTL-003"]


@pytest.mark.req("SEG-CTL-004")
@pytest.mark.parametrize("kind", [0, 1])
@pytest.mark.parametrize("value", [None, *(MARKER[:size] for size in range(6))])
def test_short_markers(kind: int, value: bytes | None) -> None:
    error = refusal(key(kind), value)
    assert error.requirements == ("SEG-CTL-004",)
    assert error.location.field.startswith("value")
    assert found(control_batch((key(kind), value)))[0] == "SEG-CTL-004"


@pytest.mark.req("SEG-CTL-004")
def test_marker_versions() -> None:
    assert refusal(key(1), struct.pack(">hi", -1, 7)).requirements == ("SEG-CTL-004",)
    assert decode(key(1), struct.pack(">hi", 3, 7) + b"more").fields == {"version": 3, "coordinatorEpoch": 7}


@pytest.mark.req("SEG-CTL-005")
def test_form_of_a_marker_batch() -> None:
    marker = (key(1), MARKER)
    assert found(control_batch(marker)) == []
    assert found(control_batch(marker, marker)) == ["SEG-CTL-005"]
    assert found(control_batch(marker, attributes=CONTROL)) == ["SEG-CTL-005"]
    assert found(control_batch(marker, base_sequence=0)) == ["SEG-CTL-005"]


@pytest.mark.req("SEG-CTL-006")
@pytest.mark.parametrize("kind", KRAFT_VALUES)
def test_null_kraft_values(kind: int) -> None:
    assert refusal(key(kind), None).requirements == ("SEG-CTL-006",)


@pytest.mark.req("SEG-CTL-006")
@pytest.mark.parametrize("name", [name for name in VALUES if name > "V-14"])
def test_kraft_values_cut_short(name: str) -> None:
    stored_key, value = stored(name)
    for end in range(len(value)):
        assert refusal(stored_key, value[:end]).requirements == ("SEG-CTL-006",)
    kraft = {"attributes": CONTROL, "producer_id": -1, "producer_epoch": -1}
    assert found(control_batch((stored_key, value[:-1]), **kraft)) == ["SEG-CTL-006"]


@pytest.mark.req("SEG-CTL-006")
@pytest.mark.parametrize("kind", KRAFT_VALUES)
def test_negative_kraft_version(kind: int) -> None:
    error = refusal(key(kind), struct.pack(">h", -1) + bytes(40))
    assert (error.requirements, error.location.field) == (("SEG-CTL-006",), "value.version")


@pytest.mark.req("SEG-CTL-006")
def test_leader_change_version_1() -> None:
    voter = struct.pack(">i", 3) + DIRECTORY + b"\0"
    value = struct.pack(">hi", 1, 3) + b"\2" + voter + b"\1" + b"\0"
    assert decode(key(2), value).fields == {
        "version": 1,
        "leaderId": 3,
        "voters": [{"voterId": 3, "voterDirectoryId": DIRECTORY_TEXT}],
        "grantingVoters": [],
    }


@pytest.mark.req("SEG-CTL-006")
@pytest.mark.parametrize("count", [b"\xff\xff\xff\xff\x0f", b"\x80\x80\x80\x80\x08", b"\x03"])
def test_counts_are_not_believed(count: bytes) -> None:
    value = struct.pack(">hi", 0, 1) + count + struct.pack(">i", 1) + b"\0"
    assert refusal(key(2), value).requirements == ("SEG-CTL-006",)
    length = struct.pack(">h", 0) + b"\2" + struct.pack(">i", 1) + DIRECTORY + b"\2" + count + b"C"
    assert refusal(key(6), length).requirements == ("SEG-CTL-006",)
    tags = struct.pack(">h", 0) + count + b"\7\1"
    assert refusal(key(4), tags).requirements == ("SEG-CTL-006",)


@pytest.mark.req("SEG-CTL-006")
def test_null_is_no_array_and_no_string() -> None:
    error = refusal(key(2), struct.pack(">hi", 0, 1) + b"\0\1\0")
    assert (error.requirements, error.location.field) == (("SEG-CTL-006",), "value.voters")
    name = struct.pack(">h", 0) + b"\2" + struct.pack(">i", 1) + DIRECTORY + b"\2" + b"\0\2h" + bytes(10)
    assert refusal(key(6), name).location.field == "value.voters[0].endpoints[0].name"


def test_varints_end() -> None:
    error = refusal(key(4), struct.pack(">h", 0) + b"\x80" * 6)
    assert error.requirements == ("SEG-REC-004",)


def test_text_that_is_not_utf8() -> None:
    value = bytearray(stored("V-19")[1])
    value[value.index(b"\x02C") + 1] = 0xFF
    (voter,) = decode(key(6), bytes(value)).fields["voters"]  # type: ignore[misc]
    assert voter["endpoints"][0]["name"] == "\ufffd"


@pytest.mark.req("SEG-CTL-011")
def test_unknown_tagged_fields() -> None:
    fields = decode(key(4), struct.pack(">h", 0) + b"\2\7\1\xaa\x09\0").fields
    assert fields == {"version": 0, "unknownTaggedFields": [{"tag": 7, "data": "qg=="}, {"tag": 9, "data": ""}]}
    voter = struct.pack(">i", 3) + b"\1\5\2ab"
    inside = decode(key(2), struct.pack(">hi", 0, 3) + b"\2" + voter + b"\1\0").fields
    assert inside["voters"] == [{"voterId": 3, "unknownTaggedFields": [{"tag": 5, "data": "YWI="}]}]


@pytest.mark.req("SEG-CTL-012")
@pytest.mark.parametrize("version", [2, 9, 2**15 - 1])
def test_higher_kraft_versions(version: int) -> None:
    header = decode(key(3), struct.pack(">hq", version, 99) + b"\0")
    assert header.fields == {"version": version, "lastContainedLogTimestamp": 99}
    voter = struct.pack(">i", 3) + DIRECTORY + b"\0"
    change = decode(key(2), struct.pack(">hi", version, 3) + b"\2" + voter + b"\1\0")
    assert change.fields["voters"] == [{"voterId": 3, "voterDirectoryId": DIRECTORY_TEXT}]


@pytest.mark.req("SEG-CTL-013")
@pytest.mark.parametrize("name", VALUES)
def test_bytes_after_a_value(name: str) -> None:
    stored_key, value = stored(name)
    assert decode(stored_key, value + b"more").fields == VALUES[name][1]


@pytest.mark.req("SEG-CTL-007")
def test_control_batch_without_records(tmp_path: Path) -> None:
    data = batch(record(value=b"x"), **PRODUCER, attributes=TRANSACTIONAL)
    empty = batch(b"", 0, base_offset=1, last_offset_delta=0, attributes=CONTROL | TRANSACTIONAL, **PRODUCER_OF_MARKER)
    commit = control_batch((key(1), MARKER), base_offset=2)
    assert decode_batch(empty).records == ()
    assert decode_batch(empty).next_offset == 2
    assert found(data + empty + commit) == ["SEG-BAT-019"]
    partition = directory(tmp_path, data + empty + commit)
    with open_partition(partition) as opened:
        assert opened.last_stable_offset == opened.log_end_offset == 3
        assert [one.value for one in opened.records(isolation="read_committed")] == [b"x"]
    with open_partition(directory(tmp_path, data + empty)) as opened:
        assert (opened.last_stable_offset, opened.log_end_offset) == (0, 2)


PRODUCER = {"producer_id": 9, "producer_epoch": 2, "base_sequence": 0}
PRODUCER_OF_MARKER = {"producer_id": 9, "producer_epoch": 2}


def directory(tmp_path: Path, data: bytes) -> Path:
    """Return a partition with one segment."""
    partition = tmp_path / "topic-0"
    partition.mkdir(exist_ok=True)
    (partition / f"{0:020}.log").write_bytes(data)
    return partition


@pytest.mark.req("SEG-CTL-009")
@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_control_records_are_not_delivered(tmp_path: Path, isolation: str) -> None:
    first = batch(record(value=b"x"), **PRODUCER, attributes=TRANSACTIONAL)
    commit = control_batch((key(1), MARKER), base_offset=1)
    quorum = batch(record(key=key(4), value=b"\0\0\0"), base_offset=2, attributes=CONTROL)
    last = batch(record(value=b"y"), base_offset=3)
    with open_partition(directory(tmp_path, first + commit + quorum + last)) as opened:
        assert [(one.offset, one.value) for one in opened.records(isolation=isolation)] == [(0, b"x"), (3, b"y")]
        assert opened.log_end_offset == 4


def test_layouts() -> None:
    assert [row.name for row in layout(LeaderChangeV1)] == [
        "version",
        "leaderId",
        "voters",
        "grantingVoters",
        "taggedFields",
    ]
    assert [row.type for row in layout(LeaderChangeV1)] == ["int16", "int32", "array", "array", "tagged fields"]
    assert [row.offset for row in layout(LeaderChangeV1)] == [0, 2, 6, None, None]
    assert {row.since for row in layout(KRaftVoters)} == {"3.8.0"}


def test_traced_fields() -> None:
    spans = {span.name: (span.start, span.end) for span in trace(KRaftVoters, stored("V-19")[1]).spans}
    assert spans["voters[0].voterDirectoryId"] == (7, 23)
    assert spans["voters[0].endpoints[0].port"] == (28, 30)
    assert spans["taggedFields"] == (37, 38)


@each_of("name", authentic_names())
def test_what_brokers_wrote(name: str) -> None:
    for line in authentic_expected(name):
        if line["type"] == "record" and "control" in line:
            one = decode(base64.b64decode(line["key"]), base64.b64decode(line["value"]))
            assert one.label == line["control"]
            assert one.fields.get("coordinatorEpoch") == line.get("coordinatorEpoch")


def test_leader_change_as_the_dump_tool_prints_it() -> None:
    lines = [line for line in authentic_expected("3.9.1/cluster-metadata") if line.get("control") == "LEADER_CHANGE"]
    first = decode(base64.b64decode(lines[0]["key"]), base64.b64decode(lines[0]["value"]))
    assert first.fields == {
        "version": 0,
        "leaderId": 1,
        "voters": [{"voterId": 1}],
        "grantingVoters": [{"voterId": 1}],
    }


def survives(key: bytes | None, value: bytes | None) -> None:
    try:
        one = decode(key, value)
    except FormatError:
        return
    assert one.type is None or one.type in ControlRecordType


@pytest.mark.parametrize("name", VALUES)
def test_every_flipped_byte(name: str) -> None:
    stored_key, value = stored(name)
    for whole, put in ((stored_key, 0), (value, 1)):
        for position in range(len(whole)):
            for byte in (0x00, 0x7F, 0x80, 0xFF, *(whole[position] ^ 1 << bit for bit in range(8))):
                changed = whole[:position] + bytes([byte]) + whole[position + 1 :]
                survives(*((changed, value) if put == 0 else (stored_key, changed)))


@given(st.integers(-1, 8), st.none() | st.binary(max_size=80))
def test_any_value(kind: int, value: bytes | None) -> None:
    survives(key(kind), value)


@given(st.none() | st.binary(max_size=8))
def test_any_key(whole: bytes | None) -> None:
    survives(whole, MARKER)

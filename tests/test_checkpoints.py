"""Chapter 51: checkpoint files and partition metadata."""

from __future__ import annotations

import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest
from helpers.batches import batch, record
from helpers.broker_names import texts
from helpers.planned import only_plan
from helpers.walking import each_of
from hypothesis import given
from hypothesis import strategies as st

from seglog_format import open_log_directory, open_partition
from seglog_format.checks import verify
from seglog_format.codec.checkpoints import (
    decode_leader_epoch_checkpoint,
    decode_offset_checkpoint,
    decode_partition_metadata,
)
from seglog_format.errors import CorruptIndexError, FormatError, Location, UnsupportedVersionError
from seglog_format.log.listing import simple_offsets
from seglog_format.model import LeaderEpochCheckpoint, OffsetCheckpoint, PartitionMetadata
from seglog_format.names import OFFSET_CHECKPOINT_KINDS, parse_decimal
from seglog_format.schema import checkpoints as schema
from seglog_format.schema.fields import layout

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

AT = Location("some/file")
DECODERS = [decode_offset_checkpoint, decode_leader_epoch_checkpoint, decode_partition_metadata]
GRAMMAR = {"SEG-CKP-001", "SEG-CKP-002", "SEG-CKP-003", "SEG-CKP-004", "SEG-CKP-013"}


def refusal(decode: Callable[..., Any], data: bytes) -> FormatError:
    with pytest.raises(FormatError) as caught:
        decode(data, AT)
    assert caught.value.location.path == AT.path
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 500
    return caught.value


def refused(decode: Callable[..., Any], data: bytes) -> tuple[str, str, int]:
    """Return requirement, field and position of the refusal."""
    error = refusal(decode, data)
    assert isinstance(error, CorruptIndexError)
    (requirement,) = error.requirements
    return requirement, error.location.field, error.location.position


# Grammar


@pytest.mark.req("SEG-CKP-001")
@pytest.mark.parametrize("decode", DECODERS[:2])
@pytest.mark.parametrize("data", [b"1\n0\n", b"-1\n0\n", b"2147483647", b"7\nwhatever\n\xff\xfe"])
def test_other_versions(decode: Callable[..., Any], data: bytes) -> None:
    error = refusal(decode, data)
    assert isinstance(error, UnsupportedVersionError)
    assert (error.requirements, error.location.field, error.location.position) == (("SEG-CKP-001",), "version", 0)


def test_the_version_may_be_written_oddly() -> None:
    assert decode_offset_checkpoint(b"+000\n0\n") == OffsetCheckpoint(0, ())


@pytest.mark.req("SEG-CKP-002")
@pytest.mark.parametrize("count", [0, 1, 3, 2_147_483_647])
def test_count_of_entries(count: int) -> None:
    data = b"0\r\n%d\r\na 0 5\r\nb 0 6\r\n" % count
    assert refused(decode_offset_checkpoint, data) == ("SEG-CKP-002", "entry_count", 3)


@pytest.mark.req("SEG-CKP-002")
def test_count_is_not_negative() -> None:
    assert refused(decode_leader_epoch_checkpoint, b"0\n-1\n") == ("SEG-CKP-002", "entry_count", 2)


@pytest.mark.req("SEG-CKP-002")
def test_a_count_is_no_reason_to_take_memory() -> None:
    tracemalloc.start()
    refused(decode_offset_checkpoint, b"0\n2147483647\na 0 5\n")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 20


@pytest.mark.req("SEG-CKP-003")
@pytest.mark.parametrize(
    ("line", "field", "position"),
    [
        (b"\n", "topic", 4),
        (b"   \n", "topic", 4),
        (b" a 0 5\n", "topic", 4),
        (b"\ta 0 5\n", "topic", 4),
        (b"a\n", "partition", 5),
        (b"a \n", "partition", 5),
        (b"a 0\n", "offset", 7),
        (b"a 0 \r\n", "offset", 7),
        (b"a 0 5 6\n", "rest", 9),
        (b"a 0 5  b c d\n", "rest", 9),
    ],
)
def test_fields_of_an_offset_checkpoint(line: bytes, field: str, position: int) -> None:
    found = refused(decode_offset_checkpoint, b"0\n1\n" + line)
    assert found == ("SEG-CKP-003", f"entries[0].{field}", position)


@pytest.mark.req("SEG-CKP-003")
@pytest.mark.parametrize(
    ("line", "field"),
    [(b"\n", "epoch"), (b" 5 0\n", "epoch"), (b"5\n", "start_offset"), (b"5 0 0\n", "rest"), (b"5 0 x", "rest")],
)
def test_fields_of_a_leader_epoch_checkpoint(line: bytes, field: str) -> None:
    requirement, found, _ = refused(decode_leader_epoch_checkpoint, b"0\n2\n4 0\n" + line)
    assert (requirement, found) == ("SEG-CKP-003", f"entries[1].{field}")


@pytest.mark.req("SEG-CKP-003")
def test_a_blank_line_at_the_end() -> None:
    assert refused(decode_offset_checkpoint, b"0\n1\na 0 5\n\n") == ("SEG-CKP-003", "entries[1].topic", 10)


UNUSUAL_NUMBERS = [
    "x",
    "1e3",
    "1_000",
    "0x7",
    "7.0",
    "--7",
    "+",
    "9223372036854775808",
    "-9223372036854775809",
    "9" * 5000,
    "²",
    "\0",
    "7\u00a0",
    "\u2028",
    "\x85",
]


@pytest.mark.req("SEG-CKP-004")
@pytest.mark.parametrize(
    ("decode", "form", "field"),
    [
        (decode_offset_checkpoint, "{}\n0\n", "version"),
        (decode_offset_checkpoint, "0\n{}\n", "entry_count"),
        (decode_offset_checkpoint, "0\n1\na {} 5\n", "entries[0].partition"),
        (decode_offset_checkpoint, "0\n1\na 0 {}\n", "entries[0].offset"),
        (decode_leader_epoch_checkpoint, "0\n1\n{} 5\n", "entries[0].epoch"),
        (decode_leader_epoch_checkpoint, "0\n1\n5 {}\n", "entries[0].start_offset"),
    ],
)
@each_of("number", UNUSUAL_NUMBERS, ids=lambda text: ascii(text[:20]))
def test_numbers_that_are_none(decode: Callable[..., Any], form: str, field: str, number: str) -> None:
    requirement, found, position = refused(decode, form.format(number).encode())
    assert (requirement, found) == ("SEG-CKP-004", field)
    assert position in {form.index("{"), form.index("{") - 1}


@pytest.mark.req("SEG-CKP-004")
@pytest.mark.parametrize(
    "data",
    [
        b"2147483648\n0\n",
        b"0\n2147483648\n",
        b"0\n1\na 2147483648 5\n",
        b" 0\n0\n",
        b"0 \n0\n",
        b"0\n 0\n",
        b"0\n0\t\n",
    ],
)
def test_width_and_white_space(data: bytes) -> None:
    assert refused(decode_offset_checkpoint, data)[0] == "SEG-CKP-004"


@pytest.mark.req("SEG-CKP-004")
@pytest.mark.parametrize("data", [b"\n", b"\r\n0\n", b"0\n\n", b"\xef\xbb\xbf0\n0\n", bytes(100), b"\xff\xfe0\0"])
def test_first_lines_that_are_no_numbers(data: bytes) -> None:
    assert refused(decode_offset_checkpoint, data)[0] == "SEG-CKP-004"


@pytest.mark.req("SEG-CKP-004")
def test_the_greatest_and_smallest_numbers() -> None:
    data = b"0\n2\na 2147483647 9223372036854775807\nb -2147483648 -9223372036854775808\n"
    assert decode_offset_checkpoint(data).entries == (("a", 2**31 - 1, 2**63 - 1), ("b", -(2**31), -(2**63)))
    digits = "0\n1\n\N{ARABIC-INDIC DIGIT FIVE} +007\n".encode()
    assert decode_leader_epoch_checkpoint(digits).entries == ((5, 7),)


@pytest.mark.req("SEG-CKP-013")
@pytest.mark.parametrize("topic", [b"\xff", b"a\xc3", b"\xc0\x80", b"\xed\xa0\x80", b"\xf5\x80\x80\x80"])
def test_text_that_is_not_utf8(topic: bytes) -> None:
    assert refused(decode_offset_checkpoint, b"0\n1\n" + topic + b" 0 5\n") == ("SEG-CKP-013", "entries[0].topic", 4)


@pytest.mark.req("SEG-CKP-005")
@pytest.mark.parametrize("data", [b"", b"0", b"0\n", b"0\r", b"0\r\n", b"+0"])
def test_files_without_entries(data: bytes) -> None:
    assert decode_offset_checkpoint(data, AT) == OffsetCheckpoint(0, ())
    assert decode_leader_epoch_checkpoint(data, AT) == LeaderEpochCheckpoint(0, ())


@pytest.mark.req("SEG-CKP-005")
@pytest.mark.parametrize("name", [kind.value for kind in OFFSET_CHECKPOINT_KINDS])
def test_empty_checkpoints_are_no_finding(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"")
    assert list(verify(tmp_path)) == []


LINES = ["0", "2", "orders 0 371220", "orders 1 369000"]


@pytest.mark.req("SEG-CKP-006")
@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
@pytest.mark.parametrize("last", [True, False])
@pytest.mark.parametrize("space", [" ", "\t", "   ", " \t\v\f "])
def test_line_ends_and_white_space(end: str, last: bool, space: str) -> None:  # noqa: FBT001
    text = end.join(LINES) + (end if last else "")
    found = decode_offset_checkpoint(text.replace(" ", space).encode())
    assert found.entries == (("orders", 0, 371220), ("orders", 1, 369000))
    assert decode_offset_checkpoint(text.replace(" 371220", " 371220" + space).encode()) == found


@pytest.mark.req("SEG-CKP-006")
@pytest.mark.parametrize("separator", ["\u00a0", "\u2003", "\x1c", "\x85", "\u2028", "\0"])
def test_what_parts_neither_fields_nor_lines(separator: str) -> None:
    (entry,) = decode_offset_checkpoint(f"0\n1\na{separator}b 0 5\n".encode()).entries
    assert entry.topic == f"a{separator}b"


def test_topics_stay_whole() -> None:
    (entry,) = decode_offset_checkpoint(b"0\n1\n" + b"x" * 1000 + b" 0 5").entries
    assert entry.topic == "x" * 1000
    assert type(entry.topic) is str


topics = st.text(st.characters(exclude_characters=" \t\n\x0b\f\r", exclude_categories=["Cs"]), min_size=1)
int32s = st.integers(min_value=-(2**31), max_value=2**31 - 1)
int64s = st.integers(min_value=-(2**63), max_value=2**63 - 1)
spaces = st.text(st.sampled_from(" \t\x0b\f"), min_size=1, max_size=3)


@pytest.mark.req("SEG-CKP-002", "SEG-CKP-003", "SEG-CKP-004", "SEG-CKP-006")
@given(st.lists(st.tuples(topics, int32s, int64s), max_size=5), spaces, st.sampled_from(["\n", "\r", "\r\n"]))
def test_offset_checkpoints_come_back(entries: list[tuple[str, int, int]], space: str, end: str) -> None:
    lines = ["0", str(len(entries)), *(space.join(map(str, entry)) for entry in entries)]
    found = decode_offset_checkpoint(end.join(lines).encode())
    assert list(found.entries) == entries
    assert found.by_partition == {(topic, partition): offset for topic, partition, offset in entries}


def reread(data: bytes, fields: int) -> list[tuple[str, ...]] | None:
    """Return what the grammar of the chapter makes of a file, written down another way."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return None
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    lines = lines[:-1] if lines[-1] == "" else lines
    head = [parse_decimal(line, bits=32) for line in lines[:2]]
    if None in head or (head and head[0] != 0):
        return None
    rows = [tuple(word for word in line.translate(dict.fromkeys(b"\t\x0b\f", " ")).split(" ")) for line in lines[2:]]
    rows = [row[:1] + tuple(word for word in row[1:] if word) for row in rows]
    widths = (None, 32, 64)[-fields:]
    fine = all(
        len(row) == fields
        and row[0]
        and all(
            width is None or parse_decimal(word, bits=width) is not None
            for word, width in zip(row, widths, strict=True)
        )
        for row in rows
    )
    return rows if fine and (head[1] if len(head) > 1 else 0) == len(rows) else None


texts_like_checkpoints = st.one_of(
    st.text(st.sampled_from("012-+a \t\n\r"), max_size=30).map(str.encode),
    st.builds(lambda rest: b"0\n1\n" + rest.encode(), st.text(st.sampled_from("012-+a \t\n\r٣"), max_size=12)),
    st.binary(max_size=40),
)


@pytest.mark.req("SEG-CKP-001", "SEG-CKP-002", "SEG-CKP-003", "SEG-CKP-004", "SEG-CKP-005", "SEG-CKP-006")
@given(texts_like_checkpoints)
def test_the_grammar_decides(data: bytes) -> None:
    for decode, fields in ((decode_offset_checkpoint, 3), (decode_leader_epoch_checkpoint, 2)):
        try:
            found = [tuple(entry) for entry in decode(data, AT).entries]
        except FormatError as error:
            assert set(error.requirements) <= GRAMMAR  # noqa: PT017 - either outcome is fine
            assert reread(data, fields) is None
            continue
        rows = reread(data, fields)
        assert rows is not None
        numbers = [
            tuple(int(word) if number_of_word >= fields - 2 else word for number_of_word, word in enumerate(row))
            for row in rows
        ]
        assert found == numbers


# Offset checkpoints


@pytest.mark.req("SEG-CKP-008")
@pytest.mark.parametrize("name", [kind.value for kind in OFFSET_CHECKPOINT_KINDS])
@pytest.mark.parametrize(
    ("entries", "count"), [(b"a 0 5\na 1 5\nb 0 0\n", 0), (b"a 0 5\nb 0 5\na 0 6\n", 1), (b"a 0 -1\na 1 0\nb 0 1\n", 1)]
)
def test_one_entry_for_a_partition(tmp_path: Path, name: str, entries: bytes, count: int) -> None:
    (tmp_path / name).write_bytes(b"0\n3\n" + entries)
    findings = list(verify(tmp_path))
    assert [(one.requirement, one.severity.value) for one in findings] == [("SEG-CKP-008", "warning")] * count


def log_directory(path: Path, base: int, last: int) -> Path:
    """One partition with a record at each offset."""
    partition = path / "orders-0"
    partition.mkdir(parents=True)
    log = b"".join(batch(record(value=b"%d" % offset), base_offset=offset) for offset in range(base, last + 1))
    (partition / f"{base:020d}.log").write_bytes(log)
    return partition


@pytest.mark.req("SEG-CKP-010")
@pytest.mark.parametrize(
    ("base", "checkpoint", "start"),
    [
        (0, b"0\n1\norders 0 3\n", 3),
        (2, b"0\n1\norders 0 1\n", 2),
        (2, b"0\n1\norders 1 4\n", 2),
        (2, b"0\n1\norders 0 -1\n", 2),
        (2, None, 2),
        (2, b"", 2),
        (2, b"0\n2\norders 0 4\n", 2),
        (2, b"0\n2\norders 0 3\norders 0 4\n", 4),
    ],
)
def test_log_start_offset(tmp_path: Path, base: int, checkpoint: bytes | None, start: int) -> None:
    partition = log_directory(tmp_path, base, 5)
    if checkpoint is not None:
        (tmp_path / "log-start-offset-checkpoint").write_bytes(checkpoint)
    with open_partition(partition) as opened:
        assert opened.log_start_offset == start
        assert [found.offset for found in opened.records(on_gap=lambda _: None)] == list(range(start, 6))


def written(rows: list[str]) -> bytes:
    return f"0\n{len(rows)}\n{''.join(rows)}".encode()


WORDS = [
    b"0",
    b"1",
    b"2",
    b"\n",
    b"\r\n",
    b" ",
    b"orders",
    b"a.b-C",
    b"-",
    b"+1",
    b"007",
    b"\xc3\xa9",
    b"\xff",
    b"9" * 10,
]
ROWS = st.builds("{} {} {}\n".format, st.sampled_from(["orders", "a.b_c-D"]), st.integers(0), st.integers(0))


@given(st.one_of(st.lists(st.sampled_from(WORDS)).map(b"".join), st.lists(ROWS).map(written)))
def test_the_quick_reader_of_offset_checkpoints_says_nothing_else(data: bytes) -> None:
    found = simple_offsets(data)
    if found is not None:
        entries = decode_offset_checkpoint(data, AT).entries
        assert found == {(topic, partition): offset for topic, partition, offset in entries}


def test_what_brokers_write_is_read_quickly() -> None:
    data = b"0\n3\norders 0 3\n__consumer_offsets 49 123456789012345678\norders 0 4\n"
    assert simple_offsets(data) == {("orders", 0): 4, ("__consumer_offsets", 49): 123456789012345678}
    assert simple_offsets(b"0\n0\n") == {}
    assert simple_offsets(data[:-1]) is simple_offsets(data.replace(b"3", b"2", 1)) is simple_offsets(b"") is None


@pytest.mark.req("SEG-CKP-011")
@pytest.mark.parametrize(
    ("checkpoint", "point"),
    [
        (b"0\n1\norders 0 3\n", 3),
        (b"0\n1\norders 1 3\n", 0),
        (b"0\n1\norders-0 0 3\n", 0),
        (None, 0),
        (b"", 0),
        (b"0\n2\norders 0 3\n", 0),
        (b"1\n1\norders 0 3\n", 0),
        (b"\xff" * 10, 0),
    ],
)
def test_recovery_point(tmp_path: Path, checkpoint: bytes | None, point: int) -> None:
    log_directory(tmp_path, 0, 5)
    if checkpoint is not None:
        (tmp_path / "recovery-point-offset-checkpoint").write_bytes(checkpoint)
    (directory,) = open_log_directory(tmp_path).directories
    assert directory.recovery_point(("orders", 0)) == point


@pytest.mark.req("SEG-CKP-011")
@pytest.mark.parametrize(("point", "scanned"), [(0, (0, 3)), (2, (0, 3)), (3, (3,)), (5, (3,))])
def test_recovery_begins_where_the_point_is(tmp_path: Path, point: int, scanned: tuple[int, ...]) -> None:
    partition = log_directory(tmp_path, 0, 2)
    (partition / f"{3:020d}.log").write_bytes(batch(record(), base_offset=3))
    for base in (0, 3):
        (partition / f"{base:020d}.index").write_bytes(b"")
    (tmp_path / "recovery-point-offset-checkpoint").write_bytes(b"0\n1\norders 0 %d\n" % point)
    recovery = only_plan(tmp_path)
    assert recovery.plan.scanned == scanned


@pytest.mark.req("SEG-CKP-012")
@pytest.mark.parametrize(("offset", "expected"), [(5, []), (6, []), (7, ["SEG-CKP-012"]), (2**63 - 1, ["SEG-CKP-012"])])
@pytest.mark.parametrize("name", [kind.value for kind in OFFSET_CHECKPOINT_KINDS])
def test_not_above_the_log_end(tmp_path: Path, name: str, offset: int, expected: list[str]) -> None:
    log_directory(tmp_path, 0, 5)
    (tmp_path / name).write_bytes(b"0\n1\norders 0 %d\n" % offset)
    assert [one.requirement for one in verify(tmp_path) if "CKP" in one.requirement] == expected


# Leader epochs


@pytest.mark.req("SEG-CKP-007")
@pytest.mark.parametrize(
    ("entries", "fields"),
    [
        (b"0 0\n3 7\n", []),
        (b"5 10\n5 20\n", ["entries[1].epoch"]),
        (b"5 10\n4 20\n", ["entries[1].epoch"]),
        (b"5 10\n6 10\n", ["entries[1].start_offset"]),
        (b"5 10\n6 9\n", ["entries[1].start_offset"]),
        (b"-1 0\n5 9\n", ["entries[0].epoch"]),
        (b"0 -1\n5 9\n", ["entries[0].epoch"]),
    ],
)
def test_epochs_increase(tmp_path: Path, entries: bytes, fields: list[str]) -> None:
    partition = log_directory(tmp_path, 0, 20)
    (partition / "leader-epoch-checkpoint").write_bytes(b"0\n2\n" + entries)
    found = [one for one in verify(partition) if one.requirement == "SEG-CKP-007"]
    assert [one.location.field for one in found] == fields
    assert all(one.severity.value == "warning" for one in found)


# partition.metadata

METADATA_ID = "A" * 21 + "Q"


@pytest.mark.req("SEG-CKP-009")
@pytest.mark.parametrize(
    ("text", "version", "topic_id"),
    [
        (f"version: 0\ntopic_id: {METADATA_ID}", 0, METADATA_ID),
        (f"version: 0\r\ntopic_id: {METADATA_ID}\r\n", 0, METADATA_ID),
        (f"version: 0\rtopic_id: \t {METADATA_ID}\r", 0, METADATA_ID),
        (f"version:\t +0\ntopic_id: {METADATA_ID}\n", 0, METADATA_ID),
        (f"version: 7\ntopic_id: {METADATA_ID}\nmore: of it\n", 7, METADATA_ID),
        ("version: 0\ntopic_id: __--AAAAAAAAAAAAAAAAzw", 0, "__--AAAAAAAAAAAAAAAAzw"),
    ],
)
def test_partition_metadata(text: str, version: int, topic_id: str) -> None:
    assert decode_partition_metadata(text.encode(), AT) == PartitionMetadata(version, topic_id)


@pytest.mark.req("SEG-CKP-009")
@each_of(
    ("text", "field", "position"),
    [
        ("", "version", 0),
        ("\n", "version", 0),
        ("0\n", "version", 0),
        (f"topic_id: {METADATA_ID}\nversion: 0\n", "version", 0),
        (f"version:0\ntopic_id: {METADATA_ID}", "version", 0),
        (f"version: -1\ntopic_id: {METADATA_ID}", "version", 0),
        (f"version: x\ntopic_id: {METADATA_ID}", "version", 0),
        (f"version: 0 \ntopic_id: {METADATA_ID}", "version", 0),
        (f"version: 2147483648\ntopic_id: {METADATA_ID}", "version", 0),
        (f" version: 0\ntopic_id: {METADATA_ID}", "version", 0),
        ("version: 0", "topic_id", 10),
        ("version: 0\n", "topic_id", 11),
        ("version: 0\n\n", "topic_id", 11),
        (f"version: 0\n\ntopic_id: {METADATA_ID}", "topic_id", 11),
        ("version: 0\ntopic_id: ", "topic_id", 11),
        ("version: 0\ntopic_id: " + "A" * 21, "topic_id", 11),
        ("version: 0\ntopic_id: " + "B" * 23, "topic_id", 11),
        ("version: 0\ntopic_id: " + METADATA_ID + "==", "topic_id", 11),
        ("version: 0\ntopic_id: " + METADATA_ID + " ", "topic_id", 11),
        ("version: 0\ntopic_id: +/++" + "A" * 18, "topic_id", 11),
        ("version: 0\ntopic_id: " + "A" * 22, "topic_id", 11),
        ("version: 0\ntopic_id: " + "A" * 21 + "P", "topic_id", 11),
        ("version: 0\ntopic_id: " + "é" * 22, "topic_id", 11),
    ],
)
def test_partition_metadata_refused(text: str, field: str, position: int) -> None:
    assert refused(decode_partition_metadata, text.encode()) == ("SEG-CKP-009", field, position)


@pytest.mark.req("SEG-CKP-009")
def test_a_validator_looks_at_partition_metadata(tmp_path: Path) -> None:
    partition = log_directory(tmp_path, 0, 1)
    (partition / "partition.metadata").write_bytes(b"version: 0\ntopic_id: x")
    (finding,) = (one for one in verify(partition) if one.severity.value == "error")
    assert (finding.requirement, finding.location.path) == ("SEG-CKP-009", "partition.metadata")


# Whatever the bytes

SAMPLES = [
    "\n".join(LINES).encode(),
    b"0\n2\n5 0\n6 371220\n",
    f"version: 0\ntopic_id: {METADATA_ID}".encode(),
]


@pytest.mark.parametrize(("decode", "sample"), list(zip(DECODERS, SAMPLES, strict=True)))
def test_every_change_of_a_byte(decode: Callable[..., Any], sample: bytes) -> None:
    for number_of_word in range(len(sample)):
        changed = [
            sample[:number_of_word] + bytes([byte]) + sample[number_of_word + 1 :]
            for byte in (0, 0x0A, 0x7F, 0x80, 0xFF)
        ]
        flipped = [
            sample[:number_of_word] + bytes([sample[number_of_word] ^ 1 << bit]) + sample[number_of_word + 1 :]
            for bit in range(8)
        ]
        for data in [sample[:number_of_word], *changed, *flipped]:
            result_or_refusal(decode, data)


@pytest.mark.parametrize("decode", DECODERS)
@given(st.binary())
def test_any_bytes(decode: Callable[..., Any], data: bytes) -> None:
    result_or_refusal(decode, data)
    assert outcome(decode, data) == outcome(decode, memoryview(data))


def outcome(decode: Callable[..., Any], data: bytes | memoryview) -> object:
    try:
        return decode(data)
    except FormatError as error:
        return str(error)


def result_or_refusal(decode: Callable[..., Any], data: bytes) -> None:
    found = outcome(decode, data)
    if isinstance(found, str):
        assert found.isprintable()
    else:
        assert isinstance(found, (OffsetCheckpoint, LeaderEpochCheckpoint, PartitionMetadata))


def test_a_large_checkpoint() -> None:
    data = b"0\n2000\n" + b"".join(b"topic-%d 0 %d\n" % (number, number) for number in range(2000))
    assert [entry.offset for entry in decode_offset_checkpoint(data).entries] == list(range(2000))


# Declarations and brokers


def test_declared_fields() -> None:
    assert [row.name for row in layout(schema.OffsetCheckpoint)] == ["version", "entry_count", "entries"]
    assert [row.type for row in layout(schema.OffsetCheckpointEntry)] == [
        "word",
        "decimal int32",
        "decimal int64",
        "rest of line",
    ]
    assert all(row.doc and row.requirements for row in layout(schema.PartitionMetadata))


@pytest.mark.req("SEG-CKP-001", "SEG-CKP-002", "SEG-CKP-003", "SEG-CKP-004", "SEG-CKP-006")
def test_every_checkpoint_that_a_broker_left() -> None:
    found = texts(*(kind.value for kind in OFFSET_CHECKPOINT_KINDS))
    assert len(found) > 20
    for _, text in found:
        entries = decode_offset_checkpoint(text.encode()).entries
        assert [f"{topic} {partition} {offset}" for topic, partition, offset in entries] == text.splitlines()[2:]
    for _, text in texts("leader-epoch-checkpoint"):
        starts = decode_leader_epoch_checkpoint(text.encode()).entries
        assert [f"{epoch} {start}" for epoch, start in starts] == text.splitlines()[2:]


@pytest.mark.req("SEG-CKP-009")
def test_every_partition_metadata_that_a_broker_left() -> None:
    found = texts("partition.metadata")
    assert len(found) > 10
    for _, text in found:
        metadata = decode_partition_metadata(text.encode())
        assert text == f"version: {metadata.version}\ntopic_id: {metadata.topic_id}"

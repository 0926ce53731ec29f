"""File and directory names: tables of odd ones, every name that a broker left, and properties."""

from __future__ import annotations

import contextlib
import pickle
import re
from typing import TYPE_CHECKING, Any, TypeVar

import pytest
from helpers.broker_names import directory_names, file_names
from helpers.walking import each_of
from hypothesis import given
from hypothesis import strategies as st

from seglog_format.errors import FormatError, UsageError
from seglog_format.names import (
    FIXED_NAMES,
    NO_OFFSET,
    NUMBERED_KINDS,
    STATES,
    TEMPORARY_SUFFIXES,
    FileKind,
    FileName,
    PartitionDirectoryName,
    is_decimal,
    is_legal_topic,
    parse_decimal,
    parse_file_name,
    parse_partition_directory,
    partition_directory_name,
    printable,
    segment_file_name,
)
from seglog_format.schema import partition_directory as schema
from seglog_format.schema.fields import SchemaError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

ARABIC = "٠١٢٣٤٥٦٧٨٩"
UUID = "5a1c3bb2d34e4b59a1a2a1d0c3b4e5f6"

T = TypeVar("T")


def outcome(parse: Callable[[str], T], name: str) -> T | str:
    """Return the result, or the text of the error, which can always be shown."""
    try:
        return parse(name)
    except FormatError as error:
        text = str(error)
    assert text.isprintable()
    return text


# Numbers

NUMBERS: list[tuple[str, int | None]] = [
    ("0", 0),
    ("7", 7),
    ("+7", 7),
    ("-7", -7),
    ("-0", 0),
    ("007", 7),
    ("2147483647", 2**31 - 1),
    ("-2147483648", -(2**31)),
    ("2147483648", None),
    ("-2147483649", None),
    ("9" * 5000, None),
    ("0" * 5000 + "9", 9),
    (ARABIC[7], 7),
    ("۱۲", 12),
    ("๓", 3),
    ("1٢", 12),
    ("", None),
    ("+", None),
    ("+-7", None),
    ("1_000", None),
    (" 7", None),
    ("7 ", None),
    ("7\n", None),
    ("1e3", None),
    ("0x7", None),
    ("7.0", None),
    ("²", None),
    ("Ⅶ", None),
    ("七", None),
    ("\U0001d7d7", None),  # a digit outside the Basic Multilingual Plane
    ("\udc80", None),
    ("7\0", None),
]


@each_of(("text", "value"), NUMBERS)
def test_decimal_numbers(text: str, value: int | None) -> None:
    assert parse_decimal(text, bits=32) == value


@pytest.mark.parametrize("bits", [32, 64])
def test_limits_of_decimal_numbers(bits: int) -> None:
    limit = 1 << bits - 1
    assert parse_decimal(str(limit - 1), bits=bits) == limit - 1
    assert parse_decimal(str(-limit), bits=bits) == -limit
    assert parse_decimal(str(limit), bits=bits) is None
    assert parse_decimal(str(-limit - 1), bits=bits) is None


@given(st.integers(min_value=-(2**70), max_value=2**70))
def test_every_integer_is_decimal(value: int) -> None:
    assert is_decimal(str(value))
    assert parse_decimal(str(value), bits=64) == (value if -(2**63) <= value < 2**63 else None)


@given(st.text())
def test_decimal_numbers_of_any_text(text: str) -> None:
    assert parse_decimal(text, bits=64) is None or is_decimal(text)


# File names

REFUSED = [
    ("1e3.log", "SEG-PDR-005"),
    ("x.log", "SEG-PDR-005"),
    (".log", "SEG-PDR-005"),
    ("..log", "SEG-PDR-005"),
    ("5 .log", "SEG-PDR-005"),
    ("5_0.log", "SEG-PDR-005"),
    ("5.0.log", "SEG-PDR-005"),
    ("\n5.log", "SEG-PDR-005"),
    ("\udc80.index", "SEG-PDR-005"),
    ("orders.timeindex", "SEG-PDR-005"),
    (".txnindex", "SEG-PDR-005"),
    ("a.snapshot", "SEG-PDR-005"),
    ("x.log.swap", "SEG-PDR-005"),
    ("x.log.cleaned", "SEG-PDR-005"),
    ("9" * 5000 + ".log", "SEG-PDR-007"),
    ("9223372036854775808.log", "SEG-PDR-007"),
    ("18446744073709551616.log", "SEG-PDR-007"),
    ("-5.log", "SEG-PDR-007"),
    ("99999999999999999999-0000000001.checkpoint", "SEG-PDR-007"),
    ("87-1.checkpoint", "SEG-PDR-015"),
    ("00000000000000000087-000000000x.checkpoint", "SEG-PDR-015"),
    ("00000000000000000087-9999999999.checkpoint", "SEG-PDR-015"),
    ("00000000000000000087-0000000001-77.checkpoint", "SEG-PDR-015"),
    ("00000000000000000087.checkpoint", "SEG-PDR-015"),
]


@pytest.mark.req("SEG-PDR-005", "SEG-PDR-007", "SEG-PDR-015")
@each_of(("name", "requirement"), REFUSED, ids=lambda value: ascii(value[:30]))
def test_refused_file_names(name: str, requirement: str) -> None:
    with pytest.raises(FormatError) as caught:
        parse_file_name(name)
    assert caught.value.requirements == (requirement,)
    assert caught.value.location.path == printable(name)
    assert caught.value.location.field
    assert str(caught.value).isprintable()


LEFT_ALONE = [
    "",
    ".",
    "..",
    "log",
    "notes.txt",
    "00000000000000000000",
    "00000000000000000000.LOG",
    "00000000000000000000.log ",
    "00000000000000000000.log\n",
    "00000000000000000000.log.bak",
    "00000000000000000000.log.deleted.deleted",
    "00000000000000000000.kafka",
    "x.log.deleted",
    "x.log.tmp",
    "x.checkpoint",
    "87-1.checkpoint.deleted",
    ".deleted",
    "a.swap",
    "a.cleaned",
    "leader-epoch-checkpoint2",
    "-offset-checkpoint",
    "\x1b[31m",
    "\udcff",
]


@pytest.mark.req("SEG-PDR-011")
@each_of("name", LEFT_ALONE)
def test_names_that_say_nothing(name: str) -> None:
    assert parse_file_name(name) is None


@pytest.mark.req("SEG-PDR-018")
@pytest.mark.parametrize(
    ("digits", "offset"),
    [
        ("0", 0),
        ("368769", 368769),
        ("0000000000000368769", 368769),
        ("0" * 30 + "7", 7),
        ("+7", 7),
        ("-0", 0),
        (ARABIC[0] * 19 + ARABIC[7], 7),
        ("9223372036854775807", 2**63 - 1),
    ],
)
@pytest.mark.parametrize("kind", NUMBERED_KINDS)
def test_any_number_of_digits_of_any_script(digits: str, offset: int, kind: FileKind) -> None:
    name = parse_file_name(digits + kind.value)
    assert name == FileName(offset, kind, "", digits)
    assert not name.is_canonical


@pytest.mark.parametrize(
    ("digits", "twenty", "ascii_only"),
    [
        ("0" * 20, True, True),
        ("0" * 19, False, True),
        ("0" * 21, False, True),
        ("+" + "0" * 19, False, True),
        (ARABIC[0] * 20, True, False),
        (ARABIC[0] * 19, False, False),
    ],
)
def test_what_is_odd_stays_visible(digits: str, twenty: bool, ascii_only: bool) -> None:  # noqa: FBT001
    name = parse_file_name(digits + ".log")
    assert name is not None
    assert (name.has_twenty_digits, name.has_ascii_digits) == (twenty, ascii_only)
    assert name.is_canonical == (twenty and ascii_only)


@pytest.mark.parametrize("suffix", ["", *TEMPORARY_SUFFIXES])
def test_endings_behind_a_name(suffix: str) -> None:
    assert parse_file_name("0" * 20 + ".log" + suffix) == FileName(0, FileKind.LOG, suffix, "0" * 20)
    assert parse_file_name("leader-epoch-checkpoint" + suffix) == FileName(
        NO_OFFSET, FileKind.LEADER_EPOCH_CHECKPOINT, suffix
    )


@pytest.mark.parametrize("name", FIXED_NAMES)
def test_fixed_names(name: str) -> None:
    parsed = parse_file_name(name)
    assert parsed == FileName(NO_OFFSET, FIXED_NAMES[name])
    assert parsed.is_canonical
    assert FIXED_NAMES[name].value == name


@pytest.mark.req("SEG-PDR-015")
def test_metadata_snapshots() -> None:
    name = "00000000000000000087-0000000001.checkpoint"
    digits = "0" * 18 + "87"
    assert parse_file_name(name) == FileName(87, FileKind.METADATA_SNAPSHOT, "", digits, 1)
    assert parse_file_name(name + ".deleted") == FileName(87, FileKind.METADATA_SNAPSHOT, ".deleted", digits, 1)
    half_written = "00000000000000000087-0000000001-4711.checkpoint.part"
    assert parse_file_name(half_written) == FileName(87, FileKind.METADATA_SNAPSHOT, ".part", digits, 1)


@given(st.text(), st.sampled_from(["", *(kind.value for kind in FileKind)]), st.sampled_from(["", *TEMPORARY_SUFFIXES]))
def test_file_names_of_any_text(stem: str, end: str, suffix: str) -> None:
    name = stem + end + suffix
    parsed = outcome(parse_file_name, name)
    assert parsed is None or isinstance(parsed, str) or name.endswith(parsed.suffix)


@pytest.mark.req("SEG-PDR-005")
@given(
    st.integers(min_value=0, max_value=2**63 - 1),
    st.sampled_from(NUMBERED_KINDS),
    st.sampled_from(["", *TEMPORARY_SUFFIXES]),
)
def test_canonical_names_come_back(offset: int, kind: FileKind, suffix: str) -> None:
    name = segment_file_name(offset, kind, suffix)
    assert re.fullmatch(r"[0-9]{20}\.[a-z.]+", name)
    parsed = parse_file_name(name)
    assert parsed == FileName(offset, kind, suffix, name[:20])
    assert parsed.is_canonical


@pytest.mark.parametrize(
    ("make", "arguments"),
    [
        (segment_file_name, (-1, FileKind.LOG)),
        (segment_file_name, (2**63, FileKind.LOG)),
        (segment_file_name, (0, FileKind.LOCK)),
        (partition_directory_name, ("", 0)),
        (partition_directory_name, ("t", -1)),
        (partition_directory_name, ("t", 2**31)),
        (partition_directory_name, ("t", "0")),
        (partition_directory_name, ("t", 1.5)),
        (partition_directory_name, ("t", 0, UUID, "old")),
        (partition_directory_name, ("t", 0, "", "delete")),
        (partition_directory_name, ("t", 0, UUID, "")),
    ],
)
def test_names_that_cannot_be_made(make: Any, arguments: tuple[Any, ...]) -> None:  # noqa: ANN401
    with pytest.raises(UsageError):
        make(*arguments)


# Directory names

DIRECTORIES = [
    ("orders-0", ("orders", 0, "", "")),
    ("launch-info-3", ("launch-info", 3, "", "")),
    ("orders--1", ("orders-", 1, "", "")),
    ("--0", ("-", 0, "", "")),
    ("orders-2147483647", ("orders", 2**31 - 1, "", "")),
    ("orders-delete-0", ("orders-delete", 0, "", "")),
    ("orders-007", ("orders", 7, "", "")),
    ("orders-+7", ("orders", 7, "", "")),
    ("orders-" + ARABIC[7], ("orders", 7, "", "")),
    ("größe-0", ("größe", 0, "", "")),
    ("order book-0", ("order book", 0, "", "")),
    ("a\nb-0", ("a\nb", 0, "", "")),
    ("\udc80-1", ("\udc80", 1, "", "")),
    ("x" * 5000 + "-1", ("x" * 5000, 1, "", "")),
    (f"orders-0.{UUID}-delete", ("orders", 0, UUID, "delete")),
    (f"orders-0.{UUID}-future", ("orders", 0, UUID, "future")),
    (f"orders-0.{UUID}-stray", ("orders", 0, UUID, "stray")),
    ("a.b-c.d-5.x-delete", ("a.b-c.d", 5, "x", "delete")),
    ("orders-0.a-b-delete", ("orders", 0, "a-b", "delete")),
    ("__cluster_metadata-0", ("__cluster_metadata", 0, "", "")),
]


@pytest.mark.req("SEG-PDR-001", "SEG-PDR-003")
@each_of(("name", "parts"), DIRECTORIES, ids=lambda value: ascii(value)[:40])
def test_directory_names(name: str, parts: tuple[str, int, str, str]) -> None:
    parsed = parse_partition_directory(name)
    assert (parsed.topic, parsed.partition, parsed.unique, parsed.state) == parts
    assert parsed.topic_partition == parts[:2]
    assert str(parsed) == name


REFUSED_DIRECTORIES = [
    ("", "SEG-PDR-001"),
    ("-", "SEG-PDR-001"),
    ("-0", "SEG-PDR-001"),
    ("orders", "SEG-PDR-001"),
    ("orders-", "SEG-PDR-001"),
    ("orders_0", "SEG-PDR-001"),
    ("lost+found", "SEG-PDR-001"),
    ("orders-x", "SEG-PDR-001"),
    ("orders-0 ", "SEG-PDR-001"),
    ("orders-0\n", "SEG-PDR-001"),
    ("orders-1_0", "SEG-PDR-001"),
    ("orders-1e3", "SEG-PDR-001"),
    ("orders-2147483648", "SEG-PDR-001"),
    ("orders-" + "9" * 5000, "SEG-PDR-001"),
    ("orders-\udc80", "SEG-PDR-001"),
    (f"orders.{UUID}-delete", "SEG-PDR-001"),
    (f"orders-x.{UUID}-future", "SEG-PDR-001"),
    ("orders-0.a.b-stray", "SEG-PDR-001"),
    ("-delete", "SEG-PDR-003"),
    ("orders-delete", "SEG-PDR-003"),
    ("orders-0-delete", "SEG-PDR-003"),
    ("orders-0.-delete", "SEG-PDR-003"),
    (f".{UUID}-stray", "SEG-PDR-003"),
    (f"order book-0.{UUID}-future", "SEG-PDR-003"),
    (f"orders\n-0.{UUID}-delete", "SEG-PDR-003"),
]


@pytest.mark.req("SEG-PDR-001", "SEG-PDR-003")
@each_of(("name", "requirement"), REFUSED_DIRECTORIES, ids=lambda value: ascii(value)[:40])
def test_refused_directory_names(name: str, requirement: str) -> None:
    with pytest.raises(FormatError) as caught:
        parse_partition_directory(name)
    assert caught.value.requirements == (requirement,)
    assert caught.value.location.path == printable(name)
    assert str(caught.value).isprintable()


@given(st.text(), st.sampled_from(["", "-0", *(f".{UUID}-{state}" for state in STATES)]))
def test_directory_names_of_any_text(start: str, end: str) -> None:
    parsed = outcome(parse_partition_directory, start + end)
    if isinstance(parsed, str):
        return
    assert str(parsed) == start + end
    assert parsed.topic
    assert 0 <= parsed.partition < 2**31


topics = st.text(st.sampled_from("abz09._-"), min_size=1, max_size=249).filter(lambda topic: topic not in {".", ".."})
uniques = st.text(st.sampled_from("0123456789abcdef"), min_size=32, max_size=32)


@pytest.mark.req("SEG-PDR-001", "SEG-PDR-003")
@given(topics, st.integers(min_value=0, max_value=2**31 - 1), uniques, st.sampled_from(["", *STATES]))
def test_directory_names_come_back(topic: str, partition: int, unique: str, state: str) -> None:
    name = partition_directory_name(topic, partition, unique if state else "", state)
    parsed = parse_partition_directory(name)
    assert parsed.has_plain_partition
    assert (parsed.partition, parsed.state) == (partition, state)
    assert topic.startswith(parsed.topic)
    assert parsed.topic == topic or parsed.is_topic_cut


def test_long_topics_lose_their_end() -> None:
    for state, size in [("delete", 255), ("stray", 255), ("future", 249 + 2 + 33 + 7)]:
        name = partition_directory_name("t" * 249, 0, UUID, state)
        assert len(name) == size
        assert name.endswith(f"-0.{UUID}-{state}")
        assert parse_partition_directory(name).is_topic_cut == (state != "future")


@pytest.mark.parametrize(
    ("topic", "is_legal"),
    [
        ("a", True),
        ("A.b_c-0", True),
        ("...", True),
        ("x" * 249, True),
        ("x" * 250, False),
        ("", False),
        (".", False),
        ("..", False),
        ("a b", False),
        ("a\n", False),
        ("ä", False),
        ("a/b", False),
    ],
)
def test_legal_topics(topic: str, is_legal: bool) -> None:  # noqa: FBT001
    assert is_legal_topic(topic) == is_legal


# What is shown

SHOWN = [
    ("orders-0", "orders-0"),
    ("größe", "größe"),
    ("a\nb", r"a\nb"),
    ("\x1b[31m", r"\x1b[31m"),
    ("\udc80", r"\udc80"),
    ("\u202e", r"\u202e"),
    ("\0", r"\x00"),
]


@pytest.mark.req("SEG-PDR-027")
@pytest.mark.parametrize(("text", "shown"), SHOWN, ids=ascii)
def test_printable(text: str, shown: str) -> None:
    assert printable(text) == shown


def test_printable_is_short() -> None:
    assert printable("x" * 1000, 10) == "x" * 10 + "…"


def test_errors_travel_between_processes() -> None:
    with pytest.raises(FormatError) as caught:
        parse_file_name("x.log")
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)  # noqa: S301 - our own


# Brokers and declarations


def test_names_of_broker_files() -> None:
    for name in file_names():
        parsed = parse_file_name(name)
        assert parsed is not None, name
        assert parsed.is_canonical, name
        assert parsed.suffix in {"", ".deleted"}, name


def test_names_of_broker_directories() -> None:
    for name in directory_names():
        parsed = parse_partition_directory(name)
        topic, _, number = name.rpartition("-")
        assert parsed == PartitionDirectoryName(topic, int(number), digits=number)
        assert is_legal_topic(parsed.topic), name
        assert partition_directory_name(*parsed.topic_partition) == name


def declared(declaration: Any, name: str) -> dict[str, Any] | None:  # noqa: ANN401
    try:
        found = declaration.parse(name.encode("utf-8", "surrogateescape"))
    except SchemaError:
        return None
    return {field: value for field, value in found.items() if not field.startswith("_")}


def written(name: str) -> dict[str, Any] | None:
    """Return the parts of a segment file name, if a broker would write it so."""
    with contextlib.suppress(FormatError):
        parsed = parse_file_name(name)
        usual = {"", ".deleted", ".cleaned", ".swap"}
        if parsed and parsed.kind in NUMBERED_KINDS and parsed.is_canonical and parsed.suffix in usual:
            return {"base_offset": parsed.base_offset, "kind": parsed.kind.value, "suffix": parsed.suffix}
    return None


TABLE = [name for name, _ in REFUSED] + LEFT_ALONE + ["0.log", "+0000000000000000005.log", ARABIC[0] * 20 + ".log"]


@pytest.mark.req("SEG-PDR-005", "SEG-PDR-007")
@pytest.mark.parametrize("names", [TABLE, file_names()], ids=["table", "brokers"])
def test_declared_file_names_agree(names: Sequence[str]) -> None:
    for name in names:
        assert declared(schema.SegmentFileName, name) == written(name), name


@given(
    st.text(st.sampled_from("019.logindexsapt\n-" + ARABIC[0]), max_size=30),
    st.sampled_from(["", ".log", ".index.swap"]),
)
def test_declared_file_names_agree_on_any_text(stem: str, end: str) -> None:
    assert declared(schema.SegmentFileName, stem + end) == written(stem + end)


def written_snapshot(name: str) -> dict[str, Any] | None:
    """Return the parts of a metadata snapshot's name, if a broker would write it so."""
    with contextlib.suppress(FormatError):
        parsed = parse_file_name(name)
        if parsed and parsed.kind is FileKind.METADATA_SNAPSHOT:
            parts = {"end_offset": parsed.base_offset, "epoch": parsed.epoch}
            return parts | {"kind": ".checkpoint", "suffix": parsed.suffix}
    return None


@pytest.mark.req("SEG-PDR-015", "SEG-PDR-007")
@pytest.mark.parametrize("names", [TABLE, file_names()], ids=["table", "brokers"])
def test_declared_snapshot_names_agree(names: Sequence[str]) -> None:
    for name in names:
        assert declared(schema.MetadataSnapshotFileName, name) == written_snapshot(name), name


@pytest.mark.req("SEG-PDR-001", "SEG-PDR-002", "SEG-PDR-004")
@each_of(
    "name",
    [*(name for name, _ in DIRECTORIES), *(name for name, _ in REFUSED_DIRECTORIES), *directory_names()],
    ids=lambda name: ascii(name[:40]),
)
def test_declared_directory_names_agree(name: str) -> None:
    found = declared(schema.PartitionDirectoryName, name)
    try:
        parsed = parse_partition_directory(name)
    except FormatError:
        assert found is None
        return
    usual = is_legal_topic(parsed.topic) and parsed.has_plain_partition and parsed.unique in {"", UUID}
    parts = {"topic": parsed.topic, "partition": parsed.partition, "unique": parsed.unique, "state": parsed.state}
    assert found == (parts if usual else None)

"""The grammars of text files in the chapters accept exactly what the decoders accept (chapters 11, 47 and 51)."""

from __future__ import annotations

import json
import re
import tarfile
import unicodedata
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Final

import pytest
from abnf import Node, ParseError, Rule
from helpers.broker_names import texts
from helpers.support import REPOSITORY
from helpers.tier_objects import AivenSegment
from helpers.walking import each_of
from hypothesis import example, given, settings
from hypothesis import strategies as st

from seglog_format.codec.checkpoints import (
    decode_leader_epoch_checkpoint,
    decode_offset_checkpoint,
    decode_partition_metadata,
)
from seglog_format.errors import FormatError, Location
from seglog_format.names import parse_decimal
from seglog_format.schema.text import properties
from seglog_format.tier.layouts import layout_named, read_manifest

if TYPE_CHECKING:
    from collections.abc import Callable

BLOCK: Final = re.compile(r"^```abnf\n(.*?)^```", re.MULTILINE | re.DOTALL)
AT: Final = Location("some/file")


def grammar(chapter: str) -> type[Rule]:
    """Return the rules that the blocks of a chapter define."""

    class Grammar(Rule):
        pass

    text = (REPOSITORY / "spec" / f"{chapter}.md").read_text(encoding="utf-8")
    joined = "".join(BLOCK.findall(text))
    Grammar.load_grammar(joined.replace("\n", "\r\n"))
    return Grammar


CHECKPOINTS: Final = grammar("51-checkpoints")
PROPERTIES: Final = grammar("11-log-directory")
OBJECTS: Final = grammar("47-tier-layouts")


def parsed(rules: type[Rule], name: str, text: str) -> Node | None:
    """Return what a rule makes of a whole text; None if it does not accept it."""
    try:
        return rules(name).parse_all(text)
    except ParseError:
        return None


def found(node: Node, name: str) -> list[str]:
    """Return the texts of all parts of a name, in order."""
    if node.name == name:
        return [node.value]
    return [text for child in node.children for text in found(child, name)]


def by_grammar(name: str, fields: tuple[tuple[str, int], ...], data: bytes) -> list[tuple[object, ...]] | None:
    """Return the entries of a checkpoint by its grammar and the three conditions beside it; None if it is refused."""
    node = parsed(CHECKPOINTS, name, data.decode("utf-8", "surrogateescape"))
    if node is None:
        return None
    numbers = {field: [parse_decimal(text, bits=bits) for text in found(node, field)] for field, bits in fields}
    versions, counts = ([parse_decimal(text, bits=32) for text in found(node, part)] for part in ("version", "count"))
    columns = [*([found(node, "topic")] if name == "offset-checkpoint" else []), *numbers.values()]
    entries = list(zip(*columns, strict=True))
    fits = all(number is not None for column in numbers.values() for number in column)
    if fits and versions in ([], [0]) and counts in ([], [len(entries)]):
        return entries
    return None


def by_decoder(decode: Callable[[bytes], list[tuple[object, ...]]], data: bytes) -> list[tuple[object, ...]] | None:
    """Return the entries that a decoder finds; None if it refuses the file."""
    try:
        return decode(data)
    except FormatError:
        return None


def offsets(data: bytes) -> list[tuple[object, ...]]:
    return [(entry.topic, entry.partition, entry.offset) for entry in decode_offset_checkpoint(data, AT).entries]


def epochs(data: bytes) -> list[tuple[object, ...]]:
    return [(entry.epoch, entry.start_offset) for entry in decode_leader_epoch_checkpoint(data, AT).entries]


OFFSET_FIELDS: Final = (("partition", 32), ("offset", 64))
EPOCH_FIELDS: Final = (("epoch", 32), ("start-offset", 64))

SPACES: Final = st.text(" \t\v\f", min_size=0, max_size=3)
ENDS: Final = st.sampled_from(["\n", "\r", "\r\n", "\n\n", "", "\u2028", "\x85"])
NUMBERS: Final = st.one_of(
    st.integers(-(2**63) - 1, 2**63).map(str),
    st.sampled_from(["0", "1", "2", "+7", "-1", "007", "\u0667", "1e3", "", "2147483648", "\U0001d7d8"]),
)
TOPICS: Final = st.text(st.characters(exclude_categories=["Cs"]), max_size=4)
LINES: Final = st.lists(
    st.one_of(
        st.tuples(TOPICS, SPACES, NUMBERS, SPACES, NUMBERS, SPACES),
        st.tuples(NUMBERS, SPACES, NUMBERS, SPACES),
    ).map("".join),
    max_size=3,
)


@st.composite
def checkpoint_files(draw: st.DrawFn) -> bytes:
    """Draw a checkpoint file that is nearly one: mostly the right version, count and fields."""
    lines = draw(LINES)
    version = draw(st.one_of(st.just("0"), NUMBERS))
    count = draw(st.one_of(st.just(str(len(lines))), NUMBERS))
    whole = "".join(line + draw(ENDS) for line in [version, count, *lines])
    return whole.encode()[: draw(st.one_of(st.none(), st.integers(0, 40)))]


@pytest.mark.req("SEG-CKP-003", "SEG-CKP-004", "SEG-CKP-005", "SEG-CKP-006")
@given(checkpoint_files())
@example(b"")
@example(b"0")
@example(b"0\n1\n 0 5")
@example(b"0\r\n2\rorders  \t0 1\norders 1 2  ")
@example(b"0\n1\n\xff 0 0\n")
def test_a_checkpoint_of_offsets_is_what_the_grammar_and_the_decoder_accept(data: bytes) -> None:
    assert by_grammar("offset-checkpoint", OFFSET_FIELDS, data) == by_decoder(offsets, data)


@pytest.mark.req("SEG-CKP-003", "SEG-CKP-004", "SEG-CKP-005", "SEG-CKP-006")
@given(checkpoint_files())
@example(b"0\n1\n5 0")
@example(b"0\n1\n\n")
@example(b"0\n1\n 5 0\n")
def test_a_checkpoint_of_epochs_is_what_the_grammar_and_the_decoder_accept(data: bytes) -> None:
    assert by_grammar("epoch-checkpoint", EPOCH_FIELDS, data) == by_decoder(epochs, data)


ZERO_ID: Final = re.compile("A{21}[A-P]")


def topic_id_by_grammar(data: bytes) -> bool:
    node = parsed(CHECKPOINTS, "partition-metadata", data.decode("utf-8", "surrogateescape"))
    if node is None:
        return False
    (version,), (topic_id,) = found(node, "version"), found(node, "topic-id")
    number = parse_decimal(version, bits=32)
    return number is not None and number >= 0 and not ZERO_ID.fullmatch(topic_id)


@pytest.mark.req("SEG-CKP-009")
@given(
    st.tuples(
        st.sampled_from(["version:", "Version:", "version"]),
        SPACES,
        NUMBERS,
        ENDS,
        st.sampled_from(["topic_id:", "topic_id", "topic-id:"]),
        SPACES,
        st.one_of(
            st.text("AQZaz09_-", min_size=21, max_size=23), st.sampled_from(["A" * 22, "A" * 21 + "Q", "A" * 20 + "=="])
        ),
        ENDS,
        st.text(max_size=3),
    ).map("".join)
)
@example("version: 0\ntopic_id: " + "A" * 21 + "Q")
@example("version: \u0667\rtopic_id:\t" + "A" * 21 + "Q\r\nmore: 1")
@example("version: 0\ntopic_id: " + "A" * 22)
def test_partition_metadata_is_what_the_grammar_and_the_decoder_accept(text: str) -> None:
    data = text.encode("utf-8", "surrogateescape" if text.isprintable() else "replace")
    try:
        decode_partition_metadata(data, AT)
        accepted = True
    except FormatError:
        accepted = False
    assert topic_id_by_grammar(data) == accepted


PIECES: Final = [
    "a",
    "b c",
    "=",
    ":",
    " ",
    "\t",
    "#",
    "!",
    "\\",
    "\\\n",
    "\\u0041",
    "\\u12",
    "\\t",
    "\n",
    "\r\n",
    "\r",
    "\f",
    "\xe9",
]


@pytest.mark.req("SEG-LDR-005")
@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
@example("a=1\\")
@example("a=\\u00e9\n#\\u\n")
@example("a\\=b = c\\\n  d")
def test_a_properties_file_is_what_the_grammar_and_the_parser_accept(text: str) -> None:
    assert (parsed(PROPERTIES, "properties", text) is not None) == (properties(text.encode("iso-8859-1")) is not None)


NAMED: Final = "orders-3-" + "A-_z" * 5 + "Qw/" + "0" * 18 + "42-" + "-seg" * 5 + "_w.log"
AROUND_NUMBER: Final = re.compile(r"(orders)-([0-9]*)-([^/]*)/(.*)", re.DOTALL)
NAME_PIECES: Final = [*"a-/07\n\u0663", "2147483648/", "9" * 20, ".log", ".indexes", ".Log", "A" * 22]


def object_by_grammar(name: str, path: str) -> bool:
    """Return whether the grammar accepts the name of an object, and its numbers fit their widths."""
    node = parsed(OBJECTS, name, path)
    widths = {"partition": 32, "start-offset": 64}
    return node is not None and all(
        parse_decimal(text, bits=bits) is not None for field, bits in widths.items() for text in found(node, field)
    )


@pytest.mark.req("SEG-TIR-001", "SEG-TIR-002")
@settings(max_examples=40)
@given(st.lists(st.sampled_from(NAME_PIECES), max_size=3), st.integers(0, len(NAMED)), st.integers(0, 9))
@example([], 0, 0)
@example(["/"], 8, 1)
@example(["2147483648"], 7, 1)
@example(["12345678901"], 7, 1)
def test_the_name_of_an_object_is_what_the_grammar_and_the_layout_accept(put: list[str], at: int, left: int) -> None:
    local = NAMED[:at] + "".join(put) + NAMED[at + left :]
    parts = AROUND_NUMBER.fullmatch(local)
    start, number, topic_id, rest = parts.groups() if parts else (local, "3", "A" * 22, NAMED.rpartition("/")[2])
    for name, path in (("local", local), ("aiven", f"{start}-{topic_id}/{number}/{rest}")):
        assert object_by_grammar(f"{name}-object", path) == (layout_named(name).parse(path) is not None), path


def test_every_name_of_a_stored_object_follows_its_grammar() -> None:
    for case in sorted((REPOSITORY / "fixtures" / "tiered").glob("*-*/files.tar.gz")):
        with tarfile.open(case) as archive:
            paths = [member.name for member in archive if member.isfile()]
        name = case.parent.name.partition("-")[0].replace("lts", "local")
        stored = [path for path in paths if layout_named(name).parse(path) is not None]
        each_kind = {path.rpartition(".")[2]: path for path in stored}.values()
        assert each_kind
        assert all(object_by_grammar(f"{name}-object", path) for path in each_kind)


ROW: Final = re.compile(r"^\| `(?P<path>[\w.]+)` \| (?P<values>.*?) \| (?P<required>.*?) \|", re.MULTILINE)
TABLE: Final = (
    (REPOSITORY / "spec" / "47-tier-layouts.md").read_text(encoding="utf-8").partition("| field | values |")[2]
)
ROWS: Final = [match.groups() for match in ROW.finditer(TABLE.partition("\n\n")[0])]
OTHERS: Final = [
    None,
    True,
    0,
    1,
    -1,
    -2,
    2**31 - 1,
    2**31,
    2**63 - 1,
    2**63,
    1.0,
    "",
    "1",
    "fixed",
    "a:AAAA",
    "AAAA",
    [],
    {},
]
"""Values to put into a field, of which most do not belong there."""
RANGE: Final = re.compile(r"(-?\d+) to (\d+)")
IS_OF: Final[dict[str, Callable[[Any], bool]]] = {
    "object": lambda value: isinstance(value, dict),
    "place": lambda value: isinstance(value, dict) and {"position", "size"} <= value.keys(),
    "epochs": lambda value: isinstance(value, dict),
    "boolean": lambda value: isinstance(value, bool),
    "text": lambda value: isinstance(value, str),
    "base64": lambda value: isinstance(value, str) and parsed(OBJECTS, "base64", value) is not None,
    "key": lambda value: isinstance(value, str) and parsed(OBJECTS, "key", value) is not None,
}


def is_of(values: str, value: Any) -> bool:  # noqa: ANN401 - whatever JSON has
    """Return whether a value is one of those that a row of the table lists."""
    if found := RANGE.fullmatch(values):
        return type(value) is int and int(found[1]) <= value <= int(found[2])
    return IS_OF[values](value) if values in IS_OF else value in re.findall(r'"(\w+)"', values)


def complaint(values: dict[str, Any]) -> str | None:
    """Return the first field of a manifest that its table does not allow."""
    present = {"": values}
    for path, allowed, required in ROWS:
        parent, _, name = path.rpartition(".")
        if parent not in present:
            continue
        value = present[parent].get(name)
        is_due = required == "yes" or required == f"if `{present[parent].get('type')}`"
        if value is None and not is_due:
            continue
        if value is None or (not is_of(allowed, value) and (is_due or required == "no")):
            return path
        present[path] = value
    return None


def is_accepted(values: dict[str, Any]) -> bool:
    try:
        read_manifest(json.dumps(values).encode(), AT)
    except FormatError:
        return False
    return True


INDEXES: Final = dict.fromkeys(("offset", "timestamp", "producerSnapshot", "leaderEpoch", "transaction"), 28)
WHOLE: Final = {
    "fixed": AivenSegment(bytes(4604), {}, key_id="key1").manifest([1028] * 4 + [632], INDEXES),
    "variable": AivenSegment(bytes(4604), {}, compressed=True).manifest([900] * 4 + [604], INDEXES),
}
BEYOND_THE_TABLE: Final = ("segmentIndexes", "transformedChunks", "originalChunkSize", "originalFileSize", "Offset")
"""Ends of fields that other rules bind to each other: a value that the table allows may still be refused."""


@pytest.mark.req("SEG-TIR-003", "SEG-TIR-004")
@each_of("kind", WHOLE)
def test_a_manifest_is_read_if_the_table_of_the_chapter_allows_it(kind: str) -> None:
    assert complaint(WHOLE[kind]) is None
    assert is_accepted(WHOLE[kind])
    assert {path.partition(".")[0] for path, _, _ in ROWS} >= WHOLE[kind].keys()
    for path, _, _ in ROWS:
        *parents, name = path.split(".")
        for value in OTHERS:
            values = deepcopy(WHOLE[kind])
            inner = values
            for parent in parents:
                inner = inner.get(parent, {})
            inner[name] = value
            refused = complaint(values)
            assert not (refused and is_accepted(values)), (path, value)
            assert refused or is_accepted(values) or path.endswith(BEYOND_THE_TABLE), (path, value)


FILES: Final = {
    "leader-epoch-checkpoint": (CHECKPOINTS, "epoch-checkpoint"),
    "replication-offset-checkpoint": (CHECKPOINTS, "offset-checkpoint"),
    "recovery-point-offset-checkpoint": (CHECKPOINTS, "offset-checkpoint"),
    "cleaner-offset-checkpoint": (CHECKPOINTS, "offset-checkpoint"),
    "log-start-offset-checkpoint": (CHECKPOINTS, "offset-checkpoint"),
    "partition.metadata": (CHECKPOINTS, "partition-metadata"),
    "meta.properties": (PROPERTIES, "properties"),
}


@pytest.mark.parametrize("name", FILES)
def test_every_text_file_of_a_broker_follows_its_grammar(name: str) -> None:
    rules, rule = FILES[name]
    every = [text for _, text in texts(name)]
    assert every, name
    assert [text for text in every if parsed(rules, rule, text) is None] == []


def test_the_digits_of_the_grammar_are_those_of_chapter_00() -> None:
    for code in range(0x10000):
        is_digit = unicodedata.category(chr(code)) == "Nd"
        assert (parsed(CHECKPOINTS, "ND", chr(code)) is not None) == is_digit, hex(code)

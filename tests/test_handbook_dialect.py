"""Who is right: each claim of the articles that can be executed, laid beside bytes that brokers wrote (appendix A).

The tests walk the files with `struct` alone, so that no opinion of the package comes in.
"""

from __future__ import annotations

import json
import struct
import zlib
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import google_crc32c
import pytest
from helpers.handbook_dialect import (
    DIALECTS,
    HandbookAnswer,
    HandbookFile,
    HandbookMessage,
    block_index,
    checksum_as_article_a,
    directory_name,
    directory_names,
    file_at,
    file_name,
    first_offset,
    is_flushed,
    last_offset,
    lookup,
    messages_before,
    number_after,
    number_in_file_name,
    ordinal,
    read_as_article_a,
    read_as_article_d,
    read_as_article_e,
)
from helpers.support import FIXTURES, REPOSITORY, bundled, bundled_expected, handbook, handbook_lookups, vector
from hypothesis import given
from hypothesis import strategies as st

from seglog_format.errors import FormatError, TruncatedError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NUMBERED_BY_LAST = ["C", "D", "E"]


@dataclass(frozen=True)
class Entry:
    """One entry of a log: for magic 2 the batch, else the message or wrapper."""

    offset: int
    position: int
    data: bytes

    @property
    def magic(self) -> int:
        return self.data[16]

    @property
    def last_offset(self) -> int:
        delta: int = struct.unpack_from(">i", self.data, 23)[0] if self.magic == 2 else 0
        return self.offset + delta


def entries_of(log: Path) -> list[Entry]:
    data, position, found = log.read_bytes(), 0, []
    while position < len(data):
        offset, size = struct.unpack_from(">qi", data, position)
        found.append(Entry(offset, position, data[position : position + 12 + size]))
        position += 12 + size
    return found


def stored_index(log: Path) -> list[tuple[int, int]]:
    return list(struct.iter_unpack(">ii", log.with_suffix(".index").read_bytes()))


def logs_of(name: str) -> list[Path]:
    return sorted(bundled(name).rglob("*.log"))


def base_of(log: Path) -> int:
    return int(log.stem)


def as_handbook_file(log: Path) -> HandbookFile:
    messages = [(entry.offset, entry.position) for entry in entries_of(log)]
    return HandbookFile(base_of(log), stored_index(log), messages)


def expected_of(name: str, kind: str) -> list[dict[str, Any]]:
    return [line for line in bundled_expected(name) if line["type"] == kind]


# Names and numbers


@pytest.mark.parametrize("name", ["0.8.2.2/segs-fine", "0.10.2.2/segs-fine", "1.1.1/segs-fine", "4.3.0/segs-fine"])
@pytest.mark.parametrize("article", NUMBERED_BY_LAST)
def test_a_file_is_named_by_its_first_offset(name: str, article: str) -> None:
    for log, following in pairwise(logs_of(name)):
        last = entries_of(log)[-1].last_offset
        assert base_of(following) == entries_of(following)[0].offset == last + 1
        assert number_after(last, "A") == base_of(following)
        assert number_after(last, article) == base_of(following) - 1
        assert first_offset(base_of(following), article) == base_of(following) + 1


@pytest.mark.parametrize("name", ["0.8.2.2/segs-fine", "4.3.0/segs-fine"])
def test_a_segment_ends_below_the_next_name(name: str) -> None:
    for log, following in pairwise(logs_of(name)):
        found = entries_of(log)[-1].last_offset
        assert last_offset(base_of(following), "A") == found
        assert last_offset(base_of(following), "E") == found + 1


def test_file_names_have_twenty_digits() -> None:
    for log in logs_of("4.3.0/segs-fine"):
        assert number_in_file_name(log.name, "C") is None
        assert number_in_file_name(log.name, "E") == base_of(log)
        assert len(file_name(base_of(log), "C")) == len(log.name) - 1


def test_names_have_a_dash_and_end_in_log() -> None:
    directory = bundled("0.8.2.2/plain") / "plain-0"
    assert directory_name("plain", 0, "E") == directory.name
    assert not (directory.parent / directory_name("plain", 0, "D")).exists()
    assert number_in_file_name("00000000000000000000.log", "D") is None
    assert number_in_file_name("1200000.kafka", "D") == 1200000
    assert [file_name(0, "D"), file_name(1200000, "D")] == ["00000000.kafka", "1200000.kafka"]


def test_a_name_does_not_count_messages() -> None:
    before, *following = logs_of("0.8.2.2/compact")
    assert messages_before(base_of(following[0])) == 780
    assert len(entries_of(before)) == 16


def test_an_offset_is_no_file_position() -> None:
    entries = entries_of(bundled("0.8.2.2/plain") / "plain-0" / "00000000000000000000.log")
    assert [entry.offset for entry in entries] == list(range(60))
    assert [entry.position for entry in entries[1:]] != [entry.offset for entry in entries[1:]]


def test_a_log_need_not_start_at_0() -> None:
    lines = {line["file"]: line["text"] for line in expected_of("4.3.0/root", "text")}
    assert "delrec 0 77" in lines["log-start-offset-checkpoint"]
    listed = sorted((handbook("listing") / "nginx_services-0").glob("*.log"))
    assert base_of(listed[0]) == 10574524
    assert number_after(None, "C") == number_after(None, "E") == 0


def listed_sizes() -> list[tuple[int, int, int]]:
    """Return base offset, bytes of the log and bytes of the index of each pair in article A's listing."""
    found = json.loads((FIXTURES / "handbook" / "listing" / "sizes.json").read_text(encoding="utf-8"))
    return [(int(base), sizes["log"], sizes["index"]) for base, sizes in found.items()]


def test_the_listing_shows_entries_of_eight_bytes_and_segments_that_are_not_quite_full() -> None:
    """A broker wrote these files: whole index entries, and less room left in each log than its next append took."""
    assert [base for base, _, _ in listed_sizes()] == [
        base_of(log) for log in sorted((handbook("listing") / "nginx_services-0").glob("*.log"))
    ]
    assert {index % 8 for _, _, index in listed_sizes()} == {0}
    unused = [2**30 - log for _, log, _ in listed_sizes()]
    assert (min(unused), max(unused), len(set(unused))) == (13782, 26614, 6)


def test_the_listing_has_an_index_entry_per_append_not_per_4096_bytes() -> None:
    spacing = [log // (index // 8) for _, log, index in listed_sizes()]
    assert spacing == [35900, 27645, 36398, 33558, 34432, 31453]
    offsets = [later - base for (base, _, _), (later, _, _) in pairwise(listed_sizes())]
    entries = [index // 8 for _, _, index in listed_sizes()]
    assert (offsets[0], entries[0]) == (597848, 29908)
    assert [span // count for span, count in zip(offsets, entries, strict=False)] == [19, 15, 20, 19, 19]


def test_300_mb_are_6144_times_50_kb() -> None:
    assert (300 << 20) / (50 << 10) == 6144


def test_segments_are_not_of_equal_size() -> None:
    sizes = [log.stat().st_size for log in logs_of("4.3.0/segs")]
    assert len(set(sizes)) == len(sizes)
    starts = [sum(sizes[:number_of_entry]) for number_of_entry in range(len(sizes))]
    assert [file_at(start, max(sizes)) for start in starts] != list(range(len(sizes)))


def test_a_segment_is_more_than_two_files() -> None:
    suffixes = {path.suffix for path in (bundled("4.3.0/txn") / "txn-0").iterdir() if path.suffix}
    assert {".log", ".index", ".timeindex", ".txnindex", ".snapshot"} <= suffixes
    lonely = bundled("4.3.0/crash-noindex") / "before" / "crash-noindex-0" / "00000000000000000000.log"
    assert lonely.is_file()
    assert not lonely.with_suffix(".index").exists()


def test_closed_segments_are_replaced() -> None:
    replaced = list(bundled("4.3.0/compact-codec").rglob("*.log.deleted"))
    assert any(path.with_suffix("").is_file() for path in replaced)


# The index


@pytest.mark.parametrize("name", ["0.8.2.2/segs-fine", "1.1.1/segs-fine", "4.3.0/segs-fine"])
def test_index_numbers_count_from_the_own_base(name: str) -> None:
    files = [as_handbook_file(log) for log in logs_of(name)]
    for previous, file in pairwise(files):
        last = file.messages[-1][0] + 9
        for relative, _ in file.entries:
            assert file.number <= file.number + relative <= last
            answer = lookup(files, file.number + relative, "A")
            assert answer.number == file.number
            assert answer.relative == file.number + relative - previous.number != relative


def test_a_search_relative_to_the_file_before_misses() -> None:
    files = [as_handbook_file(log) for log in logs_of("0.8.2.2/segs-fine")]
    answers = {lookup(files, offset, "B").position for offset, _ in files[1].messages}
    assert len(files[1].messages) == 100
    assert answers == {files[1].entries[-1][1]}


def test_an_index_number_is_no_ordinal() -> None:
    log = logs_of("0.8.2.2/segs-fine")[0]
    numbers = {entry.position: number_of_entry for number_of_entry, entry in enumerate(entries_of(log), start=1)}
    assert all(numbers[position] == ordinal(relative) + 1 for relative, position in stored_index(log))


def test_the_index_is_searched_for_a_floor_not_by_slot() -> None:
    files = [as_handbook_file(log) for log in sorted((handbook("segments") / "report_push-0").glob("*.log"))]
    messages = dict(files[1].messages)
    answer = lookup(files, 368776, "D")
    assert (answer.relative, answer.entry, answer.position) == (6, (6, 1407), 1407)
    assert messages[368775] == 1407
    assert messages[368776] == 1508


@pytest.mark.parametrize("article", ["A", "B", "D"])
def test_an_index_entry_is_only_where_the_scan_starts(article: str) -> None:
    file = as_handbook_file(logs_of("0.8.2.2/segs-fine")[0])
    wrong = [offset for offset, position in file.messages if lookup([file], offset, article).position != position]
    assert len(wrong) == len(file.messages) - len(file.entries) - 1


def test_a_scan_from_the_floor_entry_finds_every_offset() -> None:
    file = as_handbook_file(logs_of("0.8.2.2/segs-fine")[0])
    assert all(lookup([file], offset, "C").position == position for offset, position in file.messages)


def test_passing_over_one_message_means_nothing_among_batches() -> None:
    log = logs_of("4.3.0/index")[0]
    file = as_handbook_file(log)
    right = {
        offset: entry.position for entry in entries_of(log) for offset in range(entry.offset, entry.last_offset + 1)
    }
    wrong = [offset for offset, position in right.items() if lookup([file], offset, "E").position != position]
    assert len(wrong) > len(right) / 2


def test_passing_over_messages_fails_at_gaps() -> None:
    file = as_handbook_file(logs_of("0.8.2.2/compact")[0])
    assert file.entries == []
    wrong = [offset for offset, position in file.messages if lookup([file], offset, "E").position != position]
    assert len(wrong) == len(file.messages)


def test_index_entries_do_not_mark_blocks_of_4096_bytes() -> None:
    (log,) = logs_of("4.3.0/index")
    entries = entries_of(log)
    blocks = block_index([(entry.offset, entry.position) for entry in entries])
    stored = stored_index(log)
    (expected,) = expected_of("4.3.0/index", "offsetIndex")
    assert [list(entry) for entry in stored] == expected["entries"]
    assert blocks[0] == (0, 0)
    assert stored[0][1] > 4096
    assert len(stored) < len(blocks)
    starts = {entry.position: entry.offset for entry in entries}
    assert any(starts[position] != offset for offset, position in stored)


def test_an_index_is_sparse() -> None:
    log = logs_of("0.8.2.2/segs-fine")[0]
    assert 0 < len(stored_index(log)) < len(entries_of(log)) / 2


def test_preallocated_zeros_belong_to_the_file() -> None:
    before = bundled("4.3.0/crash-zero") / "before" / "crash-zero-0"
    active = max(before.glob("*.index"))
    assert active.stat().st_size == 10485760
    assert not any(active.read_bytes()[-4096:])


def test_a_recovery_point_is_exclusive() -> None:
    lines = {line["file"]: line["text"] for line in expected_of("0.8.2.2/root", "text")}
    assert "\nplain 0 60\n" in lines["recovery-point-offset-checkpoint"]
    written = [line["offset"] for line in expected_of("0.8.2.2/plain", "record")]
    assert is_flushed(60, 60)
    assert 60 not in written
    assert max(written) == 59


# Messages


@pytest.mark.parametrize("name", ["0.8.2.2/plain", "0.8.2.2/segs-fine"])
def test_a_message_starts_with_offset_and_size(name: str) -> None:
    for entry in entries_of(logs_of(name)[0]):
        crc = struct.unpack_from(">I", entry.data, 12)[0]
        found = read_as_article_a(entry.data)
        assert crc == zlib.crc32(entry.data[16:]) != found.crc
        assert found.crc == entry.offset >> 32
        assert read_as_article_d(entry.data).payload == b""


def test_a_value_has_a_length_of_its_own() -> None:
    for entry in entries_of(bundled("0.8.2.2/plain") / "plain-0" / "00000000000000000000.log"):
        found = read_as_article_e(entry.data)
        (value_size,) = struct.unpack_from(">i", found.payload)
        assert found.offset == entry.offset
        assert found.crc == zlib.crc32(entry.data[16:])
        assert len(found.payload) == 4 + max(value_size, 0)


def test_without_a_value_length_a_tombstone_looks_like_data() -> None:
    records = {record["offset"]: record for record in expected_of("0.8.2.2/plain", "record")}
    entries = entries_of(bundled("0.8.2.2/plain") / "plain-0" / "00000000000000000000.log")
    tombstones = [entry for entry in entries if records[entry.offset]["value"] is None]
    assert tombstones
    assert {read_as_article_e(entry.data).payload for entry in tombstones} == {b"\xff" * 4}


def test_a_timestamp_moves_the_key_of_magic_1() -> None:
    second = entries_of(bundled("0.10.2.2/plain") / "plain-0" / "00000000000000000000.log")[1]
    (record,) = [line for line in expected_of("0.10.2.2/plain", "record") if line["offset"] == second.offset]
    timestamp = struct.unpack_from(">q", second.data, 18)[0]
    assert timestamp == record["timestamp"]
    try:
        found: object = read_as_article_e(second.data).key
    except FormatError as error:
        found = error
    assert found != record["key"]


@pytest.mark.parametrize("name", ["0.8.2.2/plain", "0.10.2.2/plain"])
def test_a_checksum_leaves_out_offset_and_size(name: str) -> None:
    for entry in entries_of(logs_of(name)[0]):
        stored = struct.unpack_from(">I", entry.data, 12)[0]
        assert stored == zlib.crc32(entry.data[16:]) != checksum_as_article_a(entry.data)


def test_magic_2_has_another_checksum() -> None:
    for entry in entries_of(logs_of("4.3.0/plain")[0]):
        stored = struct.unpack_from(">I", entry.data, 17)[0]
        assert stored == google_crc32c.value(entry.data[21:])
        assert stored not in {zlib.crc32(entry.data[21:]), checksum_as_article_a(entry.data)}


def test_one_file_holds_several_magics() -> None:
    (log,) = logs_of("0.10.2.2/mixed")
    assert {entry.magic for entry in entries_of(log)} == {0, 1}
    mixed = [{entry.magic for entry in entries_of(log)} for log in logs_of("1.1.1/mixed-segs")]
    assert any(len(magics) > 1 for magics in mixed)


def test_attributes_are_a_bit_field() -> None:
    (log,) = logs_of("0.10.2.2/logappend")
    batches = {line["position"]: line for line in expected_of("0.10.2.2/logappend", "batch")}
    found = {entry.position: entry.data[17] for entry in entries_of(log)}
    assert set(found.values()) == {8, 11}
    for position, attributes in found.items():
        assert batches[position]["codec"] == {0: "none", 3: "lz4"}[attributes & 7]
        assert batches[position]["timestampType"] == "LogAppendTime"


def test_every_message_in_a_wrapper_has_its_own_offset_and_key() -> None:
    records = expected_of("0.8.2.2/codec-lz4", "record")
    by_wrapper: dict[int, list[dict[str, Any]]] = {}
    for record in records:
        by_wrapper.setdefault(record["position"], []).append(record)
    wrapper = max(by_wrapper.values(), key=len)
    assert len({record["offset"] for record in wrapper}) == len(wrapper) > 10
    assert len({record["key"] for record in wrapper}) > 1


def test_the_key_of_a_wrapper_is_null() -> None:
    for entry in entries_of(logs_of("0.8.2.2/codec-lz4")[0]):
        assert struct.unpack_from(">i", entry.data, 18)[0] == -1
    assert read_as_article_e(vector("V-03")).key is None


def test_the_articles_cannot_read_magic_2() -> None:
    for entry in entries_of(logs_of("4.3.0/plain")[0]):
        try:
            found = read_as_article_e(entry.data)
        except FormatError:
            continue
        assert found.crc != zlib.crc32(entry.data[16:])


# The articles' own examples


def article_row(answer: HandbookAnswer) -> dict[str, Any]:
    entry = list(answer.entry)
    return {"segment": answer.number, "relative": answer.relative, "entry": entry, "position": answer.position}


def test_the_articles_answer_as_the_fixture_says() -> None:
    files = [as_handbook_file(log) for log in sorted((handbook("segments") / "report_push-0").glob("*.log"))]
    for row in handbook_lookups("segments")["articles"]:
        stated = {key: value for key, value in row.items() if key not in {"article", "offset"}}
        assert article_row(lookup(files, row["offset"], row["article"])) == stated


@pytest.mark.parametrize("name", ["segments", "listing"])
def test_lookups_of_the_examples_are_those_of_a_full_scan(name: str) -> None:
    lookups = handbook_lookups(name)
    logs = sorted((handbook(name) / lookups["directory"]).glob("*.log"))
    bases = [base_of(log) for log in logs]
    end = entries_of(logs[-1])[-1].offset + 1
    for row in lookups["lookups"]:
        assert row == scanned(row["offset"], dict(zip(bases, logs, strict=True)), end)


def scanned(offset: int, logs: dict[int, Path], end: int) -> dict[str, Any]:
    if not min(logs) <= offset <= end:
        return {"offset": offset, "outcome": "outOfRange"}
    if offset == end:
        return {"offset": offset, "outcome": "end"}
    sought = max(base for base in logs if base <= offset)
    index = [(sought + relative, position) for relative, position in stored_index(logs[sought])]
    entry = max((pair for pair in index if pair[0] <= offset), default=(sought, 0))
    segment, found = next(
        (base, candidate)
        for base, log in sorted(logs.items())
        if base >= sought
        for candidate in entries_of(log)
        if candidate.offset >= offset
    )
    number_of_entry = {"segment": segment, "position": found.position, "firstOffset": found.offset}
    return {"offset": offset, "outcome": "found", "sought": sought, "indexEntry": list(entry), **number_of_entry}


def test_offset_368769_stands_in_a_file_where_nobody_looks() -> None:
    directory = handbook("segments") / "report_push-0"
    in_first = [entry.offset for entry in entries_of(directory / "00000000000000000000.log")]
    in_second = [entry.offset for entry in entries_of(directory / "00000000000000368769.log")]
    assert in_first[-1] == 368769
    assert in_second[0] == 368770


def test_the_example_messages_stand_where_the_articles_print_them() -> None:
    log = handbook("segments") / "report_push-0" / "00000000000000368769.log"
    entries = entries_of(log)
    assert [entry.position for entry in entries[:8]] == [0, 139, 497, 830, 1262, 1407, 1508, 1686]
    assert entries[-1].offset == 369000
    assert {len(entry.data) for entry in entries[7:]} == {100}
    assert stored_index(log)[:4] == [(1, 0), (3, 497), (6, 1407), (8, 1686)]
    assert all(struct.unpack_from(">I", entry.data, 12)[0] == zlib.crc32(entry.data[16:]) for entry in entries)


def test_example_directories_are_there_one_for_each_partition() -> None:
    names = {path.name for path in handbook("segments").iterdir()}
    assert names == {*directory_names("report_push", 4, "E"), *directory_names("launch_info", 4, "E")}
    listing = {path.name for path in handbook("listing").iterdir()}
    assert listing == set(directory_names("nginx_services", 16, "A"))


# Arguments and hostile bytes


def test_only_five_articles_are_known() -> None:
    assert list(DIALECTS) == ["A", "B", "C", "D", "E"]
    with pytest.raises(UsageError, match="articles are called A to E, not 'F'"):
        file_name(0, "F")


def test_an_offset_below_the_first_file_is_refused() -> None:
    file = HandbookFile(10574524, [], [])
    with pytest.raises(UsageError, match="below 10574524"):
        lookup([file], 5, "A")
    with pytest.raises(UsageError, match="an empty list"):
        lookup([], 5, "A")


def test_a_lookup_that_runs_past_the_end_has_no_position() -> None:
    file = HandbookFile(0, [(0, 0)], [(0, 0), (1, 100)])
    assert lookup([file], 7, "C").position is None
    assert lookup([file], 7, "E").position is None


def broken_rules(read: Callable[[bytes], HandbookMessage], data: bytes) -> tuple[str, ...]:
    """Read; return the rules that are broken."""
    try:
        read(data)
    except FormatError as error:
        return error.requirements
    return ()


@given(st.binary(max_size=200))
def test_any_bytes_are_a_message_or_cut_short(data: bytes) -> None:
    for read in (read_as_article_a, read_as_article_d, read_as_article_e):
        assert broken_rules(read, data) in {(), ("SEG-MSG-005",)}
    assert read_as_article_a(bytes(6) + data).payload == data
    assert read_as_article_d(struct.pack(">i", len(data)) + data).payload == data


def test_the_chapter_shows_a_message_of_the_example() -> None:
    chapter = (REPOSITORY / "spec" / "90-handbook-dialect.md").read_text(encoding="utf-8")
    block = chapter.split("```hex valid kind=batch\n")[1].split("```")[0]
    shown = bytes.fromhex("".join(line.split(";")[0] for line in block.splitlines()))
    log = handbook("segments") / "report_push-0" / "00000000000000368769.log"
    assert shown == log.read_bytes()[1407:1508]
    found = read_as_article_e(shown)
    assert (found.offset, found.key, found.payload[:4]) == (368775, None, b"\0\0\0\x4b")
    assert read_as_article_d(shown).payload == b""


@pytest.mark.req("SEG-MSG-005")
@pytest.mark.parametrize("read", [read_as_article_a, read_as_article_d, read_as_article_e])
def test_a_message_that_is_cut_short_is_no_message(read: Callable[[bytes], HandbookMessage]) -> None:
    with pytest.raises(TruncatedError, match=r"expected a message that fills the article's table, found 3 bytes"):
        read(bytes(3))

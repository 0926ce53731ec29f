"""Chapter 10: what a partition directory's names say, and which of its files count."""

from __future__ import annotations

import os
from cProfile import Profile
from typing import TYPE_CHECKING

import pytest
from helpers.batches import batch, record
from helpers.broker_names import directory_names, file_names
from helpers.support import authentic, authentic_names
from helpers.walking import each_of
from hypothesis import given
from hypothesis import strategies as st

from seglog_format import open_partition
from seglog_format.checks import verify
from seglog_format.errors import UsageError
from seglog_format.log.listing import list_log_directory, list_partition, resolve
from seglog_format.names import (
    INDEX_KINDS,
    NUMBERED_KINDS,
    TEMPORARY_SUFFIXES,
    FileKind,
    segment_file_name,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

UUID = "5a1c3bb2d34e4b59a1a2a1d0c3b4e5f6"
ARABIC_ZERO = "\N{ARABIC-INDIC DIGIT ZERO}"


def name(offset: int, end: str = ".log") -> str:
    """``0.log.swap`` and the like with 20 digits."""
    return f"{offset:020d}{end}"


def one_record(offset: int, last: int | None = None) -> bytes:
    """Return a batch with a record at an offset, and maybe one more that ends it."""
    if last is None:
        return batch(record(value=str(offset).encode()), base_offset=offset)
    section = record(value=str(offset).encode()) + record(offset_delta=last - offset, value=str(last).encode())
    return batch(section, 2, base_offset=offset, last_offset_delta=last - offset)


def directory(path: Path, files: Mapping[str, bytes] | Iterable[str], called: str = "orders-0") -> Path:
    """Return a partition directory with these files."""
    target = path / called
    target.mkdir()
    contents = files if hasattr(files, "keys") else dict.fromkeys(files, b"")
    for file, data in contents.items():
        (target / file).write_bytes(data)
    return target


def ids(path: Path) -> list[str]:
    """Return requirements that a validator names, but for the notes on missing index files."""
    return [finding.requirement for finding in verify(path) if finding.requirement != "SEG-PDR-012"]


def no_swaps(file: str) -> int:
    pytest.fail(f"{file} was looked into")


# Names of directories


@pytest.mark.req("SEG-PDR-001", "SEG-PDR-017", "SEG-PDR-002", "SEG-PDR-003", "SEG-PDR-004")
@each_of(
    ("called", "expected"),
    [
        ("orders-0", []),
        ("launch-info-12", []),
        (f"orders-0.{UUID}-delete", []),
        (f"orders-0.{UUID}-stray", []),
        ("orders-007", ["SEG-PDR-017"]),
        ("orders-+7", ["SEG-PDR-017"]),
        (f"orders-{ARABIC_ZERO}", ["SEG-PDR-017"]),
        ("order book-0", ["SEG-PDR-002"]),
        ("..-0", ["SEG-PDR-002"]),
        ("x" * 250 + "-0", ["SEG-PDR-002"]),
        ("orders-0.old-delete", ["SEG-PDR-004"]),
        (f"orders-0.{UUID.upper()}-future", ["SEG-PDR-004"]),
        ("orders\n-0", ["SEG-PDR-002"]),
    ],
    ids=lambda value: ascii(value)[:30],
)
def test_what_a_validator_says_of_a_directory_name(tmp_path: Path, called: str, expected: list[str]) -> None:
    findings = [
        one for one in verify(directory(tmp_path, {name(0): one_record(0)}, called)) if "PDR" in one.requirement
    ]
    assert [one.requirement for one in findings if one.requirement != "SEG-PDR-012"] == expected
    assert all(one.found.isprintable() for one in findings)


@pytest.mark.req("SEG-PDR-001", "SEG-PDR-003")
@pytest.mark.parametrize(
    ("called", "requirement"),
    [("lost+found", "SEG-PDR-001"), ("orders-x", "SEG-PDR-001"), ("orders-0-delete", "SEG-PDR-003")],
)
def test_directory_names_that_stop_a_broker(tmp_path: Path, called: str, requirement: str) -> None:
    directory(tmp_path, {name(0): one_record(0)}, called)
    (error,) = (one for one in verify(tmp_path) if one.location.path == called)
    assert error.requirement == "SEG-LDR-001"
    assert list_partition(tmp_path / called).name is None
    (refused,) = list_log_directory(tmp_path).misnamed
    assert refused.requirements == ("SEG-LDR-001", requirement)


# Names of files


@pytest.mark.req("SEG-PDR-005", "SEG-PDR-006")
@pytest.mark.parametrize("kind", [FileKind.LOG, *INDEX_KINDS, FileKind.PRODUCER_SNAPSHOT])
@pytest.mark.parametrize(
    ("digits", "expected"),
    [
        ("0" * 20, []),
        ("0", ["SEG-PDR-005"]),
        ("0" * 19, ["SEG-PDR-005"]),
        ("0" * 21, ["SEG-PDR-005"]),
        ("+" + "0" * 19, ["SEG-PDR-005"]),
        (ARABIC_ZERO * 20, ["SEG-PDR-006"]),
        (ARABIC_ZERO, ["SEG-PDR-005", "SEG-PDR-006"]),
    ],
    ids=ascii,
)
def test_digits_of_file_names(tmp_path: Path, kind: FileKind, digits: str, expected: list[str]) -> None:
    path = directory(tmp_path, [digits + kind.value])
    found = [one for one in verify(path) if one.requirement in {"SEG-PDR-005", "SEG-PDR-006"}]
    assert [one.requirement for one in found] == expected
    assert all(one.location.path == digits + kind.value for one in found)


@pytest.mark.req("SEG-PDR-005", "SEG-PDR-007", "SEG-PDR-015", "SEG-PDR-011")
@pytest.mark.parametrize(
    ("misnamed_file", "requirement"),
    [
        ("orders.log", "SEG-PDR-005"),
        (".index", "SEG-PDR-005"),
        ("1e3.timeindex", "SEG-PDR-005"),
        ("a\nb.log", "SEG-PDR-005"),
        ("x.log.swap", "SEG-PDR-005"),
        ("18446744073709551616.log", "SEG-PDR-007"),
        ("-5.snapshot", "SEG-PDR-007"),
        ("87-1.checkpoint", "SEG-PDR-015"),
    ],
    ids=ascii,
)
def test_misnamed_files_are_reported_and_left_out(tmp_path: Path, misnamed_file: str, requirement: str) -> None:
    path = directory(tmp_path, {name(0): one_record(0), misnamed_file: b"anything"})
    listing = list_partition(path)
    assert listing.base_offsets == (0,)
    (error,) = listing.misnamed
    assert error.requirements == (requirement,)
    assert str(error).isprintable()
    assert error.location.path.startswith(f"{path}{os.sep}")
    assert ids(path) == [requirement]
    with open_partition(path) as partition:
        assert [found.value for found in partition.records()] == [b"0"]


@pytest.mark.req("SEG-PDR-018")
@pytest.mark.parametrize("digits", ["368769", "0000000000000368769", "+368769", "0" * 30 + "368769"])
def test_renamed_copies_can_be_read(tmp_path: Path, digits: str) -> None:
    path = directory(tmp_path, {f"{digits}.log": one_record(368769), f"{digits}.index": b""})
    (segment,) = list_partition(path).segments
    assert (segment.base_offset, segment.log.name) == (368769, f"{digits}.log")
    assert segment.offset_index == path / f"{digits}.index"
    with open_partition(path) as partition:
        assert [found.offset for found in partition.records()] == [368769]


@pytest.mark.req("SEG-PDR-019")
def test_the_canonical_name_counts(tmp_path: Path) -> None:
    files = {name(0): one_record(0), "0.log": one_record(7), ARABIC_ZERO * 20 + ".log": one_record(8), "00.log": b""}
    path = directory(tmp_path, files)
    listing = list_partition(path)
    assert [segment.log.name for segment in listing.segments] == [name(0)]
    assert sorted(file.path.name for file in listing.shadowed) == sorted(files.keys() - {name(0)})
    with open_partition(path) as partition:
        assert [found.value for found in partition.records()] == [b"0"]


@pytest.mark.req("SEG-PDR-019")
def test_without_a_canonical_name_the_first_counts() -> None:
    found = resolve(["0.log", "00.log", "000.index"], no_swaps)
    assert found.used == {(0, FileKind.LOG): "0.log", (0, FileKind.OFFSET_INDEX): "000.index"}
    assert found.shadowed == ("00.log",)


@pytest.mark.req("SEG-PDR-015")
def test_metadata_snapshots(tmp_path: Path) -> None:
    files = [name(93, "-0000000002.checkpoint"), name(5, "-0000000001.checkpoint")]
    path = directory(tmp_path, [*files, name(7, "-0000000001.checkpoint.deleted"), name(0)], "__cluster_metadata-0")
    listing = list_partition(path)
    assert [(file.base_offset, file.name.epoch) for file in listing.metadata_snapshots] == [(5, 1), (93, 2)]
    assert [file.base_offset for file in listing.set_aside] == [7]


@pytest.mark.req("SEG-PDR-011")
def test_other_files_change_nothing(tmp_path: Path) -> None:
    log = {name(0): one_record(0), name(1): one_record(1)}
    others = ["notes.txt", "0.kafka", name(0, ".log.bak"), ".DS_Store", "\x1b[31m", "core", name(0) + "~", "\udc80"]
    path = directory(tmp_path, log | dict.fromkeys(others, b"\xff" * 100))
    (path / "inner").mkdir()
    listing = list_partition(path)
    assert listing.base_offsets == (0, 1)
    assert sorted(file.name for file in listing.others) == sorted(others)
    assert [entry.name for entry in listing.skipped] == ["inner"]
    assert ids(path) == []
    with open_partition(path) as partition:
        assert [found.value for found in partition.records()] == [b"0", b"1"]


# The files of a segment


def test_files_are_grouped(tmp_path: Path) -> None:
    path = directory(tmp_path, [name(0, kind.value) for kind in NUMBERED_KINDS] + [name(10), name(10, ".timeindex")])
    first, second = list_partition(path).segments
    found = first.log, first.offset_index, first.time_index, first.transaction_index, first.snapshot
    assert found == tuple(path / name(0, kind.value) for kind in NUMBERED_KINDS)
    assert (second.base_offset, second.time_index) == (10, path / name(10, ".timeindex"))
    assert second.offset_index is second.transaction_index is second.snapshot is None


@pytest.mark.req("SEG-PDR-008")
@pytest.mark.parametrize("kind", INDEX_KINDS)
def test_an_index_without_a_log(tmp_path: Path, kind: FileKind) -> None:
    path = directory(tmp_path, {name(0): one_record(0), name(5, kind.value): b""})
    listing = list_partition(path)
    assert [file.path for file in listing.orphans] == [path / name(5, kind.value)]
    assert listing.base_offsets == (0,)
    assert ids(path) == ["SEG-PDR-008"]


@pytest.mark.req("SEG-PDR-008")
def test_a_snapshot_needs_no_log(tmp_path: Path) -> None:
    path = directory(tmp_path, {name(0): one_record(0)})
    snapshot = path / name(1, ".snapshot")
    snapshot.write_bytes(bytes.fromhex("0001 1c4f5d23 00000000"))
    listing = list_partition(path)
    assert [file.path for file in listing.snapshots] == [snapshot]
    assert not listing.orphans
    assert "SEG-PDR-008" not in ids(path)


@pytest.mark.req("SEG-PDR-012")
def test_missing_indexes_are_noted(tmp_path: Path) -> None:
    path = directory(tmp_path, {name(0): one_record(0)})
    (note,) = verify(path)
    assert (note.requirement, note.severity.value, note.location.path) == ("SEG-PDR-012", "note", name(0))
    for end in (".index", ".timeindex"):
        (path / name(0, end)).write_bytes(b"")
    assert list(verify(path)) == []


@pytest.mark.req("SEG-PDR-016")
@pytest.mark.parametrize("files", [[], ["leader-epoch-checkpoint"], [name(0, ".log.deleted")]])
def test_no_segment(tmp_path: Path, files: list[str]) -> None:
    path = directory(tmp_path, files)
    assert list_partition(path).segments == ()
    assert list_partition(path).segment_for(0) is None
    assert ids(path) == ["SEG-PDR-016"]
    with open_partition(path) as partition:
        assert (partition.log_start_offset, partition.log_end_offset) == (0, 0)


# The order of segments


@pytest.mark.req("SEG-PDR-013")
def test_segments_that_overlap(tmp_path: Path) -> None:
    path = directory(tmp_path, {name(0): one_record(0, 5), name(5): one_record(5)})
    (finding,) = (one for one in verify(path) if one.requirement == "SEG-PDR-013")
    assert finding.location.path == name(0)
    assert finding.severity.value == "error"


@pytest.mark.req("SEG-PDR-014")
def test_gaps_between_segments(tmp_path: Path) -> None:
    path = directory(tmp_path, {name(0): one_record(0, 5), name(6): one_record(6), name(10): one_record(10)})
    (note,) = (one for one in verify(path) if one.requirement == "SEG-PDR-014")
    assert (note.location.path, note.severity.value) == (name(6), "note")
    with open_partition(path) as partition:
        assert [found.offset for found in partition.records()] == [0, 5, 6, 10]


def test_segment_for(tmp_path: Path) -> None:
    listing = list_partition(directory(tmp_path, [name(10), name(20), name(2**63 - 1)]))
    found = {offset: listing.segment_for(offset) for offset in (9, 10, 19, 20, 2**63 - 2, 2**63 - 1)}
    bases = {offset: segment and segment.base_offset for offset, segment in found.items()}
    assert bases == {9: None, 10: 10, 19: 10, 20: 20, 2**63 - 2: 20, 2**63 - 1: 2**63 - 1}


# Files on their way in or out


def counted(files: Iterable[str], ends: Mapping[str, int] | None = None) -> list[str]:
    """Names of the logs that count, from short names; ``ends`` gives next offsets of `.log.swap` files."""
    full = {name(int(file.partition(".")[0]), "." + file.partition(".")[2]): file for file in files}
    found = resolve(full, lambda file: (ends or {})[full[file]])
    logs = sorted(file for (_, kind), file in found.used.items() if kind is FileKind.LOG)
    return [full[file] for file in logs]


@pytest.mark.req("SEG-PDR-009")
@pytest.mark.parametrize("suffix", TEMPORARY_SUFFIXES)
@pytest.mark.parametrize("kind", NUMBERED_KINDS)
def test_renamed_files_do_not_count(kind: FileKind, suffix: str) -> None:
    found = resolve([name(0), name(5, kind.value + suffix)], lambda _: 6)
    assert ((5, kind) in found.used) == (suffix == ".swap")
    assert (name(5, kind.value + suffix) in found.set_aside) == (suffix != ".swap")


@pytest.mark.req("SEG-PDR-009")
def test_deleted_files_are_not_read(tmp_path: Path) -> None:
    files = {name(0, ".log.deleted"): one_record(0), name(1, ".log.cleaned"): one_record(1), name(2): one_record(2)}
    path = directory(
        tmp_path, files | {name(2, ".index.deleted"): b"\xff" * 8, "leader-epoch-checkpoint.deleted": b"?"}
    )
    listing = list_partition(path)
    assert listing.base_offsets == (2,)
    assert listing.segments[0].offset_index is None
    assert listing.text_files == {}
    assert {file.path.name for file in listing.set_aside} == {file.name for file in path.iterdir()} - {name(2)}
    assert ids(path) == []
    with open_partition(path) as partition:
        assert [found.offset for found in partition.records()] == [2]


REPLACEMENTS = [
    # the table of the chapter
    (["0.log", "100.log", "200.log", "0.log.swap"], {"0.log.swap": 181}, ["0.log.swap", "200.log"]),
    (["0.log", "100.log", "0.log.cleaned", "100.log.swap"], {}, ["0.log", "100.log"]),
    (["0.log", "100.log", "100.log.swap", "300.log.cleaned"], {"100.log.swap": 151}, ["0.log", "100.log.swap"]),
    (["0.log.deleted", "100.log", "0.log.swap"], {"0.log.swap": 100}, ["0.log.swap", "100.log"]),
    # a .cleaned file with the same base offset
    (["0.log", "0.log.swap", "0.log.cleaned"], {}, ["0.log"]),
    # splitting a segment: two for one
    (
        ["0.log", "0.log.swap", "50.log.swap", "100.log"],
        {"0.log.swap": 50, "50.log.swap": 100},
        ["0.log.swap", "50.log.swap", "100.log"],
    ),
    # the first of two has its plain name already
    (["0.log", "50.log.swap", "100.log"], {"50.log.swap": 100}, ["0.log", "50.log.swap", "100.log"]),
    # joining segments; the last offset decides how far
    (["0.log", "10.log", "20.log", "0.log.swap"], {"0.log.swap": 20}, ["0.log.swap", "20.log"]),
    (["0.log", "10.log", "20.log", "0.log.swap"], {"0.log.swap": 21}, ["0.log.swap"]),
    # an empty .swap log still replaces its own name
    (["0.log", "10.log", "10.log.swap"], {"10.log.swap": 10}, ["0.log", "10.log.swap"]),
    (["0.log", "10.log", "10.log.swap"], {"10.log.swap": 0}, ["0.log", "10.log.swap"]),
    # only one of two is complete
    (["0.log", "10.log", "0.log.swap", "10.log.swap", "10.log.cleaned"], {"0.log.swap": 10}, ["0.log.swap", "10.log"]),
]


@pytest.mark.req("SEG-PDR-010")
@pytest.mark.parametrize(("files", "ends", "expected"), REPLACEMENTS)
def test_interrupted_replacements(files: list[str], ends: Mapping[str, int], expected: list[str]) -> None:
    assert counted(files, ends) == expected


@pytest.mark.req("SEG-PDR-010")
def test_companions_of_a_replacement() -> None:
    old = [name(offset, kind.value) for offset in (0, 10) for kind in NUMBERED_KINDS]
    found = resolve([*old, name(0, ".log.swap"), name(0, ".index.swap")], lambda _: 11)
    assert set(found.used.values()) == {name(0, ".log.swap"), name(0, ".index.swap")}
    assert set(found.set_aside) == set(old)


@pytest.mark.req("SEG-PDR-010")
def test_an_index_alone_is_replaced() -> None:
    found = resolve([name(0), name(0, ".index"), name(0, ".index.swap")], no_swaps)
    assert found.used == {(0, FileKind.LOG): name(0), (0, FileKind.OFFSET_INDEX): name(0, ".index.swap")}
    assert found.set_aside == (name(0, ".index"),)


@pytest.mark.req("SEG-PDR-010")
def test_a_replacement_is_read(tmp_path: Path) -> None:
    files = {
        name(0): one_record(0, 4),
        name(5): one_record(5, 9),
        name(10): one_record(10),
        name(0, ".log.swap"): one_record(3) + one_record(9),
        name(0, ".index"): b"\xff" * 8,
        name(0, ".index.swap"): b"",
    }
    path = directory(tmp_path, files)
    before = {file.name: file.read_bytes() for file in path.iterdir()}
    with open_partition(path) as partition:
        assert [found.value for found in partition.records()] == [b"3", b"9", b"10"]
        assert partition.log_start_offset == 0
    assert ids(path) == []
    assert {file.name: file.read_bytes() for file in path.iterdir()} == before


@pytest.mark.req("SEG-PDR-010")
def test_damage_ends_a_replacement_where_it_stands(tmp_path: Path) -> None:
    swap = one_record(0) + one_record(5) + bytes(8) + b"\0\0\0\x05" + bytes(40)
    path = directory(tmp_path, {name(0): b"", name(5): b"", name(6): b"", name(0, ".log.swap"): swap})
    assert list_partition(path).base_offsets == (0, 6)


base_offsets = st.integers(min_value=0, max_value=30)
file_lists = st.sets(
    st.builds(
        name,
        base_offsets,
        st.sampled_from(
            [kind.value + suffix for kind in NUMBERED_KINDS for suffix in ("", ".deleted", ".cleaned", ".swap")]
        ),
    )
)


@pytest.mark.req("SEG-PDR-009", "SEG-PDR-010")
@given(file_lists, st.integers(min_value=0, max_value=40))
def test_each_file_counts_or_is_set_aside(files: set[str], reach: int) -> None:
    found = resolve(files, lambda _: reach)
    assert {*found.used.values(), *found.set_aside} == files
    assert set(found.used.values()).isdisjoint(found.set_aside)
    assert not found.shadowed
    assert not any(file.endswith((".deleted", ".cleaned")) for file in found.used.values())
    unfinished = [int(file[:20]) for file in files if file.endswith(".cleaned")]
    for file in files:
        if file.endswith(".swap"):
            counts = not unfinished or int(file[:20]) < min(unfinished)
            assert (file in found.used.values()) == counts


# What is read


def test_only_regular_files_and_links_to_them_are_read(tmp_path: Path) -> None:
    path = directory(tmp_path, {name(0): one_record(0)})
    other = tmp_path / name(5)
    other.write_bytes(one_record(5))
    (path / name(5)).symlink_to(other)
    (path / name(6)).symlink_to("../" + name(5))
    (path / name(7)).symlink_to(path / "nowhere")
    (path / name(8)).symlink_to(name(8))
    (path / name(9)).symlink_to(path / name(0))
    os.mkfifo(path / name(10))
    (path / name(11)).mkdir()
    (path / name(12)).symlink_to(tmp_path)
    (path / name(13)).symlink_to("/dev/zero")
    listing = list_partition(path)
    assert listing.base_offsets == (0, 5, 6, 9)
    reasons = {entry.name: entry.reason for entry in listing.skipped}
    assert set(reasons) == {name(offset) for offset in (7, 8, 10, 11, 12, 13)}
    assert "nowhere" in reasons[name(7)]
    assert "link" in reasons[name(8)]
    assert "directory" in reasons[name(11)]
    assert len(listing.blocked) == 6


@pytest.mark.parametrize("path", ["nowhere", "file", "a\0b"])
def test_paths_that_are_no_directory(tmp_path: Path, path: str) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(UsageError):
        list_partition(tmp_path / path)


def test_any_directory_can_be_listed(tmp_path: Path) -> None:
    listing = list_partition(directory(tmp_path, {name(0): b""}, "copy"))
    assert listing.name is None
    assert listing.base_offsets == (0,)


@pytest.mark.parametrize("prefix", ["", "./"])
def test_the_name_of_the_directory_one_stands_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prefix: str) -> None:
    monkeypatch.chdir(directory(tmp_path, [name(0)]))
    listing = list_partition(prefix or ".")
    assert listing.name is not None
    assert listing.name.topic_partition == ("orders", 0)


def test_ten_times_the_segments_take_ten_times_the_calls(tmp_path: Path) -> None:
    kinds = (FileKind.LOG, FileKind.OFFSET_INDEX, FileKind.TIME_INDEX)
    calls = []
    for count in (100, 1000):
        names = [segment_file_name(base * 1000, kind) for base in range(count) for kind in kinds]
        path = directory(tmp_path, names, f"orders-{count}")
        with Profile() as profile:
            assert len(list_partition(path).segments) == count
        calls.append(sum(entry.callcount for entry in profile.getstats()))
    assert calls[1] < 12 * calls[0]


# What brokers left


@pytest.mark.req("SEG-PDR-001", "SEG-PDR-005", "SEG-PDR-006", "SEG-PDR-007", "SEG-PDR-011", "SEG-PDR-015")
def test_every_broker_file_is_understood(tmp_path: Path) -> None:
    listing = list_partition(directory(tmp_path, file_names(), directory_names()[0]))
    assert not listing.misnamed
    assert not listing.others
    assert not listing.shadowed
    assert len(listing.files) == len(file_names())


@pytest.mark.req("SEG-PDR-008", "SEG-PDR-009", "SEG-PDR-013")
@each_of("case", [case for case in authentic_names() if case.endswith(("/compact", "/segs", "/txn"))])
def test_broker_directories(case: str) -> None:
    for path in (file for file in authentic(case).iterdir() if file.is_dir()):
        listing = list_partition(path)
        assert listing.name is not None
        assert not listing.orphans
        logs = sorted(file.name for file in path.glob("*.log"))
        assert [segment.log.name for segment in listing.segments] == logs
        assert {file.path.name for file in listing.set_aside} == {file.name for file in path.glob("*.deleted")}

"""The validator: what it says about bytes that decode and still break a rule, and that it is silent otherwise."""

from __future__ import annotations

import shutil
import struct
from typing import TYPE_CHECKING

import pytest
from helpers.batches import batch, patched, record
from helpers.support import authentic, authentic_names, bundled, bundled_cases, vector
from helpers.walking import each_of

from seglog_format.checks import Finding, verify, verify_log
from seglog_format.errors import CorruptRecordError, Location, RefusedError, UsageError
from seglog_format.requirements import Severity

if TYPE_CHECKING:
    from pathlib import Path

SEGMENT = "00000000000000000000"


def found(data: bytes, base_offset: int = 0) -> list[tuple[str, int]]:
    return [(one.requirement, one.location.position) for one in verify_log(data, base_offset=base_offset)]


def later(data: bytes, offset: int) -> bytes:
    return patched(data, 0, "q", offset, seal=False)


# Chapter 20


@pytest.mark.req("SEG-LOG-002")
def test_trailing_bytes() -> None:
    assert found(vector("V-06") + b"rest") == [("SEG-LOG-002", 87)]


@pytest.mark.req("SEG-LOG-004")
def test_partial_entry() -> None:
    assert found(vector("V-06") + vector("V-06")[:40]) == [("SEG-LOG-004", 87)]


@pytest.mark.req("SEG-LOG-005")
def test_zero_tail() -> None:
    (note,) = verify_log(vector("V-06") + bytes(4096))
    assert (note.requirement, note.severity, note.location.position) == ("SEG-LOG-005", Severity.NOTE, 87)


@pytest.mark.req("SEG-LOG-006")
@pytest.mark.parametrize("offset", [10, 9, 0])
def test_last_offset_goes_back(offset: int) -> None:
    assert found(vector("V-06") + later(vector("V-06"), offset)) == [("SEG-LOG-006", 87)]


@pytest.mark.req("SEG-LOG-007")
@pytest.mark.parametrize("offset", [11, 12])
def test_entries_overlap(offset: int) -> None:
    assert found(vector("V-06") + later(vector("V-06"), offset)) == [("SEG-LOG-007", 87)]


@pytest.mark.req("SEG-LOG-006", "SEG-LOG-007")
def test_a_gap_is_no_finding() -> None:
    assert found(vector("V-06") + later(vector("V-06"), 13)) == []
    assert found(vector("V-06") + later(vector("V-06"), 1000)) == []


@pytest.mark.req("SEG-LOG-008")
def test_entry_below_its_segment() -> None:
    assert found(vector("V-06"), base_offset=10) == []
    assert found(vector("V-06"), base_offset=11) == [("SEG-LOG-008", 0)]
    assert found(vector("V-03"), base_offset=11) == [("SEG-LOG-008", 0)]


@pytest.mark.req("SEG-LOG-009")
def test_offset_span() -> None:
    assert found(later(vector("V-06"), 2**31 - 3)) == []
    assert found(later(vector("V-06"), 2**31 - 2)) == [("SEG-LOG-009", 0)]


@pytest.mark.req("SEG-LOG-010")
@pytest.mark.parametrize(("size", "expected"), [(2**31 - 1, ["SEG-LOG-004"]), (2**31, ["SEG-LOG-010"])])
def test_size_of_a_log_file(tmp_path: Path, size: int, expected: list[str]) -> None:
    path = tmp_path / f"{SEGMENT}.log"
    with path.open("wb") as file:
        file.write(struct.pack(">qiib", 0, 2**31 - 1, 0, 2) + b"\1")
        file.truncate(size)  # a hole takes no space
    found_ids = [one.requirement for one in verify(path)]
    assert found_ids == expected


# Chapter 30


@pytest.mark.req("SEG-BAT-014")
@pytest.mark.parametrize("bit", range(7, 16))
def test_unknown_attribute_bits(bit: int) -> None:
    attributes = 1 << bit if bit < 15 else -(1 << 15)
    (note,) = verify_log(patched(vector("V-06"), 21, "h", attributes))
    assert (note.requirement, note.severity) == ("SEG-BAT-014", Severity.NOTE)


@pytest.mark.req("SEG-BAT-015")
@pytest.mark.parametrize("timestamp", [1004, 1006, -1])
def test_wrong_max_timestamp(timestamp: int) -> None:
    assert found(patched(vector("V-06"), 35, "q", timestamp)) == [("SEG-BAT-015", 35)]


@pytest.mark.req("SEG-BAT-015")
def test_max_timestamp_that_is_the_append_time() -> None:
    assert found(vector("V-07")) == []


@pytest.mark.req("SEG-BAT-019")
def test_compacted_batch() -> None:
    assert found(vector("V-22")) == [("SEG-BAT-019", 57)]
    assert found(vector("V-21")) == []


def producer(producer_id: int, epoch: int, sequence: int, attributes: int = 0) -> bytes:
    fields = {"producer_id": producer_id, "producer_epoch": epoch, "base_sequence": sequence, "attributes": attributes}
    return batch(record(), **fields)


@pytest.mark.req("SEG-BAT-020")
@pytest.mark.parametrize(("producer_id", "epoch"), [(7, -1), (-1, 0)])
def test_producer_epoch_without_producer_and_reverse(producer_id: int, epoch: int) -> None:
    assert found(producer(producer_id, epoch, 0)) == [("SEG-BAT-020", 51)]


def test_sequence_of_a_group_coordinator() -> None:
    assert found(producer(-1, -1, 0)) == []


@pytest.mark.req("SEG-BAT-021")
def test_leader_epoch() -> None:
    assert found(patched(vector("V-06"), 12, "i", -2, seal=False)) == [("SEG-BAT-021", 12)]


@pytest.mark.req("SEG-BAT-022")
def test_transaction_without_producer() -> None:
    assert found(producer(-1, -1, -1, attributes=0x10)) == [("SEG-BAT-022", 43)]


@pytest.mark.req("SEG-BAT-023")
def test_compressed_control_batch() -> None:
    zstd = vector("V-12")
    codes = [requirement for requirement, _ in found(patched(zstd, 21, "h", 0x24))]
    assert "SEG-BAT-023" in codes


@pytest.mark.req("SEG-BAT-024")
def test_data_without_sequence() -> None:
    assert found(producer(7, 0, -1)) == [("SEG-BAT-024", 53)]
    assert found(vector("V-13")) == []


# The rest of a log after damage


def test_damage_inside_an_entry_does_not_hide_the_next() -> None:
    broken = bytearray(vector("V-06"))
    broken[-1] ^= 1
    assert found(bytes(broken) + later(vector("V-06"), 9) + b"x") == [("SEG-BAT-003", 17), ("SEG-LOG-002", 174)]


def test_damage_in_the_framing_ends_the_walk() -> None:
    assert found(vector("V-06") + bytes(17) + b"\2" + vector("V-06")) == [("SEG-LOG-003", 95)]


def test_a_refusal_is_a_warning() -> None:
    (finding,) = verify_log(vector("V-12"), limit=10)
    assert (finding.requirement, finding.severity) == ("SEG-COD-016", Severity.WARNING)
    error = RefusedError(Location(), "SEG-COD-016", expected="at most 10 bytes", found="more")
    assert Finding.of_error(error).severity is Severity.WARNING


def test_a_note_is_told_once_with_a_count() -> None:
    unusual = [later(patched(vector("V-06"), 21, "h", 0x80), offset) for offset in (10, 20, 30)]
    (note,) = verify_log(b"".join(unusual))
    assert (note.count, note.location.position) == (3, 21)
    assert str(note).endswith("found 0x0080 (3 times) [SEG-BAT-014]")


# Files and directories


@each_of("name", bundled_cases())
def test_undamaged_directories_have_no_error(name: str) -> None:
    root = bundled(name)
    for state in [root / "after"] if (root / "after").is_dir() else [root]:
        errors = [str(one) for one in verify(state) if one.severity is Severity.ERROR]
        if any(part in name for part in ("flip-early", "noindex")):
            continue  # a broker leaves damage below its recovery point alone
        assert errors == []


DAMAGED = {
    "crash-flip": "SEG-BAT-003 SEG-MSG-004",
    "crash-flip-early": "SEG-BAT-003 SEG-MSG-004",
    "crash-zero": "SEG-BAT-003 SEG-MSG-004",
    "crash-noindex": "SEG-IDX-003",
    "crash-torn": "SEG-LOG-004",
}


@each_of("name", [name for name in authentic_names() if "crash" in name])
def test_broken_directories_name_file_position_and_requirement(name: str) -> None:
    case = name.split("/")[1]
    findings = [one for one in verify(authentic(name) / "before") if one.severity is not Severity.NOTE]
    if case not in DAMAGED:
        assert findings == []
        return
    named = [one for one in findings if one.requirement in DAMAGED[case].split()]
    assert named, findings
    assert all(one.location.path.startswith(f"{case}-0/0000") and one.location.position >= 0 for one in named)
    assert {one.requirement for one in findings if one.severity is Severity.ERROR} <= {
        *DAMAGED[case].split(),
        *("SEG-IDX-002", "SEG-IDX-004", "SEG-IDX-005", "SEG-IDX-006"),
        *("SEG-TIX-002", "SEG-TIX-003", "SEG-TIX-004"),
    }


@each_of("name", [name for name in authentic_names() if "crash" not in name])
def test_every_authentic_directory_is_clean(name: str) -> None:
    assert [str(one) for one in verify(authentic(name)) if one.severity is not Severity.NOTE] == []


def write_segment(directory: Path, data: bytes, base: str = SEGMENT) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{base}.log"
    path.write_bytes(data)
    return path


def test_a_file_alone_and_an_index_with_its_log(tmp_path: Path) -> None:
    log = write_segment(tmp_path / "t-0", later(vector("V-06"), 0) + later(vector("V-06"), 3))
    assert list(verify(log)) == []
    index = log.with_suffix(".index")
    index.write_bytes(bytes.fromhex("0000000500000057"))
    assert list(verify(index)) == []
    index.write_bytes(bytes.fromhex("0000000500000056"))
    assert [one.requirement for one in verify(index)] == ["SEG-IDX-003"]
    log.unlink()
    assert list(verify(index)) == []


def test_a_log_with_any_name(tmp_path: Path) -> None:
    path = tmp_path / "copy.log"
    path.write_bytes(vector("V-06"))
    assert [one.requirement for one in verify(path)] == ["SEG-PDR-005"]
    with pytest.raises(UsageError):
        list(verify(tmp_path / "nothing"))
    (tmp_path / "notes.md").write_text("?")
    with pytest.raises(UsageError):
        list(verify(tmp_path / "notes.md"))


@pytest.mark.req("SEG-PDR-013", "SEG-PDR-014")
def test_segments_against_each_other(tmp_path: Path) -> None:
    partition = tmp_path / "t-0"
    write_segment(partition, later(vector("V-06"), 0))
    second = write_segment(partition, later(vector("V-06"), 3), f"{3:020d}")
    assert [one.requirement for one in verify(partition)] == ["SEG-PDR-012", "SEG-PDR-012"]
    second.rename(partition / f"{2:020d}.log")
    assert "SEG-PDR-013" in [one.requirement for one in verify(partition)]
    (partition / f"{2:020d}.log").rename(partition / f"{7:020d}.log")
    write_segment(partition, later(vector("V-06"), 7), f"{7:020d}")
    assert "SEG-PDR-014" in [one.requirement for one in verify(partition)]


@pytest.mark.req("SEG-PDR-016")
def test_a_partition_without_segments(tmp_path: Path) -> None:
    (tmp_path / "t-0").mkdir()
    assert [one.requirement for one in verify(tmp_path / "t-0")] == ["SEG-PDR-016"]


@pytest.mark.req("SEG-LDR-002")
def test_a_partition_twice(tmp_path: Path) -> None:
    write_segment(tmp_path / "t-0", vector("V-06"))
    shutil.copytree(tmp_path / "t-0", tmp_path / "t-00")
    assert ("SEG-LDR-002", "t-00") in [(one.requirement, one.location.path) for one in verify(tmp_path)]
    (tmp_path / "t-00").rename(tmp_path / f"t-0.{'a' * 32}-future")
    assert "SEG-LDR-002" not in [one.requirement for one in verify(tmp_path)]


@pytest.mark.req("SEG-CKP-012")
def test_checkpoint_above_the_log_end(tmp_path: Path) -> None:
    write_segment(tmp_path / "t-0", later(vector("V-06"), 0))
    checkpoint = tmp_path / "recovery-point-offset-checkpoint"
    checkpoint.write_text("0\n1\nt 0 3\n")
    assert "SEG-CKP-012" not in [one.requirement for one in verify(tmp_path)]
    checkpoint.write_text("0\n1\nt 0 4\n")
    assert "SEG-CKP-012" in [one.requirement for one in verify(tmp_path)]


def in_epoch(data: bytes, epoch: int) -> bytes:
    return patched(data, 12, "i", epoch, seal=False)


@pytest.mark.req("SEG-LOG-012")
def test_leader_epochs_go_back(tmp_path: Path) -> None:
    first, second, third = (later(vector("V-06"), offset) for offset in (0, 3, 6))
    assert found(in_epoch(first, 5) + in_epoch(second, 4)) == [("SEG-LOG-012", 99)]
    assert found(in_epoch(first, 5) + second + in_epoch(third, 5)) == []  # the one in between has none
    partition = tmp_path / "t-0"
    write_segment(partition, in_epoch(first, 5))
    log = write_segment(partition, in_epoch(second, 4), f"{3:020d}")
    findings = [one for one in verify(partition) if one.requirement == "SEG-LOG-012"]
    assert [(one.location.path, one.location.position, one.severity) for one in findings] == [
        (log.name, 12, Severity.WARNING)
    ]


@pytest.mark.req("SEG-CKP-015")
@pytest.mark.parametrize(
    ("entries", "expected"),
    [
        ("5 0\n6 3\n", True),
        ("6 3\n", True),
        ("5 0\n6 3\n7 6\n", True),
        ("6 5\n", True),
        ("9 6\n", True),
        ("", True),
        ("5 0\n", False),
        ("5 0\n6 3\n7 5\n", False),
        ("5 0\n6 4\n", False),
        ("5 0\n6 2\n", False),
        ("4 0\n", False),
    ],
)
def test_leader_epochs_of_the_checkpoint_and_of_the_log(entries: str, expected: bool, tmp_path: Path) -> None:  # noqa: FBT001
    partition = tmp_path / "t-0"
    write_segment(partition, in_epoch(later(vector("V-06"), 0), 5) + in_epoch(later(vector("V-06"), 3), 6))
    (partition / "leader-epoch-checkpoint").write_text(f"0\n{entries.count(' ')}\n{entries}")
    found_ids = {one.requirement for one in verify(partition)}
    assert ("SEG-CKP-015" not in found_ids) == expected


@pytest.mark.req("SEG-CKP-007", "SEG-CKP-008")
def test_checkpoints_that_contradict_themselves(tmp_path: Path) -> None:
    write_segment(tmp_path / "t-0", vector("V-06"))
    (tmp_path / "recovery-point-offset-checkpoint").write_text("0\n3\nt 0 3\nt 1 -1\nt 0 4\n")
    (tmp_path / "t-0" / "leader-epoch-checkpoint").write_text("0\n3\n5 10\n5 9\n-1 12\n")
    found_ids = [one.requirement for one in verify(tmp_path)]
    assert found_ids.count("SEG-CKP-008") == 2
    assert found_ids.count("SEG-CKP-007") == 4


def test_findings_say_where_from_the_path_given(tmp_path: Path) -> None:
    log = write_segment(tmp_path / "t-0", vector("V-06") + b"x")
    paths = {(start, one.location.path) for start in (tmp_path, log.parent, log) for one in verify(start)}
    assert (tmp_path, f"t-0/{SEGMENT}.log") in paths
    assert (log.parent, f"{SEGMENT}.log") in paths
    assert (log, f"{SEGMENT}.log") in paths


def test_of_error_keeps_place_and_words() -> None:
    error = CorruptRecordError(Location("a.log", 5), "SEG-BAT-003", expected="x", found="y")
    finding = Finding.of_error(error)
    assert (finding.location, finding.expected, finding.found) == (Location("a.log", 5), "x", "y")
    assert finding.severity is Severity.ERROR
    assert str(finding) == "a.log:5: expected x, found y [SEG-BAT-003]"

"""A reader of a partition gets a callback for missing offsets, and reads on after them."""

from __future__ import annotations

import shutil
import warnings
from typing import TYPE_CHECKING

import pytest
from helpers.made_partitions import checkpoint, entry, make, numbered
from helpers.support import bundled

from seglog_format import open_log_directory, open_partition
from seglog_format.cli.main import FINDINGS, USAGE, run
from seglog_format.errors import FormatError, MissingOffsetsWarning

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from seglog_format.types import Gap, Partition

    Reading = Callable[..., list[int]]

DENSE: Mapping[str, bytes] = {"0.log": entry(0, 5) + entry(5, 5), "10.log": entry(10, 5), "20.log": entry(20, 5)}
"""Three segments; offsets 15 to 19 are missing."""


def by_records(partition: Partition, **options: object) -> list[int]:
    return [record.offset for record in partition.records(**options)]  # type: ignore[arg-type]


def by_scan(partition: Partition, **options: object) -> list[int]:
    table = partition.scan(("offset",), **options).read_all()  # type: ignore[arg-type]
    return [int(offset) for offset in table["offset"].to_pylist()]


def by_threads(partition: Partition, **options: object) -> list[int]:
    return by_scan(partition, threads=3, **options)


def past_damage(partition: Partition, **options: object) -> list[int]:
    return by_scan(partition, on_corrupt=lambda _: None, **options)


@pytest.fixture(params=[by_records, by_scan, by_threads, past_damage])
def read(request: pytest.FixtureRequest) -> Reading:
    reading: Reading = request.param
    return reading


@pytest.fixture
def with_columnar_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read records by the columnar engine, however few they are."""
    from helpers.scans import take_kernels

    take_kernels(monkeypatch)


def reported(partition: Partition, read: Reading, **options: object) -> list[tuple[int, int, str]]:
    gaps: list[Gap] = []
    read(partition, on_gap=gaps.append, **options)
    return [(gap.first_offset, gap.next_offset, gap.kind.value) for gap in gaps]


def segments(tmp_path: Path) -> Path:
    """Segments 0, 92, 184 and 274 up to offset 299, as a broker wrote them."""
    return shutil.copytree(bundled("4.3.0/segs-fine") / "segs-fine-0", tmp_path / "segs-fine-0")


@pytest.mark.req("SEG-LKP-019")
def test_records_go_on_behind_a_gap_and_warn(tmp_path: Path) -> None:
    directory = make(tmp_path, DENSE)
    with open_partition(directory) as partition, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        offsets = [record.offset for record in partition.records()]
    assert offsets == [*range(15), *range(20, 25)]
    assert [each.category.__name__ for each in caught] == ["MissingOffsetsWarning"]
    (warning,) = caught
    assert issubclass(warning.category, MissingOffsetsWarning)
    assert "5 offsets are missing, 15 to 19 (between segments)" in str(warning.message)
    assert warning.filename == __file__


SIZE_FLIPPED = bytearray(entry(0, 5) + entry(5, 5) + entry(10, 5))
SIZE_FLIPPED[len(entry(0, 5)) + 9] ^= 0x40
"""The second of three batches claims to be larger than what is left of the file."""


@pytest.mark.req("SEG-PDR-024")
@pytest.mark.parametrize("from_offset", [None, 3, 7])
def test_a_scan_past_damage_hears_of_a_wrong_size_before_other_segments(
    from_offset: int | None, tmp_path: Path
) -> None:
    damaged: list[FormatError] = []
    gaps: list[Gap] = []
    with open_partition(make(tmp_path, {"0.log": bytes(SIZE_FLIPPED), "15.log": entry(15, 5)})) as partition:
        by_scan(partition, from_offset=from_offset, on_corrupt=damaged.append, on_gap=gaps.append)
    first = max(5, from_offset or 0)
    assert [(gap.first_offset, gap.next_offset, gap.kind.value) for gap in gaps] == [(first, 15, "cut segment")]
    assert [(error.location.position, error.requirements) for error in damaged] == [
        (len(entry(0, 5)), ("SEG-PDR-024",))
    ]
    assert "expected offsets up to 14, where the next segment begins" in str(damaged[0])


def test_a_torn_end_of_the_last_segment_is_no_damage(tmp_path: Path) -> None:
    damaged: list[FormatError] = []
    with open_partition(make(tmp_path, {"0.log": entry(0, 5) + entry(5, 5)[:-1]})) as partition:
        assert by_scan(partition, on_corrupt=damaged.append) == [0, 1, 2, 3, 4]
    assert damaged == []


def test_entries_behind_an_end_that_seems_torn_are_damage(tmp_path: Path) -> None:
    damaged: list[FormatError] = []
    with open_partition(make(tmp_path, {"0.log": bytes(SIZE_FLIPPED)})) as partition:
        assert by_scan(partition, on_corrupt=damaged.append, on_gap=lambda _: None) == [0, 1, 2, 3, 4]
    assert [error.requirements for error in damaged] == [("SEG-LOG-004",)]


def test_other_gaps_are_no_damage(tmp_path: Path) -> None:
    damaged: list[FormatError] = []
    with open_partition(make(tmp_path, DENSE)) as partition:
        by_scan(partition, on_corrupt=damaged.append, on_gap=lambda _: None)
    assert damaged == []


@pytest.mark.parametrize("threads", [1, 3])
def test_a_scan_warns_where_it_is_read(threads: int, tmp_path: Path) -> None:
    directory = make(tmp_path, DENSE)
    with open_partition(directory) as partition, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert partition.scan(("offset",), threads=threads).read_all().num_rows == 20
    assert [(each.category, each.filename) for each in caught] == [(MissingOffsetsWarning, __file__)]


@pytest.mark.req("SEG-LKP-019")
def test_between_segments(read: Reading, tmp_path: Path) -> None:
    with open_partition(make(tmp_path, DENSE)) as partition:
        assert reported(partition, read) == [(15, 20, "between segments")]
        assert reported(partition, read, from_offset=12) == [(15, 20, "between segments")]
        assert reported(partition, read, from_offset=17) == [(17, 20, "between segments")]
        assert reported(partition, read, from_offset=20) == []
        assert reported(partition, read, to_offset=15) == []
        assert reported(partition, read, to_offset=16) == [(15, 20, "between segments")]


@pytest.mark.req("SEG-LKP-019")
@pytest.mark.usefixtures("with_columnar_engine")
def test_records_from_the_engine(tmp_path: Path) -> None:
    with open_partition(make(tmp_path, DENSE)) as partition:
        assert reported(partition, by_records) == [(15, 20, "between segments")]


def test_segments_that_join(read: Reading, tmp_path: Path) -> None:
    with open_partition(segments(tmp_path)) as partition:
        assert reported(partition, read) == []


def test_an_empty_segment(read: Reading, tmp_path: Path) -> None:
    with open_partition(make(tmp_path, {**DENSE, "10.log": b""})) as partition:
        assert reported(partition, read) == [(10, 20, "between segments")]


@pytest.mark.req("SEG-LKP-019")
def test_a_missing_log(read: Reading, tmp_path: Path) -> None:
    directory = segments(tmp_path)
    (directory / numbered("92.log")).unlink()
    with open_partition(directory) as partition:
        assert reported(partition, read) == [(92, 184, "missing log")]
    (directory / numbered("0.log")).unlink()
    with open_partition(directory) as partition:
        assert reported(partition, read) == [(0, 184, "missing log")]
        assert reported(partition, read, from_offset=184) == []


@pytest.mark.req("SEG-LKP-019")
@pytest.mark.parametrize("size", [0, 19_890])
def test_a_cut_segment(read: Reading, size: int, tmp_path: Path) -> None:
    directory = segments(tmp_path)
    log = directory / numbered("92.log")
    log.write_bytes(log.read_bytes()[:size])
    with open_partition(directory) as partition:
        assert reported(partition, read) == [(92 if not size else 182, 184, "cut segment")]


@pytest.mark.req("SEG-LKP-019")
def test_the_log_ends_below_its_high_watermark(read: Reading, tmp_path: Path) -> None:
    directory = make(tmp_path, {"0.log": entry(0, 5)})
    checkpoint(directory, "replication-offset-checkpoint", 9)
    with open_partition(directory) as partition:
        assert reported(partition, read) == [(5, 9, "log end")]
        assert reported(partition, read, to_offset=5) == []
    (directory / numbered("0.log")).unlink()
    with open_partition(directory) as partition:
        assert reported(partition, read) == [(0, 9, "log end")]


def test_damage_is_no_gap(tmp_path: Path) -> None:
    damaged = bytearray(entry(10, 5))
    damaged[-1] ^= 1
    garbage = entry(10, 2) + bytes(12) + b"\xff" * 40
    for number, log in enumerate((bytes(damaged), garbage)):
        files = {"0.log": entry(0, 10), "10.log": log, "15.log": entry(15)}
        with open_partition(make(tmp_path / str(number), files)) as partition:
            assert reported(partition, past_damage) == []


COMPACTED = {
    "by its cleaner": DENSE,
    "by its gaps": {**DENSE, "0.log": entry(0, 5) + entry(6, 4)},
    "by its name": DENSE,
}


@pytest.mark.req("SEG-LKP-019")
@pytest.mark.parametrize("how", COMPACTED)
def test_nothing_is_told_of_a_compacted_log(how: str, read: Reading, tmp_path: Path) -> None:
    directory = make(tmp_path, COMPACTED[how])
    if how == "by its name":
        directory = directory.rename(directory.with_name("__consumer_offsets-3"))
    elif how == "by its cleaner":
        checkpoint(directory, "cleaner-offset-checkpoint", 0)
    with open_partition(directory) as partition:
        assert reported(partition, read) == []


def test_a_scan_of_a_log_directory(tmp_path: Path) -> None:
    directories = open_log_directory(make(tmp_path, DENSE).parent)
    gaps: list[Gap] = []
    assert directories.scan(("partition", "offset"), on_gap=gaps.append).read_all().num_rows == 20
    assert [str(gap.missing) for gap in gaps] == ["5 offsets are missing, 15 to 19"]


def test_nothing_is_read_for_borders_that_join(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from seglog_format.log import gaps

    def refuse(*_: object, **__: object) -> Iterator[int]:
        raise AssertionError

    with open_partition(segments(tmp_path)) as partition:
        monkeypatch.setattr(gaps, "LogSegment", refuse)
        monkeypatch.setattr(gaps, "checkpointed_offset", refuse)
        assert by_records(partition) == by_scan(partition) == list(range(300))


def test_dump_tells_on_standard_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = make(tmp_path, DENSE)
    log = directory / numbered("10.log")
    for path, options, is_reported in (
        (directory, (), True),
        (directory.parent, ("--json",), True),
        (directory, ("--from", "12", "--to", "22"), True),
        (directory, ("--no-records", "--to", "18"), True),
        (directory, ("--from", "20"), False),
        (directory, ("--to", "15"), False),
        (log, (), False),
    ):
        assert run(["dump", str(path), *options]) == is_reported
        out, err = capsys.readouterr()
        message = f"seglog: {log}: 5 offsets are missing, 15 to 19 (between segments)"
        assert err.splitlines() == ([message] if is_reported else [])
        assert "are missing" not in out


@pytest.mark.req("SEG-PDR-024")
def test_dump_ends_with_one_where_damage_hides_offsets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = make(tmp_path, {"0.log": bytes(SIZE_FLIPPED), "15.log": entry(15, 5)})
    for path in (directory, directory.parent):
        assert run(["dump", "--no-records", str(path)]) == 1
        assert "10 offsets are missing, 5 to 14 (cut segment)" in capsys.readouterr().err
    assert run(["dump", "--from", "15", str(directory)]) == 0
    assert run(["dump", str(directory / numbered("0.log"))]) == 1  # whole batches follow the one with a wrong size
    assert capsys.readouterr().err == ""


def test_dump_tells_nothing_of_logs_that_are_whole(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    directory = segments(tmp_path)
    shutil.copytree(bundled("4.3.0/compact") / "compact-0", directory.parent / "compact-0")
    assert run(["dump", "--no-records", str(directory.parent)]) == 0
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("wanted", [["--from", "3"], ["--to", "1"], ["--from", "3", "--json"]])
def test_dump_says_that_no_batch_holds_the_wanted_offsets(
    wanted: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = make(tmp_path, {"1.log": entry(1) + entry(2)})
    log = next(directory.glob("*.log"))
    note = "no batch or record at these offsets"
    for path in (log, directory):
        assert run(["dump", str(path), *wanted]) == FINDINGS
        assert capsys.readouterr() == ("", f"seglog: {path}: {note}\n")
    assert run(["dump", str(log), "--from", "2"]) == 0
    assert note not in capsys.readouterr().err


@pytest.mark.parametrize("wanted", [["--from", "3", "--to", "3"], ["--from", "3", "--to", "1"], ["--to", "0"]])
def test_dump_refuses_a_range_without_offsets(
    wanted: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = make(tmp_path, {"1.log": entry(1) + entry(2)})
    assert run(["dump", str(directory), *wanted]) == USAGE
    assert capsys.readouterr().err.startswith("seglog: no offset is from ")

"""An export of a damaged log ends before the damage and says so, in every run, or tells which offsets are missing."""

from __future__ import annotations

import json
import os
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from helpers.exported import make_log, offsets_of
from helpers.support import bundled

from seglog_format import export, salvage
from seglog_format.cli.main import DONE, FINDINGS, UNREADABLE, run
from seglog_format.errors import CorruptRecordError
from seglog_format.tables.progress import ChangeKind

if TYPE_CHECKING:
    from pathlib import Path

SEGMENT = 102
NEXT_SEGMENT = 156
CRC_POSITION = 17


def flip(directory: Path, batch: int, byte: int) -> None:
    """Change one bit of a batch of the segment, counted from 0, by the sizes in the file."""
    path = directory / f"{SEGMENT:020}.log"
    data = bytearray(path.read_bytes())
    position = 0
    for _ in range(batch):
        position += 12 + int.from_bytes(data[position + 8 : position + 12], "big")
    data[position + byte] ^= 0x40
    path.write_bytes(data)


@pytest.fixture
def segs(tmp_path: Path) -> Path:
    """Provide segments that a broker wrote, 0, 102, 156 and so on up to offset 449."""
    return shutil.copytree(bundled("4.3.0/segs") / "segs-0", tmp_path / "logs" / "segs-0")


@pytest.fixture
def resized(segs: Path) -> Path:
    """Provide the same where the size of the third batch of segment 102 reaches beyond the file."""
    flip(segs, 2, 9)
    return segs


def exported(capsys: pytest.CaptureFixture[str], path: Path, out: Path, *options: str) -> tuple[int, str, str]:
    capsys.readouterr()
    status = run(["export", str(path), "--to", str(out), *options])
    text, errors = capsys.readouterr()
    return status, text, "".join(line for line in errors.splitlines(keepends=True) if "compiling" not in line)


def json_of(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text)
    return found


@pytest.mark.req("SEG-PDR-024")
def test_wrong_size_ends_the_export_there_in_every_run(
    resized: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for rows in ("114 rows in 1 file", "nothing new"):
        status, out, err = exported(capsys, resized, tmp_path / "out")
        assert status == 3
        assert out.startswith(f"segs-0: {rows}")
        assert out.endswith(", next offset 114, stopped at damage; 'seglog salvage' copies what follows\n")
        assert "[SEG-PDR-024]" in err
        assert err.count("\n") == 1
    assert offsets_of(tmp_path / "out") == list(range(114))


def test_json_has_the_hidden_offsets(resized: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, out, _ = exported(capsys, resized, tmp_path / "out", "--json")
    (change,) = json_of(out)["changes"]
    assert (status, change["kind"]) == (3, "damaged")
    assert change["missing"] == {"firstOffset": 114, "nextOffset": NEXT_SEGMENT, "offsetCount": 42}


def test_wrong_checksum_is_told_in_the_same_way(segs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    flip(segs, 2, CRC_POSITION)
    status, out, err = exported(capsys, segs, tmp_path / "out")
    assert (status, err.count("\n")) == (3, 1)
    assert "114 rows" in out
    assert out.endswith(", next offset 114, stopped at damage; 'seglog salvage' copies what follows\n")
    status, out, _ = exported(capsys, segs, tmp_path / "out", "--json")
    (change,) = json_of(out)["changes"]
    assert (status, change["kind"]) == (3, "damaged")
    assert "missing" not in change


def test_damaged_partition_has_its_line_beside_others(
    resized: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make_log(resized.parent / "more-0", range(10))
    status, out, err = exported(capsys, resized.parent, tmp_path / "out")
    assert status == 3
    assert [line.partition(":")[0] for line in out.splitlines()] == ["more-0", "segs-0"]
    assert "1 of 2 partitions could not be read" in err


def test_python_raises_after_the_rows_before(resized: Path, tmp_path: Path) -> None:
    with pytest.raises(CorruptRecordError, match="SEG-PDR-024"):
        export(resized, tmp_path / "out")
    assert offsets_of(tmp_path / "out") == list(range(114))


def test_table_goes_on_with_what_salvage_copies(
    resized: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    exported(capsys, resized, tmp_path / "out")
    for _ in salvage(resized, tmp_path / "saved" / "segs-0").apply():
        pass
    status, out, _ = exported(capsys, tmp_path / "saved" / "segs-0", tmp_path / "out")
    assert status == 0
    assert out.startswith("segs-0: ")
    found = offsets_of(tmp_path / "out")
    assert found == sorted(set(found))
    assert 114 not in found
    assert found[-1] == 449


@pytest.mark.req("SEG-LKP-019")
def test_lost_segment_is_a_change_and_the_rest_is_added(
    segs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in segs.glob(f"{SEGMENT:020}.*"):
        path.unlink()
    status, out, err = exported(capsys, segs, tmp_path / "out", "--json")
    missing, partition = out.splitlines()
    assert json.loads(missing)["type"] == "missing"
    (change,) = json_of(partition)["changes"]
    assert (status, change["kind"], err.count("\n")) == (1, ChangeKind.MISSING.value, 1)
    assert change["missing"] == {"firstOffset": SEGMENT, "nextOffset": NEXT_SEGMENT, "offsetCount": 54}
    assert offsets_of(tmp_path / "out") == [*range(SEGMENT), *range(NEXT_SEGMENT, 450)]
    assert exported(capsys, segs, tmp_path / "out")[0] == 0


def test_torn_end_of_the_last_segment_is_nothing_to_report(
    segs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    last = max(segs.glob("*.log"))
    last.write_bytes(last.read_bytes()[:-5])
    for snapshot in segs.glob("*.snapshot"):  # the last one would prove that the log was longer
        snapshot.unlink()
    status, out, err = exported(capsys, segs, tmp_path / "out", "--json")
    assert (status, err) == (0, "")
    assert json_of(out)["changes"] == []


@pytest.mark.req("SEG-PDR-002")
def test_a_directory_whose_name_is_no_text_stops_no_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in (b"\xff-0", b"orders-0"):
        make_log(tmp_path / "data" / os.fsdecode(name), range(10))
    assert run(["export", str(tmp_path / "data"), "--to", str(tmp_path / "table")]) == UNREADABLE
    out, err = capsys.readouterr()
    assert "orders-0: 10 rows" in out
    assert "SEG-PDR-002" in err
    assert run(["resurrect", str(tmp_path / "data")]) in {DONE, FINDINGS}
    assert "left out: no topic can have this name" in capsys.readouterr().out

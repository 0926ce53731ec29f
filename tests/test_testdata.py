"""The package of test data: what a stranger's tests get from the plug-in and from the strategies."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import tomllib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from helpers.support import REPOSITORY, bundled_cases, vectors
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from seglog_format import CompressionCodec, decode_batch, open_log_directory, verify, walk
from seglog_format.errors import FormatError
from seglog_format.strategies import batches, damages, directories, records, segments
from tools.release_check import LARGEST

if TYPE_CHECKING:
    from seglog_format.strategies import Segment
    from seglog_format.types import Record, RecordBatch

PACKAGE = REPOSITORY / "fixtures"
STRANGER = '''
from struct import unpack_from

import pytest
from hypothesis import given
from seglog_format.strategies import segments


def first_offsets(log):
    """A toy decoder: the base offset of each batch."""
    found, position = [], 0
    while position < len(log):
        offset, size = unpack_from(">qi", log, position)
        found.append(offset)
        position += 12 + size
    return found


def test_transactions(seglog_partition, seglog_expected):
    logs = sorted(seglog_partition("4.4/txn").glob("*.log"))
    expected = [line["baseOffset"] for line in seglog_expected("4.4/txn") if line["type"] == "batch"]
    assert [offset for log in logs for offset in first_offsets(log.read_bytes())] == expected


@given(segments())
def test_any_segment(segment):
    assert first_offsets(segment.data) == [batch.header.base_offset for batch in segment.batches]


def test_generated(seglog_generate):
    (partition,) = seglog_generate({"topic": [{"name": "t", "step": [{"records": 20, "batch": 5}]}]}).glob("t-*")
    (log,) = partition.glob("*.log")
    assert first_offsets(log.read_bytes()) == [0, 5, 10, 15]
    assert len(list(seglog_generate(seed=3).glob("made-3-*"))) > 0


def test_recovery(seglog_partition, seglog_log_directory):
    before, after = (seglog_partition("4.4/crash-torn", state=state) for state in ("before", "after"))
    assert before.name == after.name == "crash-torn-0"
    assert (seglog_log_directory("4.4/crash-torn", state="after") / ".kafka_cleanshutdown").exists()
    with pytest.raises(LookupError, match="has the state before or after, not ''"):
        seglog_partition("4.4.0/crash-torn")


def test_copies_are_for_one_test(seglog_partition):
    copy, other = (seglog_partition("4.4/one", writable=True) for _ in range(2))
    log = copy / "00000000000000000000.log"
    log.write_bytes(b"")
    assert (other / log.name).stat().st_size == (seglog_partition("4.4/one") / log.name).stat().st_size > 0
'''


def run_stranger(project: Path, *paths: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "SEGLOG_TESTDATA_CACHE": str(project / "cache")}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "seglog_testdata.plugin", "-p", "no:cacheprovider", "."]
    return subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)


def test_a_strangers_project_uses_the_plug_in_and_the_strategies(tmp_path: Path) -> None:
    (tmp_path / "test_toy.py").write_text(STRANGER, encoding="utf-8")
    first = run_stranger(tmp_path, str(PACKAGE))
    assert first.returncode == 0, first.stdout
    assert "5 passed" in first.stdout
    unpacked = sorted(path.name for path in (tmp_path / "cache").iterdir())
    assert [name.rpartition("-")[0] for name in unpacked] == ["4.4.0-crash-torn", "4.4.0-one", "4.4.0-txn"]
    assert run_stranger(tmp_path, str(PACKAGE)).returncode == 0


def test_wrong_readers_fail(tmp_path: Path) -> None:
    wrong = STRANGER.replace("position += 12 + size", "position += 12 + size + (size > 300)")
    (tmp_path / "test_toy.py").write_text(wrong, encoding="utf-8")
    assert run_stranger(tmp_path, str(PACKAGE)).returncode == 1


def without_a_reader(tmp_path: Path, code: str) -> subprocess.CompletedProcess[str]:
    environment = {"PYTHONPATH": str(PACKAGE), "SEGLOG_TESTDATA_CACHE": str(tmp_path / "cache"), "PATH": ""}
    command = [sys.executable, "-S", "-c", code]  # -S: no installed packages
    return subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False)


def test_the_data_need_no_reader_and_no_other_package(tmp_path: Path) -> None:
    code = "import seglog_testdata as t; print(*t.cases(), len(t.vectors()), t.case('4/txn').name)"
    done = without_a_reader(tmp_path, code)
    assert done.returncode == 0, done.stderr
    *names, count, newest = done.stdout.split()
    assert sorted(names) == bundled_cases()
    assert (int(count), newest) == (len(vectors()), "4.4.0/txn")


def test_the_wheel_has_every_bundled_release_and_may_be_published() -> None:
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text(encoding="utf-8"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    releases = sorted(path.name for path in PACKAGE.glob("kafka-*"))
    assert sorted(wheel["sources"]) == [*releases, "vectors"]
    packed = [path for path in PACKAGE.glob("kafka-*/*/*") if path.name not in wheel["exclude"]]
    assert sum(path.stat().st_size for path in packed) < 0.95 * LARGEST  # the files are compressed already


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("4.4/nothing", "there is no case '4.4/nothing'; there are "),
        ("9/txn", "4.4.0/txn"),
        ("9/nothing", "RELEASE/PURPOSE of the releases 0.8.2.2, "),
    ],
)
def test_unknown_cases_are_answered_with_similar_ones(name: str, message: str, tmp_path: Path) -> None:
    done = without_a_reader(tmp_path, f"import seglog_testdata as t; t.case({name!r})")
    assert "LookupError" in done.stderr
    assert message in done.stderr


def test_half_an_unpacked_archive_is_never_seen(tmp_path: Path) -> None:
    """A killed process leaves a directory that no other takes for the case."""
    cache = tmp_path / "cache"
    (cache / ".new-left").mkdir(parents=True)
    code = "import seglog_testdata as t; p = t.case('4.4/one').partition(); print(sorted(x.name for x in p.iterdir()))"
    done = without_a_reader(tmp_path, code)
    with tarfile.open(PACKAGE / "kafka-4.4.0" / "one" / "files.tar.gz") as files:
        names = [Path(name).name for name in files.getnames() if "/" in name.rstrip("/")]
    assert done.stdout.strip() == str(sorted(names)), done.stderr


# -- strategies


@given(st.lists(records(max_size=3, has_headers=False), max_size=3))
def test_options_of_records_hold(drawn: list[Record]) -> None:
    for record in drawn:
        assert not record.headers
        assert all(len(each or b"") <= 3 for each in (record.key, record.value))


@given(segments(codecs=[CompressionCodec.LZ4], has_gaps=False))
def test_options_of_segments_hold(segment: Segment) -> None:
    offset = segment.base_offset
    for batch in segment.batches:
        assert (batch.header.base_offset, CompressionCodec(batch.header.codec_id)) == (offset, CompressionCodec.LZ4)
        offset += len(batch.records)


@given(segments())
def test_segments_hold_their_batches(segment: Segment) -> None:
    frames = [frame.position for frame in walk(segment.data)]
    assert frames == [batch.position for batch in segment.batches]
    for start, end, batch in zip(frames, [*frames[1:], None], segment.batches, strict=True):
        assert replace(decode_batch(segment.data[start:end]), position=start) == batch


@given(batches(base_offset=7, max_records=2))
def test_options_of_batches_hold(batch: RecordBatch) -> None:
    assert batch.header.base_offset == 7
    assert 1 <= len(batch.records) <= 2


@given(segments(), st.data())
def test_damages_are_seen(segment: Segment, data: st.DataObject) -> None:
    damage = data.draw(damages(segment.data))
    assert damage.data != segment.data
    assert damage.data[: damage.position] == segment.data[: damage.position]
    hit = max((batch for batch in segment.batches if batch.position <= damage.position), key=lambda each: each.position)
    if damage.kind == "flipped" and damage.position - hit.position >= 17:  # the CRC covers neither offset nor length
        with pytest.raises(FormatError):
            decode_batch(damage.data[hit.position : hit.position + 12 + hit.header.batch_length])


def test_directories_are_sound(tmp_path_factory: pytest.TempPathFactory) -> None:
    parent, seen = tmp_path_factory.mktemp("drawn"), set[Path]()

    @settings(max_examples=8, phases=[Phase.generate])
    @given(directories(parent))
    def check(path: Path) -> None:
        seen.add(path)
        assert not [finding for finding in verify(path) if finding.severity.name == "ERROR"]
        assert open_log_directory(path).partitions

    check()
    assert {path.name for path in parent.iterdir()} == {path.name for path in seen}

"""Files that another process cuts, removes and restores while they are read: an error of the package, never a death."""

from __future__ import annotations

import ast
import os
import random
import shutil
import subprocess
import sys
import warnings
from argparse import Namespace
from collections import deque
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest
from helpers.support import REPOSITORY

pytest.importorskip("pyarrow", reason="scans need the extra fast")
pytest.importorskip("kio", reason="the server needs kio")
pytest.importorskip("pyspark", reason="Spark's rows need pyspark")
pytest.importorskip("pyiceberg", reason="exports to Iceberg need pyiceberg")

from helpers.serving import serving
from kio.schema.errors import ErrorCode

import seglog_format
from proofs import shrinking_files
from proofs.shrinking.changing import CALM, make, value_of
from proofs.shrinking.commands import COMMANDS, LEFT_OUT, STATUSES, chosen_files, words_of, wrong_rows
from proofs.shrinking.roads import ROADS
from seglog_format.cli.main import COMMANDS as ALL_COMMANDS
from seglog_format.cli.main import run
from seglog_format.codec.build import build_batch, new_record, with_offset
from seglog_format.codec.encode import encode_batch
from seglog_format.errors import UnreadableError
from seglog_format.log.partition import open_partition
from seglog_format.serve import served_partition
from seglog_format.serve.slices import FileSlice
from seglog_format.storage import file_reader
from seglog_format.storage.file_reader import BUFFER_SIZE

if TYPE_CHECKING:
    from collections.abc import Iterator

PACKAGE: Final = Path(seglog_format.__file__).parent
RECORDS: Final = 6000
LEFT: Final = 4096
"""Bytes that are left of each log."""
KINDS: Final = ("log", "index", "timeindex", "txnindex", "snapshot")
LOG: Final = f"{0:020}.log"

CUT: Final = f"""
import os, random, sys, warnings
from pathlib import Path
from proofs.shrinking.roads import ROADS
from seglog_format.errors import SeglogError
warnings.simplefilter("ignore")
root, name = Path(sys.argv[1]), sys.argv[2]
rows = iter(ROADS[name](root, "shaken-0", random.Random(1)))
try:
    next(rows, None)
    for path in root.glob("shaken-*/*"):
        os.truncate(path, min(path.stat().st_size, {LEFT} if path.suffix == ".log" else 8))
    print("read to the end:", sum(1 for _ in rows))
except SeglogError as error:
    print(type(error).__name__, error)
"""
STREAMED: Final = ("records", "batches", "fetches", "scan, view")
"""Roads that deliver a first record long before they have read the last one."""


def dice() -> random.Random:
    return random.Random(1)  # noqa: S311 - chance that repeats


@pytest.fixture(scope="module")
def truth(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("shrinking") / "truth"
    make(root, RECORDS)
    return root


@pytest.fixture
def root(truth: Path, tmp_path: Path) -> Path:
    return shutil.copytree(truth, tmp_path / "logs")


@pytest.mark.req("SEG-PDR-022")
@pytest.mark.parametrize("name", ROADS)
def test_logs_that_are_cut_after_the_first_record_end_no_process(name: str, root: Path) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", CUT, str(root), name], cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 0, f"{ended.returncode} {ended.stderr}"
    if name in STREAMED:
        assert ended.stdout.startswith(f"UnreadableError {root / 'shaken-0' / LOG}:")
        assert "found the file has become shorter [SEG-PDR-022]" in ended.stdout


# Commands


@contextmanager
def cut_at_the_first_read(kind: str, monkeypatch: pytest.MonkeyPatch, root: Path) -> Iterator[list[str]]:
    """Cut the first file of a kind below a directory when it is first read, in the middle of what is read."""
    cut: list[str] = []
    real = file_reader._read_at

    def read(descriptor: int, size: int, position: int) -> bytes | memoryview:
        path = str(Path(f"/proc/self/fd/{descriptor}").readlink())
        if not cut and path.endswith(f".{kind}") and path.startswith(str(root)):
            cut.append(path)
            os.truncate(path, position + size // 2)
        return real(descriptor, size, position)

    with monkeypatch.context() as patch:
        patch.setattr(file_reader, "_read_at", read)
        yield cut


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
@pytest.mark.req("SEG-PDR-022")
@pytest.mark.filterwarnings("ignore::seglog_format.errors.MissingOffsetsWarning")
@pytest.mark.parametrize("name", [name for name in COMMANDS if not name.startswith("spark")])
def test_a_command_ends_as_documented_if_a_file_is_cut_at_its_first_read(
    name: str, truth: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for kind in KINDS:
        root, out = shutil.copytree(truth, tmp_path / kind), tmp_path / f"{kind}-out"
        files = chosen_files(root, truth, out, dice())
        with cut_at_the_first_read(kind, monkeypatch, root) as cut:
            status = run(words_of(COMMANDS[name], files))
        output, errors = capsys.readouterr()
        assert status in STATUSES
        assert "Traceback" not in errors
        assert wrong_rows(COMMANDS[name], output, files) == []
        if cut and kind == "log":
            assert status or "become shorter" in output + errors or name in IN_PARTS, (status, output, errors)


IN_PARTS: Final = ("inspect", "lookup of an offset", "lookup of a time", "retain", "retain, compacted", "cluster")
"""Commands that need a part of a log only, which may have been read before the cut."""


def test_every_command_is_looked_at_or_left_out_with_a_reason() -> None:
    named = {command.words.split()[0] for command in COMMANDS.values()}
    assert named | set(LEFT_OUT) == set(ALL_COMMANDS)
    assert not named & set(LEFT_OUT)


# Nothing is mapped


MAPPED: Final[list[str]] = []
"""Files that were mapped while `watching` was on."""
WATCHED: Final[list[str]] = []


def note_mapping(event: str, arguments: tuple[object, ...]) -> None:
    if WATCHED and event == "mmap.__new__" and arguments[0] != -1:
        MAPPED.append(str(Path(f"/proc/self/fd/{arguments[0]}").readlink()))


@contextmanager
def watching(root: Path) -> Iterator[list[str]]:
    """Note files below a directory that Python maps; the hook stays, since Python can remove none."""
    if not WATCHED and not getattr(note_mapping, "is_on", False):
        sys.addaudithook(note_mapping)
        note_mapping.is_on = True  # type: ignore[attr-defined]
    MAPPED.clear()
    WATCHED.append(str(root))
    found: list[str] = []
    try:
        yield found
    finally:
        WATCHED.clear()
        found += [path for path in MAPPED if path.startswith(str(root))]


def is_mapped(root: Path) -> bool:
    """Return whether any file below a directory is mapped now, by whatever library."""
    return str(root) in Path("/proc/self/maps").read_text(encoding="utf-8")


linux = pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")


@linux
@pytest.mark.parametrize("name", ROADS)
def test_no_call_maps_a_file(name: str, root: Path) -> None:
    with watching(root) as found, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in ROADS[name](root, "shaken-0", dice()):
            assert not is_mapped(root)
            break
    assert found == []


@linux
@pytest.mark.parametrize("name", [name for name in COMMANDS if not name.startswith("spark")])
def test_no_command_maps_a_file(name: str, truth: Path, root: Path, tmp_path: Path) -> None:
    with watching(root) as found:
        assert run(words_of(COMMANDS[name], chosen_files(root, truth, tmp_path / "out", dice()))) in STATUSES
    assert found == []


@linux
def test_a_file_is_mapped_for_a_caller_who_asks(root: Path) -> None:
    with watching(root) as found, open_partition(root / CALM, mapped=True) as partition:
        next(partition.records())
        assert partition.segments[0].offset_index is not None
        assert is_mapped(root)
    assert found == [str(root / CALM / LOG), str(root / CALM / f"{0:020}.index")]


def test_only_the_owner_of_file_bytes_can_map_a_file() -> None:
    """Whoever maps memory imports `mmap`; of pyarrow and numpy, nobody uses what maps files."""
    importers, others = set[str](), set[str]()
    for path in PACKAGE.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
        attributes = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        importers |= {path.stem} if "mmap" in names else set()
        others |= {path.stem} if attributes & {"memmap", "memory_map"} else set()
    assert (importers, others) == ({"byte_source", "file_reader"}, set())


# Memory


def test_of_all_open_files_only_the_last_one_keeps_a_window(truth: Path) -> None:
    with open_partition(truth / CALM) as partition:
        assert len(partition.segments) > 1
        deque(partition.batches(), maxlen=0)
        kept = [segment for segment in partition.segments if segment._bytes is not None and segment._bytes._window.data]
        assert kept == [partition.segments[-1]]


@linux
def test_a_scan_keeps_no_window_that_no_batch_refers_to(tmp_path: Path) -> None:
    path, count = tmp_path / "large-0", 160
    path.mkdir()
    one = encode_batch(build_batch([new_record(value=dice().randbytes(2**19))]))
    with (path / LOG).open("wb") as file:
        for offset in range(count):
            file.write(with_offset(one, offset, 0))
    with open_partition(path) as partition:
        deque(partition.scan(), maxlen=0)  # what is used again is there
        before, most = anonymous_size(), 0
        reader = partition.scan(batch_rows=1)
        first = next(reader)
        for _ in reader:
            most = max(most, anonymous_size() - before)
    assert first.column("value")[0].as_py() == dice().randbytes(2**19)
    assert most < 5 * BUFFER_SIZE < count * 2**19 // 2


def anonymous_size() -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon:"))


# Indexes


def test_an_index_that_is_cut_as_brokers_do_when_they_roll_is_no_error(root: Path) -> None:
    index = root / CALM / f"{0:020}.index"
    right = index.read_bytes()
    index.write_bytes(right + bytes(1 << 20))  # as preallocated
    with open_partition(root / CALM, trust_indexes=True) as partition:
        assert partition.segments[0].offset_index is not None
        os.truncate(index, len(right) // 16 * 8)
        record = next(partition.records(2000))
    assert record.value == value_of("calm", 0, 2000)


# The server


@pytest.mark.req("SEG-PDR-022")
@pytest.mark.parametrize("left", [LEFT, 0])
def test_a_served_log_that_is_cut_is_an_error_of_its_partition_alone(root: Path, left: int) -> None:
    log = root / "shaken-0" / LOG
    right = log.read_bytes()
    with serving(root) as served, served.client() as client, served.client() as other:
        assert client.fetch("shaken", 0).records
        os.truncate(log, left)
        assert client.fetch("shaken", 2000).error_code is ErrorCode.kafka_storage_error
        for each in (client, other):
            assert each.fetch("shaken", 2000, number=1).records
            assert each.fetch("shaken", 5900).records
        log.write_bytes(right)
        assert client.fetch("shaken", 2000).records == other.fetch("shaken", 2000).records != b""
    assert any("shaken-0" in finding for finding in served.findings)


def test_a_served_log_that_is_removed_is_an_error_until_it_is_back(root: Path) -> None:
    log = root / "shaken-0" / LOG
    right = log.read_bytes()
    with serving(root) as served, served.client() as client:
        assert client.fetch("shaken", 0).records
        log.unlink()
        assert client.fetch("shaken", 2000).error_code is ErrorCode.offset_out_of_range
        assert client.fetch("shaken", 2000, number=1).records
        log.write_bytes(right)
        assert client.fetch("shaken", 2000).records


@pytest.mark.parametrize("waits", [0.0, 1000.0])
def test_a_damaged_log_is_read_again_from_time_to_time(
    root: Path, monkeypatch: pytest.MonkeyPatch, waits: float
) -> None:
    assert served_partition.REREAD_SECONDS >= 1
    monkeypatch.setattr(served_partition, "REREAD_SECONDS", waits)
    log = root / "shaken-0" / LOG
    right = log.read_bytes()
    log.write_bytes(right[:LEFT] + bytes(len(right) - LEFT))
    with serving(root) as served, served.client() as client:
        for _ in range(2):
            assert client.fetch("shaken", 1000).error_code is ErrorCode.corrupt_message
        with log.open("r+b") as file:
            file.write(right)
        found = client.fetch("shaken", 1000)
        assert found.error_code is (ErrorCode.corrupt_message if waits else ErrorCode.none)


@pytest.mark.req("SEG-PDR-022")
def test_an_answer_is_not_begun_if_its_file_is_too_short(tmp_path: Path) -> None:
    log = tmp_path / LOG
    log.write_bytes(bytes(100))
    FileSlice(str(log), 40, 60).close()
    with pytest.raises(UnreadableError, match="become shorter") as caught:
        FileSlice(str(log), 40, 61)
    assert (caught.value.location.position, caught.value.location.size) == (100, 1)


# The proof


@pytest.mark.parametrize(
    ("only", "seed"), [("scan, view", 1), ("spark, failfast", 2), ("dump, a range", 3), ("serve", 4)]
)
def test_a_short_sample_of_the_proof(only: str, seed: int) -> None:
    options = Namespace(records=4000, times=2, road_seconds=1.0, serve_seconds=4.0, only=only, seed=seed)
    outcome = shrinking_files.prove(options)
    assert outcome.failures == []
    assert outcome.facts

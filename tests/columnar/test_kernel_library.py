"""Kernels that were compiled ahead: loaded without numba, right for this processor and these sources, or refused."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("numba")

from helpers.scans import segment_directory

from seglog_format.codec.build import build_batch, new_record
from seglog_format.codec.encode import encode_batch
from seglog_format.columnar import kernel_library
from seglog_format.columnar.kernel_library import DIRECTORY, LEVELS, MANIFEST, OBJECT, library, open_library
from seglog_format.model import CompressionCodec

if TYPE_CHECKING:
    from pathlib import Path

needs_library = pytest.mark.skipif(library() is None, reason="this machine can make none, or SEGLOG_KERNELS is jit")
PROGRAM = """
import sys
from seglog_format import open_partition
from seglog_format.scan_statistics import ScanStatistics
statistics = ScanStatistics()
with open_partition(sys.argv[1]) as log:
    rows = log.scan(statistics=statistics).read_all().num_rows
print(rows, sum(statistics.fallbacks.values()), "numba" in sys.modules, "llvmlite" in sys.modules)
"""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return shutil.copytree(DIRECTORY, tmp_path / "kernels")


def changed(directory: Path, **fields: object) -> None:
    manifest = json.loads((directory / MANIFEST).read_text())
    (directory / MANIFEST).write_text(json.dumps(manifest | fields))


@needs_library
def test_the_library_fits(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = open_library(copy)
    assert found is not None
    assert {"read_batches", "read_messages", "encode_rows", "make_objects"} <= {*found.names}
    assert capsys.readouterr().err == ""


@needs_library
def test_a_library_of_other_sources_is_refused(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    changed(copy, sources={"reader": "0"})
    assert open_library(copy) is None
    assert "refused: reader changed since it was compiled (seglog warm" in capsys.readouterr().err


@needs_library
def test_a_library_for_a_better_processor_is_refused(
    copy: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    changed(copy, level="v4")
    for level in ("v2", None):
        monkeypatch.setattr(kernel_library, "processor_level", lambda level=level: level)
        assert open_library(copy) is None
        assert "refused: it was compiled for processors of level v4" in capsys.readouterr().err
    assert list(LEVELS) == ["v4", "v2"]


@needs_library
def test_what_is_no_library_is_refused(copy: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (copy / OBJECT).write_bytes(b"\0" * 100)
    assert open_library(copy) is None
    (copy / MANIFEST).write_text("[")
    assert open_library(copy) is None
    (copy / MANIFEST).write_text("{}")
    assert open_library(copy) is None
    assert capsys.readouterr().err.count("seglog: the library of compiled kernels is refused: ") == 3


def test_where_there_is_none_nothing_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert open_library(tmp_path) is None
    assert capsys.readouterr().err == ""


@needs_library
@pytest.mark.parametrize("codec", CompressionCodec)
def test_a_good_log_is_read_by_kernels_alone_without_numba(tmp_path: Path, codec: CompressionCodec) -> None:
    records = [new_record(key=b"k", value=b"v" * 40, timestamp_ms=5) for _ in range(5)]
    batches = (encode_batch(build_batch(records, base_offset=5 * number, codec=codec)) for number in range(9))
    directory = segment_directory(tmp_path / "good-0", b"".join(batches))
    command = [sys.executable, "-c", PROGRAM, str(directory)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["45", "0", "False", "False"]
    assert done.stderr == ""

"""Kernels that were compiled ahead: loaded without numba, right for this processor and these sources, or refused."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import google_crc32c
import pytest

pytest.importorskip("pyarrow")

from helpers.scans import segment_directory

from seglog_format.codec.build import build_batch, new_record
from seglog_format.codec.encode import encode_batch
from seglog_format.columnar import compiled, kernel_build, kernel_library
from seglog_format.columnar.arrays import readable
from seglog_format.columnar.kernel_library import (
    DIRECTORY,
    LEVELS,
    LINKED,
    MANIFEST,
    NOT_COMPILED,
    UNLINKED,
    KernelLibrary,
    find_library,
    library,
    open_library,
    processor_level,
)
from seglog_format.errors import UsageError
from seglog_format.model import CompressionCodec

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

needs_library = pytest.mark.skipif(library() is None, reason="SEGLOG_KERNELS is jit: kernels are compiled")
PROGRAM = """
import sys
from seglog_format import open_partition
from seglog_format.scan_statistics import ScanStatistics
statistics = ScanStatistics()
with open_partition(sys.argv[1]) as log:
    rows = log.scan(statistics=statistics).read_all().num_rows
print(rows, sum(statistics.fallbacks.values()), "numba" in sys.modules, "llvmlite" in sys.modules)
"""
WITHOUT = """
import sys
from pathlib import Path
from seglog_format.columnar import kernel_library
kernel_library.DIRECTORY = Path(sys.argv[2])
from seglog_format import open_partition
from seglog_format.cli.main import run
from seglog_format import engine
engine.COLUMNAR_SIZE = 0
status = run(["verify", sys.argv[1]]) or run(["recover", sys.argv[1]])
try:
    open_partition(sys.argv[1]).scan()
except engine.UsageError as error:
    print(error)
print(status, "numba" in sys.modules)
"""


@pytest.fixture
def copies(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Look for libraries in a copy of the directory."""
    made = shutil.copytree(DIRECTORY, tmp_path / "kernels")
    monkeypatch.setattr(kernel_library, "DIRECTORY", made)
    find_library.cache_clear()
    yield made
    find_library.cache_clear()


def change(directory: Path, **fields: object) -> None:
    for manifest in directory.rglob(MANIFEST):
        manifest.write_text(json.dumps(json.loads(manifest.read_text()) | fields))


def good_log(path: Path, codec: CompressionCodec = CompressionCodec.NONE) -> Path:
    records = [new_record(key=b"k", value=b"v" * 40, timestamp_ms=5) for _ in range(5)]
    batches = (encode_batch(build_batch(records, base_offset=5 * number, codec=codec)) for number in range(9))
    return segment_directory(path, b"".join(batches))


@needs_library
def test_the_library_fits_and_is_not_made_again() -> None:
    found = library()
    assert found is not None
    assert found.level == processor_level()
    assert {"read_batches", "read_messages", "encode_rows", "make_objects"} <= {*found.names}
    assert kernel_build.make_libraries() == [(name, False) for name in found.names]


@needs_library
def test_a_library_of_other_sources_is_refused(copies: Path) -> None:
    change(copies, sources={"reader": "0"})
    assert library() is None
    assert "refused: reader changed since it was compiled (seglog warm" in str(find_library())


@needs_library
def test_a_library_for_a_better_processor_or_another_machine_is_refused(
    copies: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert list(LEVELS) == ["v4", "v2", "any"]
    for has in ("v2", "any"):
        change(copies, level="v4")
        monkeypatch.setattr(kernel_library, "processor_level", lambda has=has: has)
        find_library.cache_clear()
        assert library() is None
        assert "refused: it was compiled for " in str(find_library())
        assert f"of level v4, not {kernel_library.machine_name()} of {has}" in str(find_library())
    change(copies, level="any", machine="plan9 vax")
    find_library.cache_clear()
    assert "refused: it was compiled for plan9 vax of level any" in str(find_library())


@needs_library
def test_the_best_level_that_fits_is_taken(copies: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (own,) = (path for path in copies.iterdir() if path.name == processor_level())
    for level in LEVELS:
        if not (copies / level).exists():
            shutil.copytree(own, copies / level)
        change(copies / level, level=level)
    for has in LEVELS:
        monkeypatch.setattr(kernel_library, "processor_level", lambda has=has: has)
        find_library.cache_clear()
        found = library()
        assert found is not None
        assert found.level == has


@needs_library
def test_what_is_no_library_is_refused(copies: Path) -> None:
    (own,) = (path for path in copies.iterdir() if path.name == processor_level())
    (own / LINKED).write_bytes(b"\0" * 100)
    assert isinstance(open_library(own), str)
    for text in ("[", "{}", "[]"):
        (own / MANIFEST).write_text(text)
        assert isinstance(open_library(own), str)
    assert open_library(copies) is None


@pytest.mark.parametrize("is_stale", [False, True])
def test_without_a_library_nothing_is_compiled_and_one_line_says_how_to_get_one(tmp_path: Path, is_stale: bool) -> None:  # noqa: FBT001 - a parameter
    kernels, line = tmp_path / "kernels", NOT_COMPILED
    if is_stale:
        shutil.copytree(DIRECTORY, kernels)
        change(kernels, sources={"reader": "0"})
        reason = "reader changed since it was compiled"
        line = f"the library of compiled kernels is refused: {reason} (seglog warm makes another)"
    command = [sys.executable, "-c", WITHOUT, str(good_log(tmp_path / "good-0")), str(kernels)]
    environment = {name: value for name, value in os.environ.items() if name != kernel_library.ENVIRONMENT}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert done.stderr == f"seglog: the plain engine reads, slowly: {line}\n"
    assert done.stdout.splitlines()[-2:] == [line, "0 False"]


@needs_library
@pytest.mark.parametrize("codec", CompressionCodec)
def test_a_good_log_is_read_by_kernels_alone_without_numba(tmp_path: Path, codec: CompressionCodec) -> None:
    command = [sys.executable, "-c", PROGRAM, str(good_log(tmp_path / "good-0", codec))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["45", "0", "False", "False"]
    assert done.stderr == ""


@pytest.mark.parametrize(("level", "has_linker"), [("any", False), (processor_level(), False), ("any", True)])
def test_kernels_are_compiled_for_each_level_with_a_linker_or_without(
    tmp_path: Path,
    level: str,
    has_linker: bool,  # noqa: FBT001 - a parameter
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("numba")
    monkeypatch.setattr(kernel_build, "kernel_modules", lambda: ["checksum"])
    if not has_linker:
        monkeypatch.setattr(kernel_build, "linker", lambda: None)
    elif kernel_build.linker() is None:
        pytest.skip("there is no linker")
    assert kernel_build.build(tmp_path / level, level, processes=1) == ["checksum"]
    assert (tmp_path / level / (LINKED if has_linker else UNLINKED)).exists()
    found = open_library(tmp_path / level)
    assert isinstance(found, KernelLibrary)
    path = (
        compiled.PORTABLE
        if level == "any"
        else max(p for p in compiled.NEEDS if compiled.NEEDS[p] <= kernel_library.CHECKSUM_FEATURES[level])
    )
    data = bytes(range(256)) * 9
    assert found.kernel("checksum")(True, path, readable(data), 3, 2000) == google_crc32c.value(data[3:2003])


def test_compilation_needs_numba_and_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "numba", None)
    monkeypatch.setattr(kernel_build, "DIRECTORY", tmp_path)
    with pytest.raises(UsageError, match=r"seglog-format\[compile\]"):
        kernel_build.make_libraries()

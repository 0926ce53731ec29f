"""``--engine``: what is printed does not depend on it, and small logs do without compiled code."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

pytest.importorskip("pyarrow")

from helpers.batches import batch, patched, record
from helpers.messages import message
from helpers.scans import segment_directory
from helpers.support import authentic

from proofs.fuzz.random_logs import random_log
from seglog_format.checks import verify
from seglog_format.checks.finding import Extent
from seglog_format.cli.ls import segment_summary
from seglog_format.cli.main import run
from seglog_format.cli.paths import segment_files_at
from seglog_format.columnar.batch_table import table_parts
from seglog_format.engine import Engine
from seglog_format.types import FallbackCause

if TYPE_CHECKING:
    from pathlib import Path

CASES = ("4.3.0/txn", "4.3.0/codec-lz4")


def printed(capsys: pytest.CaptureFixture[str], *args: str) -> tuple[int, str]:
    capsys.readouterr()
    status = run(list(args))
    return status, capsys.readouterr().out


@pytest.mark.parametrize("name", CASES)
def test_verify_prints_the_same(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(authentic(name))
    for options in ((), ("--json",)):
        expected = printed(capsys, "verify", *options, "--engine", "reference", path)
        assert printed(capsys, "verify", *options, "--engine", "columnar", path) == expected


def test_verify_tells_what_compiled_code_has_left(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entries = [batch(record(), base_offset=number) for number in range(4)]
    unlike_its_checksum = entries[1][:-1] + bytes([entries[1][-1] ^ 1])
    too_many = patched(entries[3], 57, "i", 5)
    directory = segment_directory(tmp_path / "t-0", b"".join([entries[0], unlike_its_checksum, entries[2], too_many]))
    run(["verify", "--stats", "--engine", "columnar", str(directory)])
    reported = "seglog: 2 prefiltered, 2 entries left to slower code (checksum 1, records 1)\n"
    assert capsys.readouterr().err == reported
    _, text = printed(capsys, "verify", "--stats", "--json", "--engine", "columnar", str(directory))
    expected = {"type": "statistics", "prefiltered": 2, "fallbacks": {"checksum": 1, "records": 1}}
    assert json.loads(text.splitlines()[-1]) == expected
    _, text = printed(capsys, "verify", "--stats", "--json", "--engine", "reference", str(directory))
    assert json.loads(text.splitlines()[-1]) == {"type": "statistics", "prefiltered": 0, "fallbacks": {}}


CAUSES = {
    "size": (patched(batch(record()), 8, "i", 5, seal=False), FallbackCause.FRAMING),
    "codec": (patched(batch(record()), 21, "h", 7), FallbackCause.COMPRESSION),
    "gzip": (patched(batch(record()), 21, "h", 1), FallbackCause.COMPRESSION),
    "offset": (message(-5), FallbackCause.OFFSETS),
    "message": (message(0)[:-1] + b"x", FallbackCause.CHECKSUM),
    "timestamp": (batch(record(), max_timestamp_ms=7), FallbackCause.RECORDS),
}


@pytest.mark.parametrize("name", CAUSES)
def test_verify_counts_by_cause(name: str, tmp_path: Path) -> None:
    data, cause = CAUSES[name]
    extent = Extent()
    list(verify(segment_directory(tmp_path / "t-0", data), engine=Engine.COLUMNAR, extent=extent))
    assert extent.fallbacks == {cause: 1}


@pytest.mark.parametrize("name", CASES)
def test_index_and_recover_print_the_same(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    for path in authentic(name).iterdir():
        if path.is_dir():
            for args in (("index",), ("recover", "--full-scan"), ("recover", "--json"), ("recover", "--like-broker")):
                expected = printed(capsys, *args, "--engine", "reference", str(path))
                assert printed(capsys, *args, "--engine", "columnar", str(path)) == expected


@pytest.mark.parametrize("name", ["0.10.2.2/codec-lz4", "4.3.0/compact", *CASES])
def test_ls_prints_the_same(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    root = authentic(name)
    for path in (root, *root.rglob("*.log")):
        for options in ((), ("--long", "--json")):
            expected = printed(capsys, "ls", *options, "--engine", "reference", str(path))
            assert printed(capsys, "ls", *options, "--engine", "columnar", str(path)) == expected


def test_headers_of_any_log_are_summed_up_alike(tmp_path: Path) -> None:
    for seed in range(60):
        log = random_log(seed)
        data = bytearray(log.data)
        if seed % 3 == 0:
            data[seed * 131 % len(data)] ^= 1 << seed % 8
        path = tmp_path / f"{log.base_offset:020d}.log"
        path.write_bytes(data)
        files = segment_files_at(path)
        assert segment_summary(files, tables=table_parts) == segment_summary(files)


@pytest.mark.parametrize("command", ["ls", "verify", "index", "recover"])
def test_small_logs_do_without_compiled_code(command: str, tmp_path: Path) -> None:
    program = (
        "import sys; from seglog_format.cli.main import run; status = run(sys.argv[1:]);"
        "sys.exit(status or any(name in sys.modules for name in ('numpy', 'numba', 'llvmlite')) * 50)"
    )
    path = next(each for each in sorted(authentic(CASES[0]).iterdir()) if each.is_dir())
    done = subprocess.run([sys.executable, "-c", program, command, str(path)], cwd=tmp_path, check=False)
    assert done.returncode == 0

"""How kernels are compiled: once for one signature, ahead where that is wanted, and not where nobody needs them."""

from __future__ import annotations

import os
import subprocess
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING

import google_crc32c
import pytest

pytest.importorskip("numba")

from helpers.scans import segment_directory

from proofs.fuzz.delivered_rows import COLUMNS
from seglog_format.codec.build import build_batch, build_message_entry, new_record
from seglog_format.codec.encode import encode_batch
from seglog_format.columnar import jit, warm
from seglog_format.columnar.entry_columns import ENTRY_COLUMNS
from seglog_format.columnar.kernel_library import ENVIRONMENT, library
from seglog_format.log.partition import open_partition
from seglog_format.model import CompressionCodec

if TYPE_CHECKING:
    from pathlib import Path

JIT = {**os.environ, ENVIRONMENT: "jit"}
needs_jit = pytest.mark.skipif(library() is not None, reason="run by the test of the mode that compiles, below")
RECORDS = [new_record(key=b"k", value=b"v" * 40, timestamp_ms=5, headers=((b"h", b"v"),)) for _ in range(5)]


def small_log() -> bytes:
    batches = [encode_batch(build_batch(RECORDS, base_offset=5 * codec, codec=codec)) for codec in CompressionCodec]
    message = encode_batch(build_message_entry([new_record(key=b"v", value=b"k")], magic=1, base_offset=100))
    return b"".join([*batches, message])


@needs_jit
def test_kernels_are_called_with_what_they_are_compiled_for(tmp_path: Path) -> None:
    with open_partition(segment_directory(tmp_path / "types-0", small_log())) as partition:
        for layout in ("view", "binary", "large_binary"):
            for threads in (1, 2):
                columns = (*COLUMNS, *ENTRY_COLUMNS)
                assert partition.scan(columns, layout=layout, threads=threads).read_all().num_rows == 26
    called = [kernel for kernel in jit.KERNELS if kernel.signatures]
    assert len(called) > 5
    for kernel in called:
        assert kernel.signatures == [warm.signature_of(kernel)], kernel.py_func.__name__


def test_every_kernel_has_a_signature_and_a_module() -> None:
    modules = warm.modules()
    for kernel in jit.KERNELS:
        assert kernel.py_func.__module__.rpartition(".")[2] in modules
        assert warm.signature_of(kernel)


def test_cached_code_depends_on_the_modules_that_it_was_made_from() -> None:
    found = jit.sources("reader")
    assert {"reader", "records", "views", "memory", "checksum", "folding", "compiled", "jit"} <= found
    assert not {"scan", "run", "block"} & found


@needs_jit
def test_the_user_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    from seglog_format.columnar.reader import read_batches
    from seglog_format.columnar.records import varint

    notice = jit.CompileNotice()
    for function in (varint, read_batches, read_batches):
        notice.on_start(SimpleNamespace(data={"dispatcher": function}))
    assert capsys.readouterr().err == jit.WORD + "\n"


@pytest.mark.parametrize("command", ["ls", "verify", "dump", "index", "recover"])
def test_small_files_are_read_without_the_engine(command: str, tmp_path: Path) -> None:
    directory = segment_directory(tmp_path / "small-0", small_log())
    code = (
        "import sys\n"
        "from seglog_format.cli.main import run\n"
        f"status = run([{command!r}, {str(directory)!r}])\n"
        "print(status, sorted({'numpy', 'numba', 'pyarrow'} & {*sys.modules}), file=sys.stderr)\n"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    status, modules = shown.stderr.splitlines()[-1].split(" ", 1)
    assert int(status) < 2, shown.stderr
    assert modules == "[]"


def test_cached_kernels_start_without_the_tables_of_the_compiler() -> None:
    code = (
        "import sys\n"
        "import numpy as np\n"
        "from seglog_format.columnar.checksum import checksum\n"
        "from seglog_format.columnar.cpu import checksum_path\n"
        "data = np.arange(256, dtype=np.uint8)\n"
        "data.flags.writeable = False\n"
        "print(hex(checksum(True, checksum_path(), data, 0, 256)), 'numba.cpython.listobj' in sys.modules)\n"
    )
    for _ in range(2):  # compiled, unless somebody has done so before; then kept
        shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=JIT)
    assert shown.stdout.split() == [hex(google_crc32c.value(bytes(range(256)))), "False"]


@pytest.mark.skipif(library() is None, reason="the tests above have run in this process")
def test_the_mode_that_compiles_is_tested_beside_a_library() -> None:
    wanted = "called_with_what or told_once"
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", __file__, "-k", wanted]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=JIT)
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout

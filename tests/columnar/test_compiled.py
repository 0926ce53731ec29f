"""Kernels are called with what they were compiled for, and not where nobody needs them."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyarrow")

from helpers.scans import segment_directory

from proofs.fuzz.delivered_rows import COLUMNS
from proofs.fuzz.fuzz import CHECKED
from seglog_format.codec.build import build_batch, build_message_entry, new_record
from seglog_format.codec.encode import encode_batch
from seglog_format.columnar.kernel_library import library
from seglog_format.columnar.schema import ENTRY_COLUMNS
from seglog_format.log.partition import open_partition
from seglog_format.model import CompressionCodec

if TYPE_CHECKING:
    from pathlib import Path

READ_ONLY = frozenset({"log", "data"})
"""Parameters of kernels for bytes that are not writable."""
RECORDS = [new_record(key=b"k", value=b"v" * 40, timestamp_ms=5, headers=((b"h", b"v"),)) for _ in range(5)]


def small_log() -> bytes:
    batches = [encode_batch(build_batch(RECORDS, base_offset=5 * codec, codec=codec)) for codec in CompressionCodec]
    message = encode_batch(build_message_entry([new_record(key=b"v", value=b"k")], magic=1, base_offset=100))
    return b"".join([*batches, message])


def signature_of(kernel: Any) -> tuple[Any, ...]:
    """Return the types that a library takes a kernel's arguments for (`arrays`)."""
    from numba import types

    def type_of(name: str, annotation: str) -> Any:
        return {
            "Bytes": types.Array(types.uint8, 1, "C", readonly=name in READ_ONLY),
            "Numbers": types.Array(types.int64, 1, "C"),
            "Table": types.Array(types.int64, 2, "C"),
            "int": types.int64,
            "bool": types.boolean,
        }[annotation]

    kinds = kernel.py_func.__annotations__
    return tuple(type_of(name, kind) for name, kind in kinds.items() if name != "return")


@pytest.mark.skipif(library() is not None, reason="run by the test below, where kernels see the types of arguments")
def test_kernels_are_called_with_what_they_are_compiled_for(tmp_path: Path) -> None:
    from seglog_format.columnar import jit

    with open_partition(segment_directory(tmp_path / "types-0", small_log())) as partition:
        for layout in ("view", "binary", "large_binary"):
            for threads in (1, 2):
                columns = (*COLUMNS, *ENTRY_COLUMNS)
                assert partition.scan(columns, 1, layout=layout, threads=threads).read_all().num_rows == 25
    called = [kernel for kernel in jit.KERNELS if kernel.signatures]
    assert len(called) > 5
    for kernel in called:
        assert kernel.signatures == [signature_of(kernel)], kernel.py_func.__name__


@pytest.mark.skipif(library() is None, reason="the test above has run in this process")
def test_arguments_of_kernels_are_tested_where_they_are_compiled() -> None:
    pytest.importorskip("numba")
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", __file__, "-k", "called_with_what"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **CHECKED})
    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout


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

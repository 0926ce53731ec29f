"""No kernel reads or writes out of range: all of them run on hostile bytes with every position checked."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("numba")

from typing import TYPE_CHECKING

from proofs.fuzz import bounds
from proofs.fuzz.fuzz import CHECKED

if TYPE_CHECKING:
    from pathlib import Path

UNUSUAL_READS = """
import sys
import numpy as np
from numba import njit
from seglog_format.columnar import compiled, checksum, objects, memory

@njit
def loaded(array, position):
    return memory.load_64(memory.region(array), position)

@njit
def copied(array, position):
    memory.copy_16(memory.region(array), position, memory.region(array), 0)
    return 0

@njit
def folded(array, position):
    return checksum.fold_crc32(memory.region(array), position, 512, np.uint64(0))[0]

@njit
def made(array, position):
    objects.decref(objects.new_bytes(memory.region(array), position, 20))
    return 0

array = np.zeros(1024, np.uint8)
for kernel, size in ((loaded, 8), (copied, 16), (folded, 512), (made, 20)):
    if kernel is not folded or compiled.supports(compiled.NARROW):
        kernel(array, 0)
        kernel(array, 1024 - size)
        for position in (-1, -size, 1025 - size, 1024, 1 << 40):
            try:
                kernel(array, position)
            except IndexError:
                continue
            sys.exit(f"{kernel.__name__} at {position}")
"""


def test_checks_see_whatever_is_read_or_written() -> None:
    subprocess.run([sys.executable, "-c", UNUSUAL_READS], env={**os.environ, **CHECKED}, check=True)


def test_hostile_bytes_lead_no_kernel_out_of_range(tmp_path: Path) -> None:
    """A sample; `make proof NAME=bounds` runs all."""
    report = tmp_path / "bounds.json"
    command = [sys.executable, "-m", bounds.__name__, "--sample", "0.01", "--seed", "3", "--report", str(report)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    reported = json.loads(report.read_text(encoding="utf-8"))
    assert len(set(reported["inputs"].values())) == 1
    wanted = {"read_batches", "read_messages", "encode_rows", "index_entries", "prefilter_entries", "make_objects"}
    assert {"find_record", *wanted} <= {*reported["kernels"]}


def answers(verdicts: list[str], **fields: object) -> dict[str, object]:
    return {"verdicts": verdicts, "kernels": {"seek": True}, "checksBounds": True, **fields}


def test_what_goes_wrong_is_told() -> None:
    usual, checked, portable = answers(["a", "b"], checksBounds=False), answers(["a", "b"]), answers(["a", "b"])
    found = {"checked": checked, "checked, portable checksums": portable, "usual": usual}
    assert list(bounds.failures(found)) == []
    for name, wrong in (
        ("checked", answers(["a", "FAILED IndexError"])),
        ("checked", answers(["a", "c"])),
        ("checked", answers(["a", "b"], kernels={"seek": False})),
        ("usual", answers(["a", "b"])),
        ("checked", answers(["a", "b"], checksBounds=False)),
        ("checked", answers([], died=-11)),
    ):
        assert list(bounds.failures(found | {name: wrong}))

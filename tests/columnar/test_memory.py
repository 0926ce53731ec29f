"""What a scan keeps in memory does not depend on the size of the log."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

pytest.importorskip("pyarrow")

import numpy as np
import pyarrow as pa

from seglog_format.codec.compression import compress
from seglog_format.columnar.encode import BatchFields, encode
from seglog_format.model import CompressionCodec

SMALL, LARGE = 2**24, 2**27
MEASURE = """
import json, sys
from seglog_format import open_partition
def anonymous():
    with open("/proc/self/smaps_rollup") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("Anonymous:")) << 10
with open_partition(sys.argv[1]) as partition:
    print(json.dumps(max(anonymous() for _ in partition.scan())))
"""


def written(directory: Path, size: int, codec: CompressionCodec) -> Path:
    """Return a log of about so many decompressed bytes."""
    directory.mkdir()
    compressor = partial(compress, codec, magic=2) if codec else None
    fields, rows = BatchFields(codec=codec), 2**16
    values = pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(500), rows, [None, pa.py_buffer(np.random.default_rng(1).integers(0, 12, 500 * rows, np.uint8))]
    )
    with (directory / f"{0:020d}.log").open("wb") as file:
        for offset in range(0, size // 500, rows):
            table = pa.table({"value": values.cast(pa.binary())})
            for batches in encode(table, fields, base_offset=offset, compress=compressor):
                file.write(batches)
    return directory


@pytest.mark.skipif(not Path("/proc/self/smaps_rollup").exists(), reason="needs Linux's account of memory")
@pytest.mark.parametrize("codec", [CompressionCodec.NONE, CompressionCodec.LZ4])
def test_a_larger_log_takes_no_more_memory(codec: CompressionCodec, tmp_path: Path) -> None:
    peaks = []
    for size in (SMALL, LARGE):
        path = written(tmp_path / f"memory-{size >> 20}", size, codec)
        command = [sys.executable, "-c", MEASURE, str(path)]
        shown = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ})
        peaks.append(json.loads(shown.stdout))
    small, large = peaks
    assert large < 1.2 * small
    assert large < 300 * 2**20

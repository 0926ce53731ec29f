"""A short sample of the memory proof: sparse segments under a held lock, and sparse files beside them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Final

import pytest
from helpers.support import bundled

from proofs import memory
from proofs.memory_logs import MEBIBYTE, Made, held, huge_files, sparse_log
from proofs.memory_tasks import command

if TYPE_CHECKING:
    from pathlib import Path

SIZE = 400 * MEBIBYTE
"""More than anybody may take of it."""


@pytest.fixture(scope="module", params=[False, True], ids=["large batches", "a hole"])
def sparse(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Made, bool]:
    root = tmp_path_factory.mktemp("sparse") / "data"
    return sparse_log(root, 1, SIZE, has_hole=request.param), request.param


@pytest.mark.parametrize("name", ["ls", "dump --to 5", "verify", "recover", "records(0)"])
def test_sparse_segments_under_a_lock_are_read_in_little_memory(sparse: tuple[Made, bool], name: str) -> None:
    made, has_hole = sparse
    tasks = memory.sparse_tasks(made, memory.ADDRESS_SPACE, has_hole=has_hole)
    task, is_right = next(each for each in tasks if each[0].name == name)
    with held(made.root):
        ended = task.run(made)
    assert "Traceback" not in ended.errors
    assert is_right(ended), (ended.status, ended.output[:500], ended.errors[-500:])
    assert ended.anonymous_bytes < memory.MOST


@pytest.mark.parametrize("name", ["ls", "dump", "verify"])
def test_files_above_what_a_log_can_have_are_refused_by_their_size(tmp_path: Path, name: str) -> None:
    made = huge_files(tmp_path / "data", 10 * 2**30)
    ended = command(name, name, address_space=6 * 2**30).run(made)
    assert "Traceback" not in ended.errors
    assert made.log(1).name in ended.errors + ended.output
    assert ended.status > 0


READING: Final = ("verify", "recover", "dump", "ls", "doctor", "transactions", "cluster")
LIMITED: Final = """
import resource, sys
sys.modules["pyarrow"] = None  # as if it were not installed: it takes memory from its start
resource.setrlimit(resource.RLIMIT_DATA, (400 * 2**20, 400 * 2**20))
from seglog_format.cli.main import run
for command in sys.argv[2:]:
    print(command, run([command, sys.argv[1]]), flush=True)
"""


@pytest.mark.req("SEG-PDR-020")
@pytest.mark.parametrize("is_clean", [False, True], ids=["killed", "shut down"])
def test_no_command_reads_a_sparse_side_file_as_a_whole(tmp_path: Path, *, is_clean: bool) -> None:
    """Recovery compared a snapshot that it writes again with the one that is there."""
    root = tmp_path / "data"
    shutil.copytree(bundled("4.3.0/txn-open"), root)
    for name in ("replication-offset-checkpoint", "recovery-point-offset-checkpoint", "log-start-offset-checkpoint"):
        offset = 15 if is_clean and not name.startswith("log-start") else 0
        (root / name).write_text(f"0\n1\ntxn-open 0 {offset}\n", encoding="utf-8")
    if is_clean:
        (root / ".kafka_cleanshutdown").write_text('{"version":0,"brokerEpoch":1}', encoding="utf-8")
    files = sorted(path for path in root.rglob("*") if path.is_file() and path.suffix not in {".log", ".toml"})
    assert {path.suffix for path in files} >= {"", ".index", ".timeindex", ".snapshot", ".metadata"}

    failures = {}
    for path in files:
        before = path.read_bytes()
        os.truncate(path, 2**31)
        words = [sys.executable, "-c", LIMITED, str(root), *READING]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        path.write_bytes(before)
        said = done.stdout + done.stderr
        if done.returncode or "memory" in said.lower():
            failures[path.name] = said[-500:]
    assert failures == {}

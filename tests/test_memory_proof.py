"""A short sample of the memory proof: sparse segments under a held lock."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

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

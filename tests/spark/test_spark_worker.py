"""What is done once in a Python worker of Spark, so that its many tasks are cheap."""

from __future__ import annotations

import gc
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import TYPE_CHECKING

import pytest
from helpers.spark_partitions import partition

from proofs.spark.readers import struct_type
from seglog_format.spark import source_parts
from seglog_format.spark.filters import EVERYTHING
from seglog_format.spark.options import parse_options
from seglog_format.spark.planning import plan
from seglog_format.spark.source_parts import DAEMON, Part, freeze_loaded_objects, rows_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def worker(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have this process take itself for a worker."""
    main = ModuleType("__main__")
    main.__spec__ = ModuleSpec(DAEMON, None)
    source_parts._freeze.cache_clear()
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "__main__", main)
        yield
    gc.unfreeze()
    source_parts._freeze.cache_clear()


@pytest.mark.usefixtures("worker")
def test_after_a_task_what_was_loaded_is_no_garbage_to_look_through(tmp_path: Path) -> None:
    partition(tmp_path / "orders-0", 10)
    options = parse_options({"path": str(tmp_path)})
    (task,) = plan(options)
    schema = struct_type("`offset` bigint")
    assert sum(batch.num_rows for batch in rows_of(Part(task, EVERYTHING), schema, options)) == 10
    frozen = gc.get_freeze_count()
    assert frozen > 10_000
    assert len(gc.get_objects()) < frozen // 10
    freeze_loaded_objects()
    assert gc.get_freeze_count() <= frozen, "only once"


def test_other_programs_are_left_alone() -> None:
    before = gc.get_freeze_count()
    freeze_loaded_objects()
    assert gc.get_freeze_count() == before

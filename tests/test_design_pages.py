"""The pages on the design: the figures of their report come out of real runs of the tool that makes it."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest
from helpers.support import REPOSITORY

pytest.importorskip("pyarrow")

from tools.docs import design_pages, why_figures

if TYPE_CHECKING:
    from pathlib import Path

SIZE = 400_000


def test_an_index_entry_follows_each_interval_and_lookups_pass_less_than_that(tmp_path: Path) -> None:
    log = why_figures.log_bytes(SIZE)
    found = why_figures.index(tmp_path, log)
    assert found["logBytes"] == len(log)
    assert found["records"] == found["batches"] * why_figures.RECORDS_A_BATCH
    assert found["entries"] <= found["logBytes"] // 4096
    assert 0 < found["passedBytes"]["sparse"] < 4096 + 2 * len(log) // found["batches"]
    assert found["passedBytes"]["none"] > len(log) // 3


def test_giving_up_a_segment_removes_a_file_and_a_whole_log_is_copied(tmp_path: Path) -> None:
    found = why_figures.segments(tmp_path, SIZE, 1)
    left = {path.name: path.stat().st_size for path in tmp_path.iterdir()}
    assert left == {"whole.log": found["logBytes"], "new.log": found["rewrittenBytes"]}


@pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="the page cache cannot be dropped")
def test_reads_and_sends_are_timed(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_bytes(bytes(SIZE))
    assert set(why_figures.sequential(path, 1)["seconds"]) == {"inOrder", "shuffled"}
    assert set(why_figures.zero_copy(path, 1)["processorSeconds"]) == {"sendfile", "readAndSend"}


def test_pages_show_the_report() -> None:
    report = json.loads((REPOSITORY / "reports" / "why.json").read_text(encoding="utf-8"))
    pages = design_pages.pages("")
    assert f"{report['index']['passedBytes']['sparse']:,}" in pages[design_pages.WHY]
    assert f"| {report['scale'][-1]['segments']:,} |" in pages[design_pages.SCALE]

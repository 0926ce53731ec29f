"""Any log, any index: lookups, ranges and transactions equal a full scan of what was written."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from helpers.log_strategies import index_files, made_logs
from helpers.lookup_checks import check_positions, check_reads, check_timestamps, until_error
from helpers.made_logs import checkpoint
from hypothesis import given, settings
from hypothesis import strategies as st

from seglog_format import open_partition


@settings(max_examples=60)
@given(st.data())
@pytest.mark.filterwarnings("ignore::seglog_format.errors.MissingOffsetsWarning")
@pytest.mark.req("SEG-LKP-002", "SEG-LKP-003", "SEG-LKP-008", "SEG-LKP-011", "SEG-LKP-012", "SEG-IDX-009")
def test_any_log_under_any_index(data: st.DataObject) -> None:
    made = data.draw(made_logs())
    indexes = data.draw(index_files(made))
    start = data.draw(st.integers(0, 12))
    log = made.full_scan(start)
    root = Path(tempfile.mkdtemp(prefix="seglog-"))
    try:
        (root / "log-start-offset-checkpoint").write_text(checkpoint(("topic", 0, start)))
        with open_partition(made.write(root, indexes)) as partition:
            offsets = list(log.offsets())
            check_positions(log, partition, offsets)
            check_reads(log, partition, offsets)
            check_timestamps(log, partition, list(range(33)))
            assert partition.log_end_offset == log.log_end_offset
            assert [each.offset for each in partition.records()] == log.delivered(partition.log_start_offset)
            committed, transactions = partition.records(isolation="read_committed"), partition.transactions
            if transactions.damage is None:
                given = list(committed)
            else:  # offsets are lost while a transaction is open: test_algorithms_oracle.py asks where that is so
                given = until_error(committed)
                log.segments = [each for each in log.segments if each.base_offset < transactions.end_offset]
            assert [each.offset for each in given] == log.committed(partition.log_start_offset)
    finally:
        shutil.rmtree(root)

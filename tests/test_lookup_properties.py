"""Any log, any index: lookups, ranges and transactions equal a full scan of what was written."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from helpers.lookup_checks import check_positions, check_reads, check_timestamps
from helpers.made_logs import (
    ABORT,
    COMMIT,
    Entry,
    MadeLog,
    checkpoint,
    data_batch,
    empty_control_batch,
    marker,
    offset_index,
    plain_message,
    time_index,
    wrapped_messages,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from seglog_format import open_partition

if TYPE_CHECKING:
    from collections.abc import Sequence

TIMES = st.integers(0, 30)
PRODUCERS = st.integers(1, 3)
KINDS = (
    "plain",
    "plain",
    "transactional",
    "transactional",
    "marker",
    "thinned",
    "empty",
    "message",
    "wrapper",
    "trace",
)
TAILS = (b"", bytes(5), bytes(40), b"\1" * 17, data_batch(10**6, [1]).data[:-1])


@st.composite
def entries_at(draw: st.DrawFn, base: int) -> Entry:  # noqa: PLR0911 - one for each kind
    kind = draw(st.sampled_from(KINDS))
    times = draw(st.lists(TIMES, min_size=1, max_size=4))
    if kind == "transactional":
        return data_batch(base, times, producer=draw(PRODUCERS), epoch=draw(st.integers(0, 2)))
    if kind == "marker":
        return marker(base, draw(PRODUCERS), draw(st.sampled_from((ABORT, COMMIT))), draw(TIMES))
    if kind == "thinned":
        deltas = sorted(draw(st.sets(st.integers(0, 6), min_size=len(times), max_size=len(times))))
        return data_batch(base, times, deltas=deltas, last_delta=7)
    if kind == "empty":
        return data_batch(base, [], last_delta=draw(st.integers(0, 3)))
    if kind == "message":
        return plain_message(base, times[0], draw(st.integers(0, 1)))
    if kind == "wrapper" and base > 0:
        return wrapped_messages(base, times)
    if kind == "trace":
        return empty_control_batch(base, draw(PRODUCERS))
    return data_batch(base, times)


@st.composite
def made_logs(draw: st.DrawFn) -> MadeLog:
    offset = draw(st.integers(0, 3))
    segments: dict[int, Sequence[Entry]] = {}
    tails = {}
    for _ in range(draw(st.integers(1, 4))):
        base, entries = offset, []
        for _ in range(draw(st.integers(0, 5))):
            entries.append(draw(entries_at(offset + draw(st.sampled_from((0, 0, 0, 2))))))
            offset = entries[-1].batch.last_offset + 1
        segments[base] = entries
        tails[base] = draw(st.sampled_from(TAILS))
        offset = max(offset, base + 1) + draw(st.sampled_from((0, 0, 3)))
    return MadeLog(segments, tails)


@st.composite
def index_files(draw: st.DrawFn, made: MadeLog) -> dict[str, bytes]:
    """Offsets, positions and timestamps that look likely, in slots of either kind, or any bytes at all."""
    numbers = st.integers(0, 200)
    offsets = st.lists(st.tuples(numbers, st.integers(-5, 900)), max_size=5).map(lambda found: offset_index(*found))
    times = st.lists(st.tuples(TIMES, numbers), max_size=5).map(lambda found: time_index(*found))
    files = {}
    for base in made.segments:
        for suffix, likely in ((".index", offsets), (".timeindex", times), (".txnindex", st.just(b"\0" * 34))):
            content = draw(st.none() | likely | st.binary(max_size=70))
            if content is not None:
                files[f"{base:020}{suffix}"] = content
    return files


@settings(deadline=None, max_examples=60)
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
            committed = [each.offset for each in partition.records(isolation="read_committed")]
            assert committed == log.committed(partition.log_start_offset)
    finally:
        shutil.rmtree(root)

"""Chapter 73: which segments compaction rewrites, and what becomes of the records in them."""

from __future__ import annotations

from dataclasses import replace

import pytest

from seglog_format.cleaning.compaction import CompactedSegment, CompactionPlan, plan_compaction
from seglog_format.errors import UsageError
from seglog_format.state.config import LogConfig

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
NOW_MS = 1_800_000_000_000
COMPACT = LogConfig(cleanup_policy=frozenset({"compact"}))


def segment(base_offset: int, size: int = 100, *, age_ms: int = HOUR_MS, **fields: int) -> CompactedSegment:
    """Return a segment of ten offsets whose records are all of the same age."""
    timestamp_ms = NOW_MS - age_ms
    facts = {"first_timestamp_ms": timestamp_ms, "largest_timestamp_ms": timestamp_ms, "modified_ms": timestamp_ms}
    return CompactedSegment(
        **{"base_offset": base_offset, "next_offset": base_offset + 10, "size": size} | facts | fields
    )


def segments(*sizes: int) -> list[CompactedSegment]:
    return [segment(10 * number, size) for number, size in enumerate(sizes)]


def plan(rows: list[CompactedSegment], settings: LogConfig = COMPACT, **facts: int) -> CompactionPlan:
    return plan_compaction(rows, settings, now_ms=NOW_MS, **facts)


def groups(found: CompactionPlan) -> list[list[int]]:
    return [[one.base_offset for one in group] for group in found.groups]


@pytest.mark.req("SEG-CMP-001")
@pytest.mark.parametrize(
    ("cleaner_offset", "expected"), [(0, 5), (4, 5), (5, 5), (17, 17), (30, 30), (31, 5), (1000, 5)]
)
def test_the_dirty_part_begins_at_the_cleaner_offset_if_that_is_in_the_log(cleaner_offset: int, expected: int) -> None:
    rows = segments(100, 100, 100)
    assert plan(rows, cleaner_offset=cleaner_offset, log_start_offset=5).first_dirty_offset == expected
    assert plan(rows, log_start_offset=5).first_dirty_offset == 5


@pytest.mark.req("SEG-CMP-001")
def test_the_clean_part_is_rewritten_too_but_only_where_something_after_it_is_dirty() -> None:
    assert groups(plan(segments(100, 100, 100), cleaner_offset=10)) == [[0, 10]]
    found = plan(segments(100, 100, 100), cleaner_offset=20)
    assert groups(found) == []
    assert found.explanation == (
        "segment 0: keep: compaction has already covered everything below 20",
        "segment 10: keep: compaction has already covered everything below 20",
        "segment 20: keep: the active segment",
    )


@pytest.mark.req("SEG-CMP-001")
def test_nothing_is_done_where_the_dirty_part_has_no_bytes() -> None:
    found = plan(segments(100, 0, 100), cleaner_offset=10)
    assert groups(found) == []
    assert found.explanation[0] == "segment 0: keep: nothing from 10 on has any bytes"


@pytest.mark.req("SEG-CMP-002")
def test_the_active_segment_stays() -> None:
    assert groups(plan(segments(100, 100, 100))) == [[0, 10]]
    found = plan(segments(100))
    assert groups(found) == []
    assert found.explanation == ("segment 0: keep: the active segment",)


@pytest.mark.req("SEG-CMP-003")
@pytest.mark.parametrize(("stable", "expected"), [(0, []), (9, []), (10, [[0]]), (19, [[0]]), (20, [[0, 10]])])
def test_what_holds_the_last_stable_offset_stays(stable: int, expected: list[list[int]]) -> None:
    found = plan(segments(100, 100, 100, 100), last_stable_offset=stable)
    assert groups(found) == expected


def test_why_a_segment_stays_is_told() -> None:
    assert plan(segments(100, 100, 100, 100), last_stable_offset=15).explanation == (
        "segment 0: clean: dirty",
        "segment 10: keep: the last stable offset is 15",
        "segment 20: keep: segment 10 before it is kept",
        "segment 30: keep: the active segment",
    )


@pytest.mark.req("SEG-CMP-003")
def test_nothing_is_done_where_the_dirty_part_begins_in_the_segment_of_the_last_stable_offset() -> None:
    assert groups(plan(segments(100, 100, 100), cleaner_offset=12, last_stable_offset=15)) == []


@pytest.mark.req("SEG-CMP-004")
@pytest.mark.parametrize(("age_ms", "expected"), [(MINUTE_MS, [[0, 10, 20]]), (MINUTE_MS - 1, [[0]])])
def test_segments_stay_from_the_first_with_a_record_that_is_too_young(age_ms: int, expected: list[list[int]]) -> None:
    rows = [segment(0), segment(10, age_ms=age_ms), segment(20), segment(30)]
    assert groups(plan(rows, replace(COMPACT, min_compaction_lag_ms=MINUTE_MS))) == expected


@pytest.mark.req("SEG-CMP-004")
def test_a_segment_without_timestamps_is_as_old_as_its_file() -> None:
    young = segment(10, largest_timestamp_ms=-1, modified_ms=NOW_MS)
    assert groups(plan([segment(0), young, segment(20)], replace(COMPACT, min_compaction_lag_ms=1))) == [[0]]


@pytest.mark.req("SEG-CMP-004")
def test_only_dirty_segments_can_be_too_young() -> None:
    rows = [segment(0, age_ms=0), segment(10), segment(20, age_ms=0)]
    assert groups(plan(rows, replace(COMPACT, min_compaction_lag_ms=1), cleaner_offset=10)) == [[0, 10]]
    assert groups(plan(rows, replace(COMPACT, min_compaction_lag_ms=1), cleaner_offset=20)) == []


@pytest.mark.req("SEG-CMP-005")
@pytest.mark.parametrize(
    ("sizes", "ratio", "expected"),
    [((100, 100, 900), 0.5, False), ((100, 101, 900), 0.5, True), ((100, 100, 900), 0.4, True)],
)
def test_more_than_the_ratio_has_to_be_dirty(sizes: tuple[int, ...], ratio: float, expected: bool) -> None:  # noqa: FBT001
    found = plan(segments(*sizes), replace(COMPACT, min_cleanable_dirty_ratio=ratio), cleaner_offset=10)
    assert found.is_due is expected
    assert found.dirty_ratio == sizes[1] / (sizes[0] + sizes[1])


@pytest.mark.req("SEG-CMP-005")
def test_the_segment_in_which_the_dirty_part_begins_counts_as_a_whole() -> None:
    found = plan(segments(100, 100, 100), cleaner_offset=15)
    assert (found.clean_size, found.dirty_size) == (200, 100)


@pytest.mark.req("SEG-CMP-025")
@pytest.mark.parametrize(("age_ms", "expected"), [(HOUR_MS, False), (HOUR_MS + 1, True)])
def test_what_has_been_dirty_for_too_long_is_due(age_ms: int, expected: bool) -> None:  # noqa: FBT001
    rows = [segment(0, 900), segment(10, 100, first_timestamp_ms=NOW_MS - age_ms), segment(20, first_timestamp_ms=1)]
    found = plan(rows, replace(COMPACT, max_compaction_lag_ms=HOUR_MS), cleaner_offset=10)
    assert found.is_due is expected


@pytest.mark.req("SEG-CMP-005")
def test_nothing_dirty_is_never_due() -> None:
    assert not plan(segments(0, 0, 0)).is_due
    assert not plan(segments(100, 100), replace(COMPACT, max_compaction_lag_ms=1), cleaner_offset=10).is_due


@pytest.mark.req("SEG-CMP-006")
@pytest.mark.parametrize(
    ("limit", "expected"),
    [(99, [[0], [10], [20]]), (199, [[0], [10], [20]]), (200, [[0, 10], [20]]), (300, [[0, 10, 20]])],
)
def test_neighbours_become_one_while_they_fit(limit: int, expected: list[list[int]]) -> None:
    assert groups(plan(segments(100, 100, 100, 100), replace(COMPACT, segment_bytes=limit))) == expected


@pytest.mark.req("SEG-CMP-006")
@pytest.mark.parametrize("field", ["offset_index_size", "time_index_size"])
@pytest.mark.parametrize(("limit", "expected"), [(24, [[0, 10]]), (23, [[0], [10]])])
def test_neighbours_become_one_while_their_indexes_fit(field: str, limit: int, expected: list[list[int]]) -> None:
    rows = [segment(0, **{field: 12}), segment(10, **{field: 12}), segment(20)]
    assert groups(plan(rows, replace(COMPACT, segment_index_bytes=limit))) == expected


@pytest.mark.req("SEG-CMP-006")
@pytest.mark.parametrize(("end", "expected"), [(2**31, [[0, 10]]), (2**31 + 1, [[0], [10]])])
def test_neighbours_become_one_while_their_offsets_fit(end: int, expected: list[list[int]]) -> None:
    assert groups(plan([segment(0), segment(10), segment(end)])) == expected


@pytest.mark.req("SEG-CMP-006")
def test_an_empty_segment_joins_whatever_its_offsets_are() -> None:
    assert groups(plan([segment(0), segment(10, 0), segment(2**40)])) == [[0, 10]]


@pytest.mark.req("SEG-CMP-007")
def test_segments_after_the_keys_that_can_be_remembered_stay() -> None:
    found = plan(segments(100, 100, 100, 100), end_offset=15)
    assert groups(found) == [[0, 10]]
    assert (found.end_offset, found.first_uncleanable_offset) == (15, 30)
    assert found.explanation[2] == "segment 20: keep: the memory holds only the keys up to offset 14"


def test_the_table_of_the_chapter() -> None:
    assert plan(segments(100, 100, 100), cleaner_offset=10).explanation == (
        "segment 0: clean: clean",
        "segment 10: clean: dirty, and becomes part of segment 0",
        "segment 20: keep: the active segment",
    )


def test_a_log_has_a_segment() -> None:
    with pytest.raises(UsageError, match="at least one segment"):
        plan([])

"""Chapter 72: which segments retention removes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seglog_format.cleaning.retention import RetainedSegment, RetentionPlan, RetentionReason, plan_retention
from seglog_format.errors import UsageError
from seglog_format.state.config import LogConfig

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
NOW_MS = 1_800_000_000_000


def segments(*rows: tuple[int, int]) -> list[RetainedSegment]:
    """Segments of ten offsets from (size, age in milliseconds), oldest first."""
    return [
        RetainedSegment(10 * number, 10 * number + 10, size, NOW_MS - age, NOW_MS)
        for number, (size, age) in enumerate(rows)
    ]


def plan(rows: list[RetainedSegment], config: LogConfig, **options: int) -> RetentionPlan:
    return plan_retention(rows, config, now_ms=NOW_MS, **options)


def removed(rows: list[RetainedSegment], config: LogConfig, **options: int) -> list[int]:
    return [segment.base_offset for segment in plan(rows, config, **options).removed]


@pytest.mark.req("SEG-RET-001")
def test_only_a_prefix_goes() -> None:
    rows = segments((100, 5 * HOUR_MS), (100, 1), (100, 5 * HOUR_MS), (100, 1))
    assert removed(rows, LogConfig(retention_ms=HOUR_MS)) == [0]


@pytest.mark.req("SEG-RET-001")
def test_size_takes_over_where_the_log_start_offset_stops_and_time_after_that() -> None:
    rows = segments((100, HOUR_MS), (100, HOUR_MS), (100, HOUR_MS), (100, 1))
    config = LogConfig(retention_ms=MINUTE_MS, retention_bytes=200)
    reasons = [fate.reason for fate in plan(rows, config, log_start_offset=10).fates]
    assert reasons == [RetentionReason.LOG_START_OFFSET, RetentionReason.SIZE, RetentionReason.TIME, None]


@pytest.mark.req("SEG-RET-001")
def test_compacted_topics_lose_only_what_the_log_start_offset_hides() -> None:
    rows = segments((100, HOUR_MS), (100, HOUR_MS), (100, HOUR_MS))
    config = LogConfig(retention_ms=1, retention_bytes=0, cleanup_policy=frozenset({"compact"}))
    assert removed(rows, config, log_start_offset=10) == [0]


@pytest.mark.req("SEG-RET-002")
@pytest.mark.parametrize(("high_watermark", "expected"), [(9, []), (10, [0]), (19, [0]), (30, [0, 10, 20])])
def test_what_is_not_replicated_stays(high_watermark: int, expected: list[int]) -> None:
    rows = segments((100, HOUR_MS), (100, HOUR_MS), (100, HOUR_MS))
    assert removed(rows, LogConfig(retention_ms=0), high_watermark=high_watermark) == expected


@pytest.mark.req("SEG-RET-002")
def test_an_empty_active_segment_stays() -> None:
    rows = [*segments((100, HOUR_MS)), RetainedSegment(10, 10, 0, -1, NOW_MS - HOUR_MS)]
    assert removed(rows, LogConfig(retention_ms=0)) == [0]
    assert removed(rows[1:], LogConfig(retention_ms=0)) == []


@pytest.mark.req("SEG-RET-003")
@pytest.mark.parametrize(("age", "expected"), [(HOUR_MS, []), (HOUR_MS + 1, [0])])
def test_time_is_a_strict_limit(age: int, expected: list[int]) -> None:
    assert removed(segments((100, age), (100, 0)), LogConfig(retention_ms=HOUR_MS)) == expected


@pytest.mark.req("SEG-RET-003")
@pytest.mark.parametrize("limit", [90_000, 30 * MINUTE_MS, 168 * HOUR_MS])
def test_limits_of_milliseconds_minutes_and_hours(limit: int) -> None:
    rows = segments((100, limit + 1), (100, limit), (100, 0))
    assert removed(rows, LogConfig(retention_ms=limit)) == [0]


@pytest.mark.req("SEG-RET-003")
def test_a_record_from_the_future_keeps_its_segment() -> None:
    assert removed(segments((100, -HOUR_MS), (100, HOUR_MS)), LogConfig(retention_ms=0)) == []


@pytest.mark.req("SEG-RET-003", "SEG-RET-005")
def test_minus_one_is_no_limit() -> None:
    assert removed(segments((100, 999 * HOUR_MS), (100, 0)), LogConfig(retention_ms=-1, retention_bytes=-1)) == []


@pytest.mark.req("SEG-RET-004")
def test_without_timestamps_the_file_time_counts() -> None:
    old = RetainedSegment(0, 10, 100, -1, NOW_MS - HOUR_MS)
    assert removed([old, *segments((1, 0), (1, 0))[1:]], LogConfig(retention_ms=MINUTE_MS)) == [0]
    assert removed([old, *segments((1, 0), (1, 0))[1:]], LogConfig(retention_ms=2 * HOUR_MS)) == []


@pytest.mark.req("SEG-RET-005")
@pytest.mark.parametrize(("limit", "expected"), [(301, []), (300, [0]), (299, [0]), (200, [0, 10]), (100, [0, 10, 20])])
def test_the_log_never_gets_smaller_than_the_limit(limit: int, expected: list[int]) -> None:
    rows = segments((100, 0), (100, 0), (100, 0), (100, 0))
    assert removed(rows, LogConfig(retention_ms=-1, retention_bytes=limit)) == expected


@pytest.mark.req("SEG-RET-006")
def test_the_active_segment_goes_only_when_all_do() -> None:
    found = plan(segments((100, HOUR_MS), (100, HOUR_MS)), LogConfig(retention_ms=MINUTE_MS))
    assert (found.rolls_first, len(found.removed), found.log_start_offset) == (True, 2, 20)
    found = plan(segments((100, HOUR_MS), (100, 0)), LogConfig(retention_ms=MINUTE_MS))
    assert (found.rolls_first, len(found.removed), found.log_start_offset) == (False, 1, 10)


@pytest.mark.req("SEG-RET-007")
def test_log_start_offset_moves_and_never_back() -> None:
    rows = segments((100, HOUR_MS), (100, 0))
    config = LogConfig(retention_ms=MINUTE_MS)
    assert plan(rows, config).log_start_offset == 10
    assert plan(rows, config, log_start_offset=15).log_start_offset == 15
    assert plan(rows, LogConfig(retention_ms=-1), log_start_offset=5).log_start_offset == 5


@pytest.mark.req("SEG-RET-008")
@pytest.mark.parametrize(("start", "expected"), [(9, []), (10, [0]), (19, [0]), (20, [0, 10]), (30, [0, 10])])
def test_log_start_offset_hides_whole_segments(start: int, expected: list[int]) -> None:
    rows = segments((100, 0), (100, 0), (100, 0))
    assert removed(rows, LogConfig(retention_ms=-1), log_start_offset=start) == expected


def test_every_fate_says_why() -> None:
    kept = "it is 0 ms old, 60000 ms are kept, until 2027-01-15T08:01:00Z"
    fates = plan(segments((100, HOUR_MS), (100, 0), (100, 0)), LogConfig(retention_ms=MINUTE_MS)).fates
    assert [fate.explanation for fate in fates] == [
        "it is 3600000 ms old, 60000 ms are kept",
        f"{kept}; no limit of size; the next segment begins at 20, the log at 0",
        "segment 10 before it is kept",
    ]
    with pytest.raises(UsageError):
        plan_retention([], LogConfig(), now_ms=0)


def test_long_times_are_said_in_days_too() -> None:
    fates = plan(segments((100, 60 * HOUR_MS), (100, 0)), LogConfig(retention_ms=24 * HOUR_MS)).fates
    assert fates[0].explanation == "it is 216000000 ms (2.5 days) old, 86400000 ms (1 day) are kept"


def test_a_timestamp_in_the_future_has_no_age() -> None:
    first, second = segments((100, 0), (100, 0))
    rows = [replace(first, largest_timestamp_ms=NOW_MS * 1000), second]
    text = plan(rows, LogConfig(retention_ms=MINUTE_MS)).fates[0].explanation
    end = "60000 ms are kept, until after the year 9999"
    assert text.startswith(f"its largest timestamp is in the future: it is probably in microseconds, {end};")


def model(rows: list[RetainedSegment], config: LogConfig, start: int) -> list[int]:
    """Ten lines that say the same."""
    left = list(rows)
    while len(left) > 1 and left[1].base_offset <= start:
        left.pop(0)
    while left and left[0].size and 0 <= config.retention_bytes <= sum(segment.size for segment in left[1:]):
        left.pop(0)
    while left and NOW_MS - left[0].age_from_ms > config.retention_ms >= 0:
        left.pop(0)
    return [segment.base_offset for segment in rows[: len(rows) - len(left)]]


@pytest.mark.req("SEG-RET-001", "SEG-RET-003", "SEG-RET-005")
@given(
    st.lists(st.tuples(st.integers(1, 200), st.integers(-50, 200)), min_size=1, max_size=8),
    st.integers(-1, 200),
    st.integers(-1, 900),
    st.integers(0, 90),
)
def test_decisions_equal_the_model(rows: list[tuple[int, int]], retention_ms: int, size: int, start: int) -> None:
    config = LogConfig(retention_ms=retention_ms, retention_bytes=size)
    assert removed(segments(*rows), config, log_start_offset=start) == model(segments(*rows), config, start)


def full_model(rows: list[RetainedSegment], config: LogConfig, start: int, mark: int) -> tuple[list[int], bool, int]:
    """Return the same with everything that counts: what goes, whether all does, and where the log starts then."""
    left = list(rows)

    def may_go() -> bool:
        is_active = len(left) == 1
        end = rows[-1].next_offset if is_active else left[1].base_offset if left else mark + 1
        return end <= mark and not (is_active and left[0].size == 0)

    while may_go() and len(left) > 1 and left[1].base_offset <= start:
        left.pop(0)
    while "delete" in config.cleanup_policy and may_go() and 0 <= config.retention_bytes <= total(left[1:]):
        left.pop(0)
    while "delete" in config.cleanup_policy and may_go() and NOW_MS - left[0].age_from_ms > config.retention_ms >= 0:
        left.pop(0)
    gone = [segment.base_offset for segment in rows[: len(rows) - len(left)]]
    return gone, not left, max(start, (left[0].base_offset if left else rows[-1].next_offset) if gone else start)


def total(rows: list[RetainedSegment]) -> int:
    return sum(segment.size for segment in rows)


ROW = st.tuples(st.integers(0, 3), st.sampled_from((0, 1, 100)), st.integers(-3, 3), st.integers(0, 3))


@pytest.mark.req("SEG-RET-001", "SEG-RET-002", "SEG-RET-004", "SEG-RET-006", "SEG-RET-007", "SEG-RET-008")
@settings(max_examples=400)
@given(
    st.lists(ROW, min_size=1, max_size=6),
    st.integers(-1, 3),
    st.sampled_from((-1, 0, 1, 100, 101, 200, 300)),
    st.sampled_from(({"delete"}, {"compact"}, {"compact", "delete"})),
    st.integers(0, 20),
    st.integers(-1, 20),
)
def test_decisions_about_anything_equal_the_model(
    row: list[tuple[int, int, int, int]], retention_ms: int, size: int, policy: set[str], start: int, mark: int
) -> None:
    rows: list[RetainedSegment] = []
    for count, length, age, file_age in row:
        base = rows[-1].next_offset + 1 if rows else 0
        time = -1 if age == -1 else NOW_MS - age
        rows.append(RetainedSegment(base, base + count, length, time, NOW_MS - file_age))
    config = LogConfig(retention_ms=retention_ms, retention_bytes=size, cleanup_policy=frozenset(policy))
    found = plan(rows, config, log_start_offset=start, high_watermark=mark)
    decided = [segment.base_offset for segment in found.removed], found.rolls_first, found.log_start_offset
    assert decided == full_model(rows, config, start, mark)

"""The algorithms of chapters 72 and 73 agree with the package, with Kafka's classes, and with all cases."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import pytest
from helpers.support import FIXTURES, bundled, bundled_cases, states
from helpers.walking import each_of
from hypothesis import given
from hypothesis import strategies as st
from seglog_algorithms import compaction, retention
from seglog_conformance.cases import load_cases
from seglog_conformance.compare import compare
from seglog_conformance.features import missing_feature
from seglog_conformance.reference import scenarios
from seglog_conformance.specification import cleaning
from seglog_conformance.specification.testee import FEATURES, Specification
from seglog_conformance.verdicts import Verdict

from seglog_format.cleaning.compaction import CompactedSegment, plan_compaction
from seglog_format.cleaning.retention import RetainedSegment, plan_retention
from seglog_format.state.config import LogConfig

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LARGEST = 300_000
"""Size of a directory above which it is not compared: some have preallocated indexes of 10 MiB."""
NOW_MS = 1_900_000_000_000
DAMAGED = {"4.3.0/crash-flip-early"}
"""Cases that compaction refuses: a checksum inside of the log is wrong."""


# Cases


@pytest.mark.parametrize("operation", ["compact", "decide", "retain"])
def test_every_case_that_needs_no_failing_disk_is_answered_as_expected(operation: str) -> None:
    testee = Specification()
    cases = [case for case in load_cases() if case.op == operation]
    asked = [case for case in cases if missing_feature(case.needs, FEATURES) is None]
    assert {need for case in cases for need in case.needs if case not in asked} <= {"diskErrors", "powerCuts"}
    verdicts = {case.id: compare(case, testee.answer({"op": operation, **case.request}), FEATURES) for case in asked}
    assert [name for name, found in verdicts.items() if found.verdict is not Verdict.PASS] == []
    assert len(verdicts) > 7


# Directories of brokers


def partitions(name: str) -> Iterator[Path]:
    """Yield the partition directories of an authentic case."""
    for root in states(bundled(name)):
        for path in sorted({log.parent for log in root.glob("*/*.log")}):
            if sum(file.stat().st_size for file in path.iterdir()) <= LARGEST:
                yield path


def request_of(path: Path, config: dict[str, str]) -> dict[str, Any]:
    """Return a request with the files of a directory."""
    files = {file.name: file.read_bytes().hex() for file in sorted(path.iterdir()) if file.is_file()}
    modified = {name: str(NOW_MS - 1000 * number) for number, name in enumerate(files) if name.endswith(".log")}
    return {"files": files, "config": config, "now": str(NOW_MS), "options": {"modified": modified}}


def assert_agree(operation: str, path: Path, config: dict[str, str], *, is_refused: bool = False) -> None:
    """Compare the answers of the package and of the algorithm."""
    request = request_of(path, config)
    expected = getattr(scenarios, operation)(request)
    assert expected["ok"] is not is_refused
    if expected["ok"]:
        assert getattr(cleaning, operation)(request) == expected


@each_of("name", bundled_cases())
def test_a_directory_of_a_broker_is_retained_as_by_the_package(name: str) -> None:
    for path in partitions(name):
        size = sum(log.stat().st_size for log in path.glob("*.log"))
        assert_agree("retain", path, {"retention.bytes": str(size // 2), "retention.ms": "-1"})
        assert_agree("retain", path, {"retention.ms": "0", "cleanup.policy": "compact, delete"})


@each_of("name", bundled_cases())
def test_a_directory_of_a_broker_is_compacted_as_by_the_package(name: str) -> None:
    for path in partitions(name):
        config = {"cleanup.policy": "compact", "segment.bytes": "100000"}
        assert_agree("compact", path, config, is_refused=name in DAMAGED)


# Kafka's classes


def tiered_answers() -> list[dict[str, Any]]:
    """Return questions about tiered logs, with what Kafka's `UnifiedLog` left (fixtures/make/tiered_retention.py)."""
    with gzip.open(FIXTURES / "witnesses" / "tiered-retention.jsonl.gz", "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines][1:]


def test_kafkas_classes_leave_the_segments_of_tiered_logs_that_the_algorithm_leaves() -> None:
    asked = tiered_answers()
    assert len(asked) > 1000
    for one in asked:
        segments = [
            retention.Segment(base, end, size, largest, modified)
            for base, end, size, largest, modified in one["segments"]
        ]
        options = cleaning.options_of(retention.Options, one)
        start, mark = one["logStartOffset"], one["highWatermark"]
        if not options.remote_storage_enable:
            start = max(start, segments[0].base_offset)  # SEG-CKP-010
        log = retention.Log(segments, 1_800_000_000_000, start, max(start, mark), one["copiedOffset"])
        plan = retention.plan_retention(log, options)
        left = [[each.base_offset, each.size] for each in segments if each.base_offset not in plan.removed]
        left += [[log.end_offset, 0]] if plan.rolls_first else []
        for found, start_after, *_ in one["answers"].values():
            assert (found, start_after) == (left, plan.log_start_offset), one


# Decisions

POLICIES = st.sampled_from(["delete", "compact", "compact,delete"])


@st.composite
def listings(draw: st.DrawFn) -> list[dict[str, int]]:
    """Draw facts about the segments of a log; the last one is active, and may be empty."""
    found, base = [], draw(st.integers(0, 20))
    for _ in range(draw(st.integers(1, 5))):
        end = base + draw(st.integers(0, 10))
        size = draw(st.integers(1, 200)) if end > base else 0
        first = draw(st.integers(-1, 100))
        facts = {"base_offset": base, "next_offset": end, "size": size, "modified_ms": draw(st.integers(0, 100))}
        found.append(facts | {"largest_timestamp_ms": draw(st.integers(first, 120)), "first_timestamp_ms": first})
        base = end + draw(st.integers(0 if end > base else 1, 5))
    return found


@given(listings(), st.integers(0, 60), st.integers(0, 60), st.integers(-1, 500), st.integers(-1, 120), POLICIES)
def test_the_package_decides_on_retention_as_the_algorithm(
    listing: list[dict[str, int]], start: int, mark: int, size: int, age: int, policy: str
) -> None:
    facts = [{name: value for name, value in one.items() if name != "first_timestamp_ms"} for one in listing]
    expected = plan_retention(
        [RetainedSegment(**one) for one in facts],
        LogConfig(retention_bytes=size, retention_ms=age, cleanup_policy=frozenset(policy.split(","))),
        now_ms=100,
        log_start_offset=start,
        high_watermark=mark,
    )
    log = retention.Log([retention.Segment(**one) for one in facts], 100, start, mark)
    found = retention.plan_retention(log, retention.Options(policy, age, size))
    assert found == retention.Plan(
        tuple(one.base_offset for one in expected.removed), expected.rolls_first, expected.log_start_offset
    )


@given(
    listings(),
    st.integers(0, 60),
    st.tuples(st.none() | st.integers(0, 80), st.integers(0, 80), st.none() | st.integers(0, 80)),
    st.integers(0, 50),
    st.integers(14, 500),
)
def test_the_package_decides_on_compaction_as_the_algorithm(
    listing: list[dict[str, int]],
    start: int,
    offsets: tuple[int | None, int, int | None],
    lag: int,
    segment_bytes: int,
) -> None:
    cleaner, stable, end = offsets
    config = LogConfig(segment_bytes=segment_bytes, min_compaction_lag_ms=lag, max_compaction_lag_ms=max(lag, 1))
    expected = plan_compaction(
        [CompactedSegment(**one) for one in listing],
        config,
        now_ms=100,
        cleaner_offset=cleaner,
        log_start_offset=start,
        last_stable_offset=stable,
        end_offset=end,
    )
    log = compaction.Log([retention.Segment(**one) for one in listing], 100, start, stable, cleaner)
    options = compaction.Options(segment_bytes, min_compaction_lag_ms=lag, max_compaction_lag_ms=max(lag, 1))
    found = compaction.plan_compaction(log, options, end)
    assert found == compaction.Plan(
        expected.first_dirty_offset,
        expected.first_uncleanable_offset,
        expected.end_offset,
        tuple(tuple(one.base_offset for one in group) for group in expected.groups),
        expected.is_due,
    )


@pytest.mark.parametrize(
    ("settings", "kept_ms"),
    [
        ({}, 7 * 86_400_000),
        ({"log.retention.hours": "12"}, 12 * 3_600_000),
        ({"log.retention.minutes": "90", "log.retention.hours": "12"}, 90 * 60_000),
        ({"log.retention.ms": "5000", "log.retention.minutes": "90"}, 5000),
        ({"retention.ms": "1000", "log.retention.ms": "5000"}, 1000),
        ({"log.retention.ms": "-1", "log.retention.hours": "12"}, -1),
    ],
)
def test_the_smallest_unit_counts(settings: dict[str, str], kept_ms: int) -> None:
    assert retention.retention_ms_of(settings) == kept_ms

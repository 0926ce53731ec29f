"""The performance page begins with medians of the report, of ours, of other libraries and of Kafka."""

from __future__ import annotations

from tools.docs import performance_summary

REPORT = {
    "made": {
        "commit": "0123456789" * 4,
        "date": "2026-11-27",
        "machine": {"cores": 2, "processor": "a processor"},
    },
    "data": [{"name": "u100_1g", "bytes": 1_000_000_000}],
    "results": [
        {
            "work": "verify",
            "data": "u100_1g",
            "contender": "seglog verify",
            "median": 0.625,
            "megabytesPerSecond": 1600.0,
        },
        {
            "work": "verify",
            "data": "u100_1g",
            "contender": "kafka-dump-log --deep-iteration",
            "median": 10.0,
            "megabytesPerSecond": 100.0,
        },
        {
            "work": "columns",
            "data": "u100",
            "contender": "kafka-protocol",
            "program": "rust",
            "median": 2.0,
            "megabytesPerSecond": 450.0,
        },
        {"work": "columns", "data": "u100", "contender": "aiokafka", "program": "clients", "note": "not built"},
    ],
}


def test_the_page_begins_with_medians() -> None:
    text = "\n".join(performance_summary.lines(REPORT))
    assert "checks a log of 1,000 MB at 1,600 MB/s" in text
    assert "reads it at 100 MB/s" in text
    assert "| `u100_1g` | MB/s | **1,600** | - | 100 (kafka-dump-log --deep-iteration) |" in text


def test_a_contender_that_was_not_measured_is_named_as_such() -> None:
    text = "\n".join(performance_summary.lines(REPORT))
    assert "| scan: every record into columns | `u100` | MB/s | not in this run | 450 (kafka-protocol) | - |" in text
    assert "Finding an offset" not in text

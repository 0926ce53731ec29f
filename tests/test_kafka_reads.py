"""Kafka's own code judges ours: a short run of ``proofs/kafka/kafka_reads.py``; the full one is in ``reports/``.

Where Java and Maven are, the first run builds the project in ``tests/java``; without them the tests are skipped.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from helpers.support import REPOSITORY

from proofs.fuzz.random_damage import DAMAGES, damaged
from proofs.fuzz.random_logs import random_log
from proofs.kafka import kafka_reads
from proofs.kafka import loads as kafka_loads
from proofs.kafka.result import Result
from seglog_format.codec.framing import walk

if TYPE_CHECKING:
    from proofs.kafka.oracle import Oracle

WITH_UNUSUAL_FILES = (2, 18, 35, 45, 69, 73, 76, 101, 125, 138)
"""Seeds of wrecks with a replacement that did not end, or a file by a name that no broker gives."""
SEED = 5000
"""Apart from the seeds of the full run."""
COUNTS = {
    "recovery": 80,
    "segments": 20,
    "partitions": 16,
    "loads": 10,
    "compaction": 4,
    "fixtures": 17,
    "directories": 5,
    "large": 0,
    "broker": 2,
    "tier": 60,
}


def run(part: str, oracles: dict[str, Oracle]) -> Result:
    result = kafka_reads.parts(oracles, COUNTS, SEED)[part]()
    assert result.failures == []
    assert result.checked
    return result


# Reading


def test_bundled_directories_read_as_kafka_reads_them(oracles: dict[str, Oracle]) -> None:
    result = run("fixtures", oracles)
    assert result.counts["record lines"]


# Recovery


def test_damaged_segments_recover_as_kafka_recovers_them(oracles: dict[str, Oracle]) -> None:
    result = run("recovery", oracles)
    assert result.counts["Kafka 4.1: recovered"]
    assert result.counts["Kafka 3.9: recovered"]


def test_damaged_partitions_recover_as_kafka_loads_them(oracles: dict[str, Oracle]) -> None:
    result = run("loads", oracles)
    assert result.counts["Kafka 4.1: loaded"]


def test_odd_names_and_replacements_load_as_kafka_loads_them(oracles: dict[str, Oracle]) -> None:
    result = kafka_loads.check_loads(list(oracles.values()), WITH_UNUSUAL_FILES)
    assert result.failures == []
    damages = {name.removeprefix("damage: ") for name in result.counts}
    assert {"a file -0000000000000000001.log", "torn .log.swap without indexes", "a file x.snapshot"} <= damages


# Writing


def test_indexes_of_segments_equal_those_that_kafka_writes(oracles: dict[str, Oracle]) -> None:
    result = run("segments", oracles)
    assert result.counts["Kafka 4.1: index entries"]


def test_every_file_of_a_partition_equals_the_one_that_kafka_writes(oracles: dict[str, Oracle]) -> None:
    result = run("partitions", oracles)
    assert result.counts["Kafka 4.1: segments"] > result.checked


def test_compacted_logs_equal_those_of_kafkas_cleaner(oracles: dict[str, Oracle]) -> None:
    result = run("compaction", oracles)
    assert result.counts["passes that did something"]


def test_kafka_finds_nothing_to_change_in_generated_directories(oracles: dict[str, Oracle]) -> None:
    result = run("directories", oracles)
    assert result.counts["files dumped"]
    assert result.counts["offsets looked up"]


def test_a_broker_serves_generated_partitions(oracles: dict[str, Oracle]) -> None:
    newest = max(oracles.values(), key=lambda oracle: oracle.release)
    result = run(f"broker {newest.version}", oracles)
    assert result.counts["records read, read_uncommitted"]


# Tiered storage


@pytest.mark.req(
    *("SEG-RLM-004", "SEG-RLM-005", "SEG-RLM-007", "SEG-RLM-008", "SEG-RLM-009", "SEG-RLM-010"),
    *("SEG-RLM-011", "SEG-RLM-012", "SEG-RLM-013"),
)
def test_histories_of_remote_segments_end_as_kafkas_classes_end_them(oracles: dict[str, Oracle]) -> None:
    result = run("tier", oracles)
    assert result.counts["events dropped"]
    assert result.counts["questions answered"]
    assert result.counts["segments deleted by retention"]
    assert 0 < result.counts["segments of the lineage"] < result.counts["segments"]


# What the comparison is made of, without Kafka


def test_logs_and_damage_repeat_with_their_seed() -> None:
    for seed in range(5):
        log = random_log(seed)
        assert log == random_log(seed)
        assert damaged(seed, log.data) == damaged(seed, log.data)


def test_random_logs_are_whole_and_their_offsets_increase() -> None:
    for seed in range(15):
        log = random_log(seed)
        frames = list(walk(log.data))
        assert [bytes(frame.data) for frame in frames] == log.entries
        lasts = [frame.header.last_offset for frame in frames]
        assert lasts == sorted(set(lasts))


def test_every_kind_of_damage_comes_up() -> None:
    logs = [random_log(seed).data for seed in range(3)]
    names = [name for seed in range(300) for name in damaged(seed, logs[seed % 3])[1]]
    assert set(names) == {damage.__name__ for damage in DAMAGES}


def test_a_disagreement_is_told() -> None:
    result = Result("something")
    assert result.equal("case 1", "index", b"\x01", b"\x01")
    assert not result.equal("case 2", "index", b"\x01", b"\x02")
    assert result.failures == ["case 2: index: ours 01, Kafka's 02"]
    assert result.as_object()["disagreements"] == 1


def test_only_some_disagreements_are_written_out() -> None:
    result = Result("something")
    for number in range(100):
        result.equal(f"case {number}", "size", 1, 2)
    assert len(result.failures) == 20
    assert result.failure_count == 100


def test_the_full_runs_found_no_disagreement() -> None:
    report: dict[str, Any] = json.loads((REPOSITORY / "reports" / "kafka-reads.json").read_text(encoding="utf-8"))
    assert report["disagreements"] == 0
    assert report["parts"]
    for name, part in report["parts"].items():
        assert part["checked"] >= kafka_reads.COUNTS[name.split()[0]]

"""Chapter 60: every answer of a lookup equals that of a full scan, whatever the indexes say."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import astuple
from datetime import UTC, datetime
from itertools import accumulate
from typing import TYPE_CHECKING

import pytest
from helpers.full_scan import agrees_with_bytes, sampled
from helpers.lookup_checks import UNDAMAGED, check_positions, check_reads, check_timestamps, logs
from helpers.scans import segment_directory
from helpers.support import bundled
from helpers.walking import each_of

from seglog_format import PartitionWriter, build_batch, encode_batch, new_record, open_partition
from seglog_format.codec.build import build_message_entry
from seglog_format.errors import UsageError
from seglog_format.log.segment import LogSegment
from seglog_format.model import CompressionCodec
from seglog_format.state.config import LogConfig

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from helpers.full_scan import Log

    from seglog_format.types import Partition

MANY = 1300
"""So many offsets of a case are read at; only the cases with batches of thousands of records have more."""


def opened(name: str, *, trust_indexes: bool = False) -> Iterator[tuple[Log, Partition]]:
    for directory, log in logs(name):
        with open_partition(directory, trust_indexes=trust_indexes) as partition:
            yield log, partition


@each_of("name", UNDAMAGED)
def test_the_full_scan_is_no_fiction(name: str) -> None:
    for directory, log in logs(name):
        assert agrees_with_bytes(log, directory)


@pytest.mark.req("SEG-LKP-002")
@each_of("name", UNDAMAGED)
def test_position_of_every_offset(name: str) -> None:
    for log, partition in opened(name):
        check_positions(log, partition, list(log.offsets()))


@pytest.mark.req("SEG-LKP-001", "SEG-LKP-002", "SEG-LKP-003", "SEG-LKP-004", "SEG-LKP-005")
@each_of("name", UNDAMAGED)
def test_read_at_every_offset(name: str) -> None:
    for log, partition in opened(name):
        check_reads(log, partition, sampled(log.offsets(), MANY, name))


@pytest.mark.req("SEG-LKP-008")
@each_of("name", UNDAMAGED)
def test_every_timestamp_and_its_neighbours(name: str) -> None:
    for log, partition in opened(name):
        check_timestamps(log, partition, log.timestamps())
        largest = partition.offset_for_timestamp(-3)
        assert (largest and astuple(largest)) == log.first_of_largest()


@each_of("name", UNDAMAGED)
def test_trusted_indexes_of_brokers_lead_to_the_same_answers(name: str) -> None:
    for log, partition in opened(name, trust_indexes=True):
        check_positions(log, partition, sampled(log.offsets(), 60, name))
        check_reads(log, partition, sampled(log.offsets(), 60, name))
        check_timestamps(log, partition, sampled(log.timestamps(), 60, name))
        assert partition.log_end_offset == log.log_end_offset


LOOKUP_ALONE = """
import sys
from itertools import islice
from seglog_format import OffsetSpec, open_partition
path, policy, *questions = sys.argv[1:]
for question in questions:
    with open_partition(path, trust_indexes=policy == "trust") as log:
        print(eval(question), "numpy" in sys.modules)
"""


def answers(path: Path, policy: str, *questions: str) -> list[str]:
    """Ask partitions opened in a new process; beside each answer is whether the engine was loaded."""
    arguments = [sys.executable, "-c", LOOKUP_ALONE, str(path), policy, *questions]
    return subprocess.run(arguments, check=True, timeout=60, capture_output=True, text=True).stdout.splitlines()


@pytest.fixture(scope="module")
def large_partition(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One segment of 48 MB."""
    path = tmp_path_factory.mktemp("large") / "t-0"
    with PartitionWriter(path, LogConfig(segment_bytes=2**30)) as writer:
        for _ in range(48):
            writer.append([new_record(value=bytes(2**20 - 200), timestamp_ms=1)])
            writer.append([new_record(value=b"small", timestamp_ms=1)] * 10)
    return path


LOOKUPS = {
    "next(log.records()).offset": 0,
    "next(log.records(5)).offset": 5,
    "next(log.records(300)).offset": 300,
    "next(log.records(527)).offset": 527,
    "next(log.records(60, isolation='read_committed')).offset": 60,
    "[record.offset for record in islice(log.records(2), 9)]": [*range(2, 11)],
    "[record.offset for record in log.records(40, 50)]": [*range(40, 50)],
    "[record.offset for record in log.records(7, 8)]": [7],
    "log.read(40).records[0].offset": 40,
    "log.log_end_offset": 528,
    "log.offset_for_timestamp(OffsetSpec.LATEST).offset": 528,
}


@pytest.mark.parametrize("policy", ["trust", "prove"])
def test_a_lookup_does_not_load_the_engine(large_partition: Path, policy: str) -> None:
    assert answers(large_partition, policy, *LOOKUPS) == [f"{answer} False" for answer in LOOKUPS.values()]


def test_reading_on_loads_the_engine(large_partition: Path) -> None:
    """Without this the tests above would prove nothing."""
    assert answers(large_partition, "prove", "sum(1 for _ in log.records())") == ["528 True"]


@pytest.mark.parametrize(("policy", "loads"), [("trust", False), ("prove", True)])
def test_only_the_proof_of_a_timestamp_takes_the_engine(large_partition: Path, policy: str, *, loads: bool) -> None:
    """A proof verifies every entry before the answer, so their size decides; before the first entry there is none."""
    asked = ("log.offset_for_timestamp(1).offset", "log.offset_for_timestamp(2)")
    assert answers(large_partition, policy, *asked) == ["0 False", f"None {loads}"]


@pytest.fixture(scope="module")
def large_gaps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One segment of 40 MB, of which every second ten offsets are missing, and one record of each of the others."""
    large = [new_record(value=bytes(2**20 - 200), timestamp_ms=1)]
    entries = [encode_batch(build_batch(large, base_offset=20 * number)) for number in range(40)]
    return segment_directory(tmp_path_factory.mktemp("gaps") / "t-0", b"".join(entries))


@pytest.mark.parametrize("policy", ["trust", "prove"])
def test_a_lookup_of_a_missing_offset_does_not_load_the_engine(large_gaps: Path, policy: str) -> None:
    asked = [f"next(log.records({offset})).offset" for offset in (1, 20, 79, 775)]
    assert answers(large_gaps, policy, *asked) == ["20 False", "20 False", "80 False", "780 False"]


@pytest.fixture(scope="module")
def large_messages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One segment of 40 MB: wrappers of ten messages, and large messages between them."""
    entries = [_message_entry(number) for number in range(80)]
    positions = accumulate(map(len, entries[:-1]), initial=0)
    index = [last.to_bytes(4) + at.to_bytes(4) for last, at in zip(range(9, 800, 10), positions, strict=True)]
    path = segment_directory(tmp_path_factory.mktemp("messages") / "t-0", b"".join(entries))
    (path / f"{0:020d}.index").write_bytes(b"".join(index[1:]))
    return path


def _message_entry(number: int) -> bytes:
    first, large = 10 * number, [new_record(value=bytes(2**20 - 200), timestamp_ms=1)]
    if number % 2:
        return encode_batch(build_message_entry(large, magic=1, base_offset=first + 9))
    small = [new_record(value=b"small", timestamp_ms=1)] * 10
    return encode_batch(build_message_entry(small, magic=1, base_offset=first, codec=CompressionCodec.GZIP))


@pytest.mark.parametrize("policy", ["trust", "prove"])
def test_a_lookup_of_a_message_does_not_load_the_engine(large_messages: Path, policy: str) -> None:
    offsets = [5, 19, 405, 799]
    asked = [f"next(log.records({offset})).offset" for offset in offsets]
    assert answers(large_messages, policy, *asked) == [f"{offset} False" for offset in offsets]


def test_trusted_records_start_at_the_index(large_partition: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A proof walks over all entries before the offset; trust reads behind the index entry only."""
    walked: list[int] = []
    monkeypatch.setattr(LogSegment, "number_of", lambda _self, offset: walked.append(offset))
    with open_partition(large_partition, trust_indexes=True) as partition:
        assert next(iter(partition.records(520))).offset == 520
    assert walked == []


@pytest.mark.parametrize("value", [datetime(2026, 11, 21, tzinfo=UTC), "2026-11-21", None])
def test_timestamps_that_are_no_numbers_are_wrong_usage(value: object) -> None:
    message = "a timestamp is a number of milliseconds since 1970, not "
    with open_partition(bundled("4.3.0/segs") / "segs-0") as partition, pytest.raises(UsageError, match=message):
        partition.offset_for_timestamp(value)  # type: ignore[arg-type]

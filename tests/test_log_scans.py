"""One walk of recovery serves everything that a plan asks about a segment."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from helpers.batches import batch, record

from proofs.fuzz.random_damage import damaged
from proofs.fuzz.random_logs import random_log
from seglog_format import recover
from seglog_format.columnar.index_log import ColumnarRecovery
from seglog_format.engine import Engine
from seglog_format.errors import UsageError
from seglog_format.log.listing import list_partition
from seglog_format.log.transactions import Transactions
from seglog_format.names import FileKind, segment_file_name
from seglog_format.recovery import entry_walk, log_scans
from seglog_format.recovery.apply import RecoveryOptions, prepare_recovery
from seglog_format.recovery.broker_scan import broker_scan
from seglog_format.recovery.index_settings import IndexSettings
from seglog_format.recovery.log_scans import LogScans
from seglog_format.recovery.planned_files import opened_segments
from seglog_format.recovery.segment_scan import scan_segment, side_files_of
from seglog_format.storage.file_reader import FileReader

if TYPE_CHECKING:
    from seglog_format.engine import RecoveryKernels
    from seglog_format.model import Frame, Tail
    from seglog_format.storage.byte_source import Readable

SETTINGS = IndexSettings(interval_bytes=300)


def made(directory: Path, logs: dict[int, bytes]) -> Path:
    directory.mkdir()
    for base_offset, data in logs.items():
        (directory / segment_file_name(base_offset, FileKind.LOG)).write_bytes(data)
    return directory


@pytest.mark.parametrize("like_broker", [False, True], ids=["by default", "like a broker"])
def test_a_plan_reads_each_entry_for_the_settings_and_then_once(
    like_broker: bool,  # noqa: FBT001 - a parameter of the test
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = random_log(3)
    data = b"".join(first.entries)
    directory = made(tmp_path / "topic-0", {first.base_offset: data, first.base_offset + 10**6: b""})
    read: Counter[int] = Counter()
    plain = entry_walk.recoverable_frame_at

    def counted(data: Readable, position: int, path: str = "") -> Frame | Tail:
        read[position] += path.endswith(segment_file_name(first.base_offset, FileKind.LOG))
        return plain(data, position, path)

    monkeypatch.setattr(entry_walk, "recoverable_frame_at", counted)
    plan = prepare_recovery(directory, options=RecoveryOptions(like_broker=like_broker))
    assert not plan.plan.cuts
    inner = {position: count for position, count in read.items() if 0 < position < len(data)}
    assert len(inner) == len(first.entries) - 1
    assert set(inner.values()) == {1}  # there is no index, so that the settings take no look


@pytest.mark.parametrize("kernels", [None, ColumnarRecovery()], ids=["walked", "compiled"])
@pytest.mark.parametrize("most", [log_scans.MAX_REMEMBERED, 0], ids=["remembered", "computed again"])
def test_what_one_walk_finds_is_what_each_scan_finds_by_itself(
    kernels: RecoveryKernels | None, most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_scans, "MAX_REMEMBERED", most)
    for seed in range(60):
        log = random_log(seed)
        data = b"".join(log.entries)
        data = damaged(seed, data)[0] if seed % 3 else data
        listing = list_partition(made(tmp_path / f"topic-{seed}", {log.base_offset: data}))
        with opened_segments(listing) as (segment,):
            scans = LogScans([segment], (), SETTINGS, kernels, is_compared=True)
            scan = scans.scan(segment)
            assert scan == scan_segment(data, log.base_offset, segment.path)
            end = len(data) if scan.cut is None else scan.cut.position
            alone = side_files_of(data, log.base_offset, SETTINGS, transactions=Transactions(), end=end)
            assert scans.side_files(segment, end) == alone
            found = scans.broker_scan(segment, len(data))
            broker = broker_scan(data, log.base_offset, segment.path, settings=SETTINGS)
            for name in ("outcome", "valid_size", "next_offset", "next_offset_since_4_1", "requirements", "reason"):
                assert getattr(found, name) == getattr(broker, name), (seed, name)


def test_compiled_code_reads_a_sound_segment_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = b"".join(batch(record(value=bytes(900)), base_offset=number) for number in range(1000))
    partition = made(tmp_path / "topic-0", {0: data})
    read: list[int] = []
    plain_read = FileReader.read

    def counted(reader: FileReader, start: int, end: int) -> bytes | memoryview:
        read.append(end - start if reader.path.endswith(".log") else 0)
        return plain_read(reader, start, end)

    monkeypatch.setattr(FileReader, "read", counted)
    for like_broker in (False, True):
        read.clear()
        prepare_recovery(partition, options=RecoveryOptions(like_broker=like_broker, engine=Engine.COLUMNAR))
        assert len(data) <= sum(read) < 1.5 * len(data)


# -- a plan remembers what it scanned, and a round scans only what the steps before it changed -------------------------


BATCHES = [batch(record(value=bytes(9000)), base_offset=number) for number in range(200)]
WHOLE, CUT = b"".join(BATCHES[:100]), b"".join(BATCHES[100:])[:-1]


def crashed(directory: Path, *, age_s: int = 60) -> Path:
    """Return a partition with a whole log and one that has to be cut, both written some time ago."""
    partition = made(directory, {0: WHOLE, 100: CUT})
    for path in partition.iterdir():
        at = path.stat().st_mtime - age_s
        os.utime(path, (at, at))
    return partition


def options_of(engine: Engine, *, like_broker: bool = False) -> RecoveryOptions:
    return RecoveryOptions(is_full_scan=True, interval_bytes=300, engine=engine, like_broker=like_broker)


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> Counter[int]:
    """Bytes that are read of each log, by base offset."""
    found: Counter[int] = Counter()
    plain_read = FileReader.read

    def counted(reader: FileReader, start: int, end: int) -> bytes | memoryview:
        if reader.path.endswith(".log"):
            found[int(Path(reader.path).stem)] += end - start
        return plain_read(reader, start, end)

    monkeypatch.setattr(FileReader, "read", counted)
    return found


@pytest.mark.parametrize("like_broker", [False, True], ids=["by default", "like a broker"])
@pytest.mark.parametrize("engine", [Engine.PLAIN, Engine.COLUMNAR])
def test_a_recovery_reads_a_log_that_it_leaves_alone_once(
    engine: Engine,
    like_broker: bool,  # noqa: FBT001 - a parameter of the test
    tmp_path: Path,
    read: Counter[int],
) -> None:
    options = options_of(engine, like_broker=like_broker)
    planned = recover(crashed(tmp_path / "topic-0"), options=options)
    once = read.copy()
    assert once[0] >= len(WHOLE)
    done = planned.apply()
    assert done.plan.cut is not None
    assert len(done.phases) >= 1
    assert read[0] - once[0] < len(WHOLE) / 2, "the start of the log tells the settings again"
    assert read[100] - once[100] >= len(CUT) / 2, "the log that was cut is another"
    again = recover(crashed(tmp_path / "young-0", age_s=0), options=options).apply()
    assert read[0] > 2 * len(WHOLE), "a log that was written just now may have changed"
    assert [step.text for step in again.steps] == [step.text for step in done.steps]
    for path in (tmp_path / "topic-0").iterdir():
        assert path.read_bytes() == (tmp_path / "young-0" / path.name).read_bytes(), path.name


@pytest.mark.parametrize("engine", [Engine.PLAIN, Engine.COLUMNAR])
@pytest.mark.parametrize("age_s", [0, 60])
def test_a_log_that_changed_since_the_plan_is_scanned_again(engine: Engine, age_s: int, tmp_path: Path) -> None:
    partition = crashed(tmp_path / "topic-0", age_s=age_s)
    planned = recover(partition, options=options_of(engine))
    log = partition / segment_file_name(0, FileKind.LOG)
    before = log.stat()
    with log.open("r+b") as file:
        file.seek(len(WHOLE) // 2)
        file.write(b"\xff" * 8)
    os.utime(log, ns=(before.st_atime_ns, before.st_mtime_ns))
    with pytest.raises(UsageError, match="has changed since this was planned"):
        planned.apply()

"""Chapter 72: what becomes of the files of segments that retention removes."""

from __future__ import annotations

import fcntl
import os
import random
from typing import TYPE_CHECKING

import pytest
from helpers.appends import Clock, idempotent, open_writer, produced, snapshot
from helpers.batches import patched
from helpers.made_partitions import (
    EMPTY_SNAPSHOT,
    EPOCHS,
    CountedFiles,
    PowerCutError,
    checkpoint,
    content,
    entry,
    log_sizes,
    make,
    names,
)

from proofs.power.mirrored_files import MirroredFiles
from proofs.power.simulated_files import PowerCut, SimulatedFiles
from seglog_format.cleaning.deletion import DeletedFiles, prepare_retention, retain_partition
from seglog_format.errors import CorruptRecordError, UsageError, WriteError
from seglog_format.log.partition import open_partition
from seglog_format.recovery.apply import recover_partition
from seglog_format.state.config import LogConfig
from seglog_format.storage.environment import Environment
from seglog_format.storage.files import LOCAL_FILES
from seglog_format.writing.log_writer import LogWriter
from seglog_format.writing.writer import PartitionWriter

if TYPE_CHECKING:
    from pathlib import Path

    from seglog_format.storage.files import Files


pytestmark = pytest.mark.usefixtures("no_fsync")


NOW = 10_000
FILES = {
    "0.log": entry(0, 10, time=1000),
    "0.index": b"",
    "10.log": entry(10, 10, time=2000, epoch=3),
    "10.index": b"",
    "10.timeindex": b"",
    "10.txnindex": b"",
    "10.snapshot": EMPTY_SNAPSHOT,
    "15.snapshot": EMPTY_SNAPSHOT,
    "20.log": entry(20, 10, time=3000, epoch=5),
    "20.index": b"",
    "20.snapshot": EMPTY_SNAPSHOT,
    EPOCHS: b"0\n3\n0 0\n3 12\n5 25\n",
}
ONE_LEFT = LogConfig(retention_ms=NOW - 2500)
NONE_LEFT = LogConfig(retention_ms=0)
START = "log-start-offset-checkpoint"


def log_directory(root: Path) -> Path:
    """``orders-0`` with three segments, in a log directory that has checkpoints."""
    directory = make(root, FILES)
    checkpoint(directory, "recovery-point-offset-checkpoint", 30)
    return directory


def start_of(directory: Path) -> int:
    """Return where a reader begins."""
    with open_partition(directory) as log:
        return log.log_start_offset


@pytest.mark.req("SEG-RET-009", "SEG-RET-010")
def test_files_get_other_names(tmp_path: Path) -> None:
    directory = log_directory(tmp_path)
    before = content(directory)
    done = retain_partition(directory, ONE_LEFT, now_ms=NOW)
    assert [segment.base_offset for segment in done.plan.removed] == [0, 10]
    gone = {"0.log", "0.index", "10.log", "10.index", "10.timeindex", "10.txnindex", "10.snapshot"}
    kept = {"15.snapshot", "20.log", "20.index", "20.snapshot", EPOCHS}
    assert set(names(directory)) == {f"{name.lstrip('0')}.deleted" for name in gone} | kept
    after = content(directory)
    assert all(
        after[path.removesuffix(".deleted") + ".deleted"] == before[path] for path in before if path[:20] < f"{15:020d}"
    )
    assert not prepare_retention(directory, ONE_LEFT, now_ms=NOW).steps
    with open_partition(directory) as log:
        assert (log.log_start_offset, log.log_end_offset) == (20, 30)


@pytest.mark.req("SEG-RET-011")
def test_leader_epochs_begin_with_the_log(tmp_path: Path) -> None:
    directory = log_directory(tmp_path)
    retain_partition(directory, ONE_LEFT, now_ms=NOW)
    assert (directory / EPOCHS).read_bytes() == b"0\n2\n3 20\n5 25\n"


@pytest.mark.req("SEG-RET-012")
def test_the_log_start_offset_moves_first(tmp_path: Path) -> None:
    directory = log_directory(tmp_path)
    checkpoint(directory, START, 5)
    steps = prepare_retention(directory, ONE_LEFT, now_ms=NOW).steps
    assert [step.path.name for step in steps[:2]] == [START, EPOCHS]
    assert [step.path.name[18:20] or step.text for step in steps[2:]] == [
        *("flush names", "00", "00"),
        *("flush names", "10", "10", "10", "10", "10"),
        "flush names",
    ]
    retain_partition(directory, ONE_LEFT, now_ms=NOW)
    assert (directory.parent / START).read_text(encoding="utf-8") == "0\n2\norders 0 20\norders 1 77\n"


def test_a_directory_by_itself_gets_no_checkpoint(tmp_path: Path) -> None:
    directory = make(tmp_path, FILES)
    retain_partition(directory, NONE_LEFT, now_ms=NOW)
    assert [path.name for path in directory.parent.iterdir()] == [directory.name]
    assert start_of(directory) == 30


@pytest.mark.req("SEG-RET-006")
def test_a_log_that_expires_as_a_whole_begins_anew_at_its_end(tmp_path: Path) -> None:
    clock = Clock()
    with open_writer(tmp_path, clock, segment_bytes=200) as writer:
        for sequence in range(5):
            writer.append(idempotent(sequence))
        writer.flush()
    directory = tmp_path / "topic-0"
    (directory / f"{5:020d}.snapshot").unlink()
    done = retain_partition(directory, NONE_LEFT, now_ms=NOW)
    assert done.plan.rolls_first
    left = {
        path.name: path.read_bytes() for path in directory.iterdir() if path.suffix in {".log", ".snapshot", ".index"}
    }
    assert left.pop(f"{5:020d}.log") == b""
    (producer,) = snapshot(left.pop(f"{5:020d}.snapshot"))
    assert (producer.producer_id, producer.last_sequence, left) == (9, 4, {})
    with open_writer(tmp_path, clock) as writer:
        assert writer.append(idempotent(4)).is_duplicate
        assert writer.append(idempotent(5)).first_offset == 5
        assert writer.log_start_offset == 5


@pytest.mark.req("SEG-RET-002")
def test_the_checkpointed_high_watermark_counts(tmp_path: Path) -> None:
    directory = log_directory(tmp_path)
    checkpoint(directory, "replication-offset-checkpoint", 15)
    plan = prepare_retention(directory, NONE_LEFT, now_ms=NOW)
    assert ([segment.base_offset for segment in plan.plan.removed], plan.high_watermark) == ([0], 15)


@pytest.mark.req("SEG-RET-004")
def test_a_log_without_timestamps_is_as_old_as_its_file(tmp_path: Path) -> None:
    directory = make(tmp_path, {"0.log": entry(0, time=-1), "1.log": entry(1, time=-1)})
    for number, modified_ms in enumerate((1000, 2000)):
        LOCAL_FILES.set_modified_ms(directory / f"{number:020d}.log", modified_ms)
    plan = prepare_retention(directory, ONE_LEFT, now_ms=NOW - 1000).plan
    assert [segment.base_offset for segment in plan.removed] == [0]


def test_what_cannot_be_read_is_not_decided_on(tmp_path: Path) -> None:
    bad = patched(entry(1), 8, "i", 3, seal=False)
    directory = make(tmp_path / "damage", {"0.log": entry(0) + bad, "2.log": entry(2)})
    with pytest.raises(CorruptRecordError):
        retain_partition(directory, NONE_LEFT, now_ms=NOW)
    assert names(directory) == [".log", "2.log"]
    for leftover in ("0.log.swap", "0.log.cleaned", "7.log.swap"):
        directory = make(tmp_path / leftover, {"0.log": entry(0), leftover: entry(7)})
        with pytest.raises(UsageError, match="recover"):
            prepare_retention(directory, NONE_LEFT, now_ms=NOW)
    (directory := tmp_path / "empty-0").mkdir()
    with pytest.raises(UsageError, match="no segment"):
        prepare_retention(directory, NONE_LEFT, now_ms=NOW)


def test_nothing_is_written_while_a_broker_is_at_work(tmp_path: Path) -> None:
    directory = log_directory(tmp_path)
    with (directory.parent / ".lock").open("w") as lock:
        fcntl.lockf(lock, fcntl.LOCK_EX)
        pid = os.fork()
        if not pid:  # record locks do not keep the process out that holds them
            status = 1
            try:
                retain_partition(directory, NONE_LEFT, now_ms=NOW)
            except UsageError:
                status = 0
            finally:
                os._exit(status)
        assert os.waitpid(pid, 0)[1] == 0
    assert set(names(directory)) == {name.lstrip("0") for name in FILES}


def test_a_change_that_fails(tmp_path: Path) -> None:
    directory = log_directory(tmp_path)
    (directory.parent / (START + ".tmp")).mkdir()
    with pytest.raises(WriteError, match="retention stopped"):
        retain_partition(directory, ONE_LEFT, now_ms=NOW)
    assert len(log_sizes(directory)) == 3


# Interrupted


def finished(directory: Path, config: LogConfig) -> tuple[dict[int, int], int, int]:
    """Return what a directory comes to that is recovered, and in which retention goes on."""
    recover_partition(directory)
    retain_partition(directory, config, now_ms=NOW)
    recover_partition(directory)
    with open_partition(directory) as log:
        return log_sizes(directory), log.log_start_offset, log.log_end_offset


@pytest.mark.req("SEG-RET-012")
@pytest.mark.parametrize(("config", "kept", "start"), [(ONE_LEFT, {20: 531}, 20), (NONE_LEFT, {30: 0}, 30)])
@pytest.mark.parametrize("has_root", [True, False])
def test_a_crash_at_every_step(
    config: LogConfig,
    kept: dict[int, int],
    start: int,
    has_root: bool,  # noqa: FBT001
    tmp_path: Path,
) -> None:
    for until in range(100):
        directory = (log_directory if has_root else (lambda root: make(root, FILES)))(tmp_path / str(until))
        logs = [path.read_bytes() for path in sorted(directory.glob("*.log"))]
        try:
            retain_partition(directory, config, now_ms=NOW, files=CountedFiles(until))
        except PowerCutError:
            undecided = [name for name in names(directory) if name.startswith("20.") and name.endswith(".deleted")]
            assert not undecided or config is NONE_LEFT
            present = sorted(path.read_bytes() for path in directory.glob("*.log*") if path.suffix != ".tmp")
            assert [data for data in present if data] == logs, "every byte is still there"
            assert start_of(directory) in {0, 10, 20, 30}
            assert finished(directory, config) == (kept, start, 30)
        else:
            assert until > 10
            return
    pytest.fail("there is no end")


@pytest.mark.req("SEG-RET-012")
@pytest.mark.parametrize(("config", "kept", "start"), [(ONE_LEFT, {20: 531}, 20), (NONE_LEFT, {30: 0}, 30)])
@pytest.mark.parametrize("seed", range(3))
def test_a_power_cut_at_every_step(
    config: LogConfig, kept: dict[int, int], start: int, seed: int, tmp_path: Path
) -> None:
    """What was not synced survives at random."""
    for until in range(1, 100):
        root = tmp_path / str(until)
        logs = log_directory(root).parent
        files = SimulatedFiles(logs, random.Random(f"{seed} {until}"))  # noqa: S311 - chance that repeats
        files.load(logs)
        files.cut_at = until
        try:
            retain_partition(logs / "orders-0", config, now_ms=NOW, files=MirroredFiles(files))
        except PowerCut:
            files.lose_power()
            survived = root / "survived"
            files.store(survived)
            bases = sorted(log_sizes(survived / "orders-0"))
            assert bases == [0, 10, 20, 30][4 - len(bases) :] or bases == [0, 10, 20][3 - len(bases) :], "no hole"
            assert finished(survived / "orders-0", config) == (kept, start, 30)
        else:
            return
    pytest.fail("there is no end")


# Later


@pytest.mark.req("SEG-RET-009")
def test_files_wait_for_their_removal(tmp_path: Path) -> None:
    first, second = tmp_path / "1.log.deleted", tmp_path / "2.log.deleted"
    waiting = DeletedFiles(LOCAL_FILES, delay_ms=60_000)
    for path, now_ms in ((first, 1000), (second, 2000)):
        path.touch()
        waiting.add([path], now_ms)
    assert waiting.remove_due(60_999) == ()
    assert waiting.remove_due(61_000) == (first,)
    assert [path.name for path in tmp_path.iterdir()] == [second.name]
    waiting.add([second], 30_000)
    assert waiting.remove_due(89_999) == ()
    second.unlink()
    assert waiting.remove_due(90_000) == (second,)
    assert waiting.remove_due(99_999) == ()


# A log that is being written


def filled(
    path: Path, clock: Clock, *, files: Files = LOCAL_FILES, count: int = 4, **settings: object
) -> PartitionWriter:
    """Return a writer of segments of two records each, a second between them."""
    size = len(produced(value=b"v" * 50))
    config = LogConfig(segment_bytes=2 * size, segment_index_bytes=1000, **settings)  # type: ignore[arg-type]
    environment = Environment(files=files, clock=clock, locks_directory=files is LOCAL_FILES)
    writer = PartitionWriter(path / "topic-0", config, environment=environment, leader_epoch=3)
    for number in range(count):
        clock.now_ms = 1000 * number
        writer.append(produced(clock.now_ms, value=b"v" * 50))
    return writer


@pytest.mark.req("SEG-RET-009", "SEG-RET-012")
def test_a_writer_removes_what_is_too_old(tmp_path: Path) -> None:
    clock = Clock()
    directory = tmp_path / "topic-0"

    def deleted() -> list[str]:
        return [name.partition(".")[0] or "0" for name in names(directory) if name.endswith(".log.deleted")]

    with filled(tmp_path, clock, count=6, retention_ms=2000) as writer:
        assert sorted(log_sizes(directory)) == [0, 2, 4]
        clock.now_ms = 5000
        plan = writer.apply_retention()
        assert [segment.base_offset for segment in plan.removed] == [0]
        assert (writer.log_start_offset, sorted(log_sizes(directory))) == (2, [2, 4])
        assert (tmp_path / START).read_bytes() == b"0\n1\ntopic 0 2\n"
        clock.now_ms = 6000
        writer.apply_retention()
        assert writer.log_start_offset == 4
        clock.now_ms = 5000 + 59_999
        writer.remove_deleted()
        assert deleted() == ["0", "2"]
        clock.now_ms = 5000 + 60_000
        writer.remove_deleted()
        assert deleted() == ["2"]
        assert writer.append(produced()).first_offset == 6
    assert (tmp_path / START).read_bytes() == b"0\n0\n"
    with open_writer(tmp_path, clock) as writer:
        assert (writer.log_start_offset, writer.log_end_offset, deleted()) == (4, 7, [])
        assert not writer.apply_retention().removed


@pytest.mark.req("SEG-RET-006")
def test_a_writer_goes_on_after_all_has_expired(tmp_path: Path) -> None:
    clock = Clock()
    with filled(tmp_path, clock, retention_ms=0) as writer:
        clock.now_ms = 10_000
        assert writer.apply_retention().rolls_first
        assert log_sizes(tmp_path / "topic-0") == {4: 0}
        assert not (tmp_path / "topic-0" / f"{4:020d}.index").exists()
        assert not writer.apply_retention().removed
        assert writer.append(produced(10_000)).first_offset == 4
    with open_partition(tmp_path / "topic-0") as log:
        assert (log.log_start_offset, log.log_end_offset) == (4, 5)


@pytest.mark.req("SEG-RET-011")
def test_a_writer_keeps_the_epochs_that_count(tmp_path: Path) -> None:
    clock = Clock()
    with filled(tmp_path, clock, retention_ms=0) as writer:
        clock.now_ms = 10_000
        writer.apply_retention()
    assert (tmp_path / "topic-0" / EPOCHS).read_bytes() == b"0\n1\n3 4\n"


@pytest.mark.req("SEG-RET-003", "SEG-RET-004")
def test_segments_of_an_earlier_life_are_judged_by_their_time_index_or_log(tmp_path: Path) -> None:
    clock = Clock()
    filled(tmp_path, clock, count=8, index_interval_bytes=0).close()
    directory = tmp_path / "topic-0"
    (directory / f"{2:020d}.timeindex").write_bytes(b"")
    clock.now_ms = 6000
    with open_writer(tmp_path, clock, retention_ms=2000) as writer:
        fates = writer.apply_retention().fates
        assert [fate.segment.largest_timestamp_ms for fate in fates] == [1000, 3000, 5000, 7000]
        assert sorted(log_sizes(directory)) == [4, 6]


def test_a_scheduled_pass_removes_what_is_too_old(tmp_path: Path) -> None:
    clock = Clock(0)
    config = LogConfig(segment_bytes=len(produced()), retention_ms=1000)
    with LogWriter(tmp_path, config, environment=Environment(clock=clock)) as writer:
        log, closed = writer.open("topic", 0), writer.open("topic", 1)
        for time in (0, 1, 500_000):
            log.append(produced(time))
        closed.close()
        for clock.now_ms, start in ((299_999, 0), (300_000, 2), (360_000, 2)):
            writer.run_due()
            assert log.log_start_offset == start
    assert names(tmp_path / "topic-0").count("deleted") == 0
    with pytest.raises(UsageError, match="closed"):
        log.apply_retention()


@pytest.mark.req("SEG-RET-012")
@pytest.mark.parametrize(("retention_ms", "kept"), [(1500, 6), (0, 8)])
@pytest.mark.parametrize("seed", range(3))
def test_a_writer_that_loses_power_in_every_step(retention_ms: int, kept: int, seed: int, tmp_path: Path) -> None:
    """What was flushed and not decided on is there; the log begins where it did or later, and never at 0 again."""
    for until in range(1, 200):
        logs = tmp_path / str(until)
        files = SimulatedFiles(logs, random.Random(f"{seed} {until}"))  # noqa: S311 - chance that repeats
        clock = Clock()
        writer = filled(logs, clock, files=files, count=8, retention_ms=retention_ms)
        writer.flush()
        clock.now_ms = 8000
        files.cut_at = files.step_count + until
        try:
            writer.apply_retention()
        except PowerCut:
            files.lose_power()
            files.store(logs)
            recover_partition(logs / "topic-0")
            with open_partition(logs / "topic-0") as log:
                offsets = [record.offset for record in log.records()]
                assert (log.log_end_offset, log.log_start_offset <= kept) == (8, True)
                assert offsets == list(range(log.log_start_offset, 8)), "nothing is missing that was to stay"
            continue
        assert until > 10
        return
    pytest.fail("there is no end")

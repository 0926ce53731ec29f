"""Six ways to change a directory: each is planned first, and nothing is written before its plan is applied."""

from __future__ import annotations

import json
import shutil
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest
from helpers.made_partitions import checkpoint, content, entry, make
from helpers.support import bundled

from seglog_format import (
    BrokerGeneration,
    LogConfig,
    compact,
    rebuild_indexes,
    recover,
    retain,
    salvage,
    truncate,
)
from seglog_format.cli.main import run
from seglog_format.errors import FormatError, UsageError
from seglog_format.log.directory_lock import DirectoryLock

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

NOW = 2_000_000_000_000
RETAINED = LogConfig(retention_ms=1000)
COMPACTED = LogConfig(cleanup_policy=frozenset({"compact"}), segment_bytes=300, min_cleanable_dirty_ratio=0.0)

pytestmark = [
    pytest.mark.usefixtures("no_fsync"),
    pytest.mark.filterwarnings("ignore::seglog_format.errors.MissingOffsetsWarning"),  # what was removed is missing
]


def partition(root: Path) -> Path:
    """Three segments without indexes; the last one ends in the middle of an entry."""
    return make(
        root,
        {
            "0.log": entry(0, 3, time=1000) + entry(3, 3, time=1000),
            "6.log": entry(6, 3, time=1000) + entry(9, 3, time=1000),
            "12.log": entry(12, 3, time=1000) + entry(15, 3)[:-1],
        },
    )


def whole(root: Path) -> Path:
    """Return the same, where the last entry is whole."""
    directory = partition(root)
    (directory / f"{12:020}.log").write_bytes(entry(12, 3, time=1000))
    return directory


def planned(name: str, directory: Path) -> Any:  # noqa: ANN401 - a plan of some kind
    """Return a plan for a directory."""
    plans: dict[str, Callable[[], object]] = {
        "recover": lambda: recover(directory),
        "retain": lambda: retain(directory, RETAINED, now_ms=NOW),
        "compact": lambda: compact(directory, COMPACTED, now_ms=NOW),
        "truncate": lambda: truncate(directory, 10),
        "salvage": lambda: salvage(directory, directory.parent / "rescued"),
        "rebuild_indexes": lambda: rebuild_indexes(directory),
    }
    return plans[name]()


MAKERS = {
    "recover": partition,
    "retain": whole,
    "compact": whole,
    "truncate": whole,
    "salvage": partition,
    "rebuild_indexes": whole,
}
NAMES = sorted(MAKERS)


def tree(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("name", NAMES)
def test_planning_writes_nothing_and_applying_does(tmp_path: Path, name: str) -> None:
    directory = MAKERS[name](tmp_path)
    before = tree(tmp_path)
    plan = planned(name, directory)
    repr(plan)
    if hasattr(plan, "segments"):
        assert list(plan.segments())
    assert tree(tmp_path) == before
    plan.apply()
    assert tree(tmp_path) != before


@pytest.mark.parametrize("name", NAMES)
def test_a_plan_is_applied_once(tmp_path: Path, name: str) -> None:
    directory = MAKERS[name](tmp_path)
    plan = planned(name, directory)
    plan.apply()
    after = tree(tmp_path)
    with pytest.raises(UsageError, match=r"has changed since this was planned|is there already"):
        plan.apply()
    assert tree(tmp_path) == after


@pytest.mark.parametrize("name", NAMES)
def test_a_plan_for_a_directory_that_changed_is_refused(tmp_path: Path, name: str) -> None:
    directory = MAKERS[name](tmp_path)
    plan = planned(name, directory)
    (directory / f"{12:020}.log").write_bytes(entry(12, 4, time=1000) + entry(16, 5)[:-1])
    (directory / f"{6:020}.log").write_bytes(entry(6, 2, time=1000))
    before = tree(tmp_path)
    with pytest.raises((UsageError, FormatError)):
        plan.apply()
    assert tree(tmp_path) == before


@pytest.mark.parametrize("name", ["recover", "retain", "compact", "truncate"])
def test_a_plan_cannot_be_changed_and_what_was_done_cannot_be_applied(tmp_path: Path, name: str) -> None:
    plan = planned(name, MAKERS[name](tmp_path))
    with pytest.raises(AttributeError):
        plan.path = tmp_path
    done = plan.apply()
    if hasattr(done, "apply"):
        with pytest.raises(UsageError, match="nothing to apply"):
            done.apply()


@pytest.mark.parametrize("name", sorted({*NAMES} - {"salvage"}))
def test_nothing_is_applied_while_a_writer_holds_the_lock(tmp_path: Path, name: str) -> None:
    directory = MAKERS[name](tmp_path)
    plan = planned(name, directory)
    with closing(DirectoryLock(directory.parent)):
        before = content(directory)
        with pytest.raises(UsageError, match="in use"):
            plan.apply()
        assert content(directory) == before


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["missing", "file", "log directory"])
def test_what_is_no_partition_directory_is_refused(tmp_path: Path, name: str, kind: str) -> None:
    path = tmp_path / "t-0"
    if kind == "file":
        path.write_bytes(b"")
    elif kind == "log directory":
        whole(path)
    with pytest.raises(UsageError):
        planned(name, path)


@pytest.mark.parametrize("name", ["retain", "compact"])
def test_a_damaged_log_is_not_cleaned(tmp_path: Path, name: str) -> None:
    directory = whole(tmp_path)
    log = directory / f"{6:020}.log"
    log.write_bytes(log.read_bytes()[:16] + b"\x09" + log.read_bytes()[17:])
    before = tree(tmp_path)
    with pytest.raises(FormatError, match="magic"):
        planned(name, directory)
    assert tree(tmp_path) == before


def test_a_negative_offset_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="-1"):
        truncate(whole(tmp_path), -1)


def test_a_target_that_holds_something_or_is_inside_is_refused(tmp_path: Path) -> None:
    directory = partition(tmp_path)
    with pytest.raises(UsageError, match="inside"):
        salvage(directory, directory / "new")
    with pytest.raises(UsageError, match="already"):
        salvage(directory, directory.parent)


COMMANDS = {
    "recover": ["recover", "--write"],
    "retain": ["retain", "--write", "--now", str(NOW), "--config", "retention.ms=1000"],
    "compact": [
        *("retain", "--write", "--now", str(NOW), "--config", "cleanup.policy=compact"),
        *("--config", "segment.bytes=300", "--config", "min.cleanable.dirty.ratio=0"),
    ],
    "rebuild_indexes": ["index", "--rebuild", "--write"],
    "salvage": ["salvage", "-o"],
}


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_applying_writes_the_bytes_that_the_command_writes(tmp_path: Path, name: str) -> None:
    ours, theirs = (MAKERS[name](tmp_path / side) for side in ("ours", "theirs"))
    planned(name, ours).apply()
    target = [str(theirs.parent / "rescued")] if name == "salvage" else []
    assert run([*COMMANDS[name], *target, str(theirs)]) in {0, 1}
    assert tree(tmp_path / "ours") == tree(tmp_path / "theirs")


def test_the_plan_for_a_broker_s_crash_says_what_the_command_says(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = tmp_path / "root"
    shutil.copytree(bundled("2.8.2/crash-flip") / "before", root)
    plan = recover(root / "crash-flip-0")
    assert run(["recover", "--json", str(root / "crash-flip-0")]) == 1
    reported = json.loads(capsys.readouterr().out)
    assert [cut.position for cut in plan.plan.cuts] == [cut["position"] for cut in reported["plan"]["cuts"]]
    assert [step.text for step in plan.steps if step.requirement] == [each["change"] for each in reported["changes"]]
    assert [one.file for one in plan.losses().lost] == [one["file"] for one in reported["lost"]]


def test_one_segment_s_indexes_are_rebuilt_alone(tmp_path: Path) -> None:
    directory = whole(tmp_path)
    log = directory / f"{6:020}.log"
    reported: list[str] = []
    written = rebuild_indexes(log, interval_bytes=0).apply(lambda segment: reported.append(segment.log.name))
    assert reported == [log.name]
    assert [path.name for path in written] == [f"{6:020}.index", f"{6:020}.timeindex"]
    with pytest.raises(UsageError, match="not the log of a segment"):
        rebuild_indexes(written[0])


def test_the_parts_of_a_salvage_are_reported_as_they_are_written(tmp_path: Path) -> None:
    directory = partition(tmp_path)
    plan = salvage(directory, tmp_path / "rescued", interval_bytes=0, generation=BrokerGeneration.V4_1)
    before = list(plan.segments())
    reported: list[tuple[str, bool]] = []
    done = plan.apply(lambda part: reported.append((part.log.name, (tmp_path / "rescued" / part.names[0]).exists())))
    assert reported == [(f"{base:020}.log", True) for base in (0, 6, 12)]
    assert list(done) == before
    assert [len(part.damaged) for part in done] == [0, 0, 1]


def test_what_compaction_does_with_each_record_is_told_without_doing_it(tmp_path: Path) -> None:
    directory = whole(tmp_path)
    checkpoint(directory, "cleaner-offset-checkpoint", 0)
    before = tree(tmp_path)
    plan = compact(directory, COMPACTED, now_ms=NOW)
    fates = list(plan.batch_fates())
    assert tree(tmp_path) == before
    done = plan.apply()
    assert len(fates) == 4
    assert done.plan == plan.plan
    assert done.size_before == sum(segment.size for group in plan.plan.groups for segment in group)

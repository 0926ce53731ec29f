"""Retention as Kafka's own `UnifiedLog` does it: the same segments go, and the same files are left (chapter 72)."""

from __future__ import annotations

import os
import random
import shutil
from typing import TYPE_CHECKING

import pytest
from helpers.appends import produced

from proofs.kafka.oracle import RELEASES, Oracle
from seglog_format.cleaning.deletion import retain_partition
from seglog_format.log.partition import open_partition
from seglog_format.state.config import LogConfig

if TYPE_CHECKING:
    from pathlib import Path

RUNS = 20
NOW_MS = 1_700_000_000_000


def appends(dice: random.Random, dated: float) -> list[dict[str, object]]:
    """Return steps of a broker: a few batches, some of them old or from the future, under one leader and the next.

    Args:
        dice: decides.
        dated: the share of batches that have timestamps.
    """
    steps: list[dict[str, object]] = []
    for number in range(dice.randint(1, 14)):
        time = NOW_MS - dice.choice((0, 500, 1000, 1001, 5000, -400)) if dice.random() < dated else -1
        batch = produced(time, value=b"v" * dice.choice((10, 80)), partition_leader_epoch=-1)
        steps.append({"do": "lead", "records": batch.hex(), "leaderEpoch": number // 4})
    return steps


def settings(dice: random.Random) -> dict[str, str]:
    """Small segments, and limits that are met, missed and passed by one."""
    return {
        "segment.bytes": str(dice.choice((160, 300, 500))),
        "retention.ms": str(dice.choice((-1, 0, 499, 500, 1000, 4000))),
        "retention.bytes": str(dice.choice((-1, -1, 0, 160, 300, 700))),
        "cleanup.policy": dice.choice(("delete", "delete", "compact", "compact,delete")),
    }


def left(directory: Path, start: int) -> dict[str, bytes | None]:
    """Names of files, and what is in logs and checkpoints.

    A broker that opens a log forgets snapshots and leader epochs up to its log start offset, before retention comes to
    anything; so do we, if retention comes to anything.
    """
    return {
        path.name: path.read_bytes() if path.name.endswith((".log", ".log.deleted", "checkpoint")) else None
        for path in directory.iterdir()
        if (".snapshot" not in path.name or int(path.name[:20]) > start) and not is_by_the_way(path)
    }


def is_by_the_way(path: Path) -> bool:
    """Return a time index that is made when a broker asks a new segment for its age, after size took all others."""
    log = path.with_suffix(".log")
    return path.suffix == ".timeindex" and log.exists() and not log.stat().st_size


@pytest.mark.req(
    "SEG-RET-001",
    "SEG-RET-003",
    "SEG-RET-005",
    "SEG-RET-006",
    "SEG-RET-007",
    "SEG-RET-008",
    "SEG-RET-009",
    "SEG-RET-010",
    "SEG-RET-011",
)
@pytest.mark.parametrize(
    ("dated", "file_age_ms"), [(0.9, 2000), pytest.param(0, 500, marks=pytest.mark.req("SEG-RET-004"))]
)
@pytest.mark.parametrize("release", RELEASES)
def test_the_same_goes_and_the_same_is_left(
    release: str, dated: float, file_age_ms: int, oracles: dict[str, Oracle], tmp_path: Path
) -> None:
    oracle = oracles[release]
    gone = 0
    for seed in range(RUNS):
        dice = random.Random(seed)  # noqa: S311 - chance that repeats
        config = settings(dice)
        theirs, ours = (tmp_path / name / str(seed) / "t-0" for name in ("theirs", "ours"))
        theirs.mkdir(parents=True)
        written = {**config, "cleanup.policy": "delete"}
        end = oracle.must("write", directory=str(theirs), nowMs=NOW_MS, steps=appends(dice, dated), config=written)[
            "logEndOffset"
        ]
        for path in theirs.glob("*.log"):  # of records without a timestamp the file's time counts
            os.utime(path, ns=((NOW_MS - file_age_ms) * 1_000_000,) * 2)
        shutil.copytree(theirs, ours)
        start = dice.choice((0, 0, dice.randrange(end + 1)))
        found = oracle.must(
            "write",
            directory=str(theirs),
            nowMs=NOW_MS,
            logStartOffset=start,
            steps=[{"do": "retain"}],
            config=config,
        )
        start_file = "log-start-offset-checkpoint"
        (ours.parent / start_file).write_text(f"0\n1\nt 0 {start}\n", encoding="utf-8")
        plan = retain_partition(ours, LogConfig.from_properties(config), now_ms=NOW_MS).plan
        gone += len(plan.removed)
        assert plan.log_start_offset == found["logStartOffset"], seed
        if not plan.removed:
            (ours / "leader-epoch-checkpoint").write_bytes((theirs / "leader-epoch-checkpoint").read_bytes())
        assert left(ours, start) == left(theirs, start), seed
        with open_partition(ours) as log:
            assert log.log_end_offset == found["logEndOffset"], seed
    assert gone > RUNS

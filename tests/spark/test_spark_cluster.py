"""Executors with programs of their own: some are killed, some tasks run twice, and the driver of a stream is killed."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyarrow")

from helpers.cluster_queries import FEW, PARTITIONS, ROWS, STEP
from helpers.support import REPOSITORY

from proofs.spark.cluster import cluster
from seglog_format import verify
from seglog_format.storage import child_processes

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [
    pytest.mark.xdist_group("spark"),
    pytest.mark.skipif(sys.platform != "linux", reason="finds the Java of an executor in /proc"),
]

STEPS = 2
LIMIT_SECONDS = 240.0


@dataclass
class Found:
    """What the two sessions found: one whose executors and driver are killed, and one whose tasks run twice."""

    root: Path
    killed: dict[str, Any]
    doubled: dict[str, Any]
    steps_before_kill: int


@contextmanager
def started(kind: str, master: str, root: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run the program; in the end kill what is left of it, its Java and executors included."""
    command = [sys.executable, "-m", "helpers.cluster_queries", kind, master, str(root)]
    changes = {"PYTHONPATH": os.pathsep.join([str(REPOSITORY), str(REPOSITORY / "tests")])}
    with (root / f"{kind}.txt").open("w") as said:
        running = child_processes.start(
            command, directory=root, stdout=said, stderr=said, changes=changes, start_new_session=True
        )
    try:
        yield running
    finally:
        with suppress(ProcessLookupError):
            os.killpg(running.pid, signal.SIGKILL)
        running.wait()


def wait_for_step(root: Path, running: subprocess.Popen[bytes]) -> int:
    """Wait until some steps are committed, and another one has begun; return their number."""
    deadline = time.monotonic() + LIMIT_SECONDS
    while time.monotonic() < deadline and running.poll() is None:
        done, begun = (
            sum(path.name.isdigit() for path in root.glob(f"checkpoint/{each}/*")) for each in ("commits", "offsets")
        )
        if begun > done >= STEPS:
            return done
        time.sleep(0.01)
    raise AssertionError(said(root, "killed"))


def said(root: Path, kind: str) -> str:
    return (root / f"{kind}.txt").read_text(encoding="utf-8", errors="replace")[-3000:]


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Found:
    """Run both sessions, one after the other: the second one continues the stream of the first."""
    root = tmp_path_factory.mktemp("cluster")
    with started("killed", "local-cluster[2,1,1024]", root) as running:
        steps = wait_for_step(root, running)
    (root / "hosts").mkdir()
    with cluster(root / "hosts", str(REPOSITORY)) as master, started("doubled", master, root) as running:
        assert running.wait(LIMIT_SECONDS) == 0, said(root, "doubled")
    killed, doubled = (
        json.loads((root / f"{each}.json").read_text(encoding="utf-8")) for each in ("killed", "doubled")
    )
    return Found(root, killed, doubled, steps)


def whole(rows: int) -> dict[str, int]:
    return {"rows": rows, "offsets": rows, "numbers": rows}


def findings(log: Path) -> list[str]:
    return [str(each.message) for each in verify(log)]


def killed_in(found: Found, noted: str) -> list[str]:
    """Return the staged files at the time of a kill, which was one of an executor."""
    note = json.loads((found.root / noted).read_text(encoding="utf-8"))
    with pytest.raises(ProcessLookupError):
        os.kill(note["java"], 0)
    files: list[str] = note["files"]
    return files


def test_an_executor_killed_after_its_first_file_leaves_each_row_once(found: Found) -> None:
    assert killed_in(found, "killed-write")
    assert found.killed["scan"] == whole(ROWS)
    assert found.killed["staged"] == []
    assert findings(found.root / "log") == []


def test_an_executor_killed_in_a_scan_leaves_each_row_once(found: Found) -> None:
    killed_in(found, "killed-scan")
    assert found.killed["scan"] == whole(ROWS)


def test_tasks_that_run_twice_give_each_row_once(found: Found) -> None:
    for noted in ("doubled-write", "doubled-scan"):
        assert {"0-0", "0-1"} <= {path.name for path in (found.root / noted).iterdir()}
    assert found.doubled["scan"] == whole(FEW)
    assert found.doubled["staged"] == []
    assert findings(found.root / "again") == []


def test_a_stream_goes_on_on_another_cluster_after_its_driver_was_killed(found: Found) -> None:
    assert STEPS <= found.steps_before_kill < ROWS / STEP
    assert found.doubled["streamed"] == {"rows": ROWS, "offsets": ROWS}
    assert len(list((found.root / "log").iterdir())) >= PARTITIONS

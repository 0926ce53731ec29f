"""What tests unpack for a whole run is gone afterwards, even if a run was killed: a full disk fails everything."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from helpers.support import REPOSITORY

MAKE = "from helpers.support import run_directory; print(run_directory(), flush=True); import os, sys; "


def test_a_killed_run_leaves_nothing_for_the_run_after_the_next(tmp_path: Path) -> None:
    def run(end: str) -> Path:
        command = (sys.executable, "-c", MAKE + end)
        environment = os.environ | {"TMPDIR": str(tmp_path), "PYTHONPATH": f"{REPOSITORY}:{REPOSITORY / 'tests'}"}
        return Path(
            subprocess.run(command, check=False, env=environment, capture_output=True, text=True).stdout.strip()
        )

    killed = run("os.kill(os.getpid(), 9)")
    assert list(tmp_path.iterdir()) == [killed]
    assert run("assert os.path.isdir(run_directory())").parent == tmp_path
    assert list(tmp_path.iterdir()) == []

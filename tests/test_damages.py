"""A sample of the proof of random damages, and its judge: what it has to notice."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from random import Random
from typing import TYPE_CHECKING

from helpers.support import REPOSITORY

from proofs.damaging.contents import Held, delivered
from proofs.damaging.sources import build
from proofs.damaging.worker import Case, state_of

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

CASES = 12


def test_a_sample(tmp_path: Path) -> None:
    """In a process of its own: the limit on memory counts what other tests have loaded, too."""
    report = tmp_path / "report.json"
    options = ["--seed", "18", "--cases", str(CASES), "--jobs", "1", "--limit", "300", "--report", str(report)]
    done = subprocess.run(
        [sys.executable, "-m", "proofs", "damages", *options],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    found = json.loads(report.read_text(encoding="utf-8"))
    assert (done.returncode, found["failed"], found["cases"]) == (0, [], CASES), done.stderr


def test_what_is_built_is_sound(tmp_path: Path) -> None:
    held = build(tmp_path / "data", Random(1))  # noqa: S311 - chance that repeats
    for name, records in held.items():
        assert delivered(tmp_path / "data" / name) == Counter(each.content for each in records)


def test_a_loss_that_nobody_names_is_noticed(tmp_path: Path) -> None:
    case = Case(tmp_path, 1, 0)
    case.held = {name: [*held, Held(10**9, (1, b"never", b"written"))] for name, held in case.held.items()}
    kept = {name: delivered(case.root / name) for name in case.held}
    case.result.statuses.update(verify=0, recover=0)
    case._check_losses(kept)
    assert any(failure.startswith("silent loss") for failure in case.result.failures)


def test_a_traceback_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_arguments: list[str]) -> int:
        raise KeyError

    monkeypatch.setattr("proofs.damaging.worker.run", fail)
    case = Case(tmp_path, 1, 0)
    case._run("verify", "verify", str(case.root))
    assert any("KeyError" in failure for failure in case.result.failures)


def test_a_change_is_noticed(tmp_path: Path) -> None:
    before = state_of(tmp_path)
    (tmp_path / "file").write_bytes(b"")
    assert state_of(tmp_path) != before

"""A short run of the proof that attacks a server, without a look at the clock."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from proofs import harness

if TYPE_CHECKING:
    from pathlib import Path

PATIENT = ("--latency", "60", "--end", "50", "--seconds", "1", "--scale", "0.04", "--requests", "300")


@pytest.mark.parametrize("only", ["half_requests_of_31_mb, writable", "mutated_requests, reading"])
def test_an_attack_leaves_the_server_as_it_should_be(tmp_path: Path, only: str) -> None:
    report = tmp_path / "report.json"
    status = harness.main(["serve-attacks", "--only", only, "--report", str(report), *PATIENT])
    found = json.loads(report.read_text(encoding="utf-8"))
    assert found["failed"] == []
    assert status == 0
    (attack,) = found["attacks"].values()
    assert attack["asked"] > 0

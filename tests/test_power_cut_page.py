"""The page of power cuts says what the reports say, and no steps of what is withheld."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tools.docs import power_cut_page, power_cut_reports

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

MADE: dict[str, Any] = {
    "command": "python -m proofs crash-states",
    "commit": "0" * 40,
    "dirty": False,
    "date": "2026-11-30",
    "machine": {"cores": 2, "system": "Linux", "architecture": "x86_64"},
    "versions": {},
}
STATES: dict[str, Any] = {
    "made": MADE,
    "plants": {"no sync": {"history": 1}, "no directory sync": None},
    "implementations": {
        "reference": {"histories": 3, "distinctStates": 1234, "statesByProfileAndPiece": {"posix 512": 1234}},
        "kafka-storage@4.3.0": {"histories": 2, "distinctStates": 56, "statesByProfileAndPiece": {"xfs 4096": 56}},
    },
    "KAFKA-20979": {"4.3.0": {"closed": 5, "unsynced": 4, "believed": 3}},
    "findings": [
        {
            "implementation": "kafka-storage@4.3.0",
            "kind": "hole",
            "disclosure": "withheld",
            "histories": {"xfs 4096": {"with": 1, "of": 2}},
        }
    ],
    "failed": [],
}
FILE_SYSTEM = {"programs": 9, "lost": 7, "whole": 2, "replaced": {"rename": {"zeros": 4}, "truncation": {"new": 3}}}
DISKS: dict[str, Any] = {"made": MADE, "kernel": "6.18", "ext4": {**FILE_SYSTEM, "illegal": 1}, "xfs": FILE_SYSTEM}

LEAST = {"states": 2, "least": {"operations": 17, "lost": 1, "profiles": ["posix", "xfs"], "seed": 4}}
BROKERS: dict[str, Any] = {
    "made": MADE,
    "states": 7,
    "listed": 9,
    "byRelease": {"4.4.0": {"states": 7, "with findings": 2, "controls": 1, "of other code": 3}},
    "orders": {
        "index": {"first": "an index", "then": "the next", "rule": "SEG-FLS-009"},
        "root": {"first": "a name", "then": "the end", "rule": ""},
        "marker": {"first": "a marker", "then": "a record", "rule": ""},
    },
    "findings": [
        {
            "release": "4.4.0",
            "kind": "time lookup",
            "orders": ["root"],
            "profiles": {"posix": 2},
            "lost": ["7 mkdir /a"],
        }
        | LEAST,
        {"release": "4.4.0", "kind": "hole", "orders": ["index"], "profiles": {"xfs": 1}, "disclosure": "withheld"}
        | LEAST,
        {"release": "3.9.1", "kind": "hole", "orders": ["index", "marker"], "profiles": {"xfs": 1}, "lost": ["8 write"]}
        | LEAST,
    ],
    "wrongWithoutLoss": [
        {"release": "4.1.1", "wrong": ["does not start"], "errors": ["ERROR", "a.BException: Twice there. Recover"]},
        {"release": "4.1.1", "wrong": ["time lookup"], "errors": []},
    ],
    "disks": {"4.4.0 ext4-unflushed": {"rolled": 4, "zeros": 3, "records": 9, "removed": 6}},
}


def test_the_page_has_the_figures_of_the_reports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, report in (("states", STATES), ("brokers", BROKERS), ("disks", DISKS)):
        (tmp_path / f"crash-{name}.json").write_text(json.dumps(report), encoding="utf-8")
    monkeypatch.setattr(power_cut_page, "REPORTS", tmp_path)
    page = power_cut_page.pages("")[power_cut_page.PAGE].splitlines()
    for line in (
        "| storage | histories | distinct states | posix 512 | xfs 4096 |",
        "| our writer | 3 | 1,234 | 1,234 | 0 |",
        "| Kafka 4.3.0, storage classes | 2 | 56 | 0 | 56 |",
        "| 4.3.0 | 5 | 4 | 3 |",
        "| 4.3.0 | hole |  | 1 of 2 |",
        "| 4.4.0 | 7 | 2 | 1 | 3 |",
        "7 of 9 listed states were judged. Earlier code of the proof kept its judgement alone; what brokers",
        "| an index | the next | SEG-FLS-009 | 4.4.0 | `index.md` |",
        "| a name | the end |  | 4.4.0 | `root.md` |",
        "| 4.4.0 | time lookup | root | 2 | posix 2 | 1 | 17 |",
        "| 3.9.1 | hole | index, marker | 2 | xfs 1 | 1 | 17 |",
        "| 4.1.1 | Twice there |",
        "| 4.4.0 | ext4 | default | 4 | 3 | 9 | 6 |",
        "| ext4, Linux 6.18 | 9 | 7 | 1 |",
        "| xfs, Linux 6.18 | 9 | 7 | 0 |",
        "| ext4 | rename | 0 | 0 | 0 | 4 |",
    ):
        assert line in page
    assert (
        "Into our own writer, 2 faults were planted one at a time, such as a sync left out: 1 were noticed. The" in page
    )


def test_a_report_has_profile_and_steps_and_withholds_those_of_lost_data() -> None:
    made = power_cut_reports.pages(BROKERS)
    assert set(made) == {f"{power_cut_reports.DIRECTORY}/{name}.md" for name in ("index", "root")}
    root, index = (made[f"{power_cut_reports.DIRECTORY}/{name}.md"] for name in ("root", "index"))
    assert root.startswith("# Kafka 4.4.0 after a power cut, legal under posix, xfs: a broker does not start")
    assert "seglog conform crash --broker 4.4.0 --seed 4" in root
    assert "- `7 mkdir /a`" in root
    assert index.splitlines()[2].startswith('disclosure = "withheld"')
    assert "--seed" not in index
    for text in (root, index):
        assert "## What replication covers" in text
        assert "| Kafka | a stock broker | states |" in text

"""A sample of the proof `start-predictions`: Kafka's storage classes open the directories, in the place of a broker."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Final

from proofs.kafka.broker import KEPT
from proofs.kafka.directories import settings_of
from proofs.start_predictions import ALONE, CLEAN, KINDS, OPTIONS, Stage, files_of, made
from seglog_format import recover
from seglog_format.log.listing import list_log_directory
from seglog_format.recovery.start_problems import StartEffect, start_problems
from seglog_format.state.config import LogConfig

if TYPE_CHECKING:
    from pathlib import Path

    from proofs.kafka.oracle import Oracle

SEED: Final = 7
CASES: Final = 3 * len(KINDS)
NAME: Final = "p000-0"
ROOT_KINDS: Final = ALONE | {kind for kind in KINDS if kind.startswith("directory")}
"""Kinds about files that these classes do not read."""


def test_plans_are_what_the_storage_classes_make_of_damaged_directories(
    oracles: dict[str, Oracle], tmp_path: Path
) -> None:
    (tmp_path / "logs" / NAME).mkdir(parents=True)
    (tmp_path / "logs" / NAME / KEPT).write_text("version: 0\ntopic_id: AAAAAAAAAAEAAAAAAAAAAQ", encoding="utf-8")
    wrong = []
    for number in (number for number in range(CASES) if KINDS[number % len(KINDS)] not in ROOT_KINDS):
        oracle = list(oracles.values())[number % len(oracles)]
        case = made(SEED, number, Stage(tmp_path, tmp_path / "logs"), NAME, is_clean=number % 2 == 0)
        ours, theirs = tmp_path / str(number), tmp_path / f"{number}-theirs"
        for file, offset in (("recovery-point", case.recovery_point), ("log-start", case.log_start)):
            (ours / f"{file}-offset-checkpoint").write_text(f"0\n1\n{NAME[:-2]} 0 {offset}\n", encoding="utf-8")
        if case.is_clean:
            (ours / CLEAN).write_text('{"version":0,"brokerEpoch":1}', encoding="utf-8")
        shutil.copytree(ours, theirs, symlinks=True)
        answer = oracle.ask(
            "load",
            directory=str(theirs / NAME),
            config=settings_of(LogConfig()),
            isClean=case.is_clean,
            recoveryPoint=case.recovery_point,
            logStartOffset=case.log_start,
        )
        refused: object = [
            each for each in start_problems(list_log_directory(ours)) if each.effect is StartEffect.REFUSES
        ]
        if not refused:
            done = recover(ours / NAME, options=OPTIONS).apply()
            refused = done.failure
        end = None if refused else done.plan.log_end_offset
        if end != answer.get("logEndOffset") or (end is not None and files_of(ours / NAME) != files_of(theirs / NAME)):
            wrong.append((case, end, answer))
        shutil.rmtree(ours)
        shutil.rmtree(theirs)
    assert wrong == []

"""What is written down of Kafka's answers to the cases: as judged, with the branch, and never a guess."""

from __future__ import annotations

from typing import Any

import pytest
from authoring.ask_kafka import OLDER, RECORDS, STORAGE, said
from authoring.asked import kept_answers
from seglog_conformance.cases import load_cases
from seglog_conformance.registry import listed
from seglog_conformance.verdicts import Result, Verdict

CASES = {case.id: case for case in load_cases()}


def result(case: str, raw: Verdict = Verdict.PASS, **rest: Any) -> Result:  # noqa: ANN401 - fields
    return Result(testee="kafka", version="1", case=case, digest="", verdict=raw, raw=raw, **rest)


@pytest.mark.parametrize(
    ("one", "text"),
    [
        (result("crc/magic-1-inside-a-wrapper-only", branch="refused"), "agrees (refused)"),
        (result("plain-batches/three-records"), "agrees"),
        (result("plain-batches/three-records", Verdict.MEMORY), "departs: MEMORY"),
        (result("bombs/records-of-nothing", answer={"ok": False}), "survives (refused)"),
        (result("bombs/records-of-nothing", answer={"ok": True}), "survives (delivered)"),
        (result("bombs/records-of-nothing", Verdict.HANG), "departs: HANG"),
    ],
)
def test_what_is_said_of_a_result(one: Result, text: str) -> None:
    assert said(CASES[one.case], one) == text


def test_the_newest_release_was_asked() -> None:
    testees = [listed(name) for name in (RECORDS, STORAGE)]
    assert [one.version for one in testees] == [one.adapter.asked[0] for one in testees if one.adapter]
    assert set(kept_answers()) == {*(one.label for one in testees), listed(OLDER).label}


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize(
    ("which", "answer"),
    [("only", "agrees"), ("first", "agrees"), ("last", "agrees (correct records, then the error)")],
)
def test_kafka_refuses_a_wrong_checksum_inside_a_wrapper(magic: int, which: str, answer: str) -> None:
    case = f"crc/magic-{magic}-inside-a-wrapper-{which}"
    assert CASES[case].result == "invalid"
    assert answer in kept_answers()["kafka-clients 4.4.0"][case]

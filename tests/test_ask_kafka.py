"""What is written down of Kafka's answers to the cases: as judged, with the branch, and never a guess."""

from __future__ import annotations

from typing import Any

import pytest
from authoring.ask_kafka import OLDER, RECORDS, STORAGE, asked_of, is_kept, said
from authoring.asked import digest, kept_answers
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


@pytest.mark.parametrize("op", ["decode", "recover"])
def test_a_departure_is_asked_again_and_so_is_a_changed_case(op: str) -> None:
    """A case that `record_whole` completed later kept its first answer, that Kafka departs from it."""
    case = next(case for case in CASES.values() if case.op == op)
    stored = {"op": op, "result": case.result, "request": case.request, "expect": case.expect}
    label = asked_of(case).replace("@", " ")
    kept = {
        text: is_kept(case, stored, {label: {case.id: [digest(stored), text]}})
        for text in ("agrees", "survives (refused)", "departs: DIFFER", "departs: UNPROVEN")
    }
    assert kept == {"agrees": True, "survives (refused)": True, "departs: DIFFER": False, "departs: UNPROVEN": False}
    assert not is_kept(case, {**stored, "expect": {}}, {label: {case.id: [digest(stored), "agrees"]}})
    assert not is_kept(case, stored, {})


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

"""The columnar engine passes the suite, and by its own reading: few entries are left to the reference."""

from __future__ import annotations

from typing import Final

import pytest
from seglog_conformance.cases import load_cases
from seglog_conformance.direct import DirectTestee
from seglog_conformance.judging import Examiner
from seglog_conformance.verdicts import Verdict

pytest.importorskip("pyarrow")
pytest.importorskip("pyarrow")

from seglog_conformance.columnar import Columnar

OWN_SHARE: Final = 0.8
"""Of the batches of valid cases, so many at least are read by compiled code."""


@pytest.fixture(scope="module")
def columnar() -> Columnar:
    return Columnar()


@pytest.fixture(scope="module")
def examiner(columnar: Columnar) -> Examiner:
    examiner = Examiner(DirectTestee("columnar", columnar, strict=True))
    examiner.start()
    return examiner


def test_every_case_passes(examiner: Examiner) -> None:
    results = [examiner.examine(case) for case in load_cases() if case.op == "decode"]
    wrong = [result.case for result in results if result.verdict not in {Verdict.PASS, Verdict.SKIP}]
    assert wrong == []
    assert sum(result.verdict is Verdict.PASS for result in results) > 1000


def test_it_is_the_engine_that_reads(columnar: Columnar) -> None:
    cases = [case for case in load_cases() if case.op == "decode" and case.result == "valid"]
    before = columnar.fallback_count
    answers = [columnar.answer({"op": "decode", **case.request}) for case in cases]
    assert all(answer.get("ok", True) for answer in answers)
    batches = sum(len(case.expect["batches"]) for case in cases)
    assert (columnar.fallback_count - before) / batches < 1 - OWN_SHARE

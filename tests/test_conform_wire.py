"""Whole clients as testees: they fetch the bytes of a case from an endpoint, and what they ask for is judged, too."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from seglog_conformance.cases import load_cases
from seglog_conformance.judging import Examiner
from seglog_conformance.known import read_known
from seglog_conformance.positions import with_positions
from seglog_conformance.process import Command, ProcessTestee
from seglog_conformance.registry import BUILDS, STAMP, Builder, adapters, listed
from seglog_conformance.verdicts import FINE, Judgement, Verdict
from seglog_conformance.wire_endpoint import MOST_ASKED, Endpoint
from serve_client import Client
from support import REPOSITORY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_conformance.registry import Adapter
    from seglog_conformance.verdicts import Result

PROGRAM = Path(__file__).with_name("wire_clients.py")
PASSING, LASTING_EMPTY = "control-records/data-commit-data", "empty-batches/last-in-the-log"
SEVERAL, DAMAGED, CUT = "empty-batches/between-two", "crc/flip-attributes-byte-0", "tails/magic-2-cut-12"
SAMPLE = (SEVERAL, "gzip/by-a-broker", DAMAGED, CUT)
CASES = {case.id: case for case in load_cases()}
WIRE = tuple(adapter for adapter in adapters() if "seglog_conformance.wire" in adapter.run)


def process(kind: str) -> ProcessTestee:
    arguments = (sys.executable, "-m", "seglog_conformance.wire", sys.executable, str(PROGRAM), kind)
    path = os.pathsep.join((str(REPOSITORY / "conformance"), str(PROGRAM.parent), str(REPOSITORY)))
    return ProcessTestee(kind, Command(arguments=arguments, environment={"PYTHONPATH": path}), strict=True)


@pytest.fixture(scope="module")
def examiners() -> Iterator[dict[str, Examiner]]:
    found = {kind: Examiner(process(kind), extra_growth=1 << 26) for kind in ("right", "stalls", "jumps", "dies")}
    yield found
    for examiner in found.values():
        examiner.close()


def examined(examiners: dict[str, Examiner], kind: str, case: str) -> Result:
    return examiners[kind].examine(CASES[case])


@pytest.mark.parametrize(
    ("kind", "case", "verdict"),
    [
        ("right", PASSING, Verdict.PASS),
        ("right", LASTING_EMPTY, Verdict.PASS),
        ("right", SEVERAL, Verdict.PASS),
        ("right", DAMAGED, Verdict.PASS),
        ("right", CUT, Verdict.PASS),
        ("stalls", LASTING_EMPTY, Verdict.STALL),
        ("stalls", DAMAGED, Verdict.STALL),
        ("jumps", SEVERAL, Verdict.JUMP),
        ("dies", SEVERAL, Verdict.CRASH),
    ],
)
def test_clients_get_the_verdict_that_is_theirs(
    examiners: dict[str, Examiner], kind: str, case: str, verdict: Verdict
) -> None:
    result = examined(examiners, kind, case)
    assert result.verdict is verdict, (result.detail, result.stderr)


def test_a_client_that_stands_still_is_told_where(examiners: dict[str, Examiner]) -> None:
    result = examined(examiners, "stalls", LASTING_EMPTY)
    assert result.answer is not None
    assert len(set(result.answer["positions"][-MOST_ASKED:])) == 1
    assert "again and again" in result.detail


def test_a_client_dies_as_the_program_around_it_has(examiners: dict[str, Examiner]) -> None:
    assert "SIGABRT" in examined(examiners, "dies", SEVERAL).detail


def judged(verdict: Verdict, positions: list[str] | None, *, is_refused: bool = False, end: str = "10") -> Verdict:
    expect = {"reject": {}} if is_refused else {"batches": [{"nextOffset": "5"}, {"nextOffset": end}]}
    answer = {"ok": True} if positions is None else {"ok": True, "positions": positions}
    return with_positions(Judgement(verdict), expect, answer).verdict


@pytest.mark.parametrize(
    ("before", "positions", "after"),
    [
        (Verdict.PASS, ["0", "10"], Verdict.PASS),
        (Verdict.PASS, ["0", "5", "5", "10"], Verdict.PASS),
        (Verdict.PASS, ["0", "9", "9", "9"], Verdict.STALL),
        (Verdict.SILENT, ["0", "5", "5", "5"], Verdict.STALL),
        (Verdict.SILENT, ["0", "10"], Verdict.JUMP),
        (Verdict.PASS, ["0", "12"], Verdict.JUMP),
        (Verdict.DIFFER, ["0", "5", "0", "10"], Verdict.JUMP),
        (Verdict.DIFFER, ["0", "10"], Verdict.DIFFER),
        (Verdict.SILENT, None, Verdict.SILENT),
        (Verdict.REJECTS_VALID, ["0", "0", "0"], Verdict.REJECTS_VALID),
    ],
)
def test_positions_name_what_records_alone_do_not(before: Verdict, positions: list[str] | None, after: Verdict) -> None:
    assert judged(before, positions) is after


def test_only_who_says_nothing_of_damage_stands_still_before_it() -> None:
    assert judged(Verdict.SILENT, ["0", "5", "5", "5"], is_refused=True) is Verdict.STALL
    assert judged(Verdict.SILENT, ["0", "5", "10"], is_refused=True) is Verdict.SILENT
    assert judged(Verdict.PASS, ["0", "5", "5", "5"], is_refused=True) is Verdict.PASS


def test_one_topic_at_a_time_is_shown_and_its_end_is_told(tmp_path: Path) -> None:
    data = bytes.fromhex(CASES[CUT].request["data"])
    directories = [tmp_path / f"{name}-0" for name in ("one", "two")]
    for directory in directories:
        directory.mkdir()
        (directory / f"{0:020}.log").write_bytes(data)
    with Endpoint() as endpoint, Client(int(endpoint.address.rpartition(":")[2])) as client:
        endpoint.show(directories[0], "one", tmp_path / "one.ended")
        watched = endpoint.show(directories[1], "two", tmp_path / "two.ended")
        assert client.fetch("one", 0).error_code != 0
        assert client.fetch("two", 0).records == data
        end = int(CASES[CUT].expect["batches"][-1]["nextOffset"])
        assert not (tmp_path / "two.ended").exists()
        assert not client.fetch("two", end).records
        assert (tmp_path / "two.ended").exists()
        assert watched.positions == [0, end]


@pytest.mark.parametrize("adapter", WIRE, ids=lambda adapter: adapter.name)
def test_stock_clients_come_to_the_verdicts_that_are_known(adapter: Adapter) -> None:
    """A sample; `seglog conform run --testee NAME` asks everything."""
    wanted, builder = listed(adapter.name), Builder(REPOSITORY / BUILDS, strict=True)
    missing = [tool for tool in adapter.toolchain if shutil.which(tool) is None]
    if missing:
        pytest.skip(f"{adapter.name} needs {', '.join(missing)}")
    if not os.environ.get("CI") and not (builder.place(adapter, wanted.version) / STAMP).is_file():
        pytest.skip(f"{adapter.name} is not built; seglog conform smoke --testee {adapter.name} builds it")
    examiner = Examiner(builder.testee(wanted), seconds=30, extra_growth=adapter.extra_memory)
    known = read_known(adapter.name, wanted.version)
    try:
        examiner.start()
        results = [known.applied(examiner.examine(CASES[case], known.expected(case))) for case in SAMPLE]
    finally:
        examiner.close()
    assert [(one.case, str(one.verdict), one.detail) for one in results if one.verdict not in FINE] == []
    assert any(one.raw is Verdict.PASS for one in results)

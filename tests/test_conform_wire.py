"""Whole clients as testees: they fetch the bytes of a case from an endpoint, and what they ask for is judged, too.

What they send to the endpoint is judged as what encoders write.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest
from helpers.support import REPOSITORY, need
from seglog_conformance.cases import load_cases
from seglog_conformance.judging import Examiner
from seglog_conformance.known import read_known
from seglog_conformance.positions import after_error, with_positions
from seglog_conformance.process import Command, ProcessTestee
from seglog_conformance.registry import BUILDS, STAMP, Builder, adapters, listed
from seglog_conformance.verdicts import FINE, Judgement, Verdict
from seglog_conformance.wire_endpoint import MAX_ASKED, Endpoint

from proofs.serve.client import Answer, Client

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from seglog_conformance.registry import Adapter
    from seglog_conformance.verdicts import Result

PRODUCE = 0
PROGRAM = REPOSITORY / "tests" / "helpers" / "wire_clients.py"
PASSING, LASTING_EMPTY = "control-records/data-commit-data", "empty-batches/last-in-the-log"
SEVERAL, DAMAGED, CUT = "empty-batches/between-two", "crc/flip-attributes-byte-0", "tails/magic-2-cut-12"
ASKED_AGAIN = "after-an-error/second-batch"
SAMPLE = (SEVERAL, "gzip/by-a-broker", DAMAGED, CUT, ASKED_AGAIN)
CODED, NUMBERED, TWICE = "encoding/codec-gzip", "encoding/three-records", "encoding/two-batches"
SENT = (NUMBERED, "encoding/headers", CODED, TWICE)
CASES = {case.id: case for case in load_cases()}
WIRE = tuple(adapter for adapter in adapters() if "seglog_conformance.wire" in adapter.run)


def process(kind: str) -> ProcessTestee:
    arguments = (sys.executable, "-m", "seglog_conformance.wire", sys.executable, str(PROGRAM), kind)
    path = os.pathsep.join((str(REPOSITORY / "conformance"), str(PROGRAM.parent), str(REPOSITORY)))
    return ProcessTestee(kind, Command(arguments=arguments, environment={"PYTHONPATH": path}), strict=True)


@pytest.fixture(scope="module")
def examiners() -> Iterator[dict[str, Examiner]]:
    kinds = ("right", "stalls", "jumps", "dies", "skips", "loses", "garbles", "silent", "consumes")
    found = {kind: Examiner(process(kind), extra_growth=1 << 26) for kind in kinds}
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
        ("right", ASKED_AGAIN, Verdict.PASS),
        ("skips", ASKED_AGAIN, Verdict.JUMP),
        ("right", NUMBERED, Verdict.PASS),
        ("right", CODED, Verdict.PASS),
        ("right", TWICE, Verdict.PASS),
        ("loses", CODED, Verdict.SILENT),
        ("silent", CODED, Verdict.SILENT),
        ("garbles", NUMBERED, Verdict.DIFFER),
        ("consumes", NUMBERED, Verdict.SKIP),
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
    assert len(set(result.answer["positions"][-MAX_ASKED:])) == 1
    assert "again and again" in result.detail


def test_a_client_dies_as_the_program_around_it_has(examiners: dict[str, Examiner]) -> None:
    assert "SIGABRT" in examined(examiners, "dies", SEVERAL).detail


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ("encoding/magic-1", "magic:1"),
        ("encoding/magic-0", "magic:0"),
        ("encoding/commit", "control batches"),
        ("encoding/log-append-time", "time of the append"),
        ("encoding/delete-horizon", "delete horizon"),
        ("encoding/empty-batch", "empty batches"),
        ("encoding/transactional", "transactions"),
        ("encoding/producer", "producer id"),
        ("encoding/compacted", "offsets"),
    ],
)
def test_what_no_producer_can_be_told_is_passed_over(examiners: dict[str, Examiner], case: str, reason: str) -> None:
    result = examined(examiners, "right", case)
    assert result.verdict is Verdict.SKIP
    assert reason in result.detail


def test_what_a_producer_sent_is_told_as_a_broker_stores_it(examiners: dict[str, Examiner]) -> None:
    answer = examined(examiners, "right", TWICE).answer
    assert answer is not None
    assert answer["data"] == CASES[TWICE].expect["data"]


def test_only_the_topic_that_is_shown_can_be_sent_to_and_nothing_is_written(tmp_path: Path) -> None:
    data = bytes.fromhex(CASES[NUMBERED].expect["data"])
    with Endpoint() as endpoint, Client(int(endpoint.address.rpartition(":")[2])) as client:
        before = endpoint.take(tmp_path, "before", 0, -1)
        captured = endpoint.take(tmp_path, "now", 10, -1)
        taken = [wire_answer(client, topic, data).error_code == 0 for topic in ("before", "other", "now")]
        assert taken == [False, False, True]
        again = wire_answer(client, "now", data)
        assert (again.error_code, again.base_offset) == (0, 13)
        endpoint.show(log_directory(tmp_path, data), "shown", tmp_path / "ended")
        assert wire_answer(client, "shown", data).error_code != 0
    assert before.data == b""
    assert captured.data[: len(data)] == data
    assert captured.data[len(data) :] == (13).to_bytes(8, "big") + data[8:]
    assert (tmp_path / "shown-0" / f"{0:020}.log").read_bytes() == data


def log_directory(parent: Path, data: bytes) -> Path:
    directory = parent / "shown-0"
    directory.mkdir()
    (directory / f"{0:020}.log").write_bytes(data)
    return directory


def wire_answer(client: Client, topic: str, data: bytes) -> Answer:
    topics = [{"name": topic, "partition_data": [{"index": 0, "records": data}]}]
    answer = client.ask(PRODUCE, 9, transactional_id=None, acks=-1, timeout=0, topic_data=topics)
    return answer.responses[0].partition_responses[0]


def verdict_of(verdict: Verdict, positions: list[str] | None, *, is_refused: bool = False, end: str = "10") -> Verdict:
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
    assert verdict_of(before, positions) is after


def test_only_who_says_nothing_of_damage_stands_still_before_it() -> None:
    assert verdict_of(Verdict.SILENT, ["0", "5", "5", "5"], is_refused=True) is Verdict.STALL
    assert verdict_of(Verdict.SILENT, ["0", "5", "10"], is_refused=True) is Verdict.SILENT
    assert verdict_of(Verdict.PASS, ["0", "5", "5", "5"], is_refused=True) is Verdict.PASS


def verdict_after(delivered: range, after: dict[str, object], positions: tuple[str, ...] = ("0",)) -> Verdict:
    """Return the verdict on a client that meets damage at offset 3, behind three good records."""
    expect = {"batches": [{"records": records_at(range(3))}], "after": {"records": [], "position": "3"}}
    answer = {"ok": False, "batches": [{"records": records_at(delivered)}], "after": after, "positions": positions}
    return after_error(Judgement(Verdict.PASS), expect, answer).verdict


def records_at(offsets: Iterable[int]) -> list[dict[str, str]]:
    return [{"offset": str(offset)} for offset in offsets]


@pytest.mark.parametrize(
    ("delivered", "again", "position", "verdict"),
    [
        (range(3), (), "3", Verdict.PASS),
        (range(3), (), None, Verdict.PASS),
        (range(2), (2,), "3", Verdict.PASS),
        (range(3), (3,), None, Verdict.JUMP),
        (range(3), (1000,), "1001", Verdict.JUMP),
        (range(3), (), "4", Verdict.JUMP),
        (range(3), (), "2", Verdict.JUMP),
        (range(3), (0, 1, 2), "3", Verdict.JUMP),
        (range(0), (), "0", Verdict.STALL),
        (range(2), (), "2", Verdict.STALL),
    ],
)
def test_who_goes_on_goes_back_or_keeps_good_records_after_an_error_is_told(
    delivered: range, again: tuple[int, ...], position: str | None, verdict: Verdict
) -> None:
    after = {"records": records_at(again), **({} if position is None else {"position": position})}
    assert verdict_after(delivered, after) is verdict


def test_what_is_asked_for_after_an_error_shows_that_a_client_has_gone_on() -> None:
    assert verdict_after(range(3), {"records": []}, ("0", "6")) is Verdict.JUMP
    assert verdict_after(range(3), {"records": []}, ("0", "0", "3")) is Verdict.PASS


def test_who_does_not_tell_what_follows_an_error_is_judged_by_the_error() -> None:
    expect = {"batches": [], "after": {"records": [], "position": "3"}}
    answer = {"ok": False, "batches": [], "positions": ["0", "6"]}
    assert after_error(Judgement(Verdict.PASS), expect, answer).verdict is Verdict.PASS


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
    assert any(one.raw is Verdict.PASS for one in asked(adapter, SAMPLE))


@pytest.mark.parametrize("adapter", WIRE, ids=lambda adapter: adapter.name)
def test_what_stock_producers_send_comes_to_the_verdicts_that_are_known(adapter: Adapter) -> None:
    """A sample, as above; each of them has a producer, which can be told all of this."""
    assert all(one.raw is not Verdict.SKIP for one in asked(adapter, SENT))


def asked(adapter: Adapter, cases: Iterable[str]) -> list[Result]:
    """Return what a client makes of some cases, which is what its list says."""
    wanted, builder = listed(adapter.name), Builder(REPOSITORY / BUILDS, strict=True)
    need(adapter.name, adapter.toolchain)
    if not os.environ.get("CI") and not (builder.build_directory(adapter, wanted.version) / STAMP).is_file():
        pytest.skip(f"{adapter.name} is not built; seglog conform smoke --testee {adapter.name} builds it")
    examiner = Examiner(builder.testee(wanted), seconds=30, extra_growth=adapter.extra_memory)
    known = read_known(adapter.name, wanted.version)
    try:
        examiner.start()
        results = [known.applied(examiner.examine(CASES[case], known.expected(case))) for case in cases]
    finally:
        examiner.close()
    assert [(one.case, str(one.verdict), one.detail) for one in results if one.verdict not in FINE] == []
    return results

"""Whatever an adapter does costs one case, never the run, and leaves no process behind."""

from __future__ import annotations

import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from helpers.walking import each_of
from seglog_conformance.cases import Case
from seglog_conformance.judging import Examiner
from seglog_conformance.known import Known, KnownFailures
from seglog_conformance.process import Command, ProcessTestee
from seglog_conformance.processes import HAS_PROC
from seglog_conformance.protocol import Hello, Implementation
from seglog_conformance.testee import Allowance, Kind, Reply, StartError
from seglog_conformance.verdicts import FINE, Result, Verdict

if TYPE_CHECKING:
    from seglog_conformance.protocol import Json

HOSTILE = Path(__file__).parent / "helpers" / "hostile_testee.py"
SECONDS = 0.6
SLOW = {"hang", "half-line", "spin", "pour", "fork-away"}
"""What is only found out when the time is over; everything else has time enough on a busy machine, too."""

EMPTY = Case(
    id="test/empty",
    family=1,
    family_name="test",
    op="decode",
    requirements=("SEG-LOG-001",),
    level="must",
    result="valid",
    why="Nothing is nothing.",
    stored_request={"data": ""},
    stored_expect={"batches": [], "consumed": 0, "tail": None},
)
needs_proc = pytest.mark.skipif(not HAS_PROC, reason="this system does not tell the memory of a process")


def hostile(mode: str, state: Path | None = None, *, start_seconds: float = 20.0) -> ProcessTestee:
    arguments = (sys.executable, str(HOSTILE), mode, *([str(state)] if state else []))
    return ProcessTestee("hostile", Command(arguments=arguments, start_seconds=start_seconds))


def examined(mode: str, state: Path | None = None) -> Result:
    examiner = Examiner(hostile(mode, state), seconds=SECONDS if mode in SLOW else 20 * SECONDS)
    try:
        return examiner.examine(EMPTY)
    finally:
        examiner.close()


@each_of(
    ("mode", "verdict", "words"),
    [
        ("fine", Verdict.PASS, ""),
        ("abort", Verdict.CRASH, "SIGABRT"),
        ("exit", Verdict.CRASH, "exit status 0"),
        ("kill", Verdict.CRASH, "SIGSEGV"),
        ("hang", Verdict.HANG, "within the time"),
        ("half-line", Verdict.HANG, "within the time"),
        ("spin", Verdict.HANG, "within the time"),
        ("pour", Verdict.HANG, "within the time"),
        ("garbage", Verdict.ADAPTER_ERROR, "not JSON: Hello, I am a library"),
        ("binary", Verdict.ADAPTER_ERROR, "not JSON"),
        ("nested", Verdict.ADAPTER_ERROR, "not JSON"),
        ("no-object", Verdict.ADAPTER_ERROR, "no object"),
        ("nothing-said", Verdict.ADAPTER_ERROR, "ok: true"),
        ("other-seq", Verdict.ADAPTER_ERROR, "has seq 9"),
        ("swapped", Verdict.ADAPTER_ERROR, "has seq 3"),
        ("close", Verdict.ADAPTER_ERROR, "closed its standard output"),
        ("endless", Verdict.ADAPTER_ERROR, "more than 16777216 bytes"),
        ("shape", Verdict.ADAPTER_ERROR, "cannot be read"),
        ("error", Verdict.ADAPTER_ERROR, "my own fault"),
        ("skip", Verdict.SKIP, "not today"),
        ("wrong", Verdict.DIFFER, "consumed: expected 0, found 1"),
        ("refuse", Verdict.REJECTS_VALID, "crc no"),
        ("pour-and-answer", Verdict.PASS, ""),
    ],
)
def test_verdict(mode: str, verdict: Verdict, words: str) -> None:
    start = time.monotonic()
    result = examined(mode)
    assert (result.verdict, words in result.detail) == (verdict, True), result
    assert time.monotonic() - start < 12


@needs_proc
@pytest.mark.parametrize("mode", ["eat", "eat-and-answer", "ask-too-much"])
def test_memory(mode: str) -> None:
    result = examined(mode)
    assert result.verdict is Verdict.MEMORY, result


def test_answers_out_of_order_show_at_the_next_case() -> None:
    examiner = Examiner(hostile("twice"), seconds=SECONDS)
    try:
        verdicts = [examiner.examine(EMPTY).verdict for _ in range(2)]
    finally:
        examiner.close()
    assert verdicts == [Verdict.PASS, Verdict.PASS]  # the second one in a fresh process


def test_what_happens_once_does_not_count(tmp_path: Path) -> None:
    result = examined("once", tmp_path / "state")
    assert result.verdict is Verdict.PASS
    assert result.notes == ("CRASH at first (ended by SIGABRT), not in a fresh process",)


def test_what_only_earlier_cases_bring_about_does_not_count() -> None:
    examiner = Examiner(hostile("tired"), seconds=20 * SECONDS)
    try:
        results = [examiner.examine(EMPTY, Verdict.PASS) for _ in range(3)]
        unlisted = examiner.examine(EMPTY)
    finally:
        examiner.close()
    assert [result.verdict for result in results] == [Verdict.PASS] * 3
    note = "DIFFER at first (consumed: expected 0, found 1), not in a fresh process"
    assert [result.notes for result in results] == [(), (note,), (note,)]
    assert unlisted.verdict is Verdict.DIFFER


def test_what_is_known_need_not_happen_twice(tmp_path: Path) -> None:
    examiner = Examiner(hostile("once", tmp_path / "state"), seconds=20 * SECONDS)
    try:
        assert examiner.examine(EMPTY, Verdict.CRASH).verdict is Verdict.CRASH
        assert examiner.examine(EMPTY, Verdict.CRASH).verdict is Verdict.PASS
    finally:
        examiner.close()


def rule_case(number: int, rule: str) -> Case:
    return replace(EMPTY, id=f"test/{rule}-{number}", requirements=(rule,))


def test_after_three_hangs_the_other_cases_of_a_rule_are_not_decided() -> None:
    cases = [rule_case(number, "SEG-LOG-001") for number in range(5)]
    examiner = Examiner(hostile("hang"), seconds=SECONDS)
    try:
        results = [examiner.examine(case, Verdict.PASS) for case in cases]
    finally:
        examiner.close()
    assert [result.case for result in results] == [case.id for case in cases]  # none is dropped
    assert [result.verdict for result in results] == [Verdict.HANG] * 3 + [Verdict.UNDECIDED] * 2
    assert all("not decided" in result.detail for result in results[3:])


class Slow:
    """Hangs on empty bytes; notes the time that each request gets."""

    name = "slow"

    def __init__(self) -> None:
        self.seconds: list[float] = []

    def start(self) -> Hello:
        return Hello(Implementation("slow", "1", "Python"), ("decode",), {"magic": [0, 1, 2]})

    def ask(self, request: Json, allowance: Allowance) -> Reply:
        self.seconds.append(allowance.seconds)
        if not request["data"]:
            return Reply(Kind.HANG)
        return Reply(Kind.ANSWER, {"seq": request["seq"], "ok": True, "batches": []})

    def close(self) -> None:
        pass


def test_the_time_of_a_rule_that_hangs_is_a_tenth_and_other_rules_keep_theirs() -> None:
    slow = Slow()
    examiner = Examiner(slow, seconds=10)
    quick = replace(rule_case(9, "SEG-LOG-001"), stored_request={"data": "00"})
    cases = [*(rule_case(number, "SEG-LOG-001") for number in range(4)), quick, rule_case(0, "SEG-LOG-002")]
    results = [examiner.examine(case, Verdict.PASS) for case in cases]
    assert slow.seconds == [10.0] * 6 + [1.0, 1.0] + [10.0] * 2
    assert [str(result.verdict) for result in results] == ["HANG"] * 3 + ["UNDECIDED", "PASS", "HANG"]


@pytest.mark.parametrize("listed", [Verdict.HANG, Verdict.UNDECIDED])
@pytest.mark.parametrize("found", [Verdict.HANG, Verdict.UNDECIDED])
def test_a_list_takes_one_kind_of_no_answer_for_the_other(listed: Verdict, found: Verdict) -> None:
    known = KnownFailures("slow", "1", {EMPTY.id: Known(EMPTY.id, listed)})
    result = Result(testee="slow", version="1", case=EMPTY.id, digest="", verdict=found, raw=found)
    assert known.applied(result).verdict is Verdict.XFAIL
    assert KnownFailures("slow").applied(result).verdict is found
    assert found not in FINE


def test_a_large_request_to_a_deaf_process_is_a_hang() -> None:
    deaf = hostile("deaf")
    deaf.start()
    reply = deaf.ask({"seq": 1, "op": "decode", "data": "00" * (1 << 20)}, Allowance(SECONDS))
    deaf.close()
    assert reply.kind is Kind.HANG


def test_the_end_of_standard_error_is_kept() -> None:
    result = examined("abort")
    assert result.stderr == "assertion failed: length >= 0\n"


@pytest.mark.parametrize(
    ("mode", "words"), [("silent", "no answer to hello"), ("other-protocol", "speaks protocol 2"), ("deaf", "")]
)
def test_start(mode: str, words: str) -> None:
    adapter = hostile(mode, start_seconds=SECONDS)
    if not words:
        adapter.start()
    else:
        with pytest.raises(StartError, match=words):
            adapter.start()
    adapter.close()


def test_a_program_that_is_not_there() -> None:
    missing = ProcessTestee("missing", Command(arguments=("/nowhere/at-all",)))
    with pytest.raises(StartError, match="No such file"):
        missing.start()


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def is_gone(pid: int) -> bool:
    for _ in range(50):
        if not is_alive(pid):
            return True
        time.sleep(0.05)
    return False


@needs_proc
@pytest.mark.parametrize(
    ("mode", "verdict"), [("fork", Verdict.PASS), ("fork-and-exit", Verdict.CRASH), ("fork-away", Verdict.HANG)]
)
def test_no_process_is_left(mode: str, verdict: Verdict, tmp_path: Path) -> None:
    result = examined(mode, tmp_path / "pid")
    assert result.verdict is verdict, result
    assert is_gone(int((tmp_path / "pid").read_text(encoding="ascii")))


def test_no_descriptor_is_left() -> None:
    if not HAS_PROC:
        pytest.skip("this system does not tell open descriptors")
    before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - a count
    for mode in ("fine", "abort", "garbage"):
        examined(mode)
    assert len(os.listdir("/proc/self/fd")) == before  # noqa: PTH208 - a count

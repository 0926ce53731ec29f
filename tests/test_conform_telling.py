"""What a run and a smoke test tell their reader: what differs, where, and each thing once."""

from __future__ import annotations

import re
import subprocess
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner
from helpers.support import REPOSITORY
from seglog_conformance.byte_difference import byte_difference, nearest_part
from seglog_conformance.cases import load_cases
from seglog_conformance.compare import compare
from seglog_conformance.features import EVERYTHING
from seglog_conformance.protocol import schema_errors
from seglog_conformance.reference.testee import Reference
from seglog_conformance.registry import Listed
from seglog_conformance.report_table import MAX_ALIKE, alike, group_lines, not_asked
from seglog_conformance.runner import Outcome
from seglog_conformance.verdicts import Result, Verdict
from seglog_conformance.wire_producing import unreported

from seglog_format.cli.main import seglog
from seglog_format.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

CASES = {case.id: case for case in load_cases()}
ENCODED = CASES["encoding/three-records"]
DATA = ENCODED.expect["data"]
FAILED = Result(
    testee="t",
    version="1",
    case="crc/flip-value",
    digest="",
    verdict=Verdict.CRASH,
    raw=Verdict.CRASH,
    detail="it ended",
)


def changed(position: int, to: str = "01") -> str:
    return DATA[: 2 * position] + to + DATA[2 * position + 2 :]


@pytest.mark.parametrize(
    ("other", "text"),
    [
        (changed(57), "data from byte 57 of 87 (records_count): expected 3 (00000003), found 16777219 (01000003)"),
        (changed(17), "data from byte 17 of 87 (crc): expected 708946313 (2a41a989), found 21080457 (0141a989)"),
        (changed(17)[:130] + "00" + changed(17)[132:], "data from byte 65 of 87 (key): expected 01, found 00"),
        (
            changed(11)[:36] + "00" + changed(11)[38:],
            "data from byte 11 of 87 (batch_length): expected 75 (0000004b), found 1 (00000001)",
        ),
        (changed(65, "00"), "data from byte 65 of 87 (key): expected 01, found 00"),
        (DATA + "00", "data from byte 87 of 87 (tail): expected the end, found 00"),
        (DATA[:-4], "data from byte 85 of 87 (value): expected 76, found the end"),
        ("01", "data from byte 0 of 87 (base_offset): expected 10 (000000000000000a), found 01"),
    ],
)
def test_encodings_that_differ_are_told_by_the_field_where_they_part(other: str, text: str) -> None:
    assert str(byte_difference("data", DATA, other)) == text


def test_a_part_that_is_missing_is_told_by_where_it_ends_being_right() -> None:
    text = "data from byte 5, after 3 right bytes of a part: expected 0405, found aa05"
    assert str(nearest_part("data", "0102ff0405", "00000102ffaa05")) == text
    assert "found the end" in str(nearest_part("data", "0102", "01"))


def test_an_encoding_that_cannot_be_read_says_why() -> None:
    judgement = compare(ENCODED, {"ok": True, "data": changed(30)}, EVERYTHING)
    assert judgement.detail.startswith(
        "the encoded bytes cannot be read: crc CorruptRecordError <bytes>:17: crc: expected"
    )


def test_results_that_are_alike_are_told_once() -> None:
    names = [f"crc/{number}" for number in range(2 + MAX_ALIKE)]
    other = replace(FAILED, case="crc/other", detail="it ended otherwise")
    groups = alike([*(replace(FAILED, case=name) for name in names), other])
    assert [len(group) for group in groups] == [len(names), 1]
    assert list(group_lines(groups[0], {})) == [
        "  crc/0: CRASH: it ended",
        "      the same: crc/1, crc/2, crc/3 and 1 others",
    ]


def test_a_failing_line_has_level_rule_reason_and_the_values_that_differ() -> None:
    result = replace(FAILED, verdict=Verdict.DIFFER, detail="none of 2", differences=("a: expected 1, found 2",))
    first, about, difference = group_lines([result], CASES)
    assert first == "  crc/flip-value: DIFFER: none of 2"
    assert about.startswith("      must, SEG-BAT-003: ")
    assert difference == "      a: expected 1, found 2"


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"surprise": 1}, "the answer: it has no fields surprise"),
        ({"batches": [{"records": [], "baseOffset": [1]}]}, "batches/0/baseOffset: [1] is not of type 'string'"),
        ({"ok": False}, "the answer: reject is missing"),
    ],
)
def test_a_wrong_answer_is_told_by_its_field(change: dict[str, object], text: str) -> None:
    case = CASES["plain-batches/one-record"]
    answer = {"seq": 1, **Reference().answer({"op": "decode", **case.request}), **change}
    assert schema_errors(answer, "protocol", "answer-decode") == [text]


def adapter(directory: Path, program: str) -> str:
    (directory / "adapter.py").write_text(program, encoding="utf-8")
    run = f'["{sys.executable}", "{{adapter}}/adapter.py"]'
    (directory / "adapter.toml").write_text(f'name = "x"\nlanguage = "Python"\nversions = ["1"]\nrun = {run}\n')
    return str(directory)


@pytest.mark.parametrize("command", [("smoke",), ("run", "--family", "crc")])
def test_the_traceback_of_an_adapter_that_does_not_start_is_shown(command: tuple[str, ...], tmp_path: Path) -> None:
    wanted = ["--adapter", adapter(tmp_path, "import no_such_library\n"), "--build", str(tmp_path / "build")]
    done = CliRunner().invoke(seglog, ["conform", *command, *wanted])
    lines = [line.strip() for line in done.output.splitlines()]
    assert "import no_such_library" in lines
    assert "ModuleNotFoundError: No module named 'no_such_library'" in lines


def test_a_smoke_test_needs_to_know_whom_to_ask() -> None:
    done = CliRunner().invoke(seglog, ["conform", "smoke"])
    assert isinstance(done.exception, UsageError)
    assert "--adapter" in str(done.exception)
    assert "--testee" in str(done.exception)


def test_a_producer_is_not_asked_for_gaps_or_epochs_between_batches() -> None:
    batch = {"magic": 2, "baseOffset": "0", "nextOffset": "1", "partitionLeaderEpoch": 3, "records": [{"offset": "0"}]}
    behind = {**batch, "baseOffset": "1", "nextOffset": "2", "records": [{"offset": "1"}]}
    assert unreported([batch, behind]) is None
    later = {**behind, "baseOffset": "9", "records": [{"offset": "9"}]}
    for other, word in ((later, "gap"), ({**behind, "partitionLeaderEpoch": 4}, "leader epochs")):
        found = unreported([batch, other])
        assert found is not None
        assert word in found["skip"]["reason"]


def test_each_feature_that_a_case_needs_is_a_row_of_the_protocol() -> None:
    """At e6e47325 `logStartOffset` and `limit` decided about 40 cases, and the table did not have them."""
    page = (REPOSITORY / "docs" / "reference" / "adapter-protocol.md").read_text(encoding="utf-8")
    rows = page.partition("| Feature | Meaning |\n")[2].partition("\n\n")[0].splitlines()
    described = {name for row in rows for name in re.findall(r"`(\w+)`", row.split("|")[1])}
    needed = {need.partition(":")[0] for case in CASES.values() for need in case.needs}
    assert needed <= described


def test_a_run_lists_every_feature_that_kept_it_from_asking() -> None:
    """At e6e47325 a run listed eight, and gave the number of all others."""
    cases = CASES
    outcome = Outcome(Listed("t"))
    for number, case in enumerate(case for case in cases.values() if case.level == "must"):
        detail = f"feature-{number % 12}"
        outcome.results.append(replace(FAILED, case=case.id, verdict=Verdict.SKIP, raw=Verdict.SKIP, detail=detail))
    (line,) = not_asked(outcome, cases)
    assert all(f"for want of feature-{number}" in line for number in range(12))


def test_an_interrupted_run_prints_what_it_has_found(tmp_path: Path) -> None:
    """At e6e47325 it printed one line, and no table."""
    lines = tmp_path / "results.jsonl"
    command = [sys.executable, "-m", "seglog_format.cli", "conform", "run", "--testee", "reference", "--jsonl", lines]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and not (lines.is_file() and lines.read_text().count("\n") > 20):
            time.sleep(0.05)
        process.terminate()
        output, errors = process.communicate(timeout=60)
    assert "interrupted" in errors
    assert "cases that pass, of those that were asked" in output
    assert re.search(r"reference .*: \d+ PASS", output)

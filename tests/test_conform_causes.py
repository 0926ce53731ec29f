"""The causes that a report names, and the reports about them that are ready to file."""

from __future__ import annotations

import json
import re
import subprocess
import xml.etree.ElementTree as ET
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from authoring.write_reports import (
    REPORTS,
    RESULTS,
    first_causes,
    first_line_of,
    is_newest,
    outcomes,
    read_lines,
    written,
)
from click.testing import CliRunner
from helpers.support import REPOSITORY
from helpers.walking import each_of
from seglog_conformance.bugs import client_of, read_program
from seglog_conformance.bugs import read_lines as lines_of
from seglog_conformance.cases import Case, load_cases, scale_directory
from seglog_conformance.causes import causes, departures, first_line
from seglog_conformance.commands.conform import command
from seglog_conformance.direct import DirectTestee
from seglog_conformance.headlines import SENTENCES, WITHOUT_RULE, headline, rule_link, subject, subjects
from seglog_conformance.issue_programs import LANGUAGES, call_program, program
from seglog_conformance.issue_report import Subject, issue_report, kafka_answer
from seglog_conformance.judging import Examiner
from seglog_conformance.known import read_known
from seglog_conformance.protocol import OPS, Implementation
from seglog_conformance.reference import Reference
from seglog_conformance.registry import Listed, adapters, listed
from seglog_conformance.report_html import content
from seglog_conformance.report_jsonl import read_hello, read_results
from seglog_conformance.report_jsonl import testee_line as line_of
from seglog_conformance.report_junit import junit
from seglog_conformance.report_table import failures, head
from seglog_conformance.runner import Outcome
from seglog_conformance.shown_causes import TEXT
from seglog_conformance.verdicts import DEADLY, FAILURES, FINE, MISSING, Difference, Result, Verdict

from seglog_format.errors import UsageError
from seglog_format.requirements import requirements

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from seglog_conformance.protocol import Json
    from seglog_conformance.registry import Adapter

EVERY = load_cases()
CASES = {case.id: case for case in EVERY}
LEVELS = ("must", "should", "may")


class Changed(Reference):
    """The reference with a fault: every request or answer is changed."""

    def __init__(self, asked: Callable[[Json], Json] = dict, answered: Callable[[Json], None] = bool) -> None:
        super().__init__()
        self.asked = asked
        self.answered = answered

    def answer(self, request: Json) -> Json:
        answer = super().answer(self.asked(request))
        self.answered(answer)
        return answer


def without_crc(request: Json) -> Json:
    return {**request, "options": {"crc": False}}


def as_text(answer: Json) -> None:
    """Give back what is left of keys and values when they are read as UTF-8."""
    for batch in answer.get("batches", ()):
        for record in batch["records"]:
            for name in ("key", "value"):
                if isinstance(record[name], str):
                    record[name] = bytes.fromhex(record[name]).decode("utf-8", "replace").encode().hex()


def with_own_times(answer: Json) -> None:
    """Ignore that a batch has LogAppendTime: each record gets a time of its own."""
    for batch in answer.get("batches", ()):
        if batch.get("timestampType") == "LogAppendTime" and batch["magic"] == 2:
            for record in batch["records"]:
                record["timestamp"] = str(int(record["timestamp"]) + 1)


def with_empty_times(answer: Json) -> None:
    """Give messages of magic 0, which have no time, the time 0."""
    for batch in answer.get("batches", ()):
        if batch.get("magic") == 0:
            for record in batch["records"]:
                record["timestamp"] = "0"


def outcome_of(answering: Reference, cases: Sequence[Case]) -> Outcome:
    examiner = Examiner(DirectTestee("t", answering))
    hello = examiner.start()
    return Outcome(Listed("t"), hello=hello, results=[examiner.examine(case) for case in cases])


def of_families(*names: str) -> list[Case]:
    return [case for case in EVERY if case.family_name in names]


DECODING = [case for case in EVERY if case.op == "decode" and case.input_size < 600]
UNCHECKED = outcome_of(Changed(asked=without_crc), of_families("crc", "gzip", "lz4", "crossed"))


def failed(case: str, verdict: Verdict = Verdict.DIFFER, detail: str = "it is otherwise", **fields: Any) -> Result:  # noqa: ANN401
    return Result(testee="t", version="1", case=case, digest="", verdict=verdict, raw=verdict, detail=detail, **fields)


def first_of(level: str, count: int) -> list[str]:
    """Return cases of one level, each with a rule of its own."""
    found = {case.requirements[0]: case.id for case in EVERY if case.level == level and case.op == "decode"}
    return list(found.values())[:count]


def test_each_rule_that_a_case_names_first_has_a_subject() -> None:
    first = {case.requirements[0] for case in [*EVERY, *load_cases(scale_directory())]}
    assert set(subjects()) == first, "name the subject in conformance/seglog_conformance/subjects.toml"
    assert [rule for rule, words in subjects().items() if len(words) > 62 or words.endswith(".")] == []
    assert len(set(subjects().values())) == len(subjects())


def test_a_rule_without_a_subject_is_named_by_its_text() -> None:
    rule = next(rule for rule in requirements() if rule not in subjects())
    assert subject(rule) == f"{rule} ({requirements()[rule].title})"
    assert subject("SEG-XXX-999") == "SEG-XXX-999"


@pytest.mark.parametrize("verdict", [*SENTENCES, "REFUSED-BY-ACCIDENT"])
def test_each_verdict_has_a_headline_and_so_has_an_unknown_one(verdict: str) -> None:
    words = headline("SEG-BAT-003", verdict, "decode")
    assert "the CRC of a batch" in words
    assert not set("{}") & set(words)
    assert verdict in SENTENCES or verdict in words


def test_no_failure_is_without_words() -> None:
    assert FAILURES - SENTENCES.keys() - WITHOUT_RULE.keys() == set()


def test_what_must_be_refused_is_checked_or_refused() -> None:
    accepted = Verdict.ACCEPTS_INVALID
    assert headline("SEG-BAT-003", accepted, "decode", is_refusal=True) == "does not check the CRC of a batch"
    assert headline("SEG-BAT-005", accepted, "decode", is_refusal=True) == "does not refuse a negative base offset"


def test_the_first_line_of_a_report_names_the_cause() -> None:
    first, counts, *_ = head(UNCHECKED, CASES)
    asked = [case for case in of_families("crc", "gzip", "lz4", "crossed") if case.requirements[0] == "SEG-BAT-003"]
    failing = [result.case for result in UNCHECKED.failures if CASES[result.case].requirements[0] == "SEG-BAT-003"]
    assert len(failing) > 40
    assert f" does not check the CRC of a batch (SEG-BAT-003: {len(failing)} of {len(asked)})" in first
    assert re.search(r"\d+ PASS, .*ACCEPTS-INVALID", counts)


def test_a_group_has_sentence_rule_smallest_case_and_the_command_for_its_report() -> None:
    lines = list(failures(UNCHECKED, CASES, "run.jsonl"))[:5]
    smallest = min(
        (
            result
            for result in UNCHECKED.failures
            if CASES[result.case].requirements[0] == "SEG-BAT-003" and result.verdict is Verdict.ACCEPTS_INVALID
        ),
        key=lambda result: CASES[result.case].input_size,
    )
    assert lines[0].startswith("  must: does not check the CRC of a batch (SEG-BAT-003: ")
    case = CASES[lines[1].strip().partition(": ")[0]]
    assert case.input_size == CASES[smallest.case].input_size
    assert lines[1].strip() == f"{case.id}: {case.why} Expected: a refusal. Found: {found_for(case.id)}"
    assert lines[2].strip() == "rule: spec/30-record-batch.md#seg-bat-003, or seglog explain SEG-BAT-003"
    assert lines[3].strip().startswith("the same: ")
    about = "--testee t --rule SEG-BAT-003 --op decode --results run.jsonl"
    assert lines[4].strip() == f"report: seglog conform report-issue {about} -o t-SEG-BAT-003.md"


def found_for(case: str) -> str:
    return next(result.detail for result in UNCHECKED.results if result.case == case)


@pytest.mark.parametrize(
    ("fault", "rule", "words"),
    [
        (as_text, "", "decodes keys, values and headers as text: bytes that are no text change"),
        (with_own_times, "SEG-BAT-011", "gets the timestamps of records under LogAppendTime wrong"),
        (with_empty_times, "SEG-MSG-008", "gets the missing timestamp of magic 0 wrong"),
    ],
)
def test_one_cause_in_many_families_is_one_group(fault: Callable[[Json], None], rule: str, words: str) -> None:
    outcome = outcome_of(Changed(answered=fault), DECODING)
    found = [cause for cause in outcome.causes(CASES) if cause.headline == words]
    assert len(found) == 1
    assert first_line(outcome.causes(CASES)).startswith(f"{words} (")
    families = {CASES[result.case].family for result in found[0].failed}
    assert len(families) > 3
    assert rule in {"", found[0].rule}
    alone = [cause for cause in outcome.causes(CASES) if cause.headline != words]
    assert sum(len(cause.failed) for cause in alone) < len(found[0].failed) / 4


def test_causes_come_must_first_and_then_the_largest() -> None:
    of_crc = [case.id for case in EVERY if case.requirements[0] == "SEG-BAT-003" and case.op == "decode"][:5]
    results = [*map(failed, first_of("may", 3)), *map(failed, first_of("should", 3)), *map(failed, first_of("must", 3))]
    found = causes([*results, *map(failed, of_crc)], CASES)
    assert found[0].rule == "SEG-BAT-003"
    assert [LEVELS.index(cause.level) for cause in found] == sorted(LEVELS.index(cause.level) for cause in found)
    for level in LEVELS:
        sizes = [len(cause.failed) for cause in found if cause.level == level]
        assert sizes == sorted(sizes, reverse=True)


def test_no_failure_is_lost_and_none_counts_twice() -> None:
    found = UNCHECKED.causes(CASES)
    counted = Counter(result.case for cause in found for result in cause.failed)
    assert counted == Counter(result.case for result in UNCHECKED.failures)
    assert all(len(cause.failed) <= cause.asked for cause in found)


def test_one_departure_of_kafka_counts_once() -> None:
    rules = {"SEG-BAT-005", "SEG-BAT-006", "SEG-BAT-009"}
    assert {departures()[rule] for rule in rules} == {"DEP-02"}
    results = [failed(case.id, Verdict.ACCEPTS_INVALID) for case in EVERY if is_about(case, rules)]
    of_kafka = causes(results, CASES, homepage="https://kafka.apache.org")
    assert [cause.departure for cause in of_kafka] == ["DEP-02"]
    assert len(of_kafka[0].failed) == len(results) > len(rules)
    assert {cause.rule for cause in causes(results, CASES) if cause.departure == ""} == rules


def is_about(case: Case, rules: set[str]) -> bool:
    return case.requirements[0] in rules and case.result == "invalid"


def test_the_magic_that_kafkas_storage_reads_is_one_cause_in_all_operations() -> None:
    cases = [case for case in EVERY if case.requirements[0] == "SEG-BAT-004" and case.result == "invalid"]
    (cause,) = causes(
        [failed(case.id, Verdict.ACCEPTS_INVALID) for case in cases], CASES, homepage="https://kafka.apache.org"
    )
    assert (cause.departure, cause.count) == ("DEP-01", f"DEP-01, SEG-BAT-004: {len(cases)} of {len(cases)}")


def test_an_operation_that_refuses_everything_has_one_cause() -> None:
    cases = [case for case in EVERY if case.op == "encode" and case.result == "valid"][:20]
    (cause,) = causes([failed(case.id, Verdict.REJECTS_VALID) for case in cases], CASES)
    assert cause.headline == "refuses everything that it must accept"
    some = [failed(case.id, Verdict.PASS) for case in cases[:1]]
    assert len(causes([*some, *(failed(case.id, Verdict.REJECTS_VALID) for case in cases[1:])], CASES)) > 1


def test_valid_bytes_that_are_refused_with_one_text_have_one_cause() -> None:
    specific = [case.id for case in EVERY if is_valid(case, "SEG-REC-007", "must")][:4]
    other = [case.id for case in EVERY if is_valid(case, "SEG-REC-010", "must")][:2]
    whole = [case.id for case in EVERY if is_valid(case, "SEG-BAT-001", "must")][:9]
    read = [failed(case.id, Verdict.PASS) for case in EVERY if is_valid(case, "SEG-BAT-012", "must")][:2]
    text = "ValueError: 7 is out of range for the length of a field"
    refused = [failed(case, Verdict.REJECTS_VALID, text) for case in [*specific, *other, *whole]]
    (cause,) = causes([*read, *refused], CASES)
    assert (cause.rule, len(cause.failed)) == ("SEG-REC-007", 15)
    assert cause.failed[0].case in specific
    short = [failed(case, Verdict.REJECTS_VALID, "refused") for case in [*specific, *other, *whole]]
    assert {one.rule: len(one.failed) for one in causes([*read, *short], CASES)} == {
        "SEG-REC-007": 13,
        "SEG-REC-010": 2,
    }


def is_valid(case: Case, rule: str, level: str) -> bool:
    return (case.op, case.result, case.requirements[0], case.level) == ("decode", "valid", rule, level)


@pytest.mark.parametrize("verdict", [Verdict.ADAPTER_ERROR, Verdict.XPASS])
def test_what_is_not_the_librarys_is_a_cause_of_its_own(verdict: Verdict) -> None:
    cases = [case.id for case in EVERY if case.op == "decode"][:3]
    (cause,) = causes([failed(case, verdict) for case in cases], CASES)
    assert "adapter fails" in cause.headline or "list of known failures" in cause.headline


INDEXES = {
    ".index": ("0000000100000064" + "00000002000000c8", "0000000100000064" + "00000003000000c8"),
    ".timeindex": ("00000000000003e800000001" + "00000000000007d000000002", "00000000000003e800000001"),
    ".txnindex": ("0000" + "00000000000003e8" + "0000000000000001" * 3, ""),
    "leader-epoch-checkpoint": (b"0\n1\n0 0\n".hex(), b"0\n1\n0 5\n".hex()),
}
SHOWN = {
    ".index": "entry 2 (2 expected, 2 found): expected relative_offset 2, position 200, found relative_offset 3,",
    ".timeindex": "entry 2 (2 expected, 1 found): expected timestamp_ms 2000, relative_offset 2, found no entry",
    ".txnindex": "entry 1 (1 expected, 0 found): expected version 0, producer_id 1000, first_offset 1, last_offset 1,",
    "leader-epoch-checkpoint": "entry 3 (3 expected, 3 found): expected 0 0, found 0 5",
}


@pytest.mark.parametrize("name", INDEXES)
def test_indexes_and_checkpoints_differ_by_an_entry(name: str) -> None:
    expected, found = INDEXES[name]
    assert str(Difference(f"files.{name}", expected, found)).startswith(f"files.{name} {SHOWN[name]}")
    assert "found (missing)" in str(Difference(f"files.{name}", expected, MISSING))
    left = str(Difference("files..index", "00000001000000640000", "0000000100000064"))
    assert left == "files..index entry 2 (2 expected, 1 found): expected bytes 0000, found no entry"


def test_any_other_file_differs_by_its_bytes() -> None:
    assert str(Difference("files.00.log", "00", "01")) == "files.00.log: expected 00, found 01"


@pytest.mark.parametrize("language", [*LANGUAGES, "Zig"])
def test_the_lines_of_a_report_hold_the_bytes_of_the_case(language: str) -> None:
    data = bytes(range(256))
    text = program(language, data, what="reads record batches")
    digits = "".join(re.findall(r'(?:"|\b)((?:[0-9a-f]{2})+)(?:"|$)', text, re.MULTILINE))
    escaped = "".join(re.findall(r"\\x([0-9a-f]{2})", text))
    assert data.hex() in {digits, escaped}
    assert "reads record batches" in text
    assert len([line for line in text.splitlines() if not re.search(r"[0-9a-f]{16}", line)]) < 16


@pytest.mark.parametrize("op", OPS)
@each_of("language", ["Python", "Rust", "C", "Zig"])
def test_a_report_about_any_operation_has_its_bytes_and_a_call(op: str, language: str) -> None:
    """Reports about several files had a command of the suite in place of lines, which no maintainer has."""
    cases = [case for case in EVERY if case.op == op and 0 < case.input_size < 4096][::40]
    about = Subject(implementation=Implementation("Log", "1.2", language), testee="--adapter mine")
    for case in cases:
        (cause,) = causes([failed(case.id)], CASES)
        text = issue_report(cause, CASES, about).partition("## What happens")[2]
        assert "in place of this line: the library's call that" in text or "Give th" in text, case.id
        stored = [case.request.get("data"), *(case.request.get("files") or {}).values()]
        given = text.replace('"\n    "', "").replace("\\x", "").replace('"\n        "', "").replace("\\\n", "")
        assert [data for data in stored if data and data not in given.replace("\n", "")] == [], case.id


def test_the_files_of_a_report_are_made_by_its_commands(tmp_path: Path) -> None:
    text = call_program("Python", {"a.log": b"\x00\x01", "a.index": b""}, what="reads")
    commands = text.partition("```sh\n")[2].partition("```")[0]
    subprocess.run(["/bin/sh", "-e"], input=commands, text=True, check=True, cwd=tmp_path)
    assert {path.name: path.read_bytes() for path in (tmp_path / "topic-0").iterdir()} == {
        "a.log": b"\x00\x01",
        "a.index": b"",
    }
    assert 'library.read("topic-0")' in text


def test_the_lines_in_python_run() -> None:
    given: list[bytes] = []
    text = program("Python", b"\x00\x01", what="", calls="read(data)", imports="import json")
    exec(re.sub(r"```(python)?", "", text), {"read": given.append})  # noqa: S102 - our own lines
    assert given == [b"\x00\x01"]


def report(cause_of: Outcome, rule: str, **options: Any) -> str:  # noqa: ANN401 - of issue_report
    cause = next(cause for cause in cause_of.causes(CASES) if cause.rule == rule)
    about = Subject(implementation=Implementation("Log", "1.2", "Rust"), testee="--adapter mine")
    return issue_report(cause, CASES, about, **options)


def test_a_report_has_bytes_lines_kafkas_answer_and_what_to_change() -> None:
    text = report(UNCHECKED, "SEG-BAT-003")
    cause = next(cause for cause in UNCHECKED.causes(CASES) if cause.rule == "SEG-BAT-003")
    case = CASES[cause.failed[0].case]
    assert text.startswith("# Log 1.2 does not check the CRC of a batch\n")
    assert case.request["data"] in "".join(re.findall(r"^[0-9a-f]{4}  (\w+)$", text, re.MULTILINE))
    assert "```rust\n" in text
    assert "Kafka's own classes (kafka-clients 4.4.0) were asked about the same bytes" in text
    assert f"> {requirements()['SEG-BAT-003'].text}" in text
    assert "Refuse input that breaks this rule" in text
    assert f"`seglog conform run --adapter mine --case {case.id} --no-smoke`" in text
    assert "SEG-BAT-003](spec/30-record-batch.md#seg-bat-003)" in text
    assert "| " not in text.partition("## The rule")[0]


def test_a_report_has_the_calls_of_the_library_or_a_whole_client() -> None:
    cause = next(cause for cause in UNCHECKED.causes(CASES) if cause.rule == "SEG-BAT-003")
    said = Implementation("Log", "1.2", "Go")
    calls = Subject(implementation=said, testee="", lines={"decode": "\tlog.Read(data)\n", "imports": '\t"log"\n'})
    text = issue_report(cause, CASES, calls)
    assert '\t"fmt"\n\t"log"\n)' in text
    assert "\tlog.Read(data)\n}\n" in text
    assert "in place of this line" not in text
    client = Subject(implementation=said, testee="", client="package main\n")
    assert "seglog serve --raw --state none logs\n```\n\n```go\npackage main\n```" in issue_report(cause, CASES, client)


@pytest.mark.parametrize("adapter", [one for one in adapters() if lines_of(one)], ids=lambda one: one.name)
def test_lines_of_an_adapter_use_the_bytes_and_are_few(adapter: Adapter) -> None:
    for op, lines in lines_of(adapter).items():
        assert op in {"imports", *OPS}
        assert "data" in lines or op == "imports"
        assert len(lines.splitlines()) <= 14


def test_a_library_takes_the_client_of_its_other_adapters() -> None:
    sarama, wire = (listed(name).adapter for name in ("sarama", "sarama-wire"))
    assert sarama is not None
    assert wire is not None
    assert client_of(sarama) == read_program(wire) != ""


@pytest.mark.parametrize("how", ["by a list", "by the command"])
def test_a_report_withholds_the_bytes_and_steps_of_a_crash(how: str) -> None:
    result = failed("crc/flip-value", Verdict.CRASH, disclosure="withheld" if how == "by a list" else "")
    text = report(Outcome(Listed("t"), results=[result]), "SEG-BAT-003", withholds=how == "by the command")
    assert "\n## Bytes and steps\n\nwithheld\n" in text
    assert CASES["crc/flip-value"].request["data"][:40] not in text
    assert CASES["crc/flip-value"].why not in text
    assert "crc/flip-value" not in text


def test_what_kafka_answered_is_told_as_it_was_recorded() -> None:
    case = CASES["crc/flip-value"]
    answers = {
        "x; kafka-clients 4.4.0 agrees (delivered)": "gave the allowed answer *delivered*",
        "x; kafka-clients 4.4.0 departs: ACCEPTS-INVALID": "depart from the rule here as well (ACCEPTS-INVALID)",
        "recorded from kafka-storage 4.1.1": "(kafka-storage 4.1.1) gave the expected answer",
        "the model": "The expected answer rests on: the model",
    }
    for source, words in answers.items():
        assert words in kafka_answer(replace(case, source=source))


INDEX = (".index", f"{0:020}.index")


def test_a_report_about_an_index_has_its_entries() -> None:
    case = next(case for case in EVERY if any(len(case.request.get("files", {}).get(name, "")) == 32 for name in INDEX))
    text = report(Outcome(Listed("t"), results=[failed(case.id)]), case.requirements[0])
    assert re.search(r"^relative_offset \d+, position \d+$", text, re.MULTILINE)


def test_other_reports_name_the_cause_as_well() -> None:
    words = "does not check the CRC of a batch"
    line = line_of(UNCHECKED, CASES)
    assert line["causes"][0]["headline"] == words
    suites = ET.fromstring(junit([UNCHECKED], CASES))  # noqa: S314 - our own text
    assert suites.find(".//property[@name='cause']").get("value", "").startswith(words)  # type: ignore[union-attr]
    assert any(one.get("message", "").startswith(f"{words} (SEG-BAT-003): ") for one in suites.iter("failure"))
    (testee,) = content([UNCHECKED], of_families("crc")[:9], {})["testees"]
    assert testee["causes"][0]["headline"].startswith(words)


def invoke(*arguments: str) -> str:
    done = CliRunner().invoke(command, list(arguments), standalone_mode=False)
    if done.exception is not None:
        raise done.exception
    return done.stdout


def stored_run(tmp_path: Path) -> Path:
    """Return a file of results as a run writes it, of the reference that checks no CRC."""
    path = tmp_path / "run.jsonl"
    invoke("run", "--testee", "reference", "--case", "crc/flip-value", "--jsonl", str(path), "--no-smoke")
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    for line in lines:
        if line["type"] == "result":
            line |= {"verdict": "ACCEPTS-INVALID", "raw": "ACCEPTS-INVALID", "label": "ACCEPTS-INVALID"}
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def test_the_command_writes_a_report_of_a_run_without_asking_again(tmp_path: Path) -> None:
    results, output = stored_run(tmp_path), tmp_path / "report.md"
    common = ("report-issue", "--testee", "reference", "--results", str(results))
    invoke(*common, "--rule", "bat-3", "-o", str(output))
    text = output.read_text(encoding="utf-8")
    assert "does not check the CRC of a batch\n" in text
    assert "- `crc/flip-value`: ACCEPTS-INVALID" in text
    hello = read_hello(results, "reference")
    assert hello is not None
    assert hello.implementation.version in text
    assert len(read_results(results)) == 1
    with pytest.raises(UsageError, match="fails no case of SEG-IDX-010; the failing rules are SEG-BAT-003"):
        invoke(*common, "--rule", "SEG-IDX-010")
    with pytest.raises(UsageError, match="has no result of plain"):
        invoke("report-issue", "--testee", "plain", "--rule", "SEG-BAT-003", "--results", str(results))


def test_the_command_is_about_one_testee_that_fails() -> None:
    with pytest.raises(UsageError, match="a report is about one testee"):
        invoke("report-issue", "--testee", "reference", "--testee", "plain", "--rule", "SEG-BAT-003")
    with pytest.raises(UsageError, match="reference fails no case of SEG-BAT-005; the failing rules are none"):
        invoke("report-issue", "--testee", "reference", "--rule", "SEG-BAT-005")


KEPT = outcomes(read_lines(RESULTS))
NEWEST = [outcome for outcome in KEPT if is_newest(outcome)]
MAIN_DEFECTS = {
    "aiokafka 0.14.0": "does not check the magic of a batch",
    "franz-go 1.22.2": "does not check the records count of a batch",
    "kafka-go 0.4.51": "gets the missing timestamp of magic 0 wrong",
    "kafka-protocol 0.18.0": "gets the timestamps of records under LogAppendTime wrong",
    "kafka-python 3.0.12": "does not check the magic of a batch",
    "kafka-python-wire 2.1.1": "does not check the CRC of a batch",
    "kafkajs 2.2.4": "does not check the CRC of a batch",
    "librdkafka 2.16.0": "asks for one offset again and again because of the smallest size of an entry",
    "platformatic-kafka-wire 2.12.1": "does not check the CRC of a batch",
    "rskafka 0.6.0": "refuses valid bytes because of null and empty keys, values and headers",
    "sarama 1.61.1": "does not check the magic of a batch",
}
"""What each library does wrong first of all, by hand: kafka-python's release notes of 2.1.2 name the CRC of 2.1.1."""


def test_the_reports_are_those_of_the_kept_results() -> None:
    files = written(read_lines(RESULTS), CASES)
    assert sorted(files) == sorted(path.name for path in REPORTS.glob("*.md"))
    again = "PYTHONPATH=conformance python -m authoring.write_reports"
    assert [name for name, text in files.items() if (REPORTS / name).read_text(encoding="utf-8") != text] == [], again
    assert len(files) - 1 == sum(len(first_causes(outcome, CASES)) for outcome in NEWEST) >= 20


def test_the_main_defect_of_each_library_stands_in_its_first_line() -> None:
    lines = {f"{outcome.name} {outcome.version}": first_line_of(outcome, CASES) for outcome in KEPT}
    said = {name: line.removeprefix(f"{name} ").partition(" (SEG-")[0] for name, line in lines.items()}
    assert said == MAIN_DEFECTS
    libraries = {outcome.listed.adapter.homepage for outcome in KEPT if outcome.listed.adapter is not None}
    assert len(libraries) >= 10


@pytest.mark.parametrize("outcome", NEWEST, ids=lambda outcome: outcome.name)
def test_the_kept_results_are_those_of_the_known_failures(outcome: Outcome) -> None:
    known = read_known(outcome.name, outcome.version).entries
    failing = [result for result in outcome.results if result.raw not in FINE]
    assert len(failing) > 10
    assert {result.case: result.raw for result in failing} == {
        result.case: known[result.case].verdict for result in failing
    }
    passing = [result.case for result in outcome.results if result.raw is Verdict.PASS]
    assert not set(passing) & set(known)


def test_no_report_has_the_bytes_of_a_crash() -> None:
    deadly = {result.case for outcome in KEPT for result in outcome.results if result.raw in DEADLY}
    texts = [path.read_text(encoding="utf-8") for path in REPORTS.glob("*.md")]
    assert deadly
    assert [case for case in deadly if any(f"`{case}`" in text for text in texts)] == []
    lines = [line for line in read_lines(RESULTS) if line.get("raw") in DEADLY]
    assert all("answer" not in line for line in lines)


def test_links_lead_to_the_rule() -> None:
    for rule in subjects():
        path, _, anchor = rule_link(rule).partition("#")
        assert f"[{anchor.upper()}]: " in (REPOSITORY / path).read_text(encoding="utf-8")
    assert not rule_link(TEXT)

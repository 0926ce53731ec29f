"""Runs: order, lists of known failures, taking a run up again, reports, searches."""

from __future__ import annotations

import json
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from base64 import b64decode
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from zipfile import ZipFile
from zlib import decompress

import pytest
from click.testing import CliRunner
from helpers.walking import each_of
from seglog_conformance.cases import load_cases, selected
from seglog_conformance.check import main as check
from seglog_conformance.commands.conform import command
from seglog_conformance.cross import cross
from seglog_conformance.differential import Panel
from seglog_conformance.direct import DirectTestee
from seglog_conformance.export import export
from seglog_conformance.fingerprint import fingerprint
from seglog_conformance.generated import asked_of_log, case_file, logs
from seglog_conformance.judging import Examiner
from seglog_conformance.known import UNREPORTED, Known, KnownFailures, KnownFailuresError, known_text, read_known
from seglog_conformance.reference import Reference
from seglog_conformance.registry import AdapterError, Builder, Listed, UnavailableError, listed, read_adapter
from seglog_conformance.report_badge import badge
from seglog_conformance.report_html import page
from seglog_conformance.report_jsonl import read_results
from seglog_conformance.report_table import not_asked, result_lines
from seglog_conformance.runner import BROKEN, COMPLETE, UNAVAILABLE, Options, Outcome, Runner, ordered
from seglog_conformance.search import Search, wrong_verdict
from seglog_conformance.session import Reports, rewrite_known, run_session
from seglog_conformance.smoke import smoke
from seglog_conformance.verdicts import FAILURES, Result, Verdict

from seglog_format.cli.options import EXAMPLES
from seglog_format.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from seglog_conformance.protocol import Json
    from seglog_conformance.smoke import Smoke
    from seglog_conformance.testee import Testee

EVERY = load_cases()
FEW = selected(EVERY, ["1", "2"])
REFERENCE = Listed("reference")


class Wrong(Reference):
    """The reference with a fault: it loses the last record of a batch of two, and refuses empty keys."""

    def answer(self, request: Json) -> Json:
        answer = super().answer(request)
        for batch in answer.get("batches", ()):
            if len(batch["records"]) == 2:
                batch["records"].pop()
            if any(record["key"] == "" for record in batch["records"]):
                return {"ok": False, "reject": {"class": "other"}, "batches": []}
        return answer


class Wrongs(Builder):
    """Builds wrong references."""

    def testee(self, wanted: Listed) -> Testee:
        return DirectTestee(wanted.name, Wrong() if wanted.name == "wrong" else Reference())


def run(*names: str, known: Path | None = None, **options: Any) -> list[Any]:  # noqa: ANN401 - of Options
    runner = Runner(Wrongs(), FEW, all_cases=FEW, options=Options(known=known or Path("/nowhere"), **options))
    return runner.run([Listed(name) for name in names])


def test_order_is_that_of_the_families_or_of_a_seed() -> None:
    assert ordered(FEW[::-1], None)[0].family == 1
    assert ordered(FEW, 7) == ordered(FEW, 7) != ordered(FEW, 8)
    assert sorted(case.id for case in ordered(FEW, 7)) == sorted(case.id for case in FEW)


def test_testees_side_by_side_come_back_in_order() -> None:
    good, bad, again = run("reference", "wrong", "reference", jobs=3)
    assert [outcome.state for outcome in (good, bad, again)] == [COMPLETE] * 3
    assert good.is_fine
    assert not bad.is_fine
    assert {result.verdict for result in bad.failures} == {Verdict.SILENT, Verdict.REJECTS_VALID}
    assert [result.case for result in good.results] == [case.id for case in ordered(FEW, None)]


def test_a_list_of_known_failures_makes_a_run_fine_and_is_strict(tmp_path: Path) -> None:
    (first,) = run("wrong", smoke=False)
    written = rewrite_known([first], FEW, tmp_path)
    assert written == [tmp_path / "wrong.toml"]
    (second,) = run("wrong", known=tmp_path, smoke=False)
    assert second.is_fine
    assert {result.label for result in second.results} == {"PASS", "XFAIL(SILENT)", "XFAIL(REJECTS-VALID)"}
    assert rewrite_known([second], FEW, tmp_path) == []

    text = written[0].read_text(encoding="utf-8")
    written[0].write_text(text.replace('"SILENT"', '"CRASH"', 1), encoding="utf-8")
    (other_verdict,) = run("wrong", known=tmp_path, smoke=False)
    assert [result.verdict for result in other_verdict.failures] == [Verdict.SILENT]

    good = next(result.case for result in first.results if result.verdict is Verdict.PASS)
    extra = (
        f'\n[[failure]]\ncase = "{good}"\nverdict = "HANG"\n\n[[failure]]\ncase = "gone/for-good"\nverdict = "HANG"\n'
    )
    written[0].write_text(text + extra, encoding="utf-8")
    (passes,) = run("wrong", known=tmp_path, smoke=False)
    assert [(result.case, result.verdict) for result in passes.failures] == [(good, Verdict.XPASS)]
    assert passes.unused == ["gone/for-good"]


def test_a_directory_of_known_failures_that_is_missing_is_wrong_usage_unless_it_is_to_be_made(tmp_path: Path) -> None:
    arguments = ["run", "--testee", "reference", "--family", "1", "--known", str(tmp_path / "lists")]
    done = CliRunner().invoke(command, arguments)
    assert isinstance(done.exception, UsageError)
    assert "--update-known makes it" in str(done.exception)
    assert invoke(*arguments, "--update-known")[0] == 0


def test_an_unknown_family_is_answered_with_those_that_look_alike_or_all() -> None:
    for text, answer in (
        ("compressed", "no family 'compressed'; is it "),
        ("nosuch", "the families are plain-batches, "),
    ):
        done = CliRunner().invoke(command, ["list", "--family", text])
        assert isinstance(done.exception, UsageError)
        assert answer in str(done.exception)


def test_reasons_survive_a_rewrite(tmp_path: Path) -> None:
    (first,) = run("wrong", smoke=False)
    case = first.failures[0].case
    known = Known(case, Verdict.CRASH, 'it says "no"\n', "https://example.org/1", "withheld")
    (tmp_path / "wrong.toml").write_text(known_text(KnownFailures("wrong", first.version, {case: known})))
    assert read_known("wrong", first.version, tmp_path).entries == {case: known}
    (second,) = run("wrong", known=tmp_path, smoke=False)
    rewrite_known([second], FEW, tmp_path)
    kept = read_known("wrong", first.version, tmp_path).entries[case]
    assert kept == replace(known, verdict=first.failures[0].raw, difference=first.failures[0].fingerprint)


def test_a_list_is_about_one_version(tmp_path: Path) -> None:
    (tmp_path / "x.toml").write_text(
        'implementation = "x"\nversion = "1"\n[[failure]]\ncase = "a/b"\nverdict = "HANG"\n'
    )
    assert read_known("x", "1", tmp_path).entries
    assert not read_known("x", "2", tmp_path).entries
    (tmp_path / "y.toml").write_text('implementation = "x"\nversion = "1"\n')
    with pytest.raises(KnownFailuresError, match="another implementation"):
        read_known("y", "1", tmp_path)


def session(tmp_path: Path, *, resumes: bool = False, reported: list[str] | None = None) -> list[Any]:
    reports = Reports(jsonl=tmp_path / "r.jsonl", resumes=resumes, junit=tmp_path / "r.xml", html=tmp_path / "r.html")
    return run_session(
        Wrongs(),
        [REFERENCE, Listed("wrong")],
        FEW,
        all_cases=FEW,
        options=Options(known=tmp_path, smoke=False),
        reports=reports,
        on_result=lambda outcome, result: (
            reported.append(f"{outcome.name} {result.case}") if reported is not None else None
        ),
    )


def data_of(path: Path) -> Json:
    text = path.read_text(encoding="utf-8").partition('type="text/plain">')[2].partition("</script>")[0]
    content: Json = json.loads(decompress(b64decode(text)))
    return content


def test_reports(tmp_path: Path) -> None:
    reported: list[str] = []
    outcomes = session(tmp_path, reported=reported)
    lines = [json.loads(line) for line in (tmp_path / "r.jsonl").read_text(encoding="utf-8").splitlines()]
    assert len(reported) == 2 * len(FEW)
    assert lines[0]["type"] == "run"
    assert len(lines[0]["casesSha256"]) == 64
    assert [line["testee"] for line in lines[-2:]] == ["reference", "wrong"]
    failed = {line["case"] for line in lines if line.get("verdict") not in {None, "PASS"}}
    assert failed == {result.case for result in outcomes[1].failures}

    suites = ET.parse(tmp_path / "r.xml").getroot()  # noqa: S314 - our own file
    assert [suite.get("failures") for suite in suites] == ["0", str(len(failed))]
    assert [suite.get("tests") for suite in suites] == [str(len(FEW))] * 2

    content = data_of(tmp_path / "r.html")
    assert [testee["name"] for testee in content["testees"]] == ["reference", "wrong"]
    shown = content["cases"][0]
    assert content["words"][shown["blocks"][0]["fields"][1][0]] == "base_offset"
    assert "http" not in (tmp_path / "r.html").read_text(encoding="utf-8").partition("<script")[0]


def test_a_run_is_taken_up_again(tmp_path: Path) -> None:
    session(tmp_path)
    whole = (tmp_path / "r.jsonl").read_text(encoding="utf-8")
    cut = whole[: len(whole) // 2]
    (tmp_path / "r.jsonl").write_text(cut, encoding="utf-8")
    earlier = read_results(tmp_path / "r.jsonl")
    assert 0 < len(earlier) < 2 * len(FEW)
    session(tmp_path, resumes=True)
    assert not (tmp_path / "r.jsonl.earlier").exists()

    def verdicts(text: str) -> list[tuple[str, str, str]]:
        lines = [json.loads(line) for line in text.splitlines()]
        return [(line["testee"], line["case"], line["verdict"]) for line in lines if line["type"] == "result"]

    assert verdicts((tmp_path / "r.jsonl").read_text(encoding="utf-8")) == verdicts(whole)


def test_what_is_withheld_shows_its_verdict_and_no_bytes(tmp_path: Path) -> None:
    (first,) = run("wrong", smoke=False)
    case = first.failures[0].case
    entry = Known(case, first.failures[0].raw, "", "", "withheld")
    (tmp_path / "wrong.toml").write_text(known_text(KnownFailures("wrong", first.version, {case: entry})))
    session(tmp_path)
    content = data_of(tmp_path / "r.html")
    shown = next(one for one in content["cases"] if one["id"] == case)
    result = next(one for one in content["testees"][1]["results"] if one["case"] == case)
    assert "blocks" not in shown
    assert set(result) == {"case", "verdict", "label", "raw", "withheld"}
    line = next(
        json.loads(line)
        for line in (tmp_path / "r.jsonl").read_text(encoding="utf-8").splitlines()
        if f'"{case}"' in line and '"wrong"' in line
    )
    assert "differences" not in line
    assert "answer" not in line


def adapter(tmp_path: Path, **fields: object) -> Path:
    stored = {"name": "mine", "language": "Python", "versions": ["1", "0.9"], "run": ["{python}", "{adapter}/a.py"]}
    lines = [f"{name} = {json.dumps(value)}" for name, value in {**stored, **fields}.items()]
    directory = tmp_path / "mine"
    directory.mkdir(exist_ok=True)
    (directory / "adapter.toml").write_text("\n".join(lines), encoding="utf-8")
    code = "from seglog_conformance.reference.__main__ import Reference, serve\nserve(Reference())\n"
    (directory / "a.py").write_text(code, encoding="utf-8")
    return directory


def test_an_adapter_is_built_once_and_run(tmp_path: Path) -> None:
    touch = [sys.executable, "-c", "open('count', 'a').write('x')"]
    directory = adapter(tmp_path, build=[touch])
    wanted = listed(str(directory))
    builder = Builder(tmp_path / "build", strict=True)
    for _ in range(2):
        outcome = Runner(builder, FEW[:3], options=Options(known=tmp_path)).run_one(wanted)
        assert (outcome.state, [result.label for result in outcome.results]) == (COMPLETE, ["PASS"] * 3)
    assert (tmp_path / "build" / "mine-1" / "count").read_text(encoding="ascii") == "x"
    assert listed(f"{directory}@0.9").version == "0.9"


def test_what_cannot_be_built_or_run_is_told_apart(tmp_path: Path) -> None:
    builder = Builder(tmp_path / "build")
    missing = listed(str(adapter(tmp_path, toolchain=["no-such-compiler"])))
    with pytest.raises(UnavailableError, match="needs no-such-compiler"):
        builder.testee(missing)
    assert Runner(builder, FEW[:1]).run_one(missing).state == UNAVAILABLE
    fails = listed(str(adapter(tmp_path, build=[[sys.executable, "-c", "raise SystemExit(3)"]])))
    with pytest.raises(AdapterError, match="ends with 3"):
        builder.testee(fails)
    silent = listed(str(adapter(tmp_path, run=[sys.executable, "-c", "print('hello')"])))
    outcome = Runner(builder, FEW[:1]).run_one(silent)
    assert outcome.state == BROKEN
    assert "not JSON: hello" in outcome.reason
    with pytest.raises(AdapterError, match="there is no adapter"):
        listed("no-such-adapter")
    with pytest.raises(AdapterError, match="colour"):
        read_adapter(adapter(tmp_path, colour="red"))


def test_smoke_tells_a_broken_adapter_from_a_wrong_implementation() -> None:
    class Relative(Reference):
        def answer(self, request: Json) -> Json:
            answer = super().answer(request)
            for batch in answer.get("batches", ()):
                batch["records"] = [{**record, "offset": "77"} for record in batch["records"]]
            return answer

    def smoked(answering: Reference, known: KnownFailures | None = None) -> tuple[bool, str]:
        examiner = Examiner(DirectTestee("x", answering))
        examiner.start()
        found = smoke(examiner, EVERY, known)
        return found.is_broken, found.hint

    assert smoked(Reference()) == (False, "")
    is_broken, hint = smoked(Relative())
    assert is_broken
    assert "are they absolute?" in hint
    assert "--no-smoke" in hint
    differing = {case.id: Known(case.id, Verdict.DIFFER) for case in EVERY if case.op == "decode"}
    assert smoked(Relative(), KnownFailures("x", entries=differing)) == (False, ""), "somebody has looked"
    is_broken, hint = smoked(Wrong())
    assert not is_broken or "records are missing" in hint


class Only(Reference):
    """The reference with one operation, whose answers can be changed."""

    def __init__(self, op: str, change: Callable[[Json], Json] = lambda answer: answer) -> None:
        super().__init__()
        self.op, self.change = op, change

    def hello(self) -> Json:
        return {**super().hello(), "ops": [self.op]}

    def answer(self, request: Json) -> Json:
        return self.change(super().answer(request))


EVERY_OP = sorted({case.op for case in EVERY})


def smoke_of(answering: Reference) -> Smoke:
    examiner = Examiner(DirectTestee("only", answering))
    examiner.start()
    return smoke(examiner, EVERY)


@each_of("op", EVERY_OP)
def test_smoke_asks_each_operation_that_an_adapter_lists(op: str) -> None:
    found = smoke_of(Only(op))
    assert (found.is_broken, found.hint) == (False, "")
    assert {result.verdict for result in found.results} == {Verdict.PASS}
    ops = {case.id: (case.op, case.result) for case in EVERY}
    assert {ops[result.case][0] for result in found.results} == {op}
    there = {result for one, result in ops.values() if one == op} & {"valid", "invalid"}
    assert {ops[result.case][1] for result in found.results} >= (there if op != "decode" else {"valid"})


@each_of("op", EVERY_OP)
def test_smoke_calls_an_operation_broken_that_refuses_everything(op: str) -> None:
    def refused(answer: Json) -> Json:
        return {**answer, "ok": False, "reject": {"class": "other", "message": "no"}, "batches": []}

    found = smoke_of(Only(op, refused))
    assert found.is_broken
    assert "--no-smoke" in found.hint
    assert op == "decode" or op in found.hint


def examiner_of(answering: Reference) -> Examiner:
    examiner = Examiner(DirectTestee("x", answering))
    examiner.start()
    return examiner


@pytest.mark.parametrize("is_mutated", [False, True])
def test_a_search_finds_nothing_wrong_with_the_reference(*, is_mutated: bool) -> None:
    search = Search(
        wrong_verdict(examiner_of(Reference()).examine), logs(is_mutated=is_mutated), asked_of_log, examples=60
    )
    assert search.run() == []


def other_field(answer: Json) -> None:
    answer["batches"][0]["records"][0]["value"] = "00ff"


def other_order(answer: Json) -> None:
    answer["batches"][0]["records"].reverse()


def one_record_less(answer: Json) -> None:
    answer["batches"][-1]["records"].pop()


def one_record_more(answer: Json) -> None:
    answer["batches"][0]["records"].append(answer["batches"][0]["records"][0])


def other_position(answer: Json) -> None:
    answer["batches"][0]["position"] += 1


CHANGES = (other_field, other_order, one_record_less, one_record_more, other_position)


class Departing(Reference):
    """The reference, but for a timestamp that it gets wrong in every first record; and a change beside that."""

    def __init__(self, change: Callable[[Json], None] | None = None, case: str = "") -> None:
        super().__init__()
        self._change, self._case = change, case

    def answer(self, request: Json) -> Json:
        answer = super().answer(request)
        for batch in answer.get("batches", ())[:1]:
            batch["records"][0] |= {"timestamp": "1"}
        if self._change is not None and request.get("case") == self._case:
            self._change(answer)
        return answer


DEPARTS_IN = next(
    case.id for case in FEW if sum(len(one["records"]) for one in case.expect["batches"]) > 2 and not case.smoke
)


@pytest.mark.parametrize("change", CHANGES)
def test_what_is_new_under_a_listed_failure_fails_the_run(change: Callable[[Json], None], tmp_path: Path) -> None:
    class Departings(Builder):
        def __init__(self, answering: Reference) -> None:
            super().__init__()
            self.answering = answering

        def testee(self, wanted: Listed) -> Testee:
            return DirectTestee(wanted.name, self.answering)

    def outcome_of(answering: Reference, known: Path) -> Outcome:
        options = Options(known=known, smoke=False, case_ids=True)
        return Runner(Departings(answering), FEW, all_cases=FEW, options=options).run_one(Listed("departing"))

    rewrite_known([outcome_of(Departing(), Path("/nowhere"))], FEW, tmp_path)
    assert f'issue = "{UNREPORTED}"' in (tmp_path / "departing.toml").read_text()
    assert outcome_of(Departing(), tmp_path).is_fine
    changed = outcome_of(Departing(change, DEPARTS_IN), tmp_path)
    assert [result.case for result in changed.failures] == [DEPARTS_IN]


def test_texts_of_errors_and_orders_that_nobody_keeps_are_no_difference() -> None:
    refused = [{"ok": False, "reject": {"class": "crc", "message": text}, "batches": []} for text in ("a", "b")]
    assert len({fingerprint(one, Verdict.DIFFER, "decode", {}) for one in refused}) == 1
    headers = [[["61", "01"], ["62", "02"]], [["62", "02"], ["61", "01"]]]
    answers = [{"ok": True, "batches": [{"records": [{"headers": one}]}]} for one in headers]
    assert len({fingerprint(one, Verdict.DIFFER, "decode", {"headers": "unordered"}) for one in answers}) == 1
    assert len({fingerprint(one, Verdict.DIFFER, "decode", {}) for one in answers}) == 2
    assert fingerprint(None, Verdict.CRASH, "decode", {}) == ""


def test_the_time_of_a_clock_is_no_difference() -> None:
    def written(timestamp_ms: int) -> Json:
        (batch,) = next(case for case in EVERY if case.id == "encoding/no-timestamp").request["batches"]
        times = dict.fromkeys(("baseTimestamp", "maxTimestamp"), str(timestamp_ms))
        records = [{**record, "timestamp": str(timestamp_ms)} for record in batch["records"]]
        return Reference().answer({"op": "encode", "batches": [{**batch, **times, "records": records}]})

    now_ms = time.time_ns() // 1_000_000
    assert written(now_ms) != written(now_ms - 1000)
    prints = [fingerprint(written(at), Verdict.DIFFER, "encode", {}) for at in (now_ms, now_ms - 1000, 1000, 2000)]
    assert prints[0] == prints[1]
    assert len(set(prints)) == 3


def test_where_a_client_came_to_is_a_difference_and_its_way_where_it_went_wrong() -> None:
    def of(verdict: Verdict, *positions: str, ok: bool = True) -> str:
        return fingerprint({"ok": ok, "batches": [], "positions": list(positions)}, verdict, "decode", {})

    for verdict in (Verdict.SILENT, Verdict.ACCEPTS_INVALID):
        assert of(verdict, "0", "3") == of(verdict, "0", "0", "1", "3") != of(verdict, "0", "4")
        assert of(verdict, "0", ok=False) == of(verdict, "0", "3", ok=False)
    assert of(Verdict.STALL, "0", "3", "3") == of(Verdict.STALL, "0", "3") != of(Verdict.STALL, "3")


class Unchecked(Reference):
    """Delivers whatever the checksum says, and declares that it has none."""

    def hello(self) -> Json:
        hello = super().hello()
        return {**hello, "features": {**hello["features"], "crc": False, "codec": ["none"]}}

    def answer(self, request: Json) -> Json:
        return super().answer({**request, "options": {"crc": False}})


def test_who_never_checks_a_checksum_fails_the_cases_about_them() -> None:
    examiner = examiner_of(Unchecked())
    asked = [case for case in EVERY if case.family_name == "crc" and "codec:zstd" not in case.needs]
    found = [examiner.examine(case) for case in asked if case.result == "invalid" and case.op == "decode"]
    verdicts = {result.raw for result in found if result.raw is not Verdict.SKIP}
    assert len(found) > 40
    assert Verdict.ACCEPTS_INVALID in verdicts
    assert sum(result.raw in FAILURES for result in found) > 40


def test_a_run_says_which_must_cases_were_not_asked_and_why() -> None:
    known = {case.id: case for case in EVERY}
    outcome = Outcome(listed("reference"))
    examiner = examiner_of(Unchecked())
    outcome.results = [examiner.examine(case) for case in EVERY if case.family_name in {"gzip", "zstd", "crc"}]
    (line,) = not_asked(outcome, known)
    count = sum(result.raw is Verdict.SKIP and known[result.case].level == "must" for result in outcome.results)
    assert line.strip().startswith(f"{count} must cases were not asked: ")
    assert "for want of codec:gzip" in line
    failing = next(result for result in outcome.results if result.raw is Verdict.ACCEPTS_INVALID)
    shown = "\n".join(result_lines(failing, known[failing.case]))
    assert known[failing.case].why in shown
    assert f"must, {known[failing.case].requirements[0]}" in shown


def test_a_search_shrinks_to_the_smallest_bytes_and_keeps_them_as_a_case(tmp_path: Path) -> None:
    search = Search(wrong_verdict(examiner_of(Wrong()).examine), logs(), asked_of_log, examples=60, most=2)
    found = search.run()
    assert [one.reported for one in found] != []
    silent = next(one for one in found if one.reported == "SILENT")
    records = [record for batch in silent.case.expect["batches"] for record in batch["records"]]
    assert len(records) <= 3
    assert {(record["timestamp"], record["key"]) for record in records} == {("0", None)}
    directory = tmp_path / "found.json"
    directory.write_text(case_file([one.case for one in found]), encoding="utf-8")
    assert check([str(directory)]) == 0
    verdict = examiner_of(Wrong()).examine(load_cases(directory)[0]).verdict
    assert str(verdict) == found[0].reported


def test_differences_without_an_expectation() -> None:
    panel = Panel([examiner_of(Reference()), examiner_of(Reference()), examiner_of(Wrong())])
    case = next(case for case in FEW if len(case.expect.get("batches", [{}])[0].get("records", ())) == 2)
    assert sorted(map(len, panel.groups(case).values())) == [1, 2]
    found = Search(panel.wrong(), logs(), asked_of_log, examples=40, most=1).run()
    assert len(found) == 1


def test_producers_and_consumers() -> None:
    pairs = list(cross([examiner_of(Reference()), examiner_of(Wrong())], EVERY))
    assert [len(pair.failures) > 0 for pair in pairs] == [False, True, False, True]
    assert all(pair.asked > 10 for pair in pairs)


@pytest.mark.parametrize("name", ["conform list", "conform repro"])
def test_the_examples_of_help_find_their_cases(name: str) -> None:
    status, text = invoke(*EXAMPLES[name].split()[2:])
    assert status == 0
    assert text


def test_badges() -> None:
    good, bad = run("reference", "wrong", smoke=False)
    cases = {case.id: case for case in FEW}
    count = sum(case.level == "must" for case in FEW)
    assert f"{count} of {count} must" in badge(good, cases)
    assert ET.fromstring(badge(bad, cases)).get("role") == "img"  # noqa: S314 - our own text


def test_export(tmp_path: Path) -> None:
    first, second = tmp_path / "a.zip", tmp_path / "b.zip"
    assert export(FEW, first) == export(FEW, second) == len(FEW)
    assert first.read_bytes() == second.read_bytes()
    with ZipFile(first) as archive:
        index = [json.loads(line) for line in archive.read("seglog-vectors/index.jsonl").splitlines()]
        base = f"seglog-vectors/{index[0]['directory']}"
        assert archive.read(f"{base}/input.bin").hex() == FEW[0].request["data"]
        assert json.loads(archive.read(f"{base}/expected.json")) == FEW[0].expect


def invoke(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(command, list(arguments), standalone_mode=False)
    assert done.exception is None, done.exception
    return int(done.return_value or 0), done.stdout


def test_the_command_line(tmp_path: Path) -> None:
    status, text = invoke("run", "--testee", "reference", "--family", "1", "--jsonl", str(tmp_path / "r.jsonl"))
    assert status == 0
    assert "1 plain-batches" in text
    assert (tmp_path / "r.jsonl").is_file()
    status, text = invoke("smoke", "--testee", "reference")
    assert (status, "the adapter works" in text) == (0, True)
    status, text = invoke("list", "--case", FEW[0].id)
    assert text.startswith(FEW[0].id)
    status, text = invoke("list", "--case", FEW[0].id, "--json")
    assert json.loads(text)["id"] == FEW[0].id
    assert invoke("repro", f"  {FEW[0].id}: DIFFER: a line of run") == invoke("repro", FEW[0].id)
    status, text = invoke("repro", FEW[0].id)
    assert [json.loads(line)["op"] for line in text.splitlines()] == ["hello", FEW[0].op]
    status, text = invoke("generate", "--testee", "reference", "--examples", "10")
    assert (status, "0 findings" in text) == (0, True)
    status, text = invoke("differential", "--testee", "reference", "--testee", "reference", "--family", "1")
    assert (status, "0 disagreements" in text) == (0, True)


def test_a_search_leaves_nothing_in_the_current_directory(tmp_path: Path) -> None:
    """At 34cf7111, `conform generate` left `.hypothesis` in the directory in which it was started."""
    words = [sys.executable, "-m", "seglog_format.cli", "conform", "generate", "--testee", "plain", "--examples", "2"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode, "0 findings" in done.stdout) == (0, True), done.stderr
    assert list(tmp_path.iterdir()) == []


def refused(*arguments: str) -> str:
    done = CliRunner().invoke(command, list(arguments), standalone_mode=False)
    assert isinstance(done.exception, UsageError)
    return str(done.exception)


def test_lists_of_an_adapter_are_not_written_into_the_suite(tmp_path: Path) -> None:
    text = refused("run", "--adapter", str(tmp_path), "--update-known")
    assert "name a directory for those of --adapter by --known" in text


@pytest.fixture
def own_adapter(tmp_path: Path) -> Path:
    """Provide an adapter that has to be built."""
    path = tmp_path / "mine" / "adapter.toml"
    path.parent.mkdir()
    path.write_text('name = "mine"\nlanguage = "C"\nversions = ["1"]\nbuild = [["true"]]\nrun = ["cat"]\n')
    return path.parent


def test_repro_prints_the_expected_answer_and_how_to_build(own_adapter: Path, tmp_path: Path) -> None:
    options = ["repro", FEW[0].id, "--build", str(tmp_path / "built")]
    done = CliRunner().invoke(command, [*options, "--adapter", str(own_adapter), "--testee", "kio"])
    assert done.exception is None
    what, expected, *pipes = done.stderr.splitlines()
    assert FEW[0].why in what
    assert json.loads(expected) == FEW[0].expect
    assert [line.partition("(")[2] for line in pipes] == [
        f"build it first: seglog conform run --testee kio --case {FEW[0].id})",
        f"build it first: seglog conform run --adapter {own_adapter} --case {FEW[0].id})",
    ]


def test_repro_of_what_is_built_says_nothing_of_building(own_adapter: Path, tmp_path: Path) -> None:
    builder = Builder(tmp_path / "built")
    builder.testee(listed(str(own_adapter)))
    assert builder.is_built(read_adapter(own_adapter), "1")
    options = ["--build", str(tmp_path / "built"), "--adapter", str(own_adapter)]
    assert "build it first" not in CliRunner().invoke(command, ["repro", FEW[0].id, *options]).stderr
    (own_adapter / "more.c").write_text("")
    assert not builder.is_built(read_adapter(own_adapter), "1")


@pytest.mark.parametrize("family", ["decisions", "compaction-results"])
def test_clocks_and_temporary_directories_are_no_disagreement(family: str) -> None:
    status, text = invoke("differential", "--testee", "reference", "--testee", "plain", "--family", family)
    assert status == 0
    assert "0 disagreements" in text


def test_the_page_of_nothing() -> None:
    assert "<table" in page([], FEW[:1], {})


def test_labels() -> None:
    plain = Result(testee="x", version="1", case="a/b", digest="", verdict=Verdict.PASS, raw=Verdict.PASS)
    assert plain.label == "PASS"
    assert replace(plain, branch="reads").label == "PASS(reads)"
    assert replace(plain, verdict=Verdict.SKIP, detail="codec:zstd").label == "SKIP(codec:zstd)"
    assert replace(plain, verdict=Verdict.XFAIL, raw=Verdict.HANG).label == "XFAIL(HANG)"

"""An implementation is judged by what it does: not by what it looks up, and not by what it refuses."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from seglog_conformance.cases import load_cases, selected
from seglog_conformance.commands.conform import command
from seglog_conformance.direct import DirectTestee
from seglog_conformance.honesty import LEAST, MOST, SHARE, ask_twins, refusal_lines, refused_everything, twin_lines
from seglog_conformance.judging import Examiner
from seglog_conformance.neighbours import may_be_refused, neighbours
from seglog_conformance.reference import Reference
from seglog_conformance.registry import Builder, Listed
from seglog_conformance.report_badge import badge
from seglog_conformance.report_html import content
from seglog_conformance.report_jsonl import testee_line as reported_testee
from seglog_conformance.report_junit import junit
from seglog_conformance.runner import Options, Outcome, Runner
from seglog_conformance.twins import twin
from seglog_conformance.verdicts import FINE, Result, Verdict

from seglog_format.cli.main import FINDINGS
from seglog_format.codec.checksum import crc32c

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from seglog_conformance.cases import Case
    from seglog_conformance.protocol import Json
    from seglog_conformance.serving import Answering
    from seglog_conformance.testee import Testee

EVERY = load_cases()


class One(Builder):
    """Builds one testee that answers in this process."""

    def __init__(self, answering: Answering) -> None:
        super().__init__()
        self.answering = answering

    def testee(self, wanted: Listed) -> Testee:
        return DirectTestee(wanted.name, self.answering)


class Listening(Reference):
    """The reference, which keeps the requests."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[Json] = []

    def answer(self, request: Json) -> Json:
        self.heard.append(request)
        return super().answer(request)


def run(answering: Answering, cases: Sequence[Case], **options: Any) -> Outcome:  # noqa: ANN401 - of Options
    runner = Runner(One(answering), cases, all_cases=EVERY, options=Options(smoke=False, **options))
    return runner.run_one(Listed("one"))


def test_a_request_does_not_name_its_case() -> None:
    valid = [case for case in EVERY if case.result == "valid"]
    cases = [next(case for case in valid if case.op == op) for op in sorted({case.op for case in valid})]
    testee = Listening()
    run(testee, cases)
    bodies = [{"op": case.op, **case.request} for case in cases]
    assert sorted(map(str, [{**request, "seq": 0} for request in testee.heard])) == sorted(
        str({"seq": 0, **body}) for body in bodies
    )


def test_ids_of_cases_are_sent_to_those_who_ask_for_them() -> None:
    testee = Listening()
    run(testee, selected(EVERY, ["1"]), case_ids=True)
    assert [request["case"] for request in testee.heard] == [case.id for case in selected(EVERY, ["1"])]
    done = CliRunner().invoke(command, ["repro", "plain-batches/one-record"])
    assert json.loads(done.stdout.splitlines()[1])["case"] == "plain-batches/one-record"


ADAPTER = """\
import json, sys
from pathlib import Path
for line in sys.stdin:
    request = json.loads(line)
    Path(__file__).with_name("heard").open("a").write(line)
    if request["op"] == "hello":
        answer = {"ok": True, "protocol": 1, "ops": ["decode"], "features": {"magic": [2], "codec": ["none"]},
                  "implementation": {"name": "x", "version": "1", "language": "Python"}}
    elif request["op"] == "stop":
        break
    else:
        answer = {"skip": {"reason": "x"}}
    print(json.dumps({"seq": request["seq"], **answer}), flush=True)
"""
DESCRIPTION = """\
name = "x"
language = "Python"
homepage = "https://example.org"
issues = "https://example.org"
versions = ["1"]
toolchain = []
build = []
run = ["{python}", "{adapter}/adapter.py"]
"""


@pytest.mark.parametrize("options", [[], ["--case-ids"], ["--strict"], ["--strict", "--case-ids"]])
def test_the_command_sends_ids_only_with_an_option(options: list[str], tmp_path: Path) -> None:
    directory = tmp_path / "adapter"
    directory.mkdir()
    (directory / "adapter.py").write_text(ADAPTER)
    (directory / "adapter.toml").write_text(DESCRIPTION)
    arguments = ["run", "--adapter", str(directory), "--family", "1", "--no-smoke", "--build", str(tmp_path / "build")]
    CliRunner().invoke(command, [*arguments, *options])
    heard = [json.loads(line) for line in (directory / "heard").read_text().splitlines()]
    asked = [request for request in heard if request["op"] == "decode"]
    assert asked
    fields = {"seq", "op", "data", "options"} | ({"case"} if "--case-ids" in options else set())
    assert all(set(request) == fields for request in asked)


VALID = [case for case in EVERY if case.result == "valid" and not case.is_summed_up]
OPS = {case.op for case in EVERY}


class Parrot(Reference):
    """Looks the answer up among the cases of the suite, as whoever installs it can."""

    def __init__(self, key: Callable[[Json], str]) -> None:
        super().__init__()
        self.key = key
        self.known = {key({"op": case.op, "case": case.id, **case.request}): case for case in VALID}

    def answer(self, request: Json) -> Json:
        case = self.known.get(self.key(request))
        if case is None:
            return {"ok": False, "reject": {"class": "other"}}
        if case.op == "encode":
            return super().answer(request)  # the bytes that some encoder has made of this very request
        return {"ok": True, **case.expect}


def by_id(request: Json) -> str:
    """Return the id of the case in a request."""
    return str(request.get("case"))


def by_bytes(request: Json) -> str:
    """Return everything that a request is about."""
    return json.dumps({name: value for name, value in request.items() if name not in {"seq", "case"}}, sort_keys=True)


@pytest.fixture(scope="module", params=[by_id, by_bytes])
def parroted(request: pytest.FixtureRequest) -> Outcome:
    return run(Parrot(request.param), VALID, case_ids=True, fresh_seed=7)


def test_a_parrot_answers_by_recognition(parroted: Outcome) -> None:
    right = sum(result.verdict is Verdict.PASS for result in parroted.results)
    assert right > 0.99 * len(VALID), "some cases are about the same bytes, with and without a feature"
    assert set(parroted.twins.recognized) == OPS
    assert all(count.verdict is not Verdict.PASS for op in OPS for _, count in parroted.twins.results[op])
    assert not parroted.is_fine


def test_every_report_says_that_a_parrot_answers_by_recognition(parroted: Outcome) -> None:
    cases = {case.id: case for case in VALID}
    assert "answers by recognition" in badge(parroted, cases)
    line = reported_testee(parroted, cases)
    assert set(line["twins"]["recognized"]) == OPS
    assert line["twins"]["freshSeed"] == 7
    assert not line["isFine"]
    document = junit([parroted], cases)
    assert f'failures="{len(parroted.failures) + len(OPS)}"' in document
    assert "answers by recognition" in document
    (shown,) = content([parroted], VALID, {})["testees"]
    assert shown["twins"][0].startswith("passed twins of passed cases (--fresh-seed 7 asks them again): decode 0 of 12")
    assert "answers by recognition: decode fails 12 of 12 twins" in shown["twins"]


def test_a_parrot_ends_a_run_with_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seglog_conformance.registry.Builder.testee", One(Parrot(by_bytes)).testee)
    arguments = ["run", "--testee", "reference", "--family", "tails", "--fresh-seed", "3"]
    done = CliRunner().invoke(command, arguments, standalone_mode=False)
    assert done.return_value == FINDINGS
    assert "answers by recognition: decode fails" in done.stdout
    assert "--fresh-seed 3 asks them again" in done.stdout
    as_json = CliRunner().invoke(command, [*arguments, "--json"], standalone_mode=False)
    assert as_json.return_value == FINDINGS
    assert "answers by recognition" in as_json.stderr
    assert {json.loads(line)["type"] for line in as_json.stdout.splitlines()} == {"result"}


def passed(case: Case) -> Result:
    return Result(testee="x", version="1", case=case.id, digest="", verdict=Verdict.PASS, raw=Verdict.PASS)


def test_the_reference_does_not_answer_by_recognition() -> None:
    examiner = Examiner(DirectTestee("reference", Reference()))
    twins = ask_twins(11, VALID, list(map(passed, VALID)), examiner.examine)
    assert set(twins.results) == OPS
    assert [twins.failed(op) for op in OPS] == [[]] * len(OPS)
    assert all(LEAST <= len(asked) <= MOST for asked in twins.results.values())
    assert sum(map(len, twins.results.values())) * SHARE <= len(VALID)


def test_a_fresh_seed_asks_the_same_twins_again_and_another_one_others() -> None:
    cases = selected(VALID, ["null-and-empty", "header-order", "timestamps", "tails"])

    def heard(seed: int | None) -> list[Json]:
        testee = Listening()
        run(testee, cases, fresh_seed=seed)
        return [{**request, "seq": 0} for request in testee.heard[len(cases) :]]

    once = heard(5)
    assert LEAST <= len(once) <= len(cases) // SHARE
    assert heard(5) == once
    assert not [one for one in heard(6) if one in once]
    assert heard(None) != heard(None)


def test_a_run_of_few_cases_asks_no_twins() -> None:
    testee = Listening()
    cases = selected(VALID, ["1"])
    outcome = run(testee, cases)
    assert len(testee.heard) == len(cases)
    assert list(twin_lines(outcome.twins)) == []


class Half(Reference):
    """The reference, which fails every second request after some."""

    def __init__(self, after: int, every: int) -> None:
        super().__init__()
        self.count, self.after, self.every = 0, after, every

    def answer(self, request: Json) -> Json:
        self.count += 1
        if self.count > self.after and (self.count - self.after) % self.every == 0:
            return {"ok": False, "reject": {"class": "other"}}
        return super().answer(request)


@pytest.mark.parametrize(("every", "recognized"), [(2, []), (1, ["lookup"])])
def test_half_of_the_twins_may_fail(every: int, recognized: list[str]) -> None:
    cases = [case for case in VALID if case.op == "lookup"][:120]
    examiner = Examiner(DirectTestee("half", Half(len(cases), every)))
    results = [examiner.examine(case) for case in cases]
    twins = ask_twins(1, cases, results, lambda case, _expected: examiner.examine(case))
    assert twins.recognized == recognized
    assert len(twins.failed("lookup")) == MOST // every


@pytest.mark.parametrize("seed", [1, 2])
def test_the_answer_of_a_twin_follows_from_that_of_its_case(seed: int) -> None:
    """No testee is asked for it, and the reference, which knows nothing of twins, comes to the same."""
    examiner = Examiner(DirectTestee("reference", Reference()))
    chosen = [case for case in VALID if case.input_size < 1 << 12][seed::5]
    twins = {case.id: one for case in chosen if (one := twin(case, seed)) is not None}
    assert len(twins) > len(chosen) // 2
    wrong = [
        (name, result.detail) for name, one in twins.items() if (result := examiner.examine(one)).verdict not in FINE
    ]
    assert wrong == []


def test_a_twin_has_the_bytes_that_one_would_write_by_hand() -> None:
    case = next(case for case in EVERY if case.id == "plain-batches/one-record")
    one = twin(case, 1)
    assert one is not None
    (first, second), (moved, last) = case.expect["batches"], one.expect["batches"]
    by = int(moved["baseOffset"]) - int(first["baseOffset"])
    assert int(last["baseOffset"]) - int(second["baseOffset"]) == by > 0
    before, after = (bytes.fromhex(each.request["data"]) for each in (case, one))
    assert len(before) == len(after)
    assert struct.unpack_from(">q", after)[0] == by
    assert struct.unpack_from(">q", after, first["sizeInBytes"])[0] == by + 1
    key, value = (bytes.fromhex(moved["records"][0][name]) for name in ("key", "value"))
    assert (key + value).isalpha()
    assert (key, value) != (b"k", b"v")
    record = before[61:70].replace(b"k", key).replace(b"v", value)
    assert after[61:70] == record
    assert moved["crc"] == crc32c(before[21:61] + record) == struct.unpack_from(">I", after, 17)[0]
    ids = {name: text for name, text in vars(one).items() if case.id in str(text)}
    assert ids == {}, "a parrot by id would find its case"


class Refusing(Reference):
    """The reference, which refuses requests of some kind, or all."""

    def __init__(self, refuses: Callable[[Json], bool] = lambda _: True) -> None:
        super().__init__()
        self.refuses = refuses

    def answer(self, request: Json) -> Json:
        if not self.refuses(request):
            return super().answer(request)
        return {"ok": False, "reject": {"class": "other"}}


def test_every_case_that_may_be_refused_has_a_valid_one_beside_it() -> None:
    beside = neighbours(EVERY)
    assert set(beside) == {case.id for case in EVERY if may_be_refused(case)}
    assert {case.id for case in EVERY if case.result == "invalid"} <= set(beside)
    assert [name for name, found in beside.items() if not found] == []
    known = {case.id: case for case in EVERY}
    for name, found in beside.items():
        assert all(one.result == "valid" and one.op == known[name].op for one in found), name
        assert all(set(one.needs) <= set(known[name].needs) for one in found), name
        assert not may_be_refused(found[0]), name


def test_who_refuses_everything_passes_nothing_and_is_named() -> None:
    cases = [case for case in EVERY if not case.is_summed_up and case.op != "encode"]
    outcome = run(Refusing(), cases)
    passed_cases = [result.case for result in outcome.results if result.verdict is Verdict.PASS]
    assert passed_cases == []
    unproven = {result.case for result in outcome.results if result.verdict is Verdict.UNPROVEN}
    assert unproven == {case.id for case in cases if may_be_refused(case)} & unproven
    assert len(unproven) > 860, "as many cases as a refuser passed"
    assert set(refused_everything(outcome.results, cases)) == OPS - {"encode"}
    assert any("refuses everything: decode refuses all" in line for line in refusal_lines(outcome.results, cases))
    assert "0 of " in badge(outcome, {case.id: case for case in cases})
    assert not outcome.is_fine


def test_what_is_refused_beside_what_is_not_read_does_not_count() -> None:
    """Of a reader without gzip, the refusals of damaged gzip show nothing; the others count."""
    cases = selected(EVERY, ["crc", "gzip", "bad-compression"])
    gzip = {json.dumps(case.request) for case in EVERY if "codec:gzip" in case.needs}

    def has_gzip(request: Json) -> bool:
        return json.dumps({name: request[name] for name in request if name not in {"seq", "op"}}) in gzip

    outcome = run(Refusing(has_gzip), cases)
    needs = {case.id: case.needs for case in cases}
    unproven = {result.case for result in outcome.results if result.verdict is Verdict.UNPROVEN}
    assert unproven == {case.id for case in cases if "codec:gzip" in case.needs and may_be_refused(case)}
    assert len(unproven) > 10
    assert {result.case for result in outcome.results if "codec:gzip" not in needs[result.case]} == {
        result.case for result in outcome.results if result.verdict is Verdict.PASS
    }
    assert list(refusal_lines(outcome.results, cases)) == []
    assert "gzip/by-a-broker" in next(result.detail for result in outcome.results if result.case in unproven)


class WithoutSegmentNames(Reference):
    """The reference, whose adapter skips names of segment files, as that of Kafka's own classes does."""

    def answer(self, request: Json) -> Json:
        if str(request.get("name", "")).endswith((".log", ".index", ".timeindex", ".txnindex", ".snapshot")):
            return {"skip": {"reason": "no names of segment files"}}
        return super().answer(request)


def test_of_what_is_skipped_the_next_case_stands_beside_a_refusal() -> None:
    cases = [case for case in selected(EVERY, ["files/name-directory-*"]) if case.result == "invalid"]
    assert cases
    outcome = run(WithoutSegmentNames(), cases)
    assert {result.verdict for result in outcome.results} == {Verdict.PASS}


def test_the_reference_proves_all_that_it_refuses() -> None:
    cases = [case for case in EVERY if case.result == "invalid" and not case.is_summed_up][::4]
    outcome = run(Reference(), cases)
    skipped = [result.case for result in outcome.results if result.verdict is Verdict.SKIP]
    assert len(skipped) < len(cases) // 20
    assert {result.verdict for result in outcome.results if result.case not in skipped} == {Verdict.PASS}


def test_the_valid_case_beside_is_asked_once_and_only_if_the_case_passes() -> None:
    cases = selected(EVERY, ["crc"])
    testee = Listening()
    outcome = run(testee, [case for case in cases if case.result == "invalid"])
    asked = [json.dumps({**request, "seq": 0}) for request in testee.heard]
    assert len(asked) == len(set(asked))
    beside = {neighbours(EVERY)[result.case][0].id for result in outcome.results}
    assert len(asked) == len(outcome.results) + len(beside)

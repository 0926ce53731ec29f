"""Verdicts have an edition: what a testee of an older Kafka release is asked, and by which answers it is judged."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from authoring.generations import RELEASES, TODAY
from click.testing import CliRunner
from seglog_conformance.cases import Case, every_case
from seglog_conformance.commands.conform import command
from seglog_conformance.judging import Examiner
from seglog_conformance.known import known_path, read_known
from seglog_conformance.protocol import Hello, Implementation, hello_of
from seglog_conformance.registry import Listed
from seglog_conformance.releases import as_of, release_key
from seglog_conformance.report_table import not_asked
from seglog_conformance.runner import Options, Outcome
from seglog_conformance.testee import Allowance, Kind, Reply
from seglog_conformance.verdicts import Verdict

from seglog_format.requirements import requirements

if TYPE_CHECKING:
    from seglog_conformance.protocol import Json

CASES = {case.id: case for case in every_case()}
OLD, LATER, NOW = ({"offset": offset} for offset in ("1", "2", "3"))
CASE = replace(
    CASES["plain-batches/one-record"],
    op="lookup",
    since="0.11",
    needs=(),
    stored_request={},
    stored_expect=NOW,
    older=(
        {"through": "2.8.2", "before": "3.9.1", "expect": OLD},
        {"through": "3.9.1", "before": "4.1.1", "expect": LATER},
    ),
)


def allowed(case: Case | None) -> list[Any]:
    assert case is not None
    return [answer["offset"] for answer in case.stored_expect.get("allowed", [case.stored_expect])]


def test_releases_are_compared_by_their_numbers() -> None:
    assert release_key("3.9") == release_key("3.9.0") < release_key("3.9.1") < release_key("3.10") < release_key("4")
    assert release_key("") < release_key("0.8")
    assert release_key("4.4.0-SNAPSHOT") == release_key("4.4")


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        ("", ["3"]),
        ("0.11", ["1"]),
        ("2.8.2", ["1"]),
        ("3.4", ["1", "2"]),
        ("3.9.1", ["2"]),
        ("4.0", ["2", "3"]),
        ("4.1.1", ["3"]),
        ("5", ["3"]),
    ],
)
def test_a_release_is_judged_by_its_generation_and_between_two_by_either(release: str, expected: list[str]) -> None:
    found = as_of(CASE, release)
    assert allowed(found) == expected
    assert found is not None
    assert found.result == ("acceptable" if len(expected) > 1 else "valid")


def test_a_younger_case_is_not_asked() -> None:
    young = replace(CASE, since="3.1")
    assert as_of(young, "2.8.2") is None
    assert as_of(young, "") is young
    assert allowed(as_of(young, "3.1.0")) == ["1", "2"]


def test_a_refusal_of_an_older_release_is_expected_as_one() -> None:
    case = as_of(CASES["files/metadata-topic-id-version-7"], "2.8.2")
    assert case is not None
    assert case.result == "invalid"
    assert "reject" in case.stored_expect
    today = as_of(CASES["files/metadata-topic-id-version-7"], "")
    assert today is not None
    assert today.result == "valid"


class Finder:
    """Finds what it is made to find, and says which release it implements."""

    name = "finder"

    def __init__(self, found: Json, implements: str = "") -> None:
        self.found = found
        self.implements = implements

    def start(self) -> Hello:
        return Hello(Implementation("finder", "1", "Python", implements=self.implements), ("lookup",), {})

    def ask(self, request: Json, allowance: Allowance) -> Reply:  # noqa: ARG002 - the same answer whatever is allowed
        return Reply(Kind.ANSWER, {"seq": request["seq"], "ok": True, **self.found})

    def close(self) -> None:
        pass


@pytest.mark.parametrize(
    ("said", "given", "found", "verdict"),
    [
        ("2.8", "", OLD, Verdict.PASS),
        ("2.8", "", NOW, Verdict.DIFFER),
        ("", "", OLD, Verdict.DIFFER),
        ("", "", NOW, Verdict.PASS),
        ("", "2.8.2", OLD, Verdict.PASS),
        ("2.8", "4.4", NOW, Verdict.PASS),
        ("2.8", "4.0", LATER, Verdict.PASS),
    ],
)
def test_a_testee_is_judged_as_it_says_or_as_the_command_line_says(
    said: str, given: str, found: Json, verdict: Verdict
) -> None:
    assert Examiner(Finder(found, said), implements=given).examine(CASE).verdict is verdict


def test_what_is_not_asked_is_listed_with_the_release() -> None:
    young = replace(CASE, id="test/young", since="3.1", older=(), level="must")
    result = Examiner(Finder(NOW, "2.8.2")).examine(young)
    assert (result.verdict, result.detail) == (Verdict.SKIP, "since:3.1")
    lines = list(not_asked(Outcome(Listed("finder", "1"), results=[result]), {young.id: young}))
    assert any("1 hold since Kafka 3.1" in line for line in lines)


def test_a_greeting_says_the_release() -> None:
    said = {"name": "x", "version": "1", "language": "C", "implements": "2.8"}
    assert hello_of({"ok": True, "protocol": 1, "implementation": said}).implementation.implements == "2.8"


def test_the_command_line_passes_the_release_on(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {}

    def run_session(*_arguments: object, **options: Options) -> list[object]:
        asked["implements"] = options["options"].implements
        return []

    monkeypatch.setattr("seglog_conformance.session.run_session", run_session)
    arguments = ["run", "--testee", "reference", "--family", "crc", "--implements", "2.8"]
    assert CliRunner().invoke(command, arguments).exit_code == 0
    assert asked == {"implements": "2.8"}


def test_a_case_is_as_young_as_its_requirements_or_as_the_oldest_release_that_passes_it() -> None:
    known = requirements()
    for case in CASES.values():
        youngest = max((known[name].since for name in case.requirements), key=release_key)
        if case.since:  # partitions from a seed are of no release
            assert release_key(case.since) >= release_key(youngest) or case.since in RELEASES, case.id


def test_older_answers_are_in_order_and_end_before_those_of_today() -> None:
    for case in CASES.values():
        steps = [release_key(release) for entry in case.older for release in (entry["through"], entry["before"])]
        assert steps == sorted(steps), case.id
        assert all(release_key(entry["before"]) <= release_key(TODAY) for entry in case.older)
    assert sum(bool(case.older) for case in CASES.values()) > 50


@pytest.mark.parametrize("release", RELEASES)
def test_older_brokers_fail_nothing_that_is_younger_than_they_are(release: str) -> None:
    assert known_path("kafka-storage", release).stem.endswith(release)
    listed = read_known("kafka-storage", release).entries
    assert listed
    for name in listed:
        case = CASES[name]
        assert as_of(case, release) is case, f"{name} is younger than {release}, or has an answer of its age"

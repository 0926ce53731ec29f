"""The requirement trace is whole, and each of its complaints can be provoked."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from typing import TYPE_CHECKING, Final

import pytest
from helpers.support import REPOSITORY
from seglog_conformance.cases import every_case

from proofs.mutants import enforcement
from proofs.mutants.marked_tests import marked_tests
from proofs.planted import readers_faults
from seglog_format.requirements import BrokerMark, Requirement, requirements
from tools import requirement_trace as trace

if TYPE_CHECKING:
    from pathlib import Path

SOURCE = """
@checks("SEG-XXX-001")
def rule(value):
    yield value

def decode(value):
    if value < 0:
        raise CorruptRecordError(at, "SEG-XXX-002", "SEG-XXX-003", expected="0", found=value)
    return value

Entry = Struct("magic" / Checked(Int8sb, positive, "1 or more", "SEG-XXX-004") * Doc("Version.", "SEG-XXX-001"))
"""


def entry(*, level: str = "MUST", check: str = "auto", text: str = "A rule MUST be kept.") -> object:
    mark = BrokerMark("yes", "4.3.0", "bytes")
    requirement = Requirement(
        "SEG-XXX-001", level, ("reader",), "0.8.0", "source", mark, check, text, text, "40-offset-index"
    )
    return trace.Trace(requirement)


def test_the_trace_is_whole() -> None:
    command = [sys.executable, "-m", "tools.trace", "--check", "--quiet"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")


REMOTE: Final = "a remote store and its metadata: no operation of the suite reads them"
BETWEEN: Final = "about the files between two steps of a running program: a testee shows them before and after one"
OPENED: Final = "about a log that a writer opens; a case has its files after it was closed, with the same checkpoint"
TREE: Final = "about what a directory is on its file system: a case has names and bytes alone"
REPORTS: Final = "about what is reported beside a result: answers have no place for it"
PRODUCERS: Final = "entries of snapshots: no operation writes one as its only result"
METADATA: Final = "about a metadata log or its snapshot: a case has a partition of a topic"
PASSES: Final = "the cases of a pass expect its files and its end as a whole, and name the rules on records"
WITHOUT_CASES: Final = {
    **dict.fromkeys([f"SEG-RLM-0{number:02}" for number in range(1, 25)], REMOTE),
    **dict.fromkeys([f"SEG-TIR-0{number:02}" for number in range(1, 10)], REMOTE),
    **dict.fromkeys([f"SEG-RET-0{number}" for number in (18,)], REMOTE),
    "SEG-PDR-028": REMOTE,
    **dict.fromkeys([f"SEG-FLS-0{number}" for number in range(11, 17)], BETWEEN),
    **dict.fromkeys(("SEG-CKP-014",), BETWEEN),
    "SEG-FLS-017": OPENED,
    **dict.fromkeys(("SEG-PDR-022", "SEG-PDR-026", "SEG-PDR-030", "SEG-PDR-031", "SEG-LDR-007", "SEG-LOG-010"), TREE),
    **dict.fromkeys(("SEG-RCV-031", "SEG-PDR-023", "SEG-PDR-025", "SEG-PDR-027"), REPORTS),
    "SEG-CKP-015": REPORTS,
    **dict.fromkeys(("SEG-PSN-012", "SEG-RCV-035"), PRODUCERS),
    **dict.fromkeys(("SEG-PDR-029", "SEG-LDR-008", "SEG-CTL-008", "SEG-CTL-014", "SEG-CTL-015"), METADATA),
    **dict.fromkeys(("SEG-CMP-030", "SEG-CMP-031"), PASSES),
}
"""Rules that no case of the suite names, each with the reason. The list may only shrink."""
MOST_WITHOUT_CASES: Final = 63
"""It rose by two when one rule about links became three, which no case can show, and by one when a sentence about the
recovery point became a rule."""


def test_every_other_rule_has_a_case() -> None:
    named = {rule for case in every_case() for rule in case.requirements}
    assert requirements().keys() - named == WITHOUT_CASES.keys()
    assert len(WITHOUT_CASES) <= MOST_WITHOUT_CASES


def test_parametrized_tests_count() -> None:
    assert any("[" in node for nodes in marked_tests().values() for node in nodes)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({}, "a MUST without a test"),
        ({"tests": ["tests/test_x.py::test_y"]}, "no code refuses"),
        ({"code": ["seglog_format/codec/x.py:f"]}, "no test on bytes is marked"),
    ],
)
def test_gaps_of_a_checked_requirement(change: dict[str, list[str]], complaint: str) -> None:
    found = list(trace.gaps(dataclasses.replace(entry(), **change)))
    assert any(complaint in line for line in found)


def test_behaviour_needs_a_fault() -> None:
    found = list(trace.gaps(dataclasses.replace(entry(check="behaviour"), tests=["tests/test_x.py::test_y"])))
    assert [line.partition(": ")[2] for line in found] == ["check=behaviour, and no fault in tests/faults breaks it"]


def test_what_is_not_checked_says_why() -> None:
    assert list(trace.gaps(entry(check="none"))) == ["SEG-XXX-001: check=none, and its text does not say why"]
    text = "It MUST be kept, and cannot be checked, because no broker keeps it."
    assert list(trace.gaps(entry(check="none", text=text))) == []


WRONG_LEVELS = ("A rule.", "A rule SHOULD be kept.", "A rule MUST be kept, and MAY be broken.")
TWO_DUTIES = "A rule MUST be kept, and MUST be tested."


@pytest.mark.parametrize("text", [*WRONG_LEVELS, TWO_DUTIES])
def test_the_sentence_of_a_rule_says_its_level_once_and_no_other(text: str) -> None:
    assert "SEG-XXX-001: its sentence must say MUST once, and no other level" in list(trace.gaps(entry(text=text)))


@pytest.mark.parametrize("words", [40, 41])
def test_a_rule_has_at_most_40_words(words: int) -> None:
    found = list(trace.gaps(entry(text=" ".join(["It", "MUST", *(words - 2) * ["hold"]]))))
    assert ("SEG-XXX-001: 41 words, and a rule has at most 40" in found) == (words == 41)


@pytest.mark.parametrize("text", ["After that it MUST hold.", "It MUST hold as well.", "It MUST hold. So it does."])
def test_the_sentence_of_a_rule_is_one_and_says_all(text: str) -> None:
    assert "SEG-XXX-001: its sentence is not one, or needs the sentence before it" in list(trace.gaps(entry(text=text)))


def test_sites_of_every_form_are_found(tmp_path: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(enforcement, "REPOSITORY", tmp_path)
    monkeypatch.setattr(enforcement, "PACKAGE", tmp_path)
    (tmp_path / "module.py").write_text(SOURCE, encoding="utf-8")  # type: ignore[operator]
    assert [(site.requirement, site.form, site.scope_path) for site in enforcement.sites()] == [
        ("SEG-XXX-001", "checks", "module.py:rule"),
        ("SEG-XXX-002", "raise", "module.py:decode"),
        ("SEG-XXX-003", "raise", "module.py:decode"),
        ("SEG-XXX-004", "Checked", "module.py:Entry"),
        ("SEG-XXX-001", "Doc", "module.py:Entry"),
    ]


@pytest.mark.parametrize(
    ("requirement", "gone"),
    [("SEG-XXX-001", "yield value"), ("SEG-XXX-002", "raise"), ("SEG-XXX-003", "raise"), ("SEG-XXX-004", "Checked")],
)
def test_disabling_takes_out_just_that_rule(requirement: str, gone: str) -> None:
    text = enforcement.disabled(SOURCE, requirement)
    assert gone not in text
    others = {"yield value", "raise", "Checked"} - {gone}
    assert all(other in text for other in others)


def test_the_root_does_not_come_before_a_broken_copy(pytestconfig: pytest.Config) -> None:
    """Pytest puts `pythonpath` before PYTHONPATH, where trace-kill and the planted faults put their broken copy."""
    assert REPOSITORY not in [(REPOSITORY / path).resolve() for path in pytestconfig.getini("pythonpath")]


def test_a_fault_has_to_fit_exactly_once() -> None:
    fault = enforcement.Fault("SEG-XXX-001", "a.py", "y", find="x < 1", replace="x < 2", listed_in="faults/a.toml")
    assert fault.apply("y = x < 1") == "y = x < 2"
    for text in ("y = x > 1", "y = x < 1 or x < 1", "z = x < 1"):
        with pytest.raises(ValueError, match="occurs"):
            fault.apply(text)


def test_no_planted_fault_is_noticed_for_a_name_that_is_missing(tmp_path: Path) -> None:
    """A `NameError` fails any test: such a fault shows nothing of its rule."""
    for number, fault in enumerate([*enforcement.faults(), *readers_faults()]):
        text = (REPOSITORY / fault.file).read_text(encoding="utf-8")
        (tmp_path / f"{number}.py").write_text(text.replace(fault.find, fault.replace, 1), encoding="utf-8")
    names = [sys.executable, "-m", "ruff", "check", "--isolated", "--quiet", "--select", "F821", str(tmp_path)]
    run = subprocess.run(names, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stdout) == (0, "")

"""What a report says about a cause: a headline for any implementation, and a sentence about its smallest case.

A headline is made from the subject of the rule (`subjects.toml`) and the kind of the verdict; nothing in it is about
one library.
"""

from __future__ import annotations

import tomllib
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Final

from seglog_conformance.verdicts import Verdict
from seglog_format.requirements import requirements

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seglog_conformance.cases import Case
    from seglog_conformance.verdicts import Result

SENTENCES: Final[Mapping[str, str]] = {
    Verdict.DIFFER: "gets {subject} wrong",
    Verdict.ACCEPTS_INVALID: "does not {checks} {subject}",
    Verdict.REJECTS_VALID: "refuses valid {bytes} because of {subject}",
    Verdict.ACCIDENT: "refuses what is wrong with {subject} only by accident",
    Verdict.SILENT: "loses data without an error because of {subject}",
    Verdict.STALL: "asks for one offset again and again because of {subject}",
    Verdict.JUMP: "leaves out or repeats offsets because of {subject}",
    Verdict.CRASH: "ends without an answer because of {subject}",
    Verdict.HANG: "gives no answer in time because of {subject}",
    Verdict.UNDECIDED: "gives no answer in a tenth of the time because of {subject}",
    Verdict.MEMORY: "takes too much memory because of {subject}",
}
OTHER: Final = "fails ({verdict}) because of {subject}"
"""The sentence for any other verdict."""
SWALLOWED: Final = "gives no error for {subject}"
WITHOUT_RULE: Final[Mapping[str, str]] = {
    "text": "decodes keys, values and headers as text: bytes that are no text change",
    "every": "refuses everything that it must accept",
    Verdict.XPASS: "passes cases that the list of known failures names",
    Verdict.ADAPTER_ERROR: "is not judged in some cases, because the adapter fails",
}
"""Headlines of causes that no rule numbers, by the name of the cause."""
FOUND: Final[Mapping[str, str]] = {
    Verdict.REJECTS_VALID: "a refusal: {detail}",
    Verdict.CRASH: "the process ended: {detail}",
    Verdict.HANG: "no answer: {detail}",
}
"""What came, by verdict; for any other verdict, its detail alone."""
WITHOUT_BYTES: Final = frozenset({"decide", "write", "retain", "compact"})


@cache
def subjects() -> dict[str, str]:
    """Return the subject of each rule that a case names first, in a few words."""
    text = resources.files(__package__).joinpath("subjects.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def subject(rule: str) -> str:
    """Return what a rule is about in a few words, for any rule."""
    found = subjects().get(rule)
    known = requirements().get(rule)
    return found or (f"{rule} ({known.title})" if known else rule)


def rule_link(rule: str) -> str:
    """Return where the specification defines a rule, below the root of this project."""
    return f"spec/{requirements()[rule].chapter}.md#{rule.lower()}" if rule in requirements() else ""


def headline(rule: str, verdict: str, op: str, *, is_refusal: bool = False) -> str:
    """Return what an implementation does wrong, in words that follow its name.

    Args:
        rule: id of the broken rule.
        verdict: verdict on most of its cases.
        op: operation.
        is_refusal: whether the cases must be refused.
    """
    about = subject(rule)
    sentence = SENTENCES.get(verdict, OTHER)
    if is_refusal and verdict == Verdict.SILENT:
        sentence = SWALLOWED
    return sentence.format(
        subject=about,
        verdict=verdict,
        checks="check" if about.startswith("the ") else "refuse",
        bytes="requests" if op in WITHOUT_BYTES else "bytes",
    )


def sentence(result: Result, case: Case) -> str:
    """Return what the bytes of a case are, what is expected of them, and what came."""
    return f"{case.why} Expected: {wanted(case, result)}. Found: {found(result)}"


def wanted(case: Case, result: Result) -> str:
    """Return what a case expects, in a few words."""
    if case.result == "invalid":
        return "a refusal"
    if case.result == "undefined":
        return "any answer"
    if result.raw is Verdict.DIFFER and result.differences:
        return result.differences[0].partition(", found ")[0].replace(": expected ", " is ", 1)
    if case.result == "acceptable":
        return f"one of {len(case.expect['allowed'])} answers"
    return "no refusal, and a right answer"


def found(result: Result) -> str:
    """Return what came instead, in a few words; where the bytes are withheld, the verdict alone."""
    if result.disclosure:
        return f"{result.raw} (withheld)"
    if result.raw is Verdict.DIFFER and result.differences:
        return result.differences[0].rpartition(", found ")[2] or "nothing"
    return FOUND.get(result.raw, "{detail}").format(detail=result.detail or result.raw)

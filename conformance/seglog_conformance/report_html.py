"""A matrix of implementations and families as one HTML page, which needs no server and no network.

A cell leads to its cases, and a case to the bytes with their fields, the expected answer, the answer, and the command
that repeats it. The page holds its data as deflated JSON, and inserts text only as text.
"""

from __future__ import annotations

import json
import zlib
from base64 import b64encode
from html import escape
from importlib import resources
from typing import TYPE_CHECKING, Any, Final

from seglog_conformance.annotation import Words, annotated
from seglog_conformance.cases import MissingFixtureError
from seglog_conformance.headlines import rule_link
from seglog_conformance.honesty import twin_lines
from seglog_conformance.runner import COMPLETE
from seglog_conformance.verdicts import DEADLY, Verdict
from seglog_format.requirements import requirements

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from seglog_conformance.cases import Case
    from seglog_conformance.causes import Cause
    from seglog_conformance.protocol import Json
    from seglog_conformance.runner import Outcome
    from seglog_conformance.verdicts import Result

TITLE: Final = "Conformance of implementations of the segmented log format"
MAX_ANSWER: Final = 6000
MAX_STDERR: Final = 1500


def page(outcomes: Sequence[Outcome], cases: Sequence[Case], environment: Json) -> str:
    """Return the whole page as text."""
    template = resources.files(__package__).joinpath("matrix.html").read_text(encoding="utf-8")
    before_title, rest = template.split("$TITLE$")
    before_data, after_data = rest.split("$DATA$")
    return before_title + escape(TITLE) + before_data + packed(content(outcomes, cases, environment)) + after_data


def packed(value: Json) -> str:
    """Return deflated JSON in base64."""
    text = json.dumps(value, separators=(",", ":"))
    return b64encode(zlib.compress(text.encode("ascii"), 9)).decode("ascii")


def content(outcomes: Sequence[Outcome], cases: Sequence[Case], environment: Json) -> Json:
    """Return the data for the page's script."""
    words = Words()
    withheld = withheld_cases(outcomes)
    shown = [_case(case, words, is_withheld=case.id in withheld) for case in cases]
    used = sorted({name for case in cases for name in case.requirements})
    known = requirements()
    return {
        "environment": environment,
        "verdicts": [str(verdict) for verdict in Verdict],
        "families": sorted({(case.family, case.family_name) for case in cases}),
        "flags": {name: flag for case in cases for name, flag in case.families_flags.items()},
        "requirements": {name: [known[name].level, known[name].text] for name in used if name in known},
        "cases": shown,
        "words": words.table,
        "testees": [_testee(outcome, {case.id: case for case in cases}) for outcome in outcomes],
    }


def withheld_cases(outcomes: Sequence[Outcome]) -> set[str]:
    """Return ids of cases with unpublished bytes: they crash or hang a program whose authors are not informed yet."""
    return {result.case for outcome in outcomes for result in outcome.results if result.disclosure}


def _case(case: Case, words: Words, *, is_withheld: bool) -> Json:
    shown: Json = {
        "id": case.id,
        "family": case.family,
        "op": case.op,
        "level": case.level,
        "result": case.result,
        "requirements": case.requirements,
        "needs": case.needs,
        "flags": case.flags,
        "why": case.why,
        "since": case.since,
        "source": case.source,
    }
    if is_withheld:
        return {**shown, "withheld": True}
    try:
        request = {name: value for name, value in case.request.items() if name not in {"data", "files"}}
        return {**shown, "blocks": annotated(case, words), "request": request, "expect": _short(case.expect)}
    except MissingFixtureError as error:
        return {**shown, "blocks": [], "expect": str(error)}


def _short(value: Any, most: int = MAX_ANSWER) -> Any:  # noqa: ANN401 - any JSON value
    text = json.dumps(value)
    return value if len(text) <= most else f"{text[:most]}... ({len(text)} characters)"


def _testee(outcome: Outcome, cases: Mapping[str, Case]) -> Json:
    hello = outcome.hello
    said = None if hello is None else hello.implementation
    return {
        "name": outcome.name,
        "version": outcome.version,
        "language": said.language if said else "",
        "homepage": said.homepage if said else "",
        "issues": said.issues if said else "",
        "state": outcome.state,
        "reason": outcome.reason,
        "features": hello.features if hello else {},
        "causes": [_cause(cause) for cause in outcome.causes(cases)],
        "twins": [line.strip() for line in twin_lines(outcome.twins)],
        "leftOut": outcome.scale_note,
        "results": [_result(result) for result in outcome.results] if outcome.state == COMPLETE else [],
    }


def _cause(cause: Cause) -> Json:
    """Return the headline of a cause and its smallest case."""
    rule = rule_link(cause.rule)
    return {
        "headline": f"{cause.headline} ({cause.count})",
        "level": cause.level,
        "case": cause.failed[0].case,
        "rule": rule,
    }


def _result(result: Result) -> Json:
    """Return one result; if its bytes are withheld, only the verdict."""
    shown: Json = {"case": result.case, "verdict": str(result.verdict), "label": result.label}
    if result.raw is not result.verdict:
        shown["raw"] = str(result.raw)
    if result.disclosure:
        return {**shown, "withheld": True}
    if result.verdict is Verdict.PASS:
        return {**shown, "compared": result.compared}
    shown |= {"detail": result.detail, "differences": result.differences, "notes": result.notes}
    if result.answer is not None and result.verdict is not Verdict.SKIP:
        shown["answer"] = _short({name: value for name, value in result.answer.items() if name != "seq"})
    if result.raw in DEADLY or result.raw is Verdict.ADAPTER_ERROR:
        shown["stderr"] = result.stderr[-MAX_STDERR:]
    if result.growth:
        shown["growth"] = result.growth
    return {name: value for name, value in shown.items() if value not in ("", (), None)}

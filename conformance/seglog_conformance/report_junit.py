"""Results as JUnit XML, which build servers display."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final
from xml.etree import ElementTree as ET

from seglog_conformance.runner import COMPLETE, UNAVAILABLE
from seglog_conformance.verdicts import FINE, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from seglog_conformance.cases import Case
    from seglog_conformance.runner import Outcome
    from seglog_conformance.verdicts import Result

ERRORS: Final = frozenset({Verdict.CRASH, Verdict.HANG, Verdict.UNDECIDED, Verdict.MEMORY, Verdict.ADAPTER_ERROR})


def junit(outcomes: Iterable[Outcome], cases: Mapping[str, Case]) -> str:
    """Return a report: a suite for each testee, a test case for each case."""
    root = ET.Element("testsuites", name="seglog conform")
    for outcome in outcomes:
        _suite(root, outcome, cases)
    ET.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + ET.tostring(root, encoding="unicode") + "\n"


def _suite(root: ET.Element, outcome: Outcome, cases: Mapping[str, Case]) -> None:
    results = outcome.results
    suite = ET.SubElement(
        root,
        "testsuite",
        name=f"{outcome.name} {outcome.version}".rstrip(),
        tests=str(max(len(results), 1)),
        skipped=str(sum(_is_skipped(result) for result in results) + (outcome.state == UNAVAILABLE)),
        errors=str(
            sum(result.verdict in ERRORS for result in results) + (outcome.state not in {COMPLETE, UNAVAILABLE})
        ),
        failures=str(
            sum(result.verdict not in FINE | ERRORS for result in results)
            + len(outcome.unused)
            + len(outcome.twins.recognized)
        ),
        time=f"{sum(result.seconds for result in results):.3f}",
    )
    if outcome.state != COMPLETE:
        case = ET.SubElement(suite, "testcase", classname=outcome.name, name="adapter")
        kind = "skipped" if outcome.state == UNAVAILABLE else "error"
        ET.SubElement(case, kind, message=_clean(outcome.reason))
    found = outcome.causes(cases) if outcome.state == COMPLETE else []
    if found:
        properties = ET.SubElement(suite, "properties")
        for cause in found:
            ET.SubElement(properties, "property", name="cause", value=_clean(f"{cause.headline} ({cause.count})"))
    headlines = {result.case: f"{cause.headline} ({cause.rule})" for cause in found for result in cause.failed}
    for result in results:
        _case(suite, result, cases[result.case], headlines.get(result.case, ""))
    for name in outcome.unused:
        case = ET.SubElement(suite, "testcase", classname=f"{outcome.name}.known-failures", name=name)
        ET.SubElement(case, "failure", message="this line of the list of known failures is of no use")
    for op in outcome.twins.recognized:
        case = ET.SubElement(suite, "testcase", classname=f"{outcome.name}.twins", name=op)
        message = f"answers by recognition: most twins of passed cases fail, seed {outcome.twins.seed}"
        ET.SubElement(case, "failure", message=message)


def _is_skipped(result: Result) -> bool:
    return result.verdict in {Verdict.SKIP, Verdict.UNPROVEN, Verdict.XFAIL}


def _case(suite: ET.Element, result: Result, case: Case, headline: str) -> None:
    element = ET.SubElement(
        suite,
        "testcase",
        classname=f"{result.testee}.{case.family_name}",
        name=result.case,
        time=f"{result.seconds:.3f}",
    )
    if result.verdict is Verdict.PASS:
        return
    kind = "skipped" if _is_skipped(result) else "error" if result.verdict in ERRORS else "failure"
    detail = "" if result.disclosure else result.detail
    child = ET.SubElement(element, kind, message=_clean(": ".join(filter(None, (headline, result.label, detail)))))
    if kind != "skipped" and not result.disclosure:
        reported = [*result.differences, f"requirements: {', '.join(case.requirements)}", case.why, result.stderr]
        child.text = _clean("\n".join(line for line in reported if line))


def _clean(text: str) -> str:
    """Return a text without characters that XML does not allow."""
    return "".join(one if one in "\t\n" or one.isprintable() else "�" for one in text)

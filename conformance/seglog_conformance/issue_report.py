"""A report about one cause, in Markdown, ready to be filed with the maintainers of an implementation.

Everything in it follows from the cause, its smallest case, the rule and the adapter; nothing is written by hand.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from seglog_conformance.bugs import client_of, read_lines
from seglog_conformance.headlines import found, rule_link, wanted
from seglog_conformance.index_entries import entries_of
from seglog_conformance.issue_programs import call_program, client_program, program
from seglog_conformance.known import read_known
from seglog_conformance.protocol import Implementation
from seglog_conformance.report_table import testee_option
from seglog_conformance.verdicts import DEADLY, Verdict
from seglog_format.requirements import requirements

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seglog_conformance.cases import Case
    from seglog_conformance.causes import Cause
    from seglog_conformance.protocol import Json
    from seglog_conformance.runner import Outcome
    from seglog_conformance.verdicts import Result

MAX_BYTES: Final = 4096
"""Largest number of bytes in a report; larger ones are named by their size, and the command that prints them."""
MAX_ANSWER: Final = 1500
"""Largest number of characters of an answer."""
MAX_CASES: Final = 12
MAX_DIFFERENCES: Final = 4
WITHHELD: Final = "withheld"
ASKED: Final = re.compile(r"(?P<who>kafka-\w+ [\d.]+) (?P<what>agrees|departs|survives)(?P<how>[^;]*)")
RECORDED: Final = re.compile(r"recorded from (kafka-\w+ [\d.]+)")
READS: Final[Mapping[str, str]] = {
    "decode": "reads record batches",
    "encode": "writes record batches",
    "validate": "appends a record batch to a log",
    "parse": "reads this file or name",
    "index": "builds the indexes of a segment",
    "read": "reads records from a partition directory",
    "lookup": "looks up an offset or a timestamp",
    "recover": "recovers a partition directory",
    "truncate": "cuts a partition directory at an offset",
    "retain": "deletes old segments of a partition directory",
    "compact": "compacts a partition directory",
    "decide": "decides on the segments of a partition",
    "write": "appends to a log in these steps",
}
CHANGES: Final[Mapping[str, str]] = {
    Verdict.ACCEPTS_INVALID: "Refuse input that breaks this rule, before anything of it is handed out",
    Verdict.REJECTS_VALID: "Accept input that keeps this rule",
    Verdict.ACCIDENT: "Check this before it is used, and refuse it by an error of the library",
    Verdict.SILENT: "Report an error where data cannot be delivered, instead of going on without it",
    Verdict.DIFFER: "Answer as this rule says",
    Verdict.STALL: "Go on after the offset that is asked for again and again, or give the error to the caller",
    Verdict.JUMP: "Ask next for the offset after the last delivered one, or give the error to the caller",
    Verdict.CRASH: "Give the error to the caller, instead of ending the process",
    Verdict.HANG: "Check counts and lengths against the bytes that are there, before any loop over them",
    Verdict.UNDECIDED: "Check counts and lengths against the bytes that are there, before any loop over them",
    Verdict.MEMORY: "Check counts and lengths against the bytes that are there, before memory is taken for them",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """Whom a report is about.

    Attributes:
        implementation: the implementation, as its adapter greets.
        testee: options that name the adapter on a command line, such as ``--testee sarama``.
        lines: calls of the library by operation, and ``imports``, as its adapter has them.
        client: program that reads a served log with a whole client of the library; empty if there is none.
    """

    implementation: Implementation
    testee: str
    lines: Mapping[str, str] = field(default_factory=dict)
    client: str = ""


def subject_of(outcome: Outcome) -> Subject:
    """Return whom a report about an outcome is about, with the lines of its adapter."""
    adapter = outcome.listed.adapter
    title, language = (adapter.title, adapter.language) if adapter is not None else (outcome.name, "")
    return Subject(
        implementation=outcome.hello.implementation
        if outcome.hello
        else Implementation(title, outcome.version, language),
        testee=testee_option(outcome),
        lines=read_lines(adapter) if adapter is not None else {},
        client=client_of(adapter) if adapter is not None else "",
    )


def unlisted(outcome: Outcome) -> Outcome:
    """Return an outcome that a list of known failures excuses no longer; what the list withholds stays withheld."""
    entries = read_known(outcome.name, outcome.version).entries
    withheld = {case: known.disclosure for case, known in entries.items()}
    results = [
        replace(result, verdict=result.raw, disclosure=withheld.get(result.case, "")) for result in outcome.results
    ]
    return replace(outcome, results=results)


def issue_report(cause: Cause, cases: Mapping[str, Case], about: Subject, *, withholds: bool = False) -> str:
    """Return a report in Markdown.

    Args:
        cause: cause of the failures.
        cases: cases by id.
        about: the implementation.
        withholds: whether to leave out the bytes and steps of crashes, hangs and excesses of memory.
    """
    result = cause.failed[0]
    is_withheld = bool(result.disclosure) or (withholds and any(one.raw in DEADLY for one in cause.failed[:1]))
    case = cases[result.case]
    said = about.implementation
    parts = [
        f"# {said.name} {said.version} {cause.headline}",
        *_what_happens(cause, case, result, is_withheld=is_withheld),
        *_rule(cause),
        *(["## Bytes and steps", WITHHELD] if is_withheld else _steps(cause, case, result, about)),
        "## What Kafka answers",
        kafka_answer(case),
        "## What to change",
        _change(cause, result),
        *_cases(cause, withholds=withholds or is_withheld),
    ]
    return "\n\n".join(parts) + "\n"


def _what_happens(cause: Cause, case: Case, result: Result, *, is_withheld: bool) -> Iterator[str]:
    yield (
        f"{len(cause.failed)} of {cause.asked} cases of the conformance suite of seglog-format about"
        f" {', '.join(cause.rules[:MAX_CASES])} fail: " + _counted(cause) + "."
    )
    yield "## What happens"
    if is_withheld:
        yield f"- Input: {WITHHELD}\n- Expected: {wanted(case, result)}\n- Found: {result.raw} ({WITHHELD})"
    else:
        others = "".join(f"\n- Also {one}" for one in result.differences[1:MAX_DIFFERENCES])
        yield f"- Input: {case.why}\n- Expected: {wanted(case, result)}\n- Found: {found(result)}{others}"


def _counted(cause: Cause) -> str:
    return ", ".join(f"{count} {verdict}" for verdict, count in cause.verdicts.most_common())


def _rule(cause: Cause) -> Iterator[str]:
    rule = requirements().get(cause.rule)
    yield "## The rule"
    yield f"[{cause.rule}]({rule_link(cause.rule)}), {rule.level}:" if rule else cause.rule
    if rule:
        yield f"> {rule.text}"
    if cause.departure:
        yield f"Kafka departs from it: {cause.departure} in `spec/C-departures.md`."


def _steps(cause: Cause, case: Case, result: Result, about: Subject) -> Iterator[str]:
    yield "## Bytes"
    data = _data(case)
    yield from _listed(case, data)
    yield f"## In {about.implementation.language or 'a few lines'}"
    if case.input_size > MAX_BYTES:
        yield f"Print the whole request: `seglog conform repro {case.id} {about.testee}`"
    else:
        yield _lines(case, data, about)
    yield f"Or by the suite: `seglog conform run {about.testee} --case {case.id} --no-smoke`"
    if result.answer:
        given = {name: value for name, value in result.answer.items() if name != "seq"}
        yield f"It answers:\n\n```json\n{_short(given)}\n```"
    if cause.failed[0].stderr and result.raw in DEADLY:
        yield f"```text\n{result.stderr[-MAX_ANSWER:]}\n```"


def _lines(case: Case, data: bytes | None, about: Subject) -> str:
    """Return about ten lines that give bytes to the library: its calls, else a whole client, else a marked place."""
    calls = about.lines.get(case.op, "")
    what = READS.get(case.op, f"does what the operation {case.op} of the suite asks for")
    if data is None:
        given = case.request.get("files") or {}
        files = {name: bytes.fromhex(text) for name, text in given.items() if text is not None}
        return call_program(about.implementation.language, files, what=what, calls=calls)
    if not calls and about.client and case.op == "decode":
        return client_program(about.implementation.language, about.client)
    return program(
        about.implementation.language,
        data,
        what=what,
        calls=calls,
        imports=about.lines.get("imports", "") if calls else "",
    )


def _data(case: Case) -> bytes | None:
    """Return the only bytes of a request; None if there are none or several files."""
    request = case.request
    if request.get("data"):
        return bytes.fromhex(request["data"])
    files = request.get("files") or {}
    return bytes.fromhex(next(iter(files.values()))) if len(files) == 1 else None


def _listed(case: Case, data: bytes | None) -> Iterator[str]:
    """Yield the bytes of a request as hex, of indexes as entries too, and its other parameters."""
    request = case.request
    for name, text in (request.get("files") or {}).items():
        lines = entries_of(name, bytes.fromhex(text))
        shown = "\n".join(lines) if lines else _hex(text)
        yield f"`{name}`, {len(text) // 2} bytes:\n\n```text\n{shown}\n```"
    if request.get("data") and data is not None:
        yield f"{len(data)} bytes:\n\n```text\n{_hex(data.hex())}\n```"
    others = {name: value for name, value in request.items() if name not in {"data", "files"} and value}
    if others:
        yield f"Other parameters:\n\n```json\n{_short(others)}\n```"


def _hex(text: str) -> str:
    """Return lines of 32 bytes with their positions."""
    if len(text) > 2 * MAX_BYTES:
        text = text[: 2 * MAX_BYTES]
    rows = (f"{at // 2:04x}  {text[at : at + 64]}" for at in range(0, len(text), 64))
    return "\n".join(rows) or "(empty)"


def _short(value: Json) -> str:
    text = json.dumps(value)
    return text if len(text) <= MAX_ANSWER else f"{text[:MAX_ANSWER]}... ({len(text)} characters)"


def kafka_answer(case: Case) -> str:
    """Return what Kafka's own classes answered to the bytes of a case, as its source records it."""
    expected = f"```json\n{_short(case.expect)}\n```"
    asked = ASKED.search(case.source)
    recorded = RECORDED.search(case.source)
    if asked and asked["what"] == "departs":
        return (
            f"Kafka's own classes ({asked['who']}) depart from the rule here as well ({asked['how'].strip(' :')});"
            f" appendix C of the specification lists it. Expected by the rule:\n\n{expected}"
        )
    if asked:
        branch = asked["how"].strip(" ()")
        which = f"the allowed answer *{branch}*" if branch else "the expected answer"
        return f"Kafka's own classes ({asked['who']}) were asked about the same bytes, and gave {which}:\n\n{expected}"
    if recorded:
        return f"Kafka's own classes ({recorded[1]}) gave the expected answer:\n\n{expected}"
    return f"The expected answer rests on: {case.source or 'the rule'}.\n\n{expected}"


def _change(cause: Cause, result: Result) -> str:
    rule = requirements().get(cause.rule)
    change = CHANGES.get(result.raw, CHANGES[Verdict.DIFFER])
    return f"{change} ({cause.rule}): {rule.title}" if rule else f"{change}."


def _cases(cause: Cause, *, withholds: bool) -> Iterator[str]:
    shown = [one for one in cause.failed if not (one.disclosure or (withholds and one.raw in DEADLY))]
    yield "## All cases"
    lines = [f"- `{one.case}`: {one.raw}" for one in shown[:MAX_CASES]]
    if len(shown) > MAX_CASES:
        lines.append(f"- and {len(shown) - MAX_CASES} more")
    if len(shown) < len(cause.failed):
        lines.append(f"- {len(cause.failed) - len(shown)} {WITHHELD}")
    yield "\n".join(lines)

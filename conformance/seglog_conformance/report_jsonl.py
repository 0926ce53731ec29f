"""Results as JSON lines: one for the run, one for each testee, one for each case; a run can resume from them.

Each line is written as soon as its result is known: an interrupted run can be resumed.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Final, TextIO

from seglog_conformance.protocol import PROTOCOL_VERSION, Hello, Implementation, Json
from seglog_conformance.verdicts import Result, Verdict
from seglog_format.errors import write_errors

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path

    from seglog_conformance.cases import Case
    from seglog_conformance.causes import Cause
    from seglog_conformance.runner import Outcome

LONGEST_ANSWER: Final = 20_000
"""Longest answer in a report, in characters; for longer ones the case can be repeated."""

NAMES: Final = {field.name: field.name for field in fields(Result)}


def run_line(environment: Json, *, seed: int | None) -> Json:
    """Return the first line of a report."""
    return {"type": "run", "protocol": PROTOCOL_VERSION, "seed": seed, **environment}


def testee_line(outcome: Outcome, cases: Mapping[str, Case]) -> Json:
    """Return the line of a testee, with the state in which its run ended, and the causes of its failures.

    Args:
        outcome: of the run.
        cases: cases of the run, by id.
    """
    hello = outcome.hello
    said = {} if hello is None else {name: getattr(hello.implementation, name) for name in IMPLEMENTATION}
    return {
        "type": "testee",
        "testee": outcome.name,
        "version": outcome.version,
        "state": outcome.state,
        "reason": outcome.reason,
        "implementation": said,
        "ops": [] if hello is None else list(hello.ops),
        "features": {} if hello is None else hello.features,
        "unusedKnownFailures": outcome.unused,
        "leftOut": outcome.left_out,
        "isFine": outcome.is_fine,
        "causes": [cause_line(cause) for cause in outcome.causes(cases)],
        "twins": {
            "freshSeed": outcome.twins.seed,
            "asked": {op: len(asked) for op, asked in outcome.twins.results.items()},
            "failed": {op: [case for case, _ in outcome.twins.failed(op)] for op in outcome.twins.results},
            "recognized": outcome.twins.recognized,
        },
    }


def cause_line(cause: Cause) -> Json:
    """Return a cause with the ids of its cases, the smallest one of the highest level first."""
    return {
        "rule": cause.rule,
        "op": cause.op,
        "level": cause.level,
        "headline": cause.headline,
        "departure": cause.departure,
        "asked": cause.asked,
        "cases": [result.case for result in cause.failed],
    }


IMPLEMENTATION: Final = ("name", "version", "language", "homepage", "issues", "implements")


def result_line(result: Result, *, withholds: bool = True) -> Json:
    """Return the line of a result.

    Args:
        result: result to report.
        withholds: whether to leave out answers whose disclosure is withheld.
    """
    line: Json = {"type": "result", **{name: getattr(result, name) for name in NAMES}}
    line["verdict"], line["raw"] = str(result.verdict), str(result.raw)
    line["label"] = result.label
    for name in ("differences", "compared", "notes"):
        line[name] = list(line[name])
    if withholds and result.disclosure:
        line |= {"answer": None, "detail": "", "differences": [], "stderr": ""}
    elif result.verdict is Verdict.PASS or len(json.dumps(result.answer)) > LONGEST_ANSWER:
        line["answer"] = None
    return {name: value for name, value in line.items() if value not in ("", [], None)}


def read_results(path: Path) -> dict[tuple[str, str, str, str], Result]:
    """Return the results of an earlier run, by testee, version, case and digest; skip a last line cut short."""
    found = {}
    for line in _lines(path):
        if line.get("type") == "result":
            result = result_of(line)
            found[result.testee, result.version, result.case, result.digest] = result
    return found


def read_hello(path: Path, testee: str) -> Hello | None:
    """Return the greeting of a testee in a report; None if the run did not end.

    Args:
        path: file with the report.
        testee: name of the testee.
    """
    for line in _lines(path):
        if line.get("type") == "testee" and line["testee"] == testee and line["implementation"]:
            return Hello(Implementation(**line["implementation"]), tuple(line["ops"]), line["features"])
    return None


def _lines(path: Path) -> Iterator[Json]:
    for text in path.read_text(encoding="utf-8").splitlines():
        with contextlib.suppress(ValueError):
            yield json.loads(text)


def result_of(line: Json) -> Result:
    """Return the result in a line, as it was without the list of known failures, which may have changed."""
    values: dict[str, Any] = {name: line[name] for name in NAMES if name in line}
    raw = Verdict(line["raw"])
    for name in ("differences", "compared"):
        values[name] = tuple(line.get(name, ()))
    return Result(**{**values, "verdict": raw, "raw": raw, "notes": (), "disclosure": ""})


class JsonLines:
    """Writes a report line by line.

    Args:
        stream: stream to write to.
        withholds: as in `result_line`.
    """

    def __init__(self, stream: TextIO, *, withholds: bool = True) -> None:
        self._stream = stream
        self._withholds = withholds

    def write(self, line: Json) -> None:
        """Write one line at once.

        Raises:
            WriteError: the line could not be written.
        """
        with write_errors("the report"):
            self._stream.write(json.dumps(line, separators=(",", ":")) + "\n")
            self._stream.flush()

    def result(self, _outcome: Outcome, result: Result) -> None:
        """Write a result at once."""
        self.write(result_line(result, withholds=self._withholds))

    def testees(self, outcomes: Iterable[Outcome], cases: Mapping[str, Case]) -> None:
        """Write the final lines of the testees."""
        for outcome in outcomes:
            self.write(testee_line(outcome, cases))

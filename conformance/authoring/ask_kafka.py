"""Ask Kafka's own classes the cases of the conformance suite, and keep what they said beside the cases.

``python -m authoring.ask_kafka`` writes ``conformance/authoring/asked.json``; `make_cases` puts it into the ``source`` of each case
that has not changed since. The classes are asked as any testee is, through their adapters, and judged alike: memory, time
and crashes included. Needs Java 17 and Maven. With ``--changed`` only cases are asked that are new or have changed since.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

REPOSITORY: Final = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "conformance"))

from seglog_conformance.cases import Case, every_case  # noqa: E402 - the path is set first
from seglog_conformance.neighbours import neighbours  # noqa: E402
from seglog_conformance.registry import Builder, listed  # noqa: E402
from seglog_conformance.runner import COMPLETE, Options  # noqa: E402
from seglog_conformance.session import Reports, run_session  # noqa: E402
from seglog_conformance.verdicts import Result, Verdict  # noqa: E402

from authoring.asked import ASKED, Asked, digest, document, kept_answers  # noqa: E402

if TYPE_CHECKING:
    from seglog_conformance.runner import Outcome

RECORDS: Final = "kafka-clients@4.4.0"
"""Asked for batches alone: how they are read and written."""
STORAGE: Final = "kafka-storage@4.4.0"
"""Asked for everything else: what a broker makes of files."""
BATCHES: Final = frozenset({"decode", "encode"})
"""The operations that are about batches alone."""
OLDER: Final = "kafka-storage@2.8.2"
"""Asked for what newer brokers do not do any more: to write messages."""
OF_OLD: Final = frozenset({"magic:0", "magic:1"})


def asked_of(case: Case) -> str:
    """Return the testee that is asked a case."""
    if case.op in BATCHES:
        return RECORDS
    is_written = "appended" in case.needs and OF_OLD & set(case.needs)
    return OLDER if is_written else STORAGE


def said(case: Case, result: Result) -> str:
    """Return what a testee made of a case, in a word or two."""
    if result.raw is not Verdict.PASS:
        return f"departs: {result.raw}"
    if case.result == "undefined":
        return "survives (delivered)" if (result.answer or {}).get("ok") else "survives (refused)"
    return f"agrees ({result.branch})" if result.branch else "agrees"


def outcomes(cases: list[Case]) -> list[Outcome]:
    """Ask each testee what it is asked for; no list of known failures excuses anything."""
    parts = {name: [case for case in cases if asked_of(case) == name] for name in (RECORDS, STORAGE, OLDER)}
    with tempfile.TemporaryDirectory() as empty:
        options = Options(smoke=False, known=Path(empty))
        found = [
            run_session(Builder(), [listed(name)], part, all_cases=cases, options=options, reports=Reports())
            for name, part in parts.items()
        ]
    return [outcome for ran in found for outcome in ran]


def answers(outcome: Outcome, cases: dict[str, Case], stored: dict[str, dict[str, Any]]) -> Asked:
    """Return what one testee said of each case that it was asked, with what it was asked; tell of departures."""
    found_answers = {}
    for result in outcome.results:
        if result.raw is not Verdict.SKIP:
            found_answers[result.case] = [digest(stored[result.case]), said(cases[result.case], result)]
            if result.raw is not Verdict.PASS:
                print(f"{result.case}: {result.raw}: {result.detail}")
    return found_answers


def is_kept(case: Case, stored: dict[str, Any], kept: dict[str, Asked]) -> bool:
    """Tell whether the testee that is asked such a case has answered it as it stands.

    A departure is asked again: what an answer may have beside what is expected may have been completed since
    (`record_whole`), and a refusal may count now that the valid case beside it was asked.
    """
    asked_before, text = kept.get(asked_of(case).replace("@", " "), {}).get(case.id, ("", ""))
    return asked_before == digest(stored) and not text.startswith("departs")


def main() -> int:
    """Ask everything, and write down the answers."""
    directory = REPOSITORY / "conformance" / "cases"
    texts = [path.read_text(encoding="utf-8") for path in sorted(directory.rglob("*.json"))]
    stored = {case["id"]: case for text in texts for case in json.loads(text)["cases"]}
    cases = {case.id: case for case in every_case()}
    parser = argparse.ArgumentParser(description="Ask Kafka's own classes the cases of the suite.")
    parser.add_argument(
        "--changed", action="store_true", help="ask only what is new or has changed since the last time"
    )
    everything = kept_answers() if parser.parse_args().changed else {}
    changed = {case.id for case in cases.values() if not is_kept(case, stored[case.id], everything)}
    beside = neighbours([*cases.values()])  # a refusal counts only if the valid case beside it is read
    changed |= {one.id for name in changed for one in beside.get(name, ())[:1]}
    wanted = [case for case in cases.values() if case.id in changed]
    for outcome in outcomes(wanted):
        if outcome.state != COMPLETE:
            print(f"{outcome.listed.label}: {outcome.reason}")
            return 1
        found_answers = answers(outcome, cases, stored)
        before = everything.get(outcome.listed.label, {})
        everything[outcome.listed.label] = {name: one for name, one in before.items() if name in cases} | found_answers
        departures = sum(text.startswith("departs") for _, text in found_answers.values())
        print(f"{outcome.listed.label}: {len(found_answers)} cases asked, {departures} departures")
    ASKED.write_text(document(everything), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

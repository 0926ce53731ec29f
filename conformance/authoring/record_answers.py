"""Record a few answers of every implementation that has a list of known failures.

``python -m authoring.record_answers`` writes ``conformance/authoring/recorded_answers.json``: what each said of itself, and
some of its answers, right ones and ones on its list. Tests change them and expect that a run notices; so the lists are
proved without the tool chains. With names, only those are asked again. Needs what builds the adapters.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

REPOSITORY: Final = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "conformance"))

from seglog_conformance.cases import Case, load_cases  # noqa: E402 - the path is set first
from seglog_conformance.judging import Examiner  # noqa: E402
from seglog_conformance.known import KNOWN, read_known  # noqa: E402
from seglog_conformance.registry import Builder, listed  # noqa: E402
from seglog_conformance.verdicts import Verdict  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from seglog_conformance.known import KnownFailures
    from seglog_conformance.protocol import Hello

KEPT: Final = Path(__file__).with_name("recorded_answers.json")
MOST: Final = 4
"""Right answers, and as many wrong ones."""
LONGEST: Final = 4000
"""Characters of an answer that is kept."""

Json = dict[str, Any]


def listed_names() -> list[str]:
    """Return the testees that have a list, as a run is told their names."""
    return sorted(path.stem for path in KNOWN.glob("*.toml"))


def records_of(answer: Json) -> list[Json]:
    """Return all records of an answer."""
    batches = answer.get("batches") or []
    return [record for batch in batches for record in batch["records"]]


def answers(examiner: Examiner, cases: Iterable[Case], known: KnownFailures) -> Iterator[tuple[str, Json]]:
    """Yield cases and their answers of several records, where they come out as the list says."""
    for case in cases:
        result = known.applied(examiner.examine(case, known.expected(case.id), known.difference(case.id)))
        answer = {name: value for name, value in (result.answer or {}).items() if name != "seq"}
        is_as_listed = result.verdict in {Verdict.PASS, Verdict.XFAIL}
        if is_as_listed and len(records_of(answer)) > 1 and len(json.dumps(answer)) <= LONGEST:
            yield case.id, {"digest": case.digest, "answer": answer}


def recorded(name: str) -> Json:
    """Return what one implementation says of itself, and its answers."""
    wanted = listed(name)
    assert wanted.adapter is not None
    examiner = Examiner(Builder().testee(wanted), extra_growth=wanted.adapter.extra_memory)
    try:
        hello = examiner.start()
        known = read_known(wanted.name, hello.implementation.version)
        decoded = sorted((case for case in load_cases() if case.op == "decode"), key=lambda case: case.digest)
        right = (case for case in decoded if case.result == "valid" and case.id not in known.entries)
        wrong = (case for case in decoded if (one := known.entries.get(case.id)) and not one.disclosure)
        found = [islice(answers(examiner, cases, known), MOST) for cases in (right, wrong)]
        return {**said(hello), "answers": dict(answer for part in found for answer in part)}
    finally:
        examiner.close()


def said(hello: Hello) -> Json:
    """Return what an implementation says of itself, as it comes over the protocol."""
    return {"implementation": asdict(hello.implementation), "ops": list(hello.ops), "features": hello.features}


def main() -> int:
    """Ask, and write down."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help="testees, each with @version where it has several")
    names = parser.parse_args().names or listed_names()
    kept = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    for name in names:
        kept[name] = recorded(name)
        print(f"{name}: {len(kept[name]['answers'])} answers", flush=True)
    KEPT.write_text(json.dumps(kept, indent=0, sort_keys=True) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())

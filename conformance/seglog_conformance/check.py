"""Check case files, and that the reference passes them: ``python -m seglog_conformance.check [FILE ...]``."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from seglog_conformance.cases import CaseError, case_files, case_problems, load_cases
from seglog_conformance.direct import DirectTestee
from seglog_conformance.judging import Examiner
from seglog_conformance.reference import Reference
from seglog_conformance.verdicts import Verdict
from seglog_format.errors import UsageError
from seglog_format.requirements import requirement

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_conformance.cases import Case


def problems_of(case: Case) -> Iterator[str]:
    """Yield all problems of a case, including a failure of the reference."""
    yield from case_problems(case)
    for name in case.requirements:
        try:
            requirement(name)
        except UsageError:
            yield f"requirement {name} is not in the specification"


def verdict_problem(case: Case) -> str | None:
    """Return the reference's verdict on a case, unless it passes."""
    examiner = Examiner(DirectTestee("reference", Reference(), strict=True))
    examiner.start()
    result = examiner.examine(case)
    if result.verdict is Verdict.PASS:
        return None
    reported = "\n      ".join((result.detail, *result.differences[1:], *result.stderr.splitlines()[-3:]))
    return f"{result.label}: {reported}"


def main(arguments: list[str] | None = None) -> int:
    """Check files, or the whole suite.

    Returns:
        1 if there is a problem, else 0.
    """
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--no-run", action="store_true", help="leave the reference out")
    options = parser.parse_args(arguments)
    files = options.files or case_files()
    try:
        cases = load_cases(files, checked=True)
    except CaseError as error:
        print(error)
        return 1
    count = 0
    for case in cases:
        found = list(problems_of(case))
        verdict = None if options.no_run or found else verdict_problem(case)
        for problem in [*found, *([verdict] if verdict else [])]:
            count += 1
            print(f"{case.id}: {problem}")
    print(f"{len(cases)} cases in {len(files)} files, {count} problems")
    return int(count > 0)


if __name__ == "__main__":
    sys.exit(main())

"""Write the reports that are ready to file, `conformance/reports/`.

``python -m authoring.write_reports RUN.jsonl...`` takes the results of runs (`seglog conform run --jsonl`), keeps those of
the first causes of each testee, and writes the reports about these. Runs of older releases have their first line in the
README, and no report. With ``--add``, the results that were kept stay. Without a file, it writes the reports again from
the results that it has kept: after a change of cases, rules or words, which needs no library.
"""

from __future__ import annotations

import argparse
import gzip
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

REPOSITORY: Final = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(REPOSITORY / "conformance"))

from seglog_conformance.cases import load_cases  # noqa: E402 - the path is set first
from seglog_conformance.issue_report import issue_report, subject_of, unlisted  # noqa: E402
from seglog_conformance.known import read_known  # noqa: E402
from seglog_conformance.protocol import Hello, Implementation  # noqa: E402
from seglog_conformance.registry import Listed, listed  # noqa: E402
from seglog_conformance.report_jsonl import result_line, result_of, testee_line  # noqa: E402
from seglog_conformance.report_table import head  # noqa: E402
from seglog_conformance.runner import Outcome  # noqa: E402
from seglog_conformance.verdicts import Verdict  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from seglog_conformance.cases import Case
    from seglog_conformance.causes import Cause

REPORTS: Final = REPOSITORY / "conformance" / "reports"
RESULTS: Final = REPORTS / "results.jsonl.gz"
EACH: Final = 2
"""Number of reports about each testee."""
READ: Final = 3
"""Number of valid cases besides, which show that a testee reads at all."""
GRAVITY: Final = (
    *(Verdict.CRASH, Verdict.HANG, Verdict.MEMORY, Verdict.SILENT, Verdict.JUMP, Verdict.STALL),
    *(Verdict.DIFFER, Verdict.ACCEPTS_INVALID, Verdict.REJECTS_VALID),
    Verdict.ACCIDENT,
)
"""Verdicts, the gravest first: a death, lost data, wrong data, damage that is handed out, data that is refused."""

README: Final = """\
# Reports ready to file

Each file is a report about one defect of the newest release of a library that the suite tests, made by `seglog conform
report-issue`: bytes, lines in the library's language, the answer of Kafka's own classes, what to change. The gravest
come first. None of them has been filed. Where bytes make a program crash, hang or take memory without bound, the report
says `withheld`: these go to the maintainers first.

`results.jsonl.gz` holds the results from which `python -m authoring.write_reports` writes these files again.

| library | it | rule | cases | verdicts |
|---|---|---|---|---|
"""
LINES: Final = """
## First lines

The first line of a run names the gravest cause. Those of the kept results, also of an older release whose defect is
known and mended:

```text
"""

Json = dict[str, Any]


def read_lines(path: Path) -> list[Json]:
    """Return the objects of a file of JSON lines."""
    data = path.read_bytes()
    text = gzip.decompress(data) if path.suffix == ".gz" else data
    return [json.loads(line) for line in text.decode().splitlines()]


def outcomes(lines: Iterable[Json]) -> list[Outcome]:
    """Return the testees of a report with their results; what a list of known failures withholds is marked."""
    found: dict[tuple[str, str], Outcome] = {}
    every = list(lines)
    for line in every:
        if line["type"] == "testee":
            adapter = listed(line["testee"]).adapter
            assert adapter is not None
            hello = Hello(Implementation(**line["implementation"]), tuple(line["ops"]), line["features"])
            wanted = Listed(line["testee"], adapter.versions[0], adapter)
            found[line["testee"], line["version"]] = Outcome(wanted, hello=hello)
    for line in every:
        if line["type"] == "result" and (line["testee"], line["version"]) in found:
            found[line["testee"], line["version"]].results.append(result_of(line))
    return [unlisted(outcome) for outcome in found.values()]


def is_newest(outcome: Outcome) -> bool:
    """Return whether the release of an outcome has a list of known failures: about others a report is of no use."""
    return bool(read_known(outcome.name, outcome.version).entries)


def first_causes(outcome: Outcome, cases: dict[str, Case]) -> list[Cause]:
    """Return the causes of a testee that are reported."""
    return outcome.causes(cases)[:EACH]


def kept(outcome: Outcome, cases: dict[str, Case]) -> Iterator[Json]:
    """Yield the lines of a testee that its reports need."""
    found = first_causes(outcome, cases)
    needed = {case for cause in found for case in cause.asked_cases}
    read = [one.case for one in outcome.results if one.raw is Verdict.PASS and cases[one.case].result == "valid"]
    line = testee_line(outcome, cases)
    yield {name: line[name] for name in ("type", "testee", "version", "implementation", "ops", "features")}
    for result in outcome.results:
        if result.case in {*needed, *read[:READ]}:
            line = result_line(result)
            yield {
                name: value for name, value in line.items() if name not in {"compared", "seconds", "growth", "stderr"}
            }


def written(lines: Iterable[Json], cases: dict[str, Case]) -> dict[str, str]:
    """Return the files of the directory, by name."""
    every = outcomes(lines)
    newest = filter(is_newest, every)
    found = [(outcome, cause) for outcome in newest for cause in first_causes(outcome, cases)]
    found.sort(key=lambda pair: weight(*pair))
    files = {}
    rows = []
    for outcome, cause in found:
        name = f"{outcome.name}-{cause.rule}.md"
        files[name] = issue_report(cause, cases, subject_of(outcome), withholds=True)
        counts = ", ".join(f"{count} {verdict}" for verdict, count in cause.verdicts.most_common())
        about = f"{subject_of(outcome).implementation.name} {outcome.version}"
        rows.append(
            f"| {about} | [{cause.headline}]({name}) | {cause.rule} | {len(cause.failed)} of {cause.asked} | {counts} |"
        )
    table = README + "\n".join(rows) + "\n" + LINES
    return {"README.md": table + "".join(f"{first_line_of(one, cases)}\n" for one in every) + "```\n", **files}


def first_line_of(outcome: Outcome, cases: dict[str, Case]) -> str:
    """Return the first line of a report; the results that were kept do not tell the number of the other causes."""
    return next(head(outcome, cases)).partition("; ")[0]


def weight(outcome: Outcome, cause: Cause) -> tuple[int, int, str]:
    """Return the place of a report: by its most frequent verdict, then by the number of failing cases."""
    return GRAVITY.index(cause.failed[0].raw), -len(cause.failed), outcome.name


def main() -> None:
    """Write the directory."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("runs", nargs="*", type=Path, help="files of results; without one, those that were kept")
    parser.add_argument("--add", action="store_true", help="keep also what was kept before")
    options = parser.parse_args()
    runs = options.runs
    cases = {case.id: case for case in load_cases()}
    if runs:
        before = read_lines(RESULTS) if options.add else []
        lines = [line for path in runs for outcome in outcomes(read_lines(path)) for line in kept(outcome, cases)]
        REPORTS.mkdir(exist_ok=True)
        text = "".join(json.dumps(line, separators=(",", ":"), sort_keys=True) + "\n" for line in [*before, *lines])
        RESULTS.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    files = written(read_lines(RESULTS), cases)
    for path in REPORTS.glob("*.md"):
        if path.name not in files:
            path.unlink()
    for name, text in files.items():
        (REPORTS / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

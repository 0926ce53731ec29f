"""Check the reports: each has its commit, command, digests and machine, and no text says more than it found.

``python -m tools.reports`` lists them, each with what it is of: today's code, other code, or code from before the rule.
A fault makes the exit status 1; ``--current`` makes a report of other code one, too, as a release needs it.
"""

from __future__ import annotations

import argparse
import json
import re
import shlex
import string
import sys
import tomllib
from collections import Counter
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from proofs.harness import names
from proofs.report_facts import ROOT, commits_since, tree_digest

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

REPORTS: Final = ROOT / "reports"
README: Final = "reports/README.md"
ABOUT: Final[Mapping[str, Mapping[str, Any]]] = tomllib.loads((REPORTS / "about.toml").read_text(encoding="utf-8"))
FIELDS: Final = ("command", "commit", "date", "digests", "versions", "machine")
MACHINE: Final = ("system", "architecture", "processor", "cores", "loadAverage", "loadAverageAtEnd")
OLD: Final = "beforeTheRule"
"""Marks a report that was made before reports recorded their conditions: unknown fields are empty."""
TODAY: Final = "today's code"  # of a report whose measured directories have not changed since
SHA: Final = re.compile(r"[0-9a-f]{40}")
ASSIGNMENT: Final = re.compile(r"([A-Z]+)=(.*)", re.DOTALL)
INTRODUCTION: Final = """\
# Reports

A report holds the last full result of a proof or benchmark that takes too long for every change; CI runs a seeded
sample of each. The key `made` records how the report was made: command, commit, date, seed, digests of the measured
files, versions, processor and load. `python -m tools.reports` checks these fields, and says which are of today's
code; `make release-reports` makes the others again; `make release-check` refuses reports of other code than that of the
release. Reports with a star were made before this rule: some fields are empty, and the commit is the one that published
the figures.

The table is generated from the reports and from `about.toml`.

| report | question | found | commit | command |
|---|---|---|---|---|
"""

Json = dict[str, Any]


def read(name: str) -> Json:
    """Return a report by its name, such as ``bench``."""
    report: Json = json.loads((REPORTS / f"{name}.json").read_text(encoding="utf-8"))
    return report


def every() -> dict[str, Json]:
    """Return all reports by name."""
    return {path.stem: read(path.stem) for path in sorted(REPORTS.glob("*.json"))}


def birth(report: Mapping[str, Any]) -> str:
    """Return a sentence about how a report was made, for the pages that quote it."""
    made = report["made"]
    machine = made["machine"]
    loads = [str(machine[name]) for name in ("loadAverage", "loadAverageAtEnd") if machine.get(name) is not None]
    parts = [
        machine.get("processor") or "processor not noted",
        f"{machine['cores']} cores",
        f"{machine['system']} on {machine['architecture']}",
        *([f"Python {made['versions']['python']}"] if "python" in made["versions"] else []),
        f"load {' to '.join(dict.fromkeys(loads))}" if loads else "load not noted",
    ]
    commit = f"commit `{made['commit'][:8]}`" + (" with changes" if made["dirty"] else "")
    note = f" {made['note']}" if made.get("note") else ""
    return f"Measured by `{made['command']}` at {commit} on {made['date']}: {', '.join(parts)}.{note}"


def problems(name: str, report: Mapping[str, Any]) -> Iterator[str]:
    """Yield what a report lacks, or says wrongly of its conditions."""
    made = report.get("made")
    if not isinstance(made, dict):
        yield "`made` is missing: the report does not say how it was made"
        return
    is_old = made.get(OLD) is True
    if not is_old:
        yield from (f"made.{field} is missing or empty" for field in FIELDS if not made.get(field))
        machine = made.get("machine") or {}
        yield from (
            f"made.machine.{field} is missing or empty" for field in MACHINE if machine.get(field) in {None, ""}
        )
        if made.get("dirty") is not False:
            yield "made.dirty is not false: files were changed when the report was made"
    if not SHA.fullmatch(str(made.get("commit"))):
        yield f"made.commit is {made.get('commit')!r}, not 40 hex digits"
    if name not in ABOUT:
        yield "about.toml does not say what the report is about"
    yield from command_problems(str(made.get("command", "")))
    yield from command_problems(ABOUT[name]["full"]) if "full" in ABOUT.get(name, ()) else ()


def command_problems(command: str) -> Iterator[str]:
    """Yield why a reader cannot repeat a command: a target, module, script or file that is not there."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        words = []
        yield f"made.command {command!r}: {error}"
    match words:
        case ["make", target, *rest]:
            yield from _make_problems(target, rest)
        case ["python", "-m", "proofs", name, *rest]:
            yield from _proof_problems(name, rest)
        case ["python", "-m", module, *rest] if module.startswith("tools."):
            if not any((ROOT / (module.replace(".", "/") + end)).is_file() for end in (".py", "/__main__.py")):
                yield f"made.command: there is no module {module}"
            yield from _path_problems(rest)
        case _:
            yield f"made.command {command!r} is none of `make TARGET`, `python -m proofs NAME`, `python -m tools.NAME`"


def _make_problems(target: str, words: Sequence[str]) -> Iterator[str]:
    targets = re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    if target not in targets:
        yield f"made.command: the Makefile has no target {target!r}"
    found = dict(match.groups() for word in words if (match := ASSIGNMENT.fullmatch(word)))
    if len(found) != len(words):
        yield f"made.command: make is given words that are no NAME=VALUE: {' '.join(words)}"
    options = shlex.split(found.get("ARGS", ""))
    if target == "proof":
        yield from _proof_problems(found.get("NAME", ""), options)
        return
    if target == "bench" and not (ROOT / "benchmarks" / f"{found.get('NAME', 'bench')}.py").is_file():
        yield f"made.command: there is no benchmark {found['NAME']!r}"
    yield from _path_problems(options)


def _proof_problems(name: str, words: Sequence[str]) -> Iterator[str]:
    if name not in names():
        yield f"made.command: there is no proof {name!r}"
    yield from _path_problems(words)


def _path_problems(words: Sequence[str]) -> Iterator[str]:
    """Yield words that name data outside of the repository: readers do not have it."""
    for word in words:
        if word.startswith(("/", "~", "..")) or "/../" in word:
            yield f"made.command: a reader does not have {word}"


def age(report: Mapping[str, Any]) -> str:
    """Return how old a report is, in commits."""
    count = commits_since(report["made"]["commit"])
    return "age unknown" if count is None else f"{count} commits old"


def other_code(report: Mapping[str, Any]) -> list[str]:
    """Return the directories that are not those that the report measured; all if it did not note any."""
    digests = report["made"].get("digests") or {"(not noted)": ""}
    return [name for name, digest in digests.items() if not digest or _digest_today(name) != digest]


def standing(report: Mapping[str, Any]) -> str:
    """Return whether a report is of today's code, in a few words; `TODAY` if it is."""
    return "before the rule" if report["made"].get(OLD) else "other code" if other_code(report) else TODAY


@cache
def _digest_today(name: str) -> str:
    return tree_digest(ROOT / name)


class _Counts(string.Formatter):
    """Formats a list or a table as the number of its items."""

    def format_field(self, value: Any, format_spec: str) -> str:  # noqa: ANN401 - whatever a report holds
        return str(len(value)) if isinstance(value, list | dict) else format(value, format_spec)


def found(name: str, report: Mapping[str, Any]) -> str:
    """Return the result of a report, in the words of ``about.toml``."""
    return _Counts().vformat(ABOUT[name]["found"], (), report)


def page() -> str:
    """Return the page that lists all reports."""
    return INTRODUCTION + "".join(_row(name, report) for name, report in every().items())


def _row(name: str, report: Mapping[str, Any]) -> str:
    made = report["made"]
    star = " *" if made.get(OLD) else ""
    pages = ", ".join(f"[{each}](../docs/{each}.md)" for each in ABOUT[name].get("pages", ()))
    full = ABOUT[name].get("full", "")
    full = "" if {*shlex.split(full)} <= {*shlex.split(made["command"])} else f"; in full: `{full}`"
    asks = ABOUT[name]["asks"] + (f" Shown in {pages}." if pages else "")
    return (
        f"| `{name}.json`{star} | {asks} | {found(name, report)} | `{made['commit'][:8]}`, {made['date']} "
        f"| `{made['command']}`{full} |\n"
    )


def main() -> int:
    """List the reports and their problems."""
    parser = argparse.ArgumentParser(prog="python -m tools.reports", description=__doc__)
    parser.add_argument("--current", action="store_true", help="refuse reports of other code, or made before the rule")
    options = parser.parse_args()
    wrong, standings = 0, Counter[str]()
    for name, report in every().items():
        complaints, state = list(problems(name, report)), standing(report)
        if options.current and state != TODAY:
            complaints.append(f"{state}: make it again; changed since: {', '.join(other_code(report))}")
        print(f"{state:16} {name}: {report['made']['commit'][:8]}, {age(report)}: {report['made']['command']}")
        for complaint in complaints:
            print(f"  FAULT {complaint}")
        wrong += len(complaints)
        standings[state] += 1
    print(f"of {standings.total()} reports: {', '.join(f'{count} {state}' for state, count in standings.items())}")
    missing = sorted(ABOUT.keys() - every().keys())
    for name in missing:
        print(f"about.toml describes {name}, which is no report")
    print(f"{wrong + len(missing)} faults")
    return 1 if wrong or missing else 0


if __name__ == "__main__":
    sys.exit(main())

"""``make release-reports``: make each report again that is not of today's code, by its command (in full: `about.toml`).

Stop it whenever you like and call it again: it leaves out reports that are of today's code, and a report that was not
completed stays as it was. ``ARGS='kills bugs'`` makes only these. A report whose programs are not on the machine
(``needs`` in ``about.toml``) is skipped. The exit status is 1 if a report was skipped or a proof failed.
"""

from __future__ import annotations

import argparse
import json
import shlex
import sys
from typing import TYPE_CHECKING, Any

from seglog_conformance.toolchains import child_processes, complaints

from proofs.report_facts import ROOT, is_changed
from tools.reports import ABOUT, REPORTS, TODAY, every, found, standing

if TYPE_CHECKING:
    from collections.abc import Mapping

COMPLETED = frozenset({0, 1})
"""Exit statuses of a command that ran to its end: nothing failed, or something did, which the report says."""


def stale(reports: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the names of the reports that are not of today's code, the shortest first; unknown times are the last."""
    names = [name for name, report in reports.items() if standing(report) != TODAY]
    return sorted(names, key=lambda name: reports[name].get("seconds", float("inf")))


def words(name: str, command: str) -> list[str]:
    """Return a recorded command as words that write the report; targets of make know where it belongs."""
    first, *rest = shlex.split(command)
    return [first, *rest] if first == "make" else [sys.executable, *rest, "--report", str(REPORTS / f"{name}.json")]


def remake(name: str, command: str) -> str:
    """Run the command of a report and return what went wrong; an empty text if nothing did."""
    if lacking := complaints(ABOUT[name].get("needs", ())):
        return f"skipped, since it needs {'; '.join(lacking)}"
    path, status = REPORTS / f"{name}.json", -1
    before = path.read_bytes()
    try:
        status = child_processes.run(words(name, command), directory=ROOT, check=False).returncode
        if status in COMPLETED:
            found(name, json.loads(path.read_bytes()))
    except (KeyError, ValueError) as error:
        status = -1
        return f"about.toml asks for what the report does not have ({error!r}): it stays as it was"
    finally:
        if status not in COMPLETED:
            path.write_bytes(before)
    if path.read_bytes() == before:
        return f"status {status} of {command}: it wrote no report"
    return f"status {status} of {command}" if status else ""


def main() -> int:
    """Make the stale reports again, one after the other."""
    parser = argparse.ArgumentParser(prog="make release-reports", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these reports")
    given = parser.parse_args()
    if is_changed():
        sys.exit("commit first: a report names the commit that it measured")
    reports, wrong = every(), list[str]()
    chosen = [name for name in stale(reports) if name in (given.names or reports)]
    for number, name in enumerate(chosen, 1):
        command = ABOUT[name].get("full", reports[name]["made"]["command"])
        print(f"{number} of {len(chosen)}, {name}: {command}", flush=True)
        if complaint := remake(name, command):
            wrong.append(f"{name}: {complaint}")
            print(f"  {complaint}", flush=True)
    print(*wrong, f"{len(chosen) - len(wrong)} of {len(chosen)} reports were made again", sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("stopped; the same command goes on")

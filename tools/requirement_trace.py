"""The trace of every requirement of spec/: fields, code, tests, fixtures, faults, cases and documents that name it.

``python -m tools.trace`` prints the table, ``--json`` the same as data. With ``--check`` it fails when an id is
unknown or defined twice, when a MUST has no test on bytes, when a rule that is said to be checked has no enforcing
code, when a rule of behaviour has no fault that breaks it, or when a damaged fixture breaks another rule than the one
it names.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tomllib
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

from seglog_conformance.cases import every_case

from proofs.mutants.enforcement import ENFORCING, IDENTIFIER, REPOSITORY, Fault, faults, relative, sites
from proofs.mutants.marked_tests import marked_tests
from seglog_format.cli.structures import structures
from seglog_format.errors import UsageError
from tools.rules import requirements

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_format.types import Requirement

PLACEHOLDER = "SEG-XXX-"
"""Area of ids that are no requirements: tests and guides use them as examples."""

LIST = "docs/reference/requirements"
"""The generated page that mentions every requirement."""

LEVEL = re.compile(r"\b(?:MUST|SHOULD|MAY)\b")
LONGEST_RULE_WORDS = 40
"""A longer sentence has more than one rule in it, or a table."""
DEPENDENT = re.compile(r"^(?:After that|Then|They|This|That|These)\b|\b(?:MUST|SHOULD) then\b|\bas well\.|\. [A-Z]")
"""What a sentence that is shown alone does not say, or a second sentence: both belong below the rule."""
REASON = re.compile(r"\b(?:because|cannot|nothing)\b", re.IGNORECASE)
"""Words in an explanation of why a rule is not checked."""

KEPT = ("yes", "partly", "no")
BASES = ("source", "bytes", "run")
VERSION = re.compile(r"\d+\.\d+\.\d+(?:\.\d+)?")
"""Valid parts of a mark about brokers."""

TEXT_FILES = (
    "seglog_format/**/*.py",
    "tests/**/*.py",
    "tests/faults/*.toml",
    "tools/*.py",
    "spec/*.md",
    "docs/**/*.md",
    "fixtures/*.toml",
    "fixtures/**/case.toml",
    "*.md",
)


@dataclass(slots=True)
class Trace:
    """All places that name one requirement.

    Attributes:
        requirement: the table entry.
        fields: schema fields whose documentation names it, such as ``OffsetIndexEntry.position``.
        declared: schema declarations and modules whose documentation names it.
        code: places that enforce it.
        tests: node ids of tests on bytes.
        fixtures: bundled cases that exercise it.
        damaged: bundled cases that break it.
        faults: faults in ``tests/faults`` that break it.
        cases: cases of the conformance suite that are about it.
        documents: pages that mention it.
    """

    requirement: Requirement
    fields: list[str] = field(default_factory=list)
    declared: list[str] = field(default_factory=list)
    code: list[str] = field(default_factory=list)
    tests: list[str] = field(default_factory=list)
    fixtures: list[str] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)
    faults: list[Fault] = field(default_factory=list)
    cases: list[str] = field(default_factory=list)
    documents: list[str] = field(default_factory=list)


def case_files() -> Iterator[tuple[str, dict[str, object]]]:
    """Yield name and content of every bundled ``case.toml``."""
    root = REPOSITORY / "fixtures"
    for path in sorted(root.rglob("case.toml")):
        yield path.parent.relative_to(root).as_posix(), tomllib.loads(path.read_text(encoding="utf-8"))


def mentions() -> Iterator[tuple[str, int, str]]:
    """Yield every id in every text file: file, line number, id."""
    files = {path for pattern in TEXT_FILES for path in REPOSITORY.glob(pattern)}
    for path in sorted(files):
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            for identifier in IDENTIFIER.findall(line):
                yield relative(path), number, identifier


def named_in_fields() -> Iterator[tuple[str, str, str]]:
    """Yield every id that a schema field names, the attribute of its trace, structure and field."""
    for structure in structures():
        for one in structure.fields:
            yield from ((identifier, "fields", f"{structure.name}.{one.name}") for identifier in one.requirements)


def named_in_cases() -> Iterator[tuple[str, str, str]]:
    """Yield every id that a case of the conformance suite is about, the attribute of its trace, the id of the case."""
    for case in every_case():
        yield from ((identifier, "cases", case.id) for identifier in case.requirements)


def named_in_fixtures() -> Iterator[tuple[str, str, str]]:
    """Yield every id that a bundled case exercises or breaks, the attribute of its trace, the name of the case."""
    for name, case in case_files():
        for key, attribute in (("requirements", "fixtures"), ("violates", "damaged")):
            yield from ((identifier, attribute, name) for identifier in case.get(key, ()))  # type: ignore[attr-defined]


def join() -> dict[str, Trace]:
    """Return the trace of every requirement, in reading order. Ids that do not exist are left to `unknown`."""
    traces = {identifier: Trace(entry) for identifier, entry in requirements().items()}
    found: defaultdict[str, Trace] = defaultdict(lambda: Trace(next(iter(requirements().values()))), traces)
    for identifier, attribute, name in chain(named_in_fields(), named_in_cases(), named_in_fixtures()):
        getattr(found[identifier], attribute).append(name)
    for site in sites():
        target = found[site.requirement].code if site.form in ENFORCING else found[site.requirement].declared
        target.append(site.scope_path)
    for identifier, nodes in marked_tests().items():
        found[identifier].tests = nodes
    for fault in faults():
        found[fault.requirement].faults.append(fault)
    for file, _, identifier in mentions():
        if file.startswith("docs/") and not file.startswith(LIST) and file not in found[identifier].documents:
            found[identifier].documents.append(file)
    return traces


def unknown() -> Iterator[str]:
    """Yield complaints about ids that no chapter defines."""
    for file, number, identifier in mentions():
        if identifier not in requirements() and not identifier.startswith(PLACEHOLDER):
            yield f"{file}:{number}: {identifier} is not defined in spec/"
    for identifier in marked_tests():
        if identifier not in requirements():
            yield f"a test is marked with {identifier}, which is not defined in spec/"


def explanation(entry: Requirement) -> str:
    """Return the text of a requirement and the paragraphs below it, up to the next one or the next heading."""
    chapter = REPOSITORY / "spec" / f"{entry.chapter}.md"
    text = chapter.read_text(encoding="utf-8") if chapter.is_file() else ""
    below = re.split(r"^#|^\[SEG-", text.partition(f"[{entry.id}]: ")[2], maxsplit=1, flags=re.MULTILINE)[0]
    return entry.text + below


def _sentence(entry: Requirement) -> Iterator[str]:
    if LEVEL.findall(entry.text) != [entry.level]:
        yield f"{entry.id}: its sentence must say {entry.level} once, and no other level"
    if (words := len(entry.text.split())) > LONGEST_RULE_WORDS:
        yield f"{entry.id}: {words} words, and a rule has at most {LONGEST_RULE_WORDS}"
    if DEPENDENT.search(entry.text):
        yield f"{entry.id}: its sentence is not one, or needs the sentence before it"


def gaps(trace: Trace) -> Iterator[str]:
    """Yield complaints about one requirement."""
    entry = trace.requirement
    if not (entry.text and all(entry.binds) and entry.check in ("auto", "behaviour", "none")):
        yield f"{entry.id}: text, binds or check is missing or not known"
    yield from _sentence(entry)
    yield from _marks(entry)
    if entry.check == "none":
        if not REASON.search(explanation(entry)):
            yield f"{entry.id}: check=none, and its text does not say why"
        return
    if not trace.tests and entry.level == "MUST":
        yield f"{entry.id}: a MUST without a test on bytes"
    if entry.check == "auto" and not trace.code and not trace.faults:
        yield f"{entry.id}: check=auto, but no code refuses or reports it, and no fault breaks it"
    if entry.check == "behaviour" and not trace.faults and entry.level == "MUST":
        yield f"{entry.id}: check=behaviour, and no fault in tests/faults breaks it"
    if (trace.code or trace.faults) and not trace.tests:
        yield f"{entry.id}: enforced by code, but no test on bytes is marked for it"


def _marks(entry: Requirement) -> Iterator[str]:
    """Yield complaints about the marks of a rule about brokers."""
    mark = entry.brokers
    if not (mark.kept in KEPT and VERSION.fullmatch(mark.version) and mark.basis in BASES):
        yield f"{entry.id}: brokers is not yes, partly or no with a version and a basis, such as yes:4.3.0:bytes"
    if mark.kept == "no" and entry.since:
        yield f"{entry.id}: no broker keeps it, so it has no since"
    if mark.kept != "no" and not (VERSION.fullmatch(entry.since) and entry.since_basis in BASES):
        yield f"{entry.id}: since is no version with a basis, such as 0.11.0:source"


def untold() -> Iterator[str]:
    """Yield complaints about rules that brokers depart from, if no paragraph of the chapter says what they do."""
    for entry in requirements().values():
        if entry.brokers.departs and "*What brokers do" not in explanation(entry):
            yield f"{entry.id}: brokers={entry.brokers.kept}, and no paragraph '*What brokers do.*' follows it"


def misplaced_faults() -> Iterator[str]:
    """Yield complaints about faults that do not fit the source any more."""
    for fault in faults():
        try:
            fault.apply((REPOSITORY / fault.file).read_text(encoding="utf-8"))
        except (ValueError, OSError) as error:
            yield str(error)


def damaged_fixtures() -> Iterator[str]:
    """Yield complaints about damaged cases that do not name the one rule that they break; a test checks the rule."""
    for name, case in case_files():
        if "violates" in case and len(case["violates"]) != 1:  # type: ignore[arg-type]
            yield f"fixtures/{name}/case.toml: violates {case['violates']}, and should name one requirement"


def complaints(traces: dict[str, Trace]) -> list[str]:
    """Return all complaints, the worst first."""
    whole_table = (line for trace in traces.values() for line in gaps(trace))
    return list(dict.fromkeys([*unknown(), *whole_table, *untold(), *misplaced_faults(), *damaged_fixtures()]))


def table(traces: dict[str, Trace]) -> Iterator[str]:
    """Yield one line for each requirement, chapter by chapter."""
    chapter = ""
    for trace in traces.values():
        entry = trace.requirement
        if entry.chapter != chapter:
            chapter = entry.chapter
            yield f"\n{chapter:40} fields code tests fixtures damaged faults cases docs"
        counts = (trace.fields, trace.code, trace.tests, trace.fixtures, trace.damaged, trace.faults)
        counts += (trace.cases, trace.documents)
        numbers = [str(len(part)) if part else "." for part in counts]
        row = "{:>6} {:>4} {:>5} {:>8} {:>7} {:>6} {:>5} {:>4}".format(*numbers)
        yield f"  {entry.id}  {entry.level:6} {entry.check:9}          {row}"


def as_data(trace: Trace) -> dict[str, object]:
    """Return one requirement as a JSON object."""
    entry = trace.requirement
    return {
        "requirement": entry.id,
        "level": entry.level,
        "binds": list(entry.binds),
        "since": entry.since or None,
        "brokers": f"{entry.brokers.kept}:{entry.brokers.version}:{entry.brokers.basis}",
        "check": entry.check,
        "chapter": entry.chapter,
        "text": entry.text,
        "fields": trace.fields,
        "declared": sorted(set(trace.declared)),
        "code": sorted(set(trace.code)),
        "tests": trace.tests,
        "fixtures": trace.fixtures,
        "damaged": trace.damaged,
        "faults": [f"{fault.listed_in} -> {fault.file}" for fault in trace.faults],
        "cases": trace.cases,
        "documents": trace.documents,
    }


def summary(traces: dict[str, Trace]) -> str:
    """Return one line with totals."""
    levels = [trace.requirement.level for trace in traces.values()]
    tested = sum(bool(trace.tests) for trace in traces.values())
    counts = ", ".join(f"{levels.count(level)} {level}" for level in ("MUST", "SHOULD", "MAY"))
    return f"{len(traces)} requirements ({counts}), {tested} with a test on bytes"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="join requirements with code, tests, fixtures, faults and documents")
    parser.add_argument("--check", action="store_true", help="fail when something is missing or unknown")
    parser.add_argument("--json", action="store_true", help="one JSON object for each requirement")
    parser.add_argument("--quiet", action="store_true", help="no table")
    parser.add_argument("--output", type=Path, help="write there instead of to standard output")
    return parser.parse_args()


def main() -> int:
    """Print the trace; with ``--check`` return whether it is complete."""
    arguments = _arguments()
    try:
        traces = join()
    except UsageError as error:
        print(error, file=sys.stderr)
        return 1
    lines = (json.dumps(as_data(trace)) for trace in traces.values()) if arguments.json else table(traces)
    if not arguments.quiet:
        text = "\n".join(lines)
        arguments.output.write_text(text + "\n", encoding="utf-8") if arguments.output else print(text)
    wrong = complaints(traces) if arguments.check else []
    for line in wrong:
        print(line, file=sys.stderr)
    if not arguments.json:
        print(f"\n{summary(traces)}" + (f", {len(wrong)} complaints" if arguments.check else ""))
    return 1 if wrong else 0

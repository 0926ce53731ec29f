"""Fixed defects: an older release fails the cases that name the rule, and a newer one passes them.

The claims are in `bugs.toml` next to an adapter. A claim holds when the older release fails each of its cases with the
claimed verdict, and the newer one passes each. The file may also have a program of about ten lines that reads a case
with the library alone, for readers who want to see the defect without the suite.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from seglog_conformance.protocol import schema_errors
from seglog_conformance.registry import CLAIMS, AdapterError, Listed, adapters
from seglog_conformance.runner import COMPLETE, UNAVAILABLE, Options, Outcome, Runner
from seglog_conformance.verdicts import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from seglog_conformance.cases import Case
    from seglog_conformance.protocol import Json
    from seglog_conformance.registry import Adapter, Builder


@dataclass(frozen=True, slots=True, kw_only=True)
class Bug:
    """A defect of a release that a later release fixed.

    Attributes:
        adapter: adapter of the implementation.
        summary: description in one sentence.
        links: reports, fixes or announcements.
        old: a release with the defect.
        new: a release without it.
        verdict: verdict on the old release.
        cases: ids of cases that show it.
    """

    adapter: Adapter
    summary: str
    links: tuple[str, ...]
    old: str
    new: str
    verdict: Verdict
    cases: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The result of checking a claim.

    Attributes:
        bug: the claim.
        old: verdicts of the old release, by case.
        new: verdicts of the new release.
        reason: reason why a release could not run; empty if both did.
        is_unavailable: whether a required program is missing on this machine, which leaves the claim unchecked.
    """

    bug: Bug
    old: Mapping[str, Verdict] = field(default_factory=dict)
    new: Mapping[str, Verdict] = field(default_factory=dict)
    reason: str = ""
    is_unavailable: bool = False

    @property
    def holds(self) -> bool:
        """Return whether the old release fails each case as claimed, and the new one passes it."""
        cases, verdict = self.bug.cases, self.bug.verdict
        return all(self.old.get(case) is verdict and self.new.get(case) is Verdict.PASS for case in cases)


def read_bugs(adapter: Adapter) -> list[Bug]:
    """Return the claims in the `bugs.toml` of an adapter; none if there is no file.

    Raises:
        AdapterError: the file does not fit its schema.
    """
    return [_bug(adapter, entry) for entry in _stored(adapter).get("bug", ())]


def read_program(adapter: Adapter) -> str:
    """Return the program stored with the claims of an adapter; empty if there is none.

    Raises:
        AdapterError: the `bugs.toml` does not fit its schema.
    """
    return str(_stored(adapter).get("program", ""))


def read_lines(adapter: Adapter) -> dict[str, str]:
    """Return lines that give ``data`` to the library, by operation, and the ``imports`` that they need.

    Raises:
        AdapterError: the `bugs.toml` does not fit its schema.
    """
    return dict(_stored(adapter).get("lines", {}))


def client_of(adapter: Adapter) -> str:
    """Return the program of an adapter, else of another of the suite's adapters of that library; empty if none has one.

    Raises:
        AdapterError: a `bugs.toml` does not fit its schema.
    """
    same = [one for one in adapters() if adapter.homepage and one.homepage == adapter.homepage]
    return next((text for one in (adapter, *same) if (text := read_program(one))), "")


def _stored(adapter: Adapter) -> Json:
    path = adapter.path / CLAIMS
    if not path.is_file():
        return {}
    try:
        stored: Json = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        msg = f"{path}: {error}"
        raise AdapterError(msg) from error
    if errors := schema_errors(stored, "bugs"):
        msg = f"{path}: {'; '.join(errors)}"
        raise AdapterError(msg)
    return stored


def _bug(adapter: Adapter, entry: Json) -> Bug:
    return Bug(
        adapter=adapter,
        summary=entry["summary"],
        links=tuple(entry["links"]),
        old=entry["old"],
        new=entry["new"],
        verdict=Verdict(entry["verdict"]),
        cases=tuple(entry["cases"]),
    )


def show(builder: Builder, bugs: Sequence[Bug], cases: Sequence[Case]) -> list[Shown]:
    """Run the cases on the claimed releases, each release once, and check the claims.

    Args:
        builder: builder of adapters.
        bugs: claims to check.
        cases: all cases.

    Raises:
        AdapterError: a claim names a case that does not exist.
    """
    known = {case.id: case for case in cases}
    if gone := sorted({case for bug in bugs for case in bug.cases} - set(known)):
        msg = f"{CLAIMS} names cases that do not exist: {', '.join(gone)}"
        raise AdapterError(msg)
    outcomes = {}
    for listed, ids in _releases(bugs):
        runner = Runner(builder, [known[case] for case in ids], all_cases=cases, options=Options(smoke=False))
        outcomes[listed.label] = runner.run_one(listed)
    return [_shown(bug, outcomes) for bug in bugs]


def _releases(bugs: Iterable[Bug]) -> list[tuple[Listed, list[str]]]:
    """Return the releases to run, each with its case ids."""
    found: dict[str, tuple[Listed, dict[str, None]]] = {}
    for bug in bugs:
        for version in (bug.old, bug.new):
            listed = Listed(bug.adapter.name, version, bug.adapter)
            found.setdefault(listed.label, (listed, {}))[1].update(dict.fromkeys(bug.cases))
    return [(listed, list(cases)) for listed, cases in found.values()]


def _shown(bug: Bug, outcomes: Mapping[str, Outcome]) -> Shown:
    old, new = (outcomes[Listed(bug.adapter.name, version).label] for version in (bug.old, bug.new))
    for outcome in (old, new):
        if outcome.state != COMPLETE:
            reason = f"{outcome.listed.label}: {outcome.reason}"
            return Shown(bug=bug, reason=reason, is_unavailable=outcome.state == UNAVAILABLE)
    return Shown(bug=bug, old=_verdicts(old, bug), new=_verdicts(new, bug))


def _verdicts(outcome: Outcome, bug: Bug) -> dict[str, Verdict]:
    found = {result.case: result.raw for result in outcome.results}
    return {case: found[case] for case in bug.cases if case in found}


def bug_line(shown: Shown) -> Json:
    """Return a claim and its result as JSON."""
    bug = shown.bug
    line: Json = {
        "type": "bug",
        "testee": bug.adapter.name,
        "summary": bug.summary,
        "links": list(bug.links),
        "verdict": str(bug.verdict),
        "old": {"version": bug.old, "verdicts": {case: str(verdict) for case, verdict in shown.old.items()}},
        "new": {"version": bug.new, "verdicts": {case: str(verdict) for case, verdict in shown.new.items()}},
        "holds": None if shown.is_unavailable else shown.holds,
    }
    return {**line, "reason": shown.reason} if shown.reason else line


def report(shown: Sequence[Shown]) -> Json:
    """Return all claims with their results.

    Args:
        shown: results of the claims.
    """
    holding = [one for one in shown if one.holds]
    return {
        "claims": len(shown),
        "holding": len(holding),
        "implementations": len({one.bug.adapter.name for one in holding}),
        "bugs": [bug_line(one) for one in shown],
    }

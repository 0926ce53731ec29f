"""Known failures: one file for each implementation, in which no line may be out of date."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from seglog_conformance.parts import part
from seglog_conformance.protocol import schema_errors
from seglog_conformance.verdicts import FAILURES, TIMED_OUT, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from seglog_conformance.verdicts import Result

KNOWN: Final = part("known_failures")
WITHHELD: Final = "withheld"
UNREPORTED: Final = "unreported"
"""Value instead of a link: the failure has not been reported to the maintainers yet."""


class KnownFailuresError(Exception):
    """A list cannot be read."""


@dataclass(frozen=True, slots=True)
class Known:
    """One expected failure.

    Attributes:
        case: id of the case.
        verdict: its verdict.
        reason: reason for the failure, in a sentence.
        issue: link to the report, or ``unreported``.
        disclosure: ``withheld`` keeps the bytes out of published reports.
        difference: fingerprint of the wrong answer; empty if there is no answer, or no recorded fingerprint.
    """

    case: str
    verdict: Verdict
    reason: str = ""
    issue: str = ""
    disclosure: str = ""
    difference: str = ""


@dataclass(frozen=True, slots=True)
class KnownFailures:
    """The list of one implementation.

    Attributes:
        implementation: name in the registry.
        version: version of the implementation.
        entries: by case id.
    """

    implementation: str
    version: str = ""
    entries: Mapping[str, Known] = field(default_factory=dict)

    def expected(self, case: str) -> Verdict | None:
        """Return the verdict that the list expects of a case, PASS for an unlisted one; None if the list is empty."""
        entry = self.entries.get(case)
        return entry.verdict if entry is not None else Verdict.PASS if self.entries else None

    def difference(self, case: str) -> str:
        """Return the fingerprint that the list has for a case; empty if any answer fits."""
        entry = self.entries.get(case)
        return entry.difference if entry is not None else ""

    def applied(self, result: Result) -> Result:
        """Return a result with the list applied: XFAIL if it fails as listed, XPASS if it passes but is listed."""
        known = self.entries.get(result.case)
        if known is None:
            return result
        result = replace(result, disclosure=known.disclosure)
        if result.raw is known.verdict and known.difference not in {"", result.fingerprint}:
            note = f"listed as {known.verdict} with the answer {known.difference}; this is {result.fingerprint}"
            return replace(result, notes=(*result.notes, note, known.reason))
        if result.raw is known.verdict or {result.raw, known.verdict} == TIMED_OUT:
            return replace(result, verdict=Verdict.XFAIL, notes=(*result.notes, known.reason or known.issue))
        if result.raw is Verdict.PASS:
            return replace(result, verdict=Verdict.XPASS, notes=(*result.notes, f"listed as {known.verdict}"))
        return replace(result, notes=(*result.notes, f"listed as {known.verdict}"))

    def unused(self, results: Iterable[Result], asked: Iterable[str]) -> list[str]:
        """Return the listed ids of cases that no longer exist, or that were skipped.

        Args:
            results: of the run.
            asked: ids of all cases of the run.
        """
        skipped = {result.case for result in results if result.raw is Verdict.SKIP}
        present = set(asked) - skipped
        return sorted(case for case in self.entries if case not in present)


def known_path(name: str, version: str = "", directory: Path | None = None) -> Path:
    """Return the path of a list: ``name.toml`` for the adapter's first version, ``name@version.toml`` for others."""
    base = directory or KNOWN
    exact = base / f"{name}@{version}.toml"
    return exact if version and exact.is_file() else base / f"{name}.toml"


def read_known(name: str, version: str = "", directory: Path | None = None) -> KnownFailures:
    """Return the list for an implementation; empty where there is none for this version.

    Raises:
        KnownFailuresError: a file does not fit its schema, or is about another implementation.
    """
    path = known_path(name, version, directory)
    if not path.is_file():
        return KnownFailures(name, version)
    try:
        stored = tomllib.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        msg = f"{path}: {error}"
        raise KnownFailuresError(msg) from error
    errors = schema_errors(stored, "known-failures")
    if errors or stored["implementation"] != name:
        msg = f"{path}: {'; '.join(errors) or 'it is about another implementation'}"
        raise KnownFailuresError(msg)
    if version and stored["version"] != version:
        return KnownFailures(name, version)
    entries = [Known(**{**entry, "verdict": Verdict(entry["verdict"])}) for entry in stored.get("failure", ())]
    if len({entry.case for entry in entries}) != len(entries):
        msg = f"{path}: a case is listed twice"
        raise KnownFailuresError(msg)
    return KnownFailures(name, stored["version"], {entry.case: entry for entry in entries})


def rewritten(old: KnownFailures, version: str, results: Iterable[Result], asked: Iterable[str]) -> KnownFailures:
    """Return the list, updated by a run. Reasons and links are kept, and so are entries for cases outside of the run.

    Args:
        old: the list so far.
        version: of the implementation that ran.
        results: of the run.
        asked: ids of the cases of the run.
    """
    about = set(asked)
    entries = {case: known for case, known in old.entries.items() if case not in about}
    for result in results:
        if result.raw in FAILURES:
            before = old.entries.get(result.case) or Known(result.case, result.raw)
            issue = before.issue or UNREPORTED
            entries[result.case] = replace(before, verdict=result.raw, difference=result.fingerprint, issue=issue)
    return KnownFailures(old.implementation, version, dict(sorted(entries.items())))


def known_text(known: KnownFailures) -> str:
    """Return the file of a list."""
    lines = [
        "# Expected failures, written anew by `seglog conform run --update-known`. A reason and a link are kept.",
        f'implementation = "{known.implementation}"',
        f'version = "{known.version}"',
    ]
    for entry in known.entries.values():
        lines += ["", "[[failure]]", f'case = "{entry.case}"', f'verdict = "{entry.verdict}"']
        lines += [
            f"{name} = {_quoted(value)}"
            for name in ("difference", "reason", "issue", "disclosure")
            if (value := getattr(entry, name))
        ]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return (
        '"'
        + "".join(character if character.isprintable() else f"\\u{ord(character):04x}" for character in escaped)
        + '"'
    )

"""The smoke test: a dozen valid cases distinguish a broken adapter from a wrong implementation."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from seglog_conformance.verdicts import FINE, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from seglog_conformance.cases import Case
    from seglog_conformance.judging import Examiner
    from seglog_conformance.known import KnownFailures
    from seglog_conformance.verdicts import Result

MOST: Final = 12
FEW: Final = 2
ADAPTERS_FAULT: Final = frozenset({Verdict.ADAPTER_ERROR})


@dataclass(frozen=True, slots=True)
class Smoke:
    """The outcome of the smoke test.

    Attributes:
        results: results of its cases.
        is_broken: whether the adapter is broken, so its answers say nothing about the implementation.
        hint: most likely reason of the failures; empty if there are none.
    """

    results: tuple[Result, ...]
    is_broken: bool
    hint: str


def smoke_cases(cases: Iterable[Case]) -> list[Case]:
    """Return the cases of the smoke test: the marked ones, else the first valid cases of decoders."""
    valid = [case for case in cases if case.result == "valid"]
    marked = [case for case in valid if case.smoke]
    return (marked or [case for case in valid if case.op == "decode" and case.level == "must"])[:MOST]


def smoke(examiner: Examiner, cases: Sequence[Case], known: KnownFailures | None = None) -> Smoke:
    """Ask the cases of the smoke test, and judge the adapter by all their verdicts.

    Args:
        examiner: examiner of the testee.
        cases: cases to choose from.
        known: known failures of the implementation, which do not count against the adapter.
    """
    results = tuple(examiner.examine(case) for case in smoke_cases(cases))
    listed_results = [known.applied(result) for result in results] if known is not None else results
    asked = [result for result in listed_results if result.verdict is not Verdict.SKIP]
    failed = [result for result in asked if result.verdict not in FINE]
    if not asked:
        return Smoke(results, is_broken=bool(results), hint=NOTHING_ASKED if results else "")
    is_broken = any(result.verdict in ADAPTERS_FAULT for result in failed) or 2 * len(failed) > len(asked)
    hint = _hint(failed, asked) if failed else ""
    return Smoke(results, is_broken, f"{hint}{'' if hint.endswith('?') else '.'} {GO_ON}" if is_broken else hint)


GO_ON: Final = "If the library is wrong, not the adapter, continue with run --no-smoke --update-known."
NOTHING_ASKED: Final = (
    "every case was skipped: ops and features in the answer to hello exclude all cases. A decoder has at least"
    ' {"ops": ["decode"], "features": {"magic": [2], "codec": ["none"]}}.'
)
HINTS: Final = {
    Verdict.CRASH: "the process ends on valid bytes: pipe the output of seglog conform repro CASE into it, and look"
    " at its stderr",
    Verdict.HANG: "no answer to valid bytes: is standard output flushed after each line, and does the loop read one"
    " line at a time?",
    Verdict.SILENT: "records are missing on valid bytes, and there is no error: does the adapter go through every batch"
    " and every record?",
    Verdict.REJECTS_VALID: "valid bytes are refused: does the library want a size in front of the bytes, or does the"
    " adapter hand over hex instead of bytes?",
    Verdict.MEMORY: "memory grows on small valid bytes: does the runtime take it when it is first used? [limits]"
    " extra_memory_mib in adapter.toml is for that",
}
FIELD_HINTS: Final = {
    "offset": "offsets differ: are they absolute? A library may hand out deltas",
    "timestamp": "timestamps differ: milliseconds as a decimal string, and the batch's maximum for LogAppendTime",
    "key": 'keys differ: lower-case hex, null for null, "" for empty',
    "value": 'values differ: lower-case hex, null for null, "" for empty',
    "headers": "headers differ: pairs of hex in stored order, the value null where it is null",
    "length": "their number differs: is a batch taken for a record, or the other way round?",
    "consumed": "consumed differs: it is where the last whole batch ends; leave partialTail out of features if the"
    " library does not tell",
    "tail": "the tail differs: null when nothing follows; leave partialTail out of features if the library does not"
    " tell",
}


def _hint(failed: Sequence[Result], asked: Sequence[Result]) -> str:
    """Return the most likely reason."""
    broken = next((result for result in failed if result.verdict in ADAPTERS_FAULT), None)
    if broken is not None:
        return f"the adapter does not keep to the protocol: {broken.detail}"
    verdict, count = Counter(result.verdict for result in failed).most_common(1)[0]
    lead = "" if count == len(asked) else f"in {count} of {len(asked)} cases "
    if count <= FEW and 2 * len(failed) <= len(asked):
        return f"most valid cases pass, so that {', '.join(one.case for one in failed)} is likely the implementation's"
    return lead + (HINTS.get(verdict) or _field_hint(failed))


def _field_hint(failed: Sequence[Result]) -> str:
    fields = Counter(_field(result.differences[0]) for result in failed if result.differences)
    if not fields:
        return "answers differ"
    name, _ = fields.most_common(1)[0]
    batch = f"{name} of batches differs: leave it out of batchMeta in features if the library does not tell it"
    return FIELD_HINTS.get(name, batch)


def _field(difference: str) -> str:
    """Return the field that a difference is about: ``batches[0].records[1].key: expected ...`` is about ``key``."""
    return difference.partition(":")[0].rpartition(".")[2].partition("[")[0]

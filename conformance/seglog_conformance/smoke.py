"""The smoke test: some cases of each operation distinguish a broken adapter from a wrong implementation."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from seglog_conformance.features import missing_feature
from seglog_conformance.verdicts import FINE, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from seglog_conformance.cases import Case
    from seglog_conformance.judging import Examiner
    from seglog_conformance.known import KnownFailures
    from seglog_conformance.protocol import Hello
    from seglog_conformance.verdicts import Result

MOST: Final = 12
"""Maximum number of valid cases of `decode`."""
VALID: Final = 4
INVALID: Final = 2
"""Numbers of valid and invalid cases of each other operation."""
FEW: Final = 2
FINE_ENOUGH: Final = FINE | {Verdict.ACCIDENT}
"""Verdicts that say nothing against the adapter."""
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


def smoke_cases(cases: Iterable[Case], hello: Hello) -> list[Case]:
    """Return the cases of the smoke test: of each operation that an adapter lists, and with the features that it has.

    Of `decode`, these are the marked valid cases, else the first ones. Of the others, they are the first valid and the
    first invalid ones of level MUST, or of any level where there are none.

    Args:
        cases: cases to choose from.
        hello: what the adapter says that it can do.
    """
    every = [case for case in cases if not case.is_at_scale]
    able = [case for case in every if case.op in hello.ops and missing_feature(case.needs, hello.features) is None]
    chosen = _decoded(able)
    for op in hello.ops:
        if op != "decode":
            chosen += _first([case for case in able if case.op == op and case.result == "valid"], VALID)
            chosen += _first([case for case in able if case.op == op and case.result == "invalid"], INVALID)
    return chosen or [case for case in every if case.op in hello.ops][:MOST]


def _decoded(able: Sequence[Case]) -> list[Case]:
    valid = [case for case in able if case.op == "decode" and case.result == "valid"]
    marked = [case for case in valid if case.smoke]
    return (marked or [case for case in valid if case.level == "must"])[:MOST]


def _first(cases: Sequence[Case], count: int) -> list[Case]:
    return ([case for case in cases if case.level == "must"] or list(cases))[:count]


def smoke(examiner: Examiner, cases: Sequence[Case], known: KnownFailures | None = None) -> Smoke:
    """Ask the cases of the smoke test, and judge the adapter by the verdicts on each of its operations.

    Args:
        examiner: examiner of the testee.
        cases: cases to choose from.
        known: known failures of the implementation, which do not count against the adapter.
    """
    chosen = smoke_cases(cases, examiner.hello or examiner.start())
    results = tuple(examiner.examine(case) for case in chosen)
    listed_results = [known.applied(result) for result in results] if known is not None else results
    asked: dict[str, list[Result]] = {}
    for case, result in zip(chosen, listed_results, strict=True):
        if result.verdict is not Verdict.SKIP:
            asked.setdefault(case.op, []).append(result)
    if not asked:
        return Smoke(results, is_broken=True, hint=NOTHING_ASKED) if cases else Smoke(results, is_broken=False, hint="")
    failed = {op: [one for one in of_op if one.verdict not in FINE_ENOUGH] for op, of_op in asked.items()}
    broken = next((op for op, of_op in failed.items() if _are_adapters(of_op, asked[op])), None)
    worst = broken or next((op for op, of_op in failed.items() if of_op), None)
    if worst is None:
        return Smoke(results, is_broken=False, hint="")
    hint = _hint(worst, failed[worst], asked[worst])
    if broken is None:
        return Smoke(results, is_broken=False, hint=hint)
    return Smoke(results, is_broken=True, hint=f"{hint}{'' if hint.endswith('?') else '.'} {GO_ON}")


def _are_adapters(failed: Sequence[Result], asked: Sequence[Result]) -> bool:
    """Return whether failures are the adapter's: it breaks the protocol, or most answers of an operation are wrong."""
    return any(result.verdict in ADAPTERS_FAULT for result in failed) or 2 * len(failed) > len(asked)


GO_ON: Final = "If the library is wrong, not the adapter, continue with run --no-smoke --update-known."
NOTHING_ASKED: Final = (
    "every case was skipped: ops and features in the answer to hello exclude all cases. A decoder has at least"
    ' {"ops": ["decode"], "features": {"magic": [2], "codec": ["none"]}}, an encoder the same with "encode".'
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


def _hint(op: str, failed: Sequence[Result], asked: Sequence[Result]) -> str:
    """Return the most likely reason for the failures of an operation."""
    broken = next((result for result in failed if result.verdict in ADAPTERS_FAULT), None)
    if broken is not None:
        return f"the adapter does not keep to the protocol: {broken.detail}"
    verdict, count = Counter(result.verdict for result in failed).most_common(1)[0]
    lead = "" if count == len(asked) else f"in {count} of {len(asked)} cases "
    if count <= FEW and 2 * len(failed) <= len(asked):
        return f"most {op} cases pass, so that {', '.join(one.case for one in failed)} is likely the implementation's"
    if op != "decode":
        return f"{lead}{op} answers otherwise than expected, at first {failed[0].case}: {failed[0].detail}"
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

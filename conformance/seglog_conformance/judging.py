"""One case on one testee: send it, send it again to a new process after a failure, and judge the answer."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from seglog_conformance.cases import MissingFixtureError
from seglog_conformance.compare import compare, reject_text
from seglog_conformance.features import accident, missing_feature
from seglog_conformance.fingerprint import fingerprint
from seglog_conformance.releases import as_of
from seglog_conformance.testee import MEBIBYTE, Allowance, Kind, Reply, StartError
from seglog_conformance.verdicts import FAILURES, Judgement, Result, Verdict

if TYPE_CHECKING:
    from seglog_conformance.cases import Case
    from seglog_conformance.protocol import Hello, Json
    from seglog_conformance.testee import Testee

VERDICTS: Final = {
    Kind.CRASH: Verdict.CRASH,
    Kind.HANG: Verdict.HANG,
    Kind.MEMORY: Verdict.MEMORY,
    Kind.BROKEN: Verdict.ADAPTER_ERROR,
}
BASE_GROWTH: Final = 64 * MEBIBYTE
GROWTH_PER_BYTE: Final = 8
GROWTH_PER_CHARACTER: Final = 24
MIN_LINE: Final = 16 * MEBIBYTE
LINE_PER_BYTE: Final = 64
SCALE_FACTOR: Final = 12
LONGEST_LINE: Final = 1 << 30
MAX_DIFFERENCES: Final = 8
MOST_HANGS: Final = 3
"""Hangs of one rule after which its further cases get a tenth of the time; none of them is left out."""
HURRY: Final = 10
SINCE: Final = "since:"
"""Before the release of a case that is younger than what a testee implements, as the reason why it was not asked."""
OUT_OF_MEMORY: Final = ("out of memory", "outofmemory", "memoryerror", "bad_alloc", "allocation failed")


def allowance_of(case: Case, *, seconds: float = 10.0, extra: int = 0) -> Allowance:
    """Return the limits of a case: in memory, 64 MiB, eight times the larger of input and answer, the adapter's own.

    The adapter's own is for its runtime, and for the answer in JSON: a tree of values is many times larger than its
    text. Where a summary is expected, an adapter may first hold the whole answer: its memory then shows nothing.
    """
    if case.is_summed_up:
        return Allowance(SCALE_FACTOR * seconds, None, LONGEST_LINE)
    size = max(case.input_size, case.answer_size)
    growth = BASE_GROWTH + GROWTH_PER_BYTE * size + GROWTH_PER_CHARACTER * case.answer_text_size + extra
    return Allowance(seconds, growth, max(MIN_LINE, LINE_PER_BYTE * size))


class Examiner:
    """Sends cases to one testee, and judges the answers.

    Args:
        testee: testee to examine.
        seconds: time limit for each case.
        extra_growth: memory in bytes that its runtime may take besides what a case explains.
        case_ids: whether the requests have the ids of their cases.
        implements: Kafka release that it implements, instead of the one that it says.
    """

    def __init__(
        self,
        testee: Testee,
        *,
        seconds: float = 10.0,
        extra_growth: int = 0,
        case_ids: bool = False,
        implements: str = "",
    ) -> None:
        self.testee = testee
        self.seconds = seconds
        self.extra_growth = extra_growth
        self.case_ids = case_ids
        self.implements = implements
        self.hello: Hello | None = None
        self._hangs = Counter[tuple[str, ...]]()
        self._seq = 0
        self._is_up = False

    def start(self) -> Hello:
        """Start the testee.

        Raises:
            StartError: the testee does not start.
        """
        self.hello = self.testee.start()
        self._is_up = True
        return self.hello

    def examine(self, case: Case, expected: Verdict | None = None, difference: str = "") -> Result:
        """Send a case and judge the answer; repeat it in a new process if no answer or an unexpected one came.

        The verdict then does not depend on state from earlier cases, and `repro` shows it again.

        Args:
            case: case to send.
            expected: verdict by the list of known failures; None if there is no list.
            difference: fingerprint in the list; empty for any.
        """
        hello = self.hello or self.start()
        is_hurried = self._hangs[case.requirements[:1]] >= MOST_HANGS
        as_asked = as_of(case, self.release)
        reason = None if case.op in hello.ops else f"op:{case.op}"
        reason = reason or missing_feature(case.needs, hello.features)
        reason = reason or (f"{SINCE}{case.since}" if as_asked is None else None)
        if reason is not None or as_asked is None:
            return self._result(case, Reply(Kind.ANSWER), Judgement(Verdict.SKIP, reason or ""))
        case = as_asked
        try:
            reply = self.ask(case, HURRY if is_hurried else 1)
        except MissingFixtureError as error:
            return self._result(case, Reply(Kind.ANSWER), Judgement(Verdict.SKIP, f"fixture: {error}"))
        if is_hurried and reply.kind is Kind.HANG:
            detail = f"not decided: no answer in a tenth of the time; {case.requirements[0]} has {MOST_HANGS} hangs"
            return self._result(case, reply, Judgement(Verdict.UNDECIDED, detail))
        judgement = self._judgement(case, reply)
        is_as_listed = judgement.verdict is expected and (
            not difference or self._fingerprint(case, reply, judgement.verdict) == difference
        )
        if is_as_listed or (reply.kind is Kind.ANSWER and self._is_final(judgement, expected)):
            return self._counted(case, self._result(case, reply, judgement))
        self._is_up = False
        again = self.ask(case)
        repeated = self._judgement(case, again)
        note = f"{judgement.verdict} at first ({judgement.detail}), not in a fresh process"
        notes = (note,) if repeated.verdict is not judgement.verdict else ()
        return self._counted(case, self._result(case, again, repeated, *notes))

    def _counted(self, case: Case, result: Result) -> Result:
        """Count the hangs of the rule that a case is first of all about."""
        self._hangs[case.requirements[:1]] += result.raw is Verdict.HANG
        return result

    @property
    def release(self) -> str:
        """Return the Kafka release that the testee implements; empty for the newest."""
        said = self.hello.implementation.implements if self.hello else ""
        return self.implements or said

    @staticmethod
    def _is_final(judgement: Judgement, expected: Verdict | None) -> bool:
        """Return whether an answer counts at once: there is no list, or the adapter failed or skipped the case."""
        return expected is None or judgement.verdict in {Verdict.SKIP, Verdict.ADAPTER_ERROR}

    def ask(self, case: Case, hurry: int = 1) -> Reply:
        """Send a case once, to a process that is started if none runs.

        Args:
            case: case to send.
            hurry: what its time limit is divided by.
        """
        try:
            if not self._is_up:
                self.start()
        except StartError as error:
            return Reply(Kind.BROKEN, detail=f"it did not start again: {error}")
        self._seq += 1
        allowance = allowance_of(case, seconds=self.seconds / hurry, extra=self.extra_growth)
        reply = self.testee.ask(case.request_with(self._seq, is_named=self.case_ids), allowance)
        self._is_up = reply.kind is Kind.ANSWER
        return reply

    def _judgement(self, case: Case, reply: Reply) -> Judgement:
        if reply.kind is Kind.ANSWER:
            return self._compare_reply(case, reply)
        return Judgement(VERDICTS[reply.kind], reply.detail)

    def _compare_reply(self, case: Case, reply: Reply) -> Judgement:
        answer = reply.answer or {}
        if "skip" in answer:
            skip = answer["skip"]
            return Judgement(Verdict.SKIP, str(skip.get("feature") or skip.get("reason", "")))
        if "error" in answer:
            return Judgement(Verdict.ADAPTER_ERROR, str(answer["error"].get("message", "")))
        if answer["ok"] is False and any(words in reject_text(answer).lower() for words in OUT_OF_MEMORY):
            return Judgement(Verdict.MEMORY, reject_text(answer))
        assert self.hello is not None
        try:
            return self._meant(case, answer, compare(case, answer, self.hello.features))
        except (AttributeError, KeyError, TypeError, ValueError, IndexError) as error:
            return Judgement(Verdict.ADAPTER_ERROR, f"the answer cannot be read ({error!r}): see --strict")

    def _meant(self, case: Case, answer: Json, judgement: Judgement) -> Judgement:
        """Return the verdict on a right refusal: an accident if the library did not mean its error."""
        assert self.hello is not None
        error = accident(answer, self.hello.features)
        if not error or judgement.verdict is not Verdict.PASS or case.result == "undefined":
            return judgement
        detail = f"it was refused by accident, by {error}: neither the library's own error nor one that it declares"
        return replace(judgement, verdict=Verdict.ACCIDENT, detail=detail)

    def _result(self, case: Case, reply: Reply, judgement: Judgement, *notes: str) -> Result:
        assert self.hello is not None
        return Result(
            testee=self.testee.name,
            version=self.hello.implementation.version,
            case=case.id,
            digest=case.digest,
            verdict=judgement.verdict,
            raw=judgement.verdict,
            detail=judgement.detail,
            differences=tuple(map(str, judgement.differences[:MAX_DIFFERENCES])),
            compared=judgement.compared,
            branch=judgement.branch,
            answer=reply.answer,
            stderr="" if judgement.verdict in {Verdict.PASS, Verdict.SKIP} else reply.stderr,
            seconds=round(reply.seconds, 6),
            growth=reply.growth,
            notes=notes,
            fingerprint=self._fingerprint(case, reply, judgement.verdict),
        )

    def _fingerprint(self, case: Case, reply: Reply, verdict: Verdict) -> str:
        assert self.hello is not None
        return fingerprint(reply.answer, verdict, case.op, self.hello.features) if verdict in FAILURES else ""

    def close(self) -> None:
        """End the implementation and its processes."""
        self.testee.close()
        self._is_up = False

"""The same bytes for several implementations: groups of equal answers, without an expected one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from seglog_conformance.features import USUAL_RECORD_FIELDS, missing_feature
from seglog_conformance.testee import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from seglog_conformance.cases import Case
    from seglog_conformance.judging import Examiner
    from seglog_conformance.protocol import Json

REFUSED: Final = "refuses"
LEAST: Final = 2
OF_A_RUN: Final = frozenset({"seq", "message", "modified"})
"""Fields that differ in every run."""


class Panel:
    """Several implementations that get the same requests.

    Args:
        examiners: examiners of the started implementations, one each.
    """

    def __init__(self, examiners: Sequence[Examiner]) -> None:
        self.examiners = list(examiners)
        features = [examiner.hello.features for examiner in self.examiners if examiner.hello]
        self._has_control = all(one.get("control") == "surfaced" for one in features)
        orders = {str(one.get("headers", "ordered")) for one in features}
        self._headers = "none" if "none" in orders else "unordered" if "unordered" in orders else "ordered"

    def groups(self, case: Case) -> dict[str, list[str]]:
        """Return the distinct answers with the names of their implementations, except those that lack a feature."""
        found: dict[str, list[str]] = {}
        for examiner in self.examiners:
            reported = self._reported(examiner, case)
            if reported is not None:
                found.setdefault(reported, []).append(examiner.testee.name)
        return found

    def _reported(self, examiner: Examiner, case: Case) -> str | None:
        assert examiner.hello is not None
        if case.op not in examiner.hello.ops or missing_feature(case.needs, examiner.hello.features):
            return None
        reply = examiner.ask(case)
        if reply.kind is not Kind.ANSWER or reply.answer is None:
            return reply.kind.value
        if "skip" in reply.answer or "error" in reply.answer:
            return None
        return self._signature(case.op, reply.answer) if reply.answer["ok"] else REFUSED

    def _signature(self, op: str, answer: Json) -> str:
        """Return the part that every implementation reports: the records of a decoder; of other answers, all of it."""
        if op != "decode":
            return json.dumps(_comparable(answer), sort_keys=True)
        batches = [batch for batch in answer["batches"] if self._has_control or not batch.get("isControl")]
        records = [self._record(record) for batch in batches for record in batch.get("records") or []]
        return json.dumps(records, sort_keys=True)

    def _record(self, record: Json) -> Json:
        reported = {name: record.get(name) for name in USUAL_RECORD_FIELDS[:4]}
        reported["offset"], reported["timestamp"] = str(reported["offset"]), str(reported["timestamp"])
        headers = list(record.get("headers") or [])
        if self._headers != "none":
            reported["headers"] = headers if self._headers == "ordered" else sorted(headers, key=str)
        return reported

    def wrong(self) -> Callable[[Case], tuple[str, tuple[str, ...]] | None]:
        """Return the test for a search, which finds bytes with different answers."""

        def wrong(case: Case) -> tuple[str, tuple[str, ...]] | None:
            groups = self.groups(case)
            return None if len(groups) < LEAST else reported_groups(groups)

        return wrong


def _comparable(value: object) -> object:
    """Remove values that differ from run to run: clock times, and texts, which name temporary directories."""
    if isinstance(value, dict):
        return {name: _comparable(each) for name, each in value.items() if name not in OF_A_RUN}
    return [_comparable(each) for each in value] if isinstance(value, list) else value


def reported_groups(groups: dict[str, list[str]]) -> tuple[str, tuple[str, ...]]:
    """Return the implementations of each group, and the answer of each group."""
    ranked = sorted(groups.items(), key=lambda item: (-len(item[1]), item[1]))
    sides = " | ".join(", ".join(names) for _, names in ranked)
    return sides, tuple(f"{', '.join(names)}: {_brief(reported)}" for reported, names in ranked)


def _brief(reported: str, most: int = 300) -> str:
    return reported if len(reported) <= most else f"{reported[:most]}... ({len(reported)} characters)"


def disagreements(panel: Panel, cases: Sequence[Case]) -> list[tuple[Case, str, tuple[str, ...]]]:
    """Return the cases with different answers, with the groups."""
    wrong = panel.wrong()
    return [(case, *reported) for case in cases if (reported := wrong(case)) is not None]

"""The causes of the failures of a run: results grouped by rule and operation, each group with a headline.

A failure whose answer itself shows another cause, such as a key that was read as text, belongs to that cause. Valid
bytes that are refused with one text have one cause, and so have failures by one departure of Kafka.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

from seglog_conformance.headlines import WITHOUT_RULE, headline
from seglog_conformance.shown_causes import LAYOUTS, READING, TEXT, possible_causes, shown_cause
from seglog_conformance.verdicts import FINE, Verdict, level_of
from seglog_format.requirements import spec_directory

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from seglog_conformance.cases import Case
    from seglog_conformance.verdicts import Result

LEVELS: Final = ("must", "should", "may")
KAFKA: Final = "kafka.apache.org"
"""Part of the homepage of Kafka's own implementations."""
DEPARTURES: Final = re.compile(r"^\[(SEG-[A-Z]{3}-\d{3})\]: |What brokers do \((DEP-\d\d)\)", re.MULTILINE)

EVERY: Final = "every"
WORDS: Final = 5
"""Number of words from which on the text of a refusal says what is refused."""
FEW: Final = 3
"""Number of refused cases from which on an operation that refuses all of them has one cause."""


class Key(NamedTuple):
    """What the failures of one cause have in common.

    Attributes:
        name: id of a rule, number of a departure, or a name of `WITHOUT_RULE`.
        op: operation; empty for a cause that is the same in all of them.
        is_refusal: whether the cases must be refused.
    """

    name: str
    op: str
    is_refusal: bool


@dataclass(frozen=True, slots=True)
class Cause:
    """Failures with one cause.

    Attributes:
        rule: id of the rule that is broken; the most frequent one if there are several.
        rules: every rule that is the first one of a case, the most frequent one first.
        op: operation; several with commas.
        level: highest level of the failing cases.
        headline: what the implementation does wrong, in a few words that follow its name.
        failed: failing results, those of the highest level and the most frequent verdict first, of these the smallest.
        asked_cases: ids of the cases of this rule, operation and kind that were asked.
        departure: number of the departure of Kafka that it is; empty if it is none.
    """

    rule: str
    rules: tuple[str, ...]
    op: str
    level: str
    headline: str
    failed: tuple[Result, ...]
    asked_cases: frozenset[str]
    departure: str = ""

    @property
    def asked(self) -> int:
        """Return the number of cases that were asked."""
        return len(self.asked_cases)

    @property
    def count(self) -> str:
        """Return how many of the asked cases fail, such as ``SEG-BAT-003: 43 of 47``."""
        name = f"{self.departure}, {self.rule}" if self.departure else self.rule
        return f"{name}: {len(self.failed)} of {self.asked}"

    @property
    def verdicts(self) -> Counter[Verdict]:
        """Return the number of failures by verdict."""
        return Counter(result.raw for result in self.failed)


@cache
def departures() -> dict[str, str]:
    """Return the number of the departure of Kafka from each rule that has one, from the chapters."""
    found = {}
    for path in sorted(spec_directory().glob("[0-9]*.md")):
        rule = ""
        for match in DEPARTURES.finditer(path.read_text(encoding="utf-8")):
            rule = match[1] or rule
            if match[2]:
                found[rule] = match[2]
    return found


def causes(results: Sequence[Result], cases: Mapping[str, Case], *, homepage: str = "") -> list[Cause]:
    """Return the causes of the failures among results: MUST first, of one level the most frequent first.

    Args:
        results: every result of a testee, also those that pass: they count as asked.
        cases: the cases, by id; a result of another case counts for nothing.
        homepage: of the implementation: departures count as one for Kafka's own.
    """
    known = [result for result in results if result.case in cases and result.verdict is not Verdict.SKIP]
    grouping = _Grouping(known, cases, is_kafka=KAFKA in homepage)
    groups: dict[Key, list[Result]] = {}
    for result in known:
        if result.verdict not in FINE:
            groups.setdefault(grouping.key(result), []).append(result)
    if not groups:
        return []
    asked: dict[Key, set[str]] = {key: {result.case for result in failed} for key, failed in groups.items()}
    for result in known:
        for key in grouping.possible(cases[result.case]):
            asked.get(key, set()).add(result.case)
    found = [_cause(key, failed, frozenset(asked[key]), cases) for key, failed in groups.items()]
    return sorted(found, key=lambda cause: _weight(cause, cases))


def _weight(cause: Cause, cases: Mapping[str, Case]) -> tuple[int, int, int, str, str]:
    at_level = sum(_level(result, cases) == cause.level for result in cause.failed)
    return LEVELS.index(cause.level), -at_level, -len(cause.failed), cause.rule, cause.op


def _level(result: Result, cases: Mapping[str, Case]) -> str:
    return level_of(cases[result.case].level, result.raw)


class _Grouping:
    """Puts failures into groups.

    Args:
        results: every result of a testee.
        cases: cases by id.
        is_kafka: whether departures of Kafka are causes.
    """

    def __init__(self, results: Sequence[Result], cases: Mapping[str, Case], *, is_kafka: bool) -> None:
        self._cases = cases
        self._is_kafka = is_kafka
        self._refusing = self._ops_that_refuse(results)
        self._messages = self._rules_of_messages(results)

    def _ops_that_refuse(self, results: Iterable[Result]) -> frozenset[str]:
        """Return the operations in which a testee refuses everything that it must accept."""
        verdicts: dict[str, Counter[bool]] = {}
        for result in results:
            case = self._cases[result.case]
            if case.result == "valid":
                verdicts.setdefault(case.op, Counter())[result.raw is Verdict.REJECTS_VALID] += 1
        return frozenset(op for op, counts in verdicts.items() if counts[True] >= FEW and not counts[False])

    def _rules_of_messages(self, results: Iterable[Result]) -> dict[tuple[str, str, str], str]:
        """Return the rule for each text with which valid bytes are refused: that of most cases of a level, or above."""
        counts: dict[tuple[str, str, str], Counter[str]] = {}
        for result in results:
            case = self._cases[result.case]
            if result.raw is Verdict.REJECTS_VALID and case.requirements[0] not in LAYOUTS:
                for level in LEVELS[LEVELS.index(case.level) :]:
                    counts.setdefault((case.op, level, _message(result)), Counter())[case.requirements[0]] += 1
        return {about: max(sorted(rules), key=rules.__getitem__) for about, rules in counts.items()}

    def key(self, result: Result) -> Key:
        """Return what puts a failure into its group: what its answer shows, else the first rule of its case."""
        case = self._cases[result.case]
        if result.verdict in {Verdict.XPASS, Verdict.ADAPTER_ERROR}:
            return Key(result.verdict, case.op, is_refusal=False)
        if case.op in self._refusing and case.result != "invalid":
            return Key(EVERY, case.op, is_refusal=False)
        shown = shown_cause(result, case) or self._same_refusal(result, case)
        if shown == TEXT:
            return Key(TEXT, "", is_refusal=False)
        own = self._own(case)
        return own._replace(name=shown, is_refusal=False) if shown else own

    def _same_refusal(self, result: Result, case: Case) -> str:
        """Return the rule of most cases that are refused with the same text; empty if the text is of no use."""
        message = _message(result)
        is_of_use = case.requirements[0] in LAYOUTS or len(message.split()) >= WORDS
        if result.raw is not Verdict.REJECTS_VALID or case.result == "acceptable" or not is_of_use:
            return ""
        rule = self._messages.get((case.op, case.level, message), "")
        return "" if rule == case.requirements[0] else rule

    def possible(self, case: Case) -> Iterator[Key]:
        """Yield the groups that a case can fail in: that of its own rule, and those that answers to it can show."""
        yield from (Key(verdict, case.op, is_refusal=False) for verdict in (Verdict.XPASS, Verdict.ADAPTER_ERROR))
        if case.op in self._refusing and case.result != "invalid":
            yield Key(EVERY, case.op, is_refusal=False)
        own = self._own(case)
        yield own
        yield from (own._replace(name=name, is_refusal=False) for name in possible_causes(case))
        if case.op in READING:
            yield Key(TEXT, "", is_refusal=False)

    def _own(self, case: Case) -> Key:
        rule = case.requirements[0]
        number = departures().get(rule, "") if self._is_kafka else ""
        is_refusal = case.result == "invalid"
        return Key(number, "", is_refusal=is_refusal) if number else Key(rule, case.op, is_refusal=is_refusal)


def _message(result: Result) -> str:
    """Return the words of a refusal: numbers and names of values change from case to case."""
    return " ".join(re.findall(r"[A-Za-z]{2,}", result.detail))


def _cause(key: Key, failed: Sequence[Result], asked: frozenset[str], cases: Mapping[str, Case]) -> Cause:
    level = min((_level(result, cases) for result in failed), key=LEVELS.index)
    first = [result for result in failed if _level(result, cases) == level]
    own = Counter(cases[result.case].requirements[0] for result in [*first, *failed]).most_common()
    is_rule = key.name.startswith("SEG-")
    ops = tuple(dict.fromkeys(cases[result.case].op for result in failed))
    rules = tuple(dict.fromkeys([*([key.name] if is_rule else []), *(rule for rule, _ in own)]))
    verdict, _ = Counter(result.raw for result in first).most_common(1)[0]

    def weight(result: Result) -> tuple[bool, bool, bool, int, str]:
        case = cases[result.case]
        is_about = case.requirements[0] == rules[0]
        return _level(result, cases) != level, result.raw is not verdict, not is_about, case.input_size, case.id

    words = WITHOUT_RULE.get(key.name) or headline(rules[0], verdict, ops[0], is_refusal=key.is_refusal)
    return Cause(
        rule=rules[0],
        rules=rules,
        op=", ".join(ops),
        level=level,
        headline=words,
        failed=tuple(sorted(failed, key=weight)),
        asked_cases=asked,
        departure=key.name if key.name.startswith("DEP-") else "",
    )


def first_line(found: Iterable[Cause]) -> str:
    """Return the headline of the first cause with its count, and the number of the others; empty without a cause."""
    listed = list(found)
    if not listed:
        return ""
    others = len(listed) - 1
    more = f"; {others} more cause{'s' if others > 1 else ''}" if others else ""
    return f"{listed[0].headline} ({listed[0].count}){more}"

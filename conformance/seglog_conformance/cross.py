"""Producers by consumers: the logs of each encoder, as each decoder reads them."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from seglog_conformance.compare import UNSTABLE
from seglog_conformance.features import UNTOLD_OF_MODELS, missing_feature
from seglog_conformance.protocol import field_names
from seglog_conformance.testee import Kind
from seglog_conformance.verdicts import FINE, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from seglog_conformance.cases import Case
    from seglog_conformance.judging import Examiner
    from seglog_conformance.protocol import Json
    from seglog_conformance.verdicts import Result


@dataclass(slots=True)
class Pair:
    """One producer and one consumer.

    Attributes:
        producer: name.
        consumer: name.
        counts: number of results by verdict.
        failures: results that fail.
    """

    producer: str
    consumer: str
    counts: Counter[Verdict] = field(default_factory=Counter)
    failures: list[Result] = field(default_factory=list)

    @property
    def asked(self) -> int:
        """Logs that the consumer read."""
        return sum(count for verdict, count in self.counts.items() if verdict is not Verdict.SKIP)

    def add(self, result: Result) -> None:
        """Count a result."""
        self.counts[result.verdict] += 1
        if result.verdict not in FINE:
            self.failures.append(result)


def models(cases: Sequence[Case]) -> list[Case]:
    """Return the cases whose batches are written: cases of encoders with one right answer."""
    return [case for case in cases if case.op == "encode" and case.result == "valid"]


def cross(examiners: Sequence[Examiner], cases: Sequence[Case]) -> Iterator[Pair]:
    """Let each testee that encodes write, and each that decodes read it.

    Args:
        examiners: of testees that have been started.
        cases: cases with the batches.
    """
    consumers = [one for one in examiners if one.hello is not None and "decode" in one.hello.ops]
    for producer in examiners:
        if producer.hello is None or "encode" not in producer.hello.ops:
            continue
        written = [(case, data) for case in models(cases) if (data := _written(producer, case)) is not None]
        for consumer in consumers:
            pair = Pair(producer.testee.name, consumer.testee.name)
            for case, data in written:
                pair.add(consumer.examine(_read_case(case, data, producer.testee.name)))
            yield pair


def _written(producer: Examiner, case: Case) -> str | None:
    """Return the bytes of a case's batches; None if the producer does not write them."""
    assert producer.hello is not None
    if missing_feature(case.needs, producer.hello.features):
        return None
    reply = producer.ask(case)
    if reply.kind is not Kind.ANSWER or reply.answer is None or reply.answer.get("ok") is not True:
        return None
    return str(reply.answer.get("data", ""))


def _not_given(batches: Iterable[Json]) -> list[str]:
    """Return the paths of what a request to encode leaves to the encoder, or to the defaults."""
    given = set[str].intersection(*map(set, batches))
    return [f"batches[*].{name}" for name in field_names("batch") if name not in given]


def _read_case(case: Case, data: str, producer: str) -> Case:
    """Return the case for a decoder: to read the bytes of a producer."""
    batches = [_reported(batch) for batch in case.expect.get("batches") or case.request["batches"]]
    return replace(
        case,
        id=f"cross/{producer}-{hashlib.sha256(data.encode()).hexdigest()[:12]}-{case.id.replace('/', '-')}",
        op="decode",
        stored_request={"data": data, "options": {"crc": True}},
        stored_expect={"batches": batches},
        also={},
        untold=(*UNTOLD_OF_MODELS["decode"], *_not_given(batches)),
        why=f"Bytes of {producer} must be read: {case.why}",
    )


def _reported(batch: Json) -> Json:
    return {name: value for name, value in batch.items() if name not in UNSTABLE}

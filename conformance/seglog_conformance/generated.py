"""Cases that are made up: model objects, never raw bytes, and named changes to them, so that shrinking keeps a meaning.

What comes out of a search is an ordinary case, ready to be kept.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from hypothesis import HealthCheck, Phase, Verbosity, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st

from seglog_conformance.cases import Case
from seglog_conformance.mutations import Mutation, mutated, mutations
from seglog_conformance.reference import decode
from seglog_conformance.reference.logs import encode
from seglog_conformance.verdicts import FINE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from hypothesis.strategies import SearchStrategy

    from seglog_conformance.protocol import Json
    from seglog_conformance.verdicts import Result

CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
FAMILY: Final = 99
FAMILY_NAME: Final = "found"
LARGEST_OFFSET: Final = 2**62
MAX_RECORDS: Final = 4


@dataclass(frozen=True, slots=True)
class RecordModel:
    """A record as somebody would think of it."""

    key: bytes | None = None
    value: bytes | None = b""
    headers: tuple[tuple[bytes, bytes | None], ...] = ()
    gap: int = 0
    timestamp_delta: int = 0


@dataclass(frozen=True, slots=True)
class BatchModel:
    """A magic 2 batch.

    Attributes:
        records: at least one.
        codec: name.
        gap: offsets between the batch before and this one.
        base_timestamp: of the first record.
        is_stamped: the broker set the time.
        producer: id, epoch and first sequence, or None.
        leader_epoch: of the partition.
        last_gap: offsets after the last record that the batch still stands for.
    """

    records: tuple[RecordModel, ...]
    codec: str = "none"
    gap: int = 0
    base_timestamp: int = 0
    is_stamped: bool = False
    producer: tuple[int, int, int] | None = None
    leader_epoch: int = 0
    last_gap: int = 0


@dataclass(frozen=True, slots=True)
class LogModel:
    """What a search draws: batches, the offset they begin at, and a change to their bytes, if any."""

    batches: tuple[BatchModel, ...]
    base_offset: int = 0
    mutation: Mutation | None = None

    @property
    def kind(self) -> str:
        """Return what was changed, in a word or two."""
        return "as it is" if self.mutation is None else self.mutation.name


def logs(*, codecs: Sequence[str] = CODECS, is_mutated: bool = False) -> SearchStrategy[LogModel]:
    """Return logs of up to three batches.

    Args:
        codecs: to choose from.
        is_mutated: with one named change.
    """
    data = st.one_of(st.none(), st.binary(max_size=24))
    pair = st.tuples(st.text(max_size=4).map(str.encode), data)
    record = st.builds(
        RecordModel,
        key=data,
        value=data,
        headers=st.lists(pair, max_size=3).map(tuple),
        gap=st.one_of(st.just(0), st.integers(0, 1000)),
        timestamp_delta=st.one_of(st.just(0), st.integers(-(2**31), 2**33)),
    )
    producer = st.tuples(st.integers(0, 2**63 - 1), st.integers(0, 2**15 - 1), st.integers(0, 2**31 - 1))
    batch = st.builds(
        BatchModel,
        records=st.lists(record, min_size=1, max_size=MAX_RECORDS).map(tuple),
        codec=st.sampled_from(list(codecs)),
        gap=st.one_of(st.just(0), st.integers(0, 2**31)),
        base_timestamp=st.one_of(st.just(0), st.integers(0, 2**42)),
        is_stamped=st.booleans(),
        producer=st.one_of(st.none(), producer),
        leader_epoch=st.integers(-1, 2**31 - 1),
        last_gap=st.one_of(st.just(0), st.integers(0, 1000)),
    )
    return st.builds(
        LogModel,
        batches=st.lists(batch, min_size=1, max_size=3).map(tuple),
        base_offset=st.one_of(st.just(0), st.integers(0, LARGEST_OFFSET)),
        mutation=mutations() if is_mutated else st.none(),
    )


def canonical(model: LogModel) -> list[Json]:
    """Return the batches of a model in the vocabulary of the wire, without what only an encoder knows."""
    batches, offset = [], model.base_offset
    for batch in model.batches:
        made = _batch(batch, offset + batch.gap)
        batches.append(made)
        offset = int(made["nextOffset"])
    return batches


def _batch(model: BatchModel, base_offset: int) -> Json:
    records, offset = [], base_offset
    for number, one in enumerate(model.records):
        offset += one.gap if number else 0
        # the first record of a batch stands at its base offset, as producers and brokers have it
        records.append(_record(one, offset, model.base_timestamp + (one.timestamp_delta if number else 0)))
        offset += 1
    largest = max(int(record["timestamp"]) for record in records)
    if model.is_stamped:
        records = [{**record, "timestamp": str(largest)} for record in records]
    last = offset - 1 + model.last_gap
    producer, epoch, sequence = model.producer or (-1, -1, -1)
    return {
        "magic": 2,
        "baseOffset": str(base_offset),
        "lastOffset": str(last),
        "nextOffset": str(last + 1),
        "codec": model.codec,
        "timestampType": "LogAppendTime" if model.is_stamped else "CreateTime",
        "baseTimestamp": str(model.base_timestamp),
        "maxTimestamp": str(largest),
        "deleteHorizonMs": None,
        "recordsCount": len(records),
        "producerId": str(producer),
        "producerEpoch": epoch,
        "baseSequence": sequence,
        "isTransactional": False,
        "isControl": False,
        "partitionLeaderEpoch": model.leader_epoch,
        "isValid": True,
        "records": records,
    }


def _record(model: RecordModel, offset: int, timestamp_ms: int) -> Json:
    record: Json = {
        "offset": str(offset),
        "timestamp": str(timestamp_ms),
        "key": _hex(model.key),
        "value": _hex(model.value),
    }
    if model.headers:
        record["headers"] = [[key.hex(), _hex(value)] for key, value in model.headers]
    return record


def _hex(data: bytes | None) -> str | None:
    return None if data is None else data.hex()


def case_of(model: LogModel, name: str = "generated") -> Case:
    """Return a model as a case: its records are expected; of changed bytes, what the reference reads."""
    batches = canonical(model)
    encoded = encode({"batches": batches})
    assert encoded["ok"], encoded
    data = bytes.fromhex(encoded["data"])
    result, expect = "valid", {"batches": batches, "consumed": len(data), "tail": None}
    if model.mutation is not None:
        data = mutated(data, model.mutation)
        answer = decode({"data": data.hex()})
        expect = {key: value for key, value in answer.items() if key != "ok"}
        result = "valid" if answer["ok"] else "invalid"
    digest = hashlib.sha256(data).hexdigest()[:12]
    return Case(
        id=f"{FAMILY_NAME}/{name}-{digest}",
        family=FAMILY,
        family_name=FAMILY_NAME,
        op="decode",
        requirements=("SEG-BAT-001",),
        level="must" if model.mutation is None else "should",
        result=result,
        why=f"A counterexample that a search has found: {model.kind}.",
        stored_request={"data": data.hex(), "options": {"crc": True}},
        stored_expect=expect,
        needs=("magic:2", *sorted({f"codec:{batch.codec}" for batch in model.batches} - {"codec:none"})),
        source="the model" if model.mutation is None else "the reference",
    )


def case_file(cases: Sequence[Case]) -> str:
    """Cases as the text of a file."""
    stored = [
        {
            "id": case.id,
            "op": case.op,
            "requirements": list(case.requirements),
            "level": case.level,
            "result": case.result,
            "needs": list(case.needs),
            "flags": [],
            "why": case.why,
            "since": case.since,
            "source": case.source,
            "request": case.stored_request,
            "expect": case.stored_expect,
        }
        for case in cases
    ]
    content = {"family": FAMILY, "name": FAMILY_NAME, "title": "Counterexamples", "flags": {}, "cases": stored}
    return json.dumps(content, indent=1) + "\n"


@dataclass(frozen=True, slots=True)
class Found:
    """The smallest case that shows something.

    Attributes:
        case: ready to be kept.
        reported: what it shows: a verdict, or groups that disagree.
        kind: what was changed in the bytes.
        detail: more of it.
    """

    case: Case
    reported: str
    kind: str
    detail: tuple[str, ...] = ()


@dataclass(slots=True)
class Search:
    """Looks for cases that something is wrong with, and goes on behind each that it has found.

    Attributes:
        wrong: what is wrong with a case, with details; None if nothing.
        examples: to try in each round.
        seed: of the first round.
        most: counterexamples to look for.
        codecs: to choose from.
        is_mutated: change the bytes.
        tried: how many cases were asked, those of shrinking included.
    """

    wrong: Callable[[Case], tuple[str, tuple[str, ...]] | None]
    examples: int = 200
    seed: int = 0
    most: int = 5
    codecs: Sequence[str] = CODECS
    is_mutated: bool = False
    name: str = "generated"
    tried: int = 0
    _seen: set[tuple[str, str]] = field(default_factory=set)

    def run(self) -> list[Found]:
        """Search until nothing new comes; each kind of finding is told once."""
        found: list[Found] = []
        for number in range(self.most):
            one = self._round(self.seed + number)
            if one is None:
                break
            self._seen.add((one.reported, one.kind))
            found.append(one)
        return found

    def _round(self, seed: int) -> Found | None:
        smallest: list[Found] = []

        @seeded(seed)
        @settings(
            max_examples=self.examples,
            database=None,
            deadline=None,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
            report_multiple_bugs=False,
            verbosity=Verbosity.quiet,
            print_blob=False,
        )
        @given(logs(codecs=self.codecs, is_mutated=self.is_mutated))
        def look(model: LogModel) -> None:
            self.tried += 1
            one = self._found(model)
            if one is not None and (one.reported, one.kind) not in self._seen:
                smallest[:] = [one]
                raise Counterexample(one.reported)

        try:
            look()
        except Counterexample:
            return smallest[0]
        return None

    def _found(self, model: LogModel) -> Found | None:
        case = case_of(model, self.name)
        reported = self.wrong(case)
        return None if reported is None else Found(case, reported[0], model.kind, reported[1])


class Counterexample(Exception):  # noqa: N818 - not an error of this program
    """A search has found something."""


def wrong_verdict(examine: Callable[[Case], Result]) -> Callable[[Case], tuple[str, tuple[str, ...]] | None]:
    """Return what is wrong by the verdict on one testee."""

    def wrong(case: Case) -> tuple[str, tuple[str, ...]] | None:
        result = examine(case)
        if result.verdict in FINE:
            return None
        return str(result.verdict), (result.detail, *result.differences[1:])

    return wrong

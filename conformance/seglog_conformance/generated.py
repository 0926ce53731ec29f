"""Generated cases: model objects, never raw bytes, and named changes to them, which keep their meaning in shrinking.

The result of a search is an ordinary case, which can be kept.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from hypothesis import strategies as st

from seglog_conformance.cases import Case
from seglog_conformance.features import UNTOLD_OF_MODELS
from seglog_conformance.mutations import Mutation, mutated, mutations
from seglog_conformance.reference import decode
from seglog_conformance.reference.logs import encode

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hypothesis.strategies import SearchStrategy

    from seglog_conformance.protocol import Json

CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
FAMILY: Final = 99
FAMILY_NAME: Final = "found"
LARGEST_OFFSET: Final = 2**62
MAX_RECORDS: Final = 4
RECORD_BATCH: Final = 2


@dataclass(frozen=True, slots=True)
class RecordModel:
    """A record, independent of any encoding."""

    key: bytes | None = None
    value: bytes | None = b""
    headers: tuple[tuple[bytes, bytes | None], ...] = ()
    gap: int = 0
    timestamp_delta: int = 0


@dataclass(frozen=True, slots=True)
class BatchModel:
    """A batch; in magic 0 and 1 a wrapper, or plain messages if there is no codec.

    Attributes:
        records: at least one.
        codec: name of the codec.
        gap: number of offsets between the previous batch and this one.
        base_timestamp: timestamp of the first record.
        is_stamped: whether the broker set the time.
        producer: id, epoch and first sequence, or None.
        leader_epoch: leader epoch of the partition.
        last_gap: number of offsets after the last record that the batch still covers.
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
    """The input of a search: batches, the offset at which they begin, and a change to their bytes, if any."""

    batches: tuple[BatchModel, ...]
    base_offset: int = 0
    mutation: Mutation | None = None
    magic: int = 2

    @property
    def kind(self) -> str:
        """Return the name of the change."""
        return "as it is" if self.mutation is None else self.mutation.name


def logs(
    *, codecs: Sequence[str] = CODECS, magics: Sequence[int] = (2,), is_mutated: bool = False
) -> SearchStrategy[LogModel]:
    """Return logs of up to three batches.

    Args:
        codecs: possible codecs.
        magics: possible magics.
        is_mutated: whether to make one named change.
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
        magic=st.sampled_from(list(magics)),
    )


def canonical(model: LogModel) -> list[Json]:
    """Return the entries of a model in the wire format, without values that only an encoder knows."""
    batches: list[Json] = []
    offset = model.base_offset
    for batch in model.batches:
        made = (
            _batch(batch, offset + batch.gap) if model.magic == RECORD_BATCH else _messages(model.magic, batch, offset)
        )
        batches += made if isinstance(made, list) else [made]
        offset = int(batches[-1]["nextOffset"])
    return batches


def encoded(batches: Sequence[Json]) -> bytes:
    """Return the entries as the reference encodes them."""
    answer = encode({"batches": batches})
    assert answer["ok"], answer
    return bytes.fromhex(answer["data"])


def _messages(magic: int, model: BatchModel, offset: int) -> list[Json]:
    """Return a batch as a wrapper, or as single messages, which cover no offset without a message."""
    batch = _batch(replace(model, last_gap=0, producer=None), offset + model.gap)
    records = [_message(magic, record) for record in batch["records"]]
    if model.codec == "none":
        return [_entry(magic, batch, [record]) for record in records]
    return [_entry(magic, batch, records)]


def _message(magic: int, record: Json) -> Json:
    kept = {name: value for name, value in record.items() if name != "headers"}
    return {**kept, "timestamp": record["timestamp"] if magic else "-1", "innerMagic": magic}


def _entry(magic: int, batch: Json, records: list[Json]) -> Json:
    last = int(records[-1]["offset"])
    newest = max(int(record["timestamp"]) for record in records)
    return {
        "magic": magic,
        "baseOffset": records[0]["offset"],
        "lastOffset": str(last),
        "nextOffset": str(last + 1),
        "codec": batch["codec"],
        "timestampType": batch["timestampType"] if magic else "NoTimestampType",
        "maxTimestamp": str(newest),
        "isTransactional": False,
        "isControl": False,
        "isValid": True,
        "records": records,
    }


def _batch(model: BatchModel, base_offset: int) -> Json:
    records, offset = [], base_offset
    for number, one in enumerate(model.records):
        offset += one.gap if number else 0
        # the offset of the first record is the base offset, as producers and brokers write it
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
    """Return a case for a model, which expects its records; for changed bytes, what the reference reads."""
    batches = canonical(model)
    data = encoded(batches)
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
        untold=UNTOLD_OF_MODELS["decode"],
    )


def asked_of_log(model: LogModel, name: str) -> Iterator[tuple[str, Case]]:
    """Yield the cases of a log, each with the name of the change."""
    yield model.kind, case_of(model, name)


def case_file(cases: Sequence[Case]) -> str:
    """Return cases as the text of a file."""
    return json.dumps(document(cases, FAMILY, FAMILY_NAME, "Counterexamples"), indent=1) + "\n"


def document(cases: Sequence[Case], family: int, name: str, title: str) -> Json:
    """Return cases as the content of a file.

    Args:
        cases: cases to store.
        family: number of the family.
        name: name of the family.
        title: title of the family.
    """
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
            **({"also": case.also} if case.also else {}),
            **({"untold": list(case.untold)} if case.untold else {}),
            "request": case.stored_request,
            "expect": case.stored_expect,
        }
        for case in cases
    ]
    return {"family": family, "name": name, "title": title, "flags": {}, "cases": stored}

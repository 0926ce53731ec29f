"""Generated partitions: every magic, indexes as brokers of different versions write them, and cases about them.

The expected lookups and reads follow from a walk over all generated records. The expected indexes and recovered logs
come from the reference.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from hypothesis import HealthCheck, Phase, Verbosity, given, settings
from hypothesis import seed as seeded
from hypothesis import strategies as st

from seglog_conformance.cases import Case
from seglog_conformance.features import UNTOLD_OF_MODELS
from seglog_conformance.generated import FAMILY, FAMILY_NAME, LogModel, canonical, encoded, logs
from seglog_conformance.reference.directories import recover
from seglog_conformance.reference.logs import index
from seglog_format.engine import Engine

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from hypothesis.strategies import SearchStrategy

    from seglog_conformance.protocol import Json

SEED: Final = 48
SAMPLE: Final = 50
SAMPLE_FAMILY: Final = 50
SAMPLE_NAME: Final = "generated"
GENERATIONS: Final = ("none", "0.8", "0.10.1", "2.0")
"""Generations of indexes: none; first offsets without times; first offsets with times; last offsets with times."""

MAX_RELATIVE: Final = 2**31 - 1
OFFSET_ENTRY: Final = struct.Struct(">ii")
TIME_ENTRY: Final = struct.Struct(">qi")
RULES: Final = {
    "decode": "SEG-LOG-011",
    "encode": "SEG-BAT-001",
    "index": "SEG-RCV-025",
    "lookup": "SEG-LKP-001",
    "read": "SEG-LKP-003",
    "recover": "SEG-RCV-003",
}


@dataclass(frozen=True, slots=True)
class PartitionModel:
    """A partition, with the parameters of the cases about it.

    Attributes:
        log: entries of the partition.
        generation: generation of its indexes.
        border: number of the entry that starts a second segment, modulo their count; 0 for one segment.
        interval: number of bytes between index entries.
        asked: number of the record to look up and to read from, modulo their count.
        later: milliseconds added to the timestamp to look up.
        lost: number of bytes missing at the end before recovery.
    """

    log: LogModel
    generation: str = "2.0"
    border: int = 0
    interval: int = 0
    asked: int = 0
    later: int = 0
    lost: int = 0


def partitions() -> SearchStrategy[PartitionModel]:
    """Return a strategy for partitions of up to three batches, simple ones first."""
    return st.builds(
        PartitionModel,
        log=st.one_of(logs(), logs(codecs=("none", "gzip", "snappy", "lz4"), magics=(1, 0))),
        generation=st.sampled_from(GENERATIONS[::-1]),
        border=st.integers(0, 2),
        interval=st.sampled_from((0, 100, 4096)),
        asked=st.integers(0, 8),
        later=st.integers(-1, 1),
        lost=st.integers(0, 100),
    )


@dataclass(frozen=True, slots=True)
class _Entry:
    """An entry of the log with its position."""

    batch: Json
    data: bytes
    position: int

    @property
    def first_offset(self) -> int:
        return int(self.batch["baseOffset"])

    @property
    def last_offset(self) -> int:
        return int(self.batch["lastOffset"])


def asked_of_partition(model: PartitionModel, name: str) -> Iterator[tuple[str, Case]]:
    """Yield the cases about a partition: one for each operation and two for lookups, each with its kind.

    Args:
        model: the partition.
        name: name of the testee, for the ids.
    """
    batches = canonical(model.log)
    data = encoded(batches)
    segments = _segments(model, batches)
    files = dict(_files(segments, model.generation))
    digest = hashlib.sha256(data + repr(model).encode()).hexdigest()[:12]

    def case(op: str, source: str, request: Json, expect: Json, label: str = "") -> tuple[str, Case]:
        kind = label or op
        return kind, Case(
            id=f"{FAMILY_NAME}/{name}-{kind}-{digest}",
            family=FAMILY,
            family_name=FAMILY_NAME,
            op=op,
            requirements=(RULES[op],),
            level="must",
            result="valid",
            why=f"A partition that a search has drawn: {op}.",
            stored_request=request,
            stored_expect=expect,
            needs=_needs(model.log),
            source=source,
            also={"checkpoints": {}} if op == "recover" else {},
            untold=UNTOLD_OF_MODELS.get(op, ()),
        )

    yield case("decode", "the model", {"data": data.hex(), "options": {"crc": True}}, {"batches": batches})
    if all(int(record["timestamp"]) >= -1 for batch in batches for record in batch["records"]):
        yield case("encode", "the model", {"batches": batches}, {"batches": [_bound(batch) for batch in batches]})
    records = [record for batch in batches for record in batch["records"]]
    chosen = records[model.asked % len(records)]
    found = _found(segments, chosen["offset"])
    yield case("lookup", "the model", {"files": files, "offset": chosen["offset"]}, {"found": found})
    if model.log.magic:
        wanted = max(int(chosen["timestamp"]) + model.later, 0)
        time = {"files": files, "timestamp": str(wanted)}
        yield case("lookup", "the model", time, {"found": _first_not_older(records, wanted)}, "lookup-time")
    if len(segments) > 1:
        return  # a read ends with a segment, and the other cases are about one log
    base = segments[0][0].first_offset
    read = [_read(record) for record in records if int(record["offset"]) >= int(chosen["offset"])]
    expect = {"records": read, "nextOffset": batches[-1]["nextOffset"]}
    yield case("read", "the model", {"files": files, "offset": chosen["offset"]}, expect)
    built = {"data": data.hex(), "baseOffset": str(base), "indexIntervalBytes": model.interval}
    yield case("index", "the reference", built, _answer(index(built, Engine.REFERENCE)))
    log = {_name(base): data[: max(len(data) - model.lost, 1)].hex()}
    recovered = {"files": log, "options": {"indexIntervalBytes": model.interval}}
    yield case("recover", "the reference", recovered, _answer(recover(recovered, Engine.REFERENCE)))


def _bound(batch: Json) -> Json:
    """Return the batch without fields that an encoder may choose.

    With a time set by the broker, the base of the deltas is free, and so are epoch and sequence without a producer id.
    A producer may store a batch uncompressed if compression does not make it smaller.
    """
    free = {"codec"}
    free |= {"baseTimestamp"} if batch["timestampType"] == "LogAppendTime" else set()
    free |= {"producerEpoch", "baseSequence"} if batch.get("producerId", "-1") == "-1" else set()
    return {name: value for name, value in batch.items() if name not in free}


def _first_not_older(records: Sequence[Json], timestamp_ms: int) -> Json | None:
    first = next((one for one in records if int(one["timestamp"]) >= timestamp_ms), None)
    return None if first is None else {"offset": first["offset"], "timestamp": first["timestamp"]}


def _answer(answer: Json) -> Json:
    assert answer["ok"], answer
    return {name: value for name, value in answer.items() if name in {"files", "nextOffset", "truncatedBytes"}}


def _needs(log: LogModel) -> tuple[str, ...]:
    codecs = sorted({f"codec:{batch.codec}" for batch in log.batches} - {"codec:none"})
    return (f"magic:{log.magic}", *codecs)


def _read(record: Json) -> Json:
    return {name: record[name] for name in ("offset", "timestamp", "key", "value", "headers") if name in record}


def _segments(model: PartitionModel, batches: Sequence[Json]) -> list[list[_Entry]]:
    """Return the entries of each segment; an entry beyond the 32 bits of relative offsets begins a new one."""
    border = model.border % len(batches)
    parts: list[list[_Entry]] = []
    position = 0
    for number, batch in enumerate(batches):
        data = encoded([batch])
        is_border = border and number == border
        if not parts or is_border or int(batch["lastOffset"]) - parts[-1][0].first_offset > MAX_RELATIVE:
            parts.append([])
            position = 0
        parts[-1].append(_Entry(batch, data, position))
        position += len(data)
    return parts


def _name(base: int, suffix: str = ".log") -> str:
    return f"{base:020}{suffix}"


def _files(segments: Sequence[Sequence[_Entry]], generation: str) -> Iterator[tuple[str, str]]:
    for entries in segments:
        base = entries[0].first_offset
        yield _name(base), b"".join(entry.data for entry in entries).hex()
        if generation != "none":
            yield _name(base, ".index"), b"".join(_offset_entries(entries, base, generation)).hex()
        if generation in {"0.10.1", "2.0"}:
            yield _name(base, ".timeindex"), b"".join(_time_entries(entries, base)).hex()


def _offset_entries(entries: Sequence[_Entry], base: int, generation: str) -> Iterator[bytes]:
    """Yield an index entry for each entry of the log but the first."""
    for entry in entries[1:]:
        offset = entry.last_offset if generation == "2.0" else entry.first_offset
        yield OFFSET_ENTRY.pack(offset - base, entry.position)


def _time_entries(entries: Sequence[_Entry], base: int) -> Iterator[bytes]:
    """Yield each new largest timestamp, with the last offset of its entry."""
    largest = -1
    for entry in entries:
        timestamp = int(entry.batch["maxTimestamp"])
        if timestamp > largest:
            largest = timestamp
            yield TIME_ENTRY.pack(timestamp, entry.last_offset - base)


def _found(segments: Sequence[Sequence[_Entry]], offset: str) -> Json:
    entry = next(one for entries in segments for one in entries if int(offset) <= one.last_offset)
    return {"position": entry.position, "baseOffset": str(entry.first_offset)}


def sample(seed: int = SEED) -> list[Case]:
    """Return the cases of some random partitions.

    They depend on the release of Hypothesis and on the state of this code, whose constants it also draws. The cases of
    the suite are therefore stored in a file.

    Args:
        seed: seed, also a part of the ids, which always refer to the same bytes.
    """
    models: list[PartitionModel] = []

    @seeded(seed)
    @settings(
        max_examples=SAMPLE,
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
        verbosity=Verbosity.quiet,
    )
    @given(partitions())
    def take(model: PartitionModel) -> None:
        models.append(model)

    take()
    return [
        replace(case, id=f"{SAMPLE_NAME}/{seed}-{number}-{kind}", family=SAMPLE_FAMILY, family_name=SAMPLE_NAME)
        for number, model in enumerate(models)
        for kind, case in asked_of_partition(model, "")
    ]

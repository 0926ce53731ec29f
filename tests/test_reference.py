"""The reference parses with the declarations themselves, and every quick decoder says what it says."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

import construct
import pytest
from helpers.batches import batch, record, zigzag_varint
from helpers.decoders import answer, assert_same_entries, told
from helpers.messages import message, sealed, wrapper
from helpers.support import authentic, authentic_names, vectors
from hypothesis import given, settings
from hypothesis import strategies as st

from proofs.fuzz.random_logs import random_log
from seglog_format.codec import index_entries, producer_snapshot
from seglog_format.codec.decode import decode_batch
from seglog_format.codec.record_stream import KEPT_RECORDS
from seglog_format.codec.reference import index_entries as by_declaration_indexes
from seglog_format.codec.reference import producer_snapshot as by_declaration_snapshot
from seglog_format.codec.reference.decode import decode_batch as decode_by_declaration
from seglog_format.engine.choice import Engine
from seglog_format.errors import FormatError, Location
from seglog_format.log.offset_index import OffsetIndex
from seglog_format.log.partition import Partition, open_partition
from seglog_format.log.time_index import TimeIndex
from seglog_format.small_model import ProducerStateEntry

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

AT = Location("file", 7)
SEEDS = st.integers(0, 200)


@pytest.mark.parametrize("name", sorted(vectors()))
def test_vectors(name: str) -> None:
    assert_same_entries(vectors()[name])


@pytest.mark.parametrize("name", authentic_names())
def test_logs_of_brokers(name: str) -> None:
    for path in authentic(name).rglob("*.log"):
        assert_same_entries(path.read_bytes()[: 2**16])


@pytest.mark.parametrize("name", authentic_names())
def test_side_files_of_brokers(name: str) -> None:
    for path in authentic(name).rglob("*.*"):
        if path.suffix in SIDE_FILES and path.is_file():
            SIDE_FILES[path.suffix](path.read_bytes()[: 2**16])


@given(SEEDS, st.data())
def test_logs_by_chance(seed: int, draw: st.DataObject) -> None:
    """Whole, cut short, and with bits that were flipped: checksums of whole batches fit again."""
    data = bytearray(random_log(seed).data)
    del data[draw.draw(st.integers(0, len(data)), "end") :]
    for place in draw.draw(st.lists(st.integers(0, max(0, len(data) - 1)), max_size=3 if data else 0), "places"):
        data[place] ^= 1 << draw.draw(st.integers(0, 7), "bit")
    assert_same_entries(bytes(data))


FIELD_BYTES = st.sampled_from([0, 0, 0, 1, 1, 2, 3, 4, 6, 0x7F, 0x80, 0x80, 0xFF])
FIELDS = st.binary(max_size=30) | st.lists(FIELD_BYTES, max_size=60).map(bytes)


@given(st.lists(FIELDS, max_size=4), st.integers(-1, 5), st.binary(max_size=8), st.integers(0, 0x7F))
@settings(max_examples=600)
def test_any_bytes_as_records(bodies: list[bytes], count: int, rest: bytes, attributes: int) -> None:
    section = b"".join(zigzag_varint(len(body)) + body for body in bodies) + rest
    assert_same_entries(batch(section, count, attributes=attributes & ~7))


@given(FIELDS, st.integers(0, 5), st.integers(-(2**63), 2**63 - 1), st.integers(-(2**31), 2**31 - 1))
@settings(max_examples=300)
def test_any_header_before_any_records(section: bytes, count: int, number: int, sequence: int) -> None:
    assert_same_entries(
        batch(section, count, base_timestamp_ms=number, max_timestamp_ms=number, base_sequence=sequence)
    )


@given(st.binary(max_size=80), st.sampled_from([0, 1]), st.booleans())
def test_any_bytes_as_a_message(body: bytes, magic: int, is_wrapped: bool) -> None:  # noqa: FBT001
    whole = sealed(bytes([magic, 0]) + body, 0)
    assert_same_entries(wrapper(whole, offset=3, magic=magic) if is_wrapped else whole)


def _offset_index(data: bytes) -> None:
    assert tuple(OffsetIndex.from_bytes(data, 10).entries) == by_declaration_indexes.decode_offset_index(data, 10)


def _time_index(data: bytes) -> None:
    assert tuple(TimeIndex.from_bytes(data, 10).entries) == by_declaration_indexes.decode_time_index(data, 10)


def _transaction_index(data: bytes) -> None:
    plain = answer(lambda: index_entries.decode_transaction_index(data, AT))
    assert plain == answer(lambda: by_declaration_indexes.decode_transaction_index(data, AT))


def _snapshot(data: bytes) -> None:
    plain = answer(lambda: producer_snapshot.decode_producer_snapshot(data, AT))
    assert plain == answer(lambda: by_declaration_snapshot.decode_producer_snapshot(data, AT))


SIDE_FILES: dict[str, Callable[[bytes], None]] = {
    ".index": _offset_index,
    ".timeindex": _time_index,
    ".txnindex": _transaction_index,
    ".snapshot": _snapshot,
}


@pytest.mark.parametrize("suffix", SIDE_FILES)
@given(data=st.binary(max_size=100) | st.binary(max_size=60).map(lambda some: bytes(4) + some))
def test_any_bytes_as_a_side_file(suffix: str, data: bytes) -> None:
    SIDE_FILES[suffix](data)


NUMBERS = st.tuples(
    *(st.integers(-(2 ** (8 * size - 1)), 2 ** (8 * size - 1) - 1) for size in (8, 2, 4, 8, 4, 8, 4, 8))
)


@given(st.lists(NUMBERS, max_size=4), st.none() | st.tuples(st.integers(0, 9), st.integers(1, 255)), st.integers(0, 3))
def test_producer_snapshots(rows: list[Any], flip: tuple[int, int] | None, cut: int) -> None:
    data = bytearray(producer_snapshot.encode_producer_snapshot(ProducerStateEntry(*row) for row in rows))
    if flip:
        data[flip[0]] ^= flip[1]
    _snapshot(bytes(data[: len(data) - cut]))


def blocked(*_arguments: object) -> None:
    msg = "construct is blocked"
    raise RuntimeError(msg)


@pytest.mark.parametrize("name", authentic_names())
def test_records_of_partitions_of_brokers(name: str) -> None:
    for path in sorted({path.parent for path in authentic(name).rglob("*.log") if path.stat().st_size < 2**17}):
        with open_partition(path) as partition:
            start, end = partition.log_start_offset, partition.log_end_offset
            for bounds in ((None, None), ((start + end) // 2, None), (start, (start + end) // 2)):
                plain, reference = (delivered(partition, bounds, engine) for engine in (Engine.PLAIN, Engine.REFERENCE))
                assert plain == reference


def delivered(partition: Partition, bounds: tuple[int | None, int | None], engine: Engine) -> list[object]:
    """What is delivered, up to the end or the error."""
    found: list[object] = []
    try:
        found.extend(islice(partition.records(*bounds, engine=engine, on_gap=found.append), 500))
    except FormatError as error:
        found.append(told(error))
    return found


@pytest.mark.parametrize("name", ["4.3.0/segs", "4.3.0/createtime", "0.10.2.2/createtime"])
def test_without_construct_the_plain_engine_reads_what_is_not_compressed(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = sorted({path.parent for path in authentic(name).rglob("*.log") if path.stat().st_size})
    with open_partition(paths[0]) as partition:
        wanted = delivered(partition, (None, None), Engine.PLAIN)
        assert wanted
        for method in ("parse", "parse_stream", "_parsereport"):
            monkeypatch.setattr(construct.Construct, method, blocked)
        assert delivered(partition, (None, None), Engine.PLAIN) == wanted
        with pytest.raises(RuntimeError, match="construct is blocked"):
            delivered(partition, (None, None), Engine.REFERENCE)


def test_a_batch_of_very_many_records(tmp_path: Path) -> None:
    """It is delivered as it is decoded, by either engine, up to where it is wrong."""
    section = record() * (KEPT_RECORDS + 5) + b"\0"
    path = tmp_path / "many-0"
    path.mkdir()
    (path / f"{0:020}.log").write_bytes(batch(section, KEPT_RECORDS + 6, last_offset_delta=0))
    with open_partition(path) as partition:
        ends = [delivered(partition, (0, None), engine) for engine in (Engine.PLAIN, Engine.REFERENCE)]
    assert ends[0] == ends[1]


READINGS: dict[str, Callable[[], object]] = {
    "batch": lambda: decode_by_declaration(vectors()["V-06"]),
    "message": lambda: decode_by_declaration(message(0)),
    "offset index": lambda: by_declaration_indexes.decode_offset_index(bytes(8), 0),
    "time index": lambda: by_declaration_indexes.decode_time_index(bytes(12), 0),
    "transaction index": lambda: by_declaration_indexes.decode_transaction_index(bytes(34), AT),
    "snapshot": lambda: by_declaration_snapshot.decode_producer_snapshot(
        producer_snapshot.encode_producer_snapshot([]), AT
    ),
}


@pytest.mark.parametrize("reading", READINGS.values(), ids=READINGS)
def test_without_construct_the_reference_reads_nothing(
    reading: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    reading()
    for name in ("parse", "parse_stream", "_parsereport"):
        monkeypatch.setattr(construct.Construct, name, blocked)
    with pytest.raises(RuntimeError, match="construct is blocked"):
        reading()


@pytest.mark.parametrize("size", [0, 17, 18, 40])
def test_bytes_that_hold_no_entry(size: int) -> None:
    data = vectors()["V-06"][:size]
    assert answer(lambda: decode_batch(data)) == answer(lambda: decode_by_declaration(data))
    with pytest.raises(FormatError, match="SEG-LOG-004"):
        decode_by_declaration(data)

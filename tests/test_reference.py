"""The reference parses with the declarations themselves, and every quick decoder says what it says."""

from __future__ import annotations

from collections import Counter
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

import construct
import pytest
from helpers.batches import batch, record, zigzag_varint
from helpers.decoders import answer, assert_same_entries, decode_by_declaration, reported
from helpers.messages import message, sealed, wrapper
from helpers.support import authentic, authentic_names, vectors
from helpers.walking import each_of
from hypothesis import given, settings
from hypothesis import strategies as st

from proofs.fuzz.random_logs import random_log
from seglog_format import rebuild_indexes, recover, verify
from seglog_format.cli.ls import segment_summary
from seglog_format.codec.compression import compress, decompress, trailing_size
from seglog_format.codec.container_headers import PLAIN
from seglog_format.codec.control_record import decode_control_record
from seglog_format.codec.decode import KEPT_RECORDS, decode_batch
from seglog_format.codec.reference import CONTAINERS, CONTROLS, declared
from seglog_format.codec.side_files import encode_producer_snapshot
from seglog_format.engine import Engine
from seglog_format.errors import FormatError, Location
from seglog_format.log.index_file import OffsetIndex, ProducerSnapshot, TimeIndex, TransactionIndex
from seglog_format.log.listing import list_partition
from seglog_format.log.partition import Partition, open_partition
from seglog_format.log.scanning import storage_for
from seglog_format.model import CompressionCodec, ProducerStateEntry
from seglog_format.recovery.apply import RecoveryOptions
from seglog_format.storage.byte_source import MemoryBytes

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from seglog_format.codec.container_headers import ContainerHeaders

AT = Location("file", 7)
SEEDS = st.integers(0, 200)


@each_of("name", sorted(vectors()))
def test_vectors(name: str) -> None:
    assert_same_entries(vectors()[name])


@each_of("name", authentic_names())
def test_logs_of_brokers(name: str) -> None:
    for path in authentic(name).rglob("*.log"):
        assert_same_entries(path.read_bytes()[: 2**16])


@each_of("name", authentic_names())
def test_side_files_of_brokers(name: str) -> None:
    for path in authentic(name).rglob("*.*"):
        if path.suffix in SIDE_FILES and path.is_file():
            SIDE_FILES[path.suffix](path.read_bytes()[: 2**16])


@given(SEEDS, st.data())
def test_logs_by_chance(seed: int, draw: st.DataObject) -> None:
    """Whole, cut short, and with bits that were flipped: checksums of whole batches fit again."""
    data = bytearray(random_log(seed).data)
    del data[draw.draw(st.integers(0, len(data)), "end") :]
    for position in draw.draw(st.lists(st.integers(0, max(0, len(data) - 1)), max_size=3 if data else 0), "places"):
        data[position] ^= 1 << draw.draw(st.integers(0, 7), "bit")
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
    indexes = [OffsetIndex(source, 10) for source in (MemoryBytes(data), declared(data))]
    assert_same(*(list(index.entries) for index in indexes))
    assert_same(*(list(index.raw_entries()) for index in indexes))


def _time_index(data: bytes) -> None:
    indexes = [TimeIndex(source, 10) for source in (MemoryBytes(data), declared(data))]
    assert_same(*(list(index.entries) for index in indexes))
    assert_same(*([index.entries[slot] for slot in range(len(index.entries))] for index in indexes))


def _transaction_index(data: bytes) -> None:
    assert_same(*(answer(partial(TransactionIndex.from_source, read(data), 10, "file")) for read in SOURCES))


def _snapshot(data: bytes) -> None:
    assert_same(*(answer(partial(ProducerSnapshot.from_source, read(data), "file")) for read in SOURCES))


SOURCES = (MemoryBytes, declared)


def assert_same(plain: object, reference: object) -> None:
    assert plain == reference


SIDE_FILES: dict[str, Callable[[bytes], None]] = {
    ".index": _offset_index,
    ".timeindex": _time_index,
    ".txnindex": _transaction_index,
    ".snapshot": _snapshot,
}


COMPRESSED = [codec for codec in CompressionCodec if codec is not CompressionCodec.NONE]
CONTENT = b"some bytes that repeat, some bytes that repeat" * 3


def decompressed(codec: CompressionCodec, headers: ContainerHeaders, data: bytes | None = None) -> object:
    """Return the decompressed bytes, and how many are left over; or the error."""
    stored = compress(codec, CONTENT, magic=1 if codec is CompressionCodec.LZ4 else 2) if data is None else data
    options: dict[str, Any] = {"magic": 2, "at": AT, "limit": 2**20, "headers": headers}
    return decompress(codec, stored, **options), trailing_size(codec, stored, **options)


def assert_same_content(codec: CompressionCodec, data: bytes) -> None:
    plain, reference = (answer(partial(decompressed, codec, headers, data)) for headers in (PLAIN, CONTAINERS))
    assert plain == reference


@pytest.mark.parametrize("codec", COMPRESSED)
@given(flips=st.lists(st.tuples(st.integers(0, 40), st.integers(0, 255)), max_size=3), end=st.integers(0, 60))
def test_compressed_data_with_bytes_that_were_changed(
    codec: CompressionCodec, flips: list[tuple[int, int]], end: int
) -> None:
    data = bytearray(compress(codec, CONTENT, magic=2))
    for position, byte in flips:
        data[position % len(data)] = byte
    assert_same_content(codec, bytes(data))
    assert_same_content(codec, bytes(data[:end]))
    assert_same_content(codec, bytes(data) + bytes(data[:end]))


STARTS = {
    CompressionCodec.GZIP: b"\x1f\x8b\x08",
    CompressionCodec.SNAPPY: bytes.fromhex("82534e4150505900"),
    CompressionCodec.LZ4: bytes.fromhex("04224d18"),
    CompressionCodec.ZSTD: bytes.fromhex("28b52ffd"),
}


@pytest.mark.parametrize("codec", COMPRESSED)
@given(data=st.binary(max_size=40))
def test_any_bytes_as_compressed_data(codec: CompressionCodec, data: bytes) -> None:
    for start in (b"", STARTS[codec], b"\x50\x2a\x4d\x18"):
        assert_same_content(codec, start + data)


@given(st.none() | st.binary(max_size=6), st.none() | st.binary(max_size=8), st.integers(0, 3))
def test_any_bytes_as_a_control_record(key: bytes | None, value: bytes | None, kind: int) -> None:
    for one in (key, b"\0\0\0" + bytes([kind])):
        plain, reference = (
            answer(partial(decode_control_record, one, value, AT, *reader)) for reader in ((), (CONTROLS,))
        )
        assert plain == reference


@pytest.mark.parametrize("suffix", SIDE_FILES)
@given(data=st.binary(max_size=100) | st.binary(max_size=60).map(lambda some: bytes(4) + some))
def test_any_bytes_as_a_side_file(suffix: str, data: bytes) -> None:
    SIDE_FILES[suffix](data)


NUMBERS = st.tuples(
    *(st.integers(-(2 ** (8 * size - 1)), 2 ** (8 * size - 1) - 1) for size in (8, 2, 4, 8, 4, 8, 4, 8))
)


@given(st.lists(NUMBERS, max_size=4), st.none() | st.tuples(st.integers(0, 9), st.integers(1, 255)), st.integers(0, 3))
def test_producer_snapshots(rows: list[Any], flip: tuple[int, int] | None, cut: int) -> None:
    data = bytearray(encode_producer_snapshot(ProducerStateEntry(*row) for row in rows))
    if flip:
        data[flip[0]] ^= flip[1]
    _snapshot(bytes(data[: len(data) - cut]))


def blocked(*_arguments: object) -> None:
    msg = "construct is blocked"
    raise RuntimeError(msg)


@each_of("name", authentic_names())
def test_records_of_partitions_of_brokers(name: str) -> None:
    for path in sorted({path.parent for path in authentic(name).rglob("*.log") if path.stat().st_size < 2**17}):
        with open_partition(path) as partition:
            start, end = partition.log_start_offset, partition.log_end_offset
            for bounds in ((None, None), ((start + end) // 2, None), (start, (start + end) // 2)):
                plain, reference = (delivered(partition, bounds, engine) for engine in (Engine.PLAIN, Engine.REFERENCE))
                assert plain == reference


def delivered(partition: Partition, bounds: tuple[int | None, int | None], engine: Engine) -> list[object]:
    """Return what is delivered, up to the end or the error."""
    found: list[object] = []
    try:
        found.extend(islice(partition.records(*bounds, engine=engine, on_gap=found.append), 500))
    except FormatError as error:
        found.append(reported(error))
    return found


def block(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let nothing be parsed by construct."""
    for method in ("parse", "parse_stream", "_parsereport"):
        monkeypatch.setattr(construct.Construct, method, blocked)


def partitions(name: str) -> list[Path]:
    """Return the directories of a broker that hold something, the smallest first."""
    sizes: Counter[Path] = Counter()
    for path in authentic(name).rglob("*.log"):
        sizes[path.parent] += path.stat().st_size
    return sorted((path for path, size in sizes.items() if 0 < size < 2**17), key=lambda path: (sizes[path], path))


@each_of("name", authentic_names())
def test_without_construct_the_plain_engine_reads_records(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for path in partitions(name)[:2]:
        with open_partition(path) as partition, monkeypatch.context() as patched:
            wanted = delivered(partition, (None, None), Engine.PLAIN)
            block(patched)
            assert delivered(partition, (None, None), Engine.PLAIN) == wanted
            with pytest.raises(RuntimeError, match="construct is blocked"):
                delivered(partition, (None, None), Engine.REFERENCE)


def recovery_plan(path: Path, engine: Engine) -> object:
    return recover(path, options=RecoveryOptions(engine=engine)).plan


def rebuilt(path: Path, engine: Engine) -> object:
    return [segment.indexes for segment in rebuild_indexes(path, engine=engine).segments()]


def findings(path: Path, engine: Engine) -> object:
    return list(verify(path, engine=engine))


def summaries(path: Path, engine: Engine) -> object:
    storage = storage_for(engine)
    return [segment_summary(files, storage=storage) for files in list_partition(path).segments]


TASKS: dict[str, Callable[[Path, Engine], object]] = {
    "verify": findings,
    "recover": recovery_plan,
    "rebuild_indexes": rebuilt,
    "ls": summaries,
}


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
@each_of("name", authentic_names(), share=4)
def test_no_result_depends_on_the_engine(task: Callable[[Path, Engine], object], name: str) -> None:
    for path in partitions(name)[:1]:
        assert task(path, Engine.PLAIN) == task(path, Engine.REFERENCE)


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_a_task_of_the_reference_parses_with_the_declarations(
    task: Callable[[Path, Engine], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = partitions("4.3.0/crash-flip")[0]
    task(path, Engine.PLAIN)
    task(path, Engine.REFERENCE)
    block(monkeypatch)
    with pytest.raises(RuntimeError, match="construct is blocked"):
        task(path, Engine.REFERENCE)


def test_logs_with_markers_and_snapshots_do_not_depend_on_the_engine() -> None:
    """Transactions, aborted ones among them: their files are decoded by the engine that was asked for."""
    paths = [path.parent for path in authentic_files(".txnindex")] + [
        path.parent for path in authentic_files(".snapshot")
    ]
    assert paths
    for path in sorted(set(paths))[:12]:
        assert findings(path, Engine.PLAIN) == findings(path, Engine.REFERENCE)


def authentic_files(suffix: str) -> list[Path]:
    found = (path for name in authentic_names() for path in authentic(name).rglob(f"*{suffix}"))
    return [path for path in found if 0 < path.stat().st_size < 2**14]


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
    "offset index": lambda: list(OffsetIndex(declared(bytes(8)), 0).entries),
    "time index": lambda: list(TimeIndex(declared(bytes(12)), 0).entries),
    "transaction index": lambda: TransactionIndex.from_source(declared(bytes(34)), 0),
    "snapshot": lambda: ProducerSnapshot.from_source(declared(encode_producer_snapshot([]))),
    "control record": lambda: decode_control_record(bytes(4), bytes(6), AT, CONTROLS),
    **{f"{codec.name} data": partial(decompressed, codec, CONTAINERS) for codec in COMPRESSED},
}


@pytest.mark.parametrize("reading", READINGS.values(), ids=READINGS)
def test_without_construct_the_reference_reads_nothing(
    reading: Callable[[], object], monkeypatch: pytest.MonkeyPatch
) -> None:
    reading()
    block(monkeypatch)
    with pytest.raises(RuntimeError, match="construct is blocked"):
        reading()


@pytest.mark.parametrize("size", [0, 17, 18, 40])
def test_bytes_that_hold_no_entry(size: int) -> None:
    data = vectors()["V-06"][:size]
    assert answer(lambda: decode_batch(data)) == answer(lambda: decode_by_declaration(data))
    with pytest.raises(FormatError, match="SEG-LOG-004"):
        decode_by_declaration(data)

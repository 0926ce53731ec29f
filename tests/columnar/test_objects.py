"""`Partition.records` on large input, and lookups of single records, equal the reference: fields and errors."""

from __future__ import annotations

import gc
import itertools
import random
import sys
from typing import TYPE_CHECKING, Any

import pytest

pytest.importorskip("pyarrow")

from helpers.batches import patched
from helpers.scans import ranges_of, segment_directory, take_kernels, within
from helpers.support import authentic, authentic_names
from helpers.walking import each_of
from test_hostile_scan import FULL, INPUTS, changes

from proofs.fuzz.random_logs import random_log
from seglog_format import Engine, engine
from seglog_format.codec.build import build_batch, build_message_entry, new_record
from seglog_format.codec.encode import encode_batch
from seglog_format.columnar import objects, run
from seglog_format.errors import FormatError, UsageError
from seglog_format.log import reading
from seglog_format.log.listing import list_partition
from seglog_format.log.partition import open_partition
from seglog_format.log.segment import LogSegment
from seglog_format.model import INT64_MAX, CompressionCodec, Message, Record

if TYPE_CHECKING:
    from pathlib import Path

    from seglog_format.log.partition import Partition

Outcome = tuple[list["Record | Message"], str]
WAYS = ("kernels", "struct")


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Read records by kernels, or by the quick loop, whatever the size of a log."""
    monkeypatch.setattr(reading, "QUICK_SIZE", 0)
    monkeypatch.setattr(engine, "COLUMNAR_SIZE", INT64_MAX)
    if request.param == "kernels":
        take_kernels(monkeypatch)
    return str(request.param)


def outcome(partition: Partition, most: int | None = None, **options: Any) -> Outcome:
    """Return what is delivered, and the error that ends it."""
    found: list[Record | Message] = []
    try:
        found.extend(itertools.islice(partition.records(**options), most))
    except FormatError as error:
        return found, str(error)
    return found, ""


def by_reference(partition: Partition, most: int | None = None, **options: Any) -> Outcome:
    return outcome(partition, most, engine=Engine.REFERENCE, **options)


def assert_same_records(path: Path, **shared: Any) -> None:
    with open_partition(path) as partition, open_partition(path) as other:
        wanted = by_reference(other, **shared)
        assert outcome(partition, **shared) == wanted
        for bounds in ranges_of(other):
            part = by_reference(other, **shared, **bounds) if wanted[1] else (within(wanted[0], **bounds), "")
            assert outcome(partition, **shared, **bounds) == part


@pytest.mark.usefixtures("way")
@each_of("name", authentic_names(), share=2)
def test_records_of_authentic_logs(name: str) -> None:
    for path in sorted({path.parent for path in authentic(name).rglob("*.log")}):
        assert_same_records(path)
        if "txn" in name:
            assert_same_records(path, isolation="read_committed")


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("seed", range(12))
def test_records_of_logs_by_chance(seed: int, tmp_path: Path) -> None:
    log, dice = random_log(seed), random.Random(seed)  # noqa: S311
    assert_same_records(segment_directory(tmp_path / "chance-0", log.data, log.base_offset))
    changed = bytearray(log.data)
    for _ in range(2):
        changed[dice.randrange(len(changed))] ^= 1 << dice.randrange(8)
        assert_same_records(segment_directory(tmp_path / "chance-0", bytes(changed), log.base_offset))


@pytest.mark.filterwarnings(
    "ignore:.*nothing readable:seglog_format.errors.MissingOffsetsWarning"
)  # the only segment is damaged
@pytest.mark.parametrize("name", INPUTS)
def test_every_change_has_the_same_verdict(name: str, way: str, tmp_path: Path) -> None:
    every = 1 if FULL else 31
    for number, changed in enumerate(changes(INPUTS[name])):
        if number % every == 0:
            with open_partition(segment_directory(tmp_path / "hostile-0", changed)) as partition:
                assert outcome(partition) == by_reference(partition), (way, changed.hex())


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("seed", range(6))
def test_each_offset_looked_up(seed: int, tmp_path: Path) -> None:
    log = random_log(seed)
    with (
        open_partition(segment_directory(tmp_path / "chance-0", log.data, log.base_offset)) as partition,
        open_partition(partition.path) as other,
    ):
        offsets = range(partition.log_start_offset, partition.log_end_offset)
        for offset in random.Random(seed).sample(offsets, min(20, len(offsets))):  # noqa: S311
            wanted = by_reference(other, 2, from_offset=offset)
            assert outcome(partition, 2, from_offset=offset) == wanted


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize(("position", "value"), [(26, 0), (26, 1), (74, 0), (64, 4)])
def test_reading_on_behind_a_record_whose_header_lies(position: int, value: int, tmp_path: Path) -> None:
    """The header's last offset is below those of records (byte 26), or two records have one offset (deltas)."""
    records = [new_record(value=b"value")] * 5
    lying, next_one = (encode_batch(build_batch(records, base_offset=base)) for base in (0, 5))
    data = patched(lying, position, "B", value) + next_one
    with open_partition(segment_directory(tmp_path / "lies-0", data)) as partition:
        for offset in range(5):
            assert outcome(partition, from_offset=offset) == by_reference(partition, from_offset=offset)


@pytest.mark.parametrize("seed", range(12))
def test_a_record_found_by_way_of_the_index_is_the_one(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "QUICK_SIZE", 0)
    log, dice = random_log(seed), random.Random(seed)  # noqa: S311
    directory = segment_directory(tmp_path / "chance-0", log.data, log.base_offset)
    with open_partition(directory) as partition:
        known = {record.offset: record for record in by_reference(partition)[0]}
        ends = partition.log_start_offset, partition.log_end_offset
        positions = list(
            zip(partition.segments[0].entries.last_offsets, partition.segments[0].entries.positions, strict=True)
        )
    index = b"".join((last - log.base_offset).to_bytes(4) + at.to_bytes(4) for last, at in positions[::3])
    for content in (index, bytes(16), dice.randbytes(40), index + bytes(80)):
        (directory / f"{log.base_offset:020d}.index").write_bytes(content)
        files = list_partition(directory).segments[0]
        for offset in dice.sample(range(ends[0] - 2, ends[1] + 2), min(50, ends[1] - ends[0])):
            with LogSegment(files) as segment:
                found = reading.LogReader([segment], trust_indexes=True).record_at(offset)
            assert found is None or found == known.get(offset)


@pytest.mark.parametrize("trust_indexes", [False, True])
def test_each_record_is_found_alone(*, trust_indexes: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "QUICK_SIZE", 0)
    records = [new_record(key=b"k", value=b"v%d" % number * 30, timestamp_ms=number) for number in range(300)]
    batches = [encode_batch(build_batch(records[at : at + 30], base_offset=at)) for at in range(0, 300, 30)]
    directory = segment_directory(tmp_path / "sound-0", b"".join(batches))
    positions = [(30 * number + 29, sum(map(len, batches[:number]))) for number in range(1, 10, 2)]
    index = b"".join(last.to_bytes(4) + at.to_bytes(4) for last, at in positions)
    (directory / f"{0:020d}.index").write_bytes(index)
    files = list_partition(directory).segments[0]
    with open_partition(directory) as partition:
        wanted = by_reference(partition)[0]
    for offset in range(300):
        with LogSegment(files) as segment:
            found = reading.LogReader([segment], trust_indexes=trust_indexes).record_at(offset)
        assert found == (None if engine.record_finder() is None else wanted[offset])


def large_log(directory: Path) -> Path:
    """Batches and messages with everything that they may hold."""
    headers = ((b"h", b"v"), (b"a longer name", None))
    records = [
        new_record(key=b"k", value=b"v" * (number % 50), timestamp_ms=number, headers=headers) for number in range(100)
    ]
    data = b"".join(
        encode_batch(build_batch(records, base_offset=100 * number, codec=CompressionCodec(number % 5)))
        for number in range(40)
    )
    plain = [new_record(key=b"key", value=b"value" * 9, timestamp_ms=7)]
    messages = [encode_batch(build_message_entry(plain, magic=1, base_offset=4_000 + at)) for at in range(300)]
    return segment_directory(directory / "large-0", data + b"".join(messages))


def test_objects_are_given_back(way: str, tmp_path: Path) -> None:
    with open_partition(large_log(tmp_path)) as partition:

        def read() -> tuple[int, int]:
            count = sum(1 for _ in partition.records())
            gc.collect()
            return count, sum(map(sys.getrefcount, (None, (), True)))

        count, before = read()
        assert count == 4_300
        after = [read()[1] for _ in range(3)][-1]
        assert abs(after - before) < 200, way


@pytest.mark.usefixtures("way")
def test_records_that_a_caller_keeps_stay_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "BLOCK_ROWS", 1000)
    directory = large_log(tmp_path)
    with open_partition(directory) as partition:
        wanted = by_reference(partition)[0]
        records, headers, pairs, fields = [], [], [], []
        for number, record in enumerate(partition.records()):
            (records, headers, pairs, fields)[number % 4].append(
                (record, record.headers, record.headers[-1:], (record.key, record.value, record.offset))[number % 4]
            )
    assert records == wanted[::4]
    assert headers == [each.headers for each in wanted[1::4]]
    assert [one for pair in pairs for one in pair] == [one for each in wanted[2::4] for one in each.headers[-1:]]
    assert fields == [(each.key, each.value, each.offset) for each in wanted[3::4]]
    with open_partition(directory) as partition:
        numbers = [_numbers(record) for record in partition.records()]
    assert numbers == [_numbers(record) for record in wanted]


def log_of_sizes(directory: Path) -> tuple[Path, list[bytes]]:
    """Values of many sizes in a random order."""
    dice = random.Random(11)  # noqa: S311 - the same each time
    values = [
        dice.randbytes(dice.choice((0, 1, 7, 8, 9, 15, 16, 17, 200, 511, 512, dice.randrange(600))))
        for _ in range(6_000)
    ]
    data = b"".join(
        encode_batch(build_batch([new_record(value=value) for value in values[at : at + 500]], base_offset=at))
        for at in range(0, len(values), 500)
    )
    return segment_directory(directory / "sizes-0", data), values


@pytest.mark.usefixtures("way")
def test_values_of_every_size_are_those_of_the_log(tmp_path: Path) -> None:
    """Also where a caller keeps some of them, or reads them through a view."""
    directory, values = log_of_sizes(tmp_path)
    kept, views = {}, {}
    with open_partition(directory) as partition:
        for record, value in zip(partition.records(), values, strict=True):
            assert record.value == value
            assert hash(record.value) == hash(value)
            if record.offset % 5 == 0:
                kept[record.offset] = record.value
            elif record.offset % 7 == 0:
                views[record.offset] = memoryview(record.value or b"")
    assert all(found == values[offset] for offset, found in (kept | views).items())


@pytest.mark.usefixtures("way")
@pytest.mark.parametrize("most", [None, 3_000])
def test_values_are_freed(most: int | None, tmp_path: Path) -> None:
    directory, _ = log_of_sizes(tmp_path)

    def blocks() -> int:
        with open_partition(directory) as partition:
            sum(1 for _ in itertools.islice(partition.records(), most))
        gc.collect()
        return sys.getallocatedblocks()

    before = min(blocks() for _ in range(3))
    assert min(blocks() for _ in range(3)) - before < 100


def _numbers(record: Record | Message) -> list[object]:
    return [getattr(record, name) for name in type(record).__slots__ if name not in {"key", "value", "headers"}]


def test_what_memory_cannot_hold_or_has_changed_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    take_kernels(monkeypatch)
    monkeypatch.setattr(objects, "make_objects", lambda *_: 1)
    with open_partition(large_log(tmp_path)) as partition, pytest.raises(UsageError, match="has changed"):
        list(partition.records())


def test_a_block_that_does_not_fit_the_log_makes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when somebody writes to the file between two kernels."""
    take_kernels(monkeypatch)
    made: list[int] = []
    make = objects.make_objects

    def with_other_bytes(log: Any, *rest: Any) -> int:
        changed = log.copy()
        changed[61:400] = 0xFF
        changed.flags.writeable = False
        made.append(make(changed, *rest))
        return made[-1]

    monkeypatch.setattr(objects, "make_objects", with_other_bytes)
    with open_partition(large_log(tmp_path)) as partition, pytest.raises(UsageError):
        list(partition.records())
    assert made[0] > 0


def test_this_interpreter_is_known() -> None:
    assert objects.can_make_objects() == (sys.implementation.name == "cpython")


def test_another_interpreter_is_left_alone(way: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for function in (objects.known_objects, objects.can_make_objects):
        function.cache_clear()
    monkeypatch.setattr(objects.platform, "python_implementation", lambda: "PyPy")
    assert not objects.can_make_objects()
    monkeypatch.setattr(run.RecordRun, "batches", None)
    with open_partition(large_log(tmp_path)) as partition:
        assert sum(1 for _ in partition.records()) == 4_300, way
    objects.can_make_objects.cache_clear()

"""The package answers what the algorithms of the specification answer: on broker directories, and on any log."""

from __future__ import annotations

import tempfile
from dataclasses import astuple
from functools import cache, lru_cache
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from helpers.log_strategies import index_files, made_logs
from helpers.made_logs import checkpoint
from helpers.made_partitions import make, transactional
from helpers.messages import message, wrapper
from helpers.support import authentic, bundled_cases, states
from helpers.walking import each_of
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from seglog_algorithms import entries, lookup, transaction_index
from seglog_algorithms.damage import Damage
from seglog_algorithms.directory import INDEX, TIME_INDEX, TRANSACTION_INDEX, base_offsets, file_name, files_that_count
from seglog_algorithms.entries import up_to_damage, walk
from seglog_algorithms.index_settings import Settings
from seglog_algorithms.indexes import indexes_of
from seglog_algorithms.logs import open_log
from seglog_algorithms.transactions import transactions_of
from seglog_conformance.specification.answers import decompress

from seglog_format import OffsetSpec, open_partition
from seglog_format.errors import FormatError, OffsetOutOfRangeError
from seglog_format.log.gaps import COMPACTED_TOPICS
from seglog_format.log.transactions import Transactions
from seglog_format.names import parse_partition_directory
from seglog_format.recovery.index_settings import IndexSettings
from seglog_format.recovery.segment_scan import side_files_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from seglog_algorithms.logs import Log

    from seglog_format.log.partition import Partition

pytestmark = [
    pytest.mark.filterwarnings("ignore::seglog_format.errors.MissingOffsetsWarning"),
]


@pytest.fixture(autouse=True, scope="module")
def parsed_once() -> Iterator[None]:
    """Parse the same bytes once: each question walks the log again, and most of that time is construct's."""
    with pytest.MonkeyPatch.context() as patched:
        prefixes = SimpleNamespace(parse=cache(entries.EntryPrefix.parse), sizeof=cache(entries.EntryPrefix.sizeof))
        patched.setattr(entries, "EntryPrefix", prefixes)
        patched.setattr(entries, "_header", lru_cache(maxsize=5000)(entries._header))
        yield


SAMPLES = 2
"""Offsets, and timestamps, that are asked of a broker's directory."""


def files_in(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in path.iterdir() if file.is_file()}


def partitions(root: Path) -> list[Path]:
    directories = (path for path in sorted(root.rglob("*-*")) if path.is_dir())
    return [path for path in directories if parse_partition_directory(path.name) and any(path.glob("*.log"))]


def answer(ask: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever is asked
    """Return the answer, or the rule of the refusal."""
    try:
        return ask()
    except Damage as damage:
        return damage.rule
    except OffsetOutOfRangeError:
        return "SEG-LKP-004"
    except FormatError as error:
        return error.requirements[0]


def sampled(numbers: Iterable[int]) -> list[int]:
    found = sorted(set(numbers))
    return found[:: max(len(found) // SAMPLES, 1)] + found[-1:]


def opened(partition: Partition) -> Log:
    start, directory = partition.log_start_offset, files_in(partition.path)
    trusts, topic = partition.trust_indexes, partition.listing.name
    is_compacted = topic is not None and topic.topic in COMPACTED_TOPICS
    return open_log(directory, decompress, checkpointed_start=start, trusts_indexes=trusts, is_compacted=is_compacted)


def check_log(partition: Partition, offsets: Iterable[int], timestamps: Iterable[int]) -> None:
    """Compare what both say of a log."""
    log = opened(partition)
    assert lookup.log_end_offset(log) == partition.log_end_offset
    found = transactions_of(log)
    assert found.last_stable_offset == partition.last_stable_offset
    assert [tuple(each) for each in found.aborted] == [astuple(each)[1:] for each in partition.aborted_transactions()]
    for offset in offsets:
        for isolation in ("read_uncommitted", "read_committed"):
            assert read_by_text(log, offset, isolation) == read_by_package(partition, offset, isolation)
    for timestamp in timestamps:
        assert answer(lambda: as_pair(lookup.find_timestamp(log, timestamp))) == answer(  # noqa: B023 - asked at once
            lambda: as_pair(partition.offset_for_timestamp(timestamp))  # noqa: B023 - as above
        )


def as_pair(found: Any) -> tuple[int, int] | None:  # noqa: ANN401 - of either side
    return None if found is None else (found.timestamp_ms, found.offset)


def read_by_text(log: Log, offset: int, isolation: str) -> object:
    def ask() -> object:
        found = lookup.fetch(log, offset, 1000, is_committed=isolation == "read_committed")
        records = [(each.offset, each.timestamp_ms, each.key, each.value) for each in found.records]
        return records, found.next_offset

    return answer(ask)


def read_by_package(partition: Partition, offset: int, isolation: Any) -> object:  # noqa: ANN401 - a literal
    def ask() -> object:
        found = partition.read(offset, 1000, isolation=isolation)
        records = [(each.offset, each.timestamp_ms, each.key, each.value) for each in found.records]
        return records, found.next_offset

    return answer(ask)


def check_indexes(directory: dict[str, bytes], interval_bytes: int) -> None:
    """Compare the indexes that both build from the logs."""
    files = files_that_count(directory)
    for base in base_offsets(files):
        log = files[file_name(base, ".log")]
        built = side_files_of(log, base, IndexSettings(interval_bytes), transactions=Transactions())
        indexes = indexes_of(log, base, Settings(interval_bytes), decompress)
        assert indexes.offset == built.offset_index
        assert indexes.time == built.time_index
        assert transaction_index.build(up_to_damage(log), {}, decompress) == built.transaction_index


@each_of("name", bundled_cases())
def test_directories_of_brokers(name: str) -> None:
    for path in chain.from_iterable(partitions(state) for state in states(authentic(name))):
        with open_partition(path) as partition:
            ends = range(partition.log_start_offset - 1, partition.log_end_offset + 2)
            times = [segment.largest_timestamp_ms for segment in partition.segments]
            check_log(partition, sampled(ends), [*OffsetSpec, *sampled(times)])
        check_indexes(files_in(path), 1000)


@settings(max_examples=20, phases=(Phase.explicit, Phase.generate))
@given(st.data())
def test_any_log_under_any_index(data: st.DataObject) -> None:
    made = data.draw(made_logs())
    indexes = data.draw(index_files(made))
    start = data.draw(st.integers(0, 12))
    with tempfile.TemporaryDirectory(prefix="seglog-") as name:
        root = Path(name)
        (root / "log-start-offset-checkpoint").write_text(checkpoint(("topic", 0, start)))
        path = made.write(root, indexes)
        with open_partition(path) as partition:
            check_log(partition, range(-1, partition.log_end_offset + 2), range(-3, 33, 3))
            by_package = [each.offset for each in partition.records(on_gap=lambda _: None)]
            records, damage = lookup.read_all(opened(partition))
            assert (damage, [each.offset for each in records]) == (None, by_package)
        check_indexes(files_in(path), data.draw(st.integers(0, 300)))


@settings(max_examples=20, phases=(Phase.explicit, Phase.generate))
@given(st.data())
def test_any_damage(data: st.DataObject) -> None:
    made = data.draw(made_logs())
    with tempfile.TemporaryDirectory(prefix="seglog-") as name:
        path = made.write(Path(name), {})
        log = data.draw(st.sampled_from(sorted(path.glob("*.log"))))
        damaged = bytearray(log.read_bytes())
        if damaged:
            damaged[data.draw(st.integers(0, len(damaged) - 1))] ^= 1 << data.draw(st.integers(0, 7))
            log.write_bytes(damaged)
        with open_partition(path) as partition:
            check_log(partition, range(-1, 20, 2), range(-3, 33, 3))
        check_indexes(files_in(path), 100)


def test_a_wrapper_behind_an_open_transaction_is_not_committed(tmp_path: Path) -> None:
    """It does not state its first offset, so only the base offset of its segment shows that it is above the end."""
    path = make(tmp_path, {"0.log": b"", "4.log": transactional(4), "6.log": wrapper(message(6), offset=6)})
    with open_partition(path) as partition:
        assert partition.last_stable_offset == 4
        check_log(partition, range(8), range(-6, 3))


def test_an_index_of_its_own_is_found_where_a_broker_wrote_one() -> None:
    path = next(iter(partitions(authentic("4.3.0/segs"))))
    files = files_in(path)
    for base in base_offsets(files)[:-1]:
        indexes = indexes_of(files[file_name(base, ".log")], base, Settings(), decompress)
        assert indexes.offset == files[file_name(base, INDEX)]
        assert indexes.time == files[file_name(base, TIME_INDEX)]
    txn = next(iter(partitions(authentic("4.3.0/txn"))))
    files = files_in(txn)
    written = list(walk(files[file_name(0, ".log")]))
    assert transaction_index.build(written, {}, decompress) == files[file_name(0, TRANSACTION_INDEX)]

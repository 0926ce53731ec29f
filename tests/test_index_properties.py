"""What every broker generation writes passes the rules of chapters 40 to 42, and what is shifted does not."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, NamedTuple

from helpers.index_violations import (
    offset_index_violations,
    producer_snapshot_violations,
    time_index_violations,
    transaction_index_violations,
)
from helpers.support import authentic_expected, authentic_names
from helpers.walking import each_of
from hypothesis import assume, given
from hypothesis import strategies as st

from seglog_format.checks.log_file import LogOutline, LogRow
from seglog_format.model import AbortedTxn, OffsetPosition, ProducerStateEntry, TimestampOffset

BASE = 1000


class Batch(NamedTuple):
    """An entry of a log with the timestamps of its records, which stand at consecutive offsets."""

    position: int
    size: int
    base_offset: int
    timestamps: tuple[int, ...]
    is_wrapper: bool

    @property
    def last_offset(self) -> int:
        return self.base_offset + len(self.timestamps) - 1

    @property
    def max_timestamp_ms(self) -> int:
        return max(self.timestamps)

    @property
    def row(self) -> LogRow:
        base, magic = (None, 1) if self.is_wrapper else (self.base_offset, 2)
        return LogRow(self.position, base, self.last_offset, self.max_timestamp_ms, magic)


@st.composite
def logs(draw: st.DrawFn) -> list[Batch]:
    """Batches with gaps between their offsets and timestamps in any order."""
    batches: list[Batch] = []
    position, offset = 0, BASE + draw(st.integers(0, 3))
    for _ in range(draw(st.integers(0, 15))):
        size = draw(st.integers(61, 200))
        timestamps = draw(st.lists(st.integers(0, 30), min_size=1, max_size=4))
        batches.append(Batch(position, size, offset, tuple(timestamps), draw(st.booleans())))
        position += size
        offset = batches[-1].last_offset + draw(st.sampled_from([1, 1, 1, 2, 10]))
    return batches


@st.composite
def units(draw: st.DrawFn, batches: list[Batch], *, multiple: bool) -> list[list[Batch]]:
    """Return the batches as append calls brought them."""
    grouped = []
    rest = batches
    while rest:
        count = draw(st.integers(1, 4)) if multiple else 1
        grouped.append(rest[:count])
        rest = rest[count:]
    return grouped


class Indexes(NamedTuple):
    offsets: list[OffsetPosition]
    times: list[TimestampOffset]


def indexes_of(grouped: list[list[Batch]], interval: int, *, first_offset: bool, by_record: bool) -> Indexes:
    """Return what a broker adds while it appends, and when it closes the segment."""
    result = Indexes([], [])
    bytes_since_entry = 0
    largest = TimestampOffset(-1, BASE)
    for unit in grouped:
        for batch in unit:
            if batch.max_timestamp_ms > largest.timestamp_ms:
                largest = TimestampOffset(batch.max_timestamp_ms, offset_of_maximum(batch, by_record=by_record))
        if bytes_since_entry > interval:
            result.offsets.append(OffsetPosition(stored_offset(unit, first_offset=first_offset), unit[0].position))
            add_time(result.times, largest)
            bytes_since_entry = 0
        bytes_since_entry += sum(batch.size for batch in unit)
    add_time(result.times, largest)
    return result


def stored_offset(unit: list[Batch], *, first_offset: bool) -> int:
    if not first_offset:
        return unit[-1].last_offset
    return unit[0].last_offset if unit[0].is_wrapper else unit[0].base_offset


def offset_of_maximum(batch: Batch, *, by_record: bool) -> int:
    if by_record and not batch.is_wrapper:
        return batch.base_offset + batch.timestamps.index(batch.max_timestamp_ms)
    return batch.last_offset


def add_time(times: list[TimestampOffset], largest: TimestampOffset) -> None:
    if largest.timestamp_ms > (times[-1].timestamp_ms if times else -1):
        times.append(largest)


GENERATIONS = {
    "0.8 to 1.1": {"multiple": True, "first_offset": True, "by_record": True},
    "2.0 to 3.6": {"multiple": True, "first_offset": False, "by_record": True},
    "3.7 to 4.0": {"multiple": True, "first_offset": False, "by_record": False},
    "4.1 and recovery": {"multiple": False, "first_offset": False, "by_record": False},
}


@st.composite
def indexed_logs(draw: st.DrawFn) -> tuple[LogOutline, Indexes]:
    rules = GENERATIONS[draw(st.sampled_from(sorted(GENERATIONS)))]
    batches = draw(logs())
    grouped = draw(units(batches, multiple=rules["multiple"]))
    interval = draw(st.sampled_from([0, 50, 100, 300]))
    built = indexes_of(grouped, interval, first_offset=rules["first_offset"], by_record=rules["by_record"])
    return LogOutline(batch.row for batch in batches), built


@given(indexed_logs())
def test_indexes_of_every_generation_pass(case: tuple[LogOutline, Indexes]) -> None:
    log, built = case
    assert list(offset_index_violations(built.offsets, BASE, log)) == []
    assert list(time_index_violations(built.times, BASE, log, is_active=False)) == []


@given(indexed_logs(), st.data())
def test_an_entry_whose_search_would_miss_a_record_is_found(
    case: tuple[LogOutline, Indexes], data: st.DataObject
) -> None:
    log, built = case
    assume(built.offsets)
    slot = data.draw(st.integers(0, len(built.offsets) - 1))
    position = data.draw(st.sampled_from([row.position for row in log.rows]) | st.integers(0, 4000))
    offset = data.draw(st.sampled_from([row.last_offset for row in log.rows]) | st.integers(BASE, BASE + 100))
    changed = [*built.offsets[:slot], OffsetPosition(offset, position), *built.offsets[slot + 1 :]]
    starts = {row.position: row for row in log.rows}
    found = offset_index_violations(changed, BASE, log)
    ids = {each.requirement for each in found if each.location.position == slot}
    assert ("SEG-IDX-003" in ids) == (position not in starts)
    missed = [row for row in log.rows if row.position < position and row.last_offset >= offset]
    if position in starts:
        base_offset = starts[position].base_offset
        starts_above = base_offset is not None and base_offset > offset
        assert ("SEG-IDX-006" in ids) == bool(missed or starts_above)


@given(indexed_logs(), st.integers(1, 50))
def test_timestamps_that_are_too_low_or_too_high_are_found(case: tuple[LogOutline, Indexes], step: int) -> None:
    log, built = case
    for slot, entry in enumerate(built.times):
        for timestamp_ms in (entry.timestamp_ms - step, entry.timestamp_ms + step):
            changed = [*built.times[:slot], TimestampOffset(timestamp_ms, entry.offset), *built.times[slot + 1 :]]
            found = time_index_violations(changed, BASE, log, is_active=True)
            assert "SEG-TIX-005" in {each.requirement for each in found if each.location.position == slot}


@given(logs(), st.integers(BASE, BASE + 200), st.integers(-1, 31))
def test_a_claim_about_younger_records_is_refuted_only_by_records(
    batches: list[Batch], offset: int, timestamp_ms: int
) -> None:
    log = LogOutline(batch.row for batch in batches)
    found = time_index_violations([TimestampOffset(timestamp_ms, offset)], BASE, log, is_active=True)
    if "SEG-TIX-004" in {each.requirement for each in found}:
        records = [
            (batch.base_offset + number, timestamp)
            for batch in batches
            for number, timestamp in enumerate(batch.timestamps)
        ]
        assert any(at <= offset and timestamp > timestamp_ms for at, timestamp in records)


def test_an_emptied_batch_proves_nothing_about_its_records() -> None:
    rows = [LogRow(0, BASE, BASE + 4, 5000, 2, is_empty=True), LogRow(61, BASE + 5, BASE + 6, 1000, 2)]
    entries = [TimestampOffset(1000, BASE + 6)]
    assert list(time_index_violations(entries, BASE, LogOutline(rows), is_active=False)) == []


def test_nothing_is_claimed_about_what_could_not_be_walked() -> None:
    rows = [LogRow(0, BASE, BASE + 4, 1000, 2)]
    beyond = [OffsetPosition(BASE + 6, 77), OffsetPosition(BASE + 9, 154)]
    younger = [TimestampOffset(2000, BASE + 9)]
    damaged = LogOutline(rows, unknown_from=77)
    assert list(offset_index_violations(beyond, BASE, damaged)) == []
    assert list(time_index_violations(younger, BASE, damaged, is_active=False)) == []
    cut_short = LogOutline(rows, partial_at=77)
    found = list(offset_index_violations(beyond, BASE, cut_short))
    assert [(each.location.position, each.requirement) for each in found] == [(1, "SEG-IDX-003")]
    assert list(time_index_violations(younger, BASE, cut_short, is_active=False)) == []


def test_without_a_log_or_a_name_nothing_is_held_against_them() -> None:
    assert list(transaction_index_violations([AbortedTxn(0, 9, BASE, BASE + 3, BASE + 4)], BASE)) == []
    producer = ProducerStateEntry(9, 0, 0, BASE, 0, 1000, -1, -1)
    assert list(producer_snapshot_violations([producer], BASE + 1)) == []
    assert len(list(producer_snapshot_violations([producer], BASE))) == 1


# What real brokers wrote, in Kafka's own reading of it


def is_undamaged(name: str, file: str) -> bool:
    case = name.partition("/")[2]
    is_damaged = case in {"crash-torn", "crash-zero", "crash-flip", "crash-flip-early", "crash-noindex"}
    return not is_damaged or (file.startswith("after/") and case not in {"crash-flip-early", "crash-noindex"})


def row_of(line: dict[str, Any]) -> LogRow:
    is_wrapper = line["magic"] < 2 and line["codec"] != "none"
    return LogRow(
        line["position"],
        None if is_wrapper else line["baseOffset"],
        line["lastOffset"],
        line["maxTimestamp"],
        line["magic"],
        line["recordsCount"] == 0,
    )


def lines_by_log(name: str) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Return expected lines of a case by the name of the segment, without its suffix, and by type."""
    found: dict[str, dict[str, list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for line in authentic_expected(name):
        stem, dot, suffix = line.get("file", "").rpartition(".")
        if dot and suffix in {"log", "index", "timeindex", "txnindex", "snapshot"} and is_undamaged(name, line["file"]):
            found[stem][line["type"]].append(line)
    return found


def markers_of(lines: dict[str, list[dict[str, Any]]]) -> dict[int, int]:
    producers = {line["position"]: line["producerId"] for line in lines["batch"]}
    aborts = {line["offset"]: producers[line["position"]] for line in lines["record"] if line.get("control") == "ABORT"}
    emptied = [line for line in lines["batch"] if line["isControl"] and line["recordsCount"] == 0]
    return aborts | {line["lastOffset"]: line["producerId"] for line in emptied}


def aborted_of(entry: dict[str, int]) -> AbortedTxn:
    names = ("version", "producerId", "firstOffset", "lastOffset", "lastStableOffset")
    return AbortedTxn(*(entry[name] for name in names))


def producer_of(entry: dict[str, Any]) -> ProducerStateEntry:
    batch = entry["batches"][0] if entry["batches"] else {"lastSequence": -1, "lastOffset": -1, "offsetDelta": 0}
    open_since = entry["currentTxnFirstOffset"]
    return ProducerStateEntry(
        entry["producerId"],
        entry["producerEpoch"],
        batch["lastSequence"],
        batch["lastOffset"],
        batch["offsetDelta"],
        entry["lastTimestamp"],
        entry["coordinatorEpoch"],
        -1 if open_since is None else open_since,
    )


def violations_of(stem: str, lines: dict[str, list[dict[str, Any]]], *, is_active: bool) -> list[object]:
    base = int(stem[-20:])
    log = LogOutline(row_of(line) for line in lines["batch"])
    found: list[object] = []
    for line in lines["offsetIndex"]:
        found += offset_index_violations([OffsetPosition(*entry) for entry in line["entries"]], base, log)
    for line in lines["timeIndex"]:
        entries = [TimestampOffset(*entry) for entry in line["entries"]]
        found += time_index_violations(entries, base, log, is_active=is_active)
    for line in lines["transactionIndex"]:
        aborted = [aborted_of(entry) for entry in line["aborted"]]
        found += transaction_index_violations(aborted, base, markers_of(lines))
    for line in lines["producerSnapshot"]:
        found += producer_snapshot_violations([producer_of(entry) for entry in line["producers"]], base)
    return found


@each_of("name", authentic_names())
def test_no_rule_refuses_what_a_real_broker_wrote(name: str) -> None:
    logs_of_case = lines_by_log(name)
    for stem, lines in logs_of_case.items():
        directory = stem.rpartition("/")[0]
        is_active = stem == max(
            other for other, content in logs_of_case.items() if other.startswith(directory + "/") and content["logEnd"]
        )
        assert violations_of(stem, lines, is_active=is_active) == [], stem

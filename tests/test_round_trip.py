"""What is appended is read: every format, codec, header and transaction, against a model of a few lines."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from helpers.appends import Clock, marker, open_writer
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from seglog_format import open_partition
from seglog_format.checks.verify import verify
from seglog_format.codec.build import build_batch, build_message_entry, new_record
from seglog_format.codec.encode import encode_batch
from seglog_format.model import CompressionCodec, Message, Record
from seglog_format.requirements import Severity
from seglog_format.state.config import BrokerGeneration
from seglog_format.state.producer_state import Origin

if TYPE_CHECKING:
    from seglog_format.writing.writer import PartitionWriter

START_MS = 1_700_000_000_000
LARGEST_ID = 3
OLD_CODECS = [codec for codec in CompressionCodec if codec is not CompressionCodec.ZSTD]

BYTES = st.none() | st.binary(max_size=40)
TIMES = st.integers(START_MS - 5000, START_MS + 5000)
HEADERS = st.lists(st.tuples(st.text(max_size=5).map(str.encode), BYTES), max_size=3)
NEW_RECORDS = st.lists(
    st.builds(lambda key, value, time, headers: new_record(key=key, value=value, timestamp_ms=time, headers=headers),
              BYTES, BYTES, TIMES, HEADERS),
    min_size=1,
    max_size=5,
)  # fmt: skip
OLD_RECORDS = st.lists(
    st.builds(lambda key, value, time: new_record(key=key, value=value, timestamp_ms=time), BYTES, BYTES, TIMES),
    min_size=1,
    max_size=5,
)
SMALL = {"segment_bytes": 1500, "segment_index_bytes": 96, "index_interval_bytes": 100}
GENERATIONS = [each for each in BrokerGeneration if each.has_producer_state]

LENIENT = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
}

Row = tuple[int, bytes | None, bytes | None, tuple[tuple[bytes, bytes | None], ...]]


pytestmark = pytest.mark.usefixtures("no_fsync")


def row(record: Record | Message) -> Row:
    """Return what a reader of a record is after."""
    return record.timestamp_ms, record.key, record.value, tuple((each.key, each.value) for each in record.headers)


@dataclass
class Model:
    """The log as a list: records by offset, and which of them were aborted or are undecided."""

    rows: dict[int, Row] = field(default_factory=dict)
    aborted: set[int] = field(default_factory=set)
    open: dict[int, list[int]] = field(default_factory=dict)
    end: int = 0

    def add(self, records: list[Record], *, has_time: bool = True, producer_id: int | None = None) -> None:
        for record in records:
            self.rows[self.end] = row(record) if has_time else (-1, *row(record)[1:])
            if producer_id is not None:
                self.open.setdefault(producer_id, []).append(self.end)
            self.end += 1

    def finish(self, producer_id: int, *, commits: bool) -> None:
        self.end += 1
        gone = self.open.pop(producer_id, [])
        self.aborted.update(() if commits else gone)

    @property
    def stable(self) -> int:
        return min((offsets[0] for offsets in self.open.values()), default=self.end)

    @property
    def committed(self) -> dict[int, Row]:
        return {at: row for at, row in self.rows.items() if at < self.stable and at not in self.aborted}


def check(directory: Path, model: Model) -> None:
    """Read everything back in every way."""
    with open_partition(directory) as partition:
        assert partition.log_end_offset == model.end
        assert {each.offset: row(each) for each in partition.records()} == model.rows
        committed = {each.offset: row(each) for each in partition.records(isolation="read_committed")}
        assert committed == model.committed
        for offset in model.rows:
            assert next(partition.records(offset)).offset == offset
    assert [finding for finding in verify(directory.parent) if finding.severity is Severity.ERROR] == []


class Session:
    """Random appends to a log, and the same to a model."""

    def __init__(self, data: st.DataObject) -> None:
        self.draw = data.draw
        self.model = Model()
        self.sequences: dict[int, int] = {}

    def append(self, writer: PartitionWriter) -> None:
        ways = [self.plain, self.old, self.transactional, self.end]
        self.draw(st.sampled_from(ways))(writer)

    def codec(self, codecs: list[CompressionCodec]) -> CompressionCodec:
        codec = self.draw(st.sampled_from(codecs))
        event(codec.name)
        return codec

    def plain(self, writer: PartitionWriter) -> None:
        records = self.draw(NEW_RECORDS)
        writer.append(build_batch(records, codec=self.codec(list(CompressionCodec))))
        self.model.add(records)

    def old(self, writer: PartitionWriter) -> None:
        """Messages of magic 0 or 1: a wrapper, or several plain ones in an append."""
        records, magic = self.draw(OLD_RECORDS), self.draw(st.sampled_from((0, 1)))
        codec = self.codec(OLD_CODECS)
        groups = [records] if codec else [[record] for record in records]
        entries = [build_message_entry(group, magic=magic, codec=codec) for group in groups]
        writer.append(b"".join(map(encode_batch, entries)))
        self.model.add(records, has_time=magic > 0)

    def transactional(self, writer: PartitionWriter) -> None:
        records, producer_id = self.draw(NEW_RECORDS), self.draw(st.integers(0, LARGEST_ID))
        sequence = self.sequences.get(producer_id, 0)
        batch = build_batch(
            records,
            codec=self.codec(list(CompressionCodec)),
            producer_id=producer_id,
            producer_epoch=0,
            base_sequence=sequence,
            is_transactional=True,
        )
        writer.append(batch)
        self.sequences[producer_id] = sequence + len(records)
        self.model.add(records, producer_id=producer_id)

    def end(self, writer: PartitionWriter) -> None:
        producer_id, commits = self.draw(st.integers(0, LARGEST_ID)), self.draw(st.booleans())
        writer.append(marker(int(commits), producer_id), origin=Origin.COORDINATOR)
        self.model.finish(producer_id, commits=commits)


@settings(max_examples=60, **LENIENT)
@given(data=st.data())
def test_what_is_appended_is_read(data: st.DataObject) -> None:
    """Over all formats in one log, by any generation of brokers, with the log closed and opened again in between."""
    session = Session(data)
    generation = data.draw(st.sampled_from(GENERATIONS))
    with tempfile.TemporaryDirectory() as name:
        for _ in range(data.draw(st.integers(1, 2))):
            with open_writer(Path(name), Clock(START_MS), generation=generation, **SMALL) as writer:
                for _ in range(data.draw(st.integers(0, 8))):
                    session.append(writer)
                assert writer.log_end_offset == session.model.end
                assert writer.last_stable_offset == session.model.stable
        check(Path(name) / "topic-0", session.model)


@settings(max_examples=20, **LENIENT)
@given(data=st.data())
def test_what_is_appended_is_read_from_logs_without_batches(data: st.DataObject) -> None:
    session = Session(data)
    generation = data.draw(st.sampled_from((BrokerGeneration.V0_8, BrokerGeneration.V0_10_1)))
    with tempfile.TemporaryDirectory() as name:
        with open_writer(Path(name), Clock(START_MS), generation=generation, **SMALL) as writer:
            for _ in range(data.draw(st.integers(1, 8))):
                session.old(writer)
        check(Path(name) / "topic-0", session.model)

"""read_committed: what was aborted and what is open, from the log alone and without a transaction index."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import pytest
from helpers.batches import batch, patched, record
from helpers.full_scan import sampled
from helpers.lookup_checks import UNDAMAGED, logs, until_error
from helpers.made_logs import (
    ABORT,
    COMMIT,
    CONTROL,
    TRANSACTIONAL,
    Entry,
    MadeLog,
    checkpoint,
    data_batch,
    empty_control_batch,
    marker,
    plain_message,
)
from helpers.support import authentic, authentic_expected
from helpers.walking import each_of

from seglog_format import open_partition
from seglog_format.errors import CorruptRecordError, MissingOffsetsWarning
from seglog_format.model import AbortedTxn

if TYPE_CHECKING:
    from pathlib import Path

WITH_TRANSACTIONS = [
    name for name in UNDAMAGED if any(part in name for part in ("txn", "idem", "transaction", "consumer"))
]
WITH_WHOLE_INDEXES = [name for name in UNDAMAGED if name.partition("/")[2] in {"txn", "txn-open", "crash-txn"}]


def offsets(records: object) -> list[int]:
    return [record.offset for record in records]


@pytest.mark.req("SEG-LKP-011", "SEG-LKP-012", "SEG-CTL-009", "SEG-CTL-007")
@each_of("name", WITH_TRANSACTIONS)
def test_committed_records_of_brokers(name: str) -> None:
    for directory, log in logs(name):
        with open_partition(directory) as partition:
            assert partition.last_stable_offset == log.fates()[1]
            for start in sampled(range(log.log_start_offset, log.log_end_offset + 1), 12, name):
                assert offsets(partition.records(start, isolation="read_committed")) == log.committed(start)
                assert offsets(partition.records(start)) == log.delivered(start)


@pytest.mark.req("SEG-LKP-011", "SEG-LKP-012")
@each_of("name", WITH_TRANSACTIONS)
def test_reading_on_and_on_delivers_the_committed_records(name: str) -> None:
    for directory, log in logs(name):
        with open_partition(directory) as partition:
            delivered, offset = [], log.log_start_offset
            while (fetch := partition.read(offset, 2000, isolation="read_committed")).batches:
                delivered += offsets(fetch.records)
                offset = fetch.next_offset
            assert (delivered, offset) == (log.committed(0), log.fates()[1])


@pytest.mark.req("SEG-LKP-016")
@each_of("name", WITH_WHOLE_INDEXES)
def test_aborted_transactions_are_those_of_the_transaction_index(name: str) -> None:
    lines = [line for line in authentic_expected(name) if line["type"] == "transactionIndex"]
    assert lines or "open" in name
    for directory, _ in logs(name):
        where = f"{directory.relative_to(authentic(name))}/"
        indexed = [each for line in lines if line["file"].startswith(where) for each in line["aborted"]]
        with open_partition(directory) as partition:
            found = [asdict(each) for each in partition.aborted_transactions()]
        assert [list(each.values()) for each in found] == [
            [each[key] for key in ("version", "producerId", "firstOffset", "lastOffset", "lastStableOffset")]
            for each in indexed
        ]


def committed(root: Path, *entries: Entry) -> tuple[list[int], int]:
    with open_partition(MadeLog({0: entries}).write(root)) as partition:
        return offsets(partition.records(isolation="read_committed")), partition.last_stable_offset


@pytest.mark.req("SEG-LKP-011", "SEG-LKP-012", "SEG-LKP-016")
@pytest.mark.parametrize(
    ("entries", "delivered", "stable"),
    [
        pytest.param([data_batch(0, [1], producer=1), marker(1, 1, COMMIT)], [0], 2, id="committed"),
        pytest.param([data_batch(0, [1], producer=1), marker(1, 1, ABORT)], [], 2, id="aborted"),
        pytest.param([data_batch(0, [1], producer=1), data_batch(1, [1])], [], 0, id="open"),
        pytest.param([data_batch(0, [1]), data_batch(1, [1], producer=1)], [0], 1, id="open at the end"),
        pytest.param(
            [data_batch(0, [1], producer=1), marker(1, 1, ABORT), data_batch(2, [1], producer=1), marker(3, 1, COMMIT)],
            [2],
            4,
            id="aborted, then committed",
        ),
        pytest.param(
            [data_batch(0, [1], producer=1), data_batch(1, [1], producer=2), marker(2, 1, ABORT), marker(3, 2, COMMIT)],
            [1],
            4,
            id="two producers",
        ),
        pytest.param(
            [data_batch(0, [1], producer=1), data_batch(1, [1], producer=2), marker(2, 2, COMMIT), data_batch(3, [1])],
            [],
            0,
            id="an open one holds up a committed one",
        ),
        pytest.param(
            [data_batch(0, [1], producer=1), marker(1, 2, ABORT), marker(2, 1, COMMIT)], [0], 3, id="another's marker"
        ),
        pytest.param(
            [
                data_batch(0, [1], producer=1, epoch=3),
                marker(1, 1, ABORT, epoch=4),
                data_batch(2, [1], producer=1, epoch=4),
                marker(3, 1, COMMIT, epoch=4),
            ],
            [2],
            4,
            id="fenced by a marker of a later epoch",
        ),
        pytest.param(
            [
                data_batch(0, [1], producer=1, epoch=3),
                data_batch(1, [1], producer=1, epoch=4),
                marker(2, 1, ABORT, epoch=4),
            ],
            [],
            3,
            id="a later epoch goes on with the transaction",
        ),
        pytest.param([marker(0, 1, ABORT), data_batch(1, [1])], [1], 2, id="a marker without data"),
        pytest.param(
            [empty_control_batch(0, 1), data_batch(1, [1], producer=1), marker(2, 1, COMMIT)], [1], 3, id="empty marker"
        ),
        pytest.param(
            [data_batch(0, [1], producer=1), empty_control_batch(1, 1), data_batch(2, [1])],
            [],
            0,
            id="an empty control batch ends nothing",
        ),
        pytest.param(
            [data_batch(0, [1], producer=1), marker(1, 1, 9), marker(2, 1, COMMIT)], [0], 3, id="an unknown type"
        ),
        pytest.param(
            [data_batch(0, [], producer=1, last_delta=2), marker(3, 1, ABORT), data_batch(4, [1])],
            [4],
            5,
            id="emptied batch",
        ),
        pytest.param([plain_message(0, 1, 1), data_batch(1, [1], producer=1)], [0], 1, id="messages have no producer"),
    ],
)
def test_fates(entries: list[Entry], delivered: list[int], stable: int, tmp_path: Path) -> None:
    assert committed(tmp_path, *entries) == (delivered, stable)


@pytest.mark.req("SEG-LKP-011")
def test_a_batch_outside_of_transactions_is_delivered_whatever_its_producer_aborted(tmp_path: Path) -> None:
    plain = Entry(patched(data_batch(1, [1], producer=1).data, 21, "h", 0), data_batch(1, [1]).batch)
    entries = [data_batch(0, [1], producer=1), plain, marker(2, 1, ABORT)]
    assert committed(tmp_path, *entries) == ([1], 3)


@pytest.mark.req("SEG-CTL-009", "SEG-LKP-011")
def test_control_batches_of_no_producer_end_nothing(tmp_path: Path) -> None:
    """A KRaft control record of type 0 would be an ABORT elsewhere."""
    control = batch(record(key=bytes(4), value=bytes(6)), base_offset=1, attributes=CONTROL)
    entries = [data_batch(0, [1], producer=-1), Entry(control, marker(1, -1, 0).batch), data_batch(2, [1])]
    assert committed(tmp_path, *entries) == ([0, 2], 3)


def test_first_last_and_stable_offsets_of_what_was_aborted(tmp_path: Path) -> None:
    entries = [
        data_batch(0, [1, 1], producer=7),
        data_batch(2, [1], producer=8),
        marker(3, 7, ABORT),
        marker(4, 8, ABORT),
        marker(5, 8, ABORT),
    ]
    with open_partition(MadeLog({0: entries}).write(tmp_path)) as partition:
        assert partition.aborted_transactions() == (AbortedTxn(0, 7, 0, 3, 2), AbortedTxn(0, 8, 2, 4, 5))


@pytest.mark.req("SEG-LKP-011", "SEG-LKP-012")
def test_a_transaction_over_three_segments(tmp_path: Path) -> None:
    segments = {
        0: [data_batch(0, [1], producer=1), data_batch(1, [1])],
        2: [data_batch(2, [1], producer=1), data_batch(3, [1])],
        4: [marker(4, 1, ABORT), data_batch(5, [1], producer=2)],
    }
    with open_partition(MadeLog(segments).write(tmp_path)) as partition:
        assert offsets(partition.records(isolation="read_committed")) == [1, 3]
        assert offsets(partition.records(2, isolation="read_committed")) == [3]
        assert offsets(partition.records(2, 3, isolation="read_committed")) == []
        assert partition.last_stable_offset == 5
        assert partition.read(2, isolation="read_committed").records[0].offset == 3
        assert partition.read(5, isolation="read_committed").batches == ()
        assert partition.read(6, isolation="read_committed").next_offset == 6


@pytest.mark.req("SEG-LKP-012")
def test_a_transaction_open_from_below_the_log_start_offset_holds_up_everything(tmp_path: Path) -> None:
    (tmp_path / "log-start-offset-checkpoint").write_text(checkpoint(("topic", 0, 2)))
    made = MadeLog({0: [data_batch(0, [1], producer=1)], 1: [data_batch(1, [1, 1, 1])]})
    with open_partition(made.write(tmp_path)) as partition:
        assert partition.last_stable_offset == 2
        assert offsets(partition.records(isolation="read_committed")) == []
        assert offsets(partition.records()) == [2, 3]


BATCH = data_batch(1, [1, 1])
DAMAGED = Entry(patched(BATCH.data, 62, "b", 5, seal=False), BATCH.batch)


@pytest.mark.req("SEG-LKP-014", "SEG-LKP-012")
@pytest.mark.parametrize(
    ("entries", "delivered", "uncommitted"),
    [
        pytest.param([data_batch(0, [1]), DAMAGED], [0], [0], id="after plain data"),
        pytest.param([data_batch(0, [1], producer=1), DAMAGED, marker(3, 1, COMMIT)], [], [0], id="before the marker"),
    ],
)
def test_damage_leaves_undecided_what_may_end_behind_it(
    entries: list[Entry], delivered: list[int], uncommitted: list[int], tmp_path: Path
) -> None:
    with open_partition(MadeLog({0: entries}).write(tmp_path)) as partition:
        assert offsets(until_error(partition.records(isolation="read_committed"))) == delivered
        assert offsets(until_error(partition.records())) == uncommitted
        with pytest.raises(CorruptRecordError):
            partition.read(len(delivered), isolation="read_committed")
        assert partition.last_stable_offset == len(delivered)
        assert offsets(partition.records(0, len(delivered), isolation="read_committed")) == delivered


@pytest.mark.req("SEG-LKP-014")
@pytest.mark.parametrize(
    ("position", "code", "value"),
    [(21, "h", CONTROL), (21, "h", TRANSACTIONAL), (21, "h", 0), (43, "q", 2), (64, "b", 1)],
    ids=["not transactional", "not control", "neither", "producer", "key"],
)
def test_a_damaged_marker_is_damage_and_no_open_transaction(
    position: int, code: str, value: int, tmp_path: Path
) -> None:
    end = marker(1, 1, COMMIT)
    broken = Entry(patched(end.data, position, code, value, seal=False), end.batch)
    with open_partition(MadeLog({0: [data_batch(0, [1], producer=1), broken]}).write(tmp_path)) as partition:
        assert until_error(partition.records(isolation="read_committed")) == []


@pytest.mark.req("SEG-LKP-014")
def test_a_marker_that_cannot_be_read_is_damage(tmp_path: Path) -> None:
    section = record(key=b"\0", value=b"")
    end = batch(section, base_offset=2, attributes=TRANSACTIONAL | CONTROL, producer_id=1, producer_epoch=0)
    entries = [
        data_batch(0, [1]),
        data_batch(1, [1], producer=1),
        Entry(end, marker(2, 1, 0).batch),
        data_batch(3, [1]),
    ]
    with open_partition(MadeLog({0: entries}).write(tmp_path)) as partition:
        assert offsets(until_error(partition.records(isolation="read_committed"))) == [0]
        with pytest.warns(MissingOffsetsWarning, match="offset 2 is missing"):
            assert offsets(partition.records()) == [0, 1, 3]

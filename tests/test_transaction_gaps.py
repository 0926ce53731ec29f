"""A transaction that was open where offsets are lost: readers of committed records stop before it, and say so."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

import pytest
from helpers.made_partitions import checkpoint, control, entry, make, transactional
from helpers.walking import each_of

from seglog_format import open_partition
from seglog_format.cli.main import run
from seglog_format.errors import FormatError
from seglog_format.serve.served_partition import ServedTransactions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

ABORT, COMMIT = 0, 1
CLEANER: Final = "cleaner-offset-checkpoint"
MARKED: Final = transactional(10) + control(11, ABORT)
UNDECIDED: Mapping[str, dict[str, bytes]] = {
    "a lost segment": {"0.log": entry(0, 2) + transactional(2), "10.log": MARKED},
    "an index without its log": {"0.log": entry(0, 2) + transactional(2), "5.index": b"", "10.log": MARKED},
    "a log that is cut": {"0.log": entry(0, 2) + transactional(2) + entry(3, 7)[:-9], "10.log": MARKED},
    "an empty segment before it": {"0.log": entry(0, 2) + transactional(2), "3.log": b"", "10.log": MARKED},
    "two producers": {
        "0.log": entry(0, 2) + transactional(2) + transactional(3, 8),
        "9.log": control(9, COMMIT, producer=8),
    },
}
"""Logs in which the transaction from offset 2 on may have ended among the offsets that are lost."""
DECIDED: Mapping[str, tuple[dict[str, bytes], list[int]]] = {
    "no transaction is open": ({"0.log": transactional(0) + control(1, COMMIT), "10.log": MARKED}, [0]),
    "it begins after the gap": ({"0.log": entry(0, 2), "10.log": MARKED + entry(12)}, [0, 1, 12]),
    "nothing is lost": (
        {"0.log": entry(0, 2) + transactional(2), "3.log": control(3, COMMIT) + entry(4)},
        [0, 1, 2, 4],
    ),
}


def committed(path: Path) -> list[int]:
    with open_partition(path) as partition:
        return [each.offset for each in partition.records(isolation="read_committed", on_gap=lambda _: None)]


def by_records(path: Path) -> tuple[list[int], str]:
    """Return the offsets of the committed records that `records` gives, and the error at which it ends."""
    found: list[int] = []
    with open_partition(path) as partition:
        records = partition.records(isolation="read_committed", on_gap=lambda _: None)
        with pytest.raises(FormatError) as caught:
            found.extend(each.offset for each in records)
    return found, str(caught.value)


def by_scan(path: Path) -> tuple[list[int], str]:
    found: list[int] = []
    with open_partition(path) as partition:
        scan = partition.scan(columns=["offset"], isolation="read_committed", on_gap=lambda _: None)
        with pytest.raises(FormatError) as caught:
            found.extend(offset for batch in scan for offset in batch.column(0).to_pylist())
    return found, str(caught.value)


def by_read(path: Path) -> tuple[list[int], str]:
    with open_partition(path) as partition:
        found = partition.read(0, isolation="read_committed")
        with pytest.raises(FormatError) as caught:
            partition.read(found.next_offset, isolation="read_committed")
    return [each.offset for each in found.records], str(caught.value)


def by_serve(path: Path) -> tuple[list[int], str]:
    with open_partition(path) as partition:
        found = ServedTransactions().read_on(partition)
    return list(range(found.last_stable_offset)), str(found.damage)


READERS: Mapping[str, Callable[[Path], tuple[list[int], str]]] = {
    "records": by_records,
    "scan": by_scan,
    "read": by_read,
    "serve": by_serve,
}


@pytest.mark.req("SEG-LKP-012", "SEG-LKP-019", "SEG-PDR-023", "SEG-PDR-024")
@pytest.mark.parametrize("reader", READERS)
@each_of("name", UNDECIDED)
def test_readers_of_committed_records_stop_before_a_transaction_with_a_gap(
    name: str, reader: str, tmp_path: Path
) -> None:
    given, error = READERS[reader](make(tmp_path, UNDECIDED[name]))
    assert given == [0, 1]
    assert "[SEG-LKP-012]" in error


@each_of("name", UNDECIDED)
def test_an_export_of_committed_records_ends_there(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = make(tmp_path, UNDECIDED[name])
    words = ["export", "--committed", "--json", str(path), "--to", str(tmp_path / "table"), "--format", "jsonl"]
    assert run(words) == 3
    lines: list[dict[str, Any]] = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    (exported,) = (line for line in lines if line["type"] == "export")
    assert exported["nextOffset"] == 2


@each_of("name", DECIDED)
def test_a_gap_outside_of_transactions_decides_nothing(name: str, tmp_path: Path) -> None:
    files, expected = DECIDED[name]
    assert committed(make(tmp_path, files)) == expected


def test_a_gap_below_the_log_start_offset_decides_nothing(tmp_path: Path) -> None:
    files = {"0.log": transactional(0), "5.log": control(5, COMMIT) + entry(6), "8.log": entry(8)}
    path = make(tmp_path, files, log_start=6)
    assert committed(path) == [6, 8]


def test_compaction_loses_nothing(tmp_path: Path) -> None:
    path = make(tmp_path, UNDECIDED["a lost segment"])
    checkpoint(path, CLEANER, 3)
    assert committed(path) == [0, 1]
    with open_partition(path) as partition:
        assert partition.transactions.damage is None
        assert ServedTransactions().read_on(partition).damage is None

"""Log directories as a reader opens them: partitions, checkpoints, renamed directories, several of one broker."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from helpers.made_logs import MadeLog, checkpoint, data_batch

from seglog_format import open_log_directory
from seglog_format.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

UNIQUE = "0" * 32
ONE = MadeLog({0: [data_batch(0, [1, 1])], 2: [data_batch(2, [5])]})


def log_directory(root: Path, *names: str) -> Path:
    for name in names:
        ONE.write(root / "new").rename(root / name)
    (root / "new").rmdir()
    return root


@pytest.fixture
def broker(tmp_path: Path) -> tuple[Path, Path]:
    first = log_directory(
        tmp_path / "a",
        "orders-0",
        "orders-10",
        "dashed-topic-1",
        f"orders-3.{UNIQUE}-delete",
        f"orders-4.{UNIQUE}-stray",
        "both-0",
    )
    second = log_directory(tmp_path / "b", "orders-2", f"orders-0.{UNIQUE}-future", "both-0")
    return first, second


def test_partitions_of_several_directories(broker: tuple[Path, Path]) -> None:
    opened = open_log_directory(broker)
    assert list(opened.partitions) == [("both", 0), ("dashed-topic", 1), ("orders", 0), ("orders", 2), ("orders", 10)]
    assert opened.partitions["orders", 2].path == broker[1] / "orders-2"
    assert [entry.path.parent.name for entry in opened.repeated["both", 0]] == ["a", "b"]
    assert list(opened.repeated) == [("both", 0)]
    states = {state: [str(entry.name) for entry in opened.renamed(state)] for state in ("delete", "stray", "future")}
    assert states == {
        "delete": [f"orders-3.{UNIQUE}-delete"],
        "stray": [f"orders-4.{UNIQUE}-stray"],
        "future": [f"orders-0.{UNIQUE}-future"],
    }


def test_one_directory_by_text_or_path(broker: tuple[Path, Path]) -> None:
    for path in (str(broker[1]), broker[1]):
        assert list(open_log_directory(path).partitions) == [("both", 0), ("orders", 2)]
    assert repr(open_log_directory(broker[1]).directories[0]) == f"LogDirectory({str(broker[1])!r})"


@pytest.mark.req("SEG-CKP-010", "SEG-CKP-011", "SEG-LDR-003")
def test_what_the_root_files_say(broker: tuple[Path, Path]) -> None:
    first, second = broker
    entries = [("orders", 0, 1), ("orders", 10, 7)]
    for number, kind in enumerate(
        ("log-start-offset", "recovery-point-offset", "replication-offset", "cleaner-offset")
    ):
        moved = [(topic, partition, offset + number) for topic, partition, offset in entries]
        (first / f"{kind}-checkpoint").write_text(checkpoint(*moved))
    (second / ".kafka_cleanshutdown").touch()
    directory, other = open_log_directory(broker).directories
    assert (directory.has_clean_shutdown, other.has_clean_shutdown) == (False, True)
    assert directory.log_start_offsets == {("orders", 0): 1, ("orders", 10): 7}
    assert directory.recovery_points == {("orders", 0): 2, ("orders", 10): 8}
    assert directory.high_watermarks == {("orders", 0): 3, ("orders", 10): 9}
    assert directory.cleaner_offsets == {("orders", 0): 4, ("orders", 10): 10}
    assert [directory.recovery_point(key) for key in (("orders", 0), ("both", 0))] == [2, 0]
    assert other.recovery_points == {}


@pytest.mark.req("SEG-CKP-010")
def test_opening_a_partition_by_name(broker: tuple[Path, Path]) -> None:
    (broker[0] / "log-start-offset-checkpoint").write_text(checkpoint(("orders", 0, 1)))
    (broker[0] / "replication-offset-checkpoint").write_text(checkpoint(("orders", 0, 2)))
    opened = open_log_directory(broker)
    with opened.open("orders", 0, trust_indexes=True) as partition:
        assert (partition.log_start_offset, partition.log_end_offset, partition.high_watermark) == (1, 3, 2)
        assert partition.trust_indexes
        assert [record.offset for record in partition.records()] == [1, 2]
    with opened.open("dashed-topic", 1, mapped=True) as partition:
        assert (partition.log_start_offset, partition.segments[0].mapped) == (0, True)
    with pytest.raises(UsageError, match="no partition orders-3"):
        opened.open("orders", 3)


def test_opening_a_renamed_directory(broker: tuple[Path, Path]) -> None:
    opened = open_log_directory(broker)
    (entry,) = opened.renamed("future")
    with opened.directory_of(entry).open(entry) as partition:
        assert (partition.name, partition.log_end_offset) == (f"orders-0.{UNIQUE}-future", 3)
    with pytest.raises(UsageError, match="none of these"):
        open_log_directory(broker[0]).directory_of(entry)


def test_paths_that_are_no_directories(tmp_path: Path) -> None:
    for path in (tmp_path / "absent", [tmp_path, tmp_path / "absent"]):
        with pytest.raises(UsageError):
            open_log_directory(path)

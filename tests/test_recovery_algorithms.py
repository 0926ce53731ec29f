"""The algorithms of chapter 71 against the package, on the directories of crashed brokers."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from helpers.support import authentic, authentic_names
from helpers.walking import each_of
from seglog_algorithms.brokers import recover_like_broker
from seglog_algorithms.leader_epochs import LOG_STARTS, RECOVERY_POINTS, read_offsets
from seglog_algorithms.recovery import Around, recover, truncate
from seglog_conformance.specification.answers import decompress

from seglog_format import RecoveryOptions
from seglog_format import recover as recover_files
from seglog_format import truncate as truncate_files

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("no_fsync")

CRASHES = [name for name in authentic_names() if "/crash-" in name]


def crashed(name: str, target: Path) -> Path:
    shutil.copytree(authentic(name) / "before", target)
    (partition,) = (path for path in target.glob("crash-*-0"))
    return partition


def files_in(partition: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in partition.iterdir()}


def around_of(partition: Path) -> Around:
    topic, _, number = partition.name.rpartition("-")
    found = {}
    for name in (RECOVERY_POINTS, LOG_STARTS):
        path = partition.parent / name
        entries = read_offsets(path.read_bytes()) if path.exists() else []
        found[name] = {entry[:2]: entry[2] for entry in entries}.get((topic, int(number)), 0)
    is_clean = (partition.parent / ".kafka_cleanshutdown").exists()
    return Around(is_clean, found[RECOVERY_POINTS], found[LOG_STARTS])


@pytest.mark.parametrize("like_broker", [False, True])
@each_of("name", CRASHES)
def test_recovery_of_a_crashed_directory_is_that_of_the_package(name: str, tmp_path: Path, like_broker: bool) -> None:  # noqa: FBT001
    partition = crashed(name, tmp_path / "logs")
    recovered = (recover_like_broker if like_broker else recover)(files_in(partition), around_of(partition), decompress)
    done = recover_files(partition, options=RecoveryOptions(like_broker=like_broker)).apply()
    assert recovered.directory == files_in(partition)
    assert recovered.plan.end == done.plan.log_end_offset
    assert [cut.position for cut in recovered.plan.cuts] == [cut.position for cut in done.plan.cuts]


@each_of("name", CRASHES)
def test_truncation_of_a_recovered_directory_is_that_of_the_package(name: str, tmp_path: Path) -> None:
    partition = crashed(name, tmp_path / "logs")
    done = recover_files(partition).apply()
    middle = done.plan.log_end_offset * 2 // 3
    around, files = around_of(partition), files_in(partition)
    truncated, _, _ = truncate(files, {}, ("crash", 0), middle, decompress, around)
    truncate_files(partition, middle).apply()
    assert truncated == files_in(partition)


@pytest.mark.parametrize(
    ("kind", "stored", "kept"),
    [
        (".index", "8000000500000067", ""),  # SEG-IDX-010
        (".timeindex", "00000000000003e900000001 00000000000003ea00000000", "00000000000003e900000001"),  # SEG-TIX-009
    ],
)
def test_truncation_ends_an_index_where_a_reader_does(kind: str, stored: str, kept: str, tmp_path: Path) -> None:
    partition = crashed(CRASHES[0], tmp_path / "logs")
    last = recover_files(partition).apply().plan.log_end_offset - 1
    index = max(partition.glob("*.log")).with_suffix(kind)
    index.write_bytes(bytes.fromhex(stored))
    truncated, _, _ = truncate(files_in(partition), {}, ("crash", 0), last, decompress, around_of(partition))
    truncate_files(partition, last).apply()
    assert truncated[index.name].hex() == kept
    assert truncated == files_in(partition)

"""No index changes an answer: missing, cut, shifted, stale, padded, invented, or made to deceive (SEG-IDX-009)."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

import pytest
from helpers.full_scan import sampled
from helpers.lookup_checks import UNDAMAGED, check_positions, check_reads, check_timestamps, logs
from helpers.made_logs import MadeLog, data_batch, offset_index, time_index
from helpers.support import authentic_names
from helpers.walking import each_of

from seglog_format import open_partition

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from helpers.full_scan import Log

SLOTS = {".index": 8, ".timeindex": 12, ".txnindex": 34}


def truncated(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2 // SLOTS[path.suffix] * SLOTS[path.suffix] + 3)


def shifted(path: Path) -> None:
    path.write_bytes(b"\0\0\0\5" + path.read_bytes())


def past_the_end(path: Path) -> None:
    slot = SLOTS[path.suffix]
    entry = {8: offset_index((1, 2**31 - 1)), 12: time_index((1, 2**31 - 1)), 34: bytes(33) + b"\x07"}[slot]
    path.write_bytes(entry)


def zero_padded(path: Path) -> None:
    with path.open("ab") as file:
        file.write(bytes(SLOTS[path.suffix] * 5000))


def filled_with_junk(path: Path) -> None:
    path.write_bytes(bytes(range(1, 200)) * 7)


def of_one_byte_less(path: Path) -> None:
    """Every position one too low: none is where an entry starts."""
    slots = SLOTS[path.suffix]
    data = bytearray(path.read_bytes())
    for end in range(slots, len(data) + 1, slots):
        data[end - 1] = (data[end - 1] - 1) % 256
    path.write_bytes(data)


def unlinked(path: Path) -> None:
    path.unlink()


def emptied(path: Path) -> None:
    path.write_bytes(b"")


DAMAGES = (unlinked, emptied, truncated, shifted, past_the_end, zero_padded, filled_with_junk, of_one_byte_less)
FEW = 8
HUGE = 1000
"""Records in a batch that takes too long to be decoded again for each damage."""

CASES = [name for name in UNDAMAGED if "crash-" not in name]
"""Without those whose indexes are preallocated: copying them takes long, and `test_lookup` reads them as they are."""

TRUSTED_CASES = [
    name
    for name in ("0.8.2.2/index", "0.10.2.2/compact", "1.1.1/txn", "2.8.2/mixed-segs", "3.9.1/segs-fine", "4.3.0/index")
    if name in authentic_names()
]


def with_damaged_indexes(source: Path, target: Path, damage: Callable[[Path], None]) -> Path:
    """Return a copy of a partition directory; the logs are the same files."""
    target.mkdir()
    for path in source.iterdir():
        if path.suffix == ".log":
            (target / path.name).hardlink_to(path)
        elif path.suffix in SLOTS:
            shutil.copyfile(path, target / path.name)
            damage(target / path.name)
    return target


@pytest.mark.req("SEG-IDX-009")
@each_of("name", CASES)
def test_damaged_indexes(name: str, tmp_path: Path) -> None:
    for number, (directory, log) in enumerate(logs(name)):
        for damage in DAMAGES:
            path = with_damaged_indexes(directory, tmp_path / f"{damage.__name__}-{number}", damage)
            with open_partition(path) as partition:
                check_positions(log, partition, sampled(log.offsets(), FEW, name))
                if max((len(batch.records) for batch in log.batches), default=0) < HUGE:
                    check_reads(log, partition, sampled(log.offsets(), FEW, name)[:2])
                    check_timestamps(log, partition, sampled(log.timestamps(), FEW, name)[:2])


@pytest.mark.req("SEG-IDX-009")
@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("name", TRUSTED_CASES)
def test_damage_that_trust_sees_through(name: str, damage: Callable[[Path], None], tmp_path: Path) -> None:
    for directory, log in logs(name):
        path = with_damaged_indexes(directory, tmp_path / "topic-0", damage)
        with open_partition(path, trust_indexes=True) as partition:
            check_positions(log, partition, sampled(log.offsets(), 300, name))
            check_reads(log, partition, sampled(log.offsets(), 50, name))
            assert partition.log_end_offset == log.log_end_offset


def deceptive(root: Path) -> tuple[Path, Log, int]:
    """Return a log whose second value holds a whole valid batch, and an index that points at it."""
    inner = data_batch(2, [1000, 5000, 5000, 5000], deltas=[0, 1, 2, 3]).data
    made = MadeLog({0: [data_batch(0, [1000, 1001]), data_batch(2, [1002, 1003], value=inner), data_batch(4, [1004])]})
    log = made.full_scan()
    inside = log.batches[1].position + made.segments[0][1].data.index(inner)
    indexes = {
        "0" * 20 + ".index": offset_index((2, inside)),
        "0" * 20 + ".timeindex": time_index((1001, 2), (4000, 4)),
    }
    return made.write(root, indexes), log, inside


@pytest.mark.req("SEG-IDX-009", "SEG-LKP-002")
def test_an_index_entry_that_points_at_a_batch_inside_a_value(tmp_path: Path) -> None:
    path, log, inside = deceptive(tmp_path)
    with open_partition(path) as partition:
        assert partition.segments[0].offset_index.lookup(3).position == inside
        assert partition.segments[0].frame_at(inside).header.base_offset == 2
        check_positions(log, partition, list(log.offsets()))
        check_reads(log, partition, list(log.offsets()))
        check_timestamps(log, partition, log.timestamps())
        assert partition.log_end_offset == 5


def test_trusting_such_an_index_is_deceived(tmp_path: Path) -> None:
    """What `open_partition` warns of. Should trust ever see through this, the warning can go."""
    path, _, inside = deceptive(tmp_path)
    with open_partition(path, trust_indexes=True) as partition:
        assert partition.segments[0].position_of(3, trust_index=True) == inside

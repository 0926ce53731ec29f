"""The index interval that recovery infers for logs of brokers before 0.10, held against what such brokers rebuild."""

from __future__ import annotations

import random
import shutil
import struct
from typing import TYPE_CHECKING

import pytest
from helpers.made_partitions import content, make
from helpers.messages import message
from helpers.support import FIXTURES

from proofs.unpacking import unpack_archive
from seglog_format.recovery.apply import RecoveryOptions, recover_partition

if TYPE_CHECKING:
    from pathlib import Path

OPTIONS = {
    "like a broker": RecoveryOptions(like_broker=True),
    "default": RecoveryOptions(),
    "full scan": RecoveryOptions(is_full_scan=True),
}


@pytest.mark.parametrize("release", ["0.8.1.1", "0.9.0.1"])
@pytest.mark.req("SEG-RCV-025")
def test_indexes_are_those_that_brokers_before_0_10_rebuild(release: str, tmp_path: Path) -> None:
    """Intervals of 512, 700, 1000 and 4096 bytes, in five kinds of logs; Kafka's own class recovered the same files."""
    unpack_archive(FIXTURES / "index-intervals" / f"{release}.tar.xz", tmp_path)
    cases = sorted(path for path in tmp_path.iterdir())
    assert len(cases) == 20
    different = []
    for case in cases:
        directory = case / "before" / f"{case.name}-0"
        found = recover_partition(directory, options=OPTIONS["like a broker"]).settings
        if content(directory) != content(case / "after" / f"{case.name}-0"):
            different.append((case.name, found.interval_bytes, found.interval_reason))
        assert not recover_partition(directory, options=OPTIONS["like a broker"]).steps, case.name
    assert not different


def appended_together(seed: int) -> dict[str, bytes]:
    """Return small segments to which messages were appended together, with the index entries that a broker added."""
    seeded = random.Random(seed)  # noqa: S311 - chance that repeats
    interval = seeded.choice([300, 450, 512, 700, 1000])
    sizes = seeded.choice([(0, 20), (0, 300), (200, 900), (50, 50)])
    most, size = seeded.choice([1, 2, 5, 20]), seeded.choice([600, 1500, 4000])
    files: dict[str, bytes] = {}
    offset = 0
    for _ in range(seeded.randint(1, 14)):
        base, log, index, since = offset, b"", b"", 0
        limit = size * seeded.uniform(0.3, 1.2)
        while len(log) < limit:
            count = seeded.randint(1, most)
            unit = b"".join(message(offset + n, value=b"x" * seeded.randint(*sizes)) for n in range(count))
            if since > interval:
                index += struct.pack(">ii", offset - base, len(log))
                since = 0
            log += unit
            since += len(unit)
            offset += count
        files |= {f"{base}.log": log, f"{base}.index": index}
    last = f"{base}.log"
    return files | {last: files[last][: -5 if seeded.random() < 0.5 else None]}


@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_a_second_recovery_leaves_the_indexes_alone(options: RecoveryOptions, tmp_path: Path) -> None:
    """With seed 62 the first recovery infers 400 bytes, which its indexes allow as well as the more plausible 256."""
    for seed in range(40, 90):
        directory = make(tmp_path / str(seed), appended_together(seed))
        recover_partition(directory, options=options)
        assert not recover_partition(directory, options=options).steps, seed
        shutil.rmtree(tmp_path / str(seed))

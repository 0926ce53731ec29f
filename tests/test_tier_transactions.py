"""Aborted transactions of tiered partitions: from the transaction indexes, as brokers tell consumers of them."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from helpers.made_tiers import NAME, TOPIC, MadeTier, made_tier
from helpers.remote_records import append, started, updated
from helpers.serving import serving

from proofs.kafka.served import digest_of
from seglog_format import open_partition, open_tier
from seglog_format.errors import FormatError
from seglog_format.model import EpochStart
from seglog_format.serve.catalog import CatalogOptions
from seglog_format.tier.segments import RemotePartitionId, RemoteSegment, RemoteSegmentId, SegmentState

if TYPE_CHECKING:
    from pathlib import Path

    from seglog_format.types import Partition

SEED = 14
"""Of a log with transactions that begin in the store and are aborted on the disk."""


@pytest.fixture
def made(tmp_path: Path) -> MadeTier:
    return made_tier(tmp_path, SEED)


def opened(made: MadeTier) -> Partition:
    return open_partition(made.partition, remote=open_tier(made.store, keys=made.keys))


def committed(made: MadeTier, start: int) -> tuple[int, str]:
    with open_partition(made.whole / NAME) as whole:
        return digest_of(whole.records(start, isolation="read_committed"))


def test_transactions_that_end_on_the_disk_are_known(made: MadeTier) -> None:
    with opened(made) as log, open_partition(made.whole / NAME) as whole:
        local = next(each.base_offset for each in log.segments if not each.is_tiered)
        found = [each for each in log.transactions.aborted if each.first_offset < local <= each.last_offset]
        assert found
        wanted = [each for each in whole.transactions.aborted if each.last_offset >= log.log_start_offset]
        key = [(each.producer_id, each.first_offset, each.last_offset) for each in wanted]
        assert [(each.producer_id, each.first_offset, each.last_offset) for each in log.transactions.aborted] == key


def test_the_log_decides_where_a_local_index_is_lost(made: MadeTier) -> None:
    for path in made.partition.glob("*.txnindex"):
        path.unlink()
    with opened(made) as log:
        assert digest_of(log.records(isolation="read_committed")) == committed(made, log.log_start_offset)
    options = CatalogOptions(remote=open_tier(made.store, keys=made.keys))
    with serving(made.local, options=options) as served, served.client() as client:
        last = client.list_offset(TOPIC, -1).offset - 1
        answer = client.fetch(TOPIC, last, isolation_level=1)
        start = max(each.first_offset for each in answer.aborted_transactions) if answer.aborted_transactions else -1
        assert start <= last


def test_logs_in_the_store_are_read_once(made: MadeTier) -> None:
    remote = open_tier(made.store, keys=made.keys)
    with open_partition(made.partition, remote=remote) as log:
        list(log.records())
    once = remote.traffic.size
    remote = open_tier(made.store, keys=made.keys, cache_size=1)
    with open_partition(made.partition, remote=remote) as log:
        assert log.transactions.aborted
        before = remote.traffic.size
        assert before < once / 2
        list(log.records(isolation="read_committed"))
    assert remote.traffic.size - before < 1.5 * once


def overlapping(root: Path) -> MadeTier:
    """Make a first segment in the store that goes on to the end of the second, which is there, too."""
    made = made_tier(root, SEED)
    shutil.rmtree(made.store)
    shutil.rmtree(made.local / "__remote_log_metadata-0")
    with open_partition(made.whole / NAME) as whole:
        bases = [segment.base_offset for segment in whole.segments]
    text = (made.whole / NAME / "partition.metadata").read_text()
    partition = RemotePartitionId(TOPIC, text.split("topic_id: ")[1].split()[0], 0)
    directory = made.store / f"{TOPIC}-0-{partition.topic_id}"
    directory.mkdir(parents=True)
    values = []
    for number, parts in enumerate([bases[:2], *([base] for base in bases[1:-1])]):
        end = bases[bases.index(parts[-1]) + 1] - 1
        id_ = RemoteSegmentId(partition, f"{number:021d}A")
        files = {
            suffix: b"".join(
                (made.whole / NAME / f"{base:020d}{suffix}").read_bytes()
                for base in parts
                if exists(made, base, suffix)
            )
            for suffix in (".log", ".txnindex")
        }
        for suffix, data in {**files, ".index": b"", ".timeindex": b"", ".snapshot": b"\0"}.items():
            (directory / f"{parts[0]:020d}-{id_.segment_id}{suffix}").write_bytes(data)
        (directory / f"{parts[0]:020d}-{id_.segment_id}.leader_epoch_checkpoint").write_bytes(
            (made.whole / NAME / "leader-epoch-checkpoint").read_bytes()
        )
        state = SegmentState.COPY_SEGMENT_STARTED
        segment = RemoteSegment(id_, state, parts[0], end, (EpochStart(0, parts[0]),), len(files[".log"]))
        values += [started(segment), updated(id_, SegmentState.COPY_SEGMENT_FINISHED)]
    for path in made.partition.iterdir():
        if path.name[:20].isdecimal() and int(path.name[:20]) < bases[-1]:
            path.unlink()
    (made.partition / "leader-epoch-checkpoint").write_text("0\n1\n0 0\n")
    (made.local / "log-start-offset-checkpoint").write_text(f"0\n1\n{TOPIC} 0 0\n")
    append(made.local, *values)
    return made


def exists(made: MadeTier, base: int, suffix: str) -> bool:
    return (made.whole / NAME / f"{base:020d}{suffix}").is_file()


def test_markers_behind_the_part_that_answers_do_not_count(tmp_path: Path) -> None:
    made = overlapping(tmp_path)
    with opened(made) as log:
        assert digest_of(log.records(isolation="read_committed")) == committed(made, 0)
        aborted = [each.last_offset for each in log.transactions.aborted]
        assert aborted == sorted(set(aborted))


def test_a_damaged_index_in_the_store_ends_the_read_and_is_named(made: MadeTier) -> None:
    damaged = [each for each in made.store.rglob("*") if each.suffix in {".indexes", ".txnindex"}]
    for each in damaged:
        data = bytearray(each.read_bytes())
        data[-30:] = bytes(30)
        if each.suffix == ".txnindex":
            data[:2] = b"\x00\x07"
        each.write_bytes(data)
    remote = open_tier(made.store, keys=made.keys)
    with open_partition(made.partition, remote=remote) as log, pytest.raises(FormatError) as caught:
        list(log.records(isolation="read_committed"))
    assert str(made.store) in str(caught.value)

"""Transactions of remote segments whose end marker is not at hand: their records stay undecided, as in a local log."""

from __future__ import annotations

import shutil
import warnings
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from helpers.made_tiers import NAME, made_tier
from helpers.serving import serving
from helpers.tier_cases import CASES, TierCase, tier_case

from proofs.kafka.served import digest_of
from seglog_format import open_partition, open_tier
from seglog_format.errors import MissingOffsetsWarning
from seglog_format.log.transactions import read_transactions
from seglog_format.names import FileKind
from seglog_format.serve.catalog import CatalogOptions
from seglog_format.tier.joining import JoinedStorage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from seglog_format.types import LogSegment, Partition

pytestmark = pytest.mark.req("SEG-LKP-012")

ORDERS = "orders-0"
EPOCHS, METADATA = "leader-epoch-checkpoint", "partition.metadata"


@pytest.fixture(autouse=True)
def _without_warnings() -> Iterator[None]:
    """Gaps and guesses are what these tests are about."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*objects and leader epochs decide")
        warnings.simplefilter("ignore", MissingOffsetsWarning)
        yield


@pytest.fixture(params=CASES)
def case(request: pytest.FixtureRequest) -> TierCase:
    return tier_case(request.param)


def without_local_part(case: TierCase, target: Path, *, has_topic: bool = True) -> TierCase:
    """Copy a case without the local segments of `orders`, and without the metadata topic if it has none."""
    shutil.copytree(case.root, target)
    kept = {EPOCHS, METADATA}
    for path in (target / "local" / ORDERS).iterdir():
        if path.name not in kept:
            path.unlink()
    if not has_topic:
        for path in (target / "local").glob("__remote_log_metadata-*"):
            shutil.rmtree(path)
    return replace(case, root=target)


def opened(case: TierCase) -> Partition:
    return open_partition(case.local / ORDERS, remote=case.opened())


def objects_of(case: TierCase, start: int) -> list[Path]:
    """Return the objects of the segments of `orders` that begin at an offset."""
    return [path for path in case.store.rglob(f"*{start:020}-*") if "orders-" in str(path.relative_to(case.store))]


def by_headers(segments: list[LogSegment]) -> dict[int, int]:
    """Return what is open behind segments by their logs alone, each read whole."""
    return dict(read_transactions(segments).open_offsets)


def assert_ends_at_stable(log: Partition, whole: TierCase) -> None:
    """Compare what is delivered with what the broker served that had the local part, up to the last stable offset."""
    with open_partition(whole.local / ORDERS, remote=whole.opened()) as complete:
        stable = log.last_stable_offset
        expected = (each for each in complete.records(isolation="read_committed") if each.offset < stable)
        assert digest_of(log.records(isolation="read_committed")) == digest_of(expected)


def test_a_transaction_whose_marker_was_in_the_lost_local_part_is_open(tmp_path: Path) -> None:
    whole = tier_case("aiven-plain")
    case = without_local_part(whole, tmp_path / "lost")
    with opened(case) as log:
        assert (log.log_end_offset, log.last_stable_offset) == (1036, 976)
        assert list(log.transactions.open_offsets.values()) == [976]
        assert [record.offset for record in log.records(isolation="read_committed")][-1] == 974
        scanned = log.scan(("offset",), isolation="read_committed").read_all()
        assert (len(scanned), scanned["offset"][-1].as_py()) == (600, 974)
        assert_ends_at_stable(log, whole)
    with serving(case.local, options=CatalogOptions(remote=case.opened())) as served, served.client() as client:
        assert client.list_offset("orders", -1, level=1).offset == 976


def test_what_is_open_where_the_store_ends_is_what_headers_say(case: TierCase, tmp_path: Path) -> None:
    lost = without_local_part(case, tmp_path / "lost")
    with opened(lost) as log:
        assert log.transactions.open_offsets == by_headers(log.segments)
        assert_ends_at_stable(log, case)


@pytest.mark.parametrize("name", ["aiven-plain", "lts-4.4.0"])
def test_the_same_holds_wherever_the_store_ends(name: str, tmp_path: Path) -> None:
    whole = tier_case(name)
    case = without_local_part(whole, tmp_path / "lost", has_topic=False)
    found = []
    with opened(case) as log:
        starts = [segment.base_offset for segment in log.segments]
    for start in reversed(starts[1:]):
        with opened(case) as log:
            found.append(log.transactions.open_offsets)
            assert found[-1] == by_headers(log.segments)
            assert_ends_at_stable(log, whole)
        for path in objects_of(case, start):
            path.unlink()
    assert len({first for each in found for first in each.values()}) > 5


def test_nothing_is_open_without_transactions(tmp_path: Path) -> None:
    case = tier_case("lts-4.4.0")
    shutil.copytree(case.root, tmp_path / "lost")
    for path in (tmp_path / "lost" / "local" / "wide-0").glob("0*"):
        path.unlink()
    with open_partition(tmp_path / "lost" / "local" / "wide-0", remote=case.opened()) as log:
        assert log.transactions.open_offsets == {}
        assert log.last_stable_offset == log.log_end_offset > log.log_start_offset


@pytest.mark.parametrize("seed", range(8))
def test_made_transactions_of_several_producers(seed: int, tmp_path: Path) -> None:
    made = made_tier(tmp_path, seed)
    for path in made.partition.iterdir():
        if path.name[:20].isdecimal():
            path.unlink()
    with open_partition(made.partition, remote=open_tier(made.store, keys=made.keys)) as log:
        transactions = log.transactions
        by_log = read_transactions(log.segments)
        assert (transactions.open_offsets, transactions.end_offset) == (by_log.open_offsets, by_log.end_offset)
        with open_partition(made.whole / NAME) as whole:
            stable = log.last_stable_offset
            records = whole.records(log.log_start_offset, isolation="read_committed")
            expected = digest_of(record for record in records if record.offset < stable)
        assert digest_of(log.records(isolation="read_committed")) == expected


@pytest.mark.parametrize("name", ["aiven-plain", "lts-4.4.0"])
def test_a_gap_in_the_store_counts_as_one_in_a_local_log(name: str, tmp_path: Path) -> None:
    whole = tier_case(name)
    with open_partition(whole.local / ORDERS, remote=whole.opened()) as log:
        starts = [segment.base_offset for segment in log.segments if segment.is_tiered]
    for start in starts[1:-1]:
        case = replace(whole, root=tmp_path / str(start))
        shutil.copytree(whole.root, case.root)
        for path in case.local.glob("__remote_log_metadata-*"):
            shutil.rmtree(path)
        for path in objects_of(case, start):
            path.unlink()
        with opened(case) as log:
            assert start not in [segment.base_offset for segment in log.segments]
            by_log = read_transactions(log.segments, log.log_start_offset)
            assert log.transactions.open_offsets == by_log.open_offsets
            assert log.last_stable_offset == by_log.last_stable_offset
            ended = [each for each in by_log.aborted if each.last_offset >= log.log_start_offset]
            found = [(each.producer_id, each.last_offset) for each in log.transactions.aborted]
            assert found == [(each.producer_id, each.last_offset) for each in ended]
        shutil.rmtree(case.root)


@pytest.mark.parametrize("damage", ["lost", "unreadable"])
def test_headers_decide_without_a_snapshot(damage: str, tmp_path: Path) -> None:
    whole = tier_case("lts-4.4.0")
    case = without_local_part(whole, tmp_path / "lost")
    with opened(case) as log:
        expected, last = log.transactions.open_offsets, log.segments[-2:]
        for segment in last:
            (path,) = (each for each in objects_of(case, segment.base_offset) if each.suffix == ".snapshot")
            path.write_bytes(b"\0")
            if damage == "lost":
                path.unlink()
    with opened(case) as log:
        assert log.transactions.open_offsets == expected == by_headers(log.segments)


def test_a_lost_local_end_leaves_open_what_began_in_the_store(tmp_path: Path) -> None:
    whole = tier_case("aiven-plain")
    shutil.copytree(whole.root, tmp_path / "lost")
    case = replace(whole, root=tmp_path / "lost")
    for path in (case.local / ORDERS).iterdir():
        if path.name[:20].isdecimal() and int(path.name[:20]) > 888:
            path.unlink()
    with opened(case) as log:
        assert log.log_end_offset == 914
        assert log.last_stable_offset == 854
        assert_ends_at_stable(log, whole)


def test_no_snapshot_is_fetched_where_a_segment_follows(case: TierCase, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = []
    real = JoinedStorage._opened
    monkeypatch.setattr(JoinedStorage, "_opened", lambda self, file: kinds.append(file.kind) or real(self, file))
    with opened(case) as log:
        assert log.transactions.open_offsets == {}
    assert FileKind.PRODUCER_SNAPSHOT not in kinds
    assert FileKind.LOG not in kinds


def test_one_snapshot_is_fetched_at_the_end_of_the_store(
    case: TierCase, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = without_local_part(case, tmp_path / "lost")
    names = set()
    real = JoinedStorage.open

    def noted(self: JoinedStorage, path: Path, **options: object) -> object:
        names.add(path.name)
        return real(self, path, **options)

    monkeypatch.setattr(JoinedStorage, "open", noted)
    with opened(lost) as log:
        assert log.transactions.end_offset
        end = log.log_end_offset
    assert [name for name in names if name.endswith(".snapshot")] == [f"{end:020}.snapshot"]

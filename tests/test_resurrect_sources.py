"""A node of what a remote store, a copy of it, or a salvage has left of a cluster."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from helpers.tier_cases import CASES, TierCase, tier_case

from proofs.kafka.served import ISOLATIONS, digest_of
from proofs.resurrect import Choices, find_failures, fingerprint
from seglog_format import open_partition, open_tier, resurrect, salvage, verify
from seglog_format.cli.main import run
from tests.helpers.kafka import kafka_at_hand
from tests.helpers.support import authentic

if TYPE_CHECKING:
    from pathlib import Path

ORDERS = "orders-0"


def assert_served(node: Path, partition: dict[str, Any]) -> None:
    """Compare a partition of a node with what the broker served that had the store."""
    with open_partition(node / f"{partition['topic']}-{partition['partition']}") as log:
        assert (log.log_start_offset, log.log_end_offset) == (partition["begin"], partition["end"])
        for isolation in ISOLATIONS:
            expected = partition[isolation]
            assert digest_of(log.records(isolation=isolation)) == (expected["records"], expected["sha256"])


@pytest.mark.parametrize("name", CASES)
def test_node_has_what_the_broker_served_of_disk_and_store(name: str, tmp_path: Path) -> None:
    case = tier_case(name)
    before = fingerprint(case.root)
    plan = resurrect(case.local, tmp_path / "node", remote=case.opened())
    plan.apply()
    assert [note for note in plan.made.notes if "offsets" in note.text] == []
    for partition in case.partitions():
        assert_served(tmp_path / "node", partition)
    assert [each for each in verify(tmp_path / "node") if each.severity.name == "ERROR"] == []
    assert fingerprint(case.root) == before


def test_without_the_store_the_plan_names_the_offsets_that_are_missing() -> None:
    plan = resurrect(tier_case("lts-4.4.0").local)
    assert ("orders-0", "offsets 73 to 791 are not in the directory, but in a remote store, or lost") in plan.made.notes


def without_local_segments(case: TierCase, target: Path) -> Path:
    """Copy a log directory, and lose the segments of `orders`, and the topics that are beside it but the metadata."""
    shutil.copytree(case.local, target)
    for path in (target / ORDERS).glob("0*"):
        path.unlink()
    for path in target.glob("__transaction_state-*"):
        shutil.rmtree(path)
    return target


def test_plan_and_node_agree_on_a_log_that_only_the_store_has(tmp_path: Path) -> None:
    case = tier_case("aiven-plain")
    lost = without_local_segments(case, tmp_path / "lost")
    plan = resurrect(lost, tmp_path / "node", remote=case.opened())
    replica = plan.made.logs["orders", 0]
    assert (replica.log_start_offset, replica.log_end_offset) == (73, 1036)
    first, second = [text for about, text in plan.made.notes if about == ORDERS]
    assert first == "offsets 1036 to 1097 are lost: by replication-offset-checkpoint the log had reached 1098"
    assert "open at offset 976" in second
    plan.apply()
    with open_partition(tmp_path / "node" / ORDERS) as log:
        assert (log.log_start_offset, log.log_end_offset, log.last_stable_offset) == (73, 1098, 976)
        with open_partition(case.local / ORDERS, remote=case.opened()) as whole:
            expected = [record for record in whole.records() if record.offset < 1036]
        assert list(log.records(on_gap=lambda _gap: None)) == expected


def test_leader_epochs_say_how_far_a_log_went_without_checkpoints(tmp_path: Path) -> None:
    case = tier_case("aiven-plain")
    lost = without_local_segments(case, tmp_path / "lost")
    for path in lost.glob("*-offset-checkpoint"):
        path.unlink()
    notes = resurrect(lost, remote=case.opened()).made.notes
    assert any(
        about == ORDERS and "by leader-epoch-checkpoint the log had reached 1098" in text for about, text in notes
    )
    notes = resurrect(lost).made.notes
    start = "offsets 0 to 1097 are not in the directory, but in a remote store, or lost"
    assert [text for about, text in notes if about == ORDERS and text.startswith(start)] != []


def damaged_store(case: TierCase, target: Path, start: int) -> Path:
    """Copy a store, and flip a bit in the log of a segment of `orders`."""
    shutil.copytree(case.store, target)
    (log,) = (path for path in target.rglob(f"{start:020}-*.log") if path.parent.name.startswith(ORDERS))
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 1
    log.write_bytes(data)
    return target


@pytest.mark.parametrize(("start", "missing"), [(400, "411 to 421"), (60, "100 to 112")])
def test_damaged_segment_of_the_store_gives_every_intact_batch(start: int, missing: str, tmp_path: Path) -> None:
    case = tier_case("lts-4.4.0")
    store = damaged_store(case, tmp_path / "store", start)
    plan = resurrect(case.local, tmp_path / "node", remote=open_tier(store))
    plan.apply()
    texts = [text for about, text in plan.made.notes if about == ORDERS and "left out:" not in text]
    assert "SEG-BAT-003" in texts[0]
    assert "every intact batch of this segment is taken" in texts[0]
    assert f"{missing} are lost" in texts[1]
    first, last = map(int, missing.split(" to "))
    with open_partition(case.local / ORDERS, remote=case.opened()) as whole:
        expected = [record for record in whole.records() if not first <= record.offset <= last]
    with open_partition(tmp_path / "node" / ORDERS) as log:
        assert list(log.records(on_gap=lambda _gap: None)) == expected


def test_log_that_the_store_lacks_is_left_out_and_what_follows_is_kept(tmp_path: Path) -> None:
    case = tier_case("lts-4.4.0")
    store = tmp_path / "store"
    shutil.copytree(case.store, store)
    (log,) = (path for path in store.rglob(f"{280:020}-*.log") if path.parent.name.startswith(ORDERS))
    log.unlink()
    plan = resurrect(case.local, tmp_path / "node", remote=open_tier(store))
    plan.apply()
    texts = [text for about, text in plan.made.notes if about == ORDERS and "left out:" not in text]
    assert "expected its .log in the remote store, found none [SEG-PDR-028]; this segment is left out" in texts[0]
    assert texts[1].startswith("offsets 280 to ")
    with open_partition(tmp_path / "node" / ORDERS) as made:
        kept = {record.offset for record in made.records(on_gap=lambda _gap: None)}
    assert {73, 305} < kept
    assert 280 not in kept
    assert max(kept) > 1000


def test_node_of_a_store_alone(tmp_path: Path) -> None:
    case = tier_case("lts-4.4.0")
    assert run(["tier", "fetch", "--topic", "wide", str(case.store), str(tmp_path / "fetched")]) == 0
    assert run(["resurrect", str(tmp_path / "fetched"), "-o", str(tmp_path / "node")]) in {0, 1}
    with open_partition(case.local / "wide-0", remote=case.opened()) as whole:
        expected = [record for record in whole.records() if record.offset < 1273]
    with open_partition(tmp_path / "node" / "wide-0") as log:
        assert list(log.records()) == expected


def test_command_reads_the_store(capsys: pytest.CaptureFixture[str]) -> None:
    case = tier_case("aiven-both")
    keys = [f"--key={name}={path}" for name, path in case.keys.items()]
    assert run(["resurrect", "--json", str(case.local), "--remote", str(case.store), *keys]) == 1
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    (orders,) = (line for line in lines if line["type"] == "log" and line["topic"] == "orders")
    assert orders["remoteSegmentCount"] > 5
    assert orders["logStartOffset"] == 73
    assert run(["resurrect", str(case.local), "--remote", str(case.store), *keys]) == 1
    assert "remote segments" in capsys.readouterr().out


def test_store_whose_key_is_not_at_hand_is_refused_and_nothing_is_written(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    case = tier_case("aiven-aes")
    assert run(["resurrect", str(case.local), "--remote", str(case.store), "-o", str(tmp_path / "node")]) == 2
    assert "key1" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_salvaged_copy_is_taken_instead_of_the_damaged_log(tmp_path: Path) -> None:
    old, rescued = tmp_path / "old", tmp_path / "rescued"
    for case in ("root", "cluster-metadata", "segs"):
        shutil.copytree(authentic(f"4.3.0/{case}"), old, dirs_exist_ok=True)
    log = sorted((old / "segs-0").glob("*.log"))[2]
    data = bytearray(log.read_bytes())
    data[90] ^= 1
    log.write_bytes(data)
    salvage(old / "segs-0", rescued / "segs-0").apply()
    resurrect([old, rescued], tmp_path / "node").apply()
    with open_partition(tmp_path / "node" / "segs-0") as made, open_partition(rescued / "segs-0") as copy:
        records = list(copy.records(on_gap=lambda _gap: None))
        assert list(made.records(on_gap=lambda _gap: None)) == records
        assert records[-1].offset == 449


def test_stock_broker_serves_from_the_node_what_the_old_one_served_of_disk_and_store(tmp_path: Path) -> None:
    case = tier_case("lts-4.4.0")
    names = ("begin", "end")
    served: dict[Any, Any] = {
        (each["topic"], each["partition"], isolation): {name: each[name] for name in names}
        | {name: each[isolation][name] for name in ("records", "sha256")}
        for each in case.partitions()
        for isolation in ISOLATIONS
    }
    with kafka_at_hand():
        choices = Choices(remote=case.opened())
        failures, count = find_failures([case.local], tmp_path / "node", "4.4", served=served, choices=choices)
    assert failures == []
    assert count >= len(case.partitions())

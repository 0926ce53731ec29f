"""Logs that were closed cleanly and have no producer snapshot, held against started brokers (SEG-PSN-010)."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest
from helpers.batches import patched
from helpers.made_partitions import EMPTY_SNAPSHOT, control, entry, make, numbered, transactional
from helpers.support import FIXTURES

from seglog_format import RecoveryOptions, recover, resurrect, truncate, verify
from seglog_format.log.producer_snapshot import ProducerSnapshot

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

WITNESS = json.loads((FIXTURES / "witnesses" / "producer_snapshots.json").read_text(encoding="utf-8"))
RELEASES = WITNESS["releases"]
VARIANTS = list(WITNESS["answers"]["4.4.0"]["variants"])
VISIBLE = ["5 open-0", "6 open-1"]
INDEXED = {"0.index": b"", "0.timeindex": b""}
LOG = {"0.log": entry(0) + transactional(1) + transactional(2, 8) + control(3, 0, producer=8) + transactional(4, 9)}
OPEN = LOG | INDEXED
"""Producers 7, 8 and 9; the transactions of 7 and 9 are open."""


def answers(release: str, variant: str) -> dict[str, Any]:
    found: dict[str, Any] = WITNESS["answers"][release]["variants"][variant]
    return found


def closed(root: Path, release: str, variant: str) -> Path:
    """Return the partition directory with which a broker was started."""
    stored = {name: base64.b64decode(data) for name, data in WITNESS["answers"][release]["files"].items()}
    snapshots = sorted(name for name in stored if name.endswith(".snapshot"))
    is_clean = True
    for step in answers(release, variant)["steps"]:
        if step in {"remove all", "remove the newest"}:
            for name in snapshots[-1:] if step == "remove the newest" else snapshots:
                del stored[name]
        elif step == "write an unreadable one":
            stored[f"{7:020}.snapshot"] = bytes(10)
        elif step == "remove the index":
            del stored[f"{0:020}.index"]
        is_clean = is_clean and step != "remove the clean shutdown"
    directory = make(root, stored, clean=is_clean)
    if "recover" in answers(release, variant)["steps"]:
        recover(directory).apply()
    if "resurrect" in answers(release, variant)["steps"]:
        resurrect(directory.parent, root / "node", unknown_topics=True).apply()
        return root / "node" / directory.name
    return directory


def forgotten(directory: Path) -> list[str]:
    return [finding.found for finding in verify(directory) if finding.requirement == "SEG-PSN-010"]


def producers_in(directory: Path) -> dict[int, tuple[int, int]]:
    """Return last sequence and first offset of the open transaction of each producer in the newest snapshot."""
    newest = max(directory.glob("*.snapshot"))
    producers = ProducerSnapshot.open(newest).producers
    return {each.producer_id: (each.last_sequence, each.current_txn_first_offset) for each in producers}


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.req("SEG-PSN-010")
def test_what_brokers_forget_is_reported(release: str, variant: str, tmp_path: Path) -> None:
    answer = answers(release, variant)
    is_visible = answer["read_committed"][-2:] == VISIBLE
    is_accepted = answer["duplicate"] != {"error": 0, "baseOffset": 2}
    assert is_visible == is_accepted == (variant == "no snapshot")
    found = forgotten(closed(tmp_path, release, variant))
    assert bool(found) == is_visible
    if found:
        assert found == [
            "none: brokers forget producers 0 and 1000; open transactions become visible from offset 5 by producer 1000"
        ]


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.req("SEG-PSN-010")
def test_recovery_writes_the_snapshot_of_the_broker(release: str, tmp_path: Path) -> None:
    written = closed(tmp_path, release, "no snapshot, recovered") / f"{7:020}.snapshot"
    stored = base64.b64decode(WITNESS["answers"][release]["files"][written.name])
    expected = ProducerSnapshot.from_bytes(stored).producers
    assert len(expected) == 2
    assert set(ProducerSnapshot.open(written).producers) == set(expected)


@pytest.mark.req("SEG-PSN-010")
def test_producers_and_their_open_transactions_are_named(tmp_path: Path) -> None:
    directory = make(tmp_path, OPEN, clean=True)
    expected = (
        "none: brokers forget producers 7, 8 and 9; "
        "open transactions become visible from offset 1 by producer 7 and 4 by producer 9"
    )
    assert forgotten(directory) == forgotten(directory.parent) == [expected]
    many = b"".join(transactional(n, n + 1) for n in range(12)) + b"".join(
        control(12 + n, 1, producer=n + 1) for n in range(12)
    )
    (directory / numbered("0.log")).write_bytes(many)
    assert forgotten(directory) == ["none: brokers forget producers 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 2 more"]


@pytest.mark.parametrize(
    ("files", "is_clean", "log_start"),
    [
        ({"0.log": entry(0)}, True, None),
        ({"0.log": b""}, True, None),
        (LOG, False, None),
        (LOG, True, 5),
        (LOG | {"5.snapshot": EMPTY_SNAPSHOT}, True, None),
        (LOG | {"0.snapshot": EMPTY_SNAPSHOT}, True, None),
    ],
    ids=["no producer", "no batch", "no clean shutdown", "below the log start", "a snapshot", "an older snapshot"],
)
@pytest.mark.req("SEG-PSN-010")
def test_logs_whose_producers_are_not_forgotten(
    files: dict[str, bytes], log_start: int | None, tmp_path: Path, *, is_clean: bool
) -> None:
    directory = make(tmp_path, files | INDEXED, clean=is_clean, log_start=log_start)
    assert not forgotten(directory)
    assert not [step for step in recover(directory).steps if step.path.suffix == ".snapshot"]


@pytest.mark.parametrize("name", ["__cluster_metadata-0", "orders-0.0123456789abcdef0123456789abcdef-delete"])
def test_directories_that_brokers_do_not_load_so(name: str, tmp_path: Path) -> None:
    directory = make(tmp_path, OPEN, clean=True)
    assert not forgotten(directory.rename(directory.with_name(name)))
    assert not forgotten(directory.parent)


UNREADABLE = bytes(10)
LIKE_BROKER = RecoveryOptions(like_broker=True)


@pytest.mark.parametrize(
    ("files", "change"),
    [
        (OPEN, recover),
        (OPEN | {"5.snapshot": UNREADABLE}, recover),
        (OPEN | {"0.snapshot": UNREADABLE}, recover),
        (OPEN | {"9.snapshot": EMPTY_SNAPSHOT}, recover),
        (OPEN | {"3.snapshot": EMPTY_SNAPSHOT, "2.snapshot": EMPTY_SNAPSHOT, "9.snapshot": UNREADABLE}, recover),
        (LOG, recover),
        (OPEN | {"5.snapshot": UNREADABLE}, lambda path: recover(path, options=LIKE_BROKER)),
        (OPEN | {"9.snapshot": EMPTY_SNAPSHOT}, lambda path: recover(path, options=LIKE_BROKER)),
        (OPEN | {"0.snapshot": EMPTY_SNAPSHOT}, lambda path: recover(path, options=LIKE_BROKER)),
        (LOG, lambda path: recover(path, options=LIKE_BROKER)),
        (OPEN | {"0.log": OPEN["0.log"] + entry(5), "6.snapshot": EMPTY_SNAPSHOT}, lambda path: truncate(path, 5)),
        (OPEN | {"0.log": OPEN["0.log"] + entry(5)}, lambda path: truncate(path, 5)),
    ],
)
@pytest.mark.req("SEG-PSN-010")
def test_no_command_makes_a_broker_forget_producers(
    files: dict[str, bytes], change: Callable[[Path], Any], tmp_path: Path
) -> None:
    """Each of them removed the last snapshot, or found none, and left the clean shutdown."""
    directory = make(tmp_path, files, clean=True)
    change(directory).apply()
    assert (directory.parent / ".kafka_cleanshutdown").exists()
    assert not forgotten(directory)
    assert producers_in(directory) == {7: (0, 1), 8: (0, -1), 9: (0, 4)}
    assert not recover(directory).steps


def test_a_resurrected_node_is_not_closed_cleanly(tmp_path: Path) -> None:
    """So the broker that starts on it computes the producers from the log."""
    directory = make(tmp_path, OPEN, clean=True)
    assert forgotten(directory)
    node = tmp_path / "node"
    resurrect(directory.parent, node, unknown_topics=True).apply()
    assert list(node.glob("orders-0/*.log"))
    assert not (node / ".kafka_cleanshutdown").exists()
    assert not forgotten(node)


def test_a_broker_that_is_imitated_forgets_producers(tmp_path: Path) -> None:
    directory = make(tmp_path, OPEN, clean=True)
    assert not recover(directory, options=LIKE_BROKER).steps


@pytest.mark.req("SEG-PSN-010", "SEG-PSN-011")
def test_a_batch_outside_of_the_open_transaction_counts_and_an_unreadable_marker_does_not(tmp_path: Path) -> None:
    """No broker can apply them: the one is the last data batch of its producer, the other says nothing."""
    marker = patched(control(5, 1, producer=9), 61, "b", 0)
    outside = entry(6, producer_id=7, producer_epoch=0, base_sequence=1)
    directory = make(tmp_path, OPEN | {"0.log": OPEN["0.log"] + marker + outside}, clean=True)
    recover(directory).apply()
    assert producers_in(directory) == {7: (1, 1), 8: (0, -1), 9: (0, 4)}

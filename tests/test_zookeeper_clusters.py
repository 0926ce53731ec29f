"""Three replicas each of Kafka 0.11 and 2.8: behind, emptied, cut and diverged when killed, the same when rejoined."""

from __future__ import annotations

import json
import lzma
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest
from helpers.support import FIXTURES, run_directory
from test_served_records import COMPARED, as_line, blob

from proofs.unpacking import unpack_archive
from seglog_format import Severity, open_cluster, open_partition, recover, verify
from seglog_format.cli.main import run
from seglog_format.cluster.comparison import Replica, divergence
from seglog_format.log.side_files import leader_epochs_of
from tools.fixtures import sha256

if TYPE_CHECKING:
    from pathlib import Path

RELEASES = sorted(path.name for path in (FIXTURES / "clusters").iterdir())
STATES = ("killed", "rejoined")
BOTH = [*product(RELEASES, STATES)]
TOPICS = ("steady", "compacted", "txn", "emptied", "cut", "diverged", "idle")
INTERNAL = ("__consumer_offsets", "__transaction_state")
BROKERS = ("b0", "b1", "b2")
EACH = 60
"""Records that all brokers got, then two of them, then the first alone."""
OTHERS = 30
"""Records that the broker elected in its absence got."""


@cache
def unpacked(release: str) -> Path:
    target = run_directory() / f"cluster-{release}"
    unpack_archive(FIXTURES / "clusters" / release / "files.tar.xz", target)
    return target


@cache
def lines(release: str, kind: str) -> list[dict[str, Any]]:
    with lzma.open(FIXTURES / "clusters" / release / f"{kind}.jsonl.xz", "rt", encoding="utf-8") as found:
        return [json.loads(line) for line in found]


def leaders(release: str, state: str) -> dict[str, dict[str, Any]]:
    found = json.loads((FIXTURES / "clusters" / release / "leaders.json").read_text(encoding="utf-8"))
    state_of: dict[str, dict[str, Any]] = found["leaders"][state]
    return state_of


def logs(release: str, state: str) -> list[Path]:
    """Return the directories of all replicas."""
    root = unpacked(release) / state
    return [root / broker / f"{topic}-0" for broker in BROKERS for topic in (*TOPICS, *INTERNAL)]


def ends(release: str, state: str, topic: str) -> list[tuple[int, int]]:
    found = []
    for broker in BROKERS:
        with open_partition(unpacked(release) / state / broker / f"{topic}-0") as log:
            found.append((log.log_start_offset, log.log_end_offset))
    return found


def replica(path: Path) -> Replica:
    with open_partition(path) as log:
        end, epochs = log.log_end_offset, leader_epochs_of(path)
    return Replica(path, 0, "", epochs, 0, end, 0)._replace(known_epochs=epochs)


@pytest.mark.parametrize("release", RELEASES)
def test_files_are_those_that_kafkas_classes_read(release: str) -> None:
    root = unpacked(release)
    stated = {line["file"]: line["sha256"] for line in lines(release, "expected") if line["type"] == "file"}
    assert stated == {path.relative_to(root).as_posix(): sha256(path) for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize(("release", "state"), BOTH)
def test_records_of_each_replica_are_those_of_kafkas_classes(release: str, state: str) -> None:
    records = [line for line in lines(release, "expected") if line["type"] == "record"]
    for path in logs(release, state):
        folder = path.relative_to(unpacked(release)).as_posix()
        theirs = [line for line in records if line["file"].rpartition("/")[0] == folder]
        with open_partition(path) as log:
            found = [(one.offset, one.timestamp_ms, blob(one.key), blob(one.value)) for one in log.records()]
        kept = [line for line in theirs if "control" not in line and line["offset"] >= log.log_start_offset]
        assert found == [(one["offset"], one["timestamp"], one["key"], one["value"]) for one in kept], folder


@pytest.mark.parametrize(("release", "state"), BOTH)
def test_no_replica_has_an_error_and_recovery_cuts_nothing(release: str, state: str) -> None:
    for path in logs(release, state):
        assert [str(one) for one in verify(path) if one.severity is Severity.ERROR] == []
        assert not recover(path).plan.changes_log, path


@pytest.mark.parametrize(("release", "state"), BOTH)
def test_the_leaders_have_what_they_served(release: str, state: str) -> None:
    answers = [line for line in lines(release, "served") if line["state"] == state]
    for topic, isolation in product(TOPICS, ("read_uncommitted", "read_committed")):
        *theirs, end = [one for one in answers if (one["topic"], one["isolation"]) == (topic, isolation)]
        broker = BROKERS[leaders(release, state)[topic]["leader"]]
        names = {field for line in theirs for field in line}
        with open_partition(unpacked(release) / state / broker / f"{topic}-0") as log:
            begin = theirs[0]["offset"] if theirs else log.log_end_offset
            found = [as_line(one, names) for one in log.records(begin, isolation=isolation)]
            reached = log.last_stable_offset if isolation == "read_committed" else log.log_end_offset
        assert found == [{field: one[field] for field in COMPARED if field in one} for one in theirs], topic
        assert reached == end["position"], topic


@pytest.mark.parametrize("release", RELEASES)
def test_replicas_are_behind_by_what_they_missed(release: str) -> None:
    for topic in ("steady", "compacted", "diverged"):
        assert ends(release, "killed", topic) == [(0, 3 * EACH), (0, 2 * EACH), (0, EACH)]
    assert ends(release, "killed", "emptied") == [(3 * EACH, 3 * EACH), (0, 2 * EACH), (0, EACH)]
    for topic in (*TOPICS, *INTERNAL):
        assert len(set(ends(release, "rejoined", topic))) == 1, topic


@pytest.mark.parametrize("release", RELEASES)
def test_the_leaders_cleaner_ran_and_left_tombstones(release: str) -> None:
    with open_partition(unpacked(release) / "killed" / "b0" / "compacted-0") as log:
        left = list(log.records())
    assert len(left) < 3 * EACH
    assert any(one.value is None for one in left)


@pytest.mark.parametrize("release", RELEASES)
def test_a_leader_that_missed_an_election_is_cut_where_its_history_diverged(release: str) -> None:
    root = unpacked(release)
    assert leaders(release, "elected")["diverged"]["leader"] == 1
    replicas = replica(root / "killed/b0/diverged-0"), replica(root / "rejoined/b1/diverged-0")
    assert divergence(*replicas) == 2 * EACH
    assert ends(release, "rejoined", "diverged") == [(0, 2 * EACH + OTHERS)] * 3
    before, after = (root / state / "b0" / "diverged-0" for state in STATES)
    assert run(["diff", str(before), str(after)]) == 1
    with open_partition(before) as old, open_partition(after) as new:
        kept = [one for one in old.records() if one.offset < 2 * EACH]
        assert [one for one in new.records() if one.offset < 2 * EACH] == kept


@pytest.mark.parametrize(("release", "topic"), [*product(RELEASES, (*TOPICS, *INTERNAL))])
def test_replicas_that_rejoined_do_not_diverge(release: str, topic: str) -> None:
    """A follower that fetched a cleaned log has epochs that begin later than its leader's."""
    found = [replica(unpacked(release) / "rejoined" / broker / f"{topic}-0") for broker in BROKERS]
    for one, other in product(found, found):
        assert divergence(one, other) == one.log_end_offset


@pytest.mark.parametrize(("release", "state"), BOTH)
def test_cluster_shows_three_replicas_and_the_open_transactions(release: str, state: str) -> None:
    cluster = open_cluster([unpacked(release) / state / broker for broker in BROKERS])
    assert {key: len(found) for key, found in cluster.replicas.items()} == {
        (topic, 0): 3 for topic in (*TOPICS, *INTERNAL)
    }
    known = cluster.coordinators
    assert {key: one.offset for key, one in known.groups["readers"].offsets.items()} == {("steady", 0): 3 * EACH}
    opened = {name for name, one in known.transactions.items() if one["transactionPartitions"]}
    assert opened == {"txn-oa", "txn-ob"}
    with open_partition(unpacked(release) / state / "b0" / "txn-0") as log:
        assert log.last_stable_offset < log.log_end_offset


@pytest.mark.parametrize(("release", "topic"), [*product(RELEASES, ("steady", "txn", "compacted"))])
def test_salvage_of_all_replicas_has_the_records_of_the_longest(release: str, topic: str, tmp_path: Path) -> None:
    replicas = [unpacked(release) / "killed" / broker / f"{topic}-0" for broker in BROKERS]
    assert run(["salvage", *map(str, replicas), "-o", str(tmp_path / f"{topic}-0")]) == 0
    with open_partition(replicas[0]) as first, open_partition(tmp_path / f"{topic}-0") as made:
        wanted = {one.offset: one.value for one in first.records()}
        assert wanted.items() <= {one.offset: one.value for one in made.records()}.items()
        assert made.log_end_offset == first.log_end_offset

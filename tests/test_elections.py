"""Of several replicas, a node gets the one that an election keeps, and its logs end where the old ones did."""

from __future__ import annotations

import json
import re
import shutil
import tarfile
from itertools import product
from pathlib import PurePosixPath
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final

import pytest

from proofs.kafka.served import digest_of
from proofs.kafka.shortened_leaders import END, FLIPPED, GROUP, LAST, TOPICS, damage_last_leader
from seglog_format import open_cluster, open_partition, resurrect
from seglog_format.cluster.cluster import CommittedOffset, Group
from seglog_format.cluster.comparison import Election, Replica, Standing, divergence, lost_from
from seglog_format.cluster.image import RELEASES, MetadataImage, TopicImage
from seglog_format.cluster.new_image import NewImage, NewNode, new_image
from seglog_format.cluster.whole_log import MAX_END, raise_ends
from seglog_format.model import EpochStart
from tests.helpers.support import FIXTURES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

KEY: Final = ("t", 0)
NODE: Final = NewNode(1, "A" * 22, RELEASES["4.4"])
LEADERS: Final = sorted(path.name for path in (FIXTURES / "leaders").iterdir())
WITNESS: Final = json.loads((FIXTURES / "witnesses" / "elections.json").read_text(encoding="utf-8"))


def replica(
    node: int,
    start: int = 0,
    end: int = 30,
    *,
    epochs: Sequence[tuple[int, int]] = (),
    **more: Any,  # noqa: ANN401
) -> Replica:
    path: Any = PurePosixPath(f"b{node}/t-0")
    chain = tuple(EpochStart(*each) for each in epochs)
    return Replica(path, node, "id", chain, start, end, 100)._replace(known_epochs=chain, **more)


def partition(**fields: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"partitionId": 0, "leaderEpoch": 3, "replicas": [1, 2, 3], **fields}


def planned(copies: Sequence[Replica], fields: dict[str, Any], positions: Sequence[CommittedOffset] = ()) -> NewImage:
    """Return the image of a node, with the ends of its logs."""
    old = MetadataImage(features={"metadata.version": 30}, topics={"id": TopicImage("t", "id", {0: fields})})
    replicas = {KEY: tuple(copies)}
    made = new_image(old, replicas, NODE)
    groups = {f"g{number}": Group(offsets={KEY: each}) for number, each in enumerate(positions)}
    cluster: Any = SimpleNamespace(
        directories=SimpleNamespace(directories=()), coordinators=SimpleNamespace(groups=groups)
    )
    held: Any = SimpleNamespace(listing=SimpleNamespace(segments=[None]))
    for copy in made.logs.values():
        held.log_end_offset = copy.log_end_offset
    raise_ends(made, cluster, replicas, {KEY: held} if made.logs else {})
    return made


def end_of(made: NewImage) -> int:
    return made.ends.get(KEY, made.logs[KEY].log_end_offset or 0)


def texts_of(made: NewImage) -> list[str]:
    return [note.text for note in made.notes if note.about == "t-0"]


# -- against the controller --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", WITNESS["releases"][-1:])
def test_replica_is_the_one_that_the_controller_elects(release: str) -> None:
    assert release == "4.4.0"
    asked = 0
    for isr, elr, last_known, alive, unclean, leader, _recovers in WITNESS["rows"]:
        fields = partition(isr=isr, eligibleLeaderReplicas=elr, lastKnownElr=last_known)
        chosen = Election([replica(node, epochs=[(0, 0)]) for node in alive], fields).chosen.node_id
        if leader >= 0:
            asked += 1
            assert chosen == leader, (isr, elr, last_known, alive, unclean)
    assert asked > 300


# -- every small cluster -----------------------------------------------------------------------------------------------

COMMITTED: Final = 30
SHAPES: Final = {
    "whole": {"epochs": [(0, 0), (1, 10)]},
    "emptied": {"start": COMMITTED, "epochs": [(1, COMMITTED)]},
    "emptied and loaded since": {"start": COMMITTED},
    "cut": {"start": 15, "epochs": [(1, 15)]},
    "stale": {"end": 20, "epochs": [(0, 0), (1, 10)], "high_watermark": 20},
    "stale and emptied": {"start": 20, "end": 20, "epochs": [(1, 20)], "high_watermark": 20},
    "missed an epoch": {"end": 10, "epochs": [(0, 0)], "high_watermark": 10},
    "wrote alone": {"end": 12, "epochs": [(0, 0)], "high_watermark": 10},
    "damaged": {"end": 14, "epochs": [(0, 0), (1, 10)], "damage": "crc"},
    "lost its end": {"end": 14, "epochs": [(0, 0), (1, 10)]},
}
"""Replicas of a log whose records up to 30 are committed, by what happened to them."""
REACHED: Final = ("whole", "emptied", "emptied and loaded since", "cut")
SHORTENED: Final = ("damaged", "lost its end")
ROLES: Final = ("isr", "elr", "other")


def clusters() -> Iterator[tuple[list[tuple[str, str]], dict[str, Any]]]:
    """Yield role and shape of two or three replicas, and the metadata; a safe replica had all committed records."""
    each = [
        (role, shape) for role, shape in product(ROLES, SHAPES) if role == "other" or shape in {*REACHED, *SHORTENED}
    ]
    for count in (2, 3):
        for members in product(each, repeat=count):
            if sorted(members) == list(members) and any(role != "other" for role, _ in members):
                listed = {
                    name: [node for node, (role, _) in enumerate(members, 1) if role == where]
                    for name, where in (("isr", "isr"), ("eligibleLeaderReplicas", "elr"))
                }
                yield list(members), partition(**listed)
                yield list(members), partition(leaderEpoch=0, **listed)  # older than the logs
                yield list(members), partition()


def shaped(node: int, shape: str) -> Replica:
    return replica(node, **{"high_watermark": COMMITTED, **SHAPES[shape]})


def test_every_small_cluster_keeps_what_it_had() -> None:
    count = 0
    for members, fields in clusters():
        copies = [shaped(node, shape) for node, (_, shape) in enumerate(members, 1)]
        made = planned(copies, fields)
        problems = [*wrong_choice(made, members, copies, fields), *false_losses(made, copies)]
        if end_of(made) < COMMITTED:
            problems.append(f"offsets from {end_of(made)} on are given twice")
        assert problems == [], (members, fields)
        count += 1
    assert count > 5_000


def wrong_choice(
    made: NewImage, members: list[tuple[str, str]], copies: list[Replica], fields: dict[str, Any]
) -> Iterator[str]:
    """Yield what is wrong with the choice: a whole member of ISR or ELR wins, else the one that reaches furthest."""
    chosen = made.logs[KEY]
    role, shape = members[copies.index(chosen)]
    is_known = bool(fields.get("isr") or fields.get("eligibleLeaderReplicas")) and fields["leaderEpoch"] > 0
    safe = [where for where in ROLES[:2] if any(at == where and how in REACHED for at, how in members)]
    if is_known and safe:
        if role != safe[0] or shape not in REACHED:
            yield f"a whole replica of {safe[0]} loses"
        return
    # "wrote alone" agrees with the others up to 10; one that has less cannot be in these clusters.
    ends = [copy.log_end_offset or 0 for copy in copies]
    ends = [10 if how == "wrote alone" else end for end, (_, how) in zip(ends, members, strict=True)]
    if ends[copies.index(chosen)] != max(ends):
        yield f"a replica that reaches {max(ends)} loses"


def false_losses(made: NewImage, copies: list[Replica]) -> Iterator[str]:
    """Yield texts that name lost offsets that the replica did not hold, or that the node has."""
    chosen, by_path = made.logs[KEY], {str(copy.path): copy for copy in copies}
    for text in texts_of(made):
        for path, first, last in re.findall(r"not from (\S+): .*offsets (\d+) to (\d+) of the other are lost", text):
            other = by_path[path]
            is_held = other.log_start_offset <= int(first) <= int(last) < (other.log_end_offset or 0)
            if not is_held or divergence(chosen, other) > int(first):
                yield text
        if "had reached" in text and (chosen.log_end_offset or 0) >= COMMITTED:
            yield text


# -- single decisions --------------------------------------------------------------------------------------------------


def test_member_of_the_isr_that_lost_records_ranks_below_a_whole_one_and_by_what_is_left() -> None:
    short = replica(1, end=10, epochs=[(0, 0)], damage="crc")
    stale, whole = replica(2, end=20, epochs=[(0, 0)]), replica(3, epochs=[(0, 0)])
    assert Election([short, stale, whole], partition(isr=[1, 3])).chosen is whole
    assert Election([short, stale], partition(isr=[1])).chosen is stale
    assert Election([short, stale._replace(log_end_offset=9)], partition(isr=[1])).chosen is short
    assert Election([short, stale], partition(isr=[1], eligibleLeaderReplicas=[2])).chosen is stale


def test_emptied_and_idle_members_are_whole() -> None:
    for copy in (replica(1, start=30, epochs=[(0, 30)]), replica(1, start=30), replica(1, end=0)):
        fields = partition(isr=[1])
        assert Election([copy, replica(2, end=0)], fields).standing(copy) is Standing.IN_SYNC


def test_member_whose_disk_came_back_empty_has_lost_records() -> None:
    wiped = replica(1, end=0)
    stale = replica(2, end=20, epochs=[(0, 0)], high_watermark=20)
    assert Election([wiped, stale], partition(isr=[1])).chosen is stale
    led = replica(1, end=0, epochs=[(3, 0)])  # an unclean election made it leader, and its log is the log
    assert Election([led, stale], partition(isr=[1])).chosen is led


def test_metadata_older_than_the_logs_do_not_count_and_that_is_told() -> None:
    old, new = replica(1, end=10, epochs=[(3, 0)]), replica(2, end=20, epochs=[(3, 0), (5, 12)])
    made = planned([old, new], partition(isr=[1]))
    assert made.logs[KEY] is new
    assert "the metadata are older than the logs: they know leader epoch 3, and a log 5" in texts_of(made)[0]


def test_replica_on_another_disk_of_the_broker_is_not_the_one_in_sync() -> None:
    disk, other = "BBBBBBBBBBBBBBBBBBBBBB", "CCCCCCCCCCCCCCCCCCCCCC"
    left = replica(1, end=20, epochs=[(0, 0)], directory_id=other)
    live = replica(1, start=30, epochs=[(0, 30)], directory_id=disk)
    fields = partition(isr=[1], directories=[disk, disk, disk])
    assert Election([left, live], fields).listed(left) is Standing.OTHER
    assert Election([left, live], fields).chosen is live
    for unassigned in ("AAAAAAAAAAAAAAAAAAAAAA", "AAAAAAAAAAAAAAAAAAAAAQ"):
        fields = partition(isr=[1], directories=[unassigned] * 3)
        assert Election([left], fields).listed(left) is Standing.IN_SYNC


@pytest.mark.parametrize("state", ["future", "delete", "stray"])
def test_renamed_directory_is_not_in_sync(state: str) -> None:
    moving, live = replica(1, end=40, state=state), replica(1)
    assert Election([moving, live], partition(isr=[1])).chosen is live


def test_without_metadata_the_epoch_at_the_end_of_an_emptied_log_counts() -> None:
    emptied = replica(1, start=1668, end=1668, epochs=[(0, 1668)])
    stale = replica(2, start=1000, end=1334, epochs=[(0, 1000)])
    assert Election([stale, emptied], {}).chosen is emptied
    assert divergence(emptied, stale) == 1334
    assert lost_from(emptied, stale) == 1334
    later = replica(3, start=1668, end=1668, epochs=[(2, 1668)])
    assert Election([later, replica(2, end=1800, epochs=[(0, 0)])], {}).chosen is later


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ([(0, 0)], [(0, 20)], 30),
        ([(1, 20)], [(0, 0)], 20),
        ([(1, 20)], [(0, 0), (1, 10)], 30),
        ([(1, 20)], [(0, 0), (2, 10)], 10),
        ([], [(0, 20)], 30),
        ([(0, 0), (1, 10), (2, 20)], [(0, 0), (1, 12), (2, 20)], 30),
        ([(0, 0), (1, 10), (2, 20)], [(0, 0), (2, 20)], 30),
        ([(0, 0), (1, 10), (2, 20)], [(0, 0), (1, 12), (3, 20)], 20),
    ],
)
def test_moved_log_start_and_cleaned_epochs_are_no_divergence(
    one: list[tuple[int, int]], other: list[tuple[int, int]], expected: int
) -> None:
    assert divergence(replica(1, epochs=one), replica(2, epochs=other)) == expected


def test_high_watermark_of_a_lost_history_proves_nothing() -> None:
    alone = replica(3, end=250, epochs=[(0, 0), (1, 200)], high_watermark=250)
    elected = replica(1, end=230, epochs=[(0, 0), (2, 200)], high_watermark=230)
    for fields in (partition(isr=[1]), {}):
        made = planned([alone, elected], fields)
        assert (made.logs[KEY], made.ends) == (elected, {})


def position(offset: int, leader_epoch: int = -1, topic_id: str = "") -> CommittedOffset:
    return CommittedOffset(offset, leader_epoch, "", 0, topic_id, 0)


@pytest.mark.parametrize(
    ("fields", "committed", "end"),
    [
        (partition(isr=[2]), position(40), 40),
        (partition(isr=[2]), position(40, topic_id="id"), 40),
        (partition(isr=[2]), position(40, topic_id="another"), 30),
        (partition(isr=[1]), position(40), 30),
        (partition(isr=[1]), position(40, leader_epoch=2), 40),
        (partition(isr=[1]), position(40, leader_epoch=0), 30),
        (partition(isr=[2]), position(MAX_END + 1), 30),
    ],
)
def test_committed_position_proves_an_end(fields: dict[str, Any], committed: CommittedOffset, end: int) -> None:
    """Clients may commit any number: it counts with a leader epoch, or where no replica is known to have all."""
    made = planned([replica(1, epochs=[(0, 0), (1, 30)])], fields, [committed])
    assert end_of(made) == end
    if committed.offset > MAX_END:
        assert "above which too few offsets are left; it does not count" in texts_of(made)[-1]
    elif end > COMMITTED:
        assert texts_of(made)[-1] == "offsets 30 to 39 are lost: by the position of group g0 the log had reached 40"


# -- directories of stock brokers --------------------------------------------------------------------------------------


def unpacked(name: str, target: Path) -> Path:
    """Unpack the directories of a cluster whose last leader was killed."""
    with tarfile.open(FIXTURES / "leaders" / name / "files.tar.gz") as archive:
        archive.extractall(target, filter="data")
    return target


def answers_of(name: str) -> dict[str, Any]:
    answers: dict[str, Any] = json.loads((FIXTURES / "leaders" / name / "answers.json").read_text(encoding="utf-8"))
    return answers


@pytest.mark.parametrize("metadata", ["ctrl", "ctrl-later", ""])
@pytest.mark.parametrize("name", LEADERS)
def test_node_has_what_the_elected_leader_served(name: str, metadata: str, tmp_path: Path) -> None:
    sources, answers = unpacked(name, tmp_path / "old"), answers_of(name)
    given = [sources / each for each in (metadata, "b1", "b2", "b3") if each]
    plan = resurrect(given, tmp_path / "node", unknown_topics=True)
    plan.apply()
    for topic in TOPICS:
        (elected,) = answers["elected"][topic]
        assert plan.made.logs[topic, 0].path == sources / f"b{elected['leader']}" / f"{topic}-0", topic
        with open_partition(tmp_path / "node" / f"{topic}-0") as log:
            assert [log.log_start_offset, log.log_end_offset] == answers["ends"][topic], topic
            served = answers["served"][topic]["read_uncommitted"]
            assert digest_of(log.records()) == (served["records"], served["sha256"]), topic
    assert plan.made.ends == {}
    assert not [note for note in plan.made.notes if "lost" in note.text and "offsets" in note.text]
    positions = open_cluster(tmp_path / "node").coordinators.groups[GROUP].offsets
    assert {f"{topic}-{number}": each.offset for (topic, number), each in positions.items()} == answers["positions"]


@pytest.mark.parametrize("metadata", ["ctrl", "ctrl-later", ""])
@pytest.mark.parametrize("name", LEADERS)
def test_node_of_damaged_leaders_ends_where_they_did_and_the_plan_names_what_is_lost(
    name: str, metadata: str, tmp_path: Path
) -> None:
    sources = unpacked(name, tmp_path / "old")
    with open_partition(sources / f"b{LAST}" / "steady-0") as log:
        whole = {record.offset: record.value for record in log.records()}
    damage_last_leader(sources)
    given = [sources / each for each in (metadata, "b1", "b2", "b3") if each]
    plan = resurrect(given, tmp_path / "node", unknown_topics=True)
    plan.apply()
    for topic in FLIPPED:
        with open_partition(tmp_path / "node" / f"{topic}-0") as log:
            assert (log.log_start_offset, log.log_end_offset) == (0, END)
            left = {record.offset: record.value for record in log.records(on_gap=lambda _gap: None)}
        assert left.items() <= whole.items()
        assert len(left) >= 200, "broker 2 has as many"
        texts = [note.text for note in plan.made.notes if note.about == f"{topic}-0"]
        spans = [range(int(a), int(b) + 1) for text in texts for a, b in re.findall(r"offsets,? (\d+) to (\d+)", text)]
        assert [each for each in whole if each not in left and not any(each in span for span in spans)] == []
    lines = {line["topic"]: line for line in plan.report() if line["type"] == "log"}
    assert [lines[topic]["logEndOffset"] for topic in FLIPPED] == [END, END]
    assert lines["damaged"]["lostOffsetCount"] == END - 200


def test_partition_of_which_nothing_is_left_begins_where_the_old_one_had_ended(tmp_path: Path) -> None:
    sources = unpacked("kafka-4.4.0", tmp_path / "old")
    for node in ("b1", "b2", "b3"):
        shutil.rmtree(sources / node / "steady-0")
    plan = resurrect([sources / each for each in ("ctrl", "b1", "b2", "b3")], tmp_path / "node")
    plan.apply()
    texts = [note.text for note in plan.made.notes if note.about == "steady-0"]
    assert texts[0] == "no directory holds a readable log: the partition will be empty"
    assert texts[1].startswith(f"offsets 0 to {END - 1} are not in the directory, but in a remote store, or lost: by ")
    with open_partition(tmp_path / "node" / "steady-0") as log:
        assert (log.log_start_offset, log.log_end_offset, list(log.records())) == (END, END, [])
    (line,) = [each for each in plan.report() if each["type"] == "log" and each["topic"] == "steady"]
    assert (line["from"], line["logStartOffset"], line["logEndOffset"]) == (None, END, END)

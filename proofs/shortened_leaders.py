"""Nodes of clusters whose last leader holds less than stale replicas: an election keeps it, and so does the node."""

from __future__ import annotations

import re
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from proofs.kafka.served import ISOLATIONS, answer_of_nothing, digest_of
from proofs.kafka.shortened_leaders import (
    FLIPPED,
    LAST,
    STEADY,
    TOPICS,
    consume,
    damage_last_leader,
    make_shortened_leaders,
)
from proofs.resurrect import find_failures
from seglog_format import open_partition, resurrect

if TYPE_CHECKING:
    from collections.abc import Iterator

    from proofs.kafka.oracle import Oracle
    from proofs.kafka.shortened_leaders import Answers
    from seglog_format.types import PreparedResurrection

LOST: Final = "lost"
METADATA: Final = {"ISR": ("ctrl",), "ELR": ("ctrl-later",), "no metadata": (), LOST: ("ctrl-later",)}
"""Directories with metadata: what they know of the last leader; without ELR, it stays in the ISR.

At last, a topic is lost on all disks.
"""
BROKERS: Final = ("b1", "b2", "b3")


def find_leader_failures(release: str) -> tuple[list[str], int]:
    """Make a cluster, damage two logs of its last leader, and make nodes of it; a group resumes on each.

    Returns:
        What differs, and how many partitions were compared.
    """
    failures: list[str] = []
    partitions = 0
    with tempfile.TemporaryDirectory() as root:
        whole, sources = Path(root) / "whole", Path(root) / "sources"
        answers = make_shortened_leaders(release, whole)
        shutil.copytree(whole, sources)
        damage_last_leader(sources)
        for number, (name, metadata) in enumerate(METADATA.items()):
            home = Path(root) / f"node-{number}"
            home.mkdir()
            if name == LOST:
                for broker in BROKERS:
                    shutil.rmtree(sources / broker / f"{STEADY}-0")
            given = [sources / each for each in (*metadata, *BROKERS)]
            plan = resurrect(given, kafka=release, downgrade=True, unknown_topics=True)
            found = [*_wrong_choices(plan, answers, sources)]
            served = _expected(given, home / "expected", answers, whole, release)
            if name == LOST:
                end = answers.served[STEADY]["read_uncommitted"]["end"]
                served |= {(STEADY, 0, isolation): answer_of_nothing(end) for isolation in ISOLATIONS}
            differing, count = find_failures(
                given, home / "node", release, served=served, more=lambda kafka, at: _resumed(kafka, at, answers)
            )
            found += differing
            found += _untold(plan, home / "node", answers)
            failures += [f"{name}: {text}" for text in found]
            partitions += count
    return failures, partitions


def _wrong_choices(plan: PreparedResurrection, answers: Answers, sources: Path) -> Iterator[str]:
    """Yield whole partitions whose replica is not that of the leader that the controller elected."""
    for topic in set(TOPICS) - FLIPPED.keys():
        (elected,) = answers.elected[topic]
        taken, path = plan.made.logs.get((topic, 0)), sources / f"b{LAST}" / f"{topic}-0"
        if elected["leader"] != LAST or (taken is None and path.exists()) or (taken is not None and taken.path != path):
            yield f"{topic}: broker {elected['leader']} was elected, and {taken} is taken"
    for about, text in plan.made.notes:
        if "of the other are lost" in text and about.rpartition("-")[0] in TOPICS:
            yield f"{about}: every replica holds only records of one history, but: {text}"


def _expected(
    given: list[Path], target: Path, answers: Answers, whole: Path, release: str
) -> dict[tuple[str, int, Any], dict[str, Any]]:
    """Return what consumers must get: all that the last leader served, except for damaged records."""
    resurrect(given, target, kafka=release, downgrade=True, unknown_topics=True).apply()
    expected = {(topic, 0, isolation): answers.served[topic][isolation] for topic in TOPICS for isolation in ISOLATIONS}
    for topic in FLIPPED:
        left = _offsets(target / f"{topic}-0")
        with open_partition(whole / f"b{LAST}" / f"{topic}-0") as partition:
            count, digest = digest_of(record for record in partition.records() if record.offset in left)
        for isolation in ISOLATIONS:
            expected[topic, 0, isolation] = expected[topic, 0, isolation] | {"records": count, "sha256": digest}
    return expected


def _offsets(log: Path) -> set[int]:
    with open_partition(log) as partition:
        return {record.offset for record in partition.records(on_gap=lambda _gap: None)}


def _resumed(kafka: Oracle, address: str, answers: Answers) -> Iterator[str]:
    """Yield partitions in which the group does not go on where it was, or the next record gets another offset."""
    for topic in TOPICS:
        kafka.must("write", bootstrap=address, topic=topic, records=1, partitions=1)
    for name, found in consume(kafka, address, "none").items():
        was = answers.positions[name]
        if found != {"from": was, "first": was, "to": was + 1}:
            yield f"{name}: the group was at {was}, and goes on {found}"


def _untold(plan: PreparedResurrection, node: Path, answers: Answers) -> Iterator[str]:
    """Yield damaged partitions with lost offsets that the plan does not name."""
    for topic in FLIPPED:
        spans = [
            range(int(first), int(last) + 1)
            for about, text in plan.made.notes
            if about == f"{topic}-0"
            for first, last in re.findall(r"offsets,? (\d+) to (\d+)", text)
        ]
        begin, end = (answers.served[topic]["read_uncommitted"][name] for name in ("begin", "end"))
        left = _offsets(node / f"{topic}-0")
        untold = [each for each in range(begin, end) if each not in left and not any(each in span for span in spans)]
        if untold:
            yield f"{topic}-0: lost, and not in the plan: {untold}"

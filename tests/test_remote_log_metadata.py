"""Remote segments: what the records of the metadata topic say, which segment answers, and what a leader deletes."""

from __future__ import annotations

import base64
import gzip
import json
import re
import struct
from functools import cache
from itertools import pairwise
from typing import Any

import pytest
from helpers.support import FIXTURES, REPOSITORY
from helpers.walking import each_of
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from fixtures.make.remote_histories import STEP
from proofs.kafka.tier import decoded, generated, replayed
from seglog_format.codec.coordinator_records import decode_application_record
from seglog_format.errors import CorruptRecordError
from seglog_format.model import EpochStart
from seglog_format.tier.local_metadata import RetentionRules, expired
from seglog_format.tier.segments import (
    Dropped,
    Lineage,
    PartitionDeleteState,
    PartitionDeletion,
    Reason,
    RemotePartitionId,
    RemoteSegment,
    RemoteSegmentId,
    RemoteSegments,
    SegmentPart,
    SegmentState,
    SegmentUpdate,
    may_follow,
    remote_event,
    replay,
)

METADATA = REPOSITORY / "fixtures" / "tiered" / "metadata"
CASES = sorted(path.name.removesuffix(".jsonl.gz") for path in METADATA.glob("*.jsonl.gz"))
TOPIC = "__remote_log_metadata"
ORDERS = RemotePartitionId("orders", "elCmtq0CQXS30Lgl6DP2KA", 0)

STARTED, FINISHED = SegmentState.COPY_SEGMENT_STARTED, SegmentState.COPY_SEGMENT_FINISHED
DELETING, DELETED = SegmentState.DELETE_SEGMENT_STARTED, SegmentState.DELETE_SEGMENT_FINISHED


@cache
def lines(case: str) -> list[dict[str, Any]]:
    text = gzip.decompress((METADATA / f"{case}.jsonl.gz").read_bytes()).decode()
    return [json.loads(line) for line in text.splitlines()]


@cache
def records(case: str) -> list[dict[str, Any]]:
    values = (bytes.fromhex(line["hex"]) for line in lines(case) if line["type"] == "value")
    found = [decode_application_record(TOPIC, None, value) for value in values]
    return [each for each in found if each is not None]


def partitions(case: str) -> dict[RemotePartitionId, RemoteSegments]:
    return replay(event for event in map(remote_event, records(case)) if event is not None)


# Records


@pytest.mark.req("SEG-RLM-001")
@pytest.mark.parametrize("case", CASES)
def test_records_say_what_kafka_reads_in_them(case: str) -> None:
    reported = [line for line in lines(case) if line["type"].startswith("RemoteLogSegment")]
    assert len(reported) == len(records(case))
    for line, record in zip(reported, records(case), strict=True):
        event = remote_event(record)
        assert isinstance(event, (RemoteSegment, SegmentUpdate))
        custom = None if event.custom_metadata is None else event.custom_metadata.hex()
        assert (event.id.segment_id, event.state.name, custom) == (
            line["segmentId"],
            line["state"],
            line["customMetadata"],
        )
        assert event.id.partition == (line["topic"], line["topicId"], line["partition"])
        assert (event.broker_id, event.event_timestamp_ms) == (line["brokerId"], line["eventTimestampMs"])
        if isinstance(event, RemoteSegment):
            assert (event.start_offset, event.end_offset) == (line["startOffset"], line["endOffset"])
            assert (event.size, event.max_timestamp_ms) == (line["segmentSizeInBytes"], line["maxTimestampMs"])
            assert {str(epoch): offset for epoch, offset in event.epochs} == line["segmentLeaderEpochs"]
            assert event.is_transaction_index_empty == line["txnIndexEmpty"]


@pytest.mark.req("SEG-RLM-001")
def test_an_unknown_type_or_version_is_passed_over() -> None:
    for value in (b"\x01\x63\x00abc", b"\x01\x00\x07abc"):
        record = decode_application_record(TOPIC, None, value)
        assert record is not None
        assert remote_event(record) is None


@pytest.mark.req("SEG-RLM-001")
@pytest.mark.parametrize("value", [None, b"", b"\x07\x00\x00", b"\x01\x00\x00\x07orde"])
def test_what_is_no_frame_is_refused(value: bytes | None) -> None:
    record = decode_application_record(TOPIC, None, value)
    assert record is not None
    with pytest.raises(CorruptRecordError, match="SEG-RLM-001"):
        remote_event(record)


def changed(**fields: object) -> dict[str, Any]:
    """Return the first record of a broker with other fields."""
    record = records("lts-4.4.0")[0]
    return {**record, "data": {**record["data"], **fields}}


@pytest.mark.req("SEG-RLM-002")
@pytest.mark.parametrize("state", [-1, 4, 127])
def test_an_unknown_state_is_refused(state: int) -> None:
    with pytest.raises(CorruptRecordError, match=r"value\.remoteLogSegmentState: expected 0 to 3.*SEG-RLM-002"):
        remote_event(changed(remoteLogSegmentState=state))


@pytest.mark.req("SEG-RLM-002")
def test_the_deletion_of_a_partition() -> None:
    whose = {"name": ORDERS.topic, "id": ORDERS.topic_id, "partition": 0}
    data = {"topicIdPartition": whose, "brokerId": 1, "eventTimestampMs": 7, "remotePartitionDeleteState": 1}
    record = {"type": "REMOTE_PARTITION_DELETE_METADATA_RECORD", "version": 0, "data": data}
    event = remote_event(record)
    assert event == PartitionDeletion(ORDERS, PartitionDeleteState.DELETE_PARTITION_STARTED)
    assert replay([event])[ORDERS].deletion is PartitionDeleteState.DELETE_PARTITION_STARTED
    with pytest.raises(CorruptRecordError, match=r"expected 0 to 2.*SEG-RLM-002"):
        remote_event({**record, "data": {**data, "remotePartitionDeleteState": 3}})


@pytest.mark.req("SEG-RLM-006")
@pytest.mark.parametrize("fields", [{"startOffset": -1}, {"startOffset": 60}])
def test_offsets_that_cannot_be_are_refused(fields: dict[str, object]) -> None:
    with pytest.raises(CorruptRecordError, match="SEG-RLM-006"):
        remote_event(changed(**fields))


@pytest.mark.req("SEG-RLM-024")
def test_a_segment_without_a_leader_epoch_is_refused() -> None:
    with pytest.raises(CorruptRecordError, match="SEG-RLM-024"):
        remote_event(changed(segmentLeaderEpochs=[]))


@pytest.mark.req("SEG-RLM-006")
def test_the_end_offset_is_the_last_one() -> None:
    event = remote_event(changed(startOffset=59))
    assert isinstance(event, RemoteSegment)
    assert (event.start_offset, event.end_offset) == (59, 59)


# States


@pytest.mark.req("SEG-RLM-004")
def test_which_state_may_follow_which() -> None:
    allowed = {
        (state, target) for state in (None, *SegmentState) for target in SegmentState if may_follow(state, target)
    }
    steps = {(None, STARTED), (STARTED, FINISHED), (STARTED, DELETING), (FINISHED, DELETING), (DELETING, DELETED)}
    assert allowed == steps | {(state, state) for state in SegmentState}


def segment(number: int, start: int, end: int, *epochs: tuple[int, int], size: int = 100) -> RemoteSegment:
    name = RemoteSegmentId(ORDERS, f"{number:022}")
    found = tuple(EpochStart(*each) for each in epochs or ((0, start),))
    return RemoteSegment(name, STARTED, start, end, found, size, max_timestamp_ms=end)


def remote_of(*segments: RemoteSegment, state: SegmentState = FINISHED) -> RemoteSegments:
    remote = RemoteSegments(ORDERS)
    for each in segments:
        remote.apply(each)
        remote.apply(SegmentUpdate(each.id, state))
    return remote


@pytest.mark.req("SEG-RLM-005")
@pytest.mark.parametrize("dropped", [SegmentUpdate(segment(1, 0, 9).id, DELETED), segment(1, 0, 99)])
def test_what_is_not_allowed_changes_nothing(dropped: RemoteSegment | SegmentUpdate) -> None:
    remote = remote_of(segment(1, 0, 9))
    before = dict(remote.segments)
    remote.apply(dropped)
    assert remote.segments == before
    assert remote.dropped == [Dropped(dropped, Reason.ILLEGAL_TRANSITION, FINISHED)]


@pytest.mark.req("SEG-RLM-005")
def test_a_second_deletion_is_of_an_unknown_segment() -> None:
    remote = remote_of(segment(1, 0, 9))
    for state in (DELETING, DELETING, DELETED, DELETED):
        remote.apply(SegmentUpdate(segment(1, 0, 9).id, state))
    assert (remote.segments, len(remote.deleted)) == ({}, 1)
    assert [(each.reason, each.state) for each in remote.dropped] == [(Reason.UNKNOWN_SEGMENT, None)]


@pytest.mark.req("SEG-RLM-004")
def test_a_record_of_type_0_starts_and_one_of_type_1_does_not() -> None:
    remote = RemoteSegments(ORDERS)
    finished = segment(1, 0, 9).updated(SegmentUpdate(segment(1, 0, 9).id, FINISHED))
    for event in (finished, segment(1, 0, 9), SegmentUpdate(finished.id, STARTED)):
        remote.apply(event)
    assert [each.reason for each in remote.dropped] == [Reason.NO_START, Reason.NO_UPDATE]


@pytest.mark.req("SEG-RLM-003")
def test_a_topic_that_was_made_again_has_segments_of_its_own() -> None:
    again = ORDERS._replace(topic_id="A" * 22)
    first = segment(1, 0, 9)
    events = [first, RemoteSegment(RemoteSegmentId(again, first.id.segment_id), STARTED, 5, 7, (EpochStart(0, 5),))]
    found = replay(events)
    assert {whose: [each.start_offset for each in of.segments.values()] for whose, of in found.items()} == {
        ORDERS: [0],
        again: [5],
    }


@pytest.mark.req("SEG-RLM-007")
def test_an_update_says_custom_metadata_anew() -> None:
    remote = RemoteSegments(ORDERS)
    remote.apply(segment(1, 0, 9))
    for custom in (b"key", None):
        remote.apply(SegmentUpdate(segment(1, 0, 9).id, FINISHED, 4, 77, custom))
        (found,) = remote.segments.values()
        assert (found.custom_metadata, found.broker_id, found.event_timestamp_ms, found.size) == (custom, 4, 77, 100)


@pytest.mark.parametrize("case", CASES)
def test_brokers_write_nothing_that_is_dropped(case: str) -> None:
    assert [each for remote in partitions(case).values() for each in remote.dropped] == []


# Which segment answers


@pytest.mark.req("SEG-RLM-009", "SEG-RLM-010")
@pytest.mark.parametrize("case", CASES)
def test_epochs_have_the_segments_that_kafkas_cache_lists(case: str) -> None:
    found = {(whose.topic, whose.partition): remote for whose, remote in partitions(case).items()}
    reported = [line for line in lines(case) if line["type"] == "lineage"]
    assert reported
    for line in reported:
        remote = found[line["topic"], line["partition"]]
        epoch = line["leaderEpoch"]
        assert remote.highest_offset(epoch) == line["highestOffset"]
        listed = [
            f"{each.start_offset}..{each.end_offset} {each.id.segment_id} {each.state.name}"
            for each in remote.of_epoch(epoch)
        ]
        assert sorted(listed) == sorted(line["segments"])


@pytest.mark.req("SEG-RLM-008")
def test_an_epoch_ends_where_the_next_one_of_the_segment_begins() -> None:
    one = segment(1, 0, 99, (0, 0), (2, 40), (5, 70))
    assert [one.end_of(epoch) for epoch in (0, 1, 2, 5, 6)] == [39, 39, 69, 99, 99]
    remote = remote_of(one)
    assert [remote.segment_at(2, offset) is not None for offset in (39, 40, 69, 70)] == [False, True, True, False]


@pytest.mark.req("SEG-RLM-009")
def test_the_greatest_start_that_is_not_above_the_offset_answers() -> None:
    first, second = segment(1, 0, 9), segment(2, 10, 19)
    remote = remote_of(first, second)
    answers = [remote.segment_at(0, offset) for offset in (0, 9, 10, 19, 20)]
    ids = [None if each is None else each.id for each in answers]
    assert ids == [first.id, first.id, second.id, second.id, None]
    assert remote.segment_at(1, 0) is None


@pytest.mark.req("SEG-RLM-009")
def test_a_new_segment_replaces_those_that_it_covers() -> None:
    remote = remote_of(segment(1, 0, 9), segment(2, 10, 19), segment(3, 5, 30))
    assert [(first, last) for _, first, last in remote.parts(0)] == [(0, 4), (5, 30)]
    assert [each.start_offset for each in remote.of_epoch(0)] == [0, 5, 10]
    shorter = remote_of(segment(1, 0, 9), segment(2, 10, 19), segment(3, 0, 5))
    assert [(first, last) for _, first, last in shorter.parts(0)] == [(0, 5), (10, 19)]
    assert shorter.segment_at(0, 7) is None


@pytest.mark.req("SEG-RLM-009", "SEG-RLM-010")
def test_deletion_takes_the_answer_and_keeps_the_highest_offset() -> None:
    remote = remote_of(segment(1, 0, 9), segment(2, 10, 19))
    remote.apply(SegmentUpdate(segment(2, 10, 19).id, DELETING))
    assert remote.segment_at(0, 15) is None
    assert remote.highest_offset(0) == 19
    unfinished = remote_of(segment(3, 0, 9), state=STARTED)
    assert (unfinished.segment_at(0, 5), unfinished.highest_offset(0)) == (None, None)


# Lineage

DIVERGED = (EpochStart(0, 0), EpochStart(2, 260), EpochStart(4, 303))
"""Of a log that was copied up to 458 in epoch 2, lost what lay behind 302, and went on in epoch 4."""


def diverged() -> RemoteSegments:
    (found,) = (remote for whose, remote in partitions("lts-4.4.0").items() if whose.topic == "diverged")
    return found


@pytest.mark.req("SEG-RLM-011")
def test_the_checkpoint_decides_after_the_end_of_a_log_was_lost() -> None:
    lineage = Lineage(DIVERGED, 1303)
    parts = [
        (served.segment.start_offset, served.segment.end_offset, served.first_offset, served.last_offset)
        for served in lineage.served(diverged(), 200)
    ]
    assert parts[:4] == [(196, 259, 200, 259), (260, 386, 260, 302), (260, 386, 303, 386), (387, 578, 387, 578)]
    assert parts[-1][3] == 1152
    assert [after[2] - before[3] for before, after in pairwise(parts)] == [1] * (len(parts) - 1)


@pytest.mark.req("SEG-RLM-011")
def test_an_epoch_that_ends_early_cuts_the_segment_that_answers() -> None:
    remote = remote_of(segment(1, 0, 99))
    lineage = Lineage((EpochStart(0, 0), EpochStart(1, 50)), 60)
    assert list(lineage.served(remote, 10)) == [SegmentPart(remote.segments[segment(1, 0, 99).id], 10, 49)]
    assert [lineage.epoch_at(offset) for offset in (0, 49, 50, 59, 60)] == [0, 0, 1, 1, None]
    assert Lineage((EpochStart(3, 10),), 60).epoch_at(9) is None


@pytest.mark.req("SEG-RLM-011")
def test_offsets_that_nothing_answers_for_are_passed_over() -> None:
    remote = remote_of(segment(1, 0, 9), segment(2, 20, 29))
    found = Lineage((EpochStart(0, 0),), 100).served(remote, 0)
    assert [(served.first_offset, served.last_offset) for served in found] == [(0, 9), (20, 29)]


@pytest.mark.req("SEG-RLM-010")
def test_copying_goes_on_behind_the_end_of_an_epoch_that_was_cut() -> None:
    assert diverged().highest_offset(2) == 458
    assert Lineage(DIVERGED[:2], 303).highest_copied(diverged()) == (302, 2)
    assert Lineage(DIVERGED, 1303).highest_copied(diverged()) == (1152, 4)
    assert Lineage(DIVERGED, 1303).highest_copied(RemoteSegments(ORDERS)) is None


@pytest.mark.req("SEG-RLM-012")
def test_segments_beyond_the_end_of_an_epoch_are_not_of_the_lineage() -> None:
    lineage = Lineage(DIVERGED, 1303)
    outside = sorted(each.start_offset for each in diverged().segments.values() if not lineage.holds(each))
    assert outside == [260, 328, 393]


@pytest.mark.req("SEG-RLM-012")
@each_of(
    ("epochs", "end", "is_held"),
    [
        ([(2, 60)], 99, True),
        ([(2, 60)], 100, False),  # epoch 2 ends before 100
        ([(2, 50), (4, 100)], 150, True),
        ([(2, 50), (4, 110)], 150, False),  # epoch 4 begins at 100
        ([(2, 40), (4, 100)], 150, False),  # epoch 2 begins at 50
        ([(2, 50), (6, 200)], 250, False),  # epoch 4 is left out
        ([(2, 50), (3, 100)], 150, False),  # epoch 3 is unknown
        ([(3, 60)], 99, False),
        ([(7, 300)], 350, False),  # newer than the checkpoint
        ([(0, 5)], 49, True),  # epoch 0 is the first one: it may begin anywhere
        ([(-1, 0), (0, 5)], 49, True),  # what is older than the first one does not count
        ([(1, 50), (2, 50), (4, 100)], 150, True),  # no record was written under epoch 1
        ([(6, 200)], 399, True),
        ([(6, 200)], 400, False),  # the log ends at 400
    ],
)
def test_what_is_wholly_of_a_lineage(epochs: list[tuple[int, int]], end: int, *, is_held: bool) -> None:
    lineage = Lineage((EpochStart(0, 10), EpochStart(2, 50), EpochStart(4, 100), EpochStart(6, 200)), 400)
    assert lineage.holds(segment(1, epochs[0][1], end, *epochs)) is is_held


HISTORIES = json.loads((FIXTURES / "witnesses" / "remote_histories.json").read_bytes())["answers"]
REMOVED = {("3.0.2", 11, 3, 407)}
"""Release, history, epoch and offset where 3.0 uses a segment that a later one has removed."""


def number(found: RemoteSegment | None) -> int:
    return -1 if found is None else int.from_bytes(base64.urlsafe_b64decode(f"{found.id.segment_id}==")[8:], "big")


@pytest.mark.req(*(f"SEG-RLM-{rule:03d}" for rule in (1, 2, 4, 5, 7, 8, 9, 10)))
@pytest.mark.parametrize("release", HISTORIES)
def test_histories_are_read_as_by_the_classes_that_wrote_them(release: str) -> None:
    others = set()
    for seed, said in enumerate(HISTORIES[release]["histories"]):
        history, remote = generated(seed), RemoteSegments(ORDERS)
        for value in said["values"]:
            record = decode_application_record(TOPIC, None, bytes.fromhex(value))
            assert record is not None
            event = remote_event(record)
            assert event is not None
            remote.apply(event)
        rows = [[number(one), one.state, one.broker_id, one.event_timestamp_ms] for one in remote.segments.values()]
        assert sorted(rows) == sorted(said["segments"])
        epochs = [epoch for epoch, _ in history.checkpoint]
        highest = [remote.highest_offset(epoch) for epoch in epochs]
        assert [-1 if one is None else one for one in highest] == said["highest"]
        asked = [(epoch, offset) for epoch in epochs for offset in range(0, history.log_end_offset + STEP, STEP)]
        at = dict(zip(asked, said["at"], strict=True))
        others |= {(release, seed, *one) for one in asked if number(remote.segment_at(*one)) != at[one]}
    assert others == {one for one in REMOVED if one[0] == release}


@pytest.mark.req("SEG-RLM-003", "SEG-RLM-006", "SEG-RLM-024")
def test_what_older_classes_take_for_one_segment_and_what_for_none() -> None:
    """Topic, id of the topic, partition and id of the segment make one; 3.0 asks only for an epoch."""
    assert {release: said["refused"] for release, said in HISTORIES.items()} == {
        "3.0.2": [False, False, True],
        "3.6.2": [True, True, True],
    }
    assert all(said["same"] == [True, False, False, False, False] for said in HISTORIES.values())


# Deletion

LOG = Lineage((EpochStart(0, 0),), 100)


def starts(remote: RemoteSegments, rules: RetentionRules, lineage: Lineage = LOG) -> list[int]:
    return [each.start_offset for each in expired(remote, lineage, rules)]


@pytest.mark.req("SEG-RLM-013")
def test_retention_by_time_size_and_log_start_stops_at_the_first_that_stays() -> None:
    remote = remote_of(*(segment(number, number * 10, number * 10 + 9) for number in range(5)))
    assert starts(remote, RetentionRules()) == []
    assert starts(remote, RetentionRules(log_start_offset=25)) == [0, 10]
    assert starts(remote, RetentionRules(retention_ms=1, now_ms=30)) == [0, 10]
    assert starts(remote, RetentionRules(retention_ms=1, now_ms=31)) == [0, 10, 20]
    assert starts(remote, RetentionRules(retention_ms=1, now_ms=30, at_limit=True)) == [0, 10, 20]
    assert starts(remote, RetentionRules(retention_size=250)) == [0, 10]
    assert starts(remote, RetentionRules(retention_size=250, local_size=60)) == [0, 10, 20]
    assert starts(remote, RetentionRules(retention_ms=0, now_ms=10, retention_size=350)) == [0]


@pytest.mark.req("SEG-RLM-013")
def test_what_is_not_of_the_lineage_does_not_stop_retention() -> None:
    stray = segment(9, 5, 300)
    remote = remote_of(stray, segment(1, 10, 19), segment(2, 20, 29))
    assert starts(remote, RetentionRules(retention_ms=0, now_ms=20)) == [10]


@pytest.mark.req("SEG-RLM-013")
def test_started_deletions_and_older_epochs_go() -> None:
    remote = remote_of(segment(1, 0, 9, (0, 0)), segment(2, 10, 19, (3, 10)), segment(3, 20, 29, (3, 20)))
    remote.apply(SegmentUpdate(segment(3, 20, 29).id, DELETING))
    lineage = Lineage((EpochStart(3, 5),), 100)
    assert starts(remote, RetentionRules(log_start_offset=5), lineage) == [0]
    remote.apply(SegmentUpdate(segment(2, 10, 19).id, DELETING))
    assert sorted(starts(remote, RetentionRules(log_start_offset=5), lineage)) == [0, 10, 20]
    assert starts(remote, RetentionRules(log_start_offset=50), Lineage((), 100)) == []


# Any history


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(st.integers(min_value=0, max_value=2**32))
@example(120)  # a segment with an epoch that has no record
def test_served_parts_follow_each_other_and_are_what_the_segments_answer_for(seed: int) -> None:
    history = generated(seed)
    remote = replayed(history)
    lineage = Lineage(history.checkpoint, history.log_end_offset)
    behind = history.log_start_offset
    for segment_of, first, last in lineage.served(remote, history.log_start_offset):
        assert behind <= first <= last < history.log_end_offset
        for offset in (first, last):
            epoch = lineage.epoch_at(offset)
            assert epoch is not None
            assert remote.segment_at(epoch, offset) == segment_of
        assert segment_of.state is FINISHED
        behind = last + 1


@settings(max_examples=60, suppress_health_check=list(HealthCheck))
@given(st.integers(min_value=0, max_value=2**32))
def test_histories_repeat_with_their_seed(seed: int) -> None:
    assert generated(seed) == generated(seed)
    assert all(remote_event(decoded(event)) is not None for event in generated(seed).events)


def test_local_files_of_older_releases_are_as_the_chapter_shows_them() -> None:
    """`fixtures/witnesses/remote_log_files.json` has what classes of 3.4.0 wrote."""
    witness = json.loads((FIXTURES / "witnesses" / "remote_log_files.json").read_text(encoding="utf-8"))
    files = witness["answers"]["3.4.0"]["files"]
    chapter = (REPOSITORY / "spec" / "46-remote-log-metadata.md").read_text(encoding="utf-8")
    assert f"```text\n{bytes.fromhex(files['_rlmm_committed_offsets']).decode()}```" in chapter
    snapshot = bytes.fromhex(files["remote_log_snapshot"])
    assert struct.unpack_from(">hiqii", snapshot) == (0, 7, 300, 1, len(snapshot) - 22)
    (example,) = re.findall(r"the message follows:\n\n```text\n(.*?)```", chapter, re.DOTALL)
    assert bytes.fromhex(re.sub(r";.*", "", example)) == snapshot[22:]
    having = {release for release, answer in witness["answers"].items() if answer["classes"]}
    assert having == {"3.1.2", "3.3.2", "3.4.0", "3.5.2", "3.6.2"}

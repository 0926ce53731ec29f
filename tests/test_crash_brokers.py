"""Whole brokers after power cuts: what counts as wrong, which kinds of losses there are, and a broker that starts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from helpers.support import REPOSITORY, need
from helpers.walking import each_of
from seglog_conformance.crash.history import History, Marker, read_history
from seglog_conformance.crash.recording import RecordingError, missing
from seglog_conformance.crash.workload import ANSWERED

from proofs import crash_brokers
from proofs.broker_histories import COMPACT, GROUP, OPENED, RETAINED, STOP, TOPICS, Recorded, record
from proofs.broker_promises import complaints
from proofs.crash_brokers import CODE, ORDERS, Journal, drawn, examine, facts_of, kind_of
from proofs.kafka.oracle import TOOL_CHAIN

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ROWS = [[0, 100, "w1 0 0"], [1, 101, "w1 0 1"], [2, 102, "w1 0 5"]]
LEVEL = {"begin": 0, "end": 3, "records": ROWS}
TOPIC = {"read_uncommitted": LEVEL, "read_committed": LEVEL, "times": [[100, 0], [101, 1], [102, 2]]}
LEVELS = ("read_uncommitted", "read_committed")
LOOK = dict.fromkeys(TOPICS, TOPIC)
SEEN = {
    "starts": True,
    "verify": {},
    "groups": {GROUP: {"plain-0": 2}},
    "topics": {topic: {**TOPIC, "next": 3, "later": 0} for topic in TOPICS},
}
EVENTS = (
    {"do": "create"},
    *({"do": "write", "topic": topic, "token": "w1"} for topic in TOPICS),
    {"do": "commit", "offset": 2},
    {"do": STOP},
)


class Known(Recorded):
    """A history that is not on a disk."""

    def __init__(self) -> None:
        self.flushes, self.truth, self.release = False, [LOOK], "4.4.0"
        self.history = History([Marker({**event, "is": ANSWERED}) for event in EVENTS])


def found(change: Callable[[dict[str, Any]], object], cut: int = len(EVENTS)) -> set[str]:
    """Return the kinds of what is wrong when this was seen."""
    seen = json.loads(json.dumps(SEEN))
    change(seen)
    return set(complaints(Known(), seen, cut))


def plain(seen: dict[str, Any], level: str = "read_uncommitted") -> dict[str, Any]:
    """Return what was seen of one topic."""
    own: dict[str, Any] = seen["topics"]["plain"][level]
    return own


def without(*offsets: int, topic: str = "plain") -> Callable[[dict[str, Any]], None]:
    """Return a change that removes records."""

    def change(seen: dict[str, Any]) -> None:
        own = seen["topics"][topic]
        own["times"] = []
        for level in LEVELS:
            own[level]["records"] = [row for row in ROWS if row[0] not in offsets]

    return change


def test_a_broker_that_does_all_of_it_does_nothing_wrong() -> None:
    assert found(lambda _seen: None) == set()
    assert found(without(0, topic=COMPACT)) == set()  # a later record has its key
    removed = [[0, 100, "w1 9 0"], *ROWS[1:]]  # compaction did, before the look
    assert found(lambda seen: [seen["topics"][COMPACT][level].update(records=removed) for level in LEVELS]) == set()
    assert found(lambda seen: seen["topics"][RETAINED].update(later=2)) == set()
    assert found(lambda seen: seen["topics"][OPENED]["read_committed"].update(end=2, records=ROWS[:2])) == set()


@each_of(
    ("change", "kinds"),
    [
        (lambda seen: seen.update(starts=False, error="it ends"), {"does not start"}),
        (lambda seen: seen.update(error="it hangs"), {"does not stop"}),
        (lambda seen: plain(seen).update(error="it fails"), {"cannot be read"}),
        (without(2), {"loses what was flushed"}),
        (without(1, topic=COMPACT), {"loses what was flushed"}),
        (lambda seen: plain(seen).update(records=[*ROWS, [3, 103, "x"]]), {"never written"}),
        (lambda seen: plain(seen).update(records=[*ROWS, [3, 103, "w1 0 5"]]), {"at another offset"}),
        (lambda seen: plain(seen).update(records=[*ROWS, ROWS[2]]), {"twice or out of order"}),
        (lambda seen: plain(seen, "read_committed").update(records=ROWS[:2]), {"read_committed leaves out"}),
        (lambda seen: plain(seen, "read_committed").update(end=2, records=ROWS[:2]), {"read_committed stops"}),
        (lambda seen: seen["topics"]["plain"].update(times=[[101, 2]]), {"time lookup"}),
        (lambda seen: seen["topics"]["plain"].update(times=[[101, -1]]), {"time lookup"}),
        (lambda seen: seen["topics"]["plain"].update(next=4), {"next offset"}),
        (lambda seen: seen["topics"]["plain"].update(refused="it is full"), {"refuses appends"}),
        (lambda seen: seen["topics"]["plain"].update(later=2), {"begins too late"}),
        (lambda seen: seen.update(groups={}), {"group's position is lost"}),
        (lambda seen: seen.update(verify={"SEG-BAT-001": "a"}), {"verify SEG-BAT-001"}),
    ],
)
def test_what_a_client_gets_wrong_is_told(change: Callable[[dict[str, Any]], object], kinds: set[str]) -> None:
    assert found(change) == kinds


def test_what_was_not_flushed_may_be_lost_from_the_end_and_leaves_no_hole() -> None:
    before = len(EVENTS) - 1
    assert found(without(2), before) == set()
    assert found(lambda seen: seen.update(groups={}), before) == set()
    assert found(without(1), before) == {"hole"}


@each_of(
    ("line", "kind"),
    [
        ({"op": "mkdir", "path": "/a", "node": 1, "changes": [[0, "a", 1]]}, "mkdir log directory"),
        ({"op": "create", "path": "/a/plain-0/00000000000000000036.log"}, "create topic .log"),
        ({"op": "resize", "path": "/a/__consumer_offsets-0/00000000000000000000.index"}, "truncate internal .index"),
        ({"op": "rename", "path": "/a/meta.properties.tmp", "to": "/a/meta.properties"}, "rename root meta.properties"),
        (
            {"op": "rename", "path": "/a/plain-0", "to": "/a/plain-0.e4571c6f1b1b4bd5a1b0ad2f6ce727c6-delete"},
            "rename topic-deleted directory",
        ),
        (
            {"op": "create", "path": "/b/__cluster_metadata-0/00000000000000000012-0000000001.checkpoint"},
            "create metadata .checkpoint",
        ),
    ],
)
def test_a_loss_has_the_kind_of_its_file(line: dict[str, Any], kind: str) -> None:
    text = json.dumps({"time": 1, "node": 2, "changes": [[0, "x", 2]], "size": 0, **line})
    assert kind_of(read_history([text]), 0) == kind


def test_states_without_an_answer_come_after_findings_of_other_code_and_before_its_other_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [{"history": "4.4.0-1", "cut": len(EVENTS), "changes": [number]} for number in range(4)]
    journal, history = Journal(tmp_path), Known()
    journal.add(rows[0], {"code": CODE, "first": SEEN, "findings": {"hole": ""}})
    journal.add(rows[1], {"wrong": {}, "findings": {}})
    journal.add(rows[3], {"code": "other", "first": SEEN, "findings": {"hole": ""}})
    asked = []

    def answer(_self: object, row: dict[str, Any], _journal: Journal) -> dict[str, Any]:
        asked.append(row["changes"])
        return {"code": CODE, "first": SEEN, "findings": {}}

    monkeypatch.setattr(crash_brokers.Examiner, "answer", answer)
    examine(rows, {"4.4.0-1": history}, journal, float("inf"))
    assert asked == [[3], [2], [1]]
    assert {each["code"] for each in Journal(tmp_path).answers.values()} == {CODE}


@each_of(
    ("kind", "order"),
    [
        ("truncate topic .timeindex", "index"),
        ("mapped topic .index", "index"),
        ("write root bootstrap.checkpoint.tmp", "bootstrap"),
        ("mkdir log directory", "root"),
        ("rename root meta.properties", "root"),
        ("mkdir metadata directory", "metadata"),
        ("mkdir topic directory", "partition"),
        ("create topic-future .log", "segment"),
        ("rename internal directory", "segment"),
        ("write topic .log", "marker"),
        ("write metadata .log", None),
    ],
)
def test_a_loss_breaks_one_order(kind: str, order: str | None) -> None:
    assert next((name for name, each in ORDERS.items() if each.losses.search(kind)), None) == order


class Growing(Known):
    """A history of ten new partition directories, each with a look after it."""

    def __init__(self) -> None:
        super().__init__()
        self.name, self.number = "4.4.0-1", 1
        lines = []
        for number in range(10):
            path = f"/a/plain-{number}"
            made = {"op": "mkdir", "path": path, "node": number + 2, "changes": [[0, path, number + 2]]}
            lines += [made, {"op": "marker", "event": {"do": "look", "is": ANSWERED, "look": 0}}]
        self.history = read_history(json.dumps({"time": 1, **line}) for line in lines)


def test_a_finding_is_shrunk_to_its_loss_and_the_shortest_history_and_is_a_failure_then(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history, journal = Growing(), Journal(tmp_path)
    histories: dict[str, Recorded] = {history.name: history}
    disk = history.disk("posix")
    some = frozenset({0, 6, 10, 16})  # not in their order: posix alone
    whole = crash_brokers.row_of(history, disk.state(disk.cut(20), some), STOP)

    def answer(_self: object, row: dict[str, Any], _journal: Journal) -> dict[str, Any]:
        is_wrong = 6 in row["changes"] and row["cut"] >= 12
        journal.add(f"4.4.0-1 {row['cut']}", {"code": CODE, "first": SEEN})
        return {"code": CODE, "first": SEEN, "findings": {"hole": "a hole"} if is_wrong else {}}

    monkeypatch.setattr(crash_brokers.Examiner, "answer", answer)
    examine([whole], histories, journal, float("inf"))
    crash_brokers.shrink([whole], histories, journal, float("inf"))
    assert (
        [(failure.cut, failure.lost) for failure in crash_brokers.failures_of(histories, Journal(tmp_path)).values()]
    ) == [(12, ("6 mkdir /a/plain-3",))]
    finding, *_ = facts_of([whole], journal, histories)["findings"]
    assert finding["least"] == {"operations": 12, "lost": 1, "profiles": ["posix"], "seed": 1}
    assert (finding["orders"], finding["disclosure"]) == (["partition"], "withheld")


def test_what_a_start_showed_is_judged_by_the_rules_of_now() -> None:
    row = {"history": "4.4.0-1", "cut": len(EVENTS)}
    histories: dict[str, Recorded] = {"4.4.0-1": Known()}
    assert not crash_brokers.wrong_with({"first": SEEN, "wrong": {"hole": "by a rule of then"}}, row, histories)
    assert crash_brokers.wrong_with({"wrong": {"hole": "by a rule of then"}}, row, histories) == {
        "hole": "by a rule of then"
    }


def test_a_whole_broker_lives_once_and_starts_on_a_state_of_its_disk(tmp_path: Path) -> None:
    need("Kafka", TOOL_CHAIN)
    if reason := missing():
        pytest.skip(reason)
    history = Recorded("4.4.0", 1, tmp_path)
    history.ends = (STOP,)
    try:
        record(history)
    except RecordingError as error:
        pytest.skip(str(error))
    histories, journal = {history.name: history}, Journal(tmp_path)
    rows = drawn([history], 1)
    assert len({row["kind"] for row in rows}) > 9
    assert all(row["changes"] and row["profiles"] for row in rows)
    nothing = {"history": history.name, "cut": len(history.history), "step": STOP, "kind": "nothing"}
    nothing |= {"profiles": ["posix"], "changes": [], "lost": []}
    examine([nothing], histories, journal, float("inf"))
    facts = facts_of([nothing], journal, histories)
    assert (facts["states"], facts["findings"]) == (1, [])


def test_the_report_on_killed_moves_says_what_the_starts_showed() -> None:
    answers = json.loads((REPOSITORY / "fixtures" / "witnesses" / "killed_moves.json").read_bytes())["answers"]
    page = (REPOSITORY / "conformance" / "reports" / "power-cuts" / "move.md").read_text("utf-8")
    for release, moments in answers.items():
        first, last = moments["before"]["records"], moments["after"]["records"]
        assert f"| {release} | starts, {first} records | does not start | starts, {last} records |" in page
        assert "Duplicate log directories" in moments["between"]["says"]
        assert [each["starts"] for each in moments.values()] == [True, False, True]
        copy, original = sorted(moments["before"]["there"], key=len, reverse=True)
        assert moments["before"]["left"] == moments["after"]["there"] == [f"{copy[:2]}{original[2:]}"]  # it goes on
    assert answers["4.4.0"]["between"]["says"] in page

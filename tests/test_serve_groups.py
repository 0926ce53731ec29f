"""Consumer groups: one member, several, those that leave and those that fall silent, and what they commit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from helpers.serving import Served, serving
from helpers.support import bundled
from kio.schema.errors import ErrorCode

from seglog_format.serve.groups import Coordinator, Joining
from seglog_format.serve.kept_offsets import Committed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from proofs.serve.client import Answer

FIND, JOIN, HEARTBEAT, LEAVE, SYNC, COMMIT, COMMITTED = 10, 11, 12, 13, 14, 8, 9


class Time:
    """A clock that goes when it is told to, and what is due then."""

    def __init__(self) -> None:
        self.now = 0.0
        self._due: list[tuple[float, Callable[[], None]]] = []

    def __call__(self) -> float:
        return self.now

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        self._due.append((self.now + seconds, action))

    def pass_by(self, seconds: float) -> None:
        end = self.now + seconds
        while due := sorted((each for each in self._due if each[0] <= end), key=lambda each: each[0]):
            self._due.remove(due[0])
            self.now = due[0][0]
            due[0][1]()
        self.now = end


class Fellow:
    """A member: it joins and syncs, and keeps what it was told."""

    def __init__(self, coordinator: Coordinator, name: str, **changed: Answer) -> None:
        self.coordinator = coordinator
        self.name = name
        self.changed = changed
        self.reported: list[Mapping[str, Any]] = []
        self.member_id = ""

    def join(self, **changed: Answer) -> None:
        fields: dict[str, Any] = {
            "group_id": "g",
            "member_id": self.member_id,
            "instance_id": None,
            "client_id": self.name,
            "protocol_type": "consumer",
            "protocols": {"range": self.name.encode(), "sticky": b"s"},
            "session_seconds": 10.0,
            "rebalance_seconds": 5.0,
            "has_to_know_its_id": False,
        }
        self.coordinator.join(Joining(**(fields | self.changed | changed)), self.reported.append)
        self._note()

    def _note(self) -> None:
        if self.reported and self.reported[-1]["error_code"] is ErrorCode.none and "member_id" in self.reported[-1]:
            self.member_id = self.reported[-1]["member_id"]

    def sync(self, assignments: Mapping[str, bytes]) -> None:
        self._note()
        self.coordinator.sync("g", self.member_id, self.generation, assignments, self.reported.append)

    @property
    def generation(self) -> int:
        return max(each.get("generation_id", -1) for each in self.reported)

    def beat(self) -> ErrorCode:
        self._note()
        return self.coordinator.heartbeat("g", self.member_id, self.generation)

    @property
    def last(self) -> Mapping[str, Any]:
        return self.reported[-1]

    @property
    def error(self) -> ErrorCode:
        found = self.last["error_code"]
        assert isinstance(found, ErrorCode)
        return found


@pytest.fixture
def clock() -> Time:
    return Time()


@pytest.fixture
def coordinator(clock: Time) -> Coordinator:
    return Coordinator(clock, clock)  # type: ignore[arg-type]


def settled(coordinator: Coordinator, clock: Time, *names: str) -> list[Fellow]:
    """Members that have joined together and know what to read: each its own name."""
    fellows = [Fellow(coordinator, name) for name in names]
    for fellow in fellows:
        fellow.join()
    clock.pass_by(1)
    divide(fellows)
    return fellows


def divide(fellows: list[Fellow]) -> None:
    for fellow in fellows:
        fellow._note()
    leader = next(fellow for fellow in fellows if fellow.last["members"])
    assert {each["metadata"] for each in leader.last["members"]} == {fellow.name.encode() for fellow in fellows}
    assignments = {fellow.member_id: fellow.name.encode() for fellow in fellows}
    for fellow in fellows:
        fellow.sync(assignments if fellow is leader else {})
    assert [fellow.last["assignment"] for fellow in fellows] == [fellow.name.encode() for fellow in fellows]


def test_members_that_come_together_are_one_generation(coordinator: Coordinator, clock: Time) -> None:
    fellows = settled(coordinator, clock, "a", "b", "c")
    assert {fellow.generation for fellow in fellows} == {1}
    assert {fellow.beat() for fellow in fellows} == {ErrorCode.none}


def test_a_new_member_makes_the_others_join_again(coordinator: Coordinator, clock: Time) -> None:
    one, two = settled(coordinator, clock, "a", "b")
    late = Fellow(coordinator, "c")
    late.join()
    assert {one.beat(), two.beat()} == {ErrorCode.rebalance_in_progress}
    one.join()
    assert not late.reported
    two.join()
    divide([one, two, late])
    assert {each.generation for each in (one, two, late)} == {2}


def test_who_does_not_join_again_in_time_is_left_out(coordinator: Coordinator, clock: Time) -> None:
    one, two = settled(coordinator, clock, "a", "b")
    late = Fellow(coordinator, "c")
    late.join()
    one.join()
    clock.pass_by(5.2)
    divide([one, late])
    assert two.beat() is ErrorCode.unknown_member_id


def test_who_falls_silent_is_left_out(coordinator: Coordinator, clock: Time) -> None:
    one, two = settled(coordinator, clock, "a", "b")
    clock.pass_by(8)
    assert one.beat() is ErrorCode.none
    clock.pass_by(4)
    assert one.beat() is ErrorCode.rebalance_in_progress
    one.join()
    divide([one])
    assert two.beat() is ErrorCode.unknown_member_id


def test_members_expire_after_a_look_that_failed(
    coordinator: Coordinator, clock: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    (one,) = settled(coordinator, clock, "a")
    with monkeypatch.context() as broken:
        broken.setattr(coordinator, "_expire", lambda *_: 1 // 0)
        with pytest.raises(ZeroDivisionError):
            clock.pass_by(1)
    clock.pass_by(11)
    assert one.beat() is ErrorCode.unknown_member_id


def test_who_leaves_is_replaced_as_leader(coordinator: Coordinator, clock: Time) -> None:
    one, two = settled(coordinator, clock, "a", "b")
    assert coordinator.leave("g", one.member_id, None) is ErrorCode.none
    assert coordinator.leave("g", one.member_id, None) is ErrorCode.unknown_member_id
    assert two.beat() is ErrorCode.rebalance_in_progress
    two.join()
    divide([two])
    assert two.generation == 2


def test_a_leader_that_never_divides_is_left_out(coordinator: Coordinator, clock: Time) -> None:
    one, two = Fellow(coordinator, "a"), Fellow(coordinator, "b")
    one.join()
    two.join()
    clock.pass_by(1)
    two.sync({})
    clock.pass_by(11)
    assert two.error is ErrorCode.rebalance_in_progress
    two.join()
    divide([two])


def test_a_static_member_takes_the_place_of_its_former_self(coordinator: Coordinator, clock: Time) -> None:
    old = Fellow(coordinator, "a", instance_id="i")
    old.join()
    clock.pass_by(1)
    divide([old])
    new = Fellow(coordinator, "b", instance_id="i")
    new.join()
    clock.pass_by(1)
    divide([new])
    assert old.beat() is ErrorCode.unknown_member_id
    old.join()
    assert old.error is ErrorCode.fenced_instance_id


def test_a_member_learns_its_id_before_it_joins_with_it(coordinator: Coordinator, clock: Time) -> None:
    fellow = Fellow(coordinator, "a", has_to_know_its_id=True)
    fellow.join()
    assert fellow.error is ErrorCode.member_id_required
    fellow.member_id = fellow.last["member_id"]
    fellow.join()
    clock.pass_by(1)
    divide([fellow])


@pytest.mark.parametrize(
    ("changed", "error"),
    [
        ({"group_id": ""}, ErrorCode.invalid_group_id),
        ({"session_seconds": 0.0}, ErrorCode.invalid_session_timeout),
        ({"session_seconds": 1e9}, ErrorCode.invalid_session_timeout),
        ({"member_id": "nobody"}, ErrorCode.unknown_member_id),
        ({"protocols": {}}, ErrorCode.inconsistent_group_protocol),
        ({"protocols": {"other": b""}}, ErrorCode.inconsistent_group_protocol),
        ({"protocol_type": "connect"}, ErrorCode.inconsistent_group_protocol),
        ({"protocols": {"range": bytes(1 << 17)}}, ErrorCode.invalid_request),
    ],
)
def test_who_does_not_fit_is_refused(
    coordinator: Coordinator, clock: Time, changed: dict[str, Any], error: ErrorCode
) -> None:
    settled(coordinator, clock, "a")
    stranger = Fellow(coordinator, "b")
    stranger.join(**changed)
    assert stranger.error is error


def test_commits_are_for_members_and_for_groups_without_any(coordinator: Coordinator, clock: Time) -> None:
    assert coordinator.commit_error("free", "", -1) is ErrorCode.none
    (one,) = settled(coordinator, clock, "a")
    assert coordinator.commit_error("g", one.member_id, 1) is ErrorCode.none
    assert coordinator.commit_error("g", one.member_id, 2) is ErrorCode.illegal_generation
    assert coordinator.commit_error("g", "", -1) is ErrorCode.unknown_member_id
    assert coordinator.commit("g", "t", 0, Committed(5, "x" * 5000)) is ErrorCode.offset_metadata_too_large
    assert coordinator.commit("g", "t", 0, Committed(5, "x")) is ErrorCode.none
    assert coordinator.committed("g") == {("t", 0): Committed(5, "x")}
    assert coordinator.committed("other") == {}


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with serving(next(bundled("4.3.0/segs").glob("*-0"))) as running:
        yield running


@pytest.mark.parametrize(
    ("join", "sync", "commit", "fetch", "leave"), [(0, 0, 2, 1, 0), (3, 2, 5, 5, 2), (5, 3, 7, 7, 3), (9, 5, 9, 9, 5)]
)
def test_every_version_of_the_protocol_takes_a_member_through_its_life(
    served: Served, join: int, sync: int, commit: int, fetch: int, leave: int
) -> None:
    group = f"life-{join}"
    with served.client() as client:
        member = {"protocol_type": "consumer", "protocols": [{"name": "range", "metadata": b"m"}]}
        fields = {"group_id": group, "session_timeout": 10_000, "rebalance_timeout": 10_000, **member}
        joined = client.ask(JOIN, join, member_id="", **fields)
        if joined.error_code is ErrorCode.member_id_required:
            joined = client.ask(JOIN, join, member_id=joined.member_id, **fields)
        assert (joined.error_code, joined.leader) == (ErrorCode.none, joined.member_id)
        member_fields = {"group_id": group, "member_id": joined.member_id, "generation_id": joined.generation_id}
        assigned = [{"member_id": joined.member_id, "assignment": b"all"}]
        assert client.ask(SYNC, sync, **member_fields, assignments=assigned).assignment == b"all"
        assert client.ask(HEARTBEAT, min(join, 4), **member_fields).error_code is ErrorCode.none
        offset = {"partition_index": 0, "committed_offset": 17, "committed_metadata": "m"}
        topics = [{"name": name, "partitions": [offset]} for name in ("segs", "nowhere")]
        stated = {"generation_id_or_member_epoch": joined.generation_id, "retention_time": -1}
        answer = client.ask(COMMIT, commit, **member_fields, **stated, topics=topics)
        assert [topic.partitions[0].error_code for topic in answer.topics] == [
            ErrorCode.none,
            ErrorCode.unknown_topic_or_partition,
        ]
        asked = {"group_id": group, "topics": [{"name": "segs", "partition_indexes": [0, 1]}]}
        found = client.ask(COMMITTED, fetch, **asked, groups=[asked], require_stable=False)
        rows = (found.groups[0] if fetch >= 8 else found).topics[0].partitions
        assert [row.committed_offset for row in rows] == [17, -1]
        leaving = [{"member_id": joined.member_id, "group_instance_id": None}]
        assert client.ask(LEAVE, leave, **member_fields, members=leaving).error_code is ErrorCode.none
        assert client.ask(HEARTBEAT, 0, **member_fields).error_code is ErrorCode.unknown_member_id


@pytest.mark.parametrize("version", range(7))
def test_this_server_coordinates_every_group_and_nothing_else(served: Served, version: int) -> None:
    with served.client() as client:
        answer = client.ask(FIND, version, key="g", key_type=0, coordinator_keys=["g"])
        assert (answer.coordinators[0] if version >= 4 else answer).port == served.port
        if version:
            answer = client.ask(FIND, version, key="g", key_type=1, coordinator_keys=["g"])
            found = answer.coordinators[0] if version >= 4 else answer
            assert found.error_code is ErrorCode.transactional_id_authorization_failed  # not one to ask again after

"""The coordinator of all consumer groups. Members are in memory; committed offsets may be on disk as well."""

from __future__ import annotations

import time
import uuid
from collections import Counter, OrderedDict
from dataclasses import dataclass, field
from enum import Enum
from threading import Lock
from typing import TYPE_CHECKING, Final, TypeAlias

from kio.schema.errors import ErrorCode

from seglog_format.serve.kept_offsets import KeptOffsets
from seglog_format.serve.limits import DEFAULT_LIMITS, Limits

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from seglog_format.serve.delays import Delays
    from seglog_format.serve.kept_offsets import Committed

    Respond: TypeAlias = Callable[[Mapping[str, object]], None]


# -- one consumer group in the classic protocol: members join, and get the partitions that the leader assigns ---------


class GroupState(Enum):
    """State of a group between two assignments."""

    EMPTY = "Empty"
    PREPARING = "PreparingRebalance"
    COMPLETING = "CompletingRebalance"
    STABLE = "Stable"


@dataclass(slots=True)
class Member:
    """A member of a group.

    Attributes:
        member_id: made by the server.
        instance_id: of a static member, or None.
        protocols: assignment strategies by name, with the member's metadata for each; its preferred one first.
        session_seconds: time without a heartbeat after which the member is removed.
        rebalance_seconds: time that the others wait for it to join again.
        joining: callback for the answer to its pending join request.
        syncing: callback for the answer to its pending sync request.
        assignment: the assignment that it got.
        deadline: time at which it is removed without another heartbeat.
        size: bytes of its own texts.
        is_settled: whether it has sent a heartbeat after it joined.
    """

    member_id: str
    instance_id: str | None
    protocols: dict[str, bytes]
    session_seconds: float
    rebalance_seconds: float
    joining: Respond | None = None
    syncing: Respond | None = None
    assignment: bytes = b""
    deadline: float = 0.0
    size: int = 0
    is_settled: bool = False

    @property
    def silence(self) -> tuple[bool, float]:
        """Sort key by the last heartbeat; members without one since they joined sort as the oldest."""
        return self.is_settled, self.deadline - self.session_seconds


@dataclass(slots=True)
class Group:
    """A consumer group. Callers hold the coordinator's lock.

    Attributes:
        group_id: its name.
        state: its state between two assignments.
        generation: number of the assignment; 0 before the first.
        protocol_type: kind of its clients: ``consumer``.
        protocol: the assignment strategy that all members support.
        leader: the member that assigns partitions.
        members: by id, in the order in which they joined.
        rebalance_deadline: time at which a rebalance continues without missing members.
        is_gathering: whether members may still join within the grace period of the first ones.
    """

    group_id: str
    state: GroupState = GroupState.EMPTY
    generation: int = 0
    protocol_type: str = ""
    protocol: str = ""
    leader: str = ""
    members: dict[str, Member] = field(default_factory=dict)
    rebalance_deadline: float = 0.0
    is_gathering: bool = False

    def accepts(self, protocol_type: str, protocols: Mapping[str, bytes], member_id: str) -> bool:
        """Return whether a member with these protocols can join: all members must share one."""
        others = [member for member in self.members.values() if member.member_id != member_id]
        if not protocol_type or not protocols:
            return False
        if not others:
            return True
        common = set(protocols).intersection(*(member.protocols for member in others))
        return protocol_type == self.protocol_type and bool(common)

    def start_rebalance(self, now: float, grace_seconds: float) -> None:
        """Ask all members to join again; answer those that wait for an assignment accordingly.

        Args:
            now: the current time.
            grace_seconds: minimum time for other members to join.
        """
        for member in self.members.values():
            if member.syncing is not None:  # its timeout was paused while it waited
                member.deadline = now + member.session_seconds
            reply_to_sync(member, ErrorCode.rebalance_in_progress)
            member.assignment = b""
        self.is_gathering = self.state is GroupState.EMPTY
        self.state = GroupState.PREPARING
        longest = max((member.rebalance_seconds for member in self.members.values()), default=0.0)
        self.rebalance_deadline = now + (grace_seconds if self.is_gathering else longest)

    def may_complete(self, now: float) -> bool:
        """Return whether a rebalance has waited long enough, or all members have joined."""
        if self.state is not GroupState.PREPARING:
            return False
        has_all = all(member.joining is not None for member in self.members.values())
        return now >= self.rebalance_deadline or (has_all and not self.is_gathering)

    def complete_join(self, now: float) -> None:
        """Remove missing members, choose protocol and leader, and answer all members."""
        for member_id in [each.member_id for each in self.members.values() if each.joining is None]:
            del self.members[member_id]
        if not self.members:
            self.state, self.leader = GroupState.EMPTY, ""
            return
        self.generation += 1
        self.protocol = self._choose_protocol()
        if self.leader not in self.members:
            self.leader = next(iter(self.members))
        self.state = GroupState.COMPLETING
        for member in self.members.values():
            member.deadline = now + member.session_seconds
            self.reply_to_join(member)

    def _choose_protocol(self) -> str:
        """Return the protocol that most members prefer, among those that all support."""
        common = set.intersection(*(set(member.protocols) for member in self.members.values()))
        votes = Counter(next(name for name in each.protocols if name in common) for each in self.members.values())
        return max(votes, key=lambda name: votes[name])

    def reply_to_join(self, member: Member) -> None:
        """Answer a member with the generation; the leader also gets the list of members."""
        respond, member.joining = member.joining, None
        if respond is not None:
            respond(self.joined(member))

    def joined(self, member: Member) -> dict[str, object]:
        """Return the answer to a join request."""
        members = self.members.values() if member.member_id == self.leader else ()
        return {
            **refusal_of_join(ErrorCode.none, member.member_id),
            "generation_id": self.generation,
            "protocol_type": self.protocol_type,
            "protocol_name": self.protocol,
            "leader": self.leader,
            "members": [
                {
                    "member_id": each.member_id,
                    "group_instance_id": each.instance_id,
                    "metadata": each.protocols[self.protocol],
                }
                for each in members
            ],
        }

    def assign(self, assignments: Mapping[str, bytes]) -> None:
        """Store the leader's assignments, and answer the members that wait for them."""
        self.state = GroupState.STABLE
        for member in self.members.values():
            member.assignment = assignments.get(member.member_id, b"")
            self.reply_with_assignment(member)

    def reply_with_assignment(self, member: Member) -> None:
        """Answer a member that waits for its assignment."""
        reply_to_sync(member, ErrorCode.none, self.protocol_type, self.protocol)


def refusal_of_join(error: ErrorCode, member_id: str = "") -> dict[str, object]:
    """Return the answer to a refused join request."""
    return {
        "throttle_time": 0,
        "error_code": error,
        "generation_id": -1,
        "protocol_type": None,
        "protocol_name": "",
        "leader": "",
        "skip_assignment": False,
        "member_id": member_id,
        "members": [],
    }


def synced(
    error: ErrorCode, assignment: bytes = b"", protocol_type: str | None = None, protocol: str | None = None
) -> dict[str, object]:
    """Return the answer to a sync request."""
    return {
        "throttle_time": 0,
        "error_code": error,
        "protocol_type": protocol_type,
        "protocol_name": protocol,
        "assignment": assignment,
    }


def reply_to_sync(
    member: Member, error: ErrorCode, protocol_type: str | None = None, protocol: str | None = None
) -> None:
    """Answer a pending sync request, if there is one."""
    respond, member.syncing = member.syncing, None
    if respond is not None:
        assignment = member.assignment if error is ErrorCode.none else b""
        respond(synced(error, assignment, protocol_type, protocol))


# -- the coordinator of all consumer groups ---------------------------------------------------------------------------


GRACE_SECONDS: Final = 0.1
"""Time that the first member of a group waits for others that start at the same time."""

TICK_SECONDS: Final = 0.1
"""Interval at which expired members are removed."""

MAX_SESSION_SECONDS: Final = 1800.0
MAX_PROTOCOLS: Final = 32
"""Maximum number of assignment strategies of one member."""

MAX_CLIENT_ID_SIZE: Final = 100
IDLE_LOOK_SECONDS: Final = 3600.0
"""Interval at which unused groups are dropped."""


@dataclass(frozen=True, slots=True)
class Joining:
    """A join request.

    Attributes:
        group_id: of the group.
        member_id: empty for a new member.
        instance_id: of a static member, or None.
        client_id: becomes part of the new member's id.
        protocol_type: ``consumer``.
        protocols: assignment strategies by name, the preferred one first.
        session_seconds: see `Member`.
        rebalance_seconds: see `Member`.
        has_to_know_its_id: whether a new member first gets its id, and then joins with it.
    """

    group_id: str
    member_id: str
    instance_id: str | None
    client_id: str
    protocol_type: str
    protocols: dict[str, bytes]
    session_seconds: float
    rebalance_seconds: float
    has_to_know_its_id: bool

    @property
    def size(self) -> int:
        """Bytes of the request's texts."""
        texts = (self.group_id, self.instance_id or "", self.client_id[:MAX_CLIENT_ID_SIZE], *self.protocols)
        return sum(map(len, texts)) + sum(map(len, self.protocols.values()))


class Coordinator:
    """Groups, their members, and their committed offsets. Thread-safe.

    Attributes:
        kept: the committed offsets.
    """

    def __init__(
        self, delays: Delays, clock: Callable[[], float] = time.monotonic, limits: Limits = DEFAULT_LIMITS
    ) -> None:
        """Start without groups.

        Args:
            delays: calls back when members may have expired.
            clock: returns the time in seconds.
            limits: maximum number of members and groups.
        """
        self._delays = delays
        self._clock = clock
        self._limits = limits
        self._lock = Lock()
        self._groups: dict[str, Group] = {}
        self.kept = KeptOffsets(limits, self._groups.__contains__)
        self._looked_at = clock()
        self._announced: OrderedDict[str, None] = OrderedDict()
        self._is_ticking = False

    def join(self, joining: Joining, respond: Respond) -> None:
        """Add a member; answer when the group is complete."""
        with self._lock:
            error = self._refusal(joining)
            if error is not ErrorCode.none:
                respond(refusal_of_join(error, joining.member_id))
            elif not joining.member_id and joining.instance_id is None and joining.has_to_know_its_id:
                respond(refusal_of_join(ErrorCode.member_id_required, self._announce(joining.client_id)))
            else:
                self._take_in(self._groups.setdefault(joining.group_id, Group(joining.group_id)), joining, respond)
                self._tick_soon()

    def _refusal(self, joining: Joining) -> ErrorCode:
        group = self._groups.get(joining.group_id)
        if not joining.group_id:
            return ErrorCode.invalid_group_id
        if not 0 < joining.session_seconds <= MAX_SESSION_SECONDS:
            return ErrorCode.invalid_session_timeout
        if joining.size > self._limits.member_size or len(joining.protocols) > MAX_PROTOCOLS:
            return ErrorCode.invalid_request
        if joining.member_id and not self._is_known(group, joining.member_id):
            is_fenced = joining.instance_id is not None and self._static(group, joining.instance_id) is not None
            return ErrorCode.fenced_instance_id if is_fenced else ErrorCode.unknown_member_id
        if not (group or Group("")).accepts(joining.protocol_type, joining.protocols, joining.member_id):
            return ErrorCode.inconsistent_group_protocol
        return ErrorCode.none

    def _is_known(self, group: Group | None, member_id: str) -> bool:
        return member_id in self._announced or (group is not None and member_id in group.members)

    def _static(self, group: Group | None, instance_id: str) -> Member | None:
        members = group.members.values() if group is not None else ()
        return next((member for member in members if member.instance_id == instance_id), None)

    def _make_room(self, size: int, *, keep: str) -> None:
        """Remove the members with the oldest heartbeats until one more member of `size` bytes fits.

        Members without a heartbeat since they joined are removed first.
        """
        members = [
            (group, member)
            for group in self._groups.values()
            for member in group.members.values()
            if member.member_id != keep
        ]
        left, count = self._limits.members_size - size - sum(member.size for _, member in members), len(members)
        if left >= 0 and count < self._limits.members:
            return
        for group, member in sorted(members, key=lambda each: each[1].silence):
            self._remove(group, member)
            self._rebalance_rest(group, self._clock())
            left, count = left + member.size, count - 1
            if left >= 0 and count < self._limits.members:
                return

    def _announce(self, client_id: str) -> str:
        member_id = f"{client_id[:MAX_CLIENT_ID_SIZE]}-{uuid.uuid4()}"
        self._announced[member_id] = None
        if len(self._announced) > self._limits.members:
            self._announced.popitem(last=False)
        return member_id

    def _take_in(self, group: Group, joining: Joining, respond: Respond) -> None:
        now = self._clock()
        self._announced.pop(joining.member_id, None)
        known = group.members.get(joining.member_id)
        is_same = known is not None and known.protocols == joining.protocols
        if known is not None and is_same and self._is_repeated_join(group, known):
            known.deadline = now + known.session_seconds
            respond(group.joined(known))
            return
        self._make_room(joining.size, keep=joining.member_id)
        member = known or self._new_member(group, joining)
        member.size = joining.size
        if member.joining is not None:
            member.joining(refusal_of_join(ErrorCode.rebalance_in_progress, member.member_id))
        member.protocols, member.joining = joining.protocols, respond
        member.session_seconds, member.rebalance_seconds = joining.session_seconds, joining.rebalance_seconds
        member.deadline = now + member.session_seconds
        group.protocol_type = joining.protocol_type
        if group.state is not GroupState.PREPARING:
            group.start_rebalance(now, GRACE_SECONDS)
        self._complete(group, now)

    def _is_repeated_join(self, group: Group, member: Member) -> bool:
        """Return whether a known member that joins with unchanged protocols only repeats its request."""
        is_follower = group.state is GroupState.STABLE and member.member_id != group.leader
        return is_follower or group.state is GroupState.COMPLETING

    def _new_member(self, group: Group, joining: Joining) -> Member:
        if joining.instance_id is not None:
            replaced = self._static(group, joining.instance_id)
            if replaced is not None:
                self._remove(group, replaced, ErrorCode.fenced_instance_id)
        member_id = joining.member_id or f"{joining.client_id[:MAX_CLIENT_ID_SIZE]}-{uuid.uuid4()}"
        member = Member(
            member_id, joining.instance_id, joining.protocols, joining.session_seconds, joining.rebalance_seconds
        )
        group.members[member_id] = member
        return member

    def _remove(self, group: Group, member: Member, error: ErrorCode = ErrorCode.unknown_member_id) -> None:
        del group.members[member.member_id]
        reply_to_sync(member, error)
        if member.joining is not None:
            member.joining(refusal_of_join(error, member.member_id))
        if not group.members:
            group.state, group.leader = GroupState.EMPTY, ""

    def _complete(self, group: Group, now: float) -> None:
        if group.may_complete(now):
            group.complete_join(now)

    def sync(
        self, group_id: str, member_id: str, generation: int, assignments: Mapping[str, bytes], respond: Respond
    ) -> None:
        """Answer with the member's assignment when the leader has sent it."""
        with self._lock:
            group, error = self._checked(group_id, member_id, generation)
            if error is ErrorCode.none and not self._may_assign(group, member_id, assignments):
                error = ErrorCode.invalid_request
            if error is not ErrorCode.none or group is None:
                respond(synced(error))
                return
            if group.state is GroupState.PREPARING:
                respond(synced(ErrorCode.rebalance_in_progress))
                return
            member = group.members[member_id]
            reply_to_sync(member, ErrorCode.rebalance_in_progress)
            member.syncing = respond
            if group.state is GroupState.STABLE:
                group.reply_with_assignment(member)
            elif member_id == group.leader:
                group.assign(assignments)

    def _may_assign(self, group: Group | None, member_id: str, assignments: Mapping[str, bytes]) -> bool:
        """Return whether there is room for the leader's assignments, which are kept until the next rebalance."""
        sizes = [len(one) for one in assignments.values()]
        if max(sizes, default=0) > self._limits.member_size:
            return False
        return group is None or group.leader != member_id or sum(sizes) <= self._limits.members_size // 8

    def heartbeat(self, group_id: str, member_id: str, generation: int) -> ErrorCode:
        """Record a heartbeat; return whether the member must join again."""
        with self._lock:
            group, error = self._checked(group_id, member_id, generation)
            if group is not None and error is ErrorCode.none and group.state is GroupState.PREPARING:
                return ErrorCode.rebalance_in_progress
            if group is not None:
                group.members[member_id].is_settled = True
            return error

    def _checked(self, group_id: str, member_id: str, generation: int) -> tuple[Group | None, ErrorCode]:
        """Return the group if it has this member in this generation, and record a heartbeat."""
        group = self._groups.get(group_id)
        member = group.members.get(member_id) if group is not None else None
        if group is None or member is None:
            return None, ErrorCode.unknown_member_id
        if group.generation != generation:
            return None, ErrorCode.illegal_generation
        member.deadline = self._clock() + member.session_seconds
        return group, ErrorCode.none

    def leave(self, group_id: str, member_id: str, instance_id: str | None) -> ErrorCode:
        """Remove a member, and rebalance the group."""
        with self._lock:
            group = self._groups.get(group_id)
            member = group.members.get(member_id) if group is not None else None
            if member is None and instance_id is not None:
                member = self._static(group, instance_id)
            if group is None or member is None:
                return ErrorCode.unknown_member_id
            self._remove(group, member)
            self._rebalance_rest(group, self._clock())
            return ErrorCode.none

    def _rebalance_rest(self, group: Group, now: float) -> None:
        if group.members and group.state is not GroupState.PREPARING:
            group.start_rebalance(now, GRACE_SECONDS)
        self._complete(group, now)

    def commit_error(self, group_id: str, member_id: str, generation: int) -> ErrorCode:
        """Return an error unless a member of this generation commits, or the group has no members."""
        with self._lock:
            group = self._groups.get(group_id)
            if generation < 0 and (group is None or not group.members):
                return ErrorCode.none
            checked, error = self._checked(group_id, member_id, generation)
            if checked is not None and checked.state is GroupState.COMPLETING:
                return ErrorCode.rebalance_in_progress
            return error

    def commit(self, group_id: str, topic: str, partition: int, committed: Committed) -> ErrorCode:
        """Store an offset; see `KeptOffsets.commit`."""
        return self.kept.commit(group_id, topic, partition, committed)

    def committed(self, group_id: str) -> dict[tuple[str, int], Committed]:
        """Return the committed offsets of a group, by topic and partition."""
        return self.kept.of(group_id)

    def _tick_soon(self) -> None:
        if not self._is_ticking:
            self._is_ticking = True
            self._delays.after(TICK_SECONDS, self._tick)

    def _tick(self) -> None:
        """Remove expired members, and complete rebalances that have waited long enough."""
        with self._lock:
            self._is_ticking = False
            try:
                self._check_all(self._clock())
            finally:  # after a failure, later calls must still happen
                if self._groups:
                    self._tick_soon()

    def _check_all(self, now: float) -> None:
        if now - self._looked_at > IDLE_LOOK_SECONDS:
            self._looked_at = now
            self.kept.forget_idle()
        for group in list(self._groups.values()):
            self._expire(group, now)
            self._complete(group, now)
            if not group.members:
                del self._groups[group.group_id]

    def _expire(self, group: Group, now: float) -> None:
        gone = [
            member
            for member in group.members.values()
            if member.deadline < now and member.joining is None and member.syncing is None
        ]
        for member in gone:
            self._remove(group, member)
        if gone:
            self._rebalance_rest(group, now)

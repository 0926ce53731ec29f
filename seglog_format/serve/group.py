"""One consumer group in the classic protocol: members join, and get the partitions that the leader assigns."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, TypeAlias

from kio.schema.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Respond: TypeAlias = Callable[[Mapping[str, object]], None]


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

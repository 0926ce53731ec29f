"""APIs of consumer groups; the coordinator does the work."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from kio.schema.errors import ErrorCode

from seglog_format.serve.api_log import requested_partitions
from seglog_format.serve.calls import UNKNOWN_EPOCH, UNKNOWN_OFFSET, Call, Services, milliseconds
from seglog_format.serve.groups import Joining
from seglog_format.serve.kept_offsets import Committed

if TYPE_CHECKING:
    from collections.abc import Iterable

ID_FIRST_SINCE: Final = 4
"""First version of JoinGroup in which a new member gets its id before it joins."""
SEVERAL_LEAVE_SINCE: Final = 3
SEVERAL_GROUPS_SINCE: Final = 8


def join_group(services: Services, call: Call) -> None:
    """Answer JoinGroup: add the member, and answer when the group is complete."""
    body = call.body
    session_ms = milliseconds(body.session_timeout)
    rebalance = call.field("rebalance_timeout")
    joining = Joining(
        group_id=body.group_id,
        member_id=body.member_id,
        instance_id=call.field("group_instance_id"),
        client_id=call.client_id,
        protocol_type=body.protocol_type,
        protocols={each.name: bytes(each.metadata) for each in body.protocols},
        session_seconds=session_ms / 1000,
        rebalance_seconds=(session_ms if rebalance is None else milliseconds(rebalance)) / 1000,
        has_to_know_its_id=call.version >= ID_FIRST_SINCE,
    )
    services.coordinator().join(joining, call.respond)


def sync_group(services: Services, call: Call) -> None:
    """Answer SyncGroup: take the assignments of the leader, and give each member its own."""
    body = call.body
    assignments = {each.member_id: bytes(each.assignment) for each in body.assignments}
    services.coordinator().sync(body.group_id, body.member_id, body.generation_id, assignments, call.respond)


def heartbeat(services: Services, call: Call) -> None:
    """Answer Heartbeat: keep the member in the group."""
    body = call.body
    error = services.coordinator().heartbeat(body.group_id, body.member_id, body.generation_id)
    call.respond({"throttle_time": 0, "error_code": error})


def leave_group(services: Services, call: Call) -> None:
    """Answer LeaveGroup: remove the members."""
    body = call.body
    leaving = body.members if call.version >= SEVERAL_LEAVE_SINCE else (body,)
    members = [_left(services, body.group_id, each) for each in leaving]
    alone = members[0]["error_code"] if members and call.version < SEVERAL_LEAVE_SINCE else ErrorCode.none
    call.respond({"throttle_time": 0, "error_code": alone, "members": members})


def _left(services: Services, group_id: str, leaving: Any) -> dict[str, object]:
    instance_id = getattr(leaving, "group_instance_id", None)
    error = services.coordinator().leave(group_id, leaving.member_id, instance_id)
    return {"member_id": leaving.member_id, "group_instance_id": instance_id, "error_code": error}


def offset_commit(services: Services, call: Call) -> None:
    """Answer OffsetCommit: when the offsets are on the disk, if the server has a state directory."""
    body = call.body
    error = services.coordinator().commit_error(body.group_id, body.member_id, body.generation_id_or_member_epoch)
    topics: list[dict[str, Any]] = [
        {
            "name": topic,
            "partitions": [
                {"partition_index": number, "error_code": error or _commit(services, body.group_id, topic, each)}
                for number, each in partitions.items()
            ],
        }
        for topic, partitions in requested_partitions(body.topics, "name", "partition_index").items()
    ]
    answer = {"throttle_time": 0, "topics": topics}
    rows = [row for topic in topics for row in topic["partitions"]]
    if any(row["error_code"] is ErrorCode.none for row in rows):
        services.coordinator().kept.when_kept(partial(_respond_when_kept, call, answer, rows))
    else:
        call.respond(answer)


def _respond_when_kept(
    call: Call, answer: dict[str, object], rows: Iterable[dict[str, Any]], *, is_saved: bool
) -> None:
    for row in rows if not is_saved else ():
        row["error_code"] = row["error_code"] or ErrorCode.coordinator_not_available  # the client tries again
    call.respond(answer)


def _commit(services: Services, group_id: str, topic: str, asked: Any) -> ErrorCode:
    if services.catalog.partition(topic, asked.partition_index) is None:
        return ErrorCode.unknown_topic_or_partition
    epoch = getattr(asked, "committed_leader_epoch", UNKNOWN_EPOCH)
    committed = Committed(asked.committed_offset, asked.committed_metadata or "", epoch)
    return services.coordinator().commit(group_id, topic, asked.partition_index, committed)


def offset_fetch(services: Services, call: Call) -> None:
    """Answer OffsetFetch with committed offsets."""
    if call.version >= SEVERAL_GROUPS_SINCE:
        once = {each.group_id: each.topics for each in call.body.groups}
        groups = [
            {"group_id": group_id, "error_code": ErrorCode.none, **_offsets(services, group_id, topics)}
            for group_id, topics in once.items()
        ]
        call.respond({"throttle_time": 0, "groups": groups})
        return
    offsets = _offsets(services, call.body.group_id, call.body.topics)
    call.respond({"throttle_time": 0, "error_code": ErrorCode.none, **offsets})


def _offsets(services: Services, group_id: str, topics: Iterable[Any] | None) -> dict[str, object]:
    committed = services.coordinator().committed(group_id)
    asked: dict[str, dict[int, None]] = {}
    if topics is None:
        for name, number in committed:
            asked.setdefault(name, {})[number] = None
    else:
        for each in topics:
            asked.setdefault(each.name, {}).update(dict.fromkeys(each.partition_indexes))
    return {
        "topics": [
            {"name": name, "partitions": [_offset_fields(number, committed.get((name, number))) for number in numbers]}
            for name, numbers in asked.items()
        ]
    }


def _offset_fields(number: int, committed: Committed | None) -> dict[str, object]:
    found = committed or Committed(UNKNOWN_OFFSET)
    return {
        "partition_index": number,
        "committed_offset": found.offset,
        "committed_leader_epoch": found.leader_epoch,
        "metadata": found.metadata,
        "error_code": ErrorCode.none,
    }

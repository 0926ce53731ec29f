"""The state of group and transaction coordinators, from their topics, which are replayed as a coordinator does."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from seglog_format.codec.control_record import decode_control_record
from seglog_format.codec.coordinator_records import decode_coordinator_record
from seglog_format.errors import FormatError, Location
from seglog_format.model import NO_TIMESTAMP, ControlRecordType
from seglog_format.schema.coordinator_records import TRANSACTION_STATES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from seglog_format.record_model import Message, Record, RecordBatch


OPEN_STATES: Final = frozenset({"Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence"})
"""States of a transaction whose end markers are not yet in all partitions."""

GROUP_TYPES: Final = {
    "groupMetadata": "classic",
    "consumerGroupMetadata": "consumer",
    "shareGroupMetadata": "share",
    "streamsGroupMetadata": "streams",
}
"""Type of a group, by the type of the record that creates it."""

MEMBER_RECORDS: Final = frozenset(
    {"consumerGroupMemberMetadata", "shareGroupMemberMetadata", "streamsGroupMemberMetadata"}
)

Decoded: TypeAlias = "Mapping[str, Any]"


class CommittedOffset(NamedTuple):
    """A position that a group committed.

    Attributes:
        offset: the next offset that the group reads.
        leader_epoch: of the last consumed record; -1 if unknown.
        metadata: text that the consumer added.
        commit_timestamp_ms: time of the commit.
        topic_id: of the topic; empty if the record has none.
        record_offset: offset of the record with the commit.
    """

    offset: int
    leader_epoch: int
    metadata: str
    commit_timestamp_ms: int
    topic_id: str
    record_offset: int


@dataclass(slots=True)
class Group:
    """A group and its committed positions.

    Attributes:
        type: ``classic``, ``consumer``, ``share`` or ``streams``; ``simple`` for offsets without a group record.
        epoch: generation of a classic group, or epoch of any other group; -1 if unknown.
        protocol_type: of a classic group.
        members: ids of the members, as last written.
        offsets: committed positions by topic and partition.
    """

    type: str = "simple"
    epoch: int = -1
    protocol_type: str = ""
    members: set[str] = field(default_factory=set)
    offsets: dict[tuple[str, int], CommittedOffset] = field(default_factory=dict)


@dataclass(slots=True)
class CoordinatorState:
    """Groups, transactions and the start offsets of share groups.

    Attributes:
        groups: by group id.
        transactions: fields of the latest record, by transactional id.
        share_offsets: start offsets of share groups, by group, topic id and partition.
        problems: descriptions of what could not be read.
    """

    groups: dict[str, Group] = field(default_factory=dict)
    transactions: dict[str, dict[str, Any]] = field(default_factory=dict)
    share_offsets: dict[tuple[str, str, int], int] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)

    def replay(self, topic: str, batches: Iterable[RecordBatch]) -> None:
        """Replay one partition of a coordinator's topic; damage ends the replay, and is added to `problems`."""
        try:
            for record in decided_records(batches):
                self._apply(decode_coordinator_record(topic, record.key, record.value), record.offset)
        except FormatError as error:
            self.problems.append(str(error))

    def _apply(self, decoded: Decoded, record_offset: int) -> None:
        kind, value = decoded["type"], decoded.get("value")
        if isinstance(value, dict) and "unknownVersion" in value:
            self.problems.append(f"{kind} has version {value['unknownVersion']}, from a later release of Kafka")
        elif kind == "offsetCommit":
            self._commit(decoded["key"], value, record_offset)
        elif kind in GROUP_TYPES:
            self._group(GROUP_TYPES[kind], decoded["key"], value)
        elif kind in MEMBER_RECORDS:
            self._member(decoded["key"], value)
        elif kind == "transactionState":
            self._transaction(decoded["key"]["transactionalId"], value)
        elif kind in {"shareSnapshot", "shareUpdate"}:
            self._share(decoded["key"], value)

    def _commit(self, key: Decoded, value: Decoded | None, record_offset: int) -> None:
        offsets = self.groups.setdefault(key["group"], Group()).offsets
        partition = (key["topic"], key["partition"])
        known = offsets.get(partition)
        if known is not None and known.record_offset > record_offset:
            return  # the end of a transaction does not replace later commits
        if value is None:
            offsets.pop(partition, None)
        else:
            offsets[partition] = _committed(value, record_offset)

    def _group(self, kind: str, key: Decoded, value: Decoded | None) -> None:
        name = key["group"] if kind == "classic" else key["groupId"]
        if value is None:
            self._forget(name, kind)
            return
        group = self.groups.setdefault(name, Group())
        group.type = kind
        group.epoch = value["generation"] if kind == "classic" else value["epoch"]
        group.protocol_type = value.get("protocolType") or ""
        if kind == "classic":
            group.members = {member["memberId"] for member in value["members"]}

    def _forget(self, name: str, kind: str) -> None:
        group = self.groups.get(name)
        if group is not None and group.type == kind:
            group.type, group.epoch, group.members = "simple", -1, set()

    def _member(self, key: Decoded, value: Decoded | None) -> None:
        members = self.groups.setdefault(key["groupId"], Group()).members
        if value is None:
            members.discard(key["memberId"])
        else:
            members.add(key["memberId"])

    def _transaction(self, name: str, value: Decoded | None) -> None:
        if value is None:
            self.transactions.pop(name, None)
        else:
            self.transactions[name] = dict(value)

    def _share(self, key: Decoded, value: Decoded | None) -> None:
        partition = (key["groupId"], key["topicId"], key["partition"])
        if value is None:
            self.share_offsets.pop(partition, None)
        elif value["startOffset"] >= 0:
            self.share_offsets[partition] = value["startOffset"]


def _committed(value: Decoded, record_offset: int) -> CommittedOffset:
    return CommittedOffset(
        value["offset"],
        value.get("leaderEpoch", -1),
        value["metadata"],
        value.get("commitTimestamp", NO_TIMESTAMP),
        value.get("topicId", ""),
        record_offset,
    )


def decided_records(batches: Iterable[RecordBatch]) -> Iterator[Record | Message]:
    """Yield the records that a coordinator applies; it applies those of a transaction when it is committed.

    Unlike a read_committed consumer, a coordinator does not stop at an open transaction.

    Raises:
        FormatError: while iterating: at the first entry that is damaged.
    """
    pending: dict[int, list[Record | Message]] = {}
    for batch in batches:
        header = batch.header
        if getattr(header, "is_control", False):
            records = pending.pop(header.producer_id, [])
            if _is_commit(batch):
                yield from records
        elif getattr(header, "is_transactional", False):
            pending.setdefault(header.producer_id, []).extend(batch.records)
        else:
            yield from batch.records


def _is_commit(batch: RecordBatch) -> bool:
    at = Location(position=batch.position)
    markers = (decode_control_record(record.key, record.value, at) for record in batch.records)
    return any(marker.type is ControlRecordType.COMMIT for marker in markers)


def transaction_state(fields: Decoded) -> str:
    """Return the name of a transaction's state; the number of an unknown one."""
    number = fields["transactionStatus"]
    return TRANSACTION_STATES[number] if 0 <= number < len(TRANSACTION_STATES) else str(number)

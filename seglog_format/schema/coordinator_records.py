"""Records of `__consumer_offsets` and `__transaction_state`: what the coordinators remember.

Key and value each start with a version of 16 bits; the version of the key says what kind of record it is. A null value
deletes. These topics are ordinary ones to the log format, so nothing here decides whether a record is valid.
"""

from __future__ import annotations

from dataclasses import dataclass

from construct import Int16sb, Struct

from seglog_format.schema.fields import Doc
from seglog_format.schema.protocol import (
    INT8,
    INT16,
    INT32,
    INT64,
    UUID,
    Field,
    MessageDefinition,
    array,
    blob,
    nullable_structure,
    string,
    structure,
)

VersionPrefix = Struct("version" / Int16sb * Doc("Of the message that follows.", "SEG-CTL-010", since="0.8.2"))


@dataclass(frozen=True, slots=True)
class CoordinatorRecord:
    """One kind of record.

    Attributes:
        type: name for output, camelCase.
        key: the message after the key's version.
        value: the message after the value's version.
    """

    type: str
    key: MessageDefinition
    value: MessageDefinition


def _key(name: str, *fields: Field) -> MessageDefinition:
    return MessageDefinition(name, fields, latest=32767, flexible_since=None)


_GROUP_ID = Field("groupId", string)
_MEMBER_ID = Field("memberId", string)

_OFFSET_COMMIT = CoordinatorRecord(
    "offsetCommit",
    _key("OffsetCommitKey", Field("group", string), Field("topic", string), Field("partition", INT32)),
    MessageDefinition(
        "OffsetCommitValue",
        (
            Field("offset", INT64),
            Field("leaderEpoch", INT32, since=3),
            Field("metadata", string),
            Field("commitTimestamp", INT64),
            Field("expireTimestamp", INT64, since=1, until=1),
            Field("topicId", UUID, since=4, tag=0),
        ),
        latest=4,
        flexible_since=4,
    ),
)

_MEMBER = structure(
    _MEMBER_ID,
    Field("groupInstanceId", string, since=3, nullable=True),
    Field("clientId", string),
    Field("clientHost", string),
    Field("rebalanceTimeout", INT32, since=1),
    Field("sessionTimeout", INT32),
    Field("subscription", blob),
    Field("assignment", blob),
)

_GROUP_METADATA = CoordinatorRecord(
    "groupMetadata",
    _key("GroupMetadataKey", Field("group", string)),
    MessageDefinition(
        "GroupMetadataValue",
        (
            Field("protocolType", string),
            Field("generation", INT32),
            Field("protocol", string, nullable=True),
            Field("leader", string, nullable=True),
            Field("currentStateTimestamp", INT64, since=2),
            Field("members", array(_MEMBER)),
        ),
        latest=4,
        flexible_since=4,
    ),
)

_CONSUMER_GROUP_METADATA = CoordinatorRecord(
    "consumerGroupMetadata",
    _key("ConsumerGroupMetadataKey", _GROUP_ID),
    MessageDefinition(
        "ConsumerGroupMetadataValue",
        (Field("epoch", INT32), Field("metadataHash", INT64, tag=0), Field("creationTimeMs", INT64, tag=1)),
    ),
)

_PARTITION_RACKS = structure(Field("partition", INT32), Field("racks", array(string)))

_TOPIC_METADATA = structure(
    Field("topicId", UUID),
    Field("topicName", string),
    Field("numPartitions", INT32),
    Field("partitionMetadata", array(_PARTITION_RACKS)),
)

_CONSUMER_GROUP_PARTITION_METADATA = CoordinatorRecord(
    "consumerGroupPartitionMetadata",
    _key("ConsumerGroupPartitionMetadataKey", _GROUP_ID),
    MessageDefinition("ConsumerGroupPartitionMetadataValue", (Field("topics", array(_TOPIC_METADATA)),)),
)

_CLASSIC_PROTOCOL = structure(Field("name", string), Field("metadata", blob))

_CLASSIC_MEMBER_METADATA = nullable_structure(
    Field("sessionTimeoutMs", INT32),
    Field("supportedProtocols", array(_CLASSIC_PROTOCOL)),
)

_CONSUMER_GROUP_MEMBER_METADATA = CoordinatorRecord(
    "consumerGroupMemberMetadata",
    _key("ConsumerGroupMemberMetadataKey", _GROUP_ID, _MEMBER_ID),
    MessageDefinition(
        "ConsumerGroupMemberMetadataValue",
        (
            Field("instanceId", string, nullable=True),
            Field("rackId", string, nullable=True),
            Field("clientId", string),
            Field("clientHost", string),
            Field("subscribedTopicNames", array(string)),
            Field("subscribedTopicRegex", string, nullable=True),
            Field("rebalanceTimeoutMs", INT32),
            Field("serverAssignor", string, nullable=True),
            Field("classicMemberMetadata", _CLASSIC_MEMBER_METADATA, nullable=True, tag=0),
        ),
    ),
)

_CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA = CoordinatorRecord(
    "consumerGroupTargetAssignmentMetadata",
    _key("ConsumerGroupTargetAssignmentMetadataKey", _GROUP_ID),
    MessageDefinition("ConsumerGroupTargetAssignmentMetadataValue", (Field("assignmentEpoch", INT32),)),
)

_TOPIC_PARTITIONS = structure(
    Field("topicId", UUID),
    Field("partitions", array(INT32)),
    Field("assignmentEpochs", array(INT32), nullable=True, tag=0),
)

_CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER = CoordinatorRecord(
    "consumerGroupTargetAssignmentMember",
    _key("ConsumerGroupTargetAssignmentMemberKey", _GROUP_ID, _MEMBER_ID),
    MessageDefinition(
        "ConsumerGroupTargetAssignmentMemberValue", (Field("topicPartitions", array(_TOPIC_PARTITIONS)),)
    ),
)

_CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT = CoordinatorRecord(
    "consumerGroupCurrentMemberAssignment",
    _key("ConsumerGroupCurrentMemberAssignmentKey", _GROUP_ID, _MEMBER_ID),
    MessageDefinition(
        "ConsumerGroupCurrentMemberAssignmentValue",
        (
            Field("memberEpoch", INT32),
            Field("previousMemberEpoch", INT32),
            Field("state", INT8),
            Field("assignedPartitions", array(_TOPIC_PARTITIONS)),
            Field("partitionsPendingRevocation", array(_TOPIC_PARTITIONS)),
        ),
    ),
)

_CONSUMER_GROUP_REGULAR_EXPRESSION = CoordinatorRecord(
    "consumerGroupRegularExpression",
    _key("ConsumerGroupRegularExpressionKey", _GROUP_ID, Field("regularExpression", string)),
    MessageDefinition(
        "ConsumerGroupRegularExpressionValue",
        (Field("topics", array(string)), Field("version", INT64), Field("timestamp", INT64)),
    ),
)

_TRANSACTION_PARTITIONS = structure(Field("topic", string), Field("partitionIds", array(INT32)))

_TRANSACTION_STATE = CoordinatorRecord(
    "transactionState",
    _key("TransactionLogKey", Field("transactionalId", string)),
    MessageDefinition(
        "TransactionLogValue",
        (
            Field("producerId", INT64),
            Field("previousProducerId", INT64, since=1, tag=0),
            Field("nextProducerId", INT64, since=1, tag=1),
            Field("producerEpoch", INT16),
            Field("transactionTimeoutMs", INT32),
            Field("transactionStatus", INT8),
            Field("transactionPartitions", array(_TRANSACTION_PARTITIONS), nullable=True),
            Field("transactionLastUpdateTimestampMs", INT64),
            Field("transactionStartTimestampMs", INT64),
            Field("clientTransactionVersion", INT16, since=1, tag=2),
        ),
        latest=1,
        flexible_since=1,
    ),
)

CONSUMER_OFFSETS_RECORDS = {
    0: _OFFSET_COMMIT,
    1: _OFFSET_COMMIT,
    2: _GROUP_METADATA,
    3: _CONSUMER_GROUP_METADATA,
    4: _CONSUMER_GROUP_PARTITION_METADATA,
    5: _CONSUMER_GROUP_MEMBER_METADATA,
    6: _CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA,
    7: _CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER,
    8: _CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT,
    16: _CONSUMER_GROUP_REGULAR_EXPRESSION,
}
"""Kinds of records in `__consumer_offsets`, by the version of the key; share and streams groups are not described."""

TRANSACTION_STATE_RECORDS = {0: _TRANSACTION_STATE}
"""Kinds of records in `__transaction_state`, by the version of the key."""

COORDINATOR_TOPICS = {
    "__consumer_offsets": CONSUMER_OFFSETS_RECORDS,
    "__transaction_state": TRANSACTION_STATE_RECORDS,
}

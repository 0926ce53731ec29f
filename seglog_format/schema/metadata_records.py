"""Records of `__cluster_metadata`, of its snapshots and of `bootstrap.checkpoint`: what the controllers decided.

The value is a frame: the frame's version, the type of the record and the version of the record, each an unsigned
varint, then the message. Keys are null. To the log format these are ordinary records.
"""

from __future__ import annotations

from construct import Struct, Tell

from seglog_format.schema.fields import Doc
from seglog_format.schema.protocol import (
    BOOL,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT16,
    UUID,
    Field,
    MessageDefinition,
    array,
    blob,
    string,
    structure,
)
from seglog_format.schema.varint import UnsignedVarint32

CLUSTER_METADATA_TOPIC = "__cluster_metadata"
FRAME_VERSION = 1

MetadataFrame = Struct(
    "frameVersion" / UnsignedVarint32 * Doc("Version of this frame: 1.", "SEG-CTL-010", since="3.0.0"),
    "type" / UnsignedVarint32 * Doc("Type of the record.", "SEG-CTL-010", since="3.0.0"),
    "version" / UnsignedVarint32 * Doc("Version of the record.", "SEG-CTL-010", since="3.0.0"),
    "end" / Tell,
)


def _record(name: str, *fields: Field, latest: int = 0) -> MessageDefinition:
    return MessageDefinition(name, fields, latest=latest, broker="3.0.0")


_ENDPOINT = structure(
    Field("name", string), Field("host", string), Field("port", UINT16), Field("securityProtocol", INT16)
)
_FEATURE = structure(Field("name", string), Field("minSupportedVersion", INT16), Field("maxSupportedVersion", INT16))
_QUOTA_ENTITY = structure(Field("entityType", string), Field("entityName", string, nullable=True))

_BROKER_ID = Field("brokerId", INT32)
_BROKER_EPOCH = Field("brokerEpoch", INT64)
_TOPIC_ID = Field("topicId", UUID)

METADATA_RECORDS = {
    0: _record(
        "REGISTER_BROKER_RECORD",
        _BROKER_ID,
        Field("isMigratingZkBroker", BOOL, since=2),
        Field("incarnationId", UUID),
        _BROKER_EPOCH,
        Field("endPoints", array(_ENDPOINT)),
        Field("features", array(_FEATURE)),
        Field("rack", string, nullable=True),
        Field("fenced", BOOL),
        Field("inControlledShutdown", BOOL, since=1),
        Field("logDirs", array(UUID), since=3, tag=0),
        Field("cordonedLogDirs", array(UUID), since=4, nullable=True, tag=1),
        latest=4,
    ),
    1: _record("UNREGISTER_BROKER_RECORD", _BROKER_ID, _BROKER_EPOCH),
    2: _record("TOPIC_RECORD", Field("name", string), _TOPIC_ID),
    3: _record(
        "PARTITION_RECORD",
        Field("partitionId", INT32),
        _TOPIC_ID,
        Field("replicas", array(INT32)),
        Field("isr", array(INT32)),
        Field("removingReplicas", array(INT32)),
        Field("addingReplicas", array(INT32)),
        Field("leader", INT32),
        Field("leaderRecoveryState", INT8, tag=0),
        Field("leaderEpoch", INT32),
        Field("partitionEpoch", INT32),
        Field("directories", array(UUID), since=1),
        Field("eligibleLeaderReplicas", array(INT32), since=2, nullable=True, tag=1),
        Field("lastKnownElr", array(INT32), since=2, nullable=True, tag=2),
        latest=2,
    ),
    4: _record(
        "CONFIG_RECORD",
        Field("resourceType", INT8),
        Field("resourceName", string),
        Field("name", string),
        Field("value", string, nullable=True),
    ),
    5: _record(
        "PARTITION_CHANGE_RECORD",
        Field("partitionId", INT32),
        _TOPIC_ID,
        Field("isr", array(INT32), nullable=True, tag=0),
        Field("leader", INT32, tag=1),
        Field("replicas", array(INT32), nullable=True, tag=2),
        Field("removingReplicas", array(INT32), nullable=True, tag=3),
        Field("addingReplicas", array(INT32), nullable=True, tag=4),
        Field("leaderRecoveryState", INT8, tag=5),
        Field("eligibleLeaderReplicas", array(INT32), since=2, nullable=True, tag=6),
        Field("lastKnownElr", array(INT32), since=2, nullable=True, tag=7),
        Field("directories", array(UUID), since=1, nullable=True, tag=8),
        latest=2,
    ),
    7: _record("FENCE_BROKER_RECORD", Field("id", INT32), Field("epoch", INT64)),
    8: _record("UNFENCE_BROKER_RECORD", Field("id", INT32), Field("epoch", INT64)),
    9: _record("REMOVE_TOPIC_RECORD", _TOPIC_ID),
    10: _record(
        "DELEGATION_TOKEN_RECORD",
        Field("owner", string),
        Field("requester", string),
        Field("renewers", array(string)),
        Field("issueTimestamp", INT64),
        Field("maxTimestamp", INT64),
        Field("expirationTimestamp", INT64),
        Field("tokenId", string),
    ),
    11: _record(
        "USER_SCRAM_CREDENTIAL_RECORD",
        Field("name", string),
        Field("mechanism", INT8),
        Field("salt", blob),
        Field("storedKey", blob),
        Field("serverKey", blob),
        Field("iterations", INT32),
    ),
    12: _record("FEATURE_LEVEL_RECORD", Field("name", string), Field("featureLevel", INT16)),
    14: _record(
        "CLIENT_QUOTA_RECORD",
        Field("entity", array(_QUOTA_ENTITY)),
        Field("key", string),
        Field("value", FLOAT64),
        Field("remove", BOOL),
    ),
    15: _record("PRODUCER_IDS_RECORD", _BROKER_ID, _BROKER_EPOCH, Field("nextProducerId", INT64)),
    17: _record(
        "BROKER_REGISTRATION_CHANGE_RECORD",
        _BROKER_ID,
        _BROKER_EPOCH,
        Field("fenced", INT8, tag=0),
        Field("inControlledShutdown", INT8, since=1, tag=1),
        Field("logDirs", array(UUID), since=2, tag=2),
        Field("cordonedLogDirs", array(UUID), since=3, nullable=True, tag=3),
        latest=3,
    ),
    18: _record(
        "ACCESS_CONTROL_ENTRY_RECORD",
        Field("id", UUID),
        Field("resourceType", INT8),
        Field("resourceName", string),
        Field("patternType", INT8),
        Field("principal", string),
        Field("host", string),
        Field("operation", INT8),
        Field("permissionType", INT8),
    ),
    19: _record("REMOVE_ACCESS_CONTROL_ENTRY_RECORD", Field("id", UUID)),
    20: _record("NO_OP_RECORD"),
    21: _record("ZK_MIGRATION_STATE_RECORD", Field("zkMigrationState", INT8)),
    22: _record("REMOVE_USER_SCRAM_CREDENTIAL_RECORD", Field("name", string), Field("mechanism", INT8)),
    23: _record("BEGIN_TRANSACTION_RECORD", Field("name", string, nullable=True, tag=0)),
    24: _record("END_TRANSACTION_RECORD"),
    25: _record("ABORT_TRANSACTION_RECORD", Field("reason", string, nullable=True, tag=0)),
    26: _record("REMOVE_DELEGATION_TOKEN_RECORD", Field("tokenId", string)),
    27: _record(
        "REGISTER_CONTROLLER_RECORD",
        Field("controllerId", INT32),
        Field("incarnationId", UUID),
        Field("zkMigrationReady", BOOL),
        Field("endPoints", array(_ENDPOINT)),
        Field("features", array(_FEATURE)),
    ),
    28: _record("CLEAR_ELR_RECORD", Field("topicName", string)),
    29: _record("UNREGISTER_CONTROLLER_RECORD", Field("controllerId", INT32)),
}
"""Messages by type. A type that is missing here was never released, or is younger than this text."""

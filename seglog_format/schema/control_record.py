"""Keys and values of control records (chapter 32).

Transaction markers have a layout of their own; the KRaft ones are messages of Kafka's protocol, whose first field is
the version that the rest follows. Names are Kafka's own, in camelCase.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from construct import Int16sb, Int32sb, Struct

from seglog_format.schema.fields import Checked, Doc
from seglog_format.schema.protocol import (
    INT16,
    INT32,
    INT64,
    UINT16,
    UUID,
    Field,
    MessageDefinition,
    array,
    declaration,
    string,
    structure,
)

if TYPE_CHECKING:
    from construct import Construct


def _not_negative(value: int) -> bool:
    return value >= 0


ControlRecordKey = Struct(
    "version"
    / Checked(Int16sb, _not_negative, "a version of 0 or more", "SEG-CTL-001")
    * Doc(
        "Version of the key: 0; higher ones are read as 0.", "SEG-CTL-001", "SEG-CTL-002", since="0.11.0", default="0"
    ),
    "type"
    / Int16sb
    * Doc("0 ABORT, 1 COMMIT, 2 to 6 of KRaft; others are skipped.", "SEG-CTL-001", "SEG-CTL-003", since="0.11.0"),
)

EndTransactionMarker = Struct(
    "version"
    / Checked(Int16sb, _not_negative, "a version of 0 or more", "SEG-CTL-004")
    * Doc("Version of the value: 0; higher ones are read as 0.", "SEG-CTL-004", since="0.11.0", default="0"),
    "coordinatorEpoch"
    / Int32sb
    * Doc("Epoch of the transaction coordinator that ended the transaction.", "SEG-CTL-004", since="0.11.0"),
)

CONTROL_RECORD_KEY_SIZE = 4
END_TRANSACTION_MARKER_SIZE = 6

assert ControlRecordKey.sizeof() == CONTROL_RECORD_KEY_SIZE
assert EndTransactionMarker.sizeof() == END_TRANSACTION_MARKER_SIZE


def _kraft_version(version: Construct) -> Checked:
    return Checked(version, _not_negative, "a version of 0 or more", "SEG-CTL-006")


_VERSION = Field("version", INT16, "Version of this value; what follows depends on it.", check=_kraft_version)

_VOTER = structure(
    Field("voterId", INT32, "Node id of the voter."),
    Field("voterDirectoryId", UUID, "Id of the voter's metadata log directory.", since=1),
)

_ENDPOINT = structure(
    Field("name", string, "Name of the listener."),
    Field("host", string, "Host name."),
    Field("port", UINT16, "Port."),
)

_KRAFT_VERSION_FEATURE = structure(
    Field("minSupportedVersion", INT16, "Lowest quorum version that the voter supports."),
    Field("maxSupportedVersion", INT16, "Highest quorum version that the voter supports."),
)

_KRAFT_VOTER = structure(
    Field("voterId", INT32, "Node id of the voter."),
    Field("voterDirectoryId", UUID, "Id of the voter's metadata log directory."),
    Field("endpoints", array(_ENDPOINT), "Where the voter can be reached."),
    Field("kRaftVersionFeature", _KRAFT_VERSION_FEATURE, "Quorum versions that the voter supports."),
)


def _kraft_value(name: str, *fields: Field, broker: str, latest: int = 0) -> MessageDefinition:
    return MessageDefinition(name, (_VERSION, *fields), latest=latest, requirement="SEG-CTL-006", broker=broker)


LEADER_CHANGE = _kraft_value(
    "LeaderChangeMessage",
    Field("leaderId", INT32, "Node id of the new leader."),
    Field("voters", array(_VOTER), "Voters of the quorum in this epoch."),
    Field("grantingVoters", array(_VOTER), "Voters that voted for the leader."),
    broker="3.0.0",
    latest=1,
)

SNAPSHOT_HEADER = _kraft_value(
    "SnapshotHeaderRecord",
    Field("lastContainedLogTimestamp", INT64, "Append time (ms) of the last record that the snapshot covers."),
    broker="3.0.0",
)

SNAPSHOT_FOOTER = _kraft_value("SnapshotFooterRecord", broker="3.0.0")

KRAFT_VERSION = _kraft_value(
    "KRaftVersionRecord",
    Field("kRaftVersion", INT16, "Quorum version in force from here on."),
    broker="3.8.0",
)

KRAFT_VOTERS = _kraft_value(
    "VotersRecord",
    Field("voters", array(_KRAFT_VOTER), "Voters of the quorum from here on."),
    broker="3.8.0",
)

KRAFT_VALUES = {2: LEADER_CHANGE, 3: SNAPSHOT_HEADER, 4: SNAPSHOT_FOOTER, 5: KRAFT_VERSION, 6: KRAFT_VOTERS}
"""Definition of the value, by the type in the key."""

LeaderChangeV0 = declaration(LEADER_CHANGE, 0)
LeaderChangeV1 = declaration(LEADER_CHANGE, 1)
SnapshotHeader = declaration(SNAPSHOT_HEADER, 0)
SnapshotFooter = declaration(SNAPSHOT_FOOTER, 0)
KRaftVersion = declaration(KRAFT_VERSION, 0)
KRaftVoters = declaration(KRAFT_VOTERS, 0)

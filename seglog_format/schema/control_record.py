"""Keys and values of control records (chapter 32).

End markers have a layout of their own. Control records of KRaft are messages of Kafka's protocol; the first field is
the version, which decides the layout of the rest. Names are Kafka's own, in camelCase.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from construct import Int16sb, Int32sb, Struct

from seglog_format.schema.fields import Checked, Doc
from seglog_format.schema.protocol import MessageDefinition, declaration, message, rows

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


_ROWS = {row["name"]: row for row in rows("control_records")}

_VERSION = "Version of this value; what follows depends on it."
_VOTER_ID = "Node id of the voter."
_DIRECTORY_ID = "Id of the voter's metadata log directory."


def _kraft_value(name: str, broker: str, docs: dict[str, str]) -> MessageDefinition:
    return message(
        name,
        _ROWS[name],
        broker=broker,
        requirement="SEG-CTL-006",
        docs={"version": _VERSION, **docs},
        checks={"version": _kraft_version},
    )


LEADER_CHANGE = _kraft_value(
    "LeaderChangeMessage",
    "3.0.0",
    {
        "leaderId": "Node id of the new leader.",
        "voters": "Voters of the quorum in this epoch.",
        "voters.voterId": _VOTER_ID,
        "voters.voterDirectoryId": _DIRECTORY_ID,
        "grantingVoters": "Voters that voted for the leader.",
        "grantingVoters.voterId": _VOTER_ID,
        "grantingVoters.voterDirectoryId": _DIRECTORY_ID,
    },
)

(EARLY_LEADER_CHANGE,) = LEADER_CHANGE.earlier
"""LEADER_CHANGE as Kafka 2.8 wrote it: under another type number, and without a version (SEG-CTL-008)."""

SNAPSHOT_HEADER = _kraft_value(
    "SnapshotHeaderRecord",
    "3.0.0",
    {"lastContainedLogTimestamp": "Append time (ms) of the last record that the snapshot covers."},
)

SNAPSHOT_FOOTER = _kraft_value("SnapshotFooterRecord", "3.0.0", {})

KRAFT_VERSION = _kraft_value("KRaftVersionRecord", "3.8.0", {"kRaftVersion": "Quorum version in force from here on."})

KRAFT_VOTERS = _kraft_value(
    "VotersRecord",
    "3.8.0",
    {
        "voters": "Voters of the quorum from here on.",
        "voters.voterId": _VOTER_ID,
        "voters.voterDirectoryId": _DIRECTORY_ID,
        "voters.endpoints": "Where the voter can be reached.",
        "voters.endpoints.name": "Name of the listener.",
        "voters.endpoints.host": "Host name.",
        "voters.endpoints.port": "Port.",
        "voters.kRaftVersionFeature": "Quorum versions that the voter supports.",
        "voters.kRaftVersionFeature.minSupportedVersion": "Lowest quorum version that the voter supports.",
        "voters.kRaftVersionFeature.maxSupportedVersion": "Highest quorum version that the voter supports.",
    },
)

KRAFT_VALUES = {2: LEADER_CHANGE, 3: SNAPSHOT_HEADER, 4: SNAPSHOT_FOOTER, 5: KRAFT_VERSION, 6: KRAFT_VOTERS}
"""Definitions of the value, by the type in the key."""

LeaderChangeV0 = declaration(LEADER_CHANGE, 0)
LeaderChangeV1 = declaration(LEADER_CHANGE, 1)
SnapshotHeader = declaration(SNAPSHOT_HEADER, 0)
SnapshotFooter = declaration(SNAPSHOT_FOOTER, 0)
KRaftVersion = declaration(KRAFT_VERSION, 0)
KRaftVoters = declaration(KRAFT_VOTERS, 0)

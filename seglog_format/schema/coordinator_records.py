"""Records of `__consumer_offsets`, `__transaction_state` and `__share_group_state`: the state of the coordinators.

Key and value each start with a version of 16 bits; the version of the key is the kind of the record. A null value
deletes the state of the key. To the log format these are ordinary topics, so these declarations do not decide whether
a record is valid.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from construct import Int16sb, Struct

from seglog_format.names import CONSUMER_OFFSETS, SHARE_GROUP_STATE, TRANSACTION_STATE
from seglog_format.schema.fields import Doc
from seglog_format.schema.protocol import lower_camel, message, rows

if TYPE_CHECKING:
    from seglog_format.schema.protocol import MessageDefinition

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


TYPES: Final = {"TransactionLog": "transactionState"}
"""Names for output that differ from those of Kafka's messages, because they are older."""


def _kinds(table: str, broker: str) -> dict[int, CoordinatorRecord]:
    """Return kinds of records by the version of the key."""
    known = {row["name"]: row for row in rows(table)}
    names = [name.removesuffix("Key") for name in known if name.endswith("Key")]
    return {
        known[f"{name}Key"]["type"]: CoordinatorRecord(
            TYPES.get(name, lower_camel(name)),
            message(f"{name}Key", known[f"{name}Key"], broker=broker),
            message(f"{name}Value", known[f"{name}Value"], broker=broker),
        )
        for name in names
    }


CONSUMER_OFFSETS_RECORDS = _kinds("consumer_offsets", "0.8.2")
CONSUMER_OFFSETS_RECORDS[0] = CONSUMER_OFFSETS_RECORDS[1]  # the same bytes; Kafka has two names for them since 4.1
"""Kinds of records in `__consumer_offsets`: of classic, consumer, share and streams groups."""

TRANSACTION_STATE_RECORDS = _kinds("transaction_state", "0.11.0")
"""Kinds of records in `__transaction_state`."""

SHARE_GROUP_STATE_RECORDS = _kinds("share_group_state", "4.0.0")
"""Kinds of records in `__share_group_state`."""

COORDINATOR_TOPICS = {
    CONSUMER_OFFSETS: CONSUMER_OFFSETS_RECORDS,
    TRANSACTION_STATE: TRANSACTION_STATE_RECORDS,
    SHARE_GROUP_STATE: SHARE_GROUP_STATE_RECORDS,
}
"""Kinds of records by topic."""

CONSUMER_PROTOCOL = {row["name"]: message(row["name"], row, broker="0.9.0") for row in rows("consumer_protocol")}
"""Messages in the byte fields of consumer groups' records, after a version of 16 bits."""

TRANSACTION_STATES: Final = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
)
"""Names of the states of a transaction, by number."""

DELIVERY_STATES: Final = {0: "Available", 1: "Acquired", 2: "Acknowledged", 3: "Archiving", 4: "Archived"}
"""Names of the delivery states of records in a share group, by number; 3 is new in 4.4."""

_MEMBER_STATES: Final = {0: "Stable", 1: "UnrevokedPartitions", 2: "UnreleasedPartitions", 127: "Unknown"}
_STREAMS_MEMBER_STATES: Final = {1: "Stable", 2: "UnrevokedTasks", 3: "UnreleasedTasks", 127: "Unknown"}

CODES: Final = {
    "transactionState": {"transactionStatus": dict(enumerate(TRANSACTION_STATES))},
    "shareSnapshot": {"stateBatches[].deliveryState": DELIVERY_STATES},
    "shareUpdate": {"stateBatches[].deliveryState": DELIVERY_STATES},
    "consumerGroupCurrentMemberAssignment": {"state": _MEMBER_STATES},
    "shareGroupCurrentMemberAssignment": {"state": _MEMBER_STATES},
    "streamsGroupCurrentMemberAssignment": {"state": _STREAMS_MEMBER_STATES},
}
"""Meaning of the numbers of a field, by type of record and path of the field; states of streams members start at 1."""

EMBEDDED: Final = {
    "groupMetadata": {
        "members.subscription": "ConsumerProtocolSubscription",
        "members.assignment": "ConsumerProtocolAssignment",
    },
    "consumerGroupMemberMetadata": {
        "classicMemberMetadata.supportedProtocols.metadata": "ConsumerProtocolSubscription",
    },
}
"""The byte fields with messages of the consumer protocol, by type of record."""

"""Root files of a log directory that are no checkpoints, and the quorum's state file (chapter 11)."""

from typing import Any

from construct import Adapter, Construct, Struct

from seglog_format.names import parse_decimal
from seglog_format.schema.fields import Checked, Doc
from seglog_format.schema.text import Member, Property


def _is_int32_or_missing(text: str | None) -> bool:
    return text is None or parse_decimal(text, bits=32) is not None


def is_int64(value: object) -> bool:
    """Return whether a JSON value is a 64-bit integer."""
    return isinstance(value, int) and not isinstance(value, bool) and -(2**63) <= value < 2**63


def _is_zero(value: object) -> bool:
    return is_int64(value) and value == 0


class Number(Adapter):
    """A property that is a 32-bit number; it has a default if it is missing."""

    type_name = "property, decimal int32"

    def __init__(self, subcon: Construct, default: int | None = None) -> None:
        super().__init__(subcon)
        self.default = default

    def _decode(self, obj: str | None, context: Any, path: str) -> int | None:
        return self.default if obj is None else parse_decimal(obj, bits=32)


def _number(key: str) -> Construct:
    return Checked(Property(key), _is_int32_or_missing, "a decimal number of 32 bits", "SEG-LDR-005")


MetaProperties = Struct(
    "version" / Number(_number("version"), 0) * Doc("0 (also where it is missing) or 1.", "SEG-LDR-005", since="0.9.0"),
    "broker_id" / Number(_number("broker.id")) * Doc("In version 0: id of the broker.", "SEG-LDR-005", since="0.9.0"),
    "node_id" / Number(_number("node.id")) * Doc("In version 1: id of the node.", "SEG-LDR-005", since="2.8.0"),
    "cluster_id" / Property("cluster.id") * Doc("Cluster that the directory belongs to.", "SEG-LDR-005", since="2.8.2"),
    "directory_id"
    / Property("directory.id")
    * Doc("UUID of this log directory in base64url.", "SEG-LDR-005", since="3.7.0"),
)

CleanShutdown = Struct(
    "version"
    / Checked(Member("version", int), _is_zero, "version 0", "SEG-LDR-004")
    * Doc("0.", "SEG-LDR-004", since="3.7.0"),
    "broker_epoch"
    / Checked(Member("brokerEpoch", int), is_int64, "a number", "SEG-LDR-004")
    * Doc("Epoch under which the broker was registered; -1 none.", "SEG-LDR-004", since="3.7.0", default="-1"),
)

QuorumState = Struct(
    "data_version"
    / Checked(Member("data_version", int), is_int64, "a number", "SEG-LDR-006")
    * Doc("Version of the file: 0 or 1.", "SEG-LDR-006", since="2.7.0"),
    "leader_id" / Member("leaderId", int) * Doc("Leader; -1 none.", "SEG-LDR-006", since="2.7.0", default="-1"),
    "leader_epoch" / Member("leaderEpoch", int) * Doc("Its epoch.", "SEG-LDR-006", since="2.7.0"),
    "voted_id"
    / Member("votedId", int)
    * Doc("Who got this node's vote; -1 none.", "SEG-LDR-006", since="2.7.0", default="-1"),
    "voted_directory_id"
    / Member("votedDirectoryId", str)
    * Doc("UUID of its log directory in base64url; in version 0 missing.", "SEG-LDR-006", since="3.8.0"),
    "current_voters"
    / Member("currentVoters", list)
    * Doc(
        "Objects with a `voterId`; in version 1 missing: a dynamic quorum names its voters in the log.",
        "SEG-LDR-006",
        since="2.7.0",
    ),
)

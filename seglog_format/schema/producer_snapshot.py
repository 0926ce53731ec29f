"""Producer snapshot (chapter 50): a header of 10 bytes and one entry for each producer."""

from construct import Array, Int16sb, Int32sb, Int32ub, Int64sb, Struct, this

from seglog_format.schema.fields import Doc

ProducerSnapshotHeader = Struct(
    "version" / Int16sb * Doc("Version of the file: 1.", "SEG-PSN-001", since="0.11.0", default="1"),
    "crc" / Int32ub * Doc("CRC-32C of everything after this field.", "SEG-PSN-002", since="0.11.0"),
    "count" / Int32sb * Doc("Number of entries.", "SEG-PSN-003", since="0.11.0"),
)

ProducerStateEntry = Struct(
    "producer_id" / Int64sb * Doc("Producer; each occurs once, in no particular order.", "SEG-PSN-004", since="0.11.0"),
    "producer_epoch" / Int16sb * Doc("Its latest epoch.", "SEG-PSN-004", since="0.11.0"),
    "last_sequence"
    / Int32sb
    * Doc("Sequence number of its last data record; -1 none.", "SEG-PSN-004", since="0.11.0", default="-1"),
    "last_offset"
    / Int64sb
    * Doc("Offset of its last data record; -1 none.", "SEG-PSN-006", "SEG-PSN-004", since="0.11.0", default="-1"),
    "offset_delta"
    / Int32sb
    * Doc("Last offset less first offset of its newest data batch.", "SEG-PSN-004", since="0.11.0"),
    "timestamp_ms"
    / Int64sb
    * Doc("Timestamp of what it appended last, markers included.", "SEG-PSN-004", since="0.11.0"),
    "coordinator_epoch"
    / Int32sb
    * Doc("Coordinator epoch of its last transaction marker; -1 none.", "SEG-PSN-004", since="0.11.0", default="-1"),
    "current_txn_first_offset"
    / Int64sb
    * Doc("First offset of its open transaction; -1 none.", "SEG-PSN-006", "SEG-PSN-004", since="0.11.0", default="-1"),
)

ProducerSnapshot = Struct(
    *ProducerSnapshotHeader.subcons,
    "producers" / Array(this.count, ProducerStateEntry) * Doc("The entries.", "SEG-PSN-003", since="0.11.0"),
)

assert ProducerSnapshotHeader.sizeof() == 10
assert ProducerStateEntry.sizeof() == 46

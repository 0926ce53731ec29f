"""Magic 2 record batch header, and the prefix that every entry of a log shares (chapters 20 and 30)."""

from functools import partial

from construct import Int8sb, Int16sb, Int32sb, Int32ub, Int64sb, Struct

from seglog_format.schema.fields import Doc, layout

_doc = partial(Doc, since="0.11.0")

EntryPrefix = Struct(
    "offset" / Int64sb * Doc("Base offset (magic 2), or offset of the message or last inner message.", "SEG-LOG-001"),
    "size" / Int32sb * Doc("Bytes after this field; at least 14.", "SEG-LOG-003"),
    "crc_or_epoch" / Int32sb * Doc("Magic 0 and 1: checksum. Magic 2: partition leader epoch.", "SEG-LOG-001"),
    "magic" / Int8sb * Doc("Decides what the rest means.", "SEG-BAT-004"),
)

RecordBatchHeader = Struct(
    "base_offset" / Int64sb * _doc("Offset of the first record of the original batch.", "SEG-BAT-005"),
    "batch_length" / Int32sb * _doc("Bytes after this field: the whole batch less 12.", "SEG-BAT-002"),
    "partition_leader_epoch"
    / Int32sb
    * _doc("Epoch of the leader that appended it; -1 unknown.", "SEG-BAT-021", default="-1"),
    "magic"
    / Int8sb
    * _doc("Version of this entry: 2. At the same position in every format.", "SEG-BAT-004", default="2"),
    "crc" / Int32ub * _doc("CRC-32C of everything from the attributes to the end of the batch.", "SEG-BAT-003"),
    "attributes"
    / Int16sb
    * _doc(
        "Bits 0-2 codec, 3 timestamp type (1: LogAppendTime), 4 transactional, 5 control, 6 delete horizon.",
        "SEG-BAT-014",
        "SEG-COD-001",
        "SEG-BAT-011",
        "SEG-BAT-013",
        default="0",
    ),
    "last_offset_delta" / Int32sb * _doc("Last offset of the original batch less the base offset.", "SEG-BAT-006"),
    "base_timestamp_ms"
    / Int64sb
    * _doc(
        "What timestamp deltas count from; the delete horizon where bit 6 is set; -1 none.", "SEG-BAT-012", default="-1"
    ),
    "max_timestamp_ms"
    / Int64sb
    * _doc("Largest record timestamp, or the append time; -1 none.", "SEG-BAT-015", default="-1"),
    "producer_id" / Int64sb * _doc("Idempotent or transactional producer; -1 none.", "SEG-BAT-020", default="-1"),
    "producer_epoch" / Int16sb * _doc("Epoch of that producer; -1 none.", "SEG-BAT-020", default="-1"),
    "base_sequence"
    / Int32sb
    * _doc("Sequence number of the first record of the original batch; -1 none.", "SEG-BAT-017", default="-1"),
    "records_count" / Int32sb * _doc("Records that are stored; 0 in a batch that compaction emptied.", "SEG-BAT-007"),
)

FIELDS = {row.name: row for row in layout(RecordBatchHeader)}

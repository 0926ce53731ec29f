"""Transaction index entry (chapter 42). The file is an array of these, with neither header nor checksum."""

from construct import Int16sb, Int64sb, Struct

from seglog_format.schema.fields import Doc

TransactionIndexEntry = Struct(
    "version" / Int16sb * Doc("Version of this entry: 0.", "SEG-TXN-002", since="0.11.0", default="0"),
    "producer_id" / Int64sb * Doc("Producer whose transaction was aborted.", "SEG-TXN-006", since="0.11.0"),
    "first_offset"
    / Int64sb
    * Doc(
        "First record of the transaction in this partition, maybe in an earlier segment.", "SEG-TXN-005", since="0.11.0"
    ),
    "last_offset" / Int64sb * Doc("The ABORT marker.", "SEG-TXN-006", "SEG-TXN-003", "SEG-TXN-004", since="0.11.0"),
    "last_stable_offset"
    / Int64sb
    * Doc(
        "Last stable offset once this transaction has ended: the first offset of the oldest one that another producer "
        "still has open, else the marker's offset plus 1.",
        "SEG-TXN-008",
        "SEG-TXN-007",
        since="0.11.0",
    ),
)

assert TransactionIndexEntry.sizeof() == 34

"""Fixed fields as `struct` reads them, known without construct: who only walks over entries and slots loads no more.

What a field means stands in its declaration. A test holds what is written here against what the declarations say.
"""

from struct import Struct, calcsize

BATCH_FIELDS = {
    "base_offset": "q",
    "batch_length": "l",
    "partition_leader_epoch": "l",
    "magic": "b",
    "crc": "L",
    "attributes": "h",
    "last_offset_delta": "l",
    "base_timestamp_ms": "q",
    "max_timestamp_ms": "q",
    "producer_id": "q",
    "producer_epoch": "h",
    "base_sequence": "l",
    "records_count": "l",
}
"""Of a record batch header: the code of each field, in stored order."""

RECORD_BATCH_HEADER = Struct(">" + "".join(BATCH_FIELDS.values()))
RECORD_BATCH_HEADER_SIZE = 61
RECORD_BATCH_MAGIC = 2
ATTRIBUTES_POSITION = 21

ENTRY_PREFIX = Struct(">qllb")
"""Offset, size, checksum or epoch, magic."""
MAGIC_POSITION = 16

MESSAGE_V0_HEADER = Struct(">qlLbb")
MESSAGE_V1_HEADER = Struct(">qlLbbq")

OFFSET_INDEX_ENTRY = Struct(">ll")
TIME_INDEX_ENTRY = Struct(">ql")
TRANSACTION_INDEX_ENTRY = Struct(">hqqqq")


assert RECORD_BATCH_HEADER.size == RECORD_BATCH_HEADER_SIZE
assert ENTRY_PREFIX.size == MAGIC_POSITION + 1


def batch_field_place(name: str) -> tuple[int, int]:
    """Where a field stands in a record batch header, and its size, both in bytes."""
    codes = "".join(BATCH_FIELDS.values())
    number = list(BATCH_FIELDS).index(name)
    return calcsize(">" + codes[:number]), calcsize(">" + codes[number])

"""Entries of a log: the walk, headers and checksums (chapters 20, 30 and 33)."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from crcmod import mkCrcFun

from seglog_algorithms.damage import Damage
from seglog_format.schema.fields import position_of
from seglog_format.schema.message_set import MessageV0Header, MessageV1Header
from seglog_format.schema.record_batch import EntryPrefix, RecordBatchHeader

if TYPE_CHECKING:
    from collections.abc import Iterator

crc32: Final = mkCrcFun(0x104C11DB7, initCrc=0, xorOut=0xFFFFFFFF)
crc32c: Final = mkCrcFun(0x11EDC6F41, initCrc=0, xorOut=0xFFFFFFFF)

BATCH: Final = 2
"""Magic of a record batch; 0 and 1 are messages."""
NO_PRODUCER: Final = -1
NO_TIMESTAMP: Final = -1
LAST_OFFSET: Final = 2**63 - 2
"""Greatest offset of a log (SEG-LOG-013)."""
MOST_AHEAD: Final = 2**31 - 1
"""How far an offset may be above the base offset of its segment (SEG-LOG-009)."""
HEADER_SIZE: Final = RecordBatchHeader.sizeof()
MESSAGE_HEADERS: Final = {0: MessageV0Header, 1: MessageV1Header}
NOT_NEGATIVE: Final = {
    "offset": "SEG-MSG-025",
    "base_offset": "SEG-BAT-005",
    "last_offset_delta": "SEG-BAT-006",
    "records_count": "SEG-BAT-007",
}
"""Fields of headers that are not negative, in a message or a batch, by rule."""

_SIZE_END: Final = position_of(EntryPrefix, "crc_or_epoch")
_BATCH_CRC_START: Final = position_of(RecordBatchHeader, "attributes")
_MESSAGE_CRC_START: Final = position_of(MessageV0Header, "magic")


@dataclass(frozen=True, slots=True)
class Entry:
    """A record batch, or an outermost message of magic 0 or 1.

    Attributes:
        position: its first byte in the `.log` file.
        data: all of its bytes.
        header: its fields as declared: `RecordBatchHeader`, `MessageV0Header` or `MessageV1Header`.
    """

    position: int
    data: bytes
    header: Any

    @property
    def end(self) -> int:
        """Position of the byte after it."""
        return self.position + len(self.data)

    @property
    def magic(self) -> int:
        """Its version."""
        return int(self.header.magic)

    @property
    def is_batch(self) -> bool:
        """Whether it is a record batch."""
        return self.magic >= BATCH

    @property
    def codec(self) -> int:
        """Bits 0 to 2 of the attributes (SEG-COD-001)."""
        return int(self.header.attributes & 7)

    @property
    def is_log_append_time(self) -> bool:
        """Whether the broker wrote the timestamp (SEG-BAT-011, SEG-MSG-015)."""
        return self.magic > 0 and bool(self.header.attributes & 8)

    @property
    def is_transactional(self) -> bool:
        """Whether it is a batch of a transaction."""
        return self.is_batch and bool(self.header.attributes & 16)

    @property
    def is_control(self) -> bool:
        """Whether it is a control batch."""
        return self.is_batch and bool(self.header.attributes & 32)

    @property
    def delete_horizon_ms(self) -> int | None:
        """Time after which compaction may remove tombstones and markers (SEG-BAT-013)."""
        return int(self.header.base_timestamp_ms) if self.is_batch and self.header.attributes & 64 else None

    @property
    def first_offset(self) -> int | None:
        """Offset of its first record; None for a compressed wrapper, which does not state it."""
        if self.is_batch:
            return int(self.header.base_offset)
        return None if self.codec else int(self.header.offset)

    @property
    def least_offset(self) -> int:
        """Least offset that it states: its first, or the last of a compressed wrapper."""
        return self.last_offset if self.first_offset is None else self.first_offset

    @property
    def last_offset(self) -> int:
        """Offset that it ends at, whatever records are present (SEG-BAT-016)."""
        if self.is_batch:
            return int(self.header.base_offset + self.header.last_offset_delta)
        return int(self.header.offset)

    @property
    def max_timestamp_ms(self) -> int:
        """Largest timestamp that the header states, or -1."""
        if self.is_batch:
            return int(self.header.max_timestamp_ms)
        return int(self.header.timestamp_ms) if self.magic == 1 else NO_TIMESTAMP

    @property
    def producer_id(self) -> int:
        """Producer, or -1."""
        return int(self.header.producer_id) if self.is_batch else NO_PRODUCER

    @property
    def leader_epoch(self) -> int:
        """Epoch of the leader that appended it, or -1."""
        return int(self.header.partition_leader_epoch) if self.is_batch else -1


def walk(data: bytes, start: int = 0, *, takes_later_magic: bool = False) -> Iterator[Entry]:
    """Yield the complete entries of a log (chapter 20). Checksums and offsets are not checked.

    Args:
        data: the bytes of the `.log` file.
        start: position of an entry.
        takes_later_magic: whether an entry of magic 3 or higher counts as a batch, as in recovery (SEG-RCV-038).
    """
    position = start
    while len(data) - position > EntryPrefix.sizeof():  # SEG-LOG-002
        prefix = EntryPrefix.parse(data[position : position + EntryPrefix.sizeof()])
        if prefix.size == 0 and not any(data[position:]):  # SEG-LOG-005
            return
        if prefix.size < 14:  # SEG-LOG-003
            raise Damage("SEG-LOG-003", position, f"size {prefix.size}")
        end = position + _SIZE_END + prefix.size
        if end > len(data):  # SEG-LOG-004
            return
        magic = BATCH if takes_later_magic and prefix.magic > BATCH else prefix.magic
        yield Entry(position, data[position:end], _header(data[position:end], magic, position))
        position = end  # SEG-LOG-001


def up_to_damage(data: bytes, *, takes_later_magic: bool = True) -> Iterator[Entry]:
    """Yield the entries of a log up to bytes that are none; checksums and offsets do not end them."""
    with suppress(Damage):
        yield from walk(data, takes_later_magic=takes_later_magic)


def _header(data: bytes, magic: int, position: int) -> Any:  # noqa: ANN401 - construct is untyped
    if magic in MESSAGE_HEADERS:  # SEG-LOG-011
        # A message of magic 1 that is smaller than its fixed fields is refused when it is read (SEG-MSG-003).
        return MESSAGE_HEADERS[magic].parse(data.ljust(MessageV1Header.sizeof(), b"\0"))
    if magic != BATCH:  # SEG-BAT-004
        raise Damage("SEG-BAT-004", position, f"magic {magic}")
    if len(data) < HEADER_SIZE:  # SEG-BAT-002
        raise Damage("SEG-BAT-002", position, f"batch length {len(data) - _SIZE_END}")
    return RecordBatchHeader.parse(data)  # SEG-BAT-001


def crc_of(entry: Entry) -> int:
    """Return the checksum that an entry should have."""
    if entry.is_batch:
        return int(crc32c(entry.data[_BATCH_CRC_START:]))  # SEG-BAT-003, SEG-BAT-010
    return int(crc32(entry.data[_MESSAGE_CRC_START:]))  # SEG-MSG-004


def check_crc(entry: Entry) -> None:
    """Refuse an entry with a wrong checksum."""
    if entry.header.crc != crc_of(entry):
        rule = "SEG-BAT-003" if entry.is_batch else "SEG-MSG-004"
        raise Damage(rule, entry.position, f"checksum {entry.header.crc:#010x}")


def check_offsets(entry: Entry) -> None:
    """Refuse the header of a batch whose offsets or count are impossible, and a message without an offset."""
    for field, rule in NOT_NEGATIVE.items():
        if entry.header.get(field, 0) < 0:
            raise Damage(rule, entry.position, f"{field} {entry.header[field]}")
    if entry.is_batch and entry.last_offset > LAST_OFFSET + 1:
        raise Damage("SEG-BAT-009", entry.position, f"last offset {entry.last_offset}")

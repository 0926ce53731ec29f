"""The transactions of a served log: from headers and end markers, if the transaction indexes agree with them.

To verify the checksums of all headers, the whole log has to be read, which takes long. A batch with a damaged header is
never sent, but the damage could hide an end marker, and so join two transactions. The transaction indexes list the
aborted transactions. If headers and indexes agree, no marker was hidden. If they do not, or if the walk meets damage,
the whole log is read and its checksums are verified.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Final

from seglog_format.errors import FormatError
from seglog_format.log.transaction_scan import indexed_transactions, scan_transactions
from seglog_format.log.transactions import Transactions, end_marker, lacks_index
from seglog_format.schema.fixed_fields import MAGIC_POSITION, RECORD_BATCH_MAGIC

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_format.log.partition import Partition
    from seglog_format.log.segment import LogSegment
    from seglog_format.model import Frame

ATTRIBUTES_LOW_POSITION: Final = 22
"""Position in a batch of the attributes byte whose bits mark transactional batches and control batches."""
TRANSACTIONAL_OR_CONTROL: Final = 0x30


class ServedTransactions:
    """The transactions of one log, extended as it grows.

    Attributes:
        found: the transactions of the log, up to the end of the last read.
    """

    def __init__(self) -> None:
        self.found = Transactions()
        self._is_sure = True
        self._has_tiered = False

    def read_on(self, partition: Partition) -> Transactions:
        """Read the batches that were appended since the last call, and return all transactions."""
        if self._is_sure and not self.found.end_offset:
            self._has_tiered = any(segment.is_tiered for segment in partition.segments)
        if self._is_sure and self._has_tiered and not self.found.end_offset:
            self.found = indexed_transactions(partition.segments, partition.log_start_offset)
        if self._is_sure:
            self._is_sure = self.found.damage is None and self._agrees(partition)
        if not self._is_sure:
            self.found = scan_transactions(partition.segments, partition.log_start_offset)
        return self.found

    def _agrees(self, partition: Partition) -> bool:
        known = len(self.found.aborted)
        since = self.found.end_offset
        new = [segment for segment in partition.segments if segment.allowed.last >= since]
        try:
            if not all(self._read(segment) for segment in new):
                return False
        except FormatError:
            return False
        self.found.end_offset = max(self.found.end_offset, partition.log_start_offset)
        listed = [
            (each.producer_id, each.first_offset, each.last_offset)
            for segment in new
            for each in (segment.transaction_index.entries if segment.transaction_index else ())
            if each.last_offset >= since
        ]
        found = [(each.producer_id, each.first_offset, each.last_offset) for each in self.found.aborted[known:]]
        return listed == found

    def _read(self, segment: LogSegment) -> bool:
        """Read headers and markers of one segment; return False if it is damaged."""
        for frame in _transactional(segment, self.found.end_offset):
            marker = end_marker(segment, frame) if frame.header.is_control else None
            if self._has_tiered and lacks_index(segment, marker):
                return False
            self.found.add(frame.header, marker)
        self.found.end_offset = max(self.found.end_offset, segment.next_offset)
        return segment.damage is None


def _transactional(segment: LogSegment, from_offset: int) -> Iterator[Frame]:
    """Yield the transactional entries from an offset on, undecoded."""
    table, source = segment.entries, segment.source
    for number in range(bisect_left(table.last_offsets, from_offset), len(table.positions)):
        position = table.positions[number]
        start, data = source.window(position, ATTRIBUTES_LOW_POSITION + 1)
        attributes, magic = data[position - start + ATTRIBUTES_LOW_POSITION], data[position - start + MAGIC_POSITION]
        if magic == RECORD_BATCH_MAGIC and attributes & TRANSACTIONAL_OR_CONTROL:
            yield segment.entry(number)
        segment.release_before(position)
    segment.forget()

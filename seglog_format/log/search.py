"""What is searched in records, and which batches cannot hold it, by their bytes alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from seglog_format.codec.decode import records_section, verify_checksum
from seglog_format.log.entry_table import is_within
from seglog_format.model import RecordBatchHeader

if TYPE_CHECKING:
    import re
    from collections.abc import Iterator

    from seglog_format.errors import Location
    from seglog_format.model import Frame
    from seglog_format.record_model import Message, Record

FIELDS: Final = ("key", "value", "header")
"""The parts of a record that are searched; a header by its key and by its value."""
MAX_SEARCHED_SIZE: Final = 2**26
"""Maximum size of a batch that is searched as a whole before it is decoded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a record has to hold.

    Attributes:
        pattern: bytes, or an expression for bytes; a field that is null never holds it.
        fields: some of `FIELDS`.
        since_ms: the least timestamp; None for any.
        until_ms: the timestamp that the record is older than; None for any.
    """

    pattern: bytes | re.Pattern[bytes]
    fields: tuple[str, ...] = FIELDS
    since_ms: int | None = None
    until_ms: int | None = None

    def accepts(self, record: Record | Message) -> bool:
        """Return whether a record is wanted."""
        fields = (each for each in self._searched(record) if each is not None)
        return is_within(record.timestamp_ms, self.since_ms, self.until_ms) and any(map(self._is_in, fields))

    def may_be_in(self, frame: Frame, at: Location, limit: int) -> bool:
        """Return False if a batch marks the end of a transaction, or its bytes show that it holds no wanted record.

        A text that is in a record is also in the bytes of its batch, once they are decompressed. An expression can
        depend on where a field begins and ends, which only decoding shows. The checksum is verified in any case.

        Args:
            frame: the batch.
            at: location of the batch.
            limit: bytes that decompression may produce at most.

        Raises:
            FormatError: the batch is damaged or refused.
        """
        header = frame.header
        verify_checksum(frame, at)
        if header.is_control:
            return False
        if header.size_in_bytes > MAX_SEARCHED_SIZE or not isinstance(self.pattern, bytes):
            return True
        if not header.codec_id:
            return self.pattern in bytes(frame.data)
        if isinstance(header, RecordBatchHeader):
            return self.pattern in records_section(frame, header, at, limit)[0]
        return True  # a wrapper: the messages inside are decoded

    def _is_in(self, field: bytes) -> bool:
        return self.pattern in field if isinstance(self.pattern, bytes) else bool(self.pattern.search(field))

    def _searched(self, record: Record | Message) -> Iterator[bytes | None]:
        if "key" in self.fields:
            yield record.key
        if "value" in self.fields:
            yield record.value
        if "header" in self.fields:
            for header in record.headers:
                yield header.key
                yield header.value

"""Options of `lines_of`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from seglog_format.codec.compression import DEFAULT_OUTPUT_LIMIT
from seglog_format.errors import UsageError
from seglog_format.lines.sources import SourceKind
from seglog_format.storage.byte_source import source_of
from seglog_format.storage.file_bytes import MAX_LOG_SIZE, MAX_WHOLE_SIZE, refuse_beyond, refuse_large_log

if TYPE_CHECKING:
    from seglog_format.lines.sources import Source
    from seglog_format.storage.byte_source import Readable, SourceFile


BytesAs: TypeAlias = Literal["utf8", "hex", "base64"]
Line: TypeAlias = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class LineOptions:
    """The keyword arguments of `lines_of` in one value, with an option for callers that write lines in pieces.

    Attributes:
        long_over: byte strings longer than this become `LongBytes`, lists of more items `LongList`; None for no limit.

    Raises:
        UsageError: `to_offset` is not above `from_offset`.
    """

    bytes_as: BytesAs = "utf8"
    digest_over: int | None = None
    long_over: int | None = None
    raw: bool = False
    decode: bool = False
    decode_as: str | None = None
    records: bool = True
    from_offset: int | None = None
    to_offset: int | None = None
    limit: int = DEFAULT_OUTPUT_LIMIT

    def __post_init__(self) -> None:
        if self.to_offset is not None and self.to_offset <= (self.from_offset or 0):
            msg = f"no offset is from {self.from_offset or 0} up to, not including, {self.to_offset}"
            raise UsageError(msg)

    @property
    def is_window(self) -> bool:
        """Return whether a range of offsets is requested, so only batches and records are yielded."""
        return self.from_offset is not None or self.to_offset is not None

    def wants(self, source: Source) -> bool:
        """Return whether a file can hold a requested line."""
        if not self.is_window:
            return True
        if source.kind is not SourceKind.LOG or not source.is_live:
            return False
        ends_below = source.next_base_offset is not None and source.next_base_offset <= (self.from_offset or 0)
        starts_above = self.to_offset is not None and source.base_offset >= self.to_offset
        return not ends_below and not starts_above

    def overlaps(self, base_offset: int, next_offset: int) -> bool:
        """Return whether an offset from ``base_offset`` up to but excluding ``next_offset`` is requested."""
        below = self.to_offset is not None and base_offset >= self.to_offset
        above = self.from_offset is not None and next_offset <= self.from_offset
        return not below and not above


# -- opening of files for `lines_of` -----------------------------------------------------------------------------------


def opened(source: Source) -> SourceFile:
    """Open a file; refuse a log or an index larger than Kafka allows.

    Args:
        source: the file.

    Raises:
        UsageError: the file does not exist, or is not a regular file.
        UnreadableError: the user may not read the file, or the disk refuses it (SEG-PDR-022).
        RefusedError: the file is too large (SEG-LOG-010, SEG-PDR-020).
    """
    check = None
    if source.kind is SourceKind.LOG:
        check = refuse_large_log
    elif source.kind in {SourceKind.OFFSET_INDEX, SourceKind.TIME_INDEX}:
        check = partial(refuse_beyond, MAX_LOG_SIZE)
    return source.storage.open(source.path, check=check)


def whole(data: Readable, name: str) -> memoryview:
    """Return all bytes of a file.

    Raises:
        RefusedError: the file is too large (SEG-PDR-020).
    """
    stored = source_of(data)
    refuse_beyond(MAX_WHOLE_SIZE, stored.size, name)
    return stored.view(0, stored.size)

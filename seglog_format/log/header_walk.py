"""A walk over the headers of a large log by the columnar engine, if the process has loaded it (chapter 60)."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from seglog_format.codec.decoders import DeclaredBytes
from seglog_format.codec.framing import frame_at
from seglog_format.engine import columnar
from seglog_format.engine.choice import LOADED_SIZE, Engine, engine_for, is_loaded
from seglog_format.errors import FormatError, UnreadableError
from seglog_format.model import Tail

if TYPE_CHECKING:
    from collections.abc import Callable

    from seglog_format.log.entry_table import EntryTable, OffsetRange
    from seglog_format.storage.byte_source import ByteSource


def load_engine_for(size: int) -> None:
    """Load the columnar engine if it would be chosen to read so many bytes; see `engine.choice.choose`."""
    if engine_for(Engine.AUTO, size).is_columnar:
        columnar.batch_tables()


def walk_headers(table: EntryTable, source: ByteSource, target: int, passed: Callable[[int], None]) -> None:
    """Add entries to a table, until one ends at or above an offset or is not covered by the fast path.

    Does nothing for a small log, or if the columnar engine is not loaded: for a single lookup, loading it takes longer
    than the walk.

    Args:
        table: to add the entries to; `EntryTable.grow` adds those that are still needed.
        source: bytes of the log file.
        target: the offset.
        passed: called with the position before which bytes are not needed any more.
    """
    if not _is_worth_it(source, source.size - table.position):
        return
    parts = columnar.batch_tables()(
        source,
        position=table.position,
        first_offset=table.next_offset,
        last_offset=table.allowed.last,
        checksums=False,
    )
    with suppress(UnreadableError):  # `EntryTable.grow` fails on the same bytes
        for part in parts:
            table.add_many(
                part.column("position").tobytes(),
                part.column("last_offset").tobytes(),
                part.column("max_timestamp_ms").tobytes(),
                part.running_maxima(table.largest_timestamp_ms).tobytes(),
                part.end,
            )
            passed(part.end)
            if table.last_offsets[-1] >= target:
                return


def walked_next_offset(source: ByteSource, allowed: OffsetRange) -> int | None:
    """Return the offset after the last entry of a large log; None if only the walk in Python can find it.

    The entries, which may be many millions, are not stored.

    Args:
        source: bytes of the log file.
        allowed: offsets that the segment can hold.
    """
    if not _is_worth_it(source, source.size):
        return None
    try:
        end, last_offset = columnar.recovery_kernels().ordered_end(source, allowed.first, allowed.last)
        found = frame_at(source, end, source.size)
    except FormatError:
        return None
    return last_offset + 1 if isinstance(found, Tail) else None


def first_in_doubt(table: EntryTable, source: ByteSource, start: int, stop: int) -> int:
    """Return the number of the first entry in a range whose checksum the columnar engine did not find valid.

    Args:
        table: of the walked entries.
        source: bytes of the log file.
        start: number of the first entry.
        stop: number of the entry after the last.

    Returns:
        A number from ``start`` to ``stop``; ``stop`` if all are valid, ``start`` if the engine is not used.
    """
    if start >= stop:
        return start
    position, end = table.positions[start], (*table.positions[stop : stop + 1], table.position)[0]
    if not _is_worth_it(source, end - position):
        return start
    first_offset = table.last_offsets[start - 1] + 1 if start else table.allowed.first
    parts = columnar.batch_tables()(
        source, position=position, end=end, first_offset=first_offset, last_offset=table.allowed.last
    )
    with suppress(UnreadableError):  # the fallback decoder fails on the same bytes
        for part in parts:
            valid = part.column("crc_is_valid")
            if not valid.all():
                return start + int(valid.argmin())
            start += len(part)
    return start


def _is_worth_it(source: ByteSource, size: int) -> bool:
    return size > LOADED_SIZE and is_loaded() and not isinstance(source, DeclaredBytes)

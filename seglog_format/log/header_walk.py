"""Walk the headers of a large log at memory speed, where the process has loaded the columnar engine (chapter 60)."""

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
    """Load the columnar engine where the rule of choice takes it to read so many bytes; see `engine.choice.choose`."""
    if engine_for(Engine.AUTO, size).is_columnar:
        columnar.batch_tables()


def walk_headers(table: EntryTable, source: ByteSource, target: int, passed: Callable[[int], None]) -> None:
    """Add entries to a table until one ends at or above an offset, or only the fallback decoder can judge one.

    Nothing is done for a small log, nor where the columnar engine would have to be loaded first: a single lookup is
    not worth its start.

    Args:
        table: grows; what it lacks afterwards is for `EntryTable.grow`.
        source: bytes of the log file.
        target: the offset.
        passed: called with the position up to which nothing is needed any more.
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
    with suppress(UnreadableError):  # the walk meets it again
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
    """Return the offset after the last entry of a large log; None where only the walk in Python can say.

    Nothing is remembered of the entries, of which there may be many millions.

    Args:
        source: bytes of the log file.
        allowed: offsets that it can hold.
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
    """Return the number of the first walked entry, from one on, whose checksum only the fallback decoder can judge.

    Args:
        table: of the entries.
        source: bytes of the log file.
        start: number of the first entry.
        stop: number of the entry after the last.

    Returns:
        From ``start`` to ``stop``; ``start`` as well where the engine is not worth it, as in `walk_headers`.
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
    with suppress(UnreadableError):  # the fallback decoder meets it again
        for part in parts:
            valid = part.column("crc_is_valid")
            if not valid.all():
                return start + int(valid.argmin())
            start += len(part)
    return start


def _is_worth_it(source: ByteSource, size: int) -> bool:
    return size > LOADED_SIZE and is_loaded() and not isinstance(source, DeclaredBytes)

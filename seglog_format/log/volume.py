"""Records as objects at volume: when the columnar engine is worth its start, and how it is asked (chapter 60)."""

from __future__ import annotations

import sys
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final

from seglog_format.log.scanning import ScanOptions, engine, place_of, request_of, sources_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from seglog_format.log.gap_watch import AtBorder
    from seglog_format.log.reading import LogReader
    from seglog_format.log.scanning import Place
    from seglog_format.log.segment import LogSegment
    from seglog_format.log.transactions import Transactions
    from seglog_format.record_model import Message, Record

VOLUME: Final = 2**25
"""Bytes from which on records come from the engine, which takes half a second to start."""
SMALL_VOLUME: Final = 2**20
"""The same where the engine is in use already."""


def is_volume(reader: LogReader, offset: int) -> bool:
    """Whether so much is to be read that the engine is worth its start; less, where it is there already.

    What the first segment holds before the offset does not count, as far as its index tells: a wrong index makes
    reading slower, and nothing else. So a lookup near the end of a large log never loads the engine.
    """
    wanted = SMALL_VOLUME if "numba" in sys.modules else VOLUME
    for number, segment in enumerate(reader.segments_from(offset)):
        wanted -= segment.size
        if wanted <= 0 and number == 0:
            wanted += min(max(_floor(segment, offset), 0), segment.size)
        if wanted <= 0:
            return _is_installed()
    return False


def _floor(segment: LogSegment, offset: int) -> int:
    from seglog_format.log.quick_lookup import index_floor  # noqa: PLC0415 - only for large segments

    return index_floor(segment, offset)


@cache
def _is_installed() -> bool:
    """Whether there is what the engine needs."""
    return all(find_spec(name) is not None for name in ("numba", "numpy", "pyarrow", "zstandard"))


def place_at_volume(reader: LogReader, offset: int) -> Place | None:
    """As `place_of`, where there is enough to read for the engine; None where there is not."""
    return place_of(reader, offset) if not reader.trust_indexes and is_volume(reader, offset) else None


def record_lists(
    reader: LogReader,
    offsets: tuple[int, int],
    transactions: Transactions | None,
    limit: int,
    place: Place | None,
    at_border: AtBorder | None = None,
) -> Iterator[Iterable[Record | Message]]:
    """Read a range of offsets, some records at a time: the first alone where that is quick, as lookups want no more.

    Arguments are those of `at_volume`.

    Raises:
        FormatError: while iterating: at the first entry that is damaged or refused (SEG-LKP-014).
    """
    start, end = offsets
    first = reader.known_record(start, place) if transactions is None else None
    if first is not None and start < end:
        yield (first,)
        start += 1
    lists = at_volume(reader, (start, end), transactions, limit, place, at_border)
    yield from (reader.records(start, end, transactions, at_border),) if lists is None else lists


def at_volume(
    reader: LogReader,
    offsets: tuple[int, int],
    transactions: Transactions | None,
    limit: int,
    place: Place | None,
    at_border: AtBorder | None = None,
) -> Iterator[list[Record | Message]] | None:
    """Read a range of offsets at volume, into objects; None where the reference is to read.

    Args:
        reader: of the log.
        offsets: from the first inclusive to the second exclusive.
        transactions: leave out what these say was aborted.
        limit: bytes that decompressing one entry may produce at most.
        place: of the first entry, where it is known.
        at_border: told of borders between segments; see `Borders`.
    """
    if not is_volume(reader, offsets[0]) or not engine("object_layout").can_make_objects():
        return None
    options = ScanOptions(place=place, at_border=at_border, batch_rows=engine("record_run").BLOCK_ROWS)
    request = request_of(offsets, transactions, options, limit)
    found: Iterator[list[Record | Message]] = engine("scan").record_lists(
        sources_of(reader, offsets, transactions, options), request
    )
    return found

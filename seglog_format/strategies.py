"""Strategies of hypothesis: records, batches, segments, directories and damages, for tests of any reader or writer.

hypothesis has to be installed: ``pip install 'seglog-format[conform]'``. All values are valid unless they are damages,
and shrink to simple ones.

Examples:
    >>> from hypothesis import given
    >>> from seglog_format import decode_batch
    >>> from seglog_format.strategies import segments
    >>> @given(segments())
    ... def test_first_offset(segment):
    ...     assert decode_batch(segment.data).records[0].offset == segment.base_offset
    >>> test_first_offset()
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from hypothesis import strategies as st

from seglog_format.codec.build import build_batch, new_record
from seglog_format.codec.decode import decode_batch
from seglog_format.codec.encode import encode_batch
from seglog_format.generation.generate import generate
from seglog_format.model import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, CompressionCodec, Record, RecordBatch

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from hypothesis.strategies import SearchStrategy


__all__ = ["Damage", "Segment", "batches", "damages", "directories", "records", "segments"]

CODECS: Final = tuple(CompressionCodec)
LARGEST_BASE_OFFSET: Final = 2**62
LARGEST_TIMESTAMP_MS: Final = 2**42
LARGEST_GAP: Final = 2**31
MAX_TAIL_SIZE: Final = 100
NO_PRODUCER: Final = (NO_PRODUCER_ID, NO_PRODUCER_EPOCH, NO_SEQUENCE)
PRODUCERS: Final = st.just(NO_PRODUCER) | st.tuples(
    st.integers(0, 2**63 - 1), st.integers(0, 2**15 - 1), st.integers(0, 2**31 - 1)
)


class Segment(NamedTuple):
    """The bytes of a ``.log`` file, and the batches in it.

    Attributes:
        base_offset: offset of the first record, for the name of the file.
        data: the bytes.
        batches: as `decode_batch` returns them, with their positions in `data`; offsets may be missing between two.
    """

    base_offset: int
    data: bytes
    batches: tuple[RecordBatch, ...]


class Damage(NamedTuple):
    """Bytes that were changed after they had been written.

    Attributes:
        kind: ``cut``, ``flipped``, ``zeros`` or ``junk``.
        position: of the first byte that differs from the whole file, or is missing.
        data: the changed bytes.
    """

    kind: str
    position: int
    data: bytes


def records(*, max_size: int = 40, has_headers: bool = True) -> SearchStrategy[Record]:
    """Return records without an offset, as `new_record` builds them.

    Args:
        max_size: maximum bytes of a key, a value or the value of a header.
        has_headers: whether records may have headers.
    """
    data = st.none() | st.binary(max_size=max_size)
    pairs = st.tuples(st.text(max_size=5).map(str.encode), data)
    return st.builds(
        lambda key, value, timestamp_ms, headers: new_record(
            key=key, value=value, timestamp_ms=timestamp_ms, headers=headers
        ),
        data,
        data,
        st.integers(-1, LARGEST_TIMESTAMP_MS),
        st.lists(pairs, max_size=3 if has_headers else 0),
    )


def batches(
    *,
    codecs: Sequence[CompressionCodec] = CODECS,
    base_offset: int | None = None,
    max_records: int = 5,
) -> SearchStrategy[RecordBatch]:
    """Return record batches of magic 2, as a producer sends them and a leader stores them.

    Args:
        codecs: possible codecs.
        base_offset: of the batch, 0 or more; None for any.
        max_records: maximum number of records; the minimum is 1.
    """
    return st.builds(
        lambda content, offset, codec, producer, time, epoch: build_batch(
            content,
            base_offset=offset,
            codec=codec,
            producer_id=producer[0],
            producer_epoch=producer[1],
            base_sequence=producer[2],
            log_append_time_ms=time,
            partition_leader_epoch=epoch,
        ),
        st.lists(records(), min_size=1, max_size=max_records),
        st.integers(0, LARGEST_BASE_OFFSET) if base_offset is None else st.just(base_offset),
        st.sampled_from(list(codecs)),
        PRODUCERS,
        st.none() | st.integers(0, LARGEST_TIMESTAMP_MS),
        st.integers(0, 2**31 - 1),
    )


@st.composite
def segments(
    draw: st.DrawFn, *, codecs: Sequence[CompressionCodec] = CODECS, max_batches: int = 3, has_gaps: bool = True
) -> Segment:
    """Return segments of record batches whose offsets ascend.

    Args:
        draw: given by hypothesis.
        codecs: possible codecs.
        max_batches: maximum number of batches; the minimum is 1.
        has_gaps: whether offsets may be missing between two batches, as compaction leaves them.
    """
    first = draw(st.integers(0, LARGEST_BASE_OFFSET))
    offset, data, found = first, b"", list[RecordBatch]()
    for _ in range(draw(st.integers(1, max_batches))):
        stored = encode_batch(draw(batches(codecs=codecs, base_offset=offset)))
        found.append(replace(decode_batch(stored), position=len(data)))
        data += stored
        offset = found[-1].header.last_offset + 1 + (draw(st.just(0) | st.integers(0, LARGEST_GAP)) if has_gaps else 0)
    return Segment(first, data, tuple(found))


def directories(parent: str | PathLike[str]) -> SearchStrategy[Path]:
    """Return log directories of random recipes: all magics, codecs, producers, transactions, gaps and settings.

    Args:
        parent: existing directory below which each one is generated when it is first drawn, under the name of its seed:
            `seglog_format.generate` makes the same from the seed. A test must not change them.
    """

    def made(seed: int) -> Path:
        target = Path(parent, str(seed))
        if not target.is_dir():
            generate(None, target, seed)
        return target

    return st.integers(0, 2**32 - 1).map(made)


def damages(data: bytes) -> SearchStrategy[Damage]:
    """Return damages of a file.

    Args:
        data: bytes of the whole file, at least one.
    """
    positions = st.integers(0, len(data) - 1)
    tails = st.integers(1, MAX_TAIL_SIZE)
    return st.one_of(
        positions.map(lambda position: Damage("cut", position, data[:position])),
        st.builds(_flipped, st.just(data), positions, st.integers(1, 255)),
        tails.map(lambda size: Damage("zeros", len(data), data + bytes(size))),
        st.binary(min_size=1, max_size=MAX_TAIL_SIZE).map(lambda junk: Damage("junk", len(data), data + junk)),
    )


def _flipped(data: bytes, position: int, bits: int) -> Damage:
    return Damage("flipped", position, data[:position] + bytes([data[position] ^ bits]) + data[position + 1 :])

"""Conversion of Arrow columns to record batches, by the columnar engine."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from seglog_format.codec.compress import compress
from seglog_format.engine.columnar import encode_table
from seglog_format.model import (
    NO_PARTITION_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    CompressionCodec,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pyarrow as pa

DEFAULT_BATCH_SIZE: Final = 16_384


def encode_columns(  # noqa: PLR0913 - each is a field of the header, or divides rows into batches
    table: pa.Table,
    *,
    base_offset: int = 0,
    batch_size: int = DEFAULT_BATCH_SIZE,
    counts: Sequence[int] | None = None,
    codec: CompressionCodec = CompressionCodec.NONE,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    is_transactional: bool = False,
    partition_leader_epoch: int = NO_PARTITION_LEADER_EPOCH,
) -> Iterator[bytes]:
    """Encode the rows of a table as record batches of magic 2: the bytes that `encode_batch` gives for these records.

    Needs the extra ``fast``.

    Args:
        table: columns ``offset``, ``timestamp``, ``key``, ``value`` and ``headers``, each optional; a timestamp
            is in milliseconds since 1970, a header a pair of key and value.
        base_offset: offset of the first row, if there is no column of offsets.
        batch_size: maximum bytes of a batch of several records, before compression.
        counts: number of records in each batch, instead of `batch_size`.
        codec: how the records of a batch are compressed.
        producer_id: or -1.
        producer_epoch: or -1.
        base_sequence: sequence number of the first record, or -1; later records increase it by one each.
        is_transactional: whether the batches belong to a transaction.
        partition_leader_epoch: or -1.

    Yields:
        Bytes of one or more whole batches.

    Raises:
        UsageError: while iterating: a batch cannot hold the rows, an option is invalid, or the engine is not
            installed.

    Examples:
        >>> import pyarrow
        >>> from seglog_format import encode_columns
        >>> rows = pyarrow.table({"key": [b"a", b"b"], "value": [b"1", None]})
        >>> log = b"".join(encode_columns(rows, base_offset=100))
        >>> len(log)
        78
    """
    fields = {
        "codec": codec,
        "leader_epoch": partition_leader_epoch,
        "producer_id": producer_id,
        "producer_epoch": producer_epoch,
        "base_sequence": base_sequence,
        "is_transactional": is_transactional,
    }
    return encode_table(
        table,
        fields,
        base_offset=base_offset,
        batch_size=batch_size,
        counts=counts,
        compress=None if codec is CompressionCodec.NONE else partial(compress, codec, magic=2),
    )

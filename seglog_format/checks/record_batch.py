"""Checks of chapter 30: rules that a batch with a right checksum may still break."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog_format.checks.finding import Problem, checks
from seglog_format.codec.decode import field
from seglog_format.model import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, TimestampType

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_format.checks.subjects import Batch


@checks("SEG-BAT-014")
def unknown_attribute_bits(batch: Batch) -> Iterator[Problem]:
    """Report attribute bits 7 to 15."""
    if batch.header.unknown_attribute_bits:
        found = f"{batch.header.unknown_attribute_bits:#06x}"
        yield Problem(field(batch.at, "attributes"), "bits 7 to 15 clear", found)


@checks("SEG-BAT-015")
def max_timestamp(batch: Batch) -> Iterator[Problem]:
    """Report a maximum timestamp that differs from that of the records; only with CreateTime, and with records."""
    header = batch.header
    if header.timestamp_type is TimestampType.CREATE_TIME and batch.records:
        largest = max(record.timestamp_ms for record in batch.records)
        if header.max_timestamp_ms != largest:
            yield Problem(field(batch.at, "max_timestamp_ms"), str(largest), header.max_timestamp_ms)


@checks("SEG-BAT-019")
def lost_records(batch: Batch) -> Iterator[Problem]:
    """Report removed records, a sign of compaction."""
    offsets = batch.header.last_offset_delta + 1
    if batch.header.records_count < offsets:
        yield Problem(field(batch.at, "records_count"), f"{offsets} records", batch.header.records_count)


@checks("SEG-BAT-020")
def producer_epoch(batch: Batch) -> Iterator[Problem]:
    """Report a producer epoch without a producer id."""
    epoch, has_producer = batch.header.producer_epoch, batch.header.producer_id != NO_PRODUCER_ID
    if has_producer and epoch < 0:
        yield Problem(field(batch.at, "producer_epoch"), "0 or more with a producer id", epoch)
    if not has_producer and epoch != NO_PRODUCER_EPOCH:
        yield Problem(field(batch.at, "producer_epoch"), "-1 without a producer id", epoch)


@checks("SEG-BAT-021")
def leader_epoch(batch: Batch) -> Iterator[Problem]:
    """Report a leader epoch below -1; -1 means unknown."""
    if batch.header.partition_leader_epoch < -1:
        found = batch.header.partition_leader_epoch
        yield Problem(field(batch.at, "partition_leader_epoch"), "-1 or greater", found)


@checks("SEG-BAT-022")
def transaction_needs_producer(batch: Batch) -> Iterator[Problem]:
    """Report a transactional batch without a producer id: no end marker could end its transaction."""
    if batch.header.is_transactional and batch.header.producer_id < 0:
        yield Problem(field(batch.at, "producer_id"), "0 or more in a transaction", batch.header.producer_id)


@checks("SEG-BAT-023")
def control_not_compressed(batch: Batch) -> Iterator[Problem]:
    """Report a compressed control batch; brokers never write one."""
    if batch.header.is_control and batch.header.codec_id:
        yield Problem(field(batch.at, "attributes"), "codec none in a control batch", batch.header.codec_id)


@checks("SEG-BAT-024")
def data_needs_sequence(batch: Batch) -> Iterator[Problem]:
    """Report a data batch without a sequence; control batches have -1."""
    header = batch.header
    if header.producer_id >= 0 and not header.is_control and header.base_sequence < 0:
        yield Problem(field(batch.at, "base_sequence"), "0 or more with a producer id", header.base_sequence)

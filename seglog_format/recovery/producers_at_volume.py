"""The producers of a log that compiled code has walked over: what `ProducerStates` knows after reading it all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog_format.model import NO_SEQUENCE, add_sequence
from seglog_format.state.producer import Producer, ProducerBatch

if TYPE_CHECKING:
    from seglog_format.recovery.volume import IndexedLog, KnownProducer


def producers_of(log: IndexedLog) -> tuple[Producer, ...] | None:
    """Every producer, by id; None where the batches have to be replayed one by one.

    Args:
        log: the first segment, at whose start nothing is known.
    """
    known = log.producers()
    return None if known is None else tuple(map(_producer, known))


def _producer(known: KnownProducer) -> Producer:
    return Producer(
        known.producer_id,
        known.producer_epoch,
        tuple(_batch(*numbers) for numbers in known.batches),
        known.timestamp_ms,
        known.coordinator_epoch,
        known.current_txn_first_offset,
    )


def _batch(base_sequence: int, base_offset: int, last_offset: int) -> ProducerBatch:
    delta = last_offset - base_offset
    last_sequence = NO_SEQUENCE if base_sequence == NO_SEQUENCE else add_sequence(base_sequence, delta)
    return ProducerBatch(last_sequence, last_offset, delta)

"""Build the batches of a recipe: their producers and their bytes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from seglog_format.codec.build import MAGIC_2, build_batch, build_message_entry
from seglog_format.codec.encode import encode_batch
from seglog_format.model import (
    CODEC_MASK,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    CompressionCodec,
    RecordBatchHeader,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from seglog_format.generation.recipe_model import ProducerRecipe, StepRecipe
    from seglog_format.record_model import Record, RecordBatch


@dataclass(slots=True)
class PlannedProducer:
    """State of a producer during planning.

    ``batches_left`` counts down to the end of a transaction; None if the transaction does not end in this step.
    """

    producer_id: int
    epoch: int
    sequence: int = 0
    first_offset: int | None = None
    batches_left: int | None = None


NO_PRODUCER: Final = PlannedProducer(NO_PRODUCER_ID, NO_PRODUCER_EPOCH, NO_SEQUENCE)


def team_of(
    recipe: ProducerRecipe, known: dict[int, PlannedProducer], draw: Callable[[int], Iterable[int]]
) -> list[PlannedProducer]:
    """Return the producers of a step; those of an earlier step continue unless their epoch changes.

    Args:
        recipe: of the producers.
        known: all producers of the partition by id; new ones are added.
        draw: draws a number of batches for the next transaction of each of so many producers.
    """
    if recipe.kind == "plain":
        return [NO_PRODUCER]
    for producer_id in range(recipe.first_id, recipe.first_id + recipe.count):
        former = known.get(producer_id)
        if former is None or former.epoch != recipe.epoch:
            first = None if former is None else former.first_offset
            known[producer_id] = PlannedProducer(producer_id, recipe.epoch, first_offset=first)
    team = [known[recipe.first_id + number] for number in range(recipe.count)]
    for producer, batches in zip(team, draw(len(team)), strict=True):
        producer.batches_left = batches
    for producer in team[len(team) - recipe.open :]:
        producer.batches_left = None
    return team


@dataclass(slots=True)
class Turn:
    """One batch of a step, before it is encoded."""

    step: StepRecipe
    producer: PlannedProducer
    records: Sequence[Record]
    base_offset: int
    rolls: bool = False


def encoded(turn: Turn, records: Sequence[Record], base_offset: int, stamp_ms: int | None) -> bytes:
    """Encode a batch, or the messages of an append; the batch for a leader has no leader epoch yet."""
    step, codec = turn.step, codec_of(turn.step)
    if step.magic == MAGIC_2:
        return encode_batch(built(turn, records, base_offset, stamp_ms, -1))
    groups = [records] if codec else [[record] for record in records]
    entries = []
    for group in groups:
        entry = build_message_entry(
            group, magic=step.magic, base_offset=base_offset, codec=codec, log_append_time_ms=stamp_ms
        )
        entries.append(encode_batch(entry))
        base_offset += len(group)
    return b"".join(entries)


def built(
    turn: Turn, records: Sequence[Record], base_offset: int, stamp_ms: int | None, leader_epoch: int
) -> RecordBatch:
    """Build the record batch of a turn."""
    producer = turn.producer
    return build_batch(
        records,
        base_offset=base_offset,
        codec=codec_of(turn.step),
        log_append_time_ms=stamp_ms,
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        base_sequence=producer.sequence,
        is_transactional=turn.step.producers.kind == "transactional",
        partition_leader_epoch=leader_epoch,
        keeps_offsets=turn.step.role == "follower",
    )


def codec_of(step: StepRecipe) -> CompressionCodec:
    """Return the codec of a step."""
    return CompressionCodec[step.codec.upper()]


def as_compacted(batch: RecordBatch, last_offset_delta: int, *, is_emptied: bool) -> RecordBatch:
    """Give a batch the last offset of the original one; drop its records if it is emptied (SEG-BAT-018)."""
    assert isinstance(batch.header, RecordBatchHeader)
    header = replace(batch.header, last_offset_delta=last_offset_delta)
    if not is_emptied:
        return replace(batch, header=header)
    header = replace(
        header,
        records_count=0,
        attributes=header.attributes & ~CODEC_MASK,
        base_timestamp_ms=header.max_timestamp_ms,
    )
    return replace(batch, header=header, records=())

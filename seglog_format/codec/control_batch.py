"""Construction of control batches: those with end markers, and those of KRaft (chapter 32)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from seglog_format.codec.build import build_batch, new_record
from seglog_format.errors import UsageError
from seglog_format.model import (
    NO_PARTITION_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    ControlRecordType,
)
from seglog_format.schema.control_record import KRAFT_VALUES, ControlRecordKey, EndTransactionMarker
from seglog_format.schema.protocol import TAGGED_FIELDS, declaration

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seglog_format.record_model import Record, RecordBatch

CONTROL_KEY_VERSION: Final = 0
END_MARKER_VERSION: Final = 0


def build_control_batch(
    records: Sequence[Record],
    *,
    base_offset: int = 0,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    partition_leader_epoch: int = NO_PARTITION_LEADER_EPOCH,
) -> RecordBatch:
    """Build a control batch: of end markers with a producer id, else of KRaft records (SEG-CTL-007, SEG-CTL-011).

    Args:
        records: see `control_record`.
        base_offset: of the batch.
        producer_id: of the producer whose transaction ends; -1 for KRaft.
        producer_epoch: of that producer; -1 for KRaft.
        partition_leader_epoch: or -1.
    """
    return build_batch(
        records,
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        is_transactional=producer_id != NO_PRODUCER_ID,
        is_control=True,
        partition_leader_epoch=partition_leader_epoch,
    )


def build_end_marker(  # noqa: PLR0913 - each is a field of the marker
    kind: ControlRecordType,
    *,
    producer_id: int,
    producer_epoch: int,
    coordinator_epoch: int,
    timestamp_ms: int,
    base_offset: int = 0,
    partition_leader_epoch: int = NO_PARTITION_LEADER_EPOCH,
) -> RecordBatch:
    """Build the batch that ends a transaction.

    Args:
        kind: ABORT or COMMIT.
        producer_id: of the producer whose transaction ends.
        producer_epoch: of that producer.
        coordinator_epoch: of the transaction coordinator.
        timestamp_ms: when it ends.
        base_offset: of the batch.
        partition_leader_epoch: or -1.

    Raises:
        UsageError: the kind is neither ABORT nor COMMIT.

    Examples:
        >>> from seglog_format import ControlRecordType, build_end_marker
        >>> marker = build_end_marker(
        ...     ControlRecordType.COMMIT, producer_id=4, producer_epoch=0, coordinator_epoch=0, timestamp_ms=1000
        ... )
        >>> marker.header.is_control
        True
    """
    if kind not in {ControlRecordType.ABORT, ControlRecordType.COMMIT}:
        msg = f"{kind.name} does not end a transaction"
        raise UsageError(msg)
    fields = {"version": END_MARKER_VERSION, "coordinatorEpoch": coordinator_epoch}
    return build_control_batch(
        [control_record(kind, fields, timestamp_ms=timestamp_ms)],
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        partition_leader_epoch=partition_leader_epoch,
    )


def control_record(kind: ControlRecordType, fields: Mapping[str, object], *, timestamp_ms: int) -> Record:
    """Create a control record.

    Args:
        kind: its type.
        fields: of its value, as `ControlRecord.fields` holds them; ``version`` chooses the layout.
        timestamp_ms: of the record.
    """
    key = ControlRecordKey.build({"version": CONTROL_KEY_VERSION, "type": int(kind)})
    definition = KRAFT_VALUES.get(kind)
    layout = EndTransactionMarker if definition is None else declaration(definition, _version(fields))
    return new_record(key=bytes(key), value=bytes(layout.build(_with_tagged_fields(fields))), timestamp_ms=timestamp_ms)


def _with_tagged_fields(value: object) -> object:
    """Add the empty tagged fields at the end of every structure."""
    if isinstance(value, Mapping):
        return {name: _with_tagged_fields(item) for name, item in value.items()} | {TAGGED_FIELDS: {}}
    return [_with_tagged_fields(item) for item in value] if isinstance(value, list) else value


def _version(fields: Mapping[str, object]) -> int:
    version = fields.get("version", 0)
    assert isinstance(version, int)
    return version

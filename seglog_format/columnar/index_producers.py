"""What a log knows of its producers at its end, out of the events that indexing it has found (chapter 50)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from seglog_format.columnar.arrays import Table

EVENT_COLUMNS: Final = (
    "producer_id",
    "kind",
    "base_offset",
    "last_offset",
    "producer_epoch",
    "base_sequence",
    "timestamp_ms",
    "coordinator_epoch",
)
"""Of a batch with a producer. The timestamp is the one that its state remembers."""
EVENT: Final = {name: number for number, name in enumerate(EVENT_COLUMNS)}
ABORT, COMMIT, EMPTY, DATA, TRANSACTIONAL_DATA = 0, 1, -1, 2, 3
"""Kinds of events: types of end markers, a control batch without any, and data."""
REMEMBERED_BATCHES: Final = 5
NONE: Final = -1


@dataclass(frozen=True, slots=True)
class KnownProducer:
    """One producer; -1 where there is nothing.

    Attributes:
        producer_id: of it.
        producer_epoch: of what it appended last.
        batches: base sequence, base offset and last offset of its newest data batches of that epoch, oldest first.
        timestamp_ms: of what it appended last, markers included.
        coordinator_epoch: of its last marker.
        current_txn_first_offset: where its open transaction begins.
    """

    producer_id: int
    producer_epoch: int = NONE
    batches: tuple[tuple[int, int, int], ...] = ()
    timestamp_ms: int = NONE
    coordinator_epoch: int = NONE
    current_txn_first_offset: int = NONE


def known_producers(events: Table) -> list[KnownProducer] | None:
    """Every producer of a log that begins with nothing known, by producer id.

    Args:
        events: of `index_log`, in the order of the log.

    Returns:
        None where a producer has appended both inside and outside of transactions: whether it might is for the
        reference to say.
    """
    order = np.argsort(events[:, EVENT["producer_id"]], kind="stable")
    events = events[order]
    starts = np.flatnonzero(np.diff(events[:, EVENT["producer_id"]], prepend=NONE))
    found = []
    for rows in np.split(events, starts[1:]) if len(events) else ():
        kinds = rows[:, EVENT["kind"]]
        if (kinds == DATA).any() and (kinds == TRANSACTIONAL_DATA).any():
            return None
        found.append(_known(int(rows[0, EVENT["producer_id"]]), rows[kinds != EMPTY]))
    return found


def _known(producer_id: int, rows: Table) -> KnownProducer:
    """What is known after some events of one producer."""
    if not len(rows):
        return KnownProducer(producer_id)
    kinds, epochs = rows[:, EVENT["kind"]], rows[:, EVENT["producer_epoch"]]
    others = np.flatnonzero(epochs != epochs[-1])
    latest = rows[others[-1] + 1 if len(others) else 0 :]
    data = latest[latest[:, EVENT["kind"]] >= DATA][-REMEMBERED_BATCHES:]
    markers = np.flatnonzero(kinds < DATA)
    coordinator_epoch = int(rows[markers[-1], EVENT["coordinator_epoch"]]) if len(markers) else NONE
    opened = rows[markers[-1] + 1 if len(markers) else 0 :]
    opened = opened[opened[:, EVENT["kind"]] == TRANSACTIONAL_DATA]
    columns = (data[:, EVENT[name]].tolist() for name in ("base_sequence", "base_offset", "last_offset"))
    return KnownProducer(
        producer_id,
        int(epochs[-1]),
        tuple(zip(*columns, strict=True)),
        int(rows[-1, EVENT["timestamp_ms"]]),
        coordinator_epoch,
        int(opened[0, EVENT["base_offset"]]) if len(opened) else NONE,
    )

"""Logs that are written, cut back and compacted, each made to show one rule; what is left is what Kafka left of them.

The expected answers are recorded from Kafka's own classes (`record_scenarios`), not written here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from authoring.batches import Batch, Rec
from authoring.segments import bytes_of

if TYPE_CHECKING:
    from authoring.casefile import Basis, Json, Unit

NOW: Final = 1_700_000_000_000
SMALL: Final = {"segment.index.bytes": "1000", "index.interval.bytes": "100"}
"""Settings that let the indexes of small logs say something."""


@dataclass(frozen=True)
class Scenario:
    """What is asked.

    Attributes:
        name: of the case.
        op: ``write``, ``retain`` or ``compact``.
        why: what breaks in practice.
        basis: of the case.
        request: as of the case; a broker opens its files once before.
        over: files that take the place of those that it leaves then; None removes one.
    """

    name: str
    op: str
    why: str
    basis: Basis
    request: Json
    over: tuple[tuple[str, bytes | None], ...] = ()


def append(*units: Unit, now: int = NOW, **more: str | int) -> Json:
    """Return an append of a leader: entries from offset 0."""
    return {"do": "append", "records": bytes_of(units).hex(), "now": str(now), **more}


def follow(*units: Unit, now: int = NOW, epoch: int = 1 << 20) -> Json:
    """Return an append of a follower: entries with their offsets."""
    return {"do": "append", "as": "follower", "records": bytes_of(units).hex(), "leaderEpoch": epoch, "now": str(now)}


def batch(*times: int, size: int = 5, **fields: int) -> Batch:
    """Return a batch as a producer sends it, a record for each timestamp."""
    recs = tuple(Rec(key=b"k%d" % at, value=bytes(size), time=time - times[0]) for at, time in enumerate(times))
    return Batch(recs=recs, base_timestamp=times[0], **fields)


def sent(producer_id: int, sequence: int, *, count: int = 1, epoch: int = 0, **fields: int) -> Batch:
    """Return a batch of an idempotent producer."""
    return batch(
        *range(NOW, NOW + count), producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, **fields
    )


def settings_of(config: dict[str, str]) -> dict[str, str]:
    """Small ones, and these; names with underscores for dots."""
    return {**SMALL, **{key.replace("_", "."): value for key, value in config.items()}}


def keyed(base: int, *keys: str, start: int = NOW, **fields: object) -> Batch:
    """Return a batch of records with these keys, ``a-`` being a tombstone of a, ``-`` a record without key."""
    recs = tuple(
        Rec(
            key=key.rstrip("-").encode() or None,
            value=None if key.endswith("-") and key != "-" else b"%d" % at,
            time=at,
        )
        for at, key in enumerate(keys)
    )
    return Batch(base=base, recs=recs, base_timestamp=start, **fields)  # type: ignore[arg-type]

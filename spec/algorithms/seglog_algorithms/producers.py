"""Producer state and its snapshots (chapter 50)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from seglog_algorithms.control_records import marker_of
from seglog_algorithms.damage import Damage, or_none
from seglog_algorithms.directory import LOG, SNAPSHOT, base_offsets, file_name, offsets_of
from seglog_algorithms.entries import NO_TIMESTAMP, crc32c, up_to_damage
from seglog_algorithms.records import sequence_of
from seglog_algorithms.transaction_index import after_entry
from seglog_format.schema.fields import position_of
from seglog_format.schema.producer_snapshot import ProducerSnapshot, ProducerSnapshotHeader, ProducerStateEntry

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seglog_algorithms.control_records import Marker
    from seglog_algorithms.directory import Directory
    from seglog_algorithms.entries import Entry
    from seglog_algorithms.records import Decompress
    from seglog_algorithms.transaction_index import AbortedTransaction

DAY_MS: Final = 86_400_000
"""The default of `producer.id.expiration.ms`."""
MIN_TIME: Final = -(2**63)
NONE: Final = -1
"""No epoch, sequence or offset."""
REMEMBERED: Final = 5
"""Batches of each producer that a broker remembers (SEG-APP-008)."""
_AFTER_CRC: Final = position_of(ProducerSnapshotHeader, "count")


@dataclass(frozen=True, slots=True)
class Batch:
    """What is remembered of a data batch: last sequence, last offset, and last minus first offset."""

    last_sequence: int
    last_offset: int
    offset_delta: int

    @property
    def first_sequence(self) -> int:
        """Sequence of its first record."""
        return (self.last_sequence - self.offset_delta) % 2**31


NO_BATCH: Final = Batch(NONE, NONE, 0)


@dataclass(frozen=True, slots=True)
class Producer:
    """The state of one producer: an entry of a snapshot, but with the last five batches."""

    producer_id: int
    producer_epoch: int = NONE
    batches: tuple[Batch, ...] = ()
    timestamp_ms: int = NO_TIMESTAMP
    coordinator_epoch: int = NONE
    current_txn_first_offset: int = NONE

    def in_epoch(self, epoch: int) -> Producer:
        """Return the producer in an epoch: a new one forgets the data of the epoch before (SEG-PSN-011)."""
        return self if epoch == self.producer_epoch else replace(self, producer_epoch=epoch, batches=())

    def after_data(self, entry: Entry) -> Producer:
        """Return the producer after a data batch."""
        header, known = entry.header, self.in_epoch(entry.header.producer_epoch)
        batch = Batch(
            sequence_of(header.base_sequence, header.last_offset_delta), entry.last_offset, header.last_offset_delta
        )
        begins = entry.is_transactional and self.current_txn_first_offset == NONE  # SEG-LKP-016
        return replace(
            known,
            batches=(*known.batches, batch)[-REMEMBERED:],  # SEG-PSN-011
            timestamp_ms=entry.max_timestamp_ms,  # SEG-PSN-012
            current_txn_first_offset=header.base_offset if begins else self.current_txn_first_offset,
        )

    def after_marker(self, entry: Entry, marker: Marker) -> Producer:
        """Return the producer after a transaction marker: its epoch may be a new one (chapter 32)."""
        return replace(
            self.in_epoch(entry.header.producer_epoch),  # SEG-PSN-011, SEG-PSN-012
            timestamp_ms=marker.timestamp_ms,  # SEG-PSN-012
            coordinator_epoch=marker.coordinator_epoch,
            current_txn_first_offset=NONE,
        )


class Producers(dict[int, Producer]):
    """The state of all producers before some offset, by their ids."""

    @property
    def open_offsets(self) -> dict[int, int]:
        """First offsets of the open transactions, by producer id."""
        firsts = {producer_id: each.current_txn_first_offset for producer_id, each in self.items()}
        return {producer_id: first for producer_id, first in firsts.items() if first != NONE}

    def add(self, entry: Entry, marker: Marker | None) -> AbortedTransaction | None:
        """Apply the next entry; return the transaction that it aborts (chapter 60)."""
        if entry.producer_id < 0 or (entry.is_control and marker is None):  # SEG-CTL-007
            return None
        known = self.get(entry.producer_id, Producer(entry.producer_id))
        if marker is None:
            if known.current_txn_first_offset != NONE and not entry.is_transactional:
                raise Damage("SEG-APP-023", entry.position, "outside of the open transaction")
            self[entry.producer_id] = known.after_data(entry)
            return None
        _, aborted = after_entry(self.open_offsets, entry, marker)
        self[entry.producer_id] = known.after_marker(entry, marker)
        return aborted


def snapshot_of(producers: Iterable[Producer]) -> bytes:
    """Return the bytes of a snapshot."""
    entries = [_as_entry(each) for each in sorted(producers, key=lambda each: each.producer_id)]
    data = ProducerSnapshot.build({"version": 1, "crc": 0, "count": len(entries), "producers": entries})  # SEG-PSN-007
    header = ProducerSnapshotHeader.parse(data)
    header.crc = crc32c(data[_AFTER_CRC:])  # SEG-PSN-002
    return bytes(ProducerSnapshotHeader.build(header) + data[ProducerSnapshotHeader.sizeof() :])


def _as_entry(producer: Producer) -> dict[str, int]:
    newest = producer.batches[-1] if producer.batches else NO_BATCH  # SEG-PSN-011
    return {
        **{name: getattr(newest, name) for name in Batch.__slots__},
        **{name: getattr(producer, name) for name in Producer.__slots__ if name != "batches"},
    }


def snapshot_entries(data: bytes) -> list[Any]:
    """Return the entries of a snapshot as declared.

    Raises:
        Damage: a reader skips it (SEG-PSN-005).
    """
    size = ProducerSnapshotHeader.sizeof()
    if len(data) < size:
        raise Damage("SEG-PSN-003", text=f"{len(data)} bytes")
    header = ProducerSnapshotHeader.parse(data)
    if header.version != 1:
        raise Damage("SEG-PSN-001", text=f"version {header.version}")
    if header.crc != crc32c(data[_AFTER_CRC:]):
        raise Damage("SEG-PSN-002", text=f"checksum {header.crc:#010x}")
    if len(data) != size + header.count * ProducerStateEntry.sizeof():
        raise Damage("SEG-PSN-003", text=f"count {header.count}")
    return list(ProducerSnapshot.parse(data).producers)


def producers_in(data: bytes) -> Producers:
    """Return the producers of a snapshot; of each only the newest batch is known."""
    found = Producers()
    for entry in snapshot_entries(data):
        batch = Batch(entry.last_sequence, entry.last_offset, entry.offset_delta)
        known = {name: entry[name] for name in Producer.__slots__ if name != "batches"}
        found[entry.producer_id] = Producer(**known, batches=(batch,) if entry.last_offset >= 0 else ())
    return found


def without_expired(producers: Iterable[Producer], oldest_ms: int) -> Producers:
    """Return the producers that a broker keeps when it loads a snapshot (chapter 50, "Expiration")."""
    kept = (each for each in producers if each.current_txn_first_offset != NONE or each.timestamp_ms > oldest_ms)
    return Producers({each.producer_id: each for each in kept})


def snapshot_offsets(directory: Directory) -> list[int]:
    """Return the offsets of the snapshots in a directory, ascending."""
    return sorted(offsets_of(directory, SNAPSHOT))


def is_readable(snapshot: bytes) -> bool:
    """Return whether a snapshot can be read."""
    return or_none(snapshot_entries, snapshot) is not None


def without_strays(offsets: Iterable[int], bases: Iterable[int]) -> list[int]:
    """Return the snapshots at which a segment begins, and the last if it is above all base offsets (SEG-RCV-035)."""
    ordered, starts = sorted(offsets), set(bases)
    newest = ordered[-1:] if ordered and ordered[-1] > max(starts, default=-1) else []
    return [offset for offset in ordered if offset in starts or offset in newest]


def keep_snapshots(files: dict[str, bytes], offsets: Iterable[int]) -> None:
    """Remove all snapshots but the readable ones at some offsets."""
    kept = set(offsets)
    for offset in snapshot_offsets(files):
        name = file_name(offset, SNAPSHOT)
        if offset not in kept or not is_readable(files[name]):  # SEG-RCV-027
            del files[name]


def producers_before(
    files: Directory, offset: int, decompress: Decompress, *, skips: bool = False, oldest_ms: int = MIN_TIME
) -> Producers:
    """Return the producers where a segment begins: by the newest snapshot there, and the entries after it.

    Those of the snapshot whose last append is not after a time are left out.
    """
    usable = [at for at in snapshot_offsets(files) if at <= offset and is_readable(files[file_name(at, SNAPSHOT)])]
    start = usable[-1] if usable else 0  # SEG-PSN-005
    known = producers_in(files[file_name(start, SNAPSHOT)]) if usable else Producers()
    return replayed(without_expired(known.values(), oldest_ms), files, range(start, offset), decompress, skips=skips)


def replayed(
    producers: Producers, files: Directory, offsets: range, decompress: Decompress, *, skips: bool
) -> Producers:
    """Return producers after more entries of a log: from the first that ends in a range of offsets.

    Raises:
        Damage: an entry cannot be applied; a recovery skips it.
    """

    def apply(entry: Entry) -> None:
        producers.add(entry, marker_of(entry, decompress))

    for base in base_offsets(files):
        for entry in up_to_damage(files[file_name(base, LOG)]) if base < offsets.stop else ():
            if entry.last_offset >= offsets.start:
                or_none(apply, entry) if skips else apply(entry)
    return producers

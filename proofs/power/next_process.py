"""The next process after a power cut, which opens the log directory as a user does.

Like every start, it trusts the clean-shutdown file, checkpoints, indexes and producer snapshots. Only without a
clean-shutdown file does it recover first.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from proofs.entries import with_offset
from proofs.power.life import TOPIC, log_bytes, path_of
from proofs.power.world import START_MS
from seglog_format import (
    ControlRecordType,
    Environment,
    LogWriter,
    RecoveryOptions,
    Severity,
    decode_batch,
    new_record,
    open_partition,
    recover,
    verify,
    walk,
)
from seglog_format.codec.control_record import end_marker_of
from seglog_format.errors import Location, SeglogError, UsageError
from seglog_format.types import RecordBatchHeader

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from seglog_format import PartitionWriter
    from seglog_format.types import Frame

CLEAN_SHUTDOWN: Final = ".kafka_cleanshutdown"
ONE_MORE: Final = b"one more"
ASKS_FOR_RECOVERY: Final = "recover the directory first"
"""Compaction that was cut off in a directory that was closed before: a user is told to run `seglog recover`."""
ABORTED: Final = struct.Struct(">hqqqq")
"""An entry of a transaction index: version, producer id, first, last and last stable offset."""


class HistoryError(Exception):
    """An event that must not happen."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A partition when it was opened.

    Attributes:
        log: the bytes of all its segments.
        log_start_offset: first offset for readers.
        next_offset: offset that the next record got.
    """

    log: bytes
    log_start_offset: int
    next_offset: int


def open_as_user(root: Path, partitions: Iterable[int]) -> dict[int, Opened]:
    """Open a log directory, append to each partition, close it, and read everything.

    Raises:
        HistoryError: a check fails that does not depend on promises.
        SeglogError: it cannot be opened.
    """
    numbers = list(partitions)
    if (root / CLEAN_SHUTDOWN).exists():
        check_clean(root, numbers)
    try:
        opened = _all_opened(root, numbers)
    except UsageError as error:
        if ASKS_FOR_RECOVERY not in str(error):
            raise
        for path in (path_of(root, partition) for partition in numbers):
            if path.is_dir():
                recover(path).apply()
        opened = _all_opened(root, numbers)
    check_verified(root)
    for partition in numbers:
        check_readable(path_of(root, partition))
        if not log_bytes(path_of(root, partition)).startswith(opened[partition].log.rstrip(b"\0")):
            msg = f"{TOPIC}-{partition}: an append changed what was there"
            raise HistoryError(msg)
    return opened


def _all_opened(root: Path, partitions: list[int]) -> dict[int, Opened]:
    soon = Environment(clock=lambda: START_MS + 3_600_000)  # a day later, producers are forgotten
    with LogWriter(root, environment=soon) as writer:
        writers = {partition: writer.open(TOPIC, partition) for partition in partitions}
        return {partition: _appended(opened, path_of(root, partition)) for partition, opened in writers.items()}


def check_clean(root: Path, partitions: list[int]) -> None:
    """Check that with a clean-shutdown file, there are no findings, and nothing is left to recover."""
    check_verified(root)
    for path in (path_of(root, partition) for partition in partitions):
        if not path.is_dir():
            continue
        prepared = recover(path, options=RecoveryOptions(is_full_scan=True))
        for cut in prepared.plan.cuts:
            msg = f"closed cleanly, and yet recovery cuts {path.name}: {cut}"
            raise HistoryError(msg)


def check_verified(root: Path) -> None:
    """Check that `verify` finds no error; it refuses a directory without any log."""
    if not any(root.glob(f"{TOPIC}-*")):
        return
    for finding in verify(root):
        if finding.severity is Severity.ERROR:
            msg = f"verify: {finding}"
            raise HistoryError(msg)


def _appended(writer: PartitionWriter, path: Path) -> Opened:
    log, log_start_offset = log_bytes(path), writer.log_start_offset
    _send_again(writer, log)
    appended = writer.append([new_record(value=ONE_MORE)], acks="flushed")
    return Opened(log, log_start_offset, appended.first_offset)


def _send_again(writer: PartitionWriter, log: bytes) -> None:
    """Check that the last batch of each producer is recognized as a duplicate when it is sent again."""
    last = {header.producer_id: (frame, header) for frame, header in _batches(log) if header.producer_id >= 0}
    for frame, header in last.values():
        if header.is_control or header.records_count != header.last_offset_delta + 1:
            continue  # a batch from which compaction has removed records cannot be sent
        try:
            again = writer.append(with_offset(frame.data, 0))
        except SeglogError as error:
            msg = f"the batch at {header.base_offset} comes again and is refused: {error}"
            raise HistoryError(msg) from error
        if not again.is_duplicate or again.first_offset != header.base_offset:
            msg = f"the batch at {header.base_offset} comes again and is appended at {again.first_offset}"
            raise HistoryError(msg)


def check_readable(path: Path) -> None:
    """Check that every record can be read in order, from any offset, by the indexes; and that aborts are known."""
    log = log_bytes(path)
    with open_partition(path, trust_indexes=True) as partition:
        start = partition.log_start_offset
        wanted = [offset for offset in _offsets(log) if offset >= start]
        for at in {start, *wanted[-1:], *wanted[len(wanted) // 2 :][:1]}:
            found = [record.offset for record in partition.records(at, on_gap=_ignore)]
            if found != [offset for offset in wanted if offset >= at]:
                msg = f"{path.name}: reading from {at} gives {found}, and the log holds {wanted}"
                raise HistoryError(msg)
    missing = {each for each in _aborts(log) if each[1] >= start} - _listed_aborts(path)
    if missing:
        msg = f"{path.name}: no transaction index lists what was aborted (producer, offset): {sorted(missing)}"
        raise HistoryError(msg)


def _ignore(_: object) -> None:
    """Ignore a gap: followers leave out the same offsets as their leader, and compaction and retention make gaps."""


def _batches(log: bytes) -> Iterator[tuple[Frame, RecordBatchHeader]]:
    for frame in walk(log):
        if isinstance(frame.header, RecordBatchHeader):
            yield frame, frame.header


def _offsets(log: bytes) -> Iterator[int]:
    """Yield the offsets of all records except control records."""
    for frame, header in _batches(log):
        if not header.is_control:
            yield from (record.offset for record in decode_batch(frame.data).records)


def _aborts(log: bytes) -> set[tuple[int, int]]:
    """Return producer and marker offset of each transaction that was aborted and whose first record exists."""
    is_open: set[int] = set()
    found = set()
    for frame, header in _batches(log):
        if not header.is_control:
            if header.is_transactional:
                is_open.add(header.producer_id)
            continue
        marker = end_marker_of(frame, Location("", frame.position))
        if marker is not None and header.producer_id in is_open:
            is_open.discard(header.producer_id)
            if marker.kind is ControlRecordType.ABORT:
                found.add((header.producer_id, header.base_offset))
    return found


def _listed_aborts(path: Path) -> set[tuple[int, int]]:
    found = set()
    for index in path.glob("*.txnindex"):
        data = index.read_bytes()
        entries = ABORTED.iter_unpack(data[: len(data) - len(data) % ABORTED.size])
        found |= {(producer_id, last) for _, producer_id, _, last, _ in entries}
    return found

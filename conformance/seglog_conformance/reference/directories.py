"""Operations on partition directories: lookup, read, recover, truncate. Each request has a directory of its own."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from seglog_conformance.reference.appends import aborted_of
from seglog_conformance.reference.logs import records_of
from seglog_conformance.reference.scratch import (
    TOPIC,
    checkpoints_beside,
    disk_of,
    files_in,
    outcomes,
    plain_name,
    written,
)
from seglog_conformance.reference.wire import rejection
from seglog_format.checks import verify as verify_files
from seglog_format.errors import FormatError, OffsetOutOfRangeError, SeglogError
from seglog_format.log.index_file import ProducerSnapshot, newest_readable_snapshot
from seglog_format.log.partition import DEFAULT_MAX_BYTES, partition_at
from seglog_format.log.scanning import storage_for
from seglog_format.model import AbortedTxn, Frame, RecordBatch
from seglog_format.recovery.apply import RecoveryOptions, prepare_recovery, recover_partition
from seglog_format.recovery.truncation import truncate_to

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from seglog_conformance.protocol import Json
    from seglog_format.engine import Engine
    from seglog_format.log.partition import Partition
    from seglog_format.log.reading import Isolation
    from seglog_format.recovery.apply import PreparedRecovery
    from seglog_format.recovery.segment_scan import Remark


def _opened(path: Path, request: Json, engine: Engine) -> Partition:
    trust_indexes = request.get("options", {}).get("trustIndexes", False)
    return partition_at(path, storage_for(engine), trust_indexes=trust_indexes)


def lookup(request: Json, engine: Engine) -> Json:
    """Return the result of a lookup of an offset or a timestamp."""
    with written(request) as path, _opened(path, request, engine) as partition:
        try:
            found = _found(partition, request)
        except OffsetOutOfRangeError:
            found = None
        except SeglogError as error:
            return rejection(error)
    return {"ok": True, "found": found}


def _found(partition: Partition, request: Json) -> Json | None:
    if "newest" in request:
        return _newest_snapshot(partition)
    if "fromOffset" in request:
        return _aborted(partition, int(request["fromOffset"]), int(request["toOffset"]))
    return _by_offset(partition, request) if "offset" in request else _by_timestamp(partition, request)


def _newest_snapshot(partition: Partition) -> Json | None:
    found = newest_readable_snapshot(
        (file.path for file in partition.listing.snapshots),
        partial(ProducerSnapshot.open, storage=partition.listing.storage),
    )
    if found is None:
        return None
    return {"baseOffset": str(found.offset), "producers": [str(one.producer_id) for one in found.producers]}


def _aborted(partition: Partition, start: int, end: int) -> Json:
    """Return the entries of transaction indexes for a range, from the segment that holds its start."""
    entries: list[AbortedTxn] = []
    first = partition.segment_for(start).base_offset
    for segment in partition.segments:
        index = segment.transaction_index if segment.base_offset >= first else None
        if index is not None:
            found = index.aborted(start, end)
            entries += found.aborted
            if found.is_complete:
                return {"aborted": aborted_of(entries), "isComplete": True}
    return {"aborted": aborted_of(entries), "isComplete": False}


def _by_offset(partition: Partition, request: Json) -> Json | None:
    offset = int(request["offset"])
    segment = partition.segment_for(offset)
    index = segment.offset_index
    entry = None if index is None else index.lookup(offset)
    found_position = _find_position(partition, offset)
    if found_position is None:
        return None
    return {
        "entry": None if entry is None else {"offset": str(entry.offset), "position": entry.position},
        **found_position,
    }


def _by_timestamp(partition: Partition, request: Json) -> Json | None:
    timestamp_ms = int(request["timestamp"])
    found = partition.offset_for_timestamp(timestamp_ms)
    if found is None:
        return None
    index = partition.segment_for(found.offset).time_index
    entry = None if index is None else index.lookup(timestamp_ms)
    return {
        "entry": None if entry is None else {"timestamp": str(entry.timestamp_ms), "offset": str(entry.offset)},
        "offset": str(found.offset),
        "timestamp": str(found.timestamp_ms),
        **(_find_position(partition, found.offset) or {}),
    }


def _find_position(partition: Partition, offset: int) -> Json | None:
    """Return position and base offset of the first batch that ends at or above an offset, in that segment or later."""
    first = partition.segment_for(offset).base_offset
    for segment in partition.segments:
        if segment.base_offset < first:
            continue
        position = segment.position_of(offset, trust_index=partition.trust_indexes)
        if position is None:
            continue
        frame = segment.frame_at(position)
        if isinstance(frame, Frame):
            base = segment.decode(frame).base_offset if frame.header.base_offset is None else frame.header.base_offset
            return {"position": position, "baseOffset": str(base)}
    return None


def read(request: Json, engine: Engine) -> Json:
    """Return the records of one fetch by a consumer; without an offset, all delivered records of the log."""
    with written(request) as path, _opened(path, request, engine) as partition:
        isolation = request.get("isolation", "read_uncommitted")
        if "offset" not in request:
            return _read_all(partition, isolation, engine)
        try:
            offset, size = int(request["offset"]), int(request.get("maxBytes", DEFAULT_MAX_BYTES))
            fetch = partition.read(offset, size, isolation=isolation)
        except SeglogError as error:
            return rejection(error)
    wanted = {str(record.offset) for record in fetch.records}
    return {"ok": True, "records": _reported(fetch.batches, wanted), "nextOffset": str(fetch.next_offset)}


def _read_all(partition: Partition, isolation: Isolation, engine: Engine) -> Json:
    wanted: set[str] = set()
    refused: Json | None = None
    try:
        for record in partition.records(isolation=isolation, on_gap=lambda _: None, engine=engine):
            wanted.add(str(record.offset))
    except SeglogError as error:
        refused = rejection(error)
    records = _reported(_readable(partition), wanted)
    if refused is not None:
        return {**refused, "records": records}
    is_committed = isolation == "read_committed"
    end = partition.last_stable_offset if is_committed else partition.log_end_offset
    return {"ok": True, "records": records, "nextOffset": str(end)}


def _readable(partition: Partition) -> Iterator[RecordBatch]:
    with suppress(FormatError):
        yield from partition.batches()


def _reported(batches: Iterable[RecordBatch], wanted: set[str]) -> list[Json]:
    return [record for batch in batches for record in records_of(batch) if record["offset"] in wanted]


def verify(request: Json, engine: Engine) -> Json:
    """Return the findings about files: of a log directory, if names have a directory, else of a partition."""
    with tempfile.TemporaryDirectory(prefix="seglog-conform-") as root:
        is_log_directory = any("/" in name for name in request["files"])
        top = Path(root) / ("logs" if is_log_directory else f"{TOPIC}-0")
        top.mkdir()
        for name, data in request["files"].items():
            _put(top, name, bytes.fromhex(data))
        for name, size in request.get("options", {}).get("sizes", {}).items():
            os.truncate(top / plain_name(name), int(size))
        findings = [
            {"file": one.location.path, "requirement": one.requirement, "severity": one.severity.value}
            for one in verify_files(top, engine=engine)
        ]
    return {"ok": True, "findings": sorted(findings, key=lambda one: (one["file"], one["requirement"]))}


def _put(top: Path, name: str, data: bytes) -> None:
    """Write a file below a directory; if its name ends in a slash, make a directory."""
    directory, _, plain = name.rpartition("/")
    where = top / plain_name(directory) if directory else top
    where.mkdir(exist_ok=True)
    if plain:
        (where / plain_name(plain)).write_bytes(data)


def recover(request: Json, engine: Engine) -> Json:
    """Return the files after recovery: as a broker does it, unless ``likeBroker`` is false."""
    options = request.get("options", {})
    chosen = RecoveryOptions(
        like_broker=options.get("likeBroker", True), interval_bytes=options.get("indexIntervalBytes"), engine=engine
    )
    with written(request) as path:
        before, disk = _log_size(path), disk_of(request, path)
        try:
            done = recover_partition(path, options=chosen, files=disk)
        except (SeglogError, OSError) as error:
            return rejection(error) if isinstance(error, SeglogError) else _failed(error)
        if done.failure is not None:
            return _not_started(done.failure)
        after, beside = files_in(path), checkpoints_beside(path)
        end = _end_after(done, path, chosen)
        truncated = max(before - _log_size(path), 0)  # a completed replacement may be larger
    return {
        "ok": True,
        "truncatedBytes": truncated,
        "nextOffset": str(end),
        "files": after,
        "names": list(after),
        "checkpoints": beside,
        "plan": _plan(done),
        **outcomes(request, disk),
    }


def _end_after(done: PreparedRecovery, path: Path, options: RecoveryOptions) -> int:
    """Return the log end offset; after a split, that of a second recovery."""
    plan = prepare_recovery(path, options=options).plan if done.splits else done.plan
    return plan.log_end_offset


def _plan(done: PreparedRecovery) -> Json:
    """Return the decisions of recovery about the segments, with their rules, and with differences from brokers."""
    plan = done.plan
    cuts = [
        {
            "baseOffset": str(cut.base_offset),
            "position": cut.position,
            "nextOffset": str(cut.next_offset),
            "requirements": list(cut.requirements),
        }
        for cut in plan.cuts
    ]
    remarks, differences = map(_remarks, (plan.remarks, done.differences))
    scanned, dropped = map(str, plan.scanned), map(str, plan.dropped)
    reported = {"scanned": list(scanned), "cuts": cuts, "dropped": list(dropped)}
    return {**reported, "remarks": remarks, "differences": differences}


def _remarks(remarks: Sequence[Remark]) -> list[Json]:
    return [{"at": remark.location.position, "requirement": remark.requirements[0]} for remark in remarks]


def _not_started(failure: Remark) -> Json:
    """Return the rejection for a broker that would not start."""
    reject = {"class": "other", "message": failure.text, "requirement": failure.requirements[0]}
    return {"ok": False, "reject": reject}


def _log_size(partition: Path) -> int:
    return sum(path.stat().st_size for path in partition.glob("*.log"))


def truncate(request: Json) -> Json:
    """Return the files after truncation to an offset."""
    with written(request) as path:
        disk = disk_of(request, path)
        try:
            plan = truncate_to(path, int(request["offset"]), files=disk).plan
        except (SeglogError, FormatError) as error:
            return rejection(error)
        after = files_in(path)
        answer = {"ok": True, "nextOffset": str(plan.offset), "files": after, "names": list(after)}
        return {**answer, "checkpoints": checkpoints_beside(path), **outcomes(request, disk)}


def _failed(error: OSError) -> Json:
    return {"error": {"message": str(error)}}

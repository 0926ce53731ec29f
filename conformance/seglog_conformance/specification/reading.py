"""Operations that read: index, lookup and read."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from seglog_algorithms import lookup as chapter_60
from seglog_algorithms import offset_index, time_index, transaction_index
from seglog_algorithms.directory import TRANSACTION_INDEX, file_name, files_that_count
from seglog_algorithms.entries import up_to_damage
from seglog_algorithms.index_settings import DEFAULT_INTERVAL, Settings
from seglog_algorithms.indexes import indexes_of
from seglog_algorithms.logs import open_log
from seglog_algorithms.records import records_of
from seglog_algorithms.transactions import transactions_of

from seglog_conformance.protocol import MAX_BYTES_ON_WIRE
from seglog_conformance.reference.appends import aborted_of
from seglog_conformance.specification.answers import decompress, files_of, rejection
from seglog_format.model import AbortedTxn

if TYPE_CHECKING:
    from seglog_algorithms.entries import Entry
    from seglog_algorithms.logs import Log
    from seglog_algorithms.records import Record

    from seglog_conformance.protocol import Json


def index(request: Json) -> Json:
    """Return the indexes of a log, as recovery builds them."""
    base = int(request.get("baseOffset", 0))
    log, interval = bytes.fromhex(request["data"]), int(request.get("indexIntervalBytes", DEFAULT_INTERVAL))
    indexes = indexes_of(log, base, Settings(interval), decompress)
    files = {".index": indexes.offset.hex(), ".timeindex": indexes.time.hex()}
    if aborted := transaction_index.build(up_to_damage(log), {}, decompress):
        files[".txnindex"] = aborted.hex()
    return {"ok": True, "files": files}


def opened(request: Json) -> Log:
    """Return the log of a request."""
    options = request.get("options", {})
    return open_log(
        files_of(request),
        decompress,
        checkpointed_start=int(options.get("logStartOffset", 0)),
        trusts_indexes=options.get("trustIndexes", False),
    )


def lookup(request: Json) -> Json:
    """Return the result of a lookup of an offset, a timestamp, or the aborted transactions of a range."""
    if "fromOffset" in request:
        return {"ok": True, "found": _aborted(request)}
    log = opened(request)
    return {"ok": True, "found": _by_offset(log, request) if "offset" in request else _by_timestamp(log, request)}


def _by_offset(log: Log, request: Json) -> Json | None:
    offset = int(request["offset"])
    found = chapter_60.find_offset(log, offset)
    if found is None:
        return None
    segment = chapter_60.segments_from(log, offset)[0]
    entry = None
    if file_name(segment.base_offset, ".index") in files_that_count(files_of(request)):
        hint = offset_index.lookup(segment.offset_index, segment.base_offset, offset)
        entry = {"offset": str(hint.offset), "position": hint.position}
    return {"entry": entry, **_first_entry(log, found)}


def _first_entry(log: Log, found: Entry) -> Json:
    first = records_of(found, log.decompress)[0].offset if found.first_offset is None else found.first_offset
    return {"position": found.position, "baseOffset": str(first)}


def _by_timestamp(log: Log, request: Json) -> Json | None:
    timestamp_ms = int(request["timestamp"])
    found = chapter_60.find_timestamp(log, timestamp_ms)
    if found is None:
        return None
    segment = chapter_60.segments_from(log, found.offset)[0]
    entry = None
    if file_name(segment.base_offset, ".timeindex") in files_that_count(files_of(request)):
        hint = time_index.lookup(segment.time_index, segment.base_offset, timestamp_ms)
        entry = {"timestamp": str(hint.timestamp_ms), "offset": str(hint.offset)}
    entry_found = chapter_60.find_offset(log, found.offset)
    return {
        "entry": entry,
        "offset": str(found.offset),
        "timestamp": str(found.timestamp_ms),
        **({} if entry_found is None else _first_entry(log, entry_found)),
    }


def _aborted(request: Json) -> Json:
    log, start, end = opened(request), int(request["fromOffset"]), int(request["toOffset"])
    files = files_that_count(files_of(request))
    names = (file_name(segment.base_offset, TRANSACTION_INDEX) for segment in chapter_60.segments_from(log, start))
    entries, is_complete = transaction_index.aborted_in_range([files.get(name, b"") for name in names], start, end)
    return {"aborted": aborted_of([AbortedTxn(0, *one) for one in entries]), "isComplete": is_complete}


def read(request: Json) -> Json:
    """Return the records of one fetch by a consumer; without an offset, all delivered records of the log."""
    log = opened(request)
    is_committed = request.get("isolation") == "read_committed"
    if "offset" not in request:
        records, damage = chapter_60.read_all(log, is_committed=is_committed)
        shown = [record_of(record) for record in records]
        if damage is not None:
            return {**rejection(damage), "records": shown}
        end = transactions_of(log).last_stable_offset if is_committed else chapter_60.log_end_offset(log)
        return {"ok": True, "records": shown, "nextOffset": str(end)}
    fetched = chapter_60.fetch(
        log, int(request["offset"]), int(request.get("maxBytes", 1 << 20)), is_committed=is_committed
    )
    shown = [record_of(record) for record in fetched.records]
    return {"ok": True, "records": shown, "nextOffset": str(fetched.next_offset)}


def record_of(record: Record) -> Json:
    """Return a record in an answer."""
    found: Json = {
        "offset": str(record.offset),
        "timestamp": str(record.timestamp_ms),
        "key": bytes_of(record.key),
        "value": bytes_of(record.value),
        "attributes": record.attributes,
    }
    if record.sequence >= 0:
        found["sequence"] = record.sequence
    if record.headers:
        found["headers"] = [[bytes_of(key), bytes_of(value)] for key, value in record.headers]
    return found


def bytes_of(value: bytes | None) -> object:
    """Return bytes in an answer; long ones as a digest."""
    if value is None or len(value) <= MAX_BYTES_ON_WIRE:
        return None if value is None else value.hex()
    return {"bytes": len(value), "sha256": hashlib.sha256(value).hexdigest()}

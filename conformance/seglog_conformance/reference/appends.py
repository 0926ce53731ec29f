"""Checks of bytes before an append to a log with some contents: validate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog_conformance.reference.logs import decode
from seglog_conformance.reference.wire import rejection
from seglog_format.codec.decode import decode_batch
from seglog_format.codec.framing import walk
from seglog_format.errors import FormatError, Location, UsageError
from seglog_format.model import AbortedTxn, EpochStart, RecordBatchHeader
from seglog_format.state.config import LogConfig
from seglog_format.state.producer_state import LeaderEpochs, Origin, ProducerStates
from seglog_format.writing.append import Assignment, Entry, as_follower, as_leader, check_as_leader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seglog_conformance.protocol import Json


def validate(request: Json) -> Json:
    """Return whether a consumer (``read``), a leader (``append``), or a follower (``replicate``) accepts the bytes."""
    try:
        if request["policy"] == "read":
            return _read(request)
        entries = _entries(request)
        answer = {"ok": True, "accept": True, "entries": [_appended(entry) for entry in entries]}
        return {**answer, **_state(request, entries), **_epochs(request, entries)}
    except (UsageError, FormatError) as error:
        return rejection(error)


def _read(request: Json) -> Json:
    """Check that all of the bytes are whole entries."""
    answer = decode(request)
    if answer["ok"] and answer["tail"] is not None:
        at = int(answer["tail"]["at"])
        decode_batch(bytes.fromhex(request["data"])[at:], at=Location("", at))
    return {"ok": True, "accept": True} if answer["ok"] else {"ok": False, "reject": answer["reject"]}


def _entries(request: Json) -> tuple[Entry, ...]:
    data, next_offset = bytes.fromhex(request["data"]), int(request.get("baseOffset", 0))
    config = LogConfig.from_properties(request.get("config", {}))
    epoch = request.get("leaderEpoch")
    if request["policy"] == "replicate":
        return as_follower(data, config, next_offset=next_offset, leader_epoch=epoch)
    now_ms = int(request.get("now", 0))
    checked = check_as_leader(data, config, now_ms=now_ms, origin=_origin(request))
    return as_leader(checked.entries, config, Assignment(next_offset, epoch or 0, now_ms))


def _origin(request: Json) -> Origin:
    return Origin.REPLICATION if request["policy"] == "replicate" else Origin(request.get("origin", "client"))


def _appended(entry: Entry) -> Json:
    return {
        "data": entry.data.hex(),
        "firstOffset": str(entry.first_offset),
        "lastOffset": str(entry.last_offset),
        "maxTimestamp": str(entry.largest.timestamp_ms),
        "maxTimestampOffset": str(entry.largest.offset),
        "batches": decode({"data": entry.data.hex()}).get("batches", []),
    }


def _state(request: Json, entries: Sequence[Entry]) -> Json:
    """Check the entries also against the state of producers, if the request has the contents of the log."""
    if "log" not in request:
        return {}
    states, origin = _producers(bytes.fromhex(request["log"])), _origin(request)
    batches = [(one.header, one.marker) for one in entries if isinstance(one.header, RecordBatchHeader)]
    repeated = states.duplicate_of(batches[0][0]) if batches and origin is Origin.CLIENT else None
    if repeated is not None:
        return {"entries": [], "duplicateOf": str(repeated.last_offset), "aborted": []}
    aborted = states.apply(states.changes(batches, origin), entries[-1].last_offset + 1)
    return {"duplicateOf": None, "aborted": aborted_of(aborted)}


def _producers(log: bytes) -> ProducerStates:
    states = ProducerStates()
    states.replay(walk(log), "log")
    return states


def aborted_of(transactions: Sequence[AbortedTxn]) -> list[Json]:
    """Return entries of a transaction index."""
    return [
        {
            "producerId": str(one.producer_id),
            "firstOffset": str(one.first_offset),
            "lastOffset": str(one.last_offset),
            "lastStableOffset": str(one.last_stable_offset),
        }
        for one in transactions
    ]


def _epochs(request: Json, entries: Sequence[Entry]) -> Json:
    """Return the leader epochs after the append, if the request has those before."""
    if "leaderEpochs" not in request:
        return {}
    epochs = LeaderEpochs(EpochStart(int(epoch), int(start)) for epoch, start in request["leaderEpochs"])
    for entry in entries:
        if isinstance(entry.header, RecordBatchHeader):
            epochs.assign(entry.header.partition_leader_epoch, entry.header.base_offset)
        else:
            epochs.clear()
    return {"leaderEpochs": [[one.epoch, str(one.start_offset)] for one in epochs.entries]}

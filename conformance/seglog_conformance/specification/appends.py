"""Operations of chapter 70: validate, and the decision to roll."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from seglog_algorithms import appending, rolling
from seglog_algorithms.control_records import marker_of
from seglog_algorithms.damage import Damage
from seglog_algorithms.entries import check_crc, walk
from seglog_algorithms.leader_epochs import Epochs, assigned
from seglog_algorithms.producers import Producers
from seglog_algorithms.records import records_of

from seglog_conformance.reference.appends import aborted_of
from seglog_conformance.reference.decisions import active_of, incoming_of
from seglog_conformance.specification.answers import compress, decompress
from seglog_conformance.specification.batches import batch_of
from seglog_format.model import AbortedTxn

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seglog_algorithms.appending import Appended, Settings

    from seglog_conformance.protocol import Json

SETTINGS: Final = appending.Settings.__slots__


def validate(request: Json) -> Json:
    """Return whether a consumer, a leader or a follower accepts the bytes."""
    data = bytes.fromhex(request["data"])
    if request["policy"] == "read":
        return read(data)
    origin = "replication" if request["policy"] == "replicate" else request.get("origin", "client")
    appended = appended_of(request, data, origin)
    answer: Json = {"ok": True, "accept": True, "entries": [as_entry(each) for each in appended]}
    if "log" in request:
        answer |= against_log(bytes.fromhex(request["log"]), appended, origin)
    if "leaderEpochs" in request:
        answer["leaderEpochs"] = epochs_after(request["leaderEpochs"], appended)
    return answer


def read(data: bytes) -> Json:
    """Return whether all of the bytes are whole entries that can be read."""
    end = 0
    for entry in walk(data):
        check_crc(entry)
        records_of(entry, decompress)
        end = entry.end
    if end < len(data):
        rule = "SEG-LOG-004"
        raise Damage(rule, end)
    return {"ok": True, "accept": True}


def appended_of(request: Json, data: bytes, origin: str) -> Sequence[Appended]:
    """Return the entries that a leader or a follower writes."""
    settings, end, epoch = settings_of(request), int(request.get("baseOffset", 0)), request.get("leaderEpoch")
    if origin == appending.REPLICATION:
        return appending.as_follower(data, settings, end=end, leader_epoch=epoch, decompress=decompress)
    return appending.as_leader(
        data,
        settings,
        end=end,
        leader_epoch=epoch or 0,
        now_ms=int(request.get("now", 0)),
        origin=origin,
        decompress=decompress,
        compress=compress,
    )


def settings_of(request: Json) -> Settings:
    """Return the settings of a request."""
    config = {name.removeprefix("internal."): text for name, text in request.get("config", {}).items()}
    known: dict[str, Any] = {
        "is_compacted": "compact" in config.pop("cleanup.policy", ""),
        "is_log_append_time": config.pop("message.timestamp.type", "") == "LogAppendTime",
        "preallocate": config.pop("preallocate", "") == "true",
        "generation": config.pop("generation", "4.1"),
    }
    numbers = {name.replace(".", "_"): text for name, text in config.items()}
    known |= {name: int(text) for name, text in numbers.items() if name in SETTINGS}
    return appending.Settings(**known)


def as_entry(appended: Appended) -> Json:
    """Return an entry of an answer."""
    return {
        "data": appended.entry.data.hex(),
        "firstOffset": str(appended.first_offset),
        "lastOffset": str(appended.entry.last_offset),
        "maxTimestamp": str(appended.largest_ms),
        "maxTimestampOffset": str(appended.largest_offset),
        "batches": [batch_of(next(walk(appended.entry.data)))],
    }


def against_log(log: bytes, appended: Sequence[Appended], origin: str) -> Json:
    """Check entries against the producers of a log."""
    producers = Producers()
    for entry in walk(log):
        producers.add(entry, marker_of(entry, decompress))
    batches = [each.entry for each in appended if each.entry.is_batch]
    repeated = appending.duplicate_of(batches[0], producers) if batches and origin == appending.CLIENT else None
    if repeated is not None:
        return {"entries": [], "duplicateOf": str(repeated.last_offset), "aborted": []}
    _, aborted = appending.applied(appended, producers, origin)
    return {"duplicateOf": None, "aborted": aborted_of([AbortedTxn(0, *one) for one in aborted])}


def epochs_after(known: Sequence[Sequence[Any]], appended: Sequence[Appended]) -> list[list[object]]:
    """Return the leader epochs after an append."""
    epochs: Epochs = [(int(epoch), int(start)) for epoch, start in known]
    for each in appended:
        entry = each.entry
        epochs = assigned(epochs, entry.leader_epoch, entry.header.base_offset) if entry.is_batch else []  # SEG-APP-025
    return [[epoch, str(start)] for epoch, start in epochs]


def decide_roll(request: Json) -> Json:
    """Return whether an append ends the active segment."""
    settings, active, given = settings_of(request), request["listing"][-1], request["incoming"]
    state, incoming = rolling.Active(**active_of(active)), rolling.Incoming(**incoming_of(given))
    base = state.base_offset
    reason = rolling.roll_reason(state, incoming, settings, int(request.get("now", 0)))
    if reason is None:
        return {"ok": True, "decision": "keep", "reason": None, "segments": [str(base)]}
    new = rolling.new_base_offset(int(active.get("nextOffset", base)), incoming, settings)
    return {"ok": True, "decision": "roll", "reason": reason, "baseOffset": str(new), "segments": [str(base)]}

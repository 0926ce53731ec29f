"""Decisions about segments: when a log rolls, which segments retention deletes, and which compaction rewrites."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seglog_conformance.reference.scratch import config_of
from seglog_conformance.reference.wire import rejection
from seglog_format.cleaning.compaction import CompactedSegment, plan_compaction
from seglog_format.cleaning.retention import RetainedSegment, plan_retention
from seglog_format.errors import UsageError
from seglog_format.log.remote_store import RemoteCopies
from seglog_format.writing.append import ActiveState, Incoming, new_base_offset, roll_reason

if TYPE_CHECKING:
    from seglog_conformance.protocol import Json
    from seglog_format.state.config import LogConfig


def decide(request: Json) -> Json:
    """Return the decision, and the segments concerned."""
    try:
        config = config_of(request)
        if request["what"] == "roll":
            return _roll(request, config)
        if request["what"] == "retain":
            return _retain(request, config)
        return _compact(request, config)
    except UsageError as error:
        return rejection(error)


def _number(holder: Json, name: str, default: int = 0) -> int:
    return int(holder.get(name, default))


def _roll(request: Json, config: LogConfig) -> Json:
    active = request["listing"][-1]
    state, incoming = ActiveState(**active_of(active)), Incoming(**incoming_of(request["incoming"]))
    reason = roll_reason(state, incoming, config, _number(request, "now"))
    if reason is None:
        return {"ok": True, "decision": "keep", "reason": None, "segments": [str(state.base_offset)]}
    end = _number(active, "nextOffset", state.base_offset)
    base = new_base_offset(end, incoming, config.generation)
    answer = {"ok": True, "decision": "roll", "reason": reason.value, "baseOffset": str(base)}
    return {**answer, "segments": [str(state.base_offset)]}


def active_of(one: Json) -> dict[str, Any]:
    """Return the properties of a listed segment that the decision to roll uses."""
    return {
        "base_offset": _number(one, "baseOffset"),
        "size": _number(one, "size"),
        "first_timestamp_ms": _number(one, "firstTimestamp", -1),
        "created_ms": _number(one, "created"),
        "jitter_ms": _number(one, "jitter"),
        "is_offset_index_full": one.get("isOffsetIndexFull", False),
        "is_time_index_full": one.get("isTimeIndexFull", False),
    }


def incoming_of(given: Json) -> dict[str, int]:
    """Return the properties of an append that the decision to roll uses."""
    return {
        "size": _number(given, "size"),
        "max_timestamp_ms": _number(given, "maxTimestamp", -1),
        "first_offset": _number(given, "firstOffset"),
        "last_offset": _number(given, "lastOffset"),
        "magic": _number(given, "magic", 2),
    }


def facts_of(one: Json) -> dict[str, int]:
    """Return the properties of a listed segment that both retention and compaction use."""
    return {
        "base_offset": _number(one, "baseOffset"),
        "next_offset": _number(one, "nextOffset"),
        "size": _number(one, "size"),
        "largest_timestamp_ms": _number(one, "largestTimestamp", -1),
        "modified_ms": _number(one, "modified"),
    }


def sizes_of(one: Json) -> dict[str, int]:
    """Return the properties of a listed segment that compaction uses in addition."""
    return {
        "offset_index_size": _number(one, "offsetIndexSize"),
        "time_index_size": _number(one, "timeIndexSize"),
        "first_timestamp_ms": _number(one, "firstTimestamp", -1),
    }


def _retain(request: Json, config: LogConfig) -> Json:
    segments = [RetainedSegment(**facts_of(one)) for one in request["listing"]]
    mark, copied = request.get("highWatermark"), request.get("copiedOffset")
    plan = plan_retention(
        segments,
        config,
        now_ms=_number(request, "now"),
        log_start_offset=_number(request, "logStartOffset"),
        high_watermark=None if mark is None else int(mark),
        copies=None if copied is None else copies_to(int(copied)),
    )
    return {
        "ok": True,
        "decision": "delete" if plan.removed else "keep",
        "segments": [str(segment.base_offset) for segment in plan.removed],
        "logStartOffset": str(plan.log_start_offset),
        "rollsFirst": plan.rolls_first,
    }


def copies_to(offset: int) -> RemoteCopies:
    """Return that a remote store has every offset up to one, inclusive."""
    return RemoteCopies("the store", offset, ((0, offset),))


def _compact(request: Json, config: LogConfig) -> Json:
    segments = [CompactedSegment(**facts_of(one), **sizes_of(one)) for one in request["listing"]]
    known = {
        name: int(request[key])
        for key, name in (
            ("cleanerOffset", "cleaner_offset"),
            ("lastStableOffset", "last_stable_offset"),
            ("endOffset", "end_offset"),
        )
        if key in request
    }
    start = _number(request, "logStartOffset")
    plan = plan_compaction(segments, config, now_ms=_number(request, "now"), log_start_offset=start, **known)
    return {
        "ok": True,
        "decision": "clean" if plan.groups else "keep",
        "segments": [str(one.base_offset) for group in plan.groups for one in group],
        "groups": [[str(one.base_offset) for one in group] for group in plan.groups],
        "firstDirtyOffset": str(plan.first_dirty_offset),
        "firstUncleanableOffset": str(plan.first_uncleanable_offset),
        "endOffset": str(plan.end_offset),
        "isDue": plan.is_due,
    }

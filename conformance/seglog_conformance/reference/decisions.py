"""Decisions about segments: when a log rolls, and what retention takes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seglog_conformance.reference.wire import rejection
from seglog_format.errors import UsageError
from seglog_format.lifecycle.config import LogConfig
from seglog_format.lifecycle.retention import RetainedSegment, plan_retention
from seglog_format.lifecycle.roll import ActiveState, Incoming, new_base_offset, roll_reason

if TYPE_CHECKING:
    from seglog_conformance.protocol import Json


def decide(request: Json) -> Json:
    """The decision, and the segments concerned."""
    try:
        config = LogConfig.from_properties(request.get("config", {}))
        if request["what"] == "roll":
            return _roll(request, config)
        if request["what"] == "retain":
            return _retain(request, config)
    except UsageError as error:
        return rejection(error)
    return {"skip": {"feature": f"decide:{request['what']}"}}


def _number(holder: Json, name: str, default: int = 0) -> int:
    return int(holder.get(name, default))


def _roll(request: Json, config: LogConfig) -> Json:
    active, given = request["listing"][-1], request["incoming"]
    state = ActiveState(
        base_offset=_number(active, "baseOffset"),
        size=_number(active, "size"),
        first_timestamp_ms=_number(active, "firstTimestamp", -1),
        created_ms=_number(active, "created"),
        jitter_ms=_number(active, "jitter"),
        is_offset_index_full=active.get("isOffsetIndexFull", False),
        is_time_index_full=active.get("isTimeIndexFull", False),
    )
    incoming = Incoming(
        size=_number(given, "size"),
        max_timestamp_ms=_number(given, "maxTimestamp", -1),
        first_offset=_number(given, "firstOffset"),
        last_offset=_number(given, "lastOffset"),
        magic=given.get("magic", 2),
    )
    reason = roll_reason(state, incoming, config, _number(request, "now"))
    if reason is None:
        return {"ok": True, "decision": "keep", "reason": None, "segments": [str(state.base_offset)]}
    end = _number(active, "nextOffset", state.base_offset)
    base = new_base_offset(end, incoming, config.generation)
    answer = {"ok": True, "decision": "roll", "reason": reason.value, "baseOffset": str(base)}
    return {**answer, "segments": [str(state.base_offset)]}


def _retain(request: Json, config: LogConfig) -> Json:
    segments = [
        RetainedSegment(
            base_offset=_number(one, "baseOffset"),
            next_offset=_number(one, "nextOffset"),
            size=_number(one, "size"),
            largest_timestamp_ms=_number(one, "largestTimestamp", -1),
            modified_ms=_number(one, "modified"),
        )
        for one in request["listing"]
    ]
    mark = request.get("highWatermark")
    plan = plan_retention(
        segments,
        config,
        now_ms=_number(request, "now"),
        log_start_offset=_number(request, "logStartOffset"),
        high_watermark=None if mark is None else int(mark),
    )
    return {
        "ok": True,
        "decision": "delete" if plan.removed else "keep",
        "segments": [str(segment.base_offset) for segment in plan.removed],
        "logStartOffset": str(plan.log_start_offset),
        "rollsFirst": plan.rolls_first,
    }

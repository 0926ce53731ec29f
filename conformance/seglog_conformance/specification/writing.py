"""Operation of chapters 70 and 71: write to an open log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seglog_algorithms.appending import EARLY
from seglog_algorithms.damage import Damage
from seglog_algorithms.index_settings import Settings as IndexSettings
from seglog_algorithms.leader_epochs import HIGH_WATERMARKS, LOG_STARTS, RECOVERY_POINTS, checkpoint
from seglog_algorithms.producers import Batch
from seglog_algorithms.recovery import recover
from seglog_algorithms.writing import OpenLog

from seglog_conformance.specification.answers import as_files, compress, decompress, files_of, rejection
from seglog_conformance.specification.appends import settings_of
from seglog_conformance.specification.recovering import around_of, as_checkpoints, checkpoints_of, offsets_in

if TYPE_CHECKING:
    from collections.abc import Callable

    from seglog_algorithms.appending import Settings

    from seglog_conformance.protocol import Json

PARTITION: Final = "topic-0"


def write(request: Json) -> Json:
    """Return the files after some steps, and the result of each step."""
    if any(step["do"] not in STEPS or "fails" in step for step in request["steps"]):
        return {"skip": {"feature": "retain"}}
    options, files = request.get("options", {}), files_of(request)
    beside = checkpoints_of(options)
    around, settings = around_of(options, beside), settings_of(request)
    if files and not around.clean:
        files = recover(files, around, decompress, settings.index_interval_bytes, _index_settings(settings)).directory
    now_ms, fraction = int(request.get("now", 0)), float(options.get("random", "0"))
    log = OpenLog(files, settings, around.log_start, decompress, compress, now_ms, fraction)
    steps = [_step(log, beside, step) for step in request["steps"]]
    log.close()
    others = {name for name in options.get("beside", {}) if not name.endswith("-delete")}
    return {
        "ok": True,
        "steps": steps,
        **_left(log, checkpoints_after(log, beside), is_clean=around.clean or others <= {PARTITION}),
        "nextOffset": str(log.end),
        "logStartOffset": str(max(log.log_start, log.first_base)),
        "lastStableOffset": str(log.last_stable_offset()),
    }


def _index_settings(settings: Settings) -> IndexSettings:
    is_early = settings.generation in EARLY
    return IndexSettings(settings.index_interval_bytes, is_early, settings.generation != "0.8")


def _left(log: OpenLog, beside: dict[str, bytes], *, is_clean: bool) -> Json:
    files = as_files(log.files)
    deleted = sorted(name for name in log.files if name.endswith(".deleted"))
    state = {"files": files, "names": [*files], "deleted": deleted}
    return {**state, "checkpoints": as_checkpoints(beside), "isClean": is_clean}


def checkpoints_after(log: OpenLog, beside: dict[str, bytes]) -> dict[str, bytes]:
    """Return the checkpoints of the log directory with those of the log (SEG-FLS-005, SEG-FLS-013, SEG-FLS-014)."""
    start = max(log.log_start, log.first_base)
    values = {
        RECOVERY_POINTS: log.recovery_point,
        LOG_STARTS: start if start > log.first_base else None,
        HIGH_WATERMARKS: log.end,
    }
    written = {}
    for name, value in values.items():
        known = offsets_in(beside.get(name, b""))
        known.pop(("topic", 0), None)
        if value is not None:
            known["topic", 0] = value
        written[name] = checkpoint([(*key, known[key]) for key in sorted(known)])
    return beside | written


def _step(log: OpenLog, beside: dict[str, bytes], step: Json) -> Json:
    log.now_ms = int(step.get("now", log.now_ms))
    try:
        return STEPS[step["do"]](log, step) if step["do"] != "look" else _left(log, beside, is_clean=False)
    except Damage as damage:
        return {"reject": rejection(damage)["reject"] | {"class": "policy"}}


def _append(log: OpenLog, step: Json) -> Json:
    data = bytes.fromhex(step["records"])
    if step.get("as", "leader") == "leader":
        if step.get("leaderEpoch", log.epoch) != log.epoch:
            log.lead(step["leaderEpoch"])
        done = log.append(data, step.get("origin", "client"))
    else:
        taken = log.append_as_follower(data, step.get("leaderEpoch"))
        if taken is None:
            return {"taken": False}
        done = taken
    if step.get("acks") == "flushed":
        log.flush()
    if isinstance(done, Batch):
        first, last, reason = done.last_offset - done.offset_delta, done.last_offset, None
    else:
        first, last, reason = done[0][0].first_offset, done[0][-1].entry.last_offset, done[1]
    return {
        "firstOffset": str(first),
        "lastOffset": str(last),
        "rolled": reason,
        "isDuplicate": isinstance(done, Batch),
        "recoveryPoint": str(log.recovery_point),
    }


def _roll(log: OpenLog, _step: Json) -> Json:
    log.roll(log.end)
    return {"baseOffset": str(log.end)}


def _flush(log: OpenLog, _step: Json) -> Json:
    log.flush()
    return {"recoveryPoint": str(log.recovery_point)}


def _lead(log: OpenLog, step: Json) -> Json:
    log.lead(step["leaderEpoch"])
    return {}


def _put(log: OpenLog, step: Json) -> Json:
    log.files |= files_of(step)
    return {}


def _schedule(log: OpenLog, _step: Json) -> Json:
    log.flush_if_due()
    return {"recoveryPoint": str(log.recovery_point)}


STEPS: Final[dict[str, Callable[[OpenLog, Json], Json]]] = {
    "append": _append,
    "roll": _roll,
    "flush": _flush,
    "lead": _lead,
    "put": _put,
    "schedule": _schedule,
    "look": _put,
}

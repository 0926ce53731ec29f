"""Retention and compaction: decisions about listed segments, and passes over directories."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from seglog_algorithms import compaction, retention
from seglog_algorithms.directory import DELETED, LOG
from seglog_algorithms.leader_epochs import CLEANER_OFFSETS, HIGH_WATERMARKS, LOG_STARTS, read_offsets, with_offset
from seglog_algorithms.producers import producers_before, snapshot_of, without_expired

from seglog_conformance.reference.decisions import facts_of, sizes_of
from seglog_conformance.reference.logs import decode
from seglog_conformance.specification.answers import as_files, compress, decompress, files_of
from seglog_conformance.specification.appends import decide_roll
from seglog_conformance.specification.recovering import as_checkpoints, checkpoints_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seglog_conformance.protocol import Json

PARTITION: Final = ("topic", 0)
OptionsT = TypeVar("OptionsT", retention.Options, compaction.Options)


def decide(request: Json) -> Json:
    """Return a decision about listed segments."""
    deciders = {"roll": decide_roll, "retain": _decide_retention, "compact": _decide_compaction}
    return deciders[request["what"]](request)


def _decide_retention(request: Json) -> Json:
    segments = [retention.Segment(**facts_of(one)) for one in request["listing"]]
    end = segments[-1].next_offset if segments else 0
    mark = int(request.get("highWatermark", end))
    start, copied = int(request.get("logStartOffset", 0)), _copied(request)
    log = retention.Log(segments, int(request["now"]), start, mark, copied)
    plan = retention.plan_retention(log, _retention_options(request))
    return {
        "ok": True,
        "decision": "delete" if plan.removed else "keep",
        "segments": [str(base) for base in plan.removed],
        "logStartOffset": str(plan.log_start_offset),
        "rollsFirst": plan.rolls_first,
    }


def _decide_compaction(request: Json) -> Json:
    segments = [retention.Segment(**facts_of(one), **sizes_of(one)) for one in request["listing"]]
    stable = int(request.get("lastStableOffset", segments[-1].next_offset))
    cleaner, end = request.get("cleanerOffset"), request.get("endOffset")
    log = compaction.Log(
        segments,
        int(request["now"]),
        int(request.get("logStartOffset", 0)),
        stable,
        None if cleaner is None else int(cleaner),
    )
    plan = compaction.plan_compaction(log, options_of(compaction.Options, request), None if end is None else int(end))
    return {
        "ok": True,
        "decision": "clean" if plan.groups else "keep",
        "segments": [str(base) for group in plan.groups for base in group],
        "isDue": plan.is_due,
        **_planned(plan),
    }


def _planned(plan: compaction.Plan) -> Json:
    return {
        "groups": [[str(base) for base in group] for group in plan.groups],
        "firstDirtyOffset": str(plan.first_dirty_offset),
        "firstUncleanableOffset": str(plan.first_uncleanable_offset),
        "endOffset": str(plan.end_offset),
    }


def _retention_options(request: Json) -> retention.Options:
    """Return the settings of a topic and of its broker that retention knows."""
    found = options_of(retention.Options, request)
    return replace(found, retention_ms=retention.retention_ms_of(request.get("config", {})))


def _copied(holder: Json) -> int:
    """Return the highest offset that a remote store has; -1 if it has none."""
    return int(holder.get("copiedOffset", -1))


def options_of(kind: type[OptionsT], request: Json, **given: int) -> OptionsT:
    """Return the settings of a request that an algorithm knows, by Kafka's names."""
    settings = {name.replace(".", "_"): value for name, value in request.get("config", {}).items()}
    defaults = {one.name: one.default for one in fields(kind)}
    taken: dict[str, Any] = {name: _value(text, defaults[name]) for name, text in settings.items() if name in defaults}
    return kind(**(taken | given))


def _value(text: str, default: object) -> Any:  # noqa: ANN401 - the type of the setting
    """Return a setting as a value of the type of its default."""
    return text == "true" if isinstance(default, bool) else type(default)(text)  # type: ignore[call-arg]


# Directories


def retain(request: Json) -> Json:
    """Return the files after retention."""
    files, beside = files_of(request), checkpoints_of(request.get("options", {}))
    segments, options = retention.segments_of(files, _modified(request)), _retention_options(request)
    end = segments[-1].next_offset
    first = 0 if options.remote_storage_enable else segments[0].base_offset
    known = _offset(beside, LOG_STARTS, 0)
    start = max(known, first)
    mark = max(min(_offset(beside, HIGH_WATERMARKS, end), end), start)
    left, plan, log_starts = retention.retain(
        files,
        retention.Log(segments, int(request["now"]), start, mark, _copied(request.get("options", {})), known),
        options,
        log_starts=beside.get(LOG_STARTS, b"") if beside or request.get("options", {}).get("cleanShutdown") else None,
        partition=PARTITION,
        snapshot=lambda: snapshot_of(producers_before(files, end, decompress).values()),
    )
    if log_starts:
        beside[LOG_STARTS] = log_starts
    answer = {
        "ok": True,
        "segments": [str(base) for base in plan.removed],
        "logStartOffset": str(plan.log_start_offset),
        "nextOffset": str(end),
    }
    return {**answer, **_left(request, left, beside)}


def compact(request: Json) -> Json:
    """Return the files after compaction."""
    files, beside, options = files_of(request), checkpoints_of(request.get("options", {})), request.get("options", {})
    modified, now_ms = _modified(request), int(request["now"])
    segments = compaction.segments_of(files, modified)
    end = segments[-1].next_offset
    mark = min(_offset(beside, HIGH_WATERMARKS, end), end)
    aborted, stable = compaction.transactions_of(files, mark, decompress)
    settings = options_of(compaction.Options, request, **_given(options))
    cleaner = _offset(beside, CLEANER_OFFSETS, -1)
    log = compaction.Log(segments, now_ms, _offset(beside, LOG_STARTS, 0), stable, None if cleaner == -1 else cleaner)
    known = producers_before(files, end, decompress).values()
    producers = without_expired(known, now_ms - settings.producer_id_expiration_ms)
    work = compaction.Work(files, log, settings, decompress, aborted, producers)
    left, written = compaction.compact(files, work, modified, compress)
    if work.plan.groups:
        beside[CLEANER_OFFSETS] = with_offset(beside.get(CLEANER_OFFSETS, b""), PARTITION, work.plan.end_offset)
    return {
        "ok": True,
        **_planned(work.plan),
        "modified": {name: str(value) for name, value in sorted(written.items())},
        **(_batches(left) if options.get("batches") else {}),
        **_left(request, left, beside),
    }


def _batches(directory: Mapping[str, bytes]) -> Json:
    """Return the batches of each log: compressed ones may have other bytes than expected."""
    logs = {name: data for name, data in sorted(directory.items()) if name.endswith(LOG)}
    return {"batches": {name: decode({"data": data.hex()})["batches"] for name, data in logs.items()}}


def _given(options: Json) -> dict[str, int]:
    names = {"mostKeys": "most_keys", "producerExpirationMs": "producer_id_expiration_ms"}
    return {name: int(options[key]) for key, name in names.items() if key in options}


def _modified(request: Json) -> dict[str, int]:
    return {name: int(value) for name, value in request.get("options", {}).get("modified", {}).items()}


def _offset(beside: Mapping[str, bytes], name: str, default: int) -> int:
    """Return the offset of the partition in a checkpoint."""
    entries = {entry[:2]: entry[2] for entry in read_offsets(beside.get(name, b""))}
    return entries.get(PARTITION, default)


def _left(request: Json, directory: dict[str, bytes], beside: dict[str, bytes]) -> Json:
    files = as_files(directory)
    return {
        "files": files,
        "names": list(files),
        "deleted": sorted(name for name in directory if name.endswith(DELETED)),
        "checkpoints": as_checkpoints(beside),
        "isClean": bool(request.get("options", {}).get("cleanShutdown")),
    }

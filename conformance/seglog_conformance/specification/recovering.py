"""Operations of chapter 71: recover and truncate."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from seglog_algorithms.brokers import differences, recover_like_broker
from seglog_algorithms.damage import Damage
from seglog_algorithms.leader_epochs import LOG_STARTS, RECOVERY_POINTS, checkpoint, read_offsets
from seglog_algorithms.recovery import Around, Plan, Remark
from seglog_algorithms.recovery import recover as recover_by_the_text
from seglog_algorithms.recovery import truncate as truncate_to

from seglog_conformance.reference.scratch import CHECKPOINTS
from seglog_conformance.specification.answers import as_files, decompress, files_of

if TYPE_CHECKING:
    from seglog_conformance.protocol import Json

METADATA_TOPICS = ("__cluster_metadata", "@metadata")


def recover(request: Json) -> Json:
    """Return the files after recovery."""
    options, files = request.get("options", {}), files_of(request)
    beside = checkpoints_of(options)
    around = around_of(options, beside)
    interval = options.get("indexIntervalBytes")
    like = options.get("likeBroker", True)
    done = (recover_like_broker if like else recover_by_the_text)(files, around, decompress, interval)
    return {
        "ok": True,
        "truncatedBytes": max(log_size(files) - log_size(done.directory), 0),
        "nextOffset": str(done.plan.end),
        "files": as_files(done.directory),
        "names": [*as_files(done.directory)],
        "checkpoints": as_checkpoints(beside),
        "plan": as_plan(done.plan)
        | {"differences": [] if like else as_remarks(differences(files, done.plan, around, decompress, interval))},
    }


def truncate(request: Json) -> Json:
    """Return the files after truncation."""
    options = request.get("options", {})
    beside = checkpoints_of(options)
    left, checkpoints, end = truncate_to(
        files_of(request), beside, ("topic", 0), int(request["offset"]), decompress, around_of(options, beside)
    )
    answer = {"files": as_files(left), "names": [*as_files(left)]}
    return {"ok": True, "nextOffset": str(end), **answer, "checkpoints": as_checkpoints(checkpoints)}


def checkpoints_of(options: Json) -> dict[str, bytes]:
    """Return the checkpoint files of the log directory."""
    found = {
        kind.value: checkpoint([("topic", 0, int(options[option]))])
        for option, kind in CHECKPOINTS.items()
        if option in options
    }
    return found | {name: bytes.fromhex(data) for name, data in options.get("checkpoints", {}).items()}


def around_of(options: Json, beside: dict[str, bytes]) -> Around:
    """Return what recovery takes from the log directory."""
    topic = options.get("topic", "topic")
    if topic in METADATA_TOPICS:  # always scanned as a whole
        return Around()
    start, point = (offset_in(beside.get(name, b""), topic) for name in (LOG_STARTS, RECOVERY_POINTS))
    return Around(bool(options.get("cleanShutdown")), point, start)


def offset_in(data: bytes, topic: str) -> int:
    """Return the checkpointed offset of the partition; 0 without one."""
    return offsets_in(data).get((topic, 0), 0)


def offsets_in(data: bytes) -> dict[tuple[str, int], int]:
    """Return the offset of each partition in a checkpoint; none if it cannot be read."""
    try:
        return {(topic, partition): offset for topic, partition, offset in read_offsets(data)}
    except Damage:
        return {}


def as_checkpoints(beside: dict[str, bytes]) -> Json:
    """Return the checkpoint files of an answer."""
    names = [kind.value for kind in CHECKPOINTS.values()]
    return {name: beside[name].hex() if name in beside else None for name in names}


def log_size(files: dict[str, bytes]) -> int:
    """Return the bytes of all logs."""
    return sum(len(data) for name, data in files.items() if name.endswith(".log"))


def as_remarks(remarks: list[Remark]) -> list[Json]:
    """Return remarks in the format of the protocol."""
    return [{"at": each.position, "requirement": each.rule} for each in remarks]


def as_plan(plan: Plan) -> Json:
    """Return a plan in the format of the protocol."""
    cuts: list[dict[str, Any]] = [
        {
            "baseOffset": str(cut.base_offset),
            "position": cut.position,
            "nextOffset": str(cut.next_offset),
            "requirements": list(cut.rules),
        }
        for cut in plan.cuts
    ]
    return {
        "scanned": [str(base) for base in sorted(plan.scanned)],
        "cuts": cuts,
        "dropped": [str(base) for base in plan.dropped],
        "remarks": as_remarks(plan.remarks),
    }

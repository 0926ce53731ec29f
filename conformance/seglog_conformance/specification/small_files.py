"""Operation on small files: parse, of producer snapshots and checkpoints."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from seglog_algorithms.leader_epochs import LEADER_EPOCHS, read_epochs, read_offsets
from seglog_algorithms.producers import snapshot_entries

if TYPE_CHECKING:
    from collections.abc import Callable

    from seglog_conformance.protocol import Json


def parse(request: Json) -> Json:
    """Return a small file as an object."""
    parser = PARSERS.get(request["kind"])
    if parser is None:
        return {"skip": {"feature": f"parse:{request['kind']}"}}
    return {"ok": True, "object": parser(request.get("name", ""), bytes.fromhex(request.get("data", "")))}


def _snapshot(_name: str, data: bytes) -> Json:
    return {"producers": [_producer(entry) for entry in snapshot_entries(data)]}


def _producer(entry: Any) -> Json:  # noqa: ANN401 - construct is untyped
    timestamp, first = str(entry.timestamp_ms), entry.current_txn_first_offset
    batch = {"lastSequence": entry.last_sequence, "lastOffset": str(entry.last_offset)}
    batch |= {"offsetDelta": entry.offset_delta, "timestamp": timestamp}
    return {
        "producerId": str(entry.producer_id),
        "producerEpoch": entry.producer_epoch,
        "lastTimestamp": timestamp,
        "coordinatorEpoch": entry.coordinator_epoch,
        "currentTxnFirstOffset": str(first) if first >= 0 else None,
        "batches": [batch] if entry.last_offset >= 0 else [],
    }


def _checkpoint(name: str, data: bytes) -> Json:
    if name == LEADER_EPOCHS:
        return {"version": 0, "entries": [[epoch, str(start)] for epoch, start in read_epochs(data)]}
    return {"version": 0, "entries": [[*entry[:2], str(entry[2])] for entry in read_offsets(data)]}


PARSERS: Final[dict[str, Callable[[str, bytes], Json]]] = {"snapshot": _snapshot, "checkpoint": _checkpoint}

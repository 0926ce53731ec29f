"""Operation on names and small files: parse."""

from __future__ import annotations

from dataclasses import fields
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Final

from seglog_conformance.reference.wire import rejection, wire
from seglog_format.codec.checkpoints import (
    decode_clean_shutdown,
    decode_leader_epoch_checkpoint,
    decode_meta_properties,
    decode_offset_checkpoint,
    decode_partition_metadata,
    decode_quorum_state,
)
from seglog_format.errors import FormatError, Location, SeglogError
from seglog_format.lines.logs import (
    offset_index_lines,
    producer_snapshot_lines,
    time_index_lines,
    transaction_index_lines,
)
from seglog_format.lines.sources import Source, SourceKind
from seglog_format.log.index_file import ProducerSnapshot, TransactionIndex
from seglog_format.log.scanning import bytes_for
from seglog_format.names import FileKind, parse_file_name, parse_partition_directory
from seglog_format.state.config import LogConfig, kafka_name, topic_settings

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from seglog_conformance.protocol import Json
    from seglog_format.engine import Engine
    from seglog_format.storage.byte_source import ByteSource

NO_NAME: Final = ""
QUORUM_STATE: Final = FileKind.QUORUM_STATE.value


def parse(request: Json, engine: Engine) -> Json:
    """Return a small file, or a name, as an object."""
    name = str(request.get("name", NO_NAME))
    data, base_offset = bytes.fromhex(request.get("data", "")), _base_offset(name, request)
    try:
        if (lines := SLOTS.get(request["kind"])) is not None:
            found = next(lines(_source(name, base_offset), bytes_for(engine, data, name)))
        else:
            found = PARSERS[request["kind"]](name, data)
    except SeglogError as error:
        return rejection(error)
    return {"ok": True, "object": wire(found)}


def _base_offset(name: str, request: Json) -> int:
    if "baseOffset" in request:
        return int(request["baseOffset"])
    try:
        parsed = parse_file_name(name) if request["kind"] != "name" else None
    except FormatError:
        return 0
    return 0 if parsed is None else max(parsed.base_offset, 0)


def _source(name: str, base_offset: int) -> Source:
    return Source(Path(name), name, SourceKind.OTHER, base_offset)


def _transaction_index(source: Source, data: ByteSource) -> Iterator[Json]:
    TransactionIndex.from_source(data, source.base_offset, source.name)  # raises the error that a line would hide
    return transaction_index_lines(source, data)


def _snapshot(source: Source, data: ByteSource) -> Iterator[Json]:
    ProducerSnapshot.from_source(data, source.name)  # raises the error that a line would hide
    return producer_snapshot_lines(source, data)


def _checkpoint(name: str, data: bytes) -> Json:
    at = Location(name)
    if name == FileKind.LEADER_EPOCH_CHECKPOINT.value:
        epochs = decode_leader_epoch_checkpoint(data, at)
        return {"version": epochs.version, "entries": [[entry.epoch, entry.start_offset] for entry in epochs.entries]}
    offsets = decode_offset_checkpoint(data, at)
    entries = [[entry.topic, entry.partition, entry.offset] for entry in offsets.entries]
    return {"version": offsets.version, "entries": entries}


def _metadata(name: str, data: bytes) -> Json:
    if name == FileKind.META_PROPERTIES.value:
        found = decode_meta_properties(data, Location(name))
        return {
            "version": found.version,
            "clusterId": found.cluster_id,
            "nodeId": found.node_id,
            "directoryId": found.directory_id,
        }
    if name == FileKind.CLEAN_SHUTDOWN.value:
        shutdown = decode_clean_shutdown(data, Location(name))
        return {"version": shutdown.version, "brokerEpoch": str(shutdown.broker_epoch)}
    if name == QUORUM_STATE:
        state = decode_quorum_state(data, Location(name))
        reported = {"dataVersion": state.data_version, "leaderId": state.leader_id, "leaderEpoch": state.leader_epoch}
        return {**reported, "votedId": state.voted_id, "voterIds": list(state.voter_ids)}
    metadata = decode_partition_metadata(data, Location(name))
    return {"version": metadata.version, "topicId": metadata.topic_id}


def _name(name: str, _data: bytes) -> Json:
    """Parse a broker's file name, or else the name of a partition directory."""
    parsed = parse_file_name(name)
    if parsed is None:
        directory = parse_partition_directory(name)
        return {"topic": directory.topic, "partition": directory.partition, "state": directory.state}
    return {"kind": parsed.kind.value, "baseOffset": parsed.base_offset, "suffix": parsed.suffix}


def _config(_name: str, data: bytes) -> Json:
    """Return topic settings, given as ``name=value`` lines, with defaults for the others."""
    lines = data.decode().splitlines()
    config = LogConfig.from_properties(topic_settings(dict(line.split("=", 1) for line in lines)))
    settings = {kafka_name(field.name): _setting(getattr(config, field.name)) for field in fields(config)}
    return {**settings, "roll.ms": str(config.roll_ms)}


def _setting(value: object) -> str:
    """Return a value as text, which no language rounds."""
    match value:
        case bool():
            return str(value).lower()
        case frozenset():
            return ",".join(sorted(value))
        case Enum():
            return str(value.value)
        case _:
            return str(value)


SLOTS: Final[dict[str, Callable[[Source, ByteSource], Iterator[Json]]]] = {
    "index": offset_index_lines,
    "timeindex": time_index_lines,
    "txnindex": _transaction_index,
    "snapshot": _snapshot,
}
"""Kinds of files that the engine reads."""
PARSERS: Final[dict[str, Callable[[str, bytes], Json]]] = {
    "checkpoint": _checkpoint,
    "metadata": _metadata,
    "name": _name,
    "config": _config,
}

"""Replace names, ids and times in the files beside the logs; each method returns the new content of a file."""

from __future__ import annotations

import json
import secrets
from bisect import bisect_right
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from seglog_format.codec.checkpoints import (
    decode_leader_epoch_checkpoint,
    decode_offset_checkpoint,
    decode_partition_metadata,
    encode_leader_epoch_checkpoint,
    encode_offset_checkpoint,
    encode_partition_metadata,
)
from seglog_format.codec.plain.producer_snapshot import decode_producer_snapshot
from seglog_format.codec.producer_snapshot import encode_producer_snapshot
from seglog_format.codec.properties import decode_clean_shutdown, decode_meta_properties, encode_clean_shutdown
from seglog_format.errors import FormatError, Location
from seglog_format.generation.pseudonyms import PLAUSIBLE
from seglog_format.model import INT32_MAX, INT64_MAX
from seglog_format.names import OFFSET_CHECKPOINT_KINDS, FileKind
from seglog_format.schema.fixed_fields import OFFSET_INDEX_ENTRY, TIME_INDEX_ENTRY, TRANSACTION_INDEX_ENTRY
from seglog_format.schema.text import json_object

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from seglog_format.generation.pseudonyms import Pseudonyms

NOWHERE: Final = Location()
QUORUM_FIELDS: Final = frozenset(
    {
        "clusterId",
        "leaderId",
        "leaderEpoch",
        "votedId",
        "votedDirectoryId",
        "appliedOffset",
        "currentVoters",
        "voterId",
        "data_version",
    }
)


TIMES: Final = (range(-1, 1 << 51), range(10**18, 0x20 << 56))
"""Numbers that may be times: milliseconds or microseconds, and nanoseconds; 8 bytes of text are no such number."""


class FileReplacer:
    """Replaces the content of files that are no logs.

    Args:
        pseudonyms: the replacements.
    """

    def __init__(self, pseudonyms: Pseudonyms) -> None:
        self._pseudonyms = pseudonyms
        self._by_kind: Mapping[FileKind, Callable[[bytes], bytes]] = {
            FileKind.LEADER_EPOCH_CHECKPOINT: self._leader_epochs,
            FileKind.PARTITION_METADATA: self._partition_metadata,
            FileKind.META_PROPERTIES: self._meta_properties,
            FileKind.CLEAN_SHUTDOWN: _clean_shutdown,
            FileKind.QUORUM_STATE: self._quorum_state,
            FileKind.PRODUCER_SNAPSHOT: self._producer_snapshot,
            FileKind.OFFSET_INDEX: MovedPositions().index,
            FileKind.TIME_INDEX: self._time_index,
            FileKind.TRANSACTION_INDEX: _transaction_index,
            **dict.fromkeys(OFFSET_CHECKPOINT_KINDS, self._offset_checkpoint),
        }

    def replaced(self, kind: FileKind, data: bytes) -> bytes:
        """Return the new content of a file.

        Raises:
            FormatError: the file cannot be read.
        """
        return self._by_kind[kind](data)

    def _time_index(self, data: bytes) -> bytes:
        size = TIME_INDEX_ENTRY.size
        whole = len(data) - len(data) % size
        entries = [
            TIME_INDEX_ENTRY.pack(self._time(timestamp_ms), offset)
            for timestamp_ms, offset in TIME_INDEX_ENTRY.iter_unpack(data[:whole])
        ]
        return b"".join(entries) + self._pseudonyms.fresh(len(data) - whole)

    def _time(self, timestamp_ms: int) -> int:
        """Move a time; replace a number that is none: it may be text from another file."""
        if any(timestamp_ms in times for times in TIMES):
            return self._pseudonyms.time(timestamp_ms)
        return INT64_MAX - secrets.randbelow(1 << 20)

    def _leader_epochs(self, data: bytes) -> bytes:
        return encode_leader_epoch_checkpoint(decode_leader_epoch_checkpoint(data, NOWHERE).entries)

    def _partition_metadata(self, data: bytes) -> bytes:
        return encode_partition_metadata(self._pseudonyms.identifier(decode_partition_metadata(data, NOWHERE).topic_id))

    def _offset_checkpoint(self, data: bytes) -> bytes:
        found = decode_offset_checkpoint(data, NOWHERE)
        return encode_offset_checkpoint(
            entry._replace(topic=self._pseudonyms.name(entry.topic)) for entry in found.entries
        )

    def _producer_snapshot(self, data: bytes) -> bytes:
        producers = decode_producer_snapshot(data, NOWHERE).producers
        return encode_producer_snapshot(
            replace(producer, timestamp_ms=self._pseudonyms.time(producer.timestamp_ms)) for producer in producers
        )

    def _meta_properties(self, data: bytes) -> bytes:
        found = decode_meta_properties(data, NOWHERE)
        node = "broker.id" if found.version == 0 else "node.id"
        texts = {"version": str(found.version), node: None if found.node_id is None else str(found.node_id)}
        for name, text in (("cluster.id", found.cluster_id), ("directory.id", found.directory_id)):
            texts[name] = None if text is None else self._pseudonyms.identifier(text)
        return "".join(f"{name}={text}\n" for name, text in texts.items() if text is not None).encode()

    def _quorum_state(self, data: bytes) -> bytes:
        state = json_object(data)
        if state is None:
            raise FormatError(NOWHERE, "SEG-LDR-006", expected="a JSON object", found="something else")
        try:
            return json.dumps(self._json(state), separators=(",", ":")).encode()
        except RecursionError as error:
            raise FormatError(NOWHERE, "SEG-LDR-006", expected="flat JSON", found="deeply nested JSON") from error

    def _json(self, value: Any) -> Any:  # noqa: ANN401 - JSON
        if isinstance(value, dict):
            return {
                name if name in QUORUM_FIELDS else self._pseudonyms.name(name): self._json(each)
                for name, each in value.items()
            }
        if isinstance(value, list):
            return [self._json(each) for each in value]
        return self._pseudonyms.identifier(value) if isinstance(value, str) else value


def _clean_shutdown(data: bytes) -> bytes:
    return encode_clean_shutdown(decode_clean_shutdown(data, NOWHERE))


def _transaction_index(data: bytes) -> bytes:
    whole = len(data) - len(data) % TRANSACTION_INDEX_ENTRY.size
    for version, *numbers in TRANSACTION_INDEX_ENTRY.iter_unpack(data[:whole]):
        if version or max(numbers) >= PLAUSIBLE:
            raise FormatError(NOWHERE, "SEG-TXN-002", expected="version 0, a producer id, offsets", found="others")
    return data[:whole] + bytes(len(data) - whole)


class MovedPositions:
    """The positions of entries in the original log and in the new one."""

    def __init__(self) -> None:
        self._old: list[int] = []
        self._new: list[int] = []
        self._next = self._end = 0

    def add(self, position: int, size: int) -> None:
        """Add an entry of the original log, and the size of the new one."""
        if not self._old or self._new[-1] - self._old[-1] != self._next - position:
            self._old.append(position)
            self._new.append(self._next)
        self._next += size

    def end(self, position: int, size: int) -> None:
        """Note where the last whole entry of the original log ends."""
        self.add(position, size - position)
        self._end = size

    def index(self, data: bytes) -> bytes:
        """Return an offset index with new positions; it keeps its size and its zeros."""
        whole = len(data) - len(data) % OFFSET_INDEX_ENTRY.size
        entries = OFFSET_INDEX_ENTRY.iter_unpack(data[:whole])
        entries_moved = [OFFSET_INDEX_ENTRY.pack(offset, self._moved(position)) for offset, position in entries]
        return b"".join(entries_moved) + bytes(len(data) - whole)

    def _moved(self, position: int) -> int:
        if not 0 <= position <= self._end:
            return INT32_MAX - secrets.randbelow(1 << 20)  # no position in the log: perhaps something else
        number = bisect_right(self._old, position) - 1
        return min(position + self._new[number] - self._old[number], INT32_MAX) if number >= 0 else position

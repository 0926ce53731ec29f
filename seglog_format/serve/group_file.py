"""The file of committed offsets: a line of JSON for each group, and a last line with a checksum."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from seglog_format.codec.checksum import crc32c
from seglog_format.serve.committed import Committed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seglog_format.serve.committed import GroupOffsets

VERSION: Final = 1
FORMAT: Final = "seglog-serve-groups"
HEAD: Final = json.dumps({"format": FORMAT, "version": VERSION}).encode() + b"\n"


class BrokenStateError(Exception):
    """The file is damaged."""


class StoredGroup(NamedTuple):
    """A group as it was stored."""

    group_id: str
    used_at: float
    offsets: dict[tuple[str, int], Committed]


def group_line(group_id: str, group: GroupOffsets) -> bytes:
    """Encode one group as a line."""
    offsets = [
        [topic, partition, each.offset, each.metadata, each.leader_epoch]
        for (topic, partition), each in group.offsets.items()
    ]
    return json.dumps({"group": group_id, "usedMs": int(group.used_at * 1000), "offsets": offsets}).encode() + b"\n"


def whole_file(lines: Iterable[bytes]) -> bytes:
    """Join the lines of all groups, the least recently used first, and add the last line."""
    body = b"".join((HEAD, *lines))
    return body + json.dumps({"end": True, "crc32c": crc32c(body)}).encode() + b"\n"


def groups_in(data: bytes) -> list[StoredGroup]:
    """Parse the groups of a file.

    Raises:
        BrokenStateError: the file is damaged, or of another program.
    """
    try:
        body, last = data[: data.rindex(b"\n", 0, -1) + 1], data[data.rindex(b"\n", 0, -1) + 1 :]
        is_whole = data.startswith(HEAD) and json.loads(last) == {"end": True, "crc32c": crc32c(body)}
        if not is_whole:
            msg = "its first or last line, or its checksum, is wrong"
            raise BrokenStateError(msg)
        return [_group(json.loads(line)) for line in body[len(HEAD) :].splitlines()]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise BrokenStateError(str(error)) from error


def _group(stored: dict[str, Any]) -> StoredGroup:
    offsets = {
        (str(topic), int(partition)): Committed(int(offset), str(metadata), int(epoch))
        for topic, partition, offset, metadata, epoch in stored["offsets"]
    }
    return StoredGroup(str(stored["group"]), int(stored["usedMs"]) / 1000, offsets)

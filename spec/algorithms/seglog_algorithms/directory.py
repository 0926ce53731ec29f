"""A partition directory as a plain mapping from name to bytes (chapter 10). Nothing here reads or writes a disk."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from seglog_algorithms.entries import up_to_damage

Directory: TypeAlias = Mapping[str, bytes]
"""The regular files of a partition directory, by name. Algorithms never change the one that they are given."""

LOG: Final = ".log"
INDEX: Final = ".index"
TIME_INDEX: Final = ".timeindex"
TRANSACTION_INDEX: Final = ".txnindex"
INDEXES: Final = (INDEX, TIME_INDEX, TRANSACTION_INDEX)
SNAPSHOT: Final = ".snapshot"
SWAP: Final = ".swap"
CLEANED: Final = ".cleaned"
DELETED: Final = ".deleted"

_NAME: Final = re.compile(r"(\d+)(\.log|\.index|\.timeindex|\.txnindex|\.snapshot)(\.swap|\.cleaned|\.deleted)?")
_INT64_MAX: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class FileName:
    """The parts of the name of a file of a segment.

    Attributes:
        base_offset: offset in the name.
        kind: suffix that gives the kind of the file, such as ``.log``.
        state: ``.swap``, ``.cleaned``, ``.deleted`` or nothing.
    """

    base_offset: int
    kind: str
    state: str = ""

    def __str__(self) -> str:
        return f"{self.base_offset:020}{self.kind}{self.state}"  # SEG-PDR-005


def file_name(base_offset: int, kind: str) -> str:
    """Return the name of a file of a segment."""
    return str(FileName(base_offset, kind))


def parse_name(name: str) -> FileName | None:
    """Return the parts of a name; None for other names, which readers ignore (SEG-PDR-011)."""
    match = _NAME.fullmatch(name)
    if match is None or int(match[1]) > _INT64_MAX:  # SEG-PDR-007
        return None
    return FileName(int(match[1]), match[2], match[3] or "")  # SEG-PDR-018


def replacements(
    directory: Directory, end_of: Callable[[Directory, str, int], int] | None = None
) -> tuple[dict[str, FileName], dict[str, FileName], range]:
    """Return the names of segments, those of finished replacements, and the offsets that these cover (SEG-PDR-010)."""
    names = {name: parts for name in sorted(directory) if (parts := parse_name(name)) is not None}
    cleaned = min((parts.base_offset for parts in names.values() if parts.state == CLEANED), default=2**63)
    swaps = {name: each for name, each in names.items() if each.state == SWAP and each.base_offset < cleaned}  # step 1
    logs = {name: parts.base_offset for name, parts in swaps.items() if parts.kind == LOG}
    end_of = end_of or (lambda directory, name, base: next_offset(directory[name], base))
    ends = [end_of(directory, name, base) for name, base in logs.items()]
    return names, swaps, range(min(logs.values()), max(ends)) if logs else range(0)  # step 3


def files_that_count(directory: Directory) -> dict[str, bytes]:
    """Return the files of segments that a reader uses, under their plain names in 20 digits (SEG-PDR-009, -010, -019).

    Files of other kinds are not in the result.
    """
    names, swaps, covered = replacements(directory)
    found: dict[str, bytes] = {}
    # The name in 20 ASCII digits last, so it counts of several with one offset (SEG-PDR-019).
    plain = {name: parts for name, parts in names.items() if not parts.state and parts.base_offset not in covered}
    for name, parts in sorted((plain | swaps).items(), key=lambda pair: (pair[0] in swaps, pair[0] == str(pair[1]))):
        found[file_name(parts.base_offset, parts.kind)] = directory[name]
    return found


def next_offset(log: bytes, base_offset: int) -> int:
    """Return the offset after the last entry of a log, or its base offset (SEG-LKP-015)."""
    end = base_offset
    for entry in up_to_damage(log, takes_later_magic=False):
        end = entry.last_offset + 1
    return end


def base_offsets(directory: Directory) -> list[int]:
    """Return the base offsets of the segments, ascending: every `.log` file is one."""
    return sorted(set(offsets_of(directory, LOG)))


def offsets_of(directory: Directory, kind: str) -> list[int]:
    """Return the offsets in the names of the files of a kind."""
    names = (parse_name(name) for name in directory)
    return [each.base_offset for each in names if each is not None and (each.kind, each.state) == (kind, "")]

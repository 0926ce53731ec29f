"""The progress of a table in each partition, with the facts by which a later run notices changes of the log."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from seglog_format.model import INT64_MAX

TopicPartition: TypeAlias = tuple[str, int]
SegmentSize: TypeAlias = tuple[int, int]
"""Base offset of a segment, and the size of its log in bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The progress of a table in one partition.

    Attributes:
        next_offset: first offset that the table does not have.
        leader_epoch: of the last row; -1 if unknown.
        last_offset: of the last row; None without rows.
        last_row: digest of the last row; empty without rows.
        file_count: number of files.
        row_count: number of rows.
        size: of the files, in bytes.
        segments: closed segments, at the last run, whose records the table has.
    """

    next_offset: int = 0
    leader_epoch: int = -1
    last_offset: int | None = None
    last_row: str = ""
    file_count: int = 0
    row_count: int = 0
    size: int = 0
    segments: tuple[SegmentSize, ...] = ()

    def after(self, **changes: Any) -> Progress:  # noqa: ANN401 - attributes of this class
        """Return a copy with some attributes replaced."""
        return replace(self, **changes)

    def as_json(self) -> dict[str, Any]:
        """Return the progress as the manifest holds it."""
        return {
            "nextOffset": self.next_offset,
            "leaderEpoch": self.leader_epoch,
            "lastOffset": self.last_offset,
            "lastRow": self.last_row,
            "files": self.file_count,
            "rows": self.row_count,
            "bytes": self.size,
            "segments": [list(segment) for segment in self.segments],
        }


def progress_of_json(value: object) -> Progress:
    """Return the progress that a manifest holds.

    Raises:
        ValueError: the value is not a progress.
    """
    if not isinstance(value, dict):
        raise ValueError("partition")  # noqa: EM101, TRY004 - the name of the field is enough
    last = value.get("lastOffset")
    return Progress(
        next_offset=_number(value, "nextOffset"),
        leader_epoch=_number(value, "leaderEpoch", -1),
        last_offset=None if last is None else _number(value, "lastOffset"),
        last_row=_text(value, "lastRow"),
        file_count=_number(value, "files"),
        row_count=_number(value, "rows"),
        size=_number(value, "bytes"),
        segments=_segments(value.get("segments")),
    )


def _number(value: dict[str, Any], name: str, least: int = 0) -> int:
    found = value.get(name)
    if type(found) is not int or not least <= found <= INT64_MAX:
        raise ValueError(name)
    return found


def _text(value: dict[str, Any], name: str) -> str:
    found = value.get(name)
    if not isinstance(found, str):
        raise ValueError(name)  # noqa: TRY004 - as above
    return found


def _segments(value: object) -> tuple[SegmentSize, ...]:
    try:
        pairs = [(base, size) for base, size in value]  # type: ignore[attr-defined]
    except (TypeError, ValueError):
        raise ValueError("segments") from None  # noqa: EM101 - as above
    if not all(type(number) is int for pair in pairs for number in pair):
        raise ValueError("segments")  # noqa: EM101 - as above
    return tuple(pairs)

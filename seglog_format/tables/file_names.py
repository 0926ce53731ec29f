"""Names of the files of a table: directories of its partitioning, as Hive names them, and the first offset."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final
from urllib.parse import quote, unquote

if TYPE_CHECKING:
    from seglog_format.tables.progress import TopicPartition
    from seglog_format.tables.settings import TableSettings

NO_DAY: Final = "__HIVE_DEFAULT_PARTITION__"
"""Hive's name of the directory for null."""
PART_NAME: Final = re.compile(r"(?:(?P<topic>.*)-(?P<partition>\d{1,10})-)?(?P<offset>\d{20})\.(?P<suffix>\w+)")


def file_name(settings: TableSettings, key: TopicPartition, first_offset: int, day: str | None = None) -> str:
    """Return the name of a file, below the table's directory.

    Args:
        settings: of the table.
        key: its partition.
        first_offset: a lower bound of the offsets of its rows.
        day: of its rows, such as ``2026-11-24``; None for rows without a time.
    """
    topic, partition = quote(key[0], safe=""), key[1]
    levels = {"topic": topic, "partition": partition, "day": NO_DAY if day is None else day}
    above = "".join(f"{level}={levels[level]}/" for level in settings.partition_by)
    stem = "" if _is_known_by_directory(settings) else f"{topic}-{partition}-"
    return f"{above}{stem}{first_offset:020}.{settings.suffix}"


def _is_known_by_directory(settings: TableSettings) -> bool:
    return {"topic", "partition"} <= set(settings.partition_by)


def parsed_name(settings: TableSettings, name: str) -> tuple[TopicPartition, int] | None:
    """Return the partition and first offset in the name of a file; None for a name that no file of the table has."""
    *above, last = name.split("/")
    found = PART_NAME.fullmatch(last)
    levels = dict(level.partition("=")[::2] for level in above)
    if found is None or tuple(levels) != settings.partition_by or found["suffix"] != settings.suffix:
        return None
    topic = levels.get("topic") if found["topic"] is None else found["topic"]
    partition = levels.get("partition") if found["partition"] is None else found["partition"]
    if topic is None or partition is None or not partition.isdecimal():
        return None
    key, offset, day = (unquote(topic), int(partition)), int(found["offset"]), levels.get("day")
    return (key, offset) if name == file_name(settings, key, offset, None if day == NO_DAY else day) else None

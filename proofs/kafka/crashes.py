"""Directories left by killed brokers, some damaged afterwards, with the recovery by the same brokers."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from proofs.unpacking import unpack_archive
from seglog_format import RecoveryOptions, open_log_directory, open_partition, recover

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

TopicPartition: TypeAlias = tuple[str, int]

PREFIX: Final = "crash-"
"""Prefix of the names of these cases."""

ENDS: Final = (
    r"load of log (?P<topic>[\w-]+)-(?P<partition>\d+) with .*log end offset (?P<end>\d+)",
    r"\[Log partition=(?P<topic>[\w-]+)-(?P<partition>\d+)\] Completed load .*log end offset (?P<end>\d+)",
    r"topic=(?P<topic>[\w-]+), partition=(?P<partition>\d+), .*logEndOffset=(?P<end>\d+)",
    r"\[LogLoader partition=(?P<topic>[\w-]+)-(?P<partition>\d+)\] Loading producer state till offset (?P<end>\d+)",
)
"""Patterns for the log end offset in the logs of brokers of all ages; the last match counts."""


class Crashed(NamedTuple):
    """A log directory as a killed broker left it, with the result after the broker had started again.

    Attributes:
        old: the directory before the recovery.
        recovered: partition directories after the recovery, by topic and partition.
        ends: log end offsets of these partitions.
        overlooked: partitions with damage below the recovery point, which the broker did not read. Its consumers
        failed there; here they end before the damage, as after a broker's recovery from the start of the log.
    """

    old: Path
    recovered: dict[TopicPartition, Path]
    ends: dict[TopicPartition, int]
    overlooked: list[TopicPartition]


def unpack_crashed(archives: Iterable[Path], root: Path) -> Crashed:
    """Unpack the cases of one broker into one directory.

    Args:
        archives: archives of the cases; the broker's log of the recovery is next to those of a full collection.
        root: an empty directory.
    """
    crashed = Crashed(root / "old", {}, {}, [])
    for number, archive in enumerate(archives):
        case = root / str(number)
        unpack_archive(archive, case)
        shutil.copytree(case / "before", crashed.old, dirs_exist_ok=True)
        log = archive.parent / "recovery.txt"
        said = recovered_ends(log.read_text(encoding="utf-8")) if log.exists() else {}
        for key, entry in open_log_directory(case / "after").partitions.items():
            if key[0].startswith(PREFIX):
                _add(crashed, key, entry.path, said)
    return crashed


def _add(crashed: Crashed, key: TopicPartition, path: Path, said: Mapping[TopicPartition, int]) -> None:
    crashed.recovered[key] = path
    with open_partition(path) as partition:
        crashed.ends[key] = said[key] if said else partition.log_end_offset
    recovery = recover(path, options=RecoveryOptions(is_full_scan=True))
    if recovery.plan.cut is not None:
        recovery.apply()
        crashed.ends[key] = recovery.plan.log_end_offset
        crashed.overlooked.append(key)


def recovered_ends(text: str) -> dict[TopicPartition, int]:
    """Return the log end offsets that a broker logged during recovery, by topic and partition."""
    found = (match for line in text.splitlines() for pattern in ENDS if (match := re.search(pattern, line)))
    return {(each["topic"], int(each["partition"])): int(each["end"]) for each in found}

"""Directories that killed brokers left, some damaged afterwards, and what the same brokers made of them."""

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
"""How the names of these cases begin."""

ENDS: Final = (
    r"load of log (?P<topic>[\w-]+)-(?P<partition>\d+) with .*log end offset (?P<end>\d+)",
    r"\[Log partition=(?P<topic>[\w-]+)-(?P<partition>\d+)\] Completed load .*log end offset (?P<end>\d+)",
    r"topic=(?P<topic>[\w-]+), partition=(?P<partition>\d+), .*logEndOffset=(?P<end>\d+)",
    r"\[LogLoader partition=(?P<topic>[\w-]+)-(?P<partition>\d+)\] Loading producer state till offset (?P<end>\d+)",
)
"""Where brokers of all ages say in their log how far a log reaches; the last word counts."""


class Crashed(NamedTuple):
    """A log directory as a killed broker left it, and the same after the broker had started again.

    Attributes:
        old: the directory.
        recovered: partition directories after the recovery, by topic and partition.
        ends: log end offsets of these.
        overlooked: partitions with damage that the broker did not look at, since it lay below the recovery point. Its
            consumers failed there; here they end before it, as where a broker recovers a log from its start.
    """

    old: Path
    recovered: dict[TopicPartition, Path]
    ends: dict[TopicPartition, int]
    overlooked: list[TopicPartition]


def unpack_crashed(archives: Iterable[Path], root: Path) -> Crashed:
    """Unpack the cases of one broker, and put their directories together.

    Args:
        archives: of the cases; what the broker said when it recovered lies beside those of a full collection.
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
    """Return the log end offsets that a broker told when it recovered, by topic and partition."""
    found = (match for line in text.splitlines() for pattern in ENDS if (match := re.search(pattern, line)))
    return {(each["topic"], int(each["partition"])): int(each["end"]) for each in found}

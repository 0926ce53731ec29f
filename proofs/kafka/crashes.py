"""Directories left by killed brokers, some damaged afterwards, with the recovery by the same brokers."""

from __future__ import annotations

import re
import shutil
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from proofs.unpacking import unpack_archive
from seglog_format import RecoveryOptions, open_log_directory, open_partition, recover, salvage

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


def kept_of(crashed: Crashed, target: Path) -> tuple[dict[TopicPartition, Path], dict[TopicPartition, int], list[str]]:
    """Return what a node must serve of each partition, where its log must end, and what salvage lacks.

    A broker drops every entry after a damaged one. A node keeps the intact ones, as salvage does.

    Returns:
        The directories with the records, the log end offsets, and a line for each partition of which salvage lacks
        records that the broker kept.
    """
    truths, ends, failures = dict(crashed.recovered), dict(crashed.ends), []
    for key, recovered in crashed.recovered.items():
        salvaged = target / recovered.name
        salvage(crashed.old / recovered.name, salvaged).apply()
        broker, ours = _records(recovered), _records(salvaged)
        if not broker.items() <= ours.items():
            failures.append(f"{recovered.name}: salvage lacks records that the broker kept")
        if len(ours) > len(broker):
            truths[key] = salvaged
            ends |= {key: max(ours) + 1} if key in ends else {}
    return truths, ends, failures


def _records(path: Path) -> dict[int, bytes | None]:
    with open_partition(path) as log:
        return {record.offset: record.value for record in log.records(on_gap=lambda _gap: None)}

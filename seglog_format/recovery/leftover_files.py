"""Completion of interrupted replacements and removals in a partition directory (chapters 10, 71).

`log.resolution` decides which files count; this module changes the directory accordingly. The order of the steps
keeps that decision the same after each of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seglog_format.log.resolution import CLEANED, DELETED, SWAP
from seglog_format.names import FileKind, segment_file_name
from seglog_format.storage.file_steps import Remove, Rename, settled

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seglog_format.log.listing import NamedFile, PartitionListing
    from seglog_format.recovery.broker_files import BrokerFiles
    from seglog_format.storage.file_steps import FileStep

TEMPORARY: Final = ".tmp"
METADATA_SNAPSHOT_DELETED: Final = FileKind.METADATA_SNAPSHOT.value + DELETED


def leftover_steps(listing: PartitionListing, *, like: BrokerFiles | None = None) -> tuple[FileStep, ...]:
    """Finish or undo interrupted replacements and removals (SEG-RCV-020, SEG-RCV-021).

    Args:
        listing: of the partition directory.
        like: a broker's view of the directory, to do what a broker does when it starts: remove the files that an
            earlier run renamed for removal, and create the missing index of a replacement. The files that this run
            renames stay until the next start. None not to imitate a broker.
    """
    set_aside = {file.path for file in listing.set_aside}
    aside = [file for file in listing.files if file.path in set_aside]
    swaps = [file for file in listing.files if file.name.suffix == SWAP and file.path not in set_aside]
    deleted = _deleted(listing) if like and like.is_first_round else ()
    created = like.index_steps() if like else ()
    # A `.cleaned` file shows that the `.swap` files above it are incomplete, so it is removed after them.
    unfinished = [file for file in aside if file.name.suffix == SWAP]
    cleaned = [file for file in aside if file.name.suffix in {CLEANED, TEMPORARY}]
    replaced = [file for file in aside if not file.name.suffix]
    return (
        *deleted,
        *settled(_removals(unfinished, "SEG-RCV-021"), listing.path),
        *settled(_removals(cleaned, "SEG-RCV-020"), listing.path),
        *settled(created, listing.path),
        *settled(_removals(replaced, "SEG-RCV-021"), listing.path),
        *settled((*_renames(swaps), *_renamed(created)), listing.path),
    )


def _deleted(listing: PartitionListing) -> tuple[FileStep, ...]:
    """Remove every file whose name ends in `.deleted`, as brokers do, except snapshots of the metadata log."""
    paths = [*(file.path for file in listing.set_aside), *listing.others]
    gone = [p for p in paths if p.name.endswith(DELETED) and not p.name.endswith(METADATA_SNAPSHOT_DELETED)]
    return tuple(Remove(path, "SEG-RCV-020") for path in sorted(gone))


def _removals(files: Iterable[NamedFile], requirement: str) -> list[FileStep]:
    return [Remove(file.path, requirement) for file in files]


def _renames(swaps: Iterable[NamedFile]) -> list[FileStep]:
    """Rename in ascending order, each log before its indexes, so no remaining `.swap` file replaces a renamed one."""
    ordered = sorted(swaps, key=lambda file: (file.base_offset, file.name.kind is not FileKind.LOG))
    return [
        Rename(file.path, file.path.with_name(segment_file_name(file.base_offset, file.name.kind)), "SEG-RCV-021")
        for file in ordered
    ]


def _renamed(created: Iterable[FileStep]) -> list[FileStep]:
    return [Rename(step.path, step.path.with_suffix(""), "SEG-RCV-021") for step in created]

"""Replacement of segments by a cleaned segment, and undoing a replacement that failed (chapter 73)."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from seglog_format.errors import WriteError, write_errors
from seglog_format.log.resolution import CLEANED, DELETED, SWAP
from seglog_format.names import FileKind, segment_file_name
from seglog_format.storage.file_steps import Rename, Settle, apply_steps
from seglog_format.storage.files import write_file

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from seglog_format.cleaning.compaction_pass import CleanedSegment
    from seglog_format.log.listing import SegmentFiles
    from seglog_format.storage.file_steps import FileStep
    from seglog_format.storage.files import Files

SWAPPED: Final = "SEG-CMP-022"
GONE_SNAPSHOT: Final = "SEG-CMP-024"


@dataclass(frozen=True, slots=True)
class Create:
    """Create a file. When the step ends, its content is on disk, but its name may not be."""

    path: Path
    data: bytes = field(repr=False)
    modified_ms: int
    requirement: str

    @property
    def text(self) -> str:
        """The step as text."""
        return f"write {len(self.data)} bytes"

    def apply(self, files: Files) -> None:
        """Carry out the step."""
        write_file(files, self.path, self.data)
        files.set_modified_ms(self.path, self.modified_ms)


def swap_steps(cleaned: CleanedSegment, directory: Path, *, has_time_index: bool = True) -> tuple[FileStep, ...]:
    """Return the steps that replace the sources of a cleaned segment by it (SEG-CMP-022).

    Args:
        cleaned: the segment.
        directory: of the partition.
        has_time_index: whether there are time indexes.
    """
    contents = {FileKind.LOG: cleaned.log, FileKind.OFFSET_INDEX: cleaned.offset_index}
    if has_time_index:
        contents[FileKind.TIME_INDEX] = cleaned.time_index
    # An empty `.log.swap` covers no offsets: after a crash, only an empty index of its own replaces the old index.
    hides_old = not cleaned.log and cleaned.sources[0].transaction_index is not None
    if cleaned.transaction_index or hides_old:
        contents[FileKind.TRANSACTION_INDEX] = cleaned.transaction_index
    names = {kind: segment_file_name(cleaned.base_offset, kind) for kind in contents}
    return (
        *(
            Create(directory / (names[kind] + CLEANED), data, cleaned.modified_ms, SWAPPED)
            for kind, data in contents.items()
        ),
        Settle(directory),
        *(Rename(directory / (n + CLEANED), directory / (n + SWAP), SWAPPED) for n in names.values()),
        Settle(directory),
        *_removals(cleaned.sources),
        Settle(directory),
        *(Rename(directory / (n + SWAP), directory / n, SWAPPED) for n in names.values()),
        Settle(directory),
    )


def _removals(sources: Sequence[SegmentFiles]) -> Iterator[FileStep]:
    """Yield the renaming of the old files; the first snapshot stays, as that of the new segment (SEG-CMP-024)."""
    for source in sources:
        snapshot = source.snapshot if source is not sources[0] else None
        if snapshot is not None:
            yield _removal(snapshot, GONE_SNAPSHOT)
        for path in (source.transaction_index, source.time_index, source.offset_index, source.log):
            if path is not None:
                yield _removal(path, SWAPPED)


def _removal(path: Path, requirement: str) -> Rename:
    return Rename(path, path.with_name(path.name + DELETED), requirement)


def applied(steps: tuple[FileStep, ...], files: Files) -> tuple[FileStep, ...]:
    """Carry out the steps in order.

    Returns:
        The same steps.

    Raises:
        WriteError: a step failed; the steps before it are undone, or recovery of the directory completes them.
    """
    try:
        with write_errors("compaction"):
            apply_steps(steps, files)
    except WriteError as error:
        _undo(steps, files)
        swaps = [path for path in map(_swap, _made(steps)) if files.exists(path)]
        if not swaps:
            raise
        msg = f"{error}; recover {swaps[0].parent} to complete the replacement"
        raise WriteError(msg) from error.__cause__
    return steps


def _made(steps: tuple[FileStep, ...]) -> list[Path]:
    return [step.path for step in steps if isinstance(step, Create)]


def _swap(cleaned: Path) -> Path:
    return cleaned.with_name(cleaned.name.removesuffix(CLEANED) + SWAP)


def _undo(steps: tuple[FileStep, ...], files: Files) -> None:
    """Remove the new files if all old ones still exist; if not, recovery has to complete the replacement."""
    made = _made(steps)
    if any(map(files.exists, made)):
        with suppress(OSError):
            # The `.cleaned` files are last: they show that the replacement is unfinished.
            for path in filter(files.exists, (*map(_swap, made), *made)):
                files.remove(path)

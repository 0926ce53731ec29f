"""The decision which files of a partition directory count, mostly by their names (chapter 10).

Files that a broker has renamed for removal are no part of the log, and the output of an interrupted replacement
either replaces the files that it covers or is left out.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from seglog_format.errors import FormatError
from seglog_format.names import NUMBERED_KINDS, FileKind, FileName, parse_file_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    NextOffset: TypeAlias = Callable[[str], int]

SWAP: Final = ".swap"
CLEANED: Final = ".cleaned"
DELETED: Final = ".deleted"


class Resolution(NamedTuple):
    """The files of a partition directory that count (SEG-PDR-009, SEG-PDR-010).

    Attributes:
        meanings: the parsed names of all files of known kinds, in name order.
        used: by offset and kind, the name of the one file that counts.
        shadowed: other names with the same offset and kind, such as ``0.log``.
        set_aside: names of files that were renamed for removal, are unfinished, or were replaced.
        misnamed: errors for names that end as the name of a segment's file, but have no usable offset.
        others: names of no known kind (SEG-PDR-011).
    """

    meanings: dict[str, FileName]
    used: dict[tuple[int, FileKind], str]
    shadowed: tuple[str, ...]
    set_aside: tuple[str, ...]
    misnamed: tuple[FormatError, ...]
    others: tuple[str, ...]


def resolve(names: Iterable[str], next_offset_of: NextOffset, *, directory: str = "") -> Resolution:
    """Decide which files of a partition directory count (SEG-PDR-009, SEG-PDR-010).

    The unfinished output of a replacement (``.cleaned``) never counts. Finished output (``.swap``) counts unless an
    unfinished file of the same or a lower base offset shows that the replacement was not complete. Finished output that
    counts replaces all files from its first base offset up to the next offset of its last log.

    Args:
        names: of the regular files in the directory.
        next_offset_of: returns the first offset after the last whole entry of the ``.log.swap`` file of that name.
        directory: name of the directory in errors.
    """
    meanings, misnamed, others = _parsed(names, directory)
    numbered = [(name, meaning) for name, meaning in meanings.items() if meaning.kind in NUMBERED_KINDS]
    swaps = _complete_swaps(numbered)
    covered = _covered(swaps, next_offset_of)
    plain = [(name, file) for name, file in numbered if not file.suffix and file.base_offset not in covered]
    used, shadowed = _preferred(plain)
    used |= _preferred(swaps)[0]
    counted = {*used.values(), *shadowed}
    return Resolution(
        meanings=meanings,
        used=used,
        shadowed=shadowed,
        set_aside=tuple(
            name
            for name, meaning in meanings.items()
            if name not in counted and (meaning.suffix or meaning.kind in NUMBERED_KINDS)
        ),
        misnamed=misnamed,
        others=others,
    )


def _parsed(
    names: Iterable[str], directory: str
) -> tuple[dict[str, FileName], tuple[FormatError, ...], tuple[str, ...]]:
    """Return the parsed names, the errors for wrong names, and all other names."""
    meanings, misnamed, others = {}, [], []
    for name in sorted(names):
        try:
            meaning = parse_file_name(name)
        except FormatError as error:
            misnamed.append(relocated(error, directory))
            continue
        if meaning is None:
            others.append(name)
        else:
            meanings[name] = meaning
    return meanings, tuple(misnamed), tuple(others)


def relocated(error: FormatError, directory: str) -> FormatError:
    """Return an error about a file name as one about its path in a directory."""
    location = replace(error.location, path=os.path.join(directory, error.location.path))  # noqa: PTH118 - may be empty
    return FormatError(location, *error.requirements, expected=error.expected, found=error.found)


def _complete_swaps(numbered: list[tuple[str, FileName]]) -> list[tuple[str, FileName]]:
    unfinished = min((parsed.base_offset for _, parsed in numbered if parsed.suffix == CLEANED), default=None)
    return [
        (name, parsed)
        for name, parsed in numbered
        if parsed.suffix == SWAP and (unfinished is None or parsed.base_offset < unfinished)
    ]


def _covered(swaps: list[tuple[str, FileName]], next_offset_of: NextOffset) -> range:
    logs = [(name, parsed.base_offset) for name, parsed in swaps if parsed.kind is FileKind.LOG]
    if not logs:
        return range(0)
    return range(min(base for _, base in logs), max(next_offset_of(name) for name, _ in logs))


def _preferred(files: list[tuple[str, FileName]]) -> tuple[dict[tuple[int, FileKind], str], tuple[str, ...]]:
    """Choose one name for each offset and kind: the canonical one if there is one, else the first in name order."""
    used: dict[tuple[int, FileKind], str] = {}
    for name, meaning in sorted(files, key=lambda pair: not pair[1].is_canonical):
        used.setdefault((meaning.base_offset, meaning.kind), name)
    chosen = set(used.values())
    return used, tuple(name for name, _ in files if name not in chosen)

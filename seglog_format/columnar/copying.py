"""Copies inside of decompressed data. Targets have `SLACK` extra bytes at the end, so whole words may be copied."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seglog_format.columnar.compiled import helper, inlined
from seglog_format.columnar.memory import copy_16, copy_32, load_64, load_u8, prefetch, store_8, store_64

if TYPE_CHECKING:
    from seglog_format.columnar.arrays import Region

SLACK: Final = 64
WORD: Final = 8
PAIR: Final = 16
QUAD: Final = 32
NEAR: Final = 512
"""Distance at which memory is prefetched ahead of short copies, for reading and for writing."""
AHEAD: Final = 2048
"""Distance at which memory is prefetched ahead of long copies."""


@inlined
def copy_run(target: Region, at: int, source: Region, position: int, size: int) -> None:
    """Copy bytes from another region; up to 15 bytes after them are overwritten as well."""
    if position + size + PAIR <= source[1]:
        _copy_pairs(target, at, source, position, size)
    else:
        for done in range(size):
            store_8(target, at + done, load_u8(source, position + done))


@inlined
def _copy_pairs(target: Region, at: int, source: Region, position: int, size: int) -> None:
    """Copy 16 bytes at a time. Such loops do not use `range`, which would divide first."""
    copy_16(target, at, source, position)
    done = PAIR
    while done < size:
        copy_16(target, at + done, source, position + done)
        done += PAIR


@inlined
def repeat(target: Region, at: int, distance: int, size: int) -> None:
    """Copy bytes from some distance back, repeating them if they overlap the target; overwrites as `copy_run`."""
    if distance >= PAIR:
        _copy_pairs(target, at, target, at - distance, size)
    else:
        _repeat_near(target, at, distance, size)


@helper
def _repeat_near(target: Region, at: int, distance: int, size: int) -> None:
    """Repeat bytes from less than 16 bytes back, as `repeat` does."""
    done = 0
    if distance < WORD:
        while done < WORD:
            store_8(target, at + done, load_u8(target, at + done - distance))
            done += 1
        distance = (WORD + distance - 1) // distance * distance
    while done < size:
        store_64(target, at + done, load_64(target, at + done - distance))
        done += WORD


@inlined
def copy_long(target: Region, at: int, source: Region, position: int, size: int) -> None:
    """Copy like `copy_run`, tuned for longer ranges; up to 31 bytes after them are overwritten as well."""
    if position + size + QUAD > source[1]:
        copy_run(target, at, source, position, size)
        return
    copy_32(target, at, source, position)
    prefetch(source, position + AHEAD)
    done = QUAD
    while done < size:
        copy_32(target, at + done, source, position + done)
        prefetch(source, position + done + AHEAD)
        done += QUAD

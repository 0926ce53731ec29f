"""Swaps of two neighbouring fields of a live declaration, which every reader and writer made from it then follows."""

from __future__ import annotations

from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING

from construct import Array, Construct, Renamed, Struct, Subconstruct, Tell

from seglog_format.schema import tracing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Pair = tuple[str, str]


def pairs(declaration: Struct) -> list[Pair]:
    """Return the neighbouring fields of a structure, marks of positions aside."""
    return list(pairwise(field.name for field in declaration.subcons if is_field(field)))


def is_field(declared: Construct) -> bool:
    """Return whether a part of a structure has bytes and a name."""
    inner = declared
    while isinstance(inner, Renamed):
        inner = inner.subcon
    return bool(declared.name) and inner is not Tell


@contextmanager
def swapped(declaration: Struct, pair: Pair) -> Iterator[None]:
    """Swap two fields of a declaration for as long as the block runs."""
    before = list(declaration.subcons)
    first, second = ([field.name for field in before].index(name) for name in pair)
    declaration.subcons[first], declaration.subcons[second] = before[second], before[first]
    tracing._traced_copy.cache_clear()
    try:
        yield
    finally:
        declaration.subcons[:] = before
        tracing._traced_copy.cache_clear()


def is_noticed(check: Callable[[], bool]) -> bool:
    """Return whether a check fails, in either way."""
    try:
        return not check()
    except Exception:  # noqa: BLE001 - a reader or writer of the wrong layout may fail in any way
        return True


def structures_in(declared: Construct) -> Iterator[Struct]:
    """Yield a structure and those in its fields."""
    if isinstance(declared, Struct):
        yield declared
        for field in declared.subcons:
            yield from structures_in(field)
    elif isinstance(declared, Renamed | Array | Subconstruct):
        yield from structures_in(declared.subcon)
    for known in getattr(declared, "known", {}).values():
        yield from structures_in(known)

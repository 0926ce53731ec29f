"""Causes of failures in the source of libraries, written by hand in ``conformance/causes.toml``."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

PATH: Final = Path(__file__).resolve().parents[2] / "conformance" / "causes.toml"


@dataclass(frozen=True, slots=True)
class Cause:
    """Why the cases of a group fail.

    Attributes:
        library: its homepage, as in the adapters.
        reason: reason of the group, as in the lists of known failures.
        version: version whose source was read.
        where: files and lines.
        cause: behaviour of the code there.
        fix: change that would repair it.
    """

    library: str
    reason: str
    version: str
    where: tuple[str, ...]
    cause: str
    fix: str


@dataclass(frozen=True, slots=True)
class Few:
    """Why a library has fewer than three causes.

    Attributes:
        library: its homepage.
        reason: why.
    """

    library: str
    reason: str


@cache
def read_causes() -> tuple[tuple[Cause, ...], tuple[Few, ...]]:
    """Return all causes of failing cases, and the reasons why some libraries have few."""
    stored = _stored()
    return tuple(map(_cause, stored["cause"])), tuple(Few(**entry) for entry in stored["few"])


def read_pairs() -> tuple[Cause, ...]:
    """Return the causes of defects that only the pairs of writers and readers show."""
    return tuple(map(_cause, _stored()["pair"]))


@cache
def _stored() -> dict[str, Any]:
    return tomllib.loads(PATH.read_text(encoding="utf-8"))


def _cause(entry: dict[str, Any]) -> Cause:
    return Cause(**{**entry, "where": tuple(entry["where"])})


def lines(library: str, reason: str) -> Iterator[str]:
    """Yield the causes of a group of failures as Markdown; nothing if none is known.

    Args:
        library: its homepage.
        reason: of the group.
    """
    causes, _ = read_causes()
    for one in causes:
        if (one.library, one.reason) == (library, reason):
            yield from shown(one)


def shown(one: Cause) -> Iterator[str]:
    """Yield a cause and its fix as Markdown."""
    lines_of_code = ", ".join(f"`{line}`" for line in one.where)
    yield from (f"Cause, in {one.version}: {lines_of_code}. {one.cause}", "", f"Suggested fix: {one.fix}", "")

"""Causes of failures in the source of libraries, written by hand in ``conformance/causes.toml``."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

PATH: Final = Path(__file__).resolve().parents[2] / "conformance" / "causes.toml"


@dataclass(frozen=True, slots=True)
class Cause:
    """Why the cases of a group fail.

    Attributes:
        library: its homepage, as in the adapters.
        reason: of the group, as in the lists of known failures.
        version: whose source was read.
        where: files and lines.
        cause: what is done there.
        fix: what would repair it.
    """

    library: str
    reason: str
    version: str
    where: tuple[str, ...]
    cause: str
    fix: str


@dataclass(frozen=True, slots=True)
class Few:
    """Why a library has fewer than three.

    Attributes:
        library: its homepage.
        reason: why.
    """

    library: str
    reason: str


@cache
def read_causes() -> tuple[tuple[Cause, ...], tuple[Few, ...]]:
    """Return all causes, and why some libraries have none."""
    stored = tomllib.loads(PATH.read_text(encoding="utf-8"))
    causes = (Cause(**{**entry, "where": tuple(entry["where"])}) for entry in stored["cause"])
    return tuple(causes), tuple(Few(**entry) for entry in stored["few"])


def lines(library: str, reason: str) -> Iterator[str]:
    """Yield what is known of a group of failures, as Markdown; nothing where nobody has looked.

    Args:
        library: its homepage.
        reason: of the group.
    """
    causes, _ = read_causes()
    for one in causes:
        if (one.library, one.reason) == (library, reason):
            places = ", ".join(f"`{place}`" for place in one.where)
            yield from (f"Cause, in {one.version}: {places}. {one.cause}", "", f"Suggested fix: {one.fix}", "")

"""Names that are no topics, and what a directory holds, for tests of what becomes a path."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

TOPICS = [
    "x/orders",
    "../../evil",
    "../evil",
    "/tmp/evil",  # noqa: S108 - refused
    ".",
    "..",
    "",
    "a\0b",
    "a\\b",
    "a" * 250,
    "größe",
    "or ders",
    "orders\n",
    "\udc80",
]


def below(path: Path) -> dict[str, bytes | None]:
    """Everything below a directory: the bytes of files, nothing for directories."""
    return {
        str(each.relative_to(path)): each.read_bytes() if each.is_file() else None for each in sorted(path.rglob("*"))
    }

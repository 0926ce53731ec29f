"""Layouts as Markdown tables; other formats have modules of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seglog_format.cli.render_ksy import ksy
from seglog_format.cli.render_svg import svg
from seglog_format.field_names import kafka_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seglog_format.cli.structures import Structure

__all__ = ["ksy", "markdown", "svg"]


HEADING: Final = "| offset | size | type | field | meaning | requirements | since | default |"


def markdown(structures: Iterable[Structure]) -> str:
    """Return a heading and a table for each structure."""
    return "\n\n".join(_section(structure) for structure in structures)


def _section(structure: Structure) -> str:
    size = "variable size" if structure.size is None else f"{structure.size} bytes"
    chapter = f", chapter {structure.chapter}" if structure.chapter else ""
    return f"### {structure.name} ({size}{chapter})\n\n{table(structure)}"


def table(structure: Structure) -> str:
    """Return offset, size, type, field, meaning, requirements, first version and default of each field."""
    rows = [HEADING, f"|{'---|' * HEADING.count(' | ')}---|"]
    for field in structure.fields:
        cells = (
            "" if field.offset is None else str(field.offset),
            "" if field.size is None else str(field.size),
            field.type,
            f"`{kafka_name(field.name)}`",
            field.doc.replace("|", "\\|"),
            ", ".join(field.requirements),
            field.since,
            field.default,
        )
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)

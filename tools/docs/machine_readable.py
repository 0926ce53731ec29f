"""The format for programs: one JSON file with the layout of every structure, and Kaitai Struct declarations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seglog_format.cli.inside import kaitai_set, structures

if TYPE_CHECKING:
    from collections.abc import Iterator

REPOSITORY = Path(__file__).resolve().parents[2]
KAITAI = "docs/reference/kaitai"
LAYOUT = "docs/reference/layout.json"
LAYOUT_VERSION = 1
"""Version of the layout; it changes when a program that reads the layout must change."""


def pages() -> dict[str, str]:
    """Return the content of every file, by path below the repository."""
    return {LAYOUT: layout_text(), **{f"{KAITAI}/{name}": text for name, text in kaitai_set().items()}}


def layout() -> dict[str, Any]:
    """Return the layout of every structure."""
    return {"layoutVersion": LAYOUT_VERSION, "structures": [structure.as_object() for structure in structures()]}


def layout_text() -> str:
    """Return the layout as JSON, with a field on each line."""
    lines = ["{", f' "layoutVersion": {LAYOUT_VERSION},', ' "structures": [']
    made = layout()["structures"]
    for structure in made:
        lines += [f"  {line}" for line in _structure(structure)]
        lines[-1] += "" if structure is made[-1] else ","
    return "\n".join([*lines, " ]", "}"]) + "\n"


def _structure(structure: dict[str, Any]) -> Iterator[str]:
    *rest, last = structure["fields"]
    opening = json.dumps({key: value for key, value in structure.items() if key != "fields"}, ensure_ascii=False)
    yield f'{opening.removesuffix("}")}, "fields": ['
    for field in rest:
        yield f" {json.dumps(field, ensure_ascii=False)},"
    yield f" {json.dumps(last, ensure_ascii=False)}"
    yield "]}"


def committed() -> set[str]:
    """Return the paths of the committed files."""
    return {path.relative_to(REPOSITORY).as_posix() for path in (REPOSITORY / KAITAI).glob("*.ksy")}

"""The format for programs: layouts of all structures and rules of the edition as JSON, Kaitai Struct declarations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seglog_format.cli.explain import editions
from seglog_format.cli.kaitai_set import kaitai_set
from seglog_format.cli.structures import structures
from tools.rules import requirements

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seglog_format.types import Requirement

REPOSITORY = Path(__file__).resolve().parents[2]
KAITAI = "docs/reference/kaitai"
LAYOUT = "docs/reference/layout.json"
RULES = "docs/reference/rules.json"
LAYOUT_VERSION = 1
"""Version of the layout; it changes when a program that reads the layout must change."""


def pages() -> dict[str, str]:
    """Return the content of every file, by path below the repository."""
    return {
        LAYOUT: layout_text(),
        RULES: rules_text(),
        **{f"{KAITAI}/{name}": text for name, text in kaitai_set().items()},
    }


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


def rules_text() -> str:
    """Return the rules of the present edition as JSON, with a rule on each line."""
    present = editions()[-1]
    edition = {key: getattr(present, key) for key in ("number", "version", "published", "kafka")}
    rules = ",\n".join(f"  {json.dumps(_rule(entry), ensure_ascii=False)}" for entry in requirements().values())
    return f'{{\n "edition": {json.dumps(edition)},\n "rules": [\n{rules}\n ]\n}}\n'


def _rule(entry: Requirement) -> dict[str, Any]:
    return {
        "id": entry.id,
        "level": entry.level,
        "binds": list(entry.binds),
        "since": {"version": entry.since, "basis": entry.since_basis} if entry.since else None,
        "brokers": {"kept": entry.brokers.kept, "version": entry.brokers.version, "basis": entry.brokers.basis},
        "check": entry.check,
        "chapter": entry.chapter,
        "text": entry.text,
    }


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

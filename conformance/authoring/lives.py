"""Parts of families 44 and 45: what writing, retention and compaction leave in the files, as Kafka left it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from authoring.casefile import must
from authoring.compact_scenes import compact_scenes
from authoring.kept_lives import digest, kept_source, left_by_kafka, random_lives
from authoring.retain_scenes import retain_scenes
from authoring.scenes import NOW, Scene, settings_of
from authoring.write_scenes import write_scenes

if TYPE_CHECKING:
    from authoring.casefile import Family, Json, Terms

RANDOM: Final = {
    "write": (
        "A random life of a log: appends, rolls, flushes and retention.",
        ("SEG-ROL-001", "SEG-ROL-002", "SEG-ROL-003", "SEG-ROL-010", "SEG-ROL-014", "SEG-ROL-015", "SEG-FLS-004"),
    ),
    "compact": (
        "A pass over a random log.",
        ("SEG-CMP-001", "SEG-CMP-006", "SEG-CMP-008", "SEG-CMP-011", "SEG-CMP-014", "SEG-CMP-015", "SEG-CMP-018"),
    ),
}
FLAG: Final = {
    "KEPT_FILES": {
        "effect": "Files that differ from a broker's are read by the next broker all the same: an index that lacks entries, a snapshot that is not there, a leader epoch too many.",
        "links": [],
    },
}
OFFSET_HEADER: Final = "0\n"


def scenes() -> list[Scene]:
    """All that Kafka's classes are asked."""
    return [*write_scenes(), *retain_scenes(), *compact_scenes()]


def lives(family: Family, *ops: str) -> None:
    """Add what Kafka left: of some operations."""
    family.flags |= FLAG
    for scene in scenes():
        if scene.op in ops:
            kept = left_by_kafka()[scene.name]
            assert kept["digest"] == digest(scene.request), f"{scene.name}: run conformance/authoring/record_lives.py"
            terms = replace(scene.terms, flags=("KEPT_FILES",), source=kept_source())
            request = {**scene.request, "files": kept["files"]}
            family.add(scene.name, scene.op, "valid", scene.why, terms, request=request, expect=kept["expect"])
    for op in ops:
        why, requirements = RANDOM.get(op, ("", ()))
        for life in random_lives(op):
            terms = must(*requirements, flags=("KEPT_FILES",), source=kept_source(), since="4.1")
            family.add(life["name"], op, "valid", why, terms, request=life["request"], expect=life["expect"])


class Lives:
    """What Kafka's classes are not asked.

    Args:
        family: that gets the cases.
    """

    def __init__(self, family: Family) -> None:
        self.family = family

    def write(
        self,
        name: str,
        why: str,
        terms: Terms,
        expect: Json,
        *steps: Json,
        files: dict[str, bytes] | None = None,
        options: Json | None = None,
        result: str = "valid",
        **config: str,
    ) -> None:
        """A log while it is open."""
        request = {
            "files": {key: content.hex() for key, content in (files or {}).items()},
            "config": settings_of(config),
            "now": str(NOW),
            "steps": list(steps),
            "options": options or {},
        }
        terms = replace(terms, flags=("KEPT_FILES",))
        self.family.add(f"write-{name}", "write", result, why, terms, request=request, expect=expect)

    def on_files(
        self,
        op: str,
        name: str,
        why: str,
        terms: Terms,
        expect: Json,
        files: dict[str, bytes],
        result: str = "valid",
        **more: object,
    ) -> None:
        """What is done to files that nobody has open."""
        request = {"files": {key: content.hex() for key, content in files.items()}, **more}
        terms = replace(terms, flags=("KEPT_FILES",))
        self.family.add(f"{op}-{name}", op, result, why, terms, request=request, expect=expect)


def checkpoint(*lines: str) -> str:
    """A checkpoint file of offsets, as hex."""
    return "".join(f"{line}\n" for line in ("0", str(len(lines)), *lines)).encode().hex()

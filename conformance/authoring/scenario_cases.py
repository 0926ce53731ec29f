"""Parts of families 44 and 45: what writing, retention and compaction leave in the files, as Kafka left it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from authoring.casefile import hexed, must
from authoring.compact_scenarios import compact_scenarios
from authoring.derived_scenarios import derived_scenarios
from authoring.recorded_scenarios import digest, expectation, kept_source, left_by_kafka, random_scenarios
from authoring.retain_scenarios import retain_scenarios
from authoring.scenarios import NOW, Scenario, settings_of
from authoring.write_scenarios import write_scenarios

if TYPE_CHECKING:
    from collections.abc import Iterable

    from authoring.casefile import Basis, Family, Json

RANDOM: Final = {
    "write": (
        "A randomly generated sequence of appends, rolls, flushes and retention.",
        ("SEG-ROL-001", "SEG-ROL-002", "SEG-ROL-003", "SEG-ROL-010", "SEG-ROL-014", "SEG-ROL-015", "SEG-FLS-004"),
    ),
    "compact": (
        "A compaction of a randomly generated log.",
        ("SEG-CMP-001", "SEG-CMP-006", "SEG-CMP-008", "SEG-CMP-011", "SEG-CMP-014", "SEG-CMP-015", "SEG-CMP-018"),
    ),
}
FLAG: Final = {
    "KEPT_FILES": {
        "effect": "Files that differ from a broker's are read by the next broker all the same: an index that lacks entries, a snapshot that is not there, a leader epoch too many.",
        "links": [],
    }
}


def scenarios() -> list[Scenario]:
    """All that Kafka's classes are asked."""
    return [*_families_own(), *derived_scenarios()]


def _families_own() -> list[Scenario]:
    return [*write_scenarios(), *retain_scenarios(), *compact_scenarios()]


def add_kept(family: Family, asked: Iterable[Scenario]) -> None:
    """Add what Kafka left in some scenarios."""
    family.flags |= FLAG
    for scenario in asked:
        kept = left_by_kafka()[scenario.name]
        assert kept["digest"] == digest(scenario.request), (
            f"{scenario.name}: run conformance/authoring/record_scenarios.py"
        )
        basis = replace(scenario.basis, flags=("KEPT_FILES",), source=kept_source())
        request = {**scenario.request, "files": kept["files"]}
        result, expect = expectation(kept)
        family.add(scenario.name, scenario.op, result, scenario.why, basis, request=request, expect=expect)


def add_scenarios(family: Family, *ops: str) -> None:
    """Add what Kafka left: of some operations."""
    add_kept(family, (scenario for scenario in _families_own() if scenario.op in ops))
    for op in ops:
        why, requirements = RANDOM.get(op, ("", ()))
        for recorded_scenario in random_scenarios(op):
            basis = must(*requirements, flags=("KEPT_FILES",), source=kept_source())
            name, request = recorded_scenario["name"], recorded_scenario["request"]
            result, expect = expectation(recorded_scenario)
            family.add(name, op, result, why, basis, request=request, expect=expect)


class ScenarioCases:
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
        basis: Basis,
        expect: Json,
        *steps: Json,
        files: dict[str, bytes] | None = None,
        options: Json | None = None,
        result: str = "valid",
        **config: str,
    ) -> None:
        """Add a log while it is open."""
        request = {
            "files": hexed(files or {}),
            "config": settings_of(config),
            "now": str(NOW),
            "steps": list(steps),
            "options": options or {},
        }
        basis = replace(basis, flags=("KEPT_FILES",))
        self.family.add(f"write-{name}", "write", result, why, basis, request=request, expect=expect)

    def on_files(
        self,
        op: str,
        name: str,
        why: str,
        basis: Basis,
        expect: Json,
        files: dict[str, bytes],
        result: str = "valid",
        **more: object,
    ) -> None:
        """Add what is done to files that no process has open."""
        request = {"files": hexed(files), **more}
        basis = replace(basis, flags=("KEPT_FILES",))
        self.family.add(f"{op}-{name}", op, result, why, basis, request=request, expect=expect)


def checkpoint(*lines: str) -> str:
    """Return a checkpoint file of offsets, as hex."""
    return "".join(f"{line}\n" for line in ("0", str(len(lines)), *lines)).encode().hex()

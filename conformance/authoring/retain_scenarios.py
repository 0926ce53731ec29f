"""Logs that nobody has open, and retention: scenarios that Kafka's classes play, too."""

from __future__ import annotations

from typing import TYPE_CHECKING

from authoring.casefile import hexed, must
from authoring.scenarios import NOW, Scenario, settings_of
from authoring.segments import bytes_of, name_of, offset_index, row, time_index

if TYPE_CHECKING:
    from collections.abc import Iterator

    from authoring.casefile import Basis, Json


def retain_scenarios() -> Iterator[Scenario]:
    """Yield logs that nobody has open, and retention."""
    logs = {base: row(3, base=base, start=NOW + 100 * base) for base in (0, 9, 18)}
    files = {name_of(base): bytes_of(units) for base, units in logs.items()}
    files |= {name_of(base, ".index"): offset_index(units, 100, base) for base, units in logs.items()}
    files |= {name_of(base, ".timeindex"): time_index(units, 100, base) for base, units in logs.items()}
    size = len(bytes_of(logs[0]))
    epochs = b"0\n3\n0 0\n1 12\n4 20\n"

    def retained(
        name: str, why: str, basis: Basis, *, now: int = NOW, more: Json | None = None, **config: str
    ) -> Scenario:
        given = hexed({**files, "leader-epoch-checkpoint": epochs})
        request = {"files": given, "config": settings_of(config), "now": str(now), "options": more or {}}
        return Scenario(f"retain-files-{name}", "retain", why, basis, request)

    basis = must("SEG-RET-009", "SEG-RET-011")
    yield retained(
        "by-size-1",
        "Retention by size deletes the first segment.",
        basis,
        retention_bytes=str(2 * size),
        retention_ms="-1",
    )
    yield retained(
        "by-size-2", "Retention by size deletes two segments.", basis, retention_bytes=str(size), retention_ms="-1"
    )
    yield retained(
        "by-size-none", "Retention by size deletes no segment.", basis, retention_bytes=str(3 * size), retention_ms="-1"
    )
    yield retained(
        "by-time",
        "Retention by time deletes the first segment, which is too old.",
        basis,
        now=NOW + 1500,
        retention_ms="1000",
    )
    yield retained(
        "by-start",
        "Retention deletes segments below the log start offset.",
        must("SEG-RET-008", "SEG-RET-011"),
        more={"logStartOffset": "13"},
        retention_ms="-1",
    )
    yield retained(
        "by-size-not-replicated",
        "Retention keeps segments at or above the high watermark.",
        must("SEG-RET-002"),
        more={"highWatermark": "12"},
        retention_bytes="1",
        retention_ms="-1",
    )
